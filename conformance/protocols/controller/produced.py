"""A producer that writes to the brokers of a running cluster, and what it was told.

It is the producer of ``impl/producer``: idempotent, with acks=all, and it asks brokers who leads. A batch is
acknowledged when a leader sends the answer that says so, whether or not that arrives. From then on, as long as there is
the topic, every broker that may be elected next has it on its disk: whoever is in the ISR by any end of a log that a
next controller may begin with, from the last stable offset to the end of the log of the newest leader, or of whoever
may be elected after it (``acknowledged_is_kept`` of ``model/protocols/controller``). Disks are read past the brokers,
of those that are down, too: such a one is in an ISR until it is fenced, and comes back with what it has.

What a leader answers belongs to the topic that its replica is of: producers name no topic id, so that a late request
may write to the next topic of the name.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ....impl.files.simulated import SimulatedFiles
from ....impl.log.records import Record, StoredRecord
from ....impl.log.topic_id import read_topic_id
from ....impl.metadata.image import PartitionKey
from ....impl.producer import Delivery, Producer, ProducerConfig, ProducerError
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    Envelope,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)
from ...adapters.carrier import CLIENT
from ...adapters.stores import SegmentReader
from ...simulation.events import Event, EventKind
from .metadata_log import WrongState
from .observation import NAMES

if TYPE_CHECKING:
    from .system import FreeControllers

PRODUCER: Final = CLIENT - 1
WRITE: Final = "write"
"""The producer takes one record more."""
RETRY: Final = "retry"
"""The producer does what it is time for: what was not answered is sent again."""
PRODUCE: Final = "produce"
"""All that is between the producer and brokers arrives, and brokers fetch what they follow."""
MESSAGES: Final = (MetadataRequest, MetadataResponse, ProduceRequest, ProduceResponse)
_WITHOUT: Final = 3
"""In one of so many runs nobody writes."""
_WAITING: Final = 3
"""So many records wait for their acknowledgement at most."""
_FOREVER: Final = 1 << 40

_Row = tuple[int, bytes]
"""A record's offset and its value."""


def _row(record: StoredRecord) -> _Row:
    return record.offset, record.value or b""


def _rising(rows: Iterable[_Row]) -> Iterator[_Row]:
    """What recovery keeps: a batch whose offset, which no checksum covers, is torn, is cut off."""
    end = 0
    for offset, value in rows:
        if offset < end:
            return
        end = offset + 1
        yield offset, value


class Produced:
    """Of one run."""

    def __init__(self, system: FreeControllers) -> None:
        self._system = system
        self._writes = system.seed // 13 % _WITHOUT != 0
        self._epoch = 0
        self._serial = 0
        self._producer = self._next_producer()
        there = [TopicPartition(name, 0) for name in NAMES[: system.constants["partitions"]]]
        self._readers = {each: SegmentReader(each, _row, torn=True) for each in there}
        self.acknowledged: dict[UUID, dict[int, bytes]] = {}
        """By topic and offset, the values that a leader has said all of the ISR have."""
        self._topics: dict[int, dict[TopicPartition, UUID]] = {}
        self._seen: object = None

    def _next_producer(self) -> Producer:
        system = self._system
        config = ProducerConfig(
            tuple(system.brokers),
            producer_id=1,
            producer_epoch=self._epoch,
            retry_backoff_ms=20,
            request_timeout_ms=100,
            delivery_timeout_ms=_FOREVER,
            max_in_flight=1 + system.seed % 2,
            address=PRODUCER,
            first_correlation=self._epoch << 20,
        )
        self._epoch += 1
        producer = Producer(system.network, system.clock.at(PRODUCER), config)
        system.network.attach(producer)
        return producer

    def begin(self) -> None:
        """Before a run begins, the topics that are there get a record each, and it is acknowledged."""
        system = self._system
        active = system.active
        if not self._writes or active is None or active.active is None:
            return
        names = active.active.image.names
        sent = [(each, self._send(each)) for each in self._readers if each.topic in names]

        def told() -> bool:
            self._producer.wake()
            return self._producer.pending == 0

        system.run_until(told)
        for partition, (value, delivery) in sent:
            if delivery.error is ErrorCode.NONE:
                self.acknowledged.setdefault(names[partition.topic], {})[delivery.offset] = value

    def _send(self, partition: TopicPartition) -> tuple[bytes, Delivery]:
        self._serial += 1
        value = str(self._serial).encode()
        return value, self._producer.send(partition, Record(value, timestamp=self._system.clock.now()))

    # -- what may be asked ------------------------------------------------------------------------------------------

    def offers(self) -> Iterator[Event]:
        """What an application and its producer may do next."""
        if not self._writes:
            return
        if self._producer.pending < _WAITING:
            for number, partition in enumerate(self._readers):
                if any(partition in self._leading(broker) for broker in self._system.brokers):
                    yield Event(EventKind.CALL, WRITE, args=(("partition", number),))
        deadline = self._producer.deadline()
        if deadline is not None and deadline <= self._system.clock.now():
            yield Event(EventKind.CALL, RETRY)
        if self._producer.pending:
            yield Event(EventKind.SYNC, PRODUCE)

    def ask(self, event: Event) -> None:
        """One of the two that are the producer's own."""
        if event.name == WRITE:
            partition = list(self._readers)[int(event.arg("partition"))]
            try:
                self._send(partition)
            except ProducerError:
                # A record was refused for good: what comes after it is another producer's.
                self._system.network.detach(PRODUCER)
                self._producer = self._next_producer()
                self._send(partition)
        self._producer.wake()

    def wake(self) -> None:
        """Let the producer send what it is time for."""
        self._producer.wake()

    def _leading(self, broker: int) -> set[TopicPartition]:
        """What a broker that runs takes itself for the leader of."""
        system = self._system
        if broker in system.down:
            return set()
        return {name for name, there in system.broker(broker).broker.partitions.items() if there.leader is not None}

    # -- what was told ----------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Before an event: of which topics the brokers' replicas are. Whose disk has failed it may answer still."""
        system = self._system
        there = (broker for broker in system.brokers if broker in system.nodes)
        held = {broker: system.broker(broker).broker.partitions for broker in there}
        self._topics = {node: {name: each.topic_id for name, each in found.items()} for node, found in held.items()}

    def answered(self, answer: Envelope, asked: Envelope | None) -> None:
        """A broker has sent an answer. Raises ``WrongState``."""
        body, request = answer.body, None if asked is None else asked.body
        if not isinstance(body, ProduceResponse) or not isinstance(request, ProduceRequest):
            return
        if body.error is not ErrorCode.NONE:
            return
        topic = self._topics.get(answer.source, {}).get(request.partition)
        if topic is None:
            raise WrongState(f"broker {answer.source} acknowledges what is of no topic of its own")
        known = self.acknowledged.setdefault(topic, {})
        for place, (_, value) in enumerate(self._readers[request.partition].decode(request.records)):
            offset = body.base_offset + place
            if known.setdefault(offset, value) != value:
                told = f"{known[offset]!r} and {value!r} are both acknowledged at offset {offset}"
                raise WrongState(f"{request.partition}: {told}")

    # -- what must be so --------------------------------------------------------------------------------------------

    def check(self) -> None:
        """Whoever may be elected next has what was acknowledged. Raises ``WrongState``."""
        if not self.acknowledged:
            return
        system = self._system
        elected = [each.quorum for each in system.next_controllers]
        ends = tuple((each.address, each.epoch, each.replica.vote_position) for each in elected)
        disks = [system.store.files(broker) for broker in system.brokers]
        changes = [files.changes for files in disks if isinstance(files, SimulatedFiles)]
        seen = ends, system.log.end, tuple(changes), sum(map(len, self.acknowledged.values()))
        if len(changes) == len(disks) and seen == self._seen:
            return
        self._seen = seen
        images = [system.log.prefix(system.log.end).image]
        for topic in [each for each in self.acknowledged if each not in images[0].topics]:
            del self.acknowledged[topic]
        images += [each.image for quorum in elected for each in system.log.beyond(quorum)]
        for topic in self.acknowledged:
            key = PartitionKey(topic, 0)
            states = [image.partitions[key] for image in images if key in image.partitions]
            for broker in sorted({each for state in states for each in state.isr}):
                self._check(broker, topic, TopicPartition(images[0].topics[topic].name, 0))

    def _check(self, broker: int, topic: UUID, partition: TopicPartition) -> None:
        files = self._system.store.files(broker)
        is_of_topic = read_topic_id(files, str(partition)) == topic
        has = dict(_rising(self._readers[partition].read(files))) if is_of_topic else {}
        for offset, value in self.acknowledged[topic].items():
            if has.get(offset) != value:
                there = repr(has[offset]) if offset in has else "nothing"
                told = f"{value!r} was acknowledged at offset {offset}"
                raise WrongState(f"broker {broker} may be elected for {partition}: {told}, and it has {there} there")
