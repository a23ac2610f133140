"""A story in the terminal: one block per step, then the promise that broke, in words.

Readable without colour and at 80 columns; the same story gives the same text on every machine.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Final

from rich.console import Group
from rich.padding import Padding
from rich.text import Text

from ..text import printable
from .lanes import (
    Record,
    ReplicaLane,
    Value,
    call_words,
    controller_values,
    messages,
    other_values,
    pairs_words,
    readable_changes,
    record_words,
    replica_lane,
    words,
)
from .terminal import STORY_WIDTH, VERDICT_STYLES, Terminal

if TYPE_CHECKING:
    from rich.console import Console, RenderableType

    from ..run_report import Breach, Moment, Story

SINGLY: Final = 8
"""Up to this many records a log is drawn record by record."""
_EPOCH_STYLES: Final = ("cyan", "yellow", "green", "magenta", "blue", "red")


def print_story(story: Story, console: Console | None = None, *, enabled: bool = False) -> None:
    """Print the story; ``enabled`` lists what else could have happened in each state. Rich honours NO_COLOR."""
    (console or Terminal()).print(story_renderable(story, enabled=enabled))


def render_text(story: Story, *, width: int = STORY_WIDTH, enabled: bool = False) -> str:
    """The story as plain text without escape sequences, lines of at most ``width`` columns."""
    out = io.StringIO()
    console = Terminal(out, width=width, plain=True)
    print_story(story, console, enabled=enabled)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def story_renderable(story: Story, *, enabled: bool = False) -> RenderableType:
    """The whole story as one Rich renderable."""
    blocks: list[RenderableType] = [_head(story)]
    for index in range(len(story.moments)):
        if story.loop_start is not None and index == story.loop_start + 1:
            blocks.append(Text("---- from here on the steps repeat for ever ----\n", style="bold"))
        blocks.append(_step(story, index, enabled=enabled))
    blocks.append(_end(story))
    return Group(*blocks)


def log_strip(lane: ReplicaLane) -> Text:
    """``0: [0@e0 1@e0|2@e1]``: the replica, its records from the start offset on, ``|`` the high watermark.

    In a log of more than ``SINGLY`` records, successive ids of one epoch are drawn together: ``0..9@e0``.
    """
    text = Text(f"{lane.replica}: ")
    if lane.end is None:
        return text.append("no log")
    if lane.start:
        text.append(f"from {lane.start} ", style="dim")
    mark = lane.high_watermark
    text.append("[")
    if mark is not None and mark <= lane.start:
        text.append("|", style="bold")
    for position, run in enumerate(_runs(lane)):
        first, last = run[0], run[-1]
        if position:
            text.append("|" if first.offset == mark else " ", style="bold")
        epoch = first.epoch
        style = _EPOCH_STYLES[epoch % len(_EPOCH_STYLES)] if isinstance(epoch, int) and epoch >= 0 else ""
        if len(run) > 1:
            text.append(f"{words(first.id)}..", style=style)
        text.append(record_words(last.id, epoch), style=style)
    if mark is not None and lane.records and mark >= lane.end:
        text.append("|", style="bold")
    text.append("]")
    if mark is not None and not lane.start <= mark <= lane.end:
        text.append(f" high watermark {mark} is outside")
    return text


def _runs(lane: ReplicaLane) -> list[list[Record]]:
    """The records, each alone, or in a long log those together that differ only by counting up."""
    runs: list[list[Record]] = []
    for record in lane.records:
        last = runs[-1][-1] if runs else None
        if (
            len(lane.records) > SINGLY
            and last is not None
            and record.offset != lane.high_watermark
            and record.epoch == last.epoch
            and isinstance(record.id, int)
            and isinstance(last.id, int)
            and record.id == last.id + 1
        ):
            runs[-1].append(record)
        else:
            runs.append([record])
    return runs


def _head(story: Story) -> Text:
    text = Text()
    text.append(printable(f"{story.protocol} {story.variant}"), style="bold")
    text.append(f"  {pairs_words(story.constants)}\n")
    text.append(story.verdict, style=VERDICT_STYLES[story.verdict])
    if story.violated:
        text.append(": " + printable(story.violated), style="bold")
    if story.headline:
        text.append("\n" + printable(story.headline))
    if story.source:
        text.append(f"\nfrom {pairs_words(story.source)}", style="dim")
    if story.view.end is not None:
        text.append(f"\nlogs read {printable(story.noun)}: [id@epoch ...], | is the high watermark\n", style="dim")
    return text


def _step(story: Story, index: int, *, enabled: bool) -> RenderableType:
    moment = story.moments[index]
    title = Text(f"{moment.step:>3}  ", style="bold")
    title.append(_action(moment), style="bold")
    lines: list[Text] = []
    if index == 0:
        lines += _initial(story, moment)
    lines += [
        Text.assemble(f"{name}  ", (f"{old} -> ", "dim"), (new, "bold"))
        for name, old, new in readable_changes(story, index)
    ]
    if story.view.end is not None:
        lanes = [log_strip(replica_lane(story, moment, replica)) for replica in story.replicas]
        lines += _flow(lanes, STORY_WIDTH - 5)
    lines += [_breach(breach, style="red") for breach in moment.broken]
    lines += [Text(f"note: {printable(note)}", style="italic") for note in moment.notes]
    if enabled and moment.enabled:
        lines.append(Text("enabled: " + "; ".join(call_words(call) for call in moment.enabled), style="dim"))
    return Group(title, Padding(Group(*lines), (0, 0, 1, 5), expand=False))


def _action(moment: Moment) -> str:
    if moment.action is None:
        return "initial state"
    return f"{printable(moment.action)}({pairs_words(moment.params)})"


def _initial(story: Story, moment: Moment) -> list[Text]:
    lines = []
    controller = controller_values(story, moment)
    if controller:
        lines.append(Text("controller: " + _values(controller)))
    for epoch, values in messages(story, moment):
        lines.append(Text(f"request of epoch {epoch}: {_values(values)}"))
    alike: dict[str, list[int]] = {}
    for replica in story.replicas:
        values = replica_lane(story, moment, replica).values
        if values:
            alike.setdefault(_values(values), []).append(replica)
    for told, replicas in alike.items():
        lines.append(Text(f"{printable(story.noun)} {', '.join(map(str, replicas))}: {told}"))
    others = other_values(story, moment)
    if others:
        lines.append(Text(_values(others)))
    return lines


def _values(values: tuple[Value, ...]) -> str:
    return ", ".join(f"{value.label} {value.text}" for value in values)


def _flow(items: list[Text], width: int) -> list[Text]:
    """Lay short items side by side, three spaces apart, as many to a line as ``width`` takes."""
    lines: list[Text] = []
    for item in items:
        if lines and len(lines[-1]) + 3 + len(item) <= width:
            lines[-1].append("   ").append_text(item)
        else:
            lines.append(item.copy())
    return lines


def _breach(breach: Breach, *, style: str) -> Text:
    text = Text(f"{printable(breach.invariant)} does not hold", style=style)
    if breach.detail:
        text.append(": " + printable(breach.detail))
    return text


def _end(story: Story) -> Text:
    text = Text()
    if story.loop_start is not None:
        last, start = story.moments[-1].step, story.moments[story.loop_start].step
        text.append(
            f"After step {last} nothing more has to happen: the run may stay in this state for ever.\n"
            if story.stutters
            else f"Step {last} leads back to the state of step {start}; steps {start + 1} to {last} repeat for ever.\n"
        )
    where = story.first_breach()
    if story.verdict != "violated":
        return text.append(_closing(story))
    name = printable(story.violated or "a property")
    text.append(f"BROKEN: {name}", style="bold red")
    if where is not None:
        text.append(f" at step {story.moments[where].step}", style="bold")
    promise = story.promises.get(story.violated or "")
    if promise:
        text.append(f"\nthe promise: {printable(promise)}")
    if where is not None:
        for breach in story.moments[where].broken:
            if story.violated not in (None, breach.invariant):
                text.append(f"\nalso broken there: {printable(breach.invariant)}")
                continue
            if breach.detail:
                text.append(f"\nwhat happened: {printable(breach.detail)}")
            state = story.moments[where].state
            cells = [f"{printable(cell)} = {words(state.get(cell))}" for cell in breach.cells]
            if cells:
                text.append("\nlook at: " + ", ".join(cells))
    return text


def _closing(story: Story) -> str:
    if story.verdict == "holds":
        return "Every promise held in every state of this run."
    return "No verdict: the search ended before it could tell."
