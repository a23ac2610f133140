"""``specs/Kip630Quorum.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

import re

from fencepost.model.protocols.snapshots import snapshots

from .modules import camel, read_module, snake

QUORUM = snapshots.traced("kip-630-quorum")
# Our names for the cells of a TLA+ variable. The voters never change, and are a definition; no response is late.
VARIABLES = {
    "epochLeader": ("epoch_leader",),
    "replicaLog": ("lbo", "leo", "synced", "record_epoch"),
    "replicaState": ("leader_epoch", "hw", "leader", "voted", "supporters"),
    "counted": ("counted",),
    "snapshotFiles": ("snapshot_size", "snapshot_epoch", "snapshot_records"),
    "fetchState": ("fetching", "fetching_epoch", "position"),
    "committed": ("committed",),
    "told": ("told",),
}
NO_VARIABLE = {"voters", *(name for name in snapshots.variables if name.startswith("response_"))}


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Kip630Quorum")
    assert module.constants == tuple(camel(name) for name in snapshots.constants if name != "late_responses")
    assert module.variables == tuple(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(set(QUORUM.variables) - NO_VARIABLE)
    assert not any(str(target.value) in NO_VARIABLE for action in QUORUM.actions for target, _ in action.writes)
    assert set(map(camel, ("type_ok", *QUORUM.invariants))) <= set(module.definitions)


def test_actions_have_the_same_names_parameters_and_guards() -> None:
    module = read_module("Kip630Quorum")
    for action in QUORUM.actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params)
        assert definition.guards() == [name for name, _ in action.guards], action.name


def test_next_has_every_action_and_no_other() -> None:
    text = read_module("Kip630Quorum").definitions["Next"].text
    steps = re.findall(r"\\/ \\E [^:]+ : (\w+)", text)
    assert sorted(steps) == sorted(camel(action.name) for action in QUORUM.actions)


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """The planted fault for the comparison: a vote for whoever asks first."""
    definition = read_module("Kip630Quorum").definitions["GiveVote"]
    lines = [line for line in definition.text.split("\n") if "up_to_date" not in line]
    planted = type(definition)(definition.name, definition.parameters, "\n".join(lines))
    action = QUORUM.action("give_vote")
    assert planted.guards() != [name for name, _ in action.guards] == definition.guards()
