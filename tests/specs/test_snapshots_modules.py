"""``specs/Snapshots.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed.

``kip-630-quorum`` has a module of its own (``test_quorum_modules.py``): what is its alone is left out here.
"""

from __future__ import annotations

from dataclasses import fields

import pytest
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.state import Rules

from .modules import camel, hold_missing_guard, left_out, read_module, steps_of

OF_ITS_OWN = "kip-630-quorum"
VARIANTS = tuple(variant for variant in snapshots.variants if variant != OF_ITS_OWN)
RULES = [field.name for field in fields(Rules) if field.name != "running"]
ITS_VARIABLES = ("leader", "voted", "supporters", "counted", "synced", "told")
# Our names for the cells of a TLA+ variable.
VARIABLES = {
    "election": ("newest_epoch", "candidate", "votes"),
    "voters": ("voters",),
    "epochLeader": ("epoch_leader",),
    "replicaLog": ("lbo", "leo", "record_epoch"),
    "replicaState": ("leader_epoch", "hw", "lbo_reached"),
    "acknowledged": ("acknowledged",),
    "snapshotFiles": ("snapshot_size", "snapshot_epoch", "snapshot_records"),
    "fetchState": ("fetching", "fetching_epoch", "position"),
    "late": tuple(name for name in snapshots.variables if name.startswith("response_")),
    "committed": ("committed",),
    "voteAnswers": ("stood", "granted"),
}


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Snapshots")
    assert module.constants == (*(camel(name) for name in snapshots.constants), *map(camel, RULES))
    assert module.variables == tuple(VARIABLES)
    named = sorted(cell for cells in VARIABLES.values() for cell in cells)
    assert named == sorted(set(snapshots.variables) - set(ITS_VARIABLES))
    for variant in VARIANTS:
        assert not set(ITS_VARIABLES) & set(snapshots.variables_of(variant)), variant
    assert set(ITS_VARIABLES) <= set(snapshots.variables_of(OF_ITS_OWN))
    assert set(map(camel, snapshots.invariant_names)) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    assert not left_out(read_module("Snapshots"), snapshots.traced(variant))


def test_next_has_every_action_and_no_other() -> None:
    actions = {action.name for variant in VARIANTS for action in snapshots.traced(variant).actions}
    assert steps_of(read_module("Snapshots")) == sorted(map(camel, actions))
    its_own = {action.name for action in snapshots.traced(OF_ITS_OWN).actions} - actions
    assert set(snapshots.actions) == actions | its_own


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """A fetch that is served below the LBO."""
    hold_missing_guard(snapshots, "follower_fetch", "reaches_back")
