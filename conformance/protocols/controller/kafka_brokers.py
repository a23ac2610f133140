"""The brokers around Apache Kafka's controllers: processes that register, tell that they live, and lead partitions.

A broker is what the controllers hear of it. It has replayed the committed metadata log up to some end, goes by what
that says, and names in its requests what it knows: its broker epoch, how far it is, the epochs of the partition that it
leads. Who follows it, and how far, is nothing that a controller could tell: any other broker may be to join or leave.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....traces.format import Value
from .kafka_log import Image, Partition


@dataclass(frozen=True)
class BrokerRegistration:
    """A process registers. ``process``: its number."""

    broker: int
    process: int

    @property
    def asked(self) -> dict[str, Any]:
        """The request, for the driver."""
        return {"kind": "register", "broker": self.broker, "process": self.process}


@dataclass(frozen=True)
class BrokerHeartbeat:
    """A process lives. ``end``: that of what it has replayed; ``fence``, ``stop``: what it wants."""

    broker: int
    epoch: int
    end: int
    fence: bool
    stop: bool

    @property
    def asked(self) -> dict[str, Any]:
        """The request, for the driver."""
        return {"kind": "heartbeat", **self.__dict__}


@dataclass(frozen=True)
class AlterPartition:
    """A leader asks for an ISR. ``members``: with the broker epochs that it knows, -1 for others."""

    broker: int
    epoch: int
    partition: int
    topic: str
    leader_epoch: int
    partition_epoch: int
    members: tuple[tuple[int, int], ...]

    @property
    def asked(self) -> dict[str, Any]:
        """The request, for the driver."""
        return {
            "kind": "alter",
            "broker": self.broker,
            "epoch": self.epoch,
            "topic": self.topic,
            "leaderEpoch": self.leader_epoch,
            "partitionEpoch": self.partition_epoch,
            "isr": {str(member): epoch for member, epoch in self.members},
        }


@dataclass(frozen=True)
class Answer:
    """What the driver tells of a request: ``error``, and what else there is."""

    error: str
    told: tuple[tuple[str, Any], ...] = ()

    def get(self, name: str) -> Any:
        """What it tells by that name; None where it does not."""
        return dict(self.told).get(name)


class BrokerRegistrationAnswer(Answer):
    """Of a registration: the broker epoch."""


class BrokerHeartbeatAnswer(Answer):
    """Of a heartbeat: whether the broker has caught up, and whether it may stop."""


class AlterPartitionAnswer(Answer):
    """Of an ISR: whether it is taken up."""


Request = BrokerRegistration | BrokerHeartbeat | AlterPartition
ANSWERS: dict[type, type[Answer]] = {
    BrokerRegistration: BrokerRegistrationAnswer,
    BrokerHeartbeat: BrokerHeartbeatAnswer,
    AlterPartition: AlterPartitionAnswer,
}


@dataclass
class Process:
    """A broker's process. ``epoch``: its broker epoch, -1 until it was told; ``end``: of what it has replayed;
    ``asks``: the controller that it asks; ``ready``: it wants to work; ``may_stop``: it was told so. ``shut_out``:
    another process is registered in its place, so that it registers again (row C6)."""

    broker: int
    number: int
    asks: int
    epoch: int = -1
    end: int = 0
    ready: bool = False
    stops: bool = False
    may_stop: bool = False
    shut_out: bool = False

    def registration(self) -> BrokerRegistration:
        """Its first request."""
        return BrokerRegistration(self.broker, self.number)

    def heartbeat(self) -> BrokerHeartbeat:
        """That it lives; until it knows that it has caught up it wants to stay fenced."""
        return BrokerHeartbeat(
            self.broker, self.epoch, self.end, fence=not self.ready and not self.stops, stop=self.stops
        )

    def leads(self, held: Partition | None) -> bool:
        """Whether it leads a partition, as far as it knows."""
        return held is not None and held.leader == self.broker

    def alteration(self, partition: int, held: Partition, image: Image, other: int, told: int) -> AlterPartition:
        """Another broker is to join the ISR, or to leave it. ``told``: the epoch that its process fetches with."""
        members = {each: image.brokers[each].epoch if each in image.brokers else -1 for each in held.isr}
        if other in members and other != self.broker:
            del members[other]
        elif other != self.broker:
            members[other] = told
        # In the order that it was told: Kafka takes another order for another ISR.
        named = tuple(members.items())
        return AlterPartition(
            self.broker, self.epoch, partition, held.topic, held.leader_epoch, held.partition_epoch, named
        )

    def hear(self, asked: Request, answer: Answer) -> bool:
        """An answer to one of its requests; gives whether it is told its broker epoch."""
        if isinstance(asked, BrokerHeartbeat) and asked.epoch == self.epoch:
            self.shut_out = self.shut_out or answer.error == "STALE_BROKER_EPOCH"
        if answer.error != "NONE":
            return False
        waits = self.epoch < 0 or self.shut_out
        if isinstance(asked, BrokerRegistration) and asked.process == self.number and waits:
            self.epoch, self.ready, self.shut_out = answer.get("epoch"), False, False
            return True
        if isinstance(asked, BrokerHeartbeat) and asked.epoch == self.epoch:
            self.ready = self.ready or bool(answer.get("caughtUp"))
            self.may_stop = self.may_stop or (self.stops and asked.stop and bool(answer.get("mayStop")))
        return False


def cells_of(asked: Request, topics: dict[str, int], brokers: Sequence[int]) -> dict[str, Value]:
    """What a request says, in the cells of the text."""
    if isinstance(asked, BrokerRegistration):
        return {f"as_incarnation[{asked.broker}]": asked.process}
    if isinstance(asked, BrokerHeartbeat):
        return {
            f"beat_epoch[{asked.broker}]": asked.epoch,
            f"beat_end[{asked.broker}]": asked.end,
            f"wants_fence[{asked.broker}]": int(asked.fence),
            f"wants_stop[{asked.broker}]": int(asked.stop),
        }
    where, named = f"[{asked.broker}][{asked.partition}]", dict(asked.members)
    return {
        f"asks_epoch{where}": asked.epoch,
        f"asks_topic{where}": topics.get(asked.topic, -1),
        f"asks_leader_epoch{where}": asked.leader_epoch,
        f"asks_partition_epoch{where}": asked.partition_epoch,
        f"asks_isr{where}": tuple(sorted(named)),
        **{f"asks_member_epoch{where}[{each}]": named.get(each, -1) for each in brokers},
    }
