"""What stories of a KIP-631 cluster are told with: topics, records, and a look at what became of them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from fencepost.impl.log import Record
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.metadata.image import PartitionKey
from fencepost.impl.wire.controller import (
    CreateTopicsRequest,
)
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    ProduceRequest,
    TopicPartition,
)

from .kraft_rack import Rack

T0 = TopicPartition("t", 0)


def settled(seed: int = 1, **settings: Any) -> Rack:
    """A cluster whose brokers are all alive."""
    rack = Rack(seed, **settings)
    rack.until(rack.unfenced)
    return rack


def topics(rack: Rack, *names: str, partitions: int = 1, replicas: int = 3) -> list[UUID]:
    """Make topics; gives their ids."""
    made = []
    for name in names:
        answer = rack.ask(CreateTopicsRequest(name, partitions, replicas))
        assert answer.error is ErrorCode.NONE
        made.append(answer.topic_id)
    return made


def produce(rack: Rack, values: Iterable[bytes], partition: TopicPartition = T0) -> None:
    """With acks=-1, until each is acknowledged."""
    for value in values:

        def done(value: bytes = value) -> bool:
            state = rack.ledger.image.partitions[
                PartitionKey(rack.ledger.image.names[partition.topic], partition.partition)
            ]
            batch = encode_batch([Record(value, None, 0)])
            number = rack.client.ask(max(state.leader, 0), ProduceRequest(partition, -1, batch))
            rack.run(80)
            answer = rack.client.answers.get(number)
            return answer is not None and answer.error is ErrorCode.NONE

        rack.until(done)


def held(rack: Rack, broker: int, partition: TopicPartition = T0) -> list[bytes]:
    """A replica's values."""
    log = rack.brokers[broker].broker.partitions[partition].log
    return [record.value or b"" for record in log.records(log.log_start)]


def state(rack: Rack, partition: TopicPartition = T0) -> Any:
    image = rack.ledger.image
    return image.partitions[PartitionKey(image.names[partition.topic], partition.partition)]
