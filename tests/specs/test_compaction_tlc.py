"""TLC on ``specs/Compaction.tla``: counts, counterexamples, and the graph itself, edge for edge."""

from __future__ import annotations

import re
from typing import Any

import pytest
from fencepost.model.core.ground import Cell, State, System, ground
from fencepost.model.explore.graph import build_graph
from fencepost.model.protocols.compaction import compaction

from .test_modules import SPECS, camel, snake
from .test_tlc import Tlc, read_value, thorough, tlc

pytestmark = pytest.mark.asked("tlc", "compaction")

__all__ = ["tlc"]

# replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy/consumers
ELECTIONS = (2, 1, 1, 1, 0, 0, 1, 0, 0, 1)
TIMESTAMPS = (1, 2, 1, 2, 0, 0, 0, 0, 2, 1)
HEADERS = (1, 2, 1, 1, 1, 0, 0, 1, 0, 0)
CHANGES = (2, 1, 1, 1, 0, 0, 0, 2, 0, 1)
REPEATED = (1, 2, 1, 1, 1, 1, 0, 0, 3, 0)
FAILOVER = (2, 2, 1, 1, 0, 0, 1, 0, 0, 0)
CLEANED = (2, 2, 1, 1, 0, 0, 0, 0, 0, 0)
QUICK = (
    ("kip-280-safe", TIMESTAMPS),
    ("kip-280-safe", ELECTIONS),
    ("kip-280", TIMESTAMPS),
    ("empty-batch", TIMESTAMPS),
)
GRAPHS = (
    *QUICK,
    ("kip-280-safe", HEADERS),
    ("kip-280-safe", CHANGES),
    ("kip-280-safe", CLEANED),
    ("kip-280-safe", FAILOVER),
    ("empty-batch", CLEANED),
    ("kip-280-safe", (1, 2, 2, 1, 0, 0, 0, 0, 0, 1)),
    ("kip-280", CHANGES),
    ("kip-280", HEADERS),
    ("reads-again", TIMESTAMPS),
    ("removes-last", CLEANED),
    ("first-occurrence", REPEATED),
    ("anomalous-stays", REPEATED),
    ("trusts-header", HEADERS),
    ("ties-to-lower", TIMESTAMPS),
    ("cleans-uncommitted", TIMESTAMPS),
    ("cleans-active", TIMESTAMPS),
)
# What TLC's search finds first with the variant's own ``.cfg``, and after how many steps.
BREACHES = {
    "kip-280": ("ConsumerAgrees", 7),
    "uncleaned-tail": ("DeletedStaysDeleted", 8),
    "forgets-deletes": ("ConsumerAgrees", 7),
    "reads-by-offset": ("ConsumerAgrees", 7),
    "ties-to-lower": ("WinnerIsKept", 8),
    "anomalous-stays": ("WinnerIsKept", 7),
    "trusts-header": ("HeaderIsLong", 3),
    "cleans-uncommitted": ("ActiveSegmentIsUncleaned", 4),
    "cleans-active": ("ActiveSegmentIsUncleaned", 4),
    "rolling-change": ("WinnerIsKept", 8),
}
SLOW_BREACHES = {
    "slow-readers": ("DeletedStaysDeleted", 14),
    "late-producers": ("DeletedStaysDeleted", 10),
    "reads-again": ("ConsumerAgrees", 17),
    "changes-uncleaned": ("WinnerIsKept", 11),
    "maps-dirty-part": ("SurvivorIsAlone", 10),
    "first-occurrence": ("WinnerIsKept", 7),
}
"""All but ``removes-last``, of which TLC would look at seven million states."""


def cfg_of(variant: str, constants: tuple[int, ...], *checked: str) -> str:
    """The variant's ``.cfg`` at other constants, checking only this."""
    text = (SPECS / f"Compaction-{variant}.cfg").read_text(encoding="ascii").partition("INVARIANTS")[0]
    for name, value in zip(map(camel, compaction.constants), constants, strict=True):
        replicas = f"{{{', '.join(map(str, range(value)))}}}"
        text = re.sub(rf" {name} = .+", f" {name} = {replicas if name == 'Replicas' else value}", text)
    return "\n".join([text, *(f"INVARIANT {name}" for name in checked), ""])


@pytest.mark.parametrize("variant", [*BREACHES, *(pytest.param(variant, marks=thorough) for variant in SLOW_BREACHES)])
def test_the_cfgs_of_the_twins_break_as_the_explorer_says(tlc: Tlc, variant: str) -> None:
    run = tlc.run("compaction", SPECS / f"Compaction-{variant}.cfg")
    assert (run.violated, len(run.trace)) == (BREACHES | SLOW_BREACHES)[variant]


@pytest.mark.parametrize("variant", ["kip-280-safe", "empty-batch"])
def test_what_is_safe_holds_at_small_constants(tlc: Tlc, variant: str) -> None:
    promises = [camel(name) for name in compaction.invariant_names]
    run = tlc.run("compaction", cfg_of(variant, (2, 2, 1, 2, 0, 0, 0, 0, 2, 1), *promises))
    expected = {"kip-280-safe": (25697, 18), "empty-batch": (29449, 20)}
    assert (run.violated, run.distinct, run.depth) == (None, *expected[variant])


@pytest.mark.parametrize(
    ("variant", "constants"),
    [pytest.param(*each, marks=() if each in QUICK else thorough) for each in GRAPHS],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    dump = tlc.scratch / "graph.dot"
    tlc.run("compaction", cfg_of(variant, constants, "TypeOk"), "-dump", "dot,actionlabels", str(dump))
    system = ground(compaction.traced(variant), dict(zip(compaction.constants, constants, strict=True)))
    states, edges = read_dump(system, dump.read_text(encoding="ascii"))
    graph = build_graph(system)
    assert states == set(graph.states)
    tla_name = {instance.action: compaction.actions[instance.action].tla_name for instance in system.instances}
    assert edges == {
        (graph.states[source], tla_name[system.instances[label].action], graph.states[target])
        for source, label, target in zip(graph.source, graph.instance, graph.target, strict=True)
        if source != target
    }
    if (variant, constants) == QUICK[0]:
        mutant = ground(system.traced.drop("remove_tombstone.cleaned_in_time"), system.constants)
        assert states != set(build_graph(mutant).states), "the comparison would see a dropped guard"


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
    cells: dict[str, Any] = {f"epoch_start[{epoch}]": start for epoch, start in tla["quorum"].pop("epochStart").items()}
    cells |= {snake(name): value for name, value in tla["quorum"].items()}
    cells |= {"hw": tla["committed"]["hw"]}
    cells |= {f"committed[{offset}]": epoch for offset, epoch in tla["committed"]["epochs"].items()}
    for replica, log in tla["replicaLog"].items():
        cells |= {f"record_epoch[{replica}][{offset}]": epoch for offset, epoch in log.pop("records").items()}
        cells |= {f"{name}[{replica}]": value for name, value in log.items()}
    for epoch, written in tla["records"].items():
        for offset, record in written.items():
            cells |= {f"record_{snake(name)}[{epoch}][{offset}]": value for name, value in record.items()}
    configuration = tla["configuration"]
    cells |= {"topic_strategy": configuration["topic"], "changes": configuration["changes"]}
    cells |= {"since": configuration["since"], "position": tla["consumer"]["position"]}
    cells |= {f"broker_strategy[{replica}]": value for replica, value in configuration["brokers"].items()}
    cells |= {f"deleted_version[{key}]": value for key, value in configuration["deletedVersion"].items()}
    cells |= {f"table[{key}]": value for key, value in tla["consumer"]["table"].items()}
    assert cells.keys() == system.layout.by_name.keys()
    return tuple(number(cell, cells[cell.name]) for cell in system.layout.cells)


def number(cell: Cell, value: Any) -> int:
    """A value as TLC prints it, as the cell holds it: a set is a mask, a name its place among the names."""
    if isinstance(value, str):
        return cell.variable.values.names.index(value)
    return sum(1 << i for i in value) if isinstance(value, list) else int(value)
