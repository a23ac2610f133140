"""What a line of a quorum's node says of the metadata log, in the words of Apache Kafka 4.4.0.

The loggers are ``QuorumState`` (INFO), ``LeaderState`` (DEBUG), ``FollowerState`` (TRACE), ``KafkaRaftLog`` (INFO) and
``SnapshotEmitter`` (INFO); ``UnifiedLog`` (TRACE) says what the log has, ``KafkaRaftClient`` (INFO) which snapshots are
fetched, and ``MetadataLoader`` (DEBUG) what is loaded and published.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
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
_AT: Final = r"\[UnifiedLog partition=__cluster_metadata-0, .{0,4096}?\]"
_BECOMES: Final = re.compile(r"\[RaftManager id=\d+\] Completed transition to (\w+)[(\[](.*)")
_STARTS: Final = re.compile(r"\[RaftLog partition=__cluster_metadata-0\] Initialized snapshots with IDs ")
_GROWS: Final = re.compile(rf"{_AT} Appended message set .{{0,200}}?next offset: (\d{{1,19}}),")
_SHRINKS: Final = re.compile(rf"{_AT} Truncating to offset (\d{{1,19}})$")
_BEGINS_ANEW: Final = re.compile(rf"{_AT} Truncate and start at offset ")
_CLEANS: Final = re.compile(rf"{_AT} Incremented log start offset to (\d{{1,19}}) due to snapshot generated$")
_ELSEWHERE: Final = re.compile(rf"{_AT} Incremented log start offset to ")
_LEADERS: Final = re.compile(r"\[RaftManager id=\d+\] High watermark set to LogOffsetMetadata\(offset=(\d{1,19})")
_FOLLOWERS: Final = re.compile(
    r"\[RaftManager id=\d+\] High watermark set to Optional\[LogOffsetMetadata\(offset=(\d{1,19})"
)
_SNAPS: Final = re.compile(r"\[SnapshotEmitter id=\d+\] Successfully wrote snapshot (\d{20})-\d{10}")
_ID: Final = r"OffsetAndEpoch[(\[]offset=(\d{1,19}), epoch=\d{1,10}[)\]]"
_ASKS: Final = re.compile(rf"\[RaftManager id=\d+\] Fetching snapshot {_ID} from Fetch response from leader ")
_HAS_IT: Final = re.compile(
    rf"\[RaftManager id=\d+\] Leader \d+ returned a snapshot {_ID} in the FETCH response which "
)
_INSTALLS: Final = re.compile(
    rf"\[RaftManager id=\d+\] Fully truncated the log at .{{0,200}} after downloading snapshot {_ID} from leader "
)
_GIVES_UP: Final = re.compile(r"\[RaftManager id=\d+\] Leader doesn't know about snapshot id ")
_LOADS: Final = re.compile(r"\[MetadataLoader id=\d+\] handleLoadSnapshot\((\d{20})-\d{10}\): incrementing ")
_PUBLISHES: Final = re.compile(
    r"\[MetadataLoader id=\d+\] handleCommit: publishing new image with provenance"
    r" MetadataProvenance[(\[]lastContainedOffset=(\d{1,19}),"
)


def node_of(message: str) -> int | None:
    """Who printed it, if it says so."""
    found = _NODE.match(message)
    return None if found is None else int(found[1])


def said_of_quorum(logger: str, message: str) -> Said | None:
    """What is said of the metadata log; None for nothing. Raises ValueError for numbers that are none of Kafka's.

    ``logger``: the last part of its name.
    """
    match logger:
        case "QuorumState":
            found = _BECOMES.match(message)
            return None if found is None else _becomes(found[1], found[2])
        case "KafkaRaftLog":
            return Starts() if _STARTS.match(message) else None
        case "UnifiedLog":
            if found := _GROWS.match(message):
                return Grows(_offset(found[1]))
            if found := _SHRINKS.match(message):
                return Shrinks(_offset(found[1]))
            if _BEGINS_ANEW.match(message):
                return BeginsAnew()
            if found := _CLEANS.match(message):
                return Cleans(_offset(found[1]))
            return Beyond("its log begins elsewhere") if _ELSEWHERE.match(message) else None
        case "LeaderState":
            found = _LEADERS.match(message)
            return None if found is None else Commits(_offset(found[1]), leads=True)
        case "FollowerState":
            found = _FOLLOWERS.match(message)
            return None if found is None else Commits(_offset(found[1]), leads=False)
        case "SnapshotEmitter":
            found = _SNAPS.match(message)
            return None if found is None else Snaps(_offset(found[1]))
        case "KafkaRaftClient":
            return _client(message)
        case "MetadataLoader":
            if found := _LOADS.match(message):
                return Loads(_offset(found[1]))
            found = _PUBLISHES.match(message)
            return None if found is None else Publishes(_offset(found[1]) + 1)
    return None


def _client(message: str) -> Said | None:
    if found := _ASKS.match(message):
        return Asks(_offset(found[1]), has_it=False)
    if found := _HAS_IT.match(message):
        return Asks(_offset(found[1]), has_it=True)
    if found := _INSTALLS.match(message):
        return Installs(_offset(found[1]))
    return GivesUp() if _GIVES_UP.match(message) else None


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
