"""The binding of ``snapshots``: what the nodes of a quorum answer, by KIP-595 and KIP-630.

Whoever asks in an older epoch gets FENCED_REPLICA (Kafka's FENCED_LEADER_EPOCH), in a newer one UNKNOWN_LEADER_EPOCH,
and whoever leads nothing answers NOT_LEADER_OR_FOLLOWER. FetchSnapshot has SNAPSHOT_NOT_FOUND and POSITION_OUT_OF_RANGE
besides. A vote that is refused is no error. INVALID_REQUEST has whoever says that it leads, or led, an epoch that has
another leader.

What a timer does is named by a system that runs freely, where its timer fires.
"""

from __future__ import annotations

from typing import Final

from ....model.core.algebra import Algebra, Value, View
from ....model.core.domains import REPLICA
from ....model.protocols.logs import OFFSET
from ...lockstep.binding import (
    BOUND,
    FENCED,
    ITSELF,
    NOT_LEADER,
    NOTHING,
    UNKNOWN_EPOCH,
    ActionBinding,
    Answer,
    Binding,
    Effect,
    Exchange,
    Rule,
    Sight,
    environment,
    error,
    unasked,
)

NOT_FOUND: Final = "SNAPSHOT_NOT_FOUND"
OUT_OF_RANGE: Final = "POSITION_OUT_OF_RANGE"

_NO_VOTER = environment("an observer is not asked")
_CRASH = environment("it is what a crash is, and no action")
_LATE = environment("what the network holds back is a fault, delay-response")


def _epoch_leader(s: Sight, epoch: int) -> int:
    return s.cell("epoch_leader", epoch)


def _told_by(s: Sight) -> int:
    """Who tells of an epoch: its leader."""
    return _epoch_leader(s, s["epoch"])


def _own_leader(s: Sight) -> int:
    """Whom a follower asks: the leader of its epoch, -1 where there is none."""
    return _epoch_leader(s, s.cell("leader_epoch", s["follower"]))


def _candidate(s: Sight) -> int:
    return s.cell("candidate")


def _fenced(s: Sight) -> Answer:
    """What the leader's epoch has for the follower's."""
    mine, theirs = s.cell("leader_epoch", s["follower"]), s.cell("leader_epoch", s["leader"])
    return error(FENCED if mine < theirs else UNKNOWN_EPOCH)


def _is_told(s: Sight) -> Answer:
    """A voter in a newer epoch fences the leader; an observer is told by answers to its own requests only."""
    follower = s["follower"]
    if follower == _told_by(s):
        return ITSELF
    is_voter = s.cell("voters") >> follower & 1
    return error(FENCED) if is_voter and s["epoch"] < s.cell("leader_epoch", follower) else unasked()


_FOLLOWS: Final[dict[str, Rule]] = {
    "not_leader_itself": ITSELF,
    "presumes_leadership": error(NOT_LEADER),
    "epoch_not_fenced": _fenced,
}
_SERVED: Final[dict[str, Rule]] = {
    **_FOLLOWS,
    # Without a snapshot there is nothing to answer such a fetch with; else another answer is the right one.
    "reaches_back": error(NOT_FOUND),
    "last_record_matches": NOTHING,
}
_CHUNK: Final[dict[str, Rule]] = {
    "is_fetching": unasked(),
    **_FOLLOWS,
    "snapshot_found": error(NOT_FOUND),
    "position_in_range": error(OUT_OF_RANGE),
}
_BEGINS: Final[dict[str, Rule]] = {
    "presumes_leadership": error(NOT_LEADER),
    "increases": NOTHING,
    "snapshot_includes": error("OFFSET_OUT_OF_RANGE"),
    "replicated_or_old": error("REQUEST_TIMED_OUT"),
}
_PAIR = (("leader", "follower"),)
_VOTE = "vote"
_FETCH = "fetch"


def _fetch(guards: dict[str, Rule], effect: Effect = Effect.ASKER, stores: str | None = "follower") -> ActionBinding:
    """One of the answers to a fetch."""
    exchange = Exchange("follower", "leader", effect)
    return ActionBinding(guards, exchange, stores=stores, always=False, distinct=_PAIR, poll=_FETCH)


def _all(rule: Answer, *guards: str) -> ActionBinding:
    return ActionBinding(dict.fromkeys(guards, rule))


_ASKS_FOR_VOTE: Final[dict[str, Rule]] = {
    "not_candidate_itself": ITSELF,
    "candidate_stands": unasked(),
    "is_voter": _NO_VOTER,
}
_TOLD_BY_LEADER: Final[dict[str, Rule]] = {
    "not_leader_itself": ITSELF,
    "is_voter": _NO_VOTER,
    "epoch_not_fenced": error(FENCED),
    "no_other_leader": error("INVALID_REQUEST"),
}


def _named(*guards: str) -> ActionBinding:
    """What a node does within itself when a timer fires, or when it is told to."""
    return ActionBinding(dict.fromkeys(guards, unasked()), named=True)


def _torn(*guards: str) -> ActionBinding:
    """What a loss of power leaves of what the answer to a fetch has led to."""
    return ActionBinding(dict.fromkeys(guards, _CRASH), Exchange("follower", "leader", Effect.ASKER), torn=True)


_ELECTION = (("candidate", "voter"),)
_NAMES_SNAPSHOT = ("not_leader_itself", "presumes_leadership", "epoch_not_fenced", "begins_later", "snapshot_exists")

_FOLLOWING = tuple(_FOLLOWS)
_ARRIVING = ("addressed_to", "epoch_not_fenced", "answers_request")


def _caught_up(k: Algebra, s: View, well: Value) -> Value:
    """Whoever follows a leader has its log to the end, and no snapshot that is half fetched."""
    if not k.rules.running:
        return True

    def has_all(replica: Value) -> Value:
        leader = s.leader[replica]
        led = k.all(leader != k.NONE, s.leader[leader] == leader, s.leader_epoch[leader] == s.leader_epoch[replica])
        whole = k.all(s.fetching[replica] == -1, s.leo[replica] == s.leo[leader])
        return k.implies(k.all(k.member(replica, well), led, k.member(leader, well)), whole)

    return k.forall(REPLICA, has_all)


def _all_is_committed(k: Algebra, s: View, well: Value) -> Value:
    """Whoever leads all that are well, a majority, has committed its log if the last record is its own; they know."""
    if not k.rules.running:
        return True

    epoch = s.leader_epoch

    def follows(replica: Value, leader: Value) -> Value:
        return k.all(s.leader[replica] == leader, epoch[replica] == epoch[leader])

    def knows(replica: Value, leader: Value) -> Value:
        return k.implies(k.member(replica, well), s.hw[replica] == s.leo[leader])

    def committed(leader: Value) -> Value:
        heard = k.forall(REPLICA, lambda r: k.implies(k.member(r, well), follows(r, leader)))
        last = k.exists(
            OFFSET, lambda o: k.all(o + 1 == s.leo[leader], s.record_epoch[leader, o] == s.leader_epoch[leader])
        )
        leads = k.all(k.member(leader, well), k.majority(well, s.voters), heard, last)
        return k.implies(leads, k.forall(REPLICA, lambda r: knows(r, leader)))

    return k.forall(REPLICA, committed)


def _somebody_leads(k: Algebra, s: View, well: Value) -> Value:
    """Somebody who is well leads, and nobody who is well is ahead, where a majority of the voters is well."""
    if not k.rules.running:
        return True
    left = k.forall(REPLICA, lambda r: s.leader_epoch[r] < k.c.max_leader_epoch)

    def leads(replica: Value) -> Value:
        behind = k.forall(REPLICA, lambda r: k.implies(k.member(r, well), s.leader_epoch[r] <= s.leader_epoch[replica]))
        return k.all(k.member(replica, well), s.leader[replica] == replica, behind)

    return k.implies(k.all(k.majority(well, s.voters), left), k.exists(REPLICA, leads))


SNAPSHOTS: Final = Binding(
    "snapshots",
    {
        "become_candidate": ActionBinding(
            {"is_voter": unasked(), "not_leading": unasked(), "epoch_available": BOUND},
        ),
        "grant_vote": ActionBinding(
            {"candidate_stands": unasked(), "is_voter": _NO_VOTER, "epoch_newer": unasked(), "up_to_date": NOTHING},
            Exchange(_candidate, "voter", Effect.BOTH),
            poll=_VOTE,
        ),
        "hear_vote": ActionBinding(
            {
                "vote_granted": environment("the voter has granted none"),
                "candidate_stands": unasked(),
                "asked_by_candidate": unasked(),
                "of_this_candidacy": unasked(),
                "not_counted": unasked(),
            },
        ),
        "refuse_vote": ActionBinding(
            {"candidate_stands": unasked(), "is_voter": _NO_VOTER, "epoch_newer": unasked(), "out_of_date": unasked()},
            Exchange(_candidate, "voter", Effect.ASKED),
            poll=_VOTE,
        ),
        "become_follower": ActionBinding(
            {"leader_elected": environment("there is nobody to tell of the epoch"), "epoch_newer": _is_told},
            Exchange(_told_by, "follower", Effect.ASKED),
        ),
        "leader_write": ActionBinding(
            {"presumes_leadership": error(NOT_LEADER), "log_not_full": BOUND}, stores="leader"
        ),
        "leader_inc_high_watermark": _all(
            unasked(), "presumes_leadership", "above_high_watermark", "of_own_epoch", "majority_acknowledges"
        ),
        "follower_fetch": _fetch(_SERVED),
        "follower_acknowledge": _fetch(_SERVED, Effect.ASKED, None),
        # A disk that fails on the way leaves part of a log, or of a full reset: there is no such step.
        "follower_truncate": _fetch({**_FOLLOWS, "reaches_back": error(NOT_FOUND), "diverges": NOTHING}, stores=None),
        "follower_start_over": _fetch(
            {**_FOLLOWS, "begins_later": NOTHING, "snapshot_exists": error(NOT_FOUND)}, stores=None
        ),
        "fetch_snapshot": ActionBinding(
            _CHUNK, Exchange("follower", "leader", Effect.ASKER), stores="follower", always=False, distinct=_PAIR
        ),
        "rediscover_snapshot": ActionBinding(
            {"is_fetching": unasked(), "fetch_refused": unasked(NOT_LEADER, FENCED, UNKNOWN_EPOCH)},
            Exchange("follower", _own_leader, Effect.ASKER),
        ),
        "generate_snapshot": ActionBinding(
            dict.fromkeys(
                ("state_loaded", "below_high_watermark", "later_than_latest", "enough_records", "synced"), unasked()
            ),
            stores="replica",
            named=True,
        ),
        "leader_advance_lbo": _named(*_BEGINS),
        "delete_records": ActionBinding(_BEGINS, Exchange(None, "leader", Effect.ASKED)),
        "delete_snapshot": _named("is_complete", "below_lbo"),
        "restart": _all(_CRASH, "was_known", "log_valid"),
        "restart_empty": _all(_CRASH, "was_known", "log_not_valid"),
        "hold_records": _all(_LATE, *_SERVED),
        "hold_divergence": _all(_LATE, *_FOLLOWING, "reaches_back", "diverges"),
        "hold_snapshot": _all(_LATE, *_FOLLOWING, "begins_later", "snapshot_exists"),
        "hold_chunk": _all(_LATE, *_CHUNK),
        "late_records": _all(_LATE, *_ARRIVING),
        "late_divergence": _all(_LATE, *_ARRIVING),
        "late_snapshot": _all(_LATE, *_ARRIVING),
        "late_chunk": _all(_LATE, "is_fetching", *_ARRIVING),
        # A quorum that runs by itself.
        "stand": _named("is_voter", "not_leading", "epoch_next"),
        "look_for_leader": _named("is_observer", "knows_leader"),
        "give_vote": ActionBinding(
            {
                **_ASKS_FOR_VOTE,
                "epoch_not_fenced": error(FENCED),
                "in_its_epoch": NOTHING,
                "vote_free": NOTHING,
                "up_to_date": NOTHING,
            },
            Exchange("candidate", "voter", Effect.ASKED),
            distinct=_ELECTION,
        ),
        "hear_of_candidate": ActionBinding(
            {**_ASKS_FOR_VOTE, "epoch_newer": unasked()},
            Exchange("candidate", "voter", Effect.ASKED),
            distinct=_ELECTION,
        ),
        "count_vote": ActionBinding(
            {**_ASKS_FOR_VOTE, "vote_given": unasked()},
            Exchange("candidate", "voter", Effect.ASKER),
            distinct=_ELECTION,
        ),
        "take_office": _all(unasked(), "candidate_stands", "majority_voted"),
        "learn_leader": ActionBinding(
            {"not_told_by_itself": ITSELF, "is_news": unasked()}, Exchange("replica", "teller", Effect.ASKER)
        ),
        "begin_epoch": ActionBinding(
            {**_TOLD_BY_LEADER, "presumes_leadership": unasked()},
            Exchange("leader", "follower", Effect.ASKED),
            distinct=_PAIR,
        ),
        "resign": _named("presumes_leadership"),
        "end_epoch": ActionBinding(
            {**_TOLD_BY_LEADER, "was_elected": unasked(), "has_resigned": unasked()},
            Exchange("leader", "follower", Effect.ASKED),
            distinct=_PAIR,
        ),
        "client_append": ActionBinding(
            {"presumes_leadership": error(NOT_LEADER), "log_not_full": BOUND},
            Exchange(None, "leader", Effect.ASKED),
            stores="leader",
            promised=True,
        ),
        "sync": _named("not_synced"),
        "count_fetch": ActionBinding(
            {**_SERVED, "is_voter": NOTHING, "synced": unasked()},
            Exchange("follower", "leader", Effect.ASKED),
            distinct=_PAIR,
        ),
        "raise_high_watermark": _all(
            unasked(), "presumes_leadership", "above_high_watermark", "of_own_epoch", "synced", "majority_has_it"
        ),
        "tell_client": _all(
            unasked(), "presumes_leadership", "below_high_watermark", "of_own_epoch", "not_told", "in_order"
        ),
        "rediscover_at": ActionBinding(
            {
                "is_fetching": unasked(),
                "not_leader_itself": ITSELF,
                "epoch_not_fenced": _fenced,
                "fetch_refused": unasked(),
            },
            Exchange("follower", "leader", Effect.ASKER),
            distinct=_PAIR,
        ),
        "resume": _all(_CRASH, "keeps_synced", "was_written", "log_valid"),
        "resume_empty": _all(_CRASH, "log_not_valid"),
        "lose_begin": _torn(*_SERVED, "brings_record", "brings_begin"),
        "lose_tail": _torn(*_FOLLOWS, "reaches_back", "diverges", "was_synced"),
        "truncate_batch": _fetch(
            {
                **_FOLLOWS,
                "in_both_logs": unasked(),
                "below_divergence": unasked(),
                "within_batch": unasked(),
                "keeps_what_matches": unasked(),
            },
            stores=None,
        ),
        "lose_snapshot": _torn(*_NAMES_SNAPSHOT, "is_complete", "log_stays_valid"),
        "lose_log": _torn(*_NAMES_SNAPSHOT, "begins_at_0", "no_snapshot", "was_synced"),
    },
    restarts=frozenset({"restart", "restart_empty", "resume", "resume_empty"}),
    prompt=frozenset({"leader_inc_high_watermark", "raise_high_watermark", "take_office"}),
    settles=(_caught_up, _somebody_leads, _all_is_committed),
    asks=frozenset({"append"}),
)
