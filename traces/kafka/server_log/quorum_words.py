"""What a line of a quorum's node says of the metadata log, in the words of Apache Kafka 4.4.0.

The loggers are ``QuorumState`` (INFO), ``LeaderState`` (DEBUG), ``FollowerState`` (TRACE), ``KafkaRaftLog`` (INFO) and
``SnapshotEmitter`` (INFO); ``UnifiedLog`` (TRACE) says what the log has, ``KafkaRaftClient`` (INFO) which snapshots are
fetched, and ``MetadataLoader`` (DEBUG) what is loaded and published.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

LOG: Final = "__cluster_metadata-0"
NOBODY: Final = -1
_LARGEST: Final = 2**63 - 1


@dataclass(frozen=True, slots=True)
class Starts:
    """A process opens its log (``KafkaRaftLog.createLog``)."""


@dataclass(frozen=True, slots=True)
class Becomes:
    """A node is in a state (``QuorumState``): its name, epoch, leader and vote; ``before``: the state before, if any.

    ``voters``: of the quorum, where the state names them.
    """

    state: str
    epoch: int
    leader: int
    voted: int
    before: str | None
    voters: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Grows:
    """Records were appended, up to a new LEO."""

    end: int


@dataclass(frozen=True, slots=True)
class Shrinks:
    """The log is cut."""

    end: int


@dataclass(frozen=True, slots=True)
class Commits:
    """A high watermark is known: a leader's (``LeaderState``) or a follower's (``FollowerState``)."""

    hw: int
    leads: bool


@dataclass(frozen=True, slots=True)
class Snaps:
    """A snapshot was written, up to its exclusive end (``SnapshotEmitter``)."""

    end: int


@dataclass(frozen=True, slots=True)
class Cleans:
    """The log begins later, at the end of a snapshot of the node's own (``KafkaRaftLog.deleteBeforeSnapshot``)."""

    start: int


@dataclass(frozen=True, slots=True)
class BeginsAnew:
    """All of the log is thrown away: a snapshot was fetched, or is found at a start to reach beyond the log."""


@dataclass(frozen=True, slots=True)
class Asks:
    """A fetch was answered with a snapshot id, by its exclusive end (``KafkaRaftClient``).

    ``has_it``: the node has that snapshot, and does not fetch it.
    """

    end: int
    has_it: bool


@dataclass(frozen=True, slots=True)
class Installs:
    """The last bytes of a snapshot have come, and the log begins at its exclusive end (``KafkaRaftClient``)."""

    end: int


@dataclass(frozen=True, slots=True)
class GivesUp:
    """The leader has not the snapshot that is fetched any more (``KafkaRaftClient``)."""


@dataclass(frozen=True, slots=True)
class Loads:
    """What follows the quorum's log on a node loads a snapshot, by its exclusive end (``MetadataLoader``)."""

    end: int


@dataclass(frozen=True, slots=True)
class Publishes:
    """It publishes an image of all records below an offset (``MetadataLoader``)."""

    end: int


@dataclass(frozen=True, slots=True)
class Beyond:
    """What no step is read of."""

    what: str


Said: TypeAlias = (
    "Starts | Becomes | Grows | Shrinks | Commits | Snaps | Cleans | BeginsAnew | Asks | Installs | GivesUp | Loads"
    " | Publishes | Beyond"
)

_NODE: Final = re.compile(
    r"\[(?:RaftManager|SnapshotEmitter|MetadataLoader|SnapshotGenerator|QuorumController) id=(\d{1,9})\]"
)
_LOG_PREFIX: Final = r"\[UnifiedLog partition=__cluster_metadata-0, .{0,4096}?\]"
_RAFT: Final = r"\[RaftManager id=\d+\]"
_ID: Final = r"OffsetAndEpoch[(\[]offset=(\d{1,19}), epoch=\d{1,10}[)\]]"
_PROVENANCE: Final = r"MetadataProvenance[(\[]lastContainedOffset=(\d{1,19}),"

_STATE: Final = re.compile(rf"{_RAFT} Completed transition to (\w+)[(\[](.*)")

_PATTERNS: Final[Mapping[str, Sequence[tuple[str, Callable[..., Said]]]]] = {
    "KafkaRaftLog": [(r"\[RaftLog partition=__cluster_metadata-0\] Initialized snapshots with IDs ", Starts)],
    "UnifiedLog": [
        (rf"{_LOG_PREFIX} Appended message set .{{0,200}}?next offset: (\d{{1,19}}),", Grows),
        (rf"{_LOG_PREFIX} Truncating to offset (\d{{1,19}})$", Shrinks),
        (rf"{_LOG_PREFIX} Truncate and start at offset ", BeginsAnew),
        (rf"{_LOG_PREFIX} Incremented log start offset to (\d{{1,19}}) due to snapshot generated$", Cleans),
        (rf"{_LOG_PREFIX} Incremented log start offset to ", partial(Beyond, "its log begins elsewhere")),
    ],
    "LeaderState": [
        (rf"{_RAFT} High watermark set to LogOffsetMetadata\(offset=(\d{{1,19}})", partial(Commits, leads=True)),
    ],
    "FollowerState": [
        (
            rf"{_RAFT} High watermark set to Optional\[LogOffsetMetadata\(offset=(\d{{1,19}})",
            partial(Commits, leads=False),
        ),
    ],
    "SnapshotEmitter": [(r"\[SnapshotEmitter id=\d+\] Successfully wrote snapshot (\d{20})-\d{10}", Snaps)],
    "KafkaRaftClient": [
        (rf"{_RAFT} Fetching snapshot {_ID} from Fetch response from leader ", partial(Asks, has_it=False)),
        (rf"{_RAFT} Leader \d+ returned a snapshot {_ID} in the FETCH response which ", partial(Asks, has_it=True)),
        (rf"{_RAFT} Fully truncated the log at .{{0,200}} after downloading snapshot {_ID} from leader ", Installs),
        (rf"{_RAFT} Leader doesn't know about snapshot id ", GivesUp),
    ],
    "MetadataLoader": [
        (r"\[MetadataLoader id=\d+\] handleLoadSnapshot\((\d{20})-\d{10}\): incrementing ", Loads),
        (
            rf"\[MetadataLoader id=\d+\] handleCommit: publishing new image with provenance {_PROVENANCE}",
            lambda last: Publishes(last + 1),
        ),
    ],
}
"""By logger, the messages of 4.4.0 and what each reports of the offsets in it; the first that matches counts."""
_COMPILED: Final = {
    logger: [(re.compile(pattern), reports) for pattern, reports in rows] for logger, rows in _PATTERNS.items()
}


def node_of(message: str) -> int | None:
    """Who printed it, if it says so."""
    found = _NODE.match(message)
    return None if found is None else int(found[1])


def said_of_quorum(logger: str, message: str) -> Said | None:
    """What a message reports of the metadata log; None for nothing.

    Args:
        logger: Last part of the logger's name.
        message: The text that Kafka logged.

    Raises:
        ValueError: A number is none of Kafka's.
    """
    if logger == "QuorumState":
        found = _STATE.match(message)
        return None if found is None else _becomes(found[1], found[2])
    for pattern, reports in _COMPILED.get(logger, ()):
        if found := pattern.match(message):
            return reports(*map(_offset, found.groups()))
    return None


def _offset(text: str) -> int:
    if int(text) > _LARGEST:
        raise ValueError(f"{text} is no offset of Kafka's")
    return int(text)


def _becomes(state: str, rest: str) -> Becomes:
    told, _, before = rest.rpartition(" from ")
    epoch = re.search(r"\bepoch=(\d{1,10})\b", told)
    if epoch is None or int(epoch[1]) >= 2**31:
        raise ValueError(f"{state} names no epoch of Kafka's")
    leader = re.search(r"\bleader(?:Id)?=(?:OptionalInt\[)?(\d{1,9})", told)
    voted = re.search(r"\bvotedKey=Optional\[ReplicaKey\(id=(\d{1,9})", told)
    name = re.match(r"\w+", before)
    voters = re.search(r"\bvoters=\[([\d, ]{1,200})\]", told)
    return Becomes(
        state.removesuffix("State"),
        int(epoch[1]),
        NOBODY if leader is None else int(leader[1]),
        NOBODY if voted is None else int(voted[1]),
        None if name is None or name[0] == "null" else name[0].removesuffix("State"),
        frozenset() if voters is None else frozenset(map(int, voters[1].split(","))),
    )
