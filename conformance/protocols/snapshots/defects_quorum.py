"""Defects of a quorum's elections, replication and log begin offset, which are driven against ``snapshots``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Constants, Defect, defect
from ...mutants.patched import Patch

SNAPSHOTS: Final = "snapshots"
# Replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires.
SHORT: Final = (3, 0, 1, 1, 1, 0, 0, 1)
"""One record is enough."""
LONG: Final = (3, 0, 2, 1, 1, 0, 0, 1)
ONE_EPOCH: Final = (3, 0, 3, 0, 1, 0, 0, 1)
PAIR: Final = (2, 0, 2, 1, 1, 0, 0, 1)
CHUNKED: Final = (3, 0, 1, 1, 2, 0, 0, 1)
"""A snapshot can be half fetched."""
OBSERVED: Final = (3, 1, 1, 0, 1, 0, 0, 1)
"""Two voters, and an observer who counts for nothing."""
ALONE: Final = (2, 1, 1, 0, 1, 0, 0, 1)
"""One voter, who commits alone, and an observer who falls behind."""
ALONE_LONG: Final = (2, 1, 2, 0, 1, 0, 0, 1)
ALONE_CHUNKED: Final = (2, 1, 1, 0, 2, 0, 0, 1)
ALONE_TWICE: Final = (2, 1, 1, 1, 2, 0, 0, 1)
CHOOSY: Final = (1, 0, 2, 0, 1, 1, 0, 1)
"""``controller.snapshot.minimum.records`` is 1."""


def quorum_defect(name: str, constants: Constants, doc: str, file: str, old: str, new: str) -> Defect:
    """A defect of one place in ``quorum/``."""
    return defect(name, SNAPSHOTS, doc, f"quorum/{file}.py", old, new, constants=constants)


QUORUM_DEFECTS: Final[tuple[Defect, ...]] = (
    # -- elections --------------------------------------------------------------------------------------------------
    quorum_defect(
        "half-fetched-votes-by-log",
        CHUNKED,
        "a replica whose snapshot is incomplete votes, and asks for votes, by its log",
        "replica",
        "return (NO_EPOCH, -1) if self.fetching is not None else (self.last_epoch, self.end - 1)",
        "return (self.last_epoch, self.end - 1)",
    ),
    quorum_defect(
        "vote-not-stored",
        SHORT,
        "a vote is given before it is on disk: after a crash the replica votes again in that epoch",
        "node",
        "        self._state.store(Ballot(self.epoch, candidate))\n        if isinstance(self.role, Unattached):",
        "        self._state.ballot = Ballot(self.epoch, candidate)\n        if isinstance(self.role, Unattached):",
    ),
    quorum_defect(
        "epoch-not-stored",
        SHORT,
        "a replica is in an epoch before that is on disk",
        "node",
        "    def _enter(self, ballot: Ballot) -> None:\n        self._state.store(ballot)\n",
        "    def _enter(self, ballot: Ballot) -> None:\n        self._state.ballot = ballot\n",
    ),
    quorum_defect(
        "vote-given-twice",
        SHORT,
        "whoever has voted and knows no leader yet gives its vote again",
        "answers",
        "return node.ballot.voted == NO_VOTE and isinstance(node.role, Unattached)",
        "return isinstance(node.role, Unattached)",
    ),
    quorum_defect(
        "vote-for-shorter-log",
        LONG,
        "a vote goes by the last epoch alone, so that a candidate may lack records of it",
        "node",
        "position < self.replica.vote_position",
        "position[0] < self.replica.vote_position[0]",
    ),
    quorum_defect(
        "refused-vote-counts",
        SHORT,
        "a candidate counts every answer to its request for a vote",
        "candidate",
        "body.error is ErrorCode.NONE and body.granted and body.epoch == node.epoch",
        "body.error is ErrorCode.NONE and body.epoch == node.epoch",
    ),
    quorum_defect(
        "older-leader-not-fenced",
        SHORT,
        "the epoch of BeginQuorumEpoch is not validated",
        "answers",
        "return ErrorCode.FENCED_REPLICA if epoch < node.epoch else ErrorCode.NONE\n\n\ndef _leader(",
        "return ErrorCode.NONE\n\n\ndef _leader(",
    ),
    # -- fetching ---------------------------------------------------------------------------------------------------
    quorum_defect(
        "older-epoch-fetches",
        SHORT,
        "a leader serves who is in an older epoch",
        "answers",
        "    if epoch != node.epoch:\n",
        "    if epoch > node.epoch:\n",
    ),
    quorum_defect(
        "newer-epoch-fetches",
        SHORT,
        "a deposed leader serves who is in a newer epoch",
        "answers",
        "    if epoch != node.epoch:\n",
        "    if epoch < node.epoch:\n",
    ),
    quorum_defect(
        "longer-log-not-cut",
        LONG,
        "a fetch is checked by the epoch of the record before it alone, not by where that epoch ends",
        "replica",
        "return known == last_epoch and fetch_offset <= end",
        "return known == last_epoch",
    ),
    quorum_defect(
        "fetch-at-lbo-served",
        LONG,
        "any fetch at the LBO is served, also one that no snapshot can tell from one that diverges (hole A2)",
        "replica",
        "return fetch_offset < self.begin or (0 < end == self.begin and (known == NO_EPOCH or last_epoch < known))",
        "return fetch_offset < self.begin",
    ),
    quorum_defect(
        "fetch-at-lbo-refused",
        ALONE,
        "every fetch at the LBO is answered with the snapshot",
        "replica",
        "return fetch_offset < self.begin or (0 < end",
        "return fetch_offset <= self.begin or (0 < end",
    ),
    quorum_defect(
        "fetch-before-sync",
        SHORT,
        "a follower acknowledges by its fetch what it has not synced",
        "follower",
        "        replica.flush()  # the fetch offset acknowledges everything below it, so it has to outlive a crash\n",
        "",
    ),
    Defect(
        "late-response-taken",
        SNAPSHOTS,
        "a follower takes an answer to an earlier fetch, whatever it has fetched since (hole A5)",
        (
            Patch(
                "quorum/follower.py",
                "        node.requests.forget(self._fetch)\n        replica.flush()",
                "        replica.flush()",
            ),
            Patch(
                "quorum/follower.py",
                "asked = body.fetch_offset == replica.end and body.last_fetched_epoch == replica.last_epoch",
                "asked = True",
            ),
        ),
        constants=ALONE,
    ),
    # -- the high watermark -----------------------------------------------------------------------------------------
    quorum_defect(
        "half-fetched-acknowledges",
        ONE_EPOCH,
        "the log behind half a snapshot counts as replicated (hole A1)",
        "leader",
        "            self._counted.pop(replica, None)\n        else:\n",
        "            self._counted.pop(replica, None)\n        if True:\n",
    ),
    quorum_defect(
        "observer-counts",
        OBSERVED,
        "what an observer has fetched counts as replicated",
        "leader",
        "        if replica not in node.config.voters:\n            return\n        if incomplete",
        "        if incomplete",
    ),
    quorum_defect(
        "older-epoch-committed",
        LONG,
        "a leader commits a record of an older epoch as soon as a majority has it",
        "leader",
        "if end > replica.high_watermark and replica.epoch_at(end - 1) == node.epoch:",
        "if end > replica.high_watermark:",
    ),
    quorum_defect(
        "minority-commits",
        SHORT,
        "a majority is counted with one replica too few",
        "leader",
        "end = ends[node.config.majority - 1]",
        "end = ends[node.config.majority - 2]",
    ),
    quorum_defect(
        "committed-before-sync",
        SHORT,
        "a leader counts its own log before it has synced it",
        "leader",
        "            replica.flush()\n            replica.raise_high_watermark(end)",
        "            replica.raise_high_watermark(end)",
    ),
    quorum_defect(
        "hw-beyond-log",
        ALONE_LONG,
        "a follower takes a high watermark beyond the end of its log",
        "replica",
        "        offset = min(offset, self.end)\n",
        "",
    ),
    quorum_defect(
        "hw-kept-over-wipe",
        ALONE,
        "the high watermark stays where it was when the log is wiped",
        "replica",
        "        self.log.truncate_fully_and_start_at(offset)\n        self.high_watermark = offset",
        "        self.log.truncate_fully_and_start_at(offset)",
    ),
    # -- the log begin offset ---------------------------------------------------------------------------------------
    quorum_defect(
        "lbo-past-snapshot",
        ALONE,
        "a follower takes the leader's LBO without a snapshot that reaches it",
        "replica",
        "if not self.begin < offset <= min(self.snapshots.latest_end, self.high_watermark):",
        "if not self.begin < offset <= self.high_watermark:",
    ),
    quorum_defect(
        "records-deleted-past-snapshot",
        ALONE_LONG,
        "DeleteRecords beyond the latest snapshot is no error, and deletes up to that",
        "leader",
        "        if target > replica.snapshots.latest_end:\n            return ErrorCode.OFFSET_OUT_OF_RANGE\n",
        "        target = min(target, replica.snapshots.latest_end)\n",
    ),
    defect(
        "lbo-not-stored",
        SNAPSHOTS,
        "the LBO is raised in memory alone, and falls back at a crash",
        "log/log.py",
        "            self._store.store_log_start(offset)\n            self._log_start = offset\n            kept",
        "            self._log_start = offset\n            kept",
        constants=ALONE,
    ),
)
