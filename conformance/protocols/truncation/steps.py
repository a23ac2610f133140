"""What messages between brokers, and from producers and the coordinator's clients, are in the model."""

from __future__ import annotations

from ....impl.wire.messages import (
    NO_LEADER,
    Envelope,
    FetchResponse,
    LeaderAndIsrRequest,
    OffsetCommitRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
)
from ...lockstep.adapter import ModelStep


def steps_of_brokers(envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...] | None:
    """The steps that the arrival of a message may be; None where it is one of a consumer's. ``asked``: as ``_steps``.

    The receiver of an answer is no consumer.
    """
    source, destination, body = envelope.source, envelope.destination, envelope.body
    match body:
        case LeaderAndIsrRequest() if body.leader != NO_LEADER:
            return (("take_up", {"replica": destination, "epoch": body.leader_epoch}),)
        case ProduceRequest():
            return (("leader_append", {"leader": destination}),)
        case OffsetCommitRequest():
            return ("store_commit", {}), ("refuse_commit", {})
    if asked is None or destination < 0:
        return None
    match body:
        case FetchResponse():
            copies = (("follower_copy", {"follower": destination, "leader": source}),) if body.records else ()
            return *copies, ("begin_log_at", {"replica": destination}), ("delete_records", {"replica": destination})
        case OffsetsForLeaderEpochResponse():
            return (("truncate_log", {"replica": destination}),)
    return None
