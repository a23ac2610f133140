"""The findings of docs/findings/ as data, executed on Apache Kafka's own brokers as real processes.

Each finding runs beside its control run. Findings with the same settings share a cluster, which takes a dozen seconds
to start; so does a broker that has ended.
"""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest
from fencepost.conformance.harness import held_to
from fencepost.conformance.kafka.cluster.clients import Polled
from fencepost.conformance.kafka.cluster.finding import (
    CONTROL,
    FAULT,
    FOLDER,
    Finding,
    all_findings,
    find_finding,
    read_finding,
)
from fencepost.conformance.kafka.cluster.finding_executor import FindingResult, execute
from fencepost.conformance.kafka.cluster.observations import INVARIANTS, Invariant, TopicObservations, role_text
from fencepost.conformance.kafka.cluster.stage import Stage, Stored
from fencepost.conformance.kafka.cluster.tiers import settings
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import REGISTRY
from fencepost.model.explore.result import Verdict
from fencepost.traces.kafka.cluster import NODE_NAMES

from .conftest import Fencepost
from .kafka_jvm import commands_below, needs_kafka
from .kafka_matrix import with_page

FINDINGS = Path(__file__).resolve().parents[2] / "docs" / "findings"
SECONDS = {"H1": 20, "K11": 10, "K12": 25, "TK1": 30, "TK17": 45, "TK4": 25, "V6": 30, "V7": 10}
"""A run's duration, without the cluster's start."""
BY_DAY = ("K11", FAULT)
"""The one run outside of the nightly tests."""


class Stages:
    """One cluster at a time, kept as long as the next finding has the same settings."""

    def __init__(self) -> None:
        self._settings: tuple[int, bool] | None = None
        self._open = ExitStack()

    def stage_of(self, finding: Finding) -> Stage:
        """A running cluster with a finding's settings."""
        wanted = (finding.lag_ms, finding.tiered)
        if self._settings != wanted:
            self.close()
            self._stage = self._open.enter_context(staged(*wanted))
            self._settings = wanted
        return self._stage

    def close(self) -> None:
        """End it."""
        self._settings = None
        self._open.close()


@contextmanager
def staged(lag_ms: int, tiered: bool) -> Iterator[Stage]:
    """A cluster that leaves neither process nor file behind."""
    with needs_kafka():
        made = Stage(lag_ms=lag_ms, of_all=settings() if tiered else None)
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    with made:
        yield made
        assert made.gate.faults == [], "the proxies must understand each message"
    left = [child for child in psutil.Process().children(recursive=True) if child.pid not in before]
    assert left == [] and not made.home.exists(), "a stage leaves no process and no file behind"


@pytest.fixture(scope="module")
def stages() -> Iterator[Stages]:
    """The clusters of all findings, one after another."""
    made = Stages()
    yield made
    made.close()


def runs() -> Iterator[object]:
    """Parameters for each run of each finding that has a page, those with the same settings behind one another.

    Findings whose directories are checked come first, as the check reads the topics of earlier runs as well. K14 (a
    fenced follower leaves the ISR in the same epoch) has no page: ``test_kafka_printed.py`` executes it on brokers
    whose logs it reads.
    """
    findings = [each for each in all_findings().values() if each.id in with_page()]
    for finding in sorted(findings, key=lambda each: (each.tiered, each.lag_ms, not each.checks, each.id)):
        for run in finding.runs:
            marks = [] if (finding.id, run) == BY_DAY else [pytest.mark.nightly(seconds=SECONDS[finding.id])]
            yield pytest.param(finding, run, id=f"{finding.id}-{run}", marks=marks)


@pytest.mark.kafka
@pytest.mark.parametrize(("finding", "run"), [*runs()])
def test_finding_on_real_brokers(
    stages: Stages, finding: Finding, run: str, tmp_path: Path, fencepost: Fencepost
) -> None:
    """The observations are the expected ones, the finding's page has the report, and `check` reads the copies."""
    said: list[str] = []
    name = finding.id.lower() if run == FAULT else f"{finding.id.lower()}-{CONTROL}"
    result = execute(finding, stages.stage_of(finding), run, name=name, say=said.append, copies=tmp_path / "copies")
    assert result.differences() == []
    story = "\n".join(said).replace(name, finding.id.lower())
    page = FINDINGS / f"{finding.id.lower()}.md"
    assert f"\n{story}\n{result.verdict.value}: {result.words()}\n" in page.read_text("utf-8")
    for check in finding.checks if run == FAULT else ():
        named = [each.split("/") for each in check.directories]
        folders = [tmp_path / "copies" / copy / NODE_NAMES[int(broker)] for copy, broker in named]
        told = fencepost("check", *folders, "--report", tmp_path / "report")
        assert told.code == check.exit_code and check.prints in " ".join(told.out.split())


# -- without brokers --------------------------------------------------------------------------------------------------


def log(*records: str) -> list[Stored]:
    """A log from ``VALUE@EPOCH``."""
    parts = [record.split("@") for record in records]
    return [Stored(offset, int(epoch), value) for offset, (value, epoch) in enumerate(parts)]


def test_each_finding_has_its_title_on_its_page() -> None:
    """All but K14 (a fenced follower leaves the ISR in the same epoch), which loses nothing, have a page."""
    found = all_findings()
    assert len(found) == len(list(FOLDER.glob("*.toml"))) and len({each.title for each in found.values()}) == len(found)
    pages = {page.stem: page.read_text("utf-8").splitlines()[0] for page in FINDINGS.glob("*.md")}
    del pages["index"]
    assert pages == {id_: f"# {finding}" for id_, finding in found.items() if id_ != "k14"}
    for each in found.values():
        # A variant of running brokers is in the conformance harness alone.
        assert each.variant in {*REGISTRY[each.protocol].protocol.variants, *held_to(each.protocol).variants}


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('do = "kill"', 'do = "murder"', "step 4: no step is called 'murder'"),
        ('do = "kill", broker = 3', 'do = "kill"', "step 4: kill: missing a required argument: 'broker'"),
        ('do = "kill", broker = 3', 'do = "kill", brokers = 3', "step 4: kill: missing a required argument"),
        ('do = "kill", broker = 3', 'do = "kill", broker = "3"', "step 4: kill: broker: '3' is no <class 'int'>"),
        ('3 = ["q@0"]', 'c = ["q@0"]', "are no numbers"),
        ("{state}", "{status}", "{status} has no value"),
        ('do = "kill", broker = 3', 'do = "let_on", hold = "x"', "step 4: nothing is held as ['x'] in the fault run"),
        ('moment = "end"', 'moment = "last"', "the fault run does not observe 'end', which the invariant needs"),
        ('do = "kill", broker = 3', 'do = "kill", broker = 3, only = "holds"', "is judged before 'end' is observed"),
        ("{state}", "{broken}", "step 5: acknowledged_is_stored is judged before 'end' is observed"),
        ("acknowledged_is_stored", "no_silent_gap", "no_silent_gap compares with the log of a leader"),
        ('do = "kill", broker = 3', 'do = "kill", broker = 3, only = "never"', "step 4: only = 'never'"),
        ('name = "acknowledged_is_stored"', 'name = "stored"', "no invariant is called 'stored'"),
        ("acknowledged = {", "confirmed = {", "nothing observed is called confirmed"),
        ('run = "fault"', 'run = "control"', "no verdict is expected of the fault run"),
        ('verdict = "holds"', "", "no verdict is expected of the fault run"),
        ('title = "', 'name = "', "'title' is missing"),
        ("trace = [", "trace = ", "it is no TOML"),
    ],
)
def test_rejects_faulty_finding(old: str, new: str, words: str) -> None:
    """Before anything is started."""
    (file,) = FOLDER.glob("k14_*.toml")
    text = file.read_text("utf-8")
    assert old in text and read_finding(text, "k14").id == "K14"
    with pytest.raises(BadInput, match=r"^k14") as wrong:
        read_finding(text.replace(old, new), "k14")
    assert words in str(wrong.value)


def k11_observations() -> TopicObservations:
    """What the fault run of K11 (a leader counts a truncated record) shows, by hand."""
    (expected,) = (each.values for each in find_finding("K11").expected if each.run == FAULT)
    return TopicObservations(
        acknowledged={"r": 0},
        read={"classic": [Polled(0, 0, "r")]},
        thrown={"classic": "LogTruncationException"},
        logs={"before": {1: log("r@0"), 2: [], 3: []}, "end": {1: [], 2: [], 3: []}},
        roles={1: expected["roles"]["1"]},
    )


def test_expected_observations_have_no_difference() -> None:
    result = FindingResult(find_finding("K11"), FAULT, {"": k11_observations()})
    assert result.differences() == [] and result.verdict is Verdict.VIOLATED
    assert result.words() == "r was acknowledged at offset 0, and is in no broker's log"


def test_nothing_observed_is_no_verdict() -> None:
    """Else a run in which no client got an answer would hold."""
    seen = TopicObservations(logs={"end": {1: [], 2: [], 3: []}}, read={"classic": []})
    result = FindingResult(find_finding("K11"), CONTROL, {"": seen})
    assert result.verdict is Verdict.UNKNOWN and result.words() == "no client got an answer"
    assert "verdict is unknown, and holds is expected" in result.differences()
    seen.errors["r"] = "NotLeaderOrFollowerException"
    assert result.verdict is Verdict.HOLDS and result.words() == "r was refused with NotLeaderOrFollowerException"


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda seen: seen.acknowledged.clear(), "acknowledged is {}, and {'r': 0} is expected"),
        (lambda seen: seen.thrown.clear(), "thrown is {}, and {'classic': 'LogTruncationException'} is expected"),
        (lambda seen: seen.read["classic"].clear(), "read is {'classic': []}"),
        (lambda seen: seen.logs["end"].update({3: log("r@0")}), "logs.end is {'1': [], '2': [], '3': ['r@0']}"),
        (lambda seen: seen.logs["end"].update({3: log("r@0")}), "verdict is holds, and violated is expected"),
        (lambda seen: seen.logs.pop("before"), "logs.before is None"),
        (lambda seen: seen.roles[1].pop(), "roles.1 is "),
    ],
)
def test_other_observations_are_differences(change, words) -> None:  # type: ignore[no-untyped-def]
    seen = k11_observations()
    seen.roles = {1: list(seen.roles[1])}
    change(seen)
    assert any(each.startswith(words) for each in FindingResult(find_finding("K11"), FAULT, {"": seen}).differences())


GAP = {"read": {"c": [Polled(0, 1, "r"), Polled(1, 3, "y")]}, "logs": {"end": {1: log("x@0", "y@3")}}}


@pytest.mark.parametrize(
    ("name", "observed", "broken"),
    [
        ("acknowledged_is_stored", {"acknowledged": {"r": 0}, "logs": {"end": {1: [], 2: log("r@0")}}}, []),
        ("acknowledged_is_stored", {"acknowledged": {"r": 0}, "logs": {"end": {1: [], 2: log("s@0")}}}, ["r"]),
        ("acknowledged_is_stored", {"acknowledged": {"r": 0}, "logs": {"end": {}}, "remote": {"end": {"r"}}}, []),
        ("acknowledged_is_stored", {"acknowledged": {"r": 0}, "logs": {"end": {}}, "remote": {"old": {"r"}}}, ["r"]),
        ("acknowledged_is_readable", {"acknowledged": {"r": 0, "s": 1}, "read": {"c": [Polled(1, 0, "s")]}}, ["r"]),
        ("acknowledged_is_readable", {"acknowledged": {"s": 1}, "read": {"c": [Polled(1, 0, "s")]}}, []),
        ("no_silent_gap", GAP, ["x@0"]),
        ("no_silent_gap", {**GAP, "thrown": {"c": "LogTruncationException"}}, []),
        ("no_silent_gap", {**GAP, "logs": {"end": {1: log("r@1", "y@3")}}}, []),
        ("no_false_truncation", {**GAP, "thrown": {"c": "LogTruncationException"}}, []),
        (
            "no_false_truncation",
            {"thrown": {"c": "LogTruncationException"}, "read": {"c": [Polled(0, 0, "x")]}, "logs": GAP["logs"]},
            ["LogTruncationException"],
        ),
        ("no_false_truncation", {"read": {"c": [Polled(0, 0, "x")]}, "logs": GAP["logs"]}, []),
    ],
)
def test_invariant_of_observations(name: str, observed: dict[str, object], broken: list[str]) -> None:
    seen = TopicObservations(**observed)  # type: ignore[arg-type]
    assert Invariant(name, "", "", leader=1).broken_by(seen) == broken
    assert name in INVARIANTS


def test_record_that_was_read_is_not_unread() -> None:
    """TK1 (deleted before upload): a consumer may read the others, or none."""
    expected = next(each.values for each in find_finding("TK1").expected if each.run == FAULT)
    values = dict.fromkeys(expected["acknowledged"], 0)
    for read, differs in (("t1", False), ("s1", True)):
        seen = TopicObservations(
            acknowledged=values, read={"end": [Polled(0, 0, read)]}, logs={"end": {1: log("t1@3")}}
        )
        found = FindingResult(find_finding("TK1"), FAULT, {"": seen}).differences()
        assert any("unread" in each for each in found) == differs


def test_role_of_a_line() -> None:
    line = (
        "Leader k11-0 starts at leader epoch 2 from offset 1 . Previous leader Some(1) and previous leader epoch was 0."
    )
    assert role_text(line) == "leader in 2, before 1 in 0"
    assert role_text(line.replace("Some(1)", "None")) == "leader in 2, before nobody in 0"
    assert role_text("Leader of something else") == "Leader of something else"


class EmptyStage:
    """A stage whose brokers have no records and do nothing."""

    gate = None

    def all_up(self) -> None:
        """Nothing is down."""

    def log(self, _broker: int, _topic: str) -> list[Stored]:
        """No records."""
        return []

    def logs(self, _topic: str) -> dict[int, list[Stored]]:
        """No records."""
        return defaultdict(list)

    def roles(self, _broker: int, _topic: str) -> list[str]:
        """No roles."""
        return []


@pytest.mark.parametrize(
    ("run", "lines"),
    [(FAULT, ["in the fault run of t", "refused"]), (CONTROL, ["in the control run of t", "refused"])],
)
def test_executor_runs_the_steps_of_a_run(run: str, lines: list[str]) -> None:
    """``only`` is about the run, or about what came of it up to now: here no client gets an answer."""
    (file,) = FOLDER.glob("k14_*.toml")
    head, tail = file.read_text("utf-8").split("trace = [")
    conditions = ("fault", "control", "acknowledged", "refused", "violated", "holds")
    says = {"fault": "in the fault run of {topic}", "control": "in the control run of {topic}"}
    steps = ['{ do = "observe", moment = "end" }']
    steps += [f'{{ do = "tell", only = "{each}", say = "{says.get(each, each)}" }}' for each in conditions]
    tail = tail.split("]\n\n[invariant]")[1]
    expected = '\n[[expected]]\nrun = "control"\nverdict = "holds"\n'
    text = f'{head}control = "c"\ntrace = [{", ".join(steps)}]\n[invariant]{tail}{expected}'
    said: list[str] = []
    result = execute(read_finding(text, "k14"), EmptyStage(), run, name="t", say=said.append)  # type: ignore[arg-type]
    assert said[::2] == [f"{number:3}  {line}" for number, line in enumerate(lines, 1)]
    assert said[1] == "     1: []   2: []   3: []"
    assert ("acknowledged is {}, and {'q': 0, 'r': 1, 's': 2} is expected" in result.differences()) == (run == FAULT)


# -- the command ------------------------------------------------------------------------------------------------------


@pytest.mark.kafka
@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL], ids=["SIGINT", "SIGTERM", "SIGKILL"])
def test_a_finding_that_is_broken_off_leaves_no_process(tmp_path: Path, how: signal.Signals) -> None:
    with needs_kafka():
        Stage()
    if how == signal.SIGKILL and shutil.which("setpriv") is None:
        pytest.skip("absent: setpriv (util-linux) is not installed: nothing ends the nodes of one killed with SIGKILL")
    command = [sys.executable, "-m", "fencepost.conformance.kafka.cluster", "k11"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    running = subprocess.Popen(
        command,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        # Whoever runs the tests in the background has SIGINT ignored, and that is inherited.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    try:
        jvms: dict[psutil.Process, str] = {}
        deadline = time.monotonic() + 120
        while sum("kafka.Kafka" in command for command in jvms.values()) < 4:
            assert running.poll() is None and time.monotonic() < deadline
            time.sleep(0.2)
            jvms = commands_below(running.pid)
        running.send_signal(how)
        code = running.wait(60)
    finally:
        running.kill()
    assert code == {signal.SIGINT: 130, signal.SIGTERM: 143, signal.SIGKILL: -signal.SIGKILL}[how]
    _, alive = psutil.wait_procs(list(jvms), timeout=10)
    assert alive == []
    if how != signal.SIGKILL:
        assert list(tmp_path.iterdir()) == []


def test_a_folder_that_is_there_is_left_alone(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fencepost.conformance.kafka.cluster", "k11", "--keep", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr == f"fencepost: {tmp_path}: it exists already; name a new folder with --keep, or remove that one\n"
    )


def test_k14_has_no_control_run(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fencepost.conformance.kafka.cluster", "k14", "--control"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    wanted = f"fencepost: --control: {find_finding('k14')} has no control run of its own; leave it out\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", wanted)
