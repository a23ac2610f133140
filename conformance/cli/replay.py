"""``fencepost replay``: is a recorded trace a run of the model?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.protocol import TracedProtocol
from ...model.explore.result import Verdict
from ...traces.build_run_report import story_of_replay
from ...traces.format import Trace
from ...traces.read import Scan, scan_trace
from ...traces.replay import Budget, Replay, traced_of
from ...traces.replay import replay as run
from ...traces.report.page import render_page
from ...traces.report.replay_text import render_replay
from ...traces.stepper import stepper_for
from .annotations import annotate, place_of
from .explore import protocol_named
from .help_groups import grouped
from .options import Natural, Positive, Seconds, refuse_idle, refuse_twice, unwrapped
from .output import note, print_json, refuse_unwritable, stdout, write_text
from .progress import progress_bar
from .replay_on import replay_on
from .report_files import ReportFiles


@grouped(
    Input=(
        "trace",
        "variant",
        "protocol",
        "complete",
    ),
    Model=(
        "invariant",
        "drop",
    ),
    Limits=(
        "max_skipped",
        "max_frontier",
        "max_seconds",
    ),
    Execution_and_output=(
        "on",
        "html",
        "json",
    ),
)
@unwrapped
def replay(
    trace: Path,
    *,
    protocol: str | None = None,
    variant: str | None = None,
    invariant: Annotated[Sequence[str], Parameter(negative=())] = (),
    drop: Annotated[Sequence[str], Parameter(negative=())] = (),
    complete: Annotated[bool, Parameter(negative=())] = False,
    max_skipped: Natural = Budget.max_skipped,
    max_frontier: Positive = Budget.max_frontier,
    max_seconds: Seconds | None = None,
    on: str | None = None,
    html: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> ExitCode:
    """Replay a trace: follow every model state that explains it, and report the guards that refuse its next event.

    In a damaged file, the events before the first fault are replayed. The verdict is then violated (exit code 1) or
    unknown (exit code 2).

    Parameters
    ----------
    trace
        Trace file (JSON Lines, see the trace schema).
    variant
        Variant to check the trace against; by default its own.
    protocol
        Place of the trace's protocol, if it is not installed: file.py:name or module:name.
    complete
        Treat the trace as complete, also if its header does not: nothing happened between its events. In a trace that
        may lack events, an event that no state explains is unknown, not violated.
    invariant
        Invariant to check (repeatable; default all).
    drop
        Guard to leave out, written ACTION.GUARD (repeatable).
    max_skipped
        Number of unobserved steps between two events at most.
    max_frontier
        Number of states at once, beyond which the verdict is unknown.
    max_seconds
        Limit in seconds, after which the verdict is unknown.
    on
        Target to execute the trace on, in place of replaying it: kafka-cluster is three brokers and a controller of
        Apache Kafka behind proxies, which deliver each message when the trace does. After each step the observed state
        must be the model's. A step that the cluster cannot execute ends the run, with verdict unknown.
    html
        Page to write: the run that explains the trace or its longest explained prefix.
    json
        Print one JSON object on standard output.
    """
    refuse_unwritable(html)
    refuse_twice(invariant=invariant, drop=drop)
    if on is not None:
        given = {"variant": variant, "invariant": invariant, "drop": drop, "complete": complete}
        refuse_idle(
            "the story is carried out as it is", "leave it out, or --on", **given, max_seconds=max_seconds, html=html
        )
        if protocol is not None:
            protocol_named(protocol, "--protocol")
        return replay_on(trace, on, json=json)
    if protocol is not None:
        protocol = protocol_named(protocol, "--protocol").name
    scan = scan_trace(trace)
    for problem in scan.problems:
        note(f"fencepost: {problem}")
    read = _sound(scan)
    if read is None:
        note(f"{len(scan.events)} events of {trace} have an event's form, and no header says what they mean")
        if json:
            print_json({"trace": str(trace), "verdict": None, **_damage(scan)})
        return ExitCode.BAD_INPUT
    if protocol not in (None, read.header.protocol):
        raise BadInput(f"{trace} is of {read.header.protocol}, not of {protocol}", "--protocol", "leave it out")
    own = traced_of(read)
    traced = (protocol_named(read.header.protocol).traced(variant) if variant else own).drop(*drop)
    stepper = stepper_for(traced, read.header.constants, often=max_skipped > 0 or len(read) > 300)
    with progress_bar() as bar:
        task = bar.add_task(trace.name, total=len(read))
        answer = run(
            read,
            stepper,
            budget=Budget(max_skipped, max_frontier, max_seconds),
            invariants=tuple(invariant) or None,
            complete=True if complete else None,
            on_progress=lambda done, of: bar.update(task, completed=done, detail=f"{done:,} of {of:,} events"),
        )
    if not len(read) and not scan.problems and answer.verdict is not Verdict.VIOLATED:
        raise BadInput("it has no events, so nothing would be checked", str(trace), "name a trace that has some")
    if scan.problems and answer.verdict is Verdict.HOLDS:
        why = f"the events from the first fault on could not be read ({scan.problems[0].where})"
        answer = replace(answer, verdict=Verdict.UNKNOWN, reason=why)
    _annotate(answer, traced, trace)
    files = ReportFiles()
    if html is not None:
        files.write(html, lambda: write_text(html, render_page(story_of_replay(read, answer, stepper))))
    if json:
        told = {"trace": str(trace), "protocol": traced.protocol.name, "variant": traced.variant.name}
        print_json(told | answer.to_json() | (_damage(scan) if scan.problems else {}))
    else:
        if scan.problems:
            note(f"of {trace} the {len(read)} events before the first fault are replayed")
        out = stdout()
        out.print(render_replay(answer, str(trace), width=out.story_width), end="", markup=False)
    damaged = bool(scan.problems) and answer.verdict is not Verdict.VIOLATED
    return files.exit_code(ExitCode.BAD_INPUT if damaged else answer.verdict.exit_code)


def _annotate(answer: Replay, traced: TracedProtocol, trace: Path) -> None:
    """An annotation for CI: at the promise that breaks, else at the action that cannot happen; the trace is named."""
    if answer.verdict is Verdict.HOLDS:
        return
    failed = answer.verdict is Verdict.VIOLATED
    action = None if answer.event is None else answer.event.action
    place = place_of(traced.protocol, answer.violated, action)
    title = f"{trace} is no run of {traced.protocol.name} {traced.variant.name}" if failed else f"{trace}: unknown"
    annotate(title, render_replay(answer, str(trace)), place, failed=failed)


_LINE = re.compile(r", line ([0-9]+)(, column [0-9]+)?$")


def _sound(scan: Scan) -> Trace | None:
    """The trace up to the first fault; None where its header is at fault, so that nothing says what events mean."""
    if scan.header is None or scan.vocabulary is None:
        return None
    lines = [int(found[1]) for problem in scan.problems if (found := _LINE.search(problem.where))]
    first = min(lines, default=None)
    kept = (event for event in scan.events if first is None or (event.line is not None and event.line < first))
    return Trace(scan.header, tuple(kept))


def _damage(scan: Scan) -> dict[str, object]:
    """What is wrong with a file, and how many of its events have nothing wrong in them."""
    problems = [{"what": each.what, "where": each.where, "mend": each.mend} for each in scan.problems]
    return {"readable": len(scan.events), "problems": problems}
