"""The table of the messages that Kafka's processes log about partitions, from 0.11 to 4.4.

A row is data: the logger, the event, a template of the message, and the releases that log it. Source: the logging calls
of Apache Kafka's tags 0.11.0 to 4.4.0, in the classes that the loggers are named after.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ...timeline.event_kind import EventKind
from ...timeline.observation import METADATA_LOG
from .details import (
    fetch_states,
    loaded_log,
    partition_diff,
    partition_state,
    partitions,
    quorum_role,
    requested_isr,
    vote,
)
from .pattern import Fields, LoggerPatterns, Pattern

K = EventKind
_QUORUM = {"partition": METADATA_LOG}
_NODE = {"partition": ""}

_LOG = LoggerPatterns(
    "INFO",
    ("[<*>Log{Loader} partition=<partition>, dir=<directory>] ", ""),
    (
        Pattern(K.TRUNCATED, "Truncating to offset <offset><$>", "1.0-"),
        Pattern(K.TRUNCATED, "Truncating log <partition> to offset <offset>.", "0.11"),
        Pattern(
            K.TRUNCATION_NO_EFFECT,
            "Truncating {<partition> }to <offset> has no effect as the largest offset in the log is <last_offset>",
            "0.11-",
        ),
        Pattern(K.TRUNCATED_FULLY, "Truncate and start at offset <offset>", "1.0-"),
        Pattern(K.TRUNCATED_FULLY, "Truncate and start log '<partition>' at offset <offset>", "0.11"),
        Pattern(K.APPENDED, "Appended message set with last offset: <*> next offset: <log_end>,", "1.1-"),
        Pattern(K.APPENDED, "Appended message set to log with last offset <*> next offset: <log_end>,", "1.0"),
        Pattern(K.HIGH_WATERMARK, "Setting high watermark {LogOffsetMetadata}{(offset=}<high_watermark>", "2.4-"),
        Pattern(K.LOG_START, "Increment{ed}{ing} log start offset to <log_start>{ due to <*>}<$>", "1.0-"),
        Pattern(K.LOG_START, "Incrementing log start offset of partition <partition> to <log_start> in dir", "0.11"),
        Pattern(K.LOG_CORRUPT, "Corruption found in segment <*>, truncating to offset <offset>", "1.0-"),
        Pattern(
            K.LOG_CORRUPT, "Corruption found in segment <*> of log <partition>, truncating to offset <offset>.", "0.11"
        ),
        Pattern(
            K.LOG_LOADED,
            "Completed load of log {<partition> }with <*> segments, log start offset <log_start>"
            " and log end offset <log_end> in",
            "0.11-2.5",
        ),
    ),
)

_FETCHER = LoggerPatterns(
    "INFO",
    (
        "[Replica<*> replicaId=<node>, <*>] ",
        "[ReplicaFetcherThread<*>]: ",
        "[ReplicaFetcherThread<*>], ",
        "[ReplicaFetcherThread<*>] ",
        "",
    ),
    (
        Pattern(K.TRUNCATED, "Truncating <partition> to offset <offset> below high watermark <high_watermark>", "2.0-"),
        Pattern(
            K.TRUNCATION_DECIDED,
            "Truncating partition <partition> with TruncationState(offset=<offset>, <*>) due to"
            " leader epoch and offset",
            "3.1-",
        ),
        Pattern(
            K.HIGH_WATERMARK,
            "Truncating partition <partition> with TruncationState(<*>) due to local high watermark <high_watermark>",
            "3.1-",
        ),
        Pattern(
            K.HIGH_WATERMARK, "Truncating partition <partition> to local high watermark <high_watermark>", "2.1-3.0"
        ),
        Pattern(
            K.TRUNCATION_REFUSED,
            "Exiting because log truncation is not allowed for partition <partition>, current leader{ <leader>}'s"
            " latest offset <offset> is less than replica{ <node>}'s latest offset <log_end>",
            "0.11-1.1",
        ),
        Pattern(
            K.TRUNCATION_REFUSED,
            "Halting because log truncation is not allowed for {topic }{partition }<partition>, {C}{c}urrent leader"
            " <leader>'s latest offset <offset> is less than replica <node>'s latest offset <log_end>",
            "0.8-0.10",
        ),
        Pattern(
            K.FETCH_RESET,
            "Reset fetch offset for partition <partition> from <log_end> to current leader's latest offset <offset>",
            "1.0-",
        ),
        Pattern(
            K.FETCH_RESET,
            "Reset fetch offset for partition <partition> from <log_end> to current leader's start offset <log_start>",
            "1.0-3.5",
        ),
        Pattern(
            K.FETCH_RESET,
            "Replica <node> for partition <partition> reset its fetch offset from <log_end> to current leader"
            " <leader>'s latest offset <offset>",
            "0.11",
        ),
        Pattern(
            K.FETCH_RESET,
            "Replica <node> for partition <partition> reset its fetch offset from <log_end> to current leader"
            " <leader>'s start offset <log_start>",
            "0.11",
        ),
        Pattern(
            K.TRUNCATED_FULLY,
            "Truncate fully and reset fetch offset for partition <partition> from <log_end> to the current leader's"
            " start offset <offset>",
            "3.6-",
        ),
    ),
)

_CONTROLLER = LoggerPatterns(
    "INFO",
    ("[<*>ontroller<*> {id=}{controllerId=}<node>]{:} ", "[<*>] ", "[<*>]: ", ""),
    (
        Pattern(K.PARTITION_CHANGED, "Partition <partition> state changed to <details>", "2.6-3.9", partition_state),
        Pattern(
            K.PARTITION_CHANGED,
            "New leader and ISR for partition <partition> is <details>",
            "0.11-1.0",
            partition_state,
        ),
        Pattern(K.PARTITION_CHANGED, "ISR for partition <partition> updated to <details>", "2.8-3.9", partition_state),
        Pattern(
            K.PARTITION_CHANGED,
            "Selected new leader and ISR <details> for offline partition <partition>",
            "0.11-1.0",
            partition_state,
        ),
        Pattern(K.PARTITION_CHANGED, "Updated leader epoch for partition <partition> to <leader_epoch>", "1.1-3.9"),
        Pattern(
            K.UNCLEAN_ELECTION,
            "No broker in ISR is alive for <partition>. Elect leader <leader> from live brokers",
            "0.11-1.0",
        ),
        Pattern(
            K.UNCLEAN_ELECTION,
            "Starting replica leader election (UNCLEAN) for partitions <details>",
            "2.4-3.9",
            partitions,
        ),
        Pattern(K.TOPIC_DELETED, "Deletion of topic <topic> successfully completed", "0.11-3.9", None, _NODE),
        Pattern(
            K.CONTROLLER_CHANGED,
            "<node> successfully elected as the controller{. Epoch incremented to <leader_epoch>}",
            "0.11-3.9",
            None,
            _NODE,
        ),
    ),
)

_STATE_CHANGE = LoggerPatterns(
    "INFO",
    ("[Broker id=<node>] ", "[Controller id=<node>{ epoch=<*>}] ", "Broker <node> ", "Controller <node> epoch <*> "),
    (
        Pattern(
            K.LEADER_STARTED,
            "Leader <partition> {with topic id <topic_id> }starts at leader epoch <leader_epoch> from offset <log_end>"
            "{ with partition epoch <partition_epoch>,}{ with} high watermark <high_watermark>{,}"
            " ISR [<isr>]{<*>revious leader epoch was <previous_epoch>.}",
            "2.6-",
        ),
        Pattern(
            K.FOLLOWER_STARTED,
            "Follower <partition> {with topic id <topic_id> }starts at leader epoch <leader_epoch> from offset"
            " <log_end> with {partition epoch <partition_epoch> and }high watermark <high_watermark>."
            "{ Current leader is <leader>.}{<*>revious leader epoch was <previous_epoch>.}",
            "2.6-",
        ),
        Pattern(
            K.ROLE_SKIPPED,
            "Skipped the become-leader state change for <partition> <details>",
            "3.0-",
            partition_state,
        ),
        Pattern(
            K.ROLE_SKIPPED,
            "Skipped the become-follower state change for <partition> <details>",
            "3.0-",
            partition_state,
        ),
        Pattern(K.PARTITION_CHANGED, "Partition <partition> state changed to <details>", "2.6-3.9", partition_state),
        Pattern(K.UNCLEAN_ELECTION, "The topic partition <partition> was marked as RECOVERING.", "3.2-"),
        Pattern(
            K.PARTITION_CHANGED,
            "{C}{c}hanged partition <partition> {state }from <*> to <*> with {state }<details>",
            "0.11-3.9",
            partition_state,
        ),
        Pattern(K.PARTITION_CHANGED, "elected leader <leader> for Offline partition <partition>", "0.11-1.0"),
    ),
)

TABLE: Final[Mapping[str, LoggerPatterns]] = {
    "Partition": LoggerPatterns(
        "INFO",
        ("[Partition <partition> broker=<node>] ", "Partition <partition> on broker <node>: "),
        (
            Pattern(K.LOG_LOADED, "Log loaded for partition <*> with initial high watermark <high_watermark>", "2.4-"),
            Pattern(
                K.LEADER_STARTED,
                "<*> starts at Leader Epoch <leader_epoch> from offset <log_end>. Previous Leader"
                " Epoch was: <previous_epoch>",
                "0.11-2.3",
            ),
            Pattern(
                K.LEADER_STARTED,
                "<*> starts at leader epoch <leader_epoch> from offset <log_end> with high watermark <high_watermark>."
                " Previous leader epoch was <previous_epoch>.",
                "2.4-2.5",
            ),
            Pattern(
                K.ISR_SHRINK,
                "Shrinking ISR <*>from <*> to <isr>{ (<*>)}. Leader: (highWatermark:"
                " <high_watermark>, endOffset: <log_end>).",
                "2.2-",
            ),
            Pattern(K.ISR_SHRINK, "Shrinking ISR <*>from <*> to <isr>", "0.11-2.1"),
            Pattern(K.ISR_EXPAND, "Expanding ISR <*>from <*> to <isr>", "0.11-"),
            Pattern(
                K.ISR_UPDATED,
                "ISR updated to {[}<isr>{]}<*> and {zkV}{v}ersion updated to {[}<partition_epoch>",
                "0.11-",
            ),
            Pattern(K.HIGH_WATERMARK, "High watermark updated from <*> to (offset=<high_watermark>", "2.4-"),
            Pattern(K.HIGH_WATERMARK, "High watermark updated to <high_watermark>", "0.11-2.3"),
            Pattern(K.FOLLOWER_FETCH, "Recorded replica <follower> log end offset (LEO) position <offset>", "0.11-"),
            Pattern(K.ISR_REQUESTED, "Submitting ISR state change <details>", "2.7-", requested_isr),
        ),
    ),
    "Replica": LoggerPatterns(
        "INFO",
        ("[Replica<*>] ", ""),
        (
            Pattern(
                K.LOG_LOADED,
                "Replica loaded for partition <partition> with initial high watermark <high_watermark>",
                "0.11-2.3",
            ),
        ),
    ),
    "Log": _LOG,
    "UnifiedLog": _LOG,
    "LogLoader": _LOG,
    "MergedLog": _LOG,
    "logger": _STATE_CHANGE,
    "LogManager": LoggerPatterns(
        "INFO",
        ("[LogManager<*>] ", ""),
        (
            Pattern(K.LOG_CREATED, "Created log for partition <partition> in <directory> with properties", "0.11-"),
            Pattern(
                K.LOG_DELETED,
                "Log for partition <partition> is renamed to <directory> and is scheduled for deletion",
                "0.11-",
            ),
            Pattern(
                K.LOG_DELETED, "Log for partition <partition> is marked as stray and renamed to <directory><$>", "3.6-"
            ),
            Pattern(
                K.LOG_SWAPPED,
                "The current replica is successfully replaced with the future replica for <partition>",
                "1.1-",
            ),
            Pattern(K.LOG_LOADED, "Completed load of {Unified}Log(dir=<directory>, <details>", "2.6-", loaded_log),
        ),
    ),
    "ReplicaFetcherThread": _FETCHER,
    "ReplicaAlterLogDirsThread": LoggerPatterns("INFO", (), ()),
    "ReplicaFetcherManager": LoggerPatterns(
        "INFO",
        ("[ReplicaFetcherManager on broker <node>] ",),
        (
            Pattern(K.FETCHER_ADDED, "Added fetcher to broker <details>", "2.2-", fetch_states),
            Pattern(K.FETCHER_ADDED, "Added fetcher for partitions <details>", "0.11-2.1", fetch_states),
            Pattern(K.FETCHER_REMOVED, "Removed fetcher for partitions <details>", "0.11-", partitions),
        ),
    ),
    "KafkaController": _CONTROLLER,
    "PartitionStateMachine": _CONTROLLER,
    "ZkPartitionStateMachine": _CONTROLLER,
    "ReplicaStateMachine": _CONTROLLER,
    "ZkReplicaStateMachine": _CONTROLLER,
    "TopicDeletionManager": _CONTROLLER,
    "OfflinePartitionLeaderSelector": _CONTROLLER,
    "ReplicationControlManager": LoggerPatterns(
        "INFO",
        ("[{Quorum}Controller <*>id=<node>] ", "[Controller <node>] "),
        (
            Pattern(
                K.PARTITION_CREATED,
                "{Replayed PartitionRecord for new}{Created} partition <partition> with topic ID"
                " <topic_id> and <details>",
                "3.0-",
                partition_state,
            ),
            Pattern(
                K.UNCLEAN_ELECTION,
                "UNCLEAN partition change for <partition> with topic ID <topic_id>: <details>",
                "3.0-",
                partition_diff,
            ),
            Pattern(
                K.PARTITION_CHANGED,
                "partition change for <partition> with topic ID <topic_id>: <details>",
                "3.0-",
                partition_diff,
            ),
            Pattern(
                K.PARTITION_CHANGED,
                "Replayed PartitionRecord for existing partition <partition> with topic ID <topic_id> and <details>",
                "3.6-",
                partition_state,
            ),
            Pattern(K.ISR_REQUESTED, "Node <follower> has altered ISR for <partition>{ to [<isr>]}.", "3.0-"),
            Pattern(
                K.TOPIC_DELETED,
                "{Replayed RemoveTopicRecord for}{Removed} topic <topic> with ID <topic_id>.",
                "3.0-",
                None,
                _NODE,
            ),
        ),
    ),
    "QuorumController": LoggerPatterns(
        "INFO",
        ("[{Quorum}Controller <*>id=<node>] ", "[Controller <node>] "),
        (
            Pattern(
                K.CONTROLLER_CHANGED, "In the new epoch <leader_epoch>, the leader is <leader>.", "3.3-", None, _QUORUM
            ),
            Pattern(
                K.CONTROLLER_CHANGED,
                "In the new epoch <leader_epoch>, the leader is (none).",
                "3.3-",
                None,
                {**_QUORUM, "leader": -1},
            ),
        ),
    ),
    "QuorumState": LoggerPatterns(
        "INFO",
        ("[RaftManager {nodeId=}{id=}<node>] ",),
        (Pattern(K.QUORUM_ROLE, "Completed transition to <details>", "2.8-", quorum_role, _QUORUM),),
    ),
    "KafkaRaftClient": LoggerPatterns(
        "INFO",
        ("[RaftManager {nodeId=}{id=}<node>] ",),
        (
            Pattern(K.VOTE, "Vote request <details>", "2.8-", vote, _QUORUM),
            Pattern(
                K.TRUNCATION_DECIDED,
                "Truncated to offset <offset> from Fetch response from leader",
                "2.8-",
                None,
                _QUORUM,
            ),
        ),
    ),
    "LeaderState": LoggerPatterns(
        "INFO",
        ("[RaftManager {nodeId=}{id=}<node>] ",),
        (
            Pattern(
                K.HIGH_WATERMARK,
                "High watermark set to LogOffsetMetadata(offset=<high_watermark>, <*> for the first"
                " time for epoch <leader_epoch>",
                "3.4-",
                None,
                _QUORUM,
            ),
            Pattern(
                K.HIGH_WATERMARK,
                "High watermark set to {Optional[}LogOffsetMetadata(offset=<high_watermark>",
                "3.0-",
                None,
                _QUORUM,
            ),
        ),
    ),
    "FollowerState": LoggerPatterns(
        "INFO",
        ("[RaftManager {nodeId=}{id=}<node>] ",),
        (
            Pattern(
                K.HIGH_WATERMARK,
                "High watermark set to Optional[LogOffsetMetadata(offset=<high_watermark>, <*> epoch <leader_epoch>",
                "3.4-",
                None,
                _QUORUM,
            ),
        ),
    ),
    "KafkaServer": LoggerPatterns(
        "INFO",
        ("[KafkaServer id=<node>] ", "[Kafka Server <node>], "),
        (
            Pattern(K.NODE_STARTED, "starting", "0.11-3.9", None, _NODE),
            Pattern(K.NODE_STOPPED, "shut{ting} down", "0.11-3.9", None, _NODE),
        ),
    ),
    "BrokerServer": LoggerPatterns(
        "INFO",
        ("[BrokerServer id=<node>] ",),
        (
            Pattern(K.NODE_STARTED, "Starting broker", "2.8-", None, _NODE),
            Pattern(K.NODE_STOPPED, "shut{ting} down", "2.8-", None, _NODE),
        ),
    ),
    "ControllerServer": LoggerPatterns(
        "INFO",
        ("[ControllerServer id=<node>] ",),
        (
            Pattern(K.NODE_STARTED, "Starting controller", "2.8-", None, _NODE),
            Pattern(K.NODE_STOPPED, "shut{ting} down", "2.8-", None, _NODE),
        ),
    ),
}
"""Messages by the last part of the logger's name."""


def match_message(logger_class: str, message: str) -> Iterator[tuple[EventKind, Fields]]:
    """Yield the events that a message reports.

    Args:
        logger_class: Last part of the logger's name; empty if the layout has none, and then all loggers are tried.
        message: The text that Kafka logged.

    Raises:
        ValueError: A number in the message is none of Kafka's.
    """
    if logger_class:
        patterns = TABLE.get(logger_class)
        if patterns is not None:
            yield from patterns.match(message)
        return
    for patterns in TABLE.values():
        events = list(patterns.match(message))
        if events:
            yield from events
            return
