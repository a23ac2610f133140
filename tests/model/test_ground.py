"""Grounding: dead cells are canonical, reads are total, computed indices become choices over cells."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest
from fencepost.model.core.algebra import View
from fencepost.model.core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, integers
from fencepost.model.core.ground import Params, State, System, ground
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.terms import Sort
from fencepost.model.interpret.batch import Batch
from fencepost.model.interpret.reference import IntState, Reference
from fencepost.model.interpret.staged import expression, stage

SLOT = Index("slot", Sort.INT, lambda c: c["slots"])

shelf = Protocol(
    "shelf",
    "this test",
    constants=(ConstantSpec("replicas", 2, 1, "replicas"), ConstantSpec("slots", 2, 1, "slots")),
)
shelf.variable(
    "cursor", "a position, one before the first slot to one after the last", integers(-1, lambda c: c["slots"])
)
shelf.variable("filled", "how many slots are in use", integers(0, lambda c: c["slots"]))
shelf.variable(
    "item",
    "what is in a slot",
    integers(0, lambda _: 2),
    per=(SLOT,),
    initially=0,
    live=lambda _k, s, slot: slot < s.filled,
    dead=0,
)
shelf.variable("owner", "who owns the shelf", OPTIONAL_REPLICA, initially=-1)
shelf.variable("marked", "a mark per replica", integers(0, lambda _: 1), per=(REPLICA,))
shelf.variable("readers", "who reads", REPLICA_SET)
shelf.variant("only", None, "the only one")


@shelf.action()
def put(k: Any, s: View) -> Any:
    """Fill the next slot with one more than what is in the slot before (below the first one: dead)."""
    yield "room", s.filled < k.c.slots
    yield s.update(item={s.filled: k.min(s.item[s.filled - 1] + 1, 2)}, filled=s.filled + 1)


@shelf.action()
def clear_to_cursor(k: Any, s: View) -> Any:
    """Keep only what is below the cursor; whatever is above becomes dead."""
    yield "shrinks", k.all(0 <= s.cursor, s.cursor < s.filled)
    yield s.update(filled=s.cursor)


@shelf.action(slot=SLOT)
def bump_at_cursor(k: Any, s: View, slot: Any) -> Any:
    """Write where the cursor stands, and another slot too; a write outside the shelf is none."""
    yield "same_or_next", k.any(s.cursor == slot, s.cursor + 1 == slot)
    yield s.update(item={s.cursor: 2, slot: k.max(s.item[s.cursor], s.item[s.cursor + 1])})


@shelf.action()
def forward(k: Any, s: View) -> Any:
    """Move the cursor to the first slot that holds more than the one below, else one past the end."""
    found = k.first(SLOT, lambda slot: k.all(slot > s.cursor, s.item[slot] > s.item[slot - 1]), k.c.slots)
    yield "moves", found != s.cursor
    yield s.update(cursor=found)


@shelf.action()
def back(k: Any, s: View) -> Any:
    """Move the cursor to the last slot in use below it, else one before the first."""
    found = k.last(SLOT, lambda slot: k.all(slot < s.cursor, slot < s.filled), -1)
    yield "moves", found != s.cursor
    yield s.update(cursor=found)


@shelf.action(replica=REPLICA)
def own(k: Any, s: View, replica: Any) -> Any:
    """Take the shelf from whoever owns it; the owner before becomes a reader, if there was one."""
    yield "other", s.owner != replica
    before = k.ite(s.owner == k.NONE, replica, s.owner)
    yield s.update(
        owner=replica,
        readers=k.ite(s.owner == k.NONE, s.readers, k.without_member(k.with_member(s.readers, before), replica)),
        marked={s.owner: 1, replica: 0},
    )


@shelf.action(replica=REPLICA)
def leave(k: Any, s: View, replica: Any) -> Any:
    """The owner leaves, once somebody reads and everybody who reads is marked."""
    yield "owns", s.owner == replica
    yield "read", k.exists(REPLICA, lambda r: k.member(r, s.readers))
    yield "marked", k.forall(REPLICA, lambda r: k.implies(k.member(r, s.readers), s.marked[r] == 1))
    yield s.update(owner=k.NONE, readers=k.only(replica))


@shelf.always
def owner_reads_not(k: Any, s: View) -> Any:
    """The owner is no reader."""
    return k.negate(k.member(s.owner, s.readers))


def system(replicas: int = 2, slots: int = 2) -> System:
    return ground(shelf.traced(), {"replicas": replicas, "slots": slots})


def every(of: System) -> list[State]:
    """Every reachable state, found by the reference."""
    reference = Reference(of)
    seen = {of.initial: None}
    for state in (todo := [of.initial]):
        for _, _, after in reference.successors(state):
            if after not in seen:
                seen[after] = None
                todo.append(after)
    return list(seen)


def canonical_states(of: System) -> list[State]:
    """Every state whose dead cells hold the dead value, reachable or not."""
    ranges = [range(c.low, c.high + 1) for c in of.layout.cells]
    filled = of.layout.by_name["filled"]
    items = of.layout.by_variable["item"]
    return [s for s in product(*ranges) if all(s[n] == 0 or slot < s[filled] for (slot,), n in items.items())]


@pytest.mark.parametrize(("replicas", "slots"), [(1, 1), (2, 2), (3, 2), (2, 3)])
def test_grounded_and_written_text_agree_about_every_reachable_state(replicas: int, slots: int) -> None:
    of = system(replicas, slots)
    reference, staged, batch = Reference(of), stage(of), Batch(of)
    states = every(of)
    assert len(states) > 10
    keys = np.stack([batch.packing.key(s) for s in states], axis=1)
    found: dict[State, set[tuple[str, Params, State]]] = {s: set() for s in states}
    for candidates in batch.successors(batch.block(keys), keys):
        instance = of.instances[candidates.instance]
        assert not candidates.escaped.size
        for row, key in zip(candidates.rows, candidates.keys.T, strict=True):
            found[states[row]].add((instance.action, instance.params, batch.packing.state(key)))
    for state in states:
        steps = set(reference.successors(state))
        assert {
            (of.instances[n].action, of.instances[n].params, after) for n, after in staged.successors(state)
        } == steps
        assert found[state] == steps
        assert "type_ok" not in reference.broken(state)


def test_they_agree_about_states_that_no_run_reaches_too() -> None:
    of = system()
    reference, staged = Reference(of), stage(of)
    states = canonical_states(of)
    assert len(states) > 1000
    for state in states:
        steps = {(of.instances[n].action, of.instances[n].params, after) for n, after in staged.successors(state)}
        assert steps == set(reference.successors(state))
        broken = [name for name, holds in staged.invariants.items() if not holds(state)]
        assert broken == reference.broken(state)


def changed(of: System, **values: int) -> State:
    """The initial state with these cells changed; ``item_0`` is ``item[0]``."""
    state = list(of.initial)
    for name, value in values.items():
        variable, _, index = name.partition("_")
        state[of.layout.by_name[variable + (f"[{index}]" if index else "")]] = value
    return tuple(state)


def get(of: System, state: State | None, cell: str) -> int:
    assert state is not None
    return state[of.layout.by_name[cell]]


@pytest.mark.parametrize(("index", "value"), [(-2, 0), (-1, 0), (0, 1), (1, 2), (2, 0), (50, 0)])
def test_a_read_outside_the_index_is_the_dead_value(index: int, value: int) -> None:
    of = system()
    state = changed(of, filled=2, item_0=1, item_1=2)
    assert IntState(of, state).item[index] == value


@pytest.mark.parametrize("cursor", [-1, 0, 1, 2])
def test_a_read_at_a_computed_index_is_total_in_every_interpreter(cursor: int) -> None:
    of = system()
    state = changed(of, filled=2, item_0=1, item_1=2, cursor=cursor)
    here = {-1: 0, 0: 1, 1: 2, 2: 0}
    wanted = max(here[cursor], here.get(cursor + 1, 0))
    steps = [(("slot", slot),) for slot in (0, 1) if slot in (cursor, cursor + 1)]
    for params in steps:
        after = Reference(of).step(state, "bump_at_cursor", params)
        assert after in [new for n, new in stage(of).successors(state) if of.instances[n].params == params]
        assert get(of, after, f"item[{dict(params)['slot']}]") == wanted
        if cursor == 0 and params == (("slot", 1),):
            assert get(of, after, "item[0]") == 2
    assert bool(steps) == (cursor < 2)


def test_the_later_of_two_writes_to_one_cell_counts() -> None:
    of = system()
    state = changed(of, filled=2, item_0=1, item_1=1, cursor=0)
    after = Reference(of).step(state, "bump_at_cursor", (("slot", 0),))
    assert get(of, after, "item[0]") == 1
    number = of.instances.index(of.by_step["bump_at_cursor", (("slot", 0),)])
    assert (number, after) in stage(of).successors(state)


def test_a_write_through_none_or_beyond_the_end_changes_nothing_else() -> None:
    of = system()
    owned = Reference(of).step(of.initial, "own", (("replica", 1),))
    assert owned == changed(of, owner=1)
    nowhere = changed(of, filled=2, item_0=1, item_1=1, cursor=-1)
    assert Reference(of).step(nowhere, "bump_at_cursor", (("slot", 0),)) == nowhere


def test_what_an_update_leaves_dead_is_cleared() -> None:
    of = system()
    full = changed(of, filled=2, item_0=1, item_1=2, cursor=1)
    wanted = changed(of, filled=1, item_0=1, cursor=1)
    assert Reference(of).step(full, "clear_to_cursor", ()) == wanted
    number = of.instances.index(of.by_step["clear_to_cursor", ()])
    assert (number, wanted) in stage(of).successors(full)
    # A cell that the same update writes and leaves dead is dead all the same.
    empty = changed(of, filled=0, cursor=0)
    assert Reference(of).step(empty, "bump_at_cursor", (("slot", 1),)) == empty
    # So two histories that end in the same live contents are one state.
    direct = Reference(of).step(changed(of, cursor=1), "put", ())
    assert direct == wanted


def test_type_ok_wants_dead_cells_dead_and_live_values_in_their_domain() -> None:
    of = system()
    holds, reference = stage(of).invariants["type_ok"], Reference(of)
    for good in (of.initial, changed(of, filled=1, item_0=2)):
        assert holds(good) and "type_ok" not in reference.broken(good)
    for bad in (
        changed(of, item_0=1),
        changed(of, filled=3),
        changed(of, cursor=-2),
        changed(of, cursor=3),
        changed(of, filled=2, item_0=3),
    ):
        assert not holds(bad) and "type_ok" in reference.broken(bad)


def test_an_instance_that_can_never_happen_is_kept_apart(at: Any) -> None:
    of = at("2/1/1/1")
    for instance in of.instances:
        assert of.by_step[instance.action, instance.params] is instance
    own_follower = of.by_step["become_follower", (("leader", 1), ("follower", 1), ("epoch", 0))]
    assert own_follower not in of.instances
    assert str(own_follower) == "become_follower(leader=1, follower=1, epoch=0)"
    # Besides, for either replica, the two actions in which it would have to lag behind itself.
    assert len(of.by_step) == len(of.instances) + 2 * 2 + 2 + 2
    assert Reference(of).refused_by(of.initial, own_follower.action, own_follower.params) == "not_leader_itself"


def test_the_effect_of_a_computed_index_names_every_cell_that_it_may_change() -> None:
    of = system(slots=3)
    cells = of.layout.by_variable["item"]
    put_effect = of.by_step["put", ()].effect
    assert set(put_effect) == {of.layout.by_name["filled"], *cells.values()}
    # A write at a bound parameter touches that cell, and those where the cursor may stand.
    bump = of.by_step["bump_at_cursor", (("slot", 1),)].effect
    assert set(bump) == set(cells.values())
    assert expression(of.by_step["back", ()].effect[of.layout.by_name["cursor"]]).count("if") == 3


def test_cells_are_numbered_and_named_as_traces_name_them(at: Any) -> None:
    layout = at("2/2/2/2").layout
    assert [c.number for c in layout.cells] == list(range(len(layout.cells)))
    assert [c.name for c in layout.cells[:8]] == [
        "next_record_id",
        "next_leader_epoch",
        "leo[0]",
        "leo[1]",
        "record_id[0][0]",
        "record_id[0][1]",
        "record_id[1][0]",
        "record_id[1][1]",
    ]
    assert layout.by_name["isr[1]"] == layout.by_variable["isr"][1,]
    assert layout.initial[layout.by_name["quorum_isr"]] == 0b11
