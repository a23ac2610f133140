"""Brokers of Apache Kafka with one partition, as a system that runs freely: whatever they are held to.

Each broker is Kafka's ReplicaManager over its LogManager, in a JVM. Ours are the clock, the timers, the wire, the
clients, and the controller, which has a metadata log of the partition's changes: a broker replays one record of it, or
several in one delta. A broker's process crashes; what it wrote to its files stays.

Kafka counts leader epochs from 0, in which nobody leads yet; a model's first one is Kafka's second.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from ..lockstep.adapter import ModelStep
from ..simulation.events import Event, EventKind
from ..simulation.mailbox import Letter, MailSystem
from ..simulation.system import StepResult
from .controller import CODES, AlterPartition, AlterPartitionAnswer, Controller, Fetch, FetchAnswer
from .process import Jvm, OfKafka


class BrokerSystem(OfKafka, MailSystem):
    """Brokers and their controller. A subclass has the clients, and says what of it all a model has a word for."""

    at_once = 1
    """So many records of the metadata log come in one delta at most."""
    fences = False
    """Whether a failed follower leaves the ISR in the same leader epoch (K14): a step that not every variant has."""

    def __init__(self, make: Callable[[], Jvm]) -> None:
        self._make = make
        self._jvm: Jvm | None = None

    def _begin(self, constants: Mapping[str, int], **configuration: Any) -> None:
        """Brokers with an empty log, which nobody leads; ``configuration``: what the driver's reset is told besides."""
        if self._jvm is None:
            self._jvm = self._make()
        self.constants = constants
        self.controller = Controller(self.nodes, fences=self.fences)
        self.replayed = dict.fromkeys(self.nodes, 0)
        """By broker, how many records of the metadata log it has replayed."""
        self.waiting: set[int] = set()
        """Brokers that are up, and were not registered: they have replayed nothing."""
        self.asked: dict[int, Letter] = {}
        """Requests of followers, of leaders to the controller, and of clients, by their numbers at the driver."""
        self.calls: dict[int, Mapping[str, Any]] = {}
        """What the driver was told of clients' requests, by their numbers."""
        self.seen: dict[int, Mapping[str, Any]] = {}
        self._besides: list[ModelStep] = []
        self._ask("reset", nodes=len(self.nodes), **configuration)

    def _ask(self, do: str, **more: Any) -> Mapping[str, Any]:
        """Have the driver do something, and look at whom it touched; gives its answer."""
        assert self._jvm is not None
        answer = self._jvm.ask(do, **more)
        self.told_first(answer, do)
        for name, seen in answer["seen"].items():
            self.seen[int(name)] = seen
        for name, seen in answer["seen"].items():
            self.look(int(name), seen)
        return answer

    def _at(self, do: str, node: int, **more: Any) -> Mapping[str, Any]:
        """The same at one broker; what it sends is in flight from then on."""
        answer = self._ask(do, node=node, **more)
        for each in answer["sent"]:
            self._send(each)
        return answer

    def _from_client(self, do: str, letter: Letter, **more: Any) -> None:
        """A client's request arrives. Its number is none of the driver's, and each arrival has its own."""
        number = -1 - len(self.calls)
        self.calls[number] = more
        self.asked[number] = letter
        assert letter.destination is not None
        self._at(do, letter.destination, request=number, **more)

    def told_first(self, answer: Mapping[str, Any], do: str) -> None:
        """Take in what the driver says besides, before anybody is looked at."""

    @abstractmethod
    def look(self, node: int, seen: Mapping[str, Any]) -> None:
        """Take in what is seen of a broker that something was done at."""

    @abstractmethod
    def told(self, told: Mapping[str, Any], request: Letter) -> None:
        """A broker answers a client."""

    def _send(self, told: Mapping[str, Any]) -> None:
        source = told["from"]
        match told["kind"]:
            case "fetch":
                self.asked[told["id"]] = self.mail.send(source, told["to"], Fetch(told["id"], told["epoch"]))
            case "fetched":
                diverges, records = "diverging" in told, len(told["records"])
                brought = FetchAnswer(told["id"], told["error"], diverges, records, told["bytes"])
                self._answer(self.asked[told["request"]], brought, told["error"])
            case "alter":
                body = AlterPartition(told["id"], told["epoch"], frozenset(told["isr"]), told["version"])
                self.asked[told["id"]] = self.mail.send(source, None, body)
            case "produced" | "read":
                self.told(told, self.asked[told["request"]])
            case other:
                raise AssertionError(f"a broker sent {other}, which nobody here can answer")

    def _answer(self, request: Letter, body: object, error: str) -> None:
        """Answer; the decision is judged where the model has a word for it."""
        if error in CODES:
            self.mail.answer(request, body, CODES[error])
        else:
            self.mail.send(request.destination, request.source, body, request)

    def _left(self) -> int:
        """How many leader epochs the model has left."""
        return self.constants["max_leader_epoch"] - len(self.controller.leaders) + 1

    def _has_epoch(self, node: int) -> bool:
        """Whether the model has a leader epoch for a broker's failure, if that takes one."""
        return self._left() > 0 or not self.controller.takes_epoch(node)

    def _timers(self, node: int, seen: Mapping[str, Any]) -> Iterable[Event]:
        if seen["fetcher"] == "idle":
            yield Event(EventKind.TIMER, "fetch", node)
        elif seen["fetcher"] == "waits":
            yield Event(EventKind.TIMER, "timeout", node)
        if seen.get("leads"):
            yield Event(EventKind.TIMER, "isr", node)
        if seen["asks"] >= 0 and self.asked[seen["asks"]].number not in self.mail.in_flight:
            yield Event(EventKind.TIMER, "ask again", node)
        yield Event(EventKind.TIMER, "checkpoint", node)
        if node not in self.cut | self.waiting:
            for count in range(1, min(self.at_once, len(self.controller.log) - self.replayed[node]) + 1):
                yield Event(EventKind.TIMER, "metadata", node, args=(("records", count),))

    def _elections(self, node: int) -> Iterable[Event]:
        """What the operator may do with a broker, and whether its session is over."""
        controller, left = self.controller, self._left()
        if left > 0 and node in controller.isr and node != controller.leader:
            yield Event(EventKind.OPERATE, "elect", args=(("broker", node),))
        if node in self.down | self.cut and self._may_fail(node) and self._has_epoch(node):
            yield Event(EventKind.TIMER, "session", args=(("broker", node),))

    def _may_fail(self, node: int) -> bool:
        """Whether there is anything to take from a broker whose session is over."""
        return self.controller.may_fail(node)

    def _leaderless(self) -> Iterable[Event]:
        """Where nobody leads the controller elects whoever can."""
        able = [node for node in sorted(self.controller.isr) if node not in self.down | self.cut]
        if self._left() > 0 and self.controller.leader is None and able:
            yield Event(EventKind.TIMER, "elect", args=(("broker", able[0]),))

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """Let it happen. What is no message's doing was named before power may have gone: it is told even then."""
        self._besides = []
        happened = super().step(event)
        return replace(happened, steps=(*happened.steps, *self._besides))

    def act(self, event: Event) -> Sequence[ModelStep]:
        """A timer of a broker or of the controller fires, or the operator elects."""
        node = event.node
        if node is None:
            broker = int(event.arg("broker"))
            if event.name == "session":
                self._fail(broker)
            else:
                self.controller.begin(broker, self.controller.isr)
                self._besides.append(("controller_elect_leader", {"new_leader": broker}))
            return ()
        match event.name:
            case "fetch" | "timeout" | "checkpoint":
                self._at(event.name, node)
            case "isr":
                self._at("shrink", node)
            case "ask again":
                # As after a connection that broke: the very request is sent once more.
                letter = self.asked[self.seen[node]["asks"]]
                self.mail.in_flight[letter.number] = letter
            case "metadata":
                self._replay(node, int(event.arg("records")))
        return ()

    def _fail(self, broker: int) -> None:
        others = [node for node in self.nodes if node != broker and node not in self.down | self.cut]
        self._besides += self.controller.fail(broker, others)

    def _replay(self, node: int, count: int) -> None:
        """A broker replays records in one delta, and takes up what they come to."""
        start = self.replayed[node]
        self.replayed[node] = start + count
        self.name_roles(node, start, start + count)
        self._at("metadata", node, records=self.controller.log[start : start + count])

    def name_roles(self, node: int, start: int, end: int) -> None:
        """Name the steps that some records of the metadata log may be to a broker."""

    def receive(self, letter: Letter) -> None:
        """A message of a broker, or of the controller, arrives."""
        node, body = letter.destination, letter.body
        match body:
            case Fetch() if node is not None:
                self._at("serve", node, id=body.number)
            case FetchAnswer() if node is not None:
                self._at("answer", node, id=body.number)
            case AlterPartition():
                answer = self.controller.alter(letter.source, body)
                self._answer(letter, answer, answer.error)
            case AlterPartitionAnswer() if node is not None:
                self._take_isr(node, body)

    def _take_isr(self, node: int, body: AlterPartitionAnswer) -> None:
        more: dict[str, Any] = {}
        if body.error == "NONE":
            more = {"leader": body.leader, "epoch": body.epoch, "isr": sorted(body.isr), "version": body.version}
        self._at("altered", node, request=body.request, error=body.error, **more)

    def lose_power(self, node: int, random: Random) -> None:  # noqa: ARG002 - a process dies, and its files are there
        """The process is gone; what it wrote is not."""
        self._ask("crash", node=node)
        self.waiting.discard(node)
        self.seen.pop(node, None)

    def start(self, node: int) -> None:
        """A process starts: it is registered anew, which ends what it was before, and replays all of the log.

        Where the model has no leader epoch left for that, it waits to be registered.
        """
        if self._may_fail(node) and not self._has_epoch(node):
            self.waiting.add(node)
            self._at("start", node, records=None)
            return
        if self._may_fail(node):
            self._fail(node)
        end = len(self.controller.log)
        self.replayed[node] = end
        if end:
            self.name_roles(node, 0, end)
        self._at("start", node, records=self.controller.log)

    def close(self) -> None:
        """End the JVM."""
        if self._jvm is not None:
            self._jvm.close()
            self._jvm = None
