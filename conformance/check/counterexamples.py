"""The stories of what went wrong in an exploration."""

from __future__ import annotations

from collections.abc import Sequence

from ...model.core.ground import System
from ...model.explore import Exploration
from ...model.explore.liveness import Liveness
from ...traces.build_run_report import story_of_run
from ...traces.run_report import Story
from ...traces.stepper import DirectStepper


def counterexample(system: System, found: Exploration, live: Sequence[Liveness] = ()) -> Story | None:
    """The story of what went wrong: the path to a broken invariant, else the first lasso; None where nothing did."""
    if found.path is not None:
        return story_of_run(
            DirectStepper(system.traced, system.constants),
            found.path,
            verdict=found.verdict,
            violated=found.violated,
            source={"engine": found.engine},
        )
    for each in live:
        if each.lasso is not None:
            return lasso_story(each)
    return None


def lasso_story(answer: Liveness) -> Story:
    """The story of a run that is fair and yet breaks a liveness property: stem and loop."""
    lasso = answer.lasso
    assert lasso is not None
    system = answer.system
    return story_of_run(
        DirectStepper(system.traced, system.constants),
        lasso.path,
        verdict=answer.verdict,
        violated=answer.spec.name,
        headline=f"Under {answer.fairness}, {answer.spec.name} fails: {answer.spec.doc}",
        source={"engine": "reference", "fairness": answer.fairness},
        loop_start=lasso.loop_start,
    )
