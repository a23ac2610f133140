"""Mining a part of a file: row groups in, a ``Part`` out. Plain functions; whoever distributes them calls them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from ...model.core.budget import too_large
from ...model.core.errors import BadInput
from ...model.core.registry import PROTOCOLS
from ..corpus.convert import event_of, trace_of
from ..corpus.files import EventsFile
from ..corpus.layout import CorpusHeader, CorpusLayout, Events
from ..corpus.manifest import CorpusFile
from ..replay import Budget, partial_reason
from .against import Against, Codes, variant_for
from .answer import Bug, Problem
from .coverage import Watcher
from .findings import Finding, Judge, Judged
from .part import Model, Part, Sighting
from .signature import LAST, Call, shape_of

LOCKSTEP: Final = 4096
"""So many traces at least go in lockstep, where the file has as many and they fit into ``ROWS`` rows: each step of the
model is a few NumPy calls, however many traces take it."""

ROWS: Final = 1 << 20


@dataclass(frozen=True)
class Question:
    """What a corpus is asked.

    ``variant``: what traces are held against; None: the protocol's safe one. ``budget``: of the replay of traces that
    the array passes leave open. ``whole``: the models whose whole graph is known, so that visited states are kept.
    """

    variant: str | None = None
    budget: Budget = field(default_factory=Budget)
    whole: frozenset[Model] = field(default_factory=frozenset)


@dataclass(frozen=True)
class Unit:
    """Row groups ``low .. high - 1`` of a file."""

    file: CorpusFile
    low: int
    high: int


def model_of(against: Against) -> Model:
    """What traces are held against, as a key."""
    system = against.system
    return system.name, system.traced.variant.name, tuple(system.constants.items())


def mine_unit(unit: Unit, question: Question) -> Part:
    """Mine some row groups. What cannot be read is among the part's problems; the other row groups are mined."""
    part = Part()
    try:
        with unit.file.open() as file:
            reason = _not_grounded(file, question)
            if reason is not None:
                return _undecided(file, unit, part, reason)
            miner = Miner(file.layout, question, file.name)
            for events in _runs(file, unit, part):
                part.traces_of[unit.file.path] += events.starts.size
                miner.mine(events)
    except BadInput as error:
        part.problems.append(Problem.of(error))
        return part
    return miner.part.merge(part)


def _not_grounded(file: EventsFile, question: Question) -> str | None:
    """Why a file's traces are held against nothing: the variant is too large at its constants."""
    header = file.layout.header
    return too_large(variant_for(header, question.variant, file.name), header.constants)


def _undecided(file: EventsFile, unit: Unit, part: Part, reason: str) -> Part:
    """Traces that are counted, and no more."""
    for group in range(unit.low, min(unit.high, file.groups)):
        try:
            events = file.read(group, ())
        except BadInput as error:
            part.problems.append(Problem.of(error))
            continue
        part.traces += events.starts.size
        part.events += len(events)
        part.traces_of[unit.file.path] += events.starts.size
        part.doubt(reason, events.starts.size, int(events.trace[0]))
    return part


def _runs(file: EventsFile, unit: Unit, part: Part) -> Iterator[Events]:
    """Row groups as they are; those with holes joined, until enough traces go in lockstep."""
    kept: list[Events] = []
    for group in range(unit.low, min(unit.high, file.groups)):
        try:
            events = file.read(group)
        except BadInput as error:
            part.problems.append(Problem.of(error))
            continue
        if events.seen is None:
            yield events
            continue
        kept.append(events)
        if sum(each.starts.size for each in kept) >= LOCKSTEP or sum(map(len, kept)) >= ROWS:
            yield Events.joined(kept)
            kept = []
    if kept:
        yield Events.joined(kept)


class Miner:
    """Mines runs of events of one layout, in ascending order of their traces.

    Raises BadInput where the layout's traces cannot be held against the variant asked for.
    """

    def __init__(self, layout: CorpusLayout, question: Question, where: str) -> None:
        self.against = against_of(layout, question.variant, where)
        self._judge = Judge(self.against, question.budget)
        self._model = model_of(self.against)
        # Equal layouts share one `Against`, so the reason is this file's own.
        self._partial = layout.header.partial
        self._watcher = Watcher(self.against, self._model in question.whole)
        self._shapes: dict[tuple[int, ...], tuple[str, ...]] = {}
        self._part = Part(seen={self._model: self._watcher.seen})

    @property
    def part(self) -> Part:
        """What was found so far."""
        self._watcher.finish()
        return self._part

    def mine(self, events: Events) -> None:
        """Take in a run of events."""
        codes = self.against.codes(events)
        judged = self._judge(events, codes)
        self._watcher.watch(events, codes, judged)
        self._collect(events, codes, judged)

    def _collect(self, events: Events, codes: Codes, judged: Judged) -> None:
        part = self._part
        part.traces += events.starts.size
        part.events += len(events)
        part.violating += len(judged.findings)
        for place, reason in judged.unknown:
            part.doubt(reason, 1, int(events.trace[events.starts[place]]))
        if self._partial is not None:
            decided = {found.place for found in judged.findings} | {place for place, _ in judged.unknown}
            for place, start in enumerate(events.starts):
                if place not in decided:
                    part.doubt(partial_reason(self._partial), 1, int(events.trace[start]))
        by_bug: dict[Bug, list[Finding]] = {}
        for found in judged.findings:
            by_bug.setdefault(found.bug, []).append(found)
        for bug, findings in by_bug.items():
            part.see(self._sighting(events, codes, bug, findings))

    def _sighting(self, events: Events, codes: Codes, bug: Bug, findings: Sequence[Finding]) -> Sighting:
        # Findings come in the order of their traces: of equally short ones the first has the smallest id.
        best = min(findings, key=lambda found: found.row - events.starts[found.place])
        low, high = int(events.starts[best.place]), best.row + 1
        sighting = Sighting(
            bug,
            self._model,
            len(findings),
            int(events.trace[events.starts[findings[0].place]]),
            high - low,
            int(events.trace[low]),
            trace_of(events.rows(low, high), 0),
            dict(Counter(self._shape(events, codes, found) for found in findings)),
        )
        for found in findings:
            for name, after in found.then.items():
                count, least = sighting.then.get(name, (0, after))
                sighting.then[name] = count + 1, min(least, after)
        return sighting

    def _shape(self, events: Events, codes: Codes, found: Finding) -> tuple[str, ...]:
        low = max(int(events.starts[found.place]), found.row + 1 - LAST)
        key = tuple(codes[low : found.row + 1].tolist())
        if self.against.unknown in key:
            shown = (event_of(events, row) for row in range(low, found.row + 1))
            return shape_of(self.against.traced.protocol, [(event.action, event.params) for event in shown])
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._shapes[key] = shape_of(self.against.traced.protocol, map(self._call, key))
        return shape

    def _call(self, code: int) -> Call:
        if code == self.against.look:
            return None, {}
        action, params = self.against.steps[code]
        return action, dict(params)


def against_of(layout: CorpusLayout, variant: str | None, where: str) -> Against:
    """The variant asked for, grounded for a layout; for equal layouts the same. Raises BadInput as a miner does."""
    header = layout.header
    name = variant_for(header, variant, where).variant.name
    return _against(header.protocol, header.variant, tuple(header.constants.items()), name)


@lru_cache(maxsize=64)
def _against(protocol: str, made_by: str, constants: tuple[tuple[str, int], ...], variant: str) -> Against:
    """Grounding takes from a tenth of a second to minutes, and a worker mines many parts of one corpus."""
    header = CorpusHeader(protocol, made_by, dict(constants))
    return Against(CorpusLayout.of(header), PROTOCOLS[protocol].traced(variant))
