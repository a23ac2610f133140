"""``specs/Truncation.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.state import Check, Outcome, Reset, Rules

from .modules import Module, camel, read_module, snake

# The module is of consumers whose exchanges are one step each; ``Kip320Client.tla`` and
# ``Kip320KafkaClient.tla`` are of the others.
VARIANTS = tuple(name for name, each in truncation.variants.items() if not each.rules.client)
SAFE = truncation.traced()
# Our names for the cells of a TLA+ variable.
VARIABLES = {
    "nextRecordId": ("next_record_id",),
    "elections": ("quorum_leader_epoch", "epoch_leader", "epoch_unclean"),
    "replicaLog": ("leo", "record_id", "record_epoch"),
    "replicaState": ("hw", "leader_epoch"),
    "metadataLeader": ("metadata_leader",),
    "consumer": ("position", "last_epoch", "seen_epoch", "consumed_from", "consumed_id"),
    "answer": ("outcome", "answered_epoch", "reported", "reported_epoch"),
    "committed": ("committed", "committed_epoch", "committed_seen"),
}
CHECKS = {
    Check.NEVER: "never",
    Check.LARGER_EPOCH: "larger-epoch",
    Check.KNOWN_EPOCH: "known-epoch",
    Check.CLEAN_LEADER: "clean-leader",
}
RESETS = {Reset.NEAREST: "nearest", Reset.EARLIEST: "earliest", Reset.LATEST: "latest"}


def outcomes_of(module: Module) -> tuple[str, ...]:
    """The values of the module's ``Outcome``; its members are definitions, each a string."""
    members = re.findall(r"\w+", module.definitions["Outcome"].text.split("}")[0])
    return tuple(re.findall(r'^ "(\w+)"', module.definitions[name].text)[0] for name in members)


def rules_of(variant: str) -> Rules:
    rules = truncation.variants[variant].rules
    assert isinstance(rules, Rules)
    return rules


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Truncation")
    assert module.constants == (*(camel(name) for name in truncation.constants), "Check", "Reset", "Seen")
    assert module.variables == tuple(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(SAFE.variables)
    assert set(map(camel, ("type_ok", *SAFE.invariants))) <= set(module.definitions)
    assert outcomes_of(module) == Outcome.names


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    """``epoch_known`` of the two that look for a divergence is a guard only where ``Seen`` is true."""
    module = read_module("Truncation")
    for action in truncation.traced(variant).actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params)
        wanted = [name for name, _ in action.guards]
        guards = definition.guards()
        if action.name in ("find_divergence", "seek_to_nearest") and not rules_of(variant).seen:
            guards.remove("epoch_known")
        assert guards == wanted, action.name


def test_next_has_every_action_and_no_other() -> None:
    text = read_module("Truncation").definitions["Next"].text
    steps = re.findall(r"\\/ (?:\\E \w+ \\in \w+ : )?(\w+)", text)
    assert sorted(steps) == sorted(camel(action.name) for action in SAFE.actions)


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """The planted fault for the comparison: the fetch without its check."""
    definition = read_module("Truncation").definitions["ConsumerFetch"]
    lines = [line for line in definition.text.split("\n") if "not_truncated" not in line]
    planted = type(definition)(definition.name, definition.parameters, "\n".join(lines))
    action = truncation.traced().action("consumer_fetch")
    assert planted.guards() != [name for name, _ in action.guards] == definition.guards()
