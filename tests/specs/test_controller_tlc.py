"""TLC on ``specs/Controller.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fencepost.model.core.ground import Cell, State, System, ground
from fencepost.model.explore.graph import build_graph
from fencepost.model.protocols.controller import controller

from .test_modules import SPECS, camel, snake
from .test_tlc import Tlc, read_value, thorough, tlc

pytestmark = pytest.mark.asked("tlc", "controller")

__all__ = ["tlc"]

# replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals
DATA = (2, 1, 1, 2, 0, 1, 0, 1)
FAILOVER = (1, 2, 1, 1, 1, 1, 1, 1)
THREE_EPOCHS = (1, 2, 1, 1, 2, 1, 0, 1)
"""What was pending may come back."""
ONE_EPOCH = (1, 2, 1, 1, 0, 1, 1, 1)
TWO_PARTITIONS = (2, 1, 2, 1, 0, 1, 0, 1)
# Distinct states and depth.
GRAPHS = {
    ("kip-631-safe", DATA): (3432, 17),
    ("kip-631-safe", (2, 1, 2, 2, 0, 1, 0, 1)): (9316, 20),
    ("kip-631-safe", (2, 1, 2, 3, 0, 0, 0, 1)): (1377, 21),
    ("kip-631-safe", ONE_EPOCH): (1134, 18),
    ("kip-631-safe", FAILOVER): (11136, 24),
    ("kip-631-safe", THREE_EPOCHS): (9998, 17),
    ("kip-631", FAILOVER): (25840, 25),
    ("isr-changes", TWO_PARTITIONS): (296, 12),
    ("isr-changes", (2, 1, 2, 2, 0, 1, 0, 1)): (9316, 20),
    ("concurrent-snapshots", FAILOVER): (11020, 24),
    ("applies-pending", FAILOVER): (32846, 24),
    ("keeps-pending", FAILOVER): (8590, 23),
    ("deposed-leader", (2, 1, 1, 3, 0, 1, 0, 1)): (41824, 23),
}
QUICK = (("kip-631-safe", DATA), ("kip-631-safe", ONE_EPOCH), ("isr-changes", TWO_PARTITIONS))
# What TLC's search finds first with the variant's own ``.cfg``, and after how many steps.
BREACHES = {
    "snapshot-lacks-fenced": ("SnapshotIsSufficient", 10),
    "snapshot-pending": ("SnapshotIsSufficient", 7),
    "elects-fenced": ("FencedBrokerLeadsNothing", 5),
    "applies-pending": ("StateIsOfStablePrefix", 4),
    "deposed-leader": ("FencedBrokerLeadsNothing", 8),
    "removes-last": ("IsrIsNeverEmpty", 4),
    "keeps-pending": ("StateIsOfStablePrefix", 4),
    "answers-pending": ("BrokerEpochIsItsOwn", 8),
}
SLOW_BREACHES = {
    "kip-631": ("SnapshotIsSufficient", 9),
    "two-snapshots": ("OneSnapshotInTheMaking", 14),
    "late-order": ("OneSnapshotInTheMaking", 17),
    "last-member-returns": ("AcknowledgedIsKept", 16),
    "stale-broker-epoch": ("AcknowledgedIsKept", 21),
}


def cfg_of(variant: str, constants: tuple[int, ...], *checked: str) -> str:
    """The variant's ``.cfg`` at other constants, checking only this."""
    text = (SPECS / f"Controller-{variant}.cfg").read_text(encoding="ascii").partition("INVARIANTS")[0]
    for name, value in zip(map(camel, controller.constants), constants, strict=True):
        replicas = f"{{{', '.join(map(str, range(value)))}}}"
        text = re.sub(rf" {name} = .+", f" {name} = {replicas if name == 'Replicas' else value}", text)
    return "\n".join([text, *(f"INVARIANT {name}" for name in checked), ""])


@pytest.mark.parametrize("variant", [*BREACHES, *(pytest.param(variant, marks=thorough) for variant in SLOW_BREACHES)])
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("controller", SPECS / f"Controller-{variant}.cfg")
    assert (run.violated, len(run.trace)) == (BREACHES | SLOW_BREACHES)[variant]


@thorough
@pytest.mark.parametrize(
    ("variant", "expected"),
    [("kip-631-safe", (11136, 24)), ("isr-changes", (9316, 20)), ("concurrent-snapshots", (11020, 24))],
)
def test_the_cfgs_of_what_is_safe_hold(tlc: Tlc, variant: str, expected: tuple[int, int]) -> None:
    run = tlc.run("controller", SPECS / f"Controller-{variant}.cfg")
    assert (run.violated, run.distinct, run.depth) == (None, *expected)


def test_the_safe_variant_holds_at_small_constants(tlc: Tlc) -> None:
    promises = [camel(name) for name in controller.invariant_names]
    run = tlc.run("controller", cfg_of("kip-631-safe", FAILOVER, *promises))
    assert (run.violated, run.distinct, run.depth) == (None, *GRAPHS["kip-631-safe", FAILOVER])


@pytest.mark.parametrize(
    ("variant", "constants"),
    [pytest.param(*each, marks=() if each in QUICK else thorough) for each in GRAPHS],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    dump = tlc.scratch / "graph.dot"
    run = tlc.run("controller", cfg_of(variant, constants), "-dump", "dot,actionlabels", str(dump))
    assert (run.distinct, run.depth) == GRAPHS[variant, constants]
    system = ground(controller.traced(variant), dict(zip(controller.constants, constants, strict=True)))
    states, edges = read_dump(system, dump.read_text(encoding="ascii"))
    graph = build_graph(system)
    assert states == set(graph.states)
    tla_name = {instance.action: controller.actions[instance.action].tla_name for instance in system.instances}
    assert edges == {
        (graph.states[source], tla_name[system.instances[label].action], graph.states[target])
        for source, label, target in zip(graph.source, graph.instance, graph.target, strict=True)
        if source != target
    }
    if constants == DATA:
        mutant = ground(system.traced.drop("unfence_broker.broker_epoch_matches"), system.constants)
        dropped = ground(system.traced.drop("fence_broker.is_unfenced"), system.constants)
        assert states != set(build_graph(dropped).states), "the comparison would see a dropped guard"
        assert states == set(build_graph(mutant).states), "no broker has another epoch yet where two records fit"


def read_dump(system: System, text: str) -> tuple[set[State], set[tuple[State, str, State]]]:
    """TLC's graph as states of the Python protocol and labelled edges between different states."""
    nodes = {
        name: to_state(system, label.replace("\\n", "\n").replace("\\\\", "\\").replace('\\"', '"'))
        for name, label in re.findall(r'^(-?\d+) \[label="(/\\.*?)"(?:,style|\])', text, flags=re.MULTILINE)
    }
    arrows = re.findall(r'^(-?\d+) -> (-?\d+) \[label="(\w+)"', text, flags=re.MULTILINE)
    return set(nodes.values()), {(nodes[a], action, nodes[b]) for a, b, action in arrows if a != b}


def to_state(system: System, text: str) -> State:
    """A state as TLC prints it, as the Python protocol has it."""
    variables = dict(re.findall(r"/\\ (\w+) = ((?:.|\n)*?)(?=\n/\\|\Z)", text))
    tla = {name: read_value(value) for name, value in variables.items()}
    cells: dict[str, Any] = {"newest_epoch": tla["newestEpoch"], "brokers": list(range(system.constants["replicas"]))}
    log = tla["metadataLog"]
    cells |= {snake(name): log[name] for name in ("activeEpoch", "end", "leaderEnd", "stable")}
    for offset, record in log["records"].items():
        for partition, change in record.pop("changes").items():
            cells |= {f"change_{name}[{offset}][{partition}]": value for name, value in change.items()}
        cells |= {f"record_{name}[{offset}]": value for name, value in record.items()}
    for holder in ("prefix", "node", "view", "snapshot"):
        for who, image in tla[f"{holder}Image"].items():
            for partition, state in image.pop("partitions").items():
                cells |= {f"{holder}_{snake(name)}[{who}][{partition}]": value for name, value in state.items()}
            cells |= {f"{holder}_{snake(name)}[{who}]": value for name, value in image.items()}
    names = {"epoch": "node_epoch", "applied": "node_applied"}
    for node, state in tla["nodeState"].items():
        cells |= {f"{names.get(name, snake(name))}[{node}]": value for name, value in state.items()}
    names = {"applied": "view_applied", "reached": "view_reached"}
    for broker, state in tla["brokerState"].items():
        cells |= {f"{names.get(name, snake(name))}[{broker}]": value for name, value in state.items()}
    for broker, logs in tla["replicaData"].items():
        for partition, state in logs.items():
            cells |= {f"{snake(name)}[{broker}][{partition}]": value for name, value in state.items()}
    for partition, state in tla["topics"].items():
        cells |= {f"{name}[{partition}]": value for name, value in state.items()}
    assert system.layout.by_name.keys() <= cells.keys()
    assert all(name.startswith("change_") for name in cells.keys() - system.layout.by_name.keys())
    return tuple(number(cell, cells[cell.name]) for cell in system.layout.cells)


def number(cell: Cell, value: Any) -> int:
    """A value as TLC prints it, as the cell holds it: a set is a mask, a name its place among the names."""
    if isinstance(value, str):
        return cell.variable.values.names.index(value) if value != "none" else -1
    return sum(1 << i for i in value) if isinstance(value, list) else int(value)
