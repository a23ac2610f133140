"""Kafka's own logs as traces: what three real brokers and a controller printed, as it is, laid out anew, and spoilt."""

from __future__ import annotations

import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict
from fencepost.traces.bundled.unpacked import unpacked_archive
from fencepost.traces.kafka.server_log import lines as lines_module
from fencepost.traces.kafka.server_log.lines import read_server_logs
from fencepost.traces.kafka.server_log.traces import LogReport, traces_of_logs
from fencepost.traces.replay import replay

PRINTED = unpacked_archive(Path(__file__).with_name("printed.tar.gz"))
NODES = ("broker-1", "broker-2", "broker-3", "controller-100")
APACHE, FENCES = "kip-320-kafka", "kip-320-kafka-fences"
Edit = Callable[[list[str]], list[str]]


def told(folder: Path, variant: str = APACHE, nodes: tuple[str, ...] = NODES, **options: int) -> LogReport:
    """The one partition of a folder's logs."""
    (found,) = traces_of_logs([folder / f"{node}.log" for node in nodes], variant, **options)
    return found


def edited(tmp_path: Path, story: str, **edits: Edit) -> Path:
    """A copy of the logs with the lines of some nodes changed: ``broker_1=...``."""
    target = tmp_path / story
    shutil.copytree(PRINTED / story, target)
    for node, edit in edits.items():
        file = target / f"{node.replace('_', '-')}.log"
        file.write_text("".join(f"{line}\n" for line in edit(file.read_text().splitlines())))
    return target


def behind(mark: str, *more: str) -> Edit:
    """These messages of ``kafka.cluster.Partition`` or others come right behind the first line with `mark`."""

    def edit(lines: list[str]) -> list[str]:
        at = next(number for number, line in enumerate(lines) if mark in line)
        begin = lines[at][:12]
        return [*lines[: at + 1], *(f"{begin} [planted] DEBUG {each}" for each in more), *lines[at + 1 :]]

    return edit


def without(mark: str) -> Edit:
    return lambda lines: [line for line in lines if mark not in line]


def test_an_acknowledged_record_that_real_brokers_lose_is_found_in_their_logs() -> None:
    """K11: the leader of epoch 2 counts what a follower had told it in epoch 0, and has cut off since."""
    found = told(PRINTED / "k11")
    assert found.trace is not None and found.trace.header.complete and found.why is None
    assert found.trace.header.constants == {"replicas": 3, "log_size": 1, "max_records": 1, "max_leader_epoch": 3}
    answer = replay(found.trace)
    assert (answer.verdict, answer.violated, answer.cause) == (Verdict.VIOLATED, "explained", "guard")
    assert answer.event is not None and answer.event.call == "leader_inc_high_watermark(leader=0)"
    line = (PRINTED / "k11" / "broker-1.log").read_text().splitlines()[int(str(answer.event.source["line"])) - 1]
    assert "High watermark updated from (offset=0" in line and answer.event.source["file"].endswith("broker-1.log")  # type: ignore[union-attr]


def test_where_nothing_is_lost_the_whole_log_is_explained() -> None:
    found = told(PRINTED / "k11-control")
    assert found.explained and found.trace is not None and len(found.trace) == 30
    assert replay(found.trace).verdict is Verdict.HOLDS
    seen = {cell.partition("[")[0] for event in found.trace.events for cell in event.observed}
    assert seen == {
        "quorum_leader",
        "quorum_leader_epoch",
        "quorum_isr",
        "leader",
        "leader_epoch",
        "leo",
        "hw",
        "isr",
        "remote_leo",
    }


def test_what_kafka_does_is_explained_by_the_variant_that_has_it_and_breaks_the_promise() -> None:
    found = told(PRINTED / "k11", "kip-320-kafka-stale-acks")
    assert found.explained and found.trace is not None
    answer = replay(found.trace)
    assert (answer.verdict, answer.violated) == (Verdict.VIOLATED, "weak_isr")


def as_log4j(lines: list[str]) -> list[str]:
    """Kafka's own layout, which names no thread."""
    pattern = re.compile(r"(\d\d:\d\d:\d\d)\.(\d{3}) \[[^\]]*\] (\w+) (\S+) - (.*)")
    return [pattern.sub(r"[2026-11-24 \1,\2] \3 \5 (\4)", line) for line in lines]


def later(hours: int) -> Edit:
    """A clock that is some hours ahead; past midnight another day begins."""
    return lambda lines: [f"{(int(line[:2]) + hours) % 24:02}{line[2:]}" for line in lines]


@pytest.mark.parametrize(("story", "explained"), [("k11", False), ("k11-control", True)])
@pytest.mark.parametrize(
    "edits",
    [
        dict.fromkeys(("broker_1", "broker_2", "broker_3", "controller_100"), as_log4j),
        {"broker_1": later(3), "controller_100": later(-2)},
        {"broker_3": later(20)},
    ],
    ids=["log4j", "clocks", "midnight"],
)
def test_neither_layout_nor_clocks_decide(tmp_path: Path, story: str, explained: bool, edits: dict[str, Edit]) -> None:
    found = told(edited(tmp_path, story, **edits))
    assert found.explained is explained and found.trace is not None and found.why is None
    assert replay(found.trace).verdict is (Verdict.HOLDS if explained else Verdict.VIOLATED)


_RAISED = (
    "kafka.cluster.Partition - [Partition k11-0 broker=1] High watermark updated from (offset=0, segment=[0:0])"
    " to (offset=1, segment=[0:69])"
)
_APPENDED = (
    "org.apache.kafka.storage.internals.log.UnifiedLog - [UnifiedLog partition=k11-0, dir=/d] Appended message set with"
    " last offset: 0, first offset: 0, next offset: 1, and messages: MemoryRecords(size=69)"
)


@pytest.mark.parametrize(
    ("edits", "call"),
    [
        ({"broker_1": behind("Appended message set", _RAISED)}, "leader_inc_high_watermark(leader=0)"),
        ({"broker_3": without("Truncating to offset")}, "follower_acknowledge(leader=1, follower=2)"),
        ({"broker_2": behind("starts at leader epoch 0", _APPENDED)}, "become_leader(leader=1, epoch=1)"),
        ({"controller_100": without("leader: 2 -> 1")}, None),
    ],
    ids=["committed-early", "kept-what-differs", "came-and-went", "never-decided"],
)
def test_a_fault_that_is_planted_in_the_log_is_found(tmp_path: Path, edits: dict[str, Edit], call: str | None) -> None:
    """Each changes what nothing is lost in; a partition epoch that is in no file is no fault, and ends the story."""
    found = told(edited(tmp_path, "k11-control", **edits))
    assert found.trace is not None
    answer = replay(found.trace)
    if call is None:
        assert answer.verdict is Verdict.UNKNOWN
        assert found.why == "what the controller decided in partition epoch 3 is in no file"
    else:
        assert answer.verdict is Verdict.VIOLATED and answer.event is not None and answer.event.call == call


_CHANGE = "org.apache.kafka.controller.ReplicationControlManager - [QuorumController id=100] partition change for k11-0"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ("leader: 3 -> 2, leaderEpoch: 3 -> 4", "elects a leader uncleanly"),
        ("isr: [1, 3] -> [1, 2, 3]", "changes the ISR by itself"),
        ("isr: [1, 3] -> [3, 9]", "gives it other replicas"),
        ("replicas: [3, 1, 2] -> [3, 1, 4]", "gives it other replicas"),
        ("leader: 3 -> 1, leaderEpoch: 3 -> 61", "begins leader epoch 61"),
    ],
)
def test_what_the_model_has_no_step_for_ends_the_story_and_is_no_fault(tmp_path: Path, change: str, why: str) -> None:
    more = f"{_CHANGE} with topic ID a: {change}, partitionEpoch: 5 -> 6"
    found = told(
        edited(tmp_path, "k11-control", controller_100=lambda lines: [*lines, f"{lines[-1][:12]} DEBUG {more}"])
    )
    assert found.trace is not None and found.why is not None and why in found.why
    assert replay(found.trace).verdict is Verdict.UNKNOWN and len(found.trace) > 20


@pytest.mark.parametrize(("variant", "fenced"), [(APACHE, True), (APACHE, False), (FENCES, True), (FENCES, False)])
def test_behind_a_step_that_a_variant_may_lack_nothing_is_called_a_fault(
    tmp_path: Path, variant: str, fenced: bool
) -> None:
    """The controller fences a broker, for which one variant has a step (K14); what is planted comes later."""
    more = f"{_CHANGE} with topic ID a: isr: [1, 3] -> [3], partitionEpoch: 5 -> 6"
    raised = _RAISED.replace("broker=1", "broker=3")
    edits: dict[str, Edit] = {"broker_3": lambda lines: [*lines, f"{lines[-1][:12]} DEBUG {raised}"]}
    if fenced:
        edits["controller_100"] = lambda lines: [*lines, f"{lines[-1][:12]} DEBUG {more}"]
    found = told(edited(tmp_path, "k11-control", **edits), variant)
    assert found.trace is not None and not found.explained
    lacks = fenced and variant == APACHE
    assert replay(found.trace).verdict is (Verdict.UNKNOWN if lacks else Verdict.VIOLATED)
    assert (
        found.why is not None and "the controller has taken a broker out of the ISR by itself" in found.why
    ) is lacks


def test_a_follower_that_is_fenced_in_the_same_leader_epoch_is_explained() -> None:
    """K14: broker 3 is killed, and comes back; broker 2 shuts down in order. Leader epoch 0 holds all the while."""
    found = told(PRINTED / "k14", FENCES)
    assert found.explained and found.why is None and found.trace is not None
    assert replay(found.trace).verdict is Verdict.HOLDS
    steps = [event.action for event in found.trace.events]
    assert steps.count("controller_fence_follower") == steps.count("leader_learn_later_isr") == 2
    assert {"restart", "leader_ask_expand", "controller_grant_isr"} <= set(steps)
    less = told(PRINTED / "k14")
    assert not less.explained and less.trace is not None and len(less.trace) < len(found.trace)
    assert less.why is not None and "for which this variant has no step" in less.why
    assert replay(less.trace).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    "edits",
    [
        {"controller_100": lambda lines: [each.replace("-> [1, 2],", "-> [1, 3],") for each in lines]},
        {"broker_1": without("Recorded replica 3 log end offset (LEO) position 2")},
    ],
    ids=["fences-another", "let-in-early"],
)
def test_a_fault_that_is_planted_where_a_follower_is_fenced_is_found(tmp_path: Path, edits: dict[str, Edit]) -> None:
    found = told(edited(tmp_path, "k14", **edits), FENCES)
    assert found.trace is not None and found.why is None and not found.explained
    answer = replay(found.trace)
    assert answer.verdict is Verdict.VIOLATED and answer.violated == "explained"


def slower(times: int) -> Edit:
    """Everything takes so many times as long."""

    def edit(lines: list[str]) -> list[str]:
        def at(line: str) -> int:
            return ((int(line[:2]) * 60 + int(line[3:5])) * 60 + int(line[6:8])) * 1000 + int(line[9:12])

        first = at("23:13:32.000")
        found = []
        for each in lines:
            told = (first + (at(each) - first) * times) % 86_400_000
            clock = f"{told // 3_600_000:02}:{told // 60_000 % 60:02}:{told // 1000 % 60:02}.{told % 1000:03}"
            found.append(f"{clock}{each[12:]}")
        return found

    return edit


def test_on_a_machine_that_is_busy_a_line_comes_late(tmp_path: Path) -> None:
    """What a leader prints of a fetch may come long after what came of it."""
    nodes = ("broker_1", "broker_2", "broker_3", "controller_100")
    assert told(edited(tmp_path, "k14", **dict.fromkeys(nodes, slower(30))), FENCES).explained


def test_a_log_that_is_opened_again_hears_no_high_watermark(tmp_path: Path) -> None:
    """The line with which its opening begins is no leader's word: without the other one it would be."""
    late = edited(tmp_path, "k14", broker_3=without("Log loaded for partition"))
    found = told(late, FENCES)
    assert not found.explained


def test_a_search_that_is_given_up_is_no_fault() -> None:
    found = told(PRINTED / "k11", budget=20)
    assert found.trace is not None and found.why is not None and "moves were tried, and no order was found" in found.why
    assert replay(found.trace).verdict is Verdict.UNKNOWN


@pytest.mark.parametrize(
    ("nodes", "why"),
    [
        (NODES[:3], "no controller's log tells of its creation"),
        (("broker-1", "broker-3", "controller-100"), "there is no log of broker 2, which has a replica"),
    ],
)
def test_a_history_without_its_beginning_is_left_out(nodes: tuple[str, ...], why: str) -> None:
    found = told(PRINTED / "k11", nodes=nodes)
    assert (found.trace, found.why) == (None, why)


def test_a_partition_that_began_with_part_of_its_isr_is_left_out(tmp_path: Path) -> None:
    found = told(
        edited(tmp_path, "k11", controller_100=lambda all_: [line.replace("isr=[1, 2, 3]", "isr=[1]") for line in all_])
    )
    assert (found.trace, found.why) == (None, "it was created with a leader or an ISR that is not of all replicas")


def test_several_files_of_one_node_are_read_in_the_order_in_which_they_begin(tmp_path: Path) -> None:
    folder = edited(tmp_path, "k11")
    whole = (folder / "broker-1.log").read_text().splitlines(keepends=True)
    parts = [folder / "broker-1.log", folder / "broker-1.log.1"]
    parts[0].write_text("".join(whole[12:]))
    parts[1].write_text("".join(whole[:12]))
    others = [folder / f"{node}.log" for node in NODES[1:]]
    (found,) = traces_of_logs([*others, *parts], APACHE)
    assert found.trace is not None and replay(found.trace).verdict is Verdict.VIOLATED


LINE = "04:14:30.525 [t] {level} {logger} - {message}"
UNIFIED = "org.apache.kafka.storage.internals.log.UnifiedLog"
LEADS = (
    "[Broker id=1] Leader t-0 with topic id Some(a) starts at leader epoch {epoch} from offset {offset} with partition"
    " epoch 0, high watermark 0, ISR [1], adding replicas []"
)


def line(message: str, logger: str = "state.change.logger", level: str = "INFO") -> str:
    return LINE.format(message=message, logger=logger, level=level)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "FILE: no line of it is one of Kafka's log; "),
        ("hello\nworld", "FILE: no line of it is one of Kafka's log; "),
        (line("Nobody says who"), "FILE: no line says which node printed it; "),
        (
            f"{line('[Broker id=1] a')}\n\n{line('[Broker id=2] b')}",
            "FILE, line 3: it is of node 1 and of node 2; name files of one node each",
        ),
        (line("[Broker id=1] a").replace("04:14", "44:14"), "FILE, line 1: its time is none; "),
        (line(LEADS.format(epoch=0, offset=10**18 * 9 + 10**18 - 1)), "FILE, line 1: 9999999999999999999 is no offset"),
        (line(LEADS.format(epoch=-7, offset=0)), "FILE, line 1: -7 is no epoch of Kafka's; "),
        (line(LEADS.format(epoch=0, offset=0)), "FILE: the broker leads, and Partition says nothing at DEBUG in it; "),
        (
            f"{line('[Broker id=1] a')}\n{line('[UnifiedLog partition=t-0, dir=/d] b', UNIFIED)}",
            "FILE: UnifiedLog says nothing at TRACE in it; set the loggers",
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "server.log"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_server_logs([file])
    assert str(caught.value).startswith(says.replace("FILE", str(file))) and "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"server\.log: cannot be read: No such file or directory; "):
        read_server_logs([tmp_path / "server.log"])


def test_long_lines_are_passed_over_and_many_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = edited(tmp_path, "k11", broker_1=lambda lines: ["x" * 3_000_000, *lines, "[" * 2_000_000])
    assert told(folder).trace is not None
    monkeypatch.setattr(lines_module, "MOST", 20)
    with pytest.raises(BadInput, match=r"line \d+: the files say more than 20 things of partitions; "):
        told(folder)


def test_spoilt_logs_are_read_or_refused_in_one_line(tmp_path: Path) -> None:
    """Numbers, brackets and whole lines that are others': nothing but BadInput, and nothing takes long."""
    source = {node: (PRINTED / "k11-control" / f"{node}.log").read_text().splitlines() for node in NODES}
    said = []
    for seed in range(60):
        draw = random.Random(seed)
        node = draw.choice(NODES)
        lines = list(source[node])
        for _ in range(draw.randint(1, 4)):
            at = draw.randrange(len(lines))
            match draw.randrange(4):
                case 0:
                    found = list(re.finditer(r"\d+", lines[at][13:]))
                    number = draw.choice(found)
                    new = str(draw.choice([0, 1, 2, 3, 7, 99, 2**31, 2**63, 10**30]))
                    lines[at] = lines[at][: 13 + number.start()] + new + lines[at][13 + number.end() :]
                case 1:
                    lines[at] = lines[at].replace(draw.choice("[](),=:"), draw.choice(["", "[", "]", "\x00"]), 1)
                case 2:
                    lines.insert(at, lines[draw.randrange(len(lines))])
                case _:
                    del lines[at]
                    lines = lines or ["nothing"]
        for each, text in source.items():
            written = lines if each == node else text
            (tmp_path / f"{each}.log").write_text("".join(f"{line}\n" for line in written))
        try:
            for found_ in traces_of_logs([tmp_path / f"{each}.log" for each in NODES], APACHE, budget=300):
                if found_.trace is not None:
                    replay(found_.trace)
        except BadInput as refused:
            said.append(f"seed {seed}: {refused}")
    assert said and not [each for each in said if "\n" in each]
