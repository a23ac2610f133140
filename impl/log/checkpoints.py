"""Kafka's checkpoint files: a line with the version (0), one with the number of entries, one line per entry.

``leader-epoch-checkpoint`` lies in a partition's folder and has ``EPOCH START_OFFSET`` (``LeaderEpochCheckpointFile``
in Kafka). ``replication-offset-checkpoint`` (high watermarks), ``recovery-point-offset-checkpoint`` and
``log-start-offset-checkpoint`` lie in the data directory, with ``TOPIC PARTITION OFFSET`` (``OffsetCheckpointFile``).
So does ``leader-epoch-seen-checkpoint``, with the leader epoch that each replica is in for an offset; Kafka has no such
file, as its brokers read the leader epoch in the metadata log again. And ``local-log-start-offset-checkpoint``, where
the records on this disk begin of logs whose earlier ones are in remote storage: Kafka takes the first segment's base
for that, and cannot tell a segment that was lost from one that was moved. ``cleaner-offset-checkpoint`` has how far
each compacted log is cleaned (``LogCleanerManager`` in Kafka). ``hole-offset-checkpoint``, of which Kafka has none, has
the recovery point of each log that copies holes just now (``CompactedPart``).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ..files.interface import Files, read_file
from .epochs import EpochEntry
from .errors import CorruptCheckpoint

EPOCH_CHECKPOINT = "leader-epoch-checkpoint"
HIGH_WATERMARKS = "replication-offset-checkpoint"
RECOVERY_POINTS = "recovery-point-offset-checkpoint"
LOG_STARTS = "log-start-offset-checkpoint"
LOCAL_LOG_STARTS = "local-log-start-offset-checkpoint"
LEADER_EPOCHS = "leader-epoch-seen-checkpoint"
CLEANED_OFFSETS = "cleaner-offset-checkpoint"
HOLES = "hole-offset-checkpoint"
TEMPORARY = ".tmp"

_MAX_OFFSET = (1 << 63) - 1

Key = tuple[str, int]


def write_atomically(files: Files, path: str, data: bytes) -> None:
    """Put ``data`` in the place of the file at ``path``: after a crash it holds all of the one or all of the other.

    The new content is synced before it gets the name, or a crash could leave the name with an empty file; the folder is
    synced after that, or a crash could bring the old content back after the caller was told of the new one.
    """
    temporary = path + TEMPORARY
    file = files.open(temporary, create=True)
    try:
        file.truncate(0)  # a crash may have left one
        file.append(data)
        file.fsync()
    finally:
        file.close()
    files.rename(temporary, path)
    files.fsync_dir(path.rpartition("/")[0])


def write_entries(files: Files, path: str, lines: Iterable[str]) -> None:
    """Write a checkpoint file with these entries, atomically."""
    entries = list(lines)
    text = "".join(f"{line}\n" for line in ("0", len(entries), *entries))
    write_atomically(files, path, text.encode())


def write_epochs(files: Files, path: str, entries: Sequence[EpochEntry]) -> None:
    """Write an epoch checkpoint."""
    write_entries(files, path, (f"{entry.epoch} {entry.start_offset}" for entry in entries))


def read_epochs(files: Files, path: str) -> list[EpochEntry]:
    """The entries of an epoch checkpoint. Raises ``CorruptCheckpoint``, also where they do not rise."""
    entries: list[EpochEntry] = []
    for line, words in read_entries(files, path, 2, "delete the file: opening the log rebuilds it from the batches"):
        entry = EpochEntry(read_number(words[0], (1 << 31) - 1), read_number(words[1], _MAX_OFFSET))
        if min(entry) < 0 or (entries and not (entries[-1].epoch < entry.epoch and entries[-1][1] < entry[1])):
            what = f"{' '.join(words)!r:.60} is not EPOCH START_OFFSET above the line before"
            raise CorruptCheckpoint(what, path, line, "delete the file: opening the log rebuilds it from the batches")
        entries.append(entry)
    return entries


def write_offsets(files: Files, path: str, offsets: Mapping[Key, int]) -> None:
    """Write an offset checkpoint, sorted by topic and partition."""
    lines = (f"{topic} {partition} {offset}" for (topic, partition), offset in sorted(offsets.items()))
    write_entries(files, path, lines)


def read_offsets(files: Files, path: str, mend: str) -> dict[Key, int]:
    """``{(topic, partition): offset}``; empty where there is no such file. Raises ``CorruptCheckpoint``."""
    offsets: dict[Key, int] = {}
    if not files.exists(path):
        return offsets
    for line, words in read_entries(files, path, 3, mend):
        key = words[0], read_number(words[1], (1 << 31) - 1)
        offset = read_number(words[2], _MAX_OFFSET)
        if key[1] < 0 or offset < 0 or key in offsets:
            what = f"{' '.join(words)!r:.60} is not TOPIC PARTITION OFFSET of another partition"
            raise CorruptCheckpoint(what, path, line, mend)
        offsets[key] = offset
    return offsets


def read_number(word: str, limit: int) -> int:
    """A number from 0 to ``limit``, -1 for anything else."""
    value = int(word) if word.isascii() and word.isdigit() and len(word) < 20 else -1
    return value if value <= limit else -1


def read_entries(files: Files, path: str, fields: int | None, mend: str) -> list[tuple[int, list[str]]]:
    """``(line, words)`` of each entry; ``fields`` is how many words each must have. Raises ``CorruptCheckpoint``."""
    try:
        lines = read_file(files, path).decode().split("\n")
    except UnicodeDecodeError:
        raise CorruptCheckpoint("not UTF-8 text", path, 1, mend) from None
    if lines[0] != "0":
        raise CorruptCheckpoint(f"version {lines[0]!r:.40}, only 0 is known", path, 1, mend)
    if lines.pop() != "" or len(lines) < 2 or read_number(lines[1], _MAX_OFFSET) != len(lines) - 2:
        what = f"the count and the {max(0, len(lines) - 2)} whole lines after it differ"
        raise CorruptCheckpoint(what, path, 2, mend)
    entries = [(line, words.split(" ")) for line, words in enumerate(lines[2:], start=3)]
    for line, found in entries:
        if fields is not None and len(found) != fields:
            raise CorruptCheckpoint(f"{' '.join(found)!r:.60} has not {fields} fields", path, line, mend)
    return entries
