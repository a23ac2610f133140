"""Group a command's options in its help, and put them in the order of their use."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from itertools import count
from typing import Annotated, Final, TypeVar, get_type_hints

from cyclopts import Group, Parameter

_Command = TypeVar("_Command", bound=Callable[..., object])

_CONSTANTS: Final = "Constant of the protocol, as in --replicas 3 (fencepost protocols PROTOCOL lists them)."


def grouped(**groups: Sequence[str]) -> Callable[[_Command], _Command]:
    """Return the decorator that shows a command's options in these groups.

    Args:
        groups: By title, with ``_`` for a space, the names of the command's parameters in the order of the help. Each
            parameter is in one group. The ``**constants`` of a protocol get a group of their own, the last.
    """

    def decorate(command: _Command) -> _Command:
        signature = inspect.signature(command)
        hints = get_type_hints(command, include_extras=True)
        places = count()
        wanted = [name for names in groups.values() for name in names]
        plain = [each.name for each in signature.parameters.values() if each.kind is not each.VAR_KEYWORD]
        assert sorted(wanted) == sorted(plain), f"{command.__name__}: {set(wanted) ^ set(plain)}"
        for title, names in groups.items():
            group = Group(title.replace("_", " "), sort_key=next(places))
            for name in names:
                # "default: False" says nothing.
                shown = signature.parameters[name].default not in (False, (), None)
                hints[name] = Annotated[hints[name], Parameter(group=group, show_default=shown)]
        for each in signature.parameters.values():
            if each.kind is each.VAR_KEYWORD:
                group = Group("Constants", sort_key=next(places))
                hints[each.name] = Annotated[hints[each.name], Parameter(group=group, help=_CONSTANTS)]
        command.__annotations__.update(hints)
        order = {name: number for number, name in enumerate(wanted)}
        # The kinds of parameters keep their order: positional ones first.
        parameters = sorted(
            signature.parameters.values(), key=lambda each: (each.kind, order.get(each.name, len(order)))
        )
        parameters = [each.replace(annotation=hints.get(each.name, each.annotation)) for each in parameters]
        command.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return command

    return decorate
