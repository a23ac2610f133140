"""Lawful directories and losses that look alike, by what makes them differ: one verdict for each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import pytest
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.directories import read_brokers

from .clusters import SECOND_ID, Controller, empty_log, records, write_cluster
from .encoder import Partition, batch, log, old_message

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Build = Callable[[Path], list[Path]]


@dataclass(frozen=True)
class Case:
    """Directories, their verdict, and words that the first finding must have."""

    name: str
    build: Build
    verdict: str
    words: str = ""


CASES: list[Case] = []


def case(verdict: str, words: str = "") -> Callable[[Build], Build]:
    """Add a builder of directories to the table."""

    def add(build: Build) -> Build:
        CASES.append(Case(build.__name__.lstrip("_"), build, verdict, words))
        return build

    return add


def failed_over() -> tuple[Controller, dict[int, int]]:
    """Broker 1 leads and is fenced, broker 2 is elected cleanly in epoch 1."""
    controller = Controller(1, 2, 3).topic(1, 2, 3)
    end = controller.end
    return controller.change(Isr=[2, 3], Leader=2).stop(1), {1: end}


def lost_election(*, policy: str | None = None) -> tuple[Controller, dict[int, int]]:
    """Broker 2 is the last ISR member; broker 3 is elected uncleanly in epoch 2."""
    config = {} if policy is None else {"cleanup_policy": policy}
    controller = Controller(2, 3).topic(2, 3, **config).change(Isr=[2]).stop(3)
    end = controller.end
    return controller.elect_uncleanly(2, 3), {2: end}


def cleaned(*kept: int, end: int = 10, checkpoint: int | None = None) -> Partition:
    """A compacted log of three keys: the records at ``kept`` of the offsets up to ``end``."""
    data = b"".join(batch(offset, [b"v%d" % offset], keys=[b"k%d" % (offset % 3)]) for offset in kept)
    return Partition({0: data, end: b""}, [(0, 0)], end, cleaned=checkpoint)


# -- retention --------------------------------------------------------------------------------------------------------


@case("holds")
def _dead_tail_reaches_over_the_new_log_start(root: Path) -> list[Path]:
    controller, ends = failed_over()
    new = records((1, 10), start=20)
    return write_cluster(root, {1: records((0, 25), hw=15), 2: new, 3: new}, controller, ends=ends)


@case("holds")
def _idle_topic_has_expired_on_all(root: Path) -> list[Path]:
    return write_cluster(root, dict.fromkeys((1, 2, 3), empty_log(20, [(0, 20)])), Controller(1, 2, 3).topic(1, 2, 3))


@case("violated", "committed and lost: offsets 7 to 9")
def _unclean_leader_starts_within_the_lost_range(root: Path) -> list[Path]:
    controller, ends = lost_election()
    return write_cluster(root, {2: records((0, 10)), 3: records((2, 10), start=7)}, controller, ends=ends)


# -- compaction -------------------------------------------------------------------------------------------------------


@case("holds")
def _cleaners_are_at_different_places(root: Path) -> list[Path]:
    logs = {1: cleaned(7, 8, 9, checkpoint=10), 2: cleaned(*range(2, 10), checkpoint=5), 3: cleaned(*range(10))}
    return write_cluster(root, logs, Controller(1, 2, 3).topic(1, 2, 3, cleanup_policy="compact"))


@case("holds")
def _holes_of_an_earlier_policy_stay(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3, cleanup_policy="compact").configure("cleanup.policy", "delete")
    return write_cluster(root, dict.fromkeys((1, 2, 3), cleaned(3, 7, 8, 9)), controller)


@case("violated", "committed and lost: offsets 7 to 9")
def _unclean_election_loses_cleaned_records(root: Path) -> list[Path]:
    controller, ends = lost_election(policy="compact")
    new = b"".join(batch(offset, [b"v%d" % offset], keys=[b"k%d" % (offset % 3)]) for offset in range(5))
    new += b"".join(batch(offset, [b"new"], epoch=2, keys=[b"k9"]) for offset in range(5, 20))
    logs = {2: cleaned(7, 8, 9, checkpoint=10), 3: Partition({0: new}, [(0, 0), (2, 5)], 20)}
    return write_cluster(root, logs, controller, ends=ends)


@case("violated")
def _hole_of_a_topic_that_was_never_compacted(root: Path) -> list[Path]:
    holed = Partition({0: log(*[0] * 10), 20: log(*[0] * 10, start=20)}, [(0, 0)], 30)
    controller = Controller(1, 2, 3).topic(1, 2, 3, cleanup_policy="delete")
    return write_cluster(root, dict.fromkeys((1, 2, 3), holed), controller)


# -- stale caches and checkpoints -------------------------------------------------------------------------------------


@case("unknown")
def _killed_followers_have_stale_cache_entries(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3).change(Leader=3).change(Leader=1)
    stale = records((0, 5), cache=[(0, 0), (1, 7)])
    leader = records((0, 5), cache=[(0, 0), (2, 5)])
    return write_cluster(root, {1: leader, 2: stale, 3: records((0, 5))}, controller)


@case("holds")
def _deposed_leader_has_an_empty_epoch_above_the_new_start(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3).change(Leader=1)
    end = controller.end
    controller.change(Isr=[2, 3], Leader=2).stop(1)
    old, new = records((0, 7), hw=5, cache=[(0, 0), (1, 7)]), records((0, 5), (2, 4))
    return write_cluster(root, {1: old, 2: new, 3: new}, controller, ends={1: end})


@case("holds")
def _killed_brokers_have_old_high_watermarks(root: Path) -> list[Path]:
    logs = {1: records((0, 15), hw=3), 2: records((0, 15), hw=0), 3: records((0, 14), hw=9)}
    return write_cluster(root, logs, Controller(1, 2, 3).topic(1, 2, 3))


@case("violated", "committed and lost: offset 5")
def _old_high_watermark_still_proves_one_lost_record(root: Path) -> list[Path]:
    controller, ends = lost_election()
    return write_cluster(root, {2: records((0, 9), hw=6), 3: records((0, 5), (2, 2))}, controller, ends=ends)


@case("violated", "leader epoch 1 starts at 4 in the cache of broker 1 and at 3")
def _caches_disagree(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3).change(Leader=2)
    logs = {1: records((0, 4), (1, 2)), 2: records((0, 3), (1, 3)), 3: records((0, 4), (1, 2))}
    return write_cluster(root, logs, controller)


# -- power loss -------------------------------------------------------------------------------------------------------


@case("unknown")
def _follower_has_lost_its_tail(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3)
    end = controller.end
    controller.change(Isr=[1, 2]).stop(3)
    logs = {1: records((0, 9)), 2: records((0, 9)), 3: records((0, 6), hw=9)}
    return write_cluster(root, logs, controller, ends={3: end})


@case("violated", "committed and lost: offsets 6 to 8")
def _last_isr_member_has_lost_its_tail_and_leads(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3)
    end = controller.end
    controller.change(Isr=[1]).stop(2).stop(3).change(Leader=-1).stop(1).start(1).change(Leader=1)
    logs = {1: records((0, 6), cache=[(0, 0), (2, 6)]), 2: records((0, 9)), 3: records((0, 9))}
    return write_cluster(root, logs, controller, ends={2: end, 3: end})


@case("violated", "lost: offsets 5 to 9")
def _no_log_reaches_the_high_watermark(root: Path) -> list[Path]:
    logs = {1: records((0, 5), hw=10), 2: records((0, 5)), 3: records((0, 5))}
    return write_cluster(root, logs, Controller(1, 2, 3).topic(1, 2, 3), clean=(1, 2, 3))


# -- live copies ------------------------------------------------------------------------------------------------------


@case("unknown", "no loss if broker 1 ran while its log was copied before its checkpoints")
def _logs_were_copied_before_checkpoints(root: Path) -> list[Path]:
    logs = {1: records((0, 5), hw=10), 2: records((0, 5)), 3: records((0, 5))}
    return write_cluster(root, logs, Controller(1, 2, 3).topic(1, 2, 3))


@case("unknown")
def _leader_was_copied_first(root: Path) -> list[Path]:
    logs = {1: records((0, 5)), 2: records((0, 12)), 3: records((0, 15))}
    return write_cluster(root, logs, Controller(1, 2, 3).topic(1, 2, 3))


@case("holds")
def _live_zookeeper_cluster(root: Path) -> list[Path]:
    return write_cluster(root, {1: records((0, 5)), 2: records((0, 12)), 3: records((0, 15))})


@case("violated", "committed and lost: offsets 5 to 8")
def _loss_in_copies_of_different_times(root: Path) -> list[Path]:
    controller, ends = lost_election()
    ends[3] = controller.end
    controller.topic(3, 2, name="later", topic_id=SECOND_ID)
    return write_cluster(root, {2: records((0, 9)), 3: records((0, 5), (2, 2))}, controller, ends=ends)


@case("violated", "is in the ISR [1, 2, 3] with LEO 6, below the high watermark 9")
def _isr_member_is_short_after_a_clean_stop(root: Path) -> list[Path]:
    logs = {1: records((0, 9)), 2: records((0, 6)), 3: records((0, 9))}
    return write_cluster(root, logs, Controller(1, 2, 3).topic(1, 2, 3), clean=(1, 2, 3))


# -- topics of one name -----------------------------------------------------------------------------------------------


@case("holds", "was removed at metadata offset")
def _removed_topic_is_left_on_a_dead_broker(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3)
    end = controller.end
    controller.change(Isr=[1, 2]).stop(3).remove().topic(1, 2, 3, name="other", topic_id=SECOND_ID, isr=[1, 2])
    logs = {1: {"other-0": records((0, 4), topic_id=SECOND_ID)}, 2: {"other-0": records((0, 4), topic_id=SECOND_ID)}}
    return write_cluster(root, {**logs, 3: records((0, 20))}, controller, ends={3: end})


@case("holds", "was removed at metadata offset")
def _recreated_topic_is_left_on_a_dead_broker(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3)
    end = controller.end
    controller.change(Isr=[1, 2]).stop(3).remove().topic(1, 2, 3, topic_id=SECOND_ID, isr=[1, 2])
    new = records((0, 3), tag="new", topic_id=SECOND_ID)
    return write_cluster(root, {1: new, 2: new, 3: records((0, 20))}, controller, ends={3: end})


@case("violated", "committed and lost: offsets 5 to 8")
def _recreated_topic_has_lost_records_itself(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3)
    ends = {1: controller.end}
    controller.change(Isr=[2, 3], Leader=2).stop(1).remove()
    controller.topic(2, 3, 1, topic_id=SECOND_ID, isr=[2, 3]).change(SECOND_ID, Isr=[2]).stop(3)
    ends[2] = controller.end
    controller.change(SECOND_ID, Leader=-1).stop(2).start(3)
    controller.change(SECOND_ID, Leader=3, Isr=[3], LeaderRecoveryState=1)
    old = records((0, 20))
    lost = records((0, 9), tag="new", topic_id=SECOND_ID)
    led = records((0, 5), (2, 2), tag="new", topic_id=SECOND_ID)
    return write_cluster(root, {1: old, 2: lost, 3: led}, controller, ends=ends)


@case("unknown", "it may be of an older topic of that name")
def _zookeeper_topic_may_be_recreated(root: Path) -> list[Path]:
    new = records((0, 3), tag="new")
    return write_cluster(root, {1: new, 2: new, 3: records((0, 20))})


@case("unknown", "it may be of an older topic of that name")
def _zookeeper_topic_may_be_recreated_after_elections(root: Path) -> list[Path]:
    new = records((0, 3), (2, 4), tag="new")
    return write_cluster(root, {1: new, 2: new, 3: records((0, 2), (1, 3))})


@case("violated", "committed and lost: offsets 2 to 4")
def _zookeeper_loss_beside_an_older_topic(root: Path) -> list[Path]:
    logs = {1: records((0, 5), tag="new"), 2: records((0, 2), (1, 4), tag="new"), 3: records((0, 20))}
    return write_cluster(root, logs)


@case("violated", "committed and lost: offsets 0 to 2")
def _zookeeper_leader_with_an_empty_disk(root: Path) -> list[Path]:
    return write_cluster(root, {1: records((1, 4), tag="new"), 2: records((0, 3)), 3: records((1, 4), tag="new")})


@case("violated", "differ at offset 1")
def _zookeeper_logs_differ_after_a_shared_record(root: Path) -> list[Path]:
    other = Partition({0: log(0) + log(0, 0, start=1, tag="other")}, [(0, 0)], 3)
    return write_cluster(root, {1: records((0, 3)), 2: other, 3: records((0, 3))})


# -- missing folders --------------------------------------------------------------------------------------------------


@case("holds")
def _folder_of_a_new_topic_is_not_made_yet(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3)
    end = controller.end
    controller.topic(1, 2, 3)
    return write_cluster(root, {1: empty_log(), 2: None, 3: None}, controller, ends={2: end, 3: end})


@case("unknown", "has no folder of it")
def _only_isr_member_has_no_folder(root: Path) -> list[Path]:
    return write_cluster(root, {1: None, 2: records((0, 5))}, Controller(1, 2).topic(1, 2).change(Isr=[1]))


@case("violated", "its replication-offset-checkpoint still has the high watermark")
def _folder_is_gone_and_its_high_watermark_is_not(root: Path) -> list[Path]:
    found = write_cluster(root, {1: None, 2: records((0, 5))}, Controller(1, 2).topic(1, 2))
    (found[0] / "replication-offset-checkpoint").write_text("0\n1\nt 0 5\n")
    return found


# -- unclean elections ------------------------------------------------------------------------------------------------


@case("holds")
def _unclean_election_at_the_high_watermark(root: Path) -> list[Path]:
    controller, ends = lost_election()
    return write_cluster(root, {2: records((0, 9)), 3: records((0, 9), (2, 2))}, controller, ends=ends, clean=(2,))


@case("holds")
def _eligible_replica_is_elected(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3, min_insync_replicas="2")
    ends = {3: controller.end}
    controller.change(Isr=[1, 2], EligibleLeaderReplicas=[]).stop(3).change(Isr=[1], EligibleLeaderReplicas=[2]).stop(2)
    ends[1] = controller.end
    controller.change(Isr=[], EligibleLeaderReplicas=[2, 1], Leader=-1).stop(1).start(2)
    controller.change(Isr=[2], EligibleLeaderReplicas=[1], Leader=2)
    logs = {1: records((0, 9), hw=6), 2: records((0, 6), (2, 1), hw=6), 3: records((0, 4))}
    return write_cluster(root, logs, controller, ends=ends)


@case("violated", "was elected uncleanly in leader epoch 2")
def _unclean_election_loses_records(root: Path) -> list[Path]:
    controller, ends = lost_election()
    return write_cluster(root, {2: records((0, 9)), 3: records((0, 5), (2, 20))}, controller, ends=ends)


@case("violated", "committed and lost: offsets 5 to 9")
def _third_replica_proves_what_the_absent_one_lost(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(1, 2, 3).change(Isr=[1, 2]).stop(3)
    end = controller.end
    controller.change(Isr=[2], Leader=2).stop(1).elect_uncleanly(2, 3)
    return write_cluster(root, {1: records((0, 10)), 3: records((0, 5), (3, 30))}, controller, ends={1: end})


@case("violated", "broker 2 is no replica any more, and has 4 records that broker 3 began without")
def _loser_is_no_replica_any_more(root: Path) -> list[Path]:
    controller, ends = lost_election()
    controller.start(4).change(Replicas=[3, 4], Isr=[3, 4])
    new = records((0, 5), (2, 2))
    return write_cluster(root, {2: records((0, 9)), 3: new, 4: new}, controller, ends=ends)


@case("violated", "broker 4 was elected uncleanly in leader epoch 4")
def _second_unclean_election_loses_the_first_leaders_records(root: Path) -> list[Path]:
    controller = Controller(2, 3, 4).topic(2, 3, 4).change(Isr=[2]).stop(3).stop(4)
    ends = {2: controller.end}
    controller.elect_uncleanly(2, 3)
    ends[3] = controller.end
    controller.elect_uncleanly(3, 4)
    logs = {2: records((0, 9)), 3: records((0, 5), (2, 5)), 4: records((0, 2), (4, 30))}
    return write_cluster(root, logs, controller, ends=ends)


# -- leaders without records ------------------------------------------------------------------------------------------


@case("holds")
def _new_leader_has_written_nothing(root: Path) -> list[Path]:
    controller, ends = failed_over()
    leader = records((0, 5), cache=[(0, 0), (1, 5)])
    return write_cluster(root, {1: records((0, 5)), 2: leader, 3: records((0, 5))}, controller, ends=ends)


@case("violated", "committed and lost: offsets 0 to 5")
def _leader_returns_with_an_empty_disk(root: Path) -> list[Path]:
    controller = Controller(1, 2).topic(2, 1)
    end = controller.end
    controller.change(Isr=[2]).stop(1).change(Leader=-1).stop(2).start(2).change(Leader=2)
    return write_cluster(root, {1: records((0, 6)), 2: empty_log(0, [(2, 0)])}, controller, ends={1: end})


# -- epoch starts -----------------------------------------------------------------------------------------------------


@case("holds")
def _zookeeper_dead_leader_has_an_uncommitted_tail(root: Path) -> list[Path]:
    new = records((0, 5), (1, 4))
    return write_cluster(root, {1: records((0, 7), hw=5), 2: new, 3: new})


@case("violated", "leader epoch 1 starts at 2 on broker 1; committed and lost: offset 2")
def _zookeeper_epoch_starts_below_a_high_watermark(root: Path) -> list[Path]:
    leader = records((0, 2), cache=[(0, 0), (1, 2)])
    return write_cluster(root, {1: leader, 2: records((0, 3)), 3: records((0, 2))})


@case("violated", "committed and lost: offsets 5 to 9")
def _elected_epoch_starts_below_a_high_watermark(root: Path) -> list[Path]:
    controller = Controller(1, 2, 3).topic(3, 1, 2)
    end = controller.end
    controller.change(Isr=[1, 2], Leader=1).stop(3)
    logs = {1: records((0, 5), cache=[(0, 0), (1, 5)]), 2: records((0, 5)), 3: records((0, 10))}
    return write_cluster(root, logs, controller, ends={3: end})


# -- old message formats ----------------------------------------------------------------------------------------------


@case("unknown")
def _old_message_format_is_not_read(root: Path) -> list[Path]:
    data = b"".join(old_message(offset, b"x") for offset in range(5))
    return write_cluster(root, dict.fromkeys((1, 2, 3), Partition({0: data}, None, 5)))


@pytest.mark.parametrize("each", CASES, ids=lambda each: each.name)
def test_cause_has_its_verdict(tmp_path: Path, each: Case) -> None:
    report = check_brokers(read_brokers(each.build(tmp_path)))
    assert report.verdict == each.verdict, [str(result) for result in report.checks if result.verdict != "holds"]
    assert any(each.words in result.message for result in report.checks)
