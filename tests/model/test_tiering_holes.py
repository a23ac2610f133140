"""The holes in KIP-1023's text, and where Apache Kafka differs, told as runs of the reference interpreter."""

from __future__ import annotations

from fencepost.model.protocols.tiering import tiering

from .tiering_runs import ALONE, SAFE, A, B, Call, Run, uploaded, written

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
