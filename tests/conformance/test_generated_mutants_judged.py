"""Generated mutants judged: planted ones are killed, survivors are what they are, of ours and of anybody's source."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from random import Random

import pytest
from fencepost import impl
from fencepost.conformance.harness import find_harness, held_to
from fencepost.conformance.mutants.generated import recording, worker
from fencepost.conformance.mutants.generated.answer import summary
from fencepost.conformance.mutants.generated.drawing import Mutant
from fencepost.conformance.mutants.generated.driving import Drive, Grounds
from fencepost.conformance.mutants.generated.equivalent import Equivalent
from fencepost.conformance.mutants.generated.judging import Judgement, Killer, Run, parts_too
from fencepost.conformance.mutants.generated.measure import Fate, Measure, Row
from fencepost.conformance.mutants.generated.recording import compare, record
from fencepost.conformance.mutants.generated.run import Asked, confirmed, drives_of, judge_all, measure
from fencepost.conformance.mutants.generated.source import Source, our_source, source_of
from fencepost.conformance.mutants.generated.text import Edit, Text
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.compaction.plan import PLAN as COMPACTION_PLAN
from fencepost.conformance.protocols.controller.plan import PLAN as CONTROLLER_PLAN
from fencepost.conformance.protocols.fencing.plan import PLAN as FENCING_PLAN
from fencepost.conformance.protocols.snapshots.plan import PLAN as SNAPSHOTS_PLAN
from fencepost.conformance.protocols.tiering.plan import PLAN as TIERING_PLAN
from fencepost.conformance.protocols.truncation.plan import PLAN as TRUNCATION_PLAN
from fencepost.conformance.scaffold import write_new
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import REGISTRY
from fencepost.traces.run_report import Json

from .conftest import Fencepost

IMPL = Path(impl.__path__[0])
FENCING = (("replicas", 2), ("log_size", 2), ("max_records", 2), ("max_leader_epoch", 2))
PLANS = {
    "compaction": COMPACTION_PLAN,
    "controller": CONTROLLER_PLAN,
    "fencing": FENCING_PLAN,
    "snapshots": SNAPSHOTS_PLAN,
    "tiering": TIERING_PLAN,
    "truncation": TRUNCATION_PLAN,
}
LOCKSTEP = Drive("lockstep", "fencing", None, (FENCING,))


def planted(source: Source, file: str, old: str, new: str) -> Mutant:
    """The mutant with a text of a file, which stands there once, changed."""
    text = Text(file, source.text(file))
    assert text.source.count(old) == 1
    start = len(text.source[: text.source.index(old)].encode())
    edit = Edit(start, start + len(old.encode()), new)
    return Mutant(file, "planted", "planted", tuple(text.lines_of(edit)), text.diff(edit), text.applied(edit))


def fates(rows: Iterable[Row]) -> list[tuple[Fate, Killer | None]]:
    return [(row.fate, row.judged.by) for row in rows]


# Of impl/.


@pytest.mark.sampled(3)
@pytest.mark.parametrize("events", [50, pytest.param(SimulationPlan.events, marks=pytest.mark.nightly(seconds=60))])
@pytest.mark.parametrize("protocol", PLANS)
def test_a_recorded_run_of_a_free_system_comes_out_the_same(
    protocol: str, events: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Peace is part of it: what may happen next depends on that."""
    monkeypatch.setitem(recording.RECORDED, "free", 3)
    monkeypatch.setitem(recording.LENGTH, "free", events)
    source = our_source([protocol], ())
    file = source.files[0]
    text = Text(file, source.text(file))
    same = Mutant(file, "nothing", "none", (1,), "", text.source + "\n")
    planned = PLANS[protocol].free[0]
    spec = held_to(protocol)
    drives = [Drive("free", protocol, None, (tuple(constants_of(spec, planned).items()),))]
    recorded = record(source, drives, 3, 60.0, Grounds())
    steps = [step for taken in recorded.runs[drives[0].name] for step in taken.steps]
    assert (protocol not in ("fencing", "snapshots")) is any(
        isinstance(step, dict) and "peace" in step for step in steps
    )
    assert compare(source, same, drives, recorded, 60.0) == (None, len(steps))


def test_a_mutant_is_judged_by_who_comes_to_its_lines() -> None:
    free, other = Drive("free", "fencing", None, (FENCING,)), Drive("free", "truncation", None, ())
    asked = Asked(our_source(["fencing", "truncation"], ()), (LOCKSTEP, free, other), 1, 0, 1.0, 1)
    text = Text("replica/broker.py", asked.source.text("replica/broker.py"))
    mutant = Mutant("replica/broker.py", "f", "none", (7, 8), "", text.source)

    def judges(**lines: list[int]) -> list[str]:
        by_drive = {name.replace("_", " "): {"replica/broker.py": ran} for name, ran in lines.items()}
        return [drive.name for drive in drives_of(asked, mutant, by_drive)]

    assert judges() == ["fencing free", "fencing lockstep"]  # its own, which may come to it later
    assert judges(fencing_free=[8]) == ["fencing free"]  # in lockstep only by who comes to it
    assert judges(fencing_lockstep=[7], truncation_free=[7]) == ["truncation free", "fencing free", "fencing lockstep"]
    assert judges(fencing_free=[9], truncation_free=[7]) == ["truncation free", "fencing free"]
    assert judges(fencing_free=[7], truncation_free=[7]) == ["fencing free", "truncation free"]
    by_drive = {each.name: {"replica/broker.py": [7]} for each in asked.drives}
    weights = {drive.name: drive.weight for drive in drives_of(asked, mutant, by_drive)}
    assert weights == {"fencing free": 3.0, "truncation free": 1.0, "fencing lockstep": 1.0}
    by_drive["fencing free"] = {}
    weights = {drive.name: drive.weight for drive in drives_of(asked, mutant, by_drive)}
    assert weights == {"truncation free": 3.0, "fencing free": 3.0, "fencing lockstep": 1.0}


def test_planted_mutants_become_what_they_are() -> None:
    source = our_source(["fencing"], ())
    wanted = "wanted = set(self.members)"
    send = "self._runtime.request(99, body, self._answered)"
    answer = "ListOffsetsResponse(ErrorCode.NONE, "
    changes = [
        ("log/epochs.py", "epoch, log_end_offset\n", "epoch, log_end_offset - 1\n"),
        ("replica/isr.py", wanted, "while self:\n            pass"),
        ("replica/isr.py", wanted, "wanted = set(self.no_members)"),
        ("replica/isr.py", wanted, "import os; os.abort()"),
        ("replica/isr.py", wanted, "wanted = bytearray(1 << 40)"),
        # It sends what nobody listens to: the same states and answers, other messages.
        ("replica/isr.py", "self._lost_at = now + self", f"{send}\n        self._lost_at = now + self"),
        # Replicas are a set in any order.
        ("replica/isr.py", "return frozenset(wanted)", "return frozenset(sorted(wanted))"),
        # Nobody asks for offsets by timestamp here.
        ("replica/fetch.py", f"{answer}offset, epoch", f"{answer}1, epoch"),
        ("log/epochs.py", "return entries[-1].epoch", "return max(entries).epoch"),
    ]
    mutants = [planted(source, *change) for change in changes]
    argued = (
        Equivalent(
            "log/epochs.py", "planted", "return entries[-1].epoch", "return max(entries).epoch", "epochs only rise"
        ),
    )
    rows = judge_all(Asked(source, [LOCKSTEP], 0, 0, 2.0, 2, argued), mutants)
    assert fates(rows) == [
        (Fate.KILLED, Killer.CONFORM),
        (Fate.KILLED, Killer.HUNG),
        (Fate.KILLED, Killer.RAISED),
        (Fate.KILLED, Killer.RAISED),
        (Fate.KILLED, Killer.RAISED),
        (Fate.MISSED, None),
        (Fate.UNOBSERVABLE, None),
        (Fate.NOT_DRIVEN, None),
        (Fate.EQUIVALENT, None),
    ], [row.why for row in rows]
    assert "signal 6" in rows[3].why and "MemoryError" in rows[4].why
    assert rows[5].why.startswith("messages differ after") and "no difference seen in" in rows[6].why
    assert rows[8].why == "epochs only rise"
    found = Measure(0, source.files, 1, 0, 1, rows)
    assert found.counted == 8 and found.share == 62.5
    assert found.exit_code(None) == found.exit_code(62.5) == 0 and found.exit_code(63) == 1
    told = "5 killed (1 conform, 1 hung, 3 raised), 1 missed, 1 unobservable, 1 not driven, 1 equivalent"
    assert told in summary(found) and summary(found).endswith("62 % of 8 not equivalent are killed")


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("does", "ended"), [("sleep", "hung"), ("work", "exit code 0")])
def test_who_sleeps_for_ever_has_hung_and_who_works_has_not(
    monkeypatch: pytest.MonkeyPatch, does: str, ended: str
) -> None:
    monkeypatch.setattr(worker, "ASLEEP", 2.0)
    monkeypatch.setattr(worker, "LOOK", 0.1)
    out, into = os.pipe()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        if does == "sleep":
            time.sleep(600)
        while time.process_time() < 2.5:
            pass
        os._exit(0)
    os.close(into)
    assert worker.awaited(child, out) == {"ended": ended}
    os.close(out)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("do", "seconds", "told"), [("record", 2, "answer"), ("judge", 2, "ended"), ("record", 0, "ended")]
)
def test_who_records_may_take_twice_as_long_as_it_draws(
    monkeypatch: pytest.MonkeyPatch, do: str, seconds: int, told: str
) -> None:
    """Each drive begins a run, and the last is not broken off: on a slow machine that takes longer than judging may."""

    def works(*_: object) -> str:
        until = time.process_time() + 3.5
        while time.process_time() < until:
            pass
        return "done"

    monkeypatch.setattr(worker, "_OVER", 0.0)
    monkeypatch.setattr(worker, "_done", works)
    found = worker._in_a_child({"do": do, "seconds": seconds}, our_source(["fencing"], ()), Grounds())
    assert found == {told: "done" if told == "answer" else "hung"}


def test_an_argument_for_what_is_killed_is_refuted() -> None:
    source = our_source(["fencing"], ["log/epochs.py"])
    mutant = planted(source, "log/epochs.py", "epoch, log_end_offset\n", "epoch, log_end_offset - 1\n")
    wrong = Equivalent("log/epochs.py", "planted", *mutant.words, "nobody asks")
    rows = judge_all(Asked(source, [LOCKSTEP], 0, 0, 2.0, 1, (wrong,)), [mutant])
    found = Measure(0, source.files, 1, 0, 1, rows)
    assert found.exit_code(None) == 1
    assert found.complaints == (f"{mutant.name}: it is argued to be equivalent (nobody asks), and yet it is killed",)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("part", range(3))
def test_drawn_mutants_are_judged(
    fencepost: Fencepost, random_seed: int, part: int, pytestconfig: pytest.Config
) -> None:
    """Judge mutants of three sampled protocols: three of each in the quick tier, ten in the nightly tier."""
    count = 10 if pytestconfig.option.nightly else 3
    driven = [name for name in REGISTRY if (harness := find_harness(name)) is not None and harness.drives]
    protocol = Random(random_seed).sample(sorted(driven), 3)[part]
    seed = (random_seed + part) % (1 << 31)
    of = ("mutants", "--impl", "--protocol", protocol, "--generated", count, "--seed", seed)
    said = fencepost(*of, "--cpu", "2s", "--json").json
    assert said["seed"] == seed and len(said["rows"]) == count and said["lines"] > 200
    for row in said["rows"]:
        assert (row["fate"] == "killed") is (row["by"] is not None), row
        assert row["why"] and row["diff"].startswith(f"--- a/{row['file']}"), row
        # What nobody killed was driven until its runs, or its time, were over.
        assert row["by"] or row["cut"] or row["events"] > 10_000, row


@pytest.mark.nightly(seconds=1800)
@pytest.mark.parametrize("part", range(10))
def test_five_hundred_drawn_mutants_are_judged(fencepost: Fencepost, random_seed: int, part: int) -> None:
    """In ten parts, as all take some five hours of one core: a night that is broken off keeps those that it had.

    Prints what was judged, as ``pytest -rP`` shows: survivors are there to be read.
    """
    seed = (random_seed + part) % (1 << 31)
    said = fencepost("mutants", "--impl", "--generated", 50, "--seed", seed, "--json").json
    print(json.dumps(said))
    assert said["complaints"] == [] and sum(said["counts"].values()) == 50
    # Some 70 are killed of a hundred. Of fifty it is less than 45 by chance in one of ten thousand draws, and less than
    # 60 in one of twenty.
    assert said["share"] >= 45, json.dumps([row for row in said["rows"] if row["fate"] == "missed"], indent=1)


# Of somebody else's source.


NAME = "commitment"


@pytest.fixture
def commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """What ``fencepost new`` writes, with the system in a package of its own, beside its adapter."""
    # Each test has one of its own, and the process forgets those of the others.
    monkeypatch.setattr(REGISTRY, "_loaded", dict(REGISTRY._loaded))
    monkeypatch.setattr(REGISTRY, "_places", dict(REGISTRY._places))
    monkeypatch.setattr(sys, "path", list(sys.path))
    for name in [name for name in sys.modules if name.startswith(NAME) or name.split(".")[0] == "commit"]:
        monkeypatch.delitem(sys.modules, name)
    write_new(NAME, tmp_path)
    adapter = tmp_path / f"{NAME}_system.py"
    whole = adapter.read_text(encoding="utf-8")
    at, begin = whole.index("class RefusedError"), whole.index("class Adapter")
    (tmp_path / "commit").mkdir()
    (tmp_path / "commit" / "__init__.py").write_text("from .core import Commit, RefusedError\n", encoding="utf-8")
    (tmp_path / "commit" / "core.py").write_text(whole[at:begin], encoding="utf-8")
    (tmp_path / "commit" / "test_core.py").write_text("def test_it(a):\n    return a + 1\n", encoding="utf-8")
    text = whole[:at] + "from commit import Commit, RefusedError\n\n\n" + whole[begin:]
    adapter.write_text(text, encoding="utf-8")
    free = tmp_path / f"{NAME}_free.py"
    whole = free.read_text(encoding="utf-8")
    at, begin = whole.index("@dataclass"), whole.index("class Free(")
    (tmp_path / "commit" / "nodes.py").write_text(whole[:begin], encoding="utf-8")
    text = whole[:at] + "from commit.nodes import Coordinator, Outcome, Participant, Vote\n\n\n" + whole[begin:]
    free.write_text(text, encoding="utf-8")
    return tmp_path


def of_commit(folder: Path, *more: object) -> tuple[object, ...]:
    return (
        "mutants", "--source", folder / "commit", "--system", f"{folder}/{NAME}_system.py:Adapter",
        "--protocol", f"{folder}/{NAME}.py:{NAME}", *more,
    )  # fmt: skip


def test_anybodys_source_is_measured(fencepost: Fencepost, commit: Path) -> None:
    said = fencepost(*of_commit(commit, "--only", "core.py", "--generated", 9, "--seed", 1, "--cpu", "2s", "--json"))
    found = said.json
    assert said.code == 0 and found["files"] == ["core.py"]
    assert {row["file"] for row in found["rows"]} == {"core.py"}
    assert found["counts"]["killed"] >= 5, found["rows"]
    assert all(row["drive"] == f"{NAME} lockstep" for row in found["rows"] if row["by"] in ("conform", "promise"))
    table = fencepost(*of_commit(commit, "--generated", 2, "--seed", 1, "--cpu", "2s", "--at-least", 101))
    assert table.code == 1 and "2 mutants of" in table.out and "core.py:" in table.out


def test_each_mutant_is_told_as_soon_as_it_is_judged(fencepost: Fencepost, commit: Path) -> None:
    of = of_commit(commit, "--only", "core.py", "--generated", 3, "--seed", 1, "--cpu", "2s")
    *rows, counts = map(json.loads, fencepost(*of, "--json-lines").out.splitlines())
    assert len({row["name"] for row in rows}) == 3 and "rows" not in counts
    assert sum(counts["counts"].values()) == 3
    text = fencepost(*of).out
    told = [text.index(f"{row['fate']:<12} {row['name']} (") for row in rows]
    assert max(told) < text.index("3 mutants of")
    assert fencepost(*of, "--json-lines", "--json").code == 2


def test_what_anybody_runs_freely_is_measured(commit: Path) -> None:
    source = source_of(commit / "commit", ["nodes.py"], None)
    place, system = f"{commit}/{NAME}.py:{NAME}", f"{commit}/{NAME}_free.py:Free"
    drive = Drive("free", NAME, None, ((("replicas", 2),), (("replicas", 3),)), system, place)
    changes = [
        # A vote that a crash forgets.
        ("self.vote = self.disk = vote", "self.vote = vote"),
        ("self.voted == set(self.participants)", "bool(self.voted)"),
        ('if self.vote == "working":', "if self.vote != 5:"),
        # A message with another content to which everybody does the same.
        ('Outcome(self.outcome == "commit")', 'Outcome(int(self.outcome == "commit"))'),
        ("self.voted.add(participant)", "self.voted |= {participant}"),
    ]
    mutants = [planted(source, "nodes.py", *change) for change in changes]
    rows = judge_all(Asked(source, [drive], 0, 0, 3.0, 2), mutants)
    assert [row.fate for row in rows] == [Fate.KILLED, Fate.KILLED, Fate.KILLED, Fate.MISSED, Fate.UNOBSERVABLE], [
        row.why for row in rows
    ]
    assert rows[3].why.startswith("evidence differ after")


def test_the_source_on_the_disk_is_not_touched(commit: Path) -> None:
    before = {path: path.read_bytes() for path in commit.rglob("*.py")}
    source = source_of(commit / "commit", (), None)
    place, system = f"{commit}/{NAME}.py:{NAME}", f"{commit}/{NAME}_system.py:Adapter"
    drive = Drive("lockstep", NAME, None, ((("replicas", 2),),), system, place)
    mutants = [
        planted(source, "core.py", 'any(vote != "prepared"', 'all(vote != "prepared"'),
        planted(source, "core.py", "self.outcome = outcome\n", "self.outcome = str(outcome)\n"),
    ]  # fmt: skip
    rows = judge_all(Asked(source, [drive], 0, 0, 4.0, 2), mutants)
    assert fates(rows) == [(Fate.KILLED, Killer.CONFORM), (Fate.UNOBSERVABLE, None)], [row.why for row in rows]
    assert {path: path.read_bytes() for path in commit.rglob("*.py")} == before


def test_a_run_that_the_source_as_it_is_does_not_pass_kills_nothing(commit: Path) -> None:
    core = commit / "commit" / "core.py"
    text = core.read_text(encoding="utf-8")
    core.write_text(text.replace('raise RefusedError("ALREADY_VOTED")', "return"), encoding="utf-8")
    source = source_of(commit / "commit", (), None)
    votes: dict[str, Json] = {"action": "prepare", "params": {"participant": 0}}
    place, system = f"{commit}/{NAME}.py:{NAME}", f"{commit}/{NAME}_system.py:Adapter"
    drive = Drive("lockstep", NAME, None, ((("replicas", 2),),), system, place)
    assert parts_too(source, drive, Run(0, 0, (votes,)), Grounds()) is None
    headline = parts_too(source, drive, Run(0, 0, (votes, votes)), Grounds())
    assert headline is not None and headline.startswith("prepare(participant=0): it happened")
    mutant = planted(source, "core.py", "self.outcome = outcome\n", "self.outcome = None\n")
    judged = Judgement(Killer.CONFORM, drive.name, "it parts", 2, run=Run(0, 0, (votes, votes)))
    asked = Asked(source, [drive], 0, 0, 2.0, 1)
    row = confirmed(asked, mutant, judged, {"answer": headline})
    assert row.fate is Fate.UNKNOWN and headline in str(row.complaint)
    assert Measure(0, source.files, 1, 0, 1, (row,)).exit_code(None) == 1
    assert confirmed(asked, mutant, judged, {"answer": None}).fate is Fate.KILLED


def test_a_system_that_does_not_conform_is_not_measured(fencepost: Fencepost, commit: Path) -> None:
    core = commit / "commit" / "core.py"
    text = core.read_text(encoding="utf-8")
    core.write_text(text.replace('raise RefusedError("ALREADY_VOTED")', "return"), encoding="utf-8")
    said = fencepost(*of_commit(commit, "--generated", 2, "--cpu", "2s"))
    assert "without any mutant the system and the model part" in said.complaint


def test_a_folder_that_the_system_does_not_import_is_refused(fencepost: Fencepost, commit: Path) -> None:
    (commit / "other").mkdir()
    (commit / "other" / "core.py").write_text("def f(a):\n    return a + 1\n", encoding="utf-8")
    arguments = list(of_commit(commit, "--generated", 2, "--cpu", "2s"))
    arguments[2] = commit / "other"
    assert "the system imports no module of it" in fencepost(*arguments).complaint


def test_what_makes_no_sense_is_refused(fencepost: Fencepost, commit: Path) -> None:
    assert "nothing says of what" in fencepost("mutants", "--generated", 2).complaint
    assert "it is for generated mutants" in fencepost("mutants", "--impl", "--cpu", "2s").complaint
    assert "nothing says how it is driven" in fencepost("mutants", "--generated", 2, "--source", commit).complaint
    both = fencepost("mutants", "--generated", 2, "--impl", "--source", commit)
    assert "the mutants are of impl/ or of --source" in both.complaint
    assert (
        "generated mutants are of the source" in fencepost("mutants", "--generated", 2, "--impl", "--model").complaint
    )
    nothing = fencepost(*of_commit(commit / "nowhere", "--generated", 2))
    assert nothing.code == 2
    empty = commit / "empty"
    empty.mkdir()
    arguments = list(of_commit(commit, "--generated", 2))
    arguments[2] = empty
    assert "has no module of a system" in fencepost(*arguments).complaint


def test_the_measure_of_ours_refuses_a_source_that_has_no_line() -> None:
    source = Source(IMPL, ("replica/__init__.py",), is_ours=True)
    with pytest.raises(BadInput, match="no line of it can be mutated"):
        measure(Asked(source, [LOCKSTEP], 2, 0, 2.0, 1))
