"""Do the invariants of a proved variant rule out these logs?

The inductive invariant of a proof holds in every reachable state. If no state of it has these logs, no run ends in
them, however long: one query to z3 instead of a search through all states. A state that it does have need not be
reachable, so the answer is never that a run exists.
"""

from __future__ import annotations

from functools import lru_cache

import z3

from ...model.prove.finite import FiniteProof, UndecidedError, find_model
from ...model.prove.proof import Proof
from ...model.prove.proof_for_variant import AttachedProof, attach
from .abstraction import Abstraction
from .log_conditions import Condition, history_conditions, log_conditions

MARGIN = 3
"""So many more records and leader epochs than the logs show may the states have, and one more offset."""


def is_ruled_out(proof: Proof, target: Abstraction) -> bool:
    """Whether no state that satisfies the proof's invariants has the target's logs, epoch caches and high watermarks.

    Its constants are the target's with a margin. ``False`` also where z3 does not decide it.
    """
    constants = target.constants(spare=MARGIN, later=MARGIN)
    constants["log_size"] += 1
    finite = FiniteProof(_attached(proof), constants)
    conditions = (*log_conditions(target), *history_conditions(target, constants["max_leader_epoch"]))
    try:
        return find_model([*finite.hypotheses, *(_formula(finite, each) for each in conditions)]) is None
    except UndecidedError:
        return False


@lru_cache(maxsize=2)
def _attached(proof: Proof) -> AttachedProof:
    """The proof beside its own variant: the same for all logs."""
    return attach(proof, proof.protocol.traced(proof.variant))


def _formula(finite: FiniteProof, condition: Condition) -> z3.BoolRef:
    return z3.Or([_atom(finite, *atom) for atom in condition])


def _atom(finite: FiniteProof, left: str, op: str, right: str | int) -> z3.BoolRef:
    cell = _cell(finite, left)
    other = _cell(finite, right) if isinstance(right, str) else right
    found: z3.BoolRef = {"==": cell == other, "!=": cell != other, ">=": cell >= other}[op]
    return found


def _cell(finite: FiniteProof, name: str) -> z3.ArithRef:
    state = finite.symbolic.pre
    (constant,) = state.cells[state.layout.by_name[name]]
    return constant
