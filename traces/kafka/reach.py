"""Is there a run of the model that ends in these logs?

The final state is a condition on the model's cells (``abstraction.py``); the batch engine searches for the shortest
run to it. States that hold a record which no final log holds, beyond a stated number of spare ones, are not
expanded: their records could only have been written in vain. A leader that was elected after the last record was
written may have moved a high watermark, so the search goes beyond the last record's epoch too.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from ...model.core import terms
from ...model.core.ground import System, ground
from ...model.core.protocol import Protocol
from ...model.core.terms import Term
from ...model.explore import Exploration, Limits, Query, Verdict, explore
from .abstraction import ABSENT, Abstraction
from .guided_search import guided_run
from .log_conditions import Condition, log_conditions

GOAL = "ends_elsewhere"
"""The invariant whose counterexample is the run that is looked for."""

WIDTHS = ((0, 0), (0, 1), (1, 0))
"""How wide to search, in turn: spare records, and leader epochs later than the last record's.

One of each at once takes more than six million states for logs that differ in two offsets of three replicas.
"""


@dataclass(frozen=True)
class Reach:
    """Whether one variant reaches the logs. ``verdict`` is ``holds`` where it does: ``search.path`` is the run."""

    variant: str
    verdict: Verdict
    system: System
    search: Exploration
    spare: int
    later: int

    @property
    def bounds(self) -> str:
        """Within which constants the search was complete, in words."""
        c = self.system.constants
        return (
            f"{c['replicas']} replicas, {c['log_size']} offsets, {c['max_records']} records, "
            f"leader epochs up to {c['max_leader_epoch']}"
        )


def _cell(system: System, name: str) -> Term:
    cell = system.layout.cells[system.layout.by_name[name]]
    return terms.node("cell", (), cell.variable.values.sort, cell.number)


def goal(system: System, target: Abstraction) -> Term:
    """The condition that a state's logs are the target's, each replica's high watermark not below the checkpoint's.

    A checkpoint is written every few seconds and so may lag, but never lead. Where an epoch cache ends with an epoch
    that has no record, the replica leads in it still: others that the cache allows are not looked for.
    """
    conditions = final_conditions(target, system.constants["max_leader_epoch"])
    return terms.conjunction(
        *(terms.disjunction(*(_atom(system, *each) for each in condition)) for condition in conditions)
    )


def final_conditions(target: Abstraction, last: int) -> list[Condition]:
    """The same as conditions on named cells; ``last`` is the largest leader epoch."""
    return [*log_conditions(target), *_led_still(target, last)]


def _atom(system: System, left: str, op: str, right: str | int) -> Term:
    cell = _cell(system, left)
    other = _cell(system, right) if isinstance(right, str) else terms.of_sort(right, cell.sort)
    if op == ">=":
        return other <= cell
    return cell == other if op == "==" else terms.negate(cell == other)


def _led_still(target: Abstraction, last: int) -> Iterator[Condition]:
    """What the epoch caches say of a state, without its history: enough, and more than they need."""
    for r, newest in enumerate(target.newest):
        if newest is None:
            continue
        epoch = target.epochs[newest.epoch]
        if newest.empty:
            yield ((f"leader_epoch[{r}]", "==", epoch),)
            yield ((f"leader[{r}]", "==", r),)
        for later in range(epoch + 1, last + 1):
            # leader_epoch < later, as the cells of an epoch are integers from -1 on.
            yield (
                (f"request_leader[{later}]", "!=", r),
                *((f"leader_epoch[{r}]", "==", known) for known in range(-1, later)),
            )


def _only_wanted(system: System, target: Abstraction) -> Term:
    """Whether the logs can still become the target's when every record that is written is in it.

    No log holds a record at an offset and in an epoch in which no final log has one, and every record that was
    written is in some log: one that is gone from all of them never comes back.
    """
    parts: list[Term] = []
    records = [cell.number for cell in system.layout.cells if cell.variable.name == "record_id"]
    for number in range(system.constants["max_records"]):
        kept = (terms.node("cell", (), terms.Sort.INT, cell) == number for cell in records)
        parts.append(terms.disjunction(_cell(system, "next_record_id") <= number, *kept))
    for r in range(target.replicas):
        for o, block in enumerate(target.blocks):
            cell = _cell(system, f"record_epoch[{r}][{o}]")
            wanted = {target.epochs[e] for e in block.epochs if e != ABSENT} | {-1}
            parts.append(terms.disjunction(*(cell == epoch for epoch in sorted(wanted))))
    return terms.conjunction(*parts)


def reach(
    protocol: Protocol, variant: str, target: Abstraction, *, spare: int, later: int = 0, limits: Limits
) -> Reach:
    """Search for the shortest run of a variant that ends in the target's logs."""
    system = ground(protocol.traced(variant), target.constants(spare, later))
    condition = goal(system, target)
    # An unseen replica may hold a record that no file shows, so nothing is out of bounds then.
    confined = _only_wanted(system, target) if spare == 0 and not target.unseen else terms.TRUE
    searched = replace(
        system,
        invariants={"type_ok": system.invariants["type_ok"], GOAL: terms.negate(condition)},
        witnesses={},
        constraint=confined,
    )
    found = explore(Query.of(searched, limits=limits), "auto")
    verdict = Verdict.UNKNOWN if found.verdict is Verdict.UNKNOWN else Verdict.VIOLATED
    if found.violated == GOAL:
        verdict = Verdict.HOLDS
    return Reach(variant, verdict, system, found, spare, later)


def guided_reach(protocol: Protocol, variant: str, target: Abstraction, *, later: int, limits: Limits) -> Reach:
    """Search greedily for some run that ends in the target's logs; not finding one is ``unknown``."""
    system = ground(protocol.traced(variant), target.constants(0, later))
    confined = terms.TRUE if target.unseen else _only_wanted(system, target)
    conditions = final_conditions(target, system.constants["max_leader_epoch"])
    start = time.perf_counter()
    path, states = guided_run(replace(system, constraint=confined), conditions, limits.max_states)
    verdict = Verdict.UNKNOWN if path is None else Verdict.HOLDS
    depth = 0 if path is None else len(path) + 1
    found = Exploration(
        Query.of(system, limits=limits), "reference", verdict, states, depth, time.perf_counter() - start, path=path
    )
    if path is None:
        spent = states > limits.max_states
        found.reason = f"more than {limits.max_states:,} states (--max-states)" if spent else "no run was found"
    return Reach(variant, verdict, system, found, 0, later)


def reach_any(protocol: Protocol, variants: Iterable[str], target: Abstraction, *, limits: Limits) -> list[Reach]:
    """The searches of several variants, each as wide as ``WIDTHS`` says, up to the first one that reaches the logs.

    For each variant the last search stands: the one that reached, the one whose budget ran out, or the last of all.
    """
    found: list[Reach] = []
    for variant in variants:
        for spare, later in WIDTHS:
            last = reach(protocol, variant, target, spare=spare, later=later, limits=limits)
            if last.verdict is not Verdict.VIOLATED:
                break
        found.append(last)
        if last.verdict is Verdict.HOLDS:
            break
    return found
