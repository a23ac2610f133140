"""The obligations of mining: a small corpus with planted bugs, and one of clean traces, through Spark.

Both come along with the package (``traces/bundled``, whose README says how they are made anew), and so does what
was planted where. Spark takes seconds to start, so that all of it goes on beside the other obligations; these only
wait for it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.explore import Verdict
from ...model.explore.result import OnProgress
from ...traces.background import Background
from ...traces.corpus.manifest import PLANTED, read_corpus
from ...traces.corpus.spread import SERIAL
from ...traces.mine import bundled
from ...traces.mine.answer import Answer, Group
from ...traces.mine.job import Asked, mine
from ...traces.report.mining_trace import story_of_group
from ...traces.spark import spark_session
from ...traces.spark_processes import end_processes
from ...traces.text import counted
from .task import Outcome, Task

MASTER: Final = "local[2]"
GROUP: Final = "mining by Spark"

SECONDS: Final = 300.0
"""So long it is waited for when everything else is done."""

_ENDING_SECONDS: Final = 3.0


@dataclass(frozen=True)
class Mined:
    """What mining says of the two corpora."""

    planted: Answer
    clean: Answer


@contextmanager
def bundled_mining(master: str = MASTER, folder: Path | None = None) -> Iterator[list[Task]]:
    """Begin to mine; gives the obligations, which wait for it. What goes on when the block is left is ended.

    ``folder``: where the two corpora are, if not those of the package.
    """
    root = folder or bundled.folder()
    going_on = Background(partial(_mine, root, master))
    try:
        yield list(_tasks(root, going_on))
    finally:
        if not going_on.over:
            end_processes()
            going_on.wait(_ENDING_SECONDS)


def _mine(root: Path, master: str) -> Mined:
    session = None if master == SERIAL else spark_session("fencepost check", master)
    try:
        return Mined(*(mine(Asked(root / name), master) for name in (bundled.PLANTED, bundled.CLEAN)))
    finally:
        if session is not None:
            session.stop()


def _tasks(root: Path, going_on: Background[Mined]) -> Iterator[Task]:
    faults = _planted(root / bundled.PLANTED)
    traces, clean = (_traces(root / name) for name in (bundled.PLANTED, bundled.CLEAN))
    for fault, where in faults.items():
        name = f"{fault}: planted in {len(where)} of {traces} traces"
        yield Task(name, GROUP, partial(_waited, going_on, partial(_found, fault, where)), Verdict.VIOLATED)
    yield Task(f"{traces} traces, no other bug", GROUP, partial(_waited, going_on, partial(_no_other, faults, traces)))
    yield Task(f"{clean} clean traces", GROUP, partial(_waited, going_on, partial(_nothing, clean)))


def _planted(corpus: Path) -> dict[str, list[int]]:
    """The traces in which each fault was planted."""
    found: dict[str, list[int]] = {}
    for line in (corpus / PLANTED).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["fault"], []).append(row["trace"])
    return found


def _traces(corpus: Path) -> int:
    return sum(file.traces or 0 for file in read_corpus(corpus).files)


def _waited(going_on: Background[Mined], judge: partial[Outcome], _told: OnProgress) -> Outcome:
    """What is made of the answers; ``unknown`` where there are none."""
    try:
        return judge(going_on.result(SECONDS))
    except BadInput as error:
        return Outcome(Verdict.UNKNOWN, f"not mined: {error}", 0, "traces")
    except TimeoutError:
        return Outcome(Verdict.UNKNOWN, f"not mined: Spark gave no answer within {SECONDS:g} s", 0, "traces")


def _found(fault: str, traces: list[int], mined: Mined) -> Outcome:
    """Violated, as it must be, where one group is this fault, with all of its traces."""
    groups = [group for group in mined.planted.groups if _is(group, fault, traces)]
    if len(groups) != 1:
        if mined.planted.problems or mined.planted.unknown:
            return _open(mined.planted)
        return Outcome(Verdict.HOLDS, "it is no bug of those that were found", mined.planted.traces, "traces")
    (group,) = groups
    steps = "" if group.minimal is None else f", told in {counted(len(group.minimal), 'step')}"
    detail = f"{group.bug}: {counted(group.count, 'trace')}, the first {group.first}{steps}"
    return Outcome(Verdict.VIOLATED, detail, group.count, "traces", story_of_group(group))


def _is(group: Group, fault: str, traces: list[int]) -> bool:
    return fault in group.mutants and (group.count, group.first) == (len(traces), min(traces))


def _no_other(faults: dict[str, list[int]], traces: int, mined: Mined) -> Outcome:
    answer = mined.planted
    planted = sum(map(len, faults.values()))
    detail = f"{counted(len(answer.groups), 'bug')} in {answer.violating_traces} of {counted(answer.traces, 'trace')}"
    if len(answer.groups) + answer.groups_left_off > len(faults) or answer.violating_traces > planted:
        return Outcome(Verdict.VIOLATED, f"{detail}, and {len(faults)} in {planted} planted", answer.traces, "traces")
    return _open(answer) if _is_open(answer, traces) else Outcome(Verdict.HOLDS, detail, answer.traces, "traces")


def _nothing(traces: int, mined: Mined) -> Outcome:
    answer = mined.clean
    if answer.verdict is Verdict.VIOLATED:
        group = answer.groups[0]
        told = f"{counted(len(answer.groups), 'bug')} in {answer.violating_traces}, such as {group.bug}"
        return Outcome(Verdict.VIOLATED, told, answer.traces, "traces", story_of_group(group))
    if _is_open(answer, traces):
        return _open(answer)
    return Outcome(answer.verdict, f"no bug in {counted(answer.events, 'event')}", answer.traces, "traces")


def _is_open(answer: Answer, traces: int) -> bool:
    return bool(answer.problems or answer.unknown) or answer.traces != traces


def _open(answer: Answer) -> Outcome:
    """Some of it was not read, or not decided."""
    said = [str(each) for each in answer.problems] + [each.reason for each in answer.unknown]
    detail = said[0] if said else f"{answer.traces} traces were mined, and that is not all"
    return Outcome(Verdict.UNKNOWN, detail, answer.traces, "traces")
