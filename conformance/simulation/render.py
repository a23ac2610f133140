"""A free run in words: the events as numbered lines, what the model made of each, what was seen and told."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from ...traces.diagnose import value_words
from ...traces.format import Value
from ...traces.text import counted
from ..lockstep.expect import Try
from .events import Event, EventKind
from .machine import PerformedEvent
from .quiesce import ROUNDS_OF_CALM
from .shrink import RunRecord

MAX_CHANGES: Final = 12
"""So many changed cells of one event are told."""
_UNSEEN: Final = object()


def changes(before: Mapping[str, Value], after: Mapping[str, Value]) -> Iterator[tuple[str, str, str]]:
    """The cells that are seen otherwise than before: name, before, after; unseen where it is not."""
    for name in dict.fromkeys((*before, *after)):
        old, new = before.get(name, _UNSEEN), after.get(name, _UNSEEN)
        if old != new:
            yield name, _words(old), _words(new)


def _words(value: object) -> str:
    return "unseen" if value is _UNSEEN else value_words(value)  # type: ignore[arg-type]


@dataclass(frozen=True)
class RenderedStep:
    """An event that is told, with what was seen before and after it. ``number``: from 1 on, None in peace."""

    number: int | None
    done: PerformedEvent
    event: Event
    before: Mapping[str, Value]
    after: Mapping[str, Value]

    @property
    def steps(self) -> list[str]:
        """The model's path through it."""
        return [str(Try(call)) for call, _ in self.done.path]

    @property
    def changes(self) -> list[tuple[str, str, str]]:
        """The cells that changed, but for those that are not seen because a process went, or came back."""
        moved = self.done.happened.crashed or self.done.happened.started
        found = changes(self.before, self.after)
        return [each for each in found if not (moved and "unseen" in each[1:])]


def rendered_steps(ran: RunRecord) -> Iterator[RenderedStep]:
    """The events of a run. Of what happened in peace only what moved something is told, and the last."""
    before: Mapping[str, Value] = {}
    number = 0
    for done in ran.history:
        after = before if done.observed is None else done.observed
        if done.event is not None:
            number += not done.in_peace
            quiet = done.in_peace and not done.path and before == after and done is not ran.history[-1]
            if not quiet:
                yield RenderedStep(None if done.in_peace else number, done, done.event, before, after)
        before = after


def _peace(peace: Event) -> str:
    except_at = "" if peace.node is None else f" except at {peace.node}"
    requests = "clients send one more request each" if peace.args else "no client sends a request"
    return f"quiesce: no more faults{except_at}, {requests}; events until quiescence:"


def _calm(calm: Event) -> str:
    rounds = int(calm.arg(ROUNDS_OF_CALM))
    return f"drain: {counted(rounds, 'time')} every message in flight arrives, and every due timer fires; events:"


_TOLD: Final[Mapping[EventKind, Callable[[Event], str]]] = {EventKind.PEACE: _peace, EventKind.CALM: _calm}


def script(ran: RunRecord) -> list[str]:
    """The run as numbered lines. What comes of an event stands below it: the model's steps, cells, words to clients.

    The last one, at which the two part, has no steps: what they could have been is told with the divergence.
    """
    lines: list[str] = []
    for look in rendered_steps(ran):
        told = _TOLD.get(look.event.what, str)(look.event)
        lines.append(f"{'' if look.number is None else look.number:>3}  {told}")
        if look.steps:
            lines.append(f"       model  {', '.join(look.steps)}")
        seen = [f"{name} {old} -> {new}" for name, old, new in look.changes]
        if seen:
            more = f"; and {len(seen) - MAX_CHANGES} more" if len(seen) > MAX_CHANGES else ""
            lines.append(f"       state  {'; '.join(seen[:MAX_CHANGES])}{more}")
        if look.done.happened.told:
            lines.append(f"       note   {look.done.happened.told}")
    return lines
