"""A follower whose leader has its next records in remote storage alone (KIP-405, KIP-1023)."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import EpochEntry, LogConfig, Record, encode_batch
from fencepost.impl.tiering import METADATA, RemoteStore, SimulatedJobs, TieredTopic, bootstrap
from fencepost.impl.tiering.segments import RemoteSegment
from fencepost.impl.wire.messages import (
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    FetchRequest,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
)

from .brokers import TP
from .s3_server import s3_server
from .tiering_rack import CONFIG, TIERING, TieredRack, value_of, values_of

ENABLED = replace(TIERING, follower_fetch_last_tiered_offset_enable=True)
SOME_LOCAL = TieredTopic(local_retention_bytes=900)
"""Some of what is uploaded stays on the leader's disk."""


def ready(
    *, enabled: bool = True, records: int = 30, topic: TieredTopic = SOME_LOCAL, **settings: object
) -> TieredRack:
    """Leader 0 and follower 1 have records in several epochs, most of them uploaded; broker 2 is down, and empty."""
    rack = TieredRack(3, topic=topic, tiering=ENABLED if enabled else TIERING, **settings)  # type: ignore[arg-type]
    rack.begin()
    rack.wipe(2)
    rack.run(600)
    for epoch in range(3):
        rack.elect(epoch % 2, 1 + epoch, isr=(0, 1))
        rack.run()
        rack.write(epoch % 2, records // 3)
    rack.elect(0, 9, isr=(0, 1))
    rack.run()
    return rack


def join(rack: TieredRack, node: int = 2) -> None:
    """Start the empty broker and wait until it is in both ISRs."""
    rack.start(node)
    rack.tell(node, METADATA)
    rack.tell(node)
    rack.until(rack.whole)
    rack.run()


def epochs(rack: TieredRack, node: int) -> tuple[tuple[int, int], ...]:
    """Those that wrote something: a leader knows its own before it has."""
    state = rack.state(node)
    return tuple(entry for entry in state.epochs if entry[1] < state.end)


def test_an_empty_follower_begins_with_the_earliest_pending_upload() -> None:
    rack = ready()
    pending, _ = rack.list_offsets(0, EARLIEST_PENDING_UPLOAD)
    local, _ = rack.list_offsets(0, EARLIEST_LOCAL)
    assert 0 < local < pending < 30
    join(rack)
    log = rack.log(2)
    assert (log.log_start, log.local_start, log.end) == (0, pending, 30)
    assert epochs(rack, 2) == epochs(rack, 0)


def test_without_the_switch_it_begins_where_its_leader_does() -> None:
    rack = ready(enabled=False)
    local, _ = rack.list_offsets(0, EARLIEST_LOCAL)
    join(rack)
    log = rack.log(2)
    assert (log.log_start, log.local_start, log.end) == (0, local, 30)
    assert epochs(rack, 2) == epochs(rack, 0)


def test_who_began_so_can_lead_and_serve_everything() -> None:
    rack = ready()
    join(rack)
    rack.elect(2, 10)
    rack.run()
    assert values_of(rack.consume(2, 0)) == list(range(30))
    rack.write(2, 10)
    rack.run()
    assert values_of(rack.consume(2, 0)) == list(range(40))
    assert rack.segments(2)[-1].end_offset + 1 == rack.log(2).segment_bases[-1]


def test_it_begins_so_where_the_leader_answers_out_of_range() -> None:
    """Records below the log start were deleted, so that offset 0 is none of the leader's."""
    rack = ready()
    rack.log(0).delete_before(5)
    pending, _ = rack.list_offsets(0, EARLIEST_PENDING_UPLOAD)
    join(rack)
    log = rack.log(2)
    assert (log.log_start, log.local_start, log.end) == (5, pending, 30)
    assert epochs(rack, 2) == epochs(rack, 0)


def test_a_follower_with_records_never_jumps() -> None:
    """One that lags behind the leader's local log begins where that does, whatever the switch says."""
    rack = ready()
    join(rack)
    rack.stop(2)
    rack.run(600)
    rack.write(0, 30)
    rack.run()
    local, _ = rack.list_offsets(0, EARLIEST_LOCAL)
    assert local > 30
    join(rack)
    log = rack.log(2)
    assert (log.log_start, log.local_start, log.end) == (0, local, 60)
    assert epochs(rack, 2) == epochs(rack, 0)


def test_an_offset_that_the_leader_still_has_is_simply_fetched() -> None:
    """Case 1 of the text: uploaded, and not deleted from the leader's disk."""
    rack = ready(topic=TieredTopic())
    assert rack.segments() and rack.log(0).local_start == 0
    join(rack)
    assert (rack.log(2).local_start, rack.log(2).end) == (0, 30)


def test_nothing_uploaded_yet_is_confirmed_by_the_local_log_start() -> None:
    rack = ready(records=3, config=replace(CONFIG, log=LogConfig(segment_bytes=3000)))
    assert not rack.segments()
    rack.log(0).delete_before(2)
    assert rack.list_offsets(0, EARLIEST_PENDING_UPLOAD)[0] == -1
    join(rack)
    assert (rack.log(2).log_start, rack.log(2).local_start, rack.log(2).end) == (2, 2, 3)


def test_an_upload_that_the_leader_does_not_know_of_yet_changes_nothing_and_is_waited_for() -> None:
    rack = ready()
    copier = rack.remote(0).copier
    assert copier is not None
    known, copier.highest = copier.highest, None
    candidates, copier.candidates = copier.candidates, list  # type: ignore[method-assign]
    assert rack.list_offsets(0, EARLIEST_PENDING_UPLOAD) == (-1, -1)
    rack.start(2)
    rack.tell(2, METADATA)
    rack.tell(2)
    rack.run(500)
    log = rack.log(2)
    assert (log.log_start, log.local_start, log.end, rack.whole()) == (0, 0, 0, False)
    assert rack.managers[2].metrics.build_errors.rate() > 0
    copier.candidates, copier.highest = candidates, known  # type: ignore[method-assign]
    rack.until(rack.whole)
    assert rack.log(2).local_start == 1 + (known or 0)


def test_an_upload_below_the_log_start_means_a_full_local_copy() -> None:
    """Tiering was off for a time: what is remote is older than the log."""
    rack = ready()
    pending, _ = rack.list_offsets(0, EARLIEST_PENDING_UPLOAD)
    rack.log(0).delete_before(pending + 1)
    assert rack.list_offsets(0, EARLIEST_PENDING_UPLOAD)[0] == pending < rack.log(0).log_start
    join(rack)
    log = rack.log(2)
    assert (log.log_start, log.local_start, log.end) == (pending + 1, pending + 1, 30)


def test_a_bootstrap_that_crashed_is_done_again() -> None:
    for after in range(1, 40, 3):
        rack = ready(records=24)
        pending, _ = rack.list_offsets(0, EARLIEST_PENDING_UPLOAD)
        rack.start(2)
        rack.tell(2, METADATA)
        rack.run(100)
        disk: SimulatedFiles = rack.disks[2]
        left = after

        class Stop(BaseException):
            pass

        def hook(operation: str, path: str) -> None:
            nonlocal left
            if TP.topic in path or "checkpoint" in path:
                left -= operation not in ("pread", "open", "list")
                if left <= 0:
                    raise Stop

        disk.hook = hook
        try:
            rack.tell(2)
            rack.until(rack.whole)
        except Stop:
            disk.hook = None
            rack.crash(2, seed=after)
            join(rack)
        disk.hook = None
        log = rack.log(2)
        assert (log.log_start, log.end) == (0, 24) and log.local_start == pending, after
        assert epochs(rack, 2) == epochs(rack, 0)


def test_what_producers_have_sent_goes_along() -> None:
    """A repeat of the last batch is known by a follower that never had it, and is not written twice."""
    rack = ready()
    assert rack.produce(0, b"a" * 40, producer_id=7, producer_epoch=0, base_sequence=0).base_offset == 30
    rack.write(0, 9)
    rack.run()
    assert rack.log(0).local_start <= 30 < rack.list_offsets(0, EARLIEST_PENDING_UPLOAD)[0]
    join(rack)
    assert rack.log(2).local_start > 31
    rack.elect(2, 10)
    rack.run()
    end = rack.log(2).end
    again = rack.produce(2, b"a" * 40, producer_id=7, producer_epoch=0, base_sequence=0)
    assert (again.base_offset, rack.log(2).end) == (30, end)
    assert rack.produce(2, b"b" * 40, producer_id=7, producer_epoch=0, base_sequence=1).base_offset == end


# -- the text's example ---------------------------------------------------------------------------------------------

EPOCHS = {0: 0, 1: 0, 2: 0, 3: 1, 4: 1, 5: 2, 6: 2, 7: 3}
"""Offsets of the messages 0 to 7, and their leader epochs."""


def test_the_two_steps_of_the_text_to_the_letter() -> None:
    """KIP-1023, "Follower Fetch Scenarios"."""
    # Segments of three messages have to hold the metadata log's records, too.
    key = b"." * 200
    message = len(encode_batch([Record(b"msg 0", key, timestamp=0)]))
    config = replace(CONFIG, log=LogConfig(segment_bytes=3 * message, index_interval_bytes=0))
    # Broker A has 3 to 7: segments 3-5, uploaded and on its disk still, and 6-7.
    topic = TieredTopic(local_retention_bytes=4 * message)
    rack = TieredRack(2, config=config, topic=topic, tiering=ENABLED)
    rack.elect(0, 0, (0,), METADATA)
    rack.wipe(1)
    epoch = -1
    for offset, at in EPOCHS.items():
        if at != epoch:
            epoch = at
            rack.elect(0, epoch, isr=(0,))
        batch = encode_batch([Record(b"msg %d" % offset, key, timestamp=rack.network.clock.wall())])
        assert rack.ask(0, ProduceRequest(TP, -1, batch)).base_offset == offset
    rack.run()
    log = rack.log(0)
    assert (log.log_start, log.local_start, log.end, rack.state(0).high_watermark) == (0, 3, 8, 8)
    assert epochs(rack, 0) == ((0, 0), (1, 3), (2, 5), (3, 7))
    assert [(each.start_offset, each.end_offset, each.epochs) for each in rack.segments()] == [
        (0, 2, ((0, 0),)),
        (3, 5, ((1, 3), (2, 5))),
    ]

    # Step 1: fetch remote segment info, and rebuild the leader epoch sequence.
    seen: list[tuple[str, int, int]] = []

    def observer(what: str, _at: int, envelope: object) -> None:
        body = getattr(envelope, "body", None)
        if what == "delivered" and isinstance(body, ListOffsetsRequest):
            seen.append(("list", body.timestamp, -1))
        elif what == "delivered" and isinstance(body, ListOffsetsResponse):
            seen.append(("listed", body.offset, body.leader_epoch))
        elif what == "delivered" and isinstance(body, FetchRequest) and body.partition == TP and body.replica_id == 1:
            seen.append(("fetch", body.fetch_offset, -1))

    rack.network.observer = observer
    rack.start(1)
    rack.tell(1, METADATA)
    rack.run(100)
    rack.tell(1)
    rack.until(lambda: rack.log(1).local_start == 6)
    assert (rack.log(1).log_start, rack.log(1).end) == (0, 6)
    assert epochs(rack, 1) == ((0, 0), (1, 3), (2, 5))
    assert seen[:3] == [("fetch", 0, -1), ("list", EARLIEST_PENDING_UPLOAD, -1), ("listed", 6, 2)]

    # Step 2: continue fetching from the leader.
    rack.until(rack.whole)
    assert [offset for what, offset, _ in seen if what == "fetch"][1] == 6
    assert epochs(rack, 1) == ((0, 0), (1, 3), (2, 5), (3, 7))
    local = [(record.offset, record.value, record.leader_epoch) for record in rack.log(1).records(6)]
    assert local == [(6, b"msg 6", 2), (7, b"msg 7", 3)]
    rack.elect(1, 4)
    rack.run()
    assert [(offset, epoch) for offset, epoch, _ in rack.consume(1, 0)] == list(EPOCHS.items())


# -- unclean elections ----------------------------------------------------------------------------------------------


def test_a_deposed_leaders_segment_is_not_taken_for_the_lineage() -> None:
    """Broker 0 uploads what broker 1 never had; 1 is elected all the same, and writes other records there."""
    rack = TieredRack(3, tiering=ENABLED, topic=TieredTopic(local_retention_bytes=0))
    rack.begin()
    rack.write(0, 5)
    rack.network.isolate(1)
    rack.stop(2)
    rack.run(600)
    rack.elect(0, 1, isr=(0,), partition=METADATA)
    rack.elect(0, 1, isr=(0,))
    rack.run()
    rack.write(0, 10)
    rack.run()
    deposed = rack.segments()
    assert any(each.start_offset < 5 <= each.end_offset for each in deposed) or deposed[-1].start_offset >= 5
    assert rack.log(0).local_start > 5
    rack.network.heal()
    rack.tell(1, METADATA)
    rack.until(lambda: len(rack.remote(1).segments().finished()) == len(deposed))
    kept = rack.log(1).end
    assert kept == 5
    rack.elect(1, 2, isr=(1,))
    for n in range(12):
        assert rack.produce(1, value_of(500 + n)).base_offset == 5 + n
    rack.run()
    values = [*range(5), *range(500, 512)]
    assert values_of(rack.consume(1, 0)) == values
    last, epoch = rack.list_offsets(1, EARLIEST_PENDING_UPLOAD)
    assert last == rack.log(1).segment_bases[-1] and epoch == 2
    rack.wipe(2)
    join(rack)
    assert epochs(rack, 2) == epochs(rack, 1)
    rack.elect(2, 3)
    rack.run()
    assert values_of(rack.consume(2, 0)) == values
    rack.elect(0, 4)
    rack.run()
    assert values_of(rack.consume(0, 0)) == values, "the deposed leader has cut what it alone had"


@pytest.mark.parametrize(
    ("uploaded", "own", "wanted"),
    [
        # The uploader's log started within the segment: its own records are all known, by the metadata log.
        ([(1, 3)], [(1, 2)], [(1, 2)]),
        ([(1, 3), (4, 5)], [(1, 2), (4, 5)], [(1, 2), (4, 5)]),
        # What comes before the segment is known by what was uploaded alone.
        ([(0, 0), (1, 3)], [(1, 2)], [(0, 0), (1, 2)]),
        ([(0, 0), (1, 1)], [(1, 2), (4, 5)], [(0, 0), (1, 1), (4, 5)]),
        ([], [(1, 2)], [(1, 2)]),
    ],
)
def test_a_segments_own_epochs_are_known_though_its_uploader_had_deleted_some(
    uploaded: list[tuple[int, int]], own: list[tuple[int, int]], wanted: list[tuple[int, int]]
) -> None:
    known = tuple(EpochEntry(*each) for each in own)
    segment = RemoteSegment("t", UUID(int=0), 0, UUID(int=1), 2, 6, 0, 0, 0, known, 100)
    found = bootstrap._joined([EpochEntry(*each) for each in uploaded], segment)
    assert [(each.epoch, each.start_offset) for each in found] == wanted


def test_a_segment_of_which_the_lineage_has_a_part_goes_by_retention_too() -> None:
    """It is the first of the new leader's log, and what it has beyond that is a deposed leader's."""
    rack = TieredRack(2, tiering=ENABLED, topic=TieredTopic(retention_ms=30_000, local_retention_ms=30_000))
    rack.begin()
    rack.write(0, 1)
    rack.network.isolate(1)
    rack.run(600)
    rack.elect(0, 1, isr=(0,), partition=METADATA)
    rack.elect(0, 1, isr=(0,))
    rack.write(0, 10)
    rack.run()
    first = rack.segments()[0]
    assert first.start_offset == 0 and first.end_offset > 0
    rack.network.heal()
    rack.tell(1, METADATA)
    rack.until(lambda: len(rack.remote(1).segments().finished()) == len(rack.segments()))
    rack.elect(1, 2, isr=(1,))
    assert rack.produce(1, bytes(200)).base_offset == 1, "which begins a segment"
    rack.write(1, 12)
    rack.run()
    assert rack.log(1).log_start == 0 and rack.log(1).segment_bases[:2] == (0, 1)
    rack.run(40_000)
    log = rack.log(1)
    assert log.log_start == log.segment_bases[-1] > 1
    assert all(each.end_offset >= log.log_start for each in rack.segments(1)), "nothing is left of what went"


def test_a_segment_that_goes_while_it_is_read_is_not_begun_after() -> None:
    """The follower has read of its deletion before the store has answered: it would claim what nobody can serve."""
    rack = ready()
    rack.latency = (3_000, 3_000)  # of the broker that starts now
    rack.start(2)
    rack.tell(2, METADATA)
    rack.tell(2)
    rack.until(lambda: rack.remote(2).building())
    rack.run(100)
    assert rack.remote(2).building() and rack.log(2).end == 0
    jobs = rack.managers[0].jobs
    assert isinstance(jobs, SimulatedJobs)
    rack.log(0).delete_before(rack.state(0).high_watermark)
    rack.until(lambda: len({name.partition(".")[0] for name in rack.objects()}) == 1)
    jobs.latency = (20_000, 20_000)  # the last one's objects stay there for a while
    rack.until(lambda: not rack.segments(2))
    assert rack.remote(2).building()  # the store has not answered
    claimed: list[int] = []

    def joined() -> bool:
        log = rack.log(2)
        claimed.extend(range(log.log_start, log.local_start))
        return rack.whole()

    rack.until(joined)
    assert not claimed and rack.log(2).log_start == rack.log(0).log_start == 30


@pytest.mark.parametrize("latency", [(0, 0), (50, 200)])
def test_a_slow_store_delays_and_changes_nothing(latency: tuple[int, int]) -> None:
    rack = ready(latency=latency)
    rack.until(lambda: rack.log(0).local_start > 0)
    join(rack)
    assert rack.log(2).local_start > 0 and epochs(rack, 2) == epochs(rack, 0)
    assert values_of(rack.consume(0, 0)) == list(range(30))


def test_an_empty_follower_begins_by_what_a_slow_s3_server_has() -> None:
    """Real requests to a server in a process of its own, each looked at late; the reads below go there, too."""
    with s3_server() as (url, options):
        store = RemoteStore.at(url, **options)
        rack = ready(records=12, store=lambda _: store, latency=(50, 200))
        rack.until(lambda: rack.log(0).local_start > 0)
        got = store.counts.got_bytes
        join(rack)
        assert rack.log(2).local_start > 0 and epochs(rack, 2) == epochs(rack, 0)
        assert store.counts.got_bytes > got
        assert values_of(rack.consume(0, 0)) == list(range(12))


def test_a_follower_all_of_whose_records_were_deleted_keeps_its_end() -> None:
    """It is in the ISR. Were it to begin anew at its leader's log start, it might lead without what is committed."""
    rack = TieredRack(2, topic=SOME_LOCAL, tiering=ENABLED)
    rack.begin()
    rack.elect(0, 1, isr=(0, 1))
    rack.run()
    rack.write(0, 5)
    rack.run()
    end = rack.log(1).end
    assert end == 5 == rack.state(0).high_watermark
    rack.log(0).delete_before(end)
    rack.elect(1, 2, isr=(0, 1))
    rack.run()
    assert rack.log(1).log_start < rack.log(0).log_start == rack.log(0).end == end
    rack.write(1, 2)
    rack.run()
    assert (rack.log(0).log_start, rack.log(0).end) == (end, end + 2)
