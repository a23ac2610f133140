"""A replay in the terminal: the event that nothing explains, the states before it, and what refuses each step.

Readable without colour and at 80 columns.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from ..build_run_report import replay_headline
from ..diagnose import value_words
from ..replay import EXPLAINED
from ..run_report import split_cell
from ..text import counted, printable
from .terminal import STORY_WIDTH, VERDICT_STYLES, Terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ...model.core.ground import Params
    from ..diagnose import ActionReport, Denial, FrontierState
    from ..format import TraceEvent
    from ..replay import Replay

_LAST_STEPS: Final = 8
_MAX_CALLS: Final = 4
_MAX_OBSERVED: Final = 12


def print_replay(answer: Replay, name: str, console: Console | None = None) -> None:
    """Print the outcome of replaying the trace ``name``. Rich honours NO_COLOR."""
    (console or Terminal()).print(replay_renderable(answer, name))


def render_replay(answer: Replay, name: str, *, width: int = STORY_WIDTH) -> str:
    """The same as plain text without escape sequences."""
    out = io.StringIO()
    console = Terminal(out, width=width, plain=True)
    print_replay(answer, name, console)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def replay_renderable(answer: Replay, name: str) -> RenderableType:
    """The outcome of a replay as one Rich renderable."""
    blocks: list[RenderableType] = [_head(answer, name)]
    if answer.event is None:
        return Group(*blocks)
    blocks.append(_event(answer.event))
    if answer.breach is not None:
        blocks.append(_breach(answer))
    blocks.append(_before(answer))
    for number, state in enumerate(answer.frontier, 1):
        blocks.append(_state(answer, state, number))
    left_out = answer.frontier_size - len(answer.frontier)
    if left_out > 0:
        blocks.append(Text(f"and {counted(left_out, 'state')} more that {_do(left_out)} not explain it either"))
    return Group(*blocks)


def _head(answer: Replay, name: str) -> Text:
    text = Text(answer.verdict.value, style=VERDICT_STYLES[answer.verdict.value])
    if answer.violated not in (None, EXPLAINED):
        text.append(f": {answer.violated}", style="bold")
    text.append(f"  {printable(name)}", style="bold")
    if answer.line is not None:
        text.append(f", line {answer.line}", style="bold")
    text.append(f"\n{printable(replay_headline(answer))}\n")
    return text


def _event(event: TraceEvent) -> RenderableType:
    title = Text(f"event {event.step}: {printable(event.call)}", style="bold")
    if not event.observed:
        return Group(title, Text())
    seen = ", ".join(f"{printable(cell)}={value_words(value)}" for cell, value in event.observed.items())
    if len(event.observed) > _MAX_OBSERVED:
        seen = f"{len(event.observed)} cells"
    return Group(title, _indented(Text(f"observed after it: {seen}")), Text())


def _breach(answer: Replay) -> RenderableType:
    assert answer.breach is not None
    after = answer.breach.after
    where = "in the initial state" if after == 0 else f"after step {after} of the run, {answer.run[after - 1].call}"
    names = ", ".join(answer.breach.invariants)
    return Group(Text(f"broken {where}: {names}", style="bold red"), Text())


def _before(answer: Replay) -> RenderableType:
    """The last steps of the run that explains the trace up to the event."""
    run = answer.explanation
    if not run:
        return Text("before it: the initial state\n")
    title = "the run" if answer.breach is not None else "a run that explains the trace up to there"
    lines = [Text(f"{title}:")]
    hidden = len(run) - _LAST_STEPS
    if hidden > 0:
        lines.append(Text(f"  ... {counted(hidden, 'step')} before"))
    for number, each in list(enumerate(run, 1))[max(0, hidden) :]:
        note = "" if each.event is not None else "  (not in the trace)"
        lines.append(Text(f"{number:>5}  {each.happened.call}{note}"))
    return Group(*lines, Text())


def _state(answer: Replay, state: FrontierState, number: int) -> RenderableType:
    title = f"state {number} of {answer.frontier_size} before the event"
    if state.skipped:
        title += f", after {counted(state.skipped, 'unobserved step')}"
    lines: list[RenderableType] = [Text(title, style="bold")]
    if state.broken:
        lines.append(_indented(Text(f"broken already: {', '.join(state.broken)}", style="red")))
    assert answer.event is not None
    if answer.event.action is not None and not state.denials:
        lines.append(_indented(Text(f"the variant has no action {printable(answer.event.action)}", style="red")))
    lines += [_indented(_denial(denial)) for denial in state.denials]
    if state.denials_left_out:
        lines.append(_indented(Text(f"and {counted(state.denials_left_out, 'choice')} of its parameters more")))
    own = answer.event.action
    lines += [_indented(_action(report)) for report in state.actions if report.enabled or report.action != own]
    lines += [_indented(line) for line in _cells(state)]
    return Group(*lines, Text())


def _denial(denial: Denial) -> RenderableType:
    call = Text(denial.call, style="bold")
    if denial.refusal is not None:
        return Group(call, _indented(_guard(denial)))
    call.append(" can happen, but then")
    return Group(call, *(_indented(Text(str(each), style="red")) for each in denial.differences))


def _guard(denial: Denial) -> Text:
    found = denial.refusal
    assert found is not None
    text = Text("guard ").append(found.guard, style="bold red").append(f" wants {found.condition}")
    return text.append(_operands(found.operands))


def _operands(operands: tuple[tuple[str, str], ...]) -> str:
    return "; " + ", ".join(f"{name} is {value}" for name, value in operands) if operands else ""


def _action(report: ActionReport) -> Text:
    if report.enabled:
        calls = ", ".join(_call(report.action, params) for params in report.enabled[:_MAX_CALLS])
        more = len(report.enabled) - _MAX_CALLS
        return Text(f"can happen: {calls}" + (f" and {more} more" if more > 0 else "") + _untried(report))
    if report.refusal is None:
        return Text(f"{report.action}: no parameters to choose from")
    found = report.refusal
    text = Text(f"{_call(report.action, found.params)}: guard {found.guard} wants {found.condition}", style="dim")
    return text.append(_operands(found.operands) + _untried(report), style="dim")


def _untried(report: ActionReport) -> str:
    return f" ({counted(report.untried, 'choice')} of its parameters not tried)" if report.untried else ""


def _call(action: str, params: Params) -> str:
    return f"{action}({', '.join(f'{name}={value}' for name, value in params)})"


def _cells(state: FrontierState) -> list[Text]:
    """The whole state: each variable with its values by replica or epoch; logs with one bracket for each replica."""
    rows: dict[str, dict[tuple[int | str, ...], list[str]]] = {}
    for cell, value in state.cells.items():
        variable, index = split_cell(cell)
        rows.setdefault(variable, {}).setdefault(index[:-1], []).append(value_words(value))
    told = []
    for variable, values in rows.items():
        nested = len(values) > 1
        told.append(
            f"{variable} " + " ".join(f"[{' '.join(row)}]" if nested else " ".join(row) for row in values.values())
        )
    return [Text("the state, by replica or epoch:", style="dim"), *(Text(line, style="dim") for line in _flow(told))]


def _flow(items: list[str]) -> list[str]:
    """Items side by side, as many to a line as an indented line takes, none broken in two."""
    lines: list[str] = []
    for item in items:
        if lines and len(lines[-1]) + 3 + len(item) <= STORY_WIDTH - 2:
            lines[-1] += "   " + item
        else:
            lines.append(item)
    return lines


def _indented(block: RenderableType) -> Padding:
    return Padding(block, (0, 0, 0, 2), expand=False)


def _do(count: int) -> str:
    return "does" if count == 1 else "do"
