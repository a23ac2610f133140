"""Events: what the world decides while a system runs by itself.

An event is named so that it means the same in a run from which others were left out: not by a number that the run has
given to it, but by what it is, at whom, from whom, and which of the pending ones that are alike (0: the oldest).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Any, Final

from ...model.core.errors import BadInput
from ...traces.run_report import Json


class EventKind(Enum):
    """What an event is. ``doc`` says what a system must do when it happens."""

    DELIVER = "deliver", "the message arrives, and whatever its receiver does at once is done"
    REPEAT = "repeat", "a copy of the message arrives; the message itself stays in flight"
    LOSE = "lose", "the message is lost, and nobody is told"
    GARBLE = "garble", "the message arrives, and what a checksum covers in it is not as it was sent, by args.garbled"
    TIMER = "timer", "a timer of a node fires, due or not"
    TIME = "time", "the clock moves on by args.ms, and nothing else happens; timers that are due stay pending"
    CALL = "call", "a client or a consumer asks for something"
    OPERATE = "operate", "an operator, or what watches the nodes, has the cluster changed: an election, a replica gone"
    PROBE = "probe", "somebody asks what must be refused: a stale epoch, an old candidate"
    CRASH = "crash", "the node's process ends at once; what its disk had not synced may be lost, by args.seed"
    START = "start", "the node's next process starts on the files that are there"
    CUT = "cut", "the node is cut off from all others: nothing that it sends or should get arrives"
    HEAL = "heal", "the node is reached again"
    DISK = "disk", "the node's disk is full (name full), fails (fails), or works again (mended)"
    CLOCK = "clock", "the node's time of day is set: from now on it is off by args.ms; how long things take stays"
    SYNC = "sync", "something in the background makes a node's writes durable, or stores a checkpoint"
    PEACE = "peace", "nothing goes wrong any more and nobody asks, until nothing moves; never named by a system"
    CALM = "calm", "args.rounds times all that is in flight arrives, and what is due is done; never named by a system"

    def __new__(cls, value: str, _doc: str) -> EventKind:
        member = object.__new__(cls)
        member._value_ = value
        return member

    def __init__(self, _value: str, doc: str) -> None:
        self.doc = doc

    __hash__ = object.__hash__
    """There is one of each, and events are hashed a hundred times as often as they happen."""


Argument = int | str

GARBLED: Final = "garbled"
"""The argument of what arrives garbled: one number for each way in which it may be."""
_VARIATIONS: Final = frozenset({EventKind.REPEAT, EventKind.LOSE, EventKind.GARBLE})
"""What may become of a message besides that it arrives."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event.

    ``name``: the kind of message, the timer, the call: ``Fetch``, ``isr``, ``produce``. ``node``: at whom it happens
    (the receiver of a message); None for the controller, or for a client. ``source``: who sent the message. ``number``:
    which of the pending ones that are alike, the oldest first. ``args``: of a call or a probe.
    ``crash``: in the midst of it, after so many of its effects (a write, a sync, a message that is sent), the node
    loses power; 0 is before the first. A node that has fewer effects loses it right after the last.
    """

    what: EventKind
    name: str = ""
    node: int | None = None
    source: int | None = None
    number: int = 0
    args: tuple[tuple[str, Argument], ...] = ()
    crash: int | None = None
    _hash: int = field(init=False, repr=False, compare=False, default=0)
    """Events are looked up a hundred times as often as they are made."""

    def __post_init__(self) -> None:
        key = self.what, self.name, self.node, self.source, self.number, self.args, self.crash
        object.__setattr__(self, "_hash", hash(key))

    def __hash__(self) -> int:
        return self._hash

    def arg(self, name: str) -> Argument:
        """An argument. Raises KeyError for one that is not there."""
        return dict(self.args)[name]

    def crashing(self, after: int) -> Event:
        """The same, and in its midst the node loses power."""
        return replace(self, crash=after)

    def garbled(self, way: int) -> Event:
        """The same message arrives, and not as it was sent."""
        return replace(self, what=EventKind.GARBLE, args=(*self.args, (GARBLED, way)))

    def plain(self) -> Event:
        """The event as a system names it: its message arrives, as it was sent, and no power is lost."""
        if self.what in _VARIATIONS:
            args = tuple(each for each in self.args if each[0] != GARBLED)
            return replace(self, what=EventKind.DELIVER, args=args, crash=None)
        return replace(self, crash=None)

    def __str__(self) -> str:
        place = "" if self.node is None else f" at {self.node}"
        if self.what is EventKind.DELIVER or self.what in _VARIATIONS:
            sender = "?" if self.source is None else str(self.source)
            place = f" {sender} -> {'?' if self.node is None else self.node}"
        args = f" ({', '.join(f'{name}={value}' for name, value in self.args)})" if self.args else ""
        number = f" #{self.number}" if self.number else ""
        crash = "" if self.crash is None else f", power lost after {self.crash} effects"
        return f"{self.what.value} {self.name}".rstrip() + f"{place}{number}{args}{crash}"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object, without what is not said."""
        found: dict[str, Json] = {"event": self.what.value}
        if self.name:
            found["name"] = self.name
        if self.node is not None:
            found["node"] = self.node
        if self.source is not None:
            found["source"] = self.source
        if self.number:
            found["number"] = self.number
        if self.args:
            found["args"] = dict(self.args)
        if self.crash is not None:
            found["crash"] = self.crash
        return found


def event_of(told: Mapping[str, Any], where: str) -> Event:
    """An event from its JSON object. Raises BadInput, one line, for what is none; ``where`` is its file and line."""
    mend = "give what fencepost conform wrote"
    known = {"event", "name", "node", "source", "number", "args", "crash"}
    for key in told:
        if key not in known:
            raise BadInput(f"an event has no {key!r}", where, mend)
    kinds = {what.value: what for what in EventKind}
    what = kinds.get(told.get("event", ""))
    if what is None:
        raise BadInput(f"there is no event {told.get('event')!r}", where, f"one of {', '.join(kinds)}")
    name, args = told.get("name", ""), told.get("args", {})
    if not isinstance(name, str) or not isinstance(args, dict):
        raise BadInput("an event's name is a text, and its args an object", where, mend)
    numbers: dict[str, int | None] = {}
    for key, least in (("node", None), ("source", None), ("number", 0), ("crash", 0)):
        value = told.get(key)
        if value is not None and (type(value) is not int or (least is not None and value < least)):
            raise BadInput(f"an event's {key} is {value!r}", where, mend)
        numbers[key] = value
    for key, value in args.items():
        if type(value) is not int and not isinstance(value, str):
            raise BadInput(f"an event's {key} is {value!r}", where, mend)
    return Event(
        what,
        name,
        numbers["node"],
        numbers["source"],
        numbers["number"] or 0,
        tuple(args.items()),
        numbers["crash"],
    )
