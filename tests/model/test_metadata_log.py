"""What ``controller`` takes for granted of the metadata quorum, held against ``snapshots``, which has it in full.

Every step of three voters is looked at, at small constants: it is a step of ``METADATA_LOG``, or changes nothing there.
Beside a state of the quorum stands what no replica keeps, the log of each epoch's leader. The quorum is that of a
controller: a leader's first record begins its epoch, and it writes no other before it has counted that one.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

import pytest
from fencepost.model.core.ground import State, System, ground
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.protocols.controller.metadata_log import METADATA_LOG
from fencepost.model.protocols.snapshots import snapshots

Log = tuple[int, ...]
"""The epochs of its records."""
Histories = tuple[Log | None, ...]
"""By epoch the log of its leader; None where it never had one."""

STEPS = (
    *("become_candidate", "grant_vote", "become_follower", "leader_write", "leader_inc_high_watermark"),
    *("follower_fetch", "follower_truncate"),
)
"""Elections and replication; no log is cut, and no snapshot is made."""
NONE = -1


def voters(log_size: int, max_leader_epoch: int, *more: str) -> System:
    """Three voters whose steps are these, and ``more``."""
    constants = dict.fromkeys(snapshots.constants, 0) | {"replicas": 3, "max_chunks": 1}
    system = ground(snapshots.traced(), {**constants, "log_size": log_size, "max_leader_epoch": max_leader_epoch})
    return replace(system, instances=[each for each in system.instances if each.action in (*STEPS, *more)])


def begins_epoch(log: Log, offset: int) -> bool:
    """The record is the first of its epoch."""
    return log.index(log[offset]) == offset


def others(log: Log, of_epoch: dict[int, int]) -> Log:
    """The records that begin no epoch, by the number of their epoch among those that had a leader."""
    return tuple(of_epoch[epoch] for offset, epoch in enumerate(log) if not begins_epoch(log, offset))


@dataclass
class Comparison:
    """What was found. ``apart``: steps that are none of the abstraction, with both sides, by action."""

    distinct: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    apart: Counter[str] = field(default_factory=Counter)
    came_back: int = 0
    """Elections by which the newest leader has records that the one before it lacked."""
    deposed: int = 0
    """Records that a deposed controller appended, which may come back."""


class Quorum:
    """A system of ``snapshots``, looked at as the log of a controller."""

    def __init__(self, system: System, *, begins_epochs: bool = True) -> None:
        """``begins_epochs``: leaders write as is said above; else whatever ``snapshots`` lets them."""
        self.system = system
        self.begins_epochs = begins_epochs
        self._by_name = system.layout.by_name
        self._staged = stage(system)
        self._epochs = system.constants["max_leader_epoch"] + 1
        self._offsets = system.constants["log_size"]

    def cell(self, state: State, name: str, *index: int) -> int:
        return state[self._by_name[name + "".join(f"[{i}]" for i in index)]]

    def log(self, state: State, replica: int) -> Log:
        return tuple(self.cell(state, "record_epoch", replica, o) for o in range(self.cell(state, "leo", replica)))

    def may_write(self, state: State, leader: int) -> bool:
        """It has written nothing in its epoch, or what began that is committed as far as it knows."""
        log, epoch = self.log(state, leader), self.cell(state, "leader_epoch", leader)
        return epoch not in log or log.index(epoch) < self.cell(state, "hw", leader)

    def remembered(self, histories: Histories, state: State) -> Histories:
        """With the logs of those that lead an epoch, and are in it; of a leader that is gone it stays as it was."""

        def now(epoch: int) -> Log | None:
            leader = self.cell(state, "epoch_leader", epoch)
            leads = leader != NONE and self.cell(state, "leader_epoch", leader) == epoch
            return self.log(state, leader) if leads else histories[epoch]

        return tuple(map(now, range(self._epochs)))

    def mapped(self, state: State, histories: Histories) -> State | None:
        """The state of ``METADATA_LOG``. Its log is that of the newest epoch of which a record is committed.

        None where the newest leader's log is not the beginning of that one.
        """
        elected = [epoch for epoch, log in enumerate(histories) if log is not None]
        of_epoch = {epoch: number for number, epoch in enumerate(elected)}
        cells = (self.cell(state, "committed", offset) for offset in range(self._offsets))
        committed = tuple(epoch for epoch in cells if epoch != NONE)
        active = max(committed, default=NONE)
        log = others((histories[active] or ()) if committed else (), of_epoch)
        newest = others((histories[elected[-1]] or ()) if elected else (), of_epoch)
        stable = others(committed, of_epoch)
        if newest != log[: len(newest)] or stable != newest[: len(stable)]:
            return None
        records = (*log, *(NONE for _ in range(self._offsets - len(log))))
        return (len(elected) - 1, of_epoch.get(active, NONE), len(log), len(newest), len(stable), *records)

    def compare(self, *, is_cut: bool = False, kinds: int = 0) -> Comparison:
        """Go through all states, and hold each step against the abstraction's, until so many kinds are found apart.

        ``is_cut``: of those that one is left out by which a record comes back, and by which a deposed one appends.
        """
        constants = {"log_size": self._offsets, "max_controller_epoch": self._epochs - 1}
        reference = Reference(ground(METADATA_LOG.traced(), constants))
        names = [cell.name for cell in reference.system.layout.cells]
        assert names[:5] == ["newest_epoch", "active_epoch", "end", "leader_end", "stable"]
        known: dict[State, dict[State, str]] = {}
        no_logs: Histories = (None,) * self._epochs
        initial = self.system.initial, no_logs
        assert self.mapped(*initial) == reference.system.initial
        seen: dict[tuple[State, Histories], State] = {initial: reference.system.initial}
        level: list[tuple[State, Histories]] = [initial]
        found = Comparison()
        while level:
            following = []
            for state, histories in level:
                before = seen[state, histories]
                if before not in known:
                    known[before] = {
                        after: action
                        for action, _, after in reference.successors(before)
                        if not (is_cut and is_of_deposed(action, before, after))
                    }
                for number, after in self._staged.successors(state):
                    instance = self.system.instances[number]
                    writes = instance.action == "leader_write"
                    if writes and self.begins_epochs and not self.may_write(state, dict(instance.params)["leader"]):
                        continue
                    later = after, self.remembered(histories, after)
                    now = seen.get(later) or self.mapped(*later)
                    if now is None or now not in (before, *known[before]):
                        found.apart[instance.action] += 1
                        continue
                    self._count(found, known[before].get(now), before, now)
                    if later not in seen:
                        seen[later] = now
                        following.append(later)
                if found.apart and len(found.apart) == kinds:
                    return found
            level = following
        found.distinct = len(seen)
        return found

    @staticmethod
    def _count(found: Comparison, action: str | None, before: State, now: State) -> None:
        if before == now or action is None:
            return
        found.taken[action] += 1
        found.came_back += action == "elect" and is_of_deposed(action, before, now)
        found.deposed += action == "append" and is_of_deposed(action, before, now)


def is_of_deposed(action: str, before: State, now: State) -> bool:
    """An election by which a leader has more than the one before it, or an append of who is deposed.

    By place: the newest epoch, that of who is active, the log's end, and the newest leader's.
    """
    return (action == "elect" and -1 < before[0] and before[3] < now[3]) or (
        action == "append" and before[1] < before[0]
    )


def test_every_step_of_a_quorum_is_one_of_the_log_or_nothing() -> None:
    found = Quorum(voters(2, 2)).compare()
    assert found.apart == {}
    assert found.distinct == 56584
    assert set(found.taken) == {"elect", "activate", "commit", "append"}
    assert found.came_back > 0 and found.deposed > 0


@pytest.mark.nightly(seconds=180)
def test_with_crashes_too() -> None:
    found = Quorum(voters(2, 2, "restart")).compare()
    assert (found.apart, found.came_back > 0, found.deposed > 0) == ({}, True, True)


@pytest.mark.nightly(seconds=180)
def test_with_more_records() -> None:
    """A leader commits a record of an older epoch by its own, and two are pending at once."""
    found = Quorum(voters(4, 1)).compare()
    assert (found.apart, found.taken["commit"] > 0) == ({}, True)


def test_who_writes_before_its_epoch_has_begun_is_told() -> None:
    """The planted fault: a leader's records are not held back, so that two logs differ in more than where they end."""
    found = Quorum(voters(2, 2), begins_epochs=False).compare(kinds=1)
    assert set(found.apart) == {"leader_write"}


def test_a_log_that_is_cut_at_each_election_would_not_do() -> None:
    """The other planted fault: what the next leader lacks is gone at once, and a deposed one appends nothing."""
    found = Quorum(voters(2, 2)).compare(is_cut=True, kinds=2)
    assert set(found.apart) == {"grant_vote", "leader_write"}


def test_the_log_has_these_states() -> None:
    answer = explore(Query.of(ground(METADATA_LOG.traced(), {"log_size": 2, "max_controller_epoch": 2})))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, 70, 11)
