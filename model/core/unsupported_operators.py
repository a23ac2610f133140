"""What of Python's operators the action language does not have: each is refused in its own words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final, NoReturn

from .errors import ProtocolError


class NoTerm:
    """What a text may name but not compute with as it stands: a variable whose index is missing, and the like."""

    def refuse(self) -> NoReturn:
        """Raises ProtocolError that says what this is, and what to write instead."""
        raise NotImplementedError


_NO_OPERATORS: Final = {
    "there is no such arithmetic in the action language": (
        ("mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "matmul", "divmod"),
        "write a sum or a difference, k.min or k.max; a number that depends on constants alone can be a constant",
    ),
    "conditions are not joined by & | ^ ~": (("and", "or", "xor", "invert"), "write k.all, k.any, k.negate"),
    "a term has no sign or absolute value to take": (("neg", "pos", "abs"), "write 0 - x, or k.ite"),
    "a term is no Python number": (("int", "float", "index", "round"), "compute with the term itself"),
    "a term is no collection": (
        ("iter", "contains", "len", "reversed"),
        "write k.member(replica, replicas), or k.forall and k.exists over an index",
    ),
    "a term is no function": (("call",), "use it without parentheses"),
}


def refuse_operators(cls: type) -> None:
    """Give a class those of Python's operators that it lacks; each refuses in the words of the action language."""
    for what, (operators, mend) in _NO_OPERATORS.items():
        for operator in operators:
            reflected = (f"__r{operator}__",) if operator in _REFLECTED else ()
            for name in (f"__{operator}__", *reflected):
                if name not in cls.__dict__:
                    setattr(cls, name, _refusing(what, mend))


def _refusing(what: str, mend: str) -> Callable[..., Any]:
    def refuse(self: object, *_others: object) -> NoReturn:
        if isinstance(self, NoTerm):
            self.refuse()
        raise ProtocolError(f"{self}: {what}", mend)

    return refuse


_REFLECTED: Final = frozenset(
    ("mul", "truediv", "floordiv", "mod", "pow", "lshift", "rshift", "matmul", "divmod", "and", "or", "xor")
)
