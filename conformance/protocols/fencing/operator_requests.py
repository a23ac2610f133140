"""What operators may ask a controller, and it must refuse: what is there, what is nowhere, what no number or name is.

Each is a call that changes nothing and sends nothing, whatever else is going on. A broker's registration that is over
must be refused too, or a late one would bring back a process that has ended (KIP-380).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from ....impl.wire.messages import TopicPartition
from ....impl.zk_controller import Controller
from ...simulation.events import Event, EventKind
from .response_rules import WrongAnswer

OPERATOR: Final = "operator"
"""The name of these probes."""
_NOBODY: Final = 90
"""The number of a broker that there is not."""
_STOPPED: Final = "ControllerStopped"

Asks = Callable[[Controller, TopicPartition], object]


def _elsewhere(partition: TopicPartition) -> TopicPartition:
    return TopicPartition(partition.topic, partition.partition + 1)


def _registered_before(controller: Controller, _partition: TopicPartition) -> None:
    broker, known = next(iter(controller.brokers.items()))
    controller.broker_started(broker, known.incarnation - 1)


_REFUSED: Final[Mapping[str, tuple[Asks, str]]] = {
    "create it again": (lambda c, p: c.create_partition(p, [0]), "PartitionExists"),
    "create one without a name": (lambda c, _: c.create_partition(TopicPartition("", 0), [0]), "InvalidPartition"),
    "create one without a number": (lambda c, p: c.create_partition(p._replace(partition=-1), [0]), "InvalidPartition"),
    "create one without replicas": (lambda c, p: c.create_partition(_elsewhere(p), []), "InvalidPartition"),
    "create one with a replica twice": (lambda c, p: c.create_partition(_elsewhere(p), [0, 0]), "InvalidPartition"),
    "create one at nobody": (lambda c, p: c.create_partition(_elsewhere(p), [0, _NOBODY]), "UnknownBroker"),
    "look at another": (lambda c, p: c.partition(_elsewhere(p)), "UnknownPartition"),
    "elect for another": (lambda c, p: c.elect_leader(_elsewhere(p), 0), "UnknownPartition"),
    "elect uncleanly for another": (lambda c, p: c.elect_unclean(_elsewhere(p), 0), "UnknownPartition"),
    "elect nobody": (lambda c, p: c.elect_leader(p, _NOBODY), "NotEligible"),
    "elect nobody uncleanly": (lambda c, p: c.elect_unclean(p, _NOBODY), "NotEligible"),
    "shrink another": (lambda c, p: c.shrink_isr(_elsewhere(p), 0), "UnknownPartition"),
    "take nobody out": (lambda c, p: c.shrink_isr(p, _NOBODY), "NotInIsr"),
    "mark nobody offline": (lambda c, _: c.mark_offline(_NOBODY), "UnknownBroker"),
    "mark nobody online": (lambda c, _: c.mark_online(_NOBODY), "UnknownBroker"),
    "register nobody": (lambda c, _: c.broker_started(-1, 0), "UnknownBroker"),
    "register a life below the first": (lambda c, _: c.broker_started(_NOBODY, -1), "UnknownBroker"),
    "register a life that is over": (_registered_before, "StaleIncarnation"),
}
"""By what an operator wants: how, and the error that it gets."""


def operator_probes() -> Iterator[Event]:
    """What may be asked next."""
    yield from map(_probe, _REFUSED)


@lru_cache(64)
def _probe(what: str) -> Event:
    return Event(EventKind.PROBE, OPERATOR, args=(("what", what),))


def ask_operator(what: str, controller: Controller, partition: TopicPartition, error: type[Exception]) -> None:
    """Ask it. Raises WrongAnswer where it is not refused, or refused as another is; ``error``: what all of them are."""
    asks, wanted = _REFUSED[what]
    wanted = wanted if controller.stopped is None or what == "look at another" else _STOPPED
    before = dict(controller.brokers), dict(controller.partitions)
    try:
        asks(controller, partition)
    except error as refused:
        found = type(refused).__name__
        # One that has stopped need not say so first.
        if found not in (wanted, _REFUSED[what][1]):
            raise WrongAnswer(f"whoever wants to {what} gets {found}, and not {wanted}") from refused
    else:
        raise WrongAnswer(f"whoever wants to {what} is not refused")
    if (dict(controller.brokers), dict(controller.partitions)) != before:
        raise WrongAnswer(f"whoever wants to {what} is refused, and it is done")
