"""What a run of the running consumer is like, drawn from its seed: what fails, what is quick, what happens how often.

A consumer's faults show after long stories: records are written, committed, read, and lost again. With everything drawn
at any time, elections and seeks undo each other. So each run has a few kinds of failures, messages that arrive at once,
since other runs have them late, and pauses between events that cost a leader epoch, or a position.
"""

from __future__ import annotations

from random import Random
from typing import Final

from ...simulation.events import Event, EventKind

ASKS: Final = ("seek_to_committed", "seek_to_beginning", "seek_to_end")
"""How an application asks for another position."""
JUMPS: Final = ("seek", *ASKS, "restart")
"""How an application leaves its position."""
FAILURES: Final = ("broker", "coordinator", "disk", "cut", "zombie")
"""What fails in a run: processes of brokers, that of the coordinator, disks, the network, the way to the controller."""
REPLICATION: Final = frozenset(
    {
        *("LeaderAndIsr", "LeaderAndIsrResponse", "AlterIsr", "AlterIsrResponse", "UpdateMetadataResponse"),
        *("Produce", "ProduceResponse"),
    }
)
LOOKUPS: Final = frozenset({"OffsetFetch", "ListOffsets", "Metadata"})
"""Requests of whoever looks for a position."""
FETCHES: Final = frozenset({"Fetch", "FetchResponse", "OffsetsForLeaderEpoch", "OffsetsForLeaderEpochResponse"})
"""Of followers these may arrive at once, of consumers never."""


class Workload:
    """The drawn features of one run, and when what happens not too often has happened last."""

    def __init__(self, chance: Random) -> None:
        known = LOOKUPS | {"UpdateMetadata"}
        self.at_once: frozenset[str] = chance.choice(
            (frozenset(), REPLICATION, REPLICATION | LOOKUPS, REPLICATION | known, REPLICATION | known)
        )
        """The kinds of messages that arrive at once."""
        self.retention = chance.random() < 0.3
        self.patient = chance.random() < 0.8
        """Whether the next election waits until something was read: one before takes nothing from anybody."""
        self.bold = chance.random() < 0.6
        """Whether the application leaves its position just where that is in doubt."""
        self.fragile = chance.random() < 0.5
        """Whether the coordinator's disk is the one that fails, where disks do."""
        self.gone = chance.random() < 0.35
        """Whether one of the addresses that the consumer has to ask for metadata is nobody's any more."""
        self.secluded = chance.random() < 0.5
        """Whether followers get nothing of what a leader has written itself: the next election loses it."""
        self.alone = self.secluded or chance.random() < 0.4
        """Whether the first leader is the whole ISR, and commits what it writes by itself."""
        self.elections: tuple[str, ...] = chance.choice((("elect", "elect_unclean"), ("elect_unclean",)))
        self.failures = frozenset(chance.sample(FAILURES, chance.randint(0, 2)))
        if chance.random() < 0.15:
            self.failures |= {"zombie"}
        self.jumps = frozenset(chance.sample(JUMPS, chance.randint(1, 3)))
        self.members = chance.random() < 0.4
        """Whether others commit to the same coordinator."""
        self.beside = chance.random() < 0.3
        """Whether the consumer reads a second partition."""
        self.beside_at_once = chance.random() < 0.6
        """Whether all messages of that arrive at once."""
        term = chance.choice((10, 20, 50))
        """Between two events that cost a leader epoch, or two failures of a node."""
        self._pauses = {
            "jump": chance.choice((20, 60, 200)),
            "fetch": chance.choice((0, 0, 15, 40)),
            "produce": chance.choice((3, 8, 20)),
            "time": chance.choice((4, 8, 12)),
            "poll": 10,
            "patience": 100,
            "beside": chance.choice((5, 15, 40)),
            "leave": chance.choice((20, 60)),
            "member": chance.choice((8, 20)),
            "commit": chance.choice((4, 12, 30)),
            "rejoin": chance.choice((30, 120)),
            **dict.fromkeys(("election", "failure", "delete"), term),
        }
        """So many events, at least, between two of a kind; of a follower's requests at the same node."""
        self._events = 0
        self._last: dict[tuple[str, int | None], int] = {}
        self.peace = False
        """Nothing is kept waiting any more."""

    def is_time(self, what: str, node: int | None = None) -> bool:
        """Whether something may happen again."""
        pause = self._pauses[what]
        return self.peace or self._events - self._last.get((what, node), -pause) >= pause

    def happened(self, what: str, node: int | None = None) -> None:
        """It has happened just now."""
        self._last[what, node] = self._events

    def after(self, event: Event) -> None:
        """Count an event, and note what it was."""
        self._events += 1
        if event.what is EventKind.TIMER:
            self.happened("fetch", event.node)
        elif event.what is EventKind.TIME:
            self.happened("time")
        elif event.name in ("delete", "produce", "poll", "commit"):
            self.happened(event.name)
        elif event.name in JUMPS:
            self.happened("jump")
        if event.what in (EventKind.CRASH, EventKind.DISK, EventKind.CUT) or event.crash is not None:
            self.happened("failure")
        if event.what is EventKind.CUT:
            self.happened("rejoin")

    def is_prompt(self, kind: str, *, of_client: bool) -> bool:
        """Whether a message of a kind arrives at once."""
        if kind in FETCHES:
            return bool(self.at_once) and not of_client
        return kind in self.at_once
