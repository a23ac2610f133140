"""Logs of correct clusters under odd conditions, none of which is violated, and faults that look like them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from fencepost.traces.timeline.checkers import TimelineReport, check_timeline
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

STATE = "state.change.logger"
PARTITION = "kafka.cluster.Partition"
LOG = "kafka.log.UnifiedLog"
RAFT = "org.apache.kafka.raft.QuorumState"
CLIENT = "org.apache.kafka.raft.KafkaRaftClient"
ID = "b8tRS7h4TJ2Vt43Dp85v2A"
OTHER_ID = "q3kYhX2bQ1yJp0Zt9mWv7g"


def at(clock: str, message: str, logger: str, level: str = "INFO") -> str:
    day, _, time = clock.rpartition(" ")
    return f"[{day or '2026-03-04'} {time},000] {level} {message} ({logger})"


def leads(clock: str, node: int, epoch: int, end: int, hw: int = 0, *, topic_id: str = "", previous: int = -2) -> str:
    with_id = f"with topic id Some({topic_id}) " if topic_id else ""
    return at(
        clock,
        f"[Broker id={node}] Leader a-0 {with_id}starts at leader epoch {epoch} from offset {end} with high watermark"
        f" {hw} ISR [{node}] addingReplicas [] removingReplicas []. Previous leader epoch was"
        f" {epoch - 1 if previous == -2 else previous}.",
        STATE,
    )


def follows(clock: str, node: int, epoch: int, end: int, hw: int, leader: int = 1, previous: int = -2) -> str:
    return at(
        clock,
        f"[Broker id={node}] Follower a-0 starts at leader epoch {epoch} from offset {end} with high watermark {hw}."
        f" Current leader is {leader}. Previous leader epoch was {epoch - 1 if previous == -2 else previous}.",
        STATE,
    )


def shrinks(clock: str, node: int, hw: int, end: int) -> str:
    told = f"Leader: (highWatermark: {hw}, endOffset: {end})."
    return at(clock, f"[Partition a-0 broker={node}] Shrinking ISR from 1,2 to {node}. {told}", PARTITION)


def truncates(clock: str, offset: int, directory: str = "/data") -> str:
    return at(clock, f"[UnifiedLog partition=a-0, dir={directory}] Truncating to offset {offset}", LOG)


def renamed(clock: str) -> str:
    text = "Log for partition a-0 is renamed to /data/a-0.77-delete and is scheduled for deletion"
    return at(clock, text, "kafka.log.LogManager")


def quorum(clock: str, node: int, role: str, epoch: int, **more: object) -> str:
    fields = ", ".join(f"{name}={value}" for name, value in {"epoch": epoch, **more}.items())
    return at(clock, f"[RaftManager id={node}] Completed transition to {role}({fields}) from X(epoch=0)", RAFT)


def grants(clock: str, node: int, candidate: int, epoch: int) -> str:
    request = f"VoteRequestData(candidateEpoch={epoch}, candidateId={candidate}, lastOffset=9)"
    return at(clock, f"[RaftManager id={node}] Vote request {request} with epoch {epoch} is granted", CLIENT)


def produced(time: str, offset: int) -> str:
    record = {"client": "p", "op": "produce", "partition": "a-0", "outcome": "ok", "offset": offset, "value": "v"}
    return json.dumps({**record, "time": f"2026-03-04T{time}Z"})


POLLED = (
    '{"client": "c", "op": "poll", "partition": "a-0", "records": [{"offset": 0, "value": "v"},'
    ' {"offset": 2, "value": "v"}]}'
)
HISTORY = '{"format": "fencepost-client-history", "version": 1, "acks": "all", "idempotent": true}'
LOSES = [leads("10:00:00", 1, 0, 0), shrinks("10:05:00", 1, 90, 90), follows("10:10:00", 1, 1, 90, 90, 2)]
Files = dict[str, list[str]]

LAWFUL: dict[str, Files] = {
    "clock an hour behind, lines missing": {
        "one": [leads("10:00:00", 1, 0, 0), shrinks("09:30:00", 1, 120, 120)],
        "two": [follows("11:00:00", 2, 0, 0, 0), leads("11:20:00", 2, 1, 90)],
    },
    "time zones differ, epochs missing": {
        "one": [leads("10:00:00", 1, 0, 0), shrinks("10:30:00", 1, 120, 120)],
        "two": [leads("11:20:00", 2, 5, 90)],
    },
    "clock two seconds off at a failover": {
        "one": [
            leads("10:00:00", 1, 0, 0),
            at("10:09:58", "[Partition a-0 broker=1] ISR updated to 1 and version updated to 3", PARTITION),
        ],
        "two": [follows("10:00:02", 2, 0, 0, 0), leads("10:10:00", 2, 1, 90, 90)],
    },
    "time of day only in one file": {
        "one": [leads("10:00:00", 1, 0, 0), shrinks("10:30:00", 1, 120, 120)],
        "two": [leads("11:20:00", 2, 1, 90)[12:].replace(",000]", ",000")],
    },
    "files joined in the wrong order": {
        "one": [
            follows("2026-03-05 10:00:00", 1, 4, 480, 480, 2),
            leads("2026-03-05 11:00:00", 1, 5, 500, 500),
            leads("2026-03-04 10:00:00", 1, 0, 0, topic_id=ID),
            follows("2026-03-04 11:00:00", 1, 1, 90, 80, 2),
            truncates("2026-03-04 11:00:01", 85),
        ],
        "two": [follows("2026-03-04 10:00:00", 2, 0, 0, 0), leads("2026-03-04 11:00:00", 2, 1, 85, 80, topic_id=ID)],
    },
    "newest line first": {
        "one": [
            follows("12:00:00", 1, 3, 200, 200, 2),
            truncates("11:00:01", 85),
            follows("11:00:00", 1, 1, 90, 80, 2),
            leads("10:00:00", 1, 0, 0),
        ],
    },
    "clock goes back": {
        "one": [shrinks("10:40:00", 1, 120, 120), truncates("10:05:00", 90)],
    },
    "topic deleted at one broker": {
        "one": [leads("10:00:00", 1, 0, 0), *LOSES[1:], renamed("10:20:00")],
        "two": [leads("11:00:00", 2, 2, 5, 5)],
    },
    "topic created again, lines missing": {
        "one": [leads("10:00:00", 1, 3, 70, 70)],
        "two": [leads("18:00:00", 2, 3, 10, 10)],
    },
    "topic created again with other ids": {
        "one": [leads("10:00:00", 1, 3, 70, 70, topic_id=ID)],
        "two": [leads("10:00:20", 2, 3, 10, 10, topic_id=OTHER_ID)],
    },
    "topic created again, client history": {
        "history": [HISTORY, produced("10:00:00", 50)],
        "one": [leads("09:00:00", 1, 0, 0), renamed("10:30:00"), leads("11:00:00", 1, 0, 0, previous=-1)],
    },
    "epoch 0 after an acknowledgement": {
        "history": [HISTORY, produced("10:00:00", 50)],
        "one": [leads("11:00:00", 1, 0, 0, previous=-1)],
    },
    "client clock three seconds behind": {
        "history": [HISTORY, produced("10:59:50", 80), produced("10:59:57", 95)],
        "one": [leads("09:00:00", 1, 0, 0), leads("11:00:00", 1, 1, 90, 80)],
    },
    "copy in another directory truncates": {
        "one": [
            leads("10:00:00", 1, 0, 0),
            shrinks("10:05:00", 1, 120, 120),
            truncates("10:06:00", 120, "/disk1"),
            truncates("10:07:00", 40, "/disk2"),
        ],
    },
    "copy in another directory is created": {
        "one": [
            leads("10:00:00", 1, 0, 0),
            shrinks("10:05:00", 1, 120, 120),
            at(
                "10:06:00",
                "Created log for partition a-0 in /disk2/a-0.5f3-future with properties {}",
                "kafka.log.LogManager",
            ),
            truncates("10:07:00", 40, "/disk2"),
        ],
    },
    "excerpts of two brokers under headings": {
        "paste": [
            "Broker 1:",
            leads("10:00:00", 1, 0, 0),
            shrinks("10:05:00", 1, 120, 120),
            "",
            "Broker 2:",
            truncates("10:07:00", 100),
        ],
    },
    "output of tail for two brokers": {
        "paste": [
            "==> broker-1/server.log <==",
            leads("10:00:00", 1, 0, 0),
            shrinks("10:05:00", 1, 120, 120),
            "",
            "==> broker-2/server.log <==",
            truncates("10:07:00", 100),
        ],
    },
    "two clusters": {
        "one": [
            at("09:00:00", "[KafkaServer id=1] Cluster ID = aaaaaaaaaaaaaaaaaaaaaa", "kafka.server.KafkaServer"),
            *LOSES,
        ],
        "two": [
            at("09:00:00", "[KafkaServer id=2] Cluster ID = bbbbbbbbbbbbbbbbbbbbbb", "kafka.server.KafkaServer"),
            leads("11:00:00", 2, 2, 5, 5),
        ],
    },
    "broker with an empty disk follows": {
        "one": [
            *LOSES,
            at("10:20:00", "[KafkaServer id=1] starting", "kafka.server.KafkaServer"),
            follows("10:20:05", 1, 2, 0, 0, 2, -1),
            truncates("10:20:06", 0),
        ],
    },
    "reassigned away and back": {
        "one": [
            leads("10:00:00", 1, 0, 0),
            shrinks("10:05:00", 1, 90, 90),
            renamed("10:06:00"),
            follows("10:20:05", 1, 4, 0, 0, 2, -1),
            truncates("10:20:06", 0),
        ],
        "two": [follows("10:00:00", 2, 0, 0, 0), leads("10:05:59", 2, 1, 90, 90)],
    },
    "retention moves the log start": {
        "one": [
            leads("10:00:00", 1, 0, 0),
            shrinks("10:05:00", 1, 90, 95),
            at(
                "10:06:00",
                "[UnifiedLog partition=a-0, dir=/data] Incremented log start offset to 90 due to"
                " leader offset increment",
                LOG,
            ),
            at("10:07:00", "[UnifiedLog partition=a-0, dir=/data] Truncate and start at offset 200", LOG),
            follows("10:08:00", 1, 1, 200, 200, 2),
        ],
    },
    "uncommitted tail is truncated": {
        "one": [
            leads("10:00:00", 1, 0, 0),
            shrinks("10:05:00", 1, 90, 120),
            follows("10:10:00", 1, 1, 120, 90, 2),
            truncates("10:10:01", 90),
        ],
        "two": [follows("10:00:00", 2, 0, 0, 0), leads("10:10:00", 2, 1, 90, 88)],
    },
    "controller epochs equal leader epochs": {
        "one": [
            at(
                "10:00:00",
                "[Controller id=1 epoch=5] Changed partition a-0 from OnlinePartition to"
                " OnlinePartition with state LeaderAndIsr(leader=2,leaderEpoch=3,isr=List(2),zkVersion=7)",
                STATE,
            ),
            at(
                "10:00:01",
                "[Controller id=1 epoch=6] Changed partition a-0 from OnlinePartition to"
                " OnlinePartition with state LeaderAndIsr(leader=3,leaderEpoch=4,isr=List(2,3),zkVersion=8)",
                STATE,
            ),
        ],
    },
    "quorum formatted again": {
        "one": [quorum("2026-01-04 10:00:00", 1, "Follower", 5, leader=2), grants("2026-01-04 09:59:59", 1, 2, 5)],
        "two": [quorum("2026-03-04 10:00:00", 2, "Follower", 5, leader=3)],
    },
    "quorum node formatted again votes anew": {
        "one": [grants("2026-01-04 09:59:59", 1, 2, 5), grants("2026-03-04 09:59:59", 1, 3, 5)],
    },
    "quorum follower starts again in its epoch": {
        "one": [quorum("10:00:00", 1, "Follower", 5, leader=2), quorum("16:00:00", 1, "Follower", 5, leader=2)],
        "two": [quorum("10:00:00", 2, "Leader", 5, localId=2, epochStartOffset=100)],
    },
    "quorum truncates what was not committed": {
        "one": [
            quorum("10:00:00", 1, "Leader", 5, localId=1, epochStartOffset=100),
            quorum("10:01:00", 1, "Follower", 6, leader=2),
            at("10:01:01", "[UnifiedLog partition=__cluster_metadata-0, dir=/m] Truncating to offset 120", LOG),
        ],
    },
    "pre-vote for another candidate": {
        "one": [
            grants("10:00:00", 1, 2, 5),
            grants("10:00:01", 1, 3, 5).replace("lastOffset=9", "lastOffset=9, preVote=true"),
        ],
    },
    "transactions leave markers": {
        "history": [
            HISTORY,
            produced("10:00:00", 0),
            produced("10:00:01", 2),
            POLLED,
        ],
    },
    "copies of one file": {"one": LOSES, "two": LOSES},
}


def report_of(folder: Path, files: Files) -> TimelineReport:
    paths = []
    for name, lines in files.items():
        path = folder / f"{name}.log"
        path.write_text("".join(f"{each}\n" for each in lines))
        paths.append(path)
    return check_timeline(Timeline.of(read_sources(paths).observations))


@pytest.mark.parametrize("name", LAWFUL)
def test_lawful_logs_are_not_violated(name: str, tmp_path: Path) -> None:
    report = report_of(tmp_path, LAWFUL[name])
    assert [each.message for each in report.contradictions if each.verdict == "violated"] == []


FAULTS: dict[str, tuple[Files, str]] = {
    "clocks agree in an earlier epoch": (
        {
            "one": [leads("10:00:00", 1, 0, 0), shrinks("10:30:00", 1, 120, 120)],
            "two": [follows("10:00:01", 2, 0, 0, 0), leads("11:20:00", 2, 5, 90)],
        },
        "leader_starts_below_high_watermark",
    ),
    "newest line first": (
        {
            "one": [
                follows("12:00:00", 1, 3, 200, 200, 2),
                truncates("11:00:01", 85),
                follows("11:00:00", 1, 1, 120, 110, 2),
                shrinks("10:30:00", 1, 110, 120),
                leads("10:00:00", 1, 0, 0),
            ]
        },
        "truncation_below_high_watermark",
    ),
    "files joined in the wrong order": (
        {
            "one": [
                follows("2026-03-05 10:00:00", 1, 4, 480, 480, 2),
                shrinks("2026-03-05 10:30:00", 1, 500, 500),
                leads("2026-03-05 11:00:00", 1, 5, 500, 500),
                leads("2026-03-04 10:00:00", 1, 0, 0),
                shrinks("2026-03-04 10:30:00", 1, 110, 120),
                follows("2026-03-04 11:00:00", 1, 1, 120, 110, 2),
                truncates("2026-03-04 11:00:01", 85),
            ]
        },
        "truncation_below_high_watermark",
    ),
    "excerpts under headings": (
        {
            "paste": [
                "Broker 1:",
                leads("10:00:00", 1, 0, 0),
                shrinks("10:05:00", 1, 120, 120),
                truncates("10:07:00", 100),
                "Broker 2:",
                follows("10:00:00", 2, 0, 0, 0),
            ]
        },
        "truncation_below_high_watermark",
    ),
    "two leaders without topic ids": (
        {"one": [leads("10:00:00", 1, 3, 70, 70)], "two": [leads("10:00:20", 2, 3, 70, 70)]},
        "two_leaders_in_one_epoch",
    ),
    "two leaders of a quorum": (
        {
            "one": [quorum("10:00:00", 1, "Leader", 5, localId=1, epochStartOffset=100)],
            "two": [quorum("10:00:09", 2, "Leader", 5, localId=2, epochStartOffset=100)],
        },
        "two_leaders_in_one_epoch",
    ),
    "truncation in the only directory": (
        {"one": [shrinks("10:05:00", 1, 120, 120), truncates("10:06:00", 110), truncates("10:07:00", 40)]},
        "truncation_below_high_watermark",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_faults_under_odd_conditions_are_violated(name: str, tmp_path: Path) -> None:
    files, check = FAULTS[name]
    report = report_of(tmp_path, files)
    assert {each.check for each in report.contradictions if each.verdict == "violated"} == {check}


NOTHING_JUDGED: dict[str, Files] = {
    "one role": {"one": [leads("10:00:00", 1, 0, 0)]},
    "starts and stops": {"one": [at("10:00:00", "[KafkaServer id=1] starting", "kafka.server.KafkaServer")]},
    "one vote": {"one": [grants("10:00:00", 1, 2, 5)]},
    "ISR changes": {
        "one": [at("10:00:00", "[Partition a-0 broker=1] ISR updated to 1 and version updated to 3", PARTITION)]
    },
    "a truncation without a high watermark": {"one": [truncates("10:00:00", 5)]},
    "a watermark without a truncation": {"one": [shrinks("10:00:00", 1, 5, 9)]},
    "acknowledgements": {"history": [HISTORY, produced("10:00:00", 50)]},
    "other lines": {"one": [at("10:00:00", "Awaiting socket connections on 0.0.0.0:9092.", "kafka.network.Acceptor")]},
    "no lines": {"one": []},
}


@pytest.mark.parametrize("name", NOTHING_JUDGED)
def test_nothing_judged_is_unknown(name: str, tmp_path: Path) -> None:
    assert report_of(tmp_path, NOTHING_JUDGED[name]).verdict == "unknown"


def test_logs_of_two_clusters_are_refused(tmp_path: Path) -> None:
    paths = []
    for name, lines in LAWFUL["two clusters"].items():
        paths.append(tmp_path / f"{name}.log")
        paths[-1].write_text("\n".join(lines))
    read = read_sources(paths)
    assert not read.observations
    (problem,) = read.problems
    assert "the lines are of several clusters: aaaaaaaaaaaaaaaaaaaaaa" in str(problem)


def test_truncation_proves_a_loss_that_the_clocks_leave_open(tmp_path: Path) -> None:
    files = {
        "one": [leads("10:00:00", 1, 0, 0), shrinks("10:30:00", 1, 120, 120), truncates("11:20:05", 90)],
        "two": [leads("11:20:00", 2, 5, 90)],
    }
    (found,) = report_of(tmp_path, files).contradictions
    assert (found.check, found.verdict, found.lost) == ("truncation_below_high_watermark", "violated", (90, 119))
