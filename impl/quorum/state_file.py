"""``quorum-state``: the epoch that a replica is in, and whom it voted for, in the form of Kafka's file (KIP-595)."""

from __future__ import annotations

import json
from typing import NamedTuple

from ..files.interface import Files, read_file
from ..log.checkpoints import write_atomically
from ..log.errors import CorruptCheckpoint
from ..wire.messages import NO_EPOCH

QUORUM_STATE = "quorum-state"
NO_VOTE = -1

_MEND = "put the file back from a copy; without it the replica may vote twice in one epoch"
_LIMIT = 1 << 31


class Ballot(NamedTuple):
    """The epoch, and who has this replica's vote in it, ``NO_VOTE`` for nobody."""

    epoch: int = NO_EPOCH
    voted: int = NO_VOTE


class QuorumStateFile:
    """The file in a partition's folder. ``ballot`` is what it holds."""

    def __init__(self, files: Files, folder: str) -> None:
        """Read it. Raises ``CorruptCheckpoint``, ``OSError``."""
        self._files = files
        self._path = f"{folder}/{QUORUM_STATE}"
        self.ballot = self._read()

    def store(self, ballot: Ballot) -> None:
        """Write and sync: what is done in an epoch, or with a vote, is done after this. Raises ``OSError``."""
        if ballot != self.ballot:
            text = json.dumps({"leaderEpoch": ballot.epoch, "votedId": ballot.voted, "data_version": 0})
            write_atomically(self._files, self._path, text.encode())
            self.ballot = ballot

    def _read(self) -> Ballot:
        if not self._files.exists(self._path):
            return Ballot()
        try:
            found = json.loads(read_file(self._files, self._path))
        except ValueError as problem:
            raise CorruptCheckpoint(f"no JSON: {problem}", self._path, 1, _MEND) from None
        if not isinstance(found, dict) or found.get("data_version") != 0:
            raise CorruptCheckpoint("not an object with data_version 0", self._path, 1, _MEND)
        ballot = Ballot._make(found.get(name) for name in ("leaderEpoch", "votedId"))
        if not all(type(each) is int and -1 <= each < _LIMIT for each in ballot):
            raise CorruptCheckpoint("leaderEpoch and votedId are not numbers from -1 on", self._path, 1, _MEND)
        return ballot
