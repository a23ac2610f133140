"""Mistakes in the text of an action or a promise: each is refused with file, line, what it is and how to write it.

A mistake is a snippet below a whole protocol (``conftest.py``); the line that must be named ends in ``# here``.
"""

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
TRUTH = (
    "write k.all, k.any, k.negate, k.ite instead of and, or, not, if and a < b < c, "
    "and k.min, k.max instead of min, max"
)
NO_COLLECTION = "a term is no collection; write k.member(replica, replicas), or k.forall and k.exists over an index"
SET = "give a variable, k.only(replica), k.with_member(set, replica), or k.EMPTY"
REPLICAS = "replicas are alike and have no numbers: give one of an index or a variable, or k.NONE"


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
    "write",
    ["count=s.item", "count={0: s.item}.get(0)", "item={s.item: 1}", "item={slot: s.item}", "phase={replica: s.item}"],
)
def test_a_variable_whose_index_is_missing_is_not_written(write: str, refused: Refused) -> None:
    snippet = f"""
        @toy.action(replica=REPLICA, slot=SLOT)
        def wrong(k, s, replica, slot):
            yield s.update({write})  # here
    """
    assert refused(snippet) == MISSING


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


@pytest.mark.parametrize(
    ("write", "says"),
    [
        ("group={replica: 1}", f"the update writes the int 1 to group, a set of replicas; {SET}"),
        ("group={replica: 0}", f"the update writes the int 0 to group, a set of replicas; {SET}"),
        ("group={replica: True}", f"the update writes the bool True to group, a set of replicas; {SET}"),
        ("owner=0", f"the update writes the int 0 to owner, a replica; {REPLICAS}"),
        ("count=replica", "the update writes the replica replica to count, a int; give an integer"),
        ("count=s.count == 0", "the update writes the bool count == 0 to count, a int; give an integer"),
        ("count=k.EMPTY", "the update writes the set of replicas {} to count, a int; give an integer"),
        ("count=None", "None is neither a term nor a literal; give a value; a function without return gives None"),
        (
            "cuont=0",
            (
                "the update writes 'cuont', which is no variable; it has count, item, held, owner, "
                "group, phase, light, extra; did you mean count?"
            ),
        ),
        ("item=3", "item takes 1 index, not 0; give the cells to write: item={(slot): value}"),
        ("count={slot: 3}", "count takes 0 indices, not 1; count is one value"),
        ("held={replica: 3}", "held takes 2 indices, not 1; write s.held[replica, slot]"),
        ("item={replica: 3}", "item is indexed by slot, not by the replica replica; give a slot: give an integer"),
        (
            "item={slot: 1, slot + 1 - 1: 2}",
            (
                "two of the cells of item in {slot, slot + 1 - 1} are the same; write it once; k.ite "
                "chooses between two values"
            ),
        ),
        ("item={slot: 1, slot: 2}", "the cell slot is written twice; write it once; k.ite chooses between two values"),
        (
            "held={(replica, slot): 1, (replica, slot): 2}",
            "the cell (replica, slot) is written twice; write it once; k.ite chooses between two values",
        ),
        (
            "item={s.count: 1, s.count + 0: 2}",
            (
                "two of the cells of item in {s.count, s.count + 0} are the same; write it once; "
                "k.ite chooses between two values"
            ),
        ),
        (
            "item={slot: 1, k.min(slot, slot): 2}",
            (
                "two of the cells of item in {slot, k.min(slot, slot)} are the same; write it once; "
                "k.ite chooses between two values"
            ),
        ),
        ("item={0: 1, k.max(0, 0): 2}", "wrong writes item[0] twice; write it once; k.ite chooses between two values"),
        (
            "item={0: 1, False: 2}",
            "two of the cells of item in {0, False} are the same; write it once; k.ite chooses between two values",
        ),
        ("item={EVERY: 2, slot: 1, slot + 1: 3}", None),
        ("held={(EVERY, slot): 1, (replica, EVERY): 2}", None),
        (
            "item={slot: 1, EVERY: 2}",
            (
                "wrong writes item[slot], and then item[*], in which it is lost; write the row first: a cell of it "
                "that is written later counts"
            ),
        ),
        (
            "held={(replica, EVERY): 1, (EVERY, EVERY): lambda _, o: s.item[o]}",
            (
                "wrong writes held[replica][*], and then held[*][slot*], in which it is lost; write the row first: a "
                "cell of it that is written later counts"
            ),
        ),
        ("item={EVERY: lambda o: s.item[o] + 1, slot: 1}", None),
        ("held={(replica, EVERY): lambda o: s.item[o], (EVERY, slot): lambda r: s.held[r, 0]}", None),
        ("held={(EVERY, EVERY): lambda r, o: k.ite(s.owner == r, s.item[o], s.held[r, o])}", None),
        ("phase={EVERY: lambda r: k.ite(s.owner == r, Phase.busy, Phase.idle)}", None),
        ("item={EVERY: lambda o, more=1: s.item[o] + more}", None),
    ],
)
def test_an_update_is_of_the_cells_and_sorts_that_there_are(
    write: str, says: str | None, refused: Refused, toy: Toy
) -> None:
    snippet = f"""
        @toy.action(replica=REPLICA, slot=SLOT)
        def wrong(k, s, replica, slot):
            yield s.update({write})  # here
    """
    if says is None:
        # What may be one cell in some instance is fine: then the later write counts.
        toy(snippet).toy.traced("rich")
        return
    assert refused(snippet) == says


@pytest.mark.parametrize(
    ("write", "says"),
    [
        (
            "item={slot: lambda o: s.item[o]}",
            (
                "the update writes a function to one cell of item; give the value, or write item={EVERY: ...} for a "
                "row of them"
            ),
        ),
        (
            "held={(replica, slot): lambda o: s.item[o]}",
            (
                "the update writes a function to one cell of held; give the value, or write held={(EVERY, EVERY): ...} "
                "for a row of them"
            ),
        ),
        ("count=lambda: 1", "the update writes a function to one cell of count; give the value, or call it"),
        (
            "item=lambda o: s.item[o]",
            "item takes 1 index, not 0; give the cells to write: item={(slot): value}",
        ),
        (
            "item={EVERY: lambda r, o: s.held[r, o]}",
            (
                "the update writes to item a function of 2 indices, where 1 index is EVERY; give it one parameter for "
                "each EVERY"
            ),
        ),
        (
            "held={(EVERY, EVERY): lambda o: s.item[o]}",
            (
                "the update writes to held a function of 1 index, where 2 indices are EVERY; give it one parameter for "
                "each EVERY"
            ),
        ),
        (
            "held={(replica, EVERY): lambda o: s.owner == replica}",
            "the update writes the bool owner == replica to held, a int; give an integer",
        ),
        ("group={EVERY: lambda r: r}", f"the update writes the replica replica* to group, a set of replicas; {SET}"),
        ("item={EVERY: lambda o: s.item}", "item is a variable per slot, and its index is missing; write s.item[slot]"),
        (
            "item={EVERY: lambda o: s.held[o, slot]}",
            f"held is indexed by replica, not by the int slot*; give a replica: {REPLICAS}",
        ),
        (
            "item={EVERY: lambda o: None}",
            "None is neither a term nor a literal; give a value; a function without return gives None",
        ),
        (
            "phase={EVERY: lambda r: 1}",
            "the update writes to phase 1, where a phase is wanted; its values are idle, busy; write Phase.idle",
        ),
        (
            "item={EVERY: lambda o: 1 if s.item[o] == 0 else 2}",
            f"the condition item[slot*] == 0 was used as a Python truth value; {TRUTH}",
        ),
        (
            "item={EVERY: lambda o: s.item[slot]}",
            (
                "the function for the row EVERY does not read its index o; give a row of one value as that value, or "
                "name the index _o"
            ),
        ),
        (
            "held={(EVERY, EVERY): lambda r, o: s.item[o]}",
            (
                "the function for the row (EVERY, EVERY) does not read its index r; give a row of one value as that "
                "value, or name the index _r"
            ),
        ),
        ("item={EVERY: every}", "NameError: name 'every' is not defined; mend the text there"),
        (
            "item={EVERY: lambda o: s.item[o], slot - slot: 1, EVERY: 2}",
            "the cell EVERY is written twice; write it once; k.ite chooses between two values",
        ),
    ],
)
def test_a_row_is_a_function_of_its_index(write: str, says: str, refused: Refused) -> None:
    snippet = f"""
        @toy.action(replica=REPLICA, slot=SLOT)
        def wrong(k, s, replica, slot):
            yield s.update({write})  # here
    """
    assert refused(snippet) == says


def test_a_row_reads_what_its_loop_had_then(refused: Refused) -> None:
    """A function for a row is called with the whole update, after the loop in which it was kept."""
    snippet = """
        @toy.action(replica=REPLICA)
        def wrong(k, s, replica):
            held = {}
            for other in (replica, s.owner):
                held[other, EVERY] = lambda o: k.ite(s.owner == other, s.item[o], 0)  # here
            yield s.update(held=held)
    """
    assert "reads other when it is called, after the loop: its last value" in refused(snippet)


def test_a_row_of_a_function_of_the_text_reads_its_index(refused: Refused) -> None:
    snippet = """
        @toy.action(slot=SLOT)
        def wrong(k, s, slot):
            def added(o):
                return s.item[slot] + 1

            yield s.update(item={EVERY: added})  # here
    """
    assert refused(snippet).startswith("the function for the row EVERY does not read its index o; ")


def test_cells_of_which_a_guard_says_what_they_hold_are_not_one(toy: Toy) -> None:
    """That two cells hold one value says nothing of which cells they are."""
    snippet = """
        @toy.action(replica=REPLICA, slot=SLOT)
        def right(k, s, replica, slot):
            yield "empty", k.all(s.count == 0, s.item[slot] == 0, s.held[replica, slot] == 0)
            yield s.update(count=1, item={slot: 1}, held={(replica, slot): 1})
    """
    written = [str(target) for target, _ in toy(snippet).toy.traced("rich").action("right").writes]
    assert written == ["count", "item[slot]", "held[replica][slot]"]


def test_cells_that_the_guards_say_are_one_are_written_twice(refused: Refused) -> None:
    snippet = """
        @toy.action(one=SLOT, other=SLOT, replica=REPLICA)
        def wrong(k, s, one, other, replica):
            yield "same", k.all(one == other, s.owner == replica)
            yield s.update(held={(s.owner, one): 1, (replica, other): 2})  # here
    """
    assert refused(snippet) == (
        "wrong writes held[replica][other] twice, as held[owner][one] and as held[replica][other]; "
        "write it once; k.ite chooses between two values"
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
