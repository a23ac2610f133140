"""Which lines of a system were executed: what is counted, what is told, and that a sample of the runs is watched."""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import pytest
from fencepost.conformance.executed import Executed, files_of, told
from fencepost.conformance.harness import find_harness
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.simulation.sampled import Sampled, source_of
from fencepost.model.core.errors import BadInput

from .conftest import Fencepost

SOURCE = '''
"""A module."""

LIMIT = 3

class Log:
    """A log."""

    def __init__(self):
        self.records = []

    def append(self, record):
        """Append."""
        if record is None:
            raise ValueError(
                "no record"
            )
        self.records += [each for each in (record,)]
        return len(self.records)

    @property
    def end(self): return len(self.records)

    def truncate(self, to):
        def kept(number):
            return number < to
        self.records = [each for number, each in enumerate(self.records) if kept(number)]

    def sync(self):
        """Only promised."""
        raise NotImplementedError

    def close(self):
        ...
'''


@pytest.fixture
def log(tmp_path: Path) -> ModuleType:
    path = tmp_path / "log.py"
    path.write_text(SOURCE)
    module = ModuleType("log")
    module.__file__ = str(path)
    exec(compile(SOURCE, str(path), "exec"), module.__dict__)
    return module


def test_lines_of_functions_are_counted_and_what_was_never_executed_is_told(log: ModuleType) -> None:
    path = Path(str(log.__file__))
    executed = Executed(files_of(path.parent, "--source"))
    assert [each.name for each in executed.functions] == [
        "Log.__init__",
        "Log.append",
        "Log.end",
        "Log.truncate",
        "Log.truncate.kept",
    ], "what has no body of its own is left out"
    before = sys.gettrace()
    outside = log.Log()
    outside.truncate(0)
    assert executed.done == 0, "only what is watched counts"
    with executed.watching():
        made = log.Log()
        assert made.append(1) == 1 and made.end == 1
    assert sys.gettrace() is before
    never = {each.function.name: each for each in executed.never()}
    assert set(never) == {"Log.append", "Log.truncate", "Log.truncate.kept"}
    line = SOURCE.splitlines().index("            raise ValueError(") + 1
    assert never["Log.append"].lines == (line, line + 1) or never["Log.append"].lines == (line,)
    assert str(never["Log.append"]).startswith(f"Log.append {line}") and never["Log.truncate"].whole
    lines = told(executed, 5)
    assert "measured in one run of 5" in lines[0] and "Log.truncate (never called)" in lines[1]
    with executed.watching():
        made.truncate(0)
        with pytest.raises(ValueError, match="no record"):
            made.append(None)
    assert executed.never() == [] and executed.done == executed.total and told(executed, 1) == []


def test_what_is_no_source_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no Python file"):
        files_of(tmp_path, "--source")
    (tmp_path / "bad.py").write_text("def (:")
    with pytest.raises(BadInput, match="cannot be read as Python"):
        Executed(files_of(tmp_path, "--source"))


def test_one_run_of_so_many_is_watched(log: ModuleType) -> None:
    class Logs(ModelSystem):
        def step(self, event):  # type: ignore[no-untyped-def]
            log.Log().append(1)
            return super().step(event)

    source = [Path(str(log.__file__))]
    sampled = Sampled(Logs(), Executed(source), 2)
    counts = []
    for _ in range(3):
        sampled.executed = Executed(source)
        sampled.reset({"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}, 1)
        sampled.step(sampled.pending()[0].event)
        counts.append(sampled.executed.done)
    assert counts[0] == counts[2] > 0 == counts[1]


def test_what_was_executed_before_is_told_to_whoever_watches_next(log: ModuleType) -> None:
    source = [Path(str(log.__file__))]
    first, second = Executed(source), Executed(source)
    with first.watching():
        log.Log()
        with second.watching():
            log.Log()
        log.Log().truncate(0)
    assert (first.done, second.done) == (3, 1), "each is told, and goes on after the other"
    log.Log().append(1)
    with first.watching():
        log.Log().append(1)
    assert first.done == 6, "what was executed while nobody watched is told when somebody does"


@pytest.mark.parametrize("protocol", ["controller", "fencing", "snapshots", "truncation"])
def test_a_protocol_knows_its_source(protocol: str) -> None:
    found = source_of("memory", ModelSystem(protocol), None)
    harness = find_harness(protocol)
    assert found is not None and found.total > 300 and harness is not None
    files = {each.file.relative_to(each.file.parents[1]).as_posix() for each in found.functions}
    assert files <= set(harness.drives) and len(files) > 2
    assert source_of("model", ModelSystem(protocol), None) is None, "the model has no source of its own"


def test_conform_tells_what_was_never_executed(
    fencepost: Fencepost, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(
        "from fencepost.conformance.simulation.model_system import ModelSystem\n\n"
        "class Mine(ModelSystem):\n    name = 'mine'\n\n"
        "    def step(self, event):\n        if event.name == 'earthquake':\n            self.fall()\n"
        "        return super().step(event)\n\n    def fall(self):\n        self.fallen = True\n"
    )
    run = ("conform", "--impl", "mine.py:Mine", "--runs", 2, "--events", 20, "--replicas", 2)
    source = fencepost(*run, "--json").json["free"]["source"]
    assert [(each["function"], each["lines"]) for each in source["never"]] == [
        ("Mine.step", [8]),
        ("Mine.fall", [12]),
    ]
    assert (source["lines"], source["executed"]) == (4, 2)
    assert "mine.py: Mine.step 8; Mine.fall (never called)" in fencepost(*run).out
    assert "there is no such folder" in fencepost(*run, "--source", "nowhere").complaint
    Path("other").mkdir()
    assert "there is no Python file in other" in fencepost(*run, "--source", "other").complaint
