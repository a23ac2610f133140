"""How likely events of freely running brokers are, so that runs come to where logs part.

Logs part where a leader has written what its successor lacks, and the successor writes too. So producers write rather
than repeat themselves, most of all to whoever has just begun to lead; and of those who are fit to lead somebody is
elected, or the leader fails, while a record of the leader's is nowhere else: an epoch that begins with equal logs is
spent for little. Whose log was cut fails rather, soon after, and whoever is to join an ISR, before it has. In some runs
nothing is likelier for it, and a weight makes nothing impossible.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Final

from ....impl.replica.partition import PartitionState
from ...simulation.events import Event, EventKind

_HURRIED: Final = 4
"""In one of so many runs nothing is likelier."""
_WRITES: Final = 4.0
"""How likely a leader is written to, beside any other call of a client."""
_BEGINS: Final = 8.0
"""The same of a leader that has written nothing in its epoch."""
_GIVES: Final = 20.0
"""How likely an application writes, which waits for what it has written itself."""
_DELETES: Final = 4.0
"""How likely a client deletes what is committed, where any does: most that a log keeps is soon below its start."""
_VAINLY: Final = 0.4
"""How likely somebody is written to who does not lead, or once more what is on its way."""
_BESIDE: Final = 0.1
"""How likely others write where an application does: there is room for few records."""
_PARTS: Final = 5.0
"""How likely another leader is elected that lacks a record."""
_ALONE: Final = 2.0
"""How likely a leader fails that has a record which nobody else has."""
_CUT: Final = 8.0
"""How likely a node fails whose log was cut lately: what it has of before is on its disk in several files."""
_LATELY: Final = 16
"""So many events are lately."""
_IN_DOUBT: Final = 6.0
"""How likely a node fails that a leader has asked for, and that is no member yet."""
_TROUBLES: Final = frozenset({EventKind.CRASH, EventKind.CUT})

CONCERNED: Final = frozenset({EventKind.CALL, EventKind.OPERATE, *_TROUBLES})
"""The classes of events of which some are likelier than others."""

Weight = Callable[[Event], float]


def unhurried(_event: Event) -> float:
    """How likely events are of which none is the likelier."""
    return 1.0


class Workload:
    """Of one run, by its seed."""

    def __init__(self, seed: int) -> None:
        self._waits = seed // 6 % _HURRIED != 0
        self.applies = False
        """Whether an application writes by a producer of its own: all other producers hold back."""
        self._events = 0
        self._cut: dict[int, int] = {}
        """By node: when its log was cut last."""

    def happened(self, cut: int | None = None) -> None:
        """Take note of an event, and of whose log was cut in it, if anybody's."""
        self._events += 1
        if cut is not None:
            self._cut[cut] = self._events

    def at(
        self, states: Mapping[int, PartitionState | None], begun: Mapping[int, bool], sent: Collection[int]
    ) -> Weight:
        """How likely each event is now, beside 1.

        ``states``: what the replicas that are up go by; ``begun``: whether one that leads has written in its epoch;
        ``sent``: the batches that are in flight, or in some log.
        """
        if not self._waits:
            return unhurried
        ends = {node: state.end for node, state in states.items() if state is not None}
        leaders = {node: state for node, state in states.items() if state is not None and state.leader == node}
        lately = {node for node, when in self._cut.items() if self._events - when < _LATELY}
        doubtful = {replica for state in leaders.values() for replica in state.maximal_isr - state.isr}
        newest = max(leaders, key=lambda node: leaders[node].leader_epoch, default=None)

        def weight(event: Event) -> float:
            match event.what, event.name:
                case EventKind.CALL, "give":
                    return _GIVES
                case EventKind.CALL, "delete-records":
                    return _DELETES
                case EventKind.CALL, "produce" | "retry":
                    to = int(event.arg("to"))
                    if self.applies:
                        return _BESIDE
                    if to not in leaders or (event.name == "retry" and int(event.arg("batch")) in sent):
                        return _VAINLY
                    return _WRITES if begun.get(to) else _BEGINS
                case EventKind.OPERATE, "elect" if newest is not None:
                    fit = int(event.arg("replica"))
                    return _PARTS if ends.get(fit, ends[newest]) < ends[newest] else 1.0
            if event.what is EventKind.CRASH and event.node in lately:
                return _CUT
            if event.what in _TROUBLES and event.node in doubtful:
                return _IN_DOUBT
            if event.what in _TROUBLES and newest is not None and event.node == newest:
                others = [end for node, end in ends.items() if node != newest]
                return _ALONE if ends[newest] > max(others, default=0) else 1.0
            return 1.0

        return weight
