"""Messages in flight, for a system that runs freely: numbers, names, loss, repetition, and power lost in mid-event.

A system whose nodes talk in messages hands each that it sends to a ``Mailbox``, and gets it back when the harness lets
it arrive. ``MailSystem`` is a ``SimulatedSystem`` around one, in which only what is particular to a system is left to
write. ``conformance/protocols/fencing/template_simulation.py`` is an example of both, and
``docs/tutorials/test-your-system.md`` explains it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final, TypeAlias

from ...traces.format import Value
from ..lockstep.adapter import ModelStep
from .events import Event, EventKind
from .power import Power, PowerLost
from .system import EnabledEvent, Message, RequestOutcome, StepResult

MAX_ALIKE: Final = 4
"""So many messages of one kind are in flight between two nodes at most; of more, the oldest is lost."""

CRASH_SEEDS: Final = 2
"""So many outcomes of a loss of power are offered for each node. They are the same ones throughout a run."""


@dataclass(frozen=True, slots=True)
class Letter:
    """A message with its ``body``, which is the system's own; the class of the body is the message's name.

    ``source`` and ``destination``: nodes, None for the controller or a client. ``request``: what it answers.
    """

    number: int
    source: int | None
    destination: int | None
    body: Any
    request: Letter | None = None

    @property
    def name(self) -> str:
        """What the message is, for events and reports: ``Fetch``."""
        return type(self.body).__name__

    def event(self, number: int) -> Event:
        """That it arrives, as the one with this number among those that look alike."""
        return Event(EventKind.DELIVER, self.name, self.destination, self.source, number)


StandsFor: TypeAlias = Callable[[Letter], Sequence[ModelStep]]
"""The steps of the model that the arrival of a message may be (half of): see ``system.Message``."""


class Mailbox:
    """The messages in flight, and what has come of the present event."""

    def __init__(self, stands_for: StandsFor) -> None:
        self.in_flight: dict[int, Letter] = {}
        self._stands_for = stands_for
        self._next = 0
        self._power = Power()
        self._sent: list[Message] = []
        self._judged: list[RequestOutcome] = []

    # -- for the nodes ----------------------------------------------------------------------------------------------

    def send(self, source: int | None, destination: int | None, body: object, request: Letter | None = None) -> Letter:
        """Send a message, an answer if ``request`` is given. It is in flight until the harness lets it arrive."""
        self.effect()
        letter = Letter(self._next, source, destination, body, request)
        self._next += 1
        alike = self._alike(letter.name, source, destination)
        if len(alike) == MAX_ALIKE:
            del self.in_flight[alike[0].number]
        self.in_flight[letter.number] = letter
        steps = tuple(self._stands_for(letter))
        answers = None if request is None else request.number
        self._sent.append(Message(letter.number, letter.name, source, destination, steps, answers))
        return letter

    def answer(self, request: Letter, body: object, error: str | None) -> Letter:
        """Send the answer to a request, which is hereby decided: with this error code, or without any."""
        self._judged.append(RequestOutcome(tuple(self._stands_for(request)), error, request.number))
        return self.send(request.destination, request.source, body, request)

    def effect(self) -> None:
        """Say before each write and each sync that it comes now: the harness may have the power go before it."""
        self._power.effect()

    # -- for the system ---------------------------------------------------------------------------------------------

    def pending(self, may_arrive: Callable[[Letter], bool] = lambda _: True) -> list[EnabledEvent]:
        """That each message arrives which may, the oldest first; those that look alike are numbered."""
        alike: Counter[Event] = Counter()
        found = []
        for letter in self.in_flight.values():
            event = letter.event(0)
            if may_arrive(letter):
                found.append(EnabledEvent(letter.event(alike[event]), letter.number))
            alike[event] += 1
        return found

    def take(self, event: Event) -> Letter:
        """The message of an event; unless it arrives as a copy, it is in flight no more. KeyError: there is none."""
        alike = self._alike(event.name, event.source, event.node)
        if event.number >= len(alike):
            raise KeyError(f"there is no {event}")
        letter = alike[event.number]
        if event.what is not EventKind.REPEAT:
            del self.in_flight[letter.number]
        return letter

    def _alike(self, name: str, source: int | None, destination: int | None) -> list[Letter]:
        wanted = (name, source, destination)
        return [each for each in self.in_flight.values() if (each.name, each.source, each.destination) == wanted]

    def drop(self, lost: Callable[[Letter], bool]) -> None:
        """Lose messages: those on their way to a node that has crashed, or that is cut off."""
        self.in_flight = {number: each for number, each in self.in_flight.items() if not lost(each)}

    def during(
        self, event: Event, act: Callable[[], None]
    ) -> tuple[tuple[Message, ...], tuple[RequestOutcome, ...], bool]:
        """Let something happen: what was sent and judged in it, and whether the node has lost power by then."""
        self._sent, self._judged, self._power.left = [], [], event.crash
        try:
            act()
        except PowerLost:
            pass
        finally:
            self._power.left = None
        return tuple(self._sent), tuple(self._judged), event.crash is not None


class MailSystem(ABC):
    """A ``SimulatedSystem`` of nodes that talk in messages and lose what they have not synced. Write the abstract
    methods.

    ``nodes`` are up unless they are ``down``; whoever is in ``cut`` gets no message, and what it sends is lost.
    A connection ends with its process: what was on its way to a node that crashes never arrives.
    """

    name: str
    protocol: str
    variant: str
    _peace = False

    @abstractmethod
    def build(self, constants: Mapping[str, int], random: Random) -> None:
        """A fresh system whose nodes send by ``self.mail``. Whatever it draws at random, it draws from ``random``."""

    @abstractmethod
    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:
        """The steps of the model that the arrival of a message may be (half of); none if it says nothing to the model.

        An answer usually stands for what its request does: the same exchange, as seen by who asked.
        """

    @abstractmethod
    def offers(self) -> Iterable[Event]:
        """What may happen besides messages, crashes and cuts: timers, calls. Of a node that is down none is taken."""

    def may_arrive(self, letter: Letter) -> bool:  # noqa: ARG002 - for those who know of a bound
        """Whether a message may arrive now; not where what comes of it is beyond the bounds of the model."""
        return True

    @abstractmethod
    def receive(self, letter: Letter) -> None:
        """A message arrives at its destination."""

    @abstractmethod
    def act(self, event: Event) -> Sequence[ModelStep]:
        """One of ``offers`` happens; the steps of the model that it may be, besides what is sent for them."""

    @abstractmethod
    def lose_power(self, node: int, random: Random) -> None:
        """The node's process has ended. What its disk had not synced may be lost, as ``random`` has it."""

    @abstractmethod
    def start(self, node: int) -> None:
        """The node's next process starts, on what its disk has."""

    @abstractmethod
    def observe(self) -> Mapping[str, Value]:
        """What can be seen now, by the names of traces. Leave out what belongs to a node that is down."""

    # -- the contract of SimulatedSystem ----------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """A fresh system; nothing has happened yet but what ``build`` had its nodes send."""
        self.nodes = range(constants["replicas"])
        self.down: set[int] = set()
        self.cut: set[int] = set()
        self.mail = Mailbox(self.stands_for)
        self._seed = seed
        sent, judged, _ = self.mail.during(Event(EventKind.START), lambda: self.build(constants, _drawn(seed)))
        return StepResult(sent, judged)

    def pending(self) -> Sequence[EnabledEvent]:
        """Messages, then what the system offers, then crashes and cuts."""
        offered = [event for event in dict.fromkeys(self.offers()) if event.node not in self.down]
        for node in self.nodes:
            if node in self.down:
                offered.append(Event(EventKind.START, node=node))
            else:
                offered += [Event(EventKind.CRASH, node=node, args=(("seed", seed),)) for seed in range(CRASH_SEEDS)]
            offered.append(Event(EventKind.HEAL if node in self.cut else EventKind.CUT, node=node))
        return [
            *self.mail.pending(self.may_arrive),
            *(EnabledEvent(event, due=self._peace and event.what is EventKind.TIMER) for event in offered),
        ]

    def peace(self, *, on: bool) -> None:
        """These nodes have no clock: of no timer it is said that it is due, but in peace, where all of them are."""
        self._peace = on

    def step(self, event: Event) -> StepResult:
        """Let it happen. Nodes that it has fall silent, by a crash or a cut, send nothing any more."""
        steps: list[ModelStep] = []
        sent, judged, lost = self.mail.during(event, lambda: steps.extend(self._let(event)))
        crashed = {event.node} if event.node is not None and (lost or event.what is EventKind.CRASH) else set[int]()
        for node in crashed:
            self.down.add(node)
            seed = event.arg("seed") if event.what is EventKind.CRASH else 0
            self.lose_power(node, _drawn(f"{self._seed} {node} {seed}"))
        started = {event.node} if event.what is EventKind.START and event.node not in crashed else set()
        silent = self.down | self.cut
        self.mail.drop(lambda each: each.destination in silent or each.source in self.cut)
        return StepResult(
            sent, judged, tuple(steps), frozenset(crashed), frozenset(n for n in started if n is not None)
        )

    def _let(self, event: Event) -> Sequence[ModelStep]:
        node = event.node
        match event.what:
            case EventKind.DELIVER | EventKind.REPEAT:
                self.receive(self.mail.take(event))
            case EventKind.LOSE:
                self.mail.take(event)
            case EventKind.CRASH:
                pass
            case EventKind.START if node is not None:
                self.down.discard(node)
                self.start(node)
            case EventKind.CUT if node is not None:
                self.cut.add(node)
            case EventKind.HEAL if node is not None:
                self.cut.discard(node)
            case _:
                return self.act(event)
        return ()

    def evidence(self) -> list[tuple[object, ...]]:
        """What the messages in flight say. It is compared where two systems are (``fencepost mutants --source``)."""
        letters = self.mail.in_flight.values()
        return [(each.number, each.name, each.source, each.destination, each.body) for each in letters]

    def close(self) -> None:  # noqa: B027 - most have nothing to release
        """Release everything; may be called more than once."""


def _drawn(seed: int | str) -> Random:
    """Chance that comes out the same for the same seed."""
    return Random(seed)  # noqa: S311 - repeatable on purpose
