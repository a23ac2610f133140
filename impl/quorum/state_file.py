"""``quorum-state``: the epoch that a replica is in, whom it voted for and who leads (KIP-595).

One line of JSON in the form of Kafka's file (``QuorumStateData`` of data version 0, which has the voters; version 1 has
the voted replica's directory id instead, and ours has none). As in Kafka, ``clusterId`` is empty and ``appliedOffset``
is 0: nobody goes by them. Nor is the leader gone by here: who starts knows no leader before it hears of one.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from ..files.interface import Files, read_file
from ..log.checkpoints import write_atomically
from ..log.errors import CorruptCheckpoint
from ..wire.messages import NO_EPOCH, NO_LEADER

QUORUM_STATE = "quorum-state"
NO_VOTE = -1

_MEND = "put the file back from a copy; without it the replica may vote twice in one epoch"
_INT32 = 1 << 31
_INT64 = 1 << 63


class Ballot(NamedTuple):
    """The epoch; who has this replica's vote in it, ``NO_VOTE`` for nobody; who leads it, ``NO_LEADER`` if unknown."""

    epoch: int = NO_EPOCH
    voted: int = NO_VOTE
    leader: int = NO_LEADER


class QuorumStateFile:
    """The file in a partition's folder. ``ballot`` is what it holds, besides the ids of the ``voters``."""

    def __init__(self, files: Files, folder: str, voters: Sequence[int] = ()) -> None:
        """Read it. Raises ``CorruptCheckpoint``, ``OSError``."""
        self._files = files
        self._path = f"{folder}/{QUORUM_STATE}"
        self._voters = voters
        self.ballot = self._read()

    def store(self, ballot: Ballot) -> None:
        """Write and sync: what is done in an epoch, or with a vote, is done after this. Raises ``OSError``."""
        if ballot != self.ballot:
            fields = {
                "clusterId": "",
                "leaderId": ballot.leader,
                "leaderEpoch": ballot.epoch,
                "votedId": ballot.voted,
                "appliedOffset": 0,
                "currentVoters": [{"voterId": voter} for voter in self._voters],
                "data_version": 0,
            }
            write_atomically(self._files, self._path, json.dumps(fields, separators=(",", ":")).encode())
            self.ballot = ballot

    def _read(self) -> Ballot:
        if not self._files.exists(self._path):
            return Ballot()
        try:
            found = json.loads(read_file(self._files, self._path))
        except (ValueError, RecursionError) as problem:
            raise self._corrupt(f"no JSON: {problem}") from None
        if not isinstance(found, dict) or found.get("data_version") != 0:
            raise self._corrupt("not an object with data_version 0")
        for name, is_right, what in _FIELDS:
            if not is_right(found.get(name)):
                raise self._corrupt(f"{name} is not {what}")
        return Ballot(found["leaderEpoch"], found["votedId"], found["leaderId"])

    def _corrupt(self, what: str) -> CorruptCheckpoint:
        return CorruptCheckpoint(what, self._path, 1, _MEND)


def _is_int32(value: Any) -> bool:
    return type(value) is int and -1 <= value < _INT32


def _are_voters(value: Any) -> bool:
    if value is None:
        return True
    return isinstance(value, list) and all(isinstance(each, dict) and _is_int32(each.get("voterId")) for each in value)


_FIELDS: tuple[tuple[str, Callable[[Any], bool], str], ...] = (
    ("clusterId", lambda value: isinstance(value, str), "text"),
    ("leaderId", _is_int32, "a number from -1 on"),
    ("leaderEpoch", _is_int32, "a number from -1 on"),
    ("votedId", _is_int32, "a number from -1 on"),
    ("appliedOffset", lambda value: type(value) is int and 0 <= value < _INT64, "an offset"),
    ("currentVoters", _are_voters, "a list of voterId"),
)
"""Every field of ``QuorumStateData`` in data version 0: all are mandatory there."""
