"""What KIP-1023 tells, as runs of the reference interpreter; ``test_tiering_holes.py`` has the holes in its text."""

from __future__ import annotations

import pytest

from .tiering_runs import ALONE, SAFE, A, B, Run, uploaded, written


def example(variant: str = SAFE) -> Run:
    """The text's example before step 1: messages 0 to 7, of the epochs 0 to 3, and two segments on remote."""
    run = Run("2/8/3/1/0/0/0/0", variant)
    run(("elect_leader", A), ("leader_shrink_isr", A, B), *written(3))
    for count in (2, 2, 1):
        run(("elect_leader", A), *written(count))
    run(("find_highest_remote_offset", A), *uploaded(0, 3), *uploaded(3, 6), *[("delete_local", A)] * 3)
    return run


def test_the_example_of_the_text() -> None:
    run = example()
    # Broker A: messages 3 to 7 locally, HW at message 7, and its leader epochs.
    assert run.offsets(A) == (0, 3, 8) and run["hw[0]"] == 8
    assert run.checkpoint(A) == {0: 0, 1: 3, 2: 5, 3: 7}
    # The remote storage: seg-0-2 and seg-3-5, uploaded in the newest epoch, with the epochs up to their ends.
    assert (run["segment_end[3][0]"], run["segment_end[3][3]"]) == (3, 6)
    assert run.row("remote_epoch", 3) == [0, 0, 0, 1, 1, 2, -1, -1]
    # 1, 2: a fetch at offset 0 is answered with OFFSET_MOVED_TO_TIERED_STORAGE.
    run(("become_follower", A, B))
    assert run.refused(("follower_fetch", A, B)) == "offset_is_local"
    assert run.refused(("truncate_fully", A, B)) == "below_log_start"
    # 3 to 5: ELO is 3, of epoch 1, and EPUO is 6, of epoch 2.
    assert (run["local_start[0]"], run["record_epoch[0][3]"]) == (3, 1)
    assert (run["highest_remote[0]"] + 1, run["record_epoch[0][6]"]) == (6, 2)
    # 6: the epochs are built up to the EPUO, as Broker B's leader epochs in the table say, and not up to ELO.
    run(("build_to_epuo", A, B, 3))
    assert run.checkpoint(B) == {0: 0, 1: 3, 2: 5}
    assert run.offsets(B) == (0, 6, 6)
    # Step 2: from EPUO to HW.
    run(("follower_fetch", A, B), ("follower_fetch", A, B))
    assert run.offsets(B) == (0, 6, 8) and run["hw[1]"] == 8
    assert run.checkpoint(B) == run.checkpoint(A) == {0: 0, 1: 3, 2: 5, 3: 7}
    run(("leader_expand_isr", A, B))
    assert run["isr"] == 0b11 and run.broken() == []


def test_until_elo_is_no_reading_of_step_6() -> None:
    """Epochs up to ELO alone are not those of the table, and messages 3 to 5 get the epoch of message 2."""
    run = example("epochs-to-local-start")
    run(("become_follower", A, B), ("build_to_epuo", A, B, 3))
    assert run.checkpoint(B) == {0: 0}
    assert run.broken() == ["lineage_is_leaders"]


def test_case_1_the_requested_offset_is_present() -> None:
    """Also where it is uploaded, and not cleared from the local disk: an empty follower does not jump."""
    run = Run()
    run(*ALONE, *written(2), *uploaded(0, 2), ("become_follower", A, B))
    assert run.ways(A, B) == {"follower_fetch"}
    run(("follower_fetch", A, B))
    assert run.offsets(B) == (0, 0, 1)


FLAG_OFF = "2/4/2/0/1/0/1/1"


def test_case_2_1_below_the_log_start() -> None:
    run = Run(FLAG_OFF)
    run(*ALONE, *written(3), ("increment_log_start", A), ("become_follower", A, B))
    assert run.ways(A, B) == {"truncate_fully"}
    run(("truncate_fully", A, B))
    assert run.offsets(B) == (1, 1, 1)
    assert run.ways(A, B) == {"follower_fetch"}


def test_case_2_2_moved_to_tiered_storage() -> None:
    run = Run(FLAG_OFF)
    run(*ALONE, *written(4), *uploaded(0, 3), ("delete_local", A), ("become_follower", A, B))
    assert run.ways(A, B) == {"build_to_local_start"}
    run(("build_to_local_start", A, B, 0))
    assert run.offsets(B) == (0, 1, 1) and run.checkpoint(B) == {0: 0}
    assert run.ways(A, B) == {"follower_fetch"}


@pytest.mark.parametrize("log_start", [0, 1])
def test_an_empty_follower_begins_at_the_epuo(log_start: int) -> None:
    """After either error: OFFSET_MOVED_TO_TIERED_STORAGE, or OFFSET_OUT_OF_RANGE where the log starts above 0."""
    run = Run()
    run(*ALONE, *written(4), *uploaded(0, 3), *[("delete_local", A)] * 2, ("become_follower", A, B))
    run(*[("increment_log_start", A)] * log_start)
    assert run.ways(A, B) == {"build_to_epuo"}
    run(("build_to_epuo", A, B, 0))
    assert run.offsets(B) == (log_start, 3, 3) and run["hw[1]"] == 3
    run(("follower_fetch", A, B), ("leader_expand_isr", A, B))
    assert run.broken() == []


def test_a_follower_that_has_data_does_as_before() -> None:
    """It lags, the leader has deleted locally what it asks for, and it begins at the local log start, with no data."""
    run = Run()
    run(*ALONE, *written(4), ("become_follower", A, B), ("follower_fetch", A, B))
    run(*uploaded(0, 3), *[("delete_local", A)] * 2)
    assert run.ways(A, B) == {"build_to_local_start"}
    run(("build_to_local_start", A, B, 0))
    assert run.offsets(B) == (0, 2, 2)


def test_a_follower_at_an_offset_that_has_expired_everywhere() -> None:
    """It is at X; X has expired on remote, too: first the log start, then the local log start (two rounds)."""
    run = Run()
    run(*ALONE, *written(4), ("become_follower", A, B), ("follower_fetch", A, B))
    run(*uploaded(0, 2), *uploaded(2, 4), *[("delete_local", A)] * 3, *[("increment_log_start", A)] * 2)
    run(("delete_segment", A, 0, 0))
    assert run.ways(A, B) == {"truncate_fully"}
    run(("truncate_fully", A, B))
    assert run.ways(A, B) == {"build_to_local_start"}, "its LEO is 2 now: it is not empty any more"
    run(("build_to_local_start", A, B, 0))
    assert run.offsets(B) == (2, 3, 3)
    assert run.broken() == []


def test_epuo_unknown_and_nothing_uploaded() -> None:
    """Confirmed by log start = local log start, which is taken for the EPUO."""
    run = Run()
    run(*ALONE, *written(3), ("increment_log_start", A), ("become_follower", A, B))
    assert run["highest_remote[0]"] == -1
    assert run.ways(A, B) == {"start_at_local_start"}
    run(("start_at_local_start", A, B))
    assert run.offsets(B) == (1, 1, 1)


def test_epuo_unknown_and_an_upload_that_the_leader_does_not_know_yet() -> None:
    """The follower tries again: nothing that it may do changes anything, until the leader's task has run."""
    run = Run()
    run(
        *ALONE, *written(4), *uploaded(0, 2), *[("delete_local", A)] * 2, ("elect_leader", A), ("become_follower", A, B)
    )
    assert run["highest_remote[0]"] == -2
    assert run.ways(A, B) == set()
    assert run.refused(("build_to_epuo", A, B, 0)) == "epuo_is_known"
    assert run.refused(("start_at_local_start", A, B)) == "nothing_uploaded"
    run(("find_highest_remote_offset", A))
    assert run.ways(A, B) == {"build_to_epuo"}
    run(("build_to_epuo", A, B, 0))
    assert run.offsets(B) == (0, 2, 2)


def test_what_confirms_that_nothing_was_uploaded_does_not() -> None:
    """A leader that has not looked, and has deleted nothing locally: the follower copies all, which is only slow."""
    run = Run()
    run(
        *ALONE, *written(4), ("increment_log_start", A), *uploaded(1, 4), ("elect_leader", A), ("become_follower", A, B)
    )
    assert run["segment_state[0][1]"] == 3, "an upload is finished"
    assert run.ways(A, B) == {"start_at_local_start"}
    run(("start_at_local_start", A, B), *[("follower_fetch", A, B)] * 3)
    assert run.offsets(B) == (1, 1, 4)


def test_epuo_below_the_log_start() -> None:
    """Tiering is on, off and on again, as in the text: nothing valid is on remote, all that is local is copied."""
    run = Run()
    run(*ALONE, *written(1), *uploaded(0, 1), ("disable_tiering", A), *written(3), *[("increment_log_start", A)] * 2)
    run(("enable_tiering", A), ("become_follower", A, B))
    assert run["highest_remote[0]"] + 1 == 1 < run["log_start[0]"] == 2
    assert run.ways(A, B) == {"start_at_log_start"}
    run(("start_at_log_start", A, B), *[("follower_fetch", A, B)] * 2, ("leader_expand_isr", A, B))
    assert run.offsets(B) == (2, 2, 4)
    assert run.broken() == []


@pytest.mark.parametrize("steps", [1, 2, 3])
def test_each_step_of_an_upload_may_be_the_last_before_a_crash(steps: int) -> None:
    """What is not committed is no upload: the next leader uploads the same records, and deletes nothing before."""
    run = Run()
    run(*ALONE, *written(2), *uploaded(0, 2)[:steps])
    state = run["segment_state[0][0]"]
    assert state == steps
    assert run.refused(("delete_local", A)) == ("is_uploaded" if steps < 3 else None)
    run(("elect_leader", A), ("find_highest_remote_offset", A))
    assert run["highest_remote[0]"] == (1 if steps == 3 else -1)
    assert run.refused(("delete_local", A)) == ("is_uploaded" if steps < 3 else None)
    if steps < 3:
        run(*uploaded(0, 2))
        assert (run["segment_state[0][0]"], run["segment_state[1][0]"]) == (steps, 3)
    assert run.broken() == []


def test_a_remote_log_that_shares_a_part_of_the_lineage() -> None:
    """B has one record of A's four, is elected uncleanly, writes others: of three uploaded the first counts."""
    run = Run()
    run(*ALONE, *written(4), ("become_follower", A, B), ("follower_fetch", A, B), *uploaded(0, 1), *uploaded(1, 3))
    run(("elect_unclean_leader", B), *written(2, B), ("find_highest_remote_offset", B))
    assert run["highest_remote[1]"] == 0
    assert run.refused(("start_copy", B, 2)) is None
    run(*uploaded(1, 2, B), *[("delete_local", B)] * 2)
    assert run.row("remote_epoch", 1)[:2] == [0, 1] and run.row("remote_epoch", 0)[:3] == [0, 0, 0]
    assert run.refused(("delete_local", B)) == "is_uploaded"
    run(("become_follower", B, A))
    assert run.offsets(A) == (0, 0, 1), "what differs is cut off"
    assert run.broken() == []


def test_what_is_uploaded_is_stable() -> None:
    run = Run("1/3/0/1/0/1/0/0")
    run(("elect_leader", A), ("find_highest_remote_offset", A), ("leader_write", A), ("leader_write", A))
    assert run.refused(("start_copy", A, 1)) == "below_last_stable"
    run(("leader_inc_high_watermark", A))
    assert run.refused(("start_copy", A, 1)) == "below_last_stable", "its transaction is open"
    run(("end_transaction",))
    assert run.refused(("start_copy", A, 1)) is None
    assert run.refused(("start_copy", A, 2)) == "below_last_stable"
