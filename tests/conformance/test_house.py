"""The engines name no protocol: what they know of one comes from the registry."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from fencepost.conformance.cli import COMMANDS
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


KAFKAS = {
    "conformance/check/notes.py": "truncation",
    "conformance/kafka/cluster/quorum.py": "controller",
    "traces/kafka/checks.py": "controller",
    "traces/kafka/deployment.py": "controller",
    "traces/kafka/releases/log4j.py": "controller",
    "traces/kafka/partition.py": "snapshots",
    "traces/kafka/rejection.py": "controller",
    "traces/report/page.py": "controller",
    "traces/run_report.py": "controller",
}
"""Where a string is a protocol's name and speaks of Kafka: a role of a node, a module of ``impl/``, a key of JSON."""
IN_PROSE = {"compaction", "controller", "snapshots", "tiering", "truncation"}
"""Names that are words of Kafka's too: in a sentence nothing can tell which is meant."""


def strings_in(source: str) -> set[str]:
    """Every string in a text that is no docstring, and every piece of one that is put together."""
    tree = ast.parse(source)
    said = [node.value for node in ast.walk(tree) if isinstance(node, ast.Expr)]
    docs = {id(node) for node in said if isinstance(node, ast.Constant)}
    strings = (node for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str))
    return {str(node.value) for node in strings if id(node) not in docs}


NAMES = {name for protocol in PROTOCOLS.values() for name in (protocol.name, *protocol.variants)}
BEFORE = r"protocols[./]|--(?:protocol|variant)[ =]|fencepost [a-z]+ "
"""What makes a protocol of a word, whatever else it may mean: its package or folder, or a command."""


def one_of(names: Iterable[str], before: str) -> re.Pattern[str]:
    """Finds names behind something; none that is a part of a longer one."""
    return re.compile(rf"(?:{before})({'|'.join(map(re.escape, names))})(?![\w-])")


NAMED = one_of(NAMES - IN_PROSE, r"(?<![\w-])")
ASKED_FOR = one_of(NAMES, BEFORE)


def named_in(texts: Collection[str]) -> set[str]:
    """The protocols and variants that some texts name."""
    whole = NAMES.intersection(texts)
    return whole.union(*(pattern.findall(text) for text in texts for pattern in (NAMED, ASKED_FOR)))


def engine_files() -> list[Path]:
    inside = ROOT / "conformance" / "protocols"
    return [path for room in ENGINES for path in (ROOT / room).rglob("*.py") if inside not in path.parents]


def test_no_engine_file_names_a_protocol_or_a_variant() -> None:
    """In whatever it does by words. Docstrings are left out, which do nothing; those that are shown are asked below."""
    named = {}
    for path in engine_files():
        found = named_in(strings_in(path.read_text(encoding="utf-8")))
        if found:
            named[path.relative_to(ROOT).as_posix()] = found
    assert named == {place: {word} for place, word in KAFKAS.items()}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ('"""fencing"""\nTABLE = {"snapshots": 1}\n', {"snapshots"}),
        ('import_module("fencepost.model.protocols.tiering")', {"tiering"}),
        ('ROOT / f"model/protocols/controller/{name}"', {"controller"}),
        ('mend = "write --protocol snapshots, or leave it out"', {"snapshots"}),
        ('f"{count} as fencepost explore compaction tells"', {"compaction"}),
        ('raise BadInput("no run of kip-320 reaches this")', {"kip-320"}),
        ('note("the model of fencing is meant")', {"fencing"}),
        ('note("the controller refuses, and compaction of kip-320-like logs goes on: snapshots, truncation")', set()),
    ],
)
def test_a_name_in_an_engine_is_noticed(text: str, names: set[str]) -> None:
    assert named_in(strings_in(text)) == names


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
        assert [each["name"] for each in told["variables"]] == list(protocol.variables)
        assert [each["name"] for each in told["actions"]] == list(protocol.actions)
        guards = {name for each in told["actions"] for name in each["guards"]}
        assert guards >= {guard for action in protocol.traced().actions for guard, _ in action.guards}
        assert [each["name"] for each in told["invariants"]] == list(protocol.invariants)
        assert [each["name"] for each in told["witnesses"]] == list(protocol.witnesses)
        assert [each["name"] for each in told["liveness"]] == list(protocol.liveness)
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


CELLS = {
    "next_record_id": ([], "int", 1),
    "next_leader_epoch": ([], "int", 1),
    "leo": (["replica"], "int", 3),
    "record_id": (["replica", "offset"], "int", 6),
    "record_epoch": (["replica", "offset"], "int", 6),
    "hw": (["replica"], "int", 3),
    "leader_epoch": (["replica"], "int", 3),
    "leader": (["replica"], "replica", 3),
    "isr": (["replica"], "set of replicas", 3),
    "quorum_leader_epoch": ([], "int", 1),
    "quorum_leader": ([], "replica", 1),
    "quorum_isr": ([], "set of replicas", 1),
    "request_leader": (["epoch"], "replica", 3),
    "request_isr": (["epoch"], "set of replicas", 3),
}
"""What kip-320 has in its states: per what, what it holds, and in how many cells at 3/2/2/2."""
PARAMETERS = {
    "controller_elect_leader": {"new_leader": "replica"},
    "controller_shrink_isr": {"replica": "replica"},
    "become_leader": {"leader": "replica", "epoch": "epoch"},
    "become_follower": {"leader": "replica", "follower": "replica", "epoch": "epoch"},
    "leader_write": {"leader": "replica"},
    "follower_fetch": {"leader": "replica", "follower": "replica"},
    "leader_inc_high_watermark": {"leader": "replica"},
    "leader_shrink_isr": {"leader": "replica", "follower": "replica"},
    "leader_expand_isr": {"leader": "replica", "follower": "replica"},
}
"""The same of its actions, those of KIP-320's own model."""
FAULTS = {
    *("lose-request", "lose-response", "delay-response", "duplicate-request", "duplicate-response", "deliver-late"),
    *("disk-full", "failed-write", "isolate", "heal", "crash", "mark-offline", "mark-online"),
}
"""What brokers can have: no jump of their clocks, by which nothing in this protocol falls due."""


def test_what_is_told_of_fencing_is_so(fencepost: Fencepost) -> None:
    """By hand, and by nothing that the command goes by."""
    told = fencepost("protocols", "fencing", "--json").json
    cells = {each["name"]: (each["per"], each["holds"], each["cells"]) for each in told["variables"]}
    assert {name: cells[name] for name in CELLS} == CELLS
    assert list(cells)[: len(CELLS)] == list(CELLS)
    actions = {each["name"]: each for each in told["actions"] if each["name"] in PARAMETERS}
    assert {name: each["parameters"] for name, each in actions.items()} == PARAMETERS
    assert list(actions) == list(PARAMETERS) and actions["leader_write"]["tla"] == "LeaderWrite"
    guards = actions["follower_fetch"]["guards"]
    assert list(guards) == ["presumes_leadership", "follows_leader", "epoch_not_fenced", "record_available"]
    assert [each["name"] for each in told["witnesses"]] == [
        "record_committed",
        "two_presumed_leaders",
        "logs_diverge",
        "isr_shrunk",
    ]
    assert {each["name"]: each["form"] for each in told["liveness"]} == {
        "final_leader_adopts_epoch": "[]<>P: P holds again and again",
        "final_leader_commits_record": "P ~> Q: whenever P holds, Q holds then or later",
    }
    assert [each["name"] for each in told["fairness"]] == ["kip", "fair-fetches"]
    assert set(told["faults"]) == FAULTS and len(told["faults"]) == len(FAULTS)


def test_the_table_names_every_protocol(fencepost: Fencepost) -> None:
    said = fencepost("protocols")
    assert said.code == 0
    for name, protocol in PROTOCOLS.items():
        (line,) = [line for line in said.out.splitlines() if line.split()[:1] == [name]]
        assert protocol.default_variant in line
        live = name not in ("snapshots", "truncation")
        assert line.rstrip().endswith(f"  proof,{' liveness,' * live} binding, defects")
        lacks = [each for each in fencepost("protocols", name).out.splitlines() if each.startswith("it has no ")]
        assert lacks == ([] if live else ["it has no liveness"])
    one = fencepost("protocols", "fencing").out
    assert "--max-leader-epoch" in one and ".epoch_not_fenced" in one and "fair-fetches" in one
    assert f"choose one of {', '.join(PROTOCOLS)}" in fencepost("protocols", "paxos").complaint


def shown(fencepost: Fencepost, *words: str) -> str:
    """A help text without its frame, on one line."""
    said = fencepost(*words, "--help")
    assert said.code == 0
    return " ".join(re.sub(r"[\u2500-\u257f]", " ", said.out).split())


TAKES_ONE = ("explore", "conform", "ingest", "mine", "mutants", "protocols", "prove", "replay", "simulate")


@pytest.mark.parametrize("command", COMMANDS)
def test_no_help_text_lists_protocols_by_hand(fencepost: Fencepost, command: str) -> None:
    told = shown(fencepost, command)
    assert ("file.py:name" in told) == (command in TAKES_ONE)
    assert named_in([told]) == set()


def test_the_help_on_all_commands_names_no_protocol(fencepost: Fencepost) -> None:
    told = shown(fencepost)
    assert all(command in told for command in COMMANDS)
    assert named_in([told]) == set()
