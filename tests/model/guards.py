"""What a text needs each of its guards for: how one that is dropped alone is asked about.

A table of guards names each guard of a variant once, under what becomes of the variant without it:

- a run from the initial state breaks a promise (``run_without``);
- an obligation of the proof fails: a state that satisfies all conjuncts, and a step from it that breaks one
  (``counterexample_without``);
- every promise is still proved, for any number of everything (``proved_without``). Why that is so, the table says.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping

from fencepost.model.core.ground import System, ground
from fencepost.model.core.protocol import TracedProtocol
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.reference import Reference
from fencepost.model.prove.finite import Concrete, Counterexample
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import ProofRun, judge


def guards_of(traced: TracedProtocol) -> list[str]:
    """Every guard of every action, ``action.guard``, sorted."""
    return sorted(f"{action.name}.{guard}" for action in traced.actions for guard, _ in action.guards)


def first_counterexample(run: ProofRun) -> Counterexample:
    """The counterexample to induction with which a run has ended."""
    assert run.verdict is Verdict.VIOLATED
    found = run.results[-1].counterexample
    assert found is not None
    return found


def confirmed(run: ProofRun) -> Counterexample:
    """The same, after the texts on plain ints have said that it is one."""
    found = first_counterexample(run)
    concrete = Concrete(run.attached, found.constants)
    assert concrete.broken(found.state) == []
    assert found.after is not None
    assert concrete.step(found.state, found.action, found.params) == found.after
    assert found.conjunct in concrete.broken(found.after)
    return found


def counterexample_without(proof: Proof, guard: str, more: Iterable[Mapping[str, int]] = ()) -> str:
    """The conjunct that a first counterexample to induction breaks where that guard is dropped.

    The mutant takes that step, and the text itself refuses it by just this guard. ``more``: sizes at which one is
    looked for beside the proof's.
    """
    action, _, name = guard.partition(".")
    text = proof.protocol.traced(proof.variant)
    dropped = text.drop(guard)
    larger = copy.copy(proof)
    larger.sizes = (*proof.sizes, *more)
    found = confirmed(judge(larger, dropped))
    assert found.action == action
    without, whole = (ground(traced, found.constants) for traced in (dropped, text))
    own = found.state[: len(whole.layout.cells)]
    assert found.after is not None
    assert Reference(without).step(own, action, found.params) == found.after[: len(own)]
    assert Reference(whole).refused_by(own, action, found.params) == name
    # Ghosts, which the mutant's own proof may have otherwise, are those of the text.
    concrete = Concrete(attach(proof, text), found.constants)
    assert concrete.broken(found.state) == []
    assert found.conjunct in concrete.broken(found.after)
    return found.conjunct


def proved_without(proof: Proof, guard: str) -> None:
    """Every conjunct of the proof is still proved where that guard is dropped."""
    run = judge(proof, proof.protocol.traced(proof.variant).drop(guard), decide=False)
    assert [result.obligation.name for result in run.failed] == []
    inductive = [name for name in run.attached.conjuncts if name not in proof.follows]
    assert len(run.results) == len(inductive), "one action was asked, and all of it"


def run_without(text: System, mutant: System, guard: str) -> tuple[str | None, int]:
    """The promise that a shortest run breaks where that guard is dropped, and its steps.

    ``mutant``: the same text at the same constants, without it. The text refuses some step of that run by just this
    guard.
    """
    answer = explore(Query.of(mutant))
    if answer.path is None:
        return None, answer.distinct
    assert answer.violated in Reference(mutant).broken(answer.path[-1].state)
    action, _, name = guard.partition(".")
    strict = Reference(text)
    states = [mutant.initial, *(step.state for step in answer.path)]
    refusals = [
        strict.refused_by(state, step.instance.action, step.instance.params)
        for state, step in zip(states, answer.path, strict=False)
        if step.instance.action == action
    ]
    assert name in refusals
    return answer.violated, len(answer.path)
