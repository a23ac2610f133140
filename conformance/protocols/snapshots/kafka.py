"""Apache Kafka's quorum as a system that runs freely, held to ``kip-630-kafka``: KafkaRaftClients of a real release.

``kip-630-kafka-shipped`` lets a process end where 4.4.0's does.

Each node is Kafka's client over its log and its state store on real files, in a JVM (``conformance/kafka/``). Ours are
the clocks, one for each node, the wire, the state machine and the randomness. A message arrives, or a clock moves on to
where the node's next timer runs off; then the node polls until it has nothing to do. A process may end between any two
polls, and what it wrote to its files stays.

A state machine remembers every record, so that records and snapshots are known by their content. Kafka counts leader
epochs from 1; the record that a leader begins its epoch with is one like any other. Each batch is in a segment of its
own, so that the log start outlives its process.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final, cast

from ....model.core.errors import BadInput
from ....model.protocols.snapshots.kafka_spec import VARIANT, Shipped, text
from ....traces.format import Value
from ...kafka.process import QUORUM, DriverFailedError, Jvm, OfKafka
from ...lockstep.adapter import Contradiction, ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.mailbox import Letter, MailSystem
from ...simulation.system import EnabledEvent, RequestOutcome, SenderClaim, StepResult
from .kafka_messages import (
    EndQuorumEpoch,
    Message,
    PreVoteAnswer,
    VoteAnswer,
    answer_of,
    code_of,
    decided,
    request_of,
    says_of,
    steps_of,
)

_CHUNK: Final = 1_000
"""Bytes of a snapshot in one response. What a snapshot holds besides padding has less."""
_ALL: Final = 64
"""So many polls are more than a node ever needs."""
_LONG: Final = 4_000
"""Milliseconds in which every timer of a node runs off."""
_SLOW: Final = 0.05
_MEANWHILE: Final = 5.0
_BATCHES: Final = {"append": 1, "append-two": 2, "append-three": 3}
_OF_LEADER: Final = "-"
"""The payload of the record that a leader begins its epoch with."""
_SHIPPED: Final = ("INVALID_REQUEST", "UNKNOWN_SERVER_ERROR")
"""What is shipped answers so where it should not: to who stands again (row F22), and for any other error (F24)."""
_ENDS: Final = "Received unexpected invalid request error"
"""What Kafka throws where it hears of an invalid request: nobody catches it, and the process ends (row F22)."""
_UNKNOWN: Final = -2
"""The epoch that is seen of a record that nobody has appended."""
_MAX_VOTERS: Final = 5
_TIMED: Final = (
    ("resign", "leader"),
    ("leave_epoch", "replica"),
    ("lose_election", "replica"),
    ("give_up_snapshot", "replica"),
)


class KafkaQuorum(OfKafka, MailSystem):
    """Nodes of Apache Kafka's quorum, the last ``observers`` of which are no voters."""

    name = "kafka"
    protocol = "snapshots"
    variant = VARIANT

    def __init__(
        self, protocol: str | None = None, variant: str | None = None, make: Callable[[], Jvm] | None = None
    ) -> None:
        held = [name for name, each in text.variants.items() if isinstance(each.rules, Shipped)]
        if (protocol or self.protocol) != self.protocol or (variant or self.variant) not in held:
            raise BadInput(f"it is not held to {protocol} {variant}", "--impl kafka", f"name one of {', '.join(held)}")
        self.variant = variant or self.variant
        self._ends = cast("Shipped", text.variants[self.variant].rules).ends
        self._ended: int | None = None
        """Whose process has ended by itself in this event."""
        self._make = make or (lambda: Jvm(self.release, drives=QUORUM))
        self._jvm: Jvm | None = None
        self._says: dict[int, tuple[SenderClaim, ...]] = {}
        self._decisions: list[RequestOutcome] = []
        self._besides: list[ModelStep] = []

    def build(self, constants: Mapping[str, int], random: Random) -> None:
        """Nodes that have just started, and know nobody."""
        voters = constants["replicas"] - constants["observers"]
        if not 0 < voters <= _MAX_VOTERS:
            mend = f"give one to {_MAX_VOTERS} more than --observers"
            raise BadInput(f"a quorum of {voters} voters cannot be followed", "--replicas", mend)
        if self._jvm is None:
            self._jvm = self._make()
        self.constants = constants
        self.voters = tuple(range(voters))
        self._drawn = random.randrange(1 << 30)
        self._slow = random.choice((None, *self.nodes))
        """Whom messages seldom reach until it needs a snapshot: else hardly anybody ever does."""
        self._leads_first = random.random() < 0.5
        """Only from when it has led: it has records then that nobody else has."""
        self.seen: dict[int, Mapping[str, Any]] = {}
        self._started = set(self.nodes)
        """Whose process is there, as the driver has it."""
        self._cells: dict[int, dict[str, Value]] = {}
        self._synced: dict[int, int] = {}
        """By node, up to where its log is synced, by this process or the ones before it."""
        self._requests: dict[int, Letter] = {}
        self._lines: set[str] = set()
        """Every record that was ever appended, by its line."""
        self._elected: dict[int, int] = {}
        self._committed: dict[int, tuple[int, str]] = {}
        """By offset, the model's epoch of what was committed there, and its line."""
        self._awaited: list[tuple[int, int, int]] = []
        self._told: dict[int, int] = {}
        self._appended = 0
        self._polls = _ALL
        self._besides, self._decisions, self._says = [], [], {}
        self._elects_itself()
        self._ask(
            "reset",
            nodes=len(self.nodes),
            voters=voters,
            fetchBytes=1,
            chunk=_CHUNK,
            seed=self._drawn,
            rolls=True,
        )

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New nodes on new folders."""
        return self._told_of(super().reset(constants, seed))

    # -- the driver -------------------------------------------------------------------------------------------------

    def _ask(self, do: str, **more: Any) -> None:
        """Have the driver do something, look at whom it touched, and send what they have sent."""
        assert self._jvm is not None
        answer = self._jvm.ask(do, **more)
        for name, seen in answer["seen"].items():
            self._look(int(name), seen)
        for told in answer["sent"]:
            self._send(told)

    def _at(self, do: str, node: int, **more: Any) -> None:
        """The same at one node, which polls as often as it may."""
        self._besides.append(("sync", {"replica": node}))
        self._ask(do, node=node, polls=self._polls, **more)

    def _send(self, told: Mapping[str, Any]) -> None:
        source, to = told["from"], told["to"]
        if "request" not in told:
            body = request_of(told)
            letter = self.mail.send(source, to, body)
            self._requests[told["id"]] = letter
        else:
            request = self._requests[told["request"]]
            body = answer_of(request.body, told)
            if source != to:
                steps = tuple(decided(request.body, to, source))
                if steps and not (self._ends and told["error"] in _SHIPPED):
                    self._decisions.append(RequestOutcome(steps, code_of(told), request.number))
            letter = self.mail.send(source, to, body, request)
        if source != to:
            self._says[letter.number] = says_of(body, source, leads=self.seen[source]["role"] == "leader")

    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:
        """What a message is to the model; nothing where a node asks itself, as one does that looks for a leader."""
        if letter.source is None or letter.destination is None or letter.source == letter.destination:
            return ()
        return steps_of(letter.body, letter.source, letter.destination)

    # -- what may happen --------------------------------------------------------------------------------------------

    def _may_be_elected(self, node: int, epochs: int = 1) -> bool:
        """The model has so many more epochs, and room for the record that a leader begins its epoch with."""
        seen = self.seen[node]
        last = self.constants["max_leader_epoch"]
        return bool(seen["epoch"] - 1 + epochs <= last and seen["end"] < self.constants["log_size"])

    def _may_wait(self, node: int) -> bool:
        """Its timers may run off: what comes of it is in the model."""
        seen = self.seen[node]
        if self.voters == (node,) and seen["role"] != "leader":
            # Who has resigned leaves its epoch first, and is elected for the one after the next.
            return self._may_be_elected(node, 2 if seen["role"] == "resigned" else 1)
        return bool(seen["role"] != "resigned" or seen["epoch"] - 1 < self.constants["max_leader_epoch"])

    def offers(self) -> Iterable[Event]:
        """Timers, what clients append, and what is done with snapshots."""
        for node in self.nodes:
            if node in self.down:
                continue
            seen = self.seen[node]
            if self._may_wait(node):
                yield Event(EventKind.TIMER, "elapse", node)
                yield Event(EventKind.TIMER, "long", node)
            if seen["role"] == "leader":
                for name, records in _BATCHES.items():
                    if seen["end"] + records <= self.constants["log_size"]:
                        yield Event(EventKind.CALL, name, node)
                yield Event(EventKind.OPERATE, "resign", node)
            latest = max((end for end, *_ in seen["snapshots"]), default=0)
            for end, _ in seen["ends"]:
                if latest < end and seen["begin"] < end <= seen["hw"]:
                    yield Event(EventKind.TIMER, "snapshot", node, args=(("end", end),))
            starts = [(end, epoch) for end, epoch, *_ in seen["snapshots"] if seen["begin"] < end]
            if starts:
                yield Event(EventKind.TIMER, "clean", node)
            for end, epoch in starts[:-1]:
                yield Event(EventKind.TIMER, "delete", node, args=(("end", end), ("epoch", epoch)))

    def may_arrive(self, letter: Letter) -> bool:
        """Not a vote by which a node comes to an epoch, or a record, for which the model has no room."""
        body, node = letter.body, letter.destination
        if isinstance(body, VoteAnswer | PreVoteAnswer) and body.told.get("granted") and node is not None:
            if isinstance(body, VoteAnswer):
                return bool(self.seen[node]["end"] < self.constants["log_size"])
            return self._may_be_elected(node)
        return True

    def pending(self) -> Sequence[EnabledEvent]:
        """Each with how likely it is now."""
        found = []
        due = self._due() if self._peace else {}
        slow, led = self._is_slow(), self._is_led()
        for each in super().pending():
            event = each.event
            alone = event.what is EventKind.START and self.voters == (event.node,)
            if alone and not self._may_be_elected(self.voters[0]):
                continue
            is_due = event.what is EventKind.TIMER and due.get(event.node) == event.name
            found.append(EnabledEvent(event, each.message, is_due, self._weight(event, slow=slow, led=led)))
        return found

    def _due(self) -> dict[int | None, str]:
        """Which timer of a node is due in peace: its next one; where nobody leads, all of who has the longest log.

        Time passes by leaps, and whoever is alone in having waited for long is elected.
        """
        well = [node for node in self.nodes if node not in self.down | self.cut]
        newest = max((self.seen[node]["epoch"] for node in well), default=0)
        led = any(self.seen[node]["role"] == "leader" and self.seen[node]["epoch"] == newest for node in well)
        voters = [node for node in well if node in self.voters]
        found: dict[int | None, str] = dict.fromkeys(well, "elapse")
        if voters and not led:
            found[max(voters, key=lambda node: (self.seen[node]["last"], self.seen[node]["end"], -node))] = "long"
        return found

    def _weight(self, event: Event, *, slow: bool, led: bool) -> float:
        if slow and event.what is EventKind.DELIVER and self._slow in (event.node, event.source):
            return _SLOW
        if event.what is not EventKind.TIMER or event.node is None:
            return {EventKind.DELIVER: 2.0, EventKind.OPERATE: 0.02}.get(event.what, 1.0)
        if event.name in ("snapshot", "clean", "delete") and self._may_matter(event):
            return _MEANWHILE
        if event.name == "long" and self.seen[event.node].get("fetching", (0, 0, 0))[2] > 0:
            return _MEANWHILE  # and who fetches it may lose patience
        return {"elapse": 0.1 if led else 1.0, "long": 0.05 if led else 0.5}.get(event.name, 0.8)

    def _is_led(self) -> bool:
        """Somebody leads whom the others can reach."""
        away = self.down | self.cut | ({self._slow} if self._is_slow() else set())
        return any(seen["role"] == "leader" for node, seen in self.seen.items() if node not in away)

    def _may_matter(self, event: Event) -> bool:
        """Somebody fetches a snapshot, which a leader may delete; or a log may begin where another parts from it."""
        if any("fetching" in seen for seen in self.seen.values()):
            return True
        assert event.node is not None
        mine = self.seen[event.node]
        divergence = {
            seen["end"] for seen in self.seen.values() if 0 < seen["last"] < mine["epoch"] and seen["end"] > 0
        }
        ends = {event.arg("end")} if event.args else {end for end, *_ in mine["snapshots"]}
        return bool(mine["role"] == "leader" and ends & divergence)

    def _is_slow(self) -> bool:
        """Until some log begins where the slow node's ends, or later, so that it may need a snapshot."""
        if self._slow is None or (self._leads_first and self._slow not in self._elected.values()):
            return False
        end = max(self.seen[self._slow]["end"], 1)
        return all(seen["begin"] < end for seen in self.seen.values())

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """Let it happen; ``crash``: the process ends after so many polls. Raises ``Contradiction``."""
        self._polls = _ALL if event.crash is None else event.crash
        self._besides, self._decisions, self._says = [], [], {}
        happened, node = super().step(event), self._ended
        self._ended = None
        if node is not None and node not in happened.crashed:
            self.down.add(node)
            self.lose_power(node, Random(0))  # noqa: S311 - its files stay as they are
            self.mail.drop(lambda each: each.destination == node)
            happened = replace(happened, crashed=happened.crashed | {node})
        return self._told_of(happened)

    def _told_of(self, happened: StepResult) -> StepResult:
        sent = tuple(replace(each, says=self._says.get(each.number, ())) for each in happened.sent)
        judged = (*happened.judged, *self._decisions)
        return replace(happened, sent=sent, judged=judged, steps=(*happened.steps, *self._besides))

    def receive(self, letter: Letter) -> None:
        """A message arrives."""
        node, body = letter.destination, letter.body
        assert node is not None and isinstance(body, Message)
        if isinstance(body, PreVoteAnswer):
            self._besides.append(("stand", {"replica": node}))
        elif isinstance(body, EndQuorumEpoch):
            # The best candidate's fetch timeout runs off at once.
            self._besides.append(("give_up_snapshot", {"replica": node}))
        try:
            self._at("request" if letter.request is None else "response", node, id=body.number)
        except DriverFailedError as failed:
            if not self._ends or _ENDS not in str(failed):
                raise
            self._ended = node

    def act(self, event: Event) -> Sequence[ModelStep]:
        """A timer runs off, a client appends, a snapshot is made, or the log is cleaned."""
        node = event.node
        assert node is not None
        match event.name:
            case "elapse" | "long":
                self._besides += [(step, {name: node}) for step, name in _TIMED]
                self._besides += [("stand", {"replica": node}), ("delete_before_snapshot", {"replica": node})]
                self._at("elapse", node, ms=_LONG if event.name == "long" else 0)
            case "resign":
                self._besides.append(("resign", {"leader": node}))
                self._at("resign", node)
            case "snapshot":
                end = int(event.arg("end"))
                self._besides.append(("generate_snapshot", {"replica": node, "offset": end - 1}))
                self._at("snapshot", node, end=end, bytes=self._padding(node, end))
            case "clean" | "delete":
                self._besides.append(("delete_before_snapshot", {"replica": node}))
                self._at(event.name, node, **{name: int(value) for name, value in event.args})
            case _:
                self._append(node, _BATCHES[event.name])
        return ()

    def _padding(self, node: int, end: int) -> int:
        """Snapshots with one id have the same content, and are of any size in chunks."""
        told = f"{self._drawn} {node} {end}".encode()
        return zlib.crc32(told) % self.constants["max_chunks"] * _CHUNK

    def _append(self, node: int, records: int) -> None:
        seen = self.seen[node]
        payloads = [f"r{self._appended + each}" for each in range(records)]
        self._appended += records
        for each, payload in enumerate(payloads):
            self._lines.add(f"{seen['end'] + each} {seen['epoch']} {payload}")
            self._awaited.append((node, seen["epoch"], seen["end"] + each))
        step: ModelStep = ("client_append", {"leader": node})
        self._besides.append(step)
        if self._polls == _ALL:
            self._decisions.append(RequestOutcome((step,), None))
        self._at("append", node, records=payloads)

    def lose_power(self, node: int, random: Random) -> None:  # noqa: ARG002 - a process dies, and its files are there
        """The process is gone; what it wrote is not."""
        if node in self._started:
            self._ask("crash", node=node)
        self._started.discard(node)
        self._cells.pop(node, None)

    def start(self, node: int) -> None:
        """The next process starts on the files that are there.

        That of the only voter elects itself before its first poll: where power is lost in this event, it never started.
        """
        if self.voters == (node,) and self._polls < _ALL:
            return
        self._elects_itself()
        self._started.add(node)
        self._at("start", node)

    def _elects_itself(self) -> None:
        """The only voter does so as it starts: it leads before anybody can look."""
        if len(self.voters) == 1:
            self._besides += [("stand", {"replica": self.voters[0]}), ("sync", {"replica": self.voters[0]})]

    # -- looking ----------------------------------------------------------------------------------------------------

    def _look(self, node: int, seen: Mapping[str, Any]) -> None:
        self.seen[node] = seen
        # A log that is opened has a recovery point of 0, so that all of it is read: that makes nothing less durable.
        synced = max(self._synced.get(node, 0), seen["synced"], seen["begin"])
        self._synced[node] = min(synced, seen["end"])
        if seen["role"] == "leader":
            self._note_leader(node, seen)
        self._check(node, seen)
        self._cells[node] = self._cells_of(node, seen)

    def _note_leader(self, node: int, seen: Mapping[str, Any]) -> None:
        """Who leads, the record that it begins with, what it knows to be committed, and what clients are told."""
        epoch = seen["epoch"]
        self._elected[epoch - 1] = node
        for line in seen["records"]:
            offset, of, payload = line.split(" ")
            if payload == _OF_LEADER and int(of) == epoch and line not in self._lines:
                self._lines.add(line)
                self._awaited.append((node, epoch, int(offset)))
                self._besides.append(("client_append", {"leader": node}))
            if int(offset) < seen["known"]:
                self._committed.setdefault(int(offset), (int(of) - 1, line))
        left = []
        for leader, of, offset in self._awaited:
            if leader == node and of == epoch and offset < seen["known"]:
                self._told.setdefault(offset, of - 1)
            else:
                left.append((leader, of, offset))
        self._awaited = left

    def _check(self, node: int, seen: Mapping[str, Any]) -> None:
        """What a state machine has been given is what is committed."""
        for offset, line in enumerate(seen["lines"]):
            if line != self._committed.get(offset, (0, ""))[1]:
                raise Contradiction(f"{node} has applied {line!r}, and {self._committed.get(offset)} is committed")

    def _cells_of(self, node: int, seen: Mapping[str, Any]) -> dict[str, Value]:
        role, leader, voted = seen["role"], seen["leader"], seen["voted"]
        leads = role == "leader"
        own = leads or role == "resigned"
        cells: dict[str, Value] = {
            f"leader_epoch[{node}]": seen["epoch"] - 1,
            f"leader[{node}]": None if role == "resigned" or leader < 0 else leader,
            f"voted[{node}]": node if own else None if voted < 0 else voted,
            f"supporters[{node}]": tuple(seen["votes"]),
            f"lbo[{node}]": seen["begin"],
            f"leo[{node}]": seen["end"],
            f"hw[{node}]": seen["hw"],
            f"synced[{node}]": self._synced[node],
        }
        for other in self.nodes:
            counted = seen["counted"].get(str(other), -1) if other != node else -1
            cells[f"counted[{node}][{other}]"] = counted
        end, epoch, size = seen.get("fetching") or (0, 0, -1)
        chunks, rest = divmod(size, _CHUNK)
        cells[f"fetching[{node}]"] = end - 1
        cells[f"fetching_epoch[{node}]"] = epoch - 1
        cells[f"position[{node}]"] = -1 if size < 0 else size if rest else chunks
        for offset in range(self.constants["log_size"]):
            cells[f"record_epoch[{node}][{offset}]"] = -1
            for name, value in (("size", 0), ("epoch", -1), ("records", -1)):
                cells[f"snapshot_{name}[{node}][{offset}]"] = value
        for line in seen["records"]:
            offset, of, _ = line.split(" ")
            cells[f"record_epoch[{node}][{offset}]"] = int(of) - 1 if line in self._lines else _UNKNOWN
        for end, of, bytes_, lines in seen["snapshots"]:
            cells[f"snapshot_size[{node}][{end - 1}]"] = -(-bytes_ // _CHUNK) if bytes_ >= 0 else -1
            cells[f"snapshot_epoch[{node}][{end - 1}]"] = of - 1
            cells[f"snapshot_records[{node}][{end - 1}]"] = self._whole(lines)
        return cells

    def _whole(self, lines: Sequence[str]) -> int:
        """How many records from the first on a snapshot has as they were committed."""
        for offset, line in enumerate(lines):
            if self._committed.get(offset, (0, ""))[1] != line:
                return offset
        return len(lines)

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but of nodes that are down."""
        cells: dict[str, Value] = {"voters": self.voters}
        for epoch in range(self.constants["max_leader_epoch"] + 1):
            cells[f"epoch_leader[{epoch}]"] = self._elected.get(epoch)
        for offset in range(self.constants["log_size"]):
            cells[f"committed[{offset}]"] = self._committed.get(offset, (-1, ""))[0]
            cells[f"told[{offset}]"] = self._told.get(offset, -1)
        for node in self.nodes:
            cells |= self._cells.get(node, {})
        return cells

    def close(self) -> None:
        """End the JVM."""
        if self._jvm is not None:
            self._jvm.close()
            self._jvm = None
