"""The compiled engine: it says what NumPy says, of every variant; faults that are planted in it are found."""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from fencepost.model.core.algebra import View
from fencepost.model.core.domains import integers
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System, ground
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Exploration, Limits, Query, Verdict, compiled, explore
from fencepost.model.interpret import compiled_text
from fencepost.model.interpret.compiled_text import text_of
from fencepost.model.interpret.trie import by_guards

from .conftest import needs_compiler

At = Callable[..., System]

SMALL = {
    "compaction": {"log_size": 1},
    "controller": {"log_size": 1, "max_controller_epoch": 1, "nodes": 1},
    "fencing": {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1},
    "snapshots": {"replicas": 2, "log_size": 1},
    "tiering": {"log_size": 1},
    "truncation": {"log_size": 1, "max_records": 1, "max_leader_epoch": 1},
}
VARIANTS = [(protocol, variant) for protocol, spec in PROTOCOLS.items() for variant in spec.variants]
ENOUGH = Limits(max_states=100_000)

pytestmark = needs_compiler


def essence(answer: Exploration) -> tuple[object, ...]:
    """All that the engines must agree on. Which of the states of a level is the first one to break is a race."""
    path = None if answer.path is None else len(answer.path)
    told = (answer.verdict, answer.violated is None, answer.reason)
    if answer.verdict is Verdict.UNKNOWN:
        return told
    if answer.verdict is Verdict.VIOLATED:
        return (*told, answer.distinct, answer.depth, path, answer.transitions)
    return (*told, answer.distinct, answer.depth, path, answer.transitions, answer.witnesses)


def agree(system: System, limits: Limits = ENOUGH, *invariants: str) -> bool:
    query = Query.of(system, invariants, limits=limits)
    batch, other = explore(query, "batch"), explore(query, "compiled", threads=2)
    assert other.engine == "compiled"
    return essence(batch) == essence(other)


@pytest.mark.sampled(30)
@pytest.mark.parametrize(("protocol", "variant"), VARIANTS)
def test_it_agrees_with_numpy_about_every_variant(protocol: str, variant: str) -> None:
    system = ground(PROTOCOLS[protocol].traced(variant), SMALL.get(protocol, {}))
    assert agree(system, ENOUGH, "type_ok") and agree(system)


def test_it_agrees_where_a_level_takes_many_rounds_and_does_not_depend_on_threads(
    at: At, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query.of(at("3/2/2/2"))
    batch = explore(query, "batch")
    answers = [explore(query, "compiled", threads=threads) for threads in (1, 2, 4)]
    monkeypatch.setattr(compiled, "SLICE", 0.001)
    monkeypatch.setattr(compiled, "ALONE", 0)
    answers += [explore(query, "compiled", threads=threads) for threads in (1, 3)]
    for answer in answers:
        assert essence(answer) == essence(batch) and answer.distinct == 737_794
        assert answer.coverage == answers[0].coverage


def test_a_counterexample_does_not_depend_on_threads(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "ALONE", 0)
    query = Query.of(at("3/2/2/2", "truncate-to-hw"))
    batch, *answers = (
        explore(query, engine, threads=n) for engine, n in (("batch", None), *(("compiled", n) for n in (1, 2, 4)))
    )
    assert batch.path is not None
    for answer in answers:
        assert answer.path == answers[0].path and len(answer.path or []) == len(batch.path)
        assert (answer.violated, answer.distinct, answer.depth) == (batch.violated, batch.distinct, batch.depth)


def without_a_guard(system: System) -> Any:
    """The trie of the instances, one of which has lost a guard: as if it had not been printed."""
    number = next(n for n, each in enumerate(system.instances) if each.action == "leader_shrink_isr")
    instance = system.instances[number]
    kept = tuple(guard for guard in instance.guards if guard[0] != "not_caught_up")
    assert len(kept) < len(instance.guards)
    return by_guards(
        replace(
            system,
            instances=[*system.instances[:number], replace(instance, guards=kept), *system.instances[number + 1 :]],
        )
    )


ALIKE = ("(uint32_t)(hash >> 2) << part->number_bits;", "0;")
"""Bits of the hash that stand beside a number, so that hardly ever a key is compared in vain: without them all are."""

REWRITTEN = {
    "keys that are not compared": [ALIKE, ("return !apart;", "return 1;")],
    "a word of the key that is not": [
        ALIKE,
        ("word = 0; word < WORDS; word++)\n        apart", "word = 1; word < 2; word++)\n        apart"),
    ],
    "the last lane of a group forgotten": [("count >= 32 ? UINT32_MAX :", "count >= 32 ? UINT32_MAX >> 1 :")],
    "a field cut off": [("K8((1 << (width)) - 1)", "K8((1 << (width)) / 2 - 1)")],
    "transitions counted once": [("part->transitions[i];", "!!part->transitions[i];")],
}


def rewritten(system: System, changes: list[tuple[str, str]]) -> str:
    text = text_of(system)
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    return text


def test_bits_beside_a_number_decide_nothing(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "text_of", lambda system: rewritten(system, [ALIKE]))
    assert agree(at("2/2/2/2"))


@pytest.mark.parametrize("fault", ["a guard that was not printed", *REWRITTEN])
def test_a_planted_fault_is_found(at: At, monkeypatch: pytest.MonkeyPatch, fault: str) -> None:
    system = at("2/2/2/2")
    if fault in REWRITTEN:
        text = rewritten(system, REWRITTEN[fault])
        monkeypatch.setattr(compiled, "text_of", lambda _: text)
    else:
        monkeypatch.setattr(compiled_text, "by_guards", without_a_guard)
    # A path is re-run by the reference, which may be the first to see it.
    with suppress(AssertionError):
        assert not agree(system)
        return
    with pytest.raises(AssertionError, match=r"no step leads|the reference"):
        agree(system)


def test_numpy_hands_over_what_it_has_found(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "WORTH", 500)
    monkeypatch.setattr(compiled, "WORTH_COMPILING", 600)
    for system in (
        at("2/2/2/2"),
        at("2/2/2/2", "truncate-to-hw"),
        at("2/1/2/2", "kip-320", "leader_write.log_not_full"),
    ):
        query = Query.of(system)
        batch, answer = explore(query, "batch"), explore(query, "auto")
        assert essence(batch) == essence(answer)
        if batch.distinct > 700:
            assert answer.engine == "compiled" and "states on" in str(answer.engine_note)
    monkeypatch.setattr(compiled, "find_compiler", lambda: None)
    assert explore(Query.of(at("2/2/2/2")), "auto").engine == "batch"
    assert explore(Query.of(at("2/2/2/2"), symmetry=True), "auto").engine == "batch"


@pytest.mark.parametrize(("constants", "bits"), [(SMALL["fencing"], 8), (SMALL["fencing"] | {"replicas": 8}, 16)])
def test_values_have_as_many_bits_as_they_need(constants: dict[str, int], bits: int) -> None:
    system = ground(PROTOCOLS["fencing"].traced(None), constants)
    assert f"#define ELEMENT_BITS {bits}" in text_of(system)
    query = Query.of(system, limits=Limits(max_depth=4))
    batch, answer = (explore(query, engine) for engine in ("batch", "compiled"))
    assert batch.distinct > 50
    for name in ("verdict", "reason", "distinct", "depth", "transitions", "witnesses"):
        assert getattr(batch, name) == getattr(answer, name)


def wide(limit: int, bound: int) -> System:
    """Doubles a number, or adds one to it, up to a limit."""
    protocol = Protocol(
        "wide", 'this "test" \\ ??/ */ #include', constants=(ConstantSpec("limit", limit, 1, "the end"),)
    )
    protocol.variable("count", "how far", integers(-1, lambda c: c["limit"]))
    protocol.variant("only", None, "the only one")

    @protocol.action()
    def one(k: Any, s: View) -> Any:
        yield "room", s.count < k.c.limit
        yield s.update(count=s.count + 1)

    @protocol.action()
    def twice(k: Any, s: View) -> Any:
        yield "room", s.count + s.count <= k.c.limit
        yield s.update(count=s.count + s.count)

    @protocol.always
    def below(k: Any, s: View) -> Any:
        return s.count < bound

    return ground(protocol.traced(), {})


@pytest.mark.parametrize(("limit", "bits"), [(60, 8), (126, 16), (300, 16), (70_000, 32), (1 << 40, 64)])
def test_nothing_wraps(limit: int, bits: int) -> None:
    """Twice a cell's largest value is looked at, and must not wrap."""
    system = wide(limit, limit)
    assert f"#define ELEMENT_BITS {bits}" in text_of(system)
    if limit < 1 << 20:
        assert agree(system)
    assert agree(system, Limits(max_depth=8))


def test_nothing_but_integers_and_our_own_names_is_compiled() -> None:
    text = text_of(wide(60, 60))
    assert "include */" not in text and "count <" in text and "twice" not in text
    begin, end = text.index("static void group("), text.index("/* Breadth-first search over packed keys")
    words = set(re.findall(r"\b[A-Za-z_]\w*", text[begin:end]))
    ours = {
        "static",
        "void",
        "group",
        "Part",
        "part",
        "unsigned",
        "number",
        "const",
        "uint64_t",
        "keys",
        "count",
        "uint8_t",
    }
    ours |= {
        "wanted",
        "uint32_t",
        "lanes",
        "valid",
        "UINT32_MAX",
        "to",
        "staged",
        "U8",
        "planes",
        "WORDS",
        "split",
        "V",
    }
    ours |= {
        "K",
        "PICK",
        "WITHIN",
        "ACROSS",
        "bits",
        "if",
        "mark_broken",
        "at",
        "broken",
        "return",
        "transitions",
        "for",
    }
    ours |= {
        "__builtin_popcount",
        "lane",
        "__builtin_ctz",
        "key",
        "UT",
        "PARTS",
        "ENTRY",
        "staged_count",
        "mark_escaped",
    }
    assert {word for word in words if not re.fullmatch(r"t\d+", word)} <= ours


def test_orbits_are_refused(at: At) -> None:
    with pytest.raises(BadInput, match="the compiled engine counts states, no orbits; leave it out, or take batch"):
        explore(Query.of(at("2/1/1/1"), symmetry=True), "compiled")


def test_without_a_compiler_it_says_so(at: At, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled, "find_compiler", lambda: None)
    with pytest.raises(BadInput, match="there is no C compiler"):
        explore(Query.of(at("2/1/1/1")), "compiled")
