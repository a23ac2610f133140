"""Types of options that are read more strictly than the command line library reads them."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Annotated

from cyclopts import Parameter, Token

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


Whole = Annotated[int, Parameter(converter=_whole)]
"""A whole number."""

Positive = Annotated[int, Parameter(converter=_whole), _at_least(1)]
"""A whole number from 1 on."""

Natural = Annotated[int, Parameter(converter=_whole), _at_least(0)]
"""A whole number from 0 on."""

Seconds = Annotated[float, _at_least(0)]
"""A duration. Not a number is refused, too."""
