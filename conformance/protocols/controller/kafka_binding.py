"""The binding of running controllers, Kafka's too: the protocol's own, with the steps that Kafka alone has."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from ....model.protocols.controller.impl_state import OF_CONTROLLER
from ....model.protocols.controller.kafka_spec import GIVEN, OF_SHIPPED, VARIANT
from ...lockstep.binding import NOTHING, ActionBinding, Effect, Exchange, Rule, unasked
from .binding import CONTROLLER, NOT_CONTROLLER, STALE

_OWN: Final = ("is_active", "leads_newest")
_ACTS: Final[Mapping[str, Rule]] = dict.fromkeys(_OWN, NOT_CONTROLLER)
_BEATS: Final[Mapping[str, Rule]] = {**_ACTS, "broker_epoch_matches": STALE}


def _named(*guards: str) -> ActionBinding:
    return ActionBinding(dict.fromkeys((*_OWN, *guards), unasked()), named=True)


def _asked(guards: Mapping[str, Rule]) -> ActionBinding:
    return ActionBinding(guards, Exchange("broker", None, Effect.ASKED))


def _also(name: str, *guards: str) -> ActionBinding:
    """The protocol's own, with guards that have no error code: there is nothing to do, or no more than was done."""
    own = CONTROLLER.actions[name]
    return replace(own, guards={**own.guards, **dict.fromkeys(guards, NOTHING)})


RUNNING: Final = replace(
    CONTROLLER,
    actions={
        **CONTROLLER.actions,
        "register_broker": _also("register_broker", "is_moved"),
        "register_again": _asked({**_ACTS, "is_same": NOTHING}),
        "shut_down": _also("shut_down", "leads_something"),
        "fence_stale": _named("is_registered", "session_over", "is_moved"),
        "fence_at_heartbeat": _asked({**_BEATS, **dict.fromkeys(("wants_it", "is_moved"), NOTHING)}),
        "elect_returning": _named("exists", "nobody_leads", "is_back", "is_member"),
        "elect_uncleanly": _named("exists", "nobody_leads", "nobody_can", "is_alive"),
        "alter_partition": _also("alter_partition", "changes"),
    },
    parties={
        **CONTROLLER.parties,
        VARIANT: dict.fromkeys((*OF_CONTROLLER, "registered_at", "session"), lambda _: None),
    },
    inputs=CONTROLLER.inputs | {*OF_SHIPPED, *GIVEN},
    restless=CONTROLLER.restless | {*GIVEN},
)
