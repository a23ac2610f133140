"""Mistakes in the form of a text: what an action yields, and what a promise gives back.

A mistake is a snippet below a whole protocol (``conftest.py``); the line that must be named ends in ``# here``.
"""

from __future__ import annotations

import pytest

from .mistakes import MISSING, Refused


@pytest.mark.parametrize("register", ["always", "sometimes()", "eventually(Form.RECURS)"])
@pytest.mark.parametrize("given", ["s.held", "s.held != 1", "k.forall(REPLICA, lambda r: s.held == 0)"])
def test_a_promise_whose_index_is_missing_is_refused(register: str, given: str, refused: Refused) -> None:
    snippet = f"""
        @toy.{register}
        def promised(k, s):
            return {given}  # here
    """
    if given == "s.held":
        # What is returned is looked at when the function has ended: the place is where it begins.
        snippet = snippet.replace("  # here", "").replace(f"@toy.{register}", f"@toy.{register}  # here")
    assert refused(snippet) == (
        "held is a variable per replica and slot, and its indices are missing; write s.held[replica, slot]"
    )


GUARD = 'write yield "name", condition for a guard, and yield s.update(...)'


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return s.update(count=0)", "wrong yields nothing; " + GUARD),
        ("pass", "wrong yields nothing; " + GUARD),
        ('yield "small", s.count == 0', "wrong yields no update; end it by yield s.update(...)"),
    ],
)
def test_a_text_that_is_no_generator_of_guards_and_an_update(body: str, says: str, refused: Refused) -> None:
    snippet = f"""
        @toy.action()  # here
        def wrong(k, s):
            {body}
    """
    assert refused(snippet) == says


@pytest.mark.parametrize(
    ("step", "says"),
    [
        ("s.count == 0", "wrong yields count == 0, which is neither a guard nor an update; " + GUARD),
        ('"small"', "wrong yields 'small', which is neither a guard nor an update; " + GUARD),
        ("None", "wrong yields None, which is neither a guard nor an update; " + GUARD),
        ('("small", s.count == 0, 1)', "wrong yields a tuple of 3, which is neither a guard nor an update; " + GUARD),
        ("s.item", MISSING),
        ("(s.count == 0, 'small')", "wrong has a guard whose name is count == 0; use letters, digits and _ for a name"),
        (
            "('very small', s.count == 0)",
            "wrong has a guard whose name is 'very small'; use letters, digits and _ for a name",
        ),
        ("('fine', s.count == 0)", "wrong has two guards named fine; name each by what it asks"),
        ("('small', s.item)", MISSING),
        (
            "Update([('item', (0,), 1), ('item', (0,), 2)])",
            "wrong writes item[0] twice; write it once; k.ite chooses between two values",
        ),
    ],
)
def test_what_a_text_yields_is_a_guard_or_an_update(step: str, says: str, refused: Refused) -> None:
    snippet = f"""
        @toy.action()
        def wrong(k, s):
            yield "fine", True
            yield {step}  # here
            yield s.update(count=0)
    """
    assert refused(snippet) == says


def test_nothing_comes_after_the_update(refused: Refused) -> None:
    snippet = """
        @toy.action()
        def wrong(k, s):
            yield s.update(count=0)
            yield "late", s.count == 0  # here
    """
    assert refused(snippet) == "wrong yields after its update; yield all guards before it"


def test_an_update_that_is_returned_is_not_yielded(refused: Refused) -> None:
    snippet = """
        @toy.action()  # here
        def wrong(k, s):
            yield "small", s.count == 0
            return s.update(count=0)
    """
    assert refused(snippet) == ("wrong yields no update, but returns one; end it by yield s.update(...)")


SAYS = "compare what the state has, as in s.x[r] == y"


@pytest.mark.parametrize(
    ("register", "given", "says"),
    [
        ("always", "True", f"the invariant promised is the constant true: it reads no variable of the state; {SAYS}"),
        ("always", "False", f"the invariant promised is the constant false: it reads no variable of the state; {SAYS}"),
        (
            "always",
            "k.all()",
            f"the invariant promised is the constant true: it reads no variable of the state; {SAYS}",
        ),
        (
            "always",
            "s.count == s.count",
            f"the invariant promised is the constant true: it reads no variable of the state; {SAYS}",
        ),
        ("always", "k.c.slots > 0", f"the invariant promised is constant: it reads no variable of the state; {SAYS}"),
        (
            "always",
            "k.forall(REPLICA, lambda r: r == r)",
            f"the invariant promised is constant: it reads no variable of the state; {SAYS}",
        ),
        (
            "sometimes()",
            "True",
            f"the witness promised is the constant true: it reads no variable of the state; {SAYS}",
        ),
        (
            "sometimes()",
            "k.any()",
            f"the witness promised is the constant false: it reads no variable of the state; {SAYS}",
        ),
        (
            "eventually(Form.RECURS)",
            "True",
            f"the liveness property promised is the constant true: it reads no variable of the state; {SAYS}",
        ),
        (
            "eventually(Form.LEADS_TO)",
            "(s.count == 0, True)",
            f"the liveness property promised is the constant true: it reads no variable of the state; {SAYS}",
        ),
        (
            "eventually(Form.LEADS_TO)",
            "s.count == 0",
            "promised gives 1 conditions; its form is P ~> Q: whenever P holds, Q holds then or later; return P, Q",
        ),
        (
            "eventually(Form.SETTLES)",
            "(s.count == 0, True)",
            "promised gives 2 conditions; its form is <>[]P: from some step on, P holds for ever; return one condition",
        ),
        ("always", "s.count", "promised is not a condition: count; compare it, as in s.x == y or s.x < y"),
        ("always", "None", "None is neither a term nor a literal; give a value; a function without return gives None"),
        ("always", "(yield s.count == 0)", "promised is not a condition: it yields; return the condition"),
    ],
)
def test_a_promise_says_something_of_the_state(register: str, given: str, says: str, refused: Refused) -> None:
    snippet = f"""
        @toy.{register}  # here
        def promised(k, s):
            return {given}
    """
    assert refused(snippet) == says
