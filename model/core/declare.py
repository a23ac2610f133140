"""What is asked of a declaration, before any text runs: new names, parameters that fit, sizes that are known."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from keyword import iskeyword
from typing import Any

from .domains import Constants, Index, Size, Values, Variable
from .enum_value import Member
from .enumeration import Enumeration
from .errors import BadText
from .source_location import declared_here, near, place_of

_OF_THE_STATE = ("update",)


def new_name(kind: str, name: object, taken: Iterable[str]) -> None:
    """Refuse a name that is none, or that something of this kind has already."""
    if not isinstance(name, str) or not name.isidentifier() or iskeyword(name):
        raise BadText(f"{name!r} is no name of a {kind}", declared_here(), "use letters, digits and _, as in Python")
    if name in taken:
        raise BadText(f"the {kind} {name!r} has a name that is taken already", declared_here(), "rename one")


def new_variant(name: object, taken: Iterable[str]) -> None:
    """Refuse the name of a variant that is none, or taken. It may have hyphens, as on the command line."""
    if not isinstance(name, str) or not name or not all(part.isalnum() for part in name.replace("_", "-").split("-")):
        raise BadText(f"{name!r} is no name of a variant", declared_here(), "use letters, digits and hyphens")
    if name in taken:
        raise BadText(f"there are two variants named {name!r}", declared_here(), "rename one")


def variable_name(protocol: str, name: object, taken: Iterable[str], constants: Iterable[str]) -> None:
    """Refuse the name of a variable that the state cannot have, or that z3's text could not tell from a constant's."""
    new_name("variable", name, taken)
    if str(name) in constants:
        raise BadText(f"{protocol} has a constant {name} already", declared_here(), "choose another name")
    if str(name).startswith("_") or name in _OF_THE_STATE:
        raise BadText(f"a variable of {protocol} cannot be named {name!r}", declared_here(), "choose another name")


def indices(known: dict[str, Index], used: Iterable[Index], where: str = "") -> None:
    """Take in the indices that a declaration uses, by name. Refuse two of one name, and what is no index."""
    for index in used:
        if not isinstance(index, Index):
            raise BadText(
                f"{index!r} is no index", where or declared_here(), "give REPLICA, an Index, or an enumeration"
            )
        before = known.setdefault(index.name, index)
        if before is not index:
            raise BadText(
                f"there are two indices named {index.name!r}", where or declared_here(), "declare it once, and use that"
            )


def first_value(initially: int | Size) -> Size:
    """What a variable holds at first, as a function of the constants: of an enumeration the number, as of any value."""

    def number(value: int) -> int:
        return int(value) if isinstance(value, Member) else value

    if not callable(initially):
        start = number(initially)
        return lambda _: start
    return wraps(initially)(lambda constants: number(initially(constants)))


def not_a_text(given: object, decorator: str) -> None:
    """Refuse a decorator that was written without its parentheses: it would register nothing, and say nothing."""
    if inspect.isfunction(given) and list(inspect.signature(given).parameters)[:2] == ["k", "s"]:
        what = f"{given.__name__} is not registered: its decorator is given the text itself"
        raise BadText(what, place_of(given), f"write @{decorator}, with parentheses")


def domain(values: object, name: str) -> Values:
    """The domain of a variable. Refuse what is none."""
    if not isinstance(values, Values):
        mend = "give integers(low, high), OPTIONAL_REPLICA, REPLICA_SET, or an enumeration"
        told = f"the index {values.name}" if isinstance(values, Index) else repr(values)
        raise BadText(f"the values of {name} are {told}", declared_here(), mend)
    return values


def known_sizes(where: str, whose: str, constants: Constants, sizes: Iterable[Size]) -> None:
    """Refuse a size that reads a constant which the protocol does not declare."""
    for size in sizes:
        try:
            size(constants)
        except KeyError as error:
            raise BadText(
                f"{whose} depends on the constant {error.args[0]!r}, which is not declared",
                where,
                near(str(error.args[0]), list(constants)),
            ) from error
        except TypeError as error:
            raise BadText(f"{whose} is no function of the constants: {error}", where, "write lambda c: ...") from error


def sizes_of(variable: Variable) -> list[Size]:
    """All that depends on the constants in a declaration."""
    return [variable.values.low, variable.values.high, variable.initially, *(index.size for index in variable.per)]


def enumerated(name: str, values: Enumeration, live: object, dead: int | None, unset: bool) -> Enumeration:
    """The domain of a variable of an enumeration; its cells are -1 while they are dead."""
    if unset or dead is not None:
        raise BadText(
            f"{name} is a {values.name}, and cannot be unset or have a dead value of its own",
            declared_here(),
            "give the enumeration one more name for it",
        )
    return values if live is None else values.with_dead()


def takes(text: Callable[..., Any], given: Mapping[str, Index] | int, whose: str) -> None:
    """Refuse a text whose parameters, after ``k`` and ``s``, are not the declared ones (or not so many of any name)."""
    try:
        signature = inspect.signature(text)
    except (TypeError, ValueError):
        raise BadText(f"{whose} is {text!r}, and no text", declared_here(), "write a function of k and s") from None
    parameters = list(signature.parameters.values())
    if any(p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters):
        return
    names = [p.name for p in parameters]
    wanted = [f"index{number}" for number in range(given)] if isinstance(given, int) else list(given)
    asked = ", ".join(["k", "s", *wanted])
    if len(names) < 2 or (isinstance(given, int) and len(names) != given + 2):
        raise BadText(f"{whose} takes ({', '.join(names)})", place_of(text), f"write it as a function of ({asked})")
    if isinstance(given, int):
        return
    missing = [name for name in wanted if name not in names[2:]]
    more = [p.name for p in parameters[2:] if p.name not in wanted and p.default is p.empty]
    told = [f"declares {name}, which its function does not take" for name in missing]
    told += [f"takes {name}, which is not declared" for name in more]
    if told:
        raise BadText(f"{whose} {' and '.join(told)}", place_of(text), f"write both alike: ({asked}) for the function")
