"""Kafka's own Java client, driven from Python through py4j: exact control of acks, batches and elections in one JVM.

A recording needs a dozen calls to the cluster; one process of Kafka's command-line tools for each would take longer
than everything else, and they cannot end a batch or abort a transaction where the recording says so.
"""

from __future__ import annotations

import importlib
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from ...model.core.errors import BadInput
from .cluster import RecordingError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from .maven import KafkaJars

_TIMEOUT_SECONDS = 30
_STRINGS = "org.apache.kafka.common.serialization.StringSerializer"


@dataclass(frozen=True)
class Record:
    """One record to produce; `timestamp` is its CreateTime in ms since 1970."""

    key: str | None
    value: str | None
    timestamp: int
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class PartitionState:
    """What a broker's metadata says of a partition; `leader` is None while there is none."""

    leader: int | None
    isr: tuple[int, ...]
    elr: tuple[int, ...]  #: eligible leader replicas (KIP-966)


class Client:
    """A JVM with Kafka's client in it, and the calls that a recording needs. A context manager."""

    def __init__(self, jars: KafkaJars, java: Path, output: Path) -> None:
        try:
            gateway = importlib.import_module("py4j.java_gateway")
        except ModuleNotFoundError as missing:
            raise BadInput("py4j is not installed", "Python", "install Fencepost anew, which brings it") from missing
        try:
            with output.open("ab") as log:
                port, token, self._process = gateway.launch_gateway(
                    classpath=jars.classpath, javaopts=["-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1"],
                    java_path=str(java), die_on_exit=True, enable_auth=True, create_new_process_group=True,
                    redirect_stderr=log, return_proc=True,
                )  # fmt: skip
        except ValueError as failed:  # the JVM printed no port
            said = " | ".join(output.read_text(errors="replace").splitlines()[-5:]) or "(nothing printed)"
            raise RecordingError(f"the client's JVM did not start: {said}") from failed
        parameters = gateway.GatewayParameters(port=port, auth_token=token, auto_convert=True)
        self._gateway: Any = gateway.JavaGateway(gateway_parameters=parameters)
        self._kafka: Any = self._gateway.jvm.org.apache.kafka

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _type: object, error: BaseException | None, _traceback: object) -> None:
        theirs = error is not None and type(error).__module__.startswith("py4j.")
        lines = [*(str(error).splitlines() if theirs else []), type(error).__name__]  # the text is asked of the JVM
        self.close()
        if theirs:
            said = lines[1].lstrip(": ") if len(lines) > 1 else lines[0]  # the second names the Java exception
            raise RecordingError(f"Kafka's client: {said}") from error

    def close(self) -> None:
        """End the JVM. Safe to call twice."""
        self._gateway.shutdown()
        # It would end by itself when its standard input does (die_on_exit); nothing of it is worth waiting for.
        self._process.kill()
        self._process.wait()

    def create_topic(self, bootstrap: str, name: str, replicas: Sequence[int], configs: Mapping[str, str]) -> None:
        """A topic of one partition on `replicas`, the first of them its preferred leader."""
        topic = self._kafka.clients.admin.NewTopic(name, {0: list(replicas)}).configs(dict(configs))
        with self._admin(bootstrap) as admin:
            self._wait(admin.createTopics([topic]).all())

    def describe(self, bootstrap: str, topics: Sequence[str]) -> dict[str, PartitionState]:
        """The state of partition 0 of each of `topics`; no leader where the broker has not heard of it yet."""
        protocol = importlib.import_module("py4j.protocol")
        states = {}
        with self._admin(bootstrap) as admin:
            futures = admin.describeTopics(list(topics)).topicNameValues()
            for topic in topics:
                try:
                    states[topic] = _partition_state(self._wait(futures[topic]).partitions()[0])
                except protocol.Py4JJavaError as error:
                    cause = error.java_exception.getCause()
                    if cause is None or not cause.getClass().getName().endswith(".UnknownTopicOrPartitionException"):
                        raise
                    states[topic] = PartitionState(None, (), ())
        return states

    def elect_unclean(self, bootstrap: str, topic: str) -> None:
        """What ``kafka-leader-election --election-type unclean`` asks for, for partition 0 of `topic`."""
        partitions = self._gateway.jvm.java.util.HashSet()
        partitions.add(self._kafka.common.TopicPartition(topic, 0))
        with self._admin(bootstrap) as admin:
            self._wait(admin.electLeaders(self._kafka.common.ElectionType.UNCLEAN, partitions).all())

    def replace_topic_config(self, bootstrap: str, topic: str, configs: Mapping[str, str]) -> None:
        """AlterConfigs, which replaces every setting of `topic`. Clients before 4.0 have it."""
        config = self._kafka.clients.admin.Config
        entry = self._kafka.clients.admin.ConfigEntry
        resource = self._kafka.common.config.ConfigResource
        of = resource(self._gateway.jvm.java.lang.Enum.valueOf(self._config_type(), "TOPIC"), topic)
        entries = [entry(name, value) for name, value in configs.items()]
        with self._admin(bootstrap) as admin:
            self._wait(admin.alterConfigs({of: config(entries)}).all())

    def _config_type(self) -> Any:
        name = "org.apache.kafka.common.config.ConfigResource$Type"
        return self._gateway.jvm.py4j.reflection.ReflectionUtil.classForName(name)

    def reassign(self, bootstrap: str, topic: str, replicas: Sequence[int]) -> None:
        """AlterPartitionReassignments: give partition 0 of `topic` the replicas `replicas`."""
        target = self._kafka.clients.admin.NewPartitionReassignment(list(replicas))
        wanted = {self._kafka.common.TopicPartition(topic, 0): self._gateway.jvm.java.util.Optional.of(target)}
        with self._admin(bootstrap) as admin:
            self._wait(admin.alterPartitionReassignments(wanted).all())

    def delete_before(self, bootstrap: str, topic: str, offset: int) -> None:
        """DeleteRecords: move the log start offset of partition 0 of `topic` to `offset`."""
        # The class has an accessor and a static factory of the same name, and py4j takes the first for the second.
        java = self._gateway.jvm.java.lang
        types = self._gateway.new_array(java.Class, 1)
        types[0] = java.Long.TYPE
        arguments = self._gateway.new_array(java.Object, 1)
        arguments[0] = offset
        name = "org.apache.kafka.clients.admin.RecordsToDelete"
        factory = self._gateway.jvm.py4j.reflection.ReflectionUtil.classForName(name).getMethod("beforeOffset", types)
        before = factory.invoke(None, arguments)
        with self._admin(bootstrap) as admin:
            self._wait(admin.deleteRecords({self._kafka.common.TopicPartition(topic, 0): before}).all())

    @contextmanager
    def producer(
        self, bootstrap: str, *, acks: str, compression: str = "none", transactional_id: str | None = None
    ) -> Iterator[Producer]:
        """A producer; idempotent only when transactional, and without retries of its own beyond the timeout."""
        settings: dict[str, object] = {
            "bootstrap.servers": bootstrap,
            "acks": acks,
            "compression.type": compression,
            "enable.idempotence": "false",
            # A batch is sent by flush() alone: what goes into it is the caller's choice.
            "linger.ms": 600_000,
            "batch.size": 1_000_000,
            "delivery.timeout.ms": 700_000,
            "request.timeout.ms": 20_000,
            "max.block.ms": 20_000,
            "key.serializer": _STRINGS,
            "value.serializer": _STRINGS,
        }
        if transactional_id is not None:
            settings |= {"enable.idempotence": "true", "transactional.id": transactional_id}
        java = self._kafka.clients.producer.KafkaProducer(self._properties(settings))
        try:
            yield Producer(self, java)
        finally:
            java.close(self._gateway.jvm.java.time.Duration.ofSeconds(0))

    @contextmanager
    def _admin(self, bootstrap: str) -> Iterator[Any]:
        settings = {
            "bootstrap.servers": bootstrap,
            "request.timeout.ms": 5000,
            "default.api.timeout.ms": _TIMEOUT_SECONDS * 1000,
        }
        admin = self._kafka.clients.admin.Admin.create(self._properties(settings))
        try:
            yield admin
        finally:
            admin.close(self._gateway.jvm.java.time.Duration.ofSeconds(0))

    def _properties(self, settings: Mapping[str, object]) -> Any:
        properties = self._gateway.jvm.java.util.Properties()
        for name, value in settings.items():
            properties.setProperty(name, str(value))
        return properties

    def _wait(self, future: Any) -> Any:
        return future.get(_TIMEOUT_SECONDS, self._gateway.jvm.java.util.concurrent.TimeUnit.SECONDS)


class Producer:
    """One ``KafkaProducer``; made by `Client.producer`."""

    def __init__(self, client: Client, java: Any) -> None:
        self._client = client
        self._java = java

    def warm_up(self, topic: str) -> None:
        """Fetch the metadata of `topic` now, so that a later send asks nobody but the leader."""
        self._java.partitionsFor(topic)

    def send_batch(self, topic: str, records: Sequence[Record]) -> list[int]:
        """Send `records` to partition 0 of `topic` as one batch, wait for the acks; their offsets."""
        kafka = self._client._kafka
        futures = []
        for record in records:
            headers = kafka.common.header.internals.RecordHeaders()
            for name, value in record.headers:
                headers.add(name, value)
            futures.append(
                self._java.send(
                    kafka.clients.producer.ProducerRecord(topic, 0, record.timestamp, record.key, record.value, headers)
                )
            )
        self._java.flush()
        return [int(self._client._wait(future).offset()) for future in futures]

    def init_transactions(self) -> None:
        """Register the transactional id; once, before the first `begin`."""
        self._java.initTransactions()

    def begin(self) -> None:
        """Begin a transaction."""
        self._java.beginTransaction()

    def commit(self) -> None:
        """Commit it: the broker writes a control record of its own."""
        self._java.commitTransaction()

    def abort(self) -> None:
        """Abort it: likewise a control record."""
        self._java.abortTransaction()


def _partition_state(info: Any) -> PartitionState:
    leader = info.leader()
    elr = info.elr()
    return PartitionState(
        leader=None if leader is None or leader.id() < 0 else int(leader.id()),
        isr=tuple(sorted(int(node.id()) for node in info.isr())),
        elr=tuple(sorted(int(node.id()) for node in elr)) if elr is not None else (),
    )
