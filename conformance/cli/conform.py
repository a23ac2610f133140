"""``fencepost conform``: an implementation held against the model, running by itself and in lockstep."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.loading import is_place
from ...traces.report.junit import write_junit
from ...traces.run_report import Json
from ..deadline import Deadline
from ..lockstep.faults import Kind, kinds_named
from ..lockstep.watch import STEP_TIMEOUT
from ..simulation.pool import HungProcess
from ..simulation.registry import Mode, Offered, offered, system_names
from ..simulation.schedule import is_schedule
from ..system_closer import SystemCloser
from .conform_lockstep import TRACE, Drawn, ready_for_lockstep, replay_trace
from .conform_simulation import SCHEDULE, DrawnFree, freely, replay_schedule
from .conform_ways import Asked, Told, together
from .explore import protocol_named
from .help_groups import grouped
from .options import Duration, Natural, Positive, Seconds, Whole, refuse_idle, refuse_twice, unwrapped
from .output import note, print_json, print_verdict, refuse_same, refuse_unwritable, stdout


@grouped(
    System=(
        "impl",
        "protocol",
        "variant",
        "way",
        "kafka",
    ),
    Runs=(
        "time",
        "runs",
        "events",
        "examples",
        "steps",
        "seed",
        "jobs",
        "draw",
        "corpus",
        "source",
    ),
    Faults_and_invariants=(
        "invariant",
        "faults",
        "fault",
    ),
    Limits=(
        "max_seconds",
        "step_timeout",
    ),
    Replay_and_output=(
        "replay",
        "json",
        "html",
        "trace_out",
        "junitxml",
    ),
)
@unwrapped
def conform(
    *,
    impl: str | None = None,
    kafka: str | None = None,
    protocol: str | None = None,
    variant: str | None = None,
    way: Literal["free", "lockstep", "both"] | None = None,
    runs: Positive | None = None,
    events: Positive | None = None,
    source: Path | None = None,
    corpus: Path | None = None,
    jobs: Positive | None = None,
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
) -> ExitCode:
    """Test an implementation against the model, and shrink the first divergence.

    There are two modes. In simulation the scheduler delivers messages, fires timers and injects faults, and after each
    event the model must reach the observed state. In lockstep the system executes one action of the model at a time.
    The protocol's constants are options too, as in --replicas 3: fencepost protocols PROTOCOL lists them.

    Parameters
    ----------
    impl
        System under test: a built-in one by its name, module:attribute, or file.py:attribute. By default Fencepost's
        own implementation of the protocol.
    protocol
        Protocol: an installed one by its name (fencepost protocols), or yours as file.py:name or module:name; by
        default the system's own.
    variant
        Variant to check the system against; by default the system's own.
    way
        Mode: free (simulation), lockstep, or both; by default every mode that the system has, simulation first.
        Lockstep is left out if simulation finds a divergence.
    kafka
        Release of Apache Kafka that --impl kafka and kafka-cluster run, by default the one that the drivers were made
        for; Maven fetches it if it is not there yet.
    time
        Time limit of the runs (60s, 5m, 1h), half of it for each mode, shrinking included. The seed alone decides the
        runs. A finding is printed with a command that repeats it without the clock.
    runs
        Number of simulated runs; by default 500.
    events
        Number of events of a simulated run at most; by default 200.
    examples
        Number of lockstep runs; by default 100.
    steps
        Number of tries of a lockstep run at most (actions, refused actions, faults); by default 50.
    seed
        Random seed; by default 0.
    jobs
        Number of simulated runs at a time, each in a process of its own; the findings are the same for any number. By
        default as many as there are cores for a built-in system in memory or on disk, and 1 for any other.
    draw
        Generator of lockstep runs: hypothesis (which shrinks what it finds, the default) or random (faster; delta
        debugging alone shrinks).
    corpus
        Folder of the simulated runs that reached a new step of the model, a new refusing guard or a new line. Later
        runs resume from them. The same seed and the same folder give the same runs.
    source
        Folder of the system's source, by default that of a built-in system or the file of your own. The report lists
        the lines that no simulated run executed; it measures one run of eight.
    invariant
        Invariant to check (repeatable; default all).
    faults
        Inject faults, as by default.
    fault
        Kind of fault to inject in lockstep, and no other (repeatable): lose-request, crash, ... The adapter must
        support it.
    max_seconds
        Limit in seconds, half of it for each mode, shrinking included, after which the verdict is unknown.
    step_timeout
        Time limit of one call of the system (60s, 5m). A longer call is reported as hung, which is a divergence.
    replay
        File of an earlier divergence to repeat: the events of a schedule, or the steps of a complete trace.
    json
        Print one JSON object on standard output.
    html
        Page to write a divergence to.
    trace_out
        File to write a divergence to; by default disagreement.schedule.jsonl in simulation, and
        disagreement.trace.jsonl in lockstep.
    junitxml
        JUnit XML file to write: one test case for following the model, and one for each invariant.
    """
    refuse_same(trace_out=trace_out, html=html, junitxml=junitxml)
    for path in (trace_out, html, junitxml):
        refuse_unwritable(path)
    if source is not None and not source.exists():
        raise BadInput("there is no such folder", f"--source {source}", "name the folder of your system's source")
    refuse_twice(fault=fault, invariant=invariant)
    kinds = frozenset(Kind) if not fault else kinds_named(list(fault), "--fault")
    values = {name.replace("-", "_"): value for name, value in constants.items()}
    place = protocol if protocol is not None and is_place(protocol) else None
    if protocol is not None:
        protocol = protocol_named(protocol, "--protocol").name
    if replay is not None:
        drawn: dict[str, object] = {"examples": examples, "time": time, "steps": steps, "seed": seed, "fault": fault}
        drawn |= {"draw": draw, "way": way, "runs": runs, "events": events, "source": source, "corpus": corpus}
        drawn["jobs"] = jobs
        mend = "leave it out, or --replay"
        refuse_idle("the tries are the file's, and none is drawn", mend, **drawn, max_seconds=max_seconds)
        if faults is not None:
            raise BadInput("the tries are the file's, and none is drawn", "--faults", mend)
    elif time is not None:
        given = {"runs": runs, "examples": examples, "max_seconds": max_seconds}
        refuse_idle("--time says when to stop", "leave one of the two out", **given)
    if faults is False:
        refuse_idle("no fault is drawn", "leave --no-faults out", fault=fault)
    asked = Asked(
        impl or ("" if replay is not None else system_names(protocol)[0]),
        place,
        protocol,
        variant,
        values,
        invariant,
        seed or 0,
        faults is not False,
        time,
        max_seconds,
        step_timeout,
        trace_out,
        html,
        kafka,
        None if time is None and max_seconds is None else Deadline.after(max_seconds if time is None else time),
        SystemCloser(step_timeout, warn=lambda text: note(f"fencepost: {text}")),
    )
    if replay is not None:
        with _closing(asked) as answered:
            one = replay_schedule(replay, asked) if is_schedule(replay) else replay_trace(replay, asked)
            return answered(_answer(asked, [one], one.json, junitxml, json))
    for default in (TRACE, SCHEDULE) if trace_out is None else ():
        refuse_same(trace_out=default, html=html, junitxml=junitxml)
        refuse_unwritable(default)
    with _closing(asked) as answered:
        system = offered(asked.impl, protocol, variant, _wanted(way))
        for made in (system.free, system.lockstep):
            if made is not None:
                asked.closer.keep(made)
        asked.begin(system.free)
        own: dict[Mode, dict[str, object]] = {
            Mode.FREE: {"runs": runs, "events": events, "source": source, "corpus": corpus, "jobs": jobs},
            Mode.LOCKSTEP: {"examples": examples, "steps": steps, "fault": fault, "draw": draw},
        }
        for each, options in own.items():
            if each not in system.ways:
                why = f"nothing is drawn for the way {each.value}"
                refuse_idle(why, f"leave it out, or say --way {system.ways[0].value}", **options)
        try:
            told = _driven(
                asked,
                system,
                Drawn(examples, steps, draw, kinds, bool(fault)),
                DrawnFree(runs, events, source, corpus, jobs),
            )
        except HungProcess:
            return answered(ExitCode.VIOLATED)
        return answered(_answer(asked, told, _joined(asked.impl, told, system), junitxml, json))


@contextmanager
def _closing(asked: Asked) -> Iterator[Callable[[ExitCode], ExitCode]]:
    """Close the systems at the end, after the answer was printed; yields the function that takes its exit code."""
    code = ExitCode.BAD_INPUT

    def answered(of_verdict: ExitCode) -> ExitCode:
        nonlocal code
        code = of_verdict
        return code

    try:
        yield answered
    finally:
        # A close that cannot be interrupted ends the process: what was printed must have left it.
        sys.stdout.flush()
        asked.closer.close(code)


def _wanted(way: str | None) -> tuple[Mode, ...]:
    if way is None:
        return ()
    return tuple(Mode) if way == "both" else (Mode(way),)


def _driven(asked: Asked, system: Offered, lockstep: Drawn, free: DrawnFree) -> list[Told]:
    """Go each way, up to the first divergence. The time is shared."""
    ways = len(system.ways)
    asked = replace(
        asked,
        seconds=None if asked.seconds is None else asked.seconds / ways,
        max_seconds=None if asked.max_seconds is None else asked.max_seconds / ways,
    )
    told: list[Told] = []
    # What does not fit is told before the runs of the other way.
    in_lockstep = None if system.lockstep is None else ready_for_lockstep(asked, system.lockstep, lockstep)
    if system.free is not None:
        told.append(freely(asked, system.free, free))
    if in_lockstep is not None and not any(each.failed for each in told):
        told.append(in_lockstep())
    if not any(each.failed for each in told):
        asked.no_page()
    return told


def _joined(impl: str, told: list[Told], system: Offered) -> dict[str, Json]:
    """One object for all ways: that of lockstep as it is, that of the free runs under ``free``."""
    by_way = {each.way: each for each in told}
    found: dict[str, Json] = {"impl": impl}
    if Mode.LOCKSTEP in by_way:
        found |= by_way[Mode.LOCKSTEP].json
    if Mode.FREE in by_way:
        found["free"] = by_way[Mode.FREE].json
    ways: dict[str, Json] = {way.value: by_way[way].verdict.value if way in by_way else None for way in system.ways}
    return found | {"verdict": together(told).value, "ways": ways}


def _answer(asked: Asked, told: list[Told], answer: dict[str, Json], junitxml: Path | None, json: bool) -> ExitCode:
    """Write and print the answer; returns the exit code."""
    if junitxml is not None:
        results = [each for one in told for each in one.obligations]
        asked.files.write(junitxml, lambda: write_junit(junitxml, results, "fencepost conform"))
    if json:
        print_json(answer)
    else:
        for number, one in enumerate(told):
            if number:
                stdout().print()
            one.show()
        if len(told) > 1:
            stdout().print()
            print_verdict(stdout(), "both ways", together(told).value)
    return asked.files.exit_code(together(told).exit_code)
