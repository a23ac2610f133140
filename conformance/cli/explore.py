"""``fencepost explore``: all reachable states of a protocol's variant, or a shortest counterexample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter
from rich.table import Table

from ...model.core.errors import BadInput
from ...model.core.ground import System, ground
from ...model.core.protocol import Protocol
from ...model.core.registry import REGISTRY
from ...model.explore import Exploration, Limits, Query, Verdict
from ...model.explore import explore as search
from ...model.explore.graph import GRAPH_LIMITS, BudgetExceeded, build_graph, write_graph
from ...model.explore.liveness import Liveness, check_liveness
from ...model.explore.result import Step
from ...traces.record import record, run_of
from ...traces.report.page import render_page
from ...traces.report.text import render_text
from ...traces.story import Json, Story
from ...traces.write import write_trace
from ..check.stories import counterexample
from .options import Natural, Positive, Whole
from .output import exploring, note, print_json, refuse_unwritable, stdout, write_text, written


def protocol_named(name: str, where: str = "PROTOCOL") -> Protocol:
    """The protocol of that name, or at that place. Raises BadInput for an unknown one."""
    return REGISTRY.named(name, where).protocol


def explore(
    protocol: str,
    *,
    variant: str | None = None,
    engine: Literal["batch", "reference", "symbolic"] = "batch",
    invariant: Annotated[Sequence[str], Parameter(negative=())] = (),
    symmetry: Annotated[bool, Parameter(negative=())] = False,
    liveness: Annotated[bool, Parameter(negative=())] = False,
    fairness: Annotated[Sequence[str], Parameter(negative=())] = (),
    drop: Annotated[Sequence[str], Parameter(negative=())] = (),
    max_states: Positive = Limits.max_states,
    max_memory: Positive = Limits.max_memory >> 20,
    max_depth: Natural | None = None,
    max_effort: Positive = Limits.max_effort,
    trace_out: Path | None = None,
    html: Path | None = None,
    graph: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    **constants: Whole,
) -> int:
    """Visit every reachable state, or find a shortest counterexample.

    The protocol's constants are options too, as in --replicas 3: fencepost protocols PROTOCOL lists them.

    Parameters
    ----------
    protocol
        One that is installed, by its name (fencepost protocols), or yours: file.py:name or module:name.
    variant
        A named version of it; the safe one by default (fencepost protocols PROTOCOL lists them).
    engine
        batch (NumPy, whole frontiers), reference (plain Python, one state at a time) or symbolic (z3, whole runs at
        once: finds a shortest counterexample without visiting states, and never that all is well).
    invariant
        Check only this invariant (repeatable; default all). type_ok is always checked.
    symmetry
        Count orbits under renaming of replicas instead of states.
    liveness
        Check the liveness properties too, on the whole graph: for small constants.
    fairness
        Assume this named set of fairness conditions (repeatable; default: each in turn).
    drop
        Explore with this guard gone, written ACTION.GUARD (repeatable).
    max_states
        Give up, with verdict unknown, after so many distinct states.
    max_memory
        Give up, with verdict unknown, at so many MiB of memory.
    max_depth
        Look at runs of at most so many steps; by default all, of the symbolic engine 20.
    max_effort
        Give up, with verdict unknown, where z3 spends more than so many of its resource units on runs of one length
        (the symbolic engine alone; some millions a second, and the same in each run).
    trace_out
        Write the counterexample, if there is one, as a trace (JSON Lines).
    html
        Write the counterexample, if there is one, as one HTML page.
    graph
        Write the state graph (.graphml, .dot or .gv): for small constants.
    json
        Print one JSON object on standard output.
    """
    for target in (trace_out, html, graph):
        refuse_unwritable(target)
    spec = protocol_named(protocol)
    # An option of a constant comes as it was typed: --log-size.
    values = {name.replace("-", "_"): value for name, value in constants.items()}
    system = ground(spec.traced(variant).drop(*drop), values)
    limits = Limits(max_states, max_memory << 20, max_depth, max_effort)
    if engine == "symbolic" and liveness:
        raise BadInput("a run without end is no run of so many steps", "--liveness", "leave it out, or take batch")
    query = Query.of(system, tuple(invariant), symmetry, limits)
    with exploring(f"{system.name} {system.traced.variant.name}") as told:
        found = search(query, engine, told)
    live: list[Liveness] = []
    if liveness and found.verdict is Verdict.HOLDS:
        with exploring("liveness") as told:
            live = check_liveness(system, tuple(fairness), limits=limits, on_progress=told)
    verdict = _overall([found.verdict, *(each.verdict for each in live)])
    story = counterexample(system, found, live)
    if graph is not None and not _drawn(system, graph, limits) and verdict is Verdict.HOLDS:
        verdict = Verdict.UNKNOWN
    steps, violated = _counterexample(found, live)
    for target in (trace_out, html):
        if target is not None and steps is None:
            note(f"{target} is not written: there is no counterexample")
    if trace_out is not None and steps is not None:
        source: dict[str, Json] = {"engine": found.engine, "violated": violated, "dropped": list(drop)}
        write_trace(trace_out, record(system, steps, source=source))
        written(trace_out)
    if html is not None and story is not None:
        write_text(html, render_page(story))
        written(html)
    if json:
        answer = found.to_json() | {"verdict": verdict.value, "violated": violated, "dropped": list(drop)}
        if steps is not None:
            answer["trace"] = [{"action": each.action, "params": dict(each.params)} for each in run_of(steps)]
        if liveness:
            answer["liveness"] = [each.to_json() for each in live]
        print_json(answer)
    else:
        _print(found, live, story)
    return verdict.exit_code


def _drawn(system: System, graph: Path, limits: Limits) -> bool:
    """Write the state graph, unless it is too large."""
    try:
        with exploring("state graph") as told:
            whole = build_graph(system, GRAPH_LIMITS if limits == Limits() else limits, told)
    except BudgetExceeded as spent:
        note(f"{graph} is not written: {spent}")
        return False
    write_graph(whole, graph)
    written(graph)
    return True


def _overall(verdicts: Sequence[Verdict]) -> Verdict:
    for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN):
        if verdict in verdicts:
            return verdict
    return Verdict.HOLDS


def _counterexample(found: Exploration, live: Sequence[Liveness]) -> tuple[Sequence[Step] | None, str | None]:
    """The steps of the counterexample that is told, and the property that it breaks; a lasso once around its loop."""
    for each in live:
        if each.lasso is not None:
            return each.lasso.path, each.spec.name
    return found.path, found.violated


def _print(found: Exploration, live: Sequence[Liveness], story: Story | None) -> None:
    out = stdout()
    if story is not None:
        out.print(render_text(story, width=out.story_width), end="", markup=False)
        out.print()
    system = found.query.system
    constants = ", ".join(f"{name} {value}" for name, value in system.constants.items())
    what = "orbits" if found.query.symmetry else "states"
    verdict = found.verdict.value if found.violated is None else f"{found.verdict.value}: {found.violated}"
    out.print(f"{system.name} {system.traced.variant.name} ({constants}): [bold]{verdict}[/bold]")
    if found.reason:
        out.print(found.reason, markup=False)
    if found.engine == "symbolic":
        out.print(f"runs of up to {found.depth - 1} steps, {found.engine} engine, {found.seconds:.2f} s")
        return
    out.print(
        f"{found.distinct:,} distinct {what}, depth {found.depth}, {found.engine} engine, {found.seconds:.2f} s "
        f"({found.states_per_second:,.0f} a second), {found.memory / (1 << 20):,.0f} MiB"
    )
    table = Table("action", "enabled", "led to a new state", box=None, pad_edge=False)
    for column in table.columns[1:]:
        column.justify = "right"
    for name, seen in found.coverage.items():
        table.add_row(name, f"{seen.transitions:,}", f"{seen.discoveries:,}")
    out.print(table)
    for name, count in found.witnesses.items():
        out.print(f"sometimes {name}: {count:,} {what}", markup=False)
    for each in live:
        out.print(f"{each.spec.name} under {each.fairness}: {each.verdict.value}", markup=False)
