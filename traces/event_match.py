"""From an event of a trace to what the search needs of it: numbers of cells, and steps with all their parameters."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ..model.core.errors import BadInput
from ..model.core.ground import Params, State
from .format import TraceEvent, Value
from .observe import encode

if TYPE_CHECKING:
    from .stepper import Stepper

_Seen: TypeAlias = "tuple[str, type, Value]"
_Call: TypeAlias = "tuple[str, tuple[tuple[str, int | None], ...]]"


@dataclass(frozen=True)
class Wanted:
    """An event as the search needs it: the steps that it may be, and the cells that must have these values after it.

    ``action`` None: no step. ``choices`` are the parameters that agree with those that the event names; none for an
    action that the variant does not have.
    """

    index: int
    action: str | None
    choices: tuple[Params, ...]
    cells: tuple[tuple[int, int], ...]

    def agrees(self, state: State) -> bool:
        """Whether the state has what was observed."""
        for number, value in self.cells:  # noqa: SIM110 - the inner loop; all() over a generator takes twice as long
            if state[number] != value:
                return False
        return True


class Translator:
    """Turns events into ``Wanted``. What it has worked out once it remembers, for a trace repeats itself."""

    def __init__(self, stepper: Stepper) -> None:
        self._stepper = stepper
        self._cells: dict[_Seen, tuple[int, int]] = {}
        self._choices: dict[_Call, tuple[Params, ...]] = {}

    def __call__(self, index: int, event: TraceEvent) -> Wanted:
        """The event with this index. Raises BadInput for cells, values or parameters that the model does not have."""
        known = self._cells
        cells = []
        for name, value in event.observed.items():
            # A list is a set read from elsewhere; the type keeps True apart from 1.
            seen = (name, type(value), tuple(value) if isinstance(value, list) else value)
            found = known.get(seen)
            if found is None:
                found = known[seen] = self._cell(event, name, seen[2])
            cells.append(found)
        if event.action is None:
            return Wanted(index, None, (), tuple(cells))
        call = (event.action, tuple(event.params.items()))
        choices = self._choices.get(call)
        if choices is None:
            choices = self._choices[call] = self._agreeing(event, event.action)
        return Wanted(index, event.action, choices, tuple(cells))

    def _cell(self, event: TraceEvent, name: str, value: Value) -> tuple[int, int]:
        layout = self._stepper.layout
        number = layout.by_name.get(name)
        if number is None:
            raise BadInput(f"the state has no cell {name!r}", _where(event), "observe cells of the model replayed")
        try:
            return number, encode(layout.cells[number], value)
        except ValueError as error:
            raise BadInput(f"{name} is observed as {value!r}", _where(event), str(error)) from error

    def _agreeing(self, event: TraceEvent, action: str) -> tuple[Params, ...]:
        """The choices of the action's parameters that agree with those that the event names."""
        if action not in self._stepper.system.actions:
            return ()
        names = self._stepper.system.traced.action(action).params
        for name in event.params:
            if name not in names:
                mend = f"its parameters are {', '.join(names) or 'none'}"
                raise BadInput(f"{action} has no parameter {name!r}", _where(event), mend)
        given = {name: value for name, value in event.params.items() if value is not None}
        found = tuple(self._stepper.each_choice(action, given))
        if not found:
            mend = "give parameters in the range of the constants"
            raise BadInput(f"{event.call} is out of range", _where(event), mend)
        return found


def _where(event: TraceEvent) -> str:
    return f"trace, step {event.step}" + ("" if event.line is None else f" (line {event.line})")
