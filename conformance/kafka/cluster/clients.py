"""Kafka's own producer and consumer on a gated cluster: what they are told, without waiting for it where they wait."""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ....traces.kafka.client import Client
from ....traces.kafka.cluster import RecordingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_TEXT: Final = "org.apache.kafka.common.serialization.String"
_PATIENCE_MS: Final = 600_000
"""Longer than any message is held: no client gives up for that."""


@dataclass(frozen=True)
class Polled:
    """A record as a consumer got it."""

    offset: int
    leader_epoch: int | None
    value: str

    def __str__(self) -> str:
        return f"{self.value} at offset {self.offset}, leader epoch {self.leader_epoch}"


class ClientError(RecordingError):
    """What a client of Kafka's threw: the simple name of the innermost exception's class, and its message."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(f"{name}: {message}" if message else name)
        self.name = name


class Clients(Client):
    """A JVM with Kafka's clients in it, as many as one likes."""

    def elect_preferred(self, bootstrap: str, topic: str) -> None:
        """ElectLeaders, preferred, for partition 0 of `topic`: the first of its replicas leads."""
        partitions = self._gateway.jvm.java.util.HashSet()
        partitions.add(self._kafka.common.TopicPartition(topic, 0))
        with self._admin(bootstrap) as admin:
            self._wait(admin.electLeaders(self._kafka.common.ElectionType.PREFERRED, partitions).all())

    @contextmanager
    def lone_producer(
        self, bootstrap: str, client_id: str, acks: str = "all", settings: Mapping[str, object] | None = None
    ) -> Iterator[LoneProducer]:
        """A ``KafkaProducer`` that sends a record once (``retries=0``), and tells what came of it.

        ``settings``: what it is told in their stead.
        """
        told: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "acks": acks,
            "retries": 0,
            "enable.idempotence": "false",
            "linger.ms": 0,
            "request.timeout.ms": _PATIENCE_MS,
            "delivery.timeout.ms": 2 * _PATIENCE_MS,
            "max.block.ms": 60_000,
            "key.serializer": f"{_TEXT}Serializer",
            "value.serializer": f"{_TEXT}Serializer",
            **(settings or {}),
        }
        java = self._kafka.clients.producer.KafkaProducer(self._properties(told))
        try:
            yield LoneProducer(self, java)
        finally:
            java.close(self._gateway.jvm.java.time.Duration.ofSeconds(0))

    @contextmanager
    def consumer(self, bootstrap: str, client_id: str, topic: str, protocol: str = "classic") -> Iterator[Consumer]:
        """A ``KafkaConsumer`` at the start of partition 0 of `topic`, with ``auto.offset.reset=none``.

        ``protocol``: ``classic`` or ``consumer`` (KIP-848), which are two implementations of the client.
        """
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "client.id": client_id,
            "group.id": client_id,
            "group.protocol": protocol,
            "auto.offset.reset": "none",
            "enable.auto.commit": "false",
            "isolation.level": "read_uncommitted",
            "fetch.max.wait.ms": 100,
            "metadata.max.age.ms": 1000,
            "request.timeout.ms": _PATIENCE_MS,
            "retry.backoff.ms": 100,
            "reconnect.backoff.max.ms": 200,
            "key.deserializer": f"{_TEXT}Deserializer",
            "value.deserializer": f"{_TEXT}Deserializer",
        }
        java = self._kafka.clients.consumer.KafkaConsumer(self._properties(settings))
        try:
            yield Consumer(self, java, topic)
        finally:
            options = self._kafka.clients.consumer.CloseOptions.timeout(self._gateway.jvm.java.time.Duration.ZERO)
            java.close(options)

    @contextmanager
    def told(self) -> Iterator[None]:
        """Raise ClientError for what a client throws in it."""
        errors = importlib.import_module("py4j.protocol")
        try:
            yield
        except errors.Py4JJavaError as error:
            raise self._thrown(error) from error

    def _thrown(self, error: Any) -> ClientError:
        """A Java exception by its innermost cause."""
        inner = error.java_exception
        while inner.getCause() is not None:
            inner = inner.getCause()
        return ClientError(str(inner.getClass().getSimpleName()), str(inner.getMessage() or ""))


class Sent:
    """A record that was sent, and what its producer is told of it."""

    def __init__(self, clients: Clients, future: Any) -> None:
        self._clients = clients
        self._future = future

    @property
    def answered(self) -> bool:
        """Whether the producer was told anything."""
        return bool(self._future.isDone())

    def offset(self, seconds: int = 60) -> int:
        """Wait for the acknowledgement: the record's offset. Raises ClientError where there is an error instead."""
        unit = self._clients._gateway.jvm.java.util.concurrent.TimeUnit.SECONDS
        with self._clients.told():
            return int(self._future.get(seconds, unit).offset())


class LoneProducer:
    """One ``KafkaProducer``; made by `Clients.lone_producer`."""

    def __init__(self, clients: Clients, java: Any) -> None:
        self._clients = clients
        self._java = java

    def warm_up(self, topic: str) -> None:
        """Fetch the metadata of `topic` now, so that a later send asks nobody but the leader that it names."""
        with self._clients.told():
            self._java.partitionsFor(topic)

    def send(self, topic: str, value: str) -> Sent:
        """Send a record without a key to partition 0 of `topic`, in a batch of its own."""
        record = self._clients._kafka.clients.producer.ProducerRecord(topic, 0, None, value)
        return Sent(self._clients, self._java.send(record))


class Consumer:
    """One ``KafkaConsumer``; made by `Clients.consumer`."""

    def __init__(self, clients: Clients, java: Any, topic: str) -> None:
        self._clients = clients
        self._java = java
        self._partition = clients._kafka.common.TopicPartition(topic, 0)
        java.assign([self._partition])
        java.seekToBeginning([self._partition])

    @property
    def position(self) -> int:
        """The offset of the next record that it wants."""
        return int(self._java.position(self._partition))

    def end_of(self, topic: str) -> int:
        """Where partition 0 of any topic ends, which its leader is asked: a connection to that one is there then."""
        partition = self._clients._kafka.common.TopicPartition(topic, 0)
        with self._clients.told():
            return int(self._java.endOffsets([partition])[partition])

    def poll(self, seconds: float) -> list[Polled]:
        """What comes within so many seconds, up to the first that brings anything; empty if nothing does.

        Raises ClientError for what the consumer throws.
        """
        duration = self._clients._gateway.jvm.java.time.Duration.ofMillis(int(seconds * 1000))
        with self._clients.told():
            found = self._java.poll(duration)
        polled = []
        for record in found.records(self._partition):
            epoch = record.leaderEpoch()
            told = int(epoch.get()) if epoch.isPresent() else None
            polled.append(Polled(int(record.offset()), told, str(record.value())))
        return polled
