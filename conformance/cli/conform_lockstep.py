"""``fencepost conform --way lockstep``: an adapter step for step beside the model, and a file's tries repeated."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.ground import System
from ...model.explore.result import Verdict
from ...traces.report.page import render_page
from ...traces.run_report import Json
from ...traces.text import counted
from ...traces.write import write_trace
from ..harness import in_lockstep as bound_text
from ..harness import stepped_at
from ..lockstep.adapter import Adapter
from ..lockstep.answer import Run, reachable, to_json
from ..lockstep.binding import Binding
from ..lockstep.choice_log import bound_tries, read_tape, tape_of
from ..lockstep.faults import Kind
from ..lockstep.play import Played, repeat
from ..lockstep.registry import adapter_names, make_adapter
from ..lockstep.render import story_of_failure
from ..lockstep.runner import ROUND, Drawing, Plan, refuse_impossible
from ..lockstep.runner import conform as drive
from ..lockstep.space import Space
from ..lockstep.watch import Watched
from ..simulation.registry import Mode
from .conform_answer import annotate_divergence, failure_lines, obligations, print_answer, print_failure, replayed
from .conform_ways import Asked, Told, note_finding, options_of
from .output import exploring, stdout
from .progress import progress_bar

TRACE: Final = Path("disagreement.trace.jsonl")
"""Where a divergence is written if nothing else is said: without the file nobody could replay it."""


@dataclass(frozen=True)
class Drawn:
    """What is drawn, as far as only lockstep has it. ``kinds``: the faults; ``named``: whether they were named."""

    examples: int | None
    steps: int | None
    draw: Drawing | None
    kinds: frozenset[Kind]
    named: bool


@dataclass(frozen=True)
class _Target:
    """What is held against what. ``impl`` is what the command line named."""

    impl: str
    adapter: Adapter
    system: System
    binding: Binding


def _target(asked: Asked, adapter: Adapter) -> _Target:
    text, binding = bound_text(adapter.protocol, f"--impl {asked.impl}")
    at = stepped_at(adapter.protocol, asked.constants, f"--impl {asked.impl}")
    system = asked.grounded(text, asked.variant or adapter.variant, at)
    return _Target(asked.impl, adapter, system, binding)


def ready_for_lockstep(asked: Asked, adapter: Adapter, drawn: Drawn) -> Callable[[], Told]:
    """Drawing runs and carrying them out beside the model. Raises BadInput for what does not fit, before any run."""
    target = _target(asked, adapter)
    if drawn.named:
        refuse_impossible(adapter, Space(target.system, target.binding), drawn.kinds, "--fault")
    plan = Plan(
        Plan.examples if drawn.examples is None else drawn.examples,
        Plan.steps if drawn.steps is None else drawn.steps,
        asked.seed,
        drawn.kinds if asked.faults else frozenset(),
        drawn.draw or Plan.draw,
        asked.chosen(target.system),
        asked.max_seconds,
        seconds=asked.seconds,
        shrink_until=asked.shrink_until,
    )
    return lambda: _in_lockstep(asked, adapter, target, plan)


def _fresh(asked: Asked) -> Callable[[Adapter], Adapter]:
    """Return the function that replaces a hung adapter, and registers the new one."""
    return lambda hung: asked.closer.replace(hung, make_adapter(asked.impl, asked.protocol, asked.variant))


def _in_lockstep(asked: Asked, adapter: Adapter, target: _Target, plan: Plan) -> Told:
    trace = asked.trace or TRACE

    def write(played: Played, *, quiet: bool = False) -> None:
        tape = tape_of(target.system, played, target.impl, {"found with seed": plan.seed})
        asked.files.write(trace, lambda: write_trace(trace, tape), quiet=quiet)

    def on_found(played: Played) -> None:
        # An interrupt while it is shrunk leaves the run as it was found.
        write(played, quiet=True)
        note_finding(failure_lines(played), counted(len(played.tries), "step"), trace)

    with progress_bar() as bar:
        task = bar.add_task(adapter.name, total=plan.examples if asked.seconds is None else None)

        def told(done: int, _of: int, what: str) -> None:
            bar.update(task, completed=done, detail=what)

        with Watched(adapter, asked.step_timeout, fresh=_fresh(asked)) as watched:
            found = drive(watched, target.system, target.binding, plan, told, on_found=on_found)
    command = redraw = None
    failure = found.failure
    if failure is not None:
        write(failure)
        command = shlex.join([*asked.again, "--replay", str(trace), *asked.promises])
        if (asked.seconds is not None or not found.minimal) and asked.shrink_until is not None:
            words = _redrawn(target, plan, found.examples)
            redraw = shlex.join([*asked.again, "--way", Mode.LOCKSTEP.value, *words, *asked.promises])
        asked.page(lambda: _page(target, failure))
    states: int | None = None
    if asked.shrink_until is None or not asked.shrink_until.has_passed:
        with exploring(f"{target.system.name}: reachable states") as count:
            states = reachable(target.system, count)
    run = Run(target.impl, adapter.name, plan, command, redraw)
    annotate_divergence(target.system, adapter.name, failure)
    return Told(
        Mode.LOCKSTEP,
        found.verdict,
        to_json(run, found, states),
        obligations(adapter.name, found),
        lambda: print_answer(run, found, states),
        failure is not None,
    )


def _redrawn(target: _Target, plan: Plan, examples: int) -> list[str]:
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
    return options + options_of(target.system.constants)


def _page(target: _Target, failure: Played) -> str:
    return render_page(story_of_failure(target.system, failure, target.adapter.name))


def replay_trace(file: Path, asked: Asked) -> Told:
    """Run a file's tries again. Protocol, variant and constants are the file's, where none are named.

    A trace that no adapter was recorded in says nothing of the variant that this one implements: that is its own then.
    """
    tape = read_tape(file)
    if not tape.tries and tape.adapter is None:
        raise BadInput("it has no tries, so nothing would be checked", str(file), "name a trace with events")
    protocol = asked.protocol or tape.protocol
    variant = asked.variant or (tape.variant if tape.adapter else None)
    constants: Mapping[str, int] = {**tape.constants, **asked.constants}
    impl = asked.impl or tape.adapter or adapter_names(protocol)[0]
    adapter = asked.closer.keep(make_adapter(impl, protocol, variant))
    target = _target(replace(asked, impl=impl, protocol=protocol, variant=variant, constants=constants), adapter)
    space = Space(target.system, target.binding, asked.chosen(target.system))
    tries = bound_tries(space, tape, str(file))
    with Watched(adapter, asked.step_timeout) as watched:
        played = repeat(space, watched, tape.seed, tries)
    found = played.divergence
    if found is not None:
        if asked.trace is not None:
            path, again = asked.trace, tape_of(target.system, played, impl)
            asked.files.write(path, lambda: write_trace(path, again))
        asked.page(lambda: _page(target, played))
    annotate_divergence(target.system, adapter.name, played)
    answer: dict[str, Json] = {
        "impl": impl,
        "adapter": adapter.name,
        "replayed": str(file),
        "verdict": (Verdict.HOLDS if found is None else Verdict.VIOLATED).value,
        "tries": [each.to_json() for each in played.tries],
        "disagreement": None if found is None else found.to_json(),
    }

    def show() -> None:
        if found is not None:
            print_failure(played)
            return
        done = f"{adapter.name} does all {len(played.tries)} tries of {file} as the model has them."
        stdout().print(done, markup=False, soft_wrap=True)

    verdict = Verdict.HOLDS if found is None else Verdict.VIOLATED
    results = [replayed(target.system, adapter.name, str(file), played)]
    return Told(Mode.LOCKSTEP, verdict, answer, results, show, found is not None)
