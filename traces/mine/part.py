"""What one part of a corpus has to say, small enough to travel; parts are merged in any order to the same whole."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from ..format import Trace
from .answer import Bug, Problem
from .coverage import Seen

Model: TypeAlias = tuple[str, str, tuple[tuple[str, int], ...]]
"""What traces were held against: protocol, variant, constants."""


@dataclass
class Sighting:
    """All traces in which one bug is the first thing wrong.

    ``shortest`` is the id of the trace that shows it with the fewest events (``prefix``), ``trace`` are those events;
    of several the one with the smallest id. ``shapes``: the last steps, as ``signature.py`` has them, and how many
    traces have them. ``then``: for each promise that breaks at the bad step or later, in how many traces, and the
    fewest steps after it.
    """

    bug: Bug
    model: Model
    count: int
    first: int
    prefix: int
    shortest: int
    trace: Trace
    shapes: dict[tuple[str, ...], int]
    then: dict[str, tuple[int, int]] = field(default_factory=dict)

    def copy(self) -> Sighting:
        """Another one that can be merged into without changing this one."""
        return replace(self, shapes=dict(self.shapes), then=dict(self.then))

    def merge(self, other: Sighting) -> None:
        """Take in other traces, of the same bug; of another one that has proved the same, its name is not kept."""
        self.count += other.count
        self.first = min(self.first, other.first)
        if (other.prefix, other.shortest) < (self.prefix, self.shortest):
            self.prefix, self.shortest = other.prefix, other.shortest
            self.trace, self.model = other.trace, other.model
        for shape, count in other.shapes.items():
            self.shapes[shape] = self.shapes.get(shape, 0) + count
        for name, (count, after) in other.then.items():
            known = self.then.get(name)
            self.then[name] = (count, after) if known is None else (known[0] + count, min(known[1], after))


@dataclass
class Part:
    """The counts and sightings of some row groups; ``seen`` is what they visit, for each model.

    ``traces_of``: how many of the traces each file had, by its path.
    """

    traces: int = 0
    events: int = 0
    violating: int = 0
    sightings: dict[Bug, Sighting] = field(default_factory=dict)
    unknown: dict[str, tuple[int, int]] = field(default_factory=dict)
    seen: dict[Model, Seen] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    traces_of: Counter[str] = field(default_factory=Counter)

    def see(self, sighting: Sighting) -> None:
        """Take in a sighting."""
        known = self.sightings.get(sighting.bug)
        if known is None:
            self.sightings[sighting.bug] = sighting
        else:
            known.merge(sighting)

    def doubt(self, reason: str, count: int, first: int) -> None:
        """Take in traces of which nothing is certain."""
        known = self.unknown.get(reason)
        self.unknown[reason] = (count, first) if known is None else (known[0] + count, min(known[1], first))

    def merge(self, other: Part) -> Part:
        """Take in another part; returns itself."""
        self.traces += other.traces
        self.events += other.events
        self.violating += other.violating
        for sighting in other.sightings.values():
            self.see(sighting)
        for reason, (count, first) in other.unknown.items():
            self.doubt(reason, count, first)
        for model, seen in other.seen.items():
            self.seen.setdefault(model, Seen()).merge(seen)
        self.problems += other.problems
        self.traces_of.update(other.traces_of)
        return self
