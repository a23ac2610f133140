"""Mutants of protocols that are proved at some values of constants: what a proof says, and of which constants."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.conformance.mutants.explorer import Finding
from fencepost.conformance.mutants.matrix import Cell, Outcome
from fencepost.conformance.mutants.model_rows import _not_as_proved
from fencepost.conformance.mutants.proofs import Proofs
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.mutants import mutant_named, mutants
from fencepost.model.core.protocol import TracedAction
from fencepost.model.core.registry import PROTOCOLS, REGISTRY
from fencepost.model.core.terms import parts
from fencepost.model.explore.compare import Change, Difference
from fencepost.model.protocols.controller.proof_ghosts import kip_631
from fencepost.model.prove import specialize
from fencepost.model.prove.implied import Relation
from fencepost.model.prove.specialize import FixedProof

FIXED = [
    proof for registered in REGISTRY.values() for proof in registered.find_proofs() if isinstance(proof, FixedProof)
]


@pytest.mark.parametrize("proof", FIXED, ids=lambda proof: f"{proof.variant}, {proof.told}")
def test_a_variant_in_terms_reads_as_its_text_does(proof: FixedProof) -> None:
    """And so does a mutant, which differs in its one action alone; no fixed constant is left."""
    assert len(FIXED) >= 3
    traced = proof.text.traced(proof.variant)
    own = proof.reads(traced)
    assert own.protocol is proof.protocol
    for mutant in mutants(traced)[::25]:
        read = proof.reads(mutant.traced)
        assert {a.name for a, b in zip(read.actions, own.actions, strict=True) if written(a) != written(b)} <= {
            mutant.action
        }
        terms = [condition for _, condition in read.action(mutant.action).guards]
        assert not {str(part.value) for term in terms for part in parts(term) if part.op == "constant"} & set(proof.at)


def written(action: TracedAction) -> list[int]:
    """Equal terms are one object."""
    return [*(id(term) for _, term in action.guards), *(id(term) for pair in action.writes for term in pair)]


def test_what_does_not_read_as_the_text_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProtocolError, match=r"^this is a proof of controller"):
        kip_631.reads(PROTOCOLS["fencing"].traced())
    put_in = specialize._put_in
    monkeypatch.setattr(specialize, "_put_in", lambda action, _, indices: put_in(action, {"bootstrapped": 1}, indices))
    monkeypatch.setattr(kip_631, "_copies", {})
    with pytest.raises(ProtocolError, match="at bootstrapped 0 is not what its terms come to"):
        kip_631.reads(PROTOCOLS["controller"].traced())


def cell_of(protocol: str, name: str) -> Cell:
    return Proofs(checked=PROTOCOLS, decide=False).judge(mutant_named(PROTOCOLS[protocol].traced(), name))


@pytest.mark.parametrize(
    ("protocol", "name", "outcome", "detail"),
    [
        (
            "compaction",
            "become_follower.has_leader dropped",
            Outcome.EQUIVALENT,
            "for all constants it has the same steps",
        ),
        (
            "compaction",
            "follower_fetch.is_next bound 2 +1",
            Outcome.SURVIVED,
            f"for all constants it has {Relation.FEWER.value}",
        ),
        (
            "compaction",
            "set_topic_strategy.has_leader dropped",
            Outcome.SURVIVED,
            "for all constants it keeps every promise of safety",
        ),
        ("compaction", "elect_leader.in_isr dropped", Outcome.UNKNOWN, "(incomplete quantifiers)"),
    ],
)
def test_what_is_said_where_nothing_is_fixed(protocol: str, name: str, outcome: Outcome, detail: str) -> None:
    cell = cell_of(protocol, name)
    assert (cell.outcome, cell.detail) == (outcome, detail)


def test_each_proof_of_a_variant_is_asked() -> None:
    """``kip-631-safe`` has one where the log begins with nothing, and one where it begins with an image."""
    cell = cell_of("controller", "elect_controller.within_log bound -1")
    assert cell.at == ({"bootstrapped": 0}, {"bootstrapped": 1})
    assert cell.detail.startswith("for all other constants, at bootstrapped 0 and bootstrapped 1, it has ")


@pytest.mark.parametrize(("strategy", "complains"), [(3, True), (2, False)])
def test_a_run_at_other_constants_does_not_contradict_a_proof(strategy: int, complains: bool) -> None:
    proved = Cell(Outcome.SURVIVED, relation=Relation.FEWER, at=({"default_strategy": 3},))
    system = ground(
        PROTOCOLS["compaction"].traced(), {"replicas": 1, "keys": 1, "log_size": 1, "default_strategy": strategy}
    )
    more = Difference(1, 0, 0, 0, None, None)
    broken = Finding(
        Cell(Outcome.KILLED, "winner_is_kept at 1/1"), Change.MORE, system, (), apart=((system.constants, more),)
    )
    complaints = (
        "the proof goes through, and yet there is a run to winner_is_kept at 1/1",
        "it is proved to have no steps but the model's, or such as change nothing; it has more steps",
    )
    assert tuple(_not_as_proved(proved, broken)) == (complaints if complains else ())
    # A promise that the proof leaves out may break.
    left_out = replace(proved, relation=None, unproved=frozenset({"winner_is_kept"}))
    assert _not_as_proved(left_out, broken) == []
