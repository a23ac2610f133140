"""Each check on log lines: a planted fault that it finds, and clean cases that look alike."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.traces.timeline.checkers import TimelineReport, check_timeline
from fencepost.traces.timeline.contradiction import Contradiction
from fencepost.traces.timeline.event_kind import EventKind
from fencepost.traces.timeline.observation import Observation
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

STATE = "state.change.logger"
PARTITION = "kafka.cluster.Partition"
LOG = "kafka.log.UnifiedLog"
MANAGER = "kafka.log.LogManager"
FETCHER = "kafka.server.ReplicaFetcherThread"
TOPIC = "b8tRS7h4TJ2Vt43Dp85v2A"
OTHER_TOPIC = "q3kYhX2bQ1yJp0Zt9mWv7g"


def line(second: float, message: str, logger: str, level: str = "INFO") -> str:
    return f"[2026-03-04 10:{int(second) // 60:02}:{second % 60:06.3f}] {level} {message} ({logger})".replace(
        ".", ",", 1
    )


def leader(second: float, node: int, epoch: int, end: int, hw: int = 0, isr: str = "1,2", **more: object) -> str:
    topic_id, version = more.get("topic_id", TOPIC), more.get("version", 2 * epoch)
    message = (
        f"[Broker id={node}] Leader a-0 with topic id Some({topic_id}) starts at leader epoch {epoch} from offset {end}"
        f" with partition epoch {version}, high watermark {hw}, ISR [{isr}], adding replicas [] and removing replicas"
        f" []. Previous leader epoch was {more.get('previous', epoch - 1)}."
    )
    return line(second, message, STATE)


def follower(second: float, node: int, epoch: int, end: int, hw: int, leads: int, previous: int = -1) -> str:
    message = (
        f"[Broker id={node}] Follower a-0 starts at leader epoch {epoch} from offset {end} with partition epoch"
        f" {2 * epoch} and high watermark {hw}. Current leader is {leads}. Previous leader epoch was {previous}."
    )
    return line(second, message, STATE)


def shrink(second: float, node: int, hw: int, end: int) -> str:
    leader = f"Leader: (highWatermark: {hw}, endOffset: {end})."
    return line(second, f"[Partition a-0 broker={node}] Shrinking ISR from 1,2 to {node}. {leader}", PARTITION)


def truncate(second: float, offset: int) -> str:
    return line(second, f"[UnifiedLog partition=a-0, dir=/data] Truncating to offset {offset}", LOG)


def loaded(second: float, node: int, hw: int) -> str:
    return line(
        second,
        f"[Partition a-0 broker={node}] Log loaded for partition a-0 with initial high watermark {hw}",
        PARTITION,
    )


def created(second: float) -> str:
    return line(second, "Created log for partition a-0 in /data/a-0 with properties {}", MANAGER)


def deleted(second: float) -> str:
    message = "Log for partition a-0 is renamed to /data/a-0.77-delete and is scheduled for deletion"
    return line(second, message, MANAGER)


def report(tmp_path: Path, **files: list[str]) -> TimelineReport:
    """The result for these files, by name: ``broker_1=[...]``."""
    paths = []
    for name, lines in files.items():
        path = tmp_path / f"{name}.log"
        path.write_text("".join(f"{each}\n" for each in lines))
        paths.append(path)
    read = read_sources(paths)
    assert not read.problems
    return check_timeline(Timeline.of(read.observations))


def of_check(found: TimelineReport, check: str) -> list[Contradiction]:
    return [each for each in found.contradictions if each.check == check]


# -- truncation -----------------------------------------------------------------------------------------------------

TRUNCATION = "truncation_below_high_watermark"


def test_truncation_below_own_high_watermark_is_violated(tmp_path: Path) -> None:
    lines = [leader(0, 1, 0, 0), shrink(60, 1, 50, 70), follower(90, 1, 1, 70, 60, 2, 0), truncate(91, 40)]
    (found,) = of_check(report(tmp_path, broker_1=lines), TRUNCATION)
    assert (found.verdict, found.lost) == ("violated", (40, 59))
    assert "broker 1 truncates a-0 to offset 40, below its high watermark 60" in found.message


def test_truncation_line_with_its_high_watermark_is_enough(tmp_path: Path) -> None:
    warning = (
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating a-0 to offset 40 below high watermark 55"
    )
    found = report(tmp_path, broker_1=[line(1, warning, FETCHER, "WARN")])
    assert found.verdict == "violated" and found.contradictions[0].lost == (40, 54)


@pytest.mark.parametrize(
    "lines",
    [
        [leader(0, 1, 0, 0), shrink(60, 1, 50, 70), follower(90, 1, 1, 70, 50, 2, 0), truncate(91, 50)],
        # The disk was replaced: the log starts again, and its deletion is in no line.
        [follower(0, 1, 0, 80, 80, 2), loaded(60, 1, 0), follower(61, 1, 1, 30, 0, 2), truncate(62, 20)],
        [follower(0, 1, 0, 80, 80, 2), created(60), follower(61, 1, 1, 30, 0, 2), truncate(62, 20)],
        [follower(0, 1, 0, 80, 80, 2), loaded(60, 1, 0), truncate(62, 20)],
        # Recovery after a power failure cut the log before it was a follower again.
        [
            follower(0, 1, 0, 80, 80, 2),
            line(
                60, "[LogLoader partition=a-0, dir=/data] Corruption found in segment 0, truncating to offset 70", LOG
            ),
            follower(61, 1, 1, 70, 60, 2),
            truncate(62, 65),
        ],
        # All records before the leader's log start were deleted.
        [
            follower(0, 1, 0, 80, 80, 2),
            line(
                1,
                "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Reset fetch offset for partition a-0 from 80 to"
                " current leader's start offset 200",
                FETCHER,
                "WARN",
            ),
            truncate(2, 60),
        ],
    ],
    ids=["to-watermark", "disk-replaced", "log-created", "end-unknown", "recovered", "log-start-moved"],
)
def test_truncation_without_loss_holds(tmp_path: Path, lines: list[str]) -> None:
    assert not of_check(report(tmp_path, broker_1=lines), TRUNCATION)


def test_truncation_line_with_the_leaders_watermark_is_no_proof(tmp_path: Path) -> None:
    """In 2.7 and 2.8 the warning names the high watermark of the answer that also made the follower truncate."""
    warning = "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Truncating a-0 to offset 5 below high watermark 6"
    warned = line(3, warning, FETCHER, "WARN")
    assert not of_check(report(tmp_path, broker_1=[follower(1, 1, 1, 7, 5, 2), warned]), TRUNCATION)
    (found,) = of_check(report(tmp_path, broker_1=[follower(1, 1, 1, 7, 6, 2), warned]), TRUNCATION)
    assert (found.verdict, found.lost) == ("violated", (5, 5))


def test_follower_watermark_of_a_diverging_log_is_no_proof(tmp_path: Path) -> None:
    """Since 2.7 a follower takes over its leader's high watermark before it truncates."""
    watermark = line(2, "[UnifiedLog partition=a-0, dir=/data] Setting high watermark (offset=6, segment=[-1:-1])", LOG)
    diverging = [follower(1, 1, 1, 7, 5, 2), watermark, truncate(3, 5)]
    assert not of_check(report(tmp_path, broker_1=diverging), TRUNCATION)
    append = (
        "[UnifiedLog partition=a-0, dir=/data] Appended message set with last offset: 7, first offset: 7,"
        " next offset: 8, and messages: MemoryRecords(size=70)"
    )
    agreeing = [diverging[0], line(1.5, append, LOG, "TRACE"), watermark, truncate(3, 5)]
    assert of_check(report(tmp_path, broker_1=agreeing), TRUNCATION)


def test_truncation_compares_nothing_across_files_of_one_time(tmp_path: Path) -> None:
    """Two files of a node have no order within one millisecond."""
    roles, server = [leader(0, 1, 0, 0), follower(5, 1, 1, 70, 60, 2, 0)], [shrink(1, 1, 10, 70), truncate(5, 40)]
    assert not of_check(report(tmp_path, state_change=roles, server=server), TRUNCATION)
    server[1] = truncate(5.001, 40)
    assert of_check(report(tmp_path, state_change=roles, server=server), TRUNCATION)


# -- start of a leader ----------------------------------------------------------------------------------------------

START = "leader_starts_below_high_watermark"


def test_leader_start_below_reported_high_watermark_is_violated(tmp_path: Path) -> None:
    found = report(tmp_path, broker_1=[leader(0, 1, 0, 0), shrink(60, 1, 50, 70)], broker_2=[leader(90, 2, 1, 40)])
    (start,) = of_check(found, START)
    assert (start.verdict, start.lost) == ("violated", (40, 49))


def test_leader_start_is_ordered_by_epochs_if_clocks_disagree(tmp_path: Path) -> None:
    """Broker 2's clock is a minute behind: its start seems to come before the report, which its epoch precedes."""
    one = [leader(0, 1, 0, 0), shrink(60, 1, 50, 70), follower(95, 1, 1, 70, 50, 2, 0)]
    (found,) = of_check(report(tmp_path, broker_1=one, broker_2=[leader(30, 2, 1, 40)]), START)
    assert found.lost == (40, 49)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ([leader(0, 1, 0, 0), shrink(60, 1, 50, 70)], [leader(90, 2, 1, 50)]),
        # The high watermark belongs to a later epoch, whatever the clocks say.
        ([leader(0, 1, 0, 0), leader(40, 1, 2, 60), shrink(60, 1, 70, 70)], [leader(90, 2, 1, 50)]),
        # A restart: the high watermark in the line may stem from the epoch itself.
        ([follower(10, 1, 1, 90, 90, 2)], [leader(50, 2, 1, 50)]),
        # The line that made broker 1 the leader of a later epoch is missing.
        ([follower(0, 1, 0, 10, 10, 2), shrink(60, 1, 70, 70)], [leader(90, 2, 1, 50)]),
        # No later line bounds the epoch of the report, and the clocks do not agree.
        ([leader(0, 1, 0, 0), shrink(95, 1, 60, 70)], [leader(90, 2, 1, 50)]),
        # The topic was deleted and created again.
        (
            [leader(0, 1, 0, 0), shrink(60, 1, 50, 70), deleted(70), leader(80, 1, 0, 0, topic_id=OTHER_TOPIC)],
            [leader(90, 2, 1, 5, topic_id=OTHER_TOPIC)],
        ),
        # Another topic of the name, whose creation and id are in no line of broker 2.
        ([follower(0, 1, 0, 80, 80, 2), follower(50, 1, 0, 0, 0, 2)], [leader(90, 2, 1, 5)]),
    ],
    ids=["at-watermark", "later-epoch", "restart", "role-missing", "clock-later", "recreated", "recreated-silently"],
)
def test_leader_start_without_proof_holds(tmp_path: Path, one: list[str], two: list[str]) -> None:
    assert not of_check(report(tmp_path, broker_1=one, broker_2=two), START)


def test_loss_is_reported_once_with_its_cause(tmp_path: Path) -> None:
    """The new leader lacks records, the old one truncates them, later leaders lack them too: one loss, one cause."""
    one = [leader(0, 1, 0, 0, version=0), shrink(60, 1, 50, 70), follower(95, 1, 1, 70, 50, 2, 0), truncate(96, 40)]
    isr = line(61, "[Partition a-0 broker=1] ISR updated to 1 and version updated to 1", PARTITION)
    two = [leader(90, 2, 1, 40, isr="2", version=2), leader(99, 2, 2, 44, isr="2", version=3)]
    (found,) = report(tmp_path, broker_1=[*one[:2], isr, *one[2:]], broker_2=two).contradictions
    assert found.check == START and found.lost == (40, 49)
    assert "the cause: broker 2 was elected uncleanly in leader epoch 1" in found.message
    assert "broker 1 truncates to offset 40" in found.message and found.cause is not None


def test_leader_end_below_high_watermark_is_violated(tmp_path: Path) -> None:
    refused = (
        "[ReplicaFetcher replicaId=1, leaderId=2, fetcherId=0] Exiting because log truncation is not allowed for"
        " partition a-0, current leader's latest offset 40 is less than replica's latest offset 70"
    )
    lines = [leader(0, 1, 0, 0), shrink(60, 1, 50, 70), line(90, refused, FETCHER, "FATAL")]
    (found,) = report(tmp_path, broker_1=lines).contradictions
    assert (found.check, found.verdict, found.lost) == ("leader_ends_below_high_watermark", "violated", (40, 49))
    (alone,) = report(tmp_path, broker_1=lines[2:]).contradictions
    assert alone.verdict == "unknown"
    roles = [leader(0, 1, 0, 0), follower(90, 1, 1, 70, 60, 2, 0)]
    (unordered,) = report(tmp_path, roles=roles, server=lines[2:]).contradictions
    assert unordered.verdict == "unknown"


# -- leaders and votes ----------------------------------------------------------------------------------------------

LEADERS = "two_leaders_in_one_epoch"


def test_two_leaders_in_one_epoch_are_violated(tmp_path: Path) -> None:
    (found,) = report(tmp_path, broker_1=[leader(0, 1, 3, 9)], broker_2=[leader(1, 2, 3, 9)]).contradictions
    assert (found.check, found.verdict) == (LEADERS, "violated")
    assert "leader epoch 3 of a-0 has several leaders: 1" in found.message


def test_two_leaders_of_two_topics_hold(tmp_path: Path) -> None:
    one = [leader(0, 1, 0, 0), deleted(50), leader(60, 1, 0, 0, topic_id=OTHER_TOPIC)]
    two = [follower(1, 2, 0, 0, 0, 1), deleted(51), leader(70, 2, 1, 0, topic_id=OTHER_TOPIC)]
    assert not report(tmp_path, broker_1=one, broker_2=two).contradictions


def old_leader(second: float, node: int, epoch: int) -> str:
    message = f"a-0 starts at Leader Epoch {epoch} from offset 0. Previous Leader Epoch was: {epoch - 1}"
    return line(second, f"[Partition a-0 broker={node}] {message}", PARTITION)


def test_two_leaders_without_topic_id_may_be_two_topics(tmp_path: Path) -> None:
    (found,) = report(tmp_path, broker_1=[old_leader(0, 1, 0)], broker_2=[old_leader(9, 2, 0)]).contradictions
    assert found.verdict == "unknown" and "created again" in found.message
    (found,) = report(tmp_path, broker_1=[old_leader(0, 1, 4)], broker_2=[old_leader(9, 2, 4)]).contradictions
    assert found.verdict == "violated"


def test_topic_created_again_within_seconds_is_not_violated(tmp_path: Path) -> None:
    """The lines of one topic are from broker 1, those of the next one from broker 2: no file has both."""
    one, two = [old_leader(0, 1, 1)], [old_leader(9, 2, 1)]
    (found,) = report(tmp_path, broker_1=one, broker_2=two).contradictions
    assert found.verdict == "unknown" and "created again" in found.message
    started = [old_leader(0.4, 3, 0)]
    (found,) = report(tmp_path, broker_1=one, broker_2=[old_leader(0.8, 2, 1)], broker_3=started).contradictions
    assert found.verdict == "unknown"


@pytest.mark.parametrize("late", [0, 1, 2])
def test_third_leader_hides_no_two_leaders_in_one_epoch(tmp_path: Path, late: int) -> None:
    seconds = [500.0 if broker == late else 0.1 * broker for broker in range(3)]
    files = {f"broker_{broker}": [old_leader(seconds[broker], broker, 4)] for broker in range(3)}
    (found,) = report(tmp_path, **files).contradictions
    assert (found.check, found.verdict, len(found.evidence)) == (LEADERS, "violated", 3)


def test_topic_id_of_one_node_says_nothing_of_another(tmp_path: Path) -> None:
    (found,) = report(tmp_path, broker_1=[leader(0, 1, 0, 0)], broker_2=[old_leader(9, 2, 0)]).contradictions
    assert (found.check, found.verdict) == (LEADERS, "unknown")


def voted(second: float, epoch: int, candidate: int) -> str:
    state = f"VotedState(epoch={epoch}, votedId={candidate}, voters=[1, 2, 3], electionTimeoutMs=900)"
    message = (
        f"[RaftManager id=1] Completed transition to {state} from UnattachedState(epoch={epoch}, voters=[1, 2, 3])"
    )
    return line(second, message, "org.apache.kafka.raft.QuorumState")


def test_two_votes_in_one_epoch_are_violated(tmp_path: Path) -> None:
    (found,) = report(tmp_path, node=[voted(0, 5, 2), voted(1, 5, 3)]).contradictions
    assert found.check == "two_votes_in_one_epoch" and "node 1 votes in epoch 5 for node 2" in found.message
    assert not report(tmp_path, node=[voted(0, 5, 2), voted(1, 6, 3), voted(2, 6, 3)]).contradictions


# -- acknowledged records -------------------------------------------------------------------------------------------

ACKNOWLEDGED = "acknowledged_record_below_later_leader"
TEN = 1772618400000
"""10:00 UTC on the day of the lines."""


def produced(second: float, offset: int, **more: object) -> Observation:
    fields: dict[str, object] = {"outcome": "ok", "acks": -1, "time": TEN + round(second * 1000), **more}
    return Observation(
        kind=EventKind.PRODUCE,
        partition="a-0",
        file="history.jsonl",
        line=offset + 1,
        sequence=offset,
        client="p1",
        offset=offset,
        **fields,  # type: ignore[arg-type]
    )


def acknowledged(tmp_path: Path, history: list[Observation], **files: list[str]) -> list[Contradiction]:
    paths = []
    for name, lines in files.items():
        (tmp_path / f"{name}.log").write_text("".join(f"{each}\n" for each in lines))
        paths.append(tmp_path / f"{name}.log")
    timeline = Timeline.of([*read_sources(paths).observations, *history])
    return of_check(check_timeline(timeline), ACKNOWLEDGED)


BROKERS = {"broker_1": [leader(0, 1, 0, 0)], "broker_2": [leader(30, 2, 1, 3)]}


def test_acknowledged_record_below_later_leader_is_violated(tmp_path: Path) -> None:
    history = [produced(offset + 1, offset) for offset in range(5)]
    (found,) = acknowledged(tmp_path, history, **BROKERS)
    assert (found.verdict, found.lost) == ("violated", (3, 4))
    assert "the acknowledged records 3, 4" in found.message


@pytest.mark.parametrize(
    "history",
    [
        [produced(offset + 1, offset) for offset in range(3)],
        [produced(1, 0), produced(31, 3), produced(32, 4)],
        [produced(1, 0), produced(29.5, 4)],
        [produced(1, 4, acks=1)],
        [produced(1, 4, outcome="unknown")],
        [produced(1, 4, leader_epoch=1)],
    ],
    ids=["before", "after", "within-skew", "acks-1", "no-answer", "later-epoch"],
)
def test_acknowledged_record_without_loss_holds(tmp_path: Path, history: list[Observation]) -> None:
    assert not acknowledged(tmp_path, history, **BROKERS)


def test_acknowledged_record_is_ordered_by_epoch(tmp_path: Path) -> None:
    (found,) = acknowledged(tmp_path, [produced(500, 4, leader_epoch=0)], **BROKERS)
    assert found.verdict == "violated"


def test_acknowledged_record_is_unknown_if_acks_are_unknown(tmp_path: Path) -> None:
    (found,) = acknowledged(tmp_path, [produced(1, 0), produced(2, 4, acks=None)], **BROKERS)
    assert found.verdict == "unknown" and "acks=all" in found.message


def test_acknowledgement_is_unknown_if_the_zone_may_explain_it(tmp_path: Path) -> None:
    """The logs name no zone: read as UTC+1, all acknowledgements follow the second leader."""
    history = [produced(40, 3), produced(41, 4)]
    files = {"broker_1": [leader(0, 1, 0, 0)], "broker_2": [leader(600, 2, 1, 3)]}
    (found,) = acknowledged(tmp_path, history, **files)
    assert found.verdict == "unknown" and "no time zone" in found.message


# -- unclean elections ----------------------------------------------------------------------------------------------


def test_unclean_election_without_visible_loss_is_unknown(tmp_path: Path) -> None:
    message = (
        "[Broker id=2] The topic partition a-0 was marked as RECOVERING. Marking the topic partition as RECOVERED."
    )
    found = report(tmp_path, broker_2=[leader(0, 2, 1, 40), line(0.1, message, STATE)])
    assert found.verdict == "unknown" and found.contradictions[0].check == "unclean_election"
    assert report(tmp_path, broker_2=[leader(0, 2, 1, 40), leader(5, 2, 2, 41)]).verdict == "holds"


def test_election_from_eligible_leader_replicas_is_clean(tmp_path: Path) -> None:
    changes = (
        "isr: [1] -> [], leader: 1 -> -1, leaderEpoch: 0 -> 1, elr: [2] -> [2, 1], partitionEpoch: 3 -> 4",
        "isr: [] -> [2], leader: -1 -> 2, leaderEpoch: 1 -> 2, elr: [2, 1] -> [1], partitionEpoch: 4 -> 5",
    )
    lines = [
        line(
            second,
            f"[QuorumController id=9] partition change for a-0 with topic ID {TOPIC}: {change}",
            "org.apache.kafka.controller.ReplicationControlManager",
            "DEBUG",
        )
        for second, change in enumerate(changes)
    ]
    assert not report(tmp_path, controller=lines).contradictions


def test_leader_outside_the_last_isr_is_an_unclean_election(tmp_path: Path) -> None:
    """No line calls it unclean: consecutive partition epochs prove it."""
    updated = line(1, "[Partition a-0 broker=1] ISR updated to 1 and version updated to 4", PARTITION)
    found = report(tmp_path, broker_1=[leader(0, 1, 0, 0), updated], broker_2=[leader(9, 2, 1, 0, isr="2", version=5)])
    assert [each.check for each in found.contradictions] == ["unclean_election"]
    later = [leader(9, 2, 1, 0, isr="2", version=6)]
    assert not report(tmp_path, broker_1=[leader(0, 1, 0, 0), updated], broker_2=later).contradictions


def test_controller_epochs_are_no_leader_epochs(tmp_path: Path) -> None:
    elected = "[Controller id={0}] {0} successfully elected as the controller. Epoch incremented to 3"
    controller = "kafka.controller.KafkaController"
    one = [leader(0, 1, 3, 9), line(1, elected.format(1), controller)]
    two = [follower(2, 2, 3, 9, 0, 1), line(3, elected.format(2), controller)]
    assert not report(tmp_path, broker_1=one, broker_2=two).contradictions


def test_nothing_compared_is_unknown(tmp_path: Path) -> None:
    assert report(tmp_path, broker_1=[created(0)]).verdict == "unknown"
