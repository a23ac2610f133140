"""Defects of the consumer, and of what brokers answer it, which are driven against ``truncation``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Defect, defect
from ...mutants.patched import Patch

_TRUNCATION: Final = "truncation"

CONSUMER_DEFECTS: Final[tuple[Defect, ...]] = (
    # -- the leader's check -----------------------------------------------------------------------------------------
    defect(
        "truncation-unnoticed",
        _TRUNCATION,
        "the leader does not look at the epoch of the last fetched record",
        "replica/fetch.py",
        "    found, end = log.end_offset_for(last_epoch)\n    if found == UNDEFINED_EPOCH:\n",
        "    found, end = log.end_offset_for(last_epoch)\n    if found >= UNDEFINED_EPOCH:\n",
        issue="KAFKA-7440",
        constants=(2, 1, 2, 2),
    ),
    defect(
        "only-larger-epochs",
        _TRUNCATION,
        "the leader looks for larger epochs below the fetch offset only, as KIP-320 says: a silent gap",
        "replica/fetch.py",
        "    return log.epoch_for(end - 1) != last_epoch\n",
        "    return False\n",
        constants=(2, 1, 2, 2),
    ),
    defect(
        "sentinel-is-checked",
        _TRUNCATION,
        "a fetch that names no epoch (-1) is checked all the same",
        "replica/fetch.py",
        "    found, end = log.end_offset_for(last_epoch)\n    if found == UNDEFINED_EPOCH:\n",
        "    found, end = log.end_offset_for(last_epoch)\n    if last_epoch == NO_EPOCH:\n"
        "        return log.log_start < offset < log.end\n    if found == UNDEFINED_EPOCH:\n",
    ),
    defect(
        "truncation-off-by-one",
        _TRUNCATION,
        "LOG_TRUNCATION also where the larger epoch begins just at the fetch offset",
        "replica/fetch.py",
        "    if last_epoch < leader_epoch and end < offset:\n",
        "    if last_epoch < leader_epoch and end <= offset:\n",
    ),
    defect(
        "unknown-epoch-is-served",
        _TRUNCATION,
        "a leader that was replaced answers a consumer that has seen a newer epoch (KIP-232)",
        "replica/fetch.py",
        "    return ErrorCode.NONE if epoch <= leader.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH\n",
        "    return ErrorCode.NONE\n",
        issue="KAFKA-6262",
        constants=(2, 1, 2, 2),
    ),
    defect(
        "consumer-is-fenced",
        _TRUNCATION,
        "a consumer that has not heard of the leader's epoch yet is fenced like a replica",
        "replica/fetch.py",
        "    return ErrorCode.NONE if epoch <= leader.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH\n",
        "    if -1 < epoch < leader.epoch:\n        return ErrorCode.FENCED_REPLICA\n"
        "    return ErrorCode.NONE if epoch <= leader.epoch else ErrorCode.UNKNOWN_LEADER_EPOCH\n",
    ),
    Defect(
        "reads-uncommitted",
        _TRUNCATION,
        "a consumer is given records above the high watermark",
        (
            Patch(
                "replica/fetch.py",
                "        up_to = partition.high_watermark\n    if error",
                "        up_to = log.end\n    if error",
            ),
            Patch(
                "replica/fetch.py",
                "if offset < (log.end if replica else partition.high_watermark):",
                "if offset < log.end:",
            ),
        ),
    ),
    defect(
        "out-of-range-is-empty",
        _TRUNCATION,
        "a fetch beyond the end of the log is answered with no records, instead of OFFSET_OUT_OF_RANGE",
        "replica/fetch.py",
        "    if error is ErrorCode.NONE and not log.log_start <= offset <= log.end:\n",
        "    if error is ErrorCode.NONE and not log.log_start <= offset:\n",
    ),
    defect(
        "list-offsets-without-epoch",
        _TRUNCATION,
        "ListOffsets gives the offset without the epoch of the record before it",
        "replica/fetch.py",
        "    epoch = log.epoch_for(offset - 1) if offset > log.log_start else NO_EPOCH\n",
        "    epoch = NO_EPOCH\n",
    ),
    defect(
        "divergence-with-wrong-epoch",
        _TRUNCATION,
        "the answer to a search names the epoch asked for, and not that of the record before the end offset",
        "replica/fetch.py",
        "    if consumer and end != NO_OFFSET:\n        epoch = partition.log.epoch_for(end - 1)\n",
        "    if consumer and end != NO_OFFSET:\n        epoch = request.leader_epoch\n",
        constants=(2, 1, 2, 2),
    ),
    # -- the consumer -----------------------------------------------------------------------------------------------
    defect(
        "epoch-not-tracked",
        _TRUNCATION,
        "the consumer does not note the epoch of what it has read",
        "consumer/partition.py",
        "            self.position = OffsetAndMetadata(last.next_offset, last.epoch, self.served_by)\n",
        "            self.position = OffsetAndMetadata(last.next_offset, -1, self.served_by)\n",
        issue="KAFKA-7440",
    ),
    defect(
        "serving-epoch-not-tracked",
        _TRUNCATION,
        "the consumer does not note the epoch of the leader that served it",
        "consumer/partition.py",
        "            self.position = OffsetAndMetadata(last.next_offset, last.epoch, self.served_by)\n",
        "            self.position = OffsetAndMetadata(last.next_offset, last.epoch)\n",
    ),
    defect(
        "seek-keeps-epoch",
        _TRUNCATION,
        "after a seek the consumer names the epoch of the record before its old position",
        "consumer/consumer.py",
        "        self._at(partition).move(target, target.offset)\n",
        "        there = self._at(partition)\n"
        "        if there.position is not None:\n"
        "            target = OffsetAndMetadata(target.offset, there.position.leader_epoch)\n"
        "        there.move(target, target.offset)\n",
    ),
    defect(
        "divergence-beyond-position",
        _TRUNCATION,
        "the reported offset is the end of the epoch, even beyond what the consumer has read",
        "consumer/position.py",
        "    offset = min(end_offset, position.offset)\n",
        "    offset = end_offset\n",
    ),
    defect(
        "metadata-not-refreshed",
        _TRUNCATION,
        "UNKNOWN_LEADER_EPOCH is forgotten, and the same leader is asked again",
        "consumer/partition.py",
        "            case ErrorCode.UNKNOWN_LEADER_EPOCH:\n"
        "                self.outcome = Outcome.UNKNOWN_LEADER_EPOCH\n",
        "            case ErrorCode.UNKNOWN_LEADER_EPOCH:\n                self.outcome = Outcome.FETCHING\n",
        constants=(2, 1, 2, 2),
    ),
    defect(
        "truncation-resets-to-out-of-range",
        _TRUNCATION,
        "LOG_TRUNCATION is dealt with like an offset that is out of range",
        "consumer/partition.py",
        "                self.outcome = Outcome.LOG_TRUNCATION\n",
        "                self.outcome = Outcome.OFFSET_OUT_OF_RANGE\n",
    ),
    defect(
        "search-not-fenced",
        _TRUNCATION,
        "the search for the divergence names no epoch (-1), as KIP-320 says: a replaced leader answers it",
        "consumer/partition.py",
        "OffsetsForLeaderEpochRequest(CONSUMER, self.partition, position.least_epoch,",
        "OffsetsForLeaderEpochRequest(CONSUMER, self.partition, -1,",
        constants=(2, 1, 2, 2),
    ),
    Defect(
        "late-fetch-counts",
        _TRUNCATION,
        "a late answer is taken although the request was given up",
        (
            Patch(
                "consumer/consumer.py",
                "        for correlation, sent in [item for item in self._sent.items() if item[1].expires <= now]:\n"
                "            del self._sent[correlation]\n",
                "        for correlation, sent in [item for item in self._sent.items() if item[1].expires <= now]:\n",
            ),
            Patch(
                "consumer/consumer.py",
                "        elif partition is not None and partition.in_flight == envelope.correlation:\n",
                "        elif partition is not None and partition.position is not None:\n",
            ),
        ),
    ),
    # -- commits ----------------------------------------------------------------------------------------------------
    defect(
        "commit-without-epoch",
        _TRUNCATION,
        "a commit does not carry the leader epoch, so that a restart forgets it",
        "consumer/consumer.py",
        "commit.partition, at.offset, at.leader_epoch, at.serving_epoch,",
        "commit.partition, at.offset, -1, at.serving_epoch,",
        issue="KAFKA-7440",
    ),
    defect(
        "commit-without-serving-epoch",
        _TRUNCATION,
        "the offsets log keeps the epoch of the record, but not that of the leader that served it",
        "offsets/coordinator.py",
        "epochs = (request.leader_epoch, request.serving_epoch) if self._config.write_epochs",
        "epochs = (request.leader_epoch, NO_EPOCH) if self._config.write_epochs",
    ),
    defect(
        "restart-reads-twice",
        _TRUNCATION,
        "OffsetFetch gives the offset before the one that was committed",
        "offsets/coordinator.py",
        "            ErrorCode.NONE, found.offset, found.leader_epoch,",
        "            ErrorCode.NONE, max(found.offset - 1, 0), found.leader_epoch,",
    ),
)
"""The leader's check, the consumer, commits."""
