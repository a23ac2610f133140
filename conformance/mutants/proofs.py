"""The column of proof: does the proof of the model, for all constants at once, still go through for a mutant?

Where it does, the mutant keeps every promise of safety with no bound, which is more than an explorer can say. Where it
does not, the mutant is not killed by that: what Z3 shows is a step from a state that the proof's lemmas allow, and
maybe no run reaches that state. The cell then says ``lost``.
"""

from __future__ import annotations

from typing import Protocol

from ...model.core.mutants import Mutant
from ...model.core.registry import REGISTRY
from ...model.explore.result import Verdict
from ...model.prove.run import judge
from .matrix import NO_JUDGE, Cell, Outcome


class Prover(Protocol):
    """Whoever has proofs of some variants."""

    def judge(self, mutant: Mutant) -> Cell:
        """``survived`` where it is proved, ``lost`` where it is not, ``none`` for a variant without a proof."""
        ...


class NoProof:
    """Asks for no proof, which takes a second a mutant."""

    def judge(self, mutant: Mutant) -> Cell:  # noqa: ARG002 - the interface
        """No judge."""
        return NO_JUDGE


class Proofs:
    """The proofs that there are (``fencepost prove``)."""

    def judge(self, mutant: Mutant) -> Cell:
        """Asks the obligations of the mutated action."""
        traced = mutant.traced
        registration = REGISTRY.get(traced.protocol.name)
        proof = None if registration is None else registration.find_proof()
        if proof is None or proof.protocol is not traced.protocol or proof.variant != traced.variant.name:
            return NO_JUDGE
        run = judge(proof, traced)
        if run.verdict is Verdict.HOLDS:
            return Cell(Outcome.SURVIVED, "proved for all constants", seconds=run.seconds)
        last = run.failed[-1]
        outcome = Outcome.LOST if run.verdict is Verdict.VIOLATED else Outcome.UNKNOWN
        detail = f"{last.obligation.conjunct} is not inductive under {last.obligation.action}"
        return Cell(outcome, detail if outcome is Outcome.LOST else last.reason, seconds=run.seconds)
