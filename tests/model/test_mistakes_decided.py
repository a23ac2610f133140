"""What Python would decide by itself in a text is refused: ``is``, ``in``, ``get``, a condition left lying."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest

Refused = Callable[..., str]
Toy = Callable[..., ModuleType]


def in_guard(expression: str) -> str:
    return f"""
        @toy.action(replica=REPLICA, slot=SLOT)
        def wrong(k, s, replica, slot):
            yield "fine", s.count == 0
            yield "asked", {expression}  # here
            yield s.update(count=0)
    """


MISSING = "item is a variable per slot, and its index is missing; write s.item[slot]"

DECIDED = "is decided by Python, once and for all"
MEMBER = "write k.member for a set of replicas, and else k.any(x == a, x == b)"


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("s.owner is not None", f"s.owner is not None {DECIDED}; write == or !="),
        ("k.negate(s.owner is k.NONE)", f"s.owner is k.NONE {DECIDED}; write == or !="),
        (
            "k.implies(s.phase[replica] is Phase.busy, False)",
            f"s.phase[replica] is Phase.busy {DECIDED}; write == or !=",
        ),
        ("s.phase[replica] is Phase.busy", f"s.phase[replica] is Phase.busy {DECIDED}; write == or !="),
        ("s.count not in {0, 1}", f"s.count not in {{0, 1}} {DECIDED}; {MEMBER}"),
        ("s.phase[replica] not in {Phase.idle}", f"s.phase[replica] not in {{Phase.idle}} {DECIDED}; {MEMBER}"),
        ("k.forall(SLOT, lambda o: o not in {1: 2})", f"o not in {{1: 2}} {DECIDED}; {MEMBER}"),
        (
            "{1: Color.red}.get(s.count, s.light) == s.light",
            "{1: Color.red}.get(s.count, s.light) is looked up by Python, which knows no values; write k.ite",
        ),
    ],
)
def test_python_decides_nothing_by_itself(expression: str, says: str, refused: Refused) -> None:
    """Of a term, each is a constant to Python: the guard would let everything through, or nothing."""
    assert refused(in_guard(expression)) == says


def test_what_is_read_is_followed_to_where_it_is_compared(refused: Refused) -> None:
    snippet = """
        @toy.always
        def promised(k, s):
            owner = s.owner
            other = owner
            return k.all(s.count <= 1, k.implies(other is k.NONE, s.count == 0))  # here
    """
    assert refused(snippet) == f"other is k.NONE {DECIDED}; write == or !="


@pytest.mark.parametrize("register", ["always", "sometimes()", "eventually(Form.RECURS)"])
def test_a_condition_with_which_nothing_is_done_is_refused(register: str, refused: Refused) -> None:
    snippet = f"""
        @toy.{register}
        def promised(k, s):
            s.count == 0  # here
            return s.count <= 1
    """
    assert refused(snippet) == "nothing is done with s.count == 0; join it to the others by k.all, or take it out"


def test_what_the_rules_say_is_asked_of_python(toy: Toy) -> None:
    """By ``is`` and ``in`` too, under another name, and in a decorator."""
    snippet = """
        @toy.action(replica=REPLICA, present=lambda rules: rules in {"rich", "plain"})
        def fine(k, s, replica):
            rules = k.rules
            if rules is not None and k.rules in {"rich"}:
                yield "extra", s.extra == 0
            yield "count", s.count == {"rich": 1}.get(k.rules, 0)
            yield s.update(count=0)

        @toy.always
        def promised(k, s):
            return s.extra == 0 if k.rules in ("rich",) else s.count <= 1
    """
    traced = {name: toy(snippet).toy.traced(name) for name in ("rich", "plain")}
    guards = {name: [str(guard) for _, guard in each.action("fine").guards] for name, each in traced.items()}
    assert guards == {"rich": ["extra == 0", "count == 1"], "plain": ["count == 0"]}
    assert {name: str(each.invariants["promised"]) for name, each in traced.items()} == {
        "rich": "extra == 0",
        "plain": "count <= 1",
    }


@pytest.mark.parametrize(
    ("register", "write"), [("sometimes", "sometimes()"), ("eventually", "eventually(Form.RECURS)")]
)
def test_a_decorator_without_its_parentheses_is_refused(register: str, write: str, refused: Refused) -> None:
    """It would register nothing, and nobody would ask."""
    snippet = f"""
        @toy.{register}  # here
        def promised(k, s):
            return s.count == 0
    """
    assert refused(snippet) == (
        f"promised is not registered: its decorator is given the text itself; write @toy.{write}, with parentheses"
    )
