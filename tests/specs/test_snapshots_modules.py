"""``specs/Snapshots.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed.

``kip-630-quorum`` has a module of its own (``test_quorum_modules.py``): what is its alone is left out here.
"""

from __future__ import annotations

import re
from dataclasses import fields

import pytest
from fencepost.model.protocols.snapshots import snapshots
from fencepost.model.protocols.snapshots.state import Boot, Rules

from .test_modules import SPECS, camel, read_module, snake

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
BOOTS = {Boot.SNAPSHOT: "snapshot", Boot.HIGH_WATERMARK: "high-watermark", Boot.FROM_LBO: "from-lbo"}
# Where a twin breaks at other constants than the default ones.
SIZES = {
    "mixed-chunks": "3/0/2/1/2/0/0/1",
    "stale-responses": "2/1/2/0/1/0/1/1",
    "kip-630-votes": "3/0/1/1/1/0/0/1",
    "late-votes": "3/0/1/2/1/0/0/1",
}


def rules_of(variant: str) -> dict[str, str]:
    """The rule constants of a variant, as a ``.cfg`` has them."""
    rules = snapshots.variants[variant].rules
    assert isinstance(rules, Rules)
    values = {name: getattr(rules, name) for name in RULES}
    return {
        camel(name): f'"{BOOTS[value]}"' if isinstance(value, Boot) else str(value).upper()
        for name, value in values.items()
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
    module = read_module("Snapshots")
    for action in snapshots.traced(variant).actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params)
        assert definition.guards() == [name for name, _ in action.guards], action.name


def test_next_has_every_action_and_no_other() -> None:
    text = read_module("Snapshots").definitions["Next"].text
    steps = re.findall(r"\\/ \\E [^:]+ : (\w+)", text)
    actions = {action.name for variant in VARIANTS for action in snapshots.traced(variant).actions}
    assert sorted(steps) == sorted(map(camel, actions))
    its_own = {action.name for action in snapshots.traced(OF_ITS_OWN).actions} - actions
    assert set(snapshots.actions) == actions | its_own


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_cfg_of_a_variant_has_its_rules_and_every_promise(variant: str) -> None:
    text = (SPECS / f"Snapshots-{variant}.cfg").read_text(encoding="ascii")
    given = dict(re.findall(r"^    (\w+) = (.+)$", text, flags=re.MULTILINE))
    defaults = "/".join(str(spec.default) for spec in snapshots.constants.values())
    sizes = SIZES.get(variant, defaults).split("/")
    constants = dict(zip(map(camel, snapshots.constants), sizes, strict=True))
    replicas = ", ".join(map(str, range(int(constants["Replicas"]))))
    assert given == {**constants, "Replicas": f"{{{replicas}}}", **rules_of(variant)}
    promises = re.findall(r"^    (\w+)$", text, flags=re.MULTILINE)
    assert promises == [camel(name) for name in snapshots.invariant_names]


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """The planted fault for the comparison: a fetch that is served below the LBO."""
    definition = read_module("Snapshots").definitions["FollowerFetch"]
    lines = [line for line in definition.text.split("\n") if "reaches_back" not in line]
    planted = type(definition)(definition.name, definition.parameters, "\n".join(lines))
    action = snapshots.traced().action("follower_fetch")
    assert planted.guards() != [name for name, _ in action.guards] == definition.guards()
