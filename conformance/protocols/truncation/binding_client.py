"""The binding of ``kip-320-client``: who asks whom, whose cells are whose, and with what requests are answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from ....model.core.algebra import Algebra, Value, View
from ....model.core.domains import REPLICA
from ....model.protocols.truncation.state import Asking, Outcome
from ...lockstep.binding import (
    BOUND,
    FENCED,
    NOT_LEADER,
    NOTHING,
    UNKNOWN_EPOCH,
    ActionBinding,
    Effect,
    Exchange,
    Rule,
    Sight,
    environment,
    error,
    unasked,
)

CONSUMER: Final = -1
"""The consumer as a party: on no node."""


def coordinator_of(constants: Mapping[str, int]) -> int:
    """The node of the group coordinator, which holds no replica."""
    return constants["replicas"]


def _consumer(_sight: Sight) -> int:
    return CONSUMER


def _coordinator(sight: Sight) -> int:
    return coordinator_of(sight.system.constants)


_OF_CLIENTS: Final = frozenset(
    {
        *("metadata_leader", "metadata_epoch", "placed", "position", "last_epoch", "seen_epoch"),
        *("consumed_from", "consumed_id", "consumed_epoch", "outcome", "answered_epoch", "reported", "reported_epoch"),
        *("told", "awaited", "asking", "fetched_end", "fetched_id", "fetched_epoch", "fetched_seen", "known"),
    }
)
_OF_COORDINATORS: Final = frozenset(
    f"{name}{suffix}" for name in ("committed", "acknowledged", "refused") for suffix in ("", "_epoch", "_seen")
) | {"found_again"}

PARTIES: Final[Mapping[str, Callable[[Mapping[str, int]], int]]] = {
    **dict.fromkeys(sorted(_OF_CLIENTS), lambda _: CONSUMER),
    **dict.fromkeys(sorted(_OF_COORDINATORS), coordinator_of),
}
"""Whose a variable is, where it is not a replica's or the controller's."""

_TO_LEADER: Final = Exchange(_consumer, "leader", Effect.ASKER)
_TO_COORDINATOR: Final = Exchange(_consumer, _coordinator, Effect.ASKER)
_COMMITS: Final = Exchange(_consumer, _coordinator, Effect.ASKED)
_COMMAND: Final = Exchange(None, None, Effect.BOTH)
"""What happens only where somebody has it happen: a running system names it then."""
_TOLD: Final = Exchange("replica", None, Effect.ASKER)
"""What a follower does when its leader answers; what the leader had to say is not looked at here."""
_ITS_OWN: Final = environment("a party decides it by itself")
_NOT_ASKED: Final = error("NOT_ASKED")
"""No code at all: nobody is answered what was not asked. A request is judged by what its asker was when it asked."""
_OTHER_ANSWER: Final = environment("another answer is the right one")
_NO_ELECTION: Final = environment("there was no such election")


def _fetch(**rest: Rule) -> dict[str, Rule]:
    """How a fetch is answered where a guard refuses: the codes are judged by the action that brings records."""
    return {
        "awaits_fetch": _NOT_ASKED,
        "leads": error(NOT_LEADER),
        "epoch_known": error(UNKNOWN_EPOCH),
        "not_truncated": error("LOG_TRUNCATION"),
        "in_range": error("OFFSET_OUT_OF_RANGE"),
        **rest,
    }


def _refusal(guard: str, *before: str) -> ActionBinding:
    """A refused fetch, as the consumer takes it; ``guard`` says that this is the right answer."""
    others = dict.fromkeys(("awaits_fetch", "leads", *before), _OTHER_ANSWER)
    return ActionBinding({**others, guard: unasked()}, _TO_LEADER)


def _listed(guard: str) -> ActionBinding:
    return ActionBinding({"awaits_list": _NOT_ASKED, guard: _OTHER_ANSWER, "leads": error(NOT_LEADER)}, _TO_LEADER)


def _alone(*guards: str) -> ActionBinding:
    """What a party does by itself, at any time."""
    return ActionBinding(dict.fromkeys(guards, _ITS_OWN))


def _called(*guards: str) -> ActionBinding:
    """What a party does when its application, its operator or its start has it do so, and at no other time."""
    return ActionBinding(dict.fromkeys(guards, _ITS_OWN), _COMMAND)


CLIENT: Final[dict[str, ActionBinding]] = {
    # -- brokers ----------------------------------------------------------------------------------------------------
    "elect_member": ActionBinding({"epoch_available": BOUND}, _COMMAND),
    "elect_outsider": ActionBinding({"epoch_available": BOUND}, _COMMAND),
    "elect_nobody": ActionBinding({"epoch_available": BOUND}, _COMMAND),
    "take_up": ActionBinding(
        {"epoch_started": _NO_ELECTION, "leader_elected": NOTHING, "epoch_newer": unasked(FENCED)},
        Exchange(None, "replica", Effect.ASKED),
        stores="replica",
        always=False,
    ),
    "leader_append": ActionBinding(
        {"leads": error(NOT_LEADER), "record_available": BOUND, "log_not_full": BOUND},
        Exchange(None, "leader", Effect.ASKED),
        stores="leader",
    ),
    "follower_copy": ActionBinding(
        {
            "leads": error(NOT_LEADER),
            "follows": environment("a leader does not fetch"),
            "same_epoch": error(FENCED, UNKNOWN_EPOCH),
            "record_there": unasked("OFFSET_OUT_OF_RANGE"),
            "logs_agree": environment("a follower truncates first"),
        },
        Exchange("follower", "leader", Effect.ASKER),
        stores="follower",
        distinct=(("follower", "leader"),),
    ),
    "truncate_log": ActionBinding(dict.fromkeys(("follows", "shorter"), _ITS_OWN), _TOLD),
    "begin_log_at": ActionBinding({"follows": _ITS_OWN}, _TOLD),
    "delete_records": ActionBinding(dict.fromkeys(("above_log_start", "committed"), _ITS_OWN), _TOLD),
    "raise_high_watermark": _alone("leads", "higher", "in_log"),
    "replica_restarts": _alone("no_longer"),
    # -- the consumer by itself -------------------------------------------------------------------------------------
    "seek_to": _called(),
    "seek_to_told": _called("was_told"),
    "ask_for": _called("somewhere"),
    "take_record": _called("has_arrived"),
    "tell_divergence": _called("divergence_found", "asks_for_nothing"),
    "go_to_divergence": _called("divergence_found", "asks_for_nothing"),
    "reset_by_policy": _called("out_of_range", "asks_for_nothing", "by_policy"),
    "restart_consumer": _called(),
    "send": _called("awaits_nothing", "nothing_has_arrived", "due"),
    "give_up": _alone("awaits_something"),
    # -- what it is answered ----------------------------------------------------------------------------------------
    "learn_leader": ActionBinding(
        {"awaits_metadata": _NOT_ASKED, "epoch_started": _NO_ELECTION, "leader_elected": _NO_ELECTION},
        Exchange(_consumer, None, Effect.ASKER),
    ),
    "fetch_record": ActionBinding(
        _fetch(of_one_answer=environment("an answer is of one leader"), below_high_watermark=NOTHING), _TO_LEADER
    ),
    "end_fetch": ActionBinding(_fetch(), _TO_LEADER),
    "refuse_unknown_epoch": _refusal("epoch_unknown"),
    "refuse_truncated": _refusal("truncated", "epoch_known"),
    "refuse_out_of_range": _refusal("not_in_range", "epoch_known", "not_truncated"),
    "learn_divergence": ActionBinding(
        {"awaits_search": _NOT_ASKED, "leads": error(NOT_LEADER), "epoch_known": error(UNKNOWN_EPOCH)}, _TO_LEADER
    ),
    "learn_beginning": _listed("asks_for_beginning"),
    "learn_end": _listed("asks_for_end"),
    # -- commits ----------------------------------------------------------------------------------------------------
    "store_commit": ActionBinding({"has_position": _NOT_ASKED, "not_in_doubt": _NOT_ASKED}, _COMMITS),
    "refuse_commit": ActionBinding({"has_position": _NOT_ASKED, "not_in_doubt": _NOT_ASKED}, _COMMITS),
    "find_commit": _called("was_refused"),
    "miss_commit": _called("was_refused"),
    "hear_commit": ActionBinding({"committed": NOTHING}, _TO_COORDINATOR),
    "learn_commit": ActionBinding({"awaits_committed": _NOT_ASKED, "committed": NOTHING}, _TO_COORDINATOR),
    "learn_no_commit": ActionBinding(
        {"awaits_committed": _NOT_ASKED, "nothing_committed": NOTHING, "by_policy": _ITS_OWN}, _TO_COORDINATOR
    ),
}


def consumer_has_read_it_all(k: Algebra, s: View, well: Value) -> Value:
    """The consumer knows who leads in the controller's leader epoch, and has read all that it committed."""
    if not k.rules.client:
        return True
    # Who was restarted is told again who leads, in a new leader epoch where it led itself.
    left = s.quorum_leader_epoch + 1 < k.c.max_leader_epoch
    leader = s.epoch_leader[s.quorum_leader_epoch]
    leads = k.all(leader != k.NONE, s.leading[leader] == 1, s.leader_epoch[leader] == s.quorum_leader_epoch)
    knows = k.all(s.metadata_leader == leader, s.placed == 1, s.asking == Asking.nothing, s.outcome == Outcome.fetching)
    old = s.metadata_leader
    if k.rules.shipped:
        # Whoever was told of a truncation goes on where its application has it go on.
        knows = k.all(s.current_epoch == s.quorum_leader_epoch, s.placed == 1, s.validating == 0)
        stays = k.all(s.leading[old] == 1, s.current_epoch == s.leader_epoch[old], s.position == s.hw[old])
        misled = k.all(old != k.NONE, old != leader, k.member(old, well), stays)
        here = k.all(left, leads, k.member(leader, well))
        return k.implies(here, k.any(misled, k.all(knows, s.position == s.hw[leader])))
    read = k.all(s.position == s.fetched_end, s.position == s.hw[leader])
    # A zombie that can be reached serves whoever has read nothing newer, and nobody tells it to look elsewhere.
    served = k.all(s.leading[old] == 1, s.seen_epoch <= s.leader_epoch[old], s.last_epoch <= s.leader_epoch[old])
    stays = k.all(served, s.outcome == Outcome.fetching, s.placed == 1, s.position == s.hw[old])
    misled = k.all(old != k.NONE, old != leader, k.member(old, well), stays)
    return k.implies(k.all(left, leads, k.member(leader, well)), k.any(misled, k.all(knows, read)))


def followers_have_it_all(k: Algebra, s: View, well: Value) -> Value:
    """Whoever is well has all of the log of the leader in the controller's leader epoch, from where that begins."""
    if not k.rules.client:
        return True
    left = s.quorum_leader_epoch + 1 < k.c.max_leader_epoch
    leader = s.epoch_leader[s.quorum_leader_epoch]
    leads = k.all(leader != k.NONE, s.leading[leader] == 1, s.leader_epoch[leader] == s.quorum_leader_epoch)

    def same(replica: Value) -> Value:
        alike = k.all(s.leo[replica] == s.leo[leader], s.log_start[leader] <= s.log_start[replica])
        return k.implies(k.member(replica, well), alike)

    return k.implies(k.all(left, leads, k.member(leader, well)), k.forall(REPLICA, same))
