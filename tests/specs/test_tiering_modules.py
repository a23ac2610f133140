"""``specs/Tiering.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

from dataclasses import fields

import pytest
from fencepost.model.protocols.tiering import tiering
from fencepost.model.protocols.tiering.state import Rules

from .modules import camel, hold_missing_guard, left_out, read_module, steps_of

VARIANTS = tuple(tiering.variants)
RULES = [field.name for field in fields(Rules)]
# Our names for the cells of a TLA+ variable.
VARIABLES = {
    "partition": ("newest_epoch", "epoch_leader", "isr", "tiered", "stable"),
    "replicaState": ("leader_epoch", "log_start", "local_start", "leo", "hw", "highest_remote", "jumped_from"),
    "checkpoint": ("record_epoch",),
    "segments": ("segment_state", "segment_end"),
    "remoteEpoch": ("remote_epoch",),
}
# What guards a variant's text has not, because its rules leave them out.
LEFT_OUT = {
    "kip-1023": {"epoch_is_newest", "isr_is_whole", "has_all_there_is", "isr_reaches_start"},
    "jump-unknown": {"nothing_uploaded"},
    "deposed-segment": {"segment_is_of_lineage"},
    "deposed-deletes": {"epoch_is_newest"},
    "disabled-under-isr": {"isr_is_whole", "has_all_there_is"},
    "disabled-at-leader": {"isr_reaches_start"},
    "up-to-gap": {"not_looked"},
}


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Tiering")
    assert module.constants == (*(camel(name) for name in tiering.constants), *map(camel, RULES))
    assert module.variables == tuple(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(tiering.variables)
    assert set(map(camel, tiering.invariant_names)) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    assert left_out(read_module("Tiering"), tiering.traced(variant)) == LEFT_OUT.get(variant, set())


def test_next_has_every_action_and_no_other() -> None:
    assert steps_of(read_module("Tiering")) == sorted(map(camel, tiering.actions))


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """Records are deleted locally that are not uploaded."""
    hold_missing_guard(tiering, "delete_local", "is_uploaded")
