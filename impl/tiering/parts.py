"""What is copied of a segment, and what is read of a copy: objects, each checked before it is believed."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from contextlib import closing
from typing import NamedTuple

import google_crc32c

from ..files.interface import Files
from ..log.batch import Batch, read_batches
from ..log.epochs import EpochEntry
from ..log.errors import CorruptBatch
from ..log.index import entries_of
from .errors import CorruptRemoteSegment, RemoteStorageError
from .segments import EPOCHS, INDEX, LOG, PARTS, PRODUCERS, RemoteObject, RemoteSegment
from .store import CHUNK, RemoteStore


class SegmentFiles(NamedTuple):
    """What a leader copies: two files of its log, and what it knows at the segment's end."""

    files: Files
    log_path: str
    index_path: str
    epochs: tuple[EpochEntry, ...]
    producers: bytes


def encode_epochs(epochs: Iterable[EpochEntry]) -> bytes:
    """As in a leader epoch checkpoint (``impl/log/checkpoints.py``)."""
    entries = [f"{entry.epoch} {entry.start_offset}" for entry in epochs]
    return "".join(f"{line}\n" for line in ("0", len(entries), *entries)).encode()


def decode_epochs(data: bytes, where: str) -> list[EpochEntry]:
    """The entries. Raises ``CorruptRemoteSegment``."""
    try:
        version, count, *lines, last = data.decode().split("\n")
        entries = [EpochEntry(*map(int, line.split(" "))) for line in lines]
        if version != "0" or int(count) != len(entries) or last:
            raise ValueError("the count and the lines differ")
    except (ValueError, TypeError) as error:
        raise CorruptRemoteSegment(f"no leader epochs: {error}", where) from None
    return entries


def copy(store: RemoteStore, segment: RemoteSegment, source: SegmentFiles) -> tuple[RemoteObject, ...]:
    """Write all objects of a segment; gives what they are. Raises ``RemoteStorageError``, with some of them there."""
    objects = []
    # Whoever keeps what the store has raised would keep a file open, too.
    with (
        closing(_chunks(source.files, source.log_path, segment.size)) as log,
        closing(_chunks(source.files, source.index_path, None)) as index,
    ):
        contents: dict[str, Iterable[bytes]] = {
            LOG: log,
            INDEX: index,
            EPOCHS: [encode_epochs(source.epochs)],
            PRODUCERS: [source.producers],
        }
        for part in PARTS:
            size, crc = store.put(segment.object_name(part), contents[part])
            objects.append(RemoteObject(part, size, crc))
    if objects[0].size != segment.size:
        what = f"{objects[0].size} bytes were copied of a segment of {segment.size}"
        raise RemoteStorageError(what, segment.object_name(LOG))
    return tuple(objects)


def _chunks(files: Files, path: str, size: int | None) -> Generator[bytes, None, None]:
    try:
        file = files.open(path)
        try:
            size = file.size if size is None else size
            for position in range(0, size, CHUNK):
                yield file.pread(position, min(CHUNK, size - position))
        finally:
            file.close()
    except OSError as error:
        raise RemoteStorageError(f"the segment could not be read: {error}", path) from error


def verify(store: RemoteStore, segment: RemoteSegment, objects: Iterable[RemoteObject]) -> None:
    """See that every object is there, as long as it was written. Raises ``RemoteStorageError``."""
    for each in objects:
        found = store.size(segment.object_name(each.part))
        if found != each.size:
            what = "it is not there" if found < 0 else f"it has {found} bytes"
            raise RemoteStorageError(f"{what}, {each.size} were written", segment.object_name(each.part))


def delete(store: RemoteStore, segment: RemoteSegment) -> None:
    """Remove all objects of a segment, as far as they are there. Raises ``RemoteStorageError``."""
    for part in PARTS:
        store.delete(segment.object_name(part))


def read_part(store: RemoteStore, segment: RemoteSegment, part: str) -> bytes:
    """All of an object, as it was written. Raises ``RemoteStorageError``."""
    known = segment.object(part)
    name = segment.object_name(part)
    if known is None:
        raise CorruptRemoteSegment("it has no such object", name)
    data = store.get(name)
    if len(data) != known.size or google_crc32c.value(data) != known.crc:
        what = f"{len(data)} bytes with CRC-32C {google_crc32c.value(data):08x}"
        raise CorruptRemoteSegment(f"{what}, {known.size} with {known.crc:08x} were written", name)
    return data


def read_records(
    store: RemoteStore, segment: RemoteSegment, index: bytes, offset: int, max_bytes: int, up_to: int
) -> list[Batch]:
    """Whole batches from the one that holds ``offset`` on, below ``up_to``: ``max_bytes`` at most but always one.

    ``index`` is the segment's, as ``read_part`` gives it: a batch is looked for from its entry on. Each CRC, offset and
    leader epoch is checked. Raises ``RemoteStorageError``.
    """
    name = segment.object_name(LOG)
    start = 0
    for last, position in entries_of(index, segment.start_offset):
        if last > offset:
            break
        start = position
    batches: list[Batch] = []
    wanted = max_bytes + (64 << 10)
    while True:
        data = store.get(name, start, min(start + wanted, segment.size))
        whole, complete = _whole(data, start + len(data) >= segment.size, name, start)
        batches = [batch for batch in whole if batch.last_offset >= offset and batch.last_offset < up_to]
        if batches or complete or any(batch.last_offset >= up_to for batch in whole):
            break
        wanted *= 4  # one batch is larger than all that was asked for
    _check(segment, batches, offset, name)
    size = 0
    for count, batch in enumerate(batches):
        size += batch.size
        if count and size > max_bytes:
            return batches[:count]
    return batches


def _whole(data: bytes, complete: bool, name: str, start: int) -> tuple[list[Batch], bool]:
    """The whole batches at the front of what was read, which ends anywhere unless it is ``complete``."""
    batches: list[Batch] = []
    position = 0
    try:
        for batch in read_batches(data, name):
            batches.append(batch)
            position += batch.size
    except CorruptBatch as error:
        length = int.from_bytes(data[position + 8 : position + 12], "big", signed=True)
        cut = len(data) - position < 12 or position + 12 + length > len(data)
        if complete or not cut:
            raise CorruptRemoteSegment(error.what, f"{name}, byte {start + error.byte}") from None
    return batches, complete


def _check(segment: RemoteSegment, batches: list[Batch], offset: int, name: str) -> None:
    following = None
    for batch in batches:
        held = segment.range_of(batch.leader_epoch)
        fits = batch.base_offset <= offset if following is None else batch.base_offset == following
        if not fits or held is None or not held[0] <= batch.last_offset <= held[1]:
            what = f"a batch of offsets {batch.base_offset} to {batch.last_offset} of epoch {batch.leader_epoch}"
            raise CorruptRemoteSegment(f"{what} where {offset if following is None else following} follows", name)
        following = batch.next_offset
