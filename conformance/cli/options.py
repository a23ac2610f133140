"""Types of options that are read more strictly than the command line library reads them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Sequence
from typing import Annotated, TypeVar

from cyclopts import Parameter, Token

from ...model.core.errors import BadInput

_Command = TypeVar("_Command", bound=Callable[..., object])

_DIGITS = re.compile(r"-?[0-9]{1,18}")


def _whole(_type: object, tokens: Sequence[Token]) -> int:
    """The one token as an integer; the library would round ``1.5``, and read ``0x10``."""
    text = tokens[0].value
    if not _DIGITS.fullmatch(text):
        raise ValueError(f"{text!r} is no whole number in decimal digits")
    return int(text)


def _at_least(minimum: int) -> Parameter:
    def validate(_type: object, value: object) -> None:
        if isinstance(value, int | float) and not value >= minimum:
            raise ValueError(f"must be at least {minimum}, and is {value}")

    return Parameter(validator=validate)


def refuse_idle(why: str, mend: str, **options: object) -> None:
    """Raise BadInput for the first of these options that is given though it changes nothing.

    Whoever gives an option believes that something is asked by it, and an answer that holds would seem to say so.
    ``options``: by the names of the command's parameters; None, False and what is empty count as not given.
    """
    for name, value in options.items():
        if value is not None and value is not False and value != ():
            raise BadInput(why, f"--{name.replace('_', '-')}", mend)


def refuse_twice(**options: Sequence[object]) -> None:
    """Raise BadInput where a repeatable option names the same thing twice: one of the two was to be another."""
    for name, values in options.items():
        for value in values:
            if list(values).count(value) > 1:
                raise BadInput(f"{value} is named twice", f"--{name.replace('_', '-')}", "name each once")


def unwrapped(command: _Command) -> _Command:
    """A command whose docstring has each paragraph, and each argument's text, on one line.

    The help is wrapped to the terminal; the library would keep the source's line ends too.
    """
    command.__doc__ = _on_one_line(command.__doc__ or "")
    return command


def _on_one_line(doc: str) -> str:
    head, rule, arguments = inspect.cleandoc(doc).partition("Parameters\n----------\n")
    head = re.sub(r"(?<=\S)\n(?=\S)", " ", head)
    return head + rule + re.sub(r"(?:^ {4}\S.*\n?)+", _one_line, arguments, flags=re.MULTILINE)


def _one_line(text: re.Match[str]) -> str:
    return f"    {' '.join(text[0].split())}\n"


Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number."""

Positive = Annotated[int, Parameter(converter=_whole), _at_least(1)]
"""A whole number from 1 on."""

Natural = Annotated[int, Parameter(converter=_whole), _at_least(0)]
"""A whole number from 0 on."""

Percent = Annotated[float, _at_least(0)]
"""A share; not a number is refused, too."""

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(ms|s|m|h)?")
_UNITS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


def _duration(_type: object, tokens: Sequence[Token]) -> float:
    """The one token as seconds: ``60``, ``100ms``, ``60s``, ``1.5m``, ``2h``."""
    text = tokens[0].value
    found = _DURATION.fullmatch(text)
    if found is None or not float(found[1]):
        raise ValueError(f"{text!r} is no duration: write 60s, 5m or 1h")
    return float(found[1]) * _UNITS[found[2] or ""]


Duration = Annotated[float, Parameter(converter=_duration)]
"""A time above zero with its unit, in seconds."""

Seconds = Annotated[float, _at_least(0)]
"""A duration. Not a number is refused, too."""
