"""The classes of ``impl/`` that an adapter puts together: the real ones, or those of a copy with a defect."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

from ... import impl
from ...impl.compaction import CleanerConfig, CompactionConfig, Table
from ...impl.consumer import Consumer, ConsumerConfig, ConsumerError, LogTruncationError, OffsetAndMetadata, ResetPolicy
from ...impl.kraft.broker import MetadataBroker
from ...impl.kraft.config import ControllerConfig, LifecycleConfig
from ...impl.kraft.node import ControllerNode
from ...impl.log.config import LogConfig
from ...impl.log.log import Log
from ...impl.offsets import GroupCoordinator
from ...impl.producer import Producer, ProducerConfig
from ...impl.quorum.config import QuorumConfig
from ...impl.quorum.machine import KeyValueMachine
from ...impl.quorum.node import NotLeader, QuorumNode
from ...impl.replica.broker import Broker
from ...impl.replica.config import BrokerConfig
from ...impl.tiering import RemoteLogManager, RemoteStore, TieredTopic, TieringConfig
from ...impl.zk_controller import Controller
from ...impl.zk_controller.errors import ControllerError


@dataclass(frozen=True)
class Parts:
    """What a cluster is made of. Files, network and messages are not among it: adapters use the real ones."""

    broker: type[Broker]
    broker_config: type[BrokerConfig]
    offset_of: Callable[[Log, int, int], tuple[int, int]]
    log_config: type[LogConfig]
    controller: type[Controller]
    controller_error: type[ControllerError]
    consumer: type[Consumer]
    consumer_config: type[ConsumerConfig]
    consumer_error: type[ConsumerError]
    log_truncation_error: type[LogTruncationError]
    offset_and_metadata: type[OffsetAndMetadata]
    reset_policy: type[ResetPolicy]
    producer: type[Producer]
    producer_config: type[ProducerConfig]
    coordinator: type[GroupCoordinator]
    quorum_node: type[QuorumNode]
    quorum_config: type[QuorumConfig]
    not_leader: type[NotLeader]
    key_value_machine: type[KeyValueMachine]
    controller_node: type[ControllerNode]
    kraft_config: type[ControllerConfig]
    metadata_broker: type[MetadataBroker]
    lifecycle_config: type[LifecycleConfig]
    cleaner_config: type[CleanerConfig]
    topic_config: Callable[..., tuple[LogConfig, CompactionConfig]]
    table: type[Table]
    remote_log_manager: type[RemoteLogManager]
    remote_store: type[RemoteStore]
    tiered_topic: type[TieredTopic]
    tiering_config: type[TieringConfig]

    @classmethod
    def of(cls, root: ModuleType = impl) -> Parts:
        """The parts of ``impl``, or of a copy of it (``mutants.patched``)."""

        def named(module: str, name: str) -> type:
            found = called(module, name)
            assert isinstance(found, type)
            return found

        def called(module: str, name: str) -> Any:
            return getattr(importlib.import_module(f"{root.__name__}.{module}"), name)

        return cls(
            broker=named("replica.broker", "Broker"),
            broker_config=named("replica.config", "BrokerConfig"),
            offset_of=called("replica.fetch", "offset_of"),
            log_config=named("log.config", "LogConfig"),
            controller=named("zk_controller", "Controller"),
            controller_error=named("zk_controller.errors", "ControllerError"),
            consumer=named("consumer", "Consumer"),
            consumer_config=named("consumer", "ConsumerConfig"),
            consumer_error=named("consumer", "ConsumerError"),
            log_truncation_error=named("consumer", "LogTruncationError"),
            offset_and_metadata=named("consumer", "OffsetAndMetadata"),
            reset_policy=named("consumer", "ResetPolicy"),
            producer=named("producer", "Producer"),
            producer_config=named("producer", "ProducerConfig"),
            coordinator=named("offsets", "GroupCoordinator"),
            quorum_node=named("quorum.node", "QuorumNode"),
            quorum_config=named("quorum.config", "QuorumConfig"),
            not_leader=named("quorum.node", "NotLeader"),
            key_value_machine=named("quorum.machine", "KeyValueMachine"),
            controller_node=named("kraft.node", "ControllerNode"),
            kraft_config=named("kraft.config", "ControllerConfig"),
            metadata_broker=named("kraft.broker", "MetadataBroker"),
            lifecycle_config=named("kraft.config", "LifecycleConfig"),
            cleaner_config=named("compaction.config", "CleanerConfig"),
            topic_config=called("compaction.config", "topic_config"),
            table=named("compaction.table", "Table"),
            remote_log_manager=named("tiering.manager", "RemoteLogManager"),
            remote_store=named("tiering.store", "RemoteStore"),
            tiered_topic=named("tiering.config", "TieredTopic"),
            tiering_config=named("tiering.config", "TieringConfig"),
        )
