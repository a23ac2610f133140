"""Sizes at all constants at once: what a function of the constants comes to, where it is a sum of them.

A proof that names no constants can take a size only as a formula. ``SumOfConstants`` stands for a constant while the
function runs: it can be added and subtracted, and whatever else is done with it is a mistake at that line. Python would
let a comparison pass by itself: ``1 if c["a"] == c["b"] else 2`` has one answer for each choice of constants.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import NoReturn

from .domains import Size
from .errors import BadText, ProtocolError
from .source_location import Reading, place_of

_MEND = "give it by + and -, as in c['log_size'] + 1"


class SumOfConstants:
    """``number`` plus each constant so many times as ``times`` says; of such are made only such."""

    __slots__ = ("number", "times")

    def __init__(self, times: Mapping[str, int], number: int = 0) -> None:
        self.times = {name: count for name, count in times.items() if count}
        self.number = number

    def __add__(self, other: object) -> SumOfConstants:
        return self._plus(other, 1)

    __radd__ = __add__

    def __sub__(self, other: object) -> SumOfConstants:
        return self._plus(other, -1)

    def __rsub__(self, other: object) -> SumOfConstants:
        return (-self)._plus(other, 1)

    def __neg__(self) -> SumOfConstants:
        return SumOfConstants({name: -count for name, count in self.times.items()}, -self.number)

    def __pos__(self) -> SumOfConstants:
        return self

    def __repr__(self) -> str:
        return f"a sum of {', '.join(self.times)}"

    def _plus(self, other: object, sign: int) -> SumOfConstants:
        if isinstance(other, SumOfConstants):
            names = dict.fromkeys([*self.times, *other.times])
            times = {name: self.times.get(name, 0) + sign * other.times.get(name, 0) for name in names}
            return SumOfConstants(times, self.number + sign * other.number)
        if isinstance(other, int) and not isinstance(other, bool):
            return SumOfConstants(self.times, self.number + sign * int(other))
        raise ProtocolError(f"what is added to a constant is {other!r}", _MEND)


def _refusing(told: str) -> Callable[..., NoReturn]:
    def refused(*_: object) -> NoReturn:
        what = f"it is made of constants by more than + and -, and has no meaning for any constants ({told})"
        raise ProtocolError(what, _MEND)

    return refused


def _forbid(names: Iterable[tuple[str, str]]) -> None:
    for name, told in names:
        setattr(SumOfConstants, f"__{name}__", _refusing(told))


_COMPARED = [("eq", "=="), ("ne", "!="), ("lt", "<"), ("le", "<="), ("gt", ">"), ("ge", ">=")]
_COMPUTED = [
    *(("mul", "*"), ("floordiv", "//"), ("truediv", "/"), ("mod", "%"), ("pow", "**"), ("divmod", "divmod")),
    *(("lshift", "<<"), ("rshift", ">>"), ("and", "&"), ("or", "|"), ("xor", "^"), ("matmul", "@")),
]
_AS_ANOTHER = [
    *(("bool", "if, and, or, not"), ("hash", "a look into a set or a dict"), ("index", "a range or an index")),
    *(("int", "int"), ("float", "float"), ("abs", "abs"), ("invert", "~"), ("round", "round"), ("iter", "a loop")),
    *(("len", "len"), ("contains", "in"), ("getitem", "[]"), ("call", "a call"), ("str", "text"), ("format", "text")),
]
_forbid([*_COMPARED, *_COMPUTED, *((f"r{name}", told) for name, told in _COMPUTED), *_AS_ANOTHER])


def sum_of(size: Size, constants: Iterable[str], of: str) -> SumOfConstants:
    """A size as a sum of constants; ``of`` says in words whose it is.

    Raises BadText, with the line, for a size that is made otherwise.
    """
    with Reading(size):
        try:
            found: object = size({name: SumOfConstants({name: 1}) for name in constants})  # type: ignore[misc]
        except ProtocolError as error:
            raise ProtocolError(f"{of}: {error.what}", error.mend) from error
    if isinstance(found, SumOfConstants):
        return found
    if isinstance(found, int) and not isinstance(found, bool):
        return SumOfConstants({}, int(found))
    raise BadText(f"{of} is {found!r}, and no sum of constants", place_of(size), _MEND)
