"""The metadata machine: what it applies, snapshots that hold it, and damage that is found before anything is taken."""

from __future__ import annotations

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.log import CorruptBatch, Record, StoredRecord
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.metadata import MetadataRecord, changes, encode
from fencepost.impl.metadata.image import Image
from fencepost.impl.metadata.machine import MetadataMachine
from fencepost.impl.quorum.snapshots import SnapshotId

from .metadata_images import KEY, TOPIC, cluster, registered, state, story

ID = SnapshotId(100, 3)


class Writer:
    """Keeps a snapshot's bytes."""

    id = ID

    def __init__(self) -> None:
        self.data = b""
        self.whole = False

    def append(self, data: bytes) -> None:
        self.data += data

    def finished(self) -> None:
        self.whole = True


def stored(records: list[MetadataRecord], offset: int = 0) -> list[StoredRecord]:
    return [StoredRecord(offset + n, 0, encode(each), None, 0, ()) for n, each in enumerate(records)]


def snapshot(machine: MetadataMachine) -> bytes:
    writer = Writer()
    machine.snapshot(writer)
    assert writer.whole
    return writer.data


def load(machine: MetadataMachine, data: bytes) -> None:
    files = SimulatedFiles(1)
    file = files.open(ID.file_name, create=True)
    file.append(data)
    machine.load(ID, file)


@pytest.mark.parametrize("seed", range(6))
def test_a_snapshot_and_what_follows_make_what_the_log_makes(seed: int) -> None:
    records = story(seed, 300)
    cut = 40 * seed
    whole, first, second = MetadataMachine(), MetadataMachine(batch_records=1 + seed), MetadataMachine()
    whole.apply(stored(records))
    first.apply(stored(records[:cut]))
    load(second, snapshot(first))
    assert second.image == first.image
    second.apply(stored(records[cut:], cut))
    assert second.image == whole.image
    assert snapshot(second) == snapshot(whole)


def test_every_damaged_byte_is_found_and_nothing_is_taken() -> None:
    machine = MetadataMachine(batch_records=2)
    machine.apply(stored(story(5, 60)))
    data = snapshot(machine)
    other = MetadataMachine()
    other.apply(stored([registered(4, 1)]))
    before = list(other.image.records())
    for place in range(12, len(data), 7):  # the first 12 bytes of a batch are not covered by its CRC
        damaged = bytearray(data)
        damaged[place] ^= 0x40
        try:
            load(other, bytes(damaged))
        except CorruptBatch:
            assert list(other.image.records()) == before
        else:
            assert other.image == machine.image, "a byte that no reader goes by"
            other = MetadataMachine()
            other.apply(stored([registered(4, 1)]))
    for end in range(0, len(data), 50):
        with pytest.raises(CorruptBatch):
            load(other, data[:end])
    load(other, data)
    assert other.image == machine.image


def test_a_snapshot_that_does_not_fit_itself_is_refused() -> None:
    def batch(records: list[MetadataRecord], offset: int) -> bytes:
        return encode_batch([Record(encode(each), None, 0) for each in records], base_offset=offset)

    machine = MetadataMachine()
    whole = snapshot(machine)
    assert load(machine, whole) is None
    for data in (
        batch([changes.fence(1, 1)], 0) + whole,
        batch([changes.feature("f", 1)], 1) + whole,
        whole + whole,
        encode_batch([Record(b"\x63\x00", None, 0)]) + whole,
        encode_batch([Record(encode(changes.feature("f", 1)), b"a key", 0)]) + whole,
    ):
        with pytest.raises(CorruptBatch, match=ID.file_name):
            load(machine, data)
        assert machine.image == Image()


def test_a_committed_record_that_does_not_fit_is_named_with_its_offset() -> None:
    machine = MetadataMachine()
    with pytest.raises(CorruptBatch, match="offset 41: fencing of broker 3"):
        machine.apply(stored([registered(1, 1), changes.fence(3, 3)], 40))
    with pytest.raises(CorruptBatch, match="a value and no key"):
        machine.apply([StoredRecord(50, 0, None, None, 0, ())])
    with pytest.raises(CorruptBatch, match="offset 50"):
        machine.apply([StoredRecord(50, 0, b"\xff", None, 0, ())])


def test_what_is_touched_outlives_loading_and_clearing() -> None:
    machine = MetadataMachine(track=True)
    records = [*cluster(state()).records()]
    machine.apply(stored(records))
    assert machine.image.touched == {KEY}
    machine.image.touched = set()
    machine.clear()
    assert machine.image.touched == {KEY} and not machine.image.topics
    other = MetadataMachine()
    other.apply(stored([*cluster(state()).records(), changes.remove_topic(TOPIC)]))
    machine.apply(stored(records))
    machine.image.touched = set()
    load(machine, snapshot(other))
    assert machine.image.touched == {KEY} and not machine.image.topics
