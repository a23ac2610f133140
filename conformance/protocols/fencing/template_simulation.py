"""A system to run freely against a model, to copy: brokers and a controller of KIP-320 that talk in messages.

``Broker`` and ``Controller`` stand for your system: written by somebody who never saw the model. They keep what they
must not lose on a ``Disk``, send by a ``Mailbox``, and know no clock. ``TemplateFree`` is what you write.
``docs/tutorials/test-your-system.md`` goes through it piece by piece.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import NamedTuple

from fencepost.conformance.lockstep.adapter import ModelStep

# Absolute, so that a copy of this file runs wherever it lies.
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.mailbox import Letter, Mailbox, MailSystem
from fencepost.model.core.errors import BadInput
from fencepost.traces.format import Value

FENCED = "FENCED_REPLICA"
UNKNOWN_EPOCH = "UNKNOWN_LEADER_EPOCH"
NOT_LEADER = "NOT_LEADER_OR_FOLLOWER"

# -- the messages ---------------------------------------------------------------------------------------------------


class Record(NamedTuple):
    """A client's record, and the leader epoch in which a leader appended it."""

    number: int
    epoch: int


@dataclass(frozen=True)
class LeaderAndIsr:
    """The controller tells a broker who leads. ``version`` counts every change of the ISR, ``epoch`` the leaders."""

    epoch: int
    leader: int | None
    isr: frozenset[int]
    version: int


@dataclass(frozen=True)
class EpochQuery:
    """A new follower asks its leader how far their logs are the same (OffsetsForLeaderEpoch)."""

    epoch: int


@dataclass(frozen=True)
class EpochAnswer:
    """The leader's log, by the leader epochs of its records."""

    error: str | None
    epoch: int
    epochs: tuple[int, ...] = ()


@dataclass(frozen=True)
class Fetch:
    """A follower asks for what comes after its log, and so says that it has everything before."""

    epoch: int
    end: int


@dataclass(frozen=True)
class FetchAnswer:
    """The records from ``start`` on, and the leader's high watermark."""

    error: str | None
    epoch: int
    start: int = 0
    records: tuple[Record, ...] = ()
    high_watermark: int = 0


@dataclass(frozen=True)
class AlterIsr:
    """A leader asks the controller for another ISR than that of ``version``."""

    epoch: int
    isr: frozenset[int]
    version: int


@dataclass(frozen=True)
class AlterIsrAnswer:
    """The ISR that is in force."""

    error: str | None
    epoch: int
    isr: frozenset[int] = frozenset()
    version: int = -1


@dataclass(frozen=True)
class Produce:
    """A client sends a record, and wants to hear of it when every member of the ISR has it (acks=all)."""

    number: int


@dataclass(frozen=True)
class ProduceAnswer:
    """The record is committed, or refused."""

    error: str | None


@dataclass(frozen=True)
class Heard:
    """A broker has heard who leads, or refuses to."""

    error: str | None


# -- the system -----------------------------------------------------------------------------------------------------


class Disk:
    """A log and a leader epoch. What was written and not synced may be gone when the power comes back."""

    def __init__(self, mail: Mailbox) -> None:
        self.mail = mail
        self.log: tuple[Record, ...] = ()
        self.epoch = -1
        self.synced: tuple[tuple[Record, ...], int] = (), -1

    def write(self, log: tuple[Record, ...], epoch: int) -> None:
        """Write; a crash forgets it until it is synced."""
        self.mail.effect()
        self.log, self.epoch = log, epoch

    def sync(self) -> None:
        """What was written so far is there for good."""
        self.mail.effect()
        self.synced = self.log, self.epoch

    def lose_power(self, random: Random) -> None:
        """Keep what was synced; of the rest, all or nothing."""
        if random.random() < 0.5:
            self.log, self.epoch = self.synced
        self.synced = self.log, self.epoch


class Broker:
    """One replica of the only partition."""

    def __init__(self, me: int, mail: Mailbox) -> None:
        self.me, self.mail, self.disk = me, mail, Disk(mail)
        self.boot()

    def boot(self) -> None:
        """A process begins: it has its disk, and no role until the controller gives it one."""
        self.epoch = self.disk.epoch
        self.high_watermark = 0
        self.leader: int | None = None
        self.isr: frozenset[int] = frozenset()
        self.version = -1
        self.told: LeaderAndIsr | None = None
        """Whom it is to follow, once that has said how far their logs are the same."""
        self.ends: dict[int, int] = {}
        """How far followers have said in this epoch that their logs go."""
        self.waiting: list[tuple[int, Letter]] = []
        """Clients that want to hear when all below an offset is committed."""

    @property
    def log(self) -> tuple[Record, ...]:
        """Its log."""
        return self.disk.log

    @property
    def leads(self) -> bool:
        """Whether it leads, as far as it knows."""
        return self.leader == self.me

    def refusal(self, epoch: int) -> str | None:
        """What a replica says to a request of this leader epoch (KIP-320, "Replica Handling")."""
        if not self.leads:
            return NOT_LEADER
        if epoch < self.epoch:
            return FENCED
        return UNKNOWN_EPOCH if epoch > self.epoch else None

    def is_news(self, told: LeaderAndIsr) -> bool:
        """Whether there is a role for it in this. One that has lost its role may follow again, but not lead again."""
        follows_again = told.epoch == self.epoch and self.leader is None and told.leader != self.me
        return told.epoch > self.epoch or follows_again

    def hear(self, letter: Letter, told: LeaderAndIsr) -> None:
        """The controller says who leads. A new follower keeps its role until it has cut its log back."""
        error = None if self.is_news(told) else FENCED
        if error is None and told.leader == self.me:
            self.take_up(told, self.log)
            self.commit()
        elif error is None and told.leader is not None:
            self.told = told
            self.fetch()
        self.mail.answer(letter, Heard(error), error)

    def take_up(self, told: LeaderAndIsr, log: tuple[Record, ...]) -> None:
        """Begin a role, on this log."""
        self.disk.write(log, told.epoch)
        self.disk.sync()
        self.epoch, self.leader, self.isr, self.version = told.epoch, told.leader, told.isr, told.version
        self.told, self.ends = None, {}
        if not self.leads:
            waiting, self.waiting = self.waiting, []
            for _, client in waiting:
                self.mail.answer(client, ProduceAnswer(NOT_LEADER), NOT_LEADER)

    def fetch(self) -> None:
        """Ask a new leader how far the logs are the same, or the leader for what comes next."""
        if self.told is not None:
            self.mail.send(self.me, self.told.leader, EpochQuery(self.told.epoch))
        elif self.leader is not None and not self.leads:
            self.mail.send(self.me, self.leader, Fetch(self.epoch, len(self.log)))

    def say_epochs(self, letter: Letter, query: EpochQuery) -> None:
        """A new follower wants to know where its log parts from this one."""
        error = self.refusal(query.epoch)
        epochs = tuple(record.epoch for record in self.log) if error is None else ()
        self.mail.answer(letter, EpochAnswer(error, query.epoch, epochs), error)

    def cut_back(self, answer: EpochAnswer) -> None:
        """Drop what the new leader has not, and follow it from now on."""
        told = self.told
        if answer.error is not None or told is None or answer.epoch != told.epoch or not self.is_news(told):
            return
        end = 0
        while end < min(len(self.log), len(answer.epochs)) and self.log[end].epoch == answer.epochs[end]:
            end += 1
        self.take_up(told, self.log[:end])
        self.high_watermark = min(self.high_watermark, end)

    def serve(self, letter: Letter, asked: Fetch) -> None:
        """A follower fetches."""
        error = self.refusal(asked.epoch)
        if error is not None or letter.source is None:
            self.mail.answer(letter, FetchAnswer(error, asked.epoch), error)
            return
        self.ends[letter.source] = asked.end
        self.commit()
        records = self.log[asked.end :]
        self.mail.answer(letter, FetchAnswer(None, self.epoch, asked.end, records, self.high_watermark), None)

    def append(self, letter: Letter, answer: FetchAnswer) -> None:
        """The leader's records have come; what is late, or comes twice, does not fit any more."""
        fits = answer.epoch == self.epoch and self.leader == letter.source and answer.start == len(self.log)
        if answer.error is None and fits and answer.records:
            self.disk.write(self.log + answer.records, self.epoch)
            self.disk.sync()
            self.high_watermark = min(answer.high_watermark, len(self.log))

    def produce(self, letter: Letter, asked: Produce) -> None:
        """A client sends a record, perhaps for the second time."""
        if not self.leads:
            self.mail.answer(letter, ProduceAnswer(NOT_LEADER), NOT_LEADER)
            return
        numbers = [record.number for record in self.log]
        if asked.number not in numbers:
            self.disk.write((*self.log, Record(asked.number, self.epoch)), self.epoch)
            self.disk.sync()
            numbers.append(asked.number)
        self.waiting.append((numbers.index(asked.number) + 1, letter))
        self.commit()

    def commit(self) -> None:
        """Raise the high watermark to what every member of the ISR has, and tell the clients that wait for it."""
        ends = [len(self.log) if member == self.me else self.ends.get(member, 0) for member in self.isr]
        self.high_watermark = max(self.high_watermark, min(ends))
        heard = [client for end, client in self.waiting if end <= self.high_watermark]
        self.waiting = [(end, client) for end, client in self.waiting if end > self.high_watermark]
        for client in heard:
            self.mail.answer(client, ProduceAnswer(None), None)

    def lagging(self) -> frozenset[int]:
        """The members of the ISR that have not said that they have everything."""
        return frozenset(n for n in self.isr if n != self.me and self.ends.get(n, -1) < len(self.log))

    def shrink(self) -> None:
        """Ask to have a follower that lags taken out of the ISR."""
        if self.leads and self.lagging():
            self.mail.send(self.me, None, AlterIsr(self.epoch, self.isr - {min(self.lagging())}, self.version))

    def altered(self, answer: AlterIsrAnswer) -> None:
        """The controller has granted an ISR. Whoever has caught up since may stay a member here: that is no harm."""
        granted = answer.error is None and self.leads and answer.epoch == self.epoch and answer.version > self.version
        if granted and self.isr - answer.isr <= self.lagging():
            self.isr, self.version = answer.isr, answer.version
            self.commit()


class Controller:
    """It elects leaders, and says which ISR is in force. It never crashes."""

    def __init__(self, brokers: Iterable[int], mail: Mailbox) -> None:
        self.brokers, self.mail = tuple(brokers), mail
        self.state = LeaderAndIsr(-1, None, frozenset(self.brokers), 0)
        self.history: list[LeaderAndIsr] = []

    def begin(self, leader: int | None, isr: frozenset[int]) -> None:
        """Begin a leader epoch, and tell everybody."""
        self.state = LeaderAndIsr(self.state.epoch + 1, leader, isr, self.state.version + 1)
        self.history.append(self.state)
        for broker in self.brokers:
            self.tell(broker)

    def tell(self, broker: int) -> None:
        """Tell a broker who leads, once more if need be: as it was when the epoch began."""
        if self.history:
            self.mail.send(None, broker, self.history[-1])

    def elect(self, leader: int) -> None:
        """The operator wants another leader."""
        self.begin(leader, self.state.isr)

    def fail(self, broker: int) -> None:
        """A broker seems to be down. One that leads, and is the last of the ISR, stays in it."""
        leads, isr = self.state.leader == broker, self.state.isr
        left = isr if leads and isr == {broker} else isr - {broker}
        self.begin(None if leads else self.state.leader, left)

    def alter(self, letter: Letter, asked: AlterIsr) -> None:
        """The leader wants another ISR."""
        if letter.source != self.state.leader or asked.epoch != self.state.epoch:
            self.mail.answer(letter, AlterIsrAnswer(FENCED, asked.epoch), FENCED)
            return
        if asked.isr != self.state.isr:
            if asked.version != self.state.version:
                return  # a copy of an old request, for whose answer nobody waits
            self.state = LeaderAndIsr(asked.epoch, self.state.leader, asked.isr, asked.version + 1)
        self.mail.answer(letter, AlterIsrAnswer(None, asked.epoch, self.state.isr, self.state.version), None)


# -- what you write -------------------------------------------------------------------------------------------------


class TemplateFree(MailSystem):
    """Has brokers and a controller run freely. Everything below is what a system needs; nothing else is called."""

    name = "template"
    protocol = "fencing"
    variant = "kip-320-brokers"

    def __init__(self, protocol: str | None = None, variant: str | None = None) -> None:
        if (protocol or self.protocol) != self.protocol or (variant or self.variant) != self.variant:
            raise BadInput(f"there is no {protocol} {variant} here", "--impl template", "leave both out")

    def build(self, constants: Mapping[str, int], random: Random) -> None:  # noqa: ARG002 - nothing here is random
        """Fresh brokers on empty disks, and their controller."""
        self.constants = constants
        self.brokers = [Broker(node, self.mail) for node in self.nodes]
        self.controller = Controller(self.nodes, self.mail)
        self.produced = 0
        self.ids: dict[Record, int] = {}

    def offers(self) -> Iterable[Event]:
        """Timers, and what clients and the operator may ask for, within the model's bounds."""
        state = self.controller.state
        for node, broker in enumerate(self.brokers):
            yield Event(EventKind.TIMER, "fetch", node)
            if broker.leads:
                yield Event(EventKind.TIMER, "shrink", node)
            yield Event(EventKind.TIMER, "tell", args=(("broker", node),))
            if len(self.ids) < self.constants["max_records"]:
                yield Event(EventKind.CALL, "produce", args=(("broker", node),))
            if state.epoch < self.constants["max_leader_epoch"]:
                if node in state.isr and node != state.leader:
                    yield Event(EventKind.OPERATE, "elect", args=(("broker", node),))
                if node in self.down | self.cut and (node in state.isr or node == state.leader):
                    yield Event(EventKind.OPERATE, "fail", args=(("broker", node),))

    def act(self, event: Event) -> Sequence[ModelStep]:
        """One of them happens; the operator's calls are steps of the model."""
        if event.node is not None:
            broker = self.brokers[event.node]
            {"fetch": broker.fetch, "shrink": broker.shrink}[event.name]()
            return ()
        node = int(event.arg("broker"))
        match event.name:
            case "tell":
                self.controller.tell(node)
            case "produce":
                self.mail.send(None, node, Produce(self.produced))
                self.produced += 1
            case "elect":
                self.controller.elect(node)
                return [("controller_elect_leader", {"new_leader": node})]
            case "fail":
                self.controller.fail(node)
                return [("controller_shrink_isr", {"replica": node})]
        return ()

    def may_arrive(self, letter: Letter) -> bool:
        """The model has bounds for records and for logs; what would go beyond them waits."""
        if letter.name != "Produce" or letter.destination is None:
            return True
        log = self.brokers[letter.destination].log
        return len(self.ids) < self.constants["max_records"] and len(log) < self.constants["log_size"]

    def receive(self, letter: Letter) -> None:
        """A message arrives."""
        broker = self.brokers[letter.destination] if letter.destination is not None else None
        match letter.body:
            case AlterIsr() as asked:
                self.controller.alter(letter, asked)
            case LeaderAndIsr() as told if broker is not None:
                broker.hear(letter, told)
            case EpochQuery() as query if broker is not None:
                broker.say_epochs(letter, query)
            case EpochAnswer() as epochs if broker is not None:
                broker.cut_back(epochs)
            case Fetch() as asked if broker is not None:
                broker.serve(letter, asked)
            case FetchAnswer() as records if broker is not None:
                broker.append(letter, records)
            case AlterIsrAnswer() as isr if broker is not None:
                broker.altered(isr)
            case Produce() as record if broker is not None:
                broker.produce(letter, record)

    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:
        """What a request is to the model; its answer is the same, seen from the other side."""
        request = letter.request or letter
        asker, asked = request.source, request.destination
        match request.body:
            case LeaderAndIsr(epoch, leader) if leader == asked and leader is not None:
                return [("become_leader", {"leader": leader, "epoch": epoch})]
            case EpochQuery(epoch) if asker is not None and asked is not None:
                return [("become_follower", {"leader": asked, "follower": asker, "epoch": epoch})]
            case Fetch() if asker is not None and asked is not None:
                pair = {"leader": asked, "follower": asker}
                return [("follower_fetch", pair), ("follower_acknowledge", pair)]
            case AlterIsr() if asker is not None:
                return [("leader_shrink_isr", {"leader": asker})]
            case Produce() if asked is not None:
                return [("leader_write", {"leader": asked})]
        return ()

    def lose_power(self, node: int, random: Random) -> None:
        """Only the disk is left, and of that what was synced."""
        self.brokers[node].disk.lose_power(random)

    def start(self, node: int) -> None:
        """A broker starts on what its disk has."""
        self.brokers[node].boot()

    def observe(self) -> Mapping[str, Value]:
        """Every cell that the system can show. Here that is all; leave out what yours cannot show."""
        state, seen = self.controller.state, dict[str, Value]()
        for broker in self.brokers:
            for record in broker.log:
                self.ids.setdefault(record, len(self.ids))
        seen["next_record_id"] = len(self.ids)
        seen["next_leader_epoch"] = state.epoch + 1
        seen["quorum_leader_epoch"] = state.epoch
        seen["quorum_leader"] = state.leader
        seen["quorum_isr"] = tuple(sorted(state.isr))
        for told in self.controller.history:
            seen[f"request_leader[{told.epoch}]"] = told.leader
            seen[f"request_isr[{told.epoch}]"] = tuple(sorted(told.isr))
        for node, broker in enumerate(self.brokers):
            if node in self.down:
                continue
            seen[f"leo[{node}]"] = len(broker.log)
            seen[f"hw[{node}]"] = broker.high_watermark
            seen[f"leader_epoch[{node}]"] = broker.epoch
            seen[f"leader[{node}]"] = broker.leader
            seen[f"isr[{node}]"] = tuple(sorted(broker.isr))
            for offset, record in enumerate(broker.log):
                seen[f"record_id[{node}][{offset}]"] = self.ids[record]
                seen[f"record_epoch[{node}][{offset}]"] = record.epoch
            for follower in self.nodes:
                seen[f"remote_leo[{node}][{follower}]"] = broker.ends.get(follower, -1) if broker.leads else -1
        return seen
