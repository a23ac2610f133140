"""The small text files beside the segments: checkpoints, ``meta.properties``, ``quorum-state``, ``partition.metadata``.

A checkpoint file (``CheckpointFile`` in Kafka) is a line with the version, a line with the number of entries, and one
line per entry. Every function here notes what it cannot read as a problem with its line and returns what it could.
"""

from __future__ import annotations

import base64
import binascii
import errno
import json
import stat
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any
from uuid import UUID

from .problems import RESTORE_MEND, ProblemLog

if TYPE_CHECKING:
    from pathlib import Path

MAX_STATE_FILE_BYTES = 64 << 20
"""A state file larger than this is not read: a broker with a million partitions stays below it."""

_MAX_INT64 = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class EpochEntry:
    """One line of a ``leader-epoch-checkpoint``: the epoch and the offset of its first record."""

    epoch: int
    start_offset: int


@dataclass(frozen=True, slots=True)
class MetaProperties:
    """``meta.properties``: version 0 has ``broker.id``, version 1 (KRaft) ``node.id``."""

    version: int
    node_id: int | None
    cluster_id: str | None
    directory_id: str | None


@dataclass(frozen=True, slots=True)
class QuorumState:
    """``quorum-state``: what this voter or observer knew of the metadata quorum (data versions 0 and 1)."""

    data_version: int
    leader_id: int
    leader_epoch: int
    voted_id: int
    voted_directory_id: str | None
    voters: tuple[int, ...] | None
    """The voters, in data version 0 only; later ones are records of the log."""

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)


def present(path: Path) -> bool:
    """Whether there is something at ``path``; also where only permissions are missing, so that reading says so."""
    try:
        return path.exists()
    except OSError:
        return True


def regular_size(path: Path) -> int:
    """The size of a regular file. Raises ``OSError`` for anything else: opening a pipe would hang."""
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise OSError(errno.EINVAL, "not a regular file")
    return status.st_size


def read_text(path: Path, problems: ProblemLog) -> str | None:
    """The text of a small file, ``None`` with a problem where it cannot be read."""
    try:
        size = regular_size(path)
        if size > MAX_STATE_FILE_BYTES:
            problems.add("file-too-large", f"{size} bytes, expected a small text file", RESTORE_MEND)
            return None
        with path.open("rb") as file:
            data = file.read(size)
    except OSError as error:
        problems.add("unreadable", error.strerror or str(error), "make the file readable")
        return None
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        problems.add("not-text", "not UTF-8 text", RESTORE_MEND, byte=error.start)
        return None


def _entries(path: Path, problems: ProblemLog, fields: int, form: str) -> list[tuple[int, list[str]]]:
    """``(line, words)`` of each entry of a checkpoint file with ``fields`` words a line.

    A file of no bytes has none: Kafka makes it so, and reads it so, until there is something to write.
    """
    text = read_text(path, problems)
    if not text:
        return []
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        # Half a number is a number.
        problems.add("bad-checkpoint", "the file ends within a line", RESTORE_MEND, line=len(lines))
    if len(lines) < 2:
        problems.add(
            "bad-checkpoint", "a checkpoint begins with its version and its count", RESTORE_MEND, line=len(lines) + 1
        )
        return []
    if lines[0].strip() != "0":
        problems.add("bad-checkpoint", f"version {lines[0]!r:.40}, only 0 is known", RESTORE_MEND, line=1)
        return []
    count = _number(lines[1])
    if count is None:
        problems.add("bad-checkpoint", f"count {lines[1]!r:.40} is no number", RESTORE_MEND, line=2)
    elif count != len(lines) - 2:
        problems.add("bad-checkpoint", f"{len(lines) - 2} entries where the count says {count}", RESTORE_MEND, line=2)
    result: list[tuple[int, list[str]]] = []
    for number, line in enumerate(lines[2:], start=3):
        words = line.split()
        if len(words) == fields:
            result.append((number, words))
        else:
            problems.add("bad-checkpoint", f"{line!r:.80} is not {form}", RESTORE_MEND, line=number)
    return result


def _number(word: str) -> int | None:
    word = word.strip()
    if not word.isascii() or not word.removeprefix("-").isdigit() or len(word) > 20:
        return None
    value = int(word)
    return value if -1 - _MAX_INT64 <= value <= _MAX_INT64 else None


def read_epoch_checkpoint(path: Path, problems: ProblemLog) -> tuple[EpochEntry, ...] | None:
    """The entries of a ``leader-epoch-checkpoint`` in file order (``LeaderEpochCheckpointFile``).

    ``None`` where nothing was ever written to it.
    """
    with suppress(OSError):
        if regular_size(path) == 0:
            return None
    entries: list[EpochEntry] = []
    for line, words in _entries(path, problems, 2, "EPOCH START_OFFSET"):
        epoch, start = (_number(word) for word in words)
        if epoch is None or start is None or epoch < 0 or start < 0:
            problems.add(
                "bad-checkpoint", f"{' '.join(words)!r:.80} is not EPOCH START_OFFSET", RESTORE_MEND, line=line
            )
        else:
            entries.append(EpochEntry(epoch, start))
    return tuple(entries)


def read_offset_checkpoint(path: Path, problems: ProblemLog) -> dict[tuple[str, int], tuple[int, int]]:
    """``{(topic, partition): (offset, line)}`` of an offset checkpoint (``OffsetCheckpointFile``).

    The same form serves ``replication-offset-checkpoint`` (high watermarks), ``log-start-offset-checkpoint``,
    ``recovery-point-offset-checkpoint`` and ``cleaner-offset-checkpoint``.
    """
    result: dict[tuple[str, int], tuple[int, int]] = {}
    for line, words in _entries(path, problems, 3, "TOPIC PARTITION OFFSET"):
        partition, offset = _number(words[1]), _number(words[2])
        if partition is None or offset is None or partition < 0 or offset < 0:
            what = f"{' '.join(words)!r:.80} is not TOPIC PARTITION OFFSET"
            problems.add("bad-checkpoint", what, RESTORE_MEND, line=line)
        elif (words[0], partition) in result:
            what = f"{words[0]}-{partition} is listed twice"
            problems.add("bad-checkpoint", what, "keep one of the lines", line=line)
        else:
            result[words[0], partition] = offset, line
    return result


def read_properties(path: Path, problems: ProblemLog) -> dict[str, tuple[str, int]]:
    """``{key: (value, line)}`` of a Java properties file, in the plain form that Kafka writes."""
    text = read_text(path, problems)
    result: dict[str, tuple[str, int]] = {}
    for number, line in enumerate((text or "").split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped[0] in "#!":
            continue
        key, separator, value = stripped.partition("=")
        if not separator:
            problems.add("bad-properties", f"{stripped!r:.80} is not KEY=VALUE", RESTORE_MEND, line=number)
            continue
        # Properties.store escapes these; a cluster id such as "4L6g3nShT-eMCtK--X86sw" may end in "==".
        result[key.strip()] = value.strip().replace("\\=", "=").replace("\\:", ":"), number
    return result


def read_meta_properties(path: Path, problems: ProblemLog) -> MetaProperties:
    """``meta.properties`` (``MetaProperties`` in Kafka). Fields that are missing or broken are ``None``."""
    properties = read_properties(path, problems)

    def number(key: str) -> int | None:
        if key not in properties:
            return None
        value, line = properties[key]
        parsed = _number(value)
        if parsed is None or parsed < 0:
            problems.add("bad-properties", f"{key}={value!r:.40} is no id", RESTORE_MEND, line=line)
            return None
        return parsed

    version = number("version")
    if version not in (0, 1):
        what = "no version" if version is None else f"version {version}, 0 and 1 are known"
        problems.add("bad-properties", what, RESTORE_MEND, line=properties.get("version", ("", 1))[1])
    node_id = number("node.id")
    if node_id is None:
        node_id = number("broker.id")
    if version == 1 and node_id is not None and not properties.get("cluster.id", ("", 0))[0]:
        problems.add("bad-properties", "no cluster.id", RESTORE_MEND)
    if version == 0 and "node.id" in properties:
        what = "version 0 has a broker.id, and no node.id"
        problems.add("bad-properties", what, RESTORE_MEND, line=properties["node.id"][1])
    if node_id is None:
        problems.add("bad-properties", "no node.id", "add the line node.id=N of this broker")
    cluster_id = properties.get("cluster.id", (None, 0))[0]
    directory_id = properties.get("directory.id", (None, 0))[0]
    return MetaProperties(-1 if version is None else version, node_id, cluster_id, directory_id)


def read_quorum_state(path: Path, problems: ProblemLog) -> QuorumState | None:
    """``quorum-state`` (``QuorumStateData`` as JSON), ``None`` with a problem where it cannot be read."""
    text = read_text(path, problems)
    if text is None:
        return None
    try:
        data = json.loads(text)
    except json.JSONDecodeError as error:
        problems.add("bad-quorum-state", f"not JSON: {error.msg}", RESTORE_MEND, line=error.lineno)
        return None
    except (RecursionError, ValueError):
        problems.add("bad-quorum-state", "not JSON of any sane depth or size", RESTORE_MEND, line=1)
        return None
    try:
        voters = data.get("currentVoters")
        voted_directory = data.get("votedDirectoryId")
        if voted_directory is not None and decode_uuid(str(voted_directory)) is None:
            raise TypeError(f"votedDirectoryId {str(voted_directory)!r:.40} is no directory id")
        return QuorumState(
            data_version=read_integer(data["data_version"]),
            leader_id=read_integer(data["leaderId"]),
            leader_epoch=read_integer(data["leaderEpoch"]),
            voted_id=read_integer(data["votedId"]),
            voted_directory_id=None if voted_directory is None else str(voted_directory),
            voters=None if voters is None else tuple(read_integer(voter["voterId"]) for voter in voters),
        )
    except (AttributeError, KeyError, TypeError) as error:
        what = f"a field is missing or of a wrong type: {error}"
        problems.add("bad-quorum-state", what, RESTORE_MEND, line=1)
        return None


def read_integer(value: object) -> int:
    """A JSON value that must be an integer. Raises ``TypeError``."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{value!r:.40} is no integer")
    return value


def read_topic_id(path: Path, problems: ProblemLog) -> UUID | None:
    """The topic id in ``partition.metadata``: lines ``version: 0`` and ``topic_id: BASE64``."""
    text = read_text(path, problems)
    if text is None:
        return None
    for number, line in enumerate(text.split("\n"), start=1):
        key, _, value = line.partition(":")
        if key.strip() == "version" and value.strip() != "0":
            problems.add("bad-topic-id", f"version {value.strip()!r:.40}, only 0 is known", RESTORE_MEND, line=number)
            return None
        if key.strip() != "topic_id":
            continue
        parsed = decode_uuid(value.strip())
        if parsed is None:
            problems.add("bad-topic-id", f"{value.strip()!r:.40} is no topic id", RESTORE_MEND, line=number)
        return parsed
    problems.add("bad-topic-id", "no topic_id", RESTORE_MEND, line=1)
    return None


def decode_uuid(text: str) -> UUID | None:
    """Kafka's text form of a UUID: 22 characters of URL-safe base64 with no padding."""
    if len(text) != 22 or not text.isascii():
        return None
    try:
        return UUID(bytes=base64.b64decode(text + "==", altchars=b"-_", validate=True))
    except (binascii.Error, ValueError):
        return None


def nearly_equal(one: UUID, other: UUID) -> bool:
    """Whether two ids differ in so few bits that one of them is a damaged copy of the other.

    Ids are random: two of them differ in 8 bits or fewer with a probability below 1e-26.
    """
    return 0 < (one.int ^ other.int).bit_count() <= 8


def encode_uuid(value: UUID) -> str:
    """The inverse of ``decode_uuid``."""
    return base64.urlsafe_b64encode(value.bytes).decode("ascii").rstrip("=")
