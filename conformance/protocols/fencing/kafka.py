"""Apache Kafka's brokers as a system that runs freely, held to ``kip-320-kafka``.

Each broker is Kafka's ReplicaManager over its LogManager, in a JVM (``conformance/kafka/``). Ours are the clock, the
timers, the wire, the clients, and the controller, which has a metadata log of the partition's changes: a broker replays
one record of it, or several in one delta. A broker's process crashes; what it wrote to its files stays.

Kafka counts leader epochs from 0, in which nobody leads yet; the model's first one is Kafka's second.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, cast

from ....model.core.errors import BadInput
from ....model.protocols.fencing.state import Rules, fencing
from ....traces.format import Value
from ...free.events import Event, What
from ...free.mailbox import Letter, MailSystem
from ...free.system import Happened
from ...kafka.process import Jvm, OfKafka
from ...lockstep.adapter import ModelStep
from .kafka_controller import (
    AlterPartition,
    AlterPartitionAnswer,
    Controller,
    Fetch,
    FetchAnswer,
    Produce,
    ProduceAnswer,
    Read,
    ReadAnswer,
)

_CODES: Final = {
    "NONE": None,
    "FENCED_LEADER_EPOCH": "FENCED_REPLICA",
    "UNKNOWN_LEADER_EPOCH": "UNKNOWN_LEADER_EPOCH",
    "NOT_LEADER_OR_FOLLOWER": "NOT_LEADER_OR_FOLLOWER",
}
"""Kafka's error codes by the protocol's names (K1); others say nothing to the model."""
_AT_ONCE: Final = 3
"""So many records of the metadata log come in one delta at most."""
_MIN_ISR: Final = (1, 1, 2)
"""Below ``min.insync.replicas`` no high watermark moves (KIP-966): one broker may be gone for good, and must not be one
too many."""


class KafkaBrokers(OfKafka, MailSystem):
    """Brokers of Apache Kafka, with a controller, a producer and a consumer of ours."""

    name = "kafka"
    protocol = "fencing"
    variant = "kip-320-kafka"
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
        self._forgets, self._fences = rules[self.variant].forgets, rules[self.variant].fences
        self._make = make or (lambda: Jvm(self.release))
        self._jvm: Jvm | None = None

    def build(self, constants: Mapping[str, int], random: Random) -> None:
        """Brokers with an empty log, which nobody leads."""
        if self._jvm is None:
            self._jvm = self._make()
        self.constants = constants
        self.controller = Controller(self.nodes, fences=self._fences)
        self._known: dict[int, int] = {}
        """By leader epoch of the model's, the last partition epoch that its leader has known as such."""
        self.replayed = dict.fromkeys(self.nodes, 0)
        """By broker, how many records of the metadata log it has replayed."""
        self.waiting: set[int] = set()
        """Brokers that are up, and were not registered: they have replayed nothing."""
        self.produced = 0
        self._clients: list[str] = []
        """What clients have asked of brokers, in the order in which it came: payloads of records, or nothing."""
        self.asked: dict[int, Letter] = {}
        """Requests of followers, of leaders to the controller, and of clients, by their numbers at the driver."""
        self.ids: dict[str, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.read: dict[int, int] = {}
        self.seen: dict[int, Mapping[str, Any]] = {}
        self._cells: dict[int, dict[str, Value]] = {}
        self._ask("reset", nodes=len(self.nodes), minIsr=min(random.choice(_MIN_ISR), max(1, len(self.nodes) - 1)))

    def _ask(self, do: str, **more: Any) -> list[Mapping[str, Any]]:
        """Have the driver do something, and look at whom it touched; gives what was sent."""
        assert self._jvm is not None
        answer = self._jvm.ask(do, **more)
        for name, seen in answer["seen"].items():
            self.seen[int(name)] = seen
            for _, _, payload in seen["records"]:
                self.ids.setdefault(payload, len(self.ids))
            self._cells[int(name)] = self._cells_of(int(name), seen)
        sent: list[Mapping[str, Any]] = answer["sent"]
        return sent

    def _at(self, do: str, node: int, **more: Any) -> None:
        """The same at one broker; what it sends is in flight from then on."""
        for each in self._ask(do, node=node, **more):
            self._send(each)

    def _send(self, told: Mapping[str, Any]) -> None:
        source = told["from"]
        match told["kind"]:
            case "fetch":
                self.asked[told["id"]] = self.mail.send(source, told["to"], Fetch(told["id"]))
            case "fetched":
                brought = FetchAnswer(told["id"], told["error"], "diverging" in told, len(told["records"]))
                self._answer(self.asked[told["request"]], brought, told["error"])
            case "alter":
                body = AlterPartition(told["id"], told["epoch"], frozenset(told["isr"]), told["version"])
                self.asked[told["id"]] = self.mail.send(source, None, body)
            case "produced":
                self._answer(self.asked[told["request"]], self._produced(told), told["error"])
            case "read":
                records = tuple((offset, payload) for offset, _, payload in told["records"])
                self._answer(self.asked[told["request"]], ReadAnswer(told["error"], records), told["error"])
            case other:
                raise AssertionError(f"a broker sent {other}, which nobody here can answer")

    def _produced(self, told: Mapping[str, Any]) -> ProduceAnswer:
        return ProduceAnswer(told["error"], told["offset"], self._clients[-1 - told["request"]])

    def _answer(self, request: Letter, body: object, error: str) -> None:
        """Answer; the decision is judged where the model has a word for it."""
        if error in _CODES:
            self.mail.answer(request, body, _CODES[error])
        else:
            self.mail.send(request.destination, request.source, body, request)

    # -- what may happen --------------------------------------------------------------------------------------------

    def offers(self) -> Iterable[Event]:
        """The brokers' timers, the controller's, and what clients and the operator ask for."""
        controller, constants = self.controller, self.constants
        left = self._left()
        for node in self.nodes:
            seen = self.seen.get(node)
            if seen is not None and node not in self.down:
                yield from self._timers(node, seen)
            if len(self.ids) < constants["max_records"]:
                yield Event(What.CALL, "produce", args=(("broker", node),))
            for offset in range(seen.get("hw", 0) if seen is not None and node not in self.down else 0):
                yield Event(What.CALL, "read", args=(("broker", node), ("offset", offset)))
            if left > 0 and node in controller.isr and node != controller.leader:
                yield Event(What.OPERATE, "elect", args=(("broker", node),))
            if node in self.down | self.cut and controller.may_fail(node) and self._has_epoch(node):
                yield Event(What.TIMER, "session", args=(("broker", node),))
        able = [node for node in sorted(controller.isr) if node not in self.down | self.cut]
        if left > 0 and controller.leader is None and able:
            yield Event(What.TIMER, "elect", args=(("broker", able[0]),))

    def _left(self) -> int:
        """How many leader epochs the model has left."""
        return self.constants["max_leader_epoch"] - len(self.controller.leaders) + 1

    def _has_epoch(self, node: int) -> bool:
        """Whether the model has a leader epoch for a broker's failure, if that takes one."""
        return self._left() > 0 or not self.controller.takes_epoch(node)

    def _timers(self, node: int, seen: Mapping[str, Any]) -> Iterable[Event]:
        if seen["fetcher"] == "idle":
            yield Event(What.TIMER, "fetch", node)
        elif seen["fetcher"] == "waits":
            yield Event(What.TIMER, "timeout", node)
        if seen.get("leads"):
            yield Event(What.TIMER, "isr", node)
        if seen["asks"] >= 0 and self.asked[seen["asks"]].number not in self.mail.in_flight:
            yield Event(What.TIMER, "ask again", node)
        yield Event(What.TIMER, "checkpoint", node)
        if node not in self.cut | self.waiting:
            for count in range(1, min(_AT_ONCE, len(self.controller.log) - self.replayed[node]) + 1):
                yield Event(What.TIMER, "metadata", node, args=(("records", count),))

    def may_arrive(self, letter: Letter) -> bool:
        """Not a record for which the model has no room."""
        if letter.name != "Produce" or letter.destination is None:
            return True
        end = self.seen[letter.destination]["end"] if letter.destination in self.seen else 0
        return len(self.ids) < self.constants["max_records"] and end < self.constants["log_size"]

    # -- what happens -----------------------------------------------------------------------------------------------

    def act(self, event: Event) -> Sequence[ModelStep]:
        """A timer fires, or somebody asks."""
        node = event.node
        if node is not None:
            match event.name:
                case "fetch" | "timeout":
                    self._at(event.name, node)
                case "isr":
                    self._besides += [(f"leader_ask_{what}", {"leader": node}) for what in ("shrink", "again")]
                    self._at("shrink", node)
                case "ask again":
                    # As after a connection that broke: the very request is sent once more.
                    letter = self.asked[self.seen[node]["asks"]]
                    self.mail.in_flight[letter.number] = letter
                case "checkpoint":
                    self._at("checkpoint", node)
                case "metadata":
                    self._replay(node, int(event.arg("records")))
            return ()
        broker = int(event.arg("broker"))
        match event.name:
            case "produce":
                self.mail.send(None, broker, Produce(f"r{self.produced}"))
                self.produced += 1
            case "read":
                self.mail.send(None, broker, Read(int(event.arg("offset"))))
            case "elect":
                self.controller.begin(broker, self.controller.isr)
                self._besides.append(("controller_elect_leader", {"new_leader": broker}))
            case "session":
                self._fail(broker)
        return ()

    def happen(self, event: Event) -> Happened:
        """Let it happen. What is no message's doing was named before power may have gone: it is told even then."""
        self._besides: list[ModelStep] = []
        happened = super().happen(event)
        return replace(happened, steps=(*happened.steps, *self._besides))

    def _fail(self, broker: int) -> None:
        others = [node for node in self.nodes if node != broker and node not in self.down | self.cut]
        self._besides += self.controller.fail(broker, others)

    def _replay(self, node: int, count: int) -> None:
        """A broker replays records in one delta, and takes up what they come to."""
        start = self.replayed[node]
        self.replayed[node] = start + count
        self._name_roles(node, start, start + count)
        self._at("metadata", node, records=self.controller.log[start : start + count])

    def _name_roles(self, node: int, start: int, end: int) -> None:
        """The steps that some records of the metadata log may be to a broker."""
        begins = self.controller.begins
        epoch, before = begins[end - 1], begins[start - 1] if start else -1
        learns = ("leader_learn_isr", *(["leader_learn_later_isr"] if self._fences else []))
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
            case Fetch() if node is not None:
                self._besides.append(("leader_ask_expand", {"leader": node}))
                self._at("serve", node, id=body.number)
            case FetchAnswer() if node is not None:
                self._at("answer", node, id=body.number)
            case AlterPartition():
                answer = self.controller.alter(letter.source, body)
                self._answer(letter, answer, answer.error)
            case AlterPartitionAnswer() if node is not None:
                self._take_isr(node, body)
            case Produce() if node is not None:
                payload = f"{body.payload}.{len(self._clients)}"
                self._from_client("produce", letter, payload, payload=payload, acks=-1)
            case Read() if node is not None:
                self._from_client("read", letter, "", offset=body.offset)
            case ProduceAnswer() if body.error == "NONE":
                self.acknowledged[self.ids[body.payload]] = body.offset
            case ReadAnswer() if body.error == "NONE":
                self.read |= {offset: self.ids[payload] for offset, payload in body.records}

    def _take_isr(self, node: int, body: AlterPartitionAnswer) -> None:
        more: dict[str, Any] = {}
        if body.error == "NONE":
            more = {"leader": body.leader, "epoch": body.epoch, "isr": sorted(body.isr), "version": body.version}
        self._at("altered", node, request=body.request, error=body.error, **more)

    def _from_client(self, do: str, letter: Letter, told: str, **more: Any) -> None:
        # Negative, so that it is no number of the driver's; each arrival has its own.
        number = -1 - len(self._clients)
        self._clients.append(told)
        self.asked[number] = letter
        assert letter.destination is not None
        self._at(do, letter.destination, request=number, **more)

    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:
        """What a request is to the model; an answer, what it brings."""
        request = letter.request or letter
        # Of what stands for nothing, and of clients, one of them is None; those are in no step.
        asker: Any = request.source
        asked: Any = request.destination
        pair = {"leader": asked, "follower": asker}
        match letter.body:
            case Fetch():
                return [("follower_acknowledge", pair)]
            case FetchAnswer(error="NONE", diverges=True):
                return [("truncate_partly", pair)]
            case FetchAnswer(error="NONE") as brought:
                hears = [("follower_hear_high_watermark", pair)]
                return [("follower_fetch", pair), *hears] if brought.records else hears
            case AlterPartition():
                return [("controller_grant_isr", {"leader": asker})]
            case AlterPartitionAnswer():
                return [("leader_learn_isr", {"leader": asker})]
            case Produce():
                return [("leader_write", {"leader": asked})]
            case ProduceAnswer(error="NONE") as told:
                return [("producer_hears", {"leader": asked, "offset": told.offset})]
            case Read(offset):
                return [("consumer_reads", {"leader": asked, "offset": offset})]
            case ReadAnswer(error="NONE") as told:
                return [("consumer_reads", {"leader": asked, "offset": offset}) for offset, _ in told.records]
        return ()

    def lose_power(self, node: int, random: Random) -> None:  # noqa: ARG002 - a process dies, and its files are there
        """The process is gone; what it wrote is not."""
        self._ask("crash", node=node)
        self.waiting.discard(node)
        self.seen.pop(node, None)
        self._cells.pop(node, None)

    def start(self, node: int) -> None:
        """A process starts: it is registered anew, which ends what it was before, and replays all of the log.

        Where the model has no leader epoch left for that, it waits to be registered.
        """
        if self.controller.may_fail(node) and not self._has_epoch(node):
            self.waiting.add(node)
            self._at("start", node, records=None)
            return
        if self.controller.may_fail(node):
            self._fail(node)
        end = len(self.controller.log)
        self.replayed[node] = end
        if end:
            self._name_roles(node, 0, end)
        self._at("start", node, records=self.controller.log)

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
        if self._fences:
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

    def close(self) -> None:
        """End the JVM."""
        if self._jvm is not None:
            self._jvm.close()
            self._jvm = None
