"""What runs freely over ``impl/``: real nodes on a network, disks and a clock whose every next move is an event.

No message arrives, no timer fires and no time passes but by an event. Power may fail between any two effects of a
node: what it writes, syncs, renames, and each message that it sends. What the messages say to a model, and what
clients do, a protocol's own system adds.
"""

from __future__ import annotations

import errno
import os
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, ClassVar, Final, cast

from ...impl.files.simulated import SimulatedFiles
from ...impl.net.clock import SimulatedClock
from ...impl.net.faults import Faults, Flight
from ...impl.net.simulated import SimulatedNetwork
from ...impl.replica.timers import Key
from ...impl.wire.errors import ErrorCode
from ...impl.wire.messages import Envelope, LeaderAndIsrResponse
from ..faults.corrupt_message import garbled, has_batches
from ..lockstep.adapter import Contradiction, ModelStep
from ..simulation.events import GARBLED, Event, EventKind
from ..simulation.power import Power, PowerLost
from ..simulation.system import EnabledEvent, Message, RequestOutcome, SenderClaim, StepResult
from .carrier import LIFE
from .endpoints import Node
from .events import (
    FAILS,
    FULL,
    MENDED,
    SKEWED,
    Way,
    arrives,
    clocks,
    failing,
    fires,
    is_response,
    kind_of,
    offered,
    party,
    passes,
    way_of,
)
from .parts import Parts
from .stores import DiskStore, MemoryStore, Store
from .wire import Wire

EFFECTS: Final = frozenset({"append", "truncate", "fsync", "fsync_dir", "make_dir", "rename", "remove"})
"""The operations of a disk that leave something behind."""
MAX_ALIKE: Final = 4
"""So many messages of one kind are in flight between two nodes at most: the oldest is lost then."""
_SLACK: Final = 64
"""A disk that is full has less than so many bytes left."""
_WORKS_FOR: Final = 6
"""A disk that fails does so after fewer operations than this."""
_OF_MESSAGES: Final = frozenset({EventKind.DELIVER, EventKind.LOSE, EventKind.REPEAT, EventKind.GARBLE})
DUE: Final = "due"
"""The timer that stands for all of a node that have run off."""


class GaveUpError(Contradiction):
    """A node has given up for no fault of its disk: it took something else for one."""


class RunningNodes(ABC):
    """A ``SimulatedSystem`` but for its protocol: what is abstract here is what nodes are, say and show.

    ``parts`` may be those of a copy with a defect. ``disk`` keeps files in real folders: processes end there with what
    they have written, and no disk fails.
    """

    protocol: ClassVar[str]
    implemented: ClassVar[str]
    """The variant that the nodes are held to."""
    times: ClassVar[tuple[int, ...]] = (1,)
    """The milliseconds by which the clock is moved at once. Where nothing seen is a time of day, ``sets_clocks``."""
    sets_clocks: ClassVar[bool] = False
    unnumbered: ClassVar[int | None] = None
    """The address of a process that events mean by naming no node; it may fail like the others."""

    def __init__(self, parts: Parts | None = None, *, disk: bool = False, variant: str | None = None) -> None:
        self.variant = variant or self.implemented
        self.name = "disk" if disk else "memory"
        self._parts, self._disk = parts or Parts.of(), disk
        self._store: Store | None = None

    # -- what a protocol adds ---------------------------------------------------------------------------------------

    @abstractmethod
    def _set_up(self, constants: Mapping[str, int]) -> range:
        """Make what there is besides nodes, and say which nodes there are; they are started next."""

    @abstractmethod
    def _begin(self, node: int, first_correlation: int) -> Node:
        """A new process of a node, on the files that are there. Raises what the node does."""

    def _settle(self) -> None:  # noqa: B027 - most need nothing
        """All nodes are up: bring about the model's initial state."""

    @abstractmethod
    def _timers(self, node: int) -> Iterable[Key]:
        """The timers of a node that may fire."""

    @abstractmethod
    def _calls(self) -> Iterator[Event]:
        """What clients and operators may ask for next: events of CALL, OPERATE and PROBE."""

    @abstractmethod
    def _call(self, event: Event) -> Sequence[ModelStep]:
        """Do what one of ``_calls`` asks for; the model's steps that it may be. What it decides goes to ``decided``."""

    @abstractmethod
    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        """The model's steps that the arrival of a message may be; ``asked``: the request that it answers."""

    def _says(self, envelope: Envelope, asked: Envelope | None) -> tuple[SenderClaim, ...]:  # noqa: ARG002 - see Message
        """What a message says of its sender, in the model's cells; ``asked``: the request that it answers."""
        return ()

    @abstractmethod
    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:
        """What is to be judged of a request that was answered at once; the number of the message is filled in."""

    @abstractmethod
    def _took(self, event: Event) -> Sequence[ModelStep]:
        """The model's steps that an event may be besides, once it has happened; ``arrived`` is the message in it."""

    @abstractmethod
    def _is_lost(self, node: int) -> bool:
        """Whether a node that runs has given up, as its disk failed: it counts as down until it is started again."""

    # -- the system -------------------------------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        self.close()
        self.constants = dict(constants)
        self.seed = seed
        self._store = DiskStore() if self._disk else MemoryStore(seed)
        self._power = Power()
        self.clock = SimulatedClock()
        self.network = SimulatedNetwork(
            seed, clock=self.clock, faults=Faults(latency=(0, 0)), hold_if=lambda _envelope: True
        )
        self._flying: dict[int, tuple[Way, EnabledEvent]] = {}  # by number, the messages that were pending last
        self.nodes: dict[int, Node] = {}
        """Those that are up."""
        self.down: set[int] = set()
        self.cut: set[int] = set()
        self.bad: dict[int, str] = {}
        """The disks that are full, or fail."""
        self._refused: set[int] = set()
        """Who refused a new replica in this event for want of a disk: there is none that could say so afterwards."""
        self._works_for: dict[int, int] = {}
        """For how many operations more a disk works that is about to fail."""
        self.arrived: Envelope | None = None
        """The message that has reached its receiver in this event."""
        self.decided: list[RequestOutcome] = []
        """What a call has decided in this event."""
        self._lives = 0
        self._known = 0
        self._requested: dict[tuple[int, int], tuple[int, Envelope]] = {}
        """By sender and correlation id: the requests that were sent."""
        self.replicas = self._set_up(constants)
        for node in self.replicas:
            self._start(node)
        self._settle()
        return StepResult(sent=tuple(self._sent()))

    def close(self) -> None:
        """Give the files back."""
        if self._store is not None:
            self._store.close()
            self._store = None

    # -- processes and disks ----------------------------------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The disks."""
        assert self._store is not None
        return self._store

    def wire(self) -> Wire:
        """What a node sends by."""
        return Wire(self.network, self._power, self.sends)

    def sends(self, envelope: Envelope) -> None:
        """A node sends a message: one that is to have a replica, and has no disk for it, gives up."""
        body, node = envelope.body, envelope.source
        if isinstance(body, LeaderAndIsrResponse) and body.error is ErrorCode.KAFKA_STORAGE_ERROR:
            _, asked = self._requested[envelope.destination, envelope.correlation]
            # Of a replica that is there ``_is_lost`` knows.
            if cast(Any, asked.body).partition not in cast(Any, self.nodes[node]).partitions:
                self._refused.add(node)

    def _start(self, node: int) -> None:
        files = self.store.files(node)
        if isinstance(files, SimulatedFiles):
            files.hook = self._hook(node)
        self._lives += 1
        self.nodes[node] = begun = self._begin(node, self._lives * LIFE)
        self.network.attach(begun)
        self.down.discard(node)

    def _hook(self, node: int) -> Callable[[str, str], None]:
        def hook(operation: str, path: str) -> None:
            if operation in EFFECTS:
                self._power.effect()
                if self.bad.get(node) == FAILS and operation not in ("make_dir", "remove") and self._fails_now(node):
                    raise OSError(errno.EIO, os.strerror(errno.EIO), path)

        return hook

    def _fails_now(self, node: int) -> bool:
        """Whether a disk that fails has come to the operation from which on it does: as often in the midst of a step as
        at its beginning."""
        left = self._works_for.get(node, 0)
        self._works_for[node] = left - 1
        return left <= 0

    def _stop(self, node: int, seed: int) -> None:
        """The process ends, and where the store can, the machine with it."""
        if self.network.is_up(node):
            self.network.detach(node)
        self.nodes.pop(node, None)
        self.down.add(node)
        self.store.crash(node, seed)

    # -- what may happen --------------------------------------------------------------------------------------------

    def pending(self) -> Sequence[EnabledEvent]:
        """Messages, timers, time, calls, failures and their ends."""
        return [each for group in self._groups() for each in group]

    def _groups(self) -> Iterator[Iterable[EnabledEvent]]:
        """What is pending, by what it comes of; a tuple is the same object as long as what it comes of is so."""
        found: list[EnabledEvent] = []
        alike: dict[Way, int] = {}
        flying: dict[int, tuple[Way, EnabledEvent]] = {}
        for flight in self.network.in_flight():
            if self._may_arrive(flight.envelope):
                known = self._flying.get(flight.number)
                way = way_of(flight.envelope) if known is None else known[0]
                number = alike.get(way, 0)
                alike[way] = number + 1
                if known is None or known[1].event.number != number:
                    garbles = has_batches(flight.envelope) and self._garbles(flight.envelope)
                    known = way, EnabledEvent(arrives(*way, number), flight.number, garbles=garbles)
                flying[flight.number] = known
                found.append(known[1])
        self._flying = flying
        up = [node for node in self.replicas if node not in self.down]
        timers = [fires(key[0], node) for node in up for key in self._timers(node)]
        found += [fires(DUE, node, due=True) for node in up if self._is_due(self.nodes[node])]
        yield found
        yield timers
        yield [passes(ms) for ms in self.times]
        yield clocks(tuple(up)) if self.sets_clocks and self.seed % SKEWED == 0 else ()
        yield from self._offers()
        for node in self.replicas:
            yield self._failures(node, node)
        if self.unnumbered is not None:
            yield self._failures(self.unnumbered, None)

    def _offers(self) -> Iterable[Iterable[EnabledEvent]]:
        """``_calls`` as they are offered, each once."""
        return ([offered(event) for event in dict.fromkeys(self._calls())],)

    def _failures(self, address: int, node: int | None) -> Iterable[EnabledEvent]:
        """What may befall a process, and the ends of that. ``node``: by which number events name it, if by any."""
        return failing(
            node,
            down=address in self.down,
            cut=address in self.cut,
            bad=address in self.bad,
            simulated=not self._disk,
        )

    def _at(self, event: Event) -> int | None:
        """Whose process an event happens in; None for a client's, and where only time passes."""
        if event.node is not None or event.what in (EventKind.CALL, EventKind.TIME):
            return event.node
        if event.what in _OF_MESSAGES:
            return None if self.arrived is None or self.arrived.destination != self.unnumbered else self.unnumbered
        return self.unnumbered

    def _is_due(self, node: Node) -> bool:
        """Whether a node would be woken now."""
        deadline = node.deadline()
        return deadline is not None and deadline <= self.clock.now()

    def _may_arrive(self, envelope: Envelope) -> bool:  # noqa: ARG002 - for those who know of a bound
        """Whether a message is offered: not where what comes of it is beyond the model's bounds."""
        return True

    def _garbles(self, envelope: Envelope) -> bool:  # noqa: ARG002 - for those who have it refused
        """Whether a message with record batches may arrive garbled."""
        return False

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does."""
        self._power.left = event.crash
        told, steps = "", list[ModelStep]()
        judged: list[RequestOutcome] = []
        crashed: set[int] = set()
        started: set[int] = set()
        flight: Flight | None = None
        if event.what in _OF_MESSAGES:
            flight = self._flight(event.plain())
            if event.what is EventKind.GARBLE:
                flight.envelope = garbled(flight.envelope, int(event.arg(GARBLED)))
        self.decided = []
        self._refused.clear()
        reaches = flight is not None and event.what is not EventKind.LOSE and self._reaches(flight.envelope)
        self.arrived = flight.envelope if flight is not None and reaches else None
        at = self._at(event)
        try:
            match event.what:
                case EventKind.DELIVER | EventKind.REPEAT | EventKind.GARBLE:
                    assert flight is not None
                    self.network.deliver(flight, keep=event.what is EventKind.REPEAT)
                case EventKind.LOSE:
                    assert flight is not None
                    self.network.drop(flight)
                case EventKind.TIMER | EventKind.SYNC:
                    self._fire(event)
                case EventKind.TIME:
                    self.clock.advance(int(event.arg("ms")))
                case EventKind.CLOCK:
                    self.clock.set_skew(cast(int, event.node), int(event.arg("ms")))
                case EventKind.CALL | EventKind.OPERATE | EventKind.PROBE:
                    steps += self._call(event)
                case EventKind.CRASH:
                    assert at is not None
                    self._end(at, event)
                    crashed.add(at)
                case EventKind.START:
                    assert at is not None
                    self._restart(at, event)
                    started.add(at)
                case EventKind.CUT | EventKind.HEAL:
                    assert at is not None
                    self._part(at, cut=event.what is EventKind.CUT)
                case EventKind.DISK:
                    assert at is not None
                    self._change_disk(at, event.name)
        except PowerLost:
            told = "power lost in the midst of it"
        finally:
            self._power.left = None
        if event.crash is not None and at is not None and (at in self.nodes or event.what is EventKind.START):
            self._stop(at, self._crash_seed(event))
            crashed.add(at)
            started.discard(at)
        for node in sorted(self.nodes):
            lost = node not in self.down and self._is_lost(node)
            if lost or (node not in self.down and node in self._refused):
                if node not in self.bad:
                    raise GaveUpError(f"node {node} gave up as if its disk had failed, and it had not")
                if lost:
                    self._lose(node, event)
                else:
                    # Its one disk has failed it, and its process ends (KIP-112): it would take the next request well.
                    self._stop(node, self._crash_seed(event))
                crashed.add(node)
                started.discard(node)
                told = told or f"the disk of {'?' if node == self.unnumbered else node} failed it"
        if self.unnumbered is not None:
            # It is no replica of the model, and shows its state even while it is down.
            crashed.discard(self.unnumbered)
            started.discard(self.unnumbered)
        steps += self._took(event)
        first = self._known
        sent = tuple(self._sent())
        judged += self.decided
        if flight is not None and self.arrived is not None:
            answer = self._answer(flight.envelope, first)
            if answer is not None:
                judged += (
                    RequestOutcome(each.steps, each.error, flight.number)
                    for each in self._judged(flight.envelope, answer)
                )
        return StepResult(sent, tuple(judged), tuple(steps), frozenset(crashed), frozenset(started), told)

    def _end(self, address: int, event: Event) -> None:
        """A process ends."""
        self._stop(address, self._crash_seed(event))

    def _lose(self, address: int, event: Event) -> None:  # noqa: ARG002 - for those who end it
        """A process has given up."""
        self.down.add(address)

    def _restart(self, address: int, event: Event) -> None:
        """A new process; one that is there still, but whose disk had failed, is ended first."""
        if address in self.nodes:
            self._stop(address, self._crash_seed(event))
        self._start(address)

    def _flight(self, event: Event) -> Flight:
        way = event.name, event.node, event.source
        alike = (
            flight
            for flight in self.network.in_flight()
            if way_of(flight.envelope) == way and self._may_arrive(flight.envelope)
        )
        return next(islice(alike, event.number, None))

    def _reaches(self, envelope: Envelope) -> bool:
        return self.network.is_up(envelope.destination) and not self.network.is_cut(
            envelope.source, envelope.destination
        )

    def _fire(self, event: Event) -> None:
        """A timer of a node fires."""
        assert event.node is not None
        if event.name == DUE:
            self.nodes[event.node].wake()
            return
        key = next(key for key in self._timers(event.node) if key[0] == event.name)
        self.nodes[event.node].fire(key)

    def _part(self, node: int, *, cut: bool) -> None:
        if cut:
            self.network.isolate(node)
            self.cut.add(node)
        else:
            self.network.heal(node)
            self.cut.discard(node)

    def _change_disk(self, node: int, name: str) -> None:
        files = self.store.files(node)
        assert isinstance(files, SimulatedFiles)
        if name == MENDED:
            self.bad.pop(node, None)
            files.capacity = None
            return
        self.bad[node] = name
        drawn = zlib.crc32(f"{self.seed} {node} fails {self._lives}".encode())
        self._works_for[node] = drawn // _WORKS_FOR % _WORKS_FOR if drawn % 2 else 0
        if name == FULL:
            # It fills up in the midst of a write, as disks do, and not between two.
            files.capacity = files.used + zlib.crc32(f"{self.seed} {node}".encode()) % _SLACK

    def _crash_seed(self, event: Event) -> int:
        """What survives, by the run's seed and the event: the same in a run from which others were left out."""
        return zlib.crc32(f"{self.seed} {event}".encode())

    # -- messages ---------------------------------------------------------------------------------------------------

    def _sent(self) -> Iterator[Message]:
        """What was sent since the last time, with what it says to the model."""
        flights = self.network.in_flight()
        fresh = [flight for flight in flights if flight.number >= self._known]
        for flight in fresh:
            envelope = flight.envelope
            asked: tuple[int, Envelope] | None = None
            if is_response(envelope):
                asked = self._requested.get((envelope.destination, envelope.correlation))
            else:
                self._requested[envelope.source, envelope.correlation] = flight.number, envelope
            self._known = flight.number + 1
            yield Message(
                flight.number,
                kind_of(envelope),
                party(envelope.source),
                party(envelope.destination),
                self._steps(envelope, None if asked is None else asked[1]),
                None if asked is None else asked[0],
                self._says(envelope, None if asked is None else asked[1]),
            )
        if fresh:
            self._thin_out(flights)

    def _thin_out(self, flights: Sequence[Flight]) -> None:
        """Lose the oldest of too many alike: nobody takes them off the network but an event."""
        alike: dict[tuple[str, int, int], list[Flight]] = {}
        for flight in flights:
            envelope = flight.envelope
            alike.setdefault((kind_of(envelope), envelope.source, envelope.destination), []).append(flight)
        for (name, _, _), group in alike.items():
            for flight in group[: max(0, len(group) - self._room_for(name))]:
                self.network.drop(flight)

    def _room_for(self, name: str) -> int:  # noqa: ARG002 - for those who want less of some
        """How many messages of a kind may be in flight between two nodes."""
        return MAX_ALIKE

    def _answer(self, request: Envelope, first: int) -> Envelope | None:
        """What a request was answered with in this event."""
        for flight in self.network.in_flight(source=request.destination, destination=request.source):
            if flight.number >= first and flight.envelope.correlation == request.correlation:
                return flight.envelope
        return None
