"""A rack of KIP-631: controllers 100 to 102, brokers 0 to 2, clients, a network, and power that may fail at any change
of a file; and a ledger that holds all of them to promises.

Held after each event, of each node, controllers and brokers alike:

- what it has committed is what everyone has, offset for offset;
- its image is what these records make, up to where it has applied them, also where it began from a snapshot;
- no leader and no member of an ISR is fenced or shutting down, unless it is the last member;
- each of its snapshots holds the image of its end;
- the active controller's image is what all records of its log make, those that are pending too;
- what a client was told is in the committed log when it is told: a topic by its id, a config by its value, a
  registration at the offset that is its epoch.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from uuid import UUID

from fencepost.impl.files import Files, SimulatedFiles
from fencepost.impl.kraft import ControllerConfig, ControllerNode, LifecycleConfig, MetadataBroker
from fencepost.impl.log import LogConfig
from fencepost.impl.metadata import changes, decode
from fencepost.impl.metadata.image import Image
from fencepost.impl.metadata.machine import MetadataMachine
from fencepost.impl.net import Faults, SimulatedClock, SimulatedNetwork
from fencepost.impl.quorum import QuorumConfig, QuorumNode, SnapshotId
from fencepost.impl.replica import BrokerConfig
from fencepost.impl.wire.controller import CreateTopicsResponse, Endpoint
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import BROKER_PRINCIPAL, FIRST_CLIENT, Envelope

CONTROLLERS = (100, 101, 102)
BROKERS = (0, 1, 2)
CHANGES = frozenset(("append", "truncate", "fsync", "rename", "remove", "fsync_dir", "make_dir"))
QUORUM = QuorumConfig(
    voters=CONTROLLERS,
    log=LogConfig(segment_bytes=20_000, index_interval_bytes=500),
    max_replication_lag_ms=500,
    election_timeout_ms=300,
    fetch_timeout_ms=500,
    request_timeout_ms=100,
    fetch_wait_ms=10,
    retry_backoff_ms=20,
    fetch_max_bytes=2_000,
    snapshot_max_bytes=700,
    begin_offset_interval_ms=100,
)
CONTROLLER = ControllerConfig(
    session_timeout_ms=600,
    heartbeat_interval_ms=100,
    request_timeout_ms=100,
    snapshot_minimum_records=30,
    degraded_snapshot_minimum_records=90,
    max_lag_records=40,
)
LIFECYCLE = LifecycleConfig(heartbeat_interval_ms=100, request_timeout_ms=100, retry_backoff_ms=20)
BROKER = BrokerConfig(
    replica_lag_time_max_ms=200,
    isr_interval_ms=60,
    replica_fetch_wait_ms=10,
    replica_fetch_backoff_ms=20,
    request_timeout_ms=60,
    high_watermark_interval_ms=150,
    recovery_point_interval_ms=400,
    log=LogConfig(segment_bytes=4_000),
)
"""Settings with which everything happens within a few simulated seconds."""


class Violation(AssertionError):
    """A promise that was broken."""


def demand(holds: bool, what: str) -> None:
    """Raises ``Violation``."""
    if not holds:
        raise Violation(what)


class PowerLoss(BaseException):
    """The machines that go down now. No part of ``impl`` may catch it, so it is no ``Exception``."""

    def __init__(self, nodes: Sequence[int]) -> None:
        super().__init__(nodes)
        self.nodes = nodes


class Entry(NamedTuple):
    """A committed record, of the quorum's own where ``control``."""

    epoch: int
    value: bytes | None
    control: bool


class Ledger:
    """What was committed, and the image that each beginning of it makes."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.images: list[Image] = [Image()]
        """By end offset."""
        self._checked: dict[int, object] = {}
        self._sound: set[int] = set()
        self._loaded: set[tuple[int, int, SnapshotId]] = set()
        self.snapshots_checked = 0

    @property
    def image(self) -> Image:
        """Of all that is committed."""
        return self.images[-1]

    def values(self) -> set[bytes]:
        """The bytes of all committed records."""
        return {each.value for each in self.entries if each.value is not None and not each.control}

    def check(self, quorum: QuorumNode, active: Image | None = None) -> None:
        """Hold a node to the promises, and learn from it. Raises ``Violation``."""
        log, snapshots = quorum.replica, quorum.replica.snapshots
        offsets = log.begin, log.applied, log.high_watermark, log.end, snapshots.latest_end, len(snapshots.ids)
        marks = id(quorum), quorum.epoch, offsets, None if active is None else id(active)
        if self._checked.get(quorum.address) == marks:
            return
        state = quorum.state()
        where = f"node {quorum.address}, {state}"
        for offset, entry in entries(quorum, state.begin, state.high_watermark):
            if offset == len(self.entries):
                self._commit(entry)
            demand(offset < len(self.entries), f"{where}: committed at {offset}, nobody had {len(self.entries)}")
            demand(self.entries[offset] == entry, f"{where}: {entry} at {offset}, was {self.entries[offset]}")
        demand(state.high_watermark <= len(self.entries), f"{where}: it is beyond all that was committed")
        machine = quorum.replica.machine
        made = self.images[state.applied]
        demand(machine.image == made, f"{where}: the image is not what {state.applied} records make")  # type: ignore[attr-defined]
        if state.applied not in self._sound:
            _check_sound(where, made)
            self._sound.add(state.applied)
        for snapshot in state.snapshots:
            self._check_snapshot(where, quorum, snapshot)
        if active is not None:
            pending = made.fork()
            for _, entry in entries(quorum, state.applied, state.end):
                if not entry.control:
                    pending.replay(decode(entry.value or b""))
            demand(active == pending, f"{where}: the active controller's image is not that of its log")
        self._checked[quorum.address] = marks

    def _commit(self, entry: Entry) -> None:
        image = self.image
        if not entry.control:
            image = image.fork()
            image.replay(decode(entry.value or b""))
        self.entries.append(entry)
        self.images.append(image)

    def _check_snapshot(self, where: str, quorum: QuorumNode, snapshot: SnapshotId) -> None:
        key = quorum.address, id(quorum), snapshot
        if key in self._loaded:
            return
        self._loaded.add(key)
        demand(0 < snapshot.end_offset <= len(self.entries), f"{where}: {snapshot} holds what is not committed")
        machine = MetadataMachine()
        with quorum.replica.snapshots.opened(snapshot) as file:
            machine.load(snapshot, file)
        demand(machine.image == self.images[snapshot.end_offset], f"{where}: {snapshot} holds another image")
        self.snapshots_checked += 1


def _check_sound(where: str, image: Image) -> None:
    """No image that is seen has a leader, or a member of an ISR of more than itself, that may be neither (KIP-841)."""
    for key, state in image.partitions.items():
        idle = [each for each in state.isr if not image.alive(each)]
        demand(state.leader < 0 or image.alive(state.leader), f"{where}: {key} is led by {state.leader}, which may not")
        demand(not idle or len(state.isr) == 1, f"{where}: {key} has {idle} in its ISR {state.isr}, which may not be")


def entries(quorum: QuorumNode, begin: int, end: int) -> list[tuple[int, Entry]]:
    """What a node's log holds from ``begin`` to ``end``."""
    found: list[tuple[int, Entry]] = []
    offset = begin
    while offset < end:
        batches = quorum.replica.log.read(offset, up_to=end)
        if not batches:
            break
        for batch in batches:
            found += [
                (record.offset, Entry(batch.leader_epoch, record.value, batch.is_control))
                for record in batch.records()
                if begin <= record.offset < end
            ]
        offset = batches[-1].next_offset
    return found


@dataclass
class Client:
    """Asks controllers or brokers, and keeps what they have answered. It is told of everything as it arrives."""

    network: SimulatedNetwork
    address: int = FIRST_CLIENT
    answers: dict[int, Any] = field(default_factory=dict)
    told: Callable[[Any, Any], None] = lambda _body, _answer: None
    """Called with each request and its first answer."""
    _asked: dict[int, Any] = field(default_factory=dict)
    _last: int = 0

    def ask(self, node: int, body: Any) -> int:
        """Send a request; gives its number."""
        self._last += 1
        self._asked[self._last] = body
        self.network.send(Envelope(self.address, node, self._last, body, BROKER_PRINCIPAL))
        return self._last

    def asked(self, number: int) -> Any:
        """The request with this number."""
        return self._asked[number]

    def receive(self, envelope: Envelope) -> None:
        if envelope.correlation not in self.answers:
            self.answers[envelope.correlation] = envelope.body
            self.told(self._asked[envelope.correlation], envelope.body)

    def deadline(self) -> int | None:
        return None

    def wake(self) -> None:
        raise AssertionError("nobody sets it a deadline")


class Rack:
    """Everything is up at once. ``disk`` makes a disk by address and number, which is 1 for a broker's metadata."""

    def __init__(
        self,
        seed: int = 0,
        *,
        faults: Faults | None = None,
        quorum: QuorumConfig = QUORUM,
        controller: ControllerConfig = CONTROLLER,
        disk: Callable[[int, int], Files] | None = None,
        brokers: Sequence[int] = BROKERS,
        **broker: Any,
    ) -> None:
        self.seed = seed
        self.quorum_config, self.controller_config = quorum, controller
        self.broker_config = replace(BROKER, **broker)
        self.clock = SimulatedClock()
        self.net = SimulatedNetwork(seed, clock=self.clock, faults=faults or Faults((1, 4)))
        self.ledger = Ledger()
        self.client = Client(self.net, told=self._told)
        self.net.attach(self.client)
        self.acknowledged: list[tuple[Any, Any]] = []
        self.fuse: dict[int, int] = {}
        self.falls: dict[int, Sequence[int]] = {}
        self.looking = False
        self.operations = 0
        self.last_operation = ""
        self.disks: dict[int, list[Any]] = {}
        for address in (*quorum.voters, *brokers):
            count = 1 if address in quorum.voters else 2
            self.disks[address] = [self._disk(address, number, disk) for number in range(count)]
        self.controllers: dict[int, ControllerNode] = {}
        self.brokers: dict[int, MetadataBroker] = {}
        """Those that are up."""
        self.lives = dict.fromkeys(self.disks, 0)
        for address in self.disks:
            self.start(address)

    def _disk(self, address: int, number: int, disk: Callable[[int, int], Files] | None) -> Files:
        if disk is not None:
            return disk(address, number)
        return SimulatedFiles(self.seed * 1_000 + address * 2 + number, hook=self._hook(address))

    # -- power ------------------------------------------------------------------------------------------------------

    def _hook(self, address: int) -> Callable[[str, str], None]:
        def hook(operation: str, path: str) -> None:
            if self.looking or operation not in CHANGES:
                return
            self.operations += 1
            if address not in self.fuse:
                return
            self.fuse[address] -= 1
            if self.fuse[address] <= 0:
                self.last_operation = f"{operation} {path} at {address}"
                del self.fuse[address]
                raise PowerLoss(self.falls.pop(address))

        return hook

    def arm(self, address: int, count: int, falls: Sequence[int]) -> None:
        """Let the power of ``falls`` fail before this machine's next change of files but ``count - 1``."""
        self.fuse[address], self.falls[address] = count, falls

    def disarm(self) -> None:
        """Let no power fail."""
        self.fuse.clear()
        self.falls.clear()

    # -- processes --------------------------------------------------------------------------------------------------

    def start(self, address: int) -> None:
        """Start a node on its disks."""
        self.lives[address] += 1
        life, disks, clock = self.lives[address], self.disks[address], self.clock.at(address)
        seed, first = self.seed * 100 + life, life << 32
        if address in self.quorum_config.voters:
            controller = ControllerNode(
                address,
                disks[0],
                self.net,
                clock,
                self.quorum_config,
                self.controller_config,
                seed=seed,
                first_correlation=first,
            )
            self.controllers[address] = controller
            self.net.attach(controller)
            return
        broker = MetadataBroker(
            address,
            *disks,
            self.net,
            clock,
            self.quorum_config,
            incarnation=UUID(int=(address + 1) << 32 | life),
            config=self.broker_config,
            lifecycle=LIFECYCLE,
            endpoints=(Endpoint("PLAINTEXT", f"broker-{address}", 9092),),
            seed=seed,
            first_correlation=first,
        )
        self.brokers[address] = broker
        self.net.attach(broker)

    def stop(self, address: int) -> None:
        """The process is gone; its disks are left as they are."""
        if self.net.is_up(address):
            self.net.detach(address)
        self.controllers.pop(address, None)
        self.brokers.pop(address, None)

    def crash(self, address: int, seed: int) -> None:
        """The machine is down, and what was not synced survives as the seed has it."""
        self.stop(address)
        for number, disk in enumerate(self.disks[address]):
            disk.crash(seed + number)

    # -- time -------------------------------------------------------------------------------------------------------

    def run(self, milliseconds: int) -> None:
        """Let so much time pass, checking after each event."""
        end = self.clock.now() + milliseconds
        self.net.refresh()
        while self.net._step(end):
            self.check()
        self.clock.advance_to(end)

    def until(self, holds: Callable[[], bool], budget_ms: int = 20_000) -> None:
        """Run until something holds. Raises ``Violation`` where it does not within the budget."""
        end = self.clock.now() + budget_ms
        while not holds():
            demand(self.clock.now() < end, f"not within {budget_ms} ms")
            self.run(10)

    def check(self) -> None:
        """Hold every node to the promises; those who know most first."""
        found: list[tuple[QuorumNode, Image | None]] = [(each.quorum, None) for each in self.brokers.values()]
        found += [
            (each.quorum, None if each.active is None else each.active.image) for each in self.controllers.values()
        ]
        self.looking = True
        try:
            for quorum, image in sorted(found, key=lambda each: -each[0].replica.high_watermark):
                demand(quorum.failure is None, f"node {quorum.address}: {quorum.failure}")
                self.ledger.check(quorum, image)
        finally:
            self.looking = False

    def _told(self, body: Any, answer: Any) -> None:
        """What a client is told has to be committed by then."""
        if getattr(answer, "error", None) is ErrorCode.NONE:
            self.check()  # the one that answers knew it first
            self.acknowledged.append((body, answer))
            if isinstance(answer, CreateTopicsResponse):
                assert answer.topic_id is not None
                record = changes.topic(answer.topic_id, body.name)
                told = any(decode(value) == record for value in self.ledger.values())
                demand(told, f"{answer} was told and is not committed")

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def active(self) -> ControllerNode | None:
        """The active controller; of several, as each takes itself for one, that of the newest epoch."""
        found = [each for each in self.controllers.values() if each.active is not None]
        return max(found, key=lambda each: each.quorum.epoch, default=None)

    def ask(self, body: Any, budget_ms: int = 20_000) -> Any:
        """Ask active controllers until one answers with something else than NOT_CONTROLLER."""
        end = self.clock.now() + budget_ms
        while self.clock.now() < end:
            self.until(lambda: self.active is not None)
            active = self.active
            assert active is not None
            number = self.client.ask(active.address, body)
            deadline = self.clock.now() + 300
            while number not in self.client.answers and self.clock.now() < deadline:
                self.run(5)
            answer = self.client.answers.get(number)
            if answer is not None and answer.error is not ErrorCode.NOT_CONTROLLER:
                return answer
        raise Violation(f"no answer to {body} within {budget_ms} ms")

    def unfenced(self, *brokers: int) -> bool:
        """Whether these brokers, or all, are alive by the committed metadata."""
        return all(self.ledger.image.alive(each) for each in (brokers or self.brokers))

    def even(self) -> bool:
        """Whether everyone has applied everything, brokers have published it, and nothing is pending."""
        if self.active is None:
            return False
        end = len(self.ledger.entries)
        nodes = [each.quorum for each in (*self.controllers.values(), *self.brokers.values())]
        applied = all(each.replica.applied == each.replica.high_watermark == end for each in nodes)
        return applied and all(each.publisher.published == end for each in self.brokers.values())
