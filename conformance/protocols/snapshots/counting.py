"""The state machine that the adapter puts behind a quorum's log: it keeps which records were applied, and no more.

Its snapshots are as long as the harness likes, and a reader tells a whole one from a patchwork. A chunk is ``CHUNK``
bytes, the last one less: ``2/3 0,1,2.0:`` and filling is the second of three, with the offsets of the records. Loading
checks nothing, as a plain state machine might: what a log hands over wrongly shows. The number behind the dot is that
of the bytes that follow, in which the snapshot of another machine travels along (``machines.py``).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from ....impl.files.interface import File
from ....impl.log.records import StoredRecord
from ....impl.quorum.machine import SnapshotWriter
from ....impl.quorum.snapshots import SnapshotId

CHUNK: Final = 400
"""Bytes of one response of FetchSnapshot."""
_LAST: Final = CHUNK - 24
_FORM: Final = re.compile(rb"(\d+)/(\d+) ([0-9,]*)\.(\d+):")


class CountingMachine:
    """``applied``: the records' offsets, in the order in which they came. ``chunks``: those of the next snapshot."""

    def __init__(self) -> None:
        self.applied: list[int] = []
        self.chunks = 1

    def apply(self, records: Sequence[StoredRecord]) -> None:
        """Note them."""
        self.applied += [record.offset for record in records]

    def snapshot(self, writer: SnapshotWriter, content: bytes = b"") -> None:
        """Write as many chunks as are asked for, with a part of ``content`` in each."""
        offsets = ",".join(map(str, self.applied))
        length = -(-len(content) // self.chunks)
        for number in range(1, self.chunks + 1):
            part = content[(number - 1) * length : number * length]
            chunk = f"{number}/{self.chunks} {offsets}.{len(part)}:".encode() + part
            writer.append(chunk.ljust(CHUNK if number < self.chunks else _LAST, b"#"))
        writer.finished()

    def load(self, snapshot: SnapshotId, file: File) -> None:  # noqa: ARG002 - whatever the id says
        """Take over what a reader finds."""
        found = records_in(file.pread(0, file.size))
        self.applied = list(range(found))

    def clear(self) -> None:
        """Nothing is left."""
        self.applied = []


def size_of(data: bytes) -> int:
    """How many chunks the file has that the first chunk comes from; -1 where it says nothing."""
    match = _FORM.match(data)
    return int(match[2]) if match else -1


def content_in(data: bytes) -> bytes:
    """What has travelled along; of a patchwork, a patchwork."""
    chunks = (data[start : start + CHUNK] for start in range(0, len(data), CHUNK))
    found = ((chunk, _FORM.match(chunk)) for chunk in chunks)
    return b"".join(chunk[match.end() : match.end() + int(match[4])] for chunk, match in found if match)


def records_in(data: bytes, *, partial: bool = False) -> int:
    """How many records from the first one on a reader finds; 0 in what is not one whole file, or its beginning."""
    chunks = [data[start : start + CHUNK] for start in range(0, len(data), CHUNK)]
    read = [_FORM.match(chunk) for chunk in chunks]
    forms = [(int(match[1]), int(match[2]), match[3]) for match in read if match]
    if not forms or len(forms) < len(chunks):
        return 0
    _, size, content = forms[0]
    whole = partial or (len(forms) == size and len(data) == (size - 1) * CHUNK + _LAST)
    if not whole or forms != [(number, size, content) for number in range(1, len(forms) + 1)]:
        return 0
    offsets = [int(each) for each in content.split(b",") if each]
    return len(offsets) if offsets == list(range(len(offsets))) else 0
