"""The binding of ``fencing``: what brokers and their controller answer, by KIP-320.

A replica that talks with a lower leader epoch than its leader's gets FENCED_REPLICA, one with a higher epoch
UNKNOWN_LEADER_EPOCH (KIP-320, "Replica Handling"); whoever leads nothing answers NOT_LEADER_OR_FOLLOWER. A LeaderAndIsr
or AlterIsr of an older epoch than its receiver's is stale: FENCED_REPLICA.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ....model.core.algebra import Algebra, Value, View
from ....model.core.domains import REPLICA
from ....model.protocols.fencing.state import is_true_leader
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

INELIGIBLE: Final = "INELIGIBLE_REPLICA"
VERSION: Final = "INVALID_UPDATE_VERSION"

GIVEN: Final = frozenset({"leo", "hw", "synced", "record_id", "record_epoch"})
"""Of a replica that was to begin anew where its leader's log does: the model's logs all begin at 0."""

_NOT_SENT = environment("the controller has sent no such request")
_OTHERWISE = environment("the request names another leader: it is taken up by another action")
_NOT_ASKED = environment("the leader has sent no such request")
_SYNCS_FIRST = environment("a follower does not fetch before it has synced")
_NO_SUCH_STATE = environment("no log is made longer by a truncation")


def _fenced(asker: int, asked: int) -> tuple[str, ...]:
    """The code that the asked replica's leader epoch has for the asker's."""
    if asker == asked:
        return ()
    return (FENCED,) if asker < asked else (UNKNOWN_EPOCH,)


def _follower_is_fenced(s: Sight) -> Answer:
    codes = _fenced(s.cell("leader_epoch", s["follower"]), s.cell("leader_epoch", s["leader"]))
    return error(*codes)


def _follows_another(s: Sight) -> Answer:
    """It does not fetch from this leader at all; made to, it names its own epoch."""
    return unasked(NOT_LEADER, *_fenced(s.cell("leader_epoch", s["follower"]), s.cell("leader_epoch", s["leader"])))


def _is_shipped(s: Sight) -> bool:
    """Whether the variant is Apache Kafka's."""
    return bool(getattr(s.system.traced.variant.rules, "shipped", False))


def _leads_nothing(s: Sight) -> Answer:
    """Who leads nothing says so; Apache Kafka looks at the leader epoch first."""
    fenced = _fenced(s.cell("leader_epoch", s["follower"]), s.cell("leader_epoch", s["leader"]))
    return error(*(fenced if fenced and _is_shipped(s) else (NOT_LEADER,)))


def _request_is_fenced(s: Sight) -> Answer:
    """OffsetsForLeaderEpoch names the epoch of the request that is being taken up."""
    return error(*_fenced(s["epoch"], s.cell("leader_epoch", s["leader"])))


def _presumes(s: Sight, replica: int) -> bool:
    return s.cell("leader", replica) == replica


def _stale_alter_isr(s: Sight) -> Answer:
    """Who presumes leadership in an older epoch sends an AlterIsr, and is fenced by the controller."""
    return error(FENCED) if _presumes(s, s["leader"]) else unasked(NOT_LEADER, FENCED)


def _unseen_follower(s: Sight) -> Answer:
    """Whoever is fenced is no member to be; its fetch, if it sends one, is answered as any."""
    return unasked(*_fenced(s.cell("leader_epoch", s["follower"]), s.cell("leader_epoch", s["leader"])))


def _told(s: Sight) -> bool:
    """Whether a leader of this variant goes by what fetches told it, and so needs to hear from nobody."""
    return bool(getattr(s.system.traced.variant.rules, "told", False))


def _isr(s: Sight) -> Iterable[int]:
    """Whom a leader hears from before it counts a record; an ISR that it has asked for takes the controller's word."""
    if _told(s):
        return (s["leader"],)
    mask = s.cell("isr", s["leader"])
    return (replica for replica in range(mask.bit_length()) if mask >> replica & 1)


def _may_have_proposed(s: Sight) -> bool:
    """A deposed leader may have proposed an ISR of which it will never hear: whoever was to join counts for good.

    In the variants without proposals it counts the ISR that it knows. Where everybody is in that, there is nobody else.
    """
    leader = s["leader"]
    everybody = s.cell("isr", leader) == (1 << s.system.constants["replicas"]) - 1
    true_leader = (s.cell("quorum_leader"), s.cell("quorum_leader_epoch")) == (leader, s.cell("leader_epoch", leader))
    return _told(s) and not true_leader and not everybody


def _not_newer(replica: str) -> Rule:
    """A request of an older epoch is stale; a repeat of what is in force may be answered as what it is."""

    def rule(s: Sight) -> Answer:
        return unasked(FENCED) if s["epoch"] == s.cell("leader_epoch", s[replica]) else error(FENCED)

    return rule


def _leader_of_epoch(s: Sight) -> int:
    """Whose AlterIsr requests of a leader epoch are."""
    return s.cell("request_leader", s["epoch"])


def _follower(s: Sight) -> Iterable[int]:
    return (s["follower"],)


def _follower_untold(s: Sight) -> Iterable[int]:
    return () if _told(s) else (s["follower"],)


def _older_version(s: Sight) -> Answer:
    """An AlterIsr goes by another ISR than the one that holds; a repeat of what was taken up may be told so."""
    repeated = s.cell("asked_isr", s["leader"]) == s.cell("quorum_isr")
    return Answer(frozenset({None, VERSION})) if repeated else error(VERSION)


_REQUEST: dict[str, Rule] = {"request_sent": _NOT_SENT, "names_leader": _OTHERWISE}
_PAIR = (("leader", "follower"),)

_RUNNING: Final[dict[str, ActionBinding]] = {
    "controller_fail_over": ActionBinding(
        {"leads": NOTHING, "another": ITSELF, "in_quorum_isr": error(INELIGIBLE), "epoch_available": BOUND}
    ),
    "controller_grant_isr": ActionBinding(
        {"true_leader": _stale_alter_isr, "isr_is_current": _older_version, "something_asked": NOTHING},
        Exchange("leader", None, Effect.ASKED),
        promised=True,
    ),
    "hear_of_leader": ActionBinding(
        {"request_sent": _NOT_SENT, "names_another": _OTHERWISE, "epoch_newer": _not_newer("replica")},
        Exchange(None, "replica", Effect.ASKED),
        promised=True,
    ),
    "truncate_partly": ActionBinding(
        {
            "not_leader_itself": ITSELF,
            "presumes_leadership": error(NOT_LEADER),
            "lost_role": unasked(),
            "follows_leader": _follows_another,
            "leader_epoch_matches": _follower_is_fenced,
            "truncates_backward": NOTHING,
            "keeps_what_matches": environment("what matches is not cut"),
        },
        Exchange("follower", "leader", Effect.ASKER),
        stores="follower",
        distinct=_PAIR,
    ),
    "restart_after_loss": ActionBinding(
        {
            "synced_survives": environment("what is synced is not lost"),
            "within_log": BOUND,
            "stored_high_watermark": environment("it was never stored"),
            "something_lost": environment("the crash changes nothing"),
        },
    ),
    "leader_write_again": ActionBinding(
        {
            "presumes_leadership": error(NOT_LEADER),
            "was_sent": environment("it was never sent"),
            "not_in_log": NOTHING,
            "log_not_full": BOUND,
        },
        Exchange(None, "leader", Effect.ASKED),
        stores="leader",
    ),
    "flush": ActionBinding({"not_synced": unasked(), "within_log": BOUND}, stores="replica"),
    "follower_hear_high_watermark": ActionBinding(
        {
            "not_leader_itself": ITSELF,
            "presumes_leadership": error(NOT_LEADER),
            "follows_leader": _follows_another,
            "epoch_not_fenced": _follower_is_fenced,
            "something_new": NOTHING,
        },
        Exchange("follower", "leader", Effect.ASKER),
        distinct=_PAIR,
    ),
    "leader_ask_shrink": ActionBinding(
        {
            "not_leader_itself": ITSELF,
            "presumes_leadership": unasked(),
            "in_isr": unasked(),
            "not_asked_yet": unasked(),
            "not_caught_up": unasked(),
        },
        named=True,
    ),
    "leader_ask_expand": ActionBinding(
        {
            "not_leader_itself": ITSELF,
            "presumes_leadership": unasked(),
            "outside_isr": unasked(),
            "not_asked_yet": unasked(),
            "reached_high_watermark": unasked(),
            "hw_reached_epoch": unasked(),
            "reached_epoch_start": unasked(),
        },
        named=True,
    ),
    "leader_ask_again": ActionBinding({"presumes_leadership": unasked(), "asked_another": unasked()}, named=True),
    "leader_learn_isr": ActionBinding(
        {"presumes_leadership": unasked(), "something_new": NOTHING}, Exchange("leader", None, Effect.ASKER)
    ),
    "controller_fence_follower": ActionBinding(
        {"is_led": NOTHING, "not_leader_itself": ITSELF, "in_quorum_isr": NOTHING}
    ),
    "leader_learn_later_isr": ActionBinding(
        {"presumes_leadership": unasked(), "was_fenced": environment("there was no such fencing")}, named=True
    ),
    "leader_replay_isr": ActionBinding({"presumes_leadership": unasked(), "not_replayed": unasked()}, named=True),
    "producer_hears": ActionBinding(
        {
            "presumes_leadership": error(NOT_LEADER),
            "below_high_watermark": unasked(),
            "something_new": NOTHING,
        },
        Exchange(None, "leader", Effect.ASKER),
    ),
    "consumer_reads": ActionBinding(
        {
            "presumes_leadership": error(NOT_LEADER),
            "below_high_watermark": NOTHING,
            "something_new": NOTHING,
        },
        Exchange(None, "leader", Effect.ASKER),
    ),
}
"""The steps that a running cluster has besides."""


def all_is_committed(k: Algebra, s: View, well: Value) -> Value:
    """Whoever leads in the controller's leader epoch has committed all of its log."""
    if not k.rules.running:
        return True
    return k.forall(
        REPLICA, lambda r: k.implies(k.all(k.member(r, well), is_true_leader(k, s, r)), s.hw[r] == s.leo[r])
    )


def followers_have_it_all(k: Algebra, s: View, well: Value) -> Value:
    """Whoever follows that leader has all of its log, and its high watermark; and where epochs are left, all follow."""
    if not k.rules.running:
        return True
    # A broker that was restarted is let in again in a new leader epoch.
    left = s.quorum_leader_epoch + 1 < k.c.max_leader_epoch

    def led(leader: Value, follower: Value) -> Value:
        both = k.all(k.member(leader, well), k.member(follower, well), leader != follower)
        return k.all(both, is_true_leader(k, s, leader), k.any(left, s.leader[follower] == leader))

    def same(leader: Value, follower: Value) -> Value:
        follows = s.leader[follower] == leader
        return k.all(follows, s.leo[follower] == s.leo[leader], s.hw[follower] == s.hw[leader])

    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: k.implies(led(a, b), same(a, b))))


def proposals_are_settled(k: Algebra, s: View, well: Value) -> Value:
    """Whoever leads in the controller's leader epoch has no ISR in doubt: whoever was to join has, or not (KIP-497)."""
    if not k.rules.running:
        return True

    def settled(leader: Value) -> Value:
        return k.implies(
            k.all(k.member(leader, well), is_true_leader(k, s, leader)), s.maximal_isr[leader] == s.isr[leader]
        )

    return k.forall(REPLICA, settled)


def everybody_is_back(k: Algebra, s: View, well: Value) -> Value:
    """Whoever is well is in the controller's ISR again; not where that is empty, or hardly a leader epoch is left."""
    if not k.rules.running:
        return True
    led = k.all(s.quorum_leader != k.NONE, k.member(s.quorum_leader, well))
    elected = k.any(led, k.forall(REPLICA, lambda r: k.member(r, well)))
    possible = k.all(elected, s.quorum_isr != k.EMPTY, s.next_leader_epoch + 2 <= k.c.max_leader_epoch)
    return k.implies(possible, k.forall(REPLICA, lambda r: k.implies(k.member(r, well), k.member(r, s.quorum_isr))))


FENCING: Final = Binding(
    "fencing",
    {
        "controller_elect_leader": ActionBinding(
            {
                "in_quorum_isr": error(INELIGIBLE, "ELIGIBLE_LEADERS_NOT_AVAILABLE"),
                "not_leader_yet": NOTHING,
                "epoch_available": BOUND,
            },
            offline={"new_leader": environment("an offline replica is not elected")},
        ),
        "controller_shrink_isr": ActionBinding({"leads_or_in_isr": NOTHING, "epoch_available": BOUND}),
        "become_leader": ActionBinding(
            {**_REQUEST, "epoch_newer": _not_newer("leader")}, Exchange(None, "leader", Effect.ASKED)
        ),
        "become_follower": ActionBinding(
            {
                **_REQUEST,
                "epoch_newer": _not_newer("follower"),
                "not_leader_itself": ITSELF,
                "presumes_leadership": error(NOT_LEADER),
                "leader_epoch_matches": _request_is_fenced,
                "truncates_backward": _NO_SUCH_STATE,
            },
            Exchange("follower", "leader", Effect.ASKER),
            stores="follower",
            always=False,
        ),
        "leader_write": ActionBinding(
            {"presumes_leadership": error(NOT_LEADER), "record_available": BOUND, "log_not_full": BOUND},
            Exchange(None, "leader", Effect.ASKED),
            stores="leader",
        ),
        "follower_fetch": ActionBinding(
            {
                "presumes_leadership": error(NOT_LEADER),
                "follows_leader": _follows_another,
                "epoch_not_fenced": _follower_is_fenced,
                # The first try has no code of its own: the leader answers that the logs diverge.
                "previous_epoch_matches": unasked("LOG_TRUNCATION"),
                "record_available": NOTHING,
            },
            Exchange("follower", "leader", Effect.ASKER),
            stores="follower",
            distinct=_PAIR,
        ),
        "follower_acknowledge": ActionBinding(
            {
                "presumes_leadership": _leads_nothing,
                "follows_leader": _follows_another,
                "epoch_not_fenced": _follower_is_fenced,
                "previous_epoch_matches": unasked("LOG_TRUNCATION"),
                "not_leader_itself": ITSELF,
                "something_new": NOTHING,
                "acknowledges_synced": _SYNCS_FIRST,
            },
            Exchange("follower", "leader", Effect.ASKED),
            distinct=_PAIR,
        ),
        "leader_inc_high_watermark": ActionBinding(
            {
                "presumes_leadership": unasked(NOT_LEADER),
                "record_above_hw": unasked(),
                "isr_acknowledges": unasked(),
            },
            consults=_isr,
            waits=_may_have_proposed,
        ),
        "leader_shrink_isr": ActionBinding(
            {
                "not_leader_itself": ITSELF,
                "in_isr": unasked(),
                "not_caught_up": unasked(),
                "true_leader": _stale_alter_isr,
            },
            Exchange("leader", None, Effect.BOTH),
            tells=_follower_untold,
        ),
        "leader_expand_isr": ActionBinding(
            {
                "outside_isr": unasked(),
                "follows_leader": unasked(NOT_LEADER),
                "epoch_not_fenced": _unseen_follower,
                "reached_high_watermark": unasked(),
                "hw_reached_epoch": unasked(),
                "true_leader": _stale_alter_isr,
            },
            Exchange("leader", None, Effect.BOTH),
            consults=_follower,
            offline={"follower": unasked(INELIGIBLE)},
            distinct=_PAIR,
        ),
        "leader_propose_shrink": ActionBinding(
            {
                "presumes_leadership": unasked(NOT_LEADER),
                "not_leader_itself": ITSELF,
                "in_isr": unasked(),
                "not_caught_up": unasked(),
                "not_proposed": unasked(),
            },
        ),
        "leader_propose_expand": ActionBinding(
            {
                "presumes_leadership": unasked(NOT_LEADER),
                "outside_isr": unasked(),
                "follows_leader": unasked(NOT_LEADER),
                "epoch_not_fenced": _unseen_follower,
                "reached_high_watermark": unasked(),
                "hw_reached_epoch": unasked(),
                "not_proposed": unasked(),
            },
            consults=_follower,
            offline={"follower": unasked(INELIGIBLE)},
            distinct=_PAIR,
        ),
        "controller_alter_isr": ActionBinding(
            {
                "request_sent": _NOT_ASKED,
                "changes_asked": _NOT_ASKED,
                "leader_epoch_matches": error(FENCED),
                "partition_epoch_matches": error("INVALID_UPDATE_VERSION"),
            },
            Exchange(_leader_of_epoch, None, Effect.ASKED),
        ),
        "leader_take_isr": ActionBinding({"presumes_leadership": unasked(), "partition_epoch_newer": unasked()}),
        "leader_forget_proposal": ActionBinding(
            {"presumes_leadership": unasked(), "proposal_open": unasked(), "fenced": unasked()}
        ),
        "follower_truncate": ActionBinding(
            {"presumes_leadership": error(NOT_LEADER), "follows_leader": _follows_another, "diverges": NOTHING},
            Exchange("follower", "leader", Effect.ASKER),
            stores="follower",
            always=False,
            distinct=_PAIR,
        ),
        "restart": ActionBinding(
            {
                "stored_high_watermark": environment("it was never stored"),
                "something_lost": environment("the crash changes nothing"),
            },
        ),
        "resume_leadership": ActionBinding(
            {"lost_role": unasked(), "quorum_has_it_lead": unasked(), "epoch_is_quorums": unasked()},
        ),
        **_RUNNING,
    },
    restarts=frozenset({"restart", "restart_after_loss"}),
    prompt=frozenset({"leader_inc_high_watermark"}),
    inputs=GIVEN,
    settles=(all_is_committed, followers_have_it_all, proposals_are_settled, everybody_is_back),
    asks=frozenset({"produce"}),
)
