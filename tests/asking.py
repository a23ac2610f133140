"""Which tests are asked, by day and by night, and what is said last: the hooks that ``conftest.py`` hands to pytest.

Tests marked ``asked(GROUP)`` have a line each in ``asked/GROUP.json``: the state of all that the answer depends on when
the test last passed, and the commit. By day an eighth is run of those whose state is still that of their line, and all
others; of the tests marked ``night`` one that is cheap enough, in a run of all tests. By night (``FENCEPOST_NIGHT=1``)
everything is run, or what has no line of this state (``FENCEPOST_NIGHT=rest``: a night that was broken off goes on).
A night writes the lines of what passes as it goes; a day does where ``FENCEPOST_WRITE_ASKED`` is set. Which eighth,
which of the night's, and the hash seed of the workers are drawn by the commit; ``FENCEPOST_DRAW`` brings a draw back,
and the header prints it. Of the marked tests that are run, an eighth is watched, which is drawn too; with
``FENCEPOST_WATCH=1`` all of them. A watched test that calls a function of the package in a file that its state lacks
fails: that file could change, and an old answer would pass for one of today.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import settings

from .answers import GROUPS, ONLY_REFUSES, ROOT, called

PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")
NIGHT = os.environ.get("FENCEPOST_NIGHT", "")
WATCH = os.environ.get("FENCEPOST_WATCH", "")
LEDGER = ROOT / "tests" / "asked"
PARTS = 8
"""One of so many parts of what is unchanged is asked by day, and one of what is asked is watched."""
BY_DAY = 60
"""Seconds that a test of the night may take to be drawn by day: ``night(seconds=...)``."""
OFTEN = 30
"""Seconds between two writings of the ledger."""
ABSENT = "absent: "
"""How the reason of a skip begins where something that the test needs cannot be had."""


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
    group = mark.args[0] if mark is not None else "night"
    return Asked(group, item.nodeid, state_of(group, item.path, protocol_of(item)))


def protocol_of(item: pytest.Item) -> str | None:
    """The protocol that a marked test is about, by its name; None: all of them."""
    mark = item.get_closest_marker("asked")
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    protocol = mark.args[1] if mark is not None and len(mark.args) > 1 else params.get("protocol")
    return protocol if isinstance(protocol, str) else None


@cache
def state_of(group: str, test: Path, protocol: str | None) -> str:
    """The state of a group for the tests in a file, about a protocol or all."""
    return GROUPS[group].state(test, protocol)


@cache
def files_of(group: str, test: Path, protocol: str | None) -> frozenset[Path]:
    """The files that this state is of, below the root."""
    return frozenset(each.relative_to(ROOT) for each in GROUPS[group].files(test, protocol))


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
            # The long profile draws new examples, so that no line is of what it asks.
            due = NIGHT == "1" or PROFILE == "long" or not ledger.is_current(asked)
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


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Iterator[None]:
    asked = asked_of(item)
    if asked is None or not (WATCH or crc32(asked.test.encode()) // PARTS % PARTS == drawn("watched", PARTS)):
        yield
        return
    with called() as ran:
        yield
    known = files_of(asked.group, item.path, protocol_of(item)) | set(map(Path, ONLY_REFUSES))
    lacking = ", ".join(sorted(map(str, ran - known)))
    if lacking:
        pytest.fail(f"{item.nodeid} is asked by the state of {asked.group!r}, which lacks what it runs: {lacking}")


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
    ran_all = is_whole(session.config) and not session.config.option.collectonly
    if NIGHT == "1" and ran_all and exitstatus == pytest.ExitCode.OK:
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
