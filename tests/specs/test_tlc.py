"""TLC on the modules in ``specs/``: counts, counterexamples, liveness, and the graph itself, edge for edge.

The numbers pinned here are also what the KIP's own modules (github.com/hachikuji/kafka-specification) give with TLC
2.18.
"""

from __future__ import annotations

import re
from typing import Any

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.protocols.fencing import fencing

from .cfgs import cfg_of, module_of, whole_cfg
from .graphs import hold_graph, states_without
from .modules import read_module
from .test_modules import VARIANTS
from .tlc import Tlc, thorough

NAMES = ("replicas", "log_size", "max_records", "max_leader_epoch")

# Distinct states and depth (states on the longest shortest path) by variant and constants.
GRAPHS = {
    "truncate-to-hw": {(2, 1, 1, 1): (353, 12), (2, 2, 2, 2): (10131, 20), (3, 1, 1, 1): (10681, 17)},
    "kip-101": {(2, 1, 1, 1): (341, 12), (2, 2, 2, 2): (9045, 18), (3, 1, 1, 1): (9841, 18)},
    "kip-279": {(2, 1, 1, 1): (341, 12), (2, 2, 2, 2): (9027, 18), (3, 1, 1, 1): (9841, 18)},
    "kip-320-first-try": {(2, 1, 1, 1): (337, 12), (2, 2, 2, 2): (8429, 18), (3, 1, 1, 1): (9661, 18)},
    "kip-320-resumes": {(2, 1, 1, 1): (1091, 14), (2, 2, 2, 2): (29261, 21), (3, 1, 1, 1): (61834, 22)},
    "kip-320-forgets": {(2, 1, 1, 1): (1361, 15), (2, 2, 2, 2): (77019, 24), (3, 1, 1, 1): (106888, 26)},
    "kip-320-restarts": {(2, 1, 1, 1): (1031, 14), (2, 2, 2, 2): (26853, 20), (3, 1, 1, 1): (53542, 21)},
    "kip-320-stale-acks": {(2, 1, 1, 1): (1483, 15), (2, 2, 2, 2): (40517, 21), (3, 1, 1, 1): (129670, 23)},
    "kip-320-brokers": {(2, 1, 1, 1): (1439, 15), (2, 2, 2, 2): (38077, 21), (3, 1, 1, 1): (119770, 23)},
    "kip-497-eager": {(2, 1, 1, 0): (1781, 22)},
    "kip-497-forgets": {(2, 1, 1, 0): (2541, 23)},
    "kip-497-fenced": {(2, 1, 1, 0): (1573, 22)},
    "kip-497": {(2, 1, 1, 0): (1573, 22), (2, 1, 1, 1): (57095, 35)},
    "kip-320-cluster": {(2, 1, 1, 1): (12407, 23), (2, 2, 2, 0): (11465, 24)},
    "kip-320-kafka-shipped": {(2, 1, 1, 0): (1873, 22), (2, 1, 1, 1): (22087, 27)},
    "kip-320-kafka-stale-acks": {(2, 1, 1, 1): (10101, 21), (2, 1, 1, 2): (69767, 25)},
    "kip-320-kafka-forgets": {(2, 1, 1, 0): (1873, 22), (2, 1, 1, 1): (22087, 27)},
    "kip-320-kafka-shipped-fences": {(2, 1, 1, 0): (2683, 21)},
    "kip-320-kafka-fences": {(2, 1, 1, 0): (1131, 17), (2, 1, 1, 1): (13675, 21)},
    "kip-320-kafka": {(2, 1, 1, 1): (10101, 21), (2, 1, 1, 2): (68797, 25)},
    "kip-320": {(2, 1, 1, 1): (277, 12), (2, 2, 2, 2): (5973, 18), (3, 1, 1, 1): (6787, 18)},
}
# Where the graphs themselves are compared: smaller for the two largest.
COMPARED = dict.fromkeys(VARIANTS, (2, 2, 2, 2)) | {
    "kip-320-resumes": (2, 1, 1, 1),
    "kip-320-forgets": (2, 1, 1, 1),
    "kip-320-stale-acks": (2, 1, 1, 1),
    "kip-497-eager": (2, 1, 1, 0),
    "kip-497-forgets": (2, 1, 1, 0),
    "kip-497-fenced": (2, 1, 1, 0),
    "kip-497": (2, 1, 1, 0),
    "kip-320-cluster": (2, 1, 1, 1),
    "kip-320-kafka-shipped": (2, 1, 1, 0),
    "kip-320-kafka-stale-acks": (2, 1, 1, 1),
    "kip-320-kafka-forgets": (2, 1, 1, 0),
    "kip-320-kafka-shipped-fences": (2, 1, 1, 0),
    "kip-320-kafka-fences": (2, 1, 1, 0),
    "kip-320-kafka": (2, 1, 1, 1),
}
# Steps of the shortest run that breaks an invariant; None where it holds.
BREACHES = [
    ("truncate-to-hw", "2222", "WeakIsr", 8),
    ("truncate-to-hw", "2222", "StrongIsr", 9),
    ("truncate-to-hw", "3222", "WeakIsr", 8),
    ("truncate-to-hw", "3222", "StrongIsr", 8),
    ("kip-101", "2222", "WeakIsr", 11),
    ("kip-101", "2222", "StrongIsr", 11),
    ("kip-101", "3222", "WeakIsr", 10),
    ("kip-101", "3222", "StrongIsr", 10),
    ("kip-279", "2222", "WeakIsr", None),
    ("kip-279", "2222", "StrongIsr", None),
    ("kip-279", "3222", "WeakIsr", 10),
    ("kip-279", "3222", "StrongIsr", 10),
    ("kip-320-first-try", "2222", "WeakIsr", None),
    ("kip-320-first-try", "2222", "StrongIsr", None),
    ("kip-320-first-try", "3222", "WeakIsr", 11),
    ("kip-320-first-try", "3222", "StrongIsr", 12),
    ("kip-320-resumes", "2222", "WeakIsr", None),
    ("kip-320-resumes", "3111", "WeakIsr", 15),
    ("kip-320-resumes", "3111", "StrongIsr", 15),
    ("kip-320-forgets", "2222", "WeakIsr", 7),
    ("kip-320-forgets", "2222", "StrongIsr", 9),
    ("kip-320-forgets", "3111", "WeakIsr", 8),
    ("kip-320-forgets", "3111", "StrongIsr", 9),
    ("kip-320-stale-acks", "2222", "WeakIsr", None),
    ("kip-320-stale-acks", "3112", "WeakIsr", 13),
    ("kip-320-stale-acks", "3112", "StrongIsr", 13),
    ("kip-497-eager", "2111", "StrongIsr", 8),
    ("kip-497-forgets", "2111", "StrongIsr", 9),
    ("kip-497-fenced", "2111", "StrongIsr", 12),
    ("kip-497-eager", "3110", "StrongIsr", 11),
    ("kip-497-forgets", "3110", "StrongIsr", 12),
    ("kip-320-kafka-shipped", "2111", "StrongIsr", 12),
    ("kip-320-kafka-shipped", "3112", "WeakIsr", 13),
    ("kip-320-kafka-shipped-fences", "2111", "StrongIsr", 12),
    ("kip-320-kafka-shipped-fences", "3112", "WeakIsr", 13),
    ("kip-320-kafka-stale-acks", "3112", "WeakIsr", 13),
    ("kip-320-kafka-forgets", "2111", "StrongIsr", 12),
    ("kip-320-kafka-forgets", "3110", "StrongIsr", 13),
]
# The larger of the two sizes at which TLC checks each variant's invariants.
LARGER = dict.fromkeys(VARIANTS, "3222") | {v.name: "3111" for v in fencing.variants.values() if v.restarts}
LARGER["kip-320-stale-acks"] = "3112"
PROPOSES = {"kip-497-eager", "kip-497-forgets", "kip-497-fenced", "kip-497"}
CLUSTER = "kip-320-cluster"
OLD_AND_NEW = ("truncate-to-hw", "kip-101", "kip-279", "kip-320-first-try", "kip-320")
KAFKAS = {
    "kip-320-kafka-shipped": ("2111", "3112"),
    "kip-320-kafka-stale-acks": ("2111", "3112"),
    "kip-320-kafka-forgets": ("2111", "3110"),
    "kip-320-kafka-shipped-fences": ("2111", "3112"),
    "kip-320-kafka-fences": ("2111", "3110"),
    "kip-320-kafka": ("2111", "3110"),
}
LARGE = PROPOSES | {CLUSTER, *KAFKAS}
SIZES = [(variant, size) for variant in VARIANTS if variant not in LARGE for size in ("2222", LARGER[variant])]
SIZES += [(CLUSTER, "2111"), (CLUSTER, "2221")]
SIZES += [(variant, size) for variant in sorted(PROPOSES) for size in ("2111", "3110")]
SIZES += [(variant, size) for variant, sizes in KAFKAS.items() for size in sizes]
SLOW_CFGS = {("kip-320", "3222"), ("kip-320-stale-acks", "3112"), (CLUSTER, "2221")}
SLOW_CFGS |= {(variant, "3110") for variant in PROPOSES} | {(variant, sizes[1]) for variant, sizes in KAFKAS.items()}
# Liveness is checked at these constants.
LIVE = {(variant, fairness): "2/2/2/2" for variant in OLD_AND_NEW for fairness in ("kip", "fair-fetches")}
LIVE |= {("kip-320", "least"): "2/2/2/2"}
LIVE |= {(variant, "fair-fetches"): "2/1/1/1" for variant in ("kip-320-restarts", "kip-320-brokers")}
QUICK_LIVE = {(variant, "fair-fetches") for variant in ("kip-320", "kip-320-restarts", "kip-320-brokers")}
# Where fair fetches are not enough (DEVIATIONS.md, S6 and D7).
LIVE_BROKEN = {"kip-101", "kip-320-restarts", "kip-320-brokers"}


# The comparison of the graphs, below, has the counts as well.
@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "constants"),
    [(variant, constants) for variant in VARIANTS for constants in GRAPHS[variant] if constants != COMPARED[variant]],
    ids=lambda each: each if isinstance(each, str) else "/".join(map(str, each)),
)
def test_distinct_states_and_depth(tlc: Tlc, variant: str, constants: tuple[int, ...]) -> None:
    run = tlc.run(module_of(fencing, variant).name, cfg_of(fencing, variant, constants, "TypeOk", "LeaderInIsr"))
    assert run.violated is None
    assert (run.distinct, run.depth) == GRAPHS[variant][constants]


def slow_breaches(variant: str, size: str, invariant: str) -> bool:
    """Whether test_the_invariants_hold_or_break covers the case (WeakIsr or nothing breaks), or it is slow."""
    told = (
        invariant == "WeakIsr"
        or variant in PROPOSES
        or variant in KAFKAS
        or (size == "2222" and variant in ("kip-279", "kip-320-first-try"))
    )
    return told or size == "3112" or (size == "3222" and variant != "kip-279")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "size", "invariant", "steps"),
    [pytest.param(*b, marks=thorough) if slow_breaches(*b[:3]) else b for b in BREACHES],
)
def test_shortest_counterexamples(tlc: Tlc, variant: str, size: str, invariant: str, steps: int | None) -> None:
    constants = tuple(map(int, size))
    run = tlc.run(module_of(fencing, variant).name, cfg_of(fencing, variant, constants, invariant))
    assert run.violated == (invariant if steps else None)
    assert len(run.trace) == (steps or 0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "size"),
    [pytest.param(*each, marks=thorough) if each in SLOW_CFGS else each for each in SIZES],
)
def test_the_invariants_hold_or_break(tlc: Tlc, variant: str, size: str) -> None:
    """All invariants, of which TLC reports the first that breaks in the first state where one does."""
    run = tlc.run(module_of(fencing, variant).name, whole_cfg(fencing, variant, "/".join(size)))
    first, steps = next(((i, n) for v, s, i, n in BREACHES if (v, s) == (variant, size)), (None, None))
    assert (run.violated, len(run.trace)) == ((first, steps) if steps else (None, 0))


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("specification", "property_", "holds"),
    [
        ("KipFairSpec", "FinalLeaderAdoptsEpoch", True),
        ("KipFairSpec", "FinalLeaderCommitsRecord", False),
        ("FairFetchSpec", "FinalLeaderAdoptsEpoch", True),
        ("FairFetchSpec", "FinalLeaderCommitsRecord", True),
        ("LeastFairSpec", "FinalLeaderAdoptsEpoch", True),
        ("LeastFairSpec", "FinalLeaderCommitsRecord", True),
        ("Spec", "FinalLeaderAdoptsEpoch", False),
    ],
)
def test_liveness_of_kip_320(tlc: Tlc, specification: str, property_: str, holds: bool) -> None:
    whole = cfg_of(fencing, "kip-320", (2, 1, 1, 1)).replace("SPECIFICATION Spec", f"SPECIFICATION {specification}")
    cfg = f"{whole}PROPERTY {property_}\n"
    assert tlc.run(module_of(fencing, "kip-320").name, cfg).violated == (None if holds else "Temporal properties")


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("variant", "fairness"),
    [pytest.param(*each, marks=() if each in QUICK_LIVE or each[1] != "fair-fetches" else thorough) for each in LIVE],
)
def test_liveness_of_each_variant(tlc: Tlc, variant: str, fairness: str) -> None:
    """Without fair fetches nothing need ever be committed."""
    broken = fairness == "kip" or variant in LIVE_BROKEN
    cfg = whole_cfg(fencing, variant, LIVE[variant, fairness], fairness)
    assert tlc.run(module_of(fencing, variant).name, cfg).violated == ("Temporal properties" if broken else None)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("variant", VARIANTS)
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, variant: str) -> None:
    """Same states and, by action name, the same edges: not only as many."""
    constants = COMPARED[variant]
    system = ground(fencing.traced(variant), dict(zip(NAMES, constants, strict=True)))
    run, _ = hold_graph(tlc, system, cells_of, steps=actions_of_steps(variant))
    assert (run.distinct, run.depth) == GRAPHS[variant][constants]


def actions_of_steps(variant: str) -> dict[str, str]:
    """The action in each step of ``Next``: TLC names an edge by the step where that says more than the action."""
    definitions = read_module(module_of(fencing, variant).name).definitions
    steps = re.findall(r"\\/ (\w+)", definitions["Next"].text)
    return {step: re.findall(r":\s+(\w+)\(", definitions[step].text)[0] for step in steps}


def proposals(tla: dict[str, Any]) -> dict[str, Any]:
    """The cells of KIP-497's variants; none of the others."""
    if "quorumPartitionEpoch" not in tla:
        return {}
    cells = {"quorum_partition_epoch": tla["quorumPartitionEpoch"]}
    for replica, known in tla["leaderIsr"].items():
        cells |= {f"partition_epoch[{replica}]": known["partitionEpoch"], f"proposed[{replica}]": known["proposed"]}
    for epoch, asked in tla["alterIsrRequests"].items():
        for partition_epoch, request in asked.items():
            cells[f"asked_in[{epoch}][{partition_epoch}]"] = request["in"]
            cells[f"asked_out[{epoch}][{partition_epoch}]"] = request["out"]
    for epoch, answer in tla["alterIsrAnswers"].items():
        cells[f"altered_isr[{epoch}]"] = answer["isr"]
        cells[f"altered_partition_epoch[{epoch}]"] = answer["partitionEpoch"]
    return cells


def cells_of(system: System, tla: dict[str, Any]) -> dict[str, Any]:
    """The cells of a state of the module."""
    cells: dict[str, Any] = {}
    cells["next_record_id"] = tla["nextRecordId"]
    cells["next_leader_epoch"] = tla["nextLeaderEpoch"]
    for replica, log in tla["replicaLog"].items():
        cells[f"leo[{replica}]"] = len(log)
        for offset, record in enumerate(log):
            cells[f"record_id[{replica}][{offset}]"] = record["id"]
            cells[f"record_epoch[{replica}][{offset}]"] = record["epoch"]
    for replica, known in tla["replicaState"].items():
        cells[f"hw[{replica}]"] = known["hw"]
        cells[f"leader_epoch[{replica}]"] = known["leaderEpoch"]
        cells[f"leader[{replica}]"] = known["leader"]
        cells[f"isr[{replica}]"] = known["isr"]
    quorum = tla["quorumState"]
    cells["quorum_leader_epoch"] = quorum["leaderEpoch"]
    cells["quorum_leader"] = quorum["leader"]
    cells["quorum_isr"] = quorum["isr"]
    for request in tla["leaderAndIsrRequests"]:
        cells[f"request_leader[{request['leaderEpoch']}]"] = request["leader"]
        cells[f"request_isr[{request['leaderEpoch']}]"] = request["isr"]
    for leader, known in tla.get("remoteLeo", {}).items():
        cells |= {f"remote_leo[{leader}][{follower}]": end for follower, end in known.items()}
    cells |= proposals(tla)
    of_replicas = {"synced": "synced", "maximalIsr": "maximal_isr", "askedIsr": "asked_isr", "ahead": "ahead"}
    for name, ours in of_replicas.items():
        cells |= {f"{ours}[{replica}]": value for replica, value in tla.get(name, {}).items()}
    cells |= {
        f"later_isr[{epoch}][{place}]": isr
        for epoch, isrs in tla.get("laterIsr", {}).items()
        for place, isr in enumerate(isrs)
    }
    if "ahead" not in system.traced.variables and "ahead" in tla:
        # The module has the variable for other variants: it never changes here.
        assert {cells.pop(f"ahead[{replica}]") for replica in tla["ahead"]} == {-1}
    for name in ("acknowledged", "read"):
        cells |= {f"{name}[{index}]": value for index, value in tla.get(name, {}).items()}
    sets = ("request_isr", "later_isr")
    unset = {cell.name: 0 if cell.variable.name in sets else -1 for cell in system.layout.cells}
    return unset | cells


def test_the_comparison_of_graphs_sees_a_dropped_guard(tlc: Tlc) -> None:
    """The planted fault: the Python protocol without one fence is another graph than the module."""
    constants = (2, 1, 1, 1)
    system = ground(fencing.traced("kip-320"), dict(zip(NAMES, constants, strict=True)))
    _, states = hold_graph(tlc, system, cells_of, steps=actions_of_steps("kip-320"))
    assert states != states_without(system, "become_follower.leader_epoch_matches")
