"""Observations that contradict each other in every run that keeps the invariants, found without a search.

A lasting cell keeps its value once it is set (``Variable.lasting``). So all observations of lasting cells hold together
at the end of the trace, however many steps lie between them, and two values of one cell contradict each other. So do
values that break a condition which the invariants imply (``Protocol.implied_in``).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from ..model.core import terms
from ..model.core.ground import Cell, Grounder, System, substitute
from ..model.core.terms import Term
from .event_match import Wanted
from .format import TraceEvent, value_json
from .observe import decode
from .run_report import Json


@dataclass(frozen=True)
class Claim:
    """What one event observed of one lasting cell."""

    event: TraceEvent
    cell: Cell
    value: int

    @property
    def number(self) -> int:
        """The cell's number."""
        return self.cell.number

    def __str__(self) -> str:
        where = f"event {self.event.step}" if self.event.line is None else f"line {self.event.line}"
        return f"{self.cell.name}={decode(self.cell, self.value)} ({where})"


@dataclass(frozen=True)
class Conflict:
    """Claims that contradict each other, in the order of the trace.

    ``condition``: the implied condition that they break; None if they are values of one cell.
    """

    claims: tuple[Claim, ...]
    condition: str | None = None

    def __str__(self) -> str:
        *others, last = map(str, self.claims)
        told = others[0] if len(others) == 1 else f"{', '.join(others[:-1])} and {others[-1]}"
        return f"{last} contradicts {told}, whatever happened in between"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object; ``line`` is null without a file."""
        return {
            "condition": self.condition,
            "claims": [
                {
                    "step": each.event.step,
                    "line": each.event.line,
                    "cell": each.cell.name,
                    "value": value_json(decode(each.cell, each.value)),
                }
                for each in self.claims
            ],
        }


def find_conflict(system: System, wanted: Sequence[Wanted], events: Sequence[TraceEvent]) -> Conflict | None:
    """Return all claims that the first contradictory observation contradicts, or None.

    Args:
        system: The model; it need not be grounded.
        wanted: The events of the trace as the search reads them.
        events: The same events.
    """
    traced = system.traced
    rules = traced.variant.rules
    lasting = {cell.number for cell in system.layout.cells if cell.variable.lasting(rules)}
    if not lasting or not any(number in lasting for each in wanted for number, _ in each.cells):
        return None
    conditions = _Conditions(system)
    known: dict[int, Claim] = {}
    for each, event in zip(wanted, events, strict=True):
        for number, value in each.cells:
            cell = system.layout.cells[number]
            if number not in lasting or (value == cell.initial and number not in known):
                continue
            claim = Claim(event, cell, value)
            before = known.get(number)
            found: dict[int, Claim] = {}
            broken: str | None = None
            if before is None or before.value != value:
                for name, others in conditions.broken_by(claim, known):
                    broken = broken or name
                    found |= {other.number: other for other in others}
            if before is not None and before.value != value:
                found[number] = before
            if found:
                order = sorted(found.values(), key=lambda one: (one.event.step, one.number))
                return Conflict((*order, claim), broken if number not in found else None)
            known.setdefault(number, claim)
    return None


class _Conditions:
    """The implied conditions of a variant, part by part."""

    def __init__(self, system: System) -> None:
        traced = system.traced
        grounder = Grounder(traced, system.constants, system.layout)
        self._cells = {number: grounder.cell(number) for number in range(len(system.layout.cells))}
        self._sorts = {cell.number: cell.variable.values.sort for cell in system.layout.cells}
        self._parts: dict[int, list[tuple[str, Term, frozenset[int]]]] = defaultdict(list)
        for name, term in traced.protocol.implied_terms(traced.variant.name).items():
            whole = grounder.ground(term, {})
            for part in whole.args if whole.op == "and" else (whole,):
                cells = frozenset(int(str(leaf.value)) for leaf in terms.leaves(part) if leaf.op == "cell")
                for number in cells:
                    self._parts[number].append((name, part, cells))

    def broken_by(self, claim: Claim, known: dict[int, Claim]) -> list[tuple[str, list[Claim]]]:
        """The conditions that a claim breaks with what is known, and the other claims of each."""
        found = []
        for name, part, cells in self._parts[claim.number]:
            others = [known[number] for number in sorted(cells - {claim.number}) if number in known]
            if len(others) + 1 < len(cells):
                continue
            values = {
                self._cells[each.number]: terms.of_sort(each.value, self._sorts[each.number])
                for each in (*others, claim)
            }
            if substitute(part, values) is terms.FALSE:
                found.append((name, others))
        return found
