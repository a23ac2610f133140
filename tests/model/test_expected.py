"""The rows of each ``expected.py`` name what the protocol declares, and proofs have as many obligations as they say."""

from __future__ import annotations

import importlib
from types import ModuleType

import pytest
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.registry import REGISTRY
from fencepost.model.expected.counterexample import Counterexample
from fencepost.model.expected.obligation_count import ObligationCount
from fencepost.model.expected.state_count import StateCount
from fencepost.model.prove.obligations import Obligations
from fencepost.model.prove.proof_for_variant import attach

from .pinned import write_constants

NAMES = ("compaction", "controller", "fencing", "snapshots", "tiering", "truncation")


def expected_of(name: str) -> ModuleType:
    return importlib.import_module(f"fencepost.model.protocols.{name}.expected")


def rows_of(name: str) -> list[StateCount | Counterexample]:
    tables = [each for each in vars(expected_of(name)).values() if isinstance(each, tuple)]
    return [row for table in tables for row in table if not isinstance(row, ObligationCount)]


def find_errors(protocol: Protocol, rows: list[StateCount | Counterexample]) -> list[str]:
    """Rows that name no variant, constant, invariant or guard of a protocol, and rows that occur twice."""
    found, seen = [], set()
    for row in rows:
        if row.variant not in protocol.variants:
            found.append(f"no variant {row.variant}")
            continue
        traced = protocol.traced(row.variant)
        found += [f"{row.variant} has no constant {each}" for each in row.constants if each not in protocol.constants]
        guards = {f"{action.name}.{guard}" for action in traced.actions for guard, _ in action.guards}
        found += [f"{row.variant} has no guard {each}" for each in row.dropped if each not in guards]
        violated = row.violated if isinstance(row, Counterexample) else ""
        if violated and violated not in ("type_ok", *traced.invariants):
            found.append(f"{row.variant} has no invariant {violated}")
        key = (row.variant, write_constants(protocol, row.constants), row.dropped, violated)
        found += [f"{key} occurs twice"] if key in seen else []
        seen.add(key)
    return found


@pytest.mark.parametrize("name", NAMES)
def test_expected_rows_name_what_exists(name: str) -> None:
    rows = rows_of(name)
    assert len(rows) > 10
    assert find_errors(REGISTRY.named(name).protocol, rows) == []


def test_expected_rows_reject_unknown_names() -> None:
    protocol = REGISTRY.named("fencing").protocol
    good = StateCount("kip-320", {"replicas": 2}, 1, 1)
    rows = [
        good,
        good,
        StateCount("kip-999", {}, 1, 1),
        StateCount("kip-320", {}, 1, 1, dropped=("leader_write.no_such_guard",)),
        Counterexample("kip-320", {}, "no_such_invariant", 1),
    ]
    assert [each.split()[-1] for each in find_errors(protocol, rows)] == [
        "twice",
        "kip-999",
        "leader_write.no_such_guard",
        "no_such_invariant",
    ]


@pytest.mark.parametrize("name", NAMES)
def test_proofs_have_the_expected_obligations(name: str) -> None:
    expected = [(row.variant, dict(row.at), row.obligations) for row in expected_of(name).OBLIGATIONS]
    found = []
    for proof in REGISTRY.named(name).find_proofs():
        obligations = Obligations(attach(proof, proof.protocol.traced(proof.variant)))
        found.append((proof.variant, dict(getattr(proof, "at", {})), len(obligations.names())))
    assert found == expected
