"""The TLA+ modules say what the Python protocol says, as far as names can tell: no TLA+ tool needed.

``test_tlc.py`` compares the graphs themselves.
"""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.fencing import fencing

from .modules import Definition, camel, read_module, snake

VARIANTS = tuple(fencing.variants)
# Our names for the cells of a TLA+ variable.
VARIABLES = {
    "nextRecordId": ("next_record_id",),
    "nextLeaderEpoch": ("next_leader_epoch",),
    "replicaLog": ("leo", "record_id", "record_epoch"),
    "replicaState": ("hw", "leader_epoch", "leader", "isr"),
    "quorumState": ("quorum_leader_epoch", "quorum_leader", "quorum_isr"),
    "leaderAndIsrRequests": ("request_leader", "request_isr"),
    "remoteLeo": ("remote_leo",),
    "quorumPartitionEpoch": ("quorum_partition_epoch",),
    "leaderIsr": ("partition_epoch", "proposed"),
    "alterIsrRequests": ("asked_in", "asked_out"),
    "alterIsrAnswers": ("altered_isr", "altered_partition_epoch"),
    "maximalIsr": ("maximal_isr",),
    "askedIsr": ("asked_isr",),
    "acknowledged": ("acknowledged",),
    "read": ("read",),
    "synced": ("synced",),
    "ahead": ("ahead",),
    "laterIsr": ("later_isr",),
}


@pytest.mark.parametrize("variant", VARIANTS)
def test_constants_variables_and_invariants_are_those_of_the_protocol(variant: str) -> None:
    module = read_module(camel(variant))
    assert module.constants == tuple(camel(name) for name in fencing.constants)
    traced = fencing.traced(variant)
    variables = traced.variables
    expected = {name: cells for name, cells in VARIABLES.items() if variables.keys() >= set(cells)}
    assert module.variables == tuple(expected)
    assert sorted(cell for cells in expected.values() for cell in cells) == sorted(variables)
    assert set(map(camel, ["type_ok", *traced.invariants, *fencing.liveness])) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    module = read_module(camel(variant))
    for action in fencing.traced(variant).actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params)
        assert definition.guards() == [name for name, _ in action.guards], action.name


@pytest.mark.parametrize("variant", VARIANTS)
def test_next_has_every_action_and_no_other(variant: str) -> None:
    module = read_module(camel(variant))
    steps = re.findall(r"\\/ (\w+)", module.definitions["Next"].text)
    called = [re.search(r":\s+(\w+)\(", module.definitions[step].text) for step in steps]
    assert sorted(call.group(1) for call in called if call) == sorted(
        camel(action.name) for action in fencing.traced(variant).actions
    )


@pytest.mark.parametrize("variant", VARIANTS)
def test_fairness_names_the_same_actions(variant: str) -> None:
    """KipFairness is ``kip``, and FairFetches what ``fair-fetches`` adds to it."""
    module = read_module(camel(variant))
    subscript = re.search(r"_(\w+)$", module.definitions["Spec"].text)
    assert subscript is not None
    tells = {"synced": "clusterVars", "ahead": "replayVars", "asked_isr": "runningVars"}
    tells |= {"proposed": "alterVars", "remote_leo": "toldVars"}
    variables = fencing.traced(variant).variables
    tells = {"later_isr": "shippedVars" if "ahead" in variables else "fencedVars"} | tells
    assert subscript.group(1) == next((name for telling, name in tells.items() if telling in variables), "vars")

    def fair_in(name: str) -> set[tuple[str, str]]:
        text = module.definitions[name].text
        pairs = re.findall(rf"([SW]F)_{subscript.group(1)}\((\w+)\)", text)
        calls = [(kind, re.search(r":\s+(\w+)\(", module.definitions[step].text)) for kind, step in pairs]
        return {(kind, call.group(1)) for kind, call in calls if call}

    present = {action.name for action in fencing.traced(variant).actions}
    conditions = {
        name: {
            ("SF" if fair.strong else "WF", camel(fair.action)) for fair in spec.conditions if fair.action in present
        }
        for name, spec in fencing.fairness.items()
    }
    assert fair_in("KipFairness") == conditions["kip"]
    assert fair_in("FairFetches") == conditions["fair-fetches"] - conditions["kip"]


def test_a_guard_without_a_name_is_found() -> None:
    """The planted fault for the reading rule: an unnamed guard, and a name on an effect."""
    with pytest.raises(AssertionError, match="neither a guard"):
        Definition("Planted", (), "    /\\ x = 1\n    /\\ y' = 2").guards()
    with pytest.raises(AssertionError, match="neither a guard"):
        Definition("Planted", (), "    /\\ y' = 2 \\* true_leader").guards()
    assert Definition("Clean", (), "    /\\ x = 1 \\* true_leader\n    /\\ y' = 2").guards() == ["true_leader"]


def test_a_guard_that_is_dropped_from_a_module_is_found() -> None:
    """The planted fault for the comparison: Kip279 without its last guard."""
    definition = read_module("Kip279").definitions["BecomeFollower"]
    lines = [line for line in definition.text.split("\n") if "truncates_backward" not in line]
    planted = Definition(definition.name, definition.parameters, "\n".join(lines))
    action = fencing.traced("kip-279").action("become_follower")
    assert planted.guards() != [name for name, _ in action.guards]
