"""A quorum in simulation: nodes on simulated disks and a simulated network, and a ledger that holds them to promises.

The ledger knows what was committed, by the high watermark of whoever first had it. Held after each event, of each node:

- below its high watermark its log has what was committed, and its machine what that makes of it;
- each of its snapshots names a committed record and holds the state up to that one;
- LBO <= high watermark <= LEO, and no LBO above 0 without a whole snapshot that reaches it, unless one is fetched;
- whoever leads the newest epoch has every committed record, in its log or in a snapshot.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import LogConfig, Record
from fencepost.impl.net import SimulatedClock, SimulatedNetwork
from fencepost.impl.quorum import KeyValueMachine, QuorumConfig, QuorumNode, SnapshotId

SMALL = QuorumConfig(
    voters=(0, 1, 2),
    log=LogConfig(segment_bytes=400, index_interval_bytes=100),
    snapshot_minimum_records=5,
    max_replication_lag_ms=500,
    election_timeout_ms=300,
    fetch_timeout_ms=500,
    request_timeout_ms=100,
    fetch_wait_ms=20,
    retry_backoff_ms=20,
    fetch_max_bytes=200,
    snapshot_max_bytes=70,
    begin_offset_interval_ms=100,
)
"""Settings with which everything happens within a few simulated seconds."""


class Entry(NamedTuple):
    """A committed record. Control records have a key and value of the quorum's own."""

    epoch: int
    key: bytes | None
    value: bytes | None
    control: bool


class Violation(AssertionError):
    """A promise that was broken."""


class Ledger:
    """What was committed."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self._states: list[dict[bytes, bytes]] = [{}]
        self._checked: dict[int, object] = {}
        self.states_checked = 0

    def state(self, end: int) -> dict[bytes, bytes]:
        """What a machine holds that has applied everything below ``end``."""
        while len(self._states) <= end:
            entry = self.entries[len(self._states) - 1]
            after = dict(self._states[-1])
            if not entry.control and entry.key is not None:
                if entry.value is None:
                    after.pop(entry.key, None)
                else:
                    after[entry.key] = entry.value
            self._states.append(after)
        return self._states[end]

    def check(self, node: QuorumNode, newest_epoch: int) -> None:
        """Hold a node to the promises, and learn from it. Raises ``Violation``."""
        state = node.state()
        if self._checked.get(node.address) == (id(node), state):
            return
        where = f"node {node.address}, {state}"
        if not state.begin <= state.high_watermark <= state.end:
            raise Violation(f"{where}: offsets are out of order")
        if (
            state.begin > 0
            and state.fetching is None
            and all(each.end_offset < state.begin for each in state.snapshots)
        ):
            raise Violation(f"{where}: nothing has what is before the LBO")
        for offset, entry in _entries(node, state.begin, state.high_watermark):
            if offset == len(self.entries):
                self.entries.append(entry)
            elif offset > len(self.entries):
                raise Violation(f"{where}: committed at {offset}, nobody had {len(self.entries)}")
            elif entry != self.entries[offset]:
                raise Violation(f"{where}: {entry} at {offset}, committed was {self.entries[offset]}")
        if state.high_watermark > len(self.entries):
            raise Violation(f"{where}: the high watermark is beyond all that was committed")
        for snapshot in state.snapshots:
            self._check_snapshot(where, node, snapshot)
        machine = node.replica.machine
        assert isinstance(machine, KeyValueMachine)
        if machine.values != self.state(state.applied):
            raise Violation(f"{where}: the machine is not what the first {state.applied} records make")
        if state.role == "leader" and state.epoch == newest_epoch:
            self._check_complete(where, node)
        self._checked[node.address] = id(node), state
        self.states_checked += 1

    def check_started(self, node: QuorumNode) -> None:
        """Hold a node to the promises that has just started on a disk of its own, apart from the others."""
        known = len(self.entries)
        before = self._checked.pop(node.address, None)
        self.check(node, newest_epoch=-2)
        assert len(self.entries) == known, "a node that has just started knows of no more than was committed"
        del self._checked[node.address]
        if before is not None:
            self._checked[node.address] = before

    def _check_snapshot(self, where: str, node: QuorumNode, snapshot: SnapshotId) -> None:
        if not 0 < snapshot.end_offset <= len(self.entries):
            raise Violation(f"{where}: {snapshot} includes what is not committed")
        if self.entries[snapshot.end_offset - 1].epoch != snapshot.epoch:
            raise Violation(f"{where}: {snapshot} names another record than the committed one")
        machine = KeyValueMachine()
        with node.replica.snapshots.opened(snapshot) as file:
            machine.load(snapshot, file)
        if machine.values != self.state(snapshot.end_offset):
            raise Violation(f"{where}: {snapshot} holds another state")

    def _check_complete(self, where: str, node: QuorumNode) -> None:
        begin = node.replica.begin
        found = [entry for _, entry in _entries(node, begin, len(self.entries))]
        if found != self.entries[begin:]:
            raise Violation(f"{where}: of {len(self.entries)} committed records it lacks some from {begin} on")


def _entries(node: QuorumNode, begin: int, end: int) -> list[tuple[int, Entry]]:
    found: list[tuple[int, Entry]] = []
    offset = begin
    while offset < end:
        batches = node.replica.log.read(offset, up_to=end)
        if not batches:
            break
        for batch in batches:
            for record in batch.records():
                if begin <= record.offset < end:
                    entry = Entry(batch.leader_epoch, record.key, record.value, batch.is_control)
                    found.append((record.offset, entry))
        offset = batches[-1].next_offset
    return found


def held(node: QuorumNode, offset: int, entry: Entry) -> bool:
    """Whether the node has the committed record, in its log or in a snapshot."""
    replica = node.replica
    if replica.fetching is not None:
        return False
    if offset < replica.begin:
        return offset < replica.snapshots.latest_end
    return [found for _, found in _entries(node, offset, min(offset + 1, replica.end))] == [entry]


class Rack:
    """Nodes 0 to ``nodes`` - 1 on a network; those that are no voters of ``config`` are observers."""

    def __init__(self, nodes: int = 3, *, seed: int = 0, config: QuorumConfig = SMALL, **changes: object) -> None:
        self.config = replace(config, **changes)  # type: ignore[arg-type]
        self.seed = seed
        self.clock = SimulatedClock()
        self.network = SimulatedNetwork(seed, clock=self.clock)
        self.disks = {node: SimulatedFiles(seed + node) for node in range(nodes)}
        self.nodes: dict[int, QuorumNode] = {}
        self.ledger = Ledger()
        self._lives = 0
        for node in self.disks:
            self.start(node)

    def start(self, node: int) -> QuorumNode:
        """Start a node on its disk. Its snapshots are batched in its own way: bytes differ from node to node."""
        self._lives += 1
        made = QuorumNode(
            node,
            self.disks[node],
            self.network,
            self.clock.at(node),
            KeyValueMachine(batch_records=node + 1),
            self.config,
            seed=self.seed + self._lives,
            first_correlation=self._lives * 1_000_000,
        )
        self.nodes[node] = made
        self.network.attach(made)
        return made

    def stop(self, node: int) -> None:
        """The process ends; the disk keeps what it has."""
        self.network.detach(node)
        del self.nodes[node]

    def crash(self, node: int, crash_seed: int) -> None:
        """The machine loses power; the disk loses what was not synced, as the seed has it."""
        self.stop(node)
        self.disks[node].crash(crash_seed)

    def check(self) -> None:
        """Hold every node to the promises; leaders first, as they know first."""
        newest = max(node.epoch for node in self.nodes.values()) if self.nodes else -1
        for node in sorted(self.nodes.values(), key=lambda each: (-each.replica.high_watermark, each.address)):
            assert node.failure is None, node.failure
            self.ledger.check(node, newest)

    def step(self) -> None:
        """One event, then the check."""
        self.network.step()
        self.check()

    def run(self, milliseconds: int) -> None:
        """Let so much time pass, checking after each event."""
        end = self.clock.now() + milliseconds
        while (soonest := self.soonest()) is not None and soonest <= end:
            self.step()
        self.clock.advance_to(end)

    def soonest(self) -> int | None:
        """When the next event is."""
        times = [flight.arrival for flight in self.network.in_flight() if not flight.held]
        times += [at for node in self.nodes.values() if (at := node.deadline()) is not None]
        return min(times, default=None)

    def leader(self) -> QuorumNode | None:
        """Who leads, in the newest epoch of those that do."""
        leaders = [node for node in self.nodes.values() if node.is_leader]
        return max(leaders, key=lambda node: node.epoch, default=None)

    def elect(self, budget_ms: int = 20_000) -> QuorumNode:
        """Run until there is a leader whose followers have its epoch's first record committed."""
        end = self.clock.now() + budget_ms
        while self.clock.now() < end:
            self.run(50)
            leader = self.leader()
            if leader is not None and leader.replica.high_watermark == leader.replica.end:
                return leader
        raise Violation(f"no leader within {budget_ms} ms")

    def put(self, node: QuorumNode, count: int = 1, serial: int = 0) -> None:
        """Append records, one batch each, of a few keys."""
        for number in range(serial, serial + count):
            value = None if number % 7 == 6 else b"value %d" % number
            node.append([Record(value, b"key %d" % (number % 5), self.clock.wall())])
            self.check()
