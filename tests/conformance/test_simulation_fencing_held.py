"""What freely running brokers and their controller answer, and keep on their disks: planted faults found."""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.plan import PLAN
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.transitions import Transitions

from .test_simulation_fencing import first_parting, portfolio, ways_at

__all__ = ["portfolio"]

_CLOSES = "        self.directory.close()\n"

FAULTS = {
    "a produce with acks=1 is answered before its record is synced": (
        Patch("replica/leader.py", "self._log.recovery_point <= last_offset", "self._log.recovery_point < last_offset"),
        "acks=1",
    ),
    "a repeated batch is acknowledged before the high watermark has passed it": (
        Patch(
            "replica/leader.py",
            "            base_offset, last_offset = sent.base_offset, sent.last_offset\n",
            "            return ProduceResponse(ErrorCode.NONE, sent.base_offset, self._log.log_start)\n",
        ),
        "",  # by the acknowledgement, or by a produce that goes on waiting beside the repeat
    ),
    "who asks for an offset and is refused is told of another leader epoch": (
        Patch(
            "replica/fetch.py",
            "ListOffsetsResponse(error, answering_epoch=leader.epoch)",
            "ListOffsetsResponse(error, answering_epoch=leader.epoch - 1)",
        ),
        "as to who answers,",
    ),
    "who asks for an offset is not told the leader epoch": (
        Patch(
            "replica/fetch.py",
            "ListOffsetsResponse(ErrorCode.NONE, offset, epoch, timestamp, leader.epoch)",
            "ListOffsetsResponse(ErrorCode.NONE, offset, epoch, timestamp)",
        ),
        "as to who answers,",
    ),
    "who asks where an epoch ends and is refused is not told the leader epoch": (
        Patch(
            "replica/fetch.py",
            "OffsetsForLeaderEpochResponse(error, answering_epoch=leader.epoch)",
            "OffsetsForLeaderEpochResponse(error)",
        ),
        "as to who answers,",
    ),
    "what waits at a leader is not told that it leads no more": (
        Patch("replica/partition.py", "            self.purgatory.fail(error)\n", "            pass\n"),
        "leads no more",
    ),
    "what has waited for too long goes on waiting": (
        Patch(
            "replica/purgatory.py",
            "        self._take(lambda each: each.deadline <= now, ErrorCode.REQUEST_TIMED_OUT)\n",
            "        self._take(lambda each: each.deadline < now - 1_000_000, ErrorCode.REQUEST_TIMED_OUT)\n",
        ),
        "after its time is over",
    ),
    "a gap in a producer's sequence numbers is passed over": (
        Patch("replica/producers.py", "        if ahead == 0:\n", "        if ahead < _SEQUENCES // 2:\n"),
        "OUT_OF_ORDER_SEQUENCE_NUMBER",
    ),
    "a batch is appended though the ISR is too small for it": (
        Patch(
            "replica/leader.py",
            "        if request.acks == -1 and not self._is_enough():\n",
            "        if request.acks == 2:\n",
        ),
        "NOT_ENOUGH_REPLICAS",
    ),
    "ListOffsets tells of what is not committed": (
        Patch("replica/fetch.py", "        offset = partition.high_watermark\n", "        offset = log.end\n"),
        "timestamp -1",
    ),
    "a consumer is given the epoch that it asked for, and not that of the record before its end": (
        Patch("replica/fetch.py", "        epoch = partition.log.epoch_for(end - 1)\n", "        pass\n"),
        "where leader epoch",
    ),
    "a consumer beyond the end is told of its range, and not that the log was truncated": (
        Patch("replica/fetch.py", "NONE and is_truncated(", "NONE and offset <= log.end and is_truncated("),
        "LOG_TRUNCATION",
    ),
    "a follower says that its log begins later than it does": (
        Patch("replica/follower.py", "log_start_offset=log.log_start,", "log_start_offset=log.log_start + 1,"),
        "asks with",
    ),
    "a follower asks for the epoch before its latest": (
        Patch(
            "replica/follower.py", "self.epoch, log.latest_epoch, topic)", "self.epoch, log.latest_epoch - 1, topic)"
        ),
        "asks with",
    ),
    "a request of a controller that is over is taken up": (
        Patch(
            "replica/broker.py",
            "        stale = body.controller_epoch < self.controller_epoch\n",
            "        stale = body.controller_epoch < self.controller_epoch - 9\n",
        ),
        "controller epoch",
    ),
    "offline marks do not raise the partition epoch": (
        Patch(
            "zk_controller/partition.py",
            "        return replace(self, offline=offline, partition_epoch=self.partition_epoch + 1)\n",
            "        return replace(self, offline=offline)\n",
        ),
        "which was over",
    ),
    "a new controller takes no epoch of its own": (
        Patch(
            "zk_controller/controller.py",
            "controller_epoch=contents.controller_epoch + 1)",
            "controller_epoch=max(contents.controller_epoch, 1))",
        ),
        "as the one before it",
    ),
    "a change is told before it is stored": (
        Patch(
            "zk_controller/controller.py",
            "        try:\n            write_store(self._files, CHECKPOINT, new)\n",
            "        self._contents = new\n        for partition, state in changed.items():\n"
            "            self._announce(partition, old.partitions.get(partition), state)\n"
            "        try:\n            write_store(self._files, CHECKPOINT, new)\n",
        ),
        "is told of",
    ),
    "an orderly shutdown forgets the high watermark": (
        Patch("replica/broker.py", "        self._store_high_watermarks()\n        self.directory.close()\n", _CLOSES),
        "shut down in order",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(portfolio: list[Transitions], name: str) -> None:
    patch, word = FAULTS[name]
    with patched(patch) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan())
    assert divergence is not None
    assert word in divergence.headline, divergence.headline


def test_what_was_refused_for_now_is_sent_again() -> None:
    """OfflineReplicas that overtakes its LeaderAndIsr is refused: it takes several replicas, and leader epochs."""
    patch = Patch("zk_controller/controller.py", "        elif not error.retriable:\n", "        else:\n")
    with patched(patch) as root:
        divergence = first_parting(list(map(ways_at, PLAN.free)), Parts.of(root), SimulationPlan())
    assert divergence is not None and "is not answered, and not sent again" in divergence.headline


def test_the_last_of_the_isr_stays_in_it() -> None:
    """Whoever fails as the last member, and does not lead, can be elected when it is back."""
    patch = Patch(
        "zk_controller/partition.py",
        "        isr = self.isr if self.isr == {replica} else self.isr - {replica}\n        leader = self.leader\n",
        "        leader = self.leader\n"
        "        isr = self.isr if leader == replica and self.isr == {replica} else self.isr - {replica}\n",
    )
    with patched(patch) as root:
        divergence = first_parting(list(map(ways_at, PLAN.free)), Parts.of(root), SimulationPlan())
    assert divergence is not None and "the last of the ISR" in divergence.headline


def test_metadata_that_was_overtaken_is_not_told(portfolio: list[Transitions]) -> None:
    patch = Patch("replica/broker.py", "known.leader_epoch <= body.leader_epoch", "True")
    with patched(patch) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan())
    assert divergence is not None and "would tell clients of leader epoch" in divergence.headline
