"""The whole state graph of a small system, and its export as GraphML or DOT.

Exploration forgets the edges; liveness and a drawing need them. Memory is about 0.5 KiB a state and 24 bytes an
edge, so this is for small constants: ``Limits`` says how far it may go.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..core.errors import BadInput, FencepostError
from ..core.ground import Cell, State, System
from ..core.terms import Sort
from ..interpret.staged import stage
from .result import Limits, OnProgress, Step, Watch

if TYPE_CHECKING:
    import networkx as nx

    StateDiGraph = nx.MultiDiGraph[int]

Numbers = npt.NDArray[np.int64]

GRAPH_LIMITS = Limits(max_states=250_000)
"""How far a graph is built unless somebody asks for more."""


class BudgetExceeded(FencepostError):
    """A budget ran out before the graph was whole; the text says which."""


@dataclass
class StateGraph:
    """Every reachable state and every step between them.

    ``states`` stand in breadth-first order, the initial state first; ``depth[i]`` is the number of steps of a
    shortest path to state ``i``, and ``parent[i]`` the number of the edge by which that path arrives (-1 for the
    initial state). Edge ``j`` leads from ``source[j]`` to ``target[j]`` by the instance ``instance[j]`` of the
    system; edges stand in the order of their sources. A step that changes nothing is an edge to itself.
    """

    system: System
    states: list[State]
    depth: Numbers
    parent: Numbers
    source: Numbers
    target: Numbers
    instance: Numbers

    def step(self, edge: int) -> Step:
        """An edge as a step of a path."""
        return Step(self.system.instances[self.instance[edge]], self.states[self.target[edge]])

    def edges_to(self, state: int) -> list[int]:
        """The edges of a shortest path from the initial state."""
        path: list[int] = []
        while self.parent[state] >= 0:
            path.append(int(self.parent[state]))
            state = int(self.source[path[-1]])
        return path[::-1]


def build_graph(system: System, limits: Limits = GRAPH_LIMITS, on_progress: OnProgress | None = None) -> StateGraph:
    """The state graph, by breadth-first search over the staged reference.

    Raises BudgetExceeded where a limit is met before every reachable state has been expanded.
    """
    watch = Watch(limits, on_progress)
    staged = watch.staged(system)
    if staged is None:
        raise BudgetExceeded(watch.too_much)
    successors = staged.successors
    number = {system.initial: 0}
    states = [system.initial]
    depth, parent = array("q", [0]), array("q", [-1])
    source, target, instance = array("q"), array("q"), array("q")
    done = 0
    while done < len(states):
        for label, after in successors(states[done]):
            to = number.get(after)
            if to is None:
                to = number[after] = len(states)
                states.append(after)
                depth.append(depth[done] + 1)
                parent.append(len(source))
            source.append(done)
            target.append(to)
            instance.append(label)
        done += 1
        if len(states) > limits.max_states or watch.due(len(states) + done):
            reason = watch.exhausted(len(states), number)
            if reason:
                raise BudgetExceeded(reason)
            watch.report(depth[-1] + 1, len(states), len(states) - done)
    watch.report(depth[-1] + 1, len(states), 0)
    columns = (np.frombuffer(column, dtype=np.int64) for column in (depth, parent, source, target, instance))
    return StateGraph(system, states, *columns)


def to_networkx(graph: StateGraph) -> StateDiGraph:
    """The graph for networkx: nodes are the numbers of the states.

    A node has ``depth``, ``initial``, ``broken`` (the invariants that do not hold, separated by spaces) and every
    cell that is not the same in all states, by its name in traces: integers as they are, a replica or a set of
    replicas as text. An edge has ``action`` and ``params``.
    """
    # It takes longer to load than most searches take.
    import networkx as nx

    result: StateDiGraph = nx.MultiDiGraph()
    always = stage(graph.system).invariants
    values = np.array(graph.states, dtype=np.int64)
    moving = (values != values[0]).any(axis=0)
    cells = [cell for cell in graph.system.layout.cells if moving[cell.number]]
    for number, state in enumerate(graph.states):
        broken = " ".join(name for name, holds in always.items() if not holds(state))
        shown = {cell.name: _attribute(cell, state[cell.number]) for cell in cells}
        result.add_node(number, depth=int(graph.depth[number]), initial=number == 0, broken=broken, **shown)
    for source, target, label in zip(
        graph.source.tolist(), graph.target.tolist(), graph.instance.tolist(), strict=True
    ):
        instance = graph.system.instances[label]
        params = ", ".join(f"{name}={value}" for name, value in instance.params)
        result.add_edge(source, target, action=instance.action, params=params)
    return result


def _attribute(cell: Cell, value: int) -> int | str:
    values = cell.variable.values
    return value if values.sort is Sort.INT and not values.names else values.told(value)


def write_graph(graph: StateGraph, path: Path) -> None:
    """Write the graph as GraphML (``.graphml``) or in Graphviz' DOT language (``.dot``, ``.gv``).

    The file appears whole under its name, or not at all. Raises BadInput for another suffix, and where the file
    cannot be written.
    """
    writers: dict[str, Callable[[StateDiGraph, IO[bytes]], None]] = {
        ".graphml": _write_graphml,
        ".dot": _write_dot,
        ".gv": _write_dot,
    }
    write = writers.get(path.suffix.lower())
    if write is None:
        raise BadInput(f"{path.suffix or 'a name with no suffix'} is no graph format", str(path), _MEND_SUFFIX)
    drawn = to_networkx(graph)
    with _replacing(path) as file:
        write(drawn, file)


_MEND_SUFFIX = "end the name in .graphml, .dot or .gv"


@contextmanager
def _replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name only when it is complete."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with temporary.open("wb") as file:
            yield file
        temporary.replace(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInput(f"cannot be written: {why}", str(path), "name a file in a folder that exists") from error
    finally:
        temporary.unlink(missing_ok=True)


def _write_graphml(drawn: StateDiGraph, file: IO[bytes]) -> None:
    import networkx as nx

    # The writer over the standard library, so that the file does not depend on whether lxml is installed.
    nx.write_graphml_xml(drawn, file, named_key_ids=True)


def _write_dot(drawn: StateDiGraph, file: IO[bytes]) -> None:
    """DOT by ourselves: both of networkx' writers need a package that needs Graphviz."""

    def line(text: str) -> None:
        file.write(f"{text}\n".encode())

    line("digraph states {")
    line("  node [shape=box, fontname=monospace];")
    for number, attributes in drawn.nodes(data=True):
        cells = {name: value for name, value in attributes.items() if name not in _OWN}
        label = [f"{number} (depth {attributes['depth']})", *(f"{name} = {value}" for name, value in cells.items())]
        style: dict[str, object] = {"label": "\n".join(label), "depth": attributes["depth"]}
        if attributes["initial"]:
            style["peripheries"] = 2
        if attributes["broken"]:
            style |= {"color": "red", "broken": attributes["broken"]}
        line(f"  {number} [{_dot_attributes(style | cells)}];")
    for source, target, attributes in drawn.edges(data=True):
        call = f"{attributes['action']}({attributes['params']})"
        line(f"  {source} -> {target} [{_dot_attributes({'label': call, **attributes})}];")
    line("}")


_OWN = frozenset({"depth", "initial", "broken"})


def _dot_attributes(attributes: dict[str, object]) -> str:
    return ", ".join(f"{dot_string(name)}={dot_string(str(value))}" for name, value in attributes.items())


def dot_string(text: str) -> str:
    """A text as a quoted string of the DOT language.

    A newline becomes ``\\l``, which in a label ends a left-justified line.
    """
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + "".join(f"{part}\\l" for part in escaped.split("\n")) + '"' if "\n" in text else f'"{escaped}"'
