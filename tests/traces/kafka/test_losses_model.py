"""Losses in directories of random reachable states: never in a safe variant, and found in unsafe ones."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest
from fencepost.model.core.registry import REGISTRY
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.directories import read_brokers
from fencepost.traces.kafka.losses import NAME
from fencepost.traces.stepper import CompiledStepper, stepper_for

from .encoder import Partition, batch, write_broker

if TYPE_CHECKING:
    from pathlib import Path

    from fencepost.model.core.ground import State
    from fencepost.model.core.protocol import TracedProtocol
    from fencepost.traces.stepper import Stepper

SEED = 320
CONSTANTS = {"replicas": 3, "log_size": 3, "max_records": 3, "max_leader_epoch": 5}
Cache = list[tuple[int, int]]


class Walk:
    """A random run, with the epoch cache that each broker would have."""

    def __init__(self, stepper: Stepper, rng: random.Random) -> None:
        self.stepper = stepper
        self.rng = rng
        self.state: State = stepper.system.initial
        self.caches: list[Cache] = [[] for _ in range(CONSTANTS["replicas"])]

    def read(self, name: str) -> int:
        return self.state[self.stepper.layout.by_name[name]]

    def step(self) -> bool:
        steps = self.stepper.every(self.state)
        if not steps:
            return False
        weights = [8 if each.action.startswith("controller") else 20 for each in steps]
        (taken,) = self.rng.choices(steps, weights)
        self.state = taken.state
        params = dict(taken.params)
        for replica, cache in enumerate(self.caches):
            end = self.read(f"leo[{replica}]")
            if taken.action == "become_leader" and params["leader"] == replica:
                cache.append((params["epoch"], end))
            cache[:] = [(epoch, start) for epoch, start in cache if start <= end]
            kept = [
                (epoch, start)
                for epoch, start in cache
                if start == end or self.read(f"record_epoch[{replica}][{start}]") == epoch
            ]
            for offset in range(end):
                epoch = self.read(f"record_epoch[{replica}][{offset}]")
                if all(known != epoch for known, _ in kept):
                    kept.append((epoch, offset))
            kept.sort()
            # A leader of a later epoch at the same offset replaces an entry without records.
            cache[:] = [e for i, e in enumerate(kept) if i + 1 == len(kept) or kept[i + 1][1] > e[1]]
        return True

    def replica(self, replica: int) -> Partition:
        end = self.read(f"leo[{replica}]")
        data = b"".join(
            batch(
                offset,
                [f"record {self.read(f'record_id[{replica}][{offset}]')}".encode()],
                epoch=self.read(f"record_epoch[{replica}][{offset}]"),
            )
            for offset in range(end)
        )
        return Partition({0: data}, self.caches[replica], self.read(f"hw[{replica}]"))


def verdicts(walk: Walk, place: Path) -> list[str]:
    roots = [
        write_broker(place / f"b{replica}", replica, {"t-0": walk.replica(replica)})
        for replica in range(CONSTANTS["replicas"])
    ]
    return [each.verdict for each in check_brokers(read_brokers(roots)).checks if each.check == NAME]


def walks(traced: TracedProtocol, tmp_path: Path, count: int, steps: int) -> list[str]:
    stepper = stepper_for(traced, CONSTANTS, often=True)
    assert isinstance(stepper, CompiledStepper)
    found: list[str] = []
    for number in range(count):
        rng = random.Random(f"{SEED} {number}")
        walk = Walk(stepper, rng)
        # A run that ends has healed; the directories of a running cluster are of any moment.
        for _ in range(rng.randrange(5, steps)):
            if not walk.step():
                break
        found += verdicts(walk, tmp_path / str(number))
    return found


@pytest.mark.parametrize("variant", ["kip-320", "kip-320-brokers", "kip-320-restarts"])
def test_safe_variants_lose_nothing(tmp_path: Path, variant: str) -> None:
    found = walks(REGISTRY["fencing"].protocol.traced(variant), tmp_path, 150, 40)
    assert "violated" not in found and found.count("holds") > 50


def test_unclean_elections_show_their_losses(tmp_path: Path) -> None:
    unclean = REGISTRY["fencing"].protocol.traced("kip-320").drop("controller_elect_leader.in_quorum_isr")
    found = walks(unclean, tmp_path, 300, 40)
    assert found.count("violated") >= 3
