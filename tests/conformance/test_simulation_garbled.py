"""Record batches that arrive garbled: whoever gets them takes nothing of them, and goes on."""

from __future__ import annotations

from typing import cast

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.faults.corrupt_message import garbled, has_batches, turned
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.simulation.events import GARBLED, Event, EventKind, event_of
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.shrink import plainer
from fencepost.impl.log.batch import encode_batch, read_batches
from fencepost.impl.log.errors import CorruptBatch
from fencepost.impl.log.records import Record
from fencepost.impl.wire.messages import Envelope, MetadataRequest, ProduceRequest, TopicPartition

from . import test_simulation_truncation_held as consumers
from .test_simulation_fencing import first_parting, ways_at

PARTITION = TopicPartition("t", 0)
TWO = b"".join(encode_batch([Record(b"a" * 9, timestamp=1)], base_offset=base) for base in (0, 1))


@pytest.mark.sampled(3)
@pytest.mark.parametrize("way", range(24))
def test_one_bit_is_turned_and_the_crc_says_so(way: int) -> None:
    found = turned(TWO, way)
    assert sum((one ^ other).bit_count() for one, other in zip(TWO, found, strict=True)) == 1
    with pytest.raises(CorruptBatch, match="CRC-32C"):
        list(read_batches(found))


def test_in_different_ways_different_bits_are_turned() -> None:
    assert len({turned(TWO, way) for way in range(12)}) == 12


def test_only_what_carries_batches_is_garbled() -> None:
    carries = Envelope(9, 0, 1, ProduceRequest(PARTITION, -1, TWO))
    assert has_batches(carries)
    assert not has_batches(Envelope(9, 0, 1, MetadataRequest(PARTITION)))
    assert not has_batches(Envelope(9, 0, 1, ProduceRequest(PARTITION, -1, b"")))
    body = cast(ProduceRequest, garbled(carries, 3).body)
    assert (body.partition, body.acks, body.records) == (PARTITION, -1, turned(TWO, 3))


def test_the_event_is_written_read_back_and_made_plainer() -> None:
    arrives = Event(EventKind.DELIVER, "Produce", 0, None, args=(("number", 1),))
    event = arrives.garbled(7)
    assert event.arg(GARBLED) == 7 and event_of(event.to_json(), "here") == event
    assert event.plain() == arrives == arrives.crashing(3).plain()
    assert [each.what for each in plainer(event)] == [EventKind.DELIVER, EventKind.LOSE]
    assert all(GARBLED not in dict(each.args) for each in plainer(event))


def test_a_follower_that_falls_over_what_is_garbled_is_found() -> None:
    patch = Patch("replica/follower.py", "except InvalidAppend:", "except OverflowError:")
    with patched(patch) as root:
        divergence = first_parting([ways_at("3/4/6/12")], Parts.of(root), SimulationPlan())
    assert divergence is not None and "CRC-32C" in divergence.headline


def test_a_leader_that_calls_what_is_garbled_something_else_is_found() -> None:
    patch = Patch("replica/leader.py", "return ErrorCode.CORRUPT_MESSAGE", "return ErrorCode.INVALID_RECORD")
    with patched(patch) as root:
        divergence = first_parting([ways_at("3/4/6/12")], Parts.of(root), SimulationPlan())
    assert divergence is not None and "CORRUPT_MESSAGE" in divergence.headline


def test_a_consumer_that_falls_over_what_is_garbled_is_found() -> None:
    patch = Patch(
        "consumer/partition.py", "        except CorruptBatch as error:\n", "        except OverflowError as error:\n"
    )
    with patched(patch) as root:
        divergence = consumers.first_parting(Parts.of(root), SimulationPlan())
    assert divergence is not None and "CRC-32C" in divergence.headline
