"""A mutant that is held to keep its promises without being explored does keep them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.model.core.ground import ground, ground_mutant
from fencepost.model.core.mutants import Mutant, mutant_named, mutants
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.core.terms import negate
from fencepost.model.explore import Limits, Query, Verdict, explore
from fencepost.model.explore.batch import search_batch
from fencepost.model.explore.closure_check import Closure, Model
from fencepost.model.explore.compare import compare

FENCING = PROTOCOLS["fencing"].traced()
SNAPSHOTS = PROTOCOLS["snapshots"].traced()
AT = {
    "fencing": (3, 1, 1, 1),
    "truncation": (2, 1, 2, 2),
    "snapshots": (3, 0, 1, 1, 1, 0, 1, 1),
}


def model_of(protocol: str, limits: Limits | None = None) -> Model:
    traced = PROTOCOLS[protocol].traced()
    constants = dict(zip(PROTOCOLS[protocol].constants, AT[protocol], strict=True))
    system = ground(traced, constants)
    return Model(search_batch(Query.of(system, symmetry=protocol == "snapshots", limits=limits)))


def kept(model: Model, mutant: Mutant) -> bool:
    system = ground_mutant(model.search.system, mutant.traced, mutant.action)
    closure = Closure(model)
    difference = compare(model.search, system, mutant.action, closure.add)
    return closure.keeps_promises(system, mutant.action, difference)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("protocol", "every"), [("fencing", 1), ("truncation", 3), ("snapshots", 29)])
def test_what_is_kept_holds_when_it_is_explored(protocol: str, every: int) -> None:
    """And what breaks is never kept; so little is explored that holds."""
    model = model_of(protocol)
    said = []
    for mutant in mutants(PROTOCOLS[protocol].traced())[::every]:
        system = ground_mutant(model.search.system, mutant.traced, mutant.action)
        holds = explore(replace(model.search.query, system=system)).verdict is Verdict.HOLDS
        said.append((kept(model, mutant), holds))
    assert (True, False) not in said
    assert said.count((True, True)) >= 9 * said.count((False, True)) and said.count((False, False)) > 2


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "name",
    [
        # It leads beyond the model's states, to one that breaks a promise.
        "leader_inc_high_watermark.isr_acknowledges dropped",
        # It leads nowhere new, and never meets a witness.
        "leader_write.log_not_full bound -1",
        # It leads to a value that no key can hold.
        "leader_write.leo' bound +1",
    ],
)
def test_what_breaks_is_not_kept(name: str) -> None:
    model = model_of("fencing")
    mutant = mutant_named(FENCING, name)
    system = ground_mutant(model.search.system, mutant.traced, mutant.action)
    assert explore(Query.of(system)).verdict is Verdict.VIOLATED
    assert not kept(model, mutant)


def test_a_difference_that_is_not_told_of_would_pass_unseen() -> None:
    """What the closure goes by is what the comparison tells: the planted fault is a comparison that tells nothing."""
    model = model_of("fencing")
    mutant = mutant_named(FENCING, "leader_inc_high_watermark.isr_acknowledges dropped")
    system = ground_mutant(model.search.system, mutant.traced, mutant.action)
    told: list[int] = []
    difference = compare(model.search, system, mutant.action, lambda keys, _: told.append(keys.shape[1]))
    assert sum(told) >= difference.more + difference.other > 0
    assert Closure(model).keeps_promises(system, mutant.action, difference)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("limits", [Limits(max_depth=40), Limits(max_states=7_000)])
def test_what_a_budget_bounds_is_not_decided(limits: Limits) -> None:
    """The model has 6,787 states, and with the mutant's 7,231."""
    mutant = mutant_named(FENCING, "become_follower.leader_epoch_matches bound -1")
    assert kept(model_of("fencing"), mutant)
    assert not kept(model_of("fencing", limits), mutant)


def test_a_run_to_a_witness_meets_it() -> None:
    model = model_of("snapshots")
    system = model.search.system
    for name in system.witnesses:
        run = model.run_to(name)
        assert run is not None
        alone = Query.of(
            replace(system, invariants=system.invariants | {"never": negate(system.witnesses[name])}), ("never",)
        )
        assert len(explore(alone).path or ()) == len(run)
