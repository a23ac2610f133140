"""``specs/Controller.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

from dataclasses import fields

import pytest
from fencepost.model.protocols.controller import controller
from fencepost.model.protocols.controller.state import Rules

from .modules import camel, hold_missing_guard, left_out, read_module, steps_of

VARIANTS = tuple(controller.variants)
RULES = [field.name for field in fields(Rules)]
IMAGE = ("registered", "unfenced", "shutting_down", "leader", "leader_epoch", "partition_epoch", "isr", "doubted")
# Our names for the cells of a TLA+ variable.
VARIABLES = {
    "metadataLog": (
        *("active_epoch", "end", "leader_end", "stable"),
        *("record_kind", "record_broker", "record_partition", "record_leader", "record_isr"),
        *("change_leader", "change_isr"),
    ),
    "prefixImage": tuple("prefix_" + name for name in IMAGE),
    "newestEpoch": ("newest_epoch",),
    "nodeState": ("node_epoch", "role", "node_applied", "snapshot_end", "making", "order_epoch", "heard"),
    "nodeImage": tuple("node_" + name for name in IMAGE),
    "snapshotImage": tuple("snapshot_" + name for name in IMAGE),
    "brokerState": ("run", "own_epoch", "awaited", "view_applied", "view_reached"),
    "viewImage": tuple("view_" + name for name in IMAGE),
    "replicaData": ("data", "proposed", "proposed_epoch"),
    "topics": ("created", "acknowledged"),
}
# What guards a variant's text has not, because its rules leave them out.
LEFT_OUT = {
    "kip-631": {"of_own_epoch", "not_doubted", "known_unfenced"},
    "stale-broker-epoch": {"known_unfenced"},
    "late-order": {"of_own_epoch"},
    "last-member-returns": {"not_doubted"},
    "snapshot-pending": {"not_active"},
    "concurrent-snapshots": {"not_active"},
    "elects-fenced": {"is_unfenced"},
    "deposed-leader": {"is_leader", "leader_epoch_matches", "partition_epoch_matches", "broker_epoch_matches"},
    "answers-pending": {"registration_stable"},
}


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Controller")
    assert module.constants == (*(camel(name) for name in controller.constants), *map(camel, RULES))
    assert module.variables == tuple(VARIABLES)
    named = sorted(cell for cells in VARIABLES.values() for cell in cells)
    assert named == sorted(set(controller.variables) - {"brokers"})
    assert set(map(camel, controller.invariant_names)) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    assert left_out(read_module("Controller"), controller.traced(variant)) == LEFT_OUT.get(variant, set())


def test_next_has_every_action_and_no_other() -> None:
    assert steps_of(read_module("Controller")) == sorted(map(camel, controller.actions))


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """A deposed controller takes a request up."""
    hold_missing_guard(controller, "alter_partition", "none_active_since")
