"""``specs/Tiering.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

import re
from dataclasses import fields
from enum import Enum

import pytest
from fencepost.conformance.harness import plan_of
from fencepost.model.protocols.tiering import tiering
from fencepost.model.protocols.tiering.state import Rules

from .test_modules import SPECS, camel, read_module, snake

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
}


def rules_of(variant: str) -> dict[str, str]:
    """The rule constants of a variant, as a ``.cfg`` has them."""
    rules = tiering.variants[variant].rules
    values = {name: getattr(rules, name) for name in RULES}
    return {
        camel(name): f'"{value.name.lower()}"' if isinstance(value, Enum) else str(value).upper()
        for name, value in values.items()
    }


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Tiering")
    assert module.constants == (*(camel(name) for name in tiering.constants), *map(camel, RULES))
    assert module.variables == tuple(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(tiering.variables)
    assert set(map(camel, tiering.invariant_names)) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    module = read_module("Tiering")
    missing = set()
    for action in tiering.traced(variant).actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params)
        guards = [name for name, _ in action.guards]
        missing |= set(definition.guards()) - set(guards)
        assert [name for name in definition.guards() if name in guards] == guards, action.name
    assert missing == LEFT_OUT.get(variant, set())


def test_next_has_every_action_and_no_other() -> None:
    text = read_module("Tiering").definitions["Next"].text
    steps = re.findall(r"^ *\\/ (?:\\E [^:]+ : )?(\w+)", text, flags=re.MULTILINE)
    assert sorted(steps) == sorted(map(camel, tiering.actions))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_cfg_of_a_variant_has_its_rules_and_every_promise(variant: str) -> None:
    text = (SPECS / f"Tiering-{variant}.cfg").read_text(encoding="ascii")
    given = dict(re.findall(r"^    (\w+) = (.+)$", text, flags=re.MULTILINE))
    plan = plan_of(tiering)
    sizes = plan.breaks.get(variant, plan.at).split("/")
    constants = dict(zip(map(camel, tiering.constants), sizes, strict=True))
    replicas = ", ".join(map(str, range(int(constants["Replicas"]))))
    assert given == {**constants, "Replicas": f"{{{replicas}}}", **rules_of(variant)}
    promises = re.findall(r"^    (\w+)$", text, flags=re.MULTILINE)
    assert promises == [camel(name) for name in tiering.invariant_names]


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """The planted fault for the comparison: records are deleted locally that are not uploaded."""
    definition = read_module("Tiering").definitions["DeleteLocal"]
    lines = [line for line in definition.text.split("\n") if not line.endswith(" is_uploaded")]
    planted = type(definition)(definition.name, definition.parameters, "\n".join(lines))
    action = tiering.traced().action("delete_local")
    assert planted.guards() != [name for name, _ in action.guards] == definition.guards()
