"""The binding of ``truncation``: what a consumer's questions are answered with, by KIP-320.

A consumer polls one leader, and the leader's answer is one of several actions of the model; with parameters that no
answer fits there is nothing to do. Elections of this protocol abstract from the ISR: which replica may be elected
cleanly is the environment's affair, and no controller can be asked for an election that the model refuses.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ....model.protocols.truncation.state import Outcome
from ...lockstep.binding import (
    BOUND,
    FENCED,
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
from .binding_client import CLIENT, PARTIES, consumer_has_read_it_all, followers_have_it_all
from .binding_kafka import KAFKA, KAFKA_PARTIES, KAFKAS

_NO_ELECTION = environment("there was no such election")
_ELSEWHERE = environment("the consumer's metadata names another leader")
_OTHER_ANSWER = environment("another answer to the same poll is the right one")
_NOT_THE_ANSWER = unasked()
"""Another answer to the same poll is the right one, or none is."""

_PENDING: dict[int, tuple[str, ...]] = {
    Outcome.unknown_leader_epoch: (UNKNOWN_EPOCH,),
    Outcome.log_truncation: ("LOG_TRUNCATION",),
    Outcome.offset_out_of_range: ("OFFSET_OUT_OF_RANGE",),
    Outcome.divergence_found: ("LOG_TRUNCATION",),
}


def _still_pending(s: Sight) -> Answer:
    """A consumer with an error to deal with does not go on; it may tell that error again."""
    return unasked(*_PENDING.get(s.cell("outcome"), ()))


def _current_leader(s: Sight) -> int:
    return s.cell("epoch_leader", s.cell("quorum_leader_epoch"))


def _fetches_in_old_epoch(s: Sight) -> Answer:
    return environment("a leader does not fetch") if s["follower"] == _current_leader(s) else error(FENCED)


def _no_record(s: Sight) -> Answer:
    leader = _current_leader(s)
    if leader == s["follower"]:
        return environment("a leader does not fetch")
    return NOTHING if leader >= 0 else unasked(NOT_LEADER, "LEADER_NOT_AVAILABLE")


def _asks(rest: Mapping[str, Rule]) -> dict[str, Rule]:
    return {
        "outcome_pending": _still_pending,
        "asks_leader": _ELSEWHERE,
        "presumes_leadership": error(NOT_LEADER),
        **rest,
    }


_TO_LEADER = Exchange(None, "leader", Effect.ASKER)
_POLL = "poll"

TRUNCATION: Final = Binding(
    "truncation",
    {
        "elect_cleanly": ActionBinding(
            {"epoch_available": BOUND, "holds_committed": environment("the election would be unclean")}
        ),
        "elect_uncleanly": ActionBinding(
            {"epoch_available": BOUND, "lacks_committed": environment("the election would be clean")}
        ),
        "become_follower": ActionBinding(
            {"leader_elected": _NO_ELECTION, "epoch_newer": unasked(FENCED)},
            Exchange("follower", _current_leader, Effect.ASKER),
            stores="follower",
            always=False,
        ),
        "leader_write": ActionBinding(
            {"presumes_leadership": error(NOT_LEADER), "record_available": BOUND, "log_not_full": BOUND},
            Exchange(None, "leader", Effect.ASKED),
            stores="leader",
        ),
        "follower_fetch": ActionBinding(
            {"epoch_not_fenced": _fetches_in_old_epoch, "record_available": _no_record},
            Exchange("follower", _current_leader, Effect.ASKER),
            stores="follower",
        ),
        "leader_inc_high_watermark": ActionBinding(
            {"presumes_leadership": unasked(NOT_LEADER), "record_above_hw": unasked(), "isr_acknowledges": unasked()}
        ),
        "refresh_metadata": ActionBinding({"epoch_started": _NO_ELECTION, "another_leader": NOTHING}),
        "consumer_fetch": ActionBinding(
            _asks({"epoch_known": _OTHER_ANSWER, "not_truncated": _OTHER_ANSWER, "below_high_watermark": NOTHING}),
            _TO_LEADER,
            poll=_POLL,
        ),
        "answer_unknown_leader_epoch": ActionBinding(_asks({"epoch_unknown": _NOT_THE_ANSWER}), _TO_LEADER, poll=_POLL),
        "answer_log_truncation": ActionBinding(
            _asks({"epoch_known": _OTHER_ANSWER, "truncated": _NOT_THE_ANSWER}), _TO_LEADER, poll=_POLL
        ),
        "answer_out_of_range": ActionBinding(
            _asks({"epoch_known": _OTHER_ANSWER, "not_truncated": _OTHER_ANSWER, "beyond_leo": _NOT_THE_ANSWER}),
            _TO_LEADER,
            poll=_POLL,
        ),
        "find_divergence": ActionBinding(_asks({"epoch_known": unasked(UNKNOWN_EPOCH)}), _TO_LEADER, poll=_POLL),
        "reset_to_divergence": ActionBinding(
            {"divergence_found": unasked("LOG_TRUNCATION"), "offset_reported": unasked("LOG_TRUNCATION")}
        ),
        "seek": ActionBinding({"has_metadata": environment("the consumer is not yet started"), "elsewhere": NOTHING}),
        "reset_to_latest": ActionBinding(
            {
                "needs_offset": environment("an application may always ask for the end; the model does where it must"),
                "asks_leader": _ELSEWHERE,
                "presumes_leadership": error(NOT_LEADER),
            },
            _TO_LEADER,
        ),
        "commit_offset": ActionBinding(
            {
                "fetching": environment("an application may commit whenever it likes; in the model, while it fetches"),
                "not_committed": NOTHING,
            }
        ),
        "restart": ActionBinding(
            {"offset_committed": environment("without a commit the policy decides"), "elsewhere": NOTHING}
        ),
        "seek_to_nearest": ActionBinding(
            {
                "offset_stored": environment("there is nothing to seek to"),
                "asks_leader": _ELSEWHERE,
                "presumes_leadership": error(NOT_LEADER),
                "epoch_known": error(UNKNOWN_EPOCH),
            },
            _TO_LEADER,
        ),
        **CLIENT,
        **KAFKA,
    },
    restarts=frozenset({"replica_restarts"}),
    parties={
        "kip-320-client": PARTIES,
        **dict.fromkeys(KAFKAS, KAFKA_PARTIES),
    },
    settles=(consumer_has_read_it_all, followers_have_it_all),
    asks=frozenset({"produce", "commit", "seek_to_committed"}),
    restless=frozenset({"awaited"}),
    quiet=12,  # a round for a request that nobody answers, and one for the pause after it, at each address
)
