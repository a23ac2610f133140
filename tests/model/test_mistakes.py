"""Mistakes in what a text computes: each is refused with file, line, what it is and how to write it.

A mistake is a snippet below a whole protocol (``conftest.py``); the line that must be named ends in ``# here``.
"""

from __future__ import annotations

import pytest

from .mistakes import MISSING, NO_COLLECTION, REPLICAS, SET, TRUTH, Refused, in_guard


@pytest.mark.parametrize(
    "expression",
    [
        "s.item != 1",
        "s.item == s.item",
        "1 != s.item",
        "s.item < 1",
        "s.item <= s.count",
        "s.count >= s.item",
        "s.item + 1 == 2",
        "1 + s.item == 2",
        "s.item - 1 == 2",
        "s.count - s.item == 2",
        "s.item * 2 == 2",
        "s.item & s.item",
        "not s.item",
        "s.item and s.count == 0",
        "s.item or s.count == 0",
        "s.count == 0 if s.item else s.count == 1",
        "bool(s.item)",
        "slot in s.item",
        "s.item in (1, 2)",
        "s.item in {1: 2}",
        "[each for each in s.item]",
        "len(s.item) == 2",
        "min(s.item) == 0",
        "sorted(s.item)",
        "s.item.first == 0",
        "s.item(slot) == 0",
        "k.all(s.item)",
        "k.any(s.count == 0, s.item)",
        "k.negate(s.item)",
        "k.implies(s.item, s.count == 0)",
        "k.implies(s.count == 0, s.item)",
        "k.ite(s.item, True, False)",
        "k.ite(s.count == 0, s.item, 1) == 1",
        "k.ite(s.count == 0, 1, s.item) == 1",
        "k.min(s.item, 1) == 1",
        "k.max(1, s.item) == 1",
        "k.member(s.item, s.group[replica])",
        "k.member(replica, s.item)",
        "k.with_member(s.item, replica) == k.EMPTY",
        "k.without_member(s.group[replica], s.item) == k.EMPTY",
        "k.only(s.item) == k.EMPTY",
        "k.majority(s.item, s.group[replica])",
        "k.forall(SLOT, lambda o: s.item)",
        "k.exists(SLOT, lambda o: s.item != o)",
        "k.first(SLOT, lambda o: s.item[o] == 0, s.item) == 0",
        "s.held[replica, s.item] == 0",
        "s.item",
        "s.light == s.item",
        "s.phase[replica] == s.item",
    ],
)
def test_a_variable_whose_index_is_missing_has_no_use(expression: str, refused: Refused) -> None:
    assert refused(in_guard(expression)) == MISSING


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("s.count < 1 and s.count == 0", f"the condition count < 1 was used as a Python truth value; {TRUTH}"),
        ("s.count == 0 or s.count == 1", f"the condition count == 0 was used as a Python truth value; {TRUTH}"),
        ("not s.count == 0", f"the condition count == 0 was used as a Python truth value; {TRUTH}"),
        ("not s.count", f"the term count was used as a Python truth value; {TRUTH}"),
        ("0 < s.count < 2", f"the condition 0 < count was used as a Python truth value; {TRUTH}"),
        (
            "s.count == s.item[slot] == 0",
            f"the condition count == item[slot] was used as a Python truth value; {TRUTH}",
        ),
        ("s.count in (0, 1)", f"the condition count == 0 was used as a Python truth value; {TRUTH}"),
        ("min(s.count, 1) == 0", f"the condition 1 < count was used as a Python truth value; {TRUTH}"),
        (
            "max(s.count, s.item[slot]) == 0",
            f"the condition count < item[slot] was used as a Python truth value; {TRUTH}",
        ),
        ("sorted([s.count, s.item[0]])", f"the condition item[0] < count was used as a Python truth value; {TRUTH}"),
        ("s.count == 0 if s.count < 1 else True", f"the condition count < 1 was used as a Python truth value; {TRUTH}"),
        ("all([s.count == 0])", f"the condition count == 0 was used as a Python truth value; {TRUTH}"),
        ("k.c.slots > 1 and s.count == 0", f"the condition 1 < slots was used as a Python truth value; {TRUTH}"),
        ("replica in s.group[replica]", f"group[replica]: {NO_COLLECTION}"),
        ("[each for each in s.group[replica]]", f"group[replica]: {NO_COLLECTION}"),
        ("len(s.group[replica]) == 1", f"group[replica]: {NO_COLLECTION}"),
        (
            "(s.count == 0) & (s.item[slot] == 0)",
            "count == 0: conditions are not joined by & | ^ ~; write k.all, k.any, k.negate",
        ),
        ("True | (s.count == 0)", "count == 0: conditions are not joined by & | ^ ~; write k.all, k.any, k.negate"),
        ("~(s.count == 0)", "count == 0: conditions are not joined by & | ^ ~; write k.all, k.any, k.negate"),
        (
            "2 * s.count == 2",
            (
                "count: there is no such arithmetic in the action language; write a sum or a difference, "
                "k.min or k.max; a number that depends on constants alone can be a constant"
            ),
        ),
        ("-s.count == 2", "count: a term has no sign or absolute value to take; write 0 - x, or k.ite"),
        ("[1, 2][s.count] == 2", "count: a term is no Python number; compute with the term itself"),
        (
            "k.all([s.count == 0])",
            "[count == 0] is neither a term nor a literal; give the parts one by one, as in k.all(*conditions)",
        ),
        ("None", "None is neither a term nor a literal; give a value; a function without return gives None"),
        (
            "s.count == 'idle'",
            (
                "'idle' is neither a term nor a literal; give a variable of the state, a parameter, a "
                "constant of k.c, a number or a truth value"
            ),
        ),
    ],
)
def test_python_does_not_compute_with_terms(expression: str, says: str, refused: Refused) -> None:
    assert refused(in_guard(expression)) == says


def test_python_has_no_if_over_a_term(refused: Refused) -> None:
    snippet = """
        @toy.action()
        def wrong(k, s):
            if s.count == 0:  # here
                yield "asked", True
            yield s.update(count=0)
    """
    said = refused(snippet)
    assert said == f"the condition count == 0 was used as a Python truth value; {TRUTH}"


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("s.count < k.c.slotz", "there is no constant 'slotz'; did you mean slots?"),
        ("s.count < k.c.nothing_like_it", "there is no constant 'nothing_like_it'; choose one of replicas, slots"),
        (
            "s.coumt == 0",
            (
                "the state has no variable 'coumt'; it has count, item, held, owner, group, phase, "
                "light, extra; did you mean count?"
            ),
        ),
        ("k.al(s.count == 0)", "k has no 'al'; did you mean all?"),
        ("s.held[replica] == 0", "held takes 2 indices, not 1; write s.held[replica, slot]"),
        ("s.held[replica, slot, slot] == 0", "held takes 2 indices, not 3; write s.held[replica, slot]"),
        ("s.held[replica][slot] == 0", "held takes 2 indices, not 1; write s.held[replica, slot]"),
        (
            "s.item[slot][slot] == 0",
            "item has its index already, in item[slot]; write all indices in one pair of brackets: s.item[i, j]",
        ),
        ("s.count[slot] == 0", "count is one value and takes no index; write s.count"),
        ("s.item[replica] == 0", "item is indexed by slot, not by the replica replica; give a slot: give an integer"),
        ("s.held[slot, slot] == 0", f"held is indexed by replica, not by the int slot; give a replica: {REPLICAS}"),
        ("s.held[0, slot] == 0", f"held is indexed by replica, not by the int 0; give a replica: {REPLICAS}"),
        ("s.item[EVERY] == 0", "EVERY is neither a term nor a literal; EVERY is for cells that are written"),
        ("s.count == replica", "count (int) is compared with replica (replica); give an integer"),
        ("s.group[replica] == 1", f"the number 1 stands where a set of replicas is wanted; {SET}"),
        ("s.group[replica] != 0", f"the number 0 stands where a set of replicas is wanted; {SET}"),
        ("s.owner == 0", f"the number 0 stands where a replica is wanted; {REPLICAS}"),
        ("s.owner < replica", "owner is a replica, wanted int; give an integer"),
        ("s.owner + 1 == replica", "owner is a replica, wanted int; give an integer"),
        ("k.member(0, s.group[replica])", f"0 is a int, wanted replica; {REPLICAS}"),
        ("k.member(s.group[replica], replica)", f"group[replica] is a set of replicas, wanted replica; {REPLICAS}"),
        ("k.all(s.count)", "count is a int, wanted bool; give a condition"),
        (
            "s.count + 1",
            "the guard asked of wrong is not a condition: count + 1; compare it, as in s.x == y or s.x < y",
        ),
        (
            "k.forall(SLOT, lambda o: s.item[o])",
            "the body item[slot0] of forall over slot is not a condition; compare it",
        ),
        (
            "k.forall('slot', lambda o: s.item[o] == 0)",
            "k.forall runs over 'slot', which is no index; give REPLICA or another Index",
        ),
        ("k.c.slots < 1 < 2 or missing", f"the condition slots < 1 was used as a Python truth value; {TRUTH}"),
        ("missing", "NameError: name 'missing' is not defined; mend the text there"),
        (
            "k.member(replica)",
            "TypeError: Tracer.member() missing 1 required positional argument: 'replicas'; mend the text there",
        ),
        ("k.rules.fenced", "AttributeError: 'str' object has no attribute 'fenced'; mend the text there"),
        (
            "False",
            "the guard asked of wrong never holds; give a variant that lacks the action present=, in its decorator",
        ),
    ],
)
def test_what_is_not_there_or_of_another_sort_is_refused(expression: str, says: str, refused: Refused) -> None:
    assert refused(in_guard(expression)) == says


def test_a_variable_of_another_variant_is_told_apart_from_a_misspelt_one(refused: Refused) -> None:
    assert refused(in_guard("s.extra == 0")) == (
        "the state has no variable 'extra' of this variant; use it only where k.rules say that the variant has it"
    )


def test_the_line_is_the_innermost_one_of_the_persons_own(refused: Refused) -> None:
    snippet = """
        def busy(k, s, replica):
            return k.any(
                s.count == 0,
                s.phase != Phase.busy,  # here
            )

        @toy.action(replica=REPLICA)
        def wrong(k, s, replica):
            yield "busy", busy(k, s, replica)
            yield s.update(count=0)
    """
    assert refused(snippet).startswith("phase is a variable per replica")
