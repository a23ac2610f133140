"""Controllers and brokers of ``impl/kraft`` on a network whose messages go only when they are told to.

Brokers have the numbers from 0 on, controllers those behind them. A broker has two disks, the second for its copy of
the metadata log. No timer runs off by itself. Before a run begins the metadata log has the level of its records, and
with ``bootstrapped`` the brokers, unfenced, and a partition of each topic that nobody leads.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from ....impl.kraft.broker import MetadataBroker
from ....impl.kraft.node import ControllerNode
from ....impl.kraft.topics import topic_id
from ....impl.log.records import Record
from ....impl.metadata import changes
from ....impl.metadata.codec import encode
from ....impl.metadata.elections import PartitionImage
from ....impl.metadata.image import PartitionKey
from ....impl.metadata.values import MetadataRecord
from ....impl.net.faults import Flight
from ....impl.quorum.config import CLUSTER_METADATA
from ....impl.quorum.node import QuorumNode
from ....impl.quorum.timers import ELECTION, FETCH
from ....impl.wire.controller import AlterPartitionRequest, BrokerRegistrationResponse, Endpoint
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import NO_LEADER, Envelope, ProduceResponse, TopicPartition
from ....impl.wire.quorum import BeginQuorumEpochRequest, QuorumFetchResponse, VoteRequest
from ...adapters.carrier import CLIENT, LIFE, Carrier
from ...adapters.parts import Parts
from ...adapters.stores import Store

SESSION_MS: Final = 1 << 30
LAG_MS: Final = 10
_METADATA: Final = 1_000
"""The number of a broker's disk for the metadata log, less its own."""
_NEVER: Final = (1 << 62) - 1
_ROUNDS: Final = 40
"""So many fetches bring anybody to the end of the metadata log of a run."""


def topic_of(partition: int) -> TopicPartition:
    """The only partition of a topic of its own."""
    return TopicPartition(f"t{partition}", 0)


class KraftCluster(Carrier[Any, Any]):
    """``replicas`` brokers and ``nodes`` controllers, which fence a broker ``by_event`` or by IsrChanges."""

    def __init__(
        self,
        parts: Parts,
        store: Store,
        replicas: int,
        nodes: int,
        partitions: int,
        seed: int,
        *,
        bootstrapped: bool,
        by_event: bool,
    ) -> None:
        super().__init__(seed)
        self._parts = parts
        self._store = store
        self._seed = seed
        self.brokers = range(replicas)
        self.voters = tuple(range(replicas, replicas + nodes))
        self._quorum = parts.quorum_config(
            self.voters,
            log=parts.log_config(segment_bytes=1 << 20),
            max_replication_lag_ms=_NEVER,
            fetch_max_bytes=1,
        )
        self._kraft = parts.kraft_config(
            session_timeout_ms=SESSION_MS,
            fence_by_event=by_event,
            snapshot_minimum_records=_NEVER,
            degraded_snapshot_minimum_records=_NEVER,
        )
        self._broker = parts.broker_config(replica_lag_time_max_ms=LAG_MS, log=parts.log_config())
        self.controllers: dict[int, ControllerNode] = {}
        self.processes: dict[int, MetadataBroker] = {}
        """The brokers that are up."""
        self.asked: dict[tuple[int, TopicPartition], Envelope] = {}
        """The last AlterPartition of a leader."""
        self.registered: dict[int, Envelope] = {}
        """The answer to a broker's registration that has not arrived."""
        self.produced: set[int] = set()
        """The requests of producers that were answered without an error."""
        self._lives = 0
        for voter in self.voters:
            self._start_controller(voter)
        first = self.voters[0]
        self.elect(first, list(self.voters[1:]))
        self.replicate(first)
        if bootstrapped:
            self._bootstrap(first, partitions)
        self.controllers[first].quorum.resign()
        self.controllers[first]._settle()
        self.collect()

    # -- processes --------------------------------------------------------------------------------------------------

    def _start_controller(self, node: int) -> None:
        self._lives += 1
        made = self.controllers[node] = self._parts.controller_node(
            node,
            self._store.files(node),
            self.network,
            self.clock.at(node),
            self._quorum,
            self._kraft,
            seed=self._seed,
            first_correlation=self._lives * LIFE,
        )
        self.network.attach(made)

    def restart(self, node: int, seed: int) -> None:
        """Let a controller lose power, and what it had not synced, and start again."""
        self.network.detach(node)
        self._store.crash(node, seed)
        self._start_controller(node)

    def start(self, node: int) -> MetadataBroker:
        """Start a new process of a broker on the files that are there."""
        self._lives += 1
        made = self.processes[node] = self._parts.metadata_broker(
            node,
            self._store.files(node),
            self._store.files(node + _METADATA),
            self.network,
            self.clock.at(node),
            self._quorum,
            incarnation=UUID(int=(node + 1) << 32 | self._lives),
            config=self._broker,
            endpoints=(Endpoint("PLAINTEXT", f"broker-{node}", 9092),),
            seed=self._seed,
            first_correlation=self._lives * LIFE,
        )
        self.network.attach(made)
        return made

    def stop(self, node: int) -> None:
        """End a broker's process in order."""
        self.processes[node].close()
        self._gone(node)

    def crash(self, node: int, *, lost: bool) -> None:
        """Power off; with ``lost`` the disk with the partitions' logs is replaced by an empty one."""
        self._gone(node)
        self._store.crash(node, self._lives)
        self._store.crash(node + _METADATA, self._lives + 1)
        if lost:
            self._store.replace(node)

    def _gone(self, node: int) -> None:
        del self.processes[node]
        self.network.detach(node)
        self.registered.pop(node, None)
        self.asked = {key: each for key, each in self.asked.items() if key[0] != node}

    # -- looking ----------------------------------------------------------------------------------------------------

    def quorum(self, node: int) -> QuorumNode:
        """The copy of the metadata log at a controller or a broker that is up."""
        there: ControllerNode | MetadataBroker = self.controllers.get(node) or self.processes[node]
        return there.quorum

    def leader_of(self, epoch: int) -> int | None:
        """Who leads this epoch of the quorum, and has heard of no later one."""
        leads = (n for n, each in self.controllers.items() if each.quorum.is_leader and each.quorum.epoch == epoch)
        return next(leads, None)

    @property
    def newest_epoch(self) -> int:
        """The newest epoch of the quorum that a controller is in."""
        return max(each.quorum.epoch for each in self.controllers.values())

    # -- messages ---------------------------------------------------------------------------------------------------

    def _notice(self, envelope: Envelope) -> None:
        body = envelope.body
        if isinstance(body, AlterPartitionRequest):
            self.asked[envelope.source, body.partition] = envelope
        elif isinstance(body, BrokerRegistrationResponse) and body.error is ErrorCode.NONE:
            self.registered[envelope.destination] = envelope
        elif isinstance(body, ProduceResponse) and body.error is ErrorCode.NONE:
            self.produced.add(envelope.correlation)

    def collect(self) -> None:
        """Take off the network what nobody has asked to go."""
        for flight in self.network.in_flight():
            self.network.drop(flight)

    def redirected(self, flight: Flight | None, node: int) -> Flight | None:
        """A broker's request, to a controller other than the one that it takes for the active one."""
        if flight is None:
            return None
        self.network.drop(flight)
        return self.launched(replace(flight.envelope, destination=node))

    def launched(self, envelope: Envelope) -> Flight | None:
        """A message on its way, or a copy of it."""
        self.network.send(envelope)
        return self.sent(envelope.source, envelope.destination)

    def waiting(self, node: int) -> list[Any]:
        """What a controller has decided, and answers when it is stable, in that order."""
        return list(self.controllers[node]._waiting)

    # -- the quorum -------------------------------------------------------------------------------------------------

    def elect(self, node: int, voters: list[int]) -> bool:
        """Let a controller stand for the next epoch, and get the votes of these; gives whether it leads."""
        controller = self.controllers[node]
        controller.quorum.fire(ELECTION)
        controller._settle()
        for voter in voters:
            if controller.quorum.is_leader:
                break
            requests = self.network.in_flight(source=node, destination=voter)
            self.carry(next((each for each in requests if isinstance(each.envelope.body, VoteRequest)), None))
        return controller.quorum.is_leader

    def introduce(self, leader: int, node: int, epoch: int) -> Any:
        """Let a controller or a broker hear who leads an epoch; the answer of a controller."""
        if node in self.voters:
            return self.carry(self.ask(leader, node, BeginQuorumEpochRequest(CLUSTER_METADATA, epoch, leader)))
        quorum = self.quorum(node)
        if quorum.leader_id != NO_LEADER:
            quorum.fire(ELECTION)  # whom it follows does not answer: it looks for another leader
        quorum.fire(FETCH)
        asked = next(iter(self.network.in_flight(source=node)), None)
        if asked is not None:
            request = asked.envelope
            self.network.drop(asked)
            told = QuorumFetchResponse(ErrorCode.FENCED_REPLICA, epoch, leader)
            answer = self.launched(Envelope(request.destination, node, request.correlation, told))
            if answer is not None:
                self.network.deliver(answer)
        return None

    def fetch(self, node: int, leader: int) -> bool:
        """Let one of the metadata log's copies fetch a batch from its leader; gives whether anything has changed."""
        quorum = self.quorum(node)
        if quorum.leader_id != leader or quorum.epoch != self.quorum(leader).epoch:
            self.introduce(leader, node, self.quorum(leader).epoch)
        before = quorum.replica.end, quorum.replica.high_watermark, self.quorum(leader).replica.high_watermark
        quorum.fire(FETCH)
        self.carry(self.sent(node, leader))
        after = quorum.replica.end, quorum.replica.high_watermark, self.quorum(leader).replica.high_watermark
        return before != after

    def replicate(self, leader: int) -> None:
        """Let everybody fetch all that there is, and hear that it is stable."""
        for _ in range(_ROUNDS):
            others = [*(each for each in self.voters if each != leader), *self.processes]
            moved = [self.fetch(each, leader) for each in others]
            if not any(moved):
                return

    # -- the beginning ----------------------------------------------------------------------------------------------

    def _bootstrap(self, active: int, partitions: int) -> None:
        for node in self.brokers:
            self.start(node)
            for _ in range(3):  # a registration, its answer and the heartbeat that unfences
                self.processes[node].lifecycle.send()
                requests = self.network.in_flight(source=node)
                flight = next((each for each in requests if each.envelope.destination in self.voters), None)
                self.carry(self.redirected(flight, active))
                self.replicate(active)
                told = self.registered.pop(node, None)
                if told is not None:
                    launched = self.launched(told)
                    if launched is not None:
                        self.network.deliver(launched)
                self.collect()
        quorum = self.controllers[active].quorum
        records: list[MetadataRecord] = []
        for partition in range(partitions):
            topic = topic_id(self._quorum.cluster_id, quorum.epoch, quorum.replica.end + len(records))
            brokers = tuple(self.brokers)
            records += [
                changes.topic(topic, topic_of(partition).topic),
                changes.partition(PartitionKey(topic, 0), PartitionImage(brokers, brokers, NO_LEADER, 0, 0)),
            ]
        quorum.append([Record(encode(each), None, quorum.wall()) for each in records])
        self.replicate(active)

    def ask_client(self, node: int, body: Any) -> Flight | None:
        """A request of a client, or in somebody's name."""
        return self.ask(CLIENT, node, body)
