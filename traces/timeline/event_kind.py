"""The kinds of event in a timeline."""

from __future__ import annotations

from enum import StrEnum


class EventKind(StrEnum):
    """What one observation reports. The comment after each kind lists the fields of ``Observation`` that it sets.

    Fields in brackets are set only where the source has them. A checker reads fields, never the text.
    """

    # Brokers: server logs.
    LOG_CREATED = "log created"  # an empty log; [topic_id, directory]
    COPY_CREATED = "copy created"  # a copy that moves to another directory; [directory]
    LOG_DELETED = "log deleted"  # [directory]
    LOG_LOADED = "log loaded"  # [high_watermark, log_start, log_end]
    LEADER_STARTED = "leader started"  # leader_epoch, leader = node, log_end, [high_watermark, isr, previous_epoch]
    FOLLOWER_STARTED = "follower started"  # leader_epoch, [leader, log_end, high_watermark, previous_epoch]
    FETCHER_ADDED = "fetcher added"  # leader, [leader_epoch, offset: where it fetches from]
    FETCHER_REMOVED = "fetcher removed"
    ISR_SHRINK = "ISR shrinks"  # a leader asks for it: isr, [high_watermark, log_end]
    ISR_EXPAND = "ISR expands"  # a leader asks for it: isr, [high_watermark, log_end]
    ISR_REQUESTED = "ISR requested"  # a leader sends it to the controller: isr
    ISR_UPDATED = "ISR updated"  # a leader learns it: isr, [partition_epoch]
    HIGH_WATERMARK = "high watermark"  # high_watermark
    FOLLOWER_FETCH = "follower fetch"  # follower, offset: the follower's log end as its leader knows it
    APPENDED = "appended"  # log_end
    TRUNCATED = "truncated"  # offset: the new log end, [high_watermark: before the truncation]
    TRUNCATED_FULLY = "truncated fully"  # offset: the new log start and log end
    TRUNCATION_DECIDED = "truncation decided"  # offset, by the fetcher, before the log is truncated
    TRUNCATION_NO_EFFECT = "truncation without effect"  # offset, log_end
    TRUNCATION_REFUSED = "truncation refused"  # offset: the leader's log end, log_end: the replica's own
    FETCH_RESET = "fetch offset reset"  # log_end: its own, and the leader's log end (offset) or log start
    LOG_CORRUPT = "corruption found"  # offset: where recovery truncates the log
    LOG_SWAPPED = "log directory swapped"  # the replica of another directory takes over
    LOG_START = "log start moved"  # log_start
    REPLICA_OFFLINE = "replica offline"
    ROLE_SKIPPED = "role unchanged"  # leader_epoch, [leader, isr]

    # Controllers: server logs and metadata.
    PARTITION_CREATED = "partition created"  # [leader, leader_epoch, isr, replicas, topic_id, partition_epoch]
    PARTITION_CHANGED = "partition changed"  # what has changed of leader, leader_epoch, isr, replicas, partition_epoch
    UNCLEAN_ELECTION = "unclean election"  # [leader, leader_epoch, isr, partition_epoch]
    TOPIC_DELETED = "topic deleted"  # [topic_id]

    # Nodes: partition is "" unless the event belongs to the metadata log.
    NODE_STARTED = "node started"
    NODE_STOPPED = "node stopped"
    CONTROLLER_CHANGED = "controller changed"  # leader_epoch, [leader: -1 if none]
    QUORUM_ROLE = "quorum role"  # role, leader_epoch, [leader, voted_for, log_end, high_watermark]
    VOTE = "vote"  # leader_epoch, leader: the candidate, outcome, [log_end: the candidate's]

    # Files: dumps and partition folders.
    BATCH = "batch"  # offset: first, log_end: last + 1, leader_epoch
    RECORD = "record"  # offset, value, [leader_epoch, time: CreateTime]
    EPOCH_START = "epoch start"  # leader_epoch, offset: of leader-epoch-checkpoint
    LOG_CONTENT = "log content"  # log_start, log_end, [high_watermark]

    # Clients: histories.
    PRODUCE = "produce"  # outcome, [offset, value, acks, leader_epoch, began]
    POLL = "poll"  # outcome, [offset, value, leader_epoch, began], one observation a record
    ASSIGNED = "assigned"  # a consumer's assignment changes, [offset: 0 if it starts at the beginning, outcome]
    SEEK = "seek"  # offset
    COMMIT = "commit"  # offset, outcome
