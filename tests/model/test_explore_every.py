"""``explore_every``: every violated invariant with its shortest counterexample, by every engine."""

from __future__ import annotations

import tempfile

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Limits, Query, Verdict, compiled, explore
from fencepost.model.explore.every import explore_every
from fencepost.model.interpret.compiler import find_compiler

UNSAFE = [
    ("fencing", "truncate-to-hw", {"replicas": 2}),
    ("fencing", "kip-101", {"replicas": 2}),
    ("snapshots", "lbo-misread", {"log_size": 1, "max_leader_epoch": 1}),
]


def system_of(protocol: str, variant: str, constants: dict[str, int]) -> System:
    spec = PROTOCOLS[protocol]
    return ground(spec.traced(variant), spec.check_constants(constants))


def shortest(system: System) -> dict[str, int]:
    """The length of a shortest counterexample to each violated invariant, by an exploration for each."""
    found = {}
    for name in system.invariants:
        answer = explore(Query(system, (name,)))
        if answer.violated == name and answer.path is not None:
            found[name] = len(answer.path)
    return found


@pytest.mark.parametrize(("protocol", "variant", "constants"), UNSAFE)
def test_every_engine_finds_each_shortest_counterexample(
    protocol: str, variant: str, constants: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # The compiled engine goes on from the first levels.
    monkeypatch.setattr(compiled, "WORTH", 50)
    monkeypatch.setattr(compiled, "WORTH_COMPILING", 50)
    system = system_of(protocol, variant, constants)
    wanted = shortest(system)
    assert len(wanted) >= 2
    engines = ["batch", "reference", *(("auto", "compiled") if find_compiler() else ())]
    for engine in engines:
        answer = explore_every(Query.of(system), engine)
        assert answer.findings is not None and answer.verdict is Verdict.VIOLATED
        lengths = {each.invariant: len(each.path) for each in answer.findings}
        # A broken type ends the search: what breaks at that depth or later may be undecided.
        end = lengths.get("type_ok", 1 << 30)
        assert lengths.items() <= wanted.items(), engine
        assert {name for name, length in wanted.items() if length < end} <= set(lengths), engine
        assert answer.whole is ("type_ok" not in lengths), engine
        assert (answer.violated, answer.path) == (answer.findings[0].invariant, answer.findings[0].path)


@pytest.mark.skipif(find_compiler() is None, reason="absent: a C compiler")
def test_batch_engine_continues_without_room_to_compile(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WORTH", 50)
    monkeypatch.setattr(compiled, "WORTH_COMPILING", 50)
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/none")
    monkeypatch.setattr(tempfile, "tempdir", "/dev/null/none")
    system = system_of("fencing", "kip-101", {"replicas": 2, "max_records": 3})
    answer = explore_every(Query.of(system), "auto")
    assert answer.engine == "batch" and answer.findings is not None
    lengths = {each.invariant: len(each.path) for each in answer.findings}
    assert lengths and lengths.items() <= shortest(system).items()


def test_safe_variant_has_no_findings() -> None:
    answer = explore_every(Query.of(system_of("fencing", "kip-320", {"replicas": 2, "log_size": 1})))
    assert (answer.verdict, answer.findings, answer.undecided, answer.whole) == (Verdict.HOLDS, [], (), True)


def test_budget_leaves_the_others_undecided() -> None:
    query = Query.of(system_of("fencing", "truncate-to-hw", {"replicas": 2}), limits=Limits(max_depth=8))
    for engine in ("batch", "reference", "symbolic"):
        answer = explore_every(query, engine)
        assert answer.findings is not None
        assert [each.invariant for each in answer.findings] == ["weak_isr"], engine
        assert answer.verdict is Verdict.VIOLATED and answer.undecided == ("type_ok", "strong_isr", "leader_in_isr")
        assert answer.reason is not None and "--max-depth" in answer.reason


def test_counted_states_are_those_of_a_whole_exploration() -> None:
    """The search goes on past the violations: as many states as without any invariant."""
    system = system_of("fencing", "truncate-to-hw", {"replicas": 2})
    assert explore_every(Query.of(system)).distinct == explore(Query(system, ("type_ok",))).distinct
