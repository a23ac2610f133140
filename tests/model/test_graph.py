"""The state graph of a small system, and the files it is written to."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import graph as graph_module
from fencepost.model.explore.graph import BudgetExceeded, StateGraph, build_graph, dot_string, to_networkx, write_graph
from fencepost.model.explore.result import Limits
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing

CONSTANTS = ("replicas", "log_size", "max_records", "max_leader_epoch")


def system(variant: str, constants: str) -> System:
    return ground(fencing.traced(variant), dict(zip(CONSTANTS, map(int, constants.split("/")), strict=True)))


@pytest.fixture(scope="module")
def small() -> StateGraph:
    return build_graph(system("kip-320", "2/1/1/1"))


@pytest.mark.parametrize(
    ("variant", "constants", "distinct", "depth"),
    [
        ("truncate-to-hw", "2/1/1/1", 353, 12),
        ("kip-320", "2/1/1/1", 277, 12),
        ("kip-101", "2/2/2/2", 9045, 18),
        ("kip-320", "2/2/2/2", 5973, 18),
        ("kip-320", "3/1/1/1", 6787, 18),
    ],
)
def test_states_and_depth_are_those_that_tlc_finds(variant: str, constants: str, distinct: int, depth: int) -> None:
    graph = build_graph(system(variant, constants))
    assert (len(graph.states), len(set(graph.states)), graph.depth.max() + 1) == (distinct, distinct, depth)


def test_the_edges_are_exactly_the_steps_of_the_reference(small: StateGraph) -> None:
    reference = Reference(small.system)
    edges: dict[int, Counter[tuple[object, ...]]] = {number: Counter() for number in range(len(small.states))}
    for edge, source in enumerate(small.source.tolist()):
        step = small.step(edge)
        edges[source][step.instance.action, step.instance.params, step.state] += 1
    for number, state in enumerate(small.states):
        assert edges[number] == Counter(reference.successors(state))


def test_the_path_to_each_state_is_a_shortest_one(small: StateGraph) -> None:
    distances = nx.single_source_shortest_path_length(nx.DiGraph(to_networkx(small)), 0)
    for state in range(len(small.states)):
        path = small.edges_to(state)
        assert len(path) == small.depth[state] == distances[state]
        ends = [0, *small.target[path].tolist()]
        assert ends[:-1] == small.source[path].tolist() and ends[-1] == state


def test_a_graph_that_does_not_fit_the_budget_is_refused_and_says_which() -> None:
    with pytest.raises(BudgetExceeded, match=r"more than 276 states \(--max-states\)"):
        build_graph(system("kip-320", "2/1/1/1"), Limits(max_states=276))
    assert len(build_graph(system("kip-320", "2/1/1/1"), Limits(max_states=277)).states) == 277


def test_graphml_reads_back_with_states_steps_and_cells(small: StateGraph, tmp_path: Path) -> None:
    write_graph(small, tmp_path / "small.graphml")
    read = nx.read_graphml(tmp_path / "small.graphml", node_type=int, force_multigraph=True)
    assert (read.number_of_nodes(), read.number_of_edges()) == (277, len(small.source))
    assert [number for number, initial in read.nodes(data="initial") if initial] == [0]
    leo, isr = small.system.layout.by_name["leo[1]"], small.system.layout.by_name["quorum_isr"]
    for number, state in enumerate(small.states):
        node = read.nodes[number]
        assert node["depth"] == small.depth[number] and node["leo[1]"] == state[leo]
        assert node["quorum_isr"] == ["{}", "{0}", "{1}", "{0, 1}"][state[isr]]
        assert not node["broken"]
    steps = Counter((s, t, d["action"], d["params"]) for s, t, d in read.edges(data=True))
    assert steps[0, 1, "controller_elect_leader", "new_leader=0"] == 1
    assert Counter(action for _, _, action, _ in steps.elements()) == Counter(
        small.system.instances[label].action for label in small.instance.tolist()
    )


def test_a_cell_that_never_moves_is_left_out() -> None:
    graph = build_graph(system("kip-320", "1/2/1/0"))
    cells = set(to_networkx(graph).nodes[0])
    moving = np.array(graph.states).std(axis=0) > 0
    names = {cell.name for cell in graph.system.layout.cells if moving[cell.number]}
    assert cells == names | {"depth", "initial", "broken"}
    assert "leo[0]" in cells and len(names) < len(graph.system.layout.cells)


def test_broken_invariants_are_marked(tmp_path: Path) -> None:
    graph = build_graph(system("kip-101", "2/2/2/2"))
    reference = Reference(graph.system)
    expected = {n: " ".join(reference.broken(s)) for n, s in enumerate(graph.states)}
    marked = to_networkx(graph).nodes(data=True)
    assert {number: attributes["broken"] for number, attributes in marked} == expected
    assert any("weak_isr" in broken for broken in expected.values())
    write_graph(graph, tmp_path / "broken.dot")
    red = re.findall(r'^  (\d+) \[.*"color"="red"', (tmp_path / "broken.dot").read_text(), re.MULTILINE)
    assert {int(number) for number in red} == {n for n, broken in expected.items() if broken}


STRING = r'"(?:[^"\\]|\\.)*"'
ATTRIBUTES = rf"\[{STRING}={STRING}(?:, {STRING}={STRING})*\]"


@pytest.mark.parametrize("suffix", [".dot", ".gv", ".GV"])
def test_dot_has_one_statement_a_state_and_a_step(small: StateGraph, tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"small{suffix}"
    write_graph(small, path)
    first, style, *statements, last = path.read_text().splitlines()
    assert (first, style, last) == ("digraph states {", "  node [shape=box, fontname=monospace];", "}")
    nodes = [s for s in statements if re.fullmatch(rf"  \d+ {ATTRIBUTES};", s)]
    edges = [s for s in statements if re.fullmatch(rf"  \d+ -> \d+ {ATTRIBUTES};", s)]
    assert (len(nodes), len(edges), len(statements)) == (277, len(small.source), 277 + len(small.source))
    assert '"label"="0 (depth 0)\\lnext_record_id = 0\\l' in nodes[0] and '"peripheries"="2"' in nodes[0]
    assert sum('"peripheries"="2"' in node for node in nodes) == 1
    assert '"label"="controller_elect_leader(new_leader=0)"' in edges[0]


@pytest.mark.parametrize(
    ("text", "quoted"),
    [("leo[0]", '"leo[0]"'), ('a"b', r'"a\"b"'), ("a\\", r'"a\\"'), ("a\nb", r'"a\lb\l"'), ('\\"', r'"\\\""')],
)
def test_dot_strings_are_escaped(text: str, quoted: str) -> None:
    assert dot_string(text) == quoted
    assert re.fullmatch(STRING, quoted)


@pytest.mark.parametrize("name", ["graph.png", "graph", "graph.dot.txt"])
def test_another_suffix_is_bad_input(small: StateGraph, tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput, match=r"no graph format; end the name in \.graphml, \.dot or \.gv"):
        write_graph(small, tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_not_there_is_bad_input(small: StateGraph, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"nowhere/small\.gv: cannot be written: No such file"):
        write_graph(small, tmp_path / "nowhere" / "small.gv")


def test_a_failed_write_leaves_the_old_file_and_nothing_else(
    small: StateGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "small.dot"
    path.write_text("old")
    real = graph_module.dot_string
    left = iter(range(1000))

    def failing(text: str) -> str:
        if next(left) == 999:
            raise OSError(28, "No space left on device")
        return real(text)

    monkeypatch.setattr(graph_module, "dot_string", failing)
    with pytest.raises(BadInput, match="No space left on device"):
        write_graph(small, path)
    assert [p.name for p in tmp_path.iterdir()] == ["small.dot"] and path.read_text() == "old"
    monkeypatch.undo()
    write_graph(small, path)
    assert path.read_text().startswith("digraph") and [p.name for p in tmp_path.iterdir()] == ["small.dot"]
