"""What a leader knows of one follower (``Replica`` in Kafka)."""

from __future__ import annotations

UNKNOWN = -1


class Progress:
    """``end`` is the offset of the follower's last fetch in this leader epoch: it has synced everything below.

    ``log_start``: where its log began then; 0 where it does not say.
    """

    __slots__ = ("_leader_end", "caught_up_at", "end", "fetched_at", "log_start", "replica")

    def __init__(self, replica: int, now: int) -> None:
        """Nothing is known but that it is given time from now on."""
        self.replica = replica
        self.end = UNKNOWN
        self.log_start = 0
        self.caught_up_at = now
        """When it last had all that the leader had then."""
        self.fetched_at = now
        self._leader_end = UNKNOWN

    def fetched(self, offset: int, leader_end: int, now: int, *, log_start: int = 0) -> None:
        """It has fetched from ``offset`` on, its log begins at ``log_start``; the leader's ended at ``leader_end``."""
        if offset >= leader_end:
            self.caught_up_at = now
        elif offset >= self._leader_end:  # it has reached what was the end at its last fetch
            self.caught_up_at = max(self.caught_up_at, self.fetched_at)
        self.end = offset
        self.log_start = max(log_start, 0)
        self._leader_end = leader_end
        self.fetched_at = now
