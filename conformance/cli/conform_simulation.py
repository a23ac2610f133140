"""``fencepost conform --way free``: a system that runs by itself, followed by the model; and a schedule repeated."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY
from ...model.explore.result import Verdict
from ...traces.report.obligation import Obligation
from ...traces.report.timeline import render_timeline
from ...traces.run_report import Json
from ...traces.text import counted
from ..check.task import word
from ..deadline import Deadline
from ..harness import OVER_IMPL, binding_of, held_to, plan_of
from ..kafka.cluster.lazy_start import SlowSystem
from ..plan import constants_of
from ..processes import cores
from ..simulation.answer import SimulationRun, to_json
from ..simulation.candidate import Spent
from ..simulation.corpus import Corpus
from ..simulation.divergence import Sort
from ..simulation.events import Event
from ..simulation.pool import Here, Player, Stage, fresh_system, process_pool
from ..simulation.registry import MODEL, Mode, make_system, system_names
from ..simulation.runner import RunRecord, SimulationPlan, repeat, simulate
from ..simulation.sampled import Sampled, source_of
from ..simulation.schedule import lines_of, read_schedule
from ..simulation.system import SimulatedSystem
from ..simulation.timeline import timeline_of
from ..simulation.transitions import Transitions
from ..simulation.watch import WatchedSystem
from .conform_simulation_answer import FOLLOWS, annotate_parted, obligations, print_answer, print_parted, told_of
from .conform_ways import Asked, Told, note_finding, options_of
from .output import stdout, write_text
from .progress import progress_bar

SCHEDULE: Final = Path("disagreement.schedule.jsonl")
"""Where a divergence is written if nothing else is said."""

_APART: Final = frozenset({*OVER_IMPL, MODEL})
"""The systems of which several may run at once if nothing else is said. One of somebody's own may have one port, or one
folder; Apache Kafka's JVM takes all cores for itself."""


@dataclass(frozen=True)
class DrawnFree:
    """What is drawn, as far as only free runs have it."""

    runs: int | None
    events: int | None
    source: Path | None = None
    corpus: Path | None = None
    jobs: int | None = None


def freely(asked: Asked, system: SimulatedSystem, drawn: DrawnFree) -> Told:
    """Draw free runs and follow them. Raises BadInput for what does not fit."""
    portfolio = [_ways(asked, system, each) for each in _portfolio(asked, system)]
    slow = system if isinstance(system, SlowSystem) else None
    usual = SimulationPlan if slow is None else slow
    plan = SimulationPlan(
        usual.runs if drawn.runs is None else drawn.runs,
        usual.events if drawn.events is None else drawn.events,
        asked.seed,
        asked.faults,
        asked.seconds,
        asked.max_seconds,
        Deadline.after(asked.max_seconds),
        asked.shrink_until,
    )
    # What goes wrong in a slow system is among its own events.
    drawing = plan if slow is None else replace(plan, faults=False)
    executed = source_of(asked.impl, system, drawn.source)
    corpus = None if drawn.corpus is None else Corpus(drawn.corpus, asked.impl, executed)
    in_turn = corpus is not None or slow is not None
    jobs = drawn.jobs or (cores() if asked.impl in _APART and not in_turn else 1)
    if jobs > 1 and in_turn:
        why = "there is one of it" if slow is not None else "each run goes on from what those before it have met"
        raise BadInput(why, f"--jobs {jobs}", "leave it out" if slow is not None else "leave it out, or --corpus")

    def make() -> SimulatedSystem:
        made = make_system(asked.impl, asked.protocol, asked.variant)
        asked.begin(made)
        return made

    trace = asked.trace or SCHEDULE

    def on_found(ran: RunRecord) -> None:
        # An interrupt while it is shrunk leaves the run as it was found.
        _write(asked, trace, ran, {"found with seed": plan.seed}, quiet=True)
        if ran.divergence is not None and ran.divergence.sort is Sort.HUNG:
            return  # it is not shrunk, and follows at once
        note_finding(told_of(ran), counted(len(ran.events), "event"), trace)

    stage = Stage(make, portfolio, drawing, executed, _limit(asked, system))
    # Processes are begun before there are threads: they are copies of this one.
    with process_pool(stage, jobs) as others, progress_bar() as bar:
        task = bar.add_task(f"{system.name}, running freely", total=plan.runs if asked.seconds is None else None)

        def told(runs: int, events: int) -> None:
            bar.update(task, completed=runs, detail=f"{runs:,} runs, {events:,} events")

        sampled = None if executed is None or others else Sampled(system, executed)
        fresh = fresh_system(make, asked.closer)
        with WatchedSystem(sampled or system, stage.step_timeout, fresh=fresh) as watched:
            hands = others or ([] if in_turn else [Here(Player(stage, watched, sampled))])
            found = simulate(watched, portfolio, drawing, told, corpus, hands, executed, on_found)
    failure = found.failure
    command = redraw = None
    if failure is not None:
        _write(asked, trace, failure, {"found with seed": plan.seed})
        command = shlex.join([*asked.again, "--replay", str(trace), *asked.promises])
        if (asked.seconds is not None or not found.minimal) and asked.shrink_until is not None and corpus is None:
            redraw = shlex.join(
                [*asked.again, "--way", Mode.FREE.value, *_redrawn(asked, portfolio[0], plan, found.runs)]
            )
        asked.page(lambda: _page(failure, system.name))
    run = SimulationRun(asked.impl, system.name, plan, tuple(portfolio), command, redraw, executed, corpus)
    annotate_parted(portfolio[0].system.traced.protocol, system.name, failure)
    return Told(
        Mode.FREE,
        found.verdict,
        to_json(run, found),
        obligations(run, found),
        lambda: print_answer(run, found),
        failure is not None,
    )


def _portfolio(asked: Asked, system: SimulatedSystem) -> list[Mapping[str, int]]:
    """The constants that runs go through by turns: those given, else the protocol's plan's, else its default ones."""
    protocol = held_to(system.protocol)
    written = () if asked.constants else plan_of(REGISTRY.named(system.protocol).protocol).free
    found: list[Mapping[str, int]] = [constants_of(protocol, each) for each in written]
    if isinstance(system, SlowSystem):
        found = [each for each in found if all(each[name] <= most for name, most in system.most.items())]
    return found or [protocol.check_constants(dict(asked.constants))]


def _limit(asked: Asked, system: SimulatedSystem) -> float:
    """After so many seconds a call has hung."""
    return max(asked.step_timeout, system.patience) if isinstance(system, SlowSystem) else asked.step_timeout


def _ways(asked: Asked, system: SimulatedSystem, constants: Mapping[str, int]) -> Transitions:
    binding = binding_of(system.protocol, f"--impl {asked.impl}")
    grounded = asked.grounded(held_to(system.protocol), asked.variant or system.variant, constants)
    return Transitions(grounded, binding, asked.chosen(grounded))


def _redrawn(asked: Asked, ways: Transitions, plan: SimulationPlan, runs: int) -> list[str]:
    """The options that draw the same runs without a clock."""
    options = ["--variant", ways.system.traced.variant.name]
    for name, number in (("runs", runs), ("events", plan.events), ("seed", plan.seed)):
        options += [f"--{name}", str(number)]
    given = options_of(ways.system.constants) if asked.constants else []
    return [*options, *([] if plan.faults else ["--no-faults"]), *given, *asked.promises]


def _write(
    asked: Asked, path: Path, ran: RunRecord, more: Mapping[str, Json] | None = None, *, quiet: bool = False
) -> None:
    text = "".join(f"{line}\n" for line in lines_of(ran, asked.impl, more))
    asked.files.write(path, lambda: write_text(path, text), quiet=quiet)


def _page(ran: RunRecord, name: str) -> str:
    return render_timeline(timeline_of(ran, name))


def replay_schedule(file: Path, asked: Asked) -> Told:
    """Let the events of a schedule happen again. What is not named (protocol, variant, constants) is the file's.

    An event that cannot happen any more makes it another run: without a divergence, the verdict is unknown then.
    """
    schedule = read_schedule(file)
    protocol, variant = asked.protocol or schedule.protocol, asked.variant or schedule.variant
    constants: Mapping[str, int] = {**schedule.constants, **asked.constants}
    impl = asked.impl or schedule.impl or system_names(protocol)[0]
    asked = replace(asked, impl=impl, protocol=protocol, variant=variant, constants=constants)
    # A system that has one variant of its own refuses to be made for another by name.
    system = asked.closer.keep(make_system(impl, protocol, asked.variant))
    asked.begin(system)
    ways = _ways(asked, system, _complete(system, constants))
    reason = None
    ran: RunRecord | None = None
    with WatchedSystem(system, _limit(asked, system)) as watched:
        try:
            ran = repeat(watched, ways, schedule.seed, schedule.events)
        except Spent as spent:
            reason = str(spent)
    divergence = None if ran is None else ran.divergence
    if ran is not None and divergence is None and len(ran.events) < len(schedule.events):
        left = _left_out(schedule.events, ran.events)
        reason = (
            f"{counted(len(left), 'event')} of {len(schedule.events)} could not happen any more: this was another "
            f"run; the first: {left[0]}"
        )
    elif ran is not None and divergence is None and not schedule.events:
        reason = "it has no events, so only the start was compared"
    if ran is not None and divergence is not None:
        if asked.trace is not None:
            _write(asked, asked.trace, ran)
        asked.page(lambda: _page(ran, system.name))
    verdict = Verdict.VIOLATED if divergence is not None else Verdict.UNKNOWN if reason is not None else Verdict.HOLDS
    annotate_parted(ways.system.traced.protocol, system.name, ran)
    events = () if ran is None else ran.events
    answer: dict[str, Json] = {
        "impl": impl,
        "system": system.name,
        "replayed": str(file),
        "verdict": verdict.value,
        "reason": reason,
        "events": [event.to_json() for event in events],
        "disagreement": None if divergence is None else divergence.to_json(),
    }

    def show() -> None:
        out = stdout()
        if ran is not None and divergence is not None:
            print_parted(ran)
        elif reason is not None:
            out.print(f"unknown: {reason}", markup=False, soft_wrap=True)
        else:
            done = f"{system.name} and the model go together through all {counted(len(events), 'event')} of {file}."
            out.print(done, markup=False, soft_wrap=True)

    group = f"{system.name} against {ways.system.name} {ways.system.traced.variant.name}"
    detail = reason or ("" if divergence is None else divergence.headline)
    result = Obligation(f"{file}: {FOLLOWS}", group, word(verdict), "holds", detail, len(events), "events", 0.0)
    return Told(Mode.FREE, verdict, answer, [result], show, divergence is not None)


def _left_out(wanted: Sequence[Event], happened: Sequence[Event]) -> list[Event]:
    """What did not happen of a schedule: ``repeat`` goes on with the next one."""
    there = iter(happened)
    upcoming = next(there, None)
    left = []
    for event in wanted:
        if event == upcoming:
            upcoming = next(there, None)
        else:
            left.append(event)
    return left


def _complete(system: SimulatedSystem, constants: Mapping[str, int]) -> dict[str, int]:
    """Constants, complete. Raises BadInput for those that the protocol does not have."""
    return held_to(system.protocol).check_constants(dict(constants))
