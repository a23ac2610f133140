"""``specs/KafkaQuorum.tla`` says what the Python text says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

import pytest
from fencepost.model.protocols.snapshots.kafka_spec import SHIPPED, VARIANT, is_shipped, text

from .modules import Definition, camel, read_module, snake, steps_of
from .test_quorum_modules import NO_VARIABLE, VARIABLES

VARIANTS = (VARIANT, SHIPPED)


def test_these_are_the_variants_of_apache_kafkas_quorum() -> None:
    assert sorted(VARIANTS) == sorted(name for name, each in text.variants.items() if is_shipped(each.rules))


@pytest.mark.parametrize("variant", VARIANTS)
def test_constants_variables_and_invariants_are_those_of_the_text(variant: str) -> None:
    module, traced = read_module("KafkaQuorum"), text.traced(variant)
    assert module.constants == tuple(camel(name) for name in text.constants if name != "late_responses")
    assert module.variables == tuple(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(set(traced.variables) - NO_VARIABLE)
    assert not any(str(target.value) in NO_VARIABLE for action in traced.actions for target, _ in action.writes)
    assert set(map(camel, ("type_ok", *traced.invariants))) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    module, traced = read_module("KafkaQuorum"), text.traced(variant)
    for action in traced.actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params), action.name
        assert definition.guards() == [name for name, _ in action.guards], action.name
    assert steps_of(module) == sorted(camel(action.name) for action in traced.actions)


def test_a_guard_that_is_dropped_from_a_module_is_found() -> None:
    """The planted fault for the comparison: a snapshot of what is not committed."""
    definition = read_module("KafkaQuorum").definitions["GenerateSnapshot"]
    lines = [line for line in definition.text.split("\n") if not line.endswith(" below_high_watermark")]
    planted = Definition(definition.name, definition.parameters, "\n".join(lines))
    guards = [name for name, _ in text.traced(VARIANT).action("generate_snapshot").guards]
    assert planted.guards() != guards == definition.guards()
