"""TLC from drawn states, where a protocol's graph is too large to dump: every step that either side takes from them.

States are drawn by seeded walks of the Python protocol, and kept where they tell something that those before do not:
an action that happens there, or a guard that alone refuses one. So a guard that one side lacks, or that says another
thing there, is an edge that only the other side has.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from fencepost.model.core.ground import State, System
from fencepost.model.core.terms import Term
from fencepost.model.interpret.staged import expression, stage

from .cfgs import constants_text, module_of
from .tlc import Tlc, read_value

Told: TypeAlias = Callable[[System, State], Mapping[str, Any]]
"""A state by the variables of a module: records and functions as dicts, sequences as lists, sets as frozensets."""
Edges: TypeAlias = set[tuple[Any, str, Any]]

TIMES = 3
"""So many states are kept for the same thing."""


@dataclass(frozen=True)
class Drawn:
    """Reachable states, and what they tell: ``ACTION`` that happens, ``ACTION.GUARD`` that alone refuses it."""

    states: tuple[State, ...]
    told: frozenset[str]


def draw(system: System, seed: int, walks: int, length: int, seldom: Set[str]) -> Drawn:
    """States of so many walks, each from one that was kept, and each with some of the actions only: few seldom ones.

    Walks without the actions that undo what others have come to get further than walks that take any.
    """
    compiled, tells, chance = stage(system), _what_tells(system), random.Random(seed)
    kept = {system.initial: None}
    told = Counter(tells(system.initial))
    for _ in range(walks):
        state = chance.choice(list(kept))
        used = {each for each in system.actions if chance.random() < (0.1 if each in seldom else 0.7)}
        for _ in range(length):
            by_action: dict[str, list[State]] = {}
            for number, after in compiled.successors(state):
                if system.instances[number].action in used:
                    by_action.setdefault(system.instances[number].action, []).append(after)
            if not by_action:
                break
            state = chance.choice(by_action[chance.choice(sorted(by_action))])
            found = tells(state)
            if state not in kept and any(told[each] < TIMES for each in found):
                kept[state] = None
                told.update(found)
    return Drawn(tuple(kept), frozenset(told))


def _what_tells(system: System) -> Callable[[State], set[str]]:
    """What a state tells, by the guards of all instances, each condition looked at once."""
    conditions: dict[Term, int] = {}
    instances: dict[tuple[str, tuple[tuple[str, int], ...]], None] = {}
    for instance in system.by_step.values():
        guards = [(name, conditions.setdefault(term, len(conditions))) for name, term in instance.guards]
        instances[instance.action, tuple(guards)] = None
    cells = ", ".join(f"c{cell.number}" for cell in system.layout.cells)
    values = ", ".join(expression(term) for term in conditions)
    scope: dict[str, Callable[[State], tuple[object, ...]]] = {}
    exec(f"def looked_at(state):\n    ({cells},) = state\n    return ({values},)\n", scope)

    def tells(state: State) -> set[str]:
        holds = scope["looked_at"](state)
        found = set()
        for action, guards in instances:
            refused = [name for name, number in guards if not holds[number]]
            if len(refused) < 2:
                found.add(".".join([action, *refused]))
        return found

    return tells


def edges_of_python(system: System, states: Sequence[State], told: Told) -> Edges:
    """The steps from these states to others, by the name of the action in the module."""
    actions = system.traced.protocol.actions
    successors = stage(system).successors

    @cache
    def node(state: State) -> Any:
        return frozen(told(system, state))

    return {
        (node(state), actions[system.instances[number].action].tla_name, node(after))
        for state in states
        for number, after in successors(state)
        if after != state
    }


def edges_of_tlc(tlc: Tlc, system: System, states: Sequence[State], told: Told) -> Edges:
    """The same by the variant's module. Checks the module's TypeOk in all of them."""
    module = module_of(system.traced.protocol, system.traced.variant.name).name
    drawn = [f"    \\/ {conjunction(told(system, state))}" for state in states]
    begins = f"---- MODULE Drawn ----\nEXTENDS {module}, TLC\n"
    begin = "\n".join(
        [begins, "DrawnInit ==", *drawn, "", 'Near == TLCGet("level") < 3 \\/ TLCSet("exit", TRUE)', "====", ""]
    )
    (tlc.scratch / "Drawn.tla").write_text(begin, encoding="ascii")
    cfg = f"INIT DrawnInit\nNEXT Next\n{constants_text(system)}\nCONSTRAINT Near\nINVARIANT TypeOk\n"
    (tlc.scratch / "Drawn.cfg").write_text(cfg, encoding="ascii")
    dump = tlc.scratch / "drawn.dot"
    run = tlc.run("Drawn", tlc.scratch / "Drawn.cfg", "-dump", "dot,actionlabels", str(dump), root=tlc.scratch)
    assert run.violated is None
    asked = {frozen(told(system, state)) for state in states}
    return {edge for edge in read_edges(dump.read_text(encoding="ascii")) if edge[0] in asked}


def read_edges(text: str) -> Edges:
    """The edges of TLC's dumped graph between different states."""
    nodes = {
        name: read_state(re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], label))
        for name, label in re.findall(r'^(-?\d+) \[label="((?:[^"\\]|\\.)+)"', text, flags=re.MULTILINE)
    }
    arrows = re.findall(r'^(-?\d+) -> (-?\d+) \[label="(\w+)"', text, flags=re.MULTILINE)
    return {(nodes[a], action, nodes[b]) for a, b, action in arrows if a != b}


def read_state(text: str) -> Any:
    """A state as TLC prints it."""
    variables = dict(re.findall(r"/\\ (\w+) = ((?:.|\n)*?)(?=\n/\\|\Z)", text))
    return frozen({name: read_value(value) for name, value in variables.items()})


def named_in(system: System) -> set[str]:
    """All that a state may tell."""
    actions = system.traced.actions
    return {each.name for each in actions} | {f"{each.name}.{name}" for each in actions for name, _ in each.guards}


def frozen(value: Any) -> Any:
    """A value to compare and to look up."""
    if isinstance(value, Mapping):
        return tuple(sorted((name, frozen(each)) for name, each in value.items()))
    if isinstance(value, frozenset):
        return tuple(sorted(value))
    return tuple(map(frozen, value)) if isinstance(value, list) else value


def conjunction(variables: Mapping[str, Any]) -> str:
    """A state as a formula."""
    return " /\\ ".join(f"{name} = {text_of(value)}" for name, value in variables.items())


def text_of(value: Any) -> str:
    """A value as TLA+ has it."""
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, list):
        return f"<<{', '.join(map(text_of, value))}>>"
    if isinstance(value, frozenset):
        return f"{{{', '.join(map(text_of, sorted(value)))}}}"
    if not isinstance(value, Mapping):
        return str(value)
    if all(isinstance(name, str) for name in value):
        return f"[{', '.join(f'{name} |-> {text_of(each)}' for name, each in value.items())}]"
    return f"({' @@ '.join(f'{name} :> {text_of(each)}' for name, each in value.items())})"
