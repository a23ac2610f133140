"""Replicas' logs as a few offsets of the model: what is merged, what is folded away, and what must stay apart."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from fencepost.traces.kafka.abstraction import ABSENT, Abstraction, abstract
from fencepost.traces.kafka.partition import PartitionFiles
from hypothesis import given, settings
from hypothesis import strategies as st

from .replica_logs import Row, plain, replica_log

Log = tuple[list[tuple[int, int]], int]
"""Epoch and payload by offset, and a high watermark."""


def words(target: Abstraction) -> list[tuple[int, int, tuple[int, ...], tuple[int, ...]]]:
    return [(block.first, block.last, block.epochs, block.identities) for block in target.blocks]


def test_a_divergence_above_a_shared_prefix() -> None:
    # What the unclean election of the bundled corpus left.
    target = abstract({3: plain("a0 c2", 2), 1: plain("a0", 1), 2: plain("a0 b0", 2)}, 3)
    assert target.nodes == (1, 2, 3)
    assert words(target) == [(0, 0, (0, 0, 0), (0, 0, 0)), (1, 1, (ABSENT, 0, 2), (ABSENT, 1, 2))]
    assert target.high_watermarks == (1, 2, 2)
    assert target.epochs == {0: 0, 2: 2}
    assert (target.records, target.unseen, target.folded, target.agreed, target.holes) == (3, 0, 0, False, ())
    assert [target.end(r) for r in range(3)] == [1, 2, 2]
    assert target.constants(1) == {"replicas": 3, "log_size": 2, "max_records": 4, "max_leader_epoch": 2}


def test_the_same_payload_in_two_epochs_is_two_records() -> None:
    target = abstract({1: plain("a0"), 2: plain("a1")}, 2)
    assert target.blocks[0].identities == (0, 1)
    assert not target.agreed


def test_a_third_replica_may_agree_with_the_second_alone() -> None:
    target = abstract({1: plain("a0"), 2: plain("b1"), 3: plain("b1"), 4: plain("a0")}, 4)
    assert target.blocks[0].identities == (0, 1, 1, 0)
    assert target.records == 2


def test_offsets_that_look_alike_become_one() -> None:
    short = abstract({1: plain("a0 b0 c1", 1), 2: plain("a0", 1)}, 2)
    long = abstract({1: plain("a0 a0 a0 b0 b0 c1 c1 c1", 3), 2: plain("a0 a0 a0", 3)}, 2)
    assert [(block.first, block.last) for block in long.blocks] == [(0, 2), (3, 4), (5, 7)]
    assert long.shape == short.shape


def test_a_high_watermark_keeps_offsets_apart() -> None:
    apart = abstract({1: plain("a0 b0 c0 d0", 2), 2: plain("a0 b0 c0 d0", 4)}, 2)
    assert [(block.first, block.last) for block in apart.blocks] == [(0, 1), (2, 3)]
    assert apart.high_watermarks == (1, 2)
    together = abstract({1: plain("a0 b0 c0 d0", 4), 2: plain("a0 b0 c0 d0", 4)}, 2)
    assert len(together.blocks) == 1


def test_a_broker_without_a_checkpoint_has_no_high_watermark() -> None:
    assert abstract({1: plain("a0", None), 2: plain("a0", 1)}, 2).high_watermarks == (None, 1)


@pytest.mark.parametrize(
    ("tail", "folded", "blocks"),
    [
        ("", 4, 2),  # two blocks stay where nothing differs, for no log may begin at nothing
        ("x3", 6, 2),
        ("x3 y4 z5", 6, 4),
    ],
)
def test_the_shared_prefix_below_the_smallest_high_watermark_is_folded(tail: str, folded: int, blocks: int) -> None:
    prefix = "a0 a0 b1 b1 c2 c2 d3 d3"
    target = abstract({1: plain(f"{prefix} {tail}", 8), 2: plain(prefix, 8)}, 2)
    assert (target.folded, len(target.blocks)) == (folded, blocks)
    assert target.blocks[0].first == folded
    assert target.blocks[0].common and target.high_watermarks[0] == target.high_watermarks[1] == 8 // 2 - folded // 2


def test_what_is_committed_on_one_replica_alone_is_not_folded() -> None:
    # Four shared epochs, but the smallest high watermark is below the second.
    target = abstract({1: plain("a0 b1 c2 d3", 1), 2: plain("a0 b1 c2 d3", 4)}, 2)
    assert [block.first for block in target.blocks] == [0, 1, 2, 3]
    assert target.high_watermarks == (1, 4)


@pytest.mark.parametrize(
    ("real", "model"),
    [([0], [0]), ([5], [1]), ([0, 1], [0, 1]), ([0, 7], [0, 2]), ([5, 6, 9], [1, 2, 4]), ([1, 3, 4], [1, 3, 4])],
)
def test_epochs_keep_their_order_and_their_gaps_up_to_two(real: list[int], model: list[int]) -> None:
    rows = [(n, epoch, n) for n, epoch in enumerate(real)]
    assert list(abstract({1: replica_log(rows), 2: replica_log([])}, 2).epochs.items()) == list(
        zip(real, model, strict=True)
    )


def test_logs_are_compared_from_the_latest_log_start() -> None:
    target = abstract({1: plain("a0 b0 c1", 3), 2: plain("c1", 3, start=2)}, 2)
    assert words(target) == [(2, 2, (1, 1), (0, 0))]
    assert target.folded == 0


def test_replicas_without_files_are_unseen() -> None:
    target = abstract({1: plain("a0", 1), 5: plain("a0", 1)}, 3)
    assert (target.nodes, target.unseen, target.replicas) == ((1, 5), 1, 3)
    assert target.constants()["replicas"] == 3
    assert abstract({1: plain("a0", 1), 5: plain("a0", 1)}, 2).shape != target.shape


def test_a_log_that_lacks_offsets_has_a_hole() -> None:
    compacted = replica_log([(0, 0, 1), (3, 0, 4)], 4)
    target = abstract({1: plain("a0 b0 c0 d0", 4), 2: compacted}, 2)
    assert target.holes == (2,)
    assert abstract({1: plain("a0 b0", 2), 2: plain("a0", 1)}, 2).holes == ()


def test_empty_logs_are_a_state_too() -> None:
    target = abstract({1: plain("", 0), 2: plain("", 0)}, 2)
    assert (target.blocks, target.epochs, target.agreed) == ((), {}, True)
    assert target.constants() == {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 0}


def _built(logs: Sequence[Log], widths: Sequence[int], start: int) -> dict[int, PartitionFiles]:
    bounds = [start + sum(widths[:n]) for n in range(len(widths) + 1)]
    found = {}
    for node, (records, mark) in enumerate(logs, 1):
        rows: list[Row] = [
            (offset, epoch, 100 * payload + offset)
            for n, (epoch, payload) in enumerate(records)
            for offset in range(bounds[n], bounds[n + 1])
        ]
        found[node] = replica_log(rows, bounds[mark], start=start, end=bounds[len(records)])
    return found


@st.composite
def replicas(draw: st.DrawFn) -> list[Log]:
    """Two or three logs of up to five records each, epochs rising, payloads of two kinds."""
    logs = []
    for _ in range(draw(st.integers(2, 3))):
        epochs = sorted(draw(st.lists(st.integers(0, 4), max_size=5)))
        payloads = draw(st.lists(st.integers(0, 1), min_size=len(epochs), max_size=len(epochs)))
        logs.append((list(zip(epochs, payloads, strict=True)), draw(st.integers(0, len(epochs)))))
    return logs


@settings(max_examples=150)
@given(replicas(), st.lists(st.integers(1, 4), min_size=5, max_size=5), st.integers(0, 1000))
def test_the_abstraction_sees_shapes_and_not_sizes(logs: list[Log], widths: list[int], start: int) -> None:
    narrow = abstract(_built(logs, [1] * 5, 0), len(logs))
    wide = abstract(_built(logs, widths, start), len(logs))
    assert wide.shape == narrow.shape
    assert wide.constants() == narrow.constants()


@settings(max_examples=150)
@given(replicas(), st.lists(st.integers(1, 3), min_size=5, max_size=5))
def test_blocks_tell_of_every_offset_what_the_logs_say(logs: list[Log], widths: list[int]) -> None:
    built = _built(logs, widths, 7)
    target = abstract(built, len(logs))
    rows = [
        {int(o): (int(e), int(h)) for o, e, h in zip(r.offset, r.leader_epoch, r.payload_hash, strict=True)}
        for r in (log.records for log in built.values())
    ]
    expected = 7 + target.folded
    for offset in range(7, expected):
        assert all(row.get(offset) == rows[0][offset] for row in rows), "only what all share is folded away"
        assert all(offset < (log.high_watermark or 0) for log in built.values()), "and only where it is committed"
    for before, block in zip([None, *target.blocks], target.blocks, strict=False):
        assert block.first == expected <= block.last, "blocks follow on each other"
        expected = block.last + 1
        for offset in range(block.first, block.last + 1):
            for r, row in enumerate(rows):
                assert block.epochs[r] == row.get(offset, (ABSENT, 0))[0]
                for other in range(r):
                    same = offset in row and row[offset] == rows[other].get(offset)
                    assert same == (block.identities[r] == block.identities[other] != ABSENT)
            for log in built.values():
                mark = log.high_watermark or 0
                assert (offset < mark) == (block.last < mark), "on one side of every high watermark"
        if before is not None:
            alike = (before.epochs, before.identities) == (block.epochs, block.identities)
            assert not alike or any(log.high_watermark == block.first for log in built.values()), "else one block"
    assert expected == max([7 + target.folded, *(log.log_end for log in built.values())])
    reals, models = list(target.epochs), list(target.epochs.values())
    assert reals == sorted(set(reals)) and models == sorted(set(models))
    assert all(model <= real for real, model in target.epochs.items())


def test_offsets_that_a_replica_has_cleaned_away_are_not_looked_at() -> None:
    """Two replicas of a compacted log, the first cleaned: it lacks offsets 0 and 2, below its end."""
    rows = [(0, 0, 10), (1, 0, 11), (2, 0, 12), (3, 1, 13), (4, 1, 14)]
    logs = {1: replica_log([rows[1], rows[3], rows[4]], 4, end=5), 2: replica_log(rows[:4], 4)}
    assert abstract(logs, 2).holes == (1,)
    target = abstract(logs, 2, compacted=True)
    assert target.holes == () and [(block.first, block.last) for block in target.blocks][-1] == (4, 4)
    assert target.end(0) == target.end(1) + 1, "the last record is one that the second lacks"
    other = {**logs, 2: replica_log([*rows[:3], (3, 0, 99)], 4)}
    assert not abstract(other, 2, compacted=True).agreed, "a difference that compaction has left is still seen"
