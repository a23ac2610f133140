"""Mistakes in what an action writes: cells, rows, and a cell that is written twice.

A mistake is a snippet below a whole protocol (``conftest.py``); the line that must be named ends in ``# here``.
"""

from __future__ import annotations

import pytest

from .mistakes import MISSING, REPLICAS, SET, TRUTH, Refused, Toy


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
