"""The state and the rules of ``snapshots``: a replicated log, and the snapshots that cut it.

The replicated log of KIP-595, less what KIP-630 does not touch. Replicas are voters or observers; an epoch has one
candidate, each vote is a step of its own, and with a majority of votes the candidate leads at once. A record is told
by its offset and its epoch: nobody but the leader of an epoch writes in it, once for each offset. The leader keeps
what its followers acknowledged by their fetches, and commits by majority, and only up to a record of its own epoch.
What is committed is remembered in ``committed``, which no step reads.

The LEO and the high watermark are exclusive ends; a snapshot id is the last offset that the snapshot includes, as in
the text (``specs/DEVIATIONS.md``). ``log.py`` has elections and appends, ``votes.py`` votes on their way,
``fetch.py`` the exchanges between a leader and its followers, ``late.py`` their late responses, ``actions.py`` the
rest, ``promises.py`` what is promised.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from ...core.algebra import Algebra, Value, View
from ...core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Constants, Index, integers
from ...core.protocol import ConstantSpec, Protocol
from ...core.terms import Sort
from ..logs import EPOCH, LOG_SIZE, OFFSET

CHUNK = Index("chunk", Sort.INT, lambda c: c["max_chunks"])
SLOT = Index("slot", Sort.INT, lambda c: c["late_responses"])

snapshots = Protocol(
    "snapshots",
    "KIP-630",
    constants=(
        ConstantSpec("replicas", 3, 1, "the number of replicas, voters and observers"),
        ConstantSpec("observers", 0, 0, "how many of them are observers"),
        LOG_SIZE,
        ConstantSpec("max_leader_epoch", 1, 0, "the largest leader epoch"),
        ConstantSpec("max_chunks", 1, 1, "the largest size of a snapshot, in responses of FetchSnapshot"),
        ConstantSpec("minimum_records", 0, 0, "controller.snapshot.minimum.records"),
        ConstantSpec("late_responses", 0, 0, "how many responses the network holds back, and may repeat"),
        ConstantSpec("lag_expires", 1, 0, "1 where max.replication.lag.ms may pass, 0 where it never does"),
    ),
)


class Boot(Enum):
    """Which logs do not count as empty at boot (KIP-630, "Validation of Snapshot and Log")."""

    HIGH_WATERMARK = "those with a snapshot between LBO - 1 and the high watermark that was last written to disk"
    SNAPSHOT = "those with a snapshot at LBO - 1 or later; the high watermark is at least its end"
    FROM_LBO = "those with a snapshot at LBO or later: LBO - 1 was read as LBO"


@dataclass(frozen=True)
class Rules:
    """In what a variant differs; the defaults are those of the safe one.

    ``boot``: which logs do not count as empty. ``votes_as_empty``: a replica whose snapshot is incomplete votes, and
    asks for votes, as if its log were empty. ``acknowledges_whole``: what such a replica fetches does not count as
    replicated. ``validates_at_lbo``: a fetch at the LBO whose epoch the leader cannot check is answered with the
    snapshot. ``fetches_anew``: in a new epoch an incomplete snapshot is fetched from its first byte again.
    ``correlates``: a response that does not answer the request in hand is dropped. ``committed_only``: a snapshot
    includes only what is committed. ``covered_lbo``: the LBO is not advanced past the snapshot. ``keeps_last``: the
    snapshot at LBO - 1 is not deleted.

    ``as_nodes``: the steps of nodes that send messages. Whoever is asked for its vote enters the epoch, granting it or
    not. A fetch is counted before it is answered, and the answer may have the high watermark that it raised. A snapshot
    has all that is committed. A leader that is gone makes nobody start over: there is nobody to refuse the fetch. The
    high watermark is in no file.

    ``votes_travel``: a vote that is granted is an answer, which reaches its candidate late or never (``votes.py``).
    ``counts_late_votes``: a candidate counts one of a former candidacy of its own.
    ``running``: nodes that run by themselves (``impl_spec.py``): every replica has its own vote and its own candidacy,
    what is not synced may be lost, and what clients were told is remembered.
    """

    boot: Boot = Boot.SNAPSHOT
    votes_as_empty: bool = True
    acknowledges_whole: bool = True
    validates_at_lbo: bool = True
    fetches_anew: bool = True
    correlates: bool = True
    committed_only: bool = True
    covered_lbo: bool = True
    keeps_last: bool = True
    as_nodes: bool = False
    votes_travel: bool = False
    counts_late_votes: bool = False
    running: bool = False


AS_WRITTEN = Rules(
    boot=Boot.HIGH_WATERMARK,
    acknowledges_whole=False,
    validates_at_lbo=False,
    fetches_anew=False,
    correlates=False,
)
"""The text's own rules, where it has one, and none where it says nothing."""

snapshots.variant("kip-630", AS_WRITTEN, "the KIP's text as it is written")
snapshots.variant("lbo-past-snapshot", Rules(covered_lbo=False), "the LBO is advanced past the snapshot")
snapshots.variant("lbo-misread", Rules(boot=Boot.FROM_LBO), "at boot, LBO - 1 is read as LBO")
snapshots.variant("snapshot-past-hw", Rules(committed_only=False), "a snapshot goes past the high watermark")
snapshots.variant("delete-at-lbo", Rules(keeps_last=False), "the snapshot at LBO - 1 is deleted")
snapshots.variant("vote-half-fetched", Rules(votes_as_empty=False), "a replica with half a snapshot votes by its log")
snapshots.variant(
    "acknowledge-half-fetched", Rules(acknowledges_whole=False), "the log behind half a snapshot counts: hole 1 alone"
)
snapshots.variant("fetch-at-lbo", Rules(validates_at_lbo=False), "any fetch at the LBO is served: hole 2 alone")
snapshots.variant("boot-by-hw", Rules(boot=Boot.HIGH_WATERMARK), "the text's rule at boot: hole 3 alone")
snapshots.variant("mixed-chunks", Rules(fetches_anew=False), "a snapshot of two leaders' bytes: hole 4 alone")
snapshots.variant("stale-responses", Rules(correlates=False), "a response to an old request counts: hole 5 alone")
snapshots.variant(
    "late-votes",
    Rules(as_nodes=True, votes_travel=True, counts_late_votes=True),
    "kip-630-votes with a candidate that counts votes of its former candidacies",
    restarts=True,
)
snapshots.variant(
    "kip-630-votes",
    Rules(as_nodes=True, votes_travel=True),
    "kip-630-nodes with votes that reach their candidate late, again, or never",
    restarts=True,
)
snapshots.variant(
    "kip-630-nodes",
    Rules(as_nodes=True),
    "the KIP less its holes, in the steps of nodes that send messages",
    restarts=True,
)
snapshots.variant(
    "kip-630-quorum",
    Rules(as_nodes=True, running=True),
    "the same of a quorum that runs by itself: own votes, unsynced records, what clients were told",
    restarts=True,
)
snapshots.variant("kip-630-safe", Rules(), "the KIP less its holes")

_EPOCHS = integers(-1, lambda c: c["max_leader_epoch"])
_END_OFFSETS = integers(0, lambda c: c["log_size"])
_OPTIONAL_OFFSETS = integers(-1, lambda c: c["log_size"] - 1)


def _all_voters(constants: Constants) -> int:
    return (1 << max(constants["replicas"] - constants["observers"], 0)) - 1


def in_whole_exchanges(rules: Rules) -> bool:
    """Elections have one candidate at a time, and whoever leads is known at once: all variants but the running one."""
    return not rules.running


def in_log(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The record at this offset is in the replica's log."""
    return k.all(s.lbo[replica] <= offset, offset < s.leo[replica])


def is_fetching(s: View, replica: Value) -> Value:
    """The replica's snapshot is incomplete: it has begun to fetch one."""
    return s.fetching[replica] != -1


def presumes_leadership(k: Algebra, s: View, replica: Value) -> Value:
    """The replica was elected for the epoch that it is in, and has not crashed since."""
    if k.rules.running:
        return s.leader[replica] == replica
    # No replica is the leader of epoch -1: a read out of range gives NONE.
    return s.epoch_leader[s.leader_epoch[replica]] == replica


def _is_undecided(k: Algebra, s: View) -> Value:
    return s.candidate != k.NONE


def _has_bytes(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    # A full reset deletes every snapshot: its LEO is where the log begins again, or the snapshot's id where one is
    # fetched, before which there is none.
    kept = k.any(s.fetching[replica] == -1, s.fetching[replica] <= offset)
    return k.all(s.snapshot_size[replica, offset] > 0, offset < s.leo[replica], kept)


def _is_counted(k: Algebra, s: View, leader: Value, offset: Value) -> Value:
    return k.all(presumes_leadership(k, s, leader), s.hw[leader] <= offset, offset < s.leo[leader])


snapshots.variable(
    "newest_epoch",
    "the newest leader epoch for which anyone stood",
    _EPOCHS,
    initially=-1,
    present=in_whole_exchanges,
)
snapshots.variable(
    "candidate",
    "who stands for it, until it is decided",
    OPTIONAL_REPLICA,
    initially=-1,
    present=in_whole_exchanges,
)
snapshots.variable("votes", "who voted for the candidate", REPLICA_SET, live=_is_undecided, present=in_whole_exchanges)
snapshots.variable("voters", "the replicas that are no observers", REPLICA_SET, initially=_all_voters)
snapshots.variable("epoch_leader", "who leads an epoch", OPTIONAL_REPLICA, per=(EPOCH,), initially=-1)
snapshots.variable("leader_epoch", "the leader epoch that a replica is in", _EPOCHS, per=(REPLICA,), initially=-1)
snapshots.variable("lbo", "log begin offset", _END_OFFSETS, per=(REPLICA,))
snapshots.variable("leo", "log end offset, exclusive", _END_OFFSETS, per=(REPLICA,))
snapshots.variable("hw", "the high watermark that a replica knows, exclusive", _END_OFFSETS, per=(REPLICA,))
snapshots.variable(
    "record_epoch",
    "the leader epoch of the record at an offset",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
    live=in_log,
)
snapshots.variable(
    "acknowledged",
    "the followers that a leader knows to hold its log up to an offset",
    REPLICA_SET,
    per=(REPLICA, OFFSET),
    live=_is_counted,
    present=in_whole_exchanges,
)
snapshots.variable(
    "snapshot_size",
    "the size in chunks of the snapshot whose last offset this is; 0 where there is none",
    integers(0, lambda c: c["max_chunks"]),
    per=(REPLICA, OFFSET),
    live=_has_bytes,
    dead=0,
)
snapshots.variable(
    "snapshot_epoch",
    "the epoch in that snapshot's id",
    _EPOCHS,
    per=(REPLICA, OFFSET),
    initially=-1,
    live=_has_bytes,
)
snapshots.variable(
    "snapshot_records",
    "how many records, from the first on, whoever loads that snapshot finds in it",
    integers(-1, lambda c: c["log_size"]),
    per=(REPLICA, OFFSET),
    initially=-1,
    live=_has_bytes,
)
snapshots.variable(
    "fetching", "the last offset of the snapshot being fetched, or -1", _OPTIONAL_OFFSETS, per=(REPLICA,), initially=-1
)
snapshots.variable("fetching_epoch", "the epoch in its id", _EPOCHS, per=(REPLICA,), initially=-1)
snapshots.variable(
    "position",
    "how many chunks of it there are; -1 where none is fetched",
    integers(-1, lambda c: c["max_chunks"]),
    per=(REPLICA,),
    initially=-1,
)

snapshots.variable(
    "lbo_reached",
    "the largest LBO since the last full reset",
    _END_OFFSETS,
    per=(REPLICA,),
    present=in_whole_exchanges,
)
snapshots.variable(
    "committed", "the epoch of the record that was committed at an offset", _EPOCHS, per=(OFFSET,), initially=-1
)


def has_snapshot(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The replica has a complete snapshot whose last offset this is."""
    return k.all(s.snapshot_size[replica, offset] > 0, s.fetching[replica] != offset)


def latest_snapshot(k: Algebra, s: View, replica: Value) -> Value:
    """The last offset of the replica's latest complete snapshot, or -1."""
    return k.last(OFFSET, lambda o: has_snapshot(k, s, replica, o), -1)


def epoch_at(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
    """The epoch at an offset, by the log or by a snapshot that ends there; -1 where the replica cannot know."""
    by_snapshot = k.ite(s.fetching[replica] == offset, s.fetching_epoch[replica], s.snapshot_epoch[replica, offset])
    return k.ite(s.lbo[replica] <= offset, s.record_epoch[replica, offset], by_snapshot)


def last_epoch(k: Algebra, s: View, replica: Value) -> Value:
    """The epoch of the last record that the replica has, in its log or in its snapshot."""
    return epoch_at(k, s, replica, s.leo[replica] - 1)


def vote_log(k: Algebra, s: View, replica: Value) -> tuple[Value, Value]:
    """The LastOffsetEpoch of a vote, and its LastOffset plus one (KIP-630, "Changes to Leader Election")."""
    if not k.rules.votes_as_empty:
        return last_epoch(k, s, replica), s.leo[replica]
    empty = is_fetching(s, replica)
    return k.ite(empty, -1, last_epoch(k, s, replica)), k.ite(empty, 0, s.leo[replica])


def enter_epoch(k: Algebra, s: View, replica: Value, epoch: Value) -> dict[str, Value]:
    """What changes at a replica that takes up an epoch. With ``fetches_anew``, chunks of an older leader go."""
    entered: dict[str, Value] = {"leader_epoch": {replica: epoch}}
    if k.rules.running:
        entered |= {"voted": {replica: k.NONE}, "leader": {replica: k.NONE}, "supporters": {replica: k.EMPTY}}
    if k.rules.fetches_anew:
        entered["position"] = {replica: k.ite(is_fetching(s, replica), 0, -1)}
        entered["snapshot_size"] = {(replica, s.fetching[replica]): 0}
    return entered
