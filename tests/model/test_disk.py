"""Exploration on disk: it says what memory says, with whatever memory there is, and its files are the same bytes."""

from __future__ import annotations

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from fencepost.model.core import terms
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import Grounder, System, ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore import Exploration, Limits, Query, Verdict, explore, memory
from fencepost.model.explore.batch import LEAST
from fencepost.model.explore.disk import compiled_kernel, known, search
from fencepost.model.explore.disk.compiled_kernel import CompiledKernel, kernel_text
from fencepost.model.explore.disk.files import Keys
from fencepost.model.explore.disk.kernel import Kernel
from fencepost.model.explore.disk.manifest import MANIFEST
from fencepost.model.explore.disk.numpy_kernel import NumpyKernel
from fencepost.model.explore.disk.order import Actions, Rows, matches, order_of, sorting
from fencepost.model.explore.disk.search import explore_on_disk
from fencepost.model.explore.result import Watch
from fencepost.model.interpret.compiler import find_compiler
from fencepost.model.interpret.packing import Packing
from hypothesis import given
from hypothesis import strategies as st

from .conftest import needs_compiler
from .test_compiled import ENOUGH, SMALL, wide

At = Callable[..., System]

VARIANTS = [(protocol, variant) for protocol, spec in PROTOCOLS.items() for variant in spec.variants]
DEFAULTS = [(protocol, None) for protocol in PROTOCOLS]

engines = pytest.mark.parametrize("engine", ["batch", pytest.param("compiled", marks=needs_compiler)])


def essence(answer: Exploration) -> tuple[object, ...]:
    """All that a search on disk and one in memory must agree on. Which broken state comes first is a race in memory."""
    path = None if answer.path is None else len(answer.path)
    told = (answer.verdict, answer.violated is None, answer.reason, answer.distinct, answer.depth, path)
    if answer.verdict is Verdict.VIOLATED and answer.path is not None:
        return (*told, answer.transitions)
    return (*told, answer.transitions, answer.witnesses)


def same_files(one: Path, other: Path) -> bool:
    """Whether two directories have the same levels, and manifests that differ in the time that was taken alone."""

    def told(folder: Path) -> tuple[object, ...]:
        manifest = json.loads((folder / MANIFEST).read_text())
        levels = {path.name: path.read_bytes() for path in folder.glob("*.keys")}
        others = sorted(path.name for path in folder.iterdir() if path.name not in levels)
        return {**manifest, "seconds": 0, "digest": 0}, levels, others

    return told(one) == told(other)


def agree(system: System, folder: Path, engine: str, *invariants: str) -> bool:
    query = Query.of(system, invariants, limits=ENOUGH)
    answer = explore_on_disk(query, folder, engine)
    assert answer.engine == engine
    expected = explore(query, "batch")
    if expected.verdict is Verdict.UNKNOWN:
        return answer.verdict is Verdict.UNKNOWN and answer.reason == expected.reason
    if answer.verdict is Verdict.HOLDS:
        assert sum(each.discoveries for each in answer.coverage.values()) == answer.distinct - 1
    return essence(answer) == essence(expected)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("protocol", "variant"), DEFAULTS)
def test_it_agrees_with_memory_about_every_protocol(protocol: str, variant: str | None, tmp_path: Path) -> None:
    system = ground(PROTOCOLS[protocol].traced(variant), SMALL[protocol])
    assert agree(system, tmp_path, "batch")


@pytest.mark.nightly(seconds=100)
@needs_compiler
def test_it_agrees_with_memory_about_every_variant_by_both_engines(tmp_path: Path) -> None:
    for number, (protocol, variant) in enumerate(VARIANTS):
        system = ground(PROTOCOLS[protocol].traced(variant), SMALL.get(protocol, {}))
        folders = [tmp_path / f"{number}-{engine}" for engine in ("batch", "compiled")]
        for folder, engine in zip(folders, ("batch", "compiled"), strict=True):
            assert agree(system, folder, engine), (protocol, variant, engine)
        assert same_files(*folders), (protocol, variant)


@pytest.mark.nightly(seconds=20)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_it_agrees_with_memory_at_default_constants(protocol: str, tmp_path: Path) -> None:
    query = Query.of(ground(PROTOCOLS[protocol].traced(None), {}))
    assert essence(explore_on_disk(query, tmp_path)) == essence(explore(query, "auto"))


@engines
def test_a_counterexample_is_a_shortest_one_and_does_not_depend_on_the_engine(
    at: At, engine: str, tmp_path: Path
) -> None:
    system = at("2/2/2/2", "truncate-to-hw")
    assert agree(system, tmp_path / "one", engine)
    first, again = (explore_on_disk(Query.of(system, limits=ENOUGH), tmp_path / name, "batch") for name in "ab")
    assert first.path == again.path and same_files(tmp_path / "a", tmp_path / "one")
    assert first.path == explore_on_disk(Query.of(system, limits=ENOUGH), tmp_path / "one", engine).path


@engines
def test_a_step_out_of_the_domains_is_found(at: At, engine: str, tmp_path: Path) -> None:
    system = at("2/1/2/2", "kip-320", "leader_write.log_not_full")
    assert agree(system, tmp_path, engine)
    assert json.loads((tmp_path / MANIFEST).read_text())["ending"]["instance"] is not None


@engines
def test_a_constraint_confines_what_is_expanded(at: At, engine: str, tmp_path: Path) -> None:
    system = at("2/2/1/1")
    cell = Grounder(system.traced, system.constants, system.layout).cell(0)
    confined = replace(system, constraint=cell < 1)
    whole = explore(Query.of(system), "batch").distinct
    assert agree(confined, tmp_path / "some", engine) and explore(Query.of(confined), "batch").distinct < whole
    assert agree(replace(system, constraint=terms.FALSE), tmp_path / "none", engine)


@pytest.mark.sampled(2)
@needs_compiler
@pytest.mark.parametrize("limit", [60, 300, 1 << 40])
def test_keys_of_one_word_and_values_of_any_width(limit: int, tmp_path: Path) -> None:
    query = Query.of(wide(limit, limit), limits=Limits(max_depth=10))
    assert Packing(query.system.layout).words == 1
    expected = explore(query, "batch")
    for engine in ("batch", "compiled"):
        assert essence(explore_on_disk(query, tmp_path / engine, engine)) == essence(expected)
    assert same_files(tmp_path / "batch", tmp_path / "compiled")


def test_orbits_are_counted_as_in_memory(at: At, tmp_path: Path) -> None:
    for variant in ("kip-320", "truncate-to-hw"):
        query = Query.of(at("3/1/1/1", variant), symmetry=True)
        assert essence(explore_on_disk(query, tmp_path / variant)) == essence(explore(query, "batch"))


@needs_compiler
def test_the_compiled_engine_goes_on_where_numpy_was(at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    query = Query.of(at("2/2/2/2"))
    assert explore_on_disk(query, tmp_path / "numpy").engine == "batch"
    monkeypatch.setattr(search, "WORTH", 500)
    monkeypatch.setattr(search, "WORTH_COMPILING", 600)
    assert explore_on_disk(query, tmp_path / "both").engine == "compiled"
    assert same_files(tmp_path / "numpy", tmp_path / "both")
    monkeypatch.setattr(search, "find_compiler", lambda: None)
    assert explore_on_disk(query, tmp_path / "none").engine == "batch"
    with pytest.raises(BadInput, match="--engine: there is no C compiler"):
        explore_on_disk(query, tmp_path / "refused", "compiled")
    for engine in ("reference", "symbolic"):
        with pytest.raises(BadInput, match=f"--dir: the {engine} engine keeps its states in memory"):
            explore_on_disk(query, tmp_path / "refused", engine)
    assert not (tmp_path / "refused").exists()


@pytest.fixture
def short_of_memory(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """As if memory were for 300 candidates at once, or for the fewest of the compiled engine; how many were spilled."""
    spilled: list[int] = []

    def holds(self: Kernel) -> int:
        self.clear()
        if isinstance(self, CompiledKernel):
            self._least = self._group + 300
            return self._least
        return 300

    def take(self: NumpyKernel, found: list[Any], places: Any, begins: int) -> bool:
        many = sum(each.rows.size for each in found)
        least = not self.count and self._rows <= LEAST
        return (least or self.count + many <= 300) and took(self, found, places, begins)

    def spill(self: search.DiskSearch, kernel: Kernel, number: int) -> Any:
        spilled.append(kernel.count)
        return spill_out(self, kernel, number)

    took, spill_out = NumpyKernel._take, search.DiskSearch._spilled
    for kernel in (NumpyKernel, CompiledKernel):
        monkeypatch.setattr(kernel, "holds", holds)
    monkeypatch.setattr(NumpyKernel, "_take", take)
    monkeypatch.setattr(search.DiskSearch, "_spilled", spill)
    return spilled


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("engine", "constants"), [("batch", "2/2/2/2"), pytest.param("compiled", "3/2/2/1", marks=needs_compiler)]
)
@pytest.mark.parametrize("variant", ["kip-320", "truncate-to-hw"])
def test_what_memory_has_no_room_for_goes_to_disk_and_changes_nothing(
    at: At, engine: str, constants: str, variant: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    query = Query.of(at(constants, variant))
    whole = explore_on_disk(query, tmp_path / "whole", engine)
    spilled = request.getfixturevalue("short_of_memory")
    answer = explore_on_disk(query, tmp_path / "parts", engine)
    assert essence(answer) == essence(whole) and answer.path == whole.path
    assert answer.coverage == whole.coverage
    assert same_files(tmp_path / "whole", tmp_path / "parts")
    assert len(spilled) > 3


@engines
def test_many_small_levels_lie_together_in_few_files(
    at: At, engine: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = Query.of(at("2/2/2/2"), limits=ENOUGH)
    whole = explore_on_disk(query, tmp_path / "whole", engine)
    read: list[int] = []

    def files(self: known.Known) -> list[Keys]:
        found = listed(self)
        assert sum(each.count for each in found) == self._directory.content.states
        read.append(len(found))
        return found

    listed = known.Known.files
    monkeypatch.setattr(known.Known, "files", files)
    monkeypatch.setattr(known, "MANY", 3)
    monkeypatch.setattr(known, "LARGEST", 4000)
    assert essence(explore_on_disk(query, tmp_path / "runs", engine)) == essence(whole)
    assert same_files(tmp_path / "whole", tmp_path / "runs")
    assert len(read) == 18 and max(read) <= 4
    # A run that lacks a key lets its state be found again.
    monkeypatch.setattr(known, "sorting", lambda keys, orders: sorting(keys, orders)[[*range(len(keys) - 1), -2]])
    monkeypatch.setattr(known.Known, "files", listed)
    assert explore_on_disk(query, tmp_path / "fault", engine).distinct > whole.distinct


def kernels(query: Query) -> list[Kernel]:
    """Both engines, where there is a compiler."""
    watch = Watch(query.limits, None)
    compiler = find_compiler()
    compiled = [] if compiler is None else [CompiledKernel(query, watch, compiler, kernel_text(query))]
    return [NumpyKernel(query, watch), *compiled]


def alike(draw: np.random.Generator, count: int, order: int) -> Rows:
    """Keys of two words that all have one hash."""
    first = draw.integers(0, 1 << 64, size=count, dtype=np.uint64)
    mixed = first * np.uint64(0x9E3779B97F4A7C15)
    return np.stack([first, np.uint64(order) - (mixed ^ mixed >> np.uint64(29))], axis=1)


@pytest.fixture(scope="module")
def both() -> list[Kernel]:
    constants = dict(zip(PROTOCOLS["fencing"].constants, (3, 2, 2, 1), strict=True))
    return kernels(Query.of(ground(PROTOCOLS["fencing"].traced(None), constants)))


@given(seed=st.integers(0, 1 << 32), colliding=st.booleans())
def test_candidates_are_merged_struck_out_and_given_out_as_a_set_of_keys_would(
    both: list[Kernel], seed: int, colliding: bool
) -> None:
    draw = np.random.default_rng(seed)
    keys = alike(draw, 300, 7) if colliding else draw.integers(0, 1 << 64, size=(300, 2), dtype=np.uint64)
    if colliding:
        assert len(set(order_of(keys).tolist())) == 1
    batches = []
    first: dict[tuple[int, ...], int] = {}
    for number in range(4):
        some = keys[np.unique(draw.integers(0, 300, size=100))]
        some = some[sorting(some, order_of(some))]
        batches.append((some, np.full(len(some), number + 1, dtype=np.uint16)))
        for key in map(tuple, some.tolist()):
            first.setdefault(key, number + 1)
    known = keys[np.unique(draw.integers(0, 300, size=120))]
    known = known[sorting(known, order_of(known))]
    left = {key: number for key, number in first.items() if key not in set(map(tuple, known.tolist()))}
    expected = sorted(left, key=lambda key: (int(order_of(np.array([key], dtype=np.uint64))[0]), key))
    for kernel in both:
        kernel.load(iter(batches), sum(len(some) for some, _ in batches), 0)
        kernel.strike(known)
        given_out: list[tuple[Rows, Actions]] = [(some.copy(), their.copy()) for some, their in kernel.fresh()]
        found = [tuple(key) for some, _ in given_out for key in some.tolist()]
        assert found == expected
        assert [int(each) for _, their in given_out for each in their] == [left[key] for key in expected]
        kernel.clear()


@given(seed=st.integers(0, 1 << 32), colliding=st.booleans())
def test_places_of_keys_that_both_have(seed: int, colliding: bool) -> None:
    draw = np.random.default_rng(seed)
    keys = alike(draw, 60, 5) if colliding else draw.integers(0, 9, size=(60, 2), dtype=np.uint64)
    keys = np.unique(keys, axis=0)
    one, other = (keys[np.flatnonzero(draw.integers(0, 2, size=len(keys)))] for _ in range(2))
    one, other = (some[sorting(some, order_of(some))] for some in (one, other))
    mine, theirs = matches(one, order_of(one), other, order_of(other))
    assert (one[mine] == other[theirs]).all()
    shared = set(map(tuple, one.tolist())) & set(map(tuple, other.tolist()))
    assert set(map(tuple, one[mine].tolist())) == shared and len(mine) == len(shared)


FAULTS = {
    "keys that are not struck out": [("level->marks[slot] |= SEEN;", ";")],
    "struck out without a look": [
        ("found_at(level, keys + (i - FETCHED) * WORDS, slots[i % FETCHED])", "slots[i % FETCHED]")
    ],
    "not in order within a run of slots": [("&& before(key, order,", "&& 0 && before(key, order,")],
    "the action found last": [
        ("        level->marks[slot] = mark;\n", "    }\n    level->marks[slot] = mark;\n    {\n")
    ],
    "a group's last successor lost": [("i < part->staged_count + FETCHED;", "i + 1 < part->staged_count + FETCHED;")],
    "successors by instance": [
        ("rows[begins[(uint32_t)(part->staged[(size_t)i * ENTRY + WORDS] >> 32) / PARTS - part->at]++]", "rows[i]")
    ],
    "slots in another order": [("(order << level->shared)", "(order << level->shared << 1)")],
}


@pytest.mark.sampled(2)
@needs_compiler
@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(at: At, fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = compiled_kernel._own_text()
    for old, new in FAULTS[fault]:
        assert old in text
        text = text.replace(old, new)
    system = at("2/2/1/1")
    assert agree(system, tmp_path / "numpy", "batch")
    monkeypatch.setattr(compiled_kernel, "_own_text", lambda: text)
    # A search that does not find its own states again goes on for ever.
    limits = replace(ENOUGH, max_depth=20)
    with suppress(AssertionError):
        found = explore_on_disk(Query.of(system, limits=limits), tmp_path / "fault", "compiled")
        assert essence(found) == essence(explore(Query.of(system, limits=limits), "batch"))
        assert same_files(tmp_path / "numpy", tmp_path / "fault")
        pytest.fail(f"{fault} is not found")


@engines
def test_too_little_memory_is_unknown_and_more_of_it_goes_on(at: At, engine: str, tmp_path: Path) -> None:
    system = at("2/2/2/2")
    tight = Limits(max_memory=memory.resident())
    answer = explore_on_disk(Query.of(system, limits=tight), tmp_path, engine)
    assert answer.verdict is Verdict.UNKNOWN and "(--max-memory)" in str(answer.reason)
    assert agree(system, tmp_path, engine)


@engines
def test_budgets_count_as_in_memory_and_a_larger_one_goes_on(at: At, engine: str, tmp_path: Path) -> None:
    system = at("2/2/2/2")
    for limits in (Limits(max_depth=0), Limits(max_depth=7), Limits(max_states=1000), Limits(max_depth=9)):
        query = Query.of(system, limits=limits)
        answer, expected = explore_on_disk(query, tmp_path, engine), explore(query, "batch")
        if limits.max_states == 1000:
            # In memory the level is broken off in which they become too many.
            assert sum(answer.transitions.values()) > sum(expected.transitions.values())
            answer.coverage, answer.witnesses = expected.coverage, expected.witnesses
        assert answer.verdict is Verdict.UNKNOWN and essence(answer) == essence(expected)
    answer = explore_on_disk(Query.of(system), tmp_path, engine)
    assert answer.verdict is Verdict.HOLDS and "on, of which a run before has ended" in str(answer.engine_note)
    assert agree(system, tmp_path, engine)
