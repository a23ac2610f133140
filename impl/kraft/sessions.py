"""Which brokers live: soft state of the active controller, by heartbeats (``BrokerHeartbeatManager`` in Kafka).

Nothing of it is in the log: a new active controller gives every broker that is not fenced a whole session.
"""

from __future__ import annotations

from dataclasses import dataclass

from ..metadata.image import Image

UNKNOWN = -1


@dataclass(slots=True)
class Session:
    """One broker process, since this controller is active."""

    epoch: int
    heard_at: int
    metadata_offset: int = UNKNOWN
    """The last record that it has replayed."""
    shutdown_offset: int = UNKNOWN
    """Up to where the others have to be before it may stop: the end of the log when its leaderships were moved."""


class Sessions:
    """Times are the clock's milliseconds."""

    def __init__(self, timeout_ms: int, image: Image, now: int) -> None:
        """Of a controller that has just become active."""
        self._timeout = timeout_ms
        self._sessions = {
            broker: Session(known.epoch, now) for broker, known in image.brokers.items() if not known.fenced
        }

    def registered(self, broker: int, epoch: int, now: int) -> None:
        """A new process, or one that has registered again as it was not answered."""
        known = self._sessions.get(broker)
        if known is None or known.epoch != epoch:
            self._sessions[broker] = Session(epoch, now)
        else:
            known.heard_at = now

    def heard(self, broker: int, epoch: int, metadata_offset: int, now: int) -> Session:
        """A heartbeat of this process; what it has replayed never falls."""
        self.registered(broker, epoch, now)
        session = self._sessions[broker]
        session.metadata_offset = max(session.metadata_offset, metadata_offset)
        return session

    def is_live(self, broker: int, epoch: int, now: int) -> bool:
        """Whether this process was heard of within the time-out."""
        known = self._sessions.get(broker)
        return known is not None and known.epoch == epoch and now - known.heard_at < self._timeout

    def expired(self, image: Image, now: int) -> list[int]:
        """The brokers to fence, whoever was heard of first coming first."""
        over = [
            (session.heard_at, broker)
            for broker, session in self._sessions.items()
            if now - session.heard_at >= self._timeout and self._counts(image, broker, session)
        ]
        return [broker for _, broker in sorted(over)]

    def deadline(self, image: Image) -> int | None:
        """When the next session is over, unless a heartbeat comes."""
        ends = (
            session.heard_at + self._timeout
            for broker, session in self._sessions.items()
            if self._counts(image, broker, session)
        )
        return min(ends, default=None)

    def lowest_active_offset(self, image: Image) -> int | None:
        """What all brokers that are active have replayed; ``None`` where none is."""
        offsets = (
            session.metadata_offset if (session := self._sessions.get(broker)) is not None else UNKNOWN
            for broker in image.brokers
            if image.alive(broker)
        )
        return min(offsets, default=None)

    def _counts(self, image: Image, broker: int, session: Session) -> bool:
        known = image.brokers.get(broker)
        return known is not None and not known.fenced and known.epoch == session.epoch
