"""BrokerHeartbeat: fencing, unfencing and controlled shutdown (``BrokerHeartbeatManager.calculateNextBrokerState``).

Without the answer's ``should_snapshot``, which is for ``snapshots`` to say.
"""

from __future__ import annotations

from enum import Enum, auto

from ..metadata import changes
from ..metadata.elections import PartitionImage, elected
from ..metadata.image import BrokerImage, Image, PartitionKey
from ..metadata.values import MetadataRecord
from ..wire.controller import BrokerHeartbeatRequest, BrokerHeartbeatResponse
from ..wire.errors import ErrorCode
from ..wire.messages import NO_LEADER
from .decision import Decision, fence_records, isr_records
from .sessions import UNKNOWN, Session, Sessions


class Next(Enum):
    """What a broker is to be."""

    FENCED = auto()
    UNFENCED = auto()
    CONTROLLED_SHUTDOWN = auto()
    SHUTDOWN_NOW = auto()


def heartbeat(
    image: Image, sessions: Sessions, body: BrokerHeartbeatRequest, *, end: int, now: int, by_event: bool
) -> Decision:
    """What becomes of a broker that lives. STALE_BROKER_EPOCH where that process is not registered.

    ``end``: of the log.
    """
    known = image.brokers.get(body.broker)
    if known is None or known.epoch != body.broker_epoch:
        return Decision(BrokerHeartbeatResponse(ErrorCode.STALE_BROKER_EPOCH))
    session = sessions.heard(body.broker, known.epoch, body.metadata_offset, now)
    caught_up = body.metadata_offset >= known.epoch
    after = _next(image, sessions, session, known, body)
    records: tuple[MetadataRecord, ...] = ()
    if after is Next.UNFENCED and known.fenced:
        records = (changes.unfence(body.broker, known.epoch), *isr_records(_led_again(image, body.broker)))
    elif after in (Next.FENCED, Next.SHUTDOWN_NOW) and not known.fenced:
        records = fence_records(image, body.broker, by_event=by_event)
    elif after is Next.CONTROLLED_SHUTDOWN and not known.shutting_down:
        shut_down = changes.registration(body.broker, known._replace(shutting_down=True))
        # It leads nothing by the time that it is marked, also where the records do not fit into one batch.
        records = (*isr_records(image.without(body.broker)), shut_down)
    if after is Next.CONTROLLED_SHUTDOWN and session.shutdown_offset == UNKNOWN:
        session.shutdown_offset = end + len(records) - 1
    is_fenced = after in (Next.FENCED, Next.SHUTDOWN_NOW)
    answer = BrokerHeartbeatResponse(ErrorCode.NONE, caught_up, is_fenced, after is Next.SHUTDOWN_NOW)
    return Decision(answer, records)


def _next(image: Image, sessions: Sessions, session: Session, known: BrokerImage, body: BrokerHeartbeatRequest) -> Next:
    if known.fenced:
        if body.want_shut_down:
            return Next.SHUTDOWN_NOW
        # Who was fenced to stop stays so: a heartbeat that says nothing of it was sent before, and is late.
        works = not body.want_fence and not known.shutting_down
        return Next.UNFENCED if works and body.metadata_offset >= known.epoch else Next.FENCED
    if known.shutting_down:
        # Its leaderships were moved with the record that says so; it stays up until the others have heard of that.
        if session.shutdown_offset == UNKNOWN:
            return Next.CONTROLLED_SHUTDOWN
        lowest = sessions.lowest_active_offset(image)
        there = lowest is None or lowest >= session.shutdown_offset
        return Next.SHUTDOWN_NOW if there else Next.CONTROLLED_SHUTDOWN
    if body.want_fence:
        return Next.SHUTDOWN_NOW if body.want_shut_down else Next.FENCED
    if body.want_shut_down:
        return Next.CONTROLLED_SHUTDOWN if image.leads(body.broker) else Next.SHUTDOWN_NOW
    return Next.UNFENCED


def _led_again(image: Image, broker: int) -> dict[PartitionKey, PartitionImage]:
    """The partitions without a leader that have one when this broker is alive."""
    led = {}
    for key, partition in image.partitions.items():
        if partition.leader == NO_LEADER and broker in partition.replicas:
            after = elected(
                partition, lambda each: each == broker or image.alive(each), unclean=image.unclean(key.topic)
            )
            if after is not partition:
                led[key] = after
    return led
