"""Runs of ``tiering`` on the reference interpreter, as a story is told.

Constants: replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

from functools import cache

from fencepost.model.core.ground import System, ground
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.tiering import tiering

Call = tuple[str | int, ...]
SAFE = "kip-1023-safe"
A, B = 0, 1
FOLLOWING = (
    "follower_fetch",
    "truncate_fully",
    "build_to_local_start",
    "build_to_epuo",
    "start_at_local_start",
    "start_at_log_start",
)


@cache
def system_of(variant: str, constants: str, *dropped: str) -> System:
    values = dict(zip(tiering.constants, map(int, constants.split("/")), strict=True))
    return ground(tiering.traced(variant).drop(*dropped), values)


class Run:
    """A run of the reference interpreter; a call is an action and the values of its parameters."""

    def __init__(self, constants: str = "2/4/2/1/1/0/1/1", variant: str = SAFE, *dropped: str) -> None:
        self.system = system_of(variant, constants, *dropped)
        self.reference = Reference(self.system)
        self.state = self.system.initial

    def __call__(self, *calls: Call) -> None:
        for call in calls:
            assert self.refused(call) is None, (call, self.refused(call))
            after = self.reference.step(self.state, *self._step(call))
            assert after is not None
            self.state = after

    def _step(self, call: Call) -> tuple[str, tuple[tuple[str, int], ...]]:
        action = str(call[0])
        return action, tuple(zip(tiering.actions[action].params, map(int, call[1:]), strict=True))

    def refused(self, call: Call) -> str | None:
        return self.reference.refused_by(self.state, *self._step(call))

    def __getitem__(self, cell: str) -> int:
        return self.state[self.system.layout.by_name[cell]]

    def row(self, name: str, first: int) -> list[int]:
        """What a variable holds at all offsets."""
        return [self[f"{name}[{first}][{offset}]"] for offset in range(self.system.constants["log_size"])]

    def offsets(self, replica: int) -> tuple[int, int, int]:
        """Log start, local log start, LEO."""
        return self[f"log_start[{replica}]"], self[f"local_start[{replica}]"], self[f"leo[{replica}]"]

    def checkpoint(self, replica: int) -> dict[int, int]:
        """A replica's leader epochs, each with its first offset: what the text calls leader_epochs."""
        start, _, end = self.offsets(replica)
        epochs = self.row("record_epoch", replica)[start:end]
        return {epoch: start + epochs.index(epoch) for epoch in sorted(set(epochs))}

    def ways(self, leader: int, follower: int) -> set[str]:
        """The actions by which a follower may go on."""
        found = set()
        for action in FOLLOWING:
            by_epoch = "epoch" in tiering.actions[action].params
            for epoch in range(self.system.constants["max_leader_epoch"] + 1) if by_epoch else [-1]:
                call: Call = (action, leader, follower, *([epoch] if by_epoch else []))
                if self.refused(call) is None:
                    found.add(action)
        return found

    def broken(self) -> list[str]:
        return self.reference.broken(self.state)


ALONE: list[Call] = [("elect_leader", A), ("find_highest_remote_offset", A), ("leader_shrink_isr", A, B)]
"""A leads alone, and B is empty and out of the ISR."""


def written(count: int, leader: int = A) -> list[Call]:
    return [("leader_write", leader), ("leader_inc_high_watermark", leader)] * count


def uploaded(start: int, end: int, leader: int = A) -> list[Call]:
    return [("start_copy", leader, end), ("copy_segment", leader, start), ("finish_copy", leader, start)]
