"""``specs/ValidatingClient.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.state import Asking, Outcome

from .clients import PARTITION, VARIANTS, steps_of
from .modules import Definition, camel, read_module, snake
from .test_truncation_modules import outcomes_of

VARIABLES = {
    **PARTITION,
    "metadata": ("metadata_leader", "metadata_epoch", "topic_known"),
    "consumer": (
        *("placed", "position", "last_epoch", "current_epoch", "validating"),
        *("consumed_from", "consumed_id", "consumed_epoch"),
    ),
    "pending": ("asking",),
}
# No step writes it: of the leader that served a position nothing is kept.
NO_VARIABLE = {"seen_epoch"}


def test_these_are_the_variants_of_apache_kafkas_consumer() -> None:
    assert sorted(VARIANTS) == sorted(name for name, each in truncation.variants.items() if each.rules.shipped)


@pytest.mark.parametrize("variant", VARIANTS)
def test_constants_variables_and_invariants_are_those_of_the_protocol(variant: str) -> None:
    module, traced = read_module("ValidatingClient"), truncation.traced(variant)
    assert module.constants == (*(camel(name) for name in truncation.constants), "EndsAlone", "Late")
    assert sorted(module.variables) == sorted(VARIABLES)
    told = sorted(cell for cells in VARIABLES.values() for cell in cells)
    assert told == sorted(set(traced.variables) - NO_VARIABLE)
    assert not any(str(target.value) in NO_VARIABLE for action in traced.actions for target, _ in action.writes)
    assert set(map(camel, ("type_ok", *traced.invariants))) <= set(module.definitions)
    assert tuple(re.findall(r'"(\w+)"', module.definitions["Asking"].text)) == Asking.names
    assert outcomes_of(module) == Outcome.names


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    module, traced = read_module("ValidatingClient"), truncation.traced(variant)
    for action in traced.actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params), action.name
        assert definition.guards() == [name for name, _ in action.guards], action.name


def test_next_has_every_action_and_no_other() -> None:
    actions = {action.name for variant in VARIANTS for action in truncation.traced(variant).actions}
    assert steps_of(read_module("ValidatingClient")) == sorted(map(camel, actions))


def test_a_guard_that_is_dropped_from_a_module_is_found() -> None:
    """The planted fault for the comparison: an answer that is taken of whichever leader."""
    definition = read_module("ValidatingClient").definitions["ReadRecord"]
    lines = [line for line in definition.text.split("\n") if not line.endswith(" same_epoch")]
    planted = Definition(definition.name, definition.parameters, "\n".join(lines))
    guards = [name for name, _ in truncation.traced("kip-320-kafka").action("read_record").guards]
    assert planted.guards() != guards == definition.guards()
