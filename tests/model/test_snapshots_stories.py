"""What KIP-630 tells, as runs of the reference interpreter, and the shortest stories of the holes in its text."""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.snapshots import snapshots

BOTH = pytest.mark.parametrize("variant", ["kip-630", "kip-630-safe"])
Call = tuple[str | int, ...]


@cache
def system_of(variant: str, constants: str) -> System:
    values = dict(zip(snapshots.constants, map(int, constants.split("/")), strict=True))
    return ground(snapshots.traced(variant), values)


class Run:
    """A run of the reference interpreter; a call is an action and the values of its parameters.

    ``constants`` are replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires.
    """

    def __init__(self, variant: str, constants: str = "3/0/2/1/1/0/1/1") -> None:
        self.system = system_of(variant, constants)
        self.reference = Reference(self.system)
        self.state = self.system.initial

    def __call__(self, *calls: Call) -> None:
        for call in calls:
            assert self.refused(call) is None, (call, self.refused(call))
            after = self.reference.step(self.state, *self._step(call))
            assert after is not None
            self.state = after

    def _step(self, call: Call) -> tuple[str, tuple[tuple[str, int], ...]]:
        action = str(call[0])
        return action, tuple(zip(snapshots.actions[action].params, map(int, call[1:]), strict=True))

    def refused(self, call: Call) -> str | None:
        return self.reference.refused_by(self.state, *self._step(call))

    def __getitem__(self, cell: str) -> int:
        return self.state[self.system.layout.by_name[cell]]

    def broken(self) -> list[str]:
        return self.reference.broken(self.state)

    def log(self, replica: int) -> tuple[int, int, int]:
        """LBO, high watermark and LEO."""
        return self[f"lbo[{replica}]"], self[f"hw[{replica}]"], self[f"leo[{replica}]"]


# Replica 0 leads epoch 0, replica 1 has voted for it, and the record at offset 0 is committed on both.
COMMITTED: list[Call] = [
    ("become_candidate", 0),
    ("grant_vote", 1),
    ("leader_write", 0),
    ("follower_fetch", 0, 1),
    ("follower_fetch", 0, 1),
    ("leader_inc_high_watermark", 0, 0),
]
# Its leader makes a snapshot of it, and advances the LBO past it.
BEHIND: list[Call] = [*COMMITTED, ("generate_snapshot", 0, 0, 0), ("leader_advance_lbo", 0, 1)]
# Replica 2 hears of the leader, finds nothing at offset 0, and has to start over from the snapshot.
STARTED_OVER: list[Call] = [*BEHIND, ("become_follower", 2, 0), ("follower_start_over", 0, 2)]


def test_hole_1_the_log_behind_half_a_snapshot_counts() -> None:
    """Replica 2 acknowledges offset 1 and then votes as if it had none: replica 1, which has not got it, leads."""
    story: list[Call] = [
        *STARTED_OVER,
        ("leader_write", 0),
        ("follower_fetch", 0, 2),
        ("follower_fetch", 0, 2),
        ("leader_inc_high_watermark", 0, 1),
        ("become_candidate", 1),
        ("grant_vote", 2),
    ]
    for variant in ("kip-630", "acknowledge-half-fetched"):
        run = Run(variant)
        run(*story)
        assert len(story) == 16
        assert run.broken() == ["no_committed_record_lost"]
    run = Run("kip-630-safe")
    run(*story[:13])
    assert run.refused(story[13]) == "majority_acknowledges"
    run(("fetch_snapshot", 0, 2), ("follower_fetch", 0, 2), story[13])
    assert run.refused(story[15]) == "candidate_stands"
    run(story[14])
    assert run.refused(story[15]) == "up_to_date"


def test_hole_2_a_fetch_exactly_at_the_lbo() -> None:
    """Replica 1 wrote offset 0 in epoch 0, the others another record in epoch 1; only a later snapshot covers it."""
    story: list[Call] = [
        ("become_candidate", 1),
        ("grant_vote", 0),
        ("become_candidate", 0),
        ("grant_vote", 2),
        ("leader_write", 0),
        ("follower_fetch", 0, 2),
        ("leader_write", 0),
        ("follower_fetch", 0, 2),
        ("follower_fetch", 0, 2),
        ("leader_inc_high_watermark", 0, 0),
        ("leader_inc_high_watermark", 0, 1),
        ("generate_snapshot", 0, 1, 0),
        ("leader_advance_lbo", 0, 1),
        ("leader_write", 1),
        ("become_follower", 1, 1),
        ("follower_fetch", 0, 1),
    ]
    for variant in ("kip-630", "fetch-at-lbo"):
        run = Run(variant)
        run(*story)
        assert {"logs_match", "committed_below_high_watermark"} <= set(run.broken())
    run = Run("kip-630-safe")
    run(*story[:-1])
    assert run.refused(story[-1]) == "reaches_back"
    run(("follower_start_over", 0, 1), ("fetch_snapshot", 0, 1))
    assert run.log(1) == (2, 2, 2)
    assert run.broken() == []


def test_hole_3_the_high_watermark_at_boot() -> None:
    """The file lags: the leader's log counts as empty, it votes for replica 2, and the committed record is gone."""
    story: list[Call] = [*BEHIND, ("restart_empty", 0, 0), ("become_candidate", 2), ("grant_vote", 0)]
    for variant in ("kip-630", "boot-by-hw"):
        run = Run(variant)
        run(*story)
        assert len(story) == 11
        assert run.broken() == ["no_committed_record_lost"]
    run = Run("kip-630-safe")
    run(*BEHIND)
    assert run.refused(("restart_empty", 0, 0)) == "log_not_valid"
    run(("restart", 0, 0))
    assert run.log(0) == (1, 1, 1)


def test_hole_3_is_none_where_the_high_watermark_is_durable() -> None:
    run = Run("kip-630")
    run(*BEHIND)
    assert run.refused(("restart_empty", 0, 1)) == "log_not_valid"
    run(("restart", 0, 1))
    assert run.broken() == []


def test_hole_4_a_snapshot_of_two_leaders_bytes() -> None:
    """Two chunks from leader 0, one from leader 1: replica 2 takes the first of the one for the whole of the other."""
    story: list[Call] = [
        *COMMITTED,
        ("generate_snapshot", 0, 0, 1),
        ("leader_advance_lbo", 0, 1),
        ("follower_fetch", 0, 1),
        ("generate_snapshot", 1, 0, 0),
        ("become_follower", 2, 0),
        ("follower_start_over", 0, 2),
        ("fetch_snapshot", 0, 2),
        ("become_candidate", 1),
        ("grant_vote", 2),
        ("fetch_snapshot", 1, 2),
    ]
    for variant in ("kip-630", "mixed-chunks"):
        run = Run(variant, "3/0/2/1/2/0/0/1")
        run(*story)
        assert run["snapshot_records[2][0]"] == 0
        assert run.broken() == ["snapshot_is_committed_prefix"]
    run = Run("kip-630-safe", "3/0/2/1/2/0/0/1")
    run(*story[:-1])
    assert run["position[2]"] == 0
    run(story[-1])
    assert run["snapshot_records[2][0]"] == 1
    assert run.broken() == []


def test_hole_4_with_three_chunks_has_a_seam() -> None:
    """Bytes of both files, in the right number."""
    run = Run("mixed-chunks", "3/0/2/1/3/0/0/1")
    run(*COMMITTED, ("generate_snapshot", 0, 0, 1), ("leader_advance_lbo", 0, 1), ("follower_fetch", 0, 1))
    run(("generate_snapshot", 1, 0, 2), ("become_follower", 2, 0), ("follower_start_over", 0, 2))
    run(("fetch_snapshot", 0, 2), ("become_candidate", 1), ("grant_vote", 2))
    run(("fetch_snapshot", 1, 2), ("fetch_snapshot", 1, 2))
    assert (run["snapshot_size[2][0]"], run["snapshot_records[2][0]"]) == (3, 0)
    assert run.broken() == ["snapshot_is_committed_prefix"]


def test_hole_5_a_late_snapshot_id_wipes_what_was_acknowledged() -> None:
    """Replica 2 starts over twice by one answer; in between it acknowledges offset 1, which replica 1 has not."""
    story: list[Call] = [
        *BEHIND,
        ("become_follower", 2, 0),
        ("hold_snapshot", 0, 2, 0),
        ("follower_start_over", 0, 2),
        ("fetch_snapshot", 0, 2),
        ("leader_write", 0),
        ("follower_fetch", 0, 2),
        ("follower_fetch", 0, 2),
        ("leader_inc_high_watermark", 0, 1),
        ("late_snapshot", 2, 0),
        ("become_candidate", 1),
        ("grant_vote", 2),
    ]
    for variant in ("kip-630", "stale-responses"):
        run = Run(variant)
        run(*story)
        assert len(story) == 19
        assert "no_committed_record_lost" in run.broken()
    run = Run("kip-630-safe")
    run(*story[:16])
    assert run.refused(story[16]) == "answers_request"


def test_hole_5_a_late_chunk_of_another_snapshot() -> None:
    """The response names no snapshot: the bytes of snapshot 0 are stored as snapshot 1."""
    story: list[Call] = [
        ("become_candidate", 0),
        ("leader_write", 0),
        ("leader_inc_high_watermark", 0, 0),
        ("generate_snapshot", 0, 0, 0),
        ("leader_advance_lbo", 0, 1),
        ("become_follower", 1, 0),
        ("follower_start_over", 0, 1),
        ("leader_write", 0),
        ("leader_inc_high_watermark", 0, 1),
        ("generate_snapshot", 0, 1, 0),
        ("leader_advance_lbo", 0, 2),
        ("hold_chunk", 0, 1, 0),
        ("follower_start_over", 0, 1),
        ("late_chunk", 1, 0),
    ]
    for variant in ("kip-630", "stale-responses"):
        run = Run(variant, "2/1/2/0/1/0/1/1")
        run(*story)
        assert (run["snapshot_epoch[1][1]"], run["snapshot_records[1][1]"]) == (0, 1)
        assert run.broken() == ["snapshot_is_committed_prefix"]
    run = Run("kip-630-safe", "2/1/2/0/1/0/1/1")
    run(*story[:-1])
    assert run.refused(story[-1]) == "answers_request"


@BOTH
def test_a_response_of_a_deposed_leader_is_fenced(variant: str) -> None:
    run = Run(variant)
    run(*BEHIND, ("become_follower", 2, 0), ("hold_snapshot", 0, 2, 0), ("become_candidate", 1), ("grant_vote", 0))
    run(("become_follower", 2, 1))
    assert run.refused(("late_snapshot", 2, 0)) == "epoch_not_fenced"


@BOTH
def test_a_fetch_below_the_lbo_is_answered_with_the_snapshot(variant: str) -> None:
    """The follower goes on at the offset right after the snapshot, and fetches both."""
    run = Run(variant)
    run(*BEHIND, ("become_follower", 2, 0))
    assert run.refused(("follower_fetch", 0, 2)) == "reaches_back"
    run(("follower_start_over", 0, 2))
    assert (run.log(2), run["fetching[2]"], run["fetching_epoch[2]"]) == ((1, 1, 1), 0, 0)
    run(("leader_write", 0), ("follower_fetch", 0, 2))
    assert (run.log(2), run["fetching[2]"]) == ((1, 1, 2), 0)
    run(("fetch_snapshot", 0, 2))
    assert (run["fetching[2]"], run["snapshot_records[2][0]"]) == (-1, 1)


@BOTH
def test_the_log_and_all_snapshots_are_deleted(variant: str) -> None:
    """Replica 1 has snapshot 0; while the leader is at offset 3 with snapshot 1 alone it lags, and loses it."""
    run = Run(variant, "3/0/3/1/1/0/0/1")
    run(*COMMITTED, ("follower_fetch", 0, 1), ("generate_snapshot", 1, 0, 0), ("become_follower", 2, 0))
    run(*[("leader_write", 0)] * 2, *[("follower_fetch", 0, 2)] * 4, *[("leader_inc_high_watermark", 0, 2)] * 2)
    run(("generate_snapshot", 0, 1, 0), ("leader_advance_lbo", 0, 2))
    assert run["snapshot_size[1][0]"] == 1
    run(("follower_start_over", 0, 1))
    assert (run["snapshot_size[1][0]"], run["fetching[1]"], run.log(1)) == (0, 1, (2, 2, 2))
    assert run.broken() == []


@BOTH
def test_a_follower_takes_the_lbo_only_with_a_snapshot_that_reaches_it(variant: str) -> None:
    run = Run(variant)
    run(*BEHIND, ("follower_fetch", 0, 1))
    assert run.log(1) == (0, 1, 1)
    run(("generate_snapshot", 1, 0, 0), ("follower_fetch", 0, 1))
    assert run.log(1) == (1, 1, 1)


@BOTH
def test_an_observer_takes_the_lbo_too_and_counts_for_nothing(variant: str) -> None:
    """Replica 2 observes: it may not vote, and its acknowledgement makes no majority."""
    run = Run(variant, "3/1/2/1/1/0/0/1")
    run(("become_candidate", 0), ("grant_vote", 1), ("leader_write", 0), ("become_follower", 2, 0))
    run(("follower_fetch", 0, 2), ("follower_fetch", 0, 2))
    assert run.refused(("leader_inc_high_watermark", 0, 0)) == "majority_acknowledges"
    assert run.refused(("become_candidate", 2)) == "is_voter"
    run(("follower_fetch", 0, 1), ("follower_fetch", 0, 1), ("leader_inc_high_watermark", 0, 0))
    run(("generate_snapshot", 0, 0, 0), ("leader_advance_lbo", 0, 1), ("follower_fetch", 0, 2))
    run(("generate_snapshot", 2, 0, 0), ("follower_fetch", 0, 2))
    assert run.log(2) == (1, 1, 1)


@BOTH
def test_when_the_lbo_may_be_increased(variant: str) -> None:
    """Up to the end of the snapshot; and only once all have it, unless max.replication.lag.ms has passed."""
    for lag_expires, refusal in ((1, None), (0, "replicated_or_old")):
        run = Run(variant, f"3/0/2/1/1/0/0/{lag_expires}")
        run(*COMMITTED)
        for action in ("leader_advance_lbo", "delete_records"):
            assert run.refused((action, 0, 1)) == "snapshot_includes"
        run(("generate_snapshot", 0, 0, 0))
        for action in ("leader_advance_lbo", "delete_records"):
            assert run.refused((action, 0, 2)) == "snapshot_includes"
            assert run.refused((action, 0, 1)) == refusal
            assert run.refused((action, 1, 1)) == "presumes_leadership"
        run(("become_follower", 2, 0), ("follower_fetch", 0, 2), ("delete_records", 0, 1))
        assert run.log(0) == (1, 1, 1)
        assert run.refused(("leader_advance_lbo", 0, 1)) == "increases"


def test_a_snapshot_is_made_of_more_than_the_minimum_of_committed_records() -> None:
    run = Run("kip-630-safe", "3/0/2/1/1/1/0/1")
    run(*COMMITTED)
    assert run.refused(("generate_snapshot", 0, 0, 0)) == "enough_records"
    assert run.refused(("generate_snapshot", 0, 1, 0)) == "below_high_watermark"
    run(("leader_write", 0), ("follower_fetch", 0, 1), ("follower_fetch", 0, 1), ("leader_inc_high_watermark", 0, 1))
    run(("generate_snapshot", 0, 1, 0))
    assert run["snapshot_records[0][1]"] == 2


def test_snapshots_are_deleted_below_lbo_minus_one_only() -> None:
    run = Run("kip-630-safe")
    run(*COMMITTED, ("generate_snapshot", 0, 0, 0))
    run(("leader_write", 0), ("follower_fetch", 0, 1), ("follower_fetch", 0, 1), ("leader_inc_high_watermark", 0, 1))
    run(("generate_snapshot", 0, 1, 0), ("leader_advance_lbo", 0, 1))
    assert run.refused(("delete_snapshot", 0, 0)) == "below_lbo"
    run(("leader_advance_lbo", 0, 2), ("delete_snapshot", 0, 0))
    assert run.refused(("delete_snapshot", 0, 1)) == "below_lbo"
    assert run.refused(("delete_snapshot", 0, 0)) == "is_complete"


def test_the_three_errors_of_fetch_snapshot() -> None:
    """SNAPSHOT_NOT_FOUND, OFFSET_OUT_OF_RANGE and NOT_LEADER_FOR_PARTITION: the follower begins again from zero."""
    fetched: list[Call] = [
        *COMMITTED,
        ("generate_snapshot", 0, 0, 2),
        ("leader_advance_lbo", 0, 1),
        ("become_follower", 2, 0),
        ("follower_start_over", 0, 2),
        ("fetch_snapshot", 0, 2),
        ("fetch_snapshot", 0, 2),
    ]
    not_found = Run("mixed-chunks", "3/0/2/1/3/0/0/1")
    not_found(*fetched)
    assert not_found.refused(("rediscover_snapshot", 2)) == "fetch_refused"
    not_found(("become_candidate", 1), ("grant_vote", 2))
    assert not_found.refused(("fetch_snapshot", 1, 2)) == "snapshot_found"

    out_of_range = Run("mixed-chunks", "3/0/2/1/3/0/0/1")
    out_of_range(*fetched, ("follower_fetch", 0, 1), ("generate_snapshot", 1, 0, 0))
    out_of_range(("become_candidate", 1), ("grant_vote", 2))
    assert out_of_range.refused(("fetch_snapshot", 1, 2)) == "position_in_range"

    not_leader = Run("kip-630-safe", "3/0/2/1/3/0/0/1")
    not_leader(*fetched, ("restart", 0, 1))
    assert not_leader.refused(("fetch_snapshot", 0, 2)) == "presumes_leadership"

    for run in (not_found, out_of_range, not_leader):
        run(("rediscover_snapshot", 2))
        assert (run.log(2), run["fetching[2]"], run["position[2]"]) == ((0, 0, 0), -1, -1)
        assert run.broken() == []


@BOTH
def test_a_snapshot_is_fetched_chunk_by_chunk(variant: str) -> None:
    run = Run(variant, "3/0/2/1/2/0/0/1")
    run(*COMMITTED, ("generate_snapshot", 0, 0, 1), ("leader_advance_lbo", 0, 1))
    run(("become_follower", 2, 0), ("follower_start_over", 0, 2), ("fetch_snapshot", 0, 2))
    assert (run["fetching[2]"], run["position[2]"]) == (0, 1)
    run(("fetch_snapshot", 0, 2))
    assert (run["fetching[2]"], run["position[2]"], run["snapshot_size[2][0]"]) == (-1, -1, 2)


@BOTH
def test_half_a_snapshot_votes_as_if_the_log_were_empty(variant: str) -> None:
    run = Run(variant)
    run(*STARTED_OVER, ("leader_write", 0), ("follower_fetch", 0, 2), ("become_candidate", 2))
    assert run.log(2)[2] == 2
    assert run.refused(("grant_vote", 1)) == "up_to_date"
    twin = Run("vote-half-fetched")
    twin(*STARTED_OVER, ("become_candidate", 2), ("grant_vote", 1))
    assert "no_committed_record_lost" in twin.broken()


def test_a_crash_loses_what_was_fetched_of_a_snapshot() -> None:
    run = Run("kip-630-safe")
    run(*STARTED_OVER, ("restart_empty", 2, 0))
    assert (run.log(2), run["fetching[2]"]) == ((0, 0, 0), -1)
    assert run.broken() == []


def test_a_state_machine_has_its_snapshot_and_the_log_behind_it() -> None:
    """Loaded after a fetch, and at boot: a snapshot made then has every record; one without a base has none."""
    run = Run("kip-630-safe")
    run(*STARTED_OVER, ("leader_write", 0), ("follower_fetch", 0, 2))
    assert run.refused(("generate_snapshot", 2, 1, 0)) == "state_loaded"
    run(("fetch_snapshot", 0, 2), ("follower_fetch", 0, 2), ("leader_inc_high_watermark", 0, 1))
    run(("follower_fetch", 0, 2), ("restart", 2, 0))
    assert run.log(2) == (1, 1, 2)
    run(("follower_fetch", 0, 2), ("generate_snapshot", 2, 1, 0))
    assert run["snapshot_records[2][1]"] == 2
    gap = Run("lbo-past-snapshot")
    gap(*COMMITTED, ("leader_advance_lbo", 0, 1), ("leader_write", 0), *[("follower_fetch", 0, 1)] * 2)
    gap(("leader_inc_high_watermark", 0, 1), ("generate_snapshot", 0, 1, 0))
    assert gap["snapshot_records[0][1]"] == 0


def test_lbo_minus_one_read_as_lbo_empties_a_good_log() -> None:
    run = Run("lbo-misread")
    run(*BEHIND)
    assert run.refused(("restart", 0, 1)) == "log_valid"
    run(("restart_empty", 0, 1), ("become_candidate", 2), ("grant_vote", 0))
    assert run.broken() == ["no_committed_record_lost"]
