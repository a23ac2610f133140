"""Where mutants break a promise only at constants at which the model's states are too many to compare with theirs.

Such a mutant is searched alone, and with a few actions only, as far as its run needs them: what a run of some actions
breaks, the mutant breaks. That the model has no such run is for trace replay to say. These places were found by
thinking of a run that would break something; the search confirms it, or the row fails.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from ...model.core.ground import System


@dataclass(frozen=True)
class Beyond:
    """``constants``, written as a rung is, and the actions of which the run consists."""

    constants: str
    actions: frozenset[str]

    def of(self, system: System) -> System:
        """The system with these actions alone. What happens sometimes need not happen any more."""
        instances = [each for each in system.instances if each.action in self.actions]
        return replace(system, instances=instances, witnesses={})


def beyond(constants: str, *actions: str) -> Beyond:
    """``actions`` are names, separated by spaces."""
    return Beyond(constants, frozenset(name for each in actions for name in each.split()))
