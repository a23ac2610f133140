"""``fencepost check`` on brokers' data directories: recorded stages as they are, and copies that are damaged."""

from __future__ import annotations

import html
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.conformance.check.groups import all_groups
from fencepost.conformance.check.task import carry_out
from fencepost.model.explore.result import Progress
from junitparser import JUnitXml

from .conftest import Fencepost, Said

Brokers = Callable[[str], list[Path]]

HELD = ["1-steady", "2-leader-killed", "3-clean-failover", "4-old-leader-back", "5-lone-leader"]
ORDERS = Path("orders-0") / "00000000000000000000.log"
MAGIC = 16
"""The byte of a record batch that holds its magic (Kafka's message format, "Record Batch")."""


@pytest.fixture
def check(fencepost: Fencepost, tmp_path: Path) -> Callable[..., Said]:
    """Check some directories, the report under the test's own folder."""
    return lambda *arguments: fencepost("check", *arguments, "--report", tmp_path / "report")


@pytest.mark.parametrize("stage", HELD)
def test_what_a_healthy_cluster_leaves_holds(check: Callable[..., Said], brokers: Brokers, stage: str) -> None:
    said = check(*brokers(stage), "--json")
    assert said.code == 0
    answer = said.json
    assert answer["verdict"] == "holds"
    assert all(each["verdict"] == "holds" for each in answer["obligations"])
    reached = [each for each in answer["obligations"] if each["name"].endswith(": reachable")]
    assert reached, "the model is searched for a run to the logs"
    assert all("reachable by" in each["detail"] for each in reached)
    assert [broker["node_id"] for broker in answer["files"]["brokers"]] == [1, 2, 3]


def test_unclean_election_is_reported_everywhere(process: Fencepost, brokers: Brokers, tmp_path: Path) -> None:
    report = tmp_path / "out" / "report"
    said = process("check", *brokers("6-unclean-election"), "--report", report, "--json", "--no-search")
    assert said.code == 1
    assert said.err == f"wrote {report / 'index.html'}\n"
    answer = said.json
    assert answer["verdict"] == "violated"
    (problem,) = [each for each in answer["problems"] if each["verdict"] == "violated"]
    where = brokers("6-unclean-election")[1] / "payments-0" / f"{0:020d}.log"
    assert problem["subject"] == "payments-0"
    assert problem["details"] == [
        f"offset 1, key 'payments-201', timestamp 1750036000215 (2025-06-16T01:06:40.215Z), {where}, byte 96"
    ]
    assert answer["next_steps"][0].startswith("Copy the directory of broker 2 before it starts")

    assert sorted(path.name for path in report.iterdir()) == ["index.html", "junit.xml", "report.json", "stories"]
    written = json.loads((report / "report.json").read_text())
    assert {"index.html", "junit.xml"} <= set(written.pop("contents"))
    assert {key: answer[key] for key in written} == written
    xml = JUnitXml.fromfile(str(report / "junit.xml"))
    assert "committed_records_kept" in [case.name for suite in xml for case in suite if case.result]
    # The truncation, the lost record and the notes are in all of them.
    kinds = [note["kind"] for note in answer["notes"]]
    assert kinds[:2] == ["truncation", "loss"]
    page, suites = ((report / name).read_text(encoding="utf-8") for name in ("index.html", "junit.xml"))
    for note in answer["notes"]:
        assert note["text"] in html.unescape(page) and note["text"] in html.unescape(suites)


@pytest.fixture
def without_metadata(brokers: Brokers, tmp_path: Path) -> list[Path]:
    """The directories after an unclean election, without the metadata log that names it."""
    ignore = shutil.ignore_patterns("__cluster_metadata-0")
    stage = brokers("6-unclean-election")
    return [shutil.copytree(path, tmp_path / "data" / path.name, ignore=ignore) for path in stage]


def test_search_names_a_cause_without_metadata_log(
    check: Callable[..., Said], without_metadata: list[Path], tmp_path: Path
) -> None:
    said = check(*without_metadata, "--json")
    assert said.code == 1
    (found,) = [each for each in said.json["obligations"] if each["name"] == "payments-0: reachable"]
    assert found["detail"].startswith("no run of kip-320 ends in these logs, by its proved invariants; a run of ")
    assert "that loses records ends in them: " in found["detail"]
    assert sum(each["subject"] == "payments-0" and each["verdict"] == "violated" for each in said.json["problems"]) == 1
    story = json.loads((tmp_path / "report" / found["story"]).with_suffix(".json").read_text(encoding="utf-8"))
    assert set(story["replicas"]) <= {1, 2, 3} and story["noun"] == "broker"


def test_search_that_does_not_finish_changes_no_verdict(check: Callable[..., Said], brokers: Brokers) -> None:
    said = check(*brokers("3-clean-failover"), "--max-states", 5)
    assert said.code == 0
    notes = [line for line in said.out.splitlines() if "the search did not finish" in line]
    assert notes and all("(--max-states)" in line for line in notes)
    late = check(*brokers("3-clean-failover"), "--max-seconds", 0)
    assert late.code == 0 and "more than 0 seconds of searching (--max-seconds)" in late.out


def test_search_may_be_left_out(check: Callable[..., Said], brokers: Brokers) -> None:
    said = check(*brokers("1-steady"), "--no-search", "--json")
    assert said.code == 0
    assert not any("reachable" in each["name"] for each in said.json["obligations"])
    refused = check(*brokers("1-steady"), "--no-search", "--max-states", 5)
    assert refused.complaint.startswith("--max-states: no search is made; ")


def test_directory_without_a_partition_is_unknown(check: Callable[..., Said], copies: list[Path]) -> None:
    for folder in copies[0].glob("*-*/"):
        shutil.rmtree(folder)
    said = check(copies[0])
    assert said.code == 3
    assert said.out.startswith("unknown: nothing was judged: the directory has no partition\n")


def test_runs_of_what_holds_are_not_told(check: Callable[..., Said], brokers: Brokers) -> None:
    """In the third stage two logs differ, and a run ends in them: that is on its page, and not on the terminal."""
    said = check(*brokers("3-clean-failover"))
    assert said.code == 0 and "controller_elect_leader" not in said.out


def test_topics_are_chosen(check: Callable[..., Said], brokers: Brokers) -> None:
    said = check(*brokers("6-unclean-election"), "--topic", "orders", "--topic", "__transaction_state", "--json")
    assert said.code == 0 and said.json["verdict"] == "holds"
    names = {p["topic"] for broker in said.json["files"]["brokers"] for p in broker["partitions"]}
    assert names == {"orders", "__transaction_state", "__cluster_metadata"}
    one = check(*brokers("6-unclean-election"), "--topic", "payments", "--json")
    assert one.code == 1
    lost = [note["text"] for note in one.json["notes"] if note["kind"] in ("truncation", "loss")]
    assert [text.partition(": ")[0] for text in lost] == ["payments-0", "payments-0"]
    told = check(*brokers("6-unclean-election"), "--topic", "payment").complaint
    assert told.startswith("--topic: no directory has the topic 'payment'; ")
    assert check("--topic", "orders").complaint.startswith("--topic: there are no directories to read; ")
    assert check("--max-records", 9).complaint.startswith("--max-records: there are no directories to read; ")
    twice = check(*brokers("1-steady"), "--topic", "orders", "--topic", "orders").complaint
    assert twice.startswith("--topic: orders is named twice; ")


def test_what_another_topic_lost_is_left_out(check: Callable[..., Said], brokers: Brokers, tmp_path: Path) -> None:
    """A record of payments: whoever asks for orders hears nothing of it, but that the controllers' log has its name."""
    asked = (*brokers("6-unclean-election"), "--topic", "orders")
    text, answer = check(*asked), check(*asked, "--json").json
    assert text.code == 0 and "orders-0" in text.out
    for broker in answer["files"]["brokers"]:
        assert "payments" in {topic["name"] for topic in broker.pop("metadata")["topics"]}
    told = [path.read_text() for path in (tmp_path / "report").rglob("*") if path.is_file()]
    assert len(told) >= 4
    for each in (text.out, text.err, json.dumps(answer), *told):
        assert "payments" not in each


def test_two_log_dirs_of_one_broker_are_put_together(
    check: Callable[..., Said], brokers: Brokers, tmp_path: Path
) -> None:
    """Broker 2 keeps payments on another disk: what it lost there is seen."""
    first, second, third = (
        shutil.copytree(path, tmp_path / "data" / path.name) for path in brokers("6-unclean-election")
    )
    disk = tmp_path / "data" / "disk-2"
    disk.mkdir()
    (second / "payments-0").rename(disk / "payments-0")
    for name in ("replication-offset-checkpoint", "log-start-offset-checkpoint", "recovery-point-offset-checkpoint"):
        if (second / name).exists():
            shutil.copyfile(second / name, disk / name)
    meta = (second / "meta.properties").read_text().splitlines()
    other = [line if not line.startswith("directory.id=") else "directory.id=AAAAAAAAAAAAAAAAAAAAAQ" for line in meta]
    (disk / "meta.properties").write_text("\n".join(other) + "\n")
    said = check(first, second, disk, third, "--json")
    assert said.code == 1 and said.json["refused"] == []
    assert [len(broker["directories"]) for broker in said.json["files"]["brokers"]] == [1, 2, 1]
    assert [each["name"] for each in said.json["obligations"] if not each["met"]] == ["committed_records_kept"]


def test_truncation_without_loss_is_a_note(check: Callable[..., Said], brokers: Brokers) -> None:
    said = check(*brokers("3-clean-failover"))
    assert said.code == 0
    (line,) = [each for each in said.out.splitlines() if each.startswith("note: ")]
    assert line == (
        "note: orders-0: broker 1 as follower of broker 2 truncates to 1 and loses 1 record; "
        "none is below its high watermark 1, so none is known to be committed"
    )
    assert "obligation" not in said.out, "checks that hold are printed with --verbose only"
    told = " ".join(check(*brokers("3-clean-failover"), "--verbose").out.split())
    for heading in ("obligation", "verdict", "counted", "seconds"):
        assert heading in told


def test_another_variant_may_be_held_against_the_files(check: Callable[..., Said], brokers: Brokers) -> None:
    said = check(*brokers("6-unclean-election"), "--variant", "truncate-to-hw", "--json")
    assert said.code == 0
    assert "reachable by 19 steps of truncate-to-hw" in [each["detail"] for each in said.json["obligations"]]
    assert "loss" in [note["kind"] for note in said.json["notes"]], "which that variant may bring about"


def test_another_variant_that_keeps_its_promises_is_broken_by_a_loss_too(
    check: Callable[..., Said], brokers: Brokers
) -> None:
    said = check(*brokers("6-unclean-election"), "--variant", "kip-320-brokers", "--json")
    assert said.code == 1
    verdicts = {each["name"]: each["verdict"] for each in said.json["obligations"]}
    assert verdicts["committed_records_kept"] == "violated"


def test_one_broker_alone_is_checked_by_itself(check: Callable[..., Said], brokers: Brokers) -> None:
    said = check(brokers("1-steady")[1], "--json")
    assert said.code == 0
    names = [each["name"] for each in said.json["obligations"]]
    assert "epoch_cache_matches_batches" in names
    assert not any("reachable" in name for name in names)


@pytest.fixture
def copies(brokers: Brokers, tmp_path: Path) -> list[Path]:
    """A copy of the first stage, to damage."""
    return [shutil.copytree(path, tmp_path / "data" / path.name) for path in brokers("1-steady")]


def cut(data: bytes) -> bytes:
    return data[:-10]


def flip(data: bytes) -> bytes:
    return data[:70] + bytes([data[70] ^ 1]) + data[71:]


def strange(data: bytes) -> bytes:
    return data[:MAGIC] + b"\x09" + data[MAGIC + 1 :]


@pytest.mark.parametrize(
    ("damage", "kind", "told"),
    [
        (cut, "truncated-segment", "truncated segment: a batch of 94 bytes at offset 0 where 84 are left; "),
        (flip, "crc-mismatch", "CRC-32C "),
        (strange, "unknown-magic", "unknown magic 9, a record batch has 2; "),
    ],
    ids=["truncated", "crc", "magic"],
)
def test_a_damaged_segment_is_named_and_the_rest_is_checked(
    check: Callable[..., Said], copies: list[Path], damage: Callable[[bytes], bytes], kind: str, told: str
) -> None:
    segment = copies[1] / ORDERS
    segment.write_bytes(damage(segment.read_bytes()))
    said = check(*copies)
    # A torn tail is what a power loss leaves, too: the checkpoint's high watermark above it proves nothing.
    assert said.code == 3
    assert f"? broker-2/{ORDERS}, byte 0: {told.removesuffix('; ')}" in said.out
    assert " not decided, since part of a log could not be read" in said.out or kind == "truncated-segment"
    assert said.lines[-1].startswith("wrote "), "a report of what could be read"

    answer = check(*copies, "--json").json
    problem = answer["files"]["problems"][0]
    assert (problem["kind"], problem["path"], problem["byte"]) == (kind, str(segment), 0)
    verdicts = {each["name"]: each["verdict"] for each in answer["obligations"]}
    assert verdicts["topic_ids_match"] == "holds"
    reachable = {name: verdict for name, verdict in verdicts.items() if "agree" in name and "reachable" in name}
    assert list(reachable.values()) == ["holds"], "the other partitions"


def test_a_damaged_text_file_is_named_by_its_line(check: Callable[..., Said], copies: list[Path]) -> None:
    path = copies[0] / "replication-offset-checkpoint"
    lines = path.read_text().splitlines()
    lines[2] = "orders zero 1"
    path.write_text("\n".join(lines) + "\n")
    said = check(*copies)
    assert said.code == 3
    assert "? broker-1/replication-offset-checkpoint, line 3: " in said.out


def test_a_directory_that_is_none_is_refused_and_the_others_are_checked(
    check: Callable[..., Said], copies: list[Path], tmp_path: Path
) -> None:
    empty, missing = tmp_path / "empty", tmp_path / "missing"
    empty.mkdir()
    said = check(copies[0], empty, copies[1], missing, "--json")
    assert said.code == 3
    assert said.lines[-1].startswith(
        f"skipped 2 directories: {empty}: not a Kafka data directory; name a broker's log.dirs"
    )
    assert said.lines[-1].endswith(f"; {missing}: no such directory; name the data directory of a broker")
    assert [each["where"] for each in said.json["refused"]] == [str(empty), str(missing)]
    assert said.json["verdict"] == "unknown", "the skipped directory may hold what the others contradict"
    assert [broker["node_id"] for broker in said.json["files"]["brokers"]] == [1, 2]


def test_a_second_copy_of_one_broker_is_refused(check: Callable[..., Said], copies: list[Path]) -> None:
    """Which of the two is of the others' time nobody can say."""
    for path in (copies[2] / "meta.properties", copies[0] / "meta.properties"):
        assert path.is_file()
    (copies[2] / "meta.properties").write_text((copies[0] / "meta.properties").read_text())
    said = check(*copies)
    assert said.code == 3
    last = said.out.splitlines()[-1]
    assert last.startswith(f"skipped 1 directory: {copies[2] / 'meta.properties'}: node id 1 and directory id ")
    assert last.endswith(f"are also those of {copies[0]}; name each directory of a broker once, all of one moment")
    assert "? two copies of broker 1: " in said.out
    assert check(*copies, "--json").json["notes"][0]["kind"] == "left out"


def test_a_copy_of_another_time_is_named(check: Callable[..., Said], brokers: Brokers) -> None:
    mixed = [*brokers("7-all-back")[:1], *brokers("1-steady")[1:2], *brokers("7-all-back")[2:]]
    said = check(*mixed, "--json")
    assert said.code == 3
    unmet = {each["name"]: each for each in said.json["obligations"] if not each["met"]}
    assert {each["verdict"] for each in unmet.values()} == {"unknown"}
    assert (
        "broker 2: its metadata log ends at 55, before its registration at 86" in unmet["copies_of_one_time"]["detail"]
    )
    reachable = [each["detail"] for name, each in unmet.items() if name.endswith(": reachable")]
    assert reachable and all(
        "the copies are not of one time: broker 2: its metadata log ends at 55" in each for each in reachable
    )


def test_what_a_file_says_does_not_steer_the_terminal(check: Callable[..., Said], copies: list[Path]) -> None:
    meta = copies[2] / "meta.properties"
    lines = meta.read_text().splitlines()
    wrong = ["cluster.id=\x1b]0;owned\x07:fire:[bold]" if line.startswith("cluster.id") else line for line in lines]
    meta.write_text("\n".join(wrong) + "\n")
    strange = copies[2].rename(copies[2].with_name("broker\x1b[31m-3"))
    said = check(*copies[:2], strange)
    assert said.code == 3
    for text in (said.out, said.err):
        assert "\x1b" not in text and "\x07" not in text
    assert r"cluster id \x1b]0;owned\x07:fire:[bold], but " in said.out.splitlines()[-1]


def test_a_pipe_among_the_files_is_not_waited_for(process: Fencepost, copies: list[Path], tmp_path: Path) -> None:
    for name in ("orders-0/00000000000000000000.log", "orders-0/leader-epoch-checkpoint", "meta.properties"):
        (copies[1] / name).unlink()
        os.mkfifo(copies[1] / name)
    for name in (".kafka_cleanshutdown", "__cluster_metadata-0/quorum-state"):
        (copies[0] / name).unlink(missing_ok=True)
        os.mkfifo(copies[0] / name)
    os.mkfifo(copies[0] / "__cluster_metadata-0" / f"{9:020d}-{1:010d}.checkpoint")
    said = process("check", *copies, "--report", tmp_path / "report", "--verbose")
    assert said.code == 1, "a violation counts, even if other files are unreadable"
    told = "".join(line for line in said.out.splitlines() if "not a regular file" in line)
    for name in ("orders-0/00000000000000000000.log", "orders-0/leader-epoch-checkpoint", "meta.properties"):
        assert f"broker-2/{name}" in told
    assert f"{9:020d}-{1:010d}.checkpoint" in told and "quorum-state" in told


def test_no_directory_at_all_is_bad_input_and_writes_nothing(check: Callable[..., Said], tmp_path: Path) -> None:
    assert check(tmp_path / "missing").complaint.startswith(f"{tmp_path / 'missing'}: no such directory; ")
    empty = tmp_path / "empty"
    empty.mkdir()
    assert check(empty, "--json").complaint.startswith(f"{empty}: not a Kafka data directory; ")
    assert list(tmp_path.iterdir()) == [empty]


def test_a_report_never_replaces_what_is_none(fencepost: Fencepost, copies: list[Path], tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").write_text("years of work")
    said = fencepost("check", *copies, "--report", mine)
    assert said.code == 2 and "holds" in said.out
    assert said.lines[-1].startswith(f"fencepost: {mine}: the folder holds something that is not a report; ")
    assert (mine / "thesis.txt").read_text() == "years of work"


def test_unwritable_report_keeps_the_answer(fencepost: Fencepost, brokers: Brokers, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = tmp_path / "file" / "report"
    for stage, code in (("1-steady", 2), ("6-unclean-election", 1)):
        said = fencepost("check", *brokers(stage), "--report", report, "--json")
        assert said.code == code and said.json["verdict"] == ("holds" if code == 2 else "violated"), stage
        assert said.lines[-1] == f"fencepost: {report}: cannot write the report: Not a directory; name another folder"


def test_a_wrong_option_gets_one_line(fencepost: Fencepost) -> None:
    assert fencepost("check", "--variant", "kip-1").complaint.startswith("--variant: fencing has no variant 'kip-1'; ")
    assert "--frobnicate" in fencepost("check", "--frobnicate").complaint


@pytest.mark.nightly
def test_everything_that_is_built_in_is_as_it_should_be() -> None:
    """The obligations of ``check`` without a path, but for the three that take longest and have tests of their own.

    By day tox -e check runs them all.
    """
    seen: list[str] = []

    def on_task(task: object) -> Callable[[Progress], None]:
        seen.append(str(task))
        return lambda _: None

    tasks = [
        task
        for group in all_groups()
        for task in group.tasks()
        if "exploration" not in task.group
        and "symbolic" not in task.name
        # The whole proof of snapshots takes longer than all else, and test_cli_prove.py asks it.
        and (task.group, task.name) != ("snapshots: proofs with no bound", "kip-630-safe")
    ]
    results = carry_out(tasks, on_task)
    assert len(results) == len(seen) == len(tasks) >= 10
    assert [each.name for each in results if not each.met] == []
    assert {each.verdict for each in results} == {"holds", "violated"}, "must-fail twins are among them"
    assert all((each.story is not None) >= ("liveness" in each.group) for each in results if each.verdict == "violated")


def test_a_renamed_snapshot_is_shown_with_file_and_byte(
    check: Callable[..., Said], brokers: Brokers, tmp_path: Path
) -> None:
    """Of a controllers' log: on the terminal, in the page and in the object; nothing is said of the clean copies."""
    copies = [shutil.copytree(path, tmp_path / "data" / path.name) for path in brokers("7-all-back")]
    folder = copies[1] / "__cluster_metadata-0"
    renamed = folder / "00000000000000000062-0000000001.checkpoint"
    (folder / "00000000000000000061-0000000001.checkpoint").rename(renamed)
    said = check(*copies)
    assert said.code == 1
    line = (
        "! broker 2: __cluster_metadata-0: snapshot "
        "00000000000000000062-0000000001: its header says append time 1795227636445, "
        "the log's batch before its end 1795227637046"
    )
    assert f"{line}\n  broker-2/__cluster_metadata-0/{renamed.name}, byte 0\n" in said.out
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    assert f"({renamed}, byte 0)" in page
    unmet = [each["name"] for each in check(*copies, "--json").json["obligations"] if not each["met"]]
    assert unmet == ["snapshot_files_match_names", "unclean_election_losses_known"]


@pytest.mark.parametrize(
    ("topic", "hint"),
    [
        ("paymets", "did you mean payments?"),
        ("payments-0", "did you mean payments?"),
        ("zzz", "choose one of mixed-compression, orders, payments, __cluster_metadata, __transaction_state"),
    ],
)
def test_unknown_topic_names_the_nearest(check: Callable[..., Said], brokers: Brokers, topic: str, hint: str) -> None:
    said = check(*brokers("6-unclean-election"), "--topic", topic)
    assert said.complaint == f"--topic: no directory has the topic {topic!r}; {hint}"
