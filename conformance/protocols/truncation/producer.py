"""What the producer of a running consumer's partition does besides: it sends again, and is held to what it is told.

A batch has a producer of its own, so that a repeat is known as one (KIP-98). What is acknowledged with ``acks=all`` is
below the leader's high watermark, with ``acks=1`` it is synced; and no record is in a log twice.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ....impl.replica.partition import PartitionState
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import Envelope, ProduceRequest, ProduceResponse
from ...adapters.cluster import PARTITION
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event
from .commits import WrongAnswer
from .system_partition import LEADER, READER, Row, RunningPartition, call

_AGAIN = 3
"""So many of the last batches may be sent again."""


class RunningProducer(RunningPartition):
    """Brokers with such a producer."""

    def _set_up(self, constants: Mapping[str, int]) -> range:
        nodes = super()._set_up(constants)
        self._batches_sent: list[bytes] = []
        return nodes

    def _produced(self, data: bytes) -> None:
        self._batches_sent.append(data)

    def _garbles(self, envelope: Envelope) -> bool:
        return envelope.destination in (READER, *self.replicas)

    def _writings(self) -> Iterator[Event]:
        yield from super()._writings()
        if not self.pace.is_time("produce"):
            return
        for node in self.brokers:
            state = None if node in self.down else self._state(node)
            if state is not None and state.role.value == LEADER:
                last = len(self._batches_sent)
                yield from (call("retry", to=node, batch=number) for number in range(max(0, last - _AGAIN), last))

    def _operate(self, event: Event) -> Sequence[ModelStep]:
        if event.name != "retry":
            return super()._operate(event)
        self._send_batch(int(event.arg("to")), self._batches_sent[int(event.arg("batch"))])
        self.pace.happened("produce")
        return ()

    def _hold_producer(self, sent: Sequence[Envelope]) -> None:
        """Look at what brokers have answered in this event. Raises WrongAnswer."""
        for envelope in sent:
            node, body = envelope.source, envelope.body
            if not isinstance(body, ProduceResponse) or node not in self.brokers or node in self.down:
                continue
            asked = self._requested.get((envelope.destination, envelope.correlation))
            state = self._state(node)
            if asked is not None and state is not None and state.role.value == LEADER:
                request: Any = asked[1].body
                wanted = self._reader.decode(request.records)
                if request.partition == PARTITION and body.error is ErrorCode.NONE:
                    rows = self._reader.read(self.store.files(node))
                    check_acknowledged(request, body.base_offset, wanted, state, rows)


def check_acknowledged(
    request: ProduceRequest, base: int, wanted: Sequence[Row], state: PartitionState, rows: Sequence[Row]
) -> None:
    """Hold what a leader has acknowledged at offset ``base`` against its log. Raises WrongAnswer."""
    end = base + len(wanted)
    safe = state.high_watermark if request.acks == -1 else state.synced
    if end > safe:
        raise WrongAnswer(f"a produce with acks={request.acks} is acknowledged up to {end}, and safe is up to {safe}")
    there = {offset: content for offset, _, content in rows if state.log_start <= offset < state.end}
    for number, (_, _, content) in enumerate(wanted):
        if there.get(base + number, content) != content:
            raise WrongAnswer(f"{content!r} is acknowledged at offset {base + number}, where there is another record")
    if len(set(there.values())) < len(there):
        raise WrongAnswer(f"a record is in the log twice: {rows}")
