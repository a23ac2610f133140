"""A follower that is to be cut below its local log: what is left of it is in remote storage (KIP-405)."""

from __future__ import annotations

import pytest
from fencepost.impl.replica.partition import Role
from fencepost.impl.tiering import METADATA, RemoteStore
from fencepost.impl.tiering.errors import RemoteStorageError
from fencepost.impl.wire.errors import ErrorCode

from .tiering_rack import LOCAL_NOTHING, TieredRack


def parted(before: int, after: int) -> TieredRack:
    """Broker 0 has all it has in remote storage, and broker 1, which is about to be elected, the beginning of it.

    That is so many records ``before``, three of producer 7, and so many ``after``.
    """
    rack = TieredRack(2, topic=LOCAL_NOTHING)
    rack.begin()
    rack.write(0, before)
    for sequence in range(3):
        assert rack.produce(0, b"a" * 40, **sent(sequence)).base_offset == before + sequence
    rack.write(0, after)
    rack.run()
    rack.stop(1)
    rack.run(600)
    rack.elect(0, 1, isr=(0,), partition=METADATA)
    rack.elect(0, 1, isr=(0,))
    rack.run()
    assert rack.produce(0, b"b" * 40, **sent(3)).error is ErrorCode.NONE
    rack.write(0, 12)
    rack.run()
    rack.start(1)
    rack.tell(1, METADATA)
    rack.run()
    assert rack.log(0).local_start > before + 3 + after
    return rack


def sent(sequence: int) -> dict[str, int]:
    return {"producer_id": 7, "producer_epoch": 0, "base_sequence": sequence}


@pytest.mark.parametrize(("before", "after"), [(2, 0), (2, 3), (1, 6), (9, 1), (0, 0)])
def test_what_producers_have_sent_is_known_after_a_cut_below_the_local_log(before: int, after: int) -> None:
    """Wherever it falls, at the end of what was uploaded or in its midst; and where the next process begins."""
    rack = parted(before, after)
    rack.elect(1, 2, isr=(1,))
    rack.until(lambda: rack.state(0).role is Role.FOLLOWER)
    assert (rack.log(0).log_start, rack.log(0).local_start, rack.log(0).end) == (0, *[before + 3 + after] * 2)
    rack.crash(0, seed=before)
    rack.start(0)
    rack.tell(0, METADATA)
    rack.elect(0, 3, isr=(0,))
    rack.run()
    end = rack.log(0).end
    again = rack.produce(0, b"a" * 40, **sent(2))
    assert (again.error, again.base_offset, rack.log(0).end) == (ErrorCode.NONE, before + 2, end)
    # What it had alone is in nobody's log: it is written where the log ends.
    assert rack.produce(0, b"b" * 40, **sent(3)).base_offset == end


def test_nothing_is_cut_while_the_store_does_not_say_what_producers_have_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object) -> bytes:
        raise RemoteStorageError("it is away", "the store")

    rack = parted(2, 3)
    end = rack.log(0).end
    monkeypatch.setattr(RemoteStore, "get", fails)
    rack.elect(1, 2, isr=(1,))
    rack.run(600)
    assert (rack.state(0).role, rack.log(0).end) == (Role.TRUNCATING, end)
    monkeypatch.undo()
    rack.until(lambda: rack.state(0).role is Role.FOLLOWER)
    assert rack.log(0).local_start == 8
