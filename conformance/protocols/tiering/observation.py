"""What can be seen of brokers' logs and of copies, in the cells of ``impl_spec.py``. What is as it was is not read
again.

Each log is held against what was written, and its checkpoint against its records, whenever either has changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ....impl.files.interface import Files, read_file
from ....impl.files.simulated import SimulatedFiles
from ....impl.log.remote_part import PRODUCERS_SUFFIX
from ....impl.replica.partition import Role
from ....model.protocols.tiering.impl_state import NOT_LOOKED
from ....traces.format import Value
from ...adapters.stores import SegmentReader
from .metadata_log import Copy, MetadataView
from .nodes import PARTITION
from .producers import Producers, check_once
from .responses import Row, Written, check_local

Cells = dict[str, Value]


def rolled(here: Any) -> int:
    """The end of a replica's last segment but the active one that is committed."""
    return max((each.end for each in here.log.sealed if each.end <= here.high_watermark), default=0)


class Looks:
    """Of one run."""

    def __init__(self, constants: Mapping[str, int], written: Written, producers: Producers | None = None) -> None:
        self._offsets = range(constants["log_size"])
        self._copies = range(constants["copies"])
        self._written = written
        self._producers = Producers(0) if producers is None else producers
        self._reader: SegmentReader[Row] = SegmentReader(
            PARTITION, lambda record: (record.offset, record.leader_epoch, record.value or b""), torn=True
        )
        self._logs: dict[int, tuple[object, dict[int, int], Cells]] = {}
        self._deletes_none: dict[int, Cells] = {}
        """By broker, what is shown where it deletes no copy."""
        self._known_copies: dict[int, object] = {}
        """What the cells of each copy are of."""
        self._of_copies: Cells = {}
        self.remembered: dict[int, dict[int, int]] = {}
        """By broker, the epoch of each offset as its log had it last, also below its log start."""

    def broker(self, node: int, here: Any, files: Files) -> Cells:
        """A broker's role and log. Raises ``WrongRecord``."""
        at = f"[{node}]"
        if here is None:
            names = ("leads", "settled", "log_start", "local_start", "leo")
            cells: Cells = dict.fromkeys((f"{name}{at}" for name in names), 0)
            cells[f"leader_epoch{at}"] = -1
            cells[f"highest_remote{at}"] = NOT_LOOKED
            return cells | {f"record_epoch{at}[{offset}]": -1 for offset in self._offsets}
        log = here.log
        copier = None if here.remote is None else here.remote.copier
        return {
            f"leads{at}": int(here.leader is not None),
            f"settled{at}": int(here.role.value == Role.FOLLOWER.value),
            f"leader_epoch{at}": here.leader_epoch,
            f"log_start{at}": log.log_start,
            f"local_start{at}": log.local_start,
            f"leo{at}": log.end,
            f"highest_remote{at}": NOT_LOOKED if copier is None or copier.highest is None else copier.highest,
            **self._log(node, log, files),
        }

    def _log(self, node: int, log: Any, files: Files) -> Cells:
        changes = files.changes if isinstance(files, SimulatedFiles) else object()
        key = changes, id(log), log.log_start, log.local_start, log.end, log.epochs.entries
        known = self._logs.get(node)
        if known is None or known[0] != key:
            lineage = {offset: log.epoch_for(offset) for offset in range(log.log_start, log.end)}
            rows = [row for row in self._reader.read(files) if row[0] < log.end]
            self._written.add(rows, f"the log of broker {node}")
            starts = [each.start_offset for each in log.epochs.entries]
            check_local(node, rows, lineage, log.local_start, log.end, starts)
            check_once(node, lineage, self._written, self._producers)
            before = {o: e for o, e in self.remembered.get(node, {}).items() if o < log.log_start}
            self.remembered[node] = before | lineage
            cells: Cells = {f"record_epoch[{node}][{offset}]": lineage.get(offset, -1) for offset in self._offsets}
            known = self._logs[node] = key, lineage, cells
        return known[2]

    def check_producers(
        self, node: int, here: Any, files: Files, before: Mapping[str, Value], view: MetadataView
    ) -> None:
        """Where a log begins elsewhere on its disk, what is known of the producers before is kept. Raises WrongAnswer.

        A leader has deleted what it had there, a follower has begun behind a copy, or was cut in the midst of one. Of
        copies that are gone by then nothing need be known.
        """
        was = before.get(f"local_start[{node}]")
        if here is None or was is None or int(str(was)) == here.log.local_start:
            return
        log = here.log
        path = f"{log.folder}/{log.local_start:020d}{PRODUCERS_SUFFIX}"
        data = read_file(files, path) if files.exists(path) else b""
        lineage = self._logs[node][1]
        offsets = range(max(log.log_start, view.gone_below(lineage)), log.local_start)
        self._producers.check_kept(data, lineage, offsets, self._written)

    def remember_below(self, node: int, here: Any, copy: Copy) -> None:
        """What is uploaded with a segment says of what comes before it what the log does, from its log start on."""
        start = 0 if here is None else here.log.log_start
        known = self.remembered.get(node, {})
        copy.epochs |= {offset: epoch for offset, epoch in known.items() if start <= offset < copy.start and epoch >= 0}

    def deletes(self, node: int, deleting: Iterable[tuple[int, int]]) -> Cells:
        """Which copies a broker deletes, of all that anybody does."""
        if node not in self._deletes_none:
            self._deletes_none[node] = {f"deletes[{node}][{number}]": 0 for number in self._copies}
        return self._deletes_none[node] | {f"deletes[{by}][{number}]": 1 for by, number in deleting if by == node}

    def forget(self, node: int) -> None:
        """A broker has another disk."""
        self._logs.pop(node, None)
        self.remembered.pop(node, None)

    def copies(
        self,
        view: MetadataView,
        making: Iterable[int],
        begun: Mapping[int, int],
        done: set[int],
        stored: Mapping[int, bool],
    ) -> Cells:
        """All copies; not to be changed. ``making``: those under way. ``begun``: the leader epoch of each."""
        under_way = set(making)
        for number in self._copies:
            copy = view.copies.get(number)
            told = number in under_way, begun.get(number, -1), number in done, stored.get(number, False)
            key = told if copy is None else (*told, copy.told, len(copy.epochs))
            if self._known_copies.get(number) != key:
                self._known_copies[number] = key
                self._of_copies |= self._copy(number, copy, told)
        return self._of_copies

    def _copy(self, number: int, copy: Copy | None, told: tuple[int, ...]) -> Cells:
        at = f"[{number}]"
        names = ("copying", "begun_in", "is_done", "stored")
        cells: Cells = {f"{name}{at}": int(value) for name, value in zip(names, told, strict=True)}
        cells[f"copier{at}"] = None if copy is None else copy.copier
        cells[f"copy_start{at}"] = -1 if copy is None else copy.start
        cells[f"copy_end{at}"] = -1 if copy is None else copy.end
        for name in ("started_at", "finished_at", "deleting_at", "deleted_at"):
            cells[f"{name}{at}"] = -1 if copy is None else getattr(copy, name)
        epochs = {} if copy is None else copy.epochs
        return cells | {f"copy_epoch{at}[{offset}]": epochs.get(offset, -1) for offset in self._offsets}
