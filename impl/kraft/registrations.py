"""BrokerRegistration (``ClusterControlManager.registerBroker`` in Kafka)."""

from __future__ import annotations

from ..metadata import changes
from ..metadata.image import Image
from ..metadata.values import MetadataRecord
from ..wire.controller import BrokerRegistrationRequest, BrokerRegistrationResponse
from ..wire.errors import ErrorCode
from .decision import Decision, fence_records
from .sessions import Sessions


def register(
    image: Image,
    sessions: Sessions,
    body: BrokerRegistrationRequest,
    *,
    cluster_id: str,
    offset: int,
    now: int,
    by_event: bool,
) -> Decision:
    """Give a process an epoch: the offset of its record, so that epochs rise. It is fenced at first.

    INCONSISTENT_CLUSTER_ID; DUPLICATE_BROKER_REGISTRATION while another process of this id lives. One whose answer was
    lost is told its epoch again. A former process that is not fenced yet is fenced first: it has lost what it had not
    synced, so it may not stay in an ISR. ``offset``: that of the next record.
    """
    if body.cluster_id != cluster_id:
        return Decision(BrokerRegistrationResponse(ErrorCode.INCONSISTENT_CLUSTER_ID))
    known = image.brokers.get(body.broker)
    if known is not None and known.incarnation == body.incarnation:
        sessions.registered(body.broker, known.epoch, now)
        return Decision(BrokerRegistrationResponse(ErrorCode.NONE, known.epoch))
    fences: tuple[MetadataRecord, ...] = ()
    if known is not None and not known.fenced:
        if sessions.is_live(body.broker, known.epoch, now):
            return Decision(BrokerRegistrationResponse(ErrorCode.DUPLICATE_BROKER_REGISTRATION))
        fences = fence_records(image, body.broker, by_event=by_event)
    epoch = offset + len(fences)
    record = changes.register(body.broker, epoch, body.incarnation, body.endpoints, body.rack)
    sessions.registered(body.broker, epoch, now)
    return Decision(BrokerRegistrationResponse(ErrorCode.NONE, epoch), (*fences, record))
