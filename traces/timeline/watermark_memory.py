"""The highest high watermark that one broker reported of the log that it still has."""

from __future__ import annotations

from dataclasses import dataclass

from .event_kind import EventKind
from .observation import Observation

K = EventKind
_FORGET = frozenset({K.LOG_CREATED, K.LOG_DELETED, K.TOPIC_DELETED, K.TRUNCATED_FULLY, K.LOG_SWAPPED, K.LOG_CORRUPT})
_SHOW_LOG_END = frozenset({K.LEADER_STARTED, K.FOLLOWER_STARTED, K.TRUNCATION_NO_EFFECT, K.TRUNCATION_REFUSED})


@dataclass(slots=True)
class WatermarkMemory:
    """Follows one broker's lines.

    After a restart the log may be another one: the disk was replaced, or the replica was removed and added again, and
    the lines about it are missing. An earlier high watermark counts only if a line shows that the log still reaches it.

    Since 2.7 a follower takes the high watermark of its leader's answer before it truncates what differs from the
    leader's log. So a follower's high watermark counts only if it has appended what its leader sent.
    """

    _highest: Observation | None = None
    _since_restart: Observation | None = None
    _survives: bool = True
    _end_shown: bool = False
    _in_sync: bool = False
    _role_end: int | None = None
    _role_shows_watermark: bool = False

    @property
    def may_be_leaders(self) -> bool:
        """Whether the log's high watermark may now be the leader's.

        The line that made the node a follower has the one before, and the node has appended nothing since.
        """
        return self._role_shows_watermark and not self._in_sync

    @property
    def current(self) -> Observation | None:
        """The line with the highest high watermark of the log at hand."""
        return self._highest if self._survives else self._since_restart

    def observe(self, seen: Observation) -> None:
        """Take in the next line of the broker."""
        if seen.kind in _FORGET or (seen.kind is K.FETCH_RESET and seen.log_start is not None):
            self._forget()
        elif seen.kind is K.TRUNCATED:
            current = self.current
            if current is not None and seen.offset is not None and seen.offset < (current.high_watermark or 0):
                self._forget()
        elif seen.kind is K.NODE_STARTED:
            self._role_shows_watermark = False
            self._survives, self._end_shown, self._since_restart = self._highest is None, False, None
        elif seen.kind is K.LOG_LOADED and seen.log_end is not None:
            self._survives, self._end_shown, self._since_restart = self._reaches(seen), True, None
        elif seen.kind is K.LOG_LOADED:
            if not self._end_shown:
                self._survives, self._since_restart = self._highest is None, None
            self._raise(seen)
        elif seen.kind is K.FETCHER_ADDED:
            self._follow(seen.offset)
        elif seen.kind is K.APPENDED:
            self._in_sync = True
        elif seen.kind is K.HIGH_WATERMARK and not self._in_sync:
            pass
        else:
            if seen.kind in _SHOW_LOG_END and seen.log_end is not None:
                self._end_shown = False
                if self._reaches(seen):
                    self._survives = True
                else:
                    self._highest, self._since_restart, self._survives = self._since_restart, None, True
            unproven = seen.kind is K.FOLLOWER_STARTED and not self._in_sync and seen.log_end == self._role_end
            if not unproven:
                self._raise(seen)
            if seen.kind is K.FOLLOWER_STARTED:
                self._follow(seen.log_end)
                self._role_shows_watermark = seen.high_watermark is not None
            elif seen.kind is K.LEADER_STARTED:
                self._in_sync = True

    def _follow(self, end: int | None) -> None:
        self._in_sync, self._role_end = False, end

    def _forget(self) -> None:
        self._role_shows_watermark = False
        self._highest, self._since_restart, self._survives, self._end_shown = None, None, True, False

    def _reaches(self, seen: Observation) -> bool:
        """Whether the log still has all records below the highest high watermark."""
        return self._highest is None or (seen.log_end or 0) >= (self._highest.high_watermark or 0)

    def _raise(self, seen: Observation) -> None:
        if seen.high_watermark is None:
            return
        if self._highest is None or seen.high_watermark >= (self._highest.high_watermark or 0):
            self._highest, self._survives = seen, True
        elif not self._survives:
            known = self._since_restart
            if known is None or seen.high_watermark >= (known.high_watermark or 0):
                self._since_restart = seen
