"""TLC on ``specs/Kip630Quorum.tla``: the graph, edge for edge; whole where it is small, else from drawn states."""

from __future__ import annotations

from typing import Any

import pytest
from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore.graph import build_graph
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.snapshots import snapshots

from .cfgs import whole_cfg
from .drawn import draw, edges_of_python, edges_of_tlc, read_edges
from .tlc import Tlc

QUORUM = "kip-630-quorum"
NAMES = tuple(name for name in snapshots.constants if name != "late_responses")
# replicas/observers/log size/leader epoch/chunks/minimum records/lag expires, as the cfgs have them
VOTERS = (2, 0, 1, 1, 1, 0, 1)
OBSERVER = (2, 1, 2, 0, 1, 0, 1)
GRAPHS = {VOTERS: (3361, 26), OBSERVER: (5595, 22)}
DRAWN = (3, 0, 2, 2, 2, 0, 1)
LONGER = (3, 0, 3, 3, 1, 0, 1)
SELDOM = frozenset({"resume", "resume_empty", "resign", "stand", "look_for_leader", "lose_log", "lose_snapshot"})
"""What undoes what others have come to."""


def at(constants: tuple[int, ...], *dropped: str) -> System:
    values = {**dict(zip(NAMES, constants, strict=True)), "late_responses": 0}
    return ground(snapshots.traced(QUORUM).drop(*dropped), values)


def replica_set(mask: int) -> frozenset[int]:
    return frozenset(replica for replica in range(mask.bit_length()) if mask >> replica & 1)


def told(system: System, state: State) -> dict[str, Any]:
    """A state by the variables of the module."""
    cell = {each.name: state[each.number] for each in system.layout.cells}
    replicas, offsets = range(system.constants["replicas"]), range(system.constants["log_size"])

    def per(name: str, indices: range) -> dict[int, int]:
        return {index: cell[f"{name}[{index}]"] for index in indices}

    def of(replica: int, **names: str) -> dict[str, Any]:
        return {tla: cell[f"{ours}[{replica}]"] for tla, ours in names.items()}

    return {
        "epochLeader": per("epoch_leader", range(system.constants["max_leader_epoch"] + 1)),
        "replicaLog": {
            r: of(r, lbo="lbo", leo="leo", synced="synced") | {"epochs": per(f"record_epoch[{r}]", offsets)}
            for r in replicas
        },
        "replicaState": {
            r: of(r, leaderEpoch="leader_epoch", hw="hw", leader="leader", voted="voted")
            | {"supporters": replica_set(cell[f"supporters[{r}]"])}
            for r in replicas
        },
        "counted": {r: per(f"counted[{r}]", replicas) for r in replicas},
        "snapshotFiles": {
            r: {o: {part: cell[f"snapshot_{part}[{r}][{o}]"] for part in ("size", "epoch", "records")} for o in offsets}
            for r in replicas
        },
        "fetchState": {r: of(r, offset="fetching", epoch="fetching_epoch", position="position") for r in replicas},
        "committed": per("committed", offsets),
        "told": per("told", offsets),
    }


@pytest.mark.sampled(2)
@pytest.mark.parametrize("constants", list(GRAPHS), ids=lambda each: "/".join(map(str, each)))
def test_the_graph_is_that_of_the_python_protocol(tlc: Tlc, constants: tuple[int, ...]) -> None:
    """Same states, depth and, by action name, edges; with the promises of the cfg."""
    dump = tlc.scratch / "graph.dot"
    cfg = whole_cfg(snapshots, QUORUM, "/".join(map(str, at(constants).constants.values())))
    run = tlc.run("Kip630Quorum", cfg, "-dump", "dot,actionlabels", str(dump))
    system = at(constants)
    graph = build_graph(system)
    assert (run.violated, run.distinct, run.depth) == (None, *GRAPHS[constants])
    ours = edges_of_python(system, tuple(graph.states), told)
    assert read_edges(dump.read_text(encoding="ascii")) == ours
    mutant, some = at(constants, "resume.keeps_synced"), tuple(graph.states)[:500]
    assert not edges_of_python(mutant, some, told) <= ours, "the comparison would see a dropped guard"


def test_from_drawn_states_the_steps_are_those_of_the_python_protocol(tlc: Tlc) -> None:
    """Where logs diverge, snapshots have several chunks, and a crash may come in the midst of a full reset."""
    system = at(DRAWN)
    sample = draw(system, 3, 1500, 12, SELDOM)
    # An observer's, which the graph above has, and the one that the run below comes to.
    assert set(system.actions) - sample.told <= {"look_for_leader", "truncate_batch"}
    ours = edges_of_python(system, sample.states, told)
    assert edges_of_tlc(tlc, system, sample.states, told) == ours


def test_a_batch_within_which_logs_part_goes_as_in_the_python_protocol(tlc: Tlc) -> None:
    """Along a run to where a follower has two records of an epoch of which its leader has none, and one of a later."""
    system = at(LONGER)
    reference, states = Reference(system), [system.initial]

    def go(action: str, **params: int) -> None:
        after = reference.step(states[-1], action, tuple(params.items()))
        assert after is not None, (action, params)
        states.append(after)

    for epoch, records in enumerate((2, 1, 1, 0)):
        candidate, voter = epoch % 2, 2
        go("stand", replica=candidate, epoch=epoch)
        for each in (voter, 1 - candidate):
            go("hear_of_candidate", candidate=candidate, voter=each)
        go("give_vote", candidate=candidate, voter=voter)
        go("count_vote", candidate=candidate, voter=voter)
        go("take_office", replica=candidate)
        for _ in range(records):
            go("client_append", leader=candidate)
    go("begin_epoch", leader=1, follower=0)
    ours = edges_of_python(system, states, told)
    ends = [
        end
        for end in range(3)
        if not reference.refused_by(states[-1], "truncate_batch", (("leader", 1), ("follower", 0), ("end", end)))
    ]
    assert ends == [0], "the two of epoch 0 are one batch, as far as anybody sees, and part at 1"
    assert edges_of_tlc(tlc, system, states, told) == ours
