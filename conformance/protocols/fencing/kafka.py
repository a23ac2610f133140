"""Apache Kafka's brokers as a system that runs freely, held to ``kip-320-kafka``.

The brokers are those of ``conformance/kafka/brokers.py``, which replay one record of the metadata log or several in one
delta. A producer sends with ``acks=all``, and a consumer reads what is committed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any, Final, cast

from ....model.core.errors import BadInput
from ....model.protocols.fencing.state import Rules, fencing
from ....traces.format import Value
from ...kafka.brokers import BrokerSystem
from ...kafka.clients import Produce, ProduceAnswer, Read, ReadAnswer
from ...kafka.controller import Fetch
from ...kafka.process import Jvm
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.mailbox import Letter
from .kafka_steps import stands_for

_MIN_ISR: Final = (1, 1, 2)
"""Below ``min.insync.replicas`` no high watermark moves (KIP-966): one broker may be gone for good, and must not be one
too many."""


class KafkaBrokers(BrokerSystem):
    """Brokers of Apache Kafka, with a controller, a producer and a consumer of ours."""

    name = "kafka"
    protocol = "fencing"
    variant = "kip-320-kafka"
    at_once = 3
    of_real: Final = "kip-320-kafka-fences"
    """The one that real brokers are held to by default, whose controller is Kafka's own (K14)."""

    def __init__(
        self, protocol: str | None = None, variant: str | None = None, make: Callable[[], Jvm] | None = None
    ) -> None:
        rules = {name: cast("Rules", each.rules) for name, each in fencing.variants.items()}
        held = [name for name, each in rules.items() if each.shipped]
        if (protocol or self.protocol) != self.protocol or (variant or self.variant) not in held:
            raise BadInput(f"it is not held to {protocol} {variant}", "--impl kafka", f"name one of {', '.join(held)}")
        self.variant = variant or self.variant
        self._forgets, self.fences = rules[self.variant].forgets, rules[self.variant].fences
        super().__init__(make or (lambda: Jvm(self.release)))

    def build(self, constants: Mapping[str, int], random: Random) -> None:
        """Brokers with an empty log, which nobody leads."""
        self._known: dict[int, int] = {}
        """By leader epoch of the model's, the last partition epoch that its leader has known as such."""
        self.produced = 0
        self.ids: dict[str, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.read: dict[int, int] = {}
        self._cells: dict[int, dict[str, Value]] = {}
        self._begin(constants, minIsr=min(random.choice(_MIN_ISR), max(1, len(self.nodes) - 1)))

    def look(self, node: int, seen: Mapping[str, Any]) -> None:
        """Take in what is seen of a broker that something was done at."""
        for _, _, payload in seen["records"]:
            self.ids.setdefault(payload, len(self.ids))
        self._cells[node] = self._cells_of(node, seen)

    def told(self, told: Mapping[str, Any], request: Letter) -> None:
        """A broker answers a client."""
        if told["kind"] == "produced":
            body: object = ProduceAnswer(told["error"], told["offset"], self.calls[told["request"]]["payload"])
        else:
            body = ReadAnswer(told["error"], tuple((offset, payload) for offset, _, payload in told["records"]))
        self._answer(request, body, told["error"])

    # -- what may happen --------------------------------------------------------------------------------------------

    def offers(self) -> Iterable[Event]:
        """The brokers' timers, the controller's, and what clients and the operator ask for."""
        constants = self.constants
        for node in self.nodes:
            seen = self.seen.get(node)
            if seen is not None and node not in self.down:
                yield from self._timers(node, seen)
            if len(self.ids) < constants["max_records"]:
                yield Event(EventKind.CALL, "produce", args=(("broker", node),))
            for offset in range(seen.get("hw", 0) if seen is not None and node not in self.down else 0):
                yield Event(EventKind.CALL, "read", args=(("broker", node), ("offset", offset)))
            yield from self._elections(node)
        yield from self._leaderless()

    def may_arrive(self, letter: Letter) -> bool:
        """Not a record for which the model has no room."""
        if letter.name != "Produce" or letter.destination is None:
            return True
        end = self.seen[letter.destination]["end"] if letter.destination in self.seen else 0
        return len(self.ids) < self.constants["max_records"] and end < self.constants["log_size"]

    # -- what happens -----------------------------------------------------------------------------------------------

    def act(self, event: Event) -> Sequence[ModelStep]:
        """A timer fires, or somebody asks."""
        if event.what is EventKind.CALL:
            broker = int(event.arg("broker"))
            if event.name == "produce":
                self.mail.send(None, broker, Produce(f"r{self.produced}"))
                self.produced += 1
            else:
                self.mail.send(None, broker, Read(int(event.arg("offset"))))
            return ()
        if event.node is not None and event.name == "isr":
            self._besides += [(f"leader_ask_{what}", {"leader": event.node}) for what in ("shrink", "again")]
        return super().act(event)

    def name_roles(self, node: int, start: int, end: int) -> None:
        """Name the steps that some records of the metadata log may be to a broker."""
        begins = self.controller.begins
        epoch, before = begins[end - 1], begins[start - 1] if start else -1
        learns = ("leader_learn_isr", *(["leader_learn_later_isr"] if self.fences else []))
        self._besides += [(name, {"leader": node}) for name in learns]
        if self._forgets:
            self._besides.append(("leader_replay_isr", {"leader": node}))
        if epoch > before and self.controller.leaders[epoch] == node:
            self._besides.append(("become_leader", {"leader": node, "epoch": epoch}))
        elif epoch > before:
            self._besides.append(("hear_of_leader", {"replica": node, "epoch": epoch}))

    def receive(self, letter: Letter) -> None:
        """A message arrives."""
        node, body = letter.destination, letter.body
        match body:
            case Produce() if node is not None:
                self._from_client("produce", letter, payload=f"{body.payload}.{len(self.calls)}", acks=-1)
            case Read() if node is not None:
                self._from_client("read", letter, offset=body.offset)
            case ProduceAnswer() if body.error == "NONE":
                self.acknowledged[self.ids[body.payload]] = body.offset
            case ReadAnswer() if body.error == "NONE":
                self.read |= {offset: self.ids[payload] for offset, payload in body.records}
            case Fetch() if node is not None:
                self._besides.append(("leader_ask_expand", {"leader": node}))
                super().receive(letter)
            case _:
                super().receive(letter)

    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:
        """What a request is to the model; an answer, what it brings."""
        return stands_for(letter)

    def lose_power(self, node: int, random: Random) -> None:
        """The process is gone; what it wrote is not."""
        super().lose_power(node, random)
        self._cells.pop(node, None)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _cells_of(self, node: int, seen: Mapping[str, Any]) -> dict[str, Value]:
        cells: dict[str, Value] = {f"leo[{node}]": seen["end"]}
        records = {offset: (epoch - 1, self.ids[payload]) for offset, epoch, payload in seen["records"]}
        for offset in range(self.constants["log_size"]):
            epoch, number = records.get(offset, (-1, -1))
            cells[f"record_id[{node}][{offset}]"] = number
            cells[f"record_epoch[{node}][{offset}]"] = epoch
        return cells | (self._roles_of(node, seen) if seen["hosted"] else {})

    def _roles_of(self, node: int, seen: Mapping[str, Any]) -> dict[str, Value]:
        leads = bool(seen["leads"])
        leader = seen["leader"]
        cells: dict[str, Value] = {
            f"hw[{node}]": seen["hw"],
            f"leader_epoch[{node}]": seen["epoch"] - 1,
            f"leader[{node}]": None if leader < 0 else leader,
            f"isr[{node}]": tuple(seen["isr"]) if leads else (),
            f"maximal_isr[{node}]": tuple(seen["maximal"]) if leads else (),
            f"asked_isr[{node}]": tuple(seen["asked"]) if leads else (),
        }
        if self._forgets:
            replayed = self.controller.versions[self.replayed[node]]
            cells[f"ahead[{node}]"] = int(seen["version"] > replayed) if leads else -1
        for follower in self.nodes:
            cells[f"remote_leo[{node}][{follower}]"] = seen["ends"].get(str(follower), -1) if leads else -1
        return cells

    def _requests(self, epoch: int) -> dict[str, Value]:
        """What the controller has on its way to a leader epoch's leader."""
        leader, isr, later = None, frozenset[int](), list[frozenset[int]]()
        if epoch < len(self.controller.leaders):
            leader = self.controller.leaders[epoch]
            seen = self.seen.get(-1 if leader is None else leader)
            if seen is not None and seen["hosted"] and seen["epoch"] - 1 == epoch and seen["leads"]:
                self._known[epoch] = seen["version"]
            isr, later = self.controller.told(epoch, self._known.get(epoch, -1))
        cells: dict[str, Value] = {f"request_leader[{epoch}]": leader, f"request_isr[{epoch}]": tuple(sorted(isr))}
        if self.fences:
            for place in self.nodes:
                cells[f"later_isr[{epoch}][{place}]"] = tuple(sorted(later[place])) if place < len(later) else ()
        return cells

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of brokers that are down."""
        controller, constants = self.controller, self.constants
        cells: dict[str, Value] = {
            "next_record_id": len(self.ids),
            "next_leader_epoch": controller.epoch,
            "quorum_leader_epoch": controller.epoch - 1,
            "quorum_leader": controller.leader,
            "quorum_isr": tuple(sorted(controller.isr)),
        }
        for epoch in range(constants["max_leader_epoch"] + 1):
            cells |= self._requests(epoch)
        for record in range(constants["max_records"]):
            cells[f"acknowledged[{record}]"] = self.acknowledged.get(record, -1)
        for offset in range(constants["log_size"]):
            cells[f"read[{offset}]"] = self.read.get(offset, -1)
        for node in self.nodes:
            cells |= self._cells.get(node, {})
        return cells
