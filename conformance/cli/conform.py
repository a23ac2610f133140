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
from ...traces.story import Json
from ..deadline import Deadline
from ..free.crew import HungProcess
from ..free.registry import Offered, Way, offered, system_names
from ..free.schedule import is_schedule
from ..lockstep.faults import Kind, kinds_named
from ..lockstep.watch import STEP_TIMEOUT
from ..system_closer import SystemCloser
from .conform_free import SCHEDULE, DrawnFree, freely, replay_schedule
from .conform_lockstep import TRACE, Drawn, ready_for_lockstep, replay_trace
from .conform_ways import Asked, Told, together
from .explore import protocol_named
from .options import Duration, Natural, Positive, Seconds, Whole, refuse_idle, refuse_twice, unwrapped
from .output import note, print_json, print_verdict, refuse_same, refuse_unwritable, stdout


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
    """Hold an implementation against the model, and make the first disagreement small.

    Two ways: in free runs the system runs by itself, and the model must be able to follow; in lockstep it is asked to
    try one action of the model at a time. The protocol's constants are options too, as in --replicas 3: fencepost
    protocols PROTOCOL lists them.

    Parameters
    ----------
    impl
        The system: a built-in one by its name, module:attribute, or file.py:attribute.
    kafka
        Of --impl kafka and kafka-cluster: the release of Apache Kafka that runs, by default the one that the drivers
        were made for; fetched by Maven where it is not there yet.
    protocol
        One that is installed, by its name, or yours: file.py:name or module:name; by default the system's own.
    variant
        The variant to hold it against; by default the system's own.
    way
        free, lockstep, or both; by default whatever the system has, free runs first. Lockstep is left out where free
        runs have found a disagreement.
    runs
        How many free runs; by default 500.
    events
        Up to how many events in each free run; by default 200.
    source
        The folder of the system's source: lines of it that no free run has executed are told. By default what is known
        of a built-in system, and the file of your own. On Python 3.11 one run of eight is watched.
    corpus
        A folder in which free runs that meet something new (steps of the model, refusing guards, lines) are kept, and
        gone on from later. The same seed and the same folder give the same runs.
    jobs
        So many free runs at a time, each in a process of its own: what is found is the same for any number. By default
        as many as there are cores for a built-in system in memory or on disk, and 1 for any other.
    examples
        How many runs in lockstep; by default 100.
    time
        Draw runs for so long instead (60s, 5m, 1h), half of it each way. What is drawn depends on the seed alone, and
        what is found is told with a command that finds it again without the clock.
    steps
        Up to how many tries in each run in lockstep: actions, refused actions, faults; by default 50.
    seed
        Everything random comes from it; by default 0.
    faults
        Draw faults, as by default.
    fault
        Draw only this kind of fault in lockstep (repeatable): lose-request, crash, ... The adapter must be able to
        bring it about.
    draw
        In lockstep, hypothesis (which shrinks what it finds, the default) or random (faster; delta debugging alone
        shrinks).
    invariant
        Demand only this promise of the states (repeatable; default all).
    max_seconds
        Give up, with verdict unknown, after so many seconds, half of them each way.
    step_timeout
        A call of the system that takes longer (60s, 5m) has hung, which is a disagreement.
    replay
        Run exactly what this file has, which an earlier disagreement left: the events of a schedule, or the tries of a
        trace; of any other complete trace, its steps.
    trace_out
        Where to write a disagreement; by default disagreement.schedule.jsonl of a free run, and
        disagreement.trace.jsonl of a run in lockstep.
    html
        Write a disagreement as one HTML page.
    junitxml
        Write a JUnit XML file: one test case for doing what the model does, and one for each promise.
    json
        Print one JSON object on standard output.
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
        own: dict[Way, dict[str, object]] = {
            Way.FREE: {"runs": runs, "events": events, "source": source, "corpus": corpus, "jobs": jobs},
            Way.LOCKSTEP: {"examples": examples, "steps": steps, "fault": fault, "draw": draw},
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


def _wanted(way: str | None) -> tuple[Way, ...]:
    if way is None:
        return ()
    return tuple(Way) if way == "both" else (Way(way),)


def _driven(asked: Asked, system: Offered, lockstep: Drawn, free: DrawnFree) -> list[Told]:
    """Go each way, up to the first disagreement. The time is shared."""
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
    if Way.LOCKSTEP in by_way:
        found |= by_way[Way.LOCKSTEP].json
    if Way.FREE in by_way:
        found["free"] = by_way[Way.FREE].json
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
