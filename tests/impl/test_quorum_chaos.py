"""Quorums whose network loses, repeats and delays messages and is cut, and whose machines crash: nothing is lost."""

from __future__ import annotations

import random

import pytest
from fencepost.impl.net import Faults

from .quorum_rack import Rack

ROUNDS = 40


def chaos(seed: int, nodes: int, voters: int, rounds: int = ROUNDS) -> Rack:
    """Rounds of random faults, then peace, in which all nodes must come to agree."""
    chance = random.Random(seed)
    rack = Rack(nodes, seed=seed, voters=tuple(range(voters)))
    serial = 0
    for _ in range(rounds):
        rack.network.faults = Faults(
            latency=(1, chance.choice((1, 30, 150))),
            loss=chance.choice((0.0, 0.05, 0.3)),
            duplication=chance.choice((0.0, 0.1, 0.3)),
        )
        what = chance.random()
        node = chance.randrange(nodes)
        if what < 0.25 and node in rack.nodes:
            rack.crash(node, chance.randrange(1 << 32))
        elif what < 0.45:
            rack.network.isolate(node)
        elif what < 0.6:
            rack.network.heal()
        elif what < 0.65 and node in rack.nodes:
            rack.nodes[node].resign()
        if chance.random() < 0.5:
            for down in sorted(set(range(nodes)) - set(rack.nodes)):
                rack.start(down)
        for leader in [each for each in rack.nodes.values() if each.is_leader]:
            count = chance.randrange(8)
            rack.put(leader, count, serial)
            serial += count
        rack.run(chance.choice((20, 100, 400, 1_000)))
    rack.network.faults = Faults()
    rack.network.heal()
    for down in sorted(set(range(nodes)) - set(rack.nodes)):
        rack.start(down)
    rack.put(rack.elect(), 12, serial)
    rack.run(10_000)
    return rack


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("nodes", "voters"), [(3, 3), (4, 3), (2, 1), (5, 5)])
@pytest.mark.parametrize("seed", range(4))
def test_no_committed_record_is_lost_and_all_agree_in_the_end(nodes: int, voters: int, seed: int) -> None:
    rack = chaos(seed, nodes, voters)
    states = [node.state() for node in rack.nodes.values()]
    assert {state.applied for state in states} == {len(rack.ledger.entries)}
    assert all(state.fetching is None for state in states)
    assert len(rack.ledger.entries) > 12
    assert rack.ledger.states_checked > 100


def test_the_faults_meet_snapshots_that_are_fetched_and_logs_that_diverge() -> None:
    """What the seeds above run through, so that they do not hold for lack of trouble."""
    seen: set[str] = set()
    for seed in range(4):
        rack = chaos(seed, 4, 3, 25)
        for node in rack.nodes.values():
            seen |= {"generated"} if node.replica.snapshots.latest is not None else set()
            seen |= {"begun later"} if node.replica.begin > 0 else set()
            seen |= {"fetched"} if "LoadSnapshotLatencyMs_count 0.0" not in node.metrics.text() else set()
        counts = rack.network.counts
        seen |= {name for name in ("lost", "duplicated", "cut", "reordered") if getattr(counts, name)}
    assert seen == {"generated", "begun later", "fetched", "lost", "duplicated", "cut", "reordered"}
