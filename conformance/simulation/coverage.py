"""What following has met, over all runs, for the report."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass
class SimulationCoverage:
    """What following has met, for the report: how often the frontier was wide, and which steps and guards were met."""

    events: int = 0
    wide: int = 0
    widest: int = 1
    steps: dict[str, int] = field(default_factory=dict)
    refused: dict[tuple[str, str], int] = field(default_factory=dict)
    cells: set[str] = field(default_factory=set)

    def add(self, other: SimulationCoverage) -> None:
        """Count what another has met, too."""
        self.events += other.events
        self.wide += other.wide
        self.widest = max(self.widest, other.widest)
        for action, times in other.steps.items():
            self.steps[action] = self.steps.get(action, 0) + times
        for pair, times in other.refused.items():
            self.refused[pair] = self.refused.get(pair, 0) + times
        self.cells |= other.cells
