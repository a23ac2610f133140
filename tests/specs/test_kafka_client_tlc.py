"""TLC on ``specs/ValidatingClient.tla``: the graph from drawn states, edge for edge; by night the counts."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore import Query, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.state import Asking

from .cfgs import constants_text, whole_cfg
from .clients import VARIANTS, Cells
from .drawn import conjunction, draw, edges_of_python, edges_of_tlc, named_in
from .modules import camel
from .tlc import Tlc, TlcRun, thorough

KAFKA, LATE = "kip-320-kafka", "kip-320-kafka-late"
ENDS, SHIPPED = "kip-320-kafka-ends", "kip-320-kafka-shipped"
LEAST = (1, 1, 1, 0)
COUNTS = {KAFKA: (114030, 18), ENDS: (114030, 18), LATE: (118230, 19), SHIPPED: (118230, 19)}
"""Distinct states and depth there."""
DRAWN = (2, 2, 3, 2)
SELDOM = frozenset(
    {
        *("seek_offset", "seek_position", "request_reset", "restart_process", "lose_metadata"),
        *("elect_nobody", "elect_member", "elect_outsider"),
        *("replica_restarts", "begin_log_at", "truncate_log", "delete_records"),
    }
)
"""What undoes what others have come to."""
IMPLIED = {"take_up.epoch_started", "follower_copy.follows", "read_record.leads", "read_late_record.leads"}
"""Guards that never refuse alone."""
OPENING: tuple[tuple[str, dict[str, int]], ...] = (
    ("elect_member", {"new_leader": 0}),
    ("take_up", {"replica": 0, "epoch": 0}),
    ("leader_append", {"leader": 0}),
)
READS_WHAT_IS_LOST = (
    *OPENING,
    ("elect_outsider", {"new_leader": 1}),
    ("take_up", {"replica": 1, "epoch": 1}),
    ("leader_append", {"leader": 1}),
    ("raise_high_watermark", {"leader": 1, "offset": 1}),
    ("seek_offset", {"offset": 0}),
    ("update_metadata", {"epoch": 1}),
    ("follow_metadata", {}),
    ("read_record", {"leader": 1}),
    ("elect_outsider", {"new_leader": 0}),
    ("take_up", {"replica": 0, "epoch": 2}),
    ("leader_append", {"leader": 0}),
    ("raise_high_watermark", {"leader": 0, "offset": 2}),
    ("update_metadata", {"epoch": 2}),
    ("follow_metadata", {}),
)
"""To where the consumer has read a record of epoch 1, and the leader of epoch 2 has one of epoch 0 there (H1)."""
FETCHES_IN_VAIN = (
    *OPENING,
    ("raise_high_watermark", {"leader": 0, "offset": 1}),
    ("update_metadata", {"epoch": 0}),
    ("seek_offset", {"offset": 0}),
    ("elect_outsider", {"new_leader": 1}),
    ("take_up", {"replica": 1, "epoch": 1}),
    ("leader_append", {"leader": 1}),
    ("leader_append", {"leader": 1}),
    ("raise_high_watermark", {"leader": 1, "offset": 2}),
    ("update_metadata", {"epoch": 1}),
    ("follow_metadata", {}),
)
"""To where the consumer has left a leader that it had asked, before the answer comes (V6)."""


def at(variant: str, constants: tuple[int, ...], *dropped: str) -> System:
    return ground(truncation.traced(variant).drop(*dropped), dict(zip(truncation.constants, constants, strict=True)))


def told(system: System, state: State) -> dict[str, Any]:
    """A state by the variables of the modules."""
    cells = Cells(system, state)
    return {
        **cells.partition(),
        "metadata": cells.named(leader="metadata_leader", epoch="metadata_epoch", topicKnown="topic_known"),
        "consumer": {
            **cells.named(placed="placed", position="position", lastEpoch="last_epoch", currentEpoch="current_epoch"),
            **cells.named(validating="validating", consumedFrom="consumed_from"),
            "consumed": cells.records("consumed"),
        },
        "pending": {"asking": Asking.names[cells.of["asking"]]},
    }


def walked(system: System, steps: tuple[tuple[str, dict[str, int]], ...]) -> State:
    """Where these steps lead."""
    reference = Reference(system)
    state = system.initial
    for action, params in steps:
        after = reference.step(state, action, tuple(params.items()))
        assert after is not None, action
        state = after
    return state


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("variant", VARIANTS)
def test_from_drawn_states_the_steps_are_those_of_the_python_protocol(tlc: Tlc, variant: str) -> None:
    """And each guard, but for few, alone refuses a step of these states: without it there would be another edge."""
    system = at(variant, DRAWN)
    sample = draw(system, 320, 2000, 15, SELDOM)
    assert named_in(system) - sample.told <= IMPLIED
    states = (*sample.states, walked(system, READS_WHAT_IS_LOST), walked(system, FETCHES_IN_VAIN))
    ours = edges_of_python(system, states, told)
    assert edges_of_tlc(tlc, system, states, told) == ours
    for dropped in ("update_metadata.no_older", "complete_validation.not_truncated"):
        mutant = at(variant, DRAWN, dropped)
        assert edges_of_python(mutant, states, told) != ours, f"the comparison would see {dropped} gone"


def broken_after(system: System, begin: State, steps: int) -> tuple[set[str], int] | None:
    """The promises that break first within so many steps, and after how many."""
    successors, broken = stage(system).successors, Reference(system).broken
    level = {begin}
    for depth in range(1, steps + 1):
        level = {after for state in level for _, after in successors(state)}
        if found := {name for state in level for name in broken(state)}:
            return found, depth
    return None


def run_from(tlc: Tlc, variant: str, system: System, begin: State, steps: int) -> TlcRun:
    """TLC from one state on, so many steps deep, with the promises of the cfg."""
    (tlc.scratch / "Begun.tla").write_text(
        "\n".join(
            [
                "---- MODULE Begun ----\nEXTENDS ValidatingClient, TLC",
                f"Begun == {conjunction(told(system, begin))}",
                f'Near == TLCGet("level") < {steps}',
                "====\n",
            ]
        ),
        encoding="ascii",
    )
    promises = [f"INVARIANT {camel(name)}" for name in ("type_ok", *system.traced.invariants)]
    cfg = ["INIT Begun", "NEXT Next", "CONSTRAINT Near", constants_text(system), *promises, ""]
    (tlc.scratch / "Begun.cfg").write_text("\n".join(cfg), encoding="ascii")
    return tlc.run("Begun", tlc.scratch / "Begun.cfg", root=tlc.scratch)


HOLES = {"h1": (READS_WHAT_IS_LOST, {ENDS, SHIPPED}), "v6": (FETCHES_IN_VAIN, {LATE, SHIPPED})}


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("hole", "variant"), [(hole, variant) for hole in HOLES for variant in VARIANTS])
def test_two_steps_more_break_a_promise_where_the_variant_has_the_hole(tlc: Tlc, hole: str, variant: str) -> None:
    """A validation, or a late answer, and the record that is read behind it; TLC finds what our steps find."""
    steps, breaking = HOLES[hole]
    system = at(variant, DRAWN)
    begin = walked(system, steps)
    run = run_from(tlc, variant, system, begin, 2)
    if variant in breaking:
        assert broken_after(system, begin, 2) == ({"no_unnoticed_gap"}, 2)
        assert (run.violated, len(run.trace)) == ("NoUnnoticedGap", 2)
    else:
        assert broken_after(system, begin, 2) is None
        assert run.violated is None


@pytest.mark.sampled(2)
@thorough
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_cfg_of_the_promises_holds(tlc: Tlc, variant: str) -> None:
    """With as many steps, those that change nothing among them, as the Python protocol takes."""
    run = tlc.run("ValidatingClient", whole_cfg(truncation, variant, "1/1/1/0"))
    answer = explore(Query.of(at(variant, LEAST)))
    assert (answer.distinct, answer.depth) == COUNTS[variant]
    assert (run.violated, run.distinct, run.depth) == (None, *COUNTS[variant])
    assert f"{sum(answer.transitions.values()) + 1} states generated" in run.output
