"""Terms as a person reads them: ``leo[follower] < leo[leader]``."""

from __future__ import annotations

from .terms import NONE, Sort, Term

_INFIX = {"add": "+", "sub": "-", "lt": "<", "le": "<=", "eq": "==", "and": "and", "or": "or"}
_NEGATED = {"eq": "!=", "lt": ">=", "le": ">"}


def show(term: Term) -> str:
    """The term in the notation of the protocol's text, without engine or state."""
    op, args = term.op, term.args
    if op == "const":
        return _literal(term)
    if op in ("constant", "param"):
        return str(term.value)
    if op == "bound":
        # A row's index ends with a star: it is all of them.
        return str(term.value).replace("#", "").replace(".", "")
    if op == "every":
        return "*"
    if op == "cell":
        return f"cell {term.value}"
    if op == "var":
        return f"{term.value}" + "".join(f"[{show(a)}]" for a in args)
    if op == "not" and args[0].op in _NEGATED:
        left, right = args[0].args
        return f"{_nested(left)} {_NEGATED[args[0].op]} {_nested(right)}"
    if op == "not":
        return f"not {_nested(args[0])}"
    if op == "add" and args[1].op == "const" and isinstance(args[1].value, int) and args[1].value < 0:
        return f"{_nested(args[0])} - {-args[1].value}"
    if op in _INFIX:
        return f" {_INFIX[op]} ".join(_nested(a) for a in args)
    if op == "ite":
        return f"if {_nested(args[0])} then {_nested(args[1])} else {_nested(args[2])}"
    if op == "member":
        return f"{_nested(args[0])} in {_nested(args[1])}"
    if op == "majority":
        return f"{_nested(args[0])} has a majority of {_nested(args[1])}"
    if op in ("with", "without"):
        return f"{_nested(args[0])} {op} {_nested(args[1])}"
    if op in ("forall", "exists"):
        return f"{op} {show(args[0])}: {show(args[1])}"
    if op in ("first", "last"):
        return f"{op} {show(args[0])} with {_nested(args[1])}, else {show(args[2])}"
    return f"{op}({', '.join(map(show, args))})"


def _literal(term: Term) -> str:
    assert isinstance(term.value, int)
    if term.sort is Sort.REPLICA:
        return "NONE" if term.value == NONE else str(term.value)
    if term.sort is Sort.SET:
        return show_set(term.value)
    # A member of an enumeration is written by its name.
    return str(term.value)


def show_set(mask: int) -> str:
    """A set of replicas, ``{0, 2}``."""
    return "{" + ", ".join(str(i) for i in range(mask.bit_length()) if mask >> i & 1) + "}"


def _nested(term: Term) -> str:
    text = show(term)
    atomic = term.op in ("const", "constant", "param", "bound", "var", "cell", "min", "max")
    return text if atomic else f"({text})"
