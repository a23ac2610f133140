"""TLC's graph of a module beside the Python protocol's: the same states and, by action name, the same edges."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from fencepost.model.core.ground import Cell, State, System, ground
from fencepost.model.explore.graph import build_graph

from .cfgs import cfg_of, module_of
from .tlc import Tlc, TlcRun, read_value

Cells: TypeAlias = Callable[[System, dict[str, Any]], Mapping[str, Any]]
"""The value of each cell, by its name, in a state that is given by the variables of the module."""
Edges: TypeAlias = set[tuple[State, str, State]]


def hold_graph(
    tlc: Tlc, system: System, cells_of: Cells, *checked: str, steps: Mapping[str, str] | None = None
) -> tuple[TlcRun, set[State]]:
    """That TLC's graph is the system's, self-loops aside: not only as many states. Gives TLC's counts, and the states.

    ``checked``: invariants that TLC checks on the way. ``steps``: the action in each step of ``Next``, where TLC names
    an edge by the step.
    """
    dump = tlc.scratch / "graph.dot"
    protocol, variant = system.traced.protocol, system.traced.variant.name
    cfg = cfg_of(protocol, variant, tuple(system.constants.values()), *checked)
    run = tlc.run(module_of(protocol, variant).name, cfg, "-dump", "dot,actionlabels", str(dump))
    states, edges = read_dump(system, dump.read_text(encoding="ascii"), cells_of)
    graph = build_graph(system)
    assert states == set(graph.states)
    tla_name = {name: action.tla_name for name, action in protocol.actions.items()}
    assert {(before, (steps or {}).get(label, label), after) for before, label, after in edges} == {
        (graph.states[source], tla_name[system.instances[label].action], graph.states[target])
        for source, label, target in zip(graph.source, graph.instance, graph.target, strict=True)
        if source != target
    }
    return run, states


def states_without(system: System, guard: str) -> set[State]:
    """The states that there would be without a guard: another set, where the comparison can tell."""
    return set(build_graph(ground(system.traced.drop(guard), system.constants)).states)


def read_dump(system: System, text: str, cells_of: Cells) -> tuple[set[State], Edges]:
    """TLC's graph as states of the Python protocol and labelled edges between different states."""
    nodes = {
        name: to_state(system, re.sub(r"\\(.)", lambda each: "\n" if each[1] == "n" else each[1], label), cells_of)
        for name, label in re.findall(r'^(-?\d+) \[label="((?:[^"\\]|\\.)+)"', text, flags=re.MULTILINE)
    }
    arrows = re.findall(r'^(-?\d+) -> (-?\d+) \[label="(\w+)"', text, flags=re.MULTILINE)
    return set(nodes.values()), {(nodes[a], action, nodes[b]) for a, b, action in arrows if a != b}


def to_state(system: System, text: str, cells_of: Cells) -> State:
    """A state as TLC prints it, as the Python protocol has it. Fails where a cell is missing or none of its own."""
    variables = dict(re.findall(r"/\\ (\w+) = ((?:.|\n)*?)(?=\n/\\|\Z)", text))
    cells = cells_of(system, {name: read_value(value) for name, value in variables.items()})
    assert cells.keys() == system.layout.by_name.keys()
    return tuple(as_cell(cell, cells[cell.name]) for cell in system.layout.cells)


def as_cell(cell: Cell, value: Any) -> int:
    """A value as TLC prints it, as the cell holds it: a set is a mask, a name its place among the names."""
    if isinstance(value, str):
        names = cell.variable.values.names
        return names.index(value) if value in names or value != "none" else -1
    return sum(1 << member for member in value) if isinstance(value, list) else int(value)
