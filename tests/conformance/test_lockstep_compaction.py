"""Brokers with a compacted topic beside ``compaction``: a tombstone's whole way, and defects that lockstep shows.

Constants: replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy/
consumers.
"""

from __future__ import annotations

from contextlib import closing

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects, held_to, in_lockstep, over_impl
from fencepost.conformance.lockstep.adapter import ModelStep
from fencepost.conformance.lockstep.divergence import LockstepDivergence
from fencepost.conformance.lockstep.expect import Try
from fencepost.conformance.lockstep.machine import Machine
from fencepost.conformance.lockstep.runner import Conformance, Plan, conform
from fencepost.conformance.lockstep.space import Space
from fencepost.conformance.mutants.patched import patched
from fencepost.conformance.plan import constants_of
from fencepost.model.core.ground import System, ground
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.compaction import compaction

DEFECTS = {each.name: each for each in all_defects() if each.protocol == "compaction"}
ONE = "1/4/2/1/0/0/0/0/0/0"
TWO = "2/3/1/2/1/1/1/2/0/1"
BROKERS = "2/3/1/2/0/0/1/0/2/1"


def write(key: int, tombstone: int = 0) -> ModelStep:
    return "leader_write", {"key": key, "tombstone": tombstone, "timestamp": 0, "header": 0, "earlier_header": 0}


COMMIT: ModelStep = ("leader_inc_high_watermark", {})
ROLL: ModelStep = ("roll_segment", {"replica": 0})
DELETED = (
    ("elect_leader", {"replica": 0}),
    write(0, tombstone=1),
    COMMIT,
    ROLL,
    ("finish_cleaning", {"replica": 0, "end": 1}),
    write(1),
    COMMIT,
    ROLL,
)
"""A tombstone that is clean and beats nothing, and something new behind it."""
GOES: ModelStep = ("remove_tombstone", {"replica": 0, "offset": 0})


def system(at: str) -> System:
    text, _ = in_lockstep("compaction")
    return ground(text.traced("empty-batch"), constants_of(text, at))


def driven(steps: tuple[ModelStep, ...]) -> tuple[LockstepDivergence | None, list[str]]:
    """The first divergence, and what happened in the last try. Of what is done by itself nothing more is asked."""
    space = Space(system(ONE), in_lockstep("compaction")[1])
    with closing(over_impl("compaction", disk=False)) as adapter:
        machine = Machine(space, adapter, 1)
        found = machine.start()
        for action, params in steps:
            call = space.call(action, params)
            if found is None and (action != COMMIT[0] or call in machine.node.after):
                found = machine.perform(Try(call))
        return found, [call[0] for call, _ in machine.history[-1].run]


def searched(name: str, at: str, examples: int = 400) -> Conformance:
    with (
        patched(*DEFECTS[name].patches) as root,
        closing(over_impl("compaction", disk=False, parts=Parts.of(root))) as it,
    ):
        plan = Plan(examples, 30, 3, draw="random", shrink=False)
        return conform(it, system(at), in_lockstep("compaction")[1], plan)


def test_adapters_are_driven_beside_the_text_that_is_explored() -> None:
    text, binding = in_lockstep("compaction")
    assert text is compaction and held_to("compaction") is not compaction
    assert binding.actions.keys() == compaction.actions.keys()
    assert in_lockstep("fencing")[0] is held_to("fencing")


def test_a_tombstone_goes_when_its_time_is_over_and_there_is_something_to_clean() -> None:
    assert driven((*DELETED, GOES)) == (None, ["finish_cleaning", "remove_tombstone"])


def test_a_tombstone_waits_where_there_is_nothing_to_clean() -> None:
    assert driven((*DELETED[:5], GOES)) == (None, [])


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("name", "at"),
    [
        ("lower-offset-of-equals-stays", TWO),
        ("short-header-taken", TWO),
        ("uncommitted-cleaned", TWO),
        ("tombstone-goes-at-once", TWO),
        ("table-forgets-deletes", TWO),
        ("new-strategy-not-taken", TWO),
        ("broker-default-ignored", BROKERS),
    ],
)
def test_a_defect_of_the_cleaner_parts_it_from_the_model(name: str, at: str) -> None:
    assert searched(name, at).verdict is Verdict.VIOLATED
