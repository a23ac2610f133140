"""A system of ``impl`` run freely at constants of a plan by turns: as it is, and with something planted in its text."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import binding_of, held_to
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.plan import constants_of
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.system import SimulatedSystem
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground

from .seeds import first_divergence


class Freely:
    """A system and the variant that it is held to. ``make``: given parts of a changed ``impl``, the system over them.

    ``variant``: None for that by default.
    """

    def __init__(self, protocol: str, make: Callable[..., SimulatedSystem], variant: str | None = None) -> None:
        self._make = make
        self._traced = held_to(protocol).traced(variant)
        self._binding = binding_of(protocol, "--protocol")
        self._ways: dict[str, Transitions] = {}

    def ways(self, at: str) -> Transitions:
        """The ways of the variant at these constants, made once."""
        if at not in self._ways:
            constants = constants_of(self._traced.protocol, at)
            self._ways[at] = Transitions(ground(self._traced, constants), self._binding)
        return self._ways[at]

    def run(self, portfolio: Sequence[str], plan: SimulationPlan) -> SimulationResult:
        """The system as it is."""
        system = self._make()
        try:
            return simulate(system, [self.ways(at) for at in portfolio], plan)
        finally:
            system.close()

    def first_divergence(self, portfolio: Sequence[str], plan: SimulationPlan, *patches: Patch) -> Divergence | None:
        """The first divergence of the patched system as it is found, which is not made small."""
        with patched(*patches) as root:
            system = self._make(Parts.of(root))
            found = first_divergence(system, lambda number: self.ways(portfolio[number % len(portfolio)]), plan)
            system.close()
        return found
