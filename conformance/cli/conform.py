"""``fencepost conform``: an implementation driven in lockstep with the model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.ground import System, ground
from ...model.core.loading import is_place
from ...model.explore.result import Verdict
from ...traces.report.page import render_page
from ...traces.write import write_trace
from ..harness import binding_of
from ..lockstep.adapter import Adapter
from ..lockstep.answer import Run, actions_table, reachable, summary, to_json
from ..lockstep.binding import Binding
from ..lockstep.faults import Kind, kinds_named
from ..lockstep.play import Played, repeat
from ..lockstep.registry import adapter_names, make_adapter
from ..lockstep.runner import Conformance, Plan
from ..lockstep.runner import conform as drive
from ..lockstep.space import Space
from ..lockstep.tape import Tape, bound_tries, read_tape, tape_of
from ..lockstep.tell import script, story_of_failure
from .explore import protocol_named
from .options import Natural, Positive, Seconds, Whole
from .output import (
    exploring,
    note,
    print_json,
    progress_bar,
    refuse_unwritable,
    stdout,
    write_text,
    written,
)

TRACE = Path("disagreement.trace.jsonl")
"""Where a disagreement is written if nothing else is said: without the file nobody could replay it."""


@dataclass(frozen=True)
class _Target:
    """What is held against what. ``impl`` is what the command line named."""

    impl: str
    adapter: Adapter
    system: System
    binding: Binding


def conform(
    *,
    impl: str | None = None,
    protocol: str | None = None,
    variant: str | None = None,
    examples: Positive = Plan.examples,
    steps: Positive = Plan.steps,
    seed: Natural = Plan.seed,
    faults: bool = True,
    fault: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    draw: Literal["hypothesis", "random"] = "hypothesis",
    invariant: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    max_seconds: Seconds | None = None,
    replay: Path | None = None,
    trace_out: Path | None = None,
    html: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    **constants: Whole,
) -> int:
    """Drive an implementation in lockstep with the model, and make the first disagreement small.

    The protocol's constants are options too, as in --replicas 3: fencepost protocols PROTOCOL lists them.

    Parameters
    ----------
    impl
        The adapter: a built-in one by its name, module:attribute, or file.py:attribute.
    protocol
        One that is installed, by its name, or yours: file.py:name or module:name; by default the adapter's own.
    variant
        The variant to hold it against; by default the adapter's own.
    examples
        How many runs from the initial state.
    steps
        Up to how many tries in each: actions, refused actions, faults.
    seed
        Everything random comes from it.
    faults
        Draw faults.
    fault
        Draw only this kind of fault (repeatable): lose-request, crash, ...
    draw
        hypothesis (which shrinks what it finds) or random (faster; delta debugging alone shrinks).
    invariant
        Demand only this promise of the states (repeatable; default all).
    max_seconds
        Give up, with verdict unknown, after so many seconds.
    replay
        Run exactly the tries of this file, which an earlier disagreement left; of any other complete trace, its steps.
    trace_out
        Where to write a disagreement as a trace; disagreement.trace.jsonl by default.
    html
        Write a disagreement as one HTML page.
    json
        Print one JSON object on standard output.
    """
    trace = trace_out or TRACE
    for path in (trace, html):
        refuse_unwritable(path)
    wanted = frozenset(Kind) if not fault else kinds_named(list(fault), "--fault")
    values = {name.replace("-", "_"): value for name, value in constants.items()}
    place = protocol if protocol is not None and is_place(protocol) else None
    if protocol is not None:
        protocol = protocol_named(protocol, "--protocol").name
    if replay is not None:
        return _replay(replay, impl, protocol, variant, values, invariant, trace_out, html, json)
    target = _target(impl or adapter_names(protocol)[0], protocol, variant, values)
    plan = Plan(
        examples,
        steps,
        seed,
        wanted if faults else frozenset(),
        draw,
        _chosen(target.system, invariant),
        max_seconds,
    )
    with closing(target.adapter):
        with progress_bar() as bar:
            task = bar.add_task(target.adapter.name, total=examples)

            def told(done: int, _of: int, what: str) -> None:
                bar.update(task, completed=done, detail=what)

            found = drive(target.adapter, target.system, target.binding, plan, told)
        command = None
        if found.failure is not None:
            write_trace(trace, tape_of(target.system, found.failure, target.impl, {"found with seed": seed}))
            written(trace)
            words = ["fencepost", "conform", "--impl", target.impl, "--replay", str(trace)]
            words += [] if place is None else ["--protocol", place]
            command = shlex.join([*words, *(word for name in invariant for word in ("--invariant", name))])
            _page(html, target, found.failure)
        elif html is not None:
            note(f"{html} is not written: there is no disagreement")
    with exploring(f"{target.system.name}: reachable states") as count:
        states = reachable(target.system, count)
    run = Run(target.impl, target.adapter.name, plan, command)
    if json:
        print_json(to_json(run, found, states))
    else:
        _print(run, found, states)
    return found.verdict.exit_code


def _target(impl: str, protocol: str | None, variant: str | None, constants: Mapping[str, int]) -> _Target:
    adapter = make_adapter(impl, protocol, variant)
    binding = binding_of(adapter.protocol, f"--impl {impl}")
    traced = protocol_named(adapter.protocol).traced(variant or adapter.variant)
    return _Target(impl, adapter, ground(traced, dict(constants)), binding)


def _chosen(system: System, invariants: tuple[str, ...]) -> frozenset[str] | None:
    for name in invariants:
        if name not in system.invariants:
            known = ", ".join(system.invariants)
            raise BadInput(f"{system.name} has no invariant {name!r}", "--invariant", f"choose of {known}")
    return frozenset(invariants) or None


def _page(html: Path | None, target: _Target, failure: Played) -> None:
    if html is not None:
        write_text(html, render_page(story_of_failure(target.system, failure, target.adapter.name)))
        written(html)


def _print(run: Run, found: Conformance, states: int | None) -> None:
    out = stdout()
    system = found.space.system
    if found.failure is not None:
        _print_failure(found.failure)
        if not found.repeatable:
            out.print("It did not end alike when it was repeated: the system answers otherwise from run to run.")
        out.print(f"{found.found} steps when it was found, {len(found.failure.tries)} now. Again:", markup=False)
        out.print(f"  {run.command}\n", markup=False, soft_wrap=True)
    constants = ", ".join(f"{name} {value}" for name, value in system.constants.items())
    held = f"{run.name} against {system.name} {system.traced.variant.name} ({constants})"
    out.print(f"{held}: [bold]{found.verdict.value}[/bold]")
    if found.reason:
        out.print(found.reason, markup=False)
    out.print(actions_table(found))
    for line in summary(run, found, states):
        out.print(line, markup=False)


def _print_failure(failure: Played) -> None:
    out = stdout()
    found = failure.disagreement
    assert found is not None
    for line in script(failure):
        out.print(line, markup=False, soft_wrap=True)
    out.print(f"\n{found.sort.value[0].upper()}{found.sort.value[1:]}.", markup=False)
    for line in (found.headline, *found.lines):
        out.print(f"  {line}", markup=False, soft_wrap=True)


def _replay(
    file: Path,
    impl: str | None,
    protocol: str | None,
    variant: str | None,
    constants: Mapping[str, int],
    invariant: tuple[str, ...],
    trace: Path | None,
    html: Path | None,
    json: bool,
) -> int:
    """Run a file's tries again. Protocol, variant and constants are the file's, where none are named.

    A trace that no adapter was recorded in says nothing of the variant that this one implements: that is its own then.
    """
    tape: Tape = read_tape(file)
    target = _target(
        impl or tape.adapter or adapter_names(protocol or tape.protocol)[0],
        protocol or tape.protocol,
        variant or (tape.variant if tape.adapter else None),
        {**tape.constants, **constants},
    )
    with closing(target.adapter):
        space = Space(target.system, target.binding, _chosen(target.system, invariant))
        tries = bound_tries(space, tape, str(file))
        played = repeat(space, target.adapter, tape.seed, tries)
        found = played.disagreement
        if found is not None:
            if trace is not None:
                write_trace(trace, tape_of(target.system, played, target.impl))
                written(trace)
            _page(html, target, played)
    verdict = Verdict.HOLDS if found is None else Verdict.VIOLATED
    if json:
        print_json(
            {
                "impl": target.impl,
                "adapter": target.adapter.name,
                "replayed": str(file),
                "verdict": verdict.value,
                "tries": [each.to_json() for each in played.tries],
                "disagreement": None if found is None else found.to_json(),
            }
        )
    elif found is None:
        stdout().print(f"{target.adapter.name} does all {len(played.tries)} tries of {file} as the model has them.")
    else:
        _print_failure(played)
    return verdict.exit_code
