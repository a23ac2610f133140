"""A simulated corpus: the same bytes for the same seed, the same traces however many files, whole or not at all."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.corpus import simulate as simulating
from fencepost.traces.corpus.files import Written, write_events
from fencepost.traces.corpus.layout import Events
from fencepost.traces.corpus.manifest import MANIFEST, PLANTED, read_corpus
from fencepost.traces.corpus.output import new_folder
from fencepost.traces.corpus.plan import make_plan
from fencepost.traces.corpus.simulate import Simulation, simulate, simulation, walker
from fencepost.traces.corpus.spread import spread

FAULTS = ("follower_fetch.epoch_not_fenced dropped", "kip-101")


def asked(files: int | None = None, seed: int = 5, traces: int = 150, events: int = 30) -> Simulation:
    return simulation("fencing", None, {"replicas": 2}, traces, events, seed, files)


def written(what: Simulation, folder: Path, faults: tuple[str, ...] = FAULTS) -> dict[str, bytes]:
    plan = make_plan(walker(what, faults), faults, faults, what.traces, 20, what.events) if faults else None
    simulate(what, folder, plan)
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def events_in(folder: Path) -> Events:
    runs = []
    for file in read_corpus(folder).files:
        with file.open() as opened:
            runs += list(opened)
    return Events.joined(runs)


def test_the_same_seed_gives_the_same_bytes(tmp_path: Path) -> None:
    first = written(asked(4), tmp_path / "a")
    walker.cache_clear()
    assert written(asked(4), tmp_path / "b") == first
    assert list(first) == [MANIFEST, *(f"part-{n:05d}.parquet" for n in range(4)), PLANTED]
    other = written(asked(4, seed=6), tmp_path / "c")
    assert all(other[name] != first[name] for name in first)


def test_the_traces_are_the_same_in_any_number_of_files(tmp_path: Path) -> None:
    counts = (1, 7, 64)
    truths = [written(asked(files), tmp_path / str(files))[PLANTED] for files in counts]
    assert truths[0] == truths[1] == truths[2]
    runs = [events_in(tmp_path / str(files)) for files in counts]
    for run in runs[1:]:
        assert run.cells.tobytes() == runs[0].cells.tobytes()
        for name in ("trace", "step", "action", "params"):
            assert getattr(run, name).tobytes() == getattr(runs[0], name).tobytes()
    assert runs[0].starts.size == 150


def test_the_number_of_files_follows_from_the_size_of_the_corpus() -> None:
    assert len(asked().cuts()) == 1
    large = simulation("fencing", None, {}, 200_000, 100, 0)
    assert len(large.cuts()) == 20
    assert large.cuts()[0] == (0, 10_000) and large.cuts()[-1][1] == 200_000
    assert len(simulation("fencing", None, {}, 2, 1 << 20, 0).cuts()) == 2


def test_what_came_out_is_counted(tmp_path: Path) -> None:
    done = simulate(asked(3), tmp_path / "a")
    told = json.loads((tmp_path / "a" / MANIFEST).read_text())
    assert (done.traces, done.events) == (told["traces"], told["events"]) == (150, len(events_in(tmp_path / "a")))
    lengths = events_in(tmp_path / "a")
    short = sum(int(high - low) < 30 for low, high in zip(lengths.starts, lengths.ends, strict=True))
    assert done.ended == short > 0
    assert told["files"][0]["header"]["source"] == {"simulated": "model", "seed": 5}


def refusal(**changes: object) -> str:
    wanted: dict[str, object] = {
        "protocol": "fencing",
        "variant": None,
        "constants": {},
        "traces": 9,
        "events": 9,
        "seed": 0,
    }
    with pytest.raises(BadInput) as refused:
        simulation(**{**wanted, **changes})  # type: ignore[arg-type]
    return str(refused.value)


def test_what_cannot_be_simulated_is_named_by_its_option() -> None:
    assert refusal(protocol="paxos").startswith("PROTOCOL: there is no protocol 'paxos'")
    assert refusal(variant="x").startswith("--variant: fencing has no variant 'x'")
    assert refusal(constants={"replicas": 0}).startswith("--replicas: replicas is 0")
    assert refusal(traces=0).startswith("--traces: 0 is out of range")
    assert refusal(events=1 << 21).startswith("--events: 2097152 is out of range")
    assert refusal(seed=-1).startswith("--seed: -1 is out of range")
    assert refusal(files=10).startswith("--files: 9 traces do not fill 10 files")


def test_the_folder_appears_only_when_it_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path, *rest: object, **options: object) -> Written:
        if path.name == "part-00002.parquet":
            raise BadInput("cannot be written: No space left on device", str(path), "make room")
        return write_events(path, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(simulating, "write_events", full)
    with pytest.raises(BadInput, match=r"part-00002\.parquet: cannot be written: No space left on device"):
        simulate(asked(4), tmp_path / "a")
    assert list(tmp_path.iterdir()) == []


def test_two_writers_of_one_folder_leave_each_other_s_work_alone(tmp_path: Path) -> None:
    # As another host's process of this very number would have left it.
    other = tmp_path / f".a.{os.getpid()}.part"
    other.mkdir()
    (other / "x").touch()

    def given_up() -> None:
        with new_folder(tmp_path / "a") as part:
            (part / "x").write_text("second")
            raise ZeroDivisionError

    with new_folder(tmp_path / "a") as one:
        (one / "x").write_text("first")
        with pytest.raises(ZeroDivisionError):
            given_up()
    assert (tmp_path / "a" / "x").read_text() == "first"
    assert sorted(path.name for path in tmp_path.iterdir()) == [other.name, "a"]
    assert (other / "x").exists()


def test_the_slower_of_two_writers_is_refused_and_removes_its_own_alone(tmp_path: Path) -> None:
    def slower() -> None:
        with new_folder(tmp_path / "a") as slow:
            (slow / "x").write_text("slow")
            with new_folder(tmp_path / "a") as fast:
                (fast / "x").write_text("fast")

    with pytest.raises(BadInput, match="cannot be written"):
        slower()
    assert (tmp_path / "a" / "x").read_text() == "fast"
    assert [path.name for path in tmp_path.iterdir()] == ["a"]


def test_what_a_killed_task_left_is_cleared_away(tmp_path: Path) -> None:
    with new_folder(tmp_path / "a") as part:
        (part / ".part-00000.parquet.77.part").touch()
        (part / "part-00000.parquet").touch()
    assert [path.name for path in (tmp_path / "a").iterdir()] == ["part-00000.parquet"]


def test_a_place_that_is_taken_or_missing_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    simulate(asked(1, traces=3), tmp_path / "empty")
    assert read_corpus(tmp_path / "empty").files

    def refused(out: Path) -> str:
        with pytest.raises(BadInput) as wrong:
            simulate(asked(), out)
        return str(wrong.value)

    assert refused(tmp_path / "empty").startswith(f"{tmp_path}/empty: the folder is there already, and not empty; ")
    assert refused(tmp_path / "none" / "c").startswith(f"{tmp_path}/none/c: there is no such folder to put it in; ")
    (tmp_path / "file").touch()
    assert refused(tmp_path / "file").startswith(f"{tmp_path}/file: it is there already, and no folder; ")
    with pytest.raises(BadInput, match="x: cannot be written: No such file"), new_folder(tmp_path / "new") as part:
        (part / "none" / "x").write_text("")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty", "file"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_folder_without_permission_is_named(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    try:
        with pytest.raises(BadInput, match="Permission denied"):
            simulate(asked(), tmp_path / "c")
    finally:
        tmp_path.chmod(0o700)


def test_a_folder_that_may_not_be_made_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As above, for root too."""

    def refused(path: Path, *_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(Path, "mkdir", refused)
    with pytest.raises(BadInput, match="cannot be written: Permission denied"):
        simulate(asked(), tmp_path / "c")
    assert list(tmp_path.iterdir()) == []


def test_work_is_spread_in_order_and_a_piece_that_is_refused_stands_alone() -> None:
    told: list[tuple[int, int]] = []

    def half(number: int) -> int:
        if number % 2:
            raise BadInput("it is odd", str(number), "give an even one")
        return number // 2

    results = spread([4, 3, 2], half, on_done=lambda done, of: told.append((done, of)))
    assert results[0] == 2 and results[2] == 1
    assert str(results[1]) == "3: it is odd; give an even one"
    assert told == [(0, 3), (1, 3), (2, 3), (3, 3)]
