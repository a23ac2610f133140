"""``fencepost conform``: an implementation driven in lockstep with the model."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ...model.core.budget import too_large
from ...model.core.errors import BadInput
from ...model.core.ground import System, ground
from ...model.core.loading import is_place
from ...model.explore.result import Verdict
from ...traces.report.junit import write_junit
from ...traces.report.page import render_page
from ...traces.write import write_trace
from ..harness import binding_of
from ..lockstep.adapter import Adapter
from ..lockstep.answer import Run, reachable, to_json
from ..lockstep.binding import Binding
from ..lockstep.faults import Kind, kinds_named
from ..lockstep.play import Played, repeat
from ..lockstep.registry import adapter_names, make_adapter
from ..lockstep.runner import ROUND, Plan, refuse_impossible
from ..lockstep.runner import conform as drive
from ..lockstep.space import Space
from ..lockstep.tape import Tape, bound_tries, read_tape, tape_of
from ..lockstep.tell import story_of_failure
from ..lockstep.watch import STEP_TIMEOUT, Watched
from .conform_answer import annotate_disagreement, obligations, print_answer, print_failure, replayed
from .explore import protocol_named
from .options import Duration, Natural, Positive, Seconds, Whole, refuse_idle, refuse_twice
from .output import (
    exploring,
    note,
    print_json,
    progress_bar,
    refuse_same,
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
    examples: Positive | None = None,
    time: Duration | None = None,
    steps: Positive | None = None,
    seed: Natural | None = None,
    faults: bool | None = None,
    fault: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    draw: Literal["hypothesis", "random"] | None = None,
    invariant: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    max_seconds: Seconds | None = None,
    step_timeout: Duration = STEP_TIMEOUT,
    replay: Path | None = None,
    trace_out: Path | None = None,
    html: Path | None = None,
    junitxml: Path | None = None,
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
        How many runs from the initial state; by default 100.
    time
        Draw runs for so long instead (60s, 5m, 1h). What is drawn depends on the seed alone, and what is found is told
        with a command that finds it again without the clock.
    steps
        Up to how many tries in each: actions, refused actions, faults; by default 50.
    seed
        Everything random comes from it; by default 0.
    faults
        Draw faults, as by default.
    fault
        Draw only this kind of fault (repeatable): lose-request, crash, ... The adapter must be able to bring it about.
    draw
        hypothesis (which shrinks what it finds, the default) or random (faster; delta debugging alone shrinks).
    invariant
        Demand only this promise of the states (repeatable; default all).
    max_seconds
        Give up, with verdict unknown, after so many seconds.
    step_timeout
        A call of the adapter that takes longer (60s, 5m) has hung, which is a disagreement.
    replay
        Run exactly the tries of this file, which an earlier disagreement left; of any other complete trace, its steps.
    trace_out
        Where to write a disagreement as a trace; disagreement.trace.jsonl by default.
    html
        Write a disagreement as one HTML page.
    junitxml
        Write a JUnit XML file: one test case for doing what the model does, and one for each promise.
    json
        Print one JSON object on standard output.
    """
    trace = trace_out or TRACE
    refuse_same(trace_out=trace, html=html, junitxml=junitxml)
    for path in (trace, html, junitxml):
        refuse_unwritable(path)
    refuse_twice(fault=fault, invariant=invariant)
    wanted = frozenset(Kind) if not fault else kinds_named(list(fault), "--fault")
    values = {name.replace("-", "_"): value for name, value in constants.items()}
    place = protocol if protocol is not None and is_place(protocol) else None
    if protocol is not None:
        protocol = protocol_named(protocol, "--protocol").name
    if replay is not None:
        drawn = {"examples": examples, "time": time, "steps": steps, "seed": seed, "fault": fault, "draw": draw}
        mend = "leave it out, or --replay"
        refuse_idle("the tries are the file's, and none is drawn", mend, **drawn, max_seconds=max_seconds)
        if faults is not None:
            raise BadInput("the tries are the file's, and none is drawn", "--faults", mend)
        answer = Answer(trace_out, html, junitxml, json)
        return _replay(replay, impl, protocol, variant, values, invariant, step_timeout, answer)
    if time is not None:
        refuse_idle("--time says when to stop", "leave one of the two out", examples=examples, max_seconds=max_seconds)
    if faults is False:
        refuse_idle("no fault is drawn", "leave --no-faults out", fault=fault)
    target = _target(impl or adapter_names(protocol)[0], protocol, variant, values)
    with closing(target.adapter):
        if fault:
            refuse_impossible(target.adapter, Space(target.system, target.binding), wanted, "--fault")
        plan = Plan(
            Plan.examples if examples is None else examples,
            Plan.steps if steps is None else steps,
            Plan.seed if seed is None else seed,
            frozenset() if faults is False else wanted,
            draw or Plan.draw,
            _chosen(target.system, invariant),
            max_seconds,
            seconds=time,
        )
        with progress_bar() as bar:
            task = bar.add_task(target.adapter.name, total=plan.examples if time is None else None)

            def told(done: int, _of: int, what: str) -> None:
                bar.update(task, completed=done, detail=what)

            with Watched(target.adapter, step_timeout) as watched:
                found = drive(watched, target.system, target.binding, plan, told)
        command = redraw = None
        if found.failure is not None:
            tape = tape_of(target.system, found.failure, target.impl, {"found with seed": plan.seed})
            write_trace(trace, tape)
            written(trace)
            words = ["fencepost", "conform", "--impl", target.impl]
            words += [] if place is None else ["--protocol", place]
            promises = [word for name in invariant for word in ("--invariant", name)]
            command = shlex.join([*words, "--replay", str(trace), *promises])
            if time is not None:
                redraw = shlex.join([*words, *_drawn(target, plan, found.examples), *promises])
            _page(html, target, found.failure)
        elif html is not None:
            note(f"{html} is not written: there is no disagreement")
    with exploring(f"{target.system.name}: reachable states") as count:
        states = reachable(target.system, count)
    run = Run(target.impl, target.adapter.name, plan, command, redraw)
    results = obligations(target.adapter.name, found)
    if junitxml is not None:
        write_junit(junitxml, results, "fencepost conform")
        written(junitxml)
    annotate_disagreement(target.system, target.adapter.name, found.failure)
    if json:
        print_json(to_json(run, found, states))
    else:
        print_answer(run, found, states)
    return found.verdict.exit_code


def _drawn(target: _Target, plan: Plan, examples: int) -> list[str]:
    """The options that draw the same runs without a clock.

    A round that is cut short draws other runs: with one round more than were over, the last one was whole.
    """
    options = ["--variant", target.system.traced.variant.name, "--draw", plan.draw]
    for name, number in (("examples", examples + ROUND), ("steps", plan.steps), ("seed", plan.seed)):
        options += [f"--{name}", str(number)]
    kinds = sorted(kind.value for kind in plan.faults)
    if not kinds:
        options.append("--no-faults")
    elif len(kinds) < len(Kind):
        options += [word for kind in kinds for word in ("--fault", kind)]
    return options + [
        word for name, value in target.system.constants.items() for word in (f"--{name.replace('_', '-')}", str(value))
    ]


def _target(impl: str, protocol: str | None, variant: str | None, constants: Mapping[str, int]) -> _Target:
    adapter = make_adapter(impl, protocol, variant)
    binding = binding_of(adapter.protocol, f"--impl {impl}")
    traced = protocol_named(adapter.protocol).traced(variant or adapter.variant)
    reason = too_large(traced, constants)
    if reason is not None:
        raise BadInput(reason, "the constants", "choose smaller ones: runs are drawn among the states of the model")
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


@dataclass(frozen=True)
class Answer:
    """Where an answer goes."""

    trace: Path | None
    html: Path | None
    junitxml: Path | None
    json: bool


def _replay(
    file: Path,
    impl: str | None,
    protocol: str | None,
    variant: str | None,
    constants: Mapping[str, int],
    invariant: tuple[str, ...],
    step_timeout: float,
    answer: Answer,
) -> int:
    """Run a file's tries again. Protocol, variant and constants are the file's, where none are named.

    A trace that no adapter was recorded in says nothing of the variant that this one implements: that is its own then.
    """
    tape: Tape = read_tape(file)
    if not tape.tries and tape.adapter is None:
        raise BadInput("it has no tries, so nothing would be checked", str(file), "name a trace with events")
    target = _target(
        impl or tape.adapter or adapter_names(protocol or tape.protocol)[0],
        protocol or tape.protocol,
        variant or (tape.variant if tape.adapter else None),
        {**tape.constants, **constants},
    )
    with closing(target.adapter):
        space = Space(target.system, target.binding, _chosen(target.system, invariant))
        tries = bound_tries(space, tape, str(file))
        with Watched(target.adapter, step_timeout) as watched:
            played = repeat(space, watched, tape.seed, tries)
        found = played.disagreement
        if found is not None:
            if answer.trace is not None:
                write_trace(answer.trace, tape_of(target.system, played, target.impl))
                written(answer.trace)
            _page(answer.html, target, played)
    verdict = Verdict.HOLDS if found is None else Verdict.VIOLATED
    if answer.junitxml is not None:
        results = [replayed(target.system, target.adapter.name, str(file), played)]
        write_junit(answer.junitxml, results, "fencepost conform")
        written(answer.junitxml)
    annotate_disagreement(target.system, target.adapter.name, played)
    if answer.json:
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
        done = f"{target.adapter.name} does all {len(played.tries)} tries of {file} as the model has them."
        stdout().print(done, markup=False, soft_wrap=True)
    else:
        print_failure(played)
    return verdict.exit_code
