"""Random crash points in a quorum: ``python -m tests.impl.quorum_crashes [POINTS] [SEED]`` at the root.

A fixed workload runs on simulated disks: snapshots are generated, the LBO advances, a voter falls behind it again and
again and starts over from a snapshot, leaders resign, machines crash. Before each change of a file around that, on any
machine, copies are taken of what a crash at this moment leaves. On each a node is started, and held to:

- it starts, and all that the ledger asks of a node holds of it;
- every committed record is still with a majority of the voters, this one counted as the crash has left it;
- its epoch is the one that it was in, or a newer one, and so is its vote.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

from fencepost.impl.files import SimulatedFiles
from fencepost.impl.net import Faults
from fencepost.impl.quorum import KeyValueMachine, QuorumNode
from fencepost.impl.wire.messages import Envelope

from .quorum_rack import SMALL, Rack, held

WORKLOAD_SEED = 630
ROUNDS = 12
_CHANGES = frozenset(("append", "truncate", "fsync", "rename", "remove", "fsync_dir"))
_ALWAYS = frozenset(("remove", "rename", "fsync_dir", "truncate"))

Hook = Callable[[Rack, int, str, str], None]


class CrashFailure(AssertionError):
    """What was found after a crash, and the numbers that bring it back."""


class _Silence:
    """A transport that reaches nobody."""

    def send(self, envelope: Envelope) -> None:
        """Lose it."""


def _is_around_snapshots(operation: str, path: str) -> bool:
    return operation in _ALWAYS or ".checkpoint" in path or "log-start-offset" in path or "quorum-state" in path


def run_workload(seed: int, hook: Hook, rounds: int = ROUNDS) -> Rack:
    """Run it; ``hook`` is called before each change of a file around snapshots, with the node whose disk it is."""
    chance = random.Random(seed)
    rack = Rack(4, seed=seed)

    def hook_of(node: int) -> Callable[[str, str], None]:
        def called(operation: str, path: str) -> None:
            if operation in _CHANGES and _is_around_snapshots(operation, path):
                hook(rack, node, operation, path)

        return called

    for node, disk in rack.disks.items():
        disk.hook = hook_of(node)
    serial = 0
    for number in range(rounds):
        rack.network.faults = Faults(latency=(1, 10), loss=0.02, duplication=0.05)
        leader = rack.elect()
        behind = chance.choice([node for node in rack.nodes if node != leader.address])
        rack.network.isolate(behind)
        for _ in range(3):
            leader = rack.elect()
            rack.put(leader, 6, serial)
            serial += 6
            rack.run(600)
        rack.network.heal()
        rack.run(400 if number % 2 else 1_500)
        if number % 3 == 2:
            node = chance.randrange(4)
            rack.crash(node, chance.randrange(1 << 32))
            rack.start(node)
        elif number % 3 == 1:
            rack.elect().resign()
    rack.elect()
    rack.run(2_000)
    return rack


def check_crash(rack: Rack, node: int, copy: SimulatedFiles) -> str:
    """Start a node on what a crash has left; gives how it started. Raises whatever is wrong."""
    former = rack.nodes.get(node)
    clock = rack.clock.at(node)
    booted = QuorumNode(node, copy, _Silence(), clock, KeyValueMachine(), SMALL)
    rack.ledger.check_started(booted)
    committed = len(rack.ledger.entries)
    voters = [booted if voter == node else rack.nodes[voter] for voter in SMALL.voters if voter in rack.nodes]
    if len(voters) == len(SMALL.voters):
        for offset in range(committed):
            holders = sum(held(voter, offset, rack.ledger.entries[offset]) for voter in voters)
            if holders < SMALL.majority:
                raise AssertionError(f"{holders} voters have what was committed at offset {offset}")
    if former is not None and booted.epoch < former.epoch:
        raise AssertionError(f"epoch {booted.epoch} after {former.epoch}")
    if former is not None and former.ballot.voted not in (-1, booted.ballot.voted) and booted.epoch == former.epoch:
        raise AssertionError(f"{booted.ballot} after {former.ballot}: the vote is forgotten")
    if booted.replica.counted_empty:
        return "empty"
    return "snapshot" if booted.replica.snapshots.latest is not None else "log"


def crash_points(points: int, seed: int, workload_seed: int = WORKLOAD_SEED) -> tuple[int, dict[str, int]]:
    """Check ``points`` crashes drawn by ``seed``, spread over all changes; gives their number, and how nodes started.

    Raises ``CrashFailure`` that names the change and the seed of the crash.
    """
    count = 0

    def counted(_rack: Rack, _node: int, _operation: str, _path: str) -> None:
        nonlocal count
        count += 1

    run_workload(workload_seed, counted)
    chance = random.Random(seed)
    whole, rest = divmod(points, count)
    extra = frozenset(chance.sample(range(count), rest))
    started = {"empty": 0, "snapshot": 0, "log": 0}
    at = 0

    def crash_here(rack: Rack, node: int, operation: str, path: str) -> None:
        nonlocal at
        here, at = at, at + 1
        for _ in range(whole + (here in extra)):
            crash_seed = chance.randrange(1 << 32)
            try:
                started[check_crash(rack, node, rack.disks[node].crashed_copy(crash_seed))] += 1
            except Exception as error:
                where = f"change {here} (node {node}, {operation} {path}), crash seed {crash_seed}"
                raise CrashFailure(f"{where}, seed {workload_seed}: {type(error).__name__}: {error}") from error

    run_workload(workload_seed, crash_here)
    return count, started


def main(points: int = 5000, seed: int = 1) -> None:
    """Run and print."""
    start = time.perf_counter()
    count, started = crash_points(points, seed)
    seconds = time.perf_counter() - start
    print(
        f"seed {seed}: {points} crashes at {count} changes of files in {seconds:.0f} s: every start-up valid, no "
        f"committed record lost; {started['snapshot']} started from a snapshot, {started['log']} from a log alone, "
        f"{started['empty']} from a log that counted as empty"
    )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
