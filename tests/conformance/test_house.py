"""The engines name no protocol: what they know of one comes from the registry."""

from __future__ import annotations

import ast
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from fencepost.conformance.describe import described
from fencepost.conformance.harness import bound_protocols, find_harness, plan_of
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.registration import Registration, looked_up
from fencepost.model.core.registry import PROTOCOLS, REGISTRY, Registry
from fencepost.model.core.view import derived_view
from fencepost.model.protocols.fencing import REGISTRATION, fencing

from .conftest import Fencepost

ROOT = Path(__file__).parents[2]
ENGINES = ("model/core", "model/interpret", "model/explore", "model/prove", "traces", "conformance")


def words_in(source: str) -> set[str]:
    """Every string in a text that is no docstring."""
    tree = ast.parse(source)
    said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docs = {id(node) for node in said if isinstance(node, ast.Constant)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {str(node.value) for node in strings if id(node) not in docs}


def engine_files() -> list[Path]:
    inside = ROOT / "conformance" / "protocols"
    return [path for room in ENGINES for path in (ROOT / room).rglob("*.py") if inside not in path.parents]


def test_no_engine_file_names_a_protocol_or_a_variant() -> None:
    names = {name for spec in PROTOCOLS.values() for name in (spec.name, *spec.variants)}
    # Three protocols are called by words that Kafka has too: of those, the contract on imports alone can tell.
    names -= {"controller", "snapshots", "truncation"}
    for path in engine_files():
        place = path.relative_to(ROOT).as_posix()
        assert words_in(path.read_text(encoding="utf-8")) & names == set(), place


def test_a_name_in_an_engine_is_noticed() -> None:
    assert words_in('"""fencing"""\nTABLE = {"snapshots": 1}\n') == {"snapshots"}


def entry(name: str, value: str) -> EntryPoint:
    return EntryPoint(name, value, "fencepost.protocols")


def registry_of(monkeypatch: pytest.MonkeyPatch, *entries: EntryPoint) -> Registry:
    monkeypatch.setattr("fencepost.model.core.registry.entry_points", lambda **_: entries)
    return Registry()


def test_ours_are_registered_as_anybodys() -> None:
    assert list(REGISTRY) == ["compaction", "controller", "fencing", "snapshots", "tiering", "truncation"]
    assert REGISTRY["fencing"] is REGISTRATION and PROTOCOLS["fencing"] is fencing
    assert fencing.liveness, "the whole text is imported, liveness too"


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ("no.such.module:it", "importing it raised ModuleNotFoundError"),
        ("fencepost.model.protocols.fencing:fencing", "it is a Protocol, no Registration"),
        ("fencepost.model.protocols.fencing:REGISTRATION", "it is the protocol 'fencing'"),
    ],
)
def test_a_package_that_registers_something_else_is_named(
    monkeypatch: pytest.MonkeyPatch, value: str, words: str
) -> None:
    registry = registry_of(monkeypatch, entry("paxos", value))
    assert list(registry) == ["paxos"]
    with pytest.raises(BadInput, match=words):
        registry["paxos"]


def test_two_packages_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    both = registry_of(monkeypatch, entry("paxos", "one:it"), entry("paxos", "two:it"))
    with pytest.raises(ProtocolError, match="two packages register the protocol paxos"):
        list(both)
    again = registry_of(monkeypatch, entry("paxos", "one:it"), entry("paxos", "one:it"))
    assert list(again) == ["paxos"]


def test_two_protocols_of_one_name_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    registry = registry_of(monkeypatch)
    mine = Registration(__name__, Protocol("paxos", "Lamport", constants=()))
    registry.add(mine)
    registry.add(mine)
    with pytest.raises(BadInput, match="there is another protocol of the name 'paxos'"):
        registry.add(Registration(__name__, Protocol("paxos", "somebody else", constants=())))


def test_a_part_is_looked_up_by_its_place() -> None:
    assert looked_up(".proof:kip_320", "fencepost.model.protocols.fencing") is REGISTRATION.find_proof()
    assert looked_up(fencing, "anywhere") is fencing
    with pytest.raises(ProtocolError, match="write module:name"):
        looked_up("proof", "fencepost.model.protocols.fencing")


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_plan_leaves_no_variant_out(name: str) -> None:
    protocol = PROTOCOLS[name]
    plan = plan_of(protocol)
    assert {*plan.holds, *plan.breaks} == set(protocol.variants) - {protocol.default_variant}
    assert set(plan.unproved) <= set(plan.breaks)


def test_a_protocol_without_a_view_has_lanes_and_arrows() -> None:
    view = derived_view(fencing, "kip-320")
    assert set(view.fields) == {"leo", "hw", "leader_epoch", "leader", "isr"}
    assert (view.routes["follower_fetch"].source, view.routes["follower_fetch"].target) == ("leader", "follower")
    assert view.routes["leader_write"].target is None


# The command.


def test_everything_that_has_a_name_is_told(fencepost: Fencepost) -> None:
    for name, protocol in PROTOCOLS.items():
        told = fencepost("protocols", name, "--json").json
        assert told == described(REGISTRY[name])
        assert [each["name"] for each in told["variants"]] == list(protocol.variants)
        assert [each["name"] for each in told["constants"]] == list(protocol.constants)
        assert [each["name"] for each in told["actions"]] == list(protocol.actions)
        guards = {name for each in told["actions"] for name in each["guards"]}
        assert guards >= {guard for action in protocol.traced().actions for guard, _ in action.guards}
        assert [each["name"] for each in told["invariants"]] == list(protocol.invariants)
        assert [each["name"] for each in told["fairness"]] == list(protocol.fairness)
        bound = name in set(bound_protocols())
        assert ("lose-request" in told["faults"]) == bound
        harness = find_harness(name)
        assert told["adapters"][:2] == (
            ["memory", "disk"] if harness is not None and harness.over_impl else told["adapters"]
        )
        assert told["free"][:2] == (["memory", "disk"] if bound else [])
        text = None if harness is None else harness.find_text()
        assert (told["held_to"] is None) == (text is None)
        if text is not None:
            assert [each["name"] for each in told["held_to"]["variants"]] == list(text.variants)


def test_the_table_names_every_protocol(fencepost: Fencepost) -> None:
    said = fencepost("protocols")
    assert said.code == 0
    for name, protocol in PROTOCOLS.items():
        assert name in said.out and protocol.default_variant in said.out
    one = fencepost("protocols", "fencing").out
    assert "--max-leader-epoch" in one and ".epoch_not_fenced" in one and "fair-fetches" in one
    assert f"choose one of {', '.join(PROTOCOLS)}" in fencepost("protocols", "paxos").complaint


@pytest.mark.parametrize("command", ["explore", "conform", "simulate", "mutants", "prove"])
def test_no_help_text_lists_protocols_by_hand(fencepost: Fencepost, command: str) -> None:
    told = fencepost(command, "--help").out
    assert "file.py:name" in told
    assert not any(name in told.split() for spec in PROTOCOLS.values() for name in spec.variants)
