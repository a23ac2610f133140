"""KIP-280's rules of who stays, the map that applies them, and the table that a consumer keeps."""

from __future__ import annotations

import random
import struct

import pytest
from fencepost.impl.compaction import ABSENT, Kind, OffsetMap, Strategy, Table
from fencepost.impl.compaction.scanning import scan
from fencepost.impl.log import Codec, CorruptBatch, Record, StoredRecord, encode_batch, read_batch
from hypothesis import given
from hypothesis import strategies as st

from .compacted import STRATEGIES, beats, draw, naive

OFFSET, TIMESTAMP, HEADER = STRATEGIES


def record(offset: int, timestamp: int = 0, *versions: bytes | None, key: bytes = b"k", value: bytes | None = b"v"):  # type: ignore[no-untyped-def]
    return StoredRecord(offset, 0, value, key, timestamp, tuple(("version", each) for each in versions))


def long(number: int) -> bytes:
    return struct.pack(">q", number)


@pytest.mark.parametrize(
    ("strategy", "loser", "winner"),
    [
        pytest.param(OFFSET, record(3, 9, long(9)), record(4), id="offset: the higher"),
        pytest.param(TIMESTAMP, record(4, 8), record(3, 9), id="timestamp: the later"),
        pytest.param(TIMESTAMP, record(3, 9), record(4, 9), id="equal timestamps: the higher offset"),
        pytest.param(TIMESTAMP, record(4, -1), record(3, 0), id="no timestamp is below all"),
        pytest.param(HEADER, record(4, 9, long(1)), record(3, 0, long(2)), id="header: the higher number"),
        pytest.param(HEADER, record(4, 0, long(-1)), record(3, 0, long(0)), id="numbers have signs"),
        pytest.param(HEADER, record(3, 0, long(2)), record(4, 0, long(2)), id="equal numbers: the higher offset"),
        pytest.param(HEADER, record(3), record(4), id="neither has the header: the higher offset"),
        pytest.param(HEADER, record(4), record(3, 0, long(-(1 << 63))), id="only one has the header: that one"),
        pytest.param(HEADER, record(4, 0, long(9), long(1)), record(3, 0, long(2)), id="the last of repeated ones"),
        pytest.param(HEADER, record(4, 0, b"1234567"), record(3, 0, long(0)), id="7 bytes are no header"),
        pytest.param(HEADER, record(4, 0, bytes(9)), record(3, 0, long(-5)), id="9 bytes are no header"),
        pytest.param(HEADER, record(4, 0, None), record(3, 0, long(-5)), id="null is no header"),
        pytest.param(HEADER, record(4, 0, long(9), b""), record(3, 0, long(1)), id="the last one counts, if wrong too"),
    ],
)
def test_who_stays(strategy: Strategy, loser: StoredRecord, winner: StoredRecord) -> None:
    assert beats(winner, loser, strategy) and not beats(loser, winner, strategy)
    orders = [(strategy.rank(each.timestamp, each.headers), each.offset) for each in (loser, winner)]
    assert orders[0] < orders[1]
    for records in ((loser, winner), (winner, loser)):
        winners = OffsetMap(400, ranked=strategy.ranked)
        table = Table(strategy)
        for each in records:
            assert winners.put(b"k", strategy.rank(each.timestamp, each.headers), each.offset)
            table.apply(each)
        assert winners.get(b"k") == table.winner(b"k") == orders[1]


def test_a_header_strategy_names_its_header() -> None:
    with pytest.raises(ValueError, match="needs the name"):
        Strategy(Kind.HEADER)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.kind.value)
def test_the_map_agrees_with_a_dictionary(strategy: Strategy) -> None:
    chance = random.Random(1)
    winners = OffsetMap(200 * OffsetMap(400, ranked=strategy.ranked).slot_bytes, ranked=strategy.ranked)
    assert winners.capacity == 180
    records = []
    for offset in range(2000):
        drawn = draw(chance, offset, 0, keys=180)
        each = StoredRecord(offset, 0, drawn.value, drawn.key, drawn.timestamp, drawn.headers)
        records.append(each)
        assert each.key is not None
        assert winners.put(each.key, strategy.rank(each.timestamp, each.headers), offset)
    expected = naive(records, strategy)
    assert len(expected) == winners.size == 180
    for key, each in expected.items():
        assert winners.get(key) == (strategy.rank(each.timestamp, each.headers), each.offset)
    assert winners.get(b"other") is None
    assert not winners.put(b"other", 0, 2000) and winners.put(b"k0", 1 << 62, 2001)
    winners.clear()
    assert winners.size == 0 and winners.get(b"k0") is None


@pytest.mark.parametrize(("ranked", "payload", "slot"), [(False, 8, 24), (True, 16, 32)])
def test_bytes_of_a_key(ranked: bool, payload: int, slot: int) -> None:
    """The text counts 8 and 16 bytes; the digest comes to them."""
    winners = OffsetMap(96_000, ranked=ranked)
    assert (winners.payload_bytes, winners.slot_bytes) == (payload, slot)
    assert winners.memory == winners.slots * slot <= 96_000
    for number in range(winners.capacity):
        assert winners.put(b"%d" % number, ABSENT if ranked else 0, number)
    assert winners.memory == winners.slots * slot


def test_a_map_for_no_key_is_refused() -> None:
    with pytest.raises(ValueError, match="hold no key"):
        OffsetMap(31, ranked=True)


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.kind.value)
@pytest.mark.parametrize("codec", Codec)
def test_what_is_scanned_is_what_is_decoded(strategy: Strategy, codec: Codec) -> None:
    chance = random.Random(2)
    records = [draw(chance, n, 10**12) for n in range(50)] + [Record(None), Record(b"", b"", -1)]
    batch = read_batch(encode_batch(records, base_offset=7, codec=codec))
    payload, scanned = scan(batch, strategy)
    for each, whole in zip(scanned, batch.records(), strict=True):
        assert (each.offset, each.timestamp, each.key) == (whole.offset, whole.timestamp, whole.key)
        assert each.has_value == (whole.value is not None)
        assert each.rank == strategy.rank(whole.timestamp, whole.headers)
    assert scanned[0].start == 0 and scanned[-1].end == len(payload)


@given(st.binary(max_size=80), st.integers(0, 5), st.sampled_from(STRATEGIES))
def test_bytes_that_are_no_records_are_refused(payload: bytes, count: int, strategy: Strategy) -> None:
    """Whatever the scan takes, the decoder of all fields may still refuse; never the other way round."""
    batch = read_batch(encode_batch([Record(b"v", b"k")] * 3, base_offset=1))
    damaged = batch._replace(data=batch.data[:61] + payload, record_count=count)
    try:
        whole = damaged.records()
    except CorruptBatch:
        whole = None
    try:
        found = scan(damaged, strategy)[1]
    except CorruptBatch:
        assert whole is None
        return
    if whole is not None:
        assert [(each.offset, each.key) for each in found] == [(each.offset, each.key) for each in whole]


def test_a_table_remembers_what_was_deleted() -> None:
    table = Table(HEADER)
    table.apply(record(0, 0, long(1)))
    assert table == {b"k": b"v"} and len(table) == 1
    table.apply(record(1, 0, long(5), value=None))
    assert table == {} and b"k" not in table
    assert not table.apply(record(2, 0, long(4))) and table == {}
    assert table.forget(1) == 0 and table.forget(2) == 1
    assert table.apply(record(3, 0, long(4))) and table == {b"k": b"v"}
    assert not table.apply(record(9)._replace(key=None))


@pytest.mark.parametrize("strategy", STRATEGIES, ids=lambda each: each.kind.value)
def test_a_table_does_not_depend_on_the_order(strategy: Strategy) -> None:
    chance = random.Random(3)
    drawn = [draw(chance, n, 0) for n in range(60)]
    records = [StoredRecord(n, 0, each.value, each.key, each.timestamp, each.headers) for n, each in enumerate(drawn)]
    tables = []
    for _ in range(5):
        table = Table(strategy)
        table.apply_all(records + records[:10])
        tables.append(dict(table))
        chance.shuffle(records)
    assert all(each == tables[0] for each in tables)
