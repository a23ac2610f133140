"""What three real controllers printed of their own log, as it is, laid out anew, and spoilt: it becomes a trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fencepost.conformance.protocols.snapshots.kafka_text import VARIANT, printed
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict
from fencepost.traces.kafka.server_log.quorum import trace_of_quorum
from fencepost.traces.kafka.server_log.quorum_lines import QUORUM_LOGGERS, read_quorum_logs
from fencepost.traces.kafka.server_log.traces import Told
from fencepost.traces.replay import replay
from fencepost.traces.stepper import stepper_for

from .test_printed import PRINTED, Edit, as_log4j, behind, edited, later, line, without

NODES = tuple(f"controller-{node}" for node in (1, 2, 3))


def told(folder: Path, nodes: tuple[str, ...] = NODES, **options: int) -> Told:
    return trace_of_quorum([folder / f"{node}.log" for node in nodes], printed.traced(VARIANT), **options)


def judged(found: Told) -> tuple[Verdict, str | None]:
    """What a replay of the trace says, and of which step."""
    assert found.trace is not None
    stepper = stepper_for(printed.traced(VARIANT), found.trace.header.constants, often=False)
    answer = replay(found.trace, stepper=stepper)
    return answer.verdict, None if answer.event is None else answer.event.action


def test_a_contested_election_and_two_crashes_are_explained_line_by_line() -> None:
    """Node 2 is elected, and node 1 at once in the next epoch; two processes are killed, one while it leads."""
    found = told(PRINTED / "quorum")
    assert found.explained and found.why is None and found.trace is not None
    assert (found.trace.header.protocol, found.trace.header.variant) == ("kafka-quorum", VARIANT)
    steps = [event.action for event in found.trace.events]
    assert [steps.count(each) for each in ("stand", "take_office", "resume", "resign", "follower_truncate")] == [
        4,
        4,
        2,
        1,
        1,
    ]
    assert {"hear_of_epoch", "give_vote", "begin_epoch", "raise_high_watermark", "generate_snapshot"} <= set(steps)
    assert judged(found) == (Verdict.HOLDS, None)
    cells = {cell.partition("[")[0] for event in found.trace.events for cell in event.observed}
    assert cells == {"leader_epoch", "leader", "voted", "leo", "hw", "snapshot_size"}


@pytest.mark.parametrize(
    "edits",
    [
        dict.fromkeys(("controller_1", "controller_2", "controller_3"), as_log4j),
        {"controller_1": later(3), "controller_2": later(-2)},
        {"controller_3": later(20)},
    ],
    ids=["log4j", "clocks", "midnight"],
)
def test_neither_layout_nor_clocks_decide(tmp_path: Path, edits: dict[str, Edit]) -> None:
    found = told(edited(tmp_path, "quorum", **edits))
    assert found.explained and judged(found) == (Verdict.HOLDS, None)


def in_epoch(old: int, new: int) -> Edit:
    """Whoever stands and leads does so in another epoch."""

    def edit(lines: list[str]) -> list[str]:
        wanted = re.compile(r"Completed transition to (?:CandidateState|Leader)\(")
        return [each.replace(f"epoch={old},", f"epoch={new},") if wanted.search(each) else each for each in lines]

    return edit


_COMMITS = (
    "org.apache.kafka.raft.LeaderState - [RaftManager id=2] High watermark set to"
    " LogOffsetMetadata(offset=1, metadata=a)"
)


@pytest.mark.parametrize(
    ("edits", "step"),
    [
        ({"controller_1": in_epoch(2, 1)}, "stand"),
        ({"controller_2": without("Completed transition to CandidateState")}, "hear_of_epoch"),
        ({"controller_2": without("Truncating to offset")}, None),
        ({"controller_2": behind("Appended message set with last offset: 0,", _COMMITS)}, "raise_high_watermark"),
    ],
    ids=["two-leaders-of-an-epoch", "never-stood", "keeps-what-differs", "commits-alone"],
)
def test_a_fault_that_is_planted_in_the_log_is_found(tmp_path: Path, edits: dict[str, Edit], step: str | None) -> None:
    found = told(edited(tmp_path, "quorum", **edits))
    assert found.trace is not None and not found.explained and found.why is None
    verdict, refused = judged(found)
    assert verdict is Verdict.VIOLATED and (step is None or refused == step)


def test_what_no_step_is_read_of_ends_the_story_and_is_no_fault(tmp_path: Path) -> None:
    more = (
        "org.apache.kafka.storage.internals.log.UnifiedLog - [UnifiedLog partition=__cluster_metadata-0, dir=/d]"
        " Incremented log start offset to 13 due to snapshot generated"
    )
    found = told(edited(tmp_path, "quorum", controller_2=behind("Successfully wrote snapshot", more)))
    assert found.explained and found.trace is not None and found.why == "node 2: its log begins elsewhere"
    assert 20 < len(found.trace) < 117 and judged(found) == (Verdict.HOLDS, None)


def test_a_search_that_is_given_up_is_no_fault() -> None:
    found = told(PRINTED / "quorum", budget=20)
    assert found.why is not None and "moves were tried, and no order was found" in found.why
    assert judged(found) == (Verdict.HOLDS, None)


def test_a_history_without_its_beginning_or_without_a_voter_is_left_out(tmp_path: Path) -> None:
    assert told(PRINTED / "quorum", NODES[:2]).why == "there is no log of node 3, which votes"
    folder = edited(tmp_path, "quorum", controller_1=lambda lines: lines[len(lines) // 2 :])
    assert told(folder).why == "the log of node 1 does not begin where it was first started"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "FILE: no line of it is a quorum node's; "),
        (line("[RaftManager id=1] Completed transition to Leader(a) from b", "a.QuorumState"), "FILE, line 1: Leader"),
        (
            line("[RaftManager id=1] Completed transition to UnattachedState(epoch=0) from null", "a.QuorumState"),
            "FILE: UnifiedLog says nothing at TRACE in it; ",
        ),
        (
            f"{line('[RaftManager id=1] a', 'a.b')}\n{line('[RaftManager id=2] a', 'a.b')}",
            "FILE, line 2: it is of node 1 and of node 2; ",
        ),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, text: str, says: str) -> None:
    file = tmp_path / "server.log"
    file.write_text(text)
    with pytest.raises(BadInput) as caught:
        read_quorum_logs([file])
    assert str(caught.value).startswith(says.replace("FILE", str(file))) and "\n" not in str(caught.value)


def test_the_loggers_are_those_that_the_page_tells_to_turn_on() -> None:
    page = (Path(__file__).resolve().parents[3] / "docs" / "mining.md").read_text(encoding="utf-8")
    for name, level in QUORUM_LOGGERS.items():
        assert re.search(rf"name: {re.escape(name)}\n +level: {level}\n", page), name
