"""The rows of a model's mutants: judged by explorer, proof and trace replay, each held against the others."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ...model.core.ground import ground_mutant
from ...model.core.mutants import Mutant, mutants
from ...model.core.protocol import TracedProtocol
from ...model.explore import Limits, Query, Verdict
from ...model.explore.batch import search_batch
from ...model.explore.compare import Change, compare
from ...model.prove.implied import Relation
from . import trace_replay
from .arguments import Argument, Arguments
from .explorer import Explorer, Finding, OnMutant
from .matrix import Cell, Kind, Outcome, Row
from .proofs import NoProof, Prover


def model_rows(
    explorer: Explorer,
    which: Iterable[Mutant],
    arguments: Arguments,
    prover: Prover | None = None,
    on_mutant: OnMutant | None = None,
) -> Iterator[Row]:
    """A row for each of these mutants, in their order, as each is judged."""
    proof = prover or NoProof()
    traced = explorer.traced
    of = f"{traced.protocol.name} {traced.variant.name}"
    for mutant in which:
        told = None if on_mutant is None else on_mutant(mutant)
        finding = explorer.judge(mutant, told)
        argument = arguments.get(mutant.name)
        cells = {"explorer": finding.cell, "proof": proof.judge(mutant)}
        faults = _not_as_proved(cells["proof"], finding)
        if finding.cell.outcome is not Outcome.UNKNOWN:
            cells["replay"], found = trace_replay.judge(mutant, finding)
            faults += found
            if cells["replay"].outcome is Outcome.SURVIVED:
                faults.append(f"trace replay does not tell it apart: {cells['replay'].detail}")
            if argument is not None and argument.beside:
                faults += _not_beside(explorer, mutant, argument)
        survived = finding.cell.outcome is Outcome.SURVIVED
        yield Row(mutant.name, Kind.MODEL, of, cells, finding.change if survived else None, argument, tuple(faults))


_ALLOWED = {
    Relation.SAME: {Change.NONE},
    Relation.STILL: {Change.NONE, Change.STUTTERS},
    Relation.FEWER: {Change.NONE, Change.STUTTERS, Change.FEWER},
}
"""How the steps in reachable states may differ, by what is proved of them in all states that the invariant allows."""


def _not_as_proved(proof: Cell, finding: Finding) -> list[str]:
    """What the explorer found that cannot be, by the proof: one of the two is wrong."""
    faults = []
    goes_through = proof.outcome in (Outcome.SURVIVED, Outcome.EQUIVALENT)
    if goes_through and finding.path is not None and finding.system is not None:
        broken = finding.cell.detail.partition(" at ")[0]
        if proof.speaks_of(finding.system.constants) and broken not in proof.unproved:
            faults.append(f"the proof goes through, and yet there is a run to {finding.cell.detail}")
    if proof.relation is not None:
        change = Change.of(*(apart for constants, apart in finding.apart if proof.speaks_of(constants)))
        if change not in _ALLOWED[proof.relation]:
            faults.append(f"it is proved to have {proof.relation.value}; it has {change.value}")
    return faults


def unknown_names(traced: TracedProtocol, arguments: Arguments) -> list[str]:
    """Arguments for mutants that are not there, each in a line."""
    known = {mutant.name for mutant in mutants(traced)}
    return [f"there is an argument for {name!r}, which is no mutant" for name in arguments if name not in known]


def _not_beside(explorer: Explorer, mutant: Mutant, argument: Argument) -> list[str]:
    """Whether the guards that are said to say as much do: without them the mutant must make a difference.

    At one rung that is enough. Where the guards are dropped the model breaks; its states up to there are compared.
    """
    guards = [f"{mutant.action}.{name}" for name in argument.beside]
    less, changed = (traced.drop(*guards) for traced in (explorer.traced, mutant.traced))
    for rung in explorer.rungs:
        model = explorer.system(rung)
        system, other = (ground_mutant(model, traced, mutant.action) for traced in (less, changed))
        query = Query.of(system, ("type_ok",), explorer.symmetry, Limits(explorer.limits.max_states))
        search = search_batch(query)
        if search.answer.verdict is Verdict.UNKNOWN:
            break
        if compare(search, other, mutant.action).change is not Change.NONE:
            return []
    return [f"without {', '.join(guards)} it has the same steps too, so those are not the reason"]
