"""Kafka's own files: roles in a file of their own, releases from 3.3 on, and loggers that are missing."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict
from fencepost.traces.bundled.unpacked import unpacked_archive
from fencepost.traces.kafka.server_log.entries import Appends, Asks, Entry, Follows, Hears, Leads, Loads, Raises, Said
from fencepost.traces.kafka.server_log.lines import read_server_logs
from fencepost.traces.kafka.server_log.ties import order_ties
from fencepost.traces.kafka.server_log.traces import LogReport, traces_of_logs
from fencepost.traces.replay import replay

PRINTED = unpacked_archive(Path(__file__).with_name("printed.tar.gz"))
RELEASES = (
    "3.3-zookeeper",
    "3.6-zookeeper",
    "3.9-zookeeper",
    "3.3-kraft",
    "3.7-kraft",
    "3.9-kraft",
    "4.0-kraft",
    "4.1-kraft",
    "4.4-kraft",
)


@pytest.fixture
def releases() -> Path:
    return PRINTED / "releases"


def told(files: list[Path]) -> dict[str, LogReport]:
    return {each.name: each for each in traces_of_logs(files, "kip-320-kafka-fences")}


@pytest.mark.parametrize("release", RELEASES)
def test_files_of_each_release_are_explained(releases: Path, release: str) -> None:
    found = told(sorted((releases / release).rglob("*.log")))
    assert sorted(found) == ["orders-0", "payments-0"]
    for each in found.values():
        expected = Verdict.HOLDS if each.why is None else Verdict.UNKNOWN
        assert each.explained and each.trace is not None and replay(each.trace).verdict is expected
    why = found["payments-0"].why
    assert why is not None and "elects broker 3 uncleanly" in why and "is in no file" not in why
    # An ISR expansion is the first thing that the failover needs a leader's request for.
    orders = found["orders-0"].trace
    assert orders is not None and any("leader_ask_expand" in event.call for event in orders.events)


@pytest.mark.parametrize(
    ("missing", "says"),
    [
        ("state-change.log", "state.change.logger says nothing in it; name the node's state-change.log too"),
        ("server.log", "the broker leads, and Partition says nothing at DEBUG in it; "),
    ],
)
def test_missing_file_of_a_broker_is_bad_input(releases: Path, missing: str, says: str) -> None:
    files = [each for each in (releases / "4.0-kraft").rglob("*.log") if each.parts[-2:] != ("broker-2", missing)]
    with pytest.raises(BadInput) as caught:
        read_server_logs(sorted(files))
    assert says in str(caught.value) and "broker-2" in str(caught.value)


@pytest.mark.parametrize("logger", ["UnifiedLog", "kafka.cluster.Partition"])
def test_missing_logger_of_a_leader_is_bad_input(releases: Path, tmp_path: Path, logger: str) -> None:
    files = []
    for path in sorted((releases / "3.9-kraft").rglob("*.log")):
        target = tmp_path / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        lines = path.read_text().splitlines(keepends=True)
        target.write_text("".join(line for line in lines if logger not in line.rpartition("(")[2]))
        files.append(target)
    with pytest.raises(BadInput, match=r"says nothing at (TRACE|DEBUG) in it"):
        read_server_logs(files)


def entry(at: int, file: str, said: Said) -> Entry:
    return Entry(at, file, 1, "", said)


LEADS = Leads(3, 10, 8, frozenset({1, 2}))
FOLLOWS = Follows(3, 10, 8, 2)


@pytest.mark.parametrize(
    ("said", "role", "first"),
    [
        (Loads(8), FOLLOWS, True),
        (Appends(10), LEADS, True),
        (Appends(11), LEADS, False),
        (Raises(8), LEADS, True),
        (Raises(9), LEADS, False),
        (Hears(2, 5), LEADS, False),
        (Asks(frozenset({1})), FOLLOWS, True),
    ],
)
def test_role_tells_the_order_within_a_millisecond(said: Said, role: Said, first: bool) -> None:
    expected = [said, role] if first else [role, said]
    for given in ([said, role], [role, said]):
        files = {Leads: "state-change.log", Follows: "state-change.log"}
        ordered, unknown = order_ties([entry(5, files.get(type(each), "server.log"), each) for each in given])
        assert ([each.said for each in ordered], unknown) == (expected, None)


def test_unknown_order_within_a_millisecond_ends_the_history() -> None:
    before = entry(4, "state-change.log", LEADS)
    again = entry(5, "state-change.log", Leads(4, 10, 8, frozenset({1, 2})))
    ordered, unknown = order_ties([before, again, entry(5, "server.log", Hears(2, 9))])
    assert (ordered, unknown) == ([before], 5)
    one_file = [before, again, entry(5, "state-change.log", Hears(2, 9))]
    assert order_ties(one_file) == (one_file, None)
