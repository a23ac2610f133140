"""What is seen of brokers' logs, as cells; and which of them hold what is seen, whatever they held before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....impl.net.clock import WALL_START
from ....traces.format import Value
from ...simulation.system import changed
from .records import Row, cells_of_record

_OF_STEPS: Final = frozenset({"topic_strategy", "position", "table"})
_OF_PROCESS: Final = frozenset({"leads", "joined", "own_hw"})
_JUDGED: Final = frozenset({"record_epoch", "horizon", "leo", "checkpoint", *_OF_PROCESS})
_NOTHING: Final = {
    "record_key": -1,
    "record_tombstone": 0,
    "record_timestamp": 0,
    "record_header": -1,
    "record_earlier_header": -1,
}


def cells_of_log(
    node: int, rows: Mapping[int, Row], before: Mapping[int, Row], least: int, log_size: int
) -> dict[str, Value]:
    """A broker's log, and what a cleaner has done to it since it was seen ``before``; below ``least`` alone.

    ``least``: the smaller of the two log ends.
    """
    cells: dict[str, Value] = {}
    for offset in range(log_size):
        here, was = rows.get(offset), before.get(offset)
        horizon = _horizon(here)
        cells[f"record_epoch[{node}][{offset}]"] = -1 if here is None else here.epoch
        cells[f"horizon[{node}][{offset}]"] = horizon
        known = was is not None and here is not None and was.epoch == here.epoch
        cells[f"goes[{node}][{offset}]"] = int(offset < least and was is not None and not known)
        cells[f"marks[{node}][{offset}]"] = int(offset < least and known and _horizon(was) != horizon)
    return cells


class WrittenCells:
    """What was ever in some log, by leader epoch and offset, and what was committed. Both only ever grow."""

    def __init__(self, constants: Mapping[str, int]) -> None:
        self._constants = constants
        self._known = -1, -1
        self._cells: dict[str, Value] = {}

    def of(self, contents: Mapping[tuple[int, int], Row], committed: Mapping[int, int]) -> Mapping[str, Value]:
        """The cells, which are not to be changed."""
        known = len(contents), len(committed)
        if known != self._known:
            self._known = known
            for offset in range(self._constants["log_size"]):
                self._cells[f"committed[{offset}]"] = committed.get(offset, -1)
                for epoch in range(self._constants["max_leader_epoch"] + 1):
                    row = contents.get((epoch, offset))
                    written = _NOTHING if row is None else cells_of_record(row, self._constants)
                    self._cells |= {f"{name}[{epoch}][{offset}]": value for name, value in written.items()}
        return self._cells


def given(before: Mapping[str, Value], cells: Mapping[str, Value], *, grew: frozenset[int]) -> frozenset[str]:
    """The cells that hold what is seen of them, whatever they held: but what a step is to bring about.

    ``grew``: the nodes to whose logs something was appended that no step says.
    """
    found = set(changed(before, cells))
    for name in list(found):
        kind, _, rest = name.partition("[")
        if kind in _OF_STEPS:
            found.discard(name)
            continue
        if not rest or kind not in _JUDGED:
            continue
        node = int(rest.partition("]")[0])
        if kind in _OF_PROCESS:
            # Of a new process they are what its restart makes them, after what the one before has done.
            if node in grew:
                found.discard(name)
            continue
        old, new = int(str(before[f"leo[{node}]"])), int(str(cells[f"leo[{node}]"]))
        if kind in ("record_epoch", "horizon"):
            offset = int(rest.rpartition("[")[2].rstrip("]"))
            # What was cut off, and what a crash has left of an append.
            taken = offset >= new or (offset >= old and node in grew)
        elif kind == "leo":
            taken = new < old or node in grew
        else:
            taken = int(str(cells[name])) < int(str(before[name]))  # the checkpoint was lowered
        if not taken:
            found.discard(name)
    return frozenset(found)


def _horizon(row: Row | None) -> int:
    """When a tombstone may go, in ms since the run began; -1 for what is none, or has no such time yet."""
    return -1 if row is None or row.value is not None or row.horizon is None else row.horizon - WALL_START
