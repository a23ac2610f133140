"""The minimal trace of a mined bug as a story: the run of the model as far as one goes, then what was seen instead."""

from __future__ import annotations

from typing import Final

from ...model.core.registry import PROTOCOLS
from ...model.explore.result import Verdict
from ..build_run_report import story_of_replay
from ..format import value_json
from ..mine.answer import Group
from ..replay import EXPLAINED, Budget, Replay, replay
from ..run_report import Breach, Json, Moment, Story
from ..stepper import stepper_for

_BUDGET: Final = Budget(max_frontier=1_000)
"""A minimal trace has a few events; one that needs more is told as far as this goes."""


def story_of_group(group: Group) -> Story | None:
    """The story of a group's minimal trace, held against the group's variant; None where it has no minimal trace.

    A step that the model refuses is the last moment of the story: with the cells that were observed after it, and what
    refuses it as the breach.
    """
    if group.minimal is None:
        return None
    traced = PROTOCOLS[group.bug.protocol].traced(group.variant)
    stepper = stepper_for(traced, group.constants, often=False)
    answer = replay(group.minimal, stepper, budget=_BUDGET)
    story = story_of_replay(group.minimal, answer, stepper)
    if answer.verdict is Verdict.HOLDS or answer.event is None or answer.breach is not None:
        return story
    return _with_refused(story, answer)


def _with_refused(story: Story, answer: Replay) -> Story:
    """The story, with the event that nothing explains as its last moment."""
    event = answer.event
    assert event is not None
    before = story.moments[-1]
    state: dict[str, Json] = dict(before.state)
    state |= {cell: value_json(value) for cell, value in event.observed.items()}
    name, promise, detail, cells = EXPLAINED, story.promises[EXPLAINED], "", tuple[str, ...]()
    denials = answer.frontier[0].denials if answer.frontier else ()
    if denials:
        refusal, detail = denials[0].refusal, str(denials[0])
        cells = tuple(each.cell for each in denials[0].differences)
        if refusal is not None:
            name, promise = refusal.guard, f"The guard {refusal.guard} of {event.action} lets no such step happen."
            cells = tuple(cell for cell, _ in refusal.operands if cell in state)
    refused = Moment(event.step, event.action, dict(event.params), state, (), (Breach(name, detail, cells),))
    moments = [*story.moments[:-1], _without_end(before), refused]
    return Story(
        protocol=story.protocol,
        variant=story.variant,
        constants=story.constants,
        verdict="violated",
        violated=name,
        headline=story.headline,
        source=story.source,
        replicas=story.replicas,
        view=story.view,
        moments=tuple(moments),
        promises={**story.promises, name: promise},
    )


def _without_end(moment: Moment) -> Moment:
    """The last state that the model explains, without the notes on what comes next: that has its own moment."""
    return Moment(moment.step, moment.action, moment.params, moment.state, moment.enabled, moment.broken, ())
