"""Is every planted fault found, and nothing else? ``python benchmarks/planted.py [PROTOCOL] [SEED] [CONSTANTS]``.

A corpus of the safe variant with every fault planted that can be, each in about twenty traces, is judged whole: the
traces found must be the planted ones, each at its planted step, by the planted guard or variables. Then the traces of
each fault are mined alone: they must make one group, whose minimal trace is at most one and a half times as long as
the explorer's shortest counterexample of that fault (where it breaks a promise at these constants). Last, the traces of
one mutant of each guard and of all wrong outcomes are mined together: as many groups, but for mutants that have each
outcome in common with another one. Prints a line for each fault and the totals; the exit code is 1 where anything is
amiss. Takes minutes.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from fencepost.conformance.cli import main as command
from fencepost.model.core import terms
from fencepost.model.core.ground import Instance, System, ground
from fencepost.model.core.protocol import TracedProtocol
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.core.terms import Sort, Term
from fencepost.model.explore import Limits, Query, Verdict, explore
from fencepost.traces.corpus.faults import ALL, fault_named, faults_named
from fencepost.traces.corpus.files import open_events
from fencepost.traces.corpus.layout import Events
from fencepost.traces.corpus.manifest import PLANTED, read_corpus
from fencepost.traces.corpus.spread import SERIAL
from fencepost.traces.mine.answer import Group
from fencepost.traces.mine.findings import Judge
from fencepost.traces.mine.job import groups_of
from fencepost.traces.mine.work_unit import Miner, Question
from fencepost.traces.mine.workers import Workers
from fencepost.traces.replay import Budget

EACH = 20
CLEAN = 3
"""So many clean traces for each planted one."""
STEPS = 60
SEARCHED = 5_000_000


@dataclass
class Row:
    """What became of one fault. Another variant differs in several places, and is as many bugs."""

    name: str
    traces: int
    wrong: int
    mutant: bool
    groups: list[Group]
    shortest: int | None

    @property
    def faults(self) -> list[str]:
        """What is amiss."""
        found = []
        if self.wrong:
            found.append(f"{self.wrong} traces are judged otherwise")
        if not self.groups or (self.mutant and len(self.groups) != 1):
            found.append(f"{len(self.groups)} groups: {'; '.join(str(group.bug) for group in self.groups)}")
        unfinished = (group for group in self.groups if not group.minimised or group.minimal is None)
        found += (f"not minimal: {group.note}" for group in unfinished)
        # Of several bugs one is the soonest, and the explorer's.
        soonest = min((len(group.minimal) for group in self.groups if group.minimal is not None), default=0)
        if self.shortest is not None and soonest > 1.5 * self.shortest:
            found.append(f"{soonest} steps, and the explorer takes {self.shortest}")
        return found


def whole(folder: Path) -> Events:
    """All events of a corpus."""
    return Events.joined([events for file in read_corpus(folder).files for events in open_events(file.path)])


def chosen(events: Events, traces: set[int]) -> Events:
    """The traces with these ids."""
    rows = np.isin(events.trace, sorted(traces))
    seen = None if events.seen is None else events.seen[:, rows]
    return Events(
        events.layout,
        events.trace[rows],
        events.step[rows],
        events.action[rows],
        np.ascontiguousarray(events.params[:, rows]),
        np.ascontiguousarray(events.cells[:, rows]),
        seen,
        events.numbers,
    )


def misjudged(events: Events, planted: Mapping[int, Mapping[str, Any]], miner: Miner) -> set[int]:
    """The traces that are found though nothing was planted, or not found, or found elsewhere or for another reason."""
    found: dict[int, tuple[object, ...]] = {}
    judged = Judge(miner.against, Budget())(events, miner.against.codes(events))
    for each in judged.findings:
        names = {name.rstrip("+-") for name in each.bug.variables}
        start = events.starts[each.place]
        found[int(events.trace[start])] = (int(events.step[each.row]), each.bug.action, each.bug.guard, names)
    truth = {
        trace: (each["step"], each["action"], each["guard"], set(each["variables"])) for trace, each in planted.items()
    }
    return {trace for trace in {*found, *truth} if found.get(trace) != truth.get(trace)}


def counterexample(traced: TracedProtocol, name: str, constants: Mapping[str, int]) -> int | None:
    """The length of the explorer's shortest counterexample of a fault.

    Steps to a value outside its domain are left out, since no trace can tell them.
    """
    system = ground(fault_named(traced, name).traced, constants)
    told = [replace(each, guards=(*each.guards, ("told", _inside(system, each)))) for each in system.instances]
    answer = explore(Query.of(replace(system, instances=told), limits=Limits(SEARCHED)), "batch")
    return len(answer.path) if answer.verdict is Verdict.VIOLATED and answer.path is not None else None


def _inside(system: System, instance: Instance) -> Term:
    """That every value which a step writes lies in its cell's domain."""
    cells = system.layout.cells
    written = [(cells[n], term) for n, term in instance.effect.items() if term.sort is Sort.INT]
    bounds = ((terms.const(cell.low) <= term, term <= cell.high) for cell, term in written)
    return terms.conjunction(*(bound for each in bounds for bound in each))


def rows(folder: Path, traced: TracedProtocol, constants: Mapping[str, int]) -> Iterator[Row]:
    """Every fault that was planted."""
    events = whole(folder)
    lines = [json.loads(line) for line in (folder / PLANTED).read_text(encoding="utf-8").splitlines()]
    planted = {each["trace"]: each for each in lines}
    by_fault: dict[str, set[int]] = {}
    for each in lines:
        by_fault.setdefault(each["fault"], set()).add(each["trace"])
    miner = Miner(events.layout, Question(), "the corpus")
    wrong = misjudged(events, planted, miner)
    clean = wrong - planted.keys()
    print(f"{len(planted):,} of {events.starts.size:,} traces planted; {len(clean):,} others found")
    together = [sorted(names)[0] for names in _told_apart(traced, lines).values()]
    print(f"{len(together)} mutants that differ make {_groups(events, by_fault, together)} groups together")
    with Workers(SERIAL) as workers:
        for name, traces in sorted(by_fault.items()):
            alone = Miner(events.layout, Question(), "the corpus")
            alone.mine(chosen(events, traces))
            groups, _ = groups_of(alone.part, Budget(), 100, workers)
            yield Row(
                name,
                len(traces),
                len(traces & wrong),
                fault_named(traced, name).mutant,
                groups,
                counterexample(traced, name, constants),
            )
    if clean:
        yield Row("traces with nothing planted", events.starts.size - len(planted), len(clean), False, [], None)


def _told_apart(traced: TracedProtocol, planted: Sequence[Mapping[str, Any]]) -> dict[object, set[str]]:
    """The mutants that were planted, by the guard that they leave out or shift; each wrong outcome by itself."""
    found: dict[object, set[str]] = {}
    for each in planted:
        if fault_named(traced, each["fault"]).mutant:
            key = (each["action"], each["guard"]) if each["guard"] else each["fault"]
            found.setdefault(key, set()).add(each["fault"])
    return found


def _groups(events: Events, by_fault: Mapping[str, set[int]], names: Sequence[str]) -> int:
    miner = Miner(events.layout, Question(), "the corpus")
    miner.mine(chosen(events, set().union(*(by_fault[name] for name in names))))
    with Workers(SERIAL) as workers:
        groups, left_off = groups_of(miner.part, Budget(), 0, workers)
    return len(groups) + left_off


def main(protocol: str = "fencing", seed: str = "1", written: str = "") -> int:
    """Print a line for each fault."""
    traced = PROTOCOLS[protocol].traced()
    names = list(traced.protocol.constants)
    given = dict(zip(names, map(int, written.split("/")), strict=True)) if written else {}
    constants = traced.protocol.check_constants(given)
    options = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", str(value))]
    planted = EACH * len(faults_named(traced, (ALL,)))
    total = planted * (1 + CLEAN)
    start = time.perf_counter()
    amiss = 0
    with tempfile.TemporaryDirectory() as folder:
        out = str(Path(folder) / "corpus")
        simulated = ["simulate", protocol, "--traces", str(total), "--events", str(STEPS), "--seed", seed, "--out", out]
        simulated += ["--faults", ALL, "--rate", str(planted / total), "--master", SERIAL, *options]
        assert command(simulated) == 0
        count = 0
        for row in rows(Path(out), traced, constants):
            count += 1
            told = len(row.groups[0].minimal or ()) if row.groups else "-"
            faults = row.faults
            amiss += bool(faults)
            said = "; ".join(faults) or (str(row.groups[0].bug) if row.groups else "")
            mark = "AMISS" if faults else "ok"
            print(f"{mark:6}{row.name:62}{row.traces:4} traces {told:>3} of {row.shortest or '-':>3} steps  {said}")
    print(f"{count} faults, {amiss} amiss; {time.perf_counter() - start:.0f} s")
    return 1 if amiss else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
