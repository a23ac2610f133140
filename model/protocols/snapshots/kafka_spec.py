"""``kip-630-kafka``: what Apache Kafka's quorum nodes do, as a variant of the text that running quorums are held to.

It is ``kip-630-quorum`` in other steps wherever Kafka differs (``specs/DEVIATIONS.md``, rows F). **A snapshot is
fetched beside the log**, which is cut when the last bytes have come, and whoever changes its role gives the snapshot
up. **Each node cleans its own log**, to the end of a snapshot of its own; nobody follows a leader's log start. **A
fetch is validated by the earliest snapshot** (``RaftLog.validateOffsetAndEpoch``), and one from 0 is answered with a
snapshot wherever there is one. **Whoever restarts** is in the role that its state file says, but for a leader, which
has resigned, and knows no high watermark. **A pre-vote** (KIP-996) changes nothing but the epoch of whom it reaches.
A leader that has resigned still names itself, and tells no high watermark that it has not reached in its own epoch.

Everything else is the protocol's own text, variable by variable and action by action.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import wraps
from typing import Any, Final

from ...core.algebra import Algebra, Step, Value, View
from ...core.domains import REPLICA
from ...core.protocol import ActionSpec, ActionText, Protocol
from ...core.tla import TlaModule
from ..logs import END_OFFSET, OFFSET
from . import snapshots
from .fetch import Writes, follows
from .state import (
    Rules,
    epoch_at,
    has_snapshot,
    is_fetching,
    last_epoch,
    latest_snapshot,
    presumes_leadership,
)
from .tla import LATE
from .tla import module as quorum_module

VARIANT: Final = "kip-630-kafka"
SHIPPED: Final = "kip-630-kafka-shipped"


@dataclass(frozen=True)
class Shipped(Rules):
    """The rules of what is shipped; which of them hold is what the actions below say.

    ``ends``: as in 4.4.0, a process ends where a voter calls its request for a vote invalid (row F22), and errors of
    FetchSnapshot are told as UNKNOWN_SERVER_ERROR (F24), which says nothing.
    """

    ends: bool = False


def is_shipped(rules: object) -> bool:
    return isinstance(rules, Shipped)


text = Protocol(snapshots.name, snapshots.source, constants=tuple(snapshots.constants.values()))
"""All variants of ``snapshots``, and those of what is shipped."""

text.indices |= snapshots.indices
_NOT_SHIPPED: Final = {
    "hear_of_candidate",
    "look_for_leader",
    "leader_advance_lbo",
    "delete_records",
    "delete_snapshot",
    "resume_empty",
    "lose_begin",
    "lose_tail",
    "truncate_batch",
    "lose_snapshot",
    "lose_log",
}
"""What Kafka has another step for, or none: its process ends between two polls, and its disk keeps what it has."""


def _snapshot_live(own: Callable[..., Value] | None) -> Callable[..., Value]:
    def live(k: Algebra, s: View, replica: Value, offset: Value) -> Value:
        assert own is not None
        if is_shipped(k.rules):
            return k.all(s.snapshot_size[replica, offset] > 0, s.lbo[replica] <= offset + 1)
        return own(k, s, replica, offset)

    return live


def _but_shipped(present: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda rules: present(rules) and not is_shipped(rules)


for _name, _variable in snapshots.variables.items():
    _live: Any = _variable.live
    text.variables[_name] = (
        replace(_variable, live=_snapshot_live(_live)) if _name.startswith("snapshot_") else _variable
    )
for _name, _action in snapshots.actions.items():
    text.actions[_name] = replace(_action, present=_but_shipped(_action.present)) if _name in _NOT_SHIPPED else _action
text.invariants |= snapshots.invariants
text.witnesses |= snapshots.witnesses


@text.tla_module
def module(rules: Rules) -> TlaModule:
    """Give the TLA+ module of a variant, of Kafka's or of ``snapshots``."""
    if isinstance(rules, Shipped):
        return TlaModule("KafkaQuorum", lacks=LATE)
    return quorum_module(rules)


def _instead(own: ActionText) -> ActionText:
    """Kafka's text of an action, under the name that it has."""
    spec: ActionSpec = snapshots.actions[own.__name__]

    @wraps(spec.text)
    def either(k: Algebra, s: View, *params: Value, **named: Value) -> Step:
        yield from (own if is_shipped(k.rules) else spec.text)(k, s, *params, **named)

    text.actions[own.__name__] = replace(spec, text=either)
    return own


# -- roles ------------------------------------------------------------------------------------------------------------


def _without_partial(k: Algebra, s: View, replica: Value, changes: Value = True) -> Writes:
    """Whoever changes its role closes the snapshot that it was fetching, which deletes it (``FollowerState.close``)."""
    kept = k.negate(changes)
    return {
        name: {replica: k.ite(kept, getattr(s, name)[replica], -1)}
        for name in ("fetching", "fetching_epoch", "position")
    }


def _enter_epoch(k: Algebra, s: View, replica: Value, epoch: Value) -> Writes:
    """A newer epoch, in which nobody is known to lead (``transitionToUnattached``)."""
    return {
        "leader_epoch": {replica: epoch},
        "voted": {replica: k.NONE},
        "leader": {replica: k.NONE},
        "supporters": {replica: k.EMPTY},
        **_without_partial(k, s, replica),
    }


def _follow(k: Algebra, s: View, replica: Value, other: Value, leader: Value) -> Writes:
    """``maybeTransition``: a newer epoch is entered, and in the same one a leader is heard of.

    A vote in the same epoch stays.
    """
    newer = s.leader_epoch[replica] < s.leader_epoch[other]
    return {
        "leader_epoch": {replica: s.leader_epoch[other]},
        "voted": {replica: k.ite(newer, k.NONE, s.voted[replica])},
        "leader": {replica: leader},
        "supporters": {replica: k.EMPTY},
        **_without_partial(k, s, replica, k.any(newer, s.leader[replica] == k.NONE)),
    }


def _has_led(s: View, replica: Value) -> Value:
    """It was elected for the epoch that it is in; it leads, or has resigned."""
    return s.epoch_leader[s.leader_epoch[replica]] == replica


@_instead
def stand(k: Algebra, s: View, replica: Value, epoch: Value) -> Step:
    """A voter that most voters would vote for stands for its next epoch (KIP-996)."""
    yield "is_voter", k.member(replica, s.voters)
    yield "not_leading", k.negate(presumes_leadership(k, s, replica))
    yield "epoch_next", epoch == s.leader_epoch[replica] + 1
    entered = _enter_epoch(k, s, replica, epoch)
    yield s.update(**entered | {"voted": {replica: replica}, "supporters": {replica: k.only(replica)}})


@text.action(replica=REPLICA, teller=REPLICA, present=is_shipped)
def hear_of_epoch(k: Algebra, s: View, replica: Value, teller: Value) -> Step:
    """Whoever is asked for its vote, or whether it would give it, enters the epoch of who asks."""
    yield "not_told_by_itself", replica != teller
    yield "epoch_newer", s.leader_epoch[replica] < s.leader_epoch[teller]
    yield s.update(**_enter_epoch(k, s, replica, s.leader_epoch[teller]))


@text.action(replica=REPLICA, present=is_shipped)
def lose_election(k: Algebra, s: View, replica: Value) -> Step:
    """A candidate whose election timeout runs off stands no more; its vote is its own still (``pollCandidate``)."""
    yield "candidate_stands", k.member(replica, s.supporters[replica])
    yield s.update(supporters={replica: k.EMPTY})


@text.action(replica=REPLICA, present=is_shipped)
def leave_epoch(k: Algebra, s: View, replica: Value) -> Step:
    """A leader that has resigned, or has restarted, enters the next epoch after a while (``pollResigned``)."""
    yield "has_resigned", k.all(_has_led(s, replica), k.negate(presumes_leadership(k, s, replica)))
    yield s.update(**_enter_epoch(k, s, replica, s.leader_epoch[replica] + 1))


@_instead
def take_office(k: Algebra, s: View, replica: Value) -> Step:
    """With a majority of votes a candidate leads."""
    yield "candidate_stands", k.member(replica, s.supporters[replica])
    yield "majority_voted", k.majority(s.supporters[replica], s.voters)
    yield s.update(
        leader={replica: replica},
        supporters={replica: k.EMPTY},
        epoch_leader={s.leader_epoch[replica]: replica},
    )


def _hears(k: Algebra, s: View, replica: Value, teller: Value, named: Value) -> Step:
    """Guards and update of who hears, in an answer, of an epoch and of whom leads it."""
    newer = s.leader_epoch[replica] < s.leader_epoch[teller]
    same = s.leader_epoch[replica] == s.leader_epoch[teller]
    told = k.ite(named == replica, k.NONE, named)
    yield "not_told_by_itself", replica != teller
    yield "is_news", k.any(newer, k.all(same, told != k.NONE, s.leader[replica] == k.NONE))
    yield s.update(**_follow(k, s, replica, teller, told))


@_instead
def learn_leader(k: Algebra, s: View, replica: Value, teller: Value) -> Step:
    """An answer tells of a newer epoch, or of who leads its own."""
    yield from _hears(k, s, replica, teller, s.leader[teller])


@text.action(replica=REPLICA, teller=REPLICA, present=is_shipped)
def learn_resigned_leader(k: Algebra, s: View, replica: Value, teller: Value) -> Step:
    """The same of who has resigned, or has restarted: until it leaves the epoch, it names itself."""
    yield "has_resigned", k.all(_has_led(s, teller), k.negate(presumes_leadership(k, s, teller)))
    yield from _hears(k, s, replica, teller, teller)


@_instead
def begin_epoch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A leader tells a voter that it leads."""
    newer = s.leader_epoch[follower] < s.leader_epoch[leader]
    yield "not_leader_itself", leader != follower
    yield "presumes_leadership", presumes_leadership(k, s, leader)
    yield "is_voter", k.member(follower, s.voters)
    yield "epoch_not_fenced", s.leader_epoch[follower] <= s.leader_epoch[leader]
    yield "no_other_leader", k.any(newer, s.leader[follower] == k.NONE, s.leader[follower] == leader)
    yield s.update(**_follow(k, s, follower, leader, leader))


@_instead
def end_epoch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A voter hears that an epoch was given up, and follows who led it until its fetch timeout, which is short then."""
    newer = s.leader_epoch[follower] < s.leader_epoch[leader]
    yield "not_leader_itself", leader != follower
    yield "was_elected", _has_led(s, leader)
    yield "has_resigned", s.leader[leader] == k.NONE
    yield "is_voter", k.member(follower, s.voters)
    yield "epoch_not_fenced", s.leader_epoch[follower] <= s.leader_epoch[leader]
    yield "no_other_leader", k.any(newer, s.leader[follower] == k.NONE, s.leader[follower] == leader)
    yield s.update(**_follow(k, s, follower, leader, leader))


# -- fetching ---------------------------------------------------------------------------------------------------------


def _end_of_epoch(k: Algebra, s: View, replica: Value, epoch: Value) -> tuple[Value, Value]:
    """``RaftLog.endOffsetForEpoch``: the largest epoch up to this one in a log, and where it ends.

    Of an epoch below all in the log it is that of the snapshot where the log begins, and that epoch itself where it
    begins at 0.
    """
    start = _larger_start(k, s, replica, epoch)
    return k.ite(k.all(start == 0, s.leo[replica] > 0), epoch, epoch_at(k, s, replica, start - 1)), start


def _larger_start(k: Algebra, s: View, replica: Value, epoch: Value) -> Value:
    """Where the first larger epoch begins in a log; the LEO where none does."""
    return k.first(OFFSET, lambda o: s.record_epoch[replica, o] > epoch, s.leo[replica])


def _gets_snapshot(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """A fetch is answered with a snapshot id: from 0 always, and wherever the earliest snapshot says more.

    Where a log does not begin at 0, its earliest snapshot ends where it begins; the earliest one has the least epoch.
    """
    at, epoch, begin = s.leo[follower], last_epoch(k, s, follower), s.lbo[leader]
    any_there = k.exists(OFFSET, lambda o: has_snapshot(k, s, leader, o))
    other = k.all(at == begin, epoch != s.snapshot_epoch[leader, begin - 1])
    older = k.forall(OFFSET, lambda o: k.implies(has_snapshot(k, s, leader, o), epoch < s.snapshot_epoch[leader, o]))
    return k.all(any_there, k.any(at == 0, at < begin, other, older))


def _matches(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    """The leader has the follower's last record."""
    epoch = last_epoch(k, s, follower)
    found, end = _end_of_epoch(k, s, leader, epoch)
    return k.any(s.leo[follower] == 0, k.all(found == epoch, s.leo[follower] <= end))


def _serves(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    yield from follows(k, s, leader, follower)
    yield "reaches_back", k.negate(_gets_snapshot(k, s, leader, follower))
    yield "last_record_matches", _matches(k, s, leader, follower)


def _told_high_watermark(k: Algebra, s: View, leader: Value) -> Value:
    """A leader's high watermark once it has reached a record of its own epoch; -1 before (``LeaderState``)."""
    hw = s.hw[leader]
    return k.ite(epoch_at(k, s, leader, hw - 1) == s.leader_epoch[leader], hw, -1)


@_instead
def follower_fetch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A fetch that the leader serves brings the next record, if any, and the leader's high watermark."""
    yield from _serves(k, s, leader, follower)
    at = s.leo[follower]
    end = k.min(at + 1, s.leo[leader])
    yield s.update(
        leo={follower: end},
        record_epoch={(follower, at): s.record_epoch[leader, at]},
        hw={follower: k.max(s.hw[follower], k.min(_told_high_watermark(k, s, leader), end))},
    )


@_instead
def count_fetch(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A leader counts a voter's fetch that it serves: the last one, be it an old one that comes late."""
    yield from _serves(k, s, leader, follower)
    yield "is_voter", k.member(follower, s.voters)
    yield "synced", s.synced[follower] == s.leo[follower]
    yield s.update(counted={(leader, follower): s.leo[follower]})


@_instead
def follower_truncate(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A fetch finds that the logs diverge: the follower truncates (``RaftLog.truncateToEndOffset``)."""
    yield from follows(k, s, leader, follower)
    yield "reaches_back", k.negate(_gets_snapshot(k, s, leader, follower))
    yield "diverges", k.negate(_matches(k, s, leader, follower))
    epoch, theirs = _end_of_epoch(k, s, leader, last_epoch(k, s, follower))
    mine = _larger_start(k, s, follower, epoch)
    # Where the follower has not that epoch itself, it keeps what it has up to it, and asks again.
    has_it = k.any(mine <= s.lbo[follower], epoch_at(k, s, follower, mine - 1) == epoch)
    end = k.ite(has_it, k.min(theirs, mine), mine)
    yield s.update(leo={follower: end}, synced={follower: k.min(end, s.synced[follower])})


@_instead
def follower_start_over(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """A fetch is answered with the id of the latest snapshot, which the follower fetches beside its log.

    One that it has already it does not fetch.
    """
    yield from follows(k, s, leader, follower)
    yield "begins_later", _gets_snapshot(k, s, leader, follower)
    yield "snapshot_exists", latest_snapshot(k, s, leader) != -1
    offset = latest_snapshot(k, s, leader)
    epoch = s.snapshot_epoch[leader, offset]
    has_it = k.all(has_snapshot(k, s, follower, offset), s.snapshot_epoch[follower, offset] == epoch)
    yield s.update(
        fetching={follower: k.ite(has_it, -1, offset)},
        fetching_epoch={follower: k.ite(has_it, -1, epoch)},
        position={follower: k.ite(has_it, -1, 0)},
    )


def _is_found(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
    offset = s.fetching[follower]
    return k.all(has_snapshot(k, s, leader, offset), s.snapshot_epoch[leader, offset] == s.fetching_epoch[follower])


@_instead
def fetch_snapshot(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The next chunk of the snapshot; with the last one the log begins where the snapshot ends, and is empty."""
    offset, position = s.fetching[follower], s.position[follower]
    size = s.snapshot_size[leader, offset]
    yield "is_fetching", is_fetching(s, follower)
    yield from follows(k, s, leader, follower)
    yield "snapshot_found", _is_found(k, s, leader, follower)
    yield "position_in_range", position < size
    complete = position + 1 == size
    at = (follower, offset)

    def then(name: str, value: Value) -> dict[Value, Value]:
        return {follower: k.ite(complete, value, getattr(s, name)[follower])}

    yield s.update(
        **{name: then(name, offset + 1) for name in ("lbo", "leo", "hw", "synced")},
        **{name: then(name, -1) for name in ("fetching", "fetching_epoch")},
        position={follower: k.ite(complete, -1, position + 1)},
        snapshot_size={at: k.ite(complete, size, 0)},
        snapshot_epoch={at: s.fetching_epoch[follower]},
        snapshot_records={at: s.snapshot_records[leader, offset]},
    )


@_instead
def rediscover_at(k: Algebra, s: View, leader: Value, follower: Value) -> Step:
    """The leader has no such snapshot any more: the follower gives it up, and fetches by its log again."""
    yield "is_fetching", is_fetching(s, follower)
    yield "not_leader_itself", leader != follower
    yield "epoch_not_fenced", s.leader_epoch[follower] == s.leader_epoch[leader]
    refused = k.all(presumes_leadership(k, s, leader), k.negate(_is_found(k, s, leader, follower)))
    yield "fetch_refused", refused
    yield s.update(**_without_partial(k, s, follower))


@text.action(replica=REPLICA, present=is_shipped)
def give_up_snapshot(k: Algebra, s: View, replica: Value) -> Step:
    """A follower whose fetch timeout runs off is no follower any more, and has no snapshot that it fetches."""
    yield "is_fetching", is_fetching(s, replica)
    yield s.update(**_without_partial(k, s, replica))


# -- snapshots, cleaning, restarts ------------------------------------------------------------------------------------


@_instead
def generate_snapshot(k: Algebra, s: View, replica: Value, offset: Value, more: Value) -> Step:
    """A state machine has a snapshot made of what it had applied at the end of a batch (``createSnapshot``)."""
    latest = latest_snapshot(k, s, replica)
    applied = k.max(s.snapshot_records[replica, latest], 0)
    yield "below_high_watermark", k.all(s.lbo[replica] <= offset, offset < s.hw[replica])
    yield "later_than_latest", latest < offset
    # An observer never syncs its log: nobody counts on it.
    yield "synced", k.any(offset < s.synced[replica], k.negate(k.member(replica, s.voters)))
    yield s.update(
        snapshot_size={(replica, offset): more + 1},
        snapshot_epoch={(replica, offset): s.record_epoch[replica, offset]},
        snapshot_records={(replica, offset): k.ite(s.lbo[replica] <= applied, offset + 1, applied)},
    )


@text.action(replica=REPLICA, lbo=END_OFFSET, present=is_shipped)
def delete_before_snapshot(k: Algebra, s: View, replica: Value, lbo: Value) -> Step:
    """A node's log begins at the end of a snapshot of its own, and earlier snapshots go (``deleteBeforeSnapshot``)."""
    yield "increases", s.lbo[replica] < lbo
    yield "snapshot_exists", has_snapshot(k, s, replica, lbo - 1)
    yield "below_high_watermark", lbo <= s.hw[replica]
    yield s.update(lbo={replica: lbo}, synced={replica: k.max(lbo, s.synced[replica])})


@_instead
def resume(k: Algebra, s: View, replica: Value, end: Value) -> Step:
    """A process starts in the role that its state file names: who has led has resigned, who has stood stands.

    So it does though it has heard meanwhile who leads (``QuorumState.initialize``). Its high watermark is where its log
    begins.
    """
    yield "keeps_synced", s.synced[replica] <= end
    yield "was_written", end <= s.leo[replica]
    yield "log_valid", k.any(s.lbo[replica] == 0, s.lbo[replica] - 1 <= latest_snapshot(k, s, replica))
    led = s.leader[replica] == replica
    stands = k.all(s.voted[replica] == replica, k.negate(_has_led(s, replica)))
    yield s.update(
        leo={replica: end},
        hw={replica: s.lbo[replica]},
        leader={replica: k.ite(k.any(led, stands), k.NONE, s.leader[replica])},
        supporters={replica: k.ite(stands, k.only(replica), k.EMPTY)},
        **_without_partial(k, s, replica),
    )


# The safe one is last, as it is there.
_SAFE: Final = snapshots.default_variant
text.variants |= {name: each for name, each in snapshots.variants.items() if name != _SAFE}
text.variant(
    VARIANT,
    Shipped(votes_as_empty=False, as_nodes=True, running=True),
    "what Apache Kafka's quorum nodes do, as of 4.4.0, and nobody's process ends by itself",
    restarts=True,
)
text.variant(
    SHIPPED,
    Shipped(votes_as_empty=False, as_nodes=True, running=True, ends=True),
    "kip-630-kafka with what is wrong in 4.4.0: whose process ends by itself, and which errors are never told",
    restarts=True,
)
text.variants[_SAFE] = snapshots.variants[_SAFE]

printed = Protocol("kafka-quorum", snapshots.source, constants=tuple(snapshots.constants.values()))
"""The variants of what is shipped alone, under a name of their own: traces of what a quorum has printed are of these.

`fencepost replay` and `fencepost mine` take it by its place.
"""

for _kind in ("indices", "variables", "actions", "invariants", "witnesses"):
    getattr(printed, _kind).update(getattr(text, _kind))
printed.variants |= {SHIPPED: text.variants[SHIPPED], VARIANT: text.variants[VARIANT]}
