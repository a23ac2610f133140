"""Apache Kafka's brokers with tiered storage, running freely, held to ``kip-1023-kafka``.

The brokers are those of ``conformance/kafka/brokers.py``. Each has Kafka's RemoteLogManager, whose tasks stop before
each write to the remote log metadata and before each request to the store, and go on when an event says so: meanwhile a
leader may be deposed, or its process end. A follower begins by Kafka's TierStateMachine. The store is a folder that may
fail at a broker, and the metadata are one log, which each broker reads by itself.

Who leads, how far a log goes and what is committed is taken as it comes: ``fencing`` judges that. There is no retention
but the local one, and nobody reads what is in remote storage.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, cast

from ....model.core.errors import BadInput
from ....model.protocols.tiering.impl_state import GIVEN, NOT_LOOKED, OF_BROKER, Rules, tiered
from ....traces.format import Value
from ...kafka.brokers import BrokerSystem
from ...kafka.clients import Produce, ProduceAnswer
from ...kafka.controller import Fetch, FetchAnswer
from ...kafka.process import TIERED, Jvm
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.mailbox import Letter
from ...simulation.system import EnabledEvent, StepResult
from .kafka_copies import Copies, lineage_of
from .kafka_messages import (
    TELLS,
    ListOffsets,
    ListOffsetsAnswer,
    OffsetsForLeaderEpoch,
    OffsetsForLeaderEpochAnswer,
    answered_with,
    asked_by,
)
from .kafka_workload import weighed
from .observation import Looks
from .responses import Written, check_local
from .steps import steps_of_broker, steps_of_copies

_SEGMENTS: Final = ("100", "100", "160")
"""``segment.bytes``: a batch of one record has some 70."""
_UNBORN: Final = 2
"""So many produces may be on their way."""
_COLD: Final = 4
"""One of so many runs begins before anybody leads."""
_AT_FIRST: Final = (3, 5, 7)
"""So many records there are in the others, as far as the model has room."""
_SPARE: Final = 8
"""So many copies are left for the end of a run."""
_LAST_EPOCHS: Final = 3
"""So many leader epochs, too."""
_UPLOADED: Final = (0, 7, 40)
"""So many steps of a task; three are a segment."""
_FAILS, _WORKS = "store-fails", "store-works"
"""Of a broker's store, not of its own disk: the broker is well."""
_TASKS: Final = frozenset({"copy", "expire", "go"})
_TOLD: Final = tuple(TELLS.values())


class KafkaTiering(BrokerSystem):
    """Brokers, their remote log managers, and a producer."""

    name = "kafka"
    protocol = "tiering"
    variant = "kip-1023-kafka"

    def __init__(
        self, protocol: str | None = None, variant: str | None = None, make: Callable[[], Jvm] | None = None
    ) -> None:
        rules = {name: cast("Rules", each.rules) for name, each in tiered.variants.items()}
        held = [name for name, each in rules.items() if each.of_kafka]
        if (protocol or self.protocol) != self.protocol or (variant or self.variant) not in held:
            raise BadInput(f"it is not held to {protocol} {variant}", "--impl kafka", f"name one of {', '.join(held)}")
        self.variant = variant or self.variant
        self._rules = rules[self.variant]
        super().__init__(make or (lambda: Jvm(self.release, drives=TIERED)))

    def build(self, constants: Mapping[str, int], random: Random) -> None:
        """Brokers with an empty log, which nobody leads."""
        self.written = Written()
        self.copies = Copies(self.written)
        self._produced = 0
        self._starts: dict[int, int] = {}
        """By number of a leader's answer to a fetch, the log start that it tells."""
        self._asks: dict[int, Letter] = {}
        """By follower, what it has asked for last."""
        self._begins = dict.fromkeys(self.nodes, "nowhere")
        self._told: dict[int, dict[str, int]] = {node: {} for node in self.nodes}
        self._settled = dict.fromkeys(self.nodes, -1)
        """The model's leader epoch in which a follower has been answered that its log does not part."""
        self._looked = dict.fromkeys(self.nodes, False)
        """Whether anybody has looked for the highest offset in this process of a broker."""
        self._failing: set[int] = set()
        self._cells: dict[int, dict[str, Value]] = {}
        self._looks = Looks(constants, self.written)
        self._decisions: list[ModelStep] = []
        self._ends = False
        self._flag = random.random() < 0.7
        topic = {
            "internal.segment.bytes": random.choice(_SEGMENTS),
            "local.retention.bytes": "1",
            "retention.bytes": "-1",
            "retention.ms": "-1",
        }
        self._kept: dict[int, dict[str, Value]] = {node: self._of_broker(node, {}) for node in self.nodes}
        at_least = min(random.choice((1, 1, 2)), max(1, len(self.nodes) - 1))
        self._begin(constants, minIsr=at_least, topic=topic, fromTiered=self._flag)
        if random.randrange(_COLD):
            self._prepare(random)
        self._observed = self._picture()

    def _prepare(self, random: Random) -> None:
        """Somebody leads alone, and has uploaded some of its records; another one may have the first of them."""
        leader, *others = random.sample(self.nodes, len(self.nodes))
        follower = others[0] if others and random.random() < 0.5 else None
        self.controller.begin(leader, frozenset({leader}))
        for node in (leader, *([] if follower is None else [follower])):
            self._replay(node, 1)
        for number in range(min(random.choice(_AT_FIRST), self.constants["log_size"] - 1)):
            self._produce(leader)
            self._arrive_all()
            if number == 0 and follower is not None:
                self._at("fetch", follower)
                self._arrive_all()
        self.act(Event(EventKind.TIMER, "copy", leader))
        for _ in range(random.choice(_UPLOADED)):
            if self.seen[leader]["busy"]:
                self.act(Event(EventKind.TIMER, "go", leader))
        if random.random() < 0.7:
            self._at("retain", leader)

    def _arrive_all(self) -> None:
        """Of what is in flight nothing is left."""
        while self.mail.in_flight:
            number, letter = next(iter(self.mail.in_flight.items()))
            del self.mail.in_flight[number]
            self.receive(letter)

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New logs, and whoever sees them begins with what there is."""
        return replace(super().reset(constants, seed), inputs=frozenset(self._observed))

    # -- looking ----------------------------------------------------------------------------------------------------

    def told_first(self, answer: Mapping[str, Any], do: str) -> None:  # noqa: ARG002 - of any command
        """What was written to the remote log metadata."""
        self.copies.is_written(answer["metadata"])

    def look(self, node: int, seen: Mapping[str, Any]) -> None:
        """Take in a broker. Raises WrongRecord."""
        if self._ends:
            return  # it has done more than what is left of its process
        self._looked[node] |= bool(seen["looked"] or seen.get("highestRemote", -1) >= 0)
        self._cells[node] = self._cells_of(node, seen) if seen["hosted"] else {}
        self._kept[node] = self._of_broker(node, seen)

    def _of_broker(self, node: int, seen: Mapping[str, Any]) -> dict[str, Value]:
        """What is shown also of a broker that is down: it may have decided something by it."""
        epochs, told = seen.get("epochs", ()), self._told[node]
        active, high = seen.get("active", 0), seen.get("hw", 0)
        return {
            "hw": high,
            "rolled": active if active <= high else 0,
            "first_epoch": epochs[0][0] - 1 if epochs else -1,
            "has_read": seen.get("read", 0),
            "flag": int(self._flag),
            **{f"told_{name}": told.get(name, -1) for name in _TOLD},
        }

    def _cells_of(self, node: int, seen: Mapping[str, Any]) -> dict[str, Value]:
        start, local, end, epoch = seen["logStart"], seen["localStart"], seen["end"], seen["epoch"] - 1
        leads, at = bool(seen["leads"]), f"[{node}]"
        rows = [(offset, of - 1, payload.encode()) for offset, of, payload in seen["records"]]
        self.written.add(rows, f"the log of broker {node}")
        lineage = lineage_of(seen["epochs"], start, end)
        begins = [each for _, each in seen["epochs"]]
        # A process that starts may have an older log start than the leader epochs that it knows (TK12).
        unknown = {offset: of for offset, of, _ in rows if begins and offset < begins[0]}
        check_local(node, rows, unknown | lineage, local, end, begins)
        looked = self._looked[node] if self._rules.keeps_highest else leads and seen["looked"]
        cells: dict[str, Value] = {
            f"leads{at}": int(leads),
            f"settled{at}": int(not leads and self._settled[node] == epoch),
            f"leader_epoch{at}": epoch,
            f"log_start{at}": start,
            f"local_start{at}": local,
            f"leo{at}": end,
            f"highest_remote{at}": seen["highestRemote"] if looked else NOT_LOOKED,
        }
        return cells | {f"record_epoch{at}[{o}]": lineage.get(o, -1) for o in range(self.constants["log_size"])}

    def observe(self) -> Mapping[str, Value]:
        """Everything but what is in the memory of who is down."""
        return self._observed

    def _picture(self) -> dict[str, Value]:
        cells: dict[str, Value] = {
            "newest_epoch": self.controller.epoch - 1,
            "elected": self.controller.leader,
            "isr": tuple(sorted(self.controller.isr)),
            "metadata_leader": None,
            "retention": 0,
        }
        for node in self.nodes:
            cells |= self._cells.get(node, {})
            if node in self.seen and self._cells.get(node):
                if not self._is_building(node, self.seen[node]):
                    self._begins[node] = "nowhere"
                cells[f"begins[{node}]"] = self._begins[node]
                for copy in range(self.constants["copies"]):
                    cells[f"deletes[{node}][{copy}]"] = int((node, copy) in self.copies.deletes)
            cells |= {f"{name}[{node}]": self._kept[node][name] for name in OF_BROKER}
        making, copies = self.copies.making(), self.copies
        return cells | self._looks.copies(copies.view, making, copies.begun, copies.done, copies.stored)

    # -- what may happen --------------------------------------------------------------------------------------------

    def peace(self, *, on: bool) -> None:
        """Nothing is kept waiting any more, and the store works."""
        super().peace(on=on)
        for node in sorted(self._failing) if on else ():
            self._fails(node, fails=False)

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen, with how likely it is; nothing where the run has used up what the model has."""
        if self._peace:
            return super().pending()
        if self._left() <= _LAST_EPOCHS:
            return ()
        building = [node for node, seen in self.seen.items() if self._is_building(node, seen)]
        return list(weighed(super().pending(), self._seed, len(self.nodes), building))

    def offers(self) -> Iterable[Event]:
        """Timers of brokers and of the controller, tasks of remote log managers, and what is asked for."""
        for node in self.nodes:
            seen = self.seen.get(node)
            if seen is not None and node not in self.down:
                yield from self._timers(node, seen)
                yield from self._tasks(node, seen)
            elif node in self.down and node not in self.controller.isr and self._cells.get(node):
                yield Event(EventKind.OPERATE, "replace", args=(("broker", node),))
            yield from self._elections(node)
            if self._left() > 0 and node not in self.controller.isr | self.down | self.cut:
                yield Event(EventKind.OPERATE, "elect-unclean", args=(("broker", node),))
        yield from self._leaderless()

    def _timers(self, node: int, seen: Mapping[str, Any]) -> Iterable[Event]:
        for event in super()._timers(node, seen):
            # Who asks where to begin keeps the lock that is wanted to end its fetcher.
            if event.name == "metadata" and self._is_building(node, seen):
                continue
            # In peace nobody is late, and who begins asks several times.
            if event.name == "timeout" and self._peace and self._is_on_its_way(self._asks.get(node)):
                continue
            yield event

    def _is_on_its_way(self, asked: Letter | None) -> bool:
        """A request, or its answer."""
        return any(asked in (each, each.request) for each in self.mail.in_flight.values())

    def _is_building(self, node: int, seen: Mapping[str, Any]) -> bool:
        asks = self._asks.get(node)
        return bool(seen["fetcher"] == "waits" and asks is not None and not isinstance(asks.body, Fetch))

    def _tasks(self, node: int, seen: Mapping[str, Any]) -> Iterator[Event]:
        yield Event(EventKind.DISK, _WORKS if node in self._failing else _FAILS, node)
        if seen["read"] < self.copies.view.end:
            yield Event(EventKind.TIMER, "learn", node)
        if not seen["hosted"]:
            return
        if seen["busy"]:
            yield Event(EventKind.TIMER, "go", node)
        elif seen.get("leads"):
            left = self.constants["copies"] - self.copies.count - (0 if self._peace else _SPARE)
            if left > seen["end"] - seen["localStart"]:
                yield Event(EventKind.TIMER, "copy", node)
            yield Event(EventKind.TIMER, "expire", node)
        if seen["end"] - seen["localStart"] > 1:
            yield Event(EventKind.TIMER, "retain", node)
        unborn = sum(each.name == "Produce" for each in self.mail.in_flight.values())
        if seen.get("leads") and seen["end"] < self.constants["log_size"] and unborn < _UNBORN:
            yield Event(EventKind.CALL, "produce", args=(("broker", node),))

    def may_arrive(self, letter: Letter) -> bool:
        """Not a record for which the model has no room."""
        if not isinstance(letter.body, Produce) or letter.destination is None:
            return True
        seen = self.seen.get(letter.destination)
        return seen is None or seen["end"] < self.constants["log_size"]

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """Let it happen. Raises WrongRecord, WrongAnswer, and what Kafka does."""
        self._decisions = []
        # Nobody sees a process that ends while it starts.
        self._ends = event.what is EventKind.START and event.crash is not None
        happened = super().step(event)
        self._ends = False
        before, now = self._observed, self._picture()
        self._observed = now
        steps = [*self._decisions, *self._between(before, now, event, happened)]
        given = {name for name, value in now.items() if before.get(name) != value and name.partition("[")[0] in GIVEN}
        for node in happened.started:
            given |= self._recovered(node, before, now)
        return replace(happened, steps=tuple(steps), inputs=frozenset(given))

    def _recovered(self, node: int, before: Mapping[str, Value], now: Mapping[str, Value]) -> set[str]:
        """The epochs below the log start that a broker had before: its first one, if that begins there still (TK12)."""
        former, start = (cast(int, each.get(f"log_start[{node}]", 0)) for each in (before, now))
        below = {f"record_epoch[{node}][{offset}]" for offset in range(start, former)}
        return {name for name in below if now[name] in (-1, now[f"first_epoch[{node}]"])}

    def _between(
        self, before: Mapping[str, Value], now: Mapping[str, Value], event: Event, happened: StepResult
    ) -> Iterator[ModelStep]:
        """The steps that may lead from what was seen to what is."""
        for node in self.nodes:
            if node in self.seen and self._cells.get(node):
                # Who waits to be registered starts when it hears of the topic.
                started = node in happened.started or f"leads[{node}]" not in before
                for name, params in steps_of_broker(
                    node, before, now, self.constants["log_size"], event, started=started
                ):
                    if name != "note_copied":
                        yield name, params
                for copy in self.copies.made_by(node):
                    yield "note_copied", {"leader": node, "copy": copy}
                start = cast(int, now[f"log_start[{node}]"])
                if started or before.get(f"log_start[{node}]") != start:
                    yield "find_log_start", {"leader": node, "start": start}
                    yield "truncate_below_start", {"replica": node, "end": start}
                if started:
                    local = cast(int, now[f"local_start[{node}]"])
                    yield "recover_log_start", {"replica": node, "start": start, "local": local}
                if self._rules.cuts_first:
                    yield "begin_without_epochs", {"follower": node}
        yield from steps_of_copies(before, now, self.constants["copies"])

    def _let(self, event: Event) -> Sequence[ModelStep]:
        """What a driver's command does is done at once: a process that ends in its midst ends before."""
        if event.crash is not None and event.what is not EventKind.START:
            if event.what in (EventKind.DELIVER, EventKind.REPEAT):
                self.mail.take(event)
            return ()
        return super()._let(event)

    def act(self, event: Event) -> Sequence[ModelStep]:
        """A timer fires, a task goes on, or somebody asks."""
        node = event.node
        if event.what is EventKind.CALL:
            self._produce(int(event.arg("broker")))
        elif event.what is EventKind.DISK and node is not None:
            self._fails(node, fails=event.name == _FAILS)
        elif event.name == "elect-unclean":
            broker = int(event.arg("broker"))
            self.controller.begin(broker, frozenset({broker}))
        elif event.name == "replace":
            broker = int(event.arg("broker"))
            self._ask("replace", node=broker)
            self._cells[broker] = {}
            self._looks.forget(broker)
        elif event.name in _TASKS and node is not None:
            answer = self._at("go", node) if event.name == "go" else self._at("work", node, what=event.name)
            self._decisions += self.copies.goes_on(node, answer, self.seen[node]["read"])
        elif event.name in ("learn", "retain") and node is not None:
            self._at(event.name, node)
        elif event.name == "checkpoint" and node is not None:
            for what in ("checkpoint", "checkpoint-starts"):
                self._at(what, node)
        else:
            return super().act(event)
        return ()

    def _produce(self, broker: int) -> None:
        self.mail.send(None, broker, Produce(f"r{self._produced}"))
        self._produced += 1

    def _fails(self, node: int, *, fails: bool) -> None:
        self._ask("store", at=node, fails=fails)
        self._failing = self._failing | {node} if fails else self._failing - {node}

    def _send(self, told: Mapping[str, Any]) -> None:
        kind, source = told["kind"], told["from"]
        match kind:
            case "list" | "epoch":
                body = asked_by(told)
                self.asked[told["id"]] = self.mail.send(source, told["to"], body)
                if isinstance(body, ListOffsets):
                    self._asks_where(source, body.timestamp)
            case "listed" | "ended":
                self._answer(self.asked[told["request"]], answered_with(told), told["error"])
            case "fetched":
                self._starts[told["id"]] = told["logStart"]
                super()._send(told)
            case _:
                super()._send(told)
        if kind in ("fetch", "list", "epoch"):
            self._asks[source] = self.asked[told["id"]]

    def _asks_where(self, node: int, timestamp: int) -> None:
        """A follower asks for where to begin; what it does when the earliest pending upload is unknown is no other."""
        tells = TELLS.get(timestamp)
        if tells == "epuo":
            self._begins[node] = "at_epuo"
            self._decisions.append(("ask_epuo", {"follower": node}))
        elif tells == "local" and not (self._begins[node] == "at_epuo" and self._told[node].get("epuo") == -1):
            self._begins[node] = "at_local_start"
            self._decisions.append(("ask_local_start", {"follower": node}))

    def told(self, told: Mapping[str, Any], request: Letter) -> None:
        """A broker answers a client."""
        payload = self.calls[told["request"]]["payload"]
        self._answer(request, ProduceAnswer(told["error"], told["offset"], payload), told["error"])

    def receive(self, letter: Letter) -> None:
        """A message arrives."""
        node, body = letter.destination, letter.body
        match body:
            case Produce() if node is not None:
                self._from_client("produce", letter, payload=f"{body.payload}.{len(self.calls)}", acks=1)
            case ListOffsets() | OffsetsForLeaderEpoch() if node is not None:
                self._at("serve", node, id=body.number)
            case FetchAnswer() | ListOffsetsAnswer() | OffsetsForLeaderEpochAnswer() if node is not None:
                self._hear(node, letter)
            case _:
                super().receive(letter)

    def _hear(self, node: int, letter: Letter) -> None:
        """A follower is answered, and goes on, if it has waited for that."""
        seen, body, request = self.seen[node], letter.body, letter.request
        assert request is not None
        # Whoever goes on asks for more at once, by what it is told now.
        waits = seen["fetcher"] == "waits" and self._asks.get(node) is request
        if waits:
            self._is_told(node, letter)
        if waits and isinstance(body, FetchAnswer) and body.error == "NONE" and not body.diverges:
            self._settled[node] = request.body.epoch - 1
        self._at("answer", node, id=body.number)

    def _is_told(self, node: int, letter: Letter) -> None:
        body, request = letter.body, letter.request
        told = self._told[node]
        if isinstance(body, FetchAnswer):
            start = self._starts[body.number]
            if start >= 0:
                told["start"] = start
        elif isinstance(body, ListOffsetsAnswer) and body.error == "NONE" and request is not None:
            tells = TELLS.get(request.body.timestamp)
            if tells is not None:
                told[tells] = body.offset

    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:  # noqa: ARG002 - none of it is one that is refused
        """Messages say nothing to this model: what they tell is given."""
        return ()

    def lose_power(self, node: int, random: Random) -> None:
        """The process is gone; what it wrote is not."""
        super().lose_power(node, random)
        self._forget(node)

    def _forget(self, node: int) -> None:
        self.copies.forget(node)
        self._asks.pop(node, None)
        self._begins[node], self._looked[node], self._settled[node] = "nowhere", False, -1

    def start(self, node: int) -> None:
        """A process starts, and replays what there is."""
        self._forget(node)
        super().start(node)
