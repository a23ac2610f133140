"""Kafka's wire protocol, asked by hand: one connection, one request at a time, by kio's schemas.

kio 0.6.5 (PyPI, typed) has every request of Kafka 4.4 as data classes that are generated from Kafka's own message
definitions. They are imported when somebody asks: nothing else of Fencepost needs them.
"""

from __future__ import annotations

import io
import select
import socket
import struct
from datetime import UTC, datetime, timedelta
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, Self
from uuid import UUID

from ...model.core.errors import BadInput, FencepostError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SIZE: Final = struct.Struct(">i")
_CORRELATION: Final = struct.Struct(">i")
MAX_BYTES: Final = 100 * 1024 * 1024
"""``socket.request.max.bytes`` of a broker: no answer is larger than what it takes."""
NO_EPOCH: Final = -1
CONSUMER: Final = -1
"""The replica id of who is no replica."""


class WireError(FencepostError):
    """A node was not reached, or what it answered is no answer: which node, and what."""


class ConnectionClosed(WireError):
    """A node ended the connection instead of answering."""


def messages(name: str, version: int, kind: str = "request") -> Any:
    """kio's module of a message: ``messages("fetch", 17).FetchRequest``. Raises BadInput without kio."""
    try:
        return import_module(f"kio.schema.{name}.v{version}.{kind}")
    except ModuleNotFoundError as missing:
        what = "kio is not installed" if missing.name == "kio" else f"kio has no {name} v{version}"
        raise BadInput(what, "Python", "install Fencepost anew, which brings kio") from missing


def written(message: Any) -> bytes:
    """A message, or its header, as bytes."""
    buffer = io.BytesIO()
    import_module("kio.serial").entity_writer(type(message))(buffer, message)
    return buffer.getvalue()


def read(kind: Any, data: bytes, offset: int = 0) -> tuple[Any, int]:
    """A message of this class from its bytes, and where it ends. Raises WireError for what is none."""
    try:
        message, size = import_module("kio.serial").entity_reader(kind)(data, offset)
    except Exception as strange:
        # Whatever kio raises of bytes that are none: there is no common class of it.
        raise WireError(f"{len(data)} bytes that are no {kind.__name__}: {strange}") from strange
    return message, offset + size


class Connection:
    """A connection to one node; a context manager. It is made anew after it was lost."""

    def __init__(self, host: str, port: int, client: str, seconds: float = 10.0) -> None:
        """``seconds``: after so long without an answer a node counts as not reached."""
        self.host, self.port, self.client = host, port, client
        self._seconds = seconds
        self._socket: socket.socket | None = None
        self._correlation = 0
        self._versions: dict[int, tuple[int, int]] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"

    def close(self) -> None:
        """End it. Safe to call twice."""
        self._versions = None  # another release may answer at this address next time
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @property
    def answered(self) -> bool:
        """Whether there is anything to read: an answer, or the end of the connection."""
        return self._socket is not None and bool(select.select([self._socket], [], [], 0)[0])

    def ask(self, request: Any) -> Any:
        """Send a request and wait for its answer. Raises WireError where none comes."""
        self.send(request)
        return self.answer(request)

    def send(self, request: Any) -> None:
        """Send a request, and wait for nothing. Raises WireError."""
        self._correlation += 1
        header = request.__header_schema__(
            request_api_key=request.__api_key__,
            request_api_version=request.__version__,
            correlation_id=self._correlation,
            client_id=self.client,
        )
        body = written(header) + written(request)
        try:
            if self._socket is None:
                self._socket = socket.create_connection((self.host, self.port), self._seconds)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._socket.sendall(_SIZE.pack(len(body)) + body)
        except OSError as lost:
            self.close()
            raise WireError(f"{self}: {lost.strerror or lost}") from lost

    def answer(self, request: Any, seconds: float | None = None) -> Any:
        """The answer to what was sent last. Raises WireError where none comes, TimeoutError after `seconds` of it."""
        name = type(request).__module__.split(".")[-3]
        answers = messages(name, int(request.__version__), "response")
        kind = getattr(answers, type(request).__name__.removesuffix("Request") + "Response")
        frame = self._frame(self._seconds if seconds is None else seconds, patient=seconds is not None)
        (correlation,) = _CORRELATION.unpack_from(frame)
        if correlation != self._correlation:
            self.close()
            raise WireError(f"{self}: an answer to request {correlation}, and {self._correlation} was asked")
        _, start = read(kind.__header_schema__, frame)
        return read(kind, frame, start)[0]

    def _frame(self, seconds: float, *, patient: bool) -> bytes:
        if self._socket is None:
            raise WireError(f"{self}: the connection is gone")
        try:
            self._socket.settimeout(seconds)
            if patient:
                # Nothing is taken from the socket before there is something, so that one may come back for it.
                self._socket.recv(1, socket.MSG_PEEK)
                self._socket.settimeout(self._seconds)
            (size,) = _SIZE.unpack(self._exactly(_SIZE.size))
            if not _CORRELATION.size <= size <= MAX_BYTES:
                raise WireError(f"{self}: an answer of {size} bytes")
            return self._exactly(size)
        except TimeoutError:
            if patient:
                raise
            self.close()
            raise WireError(f"{self}: no answer within {seconds:g} s") from None
        except OSError as lost:
            self.close()
            raise WireError(f"{self}: {lost.strerror or lost}") from lost

    def _exactly(self, size: int) -> bytes:
        assert self._socket is not None
        parts = bytearray()
        while len(parts) < size:
            part = self._socket.recv(size - len(parts))
            if not part:
                self.close()
                raise ConnectionClosed(f"{self}: the node has closed the connection")
            parts += part
        return bytes(parts)

    def versions(self, api: int) -> tuple[int, int] | None:
        """The oldest and newest version of a request that the node has, or None. Raises WireError.

        ApiVersions 0 asks for them, the one request that every release since 0.10 takes.
        """
        if self._versions is None:
            answer = self.ask(messages("api_versions", 0).ApiVersionsRequest())
            if answer.error_code.name != "none":
                raise WireError(f"{self}: the node refuses ApiVersions 0: {answer.error_code.name}")
            self._versions = {
                int(each.api_key): (int(each.min_version), int(each.max_version)) for each in answer.api_keys
            }
        return self._versions.get(api)


# -- requests of one partition ----------------------------------------------------------------------------------------


def fetch_request(
    topic_id: UUID,
    offset: int,
    *,
    partition: int = 0,
    replica: int = CONSUMER,
    leader_epoch: int = NO_EPOCH,
    last_epoch: int = NO_EPOCH,
    max_bytes: int = 1 << 20,
) -> Any:
    """Fetch v17, which waits for nothing and opens no session."""
    fetch = messages("fetch", 17)
    asked = fetch.FetchPartition(
        partition=partition,
        current_leader_epoch=leader_epoch,
        fetch_offset=offset,
        last_fetched_epoch=last_epoch,
        partition_max_bytes=max_bytes,
    )
    return fetch.FetchRequest(
        replica_state=fetch.ReplicaState(replica_id=replica),
        max_wait=timedelta(0),
        min_bytes=0,
        topics=(fetch.FetchTopic(topic_id=topic_id, partitions=(asked,)),),
        forgotten_topics_data=(),
    )


def produce_request(topic: str, values: Sequence[bytes], acks: int, seconds: float = 600.0) -> Any:
    """Produce v11: one batch for partition 0, of a producer that is not idempotent."""
    records, produce = import_module("kio.records.schema"), messages("produce", 11)
    now = datetime.now(UTC)
    batch = records.NewRecordBatch(
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        attributes=0,
        records=tuple(
            records.Record(attributes=0, timestamp=now, offset=number, key=None, value=value, headers=())
            for number, value in enumerate(values)
        ),
    )
    buffer = io.BytesIO()
    import_module("kio.records.writers").write_new_batch(buffer, batch)
    data = produce.PartitionProduceData(index=0, records=buffer.getvalue())
    return produce.ProduceRequest(
        transactional_id=None,
        acks=acks,
        timeout=timedelta(seconds=seconds),
        topic_data=(produce.TopicProduceData(name=topic, partition_data=(data,)),),
    )


# -- requests of an administrator, which a controller takes as well as a broker ---------------------------------------


def create_request(topic: str, replicas: Sequence[int], settings: Mapping[str, str]) -> Any:
    """CreateTopics v7: one partition, led by the first of `replicas`."""
    topics = messages("create_topics", 7)
    asked = topics.CreatableTopic(
        name=topic,
        num_partitions=-1,
        replication_factor=-1,
        assignments=(topics.CreatableReplicaAssignment(partition_index=0, broker_ids=tuple(replicas)),),
        configs=tuple(topics.CreatableTopicConfig(name=name, value=value) for name, value in settings.items()),
    )
    return topics.CreateTopicsRequest(topics=(asked,), timeout=timedelta(seconds=10))


def delete_request(topic: str) -> Any:
    """DeleteTopics v6."""
    topics = messages("delete_topics", 6)
    asked = topics.DeleteTopicState(name=topic, topic_id=None)
    return topics.DeleteTopicsRequest(topics=(asked,), timeout=timedelta(seconds=10))


def reassign_request(topic: str, replicas: Sequence[int]) -> Any:
    """AlterPartitionReassignments v0 of partition 0."""
    moves = messages("alter_partition_reassignments", 0)
    asked = moves.ReassignablePartition(partition_index=0, replicas=tuple(replicas))
    return moves.AlterPartitionReassignmentsRequest(
        timeout=timedelta(seconds=10), topics=(moves.ReassignableTopic(name=topic, partitions=(asked,)),)
    )


def elect_request(topic: str, *, unclean: bool = False) -> Any:
    """ElectLeaders v2 of partition 0."""
    elections = messages("elect_leaders", 2)
    asked = elections.TopicPartitions(topic=topic, partitions=(0,))
    return elections.ElectLeadersRequest(
        election_type=int(unclean), topic_partitions=(asked,), timeout=timedelta(seconds=10)
    )
