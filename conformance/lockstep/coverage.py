"""What a lockstep run has met: states of the model, actions, refusing guards, faults, cells.

The counts that weigh the drawing (``visits``, ``met`` and ``modified``) are frozen within a round, so that an example
replays alike however often it is run; what a round has met is added to them at its end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from ...model.core.ground import State
from ...traces.format import Value
from ...traces.run_report import Json
from .expect import Try
from .faults import Kind
from .space import Call, Node, Pair, Space


@dataclass
class ActionCount:
    """How often an action was tried: where the model allows it, where it refuses it, and with a fault.

    ``beside``: how often it happened besides what was asked for, such as in an answer to a fetch.
    """

    enabled: int = 0
    refused: int = 0
    fault: int = 0
    beside: int = 0

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {"enabled": self.enabled, "refused": self.refused, "fault": self.fault, "beside": self.beside}


class Coverage:
    """Counts over all examples. ``frozen`` stops the counting, while a divergence is being shrunk."""

    def __init__(self, space: Space) -> None:
        self.actions: dict[str, ActionCount] = {
            name: ActionCount() for name in space.params if name not in space.binding.restarts
        }
        self.faults: dict[Kind, int] = {}
        self.cells: set[str] = set()
        self.visits: dict[State, int] = {}
        self.met: dict[tuple[str, str], int] = {}
        self.modified: dict[tuple[str, Kind], int] = {}
        self.steps = 0
        self.frozen = False
        self._refused: set[Pair] = set()
        self._new_visits: Counter[State] = Counter()
        self._new_met: Counter[tuple[str, str]] = Counter()
        self._new_modified: Counter[tuple[str, Kind]] = Counter()

    def tried(self, space: Space, node: Node, asked: Try) -> None:
        """Count a try."""
        if self.frozen:
            return
        self.steps += 1
        if asked.fault is not None:
            self.faults[asked.fault.kind] = self.faults.get(asked.fault.kind, 0) + 1
        if asked.call is None:
            return
        count = self.actions[asked.call[0]]
        if asked.fault is not None:
            count.fault += 1
            self._new_modified[asked.call[0], asked.fault.kind] += 1
        elif asked.call in node.after:
            count.enabled += 1
        else:
            count.refused += 1
        if asked.call not in node.after:
            # The guard that the model names, and a trace's reader is told: the first.
            guards, _ = space.refused(node, asked.call)
            self._new_met[asked.call[0], guards[0]] += 1
            self._refused.update((asked.call[0], guard) for guard in guards)

    def happened_beside(self, calls: Iterable[Call]) -> None:
        """Count steps that were not asked for."""
        for action, _ in calls:
            if not self.frozen and action in self.actions:
                self.actions[action].beside += 1

    def reached(self, state: State, observed: Mapping[str, Value]) -> None:
        """Count a state, and the cells that were seen in it."""
        if self.frozen:
            return
        self._new_visits[state] += 1
        if len(observed) != len(self.cells) or observed.keys() != self.cells:
            self.cells.update(observed)

    def end_round(self) -> None:
        """Let what was met since the last round weigh from now on."""
        for state, count in self._new_visits.items():
            self.visits[state] = self.visits.get(state, 0) + count
        for pair, count in self._new_met.items():
            self.met[pair] = self.met.get(pair, 0) + count
        for modified, count in self._new_modified.items():
            self.modified[modified] = self.modified.get(modified, 0) + count
        self._new_modified.clear()
        self._new_visits.clear()
        self._new_met.clear()

    def never_met(self, space: Space) -> tuple[str, ...]:
        """The guards, as ``action.guard``, that a system can be asked about and that never refused anything."""
        order = dict.fromkeys(pair for each in space.pairs for pair in each if pair in space.askable)
        return tuple(f"{action}.{guard}" for action, guard in order if (action, guard) not in self._refused)

    def unseen(self, space: Space) -> tuple[str, ...]:
        """The cells that were never observed."""
        return tuple(cell.name for cell in space.system.layout.cells if cell.name not in self.cells)
