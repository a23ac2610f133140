"""A follower finds where its log and the leader's part: rounds, fencing, the high watermark, old formats."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.files import read_file
from fencepost.impl.log import Codec, InvalidAppend, Record, encode_batch
from fencepost.impl.net import Flight
from fencepost.impl.replica import Role
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    Envelope,
    FetchResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
)

from .brokers import TP, Cluster
from .test_log_batches import message


def fill(cluster: Cluster, node: int, *spans: tuple[int, bytes]) -> None:
    """Make the broker write these values, each in an epoch, while nobody follows."""
    for epoch, values in spans:
        assert cluster.tell(node, cluster.request(node, epoch)) is ErrorCode.NONE
        for value in values:
            assert cluster.produce(node, bytes([value])).error is ErrorCode.NONE


def questions(cluster: Cluster, node: int) -> list[int]:
    """Let the follower truncate; the epochs that it asked for."""
    asked = []
    while cluster.state(node).role is Role.TRUNCATING:
        cluster.brokers[node].fire(("fetch", TP))
        flight = cluster.sent(node)
        body = flight.envelope.body
        assert isinstance(body, OffsetsForLeaderEpochRequest)
        assert body.current_leader_epoch == cluster.state(node).leader_epoch and body.replica_id == node
        asked.append(body.leader_epoch)
        assert cluster.network.exchange(flight) is not None
    return asked


@pytest.mark.parametrize(
    ("mine", "leaders", "kept", "asked"),
    [
        ([], [], b"", [-1]),
        ([], [(1, b"ab")], b"", [-1]),
        ([(1, b"ab")], [], b"", [1]),
        ([(1, b"abc")], [(1, b"ab")], b"ab", [1]),
        ([(1, b"ab")], [(1, b"abc")], b"ab", [1]),
        ([(1, b"ab"), (2, b"xy")], [(1, b"abcd")], b"ab", [2]),
        ([(1, b"abxy")], [(1, b"ab"), (3, b"cd")], b"ab", [1]),
        ([(1, b"ab"), (3, b"x")], [(1, b"ab"), (2, b"c")], b"ab", [3, 1]),
        ([(0, b"a"), (1, b"b"), (4, b"x")], [(0, b"a"), (2, b"c"), (3, b"d")], b"a", [4, 1]),
        (
            [(0, b"a"), (2, b"b"), (4, b"c"), (6, b"d")],
            [(0, b"a"), (1, b"x"), (3, b"y"), (5, b"z")],
            b"a",
            [6, 4, 2, 0],
        ),
        ([(1, b"ab")], [(2, b"cd")], b"", [1]),
        ([(2, b"ab")], [(1, b"cd")], b"", [2]),
    ],
    ids=str,
)
def test_the_log_is_cut_to_where_the_lineages_part(
    mine: list[tuple[int, bytes]], leaders: list[tuple[int, bytes]], kept: bytes, asked: list[int]
) -> None:
    """KIP-279's rounds: an epoch that one of the two does not know is stepped over."""
    cluster = Cluster(2)
    fill(cluster, 0, *leaders)
    fill(cluster, 1, *mine)
    request = cluster.request(0, 9)
    assert cluster.tell(0, request) is cluster.tell(1, request) is ErrorCode.NONE
    assert questions(cluster, 1) == asked
    assert cluster.values(1) == kept
    assert all(epoch < 9 and start < cluster.state(1).end for epoch, start in cluster.state(1).epochs)
    cluster.fetch_all(1)
    assert cluster.rows(1) == cluster.rows(0)
    assert cluster.crash(1).state(TP).end == cluster.state(0).end


def test_a_leader_that_wrote_nothing_forgets_its_epoch() -> None:
    cluster = Cluster(2)
    fill(cluster, 0, (0, b"ab"))
    cluster.elect(0, 1)
    cluster.fetch_all(1)
    cluster.elect(1, 4)
    assert cluster.state(1).epochs[-1] == (4, 2)
    cluster.elect(0, 5)
    assert cluster.state(1).epochs == ((0, 0),)


def test_the_high_watermark_is_cut_with_the_log_and_stored_lower_first() -> None:
    """A crash after the cut must not bring back a high watermark that covers what is written there next."""
    cluster = Cluster(2)
    fill(cluster, 1, (0, b"abc"))
    cluster.tell(1, cluster.request(1, 1, [1]))
    cluster.brokers[1].fire(("high-watermarks",))
    assert cluster.state(1).high_watermark == 3
    fill(cluster, 0, (2, b"xyz"))  # an unclean election
    cluster.elect(0, 3)
    assert cluster.state(1).high_watermark == 0 and cluster.state(1).end == 0
    cluster.exchange(1)
    cluster.exchange(1)
    assert cluster.values(1) == b"xy" and cluster.state(1).high_watermark == 1
    assert cluster.crash(1).state(TP).high_watermark == 0


def test_a_lower_high_watermark_is_on_disk_before_the_log_is_cut() -> None:
    cluster = Cluster(2)
    fill(cluster, 1, (0, b"abc"))
    cluster.tell(1, cluster.request(1, 1, [1]))
    cluster.brokers[1].fire(("high-watermarks",))
    fill(cluster, 0, (2, b"xyz"))
    stored = []

    def hook(operation: str, path: str) -> None:
        if operation == "truncate" and path.endswith(".log"):
            cluster.disks[1].hook = None
            stored.append(read_file(cluster.disks[1].crashed_copy(1), "replication-offset-checkpoint"))

    cluster.disks[1].hook = hook
    cluster.elect(0, 3)
    assert stored == [b"0\n1\norders 0 0\n"]


def test_a_follower_counts_nothing_as_committed_that_it_lacks() -> None:
    cluster = Cluster(2)
    fill(cluster, 0, (0, b"abc"))
    cluster.elect(0, 1, [0])
    assert cluster.state(0).high_watermark == 3
    seen = []
    for _ in range(4):
        cluster.exchange(1)
        seen.append((cluster.state(1).end, cluster.state(1).high_watermark))
    assert seen == [(1, 1), (2, 2), (3, 3), (3, 3)]


def test_the_high_watermark_only_moves_once_the_log_is_cut() -> None:
    """KAFKA-14704: no answer raises it while the replica truncates, and none with an error at all (KAFKA-13141)."""
    cluster = Cluster(2)
    fill(cluster, 0, (0, b"ab"))
    fill(cluster, 1, (0, b"ab"))
    cluster.tell(1, cluster.request(0, 3))
    cluster.brokers[1].fire(("fetch", TP))
    request = cluster.sent(1).envelope
    forged = FetchResponse(ErrorCode.NONE, 2, 0, 3)
    cluster.brokers[1].receive(Envelope(0, 1, request.correlation, forged))
    assert cluster.state(1).high_watermark == 0 and cluster.state(1).role is Role.TRUNCATING
    cluster.network.drop(cluster.sent(1))
    cluster.tell(0, cluster.request(0, 3))
    cluster.truncate(1)
    for error in set(ErrorCode) - {ErrorCode.NONE}:
        cluster.brokers[1].fire(("fetch", TP))
        request = cluster.sent(1).envelope
        cluster.network.drop(cluster.sent(1))
        cluster.brokers[1].receive(Envelope(0, 1, request.correlation, FetchResponse(error, 2, 0, 3)))
        assert cluster.state(1).high_watermark == 0 and cluster.state(1).end == 2
        cluster.truncate(1)


# -- fencing ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("leader_epoch", "error"), [(2, ErrorCode.UNKNOWN_LEADER_EPOCH), (4, ErrorCode.FENCED_REPLICA)]
)
def test_only_the_leader_of_the_same_epoch_says_where_to_cut(leader_epoch: int, error: ErrorCode) -> None:
    cluster = Cluster(2)
    fill(cluster, 0, (0, b"a"))
    fill(cluster, 1, (0, b"ab"), (1, b"c"))
    cluster.tell(0, cluster.request(0, leader_epoch))
    cluster.tell(1, cluster.request(0, 3))
    before = cluster.snapshot(0), cluster.rows(1)
    answer: Any = cluster.exchange(1)
    assert answer.error is error and answer.end_offset == -1
    assert (cluster.snapshot(0), cluster.rows(1)) == before
    assert cluster.state(1).role is Role.TRUNCATING and cluster.state(1).leader_epoch == 3
    at = cluster.brokers[1]._runtime.timers.get(("fetch", TP))
    assert at == cluster.network.clock.now() + cluster.config.replica_fetch_backoff_ms, "it tries again (KAFKA-7786)"


def test_a_follower_that_leads_no_more_cuts_by_nobodys_answer() -> None:
    """The answer to an earlier epoch's question is not waited for any more."""
    cluster = Cluster()
    fill(cluster, 0, (0, b"a"))
    fill(cluster, 1, (0, b"abc"))
    cluster.tell(0, cluster.request(0, 3))
    cluster.tell(1, cluster.request(0, 3))
    cluster.brokers[1].fire(("fetch", TP))
    late: Flight = cluster.sent(1)
    cluster.network.deliver(late)
    answer = cluster.sent(0)
    cluster.tell(1, cluster.request(2, 4))
    before = cluster.snapshot(1)
    cluster.network.deliver(answer)
    assert cluster.snapshot(1) == before and cluster.values(1) == b"abc"


def test_an_answer_is_taken_once_from_whom_was_asked_and_in_this_epoch() -> None:
    cluster = Cluster()
    fill(cluster, 1, (0, b"abc"))
    cluster.tell(1, cluster.request(0, 3))
    cluster.brokers[1].fire(("fetch", TP))
    asked = cluster.sent(1).envelope
    cut = OffsetsForLeaderEpochResponse(ErrorCode.NONE, 0, 1, 3)
    broker = cluster.brokers[1]
    for wrong in (
        Envelope(2, 1, asked.correlation, cut),
        Envelope(0, 1, asked.correlation + 1, cut),
        Envelope(0, 1, asked.correlation, replace(cut, end_offset=-7)),
        Envelope(0, 1, asked.correlation, replace(cut, end_offset=None)),
    ):
        broker.receive(wrong)
        assert cluster.state(1).role is Role.TRUNCATING and cluster.values(1) == b"abc"
    broker.receive(Envelope(0, 1, asked.correlation, replace(cut, answering_epoch=2)))
    assert cluster.state(1).role is Role.TRUNCATING and cluster.values(1) == b"abc"
    cluster.network.drop(cluster.sent(1))
    broker.fire(("fetch", TP))
    asked = cluster.sent(1).envelope
    broker.receive(Envelope(0, 1, asked.correlation, cut))
    assert cluster.state(1).role is Role.FOLLOWER and cluster.values(1) == b"a"
    before = cluster.snapshot(1)
    broker.receive(Envelope(0, 1, asked.correlation, replace(cut, end_offset=0)))
    assert cluster.snapshot(1) == before


def test_a_lost_question_is_asked_again() -> None:
    cluster = Cluster(2)
    fill(cluster, 1, (0, b"a"))
    cluster.tell(1, cluster.request(0, 3))
    cluster.tell(0, cluster.request(0, 3))
    cluster.brokers[1].wake()
    cluster.network.drop(cluster.sent(1))
    cluster.brokers[1].wake()
    assert cluster.nothing_sent(1)
    cluster.network.clock.advance(cluster.config.request_timeout_ms)
    cluster.brokers[1].wake()
    assert cluster.network.exchange(cluster.sent(1)) is not None
    assert cluster.state(1).role is Role.FOLLOWER


# -- what is out of range, and old formats ----------------------------------------------------------------------------


def test_a_follower_behind_the_leaders_log_start_begins_there() -> None:
    cluster = Cluster(2)
    cluster.elect(0, 0, [0])
    for value in b"abcd":
        cluster.produce(0, bytes([value]))
    cluster.brokers[0].partitions[TP].log.delete_before(3)
    answer: Any = cluster.exchange(1)
    assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and answer.log_start_offset == 3
    state = cluster.state(1)
    assert (state.log_start, state.end, state.high_watermark, state.role) == (3, 3, 3, Role.FOLLOWER)
    cluster.fetch_all(1)
    assert cluster.rows(1) == cluster.rows(0) == [(3, 0, b"d")]
    assert cluster.crash(1).state(TP).log_start == 3


@pytest.mark.parametrize("start", [3, 4, 5, 6])
@pytest.mark.parametrize("codec", [Codec.NONE, Codec.ZSTD])
def test_a_follower_begins_with_the_batch_that_straddles_the_leaders_log_start(start: int, codec: Codec) -> None:
    """Records were deleted up to an offset inside of a batch (KAFKA-6975)."""
    cluster = Cluster(2)
    cluster.elect(0, 0, [0])
    for values in (b"abc", b"def", b"gh"):
        batch = encode_batch([Record(bytes([value])) for value in values], codec=codec)
        assert cluster.ask(0, ProduceRequest(TP, 1, batch)).error is ErrorCode.NONE
    cluster.brokers[0].partitions[TP].log.delete_before(start)
    cluster.exchange(1)
    assert (cluster.state(1).log_start, cluster.state(1).end) == (start, start)
    cluster.fetch_all(1)
    leader, follower = cluster.state(0), cluster.state(1)
    assert (follower.log_start, follower.end, follower.high_watermark) == (start, 8, 8) and leader.log_start == start
    assert cluster.rows(1) == cluster.rows(0) and cluster.values(1) == b"abcdefgh"[start:]
    assert follower.epochs == ((0, start),)
    first = cluster.brokers[1].partitions[TP].log.read(start)[0]
    assert first.base_offset == start - start % 3
    state = cluster.crash(1).state(TP)
    assert (state.log_start, state.end, state.epochs) == (start, 8, ((0, start),))


def test_a_log_with_records_does_not_begin_anew_with_a_batch_that_begins_below_its_end() -> None:
    cluster = Cluster(2)
    fill(cluster, 0, (0, b"abc"))
    cluster.elect(0, 1, [0])
    cluster.fetch_all(1)
    log = cluster.brokers[1].partitions[TP].log
    log.delete_before(1)
    before = cluster.snapshot(1)
    within = encode_batch([Record(b"x"), Record(b"y"), Record(b"z")], base_offset=2, leader_epoch=1)
    assert log.straddled_by(within) is None and log.straddled_by(within, 2) is None
    assert log.straddled_by(within, 3) == 2
    with pytest.raises(InvalidAppend, match="where 3 follows"):
        log.append_as_follower(within)
    assert cluster.snapshot(1) == before
    log.truncate_fully_and_start_at(3)
    for base, straddled in ((0, None), (1, 1), (2, 2), (3, None), (4, None)):
        batch = encode_batch([Record(b"x"), Record(b"y"), Record(b"z")], base_offset=base, leader_epoch=1)
        assert log.straddled_by(batch) == straddled


@pytest.mark.parametrize(("epoch", "taken"), [(0, True), (1, True), (2, False), (1 << 30, False)])
def test_a_batch_of_a_later_epoch_than_the_leaders_is_damage(epoch: int, taken: bool) -> None:
    """No CRC covers a batch's epoch (KAFKA-18723). Taken, it would shut the replica out of every epoch below."""
    cluster = Cluster(2)
    cluster.elect(0, 1)
    cluster.brokers[1].fire(("fetch", TP))
    asked = cluster.sent(1).envelope
    batch = encode_batch([Record(b"x")], leader_epoch=epoch)
    answer = FetchResponse(ErrorCode.NONE, 0, 0, 1, batch)
    cluster.brokers[1].receive(Envelope(0, 1, asked.correlation, answer))
    state = cluster.state(1)
    assert (state.end == 1) is taken and (state.epochs == ((epoch, 0),)) is taken
    assert state.role is Role.FOLLOWER
    assert cluster.tell(1, cluster.request(1, 2)) is ErrorCode.NONE


def test_a_follower_beyond_the_leaders_end_asks_again_where_to_cut() -> None:
    cluster = Cluster(2)
    fill(cluster, 0, (0, b"ab"))
    cluster.elect(0, 1)
    cluster.fetch_all(1)
    cluster.brokers[0].partitions[TP].log.truncate_to(1)  # the leader's disk was exchanged
    before = cluster.snapshot(0)
    answer: Any = cluster.exchange(1)
    assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE and cluster.snapshot(0) == before
    assert cluster.state(1).role is Role.TRUNCATING and cluster.state(1).end == 2
    cluster.truncate(1)
    assert cluster.state(1).end == 1 and cluster.state(1).high_watermark == 1


def test_a_follower_without_records_beyond_the_leaders_end_begins_where_the_leader_does() -> None:
    """All that it had was deleted, and then a replica was elected uncleanly that lacks some: no epoch to ask by."""
    cluster = Cluster(2)
    fill(cluster, 0, (0, b"ab"))
    cluster.tell(1, cluster.request(0, 0))
    cluster.brokers[1].partitions[TP].start_at(3)
    cluster.elect(0, 1, [0])
    answer: Any = cluster.exchange(1)
    assert answer.error is ErrorCode.OFFSET_OUT_OF_RANGE
    assert (cluster.state(1).log_start, cluster.state(1).end, cluster.state(1).role) == (0, 0, Role.FOLLOWER)
    cluster.fetch_all(1)
    assert cluster.rows(1) == cluster.rows(0) and cluster.values(1) == b"ab"


def test_a_follower_raises_its_log_start_with_the_leaders() -> None:
    cluster = Cluster(2)
    cluster.elect(0, 0)
    for value in b"abcd":
        cluster.produce(0, bytes([value]))
    cluster.fetch_all(1)
    cluster.brokers[0].partitions[TP].log.delete_before(2)
    cluster.exchange(1)
    assert cluster.state(1).log_start == 2


def test_records_without_epochs_are_cut_to_the_high_watermark() -> None:
    """The old format leaves both caches without an epoch to go by; the cut is fenced all the same."""
    cluster = Cluster(2)
    old = b"".join(message(offset, bytes([value])) for offset, value in enumerate(b"abc"))
    for node in range(2):
        cluster.tell(node, cluster.request(1 - node, 0))
        cluster.brokers[node].partitions[TP].log.append_as_follower(old)
    cluster.brokers[1].partitions[TP].set_high_watermark(1)
    cluster.tell(0, cluster.request(0, 1))
    cluster.tell(1, cluster.request(0, 1))
    assert cluster.state(0).epochs == ((1, 3),) and cluster.state(1).epochs == ()
    assert questions(cluster, 1) == [-1]
    assert cluster.values(1) == b"a"
    cluster.produce(0, b"d")
    cluster.fetch_all(1)
    assert cluster.rows(1) == [(0, -1, b"a"), (1, -1, b"b"), (2, -1, b"c"), (3, 1, b"d")]
    assert cluster.state(1).epochs == ((1, 3),)
