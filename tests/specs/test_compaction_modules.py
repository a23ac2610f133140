"""``specs/Compaction.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

from dataclasses import fields

import pytest
from fencepost.model.protocols.compaction import compaction
from fencepost.model.protocols.compaction.state import Rules

from .modules import camel, hold_missing_guard, left_out, read_module, steps_of

VARIANTS = tuple(compaction.variants)
RULES = [field.name for field in fields(Rules)]
# Our names for the cells of a TLA+ variable.
VARIABLES = {
    "quorum": ("leader", "leader_epoch", "isr", "epoch_start"),
    "committed": ("hw", "committed"),
    "replicaLog": ("joined", "leo", "record_epoch", "active", "checkpoint"),
    "records": ("record_key", "record_tombstone", "record_timestamp", "record_header", "record_earlier_header"),
    "configuration": ("topic_strategy", "broker_strategy", "changes", "since", "deleted_version"),
    "consumer": ("position", "table"),
}
# What guards a variant's text has not, because its rules leave them out.
_WRITTEN = {
    *("logs_are_alike", "brokers_agree", "topic_overrides"),
    *("readers_in_time", "cleaned_in_time", "arrives_in_time"),
}
LEFT_OUT = {
    "kip-280": _WRITTEN,
    "slow-readers": {"readers_in_time"},
    "uncleaned-tail": {"cleaned_in_time"},
    "late-producers": {"arrives_in_time"},
    "changes-uncleaned": {"logs_are_alike"},
    "rolling-change": {"brokers_agree", "topic_overrides"},
    "trusts-header": {"header_is_long"},
    "cleans-uncommitted": {"committed"},
    "cleans-active": {"inactive"},
}


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Compaction")
    assert module.constants == (*(camel(name) for name in compaction.constants), *map(camel, RULES))
    assert module.variables == tuple(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(compaction.variables)
    assert set(map(camel, compaction.invariant_names)) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    assert left_out(read_module("Compaction"), compaction.traced(variant)) == LEFT_OUT.get(variant, set())


def test_next_has_every_action_and_no_other() -> None:
    assert steps_of(read_module("Compaction")) == sorted(map(camel, compaction.actions))


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """A cleaner that has not heard of the leader."""
    hold_missing_guard(compaction, "remove_record", "follows_leader")
