"""The measure from its beginning to its end: mutants are drawn, judged in parallel, and the survivors sorted."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any, Final

from ....model.core.errors import BadInput
from ....model.core.temporary_folder import TemporaryFolder
from ....traces.run_report import Json
from .drawing import Drawing, Mutant
from .driving import Drive
from .equivalent import Equivalent
from .judging import Judgement
from .measure import Fate, Measure, Row
from .pool import Task, Workers, workers
from .source import Source, drivers_of, texts_of
from .worker import judgement_of, raise_told

RECORDING_SECONDS: Final = 5.0
"""Of the processor, for each drive of the source as it is, at least."""

OnRow = Callable[[Row, int, int], None]
"""Told what became of a mutant as soon as that is known, how many are judged with it, and of how many."""


@dataclass(frozen=True)
class Asked:
    """What to measure. ``seconds``: of the processor for each mutant. ``arguments``: those of all protocols."""

    source: Source
    drives: Sequence[Drive]
    count: int
    seed: int
    seconds: float
    jobs: int
    arguments: Sequence[Equivalent] = ()


Lines = Mapping[str, Mapping[str, Collection[int]]]
"""By drive and file, the lines that ran in the recorded runs of the source as it is."""


def drives_of(asked: Asked, mutant: Mutant, lines: Lines) -> list[Drive]:
    """Those that run the mutant's file, the free ones first, and of those the ones that come to its lines.

    Free runs may come later to what no recorded one has come to, so all of the file's are tried. Others that come to
    it may see what these do not, and are tried after them; where these do not come to it, before. In lockstep it is
    driven by those of the file's that come to it, or else by others that do, or by all of the file's.
    """
    known = drivers_of(mutant.file) if asked.source.is_ours else [drive.protocol for drive in asked.drives]
    theirs = [each for each in asked.drives if each.protocol in known]
    come = [each for each in asked.drives if _comes_to(lines, each, mutant)]
    free = [each for each in theirs if each.engine == "free"]
    first = [each for each in free if each in come]
    beside = [each for each in come if each.engine == "free" and each not in free]
    if first:
        beside = [replace(each, beside=True) for each in beside]
    lockstep = [each for each in theirs if each in come] or come or theirs
    later = [each for each in free if each not in first]
    return [*first, *beside, *later, *(each for each in lockstep if each.engine == "lockstep")]


def _comes_to(lines: Lines, drive: Drive, mutant: Mutant) -> bool:
    """Whether a recorded run of the drive executed a line that the mutant changes."""
    return not set(lines.get(drive.name, {}).get(mutant.file, ())).isdisjoint(mutant.lines)


def measure(asked: Asked, on_row: OnRow | None = None) -> Measure:
    """Measure. Raises BadInput where there is nothing to mutate, and where the source as it is does not conform."""
    drawing = Drawing(texts_of(asked.source), asked.seed)
    mutants = list(islice(drawing, asked.count))
    if not mutants:
        raise BadInput("no line of it can be mutated", str(asked.source.folder), "name a folder with functions in it")
    with (
        TemporaryFolder("fencepost-") as folder,
        workers(asked.source, asked.drives, min(asked.jobs, len(mutants))) as pool,
    ):
        rows, compared = _judged(asked, mutants, pool, str(folder / "recording.json"), on_row)
    return Measure(asked.seed, asked.source.files, drawing.lines, drawing.equivalent, compared, rows)


def judge_all(asked: Asked, mutants: Sequence[Mutant], on_row: OnRow | None = None) -> tuple[Row, ...]:
    """Judge these mutants, and no drawn ones. Raises like ``measure``."""
    with (
        TemporaryFolder("fencepost-") as folder,
        workers(asked.source, asked.drives, min(asked.jobs, len(mutants))) as pool,
    ):
        return _judged(asked, mutants, pool, str(folder / "recording.json"), on_row)[0]


def _judged(
    asked: Asked, mutants: Sequence[Mutant], pool: Workers, file: str, on_row: OnRow | None
) -> tuple[tuple[Row, ...], int]:
    """A row for each mutant, and how many steps the survivors are compared in."""
    base: dict[str, Json] = {"file": file, "seed": asked.seed}
    every: list[Json] = [drive.to_json() for drive in asked.drives]

    def task(do: str, mutant: Mutant) -> Task:
        drives: list[Json] = [drive.to_json() for drive in drives_of(asked, mutant, lines)]
        return {**base, "do": do, "mutant": mutant.to_json(), "drives": drives, "seconds": asked.seconds}

    seconds = max(RECORDING_SECONDS * len(asked.drives), asked.seconds)
    # Who judges a mutant depends on who comes to it.
    recorded = pool.submit({**base, "do": "record", "mutant": None, "drives": every, "seconds": seconds}).result()
    raise_told(recorded)
    lines: Lines = recorded["answer"]["lines"]
    # What is known of a mutant is told before the next one is begun.
    ready = deque((mutant, task("judge", mutant)) for mutant in mutants)
    running: dict[Future[Mapping[str, Any]], tuple[Mutant, Task]] = {}
    judged: dict[str, Judgement] = {}
    rows: dict[str, Row] = {}

    def done(row: Row) -> None:
        rows[row.mutant.name] = row
        if on_row is not None:
            on_row(row, len(rows), len(mutants))

    while ready or running:
        while ready and len(running) < asked.jobs:
            mutant, what = ready.popleft()
            running[pool.submit(what)] = (mutant, what)
        over, _ = wait(running, return_when=FIRST_COMPLETED)
        for future in over:
            mutant, what = running.pop(future)
            if what["do"] != "judge":
                answer = confirmed if what["do"] == "confirm" else _compared
                done(answer(asked, mutant, judged[mutant.name], future.result()))
                continue
            found = judged[mutant.name] = judgement_of(future.result())
            row = _at_once(asked, mutant, found, lines)
            if row is not None:
                done(row)
                continue
            again = task("compare", mutant)
            if found.run is not None:
                drive = next(each for each in asked.drives if each.name == found.drive)
                again = {**base, "do": "confirm", "mutant": None, "drives": [drive.to_json()]}
                again |= {"run": found.run.to_json(), "seconds": asked.seconds}
            ready.appendleft((mutant, again))
    return tuple(rows[mutant.name] for mutant in mutants), int(recorded["answer"]["steps"])


def _at_once(asked: Asked, mutant: Mutant, found: Judgement, lines: Lines) -> Row | None:
    """What becomes of a mutant of which nothing more is to be asked; None of any other."""
    argued = _argued(asked, mutant)
    if found.by is not None:
        # Without a run it fell over before there was one, or took the process with it.
        return _killed(asked, mutant, found) if found.run is None else None
    if argued is not None:
        return Row(mutant, found, Fate.EQUIVALENT, argued.reason)
    if not any(_comes_to(lines, drive, mutant) for drive in asked.drives):
        return Row(mutant, found, Fate.NOT_DRIVEN, f"{_tried(found)}; no run of the source as it is came to it")
    return None


def _argued(asked: Asked, mutant: Mutant) -> Equivalent | None:
    return next((each for each in asked.arguments if each.is_for(mutant)), None)


def _killed(asked: Asked, mutant: Mutant, found: Judgement) -> Row:
    assert found.by is not None
    argued = _argued(asked, mutant)
    refuted = None if argued is None else f"it is argued to be equivalent ({argued.reason}), and yet it is killed"
    return Row(mutant, found, Fate.KILLED, f"{found.by.value}: {found.detail}", refuted)


def confirmed(asked: Asked, mutant: Mutant, found: Judgement, told: Mapping[str, Any]) -> Row:
    """A killed mutant, if the source as it is passes the same run."""
    if "ended" in told:
        return Row(mutant, found, Fate.UNKNOWN, f"the source as it is ended with {told['ended']} in the same run")
    raise_told(told)
    if told["answer"] is not None:
        complaint = f"the source as it is and the model part in the run that kills it: {told['answer']}"
        return Row(mutant, found, Fate.UNKNOWN, f"{found.by}: {found.detail}", complaint)
    return _killed(asked, mutant, found)


def _compared(_asked: Asked, mutant: Mutant, found: Judgement, told: Mapping[str, Any]) -> Row:
    """What a comparison says of a survivor."""
    if "ended" in told:
        # It ran into a limit, or took the process with it: that differs from the source as it is.
        return Row(mutant, found, Fate.MISSED, f"it ended with {told['ended']} in a recorded run")
    raise_told(told)
    answer = told["answer"]
    if answer["difference"] is not None:
        return Row(mutant, found, Fate.MISSED, answer["difference"])
    why = f"no difference seen in {answer['steps']:,} steps; {_tried(found)}"
    return Row(mutant, found, Fate.UNOBSERVABLE, why)


def _tried(found: Judgement) -> str:
    cut = f", cut short in {', '.join(found.cut)}" if found.cut else ""
    return f"survived {found.events:,} steps{cut}"
