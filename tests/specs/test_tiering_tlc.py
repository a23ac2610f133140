"""TLC on ``specs/Tiering.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fencepost.model.core.ground import Cell, State, System, ground
from fencepost.model.explore.graph import build_graph
from fencepost.model.protocols.tiering import tiering

from .cfgs import cfg_of
from .test_modules import SPECS, camel, snake
from .test_tlc import Tlc, read_value, thorough, tlc

pytestmark = pytest.mark.asked("tlc", "tiering")

__all__ = ["tlc"]

SAFE = "kip-1023-safe"
# replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires
ONE_RECORD = (2, 1, 1, 1, 1, 0, 0, 1)
ONE_EPOCH = (2, 2, 0, 1, 0, 0, 1, 1)
# Distinct states and depth.
GRAPHS = {
    (SAFE, ONE_RECORD): (4625, 22),
    (SAFE, ONE_EPOCH): (5073, 25),
    (SAFE, (2, 1, 1, 1, 1, 1, 1, 1)): (10288, 25),
    (SAFE, (2, 2, 1, 0, 0, 0, 0, 0)): (30549, 34),
    (SAFE, (2, 2, 1, 1, 0, 0, 0, 0)): (30885, 34),
    ("kip-1023", ONE_RECORD): (4991, 23),
    ("kip-1023", ONE_EPOCH): (5133, 24),
    ("offsets-first", ONE_RECORD): (4847, 22),
    ("keeps-highest", ONE_RECORD): (5653, 23),
    ("deposed-segment", ONE_RECORD): (4719, 22),
    ("deletes-uncommitted", ONE_RECORD): (5087, 22),
    ("epochs-to-local-start", ONE_EPOCH): (5089, 25),
    ("below-log-start", ONE_EPOCH): (5121, 25),
}
QUICK = ((SAFE, ONE_RECORD), (SAFE, ONE_EPOCH))
# What TLC's search finds first with the variant's own ``.cfg``, and after how many steps.
BREACHES = {
    "jump-unknown": ("LineageIsLeaders", 12),
    "below-log-start": ("OffsetsInOrder", 14),
    "flag-ignored": ("OnlyEmptyFollowerJumps", 11),
    "jump-with-data": ("OnlyEmptyFollowerJumps", 15),
    "offsets-first": ("LineageIsLeaders", 11),
    "upload-past-stable": ("UploadedIsStable", 5),
    "upload-past-hw": ("UploadedIsStable", 4),
    "deposed-segment": ("LeaderCanServe", 13),
    "deletes-uncommitted": ("LeaderCanServe", 7),
    "disabled-under-isr": ("IsrCanServe", 15),
    "disabled-at-leader": ("IsrCanServe", 18),
}
SLOW_BREACHES = {
    "kip-1023": ("LeaderCanServe", 16),
    "epochs-to-local-start": ("LineageIsLeaders", 14),
    "keeps-uncompared": ("SegmentsAgree", 20),
    "short-checkpoint": ("LineageIsLeaders", 24),
    "keeps-highest": ("LeaderCanServe", 14),
    "highest-alone": ("LeaderCanServe", 16),
    "first-on-remote": ("LeaderCanServe", 22),
    "deposed-deletes": ("LeaderCanServe", 16),
}


@pytest.mark.parametrize("variant", [*BREACHES, *(pytest.param(variant, marks=thorough) for variant in SLOW_BREACHES)])
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("tiering", SPECS / f"Tiering-{variant}.cfg")
    assert (run.violated, len(run.trace)) == (BREACHES | SLOW_BREACHES)[variant]


@thorough
def test_the_cfg_of_the_safe_variant_holds(tlc: Tlc) -> None:
    run = tlc.run("tiering", SPECS / f"Tiering-{SAFE}.cfg")
    assert (run.violated, run.distinct, run.depth) == (None, 172489, 38)


def test_the_safe_variant_holds_at_small_constants(tlc: Tlc) -> None:
    promises = [camel(name) for name in tiering.invariant_names]
    run = tlc.run("tiering", cfg_of(tiering, SAFE, ONE_RECORD, *promises))
    assert (run.violated, run.distinct, run.depth) == (None, *GRAPHS[SAFE, ONE_RECORD])


@pytest.mark.parametrize(
    ("variant", "constants"),
    [pytest.param(*each, marks=() if each in QUICK else thorough) for each in GRAPHS],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    dump = tlc.scratch / "graph.dot"
    run = tlc.run("tiering", cfg_of(tiering, variant, constants), "-dump", "dot,actionlabels", str(dump))
    assert (run.distinct, run.depth) == GRAPHS[variant, constants]
    system = ground(tiering.traced(variant), dict(zip(tiering.constants, constants, strict=True)))
    states, edges = read_dump(system, dump.read_text(encoding="ascii"))
    graph = build_graph(system)
    assert states == set(graph.states)
    tla_name = {instance.action: tiering.actions[instance.action].tla_name for instance in system.instances}
    assert edges == {
        (graph.states[source], tla_name[system.instances[label].action], graph.states[target])
        for source, label, target in zip(graph.source, graph.instance, graph.target, strict=True)
        if source != target
    }
    if constants == ONE_RECORD and variant == SAFE:
        mutant = ground(system.traced.drop("delete_local.is_uploaded"), system.constants)
        assert states != set(build_graph(mutant).states), "the comparison would see a dropped guard"


def read_dump(system: System, text: str) -> tuple[set[State], set[tuple[State, str, State]]]:
    """TLC's graph as states of the Python protocol and labelled edges between different states."""
    nodes = {
        name: to_state(system, label.replace("\\n", "\n").replace("\\\\", "\\").replace('\\"', '"'))
        for name, label in re.findall(r'^(-?\d+) \[label="((?:[^"\\]|\\.)*)"', text, flags=re.MULTILINE)
    }
    arrows = re.findall(r'^(-?\d+) -> (-?\d+) \[label="(\w+)"', text, flags=re.MULTILINE)
    return set(nodes.values()), {(nodes[a], action, nodes[b]) for a, b, action in arrows if a != b}


def to_state(system: System, text: str) -> State:
    """A state as TLC prints it, as the Python protocol has it."""
    variables = dict(re.findall(r"/\\ (\w+) = ((?:.|\n)*?)(?=\n/\\|\Z)", text))
    tla = {name: read_value(value) for name, value in variables.items()}
    partition = tla["partition"]
    cells: dict[str, Any] = {f"epoch_leader[{e}]": leader for e, leader in partition.pop("epochLeader").items()}
    cells |= {snake(name): value for name, value in partition.items()}
    for replica, state in tla["replicaState"].items():
        cells |= {f"{snake(name)}[{replica}]": value for name, value in state.items()}
    for name, rows in (("record_epoch", tla["checkpoint"]), ("remote_epoch", tla["remoteEpoch"])):
        for first, row in rows.items():
            cells |= {f"{name}[{first}][{offset}]": value for offset, value in row.items()}
    for epoch, row in tla["segments"].items():
        for offset, segment in row.items():
            cells |= {f"segment_{name}[{epoch}][{offset}]": value for name, value in segment.items()}
    assert cells.keys() == system.layout.by_name.keys()
    return tuple(number(cell, cells[cell.name]) for cell in system.layout.cells)


def number(cell: Cell, value: Any) -> int:
    """A value as TLC prints it, as the cell holds it: a set is a mask, a name its place among the names."""
    if isinstance(value, str):
        return cell.variable.values.names.index(value)
    return sum(1 << i for i in value) if isinstance(value, list) else int(value)
