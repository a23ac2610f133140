"""What is in remote storage of Apache Kafka's brokers, held to what was written and to what its maker said of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from fencepost.conformance.protocols.tiering.kafka_copies import Copies
from fencepost.conformance.protocols.tiering.responses import Written, WrongRecord

MAKER, EPOCH = 1, 9
ROWS = [(0, 6, b"a"), (1, 7, b"b")]
"""Offset, leader epoch as the model counts, and content: the log begins at 1 now, in its first segment."""
EPOCHS = [[8, 1]]
"""As Kafka counts them: nothing is said of what lies below the log start."""


def a_copy() -> Copies:
    """Its maker waits for the store."""
    written = Written()
    written.add(ROWS, "a log")
    copies = Copies(written)
    seen = {str(MAKER): {"epoch": EPOCH, "epochs": EPOCHS}}
    wants = {"state": "COPY_SEGMENT_STARTED", "copy": "id", "start": 0, "end": 2, "epochs": EPOCHS}
    steps = copies.goes_on(MAKER, {"stored": [], "wants": wants, "seen": seen}, 0)
    assert steps == [("start_copy", {"leader": MAKER, "copy": 0})] and copies.begun == {0: EPOCH - 1}
    assert copies.goes_on(MAKER, {"stored": [], "wants": "store", "seen": seen}, 1) == []
    return copies


def stored(records: Sequence[tuple[int, int, bytes]], epochs: Sequence[Sequence[int]] = EPOCHS) -> dict[str, Any]:
    """What the driver says when it is in the store."""
    rows = [[offset, epoch + 1, payload.decode()] for offset, epoch, payload in records]
    return {"stored": [{"copy": "id", "epochs": [list(each) for each in epochs], "records": rows}], "wants": None}


@pytest.mark.parametrize(
    ("records", "is_right"),
    [
        (ROWS, True),
        ([(0, 6, b"x"), ROWS[1]], False),
        ([(0, 5, b"a"), ROWS[1]], False),
        ([ROWS[0], (1, 6, b"b")], False),
        (ROWS[:1], False),
    ],
    ids=["as written", "another record below the log start", "of another epoch", "of no epoch of its maker", "cut"],
)
def test_a_copy_is_whole_with_what_lies_below_the_log_start(
    records: Sequence[tuple[int, int, bytes]], is_right: bool
) -> None:
    """It is in the first segment still, and no leader epoch that comes along says anything of it."""
    copies = a_copy()
    copies.goes_on(MAKER, stored(records), 1)
    assert copies.stored == {0: is_right}
    assert copies.making() == set(), "its task is over"


def test_the_leader_epochs_that_come_along_are_its_makers() -> None:
    with pytest.raises(
        WrongRecord, match=r"has the leader epochs \[\[7, 0\], \[8, 1\]\], and its maker had \[\[8, 1\]\]"
    ):
        a_copy().goes_on(MAKER, stored(ROWS, [[7, 0], *EPOCHS]), 1)
