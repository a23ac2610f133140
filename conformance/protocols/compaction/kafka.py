"""Apache Kafka's brokers with a compacted topic, running freely, held to ``kip-280-kafka``.

The brokers are those of ``conformance/kafka/brokers.py``; each has Kafka's LogCleaner besides, whose thread does a
round when its timer fires. The process may end in the midst of one, between any two changes of its files. Kafka has no
strategy but ``offset``; a consumer has of each key the record that it has read last.

How brokers lose what was committed (K11, K12) is ``fencing``'s business: here a broker replays one record of the
metadata log at a time, and all that there is up to an ISR before it hears by an answer that the ISR was taken up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from ....impl.net.clock import WALL_START
from ....model.core.errors import BadInput
from ....model.protocols.compaction.impl_state import SHIPPED
from ....traces.format import Value
from ...kafka.brokers import BrokerSystem
from ...kafka.controller import AlterPartitionAnswer, FetchAnswer
from ...kafka.process import CLEANERS, Jvm
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.mailbox import Letter
from ...simulation.system import EnabledEvent, RequestOutcome, StepResult
from .kafka_clients import (
    CLEAN,
    START_OVER,
    Poll,
    PollAnswer,
    Produce,
    ProduceAnswer,
    asked_for,
    poll,
    probe,
    produces,
    read,
    row_of,
    weighed,
    written,
)
from .observation import WrittenCells, cells_of_log, given
from .records import Row
from .responses import check_ages, check_contents, check_tombstones
from .workload import Ages, Workload

_OF_PRODUCERS: Final = frozenset({"NONE", "NOT_LEADER_OR_FOLLOWER", "UNKNOWN_TOPIC_OR_PARTITION", "INVALID_RECORD"})
"""The codes for a producer that the model has a word for."""
_TIMES: Final = (1, 60, 200, 301)
_UNBORN: Final = 3
"""So many produces may be on their way."""
_ROOMY: Final = 1 << 12
"""Memory of a cleaner in which each key of a run has a slot: one takes 24 bytes, and a tenth of them is left empty."""
_MEMORY: Final = (48, 72, _ROOMY, _ROOMY)
_SEGMENTS: Final = (100, 100, 160, 260, 1 << 20)
"""``segment.bytes``; a batch of one record has some 75, and one of two less than 100."""
_FETCHED: Final = 100
"""``replica.fetch.max.bytes``, no more than a segment has: else a follower may give the partition up (L7)."""
_NEVER: Final = 1 << 40
_COLD: Final = 6
"""One of so many runs begins before anybody leads."""
_AMID: Final = 0.5
"""How likely a process that ends was cleaning just then."""
_CHANGES: Final = 12
"""It ends after fewer changes of its files than this."""
_PROBED: Final = 5
"""After so many requests of clients there is another one that must be refused."""


class KafkaCompaction(BrokerSystem):
    """Brokers, cleaners and clients."""

    name = "kafka"
    protocol = "compaction"
    variant = SHIPPED

    def __init__(
        self, protocol: str | None = None, variant: str | None = None, make: Callable[[], Jvm] | None = None
    ) -> None:
        if (protocol or self.protocol) != self.protocol or (variant or SHIPPED) != SHIPPED:
            raise BadInput(f"it is not held to {protocol} {variant}", "--impl kafka", f"name {SHIPPED}")
        super().__init__(make or (lambda: Jvm(self.release, drives=CLEANERS)))

    # -- the beginning ----------------------------------------------------------------------------------------------

    def build(self, constants: Mapping[str, int], random: Random) -> None:
        """Brokers with an empty log. In some runs the first leader begins as the whole ISR."""
        self.pace = Workload(random)
        self.retention = random.choice((60, 300, 1 << 20))
        self.ratio = random.choice(("0", "0", "0.5"))
        self.ages = Ages.drawn(random.choice((1, 1, 200, _NEVER)), self._seed)
        self._read_bytes = random.choice((1, 200, 1 << 20))
        self._serial = 0
        self._rows: dict[int, dict[int, Row]] = {}
        """By node and offset: what was in its log when it was last seen up."""
        self._contents: dict[tuple[int, int], Row] = {}
        """By leader epoch and offset: what was ever in some log."""
        self._joined = dict.fromkeys(self.nodes, -1)
        """The model's leader epoch in which a broker leads, or has been answered that its log does not part."""
        self._cells: dict[int, dict[str, Value]] = {}
        self._written = WrittenCells(constants)
        self._hw = 0
        self._committed: dict[int, int] = {}
        self._appended: set[int] = set()
        """The numbers of batches that some leader has taken."""
        self._ends = False
        self._decisions: list[RequestOutcome] = []
        self._start_over()
        topic = {
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": self.ratio,
            "delete.retention.ms": str(self.retention),
            "internal.segment.bytes": str(random.choice(_SEGMENTS)),
            **self.ages.configs(),
        }
        at_least = min(random.choice((1, 1, 2)), max(1, len(self.nodes) - 1))
        self._begin(constants, minIsr=at_least, topic=topic, memory=random.choice(_MEMORY), fetched=_FETCHED)
        if self.pace.alone or random.randrange(_COLD):
            first = random.choice(self.nodes)
            self.controller.begin(first, frozenset({first} if self.pace.alone else self.nodes))
            for node in self.nodes:
                self._replay(node, 1)

    def _ask(self, do: str, **more: Any) -> Mapping[str, Any]:
        answer = super()._ask(do, **more)
        self.now = answer["now"] - self.shift - WALL_START
        return answer

    def told_first(self, answer: Mapping[str, Any], do: str) -> None:
        """Each run has a time of its own, which begins with it."""
        if do == "reset":
            self.shift = answer["now"] - WALL_START

    def _start_over(self) -> None:
        self._position = 0
        self._awaited = -1
        self._table: dict[int, int] = {}

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New logs, and whoever sees them begins with what there is."""
        happened = super().reset(constants, seed)
        self._observed = self._picture()
        return replace(happened, inputs=frozenset(self._observed))

    # -- looking ----------------------------------------------------------------------------------------------------

    def look(self, node: int, seen: Mapping[str, Any]) -> None:
        """Take in a broker that is up. Raises WrongState for a record that is not what it was."""
        if self._ends:
            return  # it has done more than what is left of its process
        rows = {row.offset: row for each in seen["records"] if (row := row_of(each, self.shift)).offset < seen["end"]}
        check_contents(rows.values(), self._contents)
        for row in rows.values():
            self._contents.setdefault((row.epoch, row.offset), row)
        old, was = self._rows.get(node, {}), self._cells.get(node, {})
        self._rows[node] = rows
        end, leads = seen["end"], bool(seen.get("leads"))
        epoch = seen.get("epoch", 0) - 1
        if leads:
            self._joined[node] = epoch
        elif self._joined[node] != epoch:
            self._joined[node] = -1
        checkpoint = min(seen["checkpoint"], self.constants["log_size"])
        cells: dict[str, Value] = {
            f"leads[{node}]": int(leads),
            f"joined[{node}]": self._joined[node],
            f"own_hw[{node}]": seen.get("hw", 0),
            f"leo[{node}]": end,
            f"active[{node}]": seen["active"],
            f"checkpoint[{node}]": checkpoint,
            f"reached[{node}]": checkpoint,
            f"cleaned_at[{node}]": max(0, seen["cleaned"] - self.shift - WALL_START),
            f"broker_strategy[{node}]": "offset",
        }
        least = min(end, int(str(was.get(f"leo[{node}]", 0))))
        self._cells[node] = cells | cells_of_log(node, rows, old, least, self.constants["log_size"])
        high = seen.get("hw", 0)
        if leads and high > self._hw:
            for offset in range(self._hw, high):
                self._committed[offset] = rows[offset].epoch if offset in rows else -1
            self._hw = high

    def observe(self) -> Mapping[str, Value]:
        """Everything but who was in time: of who is down what it was last."""
        return self._observed

    def _picture(self) -> dict[str, Value]:
        cells: dict[str, Value] = {
            "leader": self.controller.leader,
            "leader_epoch": self.controller.epoch - 1,
            "hw": self._hw,
            "topic_strategy": "unset",
            "retention": self.retention,
            "eager": int(self.ages.cleans(float(self.ratio), self.constants)),
            "rolls": 0,
            "position": self._position,
        }
        for key in range(self.constants["keys"]):
            cells[f"table[{key}]"] = self._table.get(key, -1)
        cells |= self._written.of(self._contents, self._committed)
        for node in self.nodes:
            cells |= self._cells[node]
        return cells

    # -- what may happen --------------------------------------------------------------------------------------------

    def peace(self, *, on: bool) -> None:
        """Nothing is kept waiting any more, and the consumer reads to the end."""
        super().peace(on=on)
        self.pace.peace = on

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen; time passes when everybody has what there is, where a run is punctual."""
        found = super().pending()
        if self._peace:
            return [replace(each, due=True) if each.event.name == "poll" else each for each in found]
        if self.pace.punctual and self._somebody_lags():
            found = [each for each in found if each.event.what is not EventKind.TIME] or found
        dirty = frozenset(node for node in self.nodes if node not in self.down and self._is_dirty(node))
        return list(weighed(found, slow=self.pace.alone, dirty=dirty))

    def _is_dirty(self, node: int) -> bool:
        """Whether a round of a cleaner may have something to remove."""
        end = min(int(str(self._cells[node][f"{what}[{node}]"])) for what in ("own_hw", "active"))
        keys = [row.key for offset, row in self._rows[node].items() if offset < end]
        return len(set(keys)) < len(keys)

    def _somebody_lags(self) -> bool:
        """Whether a tombstone has a delete horizon, and a broker or the consumer is not at the end of all."""
        waits = any(
            row.value is None and row.horizon is not None for rows in self._rows.values() for row in rows.values()
        )
        ends = {int(str(self._cells[node][f"leo[{node}]"])) for node in self.nodes}
        behind = len(ends) > 1 or len(set(self._joined.values())) > 1 or self._position < max(ends)
        return waits and (behind or bool(self.down))

    def offers(self) -> Iterable[Event]:
        """The clock, timers of brokers and of the controller, and what clients and the operator ask for."""
        for ms in _TIMES:
            yield Event(EventKind.TIME, args=(("ms", ms),))
        timely = self.controller.leader is None or self.pace.is_time("election")
        for node in self.nodes:
            seen = self.seen.get(node)
            if seen is not None and node not in self.down:
                yield from self._timers(node, seen)
                yield Event(EventKind.TIMER, CLEAN, node)
                yield from self._of_clients(node, seen)
            for event in self._elections(node):
                if timely or event.what is not EventKind.OPERATE:
                    yield event
        if self.pace.starts_over and self._position and not self._peace:
            yield START_OVER
        yield from self._leaderless()

    def _of_clients(self, node: int, seen: Mapping[str, Any]) -> Iterator[Event]:
        keys, leads = self.constants["keys"], bool(seen.get("leads"))
        if leads and (self._peace or self._position < seen["hw"]):
            yield poll(node)
        unborn = sum(each.name == "Produce" for each in self.mail.in_flight.values())
        if unborn >= _UNBORN:
            return
        room = self.constants["log_size"] - seen["end"]
        if leads and room > 0:
            yield from produces(node, room, keys, self.constants["timestamps"])
        if self.pace.probes and len(self.calls) % _PROBED == 0:
            yield probe(node, keys if leads else 0)

    def may_arrive(self, letter: Letter) -> bool:
        """Not a batch for which the model has no room."""
        if not isinstance(letter.body, Produce) or letter.destination is None:
            return True
        seen = self.seen.get(letter.destination)
        return seen is None or seen["end"] + len(letter.body.records) <= self.constants["log_size"]

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """Let it happen. Raises WrongState, and what Kafka does."""
        self._decisions = []
        # Nobody sees a process that ends while it starts.
        self._ends = event.what is EventKind.START and event.crash is not None
        happened = super().step(event)
        self._ends = False
        self.pace.after(event)
        before, self._observed = self._observed, self._picture()
        steps = tuple(step for step in happened.steps if not step[0].startswith("controller_"))
        taken = given(before, self._observed, grew=happened.started)
        return replace(happened, steps=steps, judged=tuple(self._decisions), inputs=taken)

    def act(self, event: Event) -> Sequence[ModelStep]:
        """Time passes, a timer fires, or somebody asks."""
        match event.name:
            case "" if event.what is EventKind.TIME:
                self._ask("elapse", ms=int(event.arg("ms")))
            case "produce":
                body = Produce(asked_for(event, self.constants["keys"]), self._serial, self.pace.numbered)
                self._serial += len(body.records)
                self.mail.send(None, int(event.arg("to")), body)
            case "poll":
                letter = self.mail.send(None, int(event.arg("to")), Poll(self._position, self._read_bytes))
                self._awaited = letter.number
            case "start_over":
                self._start_over()
                return (("consumer_start_over", {}),)
            case _ if event.name == CLEAN and event.node is not None:
                self._clean(event.node, event.crash)
            case _:
                return super().act(event)
        return ()

    def _clean(self, node: int, after: int | None) -> None:
        """A round of a cleaner's thread; ``after`` so many changes of its files the process ends in its midst."""
        rows, before = dict(self._rows[node]), self._cells[node]
        self._ends = after is not None
        self._at("clean", node, amid=-1 if after is None else after)
        if self._ends:
            return
        left = self._rows[node]
        clean, cleaned = (int(str(each[f"checkpoint[{node}]"])) for each in (before, self._cells[node]))
        wall = self.now + WALL_START
        check_ages(rows, left, clean, cleaned, wall, self.ages.least)
        if clean < cleaned:
            check_tombstones(rows, left, clean, wall)

    def receive(self, letter: Letter) -> None:
        """A message arrives."""
        node, body = letter.destination, letter.body
        match body:
            case Produce() if node is not None:
                wrote = [("leader_write", {"replica": node, **self._named(sent)}) for sent in body.records]
                self._besides += wrote
                self._from_client("produce", letter, acks=1, **written(body, self.shift))
            case Poll() if node is not None:
                self._from_client("read", letter, offset=body.position, bytes=body.bytes)
            case FetchAnswer() if node is not None:
                self._take(node, letter, body)
            case PollAnswer():
                self._read(letter, body)
            case ProduceAnswer():
                pass
            case _:
                super().receive(letter)

    def _named(self, sent: Any) -> dict[str, int]:
        """A record as the model names it: the largest key stands for none."""
        return {**sent._asdict(), "key": self.constants["keys"] if sent.key < 0 else sent.key}

    def told(self, told: Mapping[str, Any], request: Letter) -> None:
        """A broker answers a client."""
        error = told["error"]
        if told["kind"] == "read":
            body: object = read(told, request.body.position, self.shift)
        else:
            self._judge(request, error)
            body = ProduceAnswer(error)
        self.mail.send(request.destination, request.source, body, request)

    def _judge(self, request: Letter, error: str) -> None:
        body: Produce = request.body
        if error not in _OF_PRODUCERS:
            return
        if body.numbered and error == "NONE":
            if body.serial in self._appended:
                return  # it may be the answer to the first one
            self._appended.add(body.serial)
        keyless = [sent for sent in body.records if sent.key < 0]
        named = self._named((keyless or body.records)[0])
        step: ModelStep = ("leader_write", {"replica": request.destination or 0, **named})
        self._decisions.append(RequestOutcome((step,), None if error == "NONE" else error))

    def _take(self, node: int, letter: Letter, body: FetchAnswer) -> None:
        """A follower is answered; if the logs do not part, its own is cut back."""
        taken = self._at("answer", node, id=body.number)["taken"]
        seen = self.seen[node]
        assert letter.request is not None
        same = seen.get("epoch") == letter.request.body.epoch and not seen.get("leads")
        if taken and same and body.error == "NONE" and not body.diverges:
            self._joined[node] = seen["epoch"] - 1
            self._cells[node][f"joined[{node}]"] = self._joined[node]

    def _may_fail(self, node: int) -> bool:
        # The last one of an ISR stays in it where nobody leads, and leads again.
        left = self.controller.isr - {node}
        return super()._may_fail(node) and (self.controller.leader is not None or bool(left))

    def _fail(self, broker: int) -> None:
        if self.controller.leader in (None, broker) or broker not in self.controller.isr:
            super()._fail(broker)
        else:
            self.controller.fence(broker)

    def _take_isr(self, node: int, body: AlterPartitionAnswer) -> None:
        # A process that is not registered yet replays nothing: its answer is for the one before it.
        replays = body.error == "NONE" and node not in self.waiting
        while replays and self.controller.versions[self.replayed[node]] < body.version:
            self._replay(node, 1)
        super()._take_isr(node, body)

    def _read(self, letter: Letter, body: PollAnswer) -> None:
        """The consumer is answered."""
        if letter.request is None or letter.request.number != self._awaited:
            return
        self._awaited = -1
        for row in body.rows:
            assert row.key is not None
            key = int(row.key[1:])
            self._table[key] = max(row.offset, self._table.get(key, -1))
        self._position = max(self._position, body.next)

    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:
        """What an answer brings."""
        body, request = letter.body, letter.request
        if isinstance(body, FetchAnswer) and request is not None and body.size and not body.diverges:
            pair: dict[str, Any] = {"leader": request.destination, "follower": request.source}
            return [("follower_fetch", pair), ("follower_skip", pair)]
        if isinstance(body, PollAnswer) and body.next >= 0:
            leader: dict[str, Any] = {"leader": letter.source}
            return [("consumer_fetch", leader), ("consumer_skip", leader)]
        return ()

    def lose_power(self, node: int, random: Random) -> None:
        """The process is gone, in some cases in the midst of a round of its cleaner; what it wrote is not."""
        if not self._ends and random.random() < _AMID:
            self._ends = True
            self._at("clean", node, amid=random.randrange(_CHANGES))
        super().lose_power(node, random)

    def start(self, node: int) -> None:
        """A process starts, and knows of no leader epoch until it has replayed what there is."""
        self._joined[node] = -1
        super().start(node)
