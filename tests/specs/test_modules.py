"""The TLA+ modules say what the Python protocol says, as far as names can tell: no TLA+ tool needed.

``test_tlc.py`` compares the graphs themselves.
"""

from __future__ import annotations

import re

import pytest
from fencepost.model.protocols.fencing import fencing

from .cfgs import module_of
from .modules import Definition, camel, left_out, read_module

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


MODULES = {variant: module_of(fencing, variant).name for variant in VARIANTS}
SUBSCRIPTS = {
    "Kip320": "vars",
    "Kip320Brokers": "toldVars",
    "Kip497": "alterVars",
    "Kip320Cluster": "clusterVars",
    "KafkaBrokers": "kafkaVars",
}
"""The variables that no step of a module leaves out."""
# Which guards a variant does not have, because its rules leave them out.
_UNFENCED = {"presumes_leadership", "leader_epoch_matches", "epoch_not_fenced", "previous_epoch_matches"}
LEFT_OUT = {
    **dict.fromkeys(("truncate-to-hw", "kip-101", "kip-279"), _UNFENCED | {"hw_reached_epoch"}),
    "kip-320-first-try": _UNFENCED - {"previous_epoch_matches"} | {"truncates_backward"},
    **{name: set() for name in VARIANTS if name.startswith("kip-320-kafka")},
    "kip-497-forgets": {"previous_epoch_matches", "fenced"},
}


def variants_of(module: str) -> list[str]:
    """The variants that a module specifies."""
    return [variant for variant in VARIANTS if MODULES[variant] == module]


@pytest.mark.parametrize("name", SUBSCRIPTS)
def test_constants_variables_and_invariants_are_those_of_the_protocol(name: str) -> None:
    module, variants = read_module(name), variants_of(name)
    specified = module_of(fencing, variants[0])
    rules = map(specified.constant_of, specified.rules)
    assert sorted(module.constants) == sorted((*map(camel, fencing.constants), *rules))
    variables = {cell for variant in variants for cell in fencing.variables_of(variant)}
    expected = {name: cells for name, cells in VARIABLES.items() if variables >= set(cells)}
    assert module.variables == tuple(expected)
    assert sorted(cell for cells in expected.values() for cell in cells) == sorted(variables)
    promises = {each for variant in variants for each in fencing.traced(variant).invariants}
    assert set(map(camel, ["type_ok", *promises, *fencing.liveness])) <= set(module.definitions)


@pytest.mark.parametrize("variant", VARIANTS)
def test_actions_have_the_same_names_parameters_and_guards(variant: str) -> None:
    missing = left_out(read_module(MODULES[variant]), fencing.traced(variant))
    assert missing == LEFT_OUT.get(variant, {"previous_epoch_matches"})


@pytest.mark.parametrize("name", SUBSCRIPTS)
def test_next_has_every_action_and_no_other(name: str) -> None:
    module = read_module(name)
    steps = re.findall(r"\\/ (\w+)", module.definitions["Next"].text)
    called = [re.search(r":\s+(\w+)\(", module.definitions[step].text) for step in steps]
    actions = {action.name for variant in variants_of(name) for action in fencing.traced(variant).actions}
    assert sorted(call.group(1) for call in called if call) == sorted(map(camel, actions))


@pytest.mark.parametrize("variant", VARIANTS)
def test_fairness_names_the_same_actions(variant: str) -> None:
    """KipFairness is ``kip``, and FairFetches what ``fair-fetches`` adds to it."""
    module = read_module(MODULES[variant])
    subscript = re.search(r"_(\w+)$", module.definitions["Spec"].text)
    assert subscript is not None and subscript.group(1) == SUBSCRIPTS[MODULES[variant]]
    present = {action.name for action in fencing.traced(variant).actions}

    def fair_in(name: str) -> set[tuple[str, str]]:
        text = module.definitions[name].text
        pairs = re.findall(rf"([SW]F)_{subscript.group(1)}\((\w+)\)", text)
        calls = [(kind, re.search(r":\s+(\w+)\(", module.definitions[step].text)) for kind, step in pairs]
        return {(kind, call.group(1)) for kind, call in calls if call and call.group(1) in set(map(camel, present))}

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
    """The planted fault for the comparison: a follower that takes up any request."""
    definition = read_module("Kip320").definitions["BecomeFollower"]
    lines = [line for line in definition.text.split("\n") if not line.endswith(" epoch_newer")]
    planted = Definition(definition.name, definition.parameters, "\n".join(lines))
    guards = [name for name, _ in fencing.traced("kip-320").action("become_follower").guards]
    assert planted.guards() != guards == definition.guards()
