"""What a protocol's text may not say, and what is asked of constants, variants and mutants: one line each."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
from fencepost.model.core.algebra import EVERY, Update, View
from fencepost.model.core.domains import OPTIONAL_REPLICA, REPLICA, REPLICA_SET, Index, integers
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.protocol import ConstantSpec, Fair, Protocol
from fencepost.model.core.terms import Sort
from fencepost.model.interpret.batch import Batch
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.protocols.compaction import compaction
from fencepost.model.protocols.fencing import fencing
from fencepost.model.prove.specialize import fixed

SLOT = Index("slot", Sort.INT, lambda c: c["slots"])


def cells() -> Protocol:
    """A protocol with one variable of every kind and no action yet."""
    protocol = Protocol(
        "cells",
        "this test",
        constants=(
            ConstantSpec("replicas", 2, 1, "the number of replicas"),
            ConstantSpec("slots", 2, 1, "the number of slots"),
        ),
    )
    protocol.variable("count", "a number", integers(0, lambda c: c["slots"]))
    protocol.variable("item", "a number per slot", integers(0, lambda _: 9), per=(SLOT,))
    protocol.variable("held", "a number per replica and slot", integers(0, lambda _: 9), per=(REPLICA, SLOT))
    protocol.variable("owner", "a replica, or none", OPTIONAL_REPLICA, initially=-1)
    protocol.variable("group", "a set of replicas", REPLICA_SET)
    protocol.variant("only", None, "the only one")
    return protocol


def traced_with(text: Callable[..., Any], **params: Index) -> None:
    protocol = cells()
    protocol.action(**params)(text)
    protocol.traced()


def two_guards_of_one_name(k: Any, s: View) -> Any:
    yield "small", s.count < 1
    yield "small", s.count < 2
    yield s.update(count=0)


def guard_that_is_a_number(k: Any, s: View) -> Any:
    yield "small", s.count + 1
    yield s.update(count=0)


def guard_after_the_update(k: Any, s: View) -> Any:
    yield s.update(count=0)
    yield "small", s.count < 1


def two_updates(k: Any, s: View) -> Any:
    yield s.update(count=0)
    yield s.update(count=1)


def no_update(k: Any, s: View) -> Any:
    yield "small", s.count < 1


def one_cell_twice(k: Any, s: View) -> Any:
    yield Update([("item", (0,), 1), ("item", (0,), 2)])


def unknown_variable_read(k: Any, s: View) -> Any:
    yield "small", s.counter < 1
    yield s.update(count=0)


def unknown_variable_written(k: Any, s: View) -> Any:
    yield s.update(counter=0)


def too_few_indices(k: Any, s: View) -> Any:
    yield "free", s.held[0] == 0
    yield s.update(count=0)


def too_many_indices(k: Any, s: View) -> Any:
    yield s.update(item={(0, 1): 0})


def index_of_the_wrong_sort(k: Any, s: View, replica: Any) -> Any:
    yield "free", s.item[replica] == 0
    yield s.update(count=0)


def replica_index_by_a_number(k: Any, s: View) -> Any:
    yield "free", s.held[s.count, 0] == 0
    yield s.update(count=0)


def indexed_written_whole(k: Any, s: View) -> Any:
    yield s.update(item=3)


def scalar_written_by_index(k: Any, s: View) -> Any:
    yield s.update(count={0: 3})


def replica_written_to_a_number(k: Any, s: View, replica: Any) -> Any:
    yield s.update(count=replica)


def number_written_to_a_set(k: Any, s: View) -> Any:
    yield s.update(group=s.count)


def python_if(k: Any, s: View) -> Any:
    if s.count < 1:
        yield "small", True
    yield s.update(count=0)


def every_slot_read(k: Any, s: View) -> Any:
    yield "free", s.item[EVERY] == 0
    yield s.update(count=0)


def quantifier_over_a_number(k: Any, s: View) -> Any:
    yield "some", k.exists(SLOT, lambda slot: s.item[slot])
    yield s.update(count=0)


@pytest.mark.parametrize(
    ("text", "params", "message"),
    [
        (two_guards_of_one_name, {}, "two_guards_of_one_name has two guards named small"),
        (guard_that_is_a_number, {}, r"the guard small of guard_that_is_a_number is not a condition: count \+ 1"),
        (guard_after_the_update, {}, "guard_after_the_update yields after its update"),
        (two_updates, {}, "two_updates yields after its update"),
        (no_update, {}, "no_update yields no update"),
        (one_cell_twice, {}, r"one_cell_twice writes item\[0\] twice"),
        (unknown_variable_read, {}, "the state has no variable 'counter'; it has count, item, held, owner, group"),
        (
            unknown_variable_written,
            {},
            "the update writes 'counter', which is no variable; it has count",
        ),
        (too_few_indices, {}, "held takes 2 indices, not 1"),
        (too_many_indices, {}, "item takes 1 index, not 2"),
        (index_of_the_wrong_sort, {"replica": REPLICA}, "item is indexed by slot, not by the replica replica"),
        (replica_index_by_a_number, {}, "held is indexed by replica, not by the int count"),
        (indexed_written_whole, {}, "item takes 1 index, not 0"),
        (scalar_written_by_index, {}, "count takes 0 indices, not 1"),
        (replica_written_to_a_number, {"replica": REPLICA}, "writes the replica replica to count, a int"),
        (number_written_to_a_set, {}, "writes the int count to group, a set of replicas"),
        (python_if, {}, r"the condition count < 1 was used as a Python truth value; write k\.all"),
        (every_slot_read, {}, "EVERY is neither a term nor a literal"),
        (quantifier_over_a_number, {}, r"the body item\[slot0\] of exists over slot is not a condition"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_a_wrong_text_is_refused_when_it_is_traced(
    text: Callable[..., Any], params: dict[str, Index], message: str
) -> None:
    with pytest.raises(ProtocolError, match=message):
        traced_with(text, **params)


def test_the_same_cell_by_two_names_is_not_a_second_write() -> None:
    """Two parameters may be equal in some instance: then the later write counts, in every interpreter alike."""
    protocol = cells()

    @protocol.action(one=SLOT, other=SLOT)
    def both(k: Any, s: View, one: Any, other: Any) -> Any:
        yield "bounded", s.count < 1
        yield s.update(item={one: 1, other: 2}, count=s.count + 1)

    system = ground(protocol.traced(), {})
    item = [system.layout.by_name[f"item[{slot}]"] for slot in range(2)]
    count = system.layout.by_name["count"]
    expected = {}
    for one, other in product(range(2), repeat=2):
        after = list(system.initial)
        after[count] = 1
        after[item[one]] = 1
        after[item[other]] = 2
        expected[(("one", one), ("other", other))] = tuple(after)
    reference, staged, batch = Reference(system), stage(system), Batch(system)
    assert {params: after for _, params, after in reference.successors(system.initial)} == expected
    found = {system.instances[number].params: after for number, after in staged.successors(system.initial)}
    assert found == expected
    keys = batch.packing.key(system.initial).reshape(-1, 1)
    found = {
        system.instances[each.instance].params: batch.packing.state(each.keys[:, 0])
        for each in batch.successors(batch.block(keys), keys)
    }
    assert found == expected
    symbolic = Symbolic(system.traced, system.constants)
    for params, after in expected.items():
        # As a shifted mutant is run: from its terms.
        assert reference._run_terms(system.initial, system.traced.action("both"), params) == after
        relation = symbolic.relation("both", params)
        assert symbolic.decided(relation, system.initial, after) is True
        earlier = tuple(1 if number in item and value == 2 else value for number, value in enumerate(after))
        assert symbolic.decided(relation, system.initial, earlier) is False


@pytest.mark.parametrize("kind", ["invariant", "witness"])
def test_a_property_that_is_no_condition_is_refused(kind: str) -> None:
    protocol = cells()

    def number(k: Any, s: View) -> Any:
        return s.count + 1

    if kind == "invariant":
        protocol.always(number)
    else:
        protocol.sometimes()(number)
    with pytest.raises(ProtocolError, match=r"number is not a condition: count \+ 1"):
        protocol.traced()


def test_a_protocol_that_cannot_move_is_refused() -> None:
    protocol = cells()

    @protocol.action()
    def never(k: Any, s: View) -> Any:
        yield "impossible", k.c.slots < 0
        yield s.update(count=0)

    with pytest.raises(ProtocolError, match="no action of cells can ever happen at"):
        ground(protocol.traced(), {})


@pytest.mark.parametrize(
    ("fair", "message"),
    [
        (Fair("fetch"), "the fairness some names 'fetch', which is no action of cells"),
        (Fair("count_up", per=("replica",)), "the fairness some is per 'replica', which count_up does not have"),
    ],
)
def test_fairness_of_what_does_not_exist_is_refused(fair: Fair, message: str) -> None:
    protocol = cells()

    @protocol.action()
    def count_up(k: Any, s: View) -> Any:
        yield "small", s.count < k.c.slots
        yield s.update(count=s.count + 1)

    protocol.assume_fair("none", (Fair("count_up"),), "fine")
    with pytest.raises(ProtocolError, match=message):
        protocol.assume_fair("some", (fair,), "not fine")
    assert list(protocol.fairness) == ["none"]


@pytest.mark.parametrize(
    ("constants", "line"),
    [
        (
            {"replica": 3},
            (
                "--replica: fencing has no constant 'replica'; "
                "its constants are replicas, log_size, max_records, max_leader_epoch"
            ),
        ),
        ({"replicas": 0}, "--replicas: replicas is 0; give an integer from 1 to 63"),
        ({"replicas": 64}, "--replicas: replicas is 64; give an integer from 1 to 63"),
        ({"log_size": "2"}, "--log-size: log_size is '2'; give an integer from 1 to 63"),
        ({"max_records": True}, "--max-records: max_records is True; give an integer from 1 to 63"),
        ({"max_leader_epoch": -1}, "--max-leader-epoch: max_leader_epoch is -1; give an integer from 0 to 63"),
    ],
)
def test_wrong_constants_are_bad_input(constants: dict[str, Any], line: str) -> None:
    with pytest.raises(BadInput) as refused:
        ground(fencing.traced(), constants)
    assert str(refused.value) == line


def test_a_choice_among_so_many_has_no_more_values() -> None:
    """Four strategies: a fifth would begin with a value that no cell has, and is refused before it comes to that."""
    assert compaction.check_constants({"default_strategy": 3})["default_strategy"] == 3
    with pytest.raises(BadInput, match=r"^--default-strategy: default_strategy is 4; give an integer from 0 to 3$"):
        compaction.check_constants({"default_strategy": 4})
    with pytest.raises(ProtocolError, match="compaction has no constant default_strategy that may be 4"):
        fixed(compaction, {"default_strategy": 4})


def test_constants_left_out_take_their_defaults() -> None:
    assert fencing.check_constants({"replicas": 2}) == {
        "replicas": 2,
        "log_size": 2,
        "max_records": 2,
        "max_leader_epoch": 2,
    }


def test_an_unknown_variant_is_bad_input() -> None:
    with pytest.raises(BadInput) as refused:
        fencing.traced("kip-321")
    assert str(refused.value) == (
        "--variant: fencing has no variant 'kip-321'; "
        "choose one of truncate-to-hw, kip-101, kip-279, kip-320-first-try, "
        "kip-320-resumes, kip-320-forgets, kip-320-restarts, kip-320-stale-acks, kip-320-brokers, "
        "kip-497-eager, kip-497-forgets, kip-497-fenced, kip-497, kip-320-cluster, "
        "kip-320-kafka-shipped, kip-320-kafka-shipped-fences, kip-320-kafka-stale-acks, kip-320-kafka-forgets, "
        "kip-320-kafka-fences, kip-320-kafka, kip-320"
    )
    assert fencing.default_variant == "kip-320"
    assert fencing.traced() is fencing.traced("kip-320")


@pytest.mark.parametrize(
    ("spec", "line"),
    [
        (
            "leader_write.log_full",
            (
                "--drop: leader_write has no guard 'log_full'; "
                "choose one of presumes_leadership, record_available, log_not_full"
            ),
        ),
        (
            "leader_writes.log_not_full",
            (
                "--drop: 'leader_writes.log_not_full' names no guard of fencing (kip-320); write ACTION.GUARD with an "
                "action of controller_elect_leader, controller_shrink_isr, become_leader, become_follower, "
                "leader_write, follower_fetch, leader_inc_high_watermark, leader_shrink_isr, leader_expand_isr"
            ),
        ),
    ],
)
def test_dropping_an_unknown_guard_is_bad_input(spec: str, line: str) -> None:
    with pytest.raises(BadInput) as refused:
        fencing.traced().drop(spec)
    assert str(refused.value) == line


@pytest.mark.parametrize("spec", ["leader_write", "", ".", "follower_truncate.diverges"])
def test_what_is_no_guard_of_this_variant_is_bad_input(spec: str) -> None:
    with pytest.raises(BadInput, match=r"^--drop: .* names no guard of fencing \(kip-320\); write ACTION\.GUARD"):
        fencing.traced().drop(spec)
    assert fencing.traced("kip-320-first-try").drop("follower_truncate.diverges")


def test_dropping_takes_just_that_guard_and_leaves_the_protocol_as_it_was() -> None:
    traced = fencing.traced()
    mutant = traced.drop("leader_write.log_not_full", "leader_write.record_available")
    assert [name for name, _ in mutant.action("leader_write").guards] == ["presumes_leadership"]
    assert mutant.action("leader_write").writes == traced.action("leader_write").writes
    assert [a for a in mutant.actions if a.name != "leader_write"] == [
        a for a in traced.actions if a.name != "leader_write"
    ]
    assert len(traced.action("leader_write").guards) == 3
    with pytest.raises(BadInput, match="leader_write has no guard 'log_not_full'"):
        mutant.drop("leader_write.log_not_full")


def test_an_action_of_another_variant_is_a_key_error() -> None:
    assert fencing.traced("kip-320-first-try").action("follower_truncate").params
    with pytest.raises(KeyError):
        fencing.traced().action("follower_truncate")


def test_names_for_people_and_for_tla() -> None:
    assert fencing.actions["leader_inc_high_watermark"].tla_name == "LeaderIncHighWatermark"
    assert fencing.actions["leader_write"].doc == ("A presumed leader appends a producer's record in its own epoch.")
    told = ("acknowledged_is_kept", "read_is_kept", "written_once")
    assert fencing.invariant_names == ("type_ok", "weak_isr", "strong_isr", "leader_in_isr", *told)
    for spec in (*fencing.actions.values(), *fencing.invariants.values(), *fencing.witnesses.values()):
        assert spec.doc.endswith((".", ")")), spec.name
