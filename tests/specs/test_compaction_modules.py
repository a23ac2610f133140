"""``specs/Compaction.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from fencepost.conformance.harness import plan_of
from fencepost.model.protocols.compaction import compaction
from fencepost.model.protocols.compaction.state import Last, Rules

from .test_modules import SPECS, camel, read_module, snake

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


def rules_of(variant: str) -> dict[str, str]:
    """The rule constants of a variant, as a ``.cfg`` has them."""
    rules = compaction.variants[variant].rules
    values = {name: getattr(rules, name) for name in RULES}
    return {
        camel(name): f'"{value.name.lower()}"' if isinstance(value, Last) else str(value).upper()
        for name, value in values.items()
    }


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Compaction")
    assert module.constants == (*(camel(name) for name in compaction.constants), *map(camel, RULES))
    assert module.variables == tuple(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(compaction.variables)
    assert set(map(camel, compaction.invariant_names)) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    module = read_module("Compaction")
    missing = set()
    for action in compaction.traced(variant).actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params)
        guards = [name for name, _ in action.guards]
        missing |= set(definition.guards()) - set(guards)
        assert [name for name in definition.guards() if name in guards] == guards, action.name
    assert missing == LEFT_OUT.get(variant, set())


def test_next_has_every_action_and_no_other() -> None:
    text = read_module("Compaction").definitions["Next"].text
    steps = re.findall(r"\\/ (?:\\E [^:]+ : )?(\w+)", text)
    assert sorted(steps) == sorted(map(camel, compaction.actions))


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_cfg_of_a_variant_has_its_rules_and_every_promise(variant: str) -> None:
    text = (SPECS / f"Compaction-{variant}.cfg").read_text(encoding="ascii")
    given = dict(re.findall(r"^    (\w+) = (.+)$", text, flags=re.MULTILINE))
    plan = plan_of(compaction)
    sizes = {**plan.holds, **plan.breaks}.get(variant, plan.at).split("/")
    constants = dict(zip(map(camel, compaction.constants), sizes, strict=True))
    replicas = ", ".join(map(str, range(int(constants["Replicas"]))))
    assert given == {**constants, "Replicas": f"{{{replicas}}}", **rules_of(variant)}
    promises = re.findall(r"^    (\w+)$", text, flags=re.MULTILINE)
    assert promises == [camel(name) for name in ("type_ok", *compaction.traced(variant).invariants)]


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """The planted fault for the comparison: a cleaner that has not heard of the leader."""
    definition = read_module("Compaction").definitions["RemoveRecord"]
    lines = [line for line in definition.text.split("\n") if not line.endswith(" follows_leader")]
    planted = type(definition)(definition.name, definition.parameters, "\n".join(lines))
    action = compaction.traced().action("remove_record")
    assert planted.guards() != [name for name, _ in action.guards] == definition.guards()
