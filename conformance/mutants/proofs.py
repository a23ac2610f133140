"""The column of proof: what z3 says of a mutant for all constants at once, by the proof of the model.

First it is asked whether the proved invariant implies that the mutant takes the model's steps: then it is equivalent.
Where each of its steps is one of the model's, or the induction goes through for the mutant itself, it keeps every
promise of safety with no bound, which is more than an explorer can say. Where none of this is so, the mutant is not
killed by that: what z3 shows is a step from a state that the proof's lemmas allow, and maybe no run reaches that state.
The cell then says ``lost``.

Where a proof is about some values of constants alone (``prove.fixed``), so is what it says of a mutant. A variant with
several such proofs is asked by each, and the least that one of them says is what is said.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import Protocol

from ...model.core.mutants import Mutant
from ...model.core.protocol import TracedProtocol
from ...model.core.registry import REGISTRY
from ...model.explore.result import Verdict
from ...model.prove.implied import Implications, Relation
from ...model.prove.proof import Proof
from ...model.prove.proof_for_variant import attach
from ...model.prove.run import WORKERS, OnObligation, judge, prove
from .matrix import NO_JUDGE, Cell, Outcome

_SAID = (Outcome.EQUIVALENT, Outcome.SURVIVED)
"""What a proof that goes through has to say, the most first."""

_RELATIONS = (Relation.SAME, Relation.STILL, Relation.FEWER, None)
"""The same, of how steps are; last where the induction alone says it."""


class Prover(Protocol):
    """Whoever has proofs of some variants."""

    def judge(self, mutant: Mutant) -> Cell:
        """``equivalent`` where the steps are implied, ``survived`` where promises are proved, ``lost`` where neither.

        ``none`` for a variant without a proof.
        """
        ...


class NoProof:
    """Asks for no proof, which takes a second a mutant."""

    def judge(self, mutant: Mutant) -> Cell:  # noqa: ARG002 - the interface
        """No judge."""
        return NO_JUDGE


class Proofs:
    """The proofs that there are (``fencepost prove``).

    Of a mutant nothing follows from a proof that does not go through, so the whole proof of a variant is asked before
    the first of its mutants, and once. ``checked``: protocols whose proof somebody has asked already. ``decide``: tell
    a proof that is lost from one that is unknown, by a counterexample to induction.
    """

    def __init__(
        self,
        checked: Collection[str] = (),
        *,
        decide: bool = True,
        on_proof: Callable[[str], OnObligation] | None = None,
    ) -> None:
        self._checked = frozenset(checked)
        self._decide = decide
        self._on_proof = on_proof
        self._failed: dict[Proof, str] = {}
        self._implications: dict[Proof, Implications] = {}

    def judge(self, mutant: Mutant) -> Cell:
        """Asks what is implied, and else the obligations of the mutated action."""
        traced = mutant.traced
        registration = REGISTRY.get(traced.protocol.name)
        found = () if registration is None else registration.find_proofs()
        proofs = [each for each in found if each.text is traced.protocol and each.variant == traced.variant.name]
        cells: list[Cell] = []
        for proof in proofs:
            cells.append(self._asked_of(proof, mutant))
            if cells[-1].outcome not in _SAID:
                break
        return _least(proofs, cells) if cells else NO_JUDGE

    def _asked_of(self, proof: Proof, mutant: Mutant) -> Cell:
        failed = self._why_not(proof)
        if failed:
            return Cell(Outcome.UNKNOWN, failed)
        own, traced = self._implications[proof].traced, proof.reads(mutant.traced)
        implied = self._implications[proof].judge(traced, mutant.action)
        if implied.relation is not Relation.UNKNOWN:
            outcome = Outcome.SURVIVED if implied.relation is Relation.FEWER else Outcome.EQUIVALENT
            return Cell(outcome, f"it has {implied.relation.value}", seconds=implied.seconds, relation=implied.relation)
        run = judge(proof, traced, own, decide=self._decide)
        seconds = implied.seconds + run.seconds
        if run.verdict is Verdict.HOLDS:
            return Cell(Outcome.SURVIVED, "it keeps every promise of safety", seconds=seconds)
        last = run.failed[-1]
        outcome = Outcome.LOST if run.verdict is Verdict.VIOLATED else Outcome.UNKNOWN
        detail = f"{last.obligation.conjunct} is not inductive under {last.obligation.action}"
        return Cell(outcome, detail if outcome is Outcome.LOST else last.reason, seconds=seconds)

    def _why_not(self, proof: Proof) -> str:
        """Why the proof of the variant does not go through; empty where it does, or is known to."""
        if proof not in self._failed:
            traced = proof.reads(proof.text.traced(proof.variant))
            self._implications[proof] = Implications(proof, traced)
            self._failed[proof] = "" if proof.protocol.name in self._checked else self._asked(proof, traced)
        return self._failed[proof]

    def _asked(self, proof: Proof, traced: TracedProtocol) -> str:
        told = None if self._on_proof is None else self._on_proof(f"{proof.protocol.name} {proof.variant}")
        run = prove(attach(proof, traced), witnesses=False, first=True, workers=WORKERS, on_obligation=told)
        if run.verdict is Verdict.HOLDS:
            return ""
        return f"{proof.variant} itself is not proved ({run.failed[0].obligation.name}), so that nothing follows"


def _least(proofs: Sequence[Proof], cells: Sequence[Cell]) -> Cell:
    """What all proofs of a variant say together, where each is about other values of the fixed constants."""
    seconds = sum(cell.seconds for cell in cells)
    if cells[-1].outcome not in _SAID:
        return replace(cells[-1], seconds=seconds)
    least = max(cells, key=lambda cell: _RELATIONS.index(cell.relation))
    at = " and ".join(f"{name} {value}" for proof in proofs for name, value in proof.at.items())
    of = f"for all other constants, at {at}," if at else "for all constants"
    fixed = tuple(dict(proof.at) for proof in proofs)
    unproved = frozenset(
        name for proof in proofs for name in proof.text.invariants if name not in proof.protocol.invariants
    )
    kept = f", but for {', '.join(sorted(unproved))}" if unproved and least.relation is None else ""
    return replace(least, detail=f"{of} {least.detail}{kept}", seconds=seconds, at=fixed, unproved=unproved)
