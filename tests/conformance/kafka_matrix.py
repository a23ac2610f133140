"""The reference page on Apache Kafka's classes, from the registry, the drivers' source and the tests' names.

The documentation site calls ``page``; ``python -m tests.conformance.kafka_matrix`` in the checkout's folder prints it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from textwrap import wrap

from fencepost.conformance.harness import Harness, find_harness, held_to
from fencepost.conformance.kafka.cluster.finding import all_findings
from fencepost.conformance.kafka.jars import BROKERS, CLEANERS, CONSUMER, CONTROLLERS, QUORUM, TIERED, TRIED
from fencepost.model.core.registry import REGISTRY

from .kafka_planted import FOUND, LATER, planted

ROOT = Path(__file__).resolve().parents[2]
OLDER = "test_kafka_release.py"
"""The tests of another release."""
HOLES = ("H1", "H2", "H3", "A1", "A2", "A3", "A4", "A5")
"""Of KIP-320's consumers, and of KIP-630."""
REAL = ("test_kafka_findings.py", "test_kafka_printed.py", "test_kafka_carry.py")
"""The tests of brokers that are processes."""
FINDINGS = "test_kafka_findings.py"
EXECUTES = "test_finding_on_real_brokers"
"""The one of these tests that executes findings: all that have a page."""


@dataclass(frozen=True)
class Under:
    """What of Apache Kafka stands under a protocol."""

    drives: str
    theirs: str
    ours: str
    figure: str
    """What ``benchmarks/kafka_free.py`` printed: 60 runs of 150 events, seed 51."""


UNDER = {
    "fencing": Under(
        BROKERS,
        "ReplicaManager, Partition, UnifiedLog, LeaderEpochFileCache, LogManager on files, ReplicaFetcherThread,"
        " RemoteLeaderEndPoint, MetadataDelta, DefaultAlterPartitionManager",
        "clock, scheduler, timers of the purgatories, both channels, the controller, producer and consumer",
        "9,875 events, 1,612 a CPU second",
    ),
    "truncation": Under(
        CONSUMER,
        "KafkaConsumer (classic), SubscriptionState, ConsumerMetadata, Fetcher, OffsetFetcher, NetworkClient",
        "clock, sockets, brokers, controller, coordinator, producer",
        "9,347 events, 2,203 a CPU second",
    ),
    "snapshots": Under(
        QUORUM,
        "KafkaRaftClient, QuorumState, LeaderState, KafkaRaftLog and its snapshots on files, FileQuorumStateStore",
        "a clock for each node, the network, the state machine, clients",
        "12,166 events, 1,466 a CPU second",
    ),
    "controller": Under(
        CONTROLLERS,
        "QuorumController with its event queue, ClusterControlManager, ReplicationControlManager,"
        " BrokerHeartbeatManager, MetadataRecordSerde",
        "clock, the voters' logs and who leads them (RaftClient), brokers, clients",
        "13,436 events, 1,297 a CPU second",
    ),
    "compaction": Under(
        CLEANERS,
        "LogCleaner by rounds of its thread, Cleaner, SkimpyOffsetMap, LogCleanerManager, the brokers of `fencing`",
        "clock, scheduler, channels, the controller, producers and the consumer",
        "10,018 events, 336 a CPU second",
    ),
    "tiering": Under(
        TIERED,
        "RemoteLogManager with its copying and expiration tasks, RemotePartitionMetadataStore, TierStateMachine, the"
        " brokers of `fencing`",
        "clock, scheduler, channels, the controller, producers, the store, the log of remote log metadata",
        "15,531 events, 796 a CPU second",
    ),
}


def ours() -> dict[str, Harness]:
    """The protocols that come with the package, and what they are held with."""
    found = {name: find_harness(name) for name in REGISTRY}
    return {name: each for name, each in found.items() if each is not None and each.package.startswith("fencepost.")}


def driven() -> list[str]:
    """Those to which there is a system that runs Apache Kafka's classes."""
    return [name for name, each in ours().items() if "kafka" in each.free_names]


def variants(protocol: str) -> list[str]:
    """Those that tell of Apache Kafka."""
    return [name for name in held_to(protocol).variants if "-kafka" in name]


def of_kafka() -> Iterator[tuple[str, str, set[str]]]:
    """Of each test of Apache Kafka: its file, its name, and the rows of DEVIATIONS.md that it names."""
    for file in sorted(Path(__file__).parent.glob("test_*kafka*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test_"):
                words = [ast.get_docstring(node) or ""]
                words += [
                    str(each.value)
                    for item in node.decorator_list
                    for each in ast.walk(item)
                    if isinstance(each, ast.Constant)
                ]
                rows = {
                    each.upper()
                    for each in re.findall(
                        r"(?<![a-z0-9])(tk\d+|[akvfhol]\d+)(?![a-z0-9])", node.name.replace("_", " ")
                    )
                }
                rows |= set(re.findall(r"\b(TK\d+|[AKVFHOL]\d+)\b", " ".join(words)))
                if file.name == FINDINGS:
                    rows = with_page() if node.name == EXECUTES else set()
                yield file.name, node.name, rows


def with_page() -> set[str]:
    """Ids of the findings that have a page."""
    return {each.id for id_, each in all_findings().items() if (ROOT / "docs" / "findings" / f"{id_}.md").exists()}


def rows() -> dict[str, str]:
    """The holes that were tried, and the rows about shipped Kafka in the order of DEVIATIONS.md, with their sources."""
    text = (ROOT / "specs" / "DEVIATIONS.md").read_text(encoding="utf-8")
    found = re.findall(r"^\| (TK\d+|[KVFOL]\d+) \|.*\| ([^|]*) \|$", text, re.M)
    return dict.fromkeys(HOLES, "") | dict(found)


def of_classes(source: str) -> bool:
    """Whether a row's source is a class of Kafka's, which can be run; else it is of files and schemas."""
    return re.search(r"`(?:[a-z]+\.)*[A-Z]\w+(?:\.\w+)?`", re.sub(r"`\w+\.json`", "", source)) is not None


def page() -> str:
    """The page."""
    return "\n".join([*_head(), *_protocols(), *_releases(), *_planted(), ""])


def _said(*words: str) -> list[str]:
    """A paragraph, in lines of the page's width."""
    return wrap(" ".join(words), 118)


def _head() -> list[str]:
    return [
        "# Apache Kafka's classes, releases and planted defects",
        "",
        *_said(
            "Generated from the registry, the drivers' source and the tests (`tests/conformance/kafka_matrix.py`).",
            "[DEVIATIONS](../../specs/DEVIATIONS.md) describes the rows, [Findings](../findings/index.md) the faults",
            "on real brokers, and [Test Apache Kafka](../how-to/test-apache-kafka.md) the commands.",
        ),
        "",
    ]


def _protocols() -> list[str]:
    found = [
        "## By protocol",
        "",
        "| protocol | Kafka's own classes | ours | checked against | releases | planted and found | speed |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in driven():
        of = UNDER[name]
        releases = ", ".join(release for release, all_ in TRIED.items() if of.drives in all_)
        held = ", ".join(f"`{each}`" for each in variants(name))
        count = str(len(planted(of.drives)))
        found.append(f"| `{name}` | {of.theirs} | {of.ours} | {held} | {releases} | {count} | {of.figure} |")
    return [
        *found,
        "",
        *_said(
            "After each event, Fencepost checks all cells of the model: requests, responses, errors, logs, epochs,",
            "high watermarks, ISRs, votes and positions. A CPU second is one of Python and the JVM together (`python",
            "benchmarks/kafka_free.py`). Tests also compare Kafka's log cleaner with ours, file by file",
            "(`tests/impl/test_compaction_kafka.py`), and its record classes with our codec",
            "(`tests/impl/test_metadata_kafka.py`).",
        ),
        "",
    ]


def _releases() -> list[str]:
    by_row: dict[str, dict[str, list[str]]] = {}
    for file, _, named in of_kafka():
        where = "real" if file in REAL else "older" if file == OLDER else "here"
        for row in named:
            files = by_row.setdefault(row, {}).setdefault(where, [])
            files += [] if file in files else [file]
    # H1 is what the row V1 tells of.
    by_row["V1"] = by_row["H1"]
    found = [
        "## By release",
        "",
        "The tests that show a row of DEVIATIONS, or try a hole of a KIP (H, A), by release.",
        "",
        "| row | " + " | ".join(f"{release}, in process" for release in TRIED) + " | real brokers |",
        "|---|" + "---|" * (len(TRIED) + 1),
    ]
    for row in (each for each in rows() if each in by_row):
        cells = [", ".join(f"`{file}`" for file in by_row[row].get(where, [])) for where in ("here", "older", "real")]
        found.append(f"| {row} | {' | '.join(cells)} |")
    others = {row: of_classes(source) for row, source in rows().items() if row not in by_row}
    said = {
        "describe Kafka's classes, and were read in their source alone": [row for row in others if others[row]],
        "are about files and schemas, which tests of our readers cover": [row for row in others if not others[row]],
    }
    told = [f"No test has the name of {', '.join(names)}: they {what}." for what, names in said.items() if names]
    return [*found, "", *_said(*told or ["Each row has a test."]), ""]


def _planted() -> list[str]:
    found = [
        "## Planted defects",
        "",
        "| protocol | defect | change | found |",
        "|---|---|---|---|",
    ]
    for name in driven():
        drives = UNDER[name].drives
        for defect, said in planted(drives).items():
            found.append(
                f"| `{name}` | `{defect}` | {said} | {'yes' if defect in FOUND[drives] else 'by longer runs'} |"
            )
    total = sum(map(len, (*FOUND.values(), *LATER.values())))
    return [*found, "", f"All {total} are found, each by a plan that holds without the defect."]


if __name__ == "__main__":
    print(page(), end="")
