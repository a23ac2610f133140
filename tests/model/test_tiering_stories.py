"""What KIP-1023 tells, as runs of the reference interpreter, and the stories of the holes in its text.

Constants: replicas/log size/leader epoch/last tiered offset/unclean/transactions/switches/expires.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.tiering import tiering

Call = tuple[str | int, ...]
SAFE = "kip-1023-safe"
A, B = 0, 1
FOLLOWING = (
    "follower_fetch",
    "truncate_fully",
    "build_to_local_start",
    "build_to_epuo",
    "start_at_local_start",
    "start_at_log_start",
)


@cache
def system_of(variant: str, constants: str, *dropped: str) -> System:
    values = dict(zip(tiering.constants, map(int, constants.split("/")), strict=True))
    return ground(tiering.traced(variant).drop(*dropped), values)


class Run:
    """A run of the reference interpreter; a call is an action and the values of its parameters."""

    def __init__(self, constants: str = "2/4/2/1/1/0/1/1", variant: str = SAFE, *dropped: str) -> None:
        self.system = system_of(variant, constants, *dropped)
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
        return action, tuple(zip(tiering.actions[action].params, map(int, call[1:]), strict=True))

    def refused(self, call: Call) -> str | None:
        return self.reference.refused_by(self.state, *self._step(call))

    def __getitem__(self, cell: str) -> int:
        return self.state[self.system.layout.by_name[cell]]

    def row(self, name: str, first: int) -> list[int]:
        """What a variable holds at all offsets."""
        return [self[f"{name}[{first}][{offset}]"] for offset in range(self.system.constants["log_size"])]

    def offsets(self, replica: int) -> tuple[int, int, int]:
        """Log start, local log start, LEO."""
        return self[f"log_start[{replica}]"], self[f"local_start[{replica}]"], self[f"leo[{replica}]"]

    def checkpoint(self, replica: int) -> dict[int, int]:
        """A replica's leader epochs, each with its first offset: what the text calls leader_epochs."""
        start, _, end = self.offsets(replica)
        epochs = self.row("record_epoch", replica)[start:end]
        return {epoch: start + epochs.index(epoch) for epoch in sorted(set(epochs))}

    def ways(self, leader: int, follower: int) -> set[str]:
        """The actions by which a follower may go on."""
        found = set()
        for action in FOLLOWING:
            by_epoch = "epoch" in tiering.actions[action].params
            for epoch in range(self.system.constants["max_leader_epoch"] + 1) if by_epoch else [-1]:
                call: Call = (action, leader, follower, *([epoch] if by_epoch else []))
                if self.refused(call) is None:
                    found.add(action)
        return found

    def broken(self) -> list[str]:
        return self.reference.broken(self.state)


ALONE: list[Call] = [("elect_leader", A), ("find_highest_remote_offset", A), ("leader_shrink_isr", A, B)]
"""A leads alone, and B is empty and out of the ISR."""


def written(count: int, leader: int = A) -> list[Call]:
    return [("leader_write", leader), ("leader_inc_high_watermark", leader)] * count


def uploaded(start: int, end: int, leader: int = A) -> list[Call]:
    return [("start_copy", leader, end), ("copy_segment", leader, start), ("finish_copy", leader, start)]


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


# B has a record of epoch 0 at offset 0, and A's log begins behind its own of epoch 1.
STALE: list[Call] = [
    ("elect_leader", B),
    ("elect_leader", A),
    ("find_highest_remote_offset", A),
    ("leader_shrink_isr", A, B),
    *written(1),
    *uploaded(0, 1),
    ("increment_log_start", A),
    ("leader_write", B),
    ("become_follower", A, B),
    ("leader_expand_isr", A, B),
    ("elect_leader", B),
]


def test_hole_1_what_a_follower_cannot_compare() -> None:
    """B serves, and uploads, a record that was never committed in the place of one that was."""
    for variant in ("kip-1023", "keeps-uncompared"):
        run = Run(variant=variant)
        run(*STALE)
        assert run.offsets(B) == (0, 0, 1) and run.checkpoint(B) == {0: 0}
    run(
        ("find_highest_remote_offset", B),
        ("become_follower", B, A),
        ("leader_inc_high_watermark", B),
        *uploaded(0, 1, B),
    )
    assert run["remote_epoch[1][0]"] == 1 and run["remote_epoch[2][0]"] == 0
    run = Run()
    run(*STALE)
    assert run.offsets(B) == (1, 1, 1)


# B has the first record; A has its log begin behind that before it uploads anything.
EXPIRED: list[Call] = [
    ("elect_leader", A),
    ("find_highest_remote_offset", A),
    *[("leader_write", A)] * 2,
    ("become_follower", A, B),
    *[("follower_fetch", A, B)] * 2,
    *[("leader_inc_high_watermark", A)] * 2,
    ("increment_log_start", A),
    *uploaded(1, 2),
    ("elect_leader", B),
    ("become_follower", B, A),
    ("leader_inc_high_watermark", B),
    ("find_highest_remote_offset", B),
]


def test_hole_3_the_highest_offset_does_not_say_that_all_below_is_uploaded() -> None:
    for variant in ("kip-1023", "highest-alone"):
        run = Run(variant=variant)
        run(*EXPIRED)
        assert (run["highest_remote[1]"], run.offsets(B)) == (1, (0, 0, 2))
        run(("delete_local", B))
        assert run.broken() == ["leader_can_serve"]
    run = Run()
    run(*EXPIRED)
    assert run.offsets(B) == (1, 1, 2)
    run(("leader_inc_high_watermark", B), ("delete_local", B))
    assert run.broken() == []


def test_hole_2_a_checkpoint_that_begins_late() -> None:
    """Of two segments with the record before the EPUO one is of a deposed leader that let the first one expire."""
    story: list[Call] = [
        *EXPIRED[: EXPIRED.index(("start_copy", A, 2))],
        ("elect_leader", B),
        ("find_highest_remote_offset", B),
        ("leader_shrink_isr", B, A),
        *[("leader_inc_high_watermark", B)] * 2,
        *uploaded(0, 2, B),
        ("delete_local", B),
        *uploaded(1, 2, A),
        ("replace_replica", A),
        ("become_follower", B, A),
    ]
    for variant in ("kip-1023", "short-checkpoint"):
        run = Run(variant=variant)
        run(*story)
        assert run.row("remote_epoch", 0)[:2] == [-1, 0] and run.row("remote_epoch", 1)[:2] == [0, 0]
        run(("build_to_epuo", B, A, 0))
        assert run.offsets(A) == (0, 2, 2) and run.row("record_epoch", A)[:2] == [-1, 0]
        assert run.broken() == ["lineage_is_leaders"]
    for epoch, log_start in ((0, 1), (1, 0)):
        run = Run()
        run(*story, ("build_to_epuo", B, A, epoch))
        assert run.offsets(A) == (log_start, 2, 2)
        assert run.broken() == []


def test_hole_4_a_deposed_leader_deletes_segments() -> None:
    story: list[Call] = [
        ("elect_leader", A),
        ("find_highest_remote_offset", A),
        ("leader_write", A),
        ("become_follower", A, B),
        ("follower_fetch", A, B),
        ("leader_inc_high_watermark", A),
        *uploaded(0, 1),
        ("elect_leader", B),
        ("leader_shrink_isr", B, A),
        ("leader_inc_high_watermark", B),
        ("find_highest_remote_offset", B),
        ("delete_local", B),
        ("increment_log_start", A),
    ]
    deletes: Call = ("delete_segment", A, 0, 0)
    for variant in ("kip-1023", "deposed-deletes"):
        run = Run(variant=variant)
        run(*story, deletes)
        assert run.offsets(B) == (0, 1, 1)
        assert run.broken() == ["leader_can_serve"]
    run = Run()
    run(*story)
    assert run.refused(deletes) == "epoch_is_newest"


def test_hole_5_tiering_is_switched_off_under_who_began_at_the_epuo() -> None:
    """B is in the ISR with nothing but what is on remote. A still has records that B never copied."""
    story: list[Call] = [
        *ALONE,
        *written(3),
        *uploaded(0, 3),
        ("delete_local", A),
        ("become_follower", A, B),
        ("build_to_epuo", A, B, 0),
        ("leader_expand_isr", A, B),
    ]
    for variant in ("kip-1023", "disabled-under-isr"):
        run = Run(variant=variant)
        run(*story, ("disable_tiering", A))
        hears = tiering.variants[variant].rules.isr_hears_start
        assert run.offsets(A) == (1, 1, 3) and run.offsets(B) == (int(hears), 3, 3)
        assert run.broken() == ["isr_can_serve"]
        run(("elect_leader", B))
        assert run.offsets(B) == (3, 3, 3), "no record is left, though none has expired"
    run = Run()
    run(*story)
    assert run.refused(("disable_tiering", A)) == "isr_is_whole"
    run(("leader_shrink_isr", A, B), ("disable_tiering", A))
    assert run.refused(("leader_expand_isr", A, B)) == "has_all_there_is"
    run(("copy_anew", A, B), *[("follower_fetch", A, B)] * 2, ("leader_expand_isr", A, B))
    assert run.offsets(B) == (1, 1, 3)
    assert run.broken() == []


def test_hole_6_tiering_is_switched_off_at_the_leader_alone() -> None:
    """C began at the EPUO; A's log begins there too when tiering is off, but B, elected next, serves from 0 on."""
    c = 2
    story: list[Call] = [
        ("elect_leader", A),
        ("find_highest_remote_offset", A),
        ("leader_shrink_isr", A, B),
        ("leader_shrink_isr", A, c),
        *written(1),
        *uploaded(0, 1),
        ("become_follower", A, B),
        ("follower_fetch", A, B),
        ("delete_local", A),
        ("become_follower", A, c),
        ("build_to_epuo", A, c, 0),
        ("leader_expand_isr", A, B),
    ]
    later: list[Call] = [("leader_expand_isr", A, c), ("disable_tiering", A)]
    for switched in (later, list(reversed(later))):
        for variant in ("kip-1023", "disabled-at-leader"):
            run = Run("3/1/1/1/0/0/1/0", variant)
            run(*story, *switched)
            assert [run.offsets(r) for r in (A, B, c)] == [(1, 1, 1), (0, 0, 1), (0, 1, 1)]
            assert run.broken() == []
            run(("elect_leader", B))
            assert run.broken() == ["isr_can_serve"], "what B has, and serves, C has not and claims"
        run = Run("3/1/1/1/0/0/1/0")
        run(*story, *switched)
        assert [run.offsets(r) for r in (A, B, c)] == [(1, 1, 1)] * 3
        run(("elect_leader", B))
        assert run.broken() == []


def test_no_log_begins_behind_its_end_where_tiering_is_switched_off() -> None:
    """After an unclean election a leader's log may begin behind the end of one of the ISR, which has to go first."""
    c = 2
    story: list[Call] = [
        ("elect_leader", A),
        ("find_highest_remote_offset", A),
        ("leader_shrink_isr", A, B),
        ("leader_shrink_isr", A, c),
        *written(1),
        *uploaded(0, 1),
        ("delete_local", A),
        ("disable_tiering", A),
        ("enable_tiering", A),
        ("elect_unclean_leader", B),
        ("become_follower", B, c),
        ("leader_expand_isr", B, c),
        ("leader_write", B),
        ("become_follower", B, A),
        ("leader_expand_isr", B, A),
        ("elect_leader", A),
    ]
    run = Run("3/1/2/1/1/0/1/0")
    run(*story)
    assert [run.offsets(r) for r in (A, B, c)] == [(1, 1, 1), (0, 0, 1), (0, 0, 0)]
    assert run.refused(("disable_tiering", A)) == "isr_reaches_start"
    without = Run("3/1/2/1/1/0/1/0", SAFE, "disable_tiering.isr_reaches_start")
    without(*story, ("disable_tiering", A))
    assert "offsets_in_order" in without.broken()
    run(("leader_shrink_isr", A, c), ("disable_tiering", A))
    assert run.broken() == []


def test_kafka_keeps_the_highest_offset_of_an_earlier_office() -> None:
    """A uploads, is deposed uncleanly, loses that part of its log, leads again, and deletes what is nowhere else."""
    story: list[Call] = [
        *ALONE,
        *written(1),
        *uploaded(0, 1),
        ("elect_unclean_leader", B),
        ("leader_write", B),
        ("become_follower", B, A),
        ("follower_fetch", B, A),
        ("leader_inc_high_watermark", B),
        ("leader_expand_isr", B, A),
        ("elect_leader", A),
        ("leader_shrink_isr", A, B),
        ("leader_inc_high_watermark", A),
    ]
    run = Run(variant="keeps-highest")
    run(*story, ("delete_local", A))
    assert run.broken() == ["leader_can_serve"]
    run = Run()
    run(*story)
    assert run.refused(("delete_local", A)) == "is_uploaded"
    run(("find_highest_remote_offset", A))
    assert run.refused(("delete_local", A)) == "is_uploaded"


def test_kafka_stores_the_offsets_first() -> None:
    """A crash before the epochs are stored leaves a follower that is not empty, and knows no epochs."""
    run = Run(variant="offsets-first")
    run(*ALONE, *written(1), *uploaded(0, 1), ("delete_local", A), ("become_follower", A, B))
    run(("crash_while_building", A, B))
    assert run.offsets(B) == (0, 1, 1) and run["record_epoch[1][0]"] == -1
    assert run.broken() == ["lineage_is_leaders"]
