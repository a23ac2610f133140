"""The state machine behind a node's log in a free run: the real one of ``impl``, and beside it the one that counts.

Both get all that the log says. A snapshot is the counting one's, whose chunks carry the bytes that the real one has
written, so that these go from node to node as a log and a network bring them; what the real one is given to load is
what has arrived. So the real one's keys and values are held against what clients have appended (``appended.py``), and
the counting one's records against the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

from ....impl.files.interface import File, Files, read_file
from ....impl.files.simulated import SimulatedFiles
from ....impl.log.batch import read_batches
from ....impl.log.errors import CorruptBatch
from ....impl.log.records import StoredRecord
from ....impl.quorum.machine import KeyValueMachine, SnapshotWriter
from ....impl.quorum.snapshots import SnapshotId, parse_name
from .appended import State
from .counting import CountingMachine, content_in

_REMEMBERED: Final = 1_024
"""So many snapshots are kept decoded."""


class BothMachines:
    """A ``StateMachine``: ``real`` of the parts under test, and ``counting``."""

    def __init__(self, real: KeyValueMachine) -> None:
        self.real = real
        self.counting = CountingMachine()

    def apply(self, records: Sequence[StoredRecord]) -> None:
        """Both apply them."""
        self.real.apply(records)
        self.counting.apply(records)

    def snapshot(self, writer: SnapshotWriter) -> None:
        """What the real one writes, in as many chunks as the counting one is to make."""
        written = _Written(writer.id)
        self.real.snapshot(written)
        # A machine that never says so has no snapshot.
        if written.done:
            self.counting.snapshot(writer, bytes(written.data))

    def load(self, snapshot: SnapshotId, file: File) -> None:
        """Raises what the real one raises, with nothing changed."""
        arrived = SimulatedFiles().open(snapshot.file_name, create=True)
        arrived.append(content_in(file.pread(0, file.size)))
        self.real.load(snapshot, arrived)
        self.counting.load(snapshot, file)

    def clear(self) -> None:
        """Both forget."""
        self.real.clear()
        self.counting.clear()


class _Written:
    """Takes what a machine writes."""

    def __init__(self, snapshot: SnapshotId) -> None:
        self.id = snapshot
        self.data = bytearray()
        self.done = False

    def append(self, data: bytes) -> None:
        """The next bytes."""
        self.data += data

    def finished(self) -> None:
        """There are no more."""
        self.done = True


def kept_in(files: Files, folder: str) -> tuple[tuple[SnapshotId, State | None], ...]:
    """What the whole snapshots of a disk hold, read past the node; None of one that nobody can read."""
    found = []
    for name in files.list(folder):
        snapshot = parse_name(name)
        if snapshot is not None:
            found.append((snapshot, _decoded(read_file(files, f"{folder}/{name}"))))
    return tuple(found)


@lru_cache(_REMEMBERED)
def _decoded(data: bytes) -> State | None:
    try:
        batches = list(read_batches(content_in(data)))
        records = [record for batch in batches if not batch.is_control for record in batch.records()]
    except CorruptBatch:
        return None
    return {record.key: record.value for record in records if record.key is not None and record.value is not None}
