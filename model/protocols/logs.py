"""What the logs of several protocols have in common: their indices, their constants, and how a leader appends."""

from __future__ import annotations

from ..core.algebra import Algebra, Step, Value, View
from ..core.domains import Index
from ..core.protocol import ConstantSpec
from ..core.terms import Sort

OFFSET = Index("offset", Sort.INT, lambda c: c["log_size"])
"""The offsets of a log."""
END_OFFSET = Index("end_offset", Sort.INT, lambda c: c["log_size"] + 1)
"""The ends that a log can have, exclusive."""
EPOCH = Index("epoch", Sort.INT, lambda c: c["max_leader_epoch"] + 1)
"""The leader epochs."""

LOG_SIZE = ConstantSpec("log_size", 2, 1, "the number of offsets in each log")


def partition_constants(replicas: int, max_records: int) -> tuple[ConstantSpec, ...]:
    """The constants of a protocol about one partition, with these defaults of the first and the third."""
    return (
        ConstantSpec("replicas", replicas, 1, "the number of replicas"),
        LOG_SIZE,
        ConstantSpec("max_records", max_records, 1, "the number of records that producers write"),
        ConstantSpec("max_leader_epoch", 2, 0, "the largest leader epoch"),
    )


def append_record(k: Algebra, s: View, leader: Value) -> Step:
    """A leader appends a producer's next record in its own epoch: the guards that do not say who leads, and the update.

    Of the variables ``next_record_id``, ``leo``, ``record_id`` and ``record_epoch``.
    """
    yield "record_available", s.next_record_id < k.c.max_records
    end = s.leo[leader]
    yield "log_not_full", end < k.c.log_size
    yield s.update(
        next_record_id=s.next_record_id + 1,
        leo={leader: end + 1},
        record_id={(leader, end): s.next_record_id},
        record_epoch={(leader, end): s.leader_epoch[leader]},
    )
