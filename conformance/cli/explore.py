"""``fencepost explore``: all reachable states of a protocol's variant, or a shortest counterexample."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Final, Literal

from cyclopts import Parameter

from ...model.core.enum_value import plain_params
from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.ground import System, ground
from ...model.core.protocol import Protocol
from ...model.core.registry import REGISTRY
from ...model.explore import Exploration, Limits, Query, Verdict, memory
from ...model.explore import explore as search
from ...model.explore.every import explore_every
from ...model.explore.graph import GRAPH_LIMITS, BudgetExceeded, build_graph, write_graph
from ...model.explore.liveness import Liveness, check_liveness
from ...model.explore.result import OnProgress, Step
from ...traces.record import record, run_of
from ...traces.report.obligation import Obligation
from ...traces.report.page import render_page
from ...traces.run_report import Json, Story
from ...traces.write import write_trace
from ..check.counterexamples import counterexample
from .explore_answer import (
    Untouched,
    annotate_failures,
    beyond_budget,
    obligations,
    overall,
    print_answer,
    stories_of_all,
)
from .help_groups import grouped
from .options import Natural, Positive, Whole, refuse_idle, refuse_twice, unwrapped
from .output import exploring, note, print_json, refuse_same, refuse_unwritable, write_text, written
from .refine_answer import answer_refinement
from .report_files import ReportFiles

MAX_TERMS: Final = 10_000_000
"""The text that a search takes on unasked: it asks all of it of each state, where a free run asks what has changed."""


def protocol_named(name: str, where: str = "PROTOCOL") -> Protocol:
    """The protocol of that name, or at that place. Raises BadInput for an unknown one."""
    return REGISTRY.named(name, where).protocol


@grouped(
    Model=(
        "protocol",
        "variant",
        "invariant",
        "liveness",
        "fairness",
        "drop",
        "symmetry",
    ),
    Search=(
        "every",
        "engine",
        "threads",
        "refines",
        "but",
    ),
    Output=(
        "json",
        "html",
        "trace_out",
        "junitxml",
        "graph",
    ),
    Limits=(
        "max_states",
        "max_memory",
        "max_depth",
        "max_terms",
        "max_effort",
    ),
    Disk_and_Spark=(
        "directory",
        "master",
    ),
)
@unwrapped
def explore(
    protocol: str,
    *,
    variant: str | None = None,
    engine: Literal["batch", "compiled", "reference", "symbolic"] | None = None,
    threads: Positive | None = None,
    invariant: Annotated[Sequence[str], Parameter(negative=())] = (),
    symmetry: Annotated[bool, Parameter(negative=())] = False,
    liveness: Annotated[bool, Parameter(negative=())] = False,
    fairness: Annotated[Sequence[str], Parameter(negative=())] = (),
    every: Annotated[bool, Parameter(name="--all", negative=())] = False,
    drop: Annotated[Sequence[str], Parameter(negative=())] = (),
    refines: str | None = None,
    but: Annotated[Sequence[str], Parameter(negative=())] = (),
    directory: Annotated[Path | None, Parameter(name="--dir")] = None,
    master: str | None = None,
    max_states: Positive | None = None,
    max_memory: Positive = Limits.max_memory >> 20,
    max_depth: Natural | None = None,
    max_terms: Positive = MAX_TERMS,
    max_effort: Positive | None = None,
    trace_out: Path | None = None,
    html: Path | None = None,
    graph: Path | None = None,
    junitxml: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    **constants: Whole,
) -> ExitCode:
    """Visit every reachable state, or find a shortest counterexample.

    The protocol's constants are options too, as in --replicas 3: fencepost protocols PROTOCOL lists them.

    Parameters
    ----------
    protocol
        Protocol: an installed one by its name (fencepost protocols), or yours as file.py:name or module:name.
    variant
        Variant of the protocol; the safe one by default (fencepost protocols PROTOCOL lists them).
    invariant
        Invariant to check (repeatable; default all). type_ok is always checked.
    liveness
        Check the liveness properties too, on the whole graph: for small constants.
    fairness
        Set of fairness conditions to assume (repeatable; default: each in turn).
    drop
        Guard to leave out, written ACTION.GUARD (repeatable).
    symmetry
        Count orbits under renaming of replicas instead of states.
    every
        Find every violated invariant, each with a shortest counterexample; by default the search ends at the first.
        --html and --trace-out then write a file for each: why.html becomes why-INVARIANT.html.
    engine
        Engine of the search: batch (NumPy, whole frontiers), compiled (C, by the compiler of this machine), reference
        (plain Python, one state at a time) or symbolic (Z3, whole runs at once: finds a shortest counterexample, and
        never holds). By default batch, which continues as compiled if there are many states and a C compiler.
    threads
        Number of threads of the compiled engine at most; by default as many as there are cores, up to four. The answer
        is the same for any number.
    refines
        Variant to compare with: check whether every step is a run of it, once the states are mapped to its own.
    but
        Guard of the --refines variant to leave out, written ACTION.GUARD (repeatable).
    json
        Print one JSON object on standard output.
    html
        Page to write the counterexample to, if there is one.
    trace_out
        Trace file (JSON Lines) to write the counterexample to, if there is one.
    junitxml
        JUnit XML file to write, with a test case for each invariant, witness and liveness property.
    graph
        File to write the state graph to (.graphml, .dot or .gv): for small constants.
    max_states
        Limit of distinct states, after which the verdict is unknown; by default 50,000,000, with --dir none. With --dir
        the level whose successors are too many is finished first, and its steps are counted.
    max_memory
        Limit of the process's resident memory in MiB, before which the verdict is unknown. Fencepost itself takes 140:
        with fewer nothing is explored.
    max_depth
        Length of the runs to search at most; by default all, of the symbolic engine 20.
    max_terms
        Limit of the size of the grounded protocol in terms, at two or three microseconds each; beyond it the verdict is
        unknown before the first step.
    max_effort
        Limit of Z3's resource units for runs of one length (the symbolic engine alone), after which the verdict is
        unknown; some millions a second, and the same in each run; by default 1,000,000,000.
    directory
        Directory to keep the states in, so that memory does not limit their number; it is made if it is missing. A
        state takes 8 bytes for each 64-bit word of its key, and the successors of one level may be there too. A search
        that was killed, or that reached a limit, resumes from its last finished level.
    master
        Spark master that searches the levels, with --dir: local[N], local[*] or spark://HOST:PORT. All workers must see
        the directory; each process may use --max-memory. By default serial: this process, without Spark.
    """
    refuse_same(trace_out=trace_out, html=html, graph=graph, junitxml=junitxml)
    for target in (trace_out, html, graph, junitxml):
        refuse_unwritable(target)
    refuse_twice(invariant=invariant, drop=drop, fairness=fairness, but=but)
    if every:
        refuse_idle("the search in files ends at the first violated invariant", "leave out --all", dir=directory)
    if refines is None:
        refuse_idle("there is no other variant that it is held against", "add --refines, or leave it out", but=but)
    else:
        idle = {
            "all": every,
            "invariant": invariant,
            "symmetry": symmetry,
            "liveness": liveness,
            "html": html,
            "graph": graph,
        }
        refuse_idle("steps are compared, by the reference", "leave it out", junitxml=junitxml, **idle)
        refuse_idle(
            "steps are compared, by the reference",
            "leave it out",
            engine=engine if engine != "batch" else None,
            threads=threads,
        )
    if engine == "symbolic" and liveness:
        raise BadInput("a run without end is no run of so many steps", "--liveness", "leave it out, or take batch")
    if engine == "symbolic":
        mend = "leave it out, or take batch"
        refuse_idle("the symbolic engine visits no states", mend, max_states=max_states, symmetry=symmetry, graph=graph)
    else:
        refuse_idle(f"the {engine or 'batch'} engine does not ask z3", "add --engine symbolic", max_effort=max_effort)
    if engine in ("batch", "reference", "symbolic"):
        refuse_idle(f"the {engine} engine has one of its own", "leave it out, or take compiled", threads=threads)
    if directory is None:
        refuse_idle("only states on disk are spread over processes", "add --dir, or leave it out", master=master)
    else:
        _refuse_beside_files(engine, master, refines=refines, liveness=liveness, graph=graph, threads=threads)
    spec = protocol_named(protocol)
    _refuse_vacuous_liveness(spec, liveness, fairness)
    # An option of a constant comes as it was typed: --log-size.
    values = {name.replace("-", "_"): value for name, value in constants.items()}
    traced = spec.traced(variant).drop(*drop)
    limits = Limits(
        (Limits.max_states if directory is None else sys.maxsize) if max_states is None else max_states,
        max_memory << 20,
        max_depth,
        Limits.max_effort if max_effort is None else max_effort,
    )
    reason = beyond_budget(traced, values, max_terms, limits)
    if reason is not None:
        return _given_up(Untouched(traced, spec.check_constants(values), engine or "batch", reason), junitxml, json)
    system = ground(traced, values)
    if refines is not None:
        registration = REGISTRY.named(protocol, "PROTOCOL")
        return answer_refinement(registration, system, refines, tuple(but), limits, trace_out, json)
    query = Query.of(system, tuple(invariant), symmetry, limits)
    with exploring(f"{system.name} {system.traced.variant.name}") as told:
        found = (
            (explore_every if every else search)(query, engine or "auto", told, threads)
            if directory is None
            else _searched_on_disk(query, directory, engine, master, tuple(drop), told)
        )
    if directory is None and (found.reason or "").endswith("(--max-memory)") and found.engine in ("batch", "compiled"):
        note("with --dir DIR states lie on disk, and memory does not limit how many they are")
    live: list[Liveness] = []
    if liveness and found.verdict is Verdict.HOLDS:
        with exploring("liveness") as told:
            live = check_liveness(system, tuple(fairness), limits=limits, on_progress=told)
    verdict = overall([found.verdict, *(each.verdict for each in live)])
    story = counterexample(system, found, live)
    if graph is not None and not _drawn(system, graph, limits) and verdict is Verdict.HOLDS:
        verdict = Verdict.UNKNOWN
    steps, violated = _counterexample(found, live)
    files = ReportFiles()
    for target in (trace_out, html):
        if target is not None and steps is None:
            note(f"{target} is not written: there is no counterexample")
    counterexamples: list[tuple[str | None, str | None, Sequence[Step] | None, Story | None]]
    counterexamples = [(None, violated, steps, story)]
    if found.findings:
        stories = dict(stories_of_all(found))
        counterexamples = [(e.invariant, e.invariant, e.path, stories[e.invariant]) for e in found.findings]
    for invariant_name, of, path, shown in counterexamples:
        if trace_out is not None and path is not None:
            source: dict[str, Json] = {"engine": found.engine, "violated": of, "dropped": list(drop)}
            trace, target = record(system, path, source=source), _named(trace_out, invariant_name)
            files.write(target, partial(write_trace, target, trace))
        if html is not None and shown is not None:
            target = _named(html, invariant_name)
            files.write(target, partial(write_text, target, render_page(shown)))
    results = obligations(found, live, story)
    if junitxml is not None:
        files.write(junitxml, partial(_write_junit, junitxml, results))
    annotate_failures(spec, results)
    found.memory = max(found.memory, memory.peak())
    if json:
        answer = found.to_json() | {"verdict": verdict.value, "violated": violated, "dropped": list(drop)}
        if steps is not None:
            answer["trace"] = [{"action": each.action, "params": plain_params(each.params)} for each in run_of(steps)]
        if liveness:
            answer["liveness"] = [each.to_json() for each in live]
        print_json(answer)
    else:
        print_answer(found, live, story)
    return files.exit_code(verdict.exit_code)


def _named(path: Path, invariant: str | None) -> Path:
    """The file of one of several counterexamples: ``why.html`` becomes ``why-weak_isr.html``."""
    return path if invariant is None else path.with_name(f"{path.stem}-{invariant}{path.suffix}")


def _searched_on_disk(
    query: Query, directory: Path, engine: str | None, master: str | None, dropped: tuple[str, ...], told: OnProgress
) -> Exploration:
    # What only --dir and --master need is not loaded without them.
    if master in (None, "serial"):
        from ...model.explore.disk.search import explore_on_disk

        return explore_on_disk(query, directory, engine, told)
    from ...model.explore.disk.spread import explore_spread
    from ...traces.corpus.spread import spread

    return explore_spread(query, directory, lambda pieces, work: spread(pieces, work, master), engine, dropped, told)


def _refuse_beside_files(engine: str | None, master: str | None, **others: object) -> None:
    """Raise BadInput for what is not asked of states on disk, and for a master that is none."""
    if engine in ("reference", "symbolic"):
        raise BadInput(
            f"the {engine} engine keeps nothing in files", "--dir", "leave it out, or take batch or compiled"
        )
    refuse_idle("of states on disk all is done by one thread", "leave it out", threads=others.pop("threads"))
    refuse_idle("it needs the whole graph in memory", "leave it out, or --dir", **others)
    if master is not None:
        from .masters import refuse_master

        refuse_master(master)


def _refuse_vacuous_liveness(spec: Protocol, liveness: bool, fairness: Sequence[str]) -> None:
    """Raise BadInput where liveness is asked for and nothing would be checked, or fairness and nothing assumed."""
    if not liveness:
        refuse_idle("fairness is assumed for liveness alone", "add --liveness, or leave it out", fairness=fairness)
        return
    if not spec.liveness or not spec.fairness:
        what = "liveness property" if not spec.liveness else "set of fairness conditions"
        raise BadInput(f"{spec.name} states no {what}, so nothing would be checked", "--liveness", "leave it out")
    for name in fairness:
        if name not in spec.fairness:
            mend = f"choose of {', '.join(spec.fairness)}"
            raise BadInput(f"{spec.name} has no set of fairness conditions {name!r}", "--fairness", mend)


def _given_up(answer: Untouched, junitxml: Path | None, json: bool) -> ExitCode:
    """Say that a budget ran out before anything was explored."""
    files = ReportFiles()
    if junitxml is not None:
        files.write(junitxml, lambda: _write_junit(junitxml, answer.obligations))
    annotate_failures(answer.traced.protocol, answer.obligations)
    if json:
        print_json(answer.to_json())
    else:
        answer.print()
    return files.exit_code(Verdict.UNKNOWN.exit_code)


def _write_junit(path: Path, results: Sequence[Obligation]) -> None:
    from ...traces.report.junit import write_junit

    write_junit(path, results, "fencepost explore")


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


def _counterexample(found: Exploration, live: Sequence[Liveness]) -> tuple[Sequence[Step] | None, str | None]:
    """The steps of the counterexample that is told, and the property that it breaks; a lasso once around its loop."""
    for each in live:
        if each.lasso is not None:
            return each.lasso.path, each.spec.name
    return found.path, found.violated
