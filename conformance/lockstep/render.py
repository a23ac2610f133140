"""The story of a lockstep run that ends in a divergence, for the terminal and the HTML page."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...model.core.ground import System
from ...model.explore.result import Verdict
from ...traces.build_run_report import story_of_run
from ...traces.run_report import Story
from ...traces.stepper import DirectStepper, TakenStep
from .divergence import Done, error_words
from .expect import Try
from .play import Played

CONFORMS: Final = "conforms"
"""The name of the promise that a divergence breaks."""


def story_of_failure(system: System, played: Played, adapter: str) -> Story:
    """The model's run as far as both went the same way; its last state has the divergence in its notes.

    What no model step shows (a refused action, a fault) stands in the notes of the state in which it was tried.
    """
    found = played.divergence
    assert found is not None
    run: list[TakenStep] = []
    notes: dict[int, list[str]] = {}
    for done in played.history:
        told = _told(done)
        if told and not done.run:
            notes.setdefault(len(run), []).append(told)
        run += [TakenStep(call[0], call[1], state) for call, state in done.run]
        if told and done.run:
            notes.setdefault(len(run), []).append(told)
    notes.setdefault(len(run), []).extend(
        [f"here {adapter} and the model part: {found.sort.value}", found.headline, *found.lines]
    )
    story = story_of_run(
        DirectStepper(system.traced, system.constants),
        run,
        verdict=Verdict.VIOLATED,
        violated=CONFORMS,
        headline=f"{adapter} does not conform. {found.headline}",
        source={"adapter": adapter, "seed": played.seed},
    )
    moments = tuple(
        replace(moment, notes=(*moment.notes, *notes.get(number, ()))) for number, moment in enumerate(story.moments)
    )
    promises = dict(story.promises) | {CONFORMS: "The implementation does what the model does, step for step."}
    return replace(story, moments=moments, promises=promises)


def _told(done: Done) -> str:
    """A try in words; empty where the model's step says it all."""
    if done.asked == Try(None):
        return ""
    plain = done.asked.fault is None and len(done.run) == 1 and done.run[0][0] == done.asked.call
    if plain and done.error is None and done.refused is None:
        return ""
    answered = f", answered with {error_words(done.error)}" if done.asked.call is not None else ""
    return f"tried {done.asked}{answered}"


def script(played: Played) -> list[str]:
    """The run as numbered lines, as a person would carry it out by hand."""
    lines = []
    tries = [done for done in played.history if done.asked != Try(None)]
    for number, done in enumerate(tries, 1):
        happened = [str(Try(call)) for call, _ in done.run]
        if done.refused is not None:
            happened.append(str(Try(done.refused)))
        came = "" if happened == [str(Try(done.asked.call))] else f"  happened: {', '.join(happened) or 'nothing'}"
        code = "" if done.error is None else f"  -> {done.error}"
        lines.append(f"{number:3}  {done.asked}{code}{came}")
    return lines
