"""How long records are kept: what retention lets go is deleted in the end, and nothing else is.

Bytes and times are none of the model's words. Here they are those of the records that producers sent, and of nothing
that a broker says: each is a batch, and has the timestamp that its producer gave it. So a leader may raise its log
start past a record only for its age, or while enough bytes follow, or because a client has asked, or since another
leader deletes it; and its local log start past one in remote storage alike, by the local retention. When a run ends in
peace, what may go is gone: on the leader's disk, and in remote storage, where the log's first segment goes as a whole
(``UnifiedLog.deleteOldSegments`` and ``RLMExpirationTask`` in Kafka, KIP-405).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from itertools import combinations
from typing import TYPE_CHECKING, Any

from ....impl.tiering.metadata import METADATA
from ....impl.wire.messages import NO_LEADER
from ....traces.format import Value
from .metadata_log import NEVER, Copy
from .nodes import PARTITION
from .responses import WrongAnswer
from .retention import FOR_EVER

if TYPE_CHECKING:
    from .system import FreeTiering

Cells = Mapping[str, Value]


class Retained:
    """Of one run."""

    def __init__(self, system: FreeTiering) -> None:
        self._system = system

    # -- what a log has ---------------------------------------------------------------------------------------------

    def _bytes_from(self, node: int, offset: int, end: int) -> int:
        """Bytes of what a leader's log has from an offset on."""
        return sum(self._size(node, at) for at in range(offset, end))

    def _size(self, node: int, offset: int) -> int:
        value = self._value(node, offset)
        return 0 if value is None else self._system.written.sizes.get(value, 0)

    def _value(self, node: int, offset: int) -> bytes | None:
        return self._system.written.at(offset, self._system.lineage(node).get(offset, -1))

    def _is_old(self, value: bytes | None, node: int, limit: int) -> bool:
        time = None if value is None else self._system.written.times.get(value)
        return limit != FOR_EVER and time is not None and self._system.clock.at(node).wall() - time > limit

    def _has(self, copy: Copy, node: int, offset: int) -> bool:
        """Whether a copy has the record that is in a broker's lineage at an offset."""
        epoch = self._system.lineage(node).get(offset, -1)
        return copy.start <= offset < copy.end and epoch >= 0 and copy.epochs.get(offset) == epoch

    def _readable(self) -> list[Copy]:
        copies = self._system.metadata.copies.values()
        return [copy for copy in copies if copy.finished_at != NEVER and copy.deleting_at == NEVER]

    # -- not too early ----------------------------------------------------------------------------------------------

    def check(self, before: Cells, now: Cells) -> None:
        """What leaders have deleted in an event, they might. Raises ``WrongAnswer``."""
        self._check_acknowledged()
        for node in self._system.up():
            names = [f"{name}[{node}]" for name in ("leads", "leader_epoch")]
            if before.get(names[0]) == now[names[0]] == 1 and before.get(names[1]) == now[names[1]]:
                log = self._system.replica(node).log
                was = {name: int(str(before[f"{name}[{node}]"])) for name in ("log_start", "local_start")}
                self._check_log_start(node, log, was["log_start"], before)
                self._check_local_start(node, log, max(was["local_start"], log.log_start))

    def _check_acknowledged(self) -> None:
        """Whoever leads has what was acknowledged."""
        system = self._system
        state = system.controller.partition(PARTITION)
        node = state.leader
        if node == NO_LEADER or node in system.down:
            return
        here = system.replica(node)
        if here is None or here.leader is None or here.leader_epoch != state.leader_epoch:
            return
        log = here.log
        lost = system.written.lost(log.log_start, log.end, system.lineage(node))
        if lost is not None:
            raise WrongAnswer(f"broker {node} leads from offset {log.log_start} to {log.end}, and {lost}")
        # Whoever was elected uncleanly deletes segments of epochs before all that it has, and another may lead again.
        if not system.retention and system.unclean_epoch < 0 and log.log_start > system.deleted:
            raise WrongAnswer(f"the log of broker {node} begins at {log.log_start}, and nobody had that deleted")

    def _check_log_start(self, node: int, log: Any, was: int, before: Cells) -> None:
        kept, copies = self._system.kept, self._system.metadata.copies
        finished = [copy for copy in copies.values() if copy.finished_at != NEVER and copy.end > was]
        # What this leader deletes now it has let go itself.
        going = [
            copy
            for number, copy in copies.items()
            if copy.deleting_at != NEVER and (copy.deleter != node or before[f"deleting_at[{number}]"] != NEVER)
        ]
        # Of records that are in remote storage twice the bytes are, too: a log may seem longer than it is.
        twice = any(a.start < b.end and b.start < a.end for a, b in combinations(finished, 2))
        for offset in range(max(was, self._system.deleted), log.log_start):
            value = self._value(node, offset)
            gone = any(self._has(copy, node, offset) for copy in going)
            many = kept.bytes != FOR_EVER and (twice or self._bytes_from(node, offset + 1, log.end) >= kept.bytes)
            if not (value is None or gone or many or self._is_old(value, node, kept.ms)):
                raise WrongAnswer(
                    f"the log of broker {node} begins at {log.log_start}, and retention keeps the record at {offset}"
                )

    def _check_local_start(self, node: int, log: Any, was: int) -> None:
        kept = self._system.kept
        for offset in range(was, log.local_start):
            value = self._value(node, offset)
            left = self._bytes_from(node, offset + 1, log.end)
            many = kept.local_bytes != FOR_EVER and left >= kept.local_bytes
            if not (value is None or many or self._is_old(value, node, kept.local_ms)):
                raise WrongAnswer(
                    f"broker {node} has nothing below {log.local_start} on its disk, and local retention keeps {offset}"
                )

    # -- and not never ----------------------------------------------------------------------------------------------

    def left(self, well: Collection[int]) -> str | None:
        """What a leader that is ``well`` has left that should be gone, in words that follow "and yet"; or None.

        As long as the metadata log has no leader that is well nothing is asked of anybody.
        """
        controller = self._system.controller
        state, metadata = controller.partition(PARTITION), controller.partition(METADATA)
        node = state.leader
        if NO_LEADER in (node, metadata.leader) or not {node, metadata.leader} <= set(well):
            return None
        here = self._system.replica(node)
        if here is None or here.leader is None or here.leader_epoch != state.leader_epoch:
            return None
        return self._left_in_store(node, here) or self._left_on_disk(node, here)

    def _left_in_store(self, node: int, here: Any) -> str | None:
        """The log's first segment, where retention lets it go."""
        log, kept = here.log, self._system.kept
        for copy in self._readable():
            if not self._has(copy, node, log.log_start):
                continue
            parts = (offset for offset in range(log.log_start, copy.end) if not self._has(copy, node, offset))
            end = min(next(parts, copy.end), here.high_watermark)
            old = all(
                self._is_old(self._of_copy(copy, offset), node, kept.ms) for offset in range(copy.start, copy.end)
            )
            many = kept.bytes != FOR_EVER and self._bytes_at_least(node, end, log) >= kept.bytes
            if log.log_start < end and (old or many):
                return f"broker {node} keeps the records from {log.log_start} to {end}, which retention lets go"
        return None

    def _bytes_at_least(self, node: int, offset: int, log: Any) -> int:
        """What follows, less what is in remote storage and in a local segment that is not there as a whole.

        A local segment that another leader has uploaded in part counts with the next one.
        """
        end = offset
        while any(self._has(copy, node, end) for copy in self._readable()):
            end += 1
        local = next((base for base in log.segment_bases if base >= end), log.end)
        return self._bytes_from(node, offset, end) + self._bytes_from(node, local, log.end)

    def _of_copy(self, copy: Copy, offset: int) -> bytes | None:
        return self._system.written.at(offset, copy.epochs.get(offset, -1))

    def _left_on_disk(self, node: int, here: Any) -> str | None:
        """The first segment on the disk, where local retention lets it go, and all of it is in remote storage."""
        log, kept, copies = here.log, self._system.kept, self._readable()
        first = next(iter(log.sealed), None)
        # One below the log start, which was the active one when that rose, has nothing of the log.
        if first is None or not log.local_start < first.end <= here.high_watermark:
            return None
        offsets = range(log.local_start, first.end)
        if not all(any(self._has(copy, node, offset) for copy in copies) for offset in offsets):
            return None
        over = [copy for copy in copies if self._has(copy, node, first.end - 1)]
        records = [self._of_copy(copy, offset) for copy in over for offset in range(copy.start, copy.end)]
        records += [self._value(node, offset) for offset in offsets]
        old = all(self._is_old(value, node, kept.local_ms) for value in records)
        many = kept.local_bytes != FOR_EVER and self._bytes_from(node, first.end, log.end) >= kept.local_bytes
        if old or many:
            return f"broker {node} has the records up to {first.end} on its disk, which local retention lets go"
        return None
