"""What a quorum's node would find after a loss of power, held against what it has: after each event, and while it cuts.

A node is opened on a copy of its disk (``checks/crash_image.py``). The epoch and the vote in it are those that it goes
by, its snapshots are there, and so is all of the log that is synced, from the LBO on. A node that is fetching a
snapshot has nothing without it, and counts as empty.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple, cast

from ....impl.files.simulated import SimulatedFiles
from ....impl.quorum.config import QuorumConfig
from ....impl.quorum.node import QuorumNode
from ....impl.quorum.state_file import QUORUM_STATE
from ....impl.quorum.timers import ADVANCE_BEGIN, BEGIN_EPOCH, ELECTION, FETCH, FETCH_SNAPSHOT, GENERATE
from ....impl.replica.timers import Key
from ....impl.wire.messages import NO_LEADER
from ...adapters.stores import SegmentReader
from ...checks.crash_image import (
    CopiedNodes,
    NotFound,
    Nowhere,
    check_epochs,
    check_reads,
    check_stored,
    copy_of,
    joined,
    rows_of,
)
from ...checks.file_inventory import AccountedNodes, Folder, folder_of_quorum
from ...checks.recovery import plan_of, started
from ...checks.timers import Timed, TimedNodes, waits_of_quorum
from ...faults.corrupt_file import check_damaged, damaged, is_damaged, opened_damaged, readable, told_with
from ...simulation.system import StepResult
from .appended import Content
from .machines import BothMachines
from .quorum import PARTITION

Row = tuple[int, int, Content]
"""Offset, epoch and content."""
_AFTER, _AMID = "after a loss of power", "after a loss of power in the midst"


class Lasting(NamedTuple):
    """What a node has that should outlive its process.

    ``snapshots``: their ends and epochs; ``is_whole``: it is fetching no snapshot, without which its log is nothing.
    """

    epoch: int
    voted: int
    begin: int
    synced: int
    end: int
    rows: tuple[Row, ...]
    snapshots: tuple[tuple[int, int], ...]
    high_watermark: int
    is_whole: bool


def lasting_of(node: QuorumNode, rows: Sequence[Row]) -> Lasting:
    """Of a node that is open; ``rows``: what is in its segments."""
    replica, ballot = node.replica, node.ballot
    begin, end = replica.begin, replica.end
    return Lasting(
        ballot.epoch,
        ballot.voted,
        begin,
        min(replica.log.recovery_point, end),
        end,
        tuple(row for row in rows if begin <= row[0] < end),
        tuple((each.end_offset, each.epoch) for each in replica.snapshots.ids),
        replica.high_watermark,
        replica.fetching is None,
    )


def missing_timers(node: QuorumNode) -> list[str]:
    """The timers without which a node would never do again what its role has it do from time to time (KIP-595)."""
    wanted: set[Key] = set()
    leads = node.is_leader
    if leads:
        wanted |= {ADVANCE_BEGIN} | ({BEGIN_EPOCH} if len(node.config.voters) > 1 else set())
    elif node.is_voter or node.leader_id != NO_LEADER:
        wanted.add(ELECTION)
    if not leads and (node.leader_id != NO_LEADER or not node.is_voter):
        wanted.add(FETCH)
    if not leads and node.leader_id != NO_LEADER and node.replica.fetching is not None:
        wanted.add(FETCH_SNAPSHOT)
    if node.replica.wants_snapshot(node.config.snapshot_minimum_records):
        wanted.add(GENERATE)
    return sorted(key[0] for key in wanted - set(node.timers.keys()))


def check_after(has: Lasting, found: Lasting) -> None:
    """Hold what would be found against what the node has. Raises NotFound."""
    if (found.epoch, found.voted) != (has.epoch, has.voted):
        told = f"the vote of epoch {found.epoch} would be for {found.voted}, it is in {has.epoch} for {has.voted}"
        raise NotFound(f"{_AFTER} {told}")
    if not has.is_whole:
        return
    if found.snapshots != has.snapshots:
        raise NotFound(f"{_AFTER} the snapshots would be {found.snapshots}, they are {has.snapshots}")
    if found.begin != has.begin or not has.synced <= found.end <= has.end:
        told = f"from {found.begin} to {found.end}, it is from {has.begin} to {has.end}, synced up to {has.synced}"
        raise NotFound(f"{_AFTER} the log would be {told}")
    if found.rows != _below(has.rows, found.end):
        raise NotFound(f"{_AFTER} the log would have {found.rows}, it has {has.rows}")
    if found.high_watermark > has.high_watermark:
        told = f"{found.high_watermark}, it is {has.high_watermark}"
        raise NotFound(f"{_AFTER} the high watermark would be {told}")


def check_amid(before: Lasting, after: Lasting, found: Lasting) -> None:
    """Hold what would be found in the midst of an event against what the node had before and has after. NotFound.

    A node comes to a newer epoch without a vote in it.
    """
    votes = {(each.epoch, each.voted) for each in (before, after)}
    newer = before.epoch < found.epoch <= after.epoch and found.voted == NO_LEADER
    if (found.epoch, found.voted) not in votes and not newer:
        raise NotFound(f"{_AMID} the vote of epoch {found.epoch} would be for {found.voted}")
    could_be = before.rows, after.rows, joined(before.rows, after.rows)
    if found.rows not in (_from(each, found.begin, found.end) for each in could_be):
        raise NotFound(f"{_AMID} the log would have {found.rows}, it had {before.rows} and has {after.rows}")
    cuts_only = before.is_whole and after.is_whole and before.begin == after.begin
    if cuts_only and found.end < min(before.synced, after.synced):
        raise NotFound(f"{_AMID} the log would end at {found.end}, and was synced up to {before.synced}")


def _below(rows: Sequence[Row], end: int) -> tuple[Row, ...]:
    return tuple(row for row in rows if row[0] < end)


def _from(rows: Sequence[Row], begin: int, end: int) -> tuple[Row, ...]:
    return tuple(row for row in rows if begin <= row[0] < end)


class LastingNodes(CopiedNodes, AccountedNodes, TimedNodes):
    """A quorum whose nodes are held to it."""

    _config: QuorumConfig
    _remains: SegmentReader[tuple[int, int, Content]]

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        self._lasting: dict[int, tuple[int, int, Lasting]] = {}
        """By node that is up: how often its disk had changed, and what it had synced, when it was looked at last."""
        return super().reset(constants, seed)

    def _timed(self, node: int) -> Iterator[Timed]:
        yield Timed(cast(QuorumNode, self.nodes[node]).timers, waits_of_quorum(self._config))

    def _look_for_losses(self, number: int, node: QuorumNode) -> None:
        """After an event of a node that is up. Raises NotFound, and Unaccounted."""
        files = self.store.files(number)
        if not isinstance(files, SimulatedFiles):
            return
        missing = missing_timers(node)
        if missing:
            raise NotFound(f"node {number} will never wake for {', '.join(missing)} again")
        log = node.replica.log
        changes, synced = files.changes, log.recovery_point
        self._account(number, files, lambda: {log.folder: folder_of_quorum(node.replica)})
        looked = self._lasting.get(number)
        if looked is not None and looked[:2] == (changes, synced):
            return
        has = lasting_of(node, self._rows(files))
        self._lasting[number] = changes, synced, has
        if looked is not None:
            for index, copy in enumerate(self._amid(number)):
                check_amid(looked[2], has, self._found_on(number, copy, self._copy_seed + index))
        if self._is_drawn():
            epochs = [(each.epoch, each.start_offset) for each in log.epochs.entries]
            check_stored(files, PARTITION, epochs, log.log_start, synced)
            check_epochs(epochs, [row[:2] for row in has.rows], has.begin, has.end)
            if log.offline is None:
                check_reads(log, {row[0]: row for row in self._rows(files)}, self._remains.decode)
            copy = copy_of(files, self._copy_seed)
            if is_damaged(self._copy_seed):
                self._look_at_damaged(number, has, copy)
            else:
                check_after(has, self._found_on(number, copy, self._copy_seed))

    def _found_on(self, number: int, copy: SimulatedFiles, seed: int) -> Lasting:
        """What a node has that is opened on a copy of its disk."""

        def folders(node: QuorumNode) -> Mapping[str, Folder]:
            return {node.replica.log.folder: folder_of_quorum(node.replica)}

        node, copy = started(lambda files: self._open_on(number, files), copy, plan_of(seed), folders)
        rows = self._rows(copy)
        found, log = lasting_of(node, rows), node.replica.log
        if found.is_whole:
            epochs = [(each.epoch, each.start_offset) for each in log.epochs.entries]
            check_epochs(epochs, [row[:2] for row in found.rows], found.begin, found.end, opened=True)
        return found

    def _look_at_damaged(self, number: int, has: Lasting, copy: SimulatedFiles) -> None:
        if not has.is_whole:
            return
        damage = damaged(copy, PARTITION, self._copy_seed, has.begin, [f"{PARTITION}/{QUORUM_STATE}"])
        if damage is None:
            return
        node, refuses = opened_damaged(lambda files: self._open_on(number, files), copy, damage)
        if node is None or refuses:
            return
        found = lasting_of(node, self._rows(copy))
        if damage.loses is None:
            with told_with(damage):
                check_after(has, found)
        elif found.begin <= damage.loses:  # else a snapshot that reaches further has taken the log's place
            check_damaged(damage, found.end, readable(has.rows, found.begin), readable(found.rows, found.begin))

    def _open_on(self, number: int, files: SimulatedFiles) -> QuorumNode:
        machine = BothMachines(self._parts.key_value_machine())
        return self._parts.quorum_node(number, files, Nowhere(), self.clock.at(number), machine, self._config)

    def _rows(self, files: SimulatedFiles) -> tuple[Row, ...]:
        return rows_of(files, str(PARTITION), self._remains.decode)
