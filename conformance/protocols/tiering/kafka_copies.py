"""The copies that Apache Kafka's remote log managers make: by number, what the metadata and the store say of each.

Kafka gives a copy a random id. Here it has a number, in the order in which they are begun.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from ....impl.tiering.segments import SegmentState
from ...lockstep.adapter import ModelStep
from .metadata_log import NEVER, Copy, MetadataView, Said
from .responses import Row, Written, WrongAnswer, WrongRecord

COPIES: Final = "copy"
DELETES: Final = "delete"
Epochs = Sequence[Sequence[int]]
"""Leader epochs as Kafka counts them, each with the offset at which it begins."""


def lineage_of(epochs: Epochs, start: int, end: int) -> dict[int, int]:
    """The leader epoch, as the model counts, of each offset that a checkpoint says something of."""
    found: dict[int, int] = {}
    ends = [*(begins for _, begins in epochs), end][1:]
    for (epoch, begins), after in zip(epochs, ends, strict=True):
        found |= dict.fromkeys(range(max(begins, start), min(after, end)), epoch - 1)
    return found


class Copies:
    """Those of one run."""

    def __init__(self, written: Written) -> None:
        self.view = MetadataView()
        self.begun: dict[int, int] = {}
        """By copy, the leader epoch in which its maker has begun it."""
        self.done: set[int] = set()
        self.deletes: set[tuple[int, int]] = set()
        """Brokers and copies: who has asked to write that it deletes which, since it started."""
        self.stored: dict[int, bool] = {}
        self._written = written
        self._numbers: dict[str, int] = {}
        self._tasks: dict[int, tuple[str, int]] = {}
        """By broker, what it is at, and the copy."""
        self._uploaded: dict[int, Epochs] = {}
        """By copy, the leader epochs that its maker had when it asked the store to take it."""

    @property
    def count(self) -> int:
        """So many were begun."""
        return len(self._numbers)

    def made_by(self, node: int) -> list[int]:
        """The copies that a broker has begun."""
        return [copy for copy, each in self.view.copies.items() if each.copier == node]

    def making(self) -> set[int]:
        """The copies that somebody makes, and has not given up."""
        return {copy for what, copy in self._tasks.values() if what == COPIES}

    def forget(self, node: int) -> None:
        """A broker's process ends."""
        self._tasks.pop(node, None)
        self.deletes = {each for each in self.deletes if each[0] != node}

    def goes_on(self, node: int, answer: Mapping[str, Any], has_read: int) -> list[ModelStep]:
        """A task of a broker has gone on. Raises WrongRecord and WrongAnswer.

        ``has_read``: up to where the broker has read the metadata. Gives the steps that are decided.
        """
        self._look(answer["stored"])
        wants = answer.get("wants")
        steps: list[ModelStep] = []
        if wants is None:
            self._tasks.pop(node, None)
        elif isinstance(wants, str):
            what, copy = self._tasks[node]
            if what == COPIES:
                self._uploaded[copy] = answer["seen"][str(node)]["epochs"]
        else:
            steps = self._wants(node, wants, has_read, answer["seen"][str(node)]["epoch"] - 1)
        return steps

    def _wants(self, node: int, wants: Mapping[str, Any], has_read: int, epoch: int) -> list[ModelStep]:
        """A broker is about to write to the metadata log, in a leader epoch."""
        state = SegmentState[wants["state"]]
        if state is SegmentState.COPY_SEGMENT_STARTED:
            copy = self._numbers.setdefault(wants["copy"], self.count)
            start, end = wants["start"], wants["end"]
            self.view.copies[copy] = Copy(node, start, end, lineage_of(wants["epochs"], start, end))
            self.begun[copy] = epoch
            self._tasks[node] = COPIES, copy
            return [("start_copy", {"leader": node, "copy": copy})]
        copy = self._numbers[wants["copy"]]
        here = {"leader": node, "copy": copy}
        if state is SegmentState.COPY_SEGMENT_FINISHED:
            self.done.add(copy)
            return [("finish_copy", here)]
        self._tasks[node] = DELETES, copy
        if state is SegmentState.DELETE_SEGMENT_STARTED:
            self.deletes.add((node, copy))
            known = self.view.copies[copy]
            finished = NEVER != known.finished_at < has_read
            again = NEVER != known.deleting_at < has_read
            return [("start_deletion" if finished and not again else "give_up_copy", here)]
        if self.stored.get(copy):
            raise WrongAnswer(f"broker {node} says that copy {copy} is gone, and it is there")
        return []

    def is_written(self, records: Iterable[Mapping[str, Any]]) -> None:
        """These were written to the metadata log."""
        for each in records:
            said = Said(self._numbers[each["copy"]], SegmentState[each["state"]], each["broker"], False)
            self.view.apply(self.view.end, said)
            self.view.end += 1

    def _look(self, there: Iterable[Mapping[str, Any]]) -> None:
        """What is in the store: each copy with the epochs that came along, and its records."""
        found = {self._numbers[each["copy"]]: each for each in there}
        for copy in self._numbers.values():
            each = found.get(copy)
            if each is None:
                self.stored[copy] = False
            elif not self.stored.get(copy):
                self.stored[copy] = self._is_right(copy, each)

    def _is_right(self, copy: int, there: Mapping[str, Any]) -> bool:
        """Whether a copy is as its metadata say. Raises WrongRecord for epochs that are not its maker's."""
        known = self.view.copies[copy]
        rows: list[Row] = [(offset, epoch - 1, payload.encode()) for offset, epoch, payload in there["records"]]
        # What lies below the log start is in the first segment still, and the leader epochs say nothing of it any more.
        first = min((at for at in known.epochs if at >= known.start), default=known.end)
        of = {at: epoch for at, epoch, _ in rows if at < first} | known.epochs
        same = all(of.get(at) == epoch and self._written.at(at, epoch) == value for at, epoch, value in rows)
        wanted = [list(each) for each in self._uploaded[copy] if each[1] < known.end]
        if there["epochs"] != wanted:
            raise WrongRecord(f"copy {copy} has the leader epochs {there['epochs']}, and its maker had {wanted}")
        for offset, epoch in lineage_of(there["epochs"], 0, known.start).items():
            known.epochs.setdefault(offset, epoch)
        return same and [row[0] for row in rows] == list(range(known.start, known.end))
