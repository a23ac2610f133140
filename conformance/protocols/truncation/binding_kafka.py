"""The binding of ``kip-320-kafka``: what a consumer that validates its position is answered."""

from __future__ import annotations

from typing import Final

from ...lockstep.binding import (
    FENCED,
    NOT_LEADER,
    NOTHING,
    UNKNOWN_EPOCH,
    ActionBinding,
    Answer,
    Effect,
    Exchange,
    Rule,
    Sight,
    environment,
    error,
    unasked,
)
from .binding_client import CONSUMER, PARTIES, coordinator_of

_ITS_OWN: Final = environment("a party decides it by itself")
_NO_ELECTION: Final = environment("there was no such election")
_OTHER_ANSWER: Final = environment("another answer is the right one")
_NOT_ASKED: Final = error("NOT_ASKED")
"""No code at all: nobody is answered what was not asked."""
_COMMAND: Final = Exchange(None, None, Effect.BOTH)

_OWN_ALONE: Final = frozenset({"awaited", "known", "fetched_end", "fetched_id", "fetched_epoch", "fetched_seen"})
KAFKAS: Final = ("kip-320-kafka-shipped", "kip-320-kafka-ends", "kip-320-kafka-late", "kip-320-kafka")
"""The variants of a consumer as Apache Kafka's."""
KAFKA_PARTIES: Final = {
    **{name: party for name, party in PARTIES.items() if name not in _OWN_ALONE},
    **dict.fromkeys(("current_epoch", "validating", "topic_known"), lambda _: CONSUMER),
}
"""Whose a variable is, where it is not a replica's or the controller's."""


def _consumer(_sight: Sight) -> int:
    return CONSUMER


def _coordinator(sight: Sight) -> int:
    return coordinator_of(sight.system.constants)


def _of_another_epoch(sight: Sight) -> Answer:
    """A leader answers in its own epoch alone: the consumer's is compared for equality (K1)."""
    asks, own = sight.cell("current_epoch"), sight.cell("leader_epoch", sight["leader"])
    return error(FENCED if asks < own else UNKNOWN_EPOCH)


_TO_LEADER: Final = Exchange(_consumer, "leader", Effect.ASKER)


def _called(*guards: str) -> ActionBinding:
    """What the consumer does when its application has it do so, and at no other time."""
    return ActionBinding(dict.fromkeys(guards, _ITS_OWN), _COMMAND)


def _validation(**rest: Rule) -> ActionBinding:
    guards: dict[str, Rule] = {
        "awaits_validation": _NOT_ASKED,
        "same_epoch": _of_another_epoch,
        "leads": error(NOT_LEADER),
        **rest,
    }
    return ActionBinding(guards, _TO_LEADER)


_FETCH: Final[dict[str, Rule]] = {
    "has_valid_position": _NOT_ASKED,
    "leads": error(NOT_LEADER),
    "in_range": error("OFFSET_OUT_OF_RANGE"),
    "below_high_watermark": NOTHING,
}

KAFKA: Final[dict[str, ActionBinding]] = {
    "seek_offset": _called(),
    "seek_position": _called("epoch_started"),
    "request_reset": _called("beginning_or_end"),
    "raise_truncation": _called("divergence_found"),
    "restart_process": _called(),
    "follow_metadata": _called("has_position", "has_leader", "another_epoch"),
    "update_metadata": ActionBinding(
        {"epoch_started": _NO_ELECTION, "no_older": NOTHING}, Exchange(_consumer, None, Effect.ASKER)
    ),
    "lose_metadata": ActionBinding({}, Exchange(_consumer, None, Effect.ASKER)),
    "complete_validation": _validation(not_truncated=_OTHER_ANSWER),
    "find_truncation": _validation(truncated=_OTHER_ANSWER),
    "read_record": ActionBinding({"same_epoch": _of_another_epoch, **_FETCH}, _TO_LEADER),
    "read_late_record": ActionBinding(
        {"another_epoch": _OTHER_ANSWER, "heard_of": _OTHER_ANSWER, **_FETCH}, _TO_LEADER
    ),
    "reset_position": ActionBinding({"awaits_reset": _NOT_ASKED, "leads": error(NOT_LEADER)}, _TO_LEADER),
    "begin_at_commit": ActionBinding(
        {"initializing": unasked(), "committed": NOTHING}, Exchange(_consumer, _coordinator, Effect.ASKER)
    ),
}
