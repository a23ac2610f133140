"""The binding of running quorums, Kafka's too: the protocol's own, with the steps that Kafka alone has."""

from __future__ import annotations

from dataclasses import replace
from functools import wraps
from typing import Final

from ....model.core.algebra import Algebra, Value, View
from ....model.core.domains import REPLICA
from ....model.protocols.snapshots.kafka_spec import is_shipped
from ...lockstep.binding import ITSELF, ActionBinding, Effect, Exchange, Settled, unasked
from .binding import SNAPSHOTS

_SOMEBODY_LEADS: Final = next(each for each in SNAPSHOTS.settles if each.__name__ == "_somebody_leads")


def _named(*guards: str) -> ActionBinding:
    return ActionBinding(dict.fromkeys(guards, unasked()), named=True)


def _of_several(own: Settled) -> Settled:
    """The same, and of Kafka's quorums of one voter nothing: its process may wait for an epoch that the model lacks."""

    @wraps(own)
    def settled(k: Algebra, s: View, well: Value) -> Value:
        if not is_shipped(k.rules):
            return own(k, s, well)
        several = k.exists(
            REPLICA, lambda a: k.exists(REPLICA, lambda b: k.all(a != b, k.member(a, s.voters), k.member(b, s.voters)))
        )
        # A leader begins its epoch with a record.
        room = k.forall(REPLICA, lambda r: s.leo[r] < k.c.log_size)
        # By F24 an observer may ask for ever for a snapshot that is gone.
        asks = k.exists(REPLICA, lambda r: k.all(s.fetching[r] != -1, k.negate(k.member(r, s.voters))))
        given = k.all(several, k.negate(asks)) if k.rules.ends else several
        return k.implies(k.all(given, room) if own is _SOMEBODY_LEADS else given, own(k, s, well))

    return settled


RUNNING: Final = replace(
    SNAPSHOTS,
    settles=tuple(map(_of_several, SNAPSHOTS.settles)),
    actions={
        **SNAPSHOTS.actions,
        "hear_of_epoch": ActionBinding(
            {"not_told_by_itself": ITSELF, "epoch_newer": unasked()},
            Exchange("teller", "replica", Effect.ASKED),
        ),
        "learn_resigned_leader": ActionBinding(
            {"not_told_by_itself": ITSELF, "is_news": unasked(), "has_resigned": unasked()},
            Exchange("replica", "teller", Effect.ASKER),
        ),
        "lose_election": _named("candidate_stands"),
        "leave_epoch": _named("has_resigned"),
        "give_up_snapshot": _named("is_fetching"),
        "delete_before_snapshot": _named("increases", "snapshot_exists", "below_high_watermark"),
    },
)
