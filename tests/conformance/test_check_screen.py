"""The screen of ``fencepost check``: expected files for recorded stages and for directories made after bug reports."""

from __future__ import annotations

import html
import io
import re
import tarfile
from pathlib import Path

import pytest
from fencepost.conformance.check.files import Cluster, read_cluster
from fencepost.conformance.check.judge import add_search, file_answer
from fencepost.conformance.cli.check import _print_search
from fencepost.traces.kafka.capture import broker_directories, bundled_corpus, load_manifest
from fencepost.traces.report.answer import Answer, Finding
from fencepost.traces.report.obligation import Obligation
from fencepost.traces.report.replicas import ReplicaRow, ReplicaTable
from fencepost.traces.report.screen import MAX_ROWS, print_answer, print_replicas
from fencepost.traces.report.terminal import Terminal

SCREENS = Path(__file__).parent / "screens"
ARCHIVE = Path(__file__).parents[1] / "traces" / "kafka" / "reports" / "reports.tar.gz"
STAGES = [stage["name"] for stage in load_manifest(bundled_corpus())["stages"]]
REPORTS = ["r02n", "r04-before", "r14", "flip2", "zk", "no-topic-ids-2.4.1", "compacted-zk-3.9.1", "vacuous"]


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("reports")
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    return folder


def screen(answer: Answer, strip: str = "", *, width: int = 80, everything: bool = False) -> str:
    """The screen without colour."""
    out = io.StringIO()
    console = Terminal(out, width=width, plain=True)
    print_replicas(answer.replicas, console, everything=everything)
    print_answer(answer, console, everything=everything, strip=strip)
    return "".join(line.rstrip() + "\n" for line in out.getvalue().splitlines())


def directories(name: str, reports: Path) -> list[Path]:
    return broker_directories(bundled_corpus(), name) if name in STAGES else sorted((reports / name).iterdir())


@pytest.mark.parametrize("name", [*STAGES, *REPORTS])
def test_screen_is_the_expected_one(name: str, reports: Path) -> None:
    paths = directories(name, reports)
    text = screen(file_answer(read_cluster("", paths)), f"{paths[0].parent}/")
    assert text == (SCREENS / f"{name}.txt").read_text(encoding="utf-8")
    assert max(map(len, text.splitlines())) <= 80 and "\u2026" not in text


def test_image_of_the_docs_shows_the_screen() -> None:
    image = (Path(__file__).parents[2] / "docs" / "images" / "check.svg").read_text(encoding="utf-8")
    shown = "".join(html.unescape(re.sub(r"<[^>]*>", "", image)).replace("\xa0", " ").split())
    for line in (SCREENS / "6-unclean-election.txt").read_text(encoding="utf-8").splitlines():
        assert "".join(line.split()) in shown, line


@pytest.mark.parametrize("name", ["6-unclean-election", "7-all-back", "r04-before"])
def test_outage_fits_one_screen(name: str, reports: Path) -> None:
    paths = directories(name, reports)
    text = screen(file_answer(read_cluster("", paths)), f"{paths[0].parent}/")
    assert len(text.splitlines()) <= 23, "the path of the report is the 24th line"


def test_missing_last_isr_makes_the_loss_unknown(reports: Path) -> None:
    first, _, third = directories("6-unclean-election", reports)
    answer = file_answer(read_cluster("", [first, third]))
    assert answer.verdict == "unknown"
    assert answer.next_steps == ("Check again with the directory of broker 2.",)
    assert "the last ISR was [2]; broker 2's directory is missing, so the loss is unknown" in answer.findings[0].text


def test_skipped_directory_makes_holds_unknown(reports: Path, tmp_path: Path) -> None:
    answer = file_answer(read_cluster("", [*directories("1-steady", reports), tmp_path / "missing"]))
    assert (answer.verdict, answer.headline) == ("unknown", "the rest holds, and 1 directory was skipped")
    assert answer.last_line.startswith(f"skipped 1 directory: {tmp_path / 'missing'}: no such directory; ")


def test_violation_outweighs_a_skipped_directory(reports: Path, tmp_path: Path) -> None:
    answer = file_answer(read_cluster("", [*directories("6-unclean-election", reports), tmp_path / "missing"]))
    assert answer.verdict == "violated" and answer.last_line


def row(partition: str, broker: int, log: str, *, first: bool) -> ReplicaRow:
    differs = frozenset() if log == "same" else frozenset({"log_end"})
    return ReplicaRow(partition, broker, 1, 4, (1, 2, 3), 4, 0, 7, 7, log, differs, first)


def large_cluster(partitions: int, differing: int) -> ReplicaTable:
    """``partitions`` of three replicas each, the first ``differing`` of which have a follower that lags."""
    rows = [
        row(f"topic-{n}", broker, "1 behind" if n < differing and broker == 3 else "same", first=broker == 1)
        for n in range(partitions)
        for broker in (1, 2, 3)
    ]
    return ReplicaTable(tuple(rows), 3 * differing, tuple(f"topic-{n}" for n in range(differing, partitions)))


def test_five_hundred_healthy_partitions_are_one_line() -> None:
    text = screen(Answer("holds", "500 partitions", replicas=large_cluster(500, 0)))
    assert text.splitlines() == ["500 partitions with equal replicas", "holds: 500 partitions"]


def test_many_differing_partitions_are_counted() -> None:
    lines = screen(Answer("holds", "all", replicas=large_cluster(500, 40))).splitlines()
    assert len(lines) == 2 + MAX_ROWS + 3
    assert lines[-3:-1] == [
        "36 more partitions with differences (--verbose shows them)",
        "460 partitions with equal replicas",
    ]
    everything = screen(Answer("holds", "all", replicas=large_cluster(500, 40)), everything=True)
    assert everything.count("topic-") == 500


@pytest.mark.parametrize("width", [40, 80])
def test_long_topic_is_folded_and_not_clipped(width: int) -> None:
    name = "a.very.long.topic.name.that.no.column.has.room.for" * 3 + "-17"
    table = ReplicaTable((row(name, 1, "differs at 123456", first=True),), 1)
    text = screen(Answer("violated", "1 problem", replicas=table), width=width)
    assert max(map(len, text.splitlines())) <= width and "\u2026" not in text
    column = "".join(line.split(" ")[0] for line in text.splitlines() if not line.startswith(("violated", "partition")))
    assert name in column.replace(" ", "")


def search(verdict: str, detail: str, *, unfinished: bool = False) -> Obligation:
    return Obligation(
        "orders-0: reachable",
        "search",
        verdict,
        "holds",
        detail,
        7,
        "states",
        0.1,
        optional=True,
        unfinished=unfinished,
    )  # type: ignore[arg-type]


HOLDS = Answer("holds", "1 partition")
LOST = Answer("violated", "1 problem", (Finding("violated", "orders-0", "it is lost"),))


def test_unfinished_search_is_a_note_and_no_verdict() -> None:
    answer = add_search(HOLDS, [search("unknown", "more than 7 states (--max-states)", unfinished=True)])
    assert answer.verdict == "holds"
    assert answer.notes == ("orders-0: reachable: the search did not finish: more than 7 states (--max-states)",)


def test_topic_named_as_a_limit_is_no_unfinished_search() -> None:
    assert add_search(HOLDS, [search("unknown", "the copies of --max-states-0 are not of one time")]).notes == ()


def test_search_adds_a_violation() -> None:
    answer = add_search(HOLDS, [search("violated", "ruled out")])
    assert answer.verdict == "violated" and answer.next_steps
    assert [(each.subject, each.text) for each in answer.findings] == [("orders-0", "ruled out")]


def test_violation_by_the_search_follows_the_verdict_on_files() -> None:
    searched = [search("violated", "ruled out")]
    out = io.StringIO()
    console = Terminal(out, width=80, plain=True)
    _print_search(HOLDS, add_search(HOLDS, searched), searched, console, "", verbose=False)
    verdict, problem, step, *_ = out.getvalue().splitlines()
    assert (verdict, problem) == ("violated: 1 problem in orders-0", "! orders-0: ruled out")
    assert step.startswith("next: Look at the run in the report")


def test_search_does_not_repeat_a_finding_of_the_files() -> None:
    assert add_search(LOST, [search("violated", "ruled out")]).findings == LOST.findings
    assert add_search(LOST, [search("unknown", "(--max-states)")]).verdict == "violated"


def test_text_from_files_steers_no_terminal() -> None:
    finding = Finding("violated", "a\x1b[31m", "b\x07", ("c\x1b]0;x",))
    text = screen(Answer("violated", "d\x1b[0m", (finding,), ("e\x1b",), notes=("f\x9b",)))
    assert not any(character in text for character in "\x1b\x07\x9b")


def test_every_replica_is_in_the_object(reports: Path) -> None:
    answer = file_answer(read_cluster("", directories("6-unclean-election", reports)))
    rows = answer.to_json()["replicas"]
    assert {(each["partition"], each["broker"]) for each in rows} == {
        (f"{topic}-0", broker)
        for topic in ("payments", "orders", "mixed-compression", "__transaction_state")
        for broker in (1, 2, 3)
    }
    (lagging,) = [each for each in rows if each["partition"] == "payments-0" and each["broker"] == 1]
    assert (lagging["leader"], lagging["isr"], lagging["log_end"], lagging["log"]) == (3, [3], 1, "1 behind")
    assert lagging["differs"] == ["epoch", "high_watermark", "log_end"]


def write_screens(folder: Path) -> None:
    """Write the expected files anew, to be read before they are committed."""
    with tarfile.open(ARCHIVE) as archive:
        archive.extractall(folder, filter="data")
    for name in (*STAGES, *REPORTS):
        paths = directories(name, folder)
        cluster: Cluster = read_cluster("", paths)
        (SCREENS / f"{name}.txt").write_text(screen(file_answer(cluster), f"{paths[0].parent}/"), encoding="utf-8")
