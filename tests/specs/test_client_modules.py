"""``specs/Kip320Client.tla`` says what the Python protocol says, as far as names can tell: no TLA+ tool needed."""

from __future__ import annotations

import re

from fencepost.model.protocols.truncation import truncation
from fencepost.model.protocols.truncation.state import Asking, Awaited, Outcome

from .clients import PARTITION, steps_of
from .modules import camel, read_module, snake
from .test_truncation_modules import outcomes_of

CLIENT = truncation.traced("kip-320-client")
# Our names for the cells of a TLA+ variable.
VARIABLES = {
    **PARTITION,
    "metadata": ("metadata_leader", "metadata_epoch"),
    "consumer": (
        *("placed", "position", "last_epoch", "seen_epoch", "consumed_from", "consumed_id", "consumed_epoch"),
        "known",
    ),
    "pending": ("awaited", "asking", "fetched_end", "fetched_id", "fetched_epoch", "fetched_seen"),
}


def test_constants_variables_and_invariants_are_those_of_the_protocol() -> None:
    module = read_module("Kip320Client")
    assert module.constants == tuple(camel(name) for name in truncation.constants)
    assert sorted(module.variables) == sorted(VARIABLES)
    assert sorted(cell for cells in VARIABLES.values() for cell in cells) == sorted(CLIENT.variables)
    assert set(map(camel, ("type_ok", *CLIENT.invariants))) <= set(module.definitions)
    for names in (Awaited, Asking):
        listed = re.findall(r'"(\w+)"', module.definitions[camel(names.name)].text)
        assert tuple(listed) == names.names
    assert outcomes_of(module) == Outcome.names


def test_actions_have_the_same_names_parameters_and_guards() -> None:
    module = read_module("Kip320Client")
    for action in CLIENT.actions:
        definition = module.definitions[camel(action.name)]
        assert tuple(map(snake, definition.parameters)) == tuple(action.params)
        assert definition.guards() == [name for name, _ in action.guards], action.name


def test_next_has_every_action_and_no_other() -> None:
    assert steps_of(read_module("Kip320Client")) == sorted(camel(action.name) for action in CLIENT.actions)


def test_a_guard_that_is_dropped_from_the_module_is_found() -> None:
    """The planted fault for the comparison: an answer to a fetch that nobody waits for."""
    definition = read_module("Kip320Client").definitions["FetchRecord"]
    lines = [line for line in definition.text.split("\n") if "awaits_fetch" not in line]
    planted = type(definition)(definition.name, definition.parameters, "\n".join(lines))
    action = CLIENT.action("fetch_record")
    assert planted.guards() != [name for name, _ in action.guards] == definition.guards()
