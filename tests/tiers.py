"""Choose the tests of a run: the quick tier, the nightly tier, or a shard of the nightly tier.

The quick tier leaves out tests marked ``nightly`` and runs a fixed sample of the cases of tests marked ``sampled``.
``pytest --nightly`` runs every test; ``--shard 2/6`` runs the second of six parts. A test that is named with ``::``
runs in any tier. The nightly tier draws hash order and mutants from ``--random-seed``; the header prints it.
"""

from __future__ import annotations

import os
import random
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from zlib import crc32

import pytest
from hypothesis import settings

PROFILES = ("ci", "long")
ABSENT = "absent: "
"""Prefix of a skip reason that names a missing dependency. With ``CI`` set, such a skip fails the run."""
SECONDS = 0.2
"""Estimated duration of a test whose ``nightly`` mark gives none."""
LARGE = 300
"""Files whose tests take more seconds than this are split between shards; others stay together for their fixtures."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("fencepost")
    group.addoption("--nightly", action="store_true", help="Run every test, not only the quick tier.")
    group.addoption("--shard", metavar="I/N", help="Run part I of N of the chosen tests, balanced by duration.")
    group.addoption("--random-seed", metavar="N", type=int, help="Random seed of the nightly tier (default: drawn).")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    profile = os.environ.get("HYPOTHESIS_PROFILE", "ci")
    if profile not in PROFILES:
        raise pytest.UsageError(f"HYPOTHESIS_PROFILE: unknown profile {profile!r}; choose {' or '.join(PROFILES)}")
    settings.load_profile(profile)
    _parse_shard(config.option.shard)
    # Workers receive a copy of the options, so both seeds are drawn before xdist starts them.
    if profile == "long" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(1 << 32))
    if config.option.random_seed is None:
        config.option.random_seed = random.SystemRandom().randrange(1 << 32) if config.option.nightly else 0
    if not hasattr(config, "workerinput") and getattr(config.option, "numprocesses", None):
        os.environ["PYTHONHASHSEED"] = str(config.option.random_seed)


def pytest_report_header(config: pytest.Config) -> list[str]:
    examples = config.option.hypothesis_seed
    tier = "nightly" if config.option.nightly else "quick"
    shard = f", shard {config.option.shard}" if config.option.shard else ""
    return [
        f"tier: {tier}{shard}, --random-seed {config.option.random_seed}",
        f"hypothesis: {'derandomized' if examples is None else f'--hypothesis-seed={examples}'}",
    ]


@pytest.fixture(scope="session")
def random_seed(pytestconfig: pytest.Config) -> int:
    """Random seed of the run: 0 in the quick tier."""
    return int(pytestconfig.option.random_seed)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    chosen = list(items)
    if not config.option.nightly and not any("::" in argument for argument in config.invocation_params.args):
        chosen = quick(items)
    if config.option.shard:
        part, parts = _parse_shard(config.option.shard)
        chosen = shards(chosen, parts)[part - 1]
    kept = set(chosen)
    config.hook.pytest_deselected(items=[item for item in items if item not in kept])
    # Tests that wait for a JVM come first: one worker starts with them while the others use the cores.
    items[:] = sorted(chosen, key=lambda item: not any(map(item.get_closest_marker, ("first", "spark", "kafka"))))


def quick(items: Iterable[pytest.Item]) -> list[pytest.Item]:
    """The tests of the quick tier, in their order."""
    daily = [item for item in items if item.get_closest_marker("nightly") is None]
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in daily:
        if item.get_closest_marker("sampled") is not None:
            cases[item.nodeid.partition("[")[0]].append(item)
    left_out: set[pytest.Item] = set()
    for group in cases.values():
        (size,) = group[0].iter_markers("sampled").__next__().args
        # By a hash of the name: the sample depends on neither order nor machine, and a new case moves at most one.
        left_out.update(sorted(group, key=lambda item: (crc32(item.nodeid.encode()), item.nodeid))[size:])
    return [item for item in daily if item not in left_out]


def shards(items: Sequence[pytest.Item], parts: int) -> list[list[pytest.Item]]:
    """The tests in ``parts`` lists of about the same duration: the longest unit goes to the shortest list."""
    files: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        files[item.nodeid.partition("::")[0]].append(item)
    units: list[list[pytest.Item]] = []
    for group in files.values():
        units += [[item] for item in group] if sum(map(seconds, group)) > LARGE else [group]
    filled: list[list[pytest.Item]] = [[] for _ in range(parts)]
    totals = [0.0] * parts
    for unit in sorted(units, key=lambda unit: (-sum(map(seconds, unit)), unit[0].nodeid)):
        shortest = totals.index(min(totals))
        filled[shortest] += unit
        totals[shortest] += sum(map(seconds, unit))
    return filled


def seconds(item: pytest.Item) -> float:
    """Estimated duration of a test, from its ``nightly`` mark."""
    mark = item.get_closest_marker("nightly")
    return float(mark.kwargs.get("seconds", 30)) if mark is not None else SECONDS


def _parse_shard(given: str | None) -> tuple[int, int]:
    if given is None:
        return 1, 1
    match = re.fullmatch(r"([1-9]\d*)/([1-9]\d*)", given)
    if match is None or int(match[1]) > int(match[2]):
        raise pytest.UsageError(f"--shard: {given!r} is no shard; write I/N with 1 <= I <= N, such as 2/6")
    return int(match[1]), int(match[2])


# Missing dependencies.


def absent(reporter: pytest.TerminalReporter) -> list[tuple[str, str]]:
    """The skipped tests with a missing dependency: (test, dependency)."""
    found = []
    for report in reporter.stats.get("skipped", []):
        if isinstance(report, pytest.TestReport) and isinstance(report.longrepr, tuple):
            reason = report.longrepr[2].removeprefix("Skipped: ")
            if reason.startswith(ABSENT):
                found.append((report.nodeid, reason.removeprefix(ABSENT)))
    return found


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or hasattr(session.config, "workerinput"):
        return
    if os.environ.get("CI") and absent(reporter) and exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> Iterator[None]:
    # After pytest's own summaries, so that a reader sees it last.
    yield
    lacking: dict[str, list[str]] = {}
    for test, dependency in absent(terminalreporter):
        lacking.setdefault(dependency, []).append(test)
    if lacking:
        fails = "; CI is set, so this fails" if os.environ.get("CI") else ""
        title = f"not run because of a missing dependency{fails}"
        terminalreporter.section(title, red=bool(fails), yellow=not fails)
    for dependency, tests in lacking.items():
        files = Counter(test.partition("::")[0] for test in tests)
        terminalreporter.line(f"{dependency}: {', '.join(f'{file} ({count})' for file, count in files.items())}")
