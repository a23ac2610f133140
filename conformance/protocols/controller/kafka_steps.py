"""Which steps of the text requests to Apache Kafka's controllers ask for, and which its records may be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from .kafka_brokers import BrokerHeartbeat, BrokerRegistration, Request
from .kafka_log import Entry, Image

_STEPS_OF_HEARTBEAT = ("unfence_broker", "shut_down", "fence_at_heartbeat")
_OTHERS = (
    "RegisterBrokerRecord",
    "BrokerRegistrationChangeRecord",
    "PartitionRecord",
    "PartitionChangeRecord",
    "RemoveTopicRecord",
)


def asked_for(body: Request, node: int) -> tuple[ModelStep, ...]:
    """The steps that a request asks for; the first is the one by which its answer is judged."""
    who = {"node": node, "broker": body.broker}
    if isinstance(body, BrokerRegistration):
        return (("register_broker", who), ("register_again", who))
    if isinstance(body, BrokerHeartbeat):
        return tuple((name, who) for name in _STEPS_OF_HEARTBEAT)
    return (("alter_partition", {"node": node, "leader": body.broker, "partition": body.partition}),)


def by_records(
    records: Sequence[Entry], node: int, event: Event, partitions: Mapping[str, int], image: Image
) -> Iterator[ModelStep]:
    """The steps that records may be which an active controller has appended in an event, and nobody asked for.

    ``partitions``: the numbers of partitions, by their topics' ids. ``image``: what the log comes to with them.
    """
    told = [entry.record for entry in records if entry.record is not None]
    gone = [each["broker"] for each in told if each["record"] == "RegisterBrokerRecord"]
    gone += [each["broker"] for each in told if each.get("fenced") is True or each.get("stopping") is True]
    if event.name == "BrokerHeartbeat" and event.source is not None:
        # Who is in controlled shutdown already, and leads again (O11), is moved with no record of its own.
        gone.append(event.source)
    for each in told:
        kind = each["record"]
        if kind not in _OTHERS:
            yield "append_other", {"node": node}
        elif kind == "BrokerRegistrationChangeRecord" and each.get("fenced") is True and event.what is EventKind.TIME:
            yield "fence_stale", {"node": node, "broker": each["broker"]}
        elif kind == "PartitionChangeRecord":
            where = {"node": node, "partition": partitions[each["topic"]]}
            chosen = each.get("leader", -1)
            elected = {"elected": chosen} if chosen >= 0 else {}
            for broker in dict.fromkeys(gone):
                yield "move_partition", {**where, **elected, "broker": broker}
            if chosen >= 0 and event.name == "BrokerHeartbeat":
                known = image.brokers.get(chosen)
                yield (
                    "elect_returning" if known is not None and known.stopping else "elect_leader",
                    {**where, "broker": chosen},
                )
