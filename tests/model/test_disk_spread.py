"""The search on disk with its levels done by other processes: the same files, whoever did what, and whoever ended."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import System
from fencepost.model.explore import Limits, Query, Verdict
from fencepost.model.explore.disk import spread as spread_module
from fencepost.model.explore.disk import tasks
from fencepost.model.explore.disk.search import explore_on_disk
from fencepost.model.explore.disk.spread import explore_spread
from fencepost.model.explore.disk.tasks import Asked, Expanded, expand_slice

from .conftest import needs_compiler
from .test_disk_files import told

At = Callable[..., System]


def here(pieces: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
    """Each piece by itself, in this process, as if it had come from another one."""
    return [pickle.loads(pickle.dumps(work(pickle.loads(pickle.dumps(piece))))) for piece in pieces]


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if these levels were large."""
    monkeypatch.setattr(spread_module, "ALONE", 50)
    monkeypatch.setattr(spread_module, "SLICE", 70)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("engine", ["batch", pytest.param("compiled", marks=needs_compiler)])
@pytest.mark.parametrize("variant", ["kip-320", "truncate-to-hw"])
def test_files_and_answer_are_those_of_one_process(at: At, engine: str, variant: str, tmp_path: Path) -> None:
    query = Query.of(at("2/2/2/1", variant))
    whole = explore_on_disk(query, tmp_path / "one", engine)
    answer = explore_spread(query, tmp_path / "many", here, engine)
    assert (answer.verdict, answer.distinct, answer.depth) == (whole.verdict, whole.distinct, whole.depth)
    assert (answer.path, answer.coverage, answer.witnesses) == (whole.path, whole.coverage, whole.witnesses)
    assert told(tmp_path / "many") == told(tmp_path / "one")


def test_dropped_guards_travel_and_a_step_out_of_the_domains_is_found(at: At, tmp_path: Path) -> None:
    dropped = ("leader_write.log_not_full",)
    query = Query.of(at("2/1/2/2", "kip-320", *dropped))
    whole = explore_on_disk(query, tmp_path / "one", "batch")
    assert explore_spread(query, tmp_path / "many", here, "batch", dropped).path == whole.path
    assert whole.violated == "type_ok" and told(tmp_path / "many") == told(tmp_path / "one")


def test_orbits_are_counted_by_others_too(at: At, tmp_path: Path) -> None:
    query = Query.of(at("3/1/1/1"), symmetry=True)
    whole = explore_on_disk(query, tmp_path / "one")
    assert explore_spread(query, tmp_path / "many", here).distinct == whole.distinct
    assert told(tmp_path / "many") == told(tmp_path / "one")


def test_another_text_is_refused(at: At, tmp_path: Path) -> None:
    query = Query.of(at("2/1/2/1", "kip-320", "leader_shrink_isr.not_caught_up"))
    with pytest.raises(BadInput, match="--master: a worker reads another text of fencing than this process"):
        explore_spread(query, tmp_path, here, "batch")


def test_a_search_goes_on_from_what_other_processes_have_done_and_left(at: At, tmp_path: Path) -> None:
    query = Query.of(at("2/2/2/1"))
    explore_on_disk(query, tmp_path / "one", "batch")

    class Gone(Exception):
        pass

    def ends(after: int) -> Callable[..., list[Any]]:
        left = [after]

        def some(pieces: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
            found = here(pieces[: left[0]], work)
            left[0] -= len(found)
            # Whoever is too late still writes.
            if len(found) < len(pieces):
                raise Gone
            return found

        return some

    for after in (3, 17, 40):
        with pytest.raises(Gone):
            explore_spread(query, tmp_path / "many", ends(after), "batch")
    late = tmp_path / "many" / "level-00000-0123456789ab.part"
    late.write_bytes(b"of a task that nobody waits for")
    assert explore_spread(query, tmp_path / "many", here, "batch").verdict is Verdict.HOLDS
    assert told(tmp_path / "many") == told(tmp_path / "one")


def test_a_task_that_has_no_memory_ends_the_search_as_unknown(at: At, tmp_path: Path) -> None:
    query = Query.of(at("2/2/2/1"))

    def short(pieces: Sequence[Any], work: Callable[[Any], Any]) -> list[Any]:
        return here([replace(each, asked=replace(each.asked, max_memory=1 << 20)) for each in pieces], work)

    answer = explore_spread(query, tmp_path / "many", short, "batch")
    assert answer.verdict is Verdict.UNKNOWN and answer.reason == "more than 1 MiB of memory (--max-memory)"
    assert not list((tmp_path / "many").glob("*.part"))
    assert explore_spread(query, tmp_path / "many", here, "batch").verdict is Verdict.HOLDS


def test_a_full_disk_of_a_task_ends_the_search_as_unknown(at: At, tmp_path: Path) -> None:
    query = Query.of(at("2/2/2/1"), limits=Limits())
    asked = Asked.of(query, ())
    explore_on_disk(replace(query, limits=Limits(max_depth=3)), tmp_path / "one", "batch")
    level = spread_module.Keys(tmp_path / "one" / "level-00003.keys", 4, asked_words(asked))
    nowhere = tmp_path / "nowhere"
    answer = expand_slice(tasks.Expand(asked, "batch", nowhere, level, 0, 4))
    assert (
        isinstance(answer, Expanded) and answer.unknown == f"{nowhere} takes no more: No such file or directory (--dir)"
    )


def asked_words(asked: Asked) -> int:
    return tasks._words(asked)


@pytest.mark.nightly(seconds=10)
@needs_compiler
def test_two_processes_come_to_the_files_of_one(at: At, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setattr(spread_module, "ALONE", 5000)
    query = Query.of(at("3/2/2/2"))
    explore_on_disk(query, tmp_path / "one", "compiled")
    with ProcessPoolExecutor(2, get_context("spawn")) as pool:
        answer = explore_spread(query, tmp_path / "many", lambda *given: list(pool.map(given[1], given[0])), "compiled")
    assert answer.distinct == 737_794
    assert told(tmp_path / "many") == told(tmp_path / "one")
