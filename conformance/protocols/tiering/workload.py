"""How likely events of freely running brokers with tiered storage are, so that runs come to where something is decided.

Records are written until segments are full, uploaded and gone from disks; then somebody is emptied, or is elected, or
fails, while something of that is under way. In some runs nothing is the likelier.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent
from .nodes import FOLLOW, REPLICATE, WORK
from .store import STORE_AWAY, STORE_BACK

if TYPE_CHECKING:
    from .system import FreeTiering

_HURRIED: Final = 6
"""In one of so many runs nothing is likelier."""
_WEIGHTS: Final = {
    "produce": 6.0,
    "consume": 0.6,
    "list-offsets": 0.5,
    "replace": 12.0,
    "elect-unclean": 1.5,
    "elect-metadata": 0.4,
    "flag": 0.5,
    "delete-records": 1.0,
    WORK: 4.0,
    FOLLOW: 2.0,
    REPLICATE: 1.5,
    STORE_AWAY: 0.4,
    STORE_BACK: 8.0,
}
_STAYS: Final = 3
"""One of so many failures of the store lasts longer than anybody waits."""
_LASTS: Final = 0.3
"""How likely such a one ends."""
_READS_REMOTE: Final = 20.0
"""How likely somebody asks for what is in remote storage alone, beside who asks for anything else that is there."""


class Workload:
    """Of one run, by its seed."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._waits = seed // 11 % _HURRIED != 0
        self._lasts = False
        self.events = 0

    def happened(self, event: Event) -> None:
        """Take note of an event."""
        self.events += 1
        if event.name == STORE_AWAY:
            self._lasts = (self._seed // 67 + self.events) % _STAYS == 0

    def weighed(self, pending: Sequence[EnabledEvent], system: FreeTiering) -> Sequence[EnabledEvent]:
        """What is pending, with how likely it is."""
        if not self._waits:
            return pending
        return [
            EnabledEvent(each.event, each.message, each.due, by)
            if (by := self._weight(each.event, system)) != 1.0
            else each
            for each in pending
        ]

    def _weight(self, event: Event, system: FreeTiering) -> float:
        if event.what is EventKind.START:
            return 3.0
        if event.name == STORE_BACK and self._lasts:
            return _LASTS
        by = _WEIGHTS.get(event.name, 1.0)
        return by * _READS_REMOTE if event.name in ("consume", "list-offsets") and is_remote(event, system) else by


def is_remote(event: Event, system: FreeTiering) -> bool:
    """Whether a request is for what its leader has in remote storage alone; of a timestamp nobody knows."""
    here = system.replica(int(event.arg("to"))) if event.what is EventKind.CALL else None
    if here is None or here.log.log_start == here.log.local_start:
        return False
    return event.name != "consume" or int(event.arg("offset")) < here.log.local_start
