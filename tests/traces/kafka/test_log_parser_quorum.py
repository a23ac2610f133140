"""What three real controllers printed of their own log, as it is, laid out anew, and spoilt: it becomes a trace."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.snapshots.kafka_spec import VARIANT, printed
from fencepost.traces.kafka.server_log.quorum import trace_of_quorum
from fencepost.traces.kafka.server_log.quorum_lines import read_quorum_logs
from fencepost.traces.kafka.server_log.traces import LogReport
from fencepost.traces.replay import replay
from fencepost.traces.stepper import stepper_for

from .test_log_parser import PRINTED, Edit, as_log4j, behind, edited, later, line, without

NODES = tuple(f"controller-{node}" for node in (1, 2, 3))


def told(folder: Path, nodes: tuple[str, ...] = NODES, **options: int) -> LogReport:
    return trace_of_quorum([folder / f"{node}.log" for node in nodes], printed.traced(VARIANT), **options)


def judged(found: LogReport) -> tuple[Verdict, str | None]:
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


def test_a_snapshot_that_a_late_voter_fetches_is_explained_line_by_line() -> None:
    """Node 3 starts when the logs of the others begin at 50, the end of their sixth snapshot, and is killed later."""
    found = told(PRINTED / "late-voter")
    assert found.explained and found.why is None and found.trace is not None
    events = found.trace.events
    steps = [event.action for event in events]
    cleans = ("generate_snapshot", "delete_before_snapshot", "follower_start_over", "fetch_snapshot", "resume")
    assert [steps.count(each) for each in cleans] == [13, 10, 1, 1, 1]
    assert judged(found) == (Verdict.HOLDS, None)
    installed = next(event for event in events if event.action == "fetch_snapshot")
    at = found.trace.header.source["offsets"]
    assert isinstance(at, dict) and at["5"] == 49
    assert installed.observed == {"lbo[2]": 6, "leo[2]": 6, "hw[2]": 6, "snapshot_size[2][5]": 1}
    # The snapshot is loaded, and after the restart the one that node 3 has written since.
    loads = [event.observed for event in events if event.action is None and "hw[2]" not in event.observed]
    assert {"snapshot_size[2][5]": 1} in loads and {"snapshot_size[2][6]": 1} in loads


CLIENT = "org.apache.kafka.raft.KafkaRaftClient - [RaftManager id=3] "
LOADER = "org.apache.kafka.image.loader.MetadataLoader - [MetadataLoader id=3] "
ASKS = CLIENT + "Fetching snapshot OffsetAndEpoch[offset={}, epoch=1] from Fetch response from leader 2"
INSTALLS = CLIENT + "Fully truncated the log at (a, 1) after downloading snapshot OffsetAndEpoch[offset={}, epoch=1]"
FOLLOWS = "Completed transition to FollowerState"
PROSPECTIVE = (
    "org.apache.kafka.raft.QuorumState - [RaftManager id=3] Completed transition to ProspectiveState(epoch=1, "
    "leader=OptionalInt[2], votedKey=Optional.empty) from FollowerState(epoch=1)"
)
AGAIN = (
    "org.apache.kafka.raft.QuorumState - [RaftManager id=3] Completed transition to FollowerState(epoch=1, leader=2, "
    "votedKey=Optional.empty) from ProspectiveState(epoch=1)"
)


@pytest.mark.parametrize(
    "more",
    [
        (ASKS.format(41), CLIENT + "Leader doesn't know about snapshot id Optional[a], returned error 98 and b"),
        (ASKS.format(50),),
        (ASKS.format(50), PROSPECTIVE, AGAIN),
    ],
    ids=["gone-at-the-leader", "asked-twice", "timed-out"],
)
def test_a_snapshot_that_is_given_up_first_is_explained_too(tmp_path: Path, more: tuple[str, ...]) -> None:
    found = told(edited(tmp_path, "late-voter", controller_3=behind(FOLLOWS, *more)))
    assert found.explained and found.why is None and judged(found) == (Verdict.HOLDS, None)
    assert found.trace is not None
    steps = [event.action for event in found.trace.events]
    assert steps.count("follower_start_over") == 2
    given_up = [each for each in ("rediscover_at", "give_up_snapshot") if each in steps]
    assert len(given_up) == ("Leader doesn't" in more[-1]) + (PROSPECTIVE in more)


@pytest.mark.parametrize("mark", [FOLLOWS, "Fully truncated"], ids=["has-nothing", "gets-records"])
def test_it_has_no_snapshot_already_that_it_lacks_or_is_not_sent_to(tmp_path: Path, mark: str) -> None:
    has_it = (
        CLIENT + "Leader 2 returned a snapshot OffsetAndEpoch[offset=50, epoch=1] in the FETCH response which is"
        " already stored"
    )
    found = told(edited(tmp_path, "late-voter", controller_3=behind(mark, has_it)))
    assert (
        found.trace is not None and not found.explained and judged(found) == (Verdict.VIOLATED, "follower_start_over")
    )


def cleans(node: int, start: int) -> str:
    return (
        "org.apache.kafka.storage.internals.log.UnifiedLog - [UnifiedLog partition=__cluster_metadata-0, "
        f"dir=/d/controller-{node}] Incremented log start offset to {start} due to snapshot generated"
    )


def published(offset: int) -> str:
    return LOADER + (
        f"handleCommit: publishing new image with provenance MetadataProvenance[lastContainedOffset={offset}, "
        "lastContainedEpoch=1, lastContainedLogTimeMs=1, isOffsetBatchAligned=true]."
    )


@pytest.mark.parametrize(
    ("edits", "step"),
    [
        ({"controller_3": without("Fetching snapshot")}, "fetch_snapshot"),
        ({"controller_2": without("Successfully wrote snapshot")}, "delete_before_snapshot"),
        ({"controller_1": behind("Successfully wrote snapshot", cleans(1, 23))}, "delete_before_snapshot"),
        ({"controller_3": behind("Fully truncated", published(55))}, None),
        ({"controller_3": behind(FOLLOWS, LOADER + f"handleLoadSnapshot({41:020}-{1:010}): incrementing a")}, None),
        ({"controller_3": lambda lines: [each.replace("offset=50", "offset=41") for each in lines]}, None),
    ],
    ids=[
        "not-asked-for",
        "none-made",
        "begins-where-none-is",
        "published-too-soon",
        "loads-what-is-not-there",
        "old-one",
    ],
)
def test_a_fault_of_snapshots_is_found(tmp_path: Path, edits: dict[str, Edit], step: str | None) -> None:
    found = told(edited(tmp_path, "late-voter", **edits))
    assert found.trace is not None and not found.explained and found.why is None
    verdict, refused = judged(found)
    assert verdict is Verdict.VIOLATED and refused == step


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
    at = "org.apache.kafka.storage.internals.log.UnifiedLog - [UnifiedLog partition=__cluster_metadata-0, dir=/d]"
    for each in ("Incremented log start offset to 13 due to segment deletion", "Truncate and start at offset 13, a"):
        edit = behind("Successfully wrote snapshot", f"{at} {each}")
        found = told(edited(tmp_path / each[:8], "quorum", controller_2=edit))
        assert found.explained and found.trace is not None and found.why == "node 2: its log begins elsewhere"
        assert 20 < len(found.trace) < 117 and judged(found) == (Verdict.UNKNOWN, None)
    # What was fetched when the process was killed is no more than that.
    found = told(edited(tmp_path, "late-voter", controller_3=without("Fully truncated")))
    assert found.explained and found.why == "node 3: its log begins elsewhere"


def test_a_search_that_is_given_up_is_no_fault() -> None:
    found = told(PRINTED / "quorum", budget=20)
    assert found.why is not None and "moves were tried, and no order was found" in found.why
    assert judged(found) == (Verdict.UNKNOWN, None)


def test_a_history_without_its_beginning_or_without_a_voter_is_left_out(tmp_path: Path) -> None:
    assert told(PRINTED / "quorum", NODES[:2]).why == "there is no log of node 3, which votes"
    folder = edited(tmp_path, "quorum", controller_1=lambda lines: lines[len(lines) // 2 :])
    assert told(folder).why == "the log of node 1 does not begin where it was first started"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("", "FILE: no line of it is one of Kafka's log; "),
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
