"""The topic is deleted and made anew while brokers run freely: clean runs, and planted faults found."""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing import topic_deletion
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.protocols.fencing.topic_deletion import CREATE_TOPIC, DELETE_TOPIC
from fencepost.conformance.simulation.events import EventKind
from fencepost.conformance.simulation.runner import SimulationPlan, simulate
from fencepost.conformance.simulation.system import StepResult
from fencepost.conformance.simulation.tracker import StateTracker
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.explore.result import Verdict

from .test_simulation_fencing import first_parting, portfolio, ways_at

__all__ = ["portfolio"]


def test_the_model_begins_anew_with_each_topic(portfolio: list[Transitions], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topic_deletion, "_DELETES", 1.0)
    found = simulate(RunningCluster(), portfolio, SimulationPlan(runs=30, seed=9))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None), found.failure and found.failure.divergence
    assert (
        found.kinds[EventKind.OPERATE, DELETE_TOPIC.name] > 20
        and found.kinds[EventKind.OPERATE, CREATE_TOPIC.name] > 20
    )
    assert found.kinds[EventKind.DELIVER, "StopReplica"] > 30 and found.met.steps["producer_hears"] > 5


def test_a_run_begins_anew_only_where_it_is_said() -> None:
    """What is seen of a topic that is gone is no state of the one before it, and after it all of it is over."""
    ways, system = ways_at("2/1/1/1"), RunningCluster()
    happened = system.reset(ways.system.constants, 5)
    start = dict(system.observe())
    system.close()
    led = {**start, "next_leader_epoch": 1, "quorum_leader_epoch": 0, "quorum_leader": 0}
    led |= {"request_leader[0]": 0, "request_isr[0]": start["quorum_isr"]}
    follower = StateTracker(ways)
    assert follower.start(happened, start) is None
    assert follower.after(None, None, StepResult(), led) is None
    assert follower.after(None, None, StepResult(), start) is not None
    assert follower.after(None, None, StepResult(anew=True), start) is None
    assert follower.state == ways.system.initial


_FORGETS = "        for name in _MENDS:\n            self.forget(name, key)\n\n    def _empty"
_BEGINS = Patch(
    "log/directory.py", "                for name in _MENDS:\n                    self.forget(name, key)\n", ""
)


def _keeping(name: str) -> tuple[Patch, Patch]:
    """Lines of a checkpoint stay when a log is deleted, and when one is made."""
    kept = _FORGETS.replace("in _MENDS", f"in (each for each in _MENDS if each != {name})")
    return Patch("log/directory.py", _FORGETS, kept), _BEGINS


FAULTS = {
    "a broker looks at no topic id in what it is asked": (
        (
            Patch(
                "replica/broker.py",
                'partition = self._find(body.partition, getattr(body, "topic_id", NO_TOPIC_ID))',
                "partition = self._find(body.partition, NO_TOPIC_ID)",
            ),
        ),
        "finds a replica of",
    ),
    "followers fetch by the name alone": (
        (Patch("replica/follower.py", "                topic_id=self._partition.topic_id,\n", ""),),
        "remote_leo",
    ),
    "followers ask by the name alone where an epoch ends": (
        (Patch("replica/follower.py", "self.epoch, log.latest_epoch, topic)", "self.epoch, log.latest_epoch)"),),
        "leader[",
    ),
    "a broker tells clients of a topic that is deleted": (
        (
            Patch(
                "replica/broker.py",
                "            if same:\n                del self.metadata[body.partition]\n",
                "            pass\n",
            ),
        ),
        "would tell clients",
    ),
    "brokers are not told that the topic is deleted": (
        (
            Patch(
                "zk_controller/controller.py",
                "                self._outbox.post(RequestKey(Kind.METADATA, broker, partition, state.topic_id))\n",
                "                pass\n",
            ),
        ),
        "a topic is deleted, and broker 0 is not sent UpdateMetadata",
    ),
    "nobody removes a replica of a topic that is not known any more": (
        (
            Patch(
                "zk_controller/controller.py",
                "            self._stray_found(key, body.topic_id)\n",
                "            pass\n",
            ),
        ),
        "nothing moves any more",
    ),
    "a replica takes up any LeaderAndIsr of its name": (
        (
            Patch(
                "replica/partition.py",
                "        if not is_consistent(request.topic_id, self.topic_id):\n"
                "            return ErrorCode.INCONSISTENT_TOPIC_ID\n",
                "",
            ),
        ),
        "LeaderAndIsr of topic",
    ),
    "a replica is stopped, whichever topic it is of": (
        (
            Patch(
                "replica/broker.py",
                "        if partition is not None and not is_consistent(body.topic_id, partition.topic_id):\n"
                "            return ErrorCode.INCONSISTENT_TOPIC_ID\n        if partition is not None and partition.f",
                "        if partition is not None and partition.f",
            ),
        ),
        "had a replica of topic",
    ),
    "of a deleted log all but the topic id remains": (
        (
            Patch(
                "log/directory.py",
                '            self.files.rename(folder, deleted)\n            self.files.fsync_dir("")\n'
                "            self._empty(deleted)\n",
                '            self.files.remove(f"{folder}/{PARTITION_METADATA}")\n',
            ),
        ),
        "nobody accounts for it",
    ),
    # A log that is shorter cuts what is stored, so it takes two faults for the old one to be gone by.
    "the high watermark of the deleted log is that of the new one": (
        (
            *_keeping("HIGH_WATERMARKS"),
            Patch(
                "replica/partition.py",
                "min(self.high_watermark, self.log.end)))",
                "min(self.high_watermark, self.log.end or self.high_watermark)))",
            ),
        ),
        "replication-offset-checkpoint has a line of t-0, which is not there",
    ),
    "the leader epoch of the deleted log is that of the new one": (_keeping("LEADER_EPOCHS"), ""),
    "the topic id is not stored": (
        (
            Patch(
                "replica/partition.py",
                "            self.runtime.directory.store_topic_id(*self.key, request.topic_id)\n",
                "",
            ),
        ),
        "and its disk has",
    ),
    "the controller takes up any AlterIsr of the name": (
        (
            Patch(
                "zk_controller/controller.py",
                "        if not is_consistent(request.topic_id, NO_TOPIC_ID if state is None else state.topic_id):\n"
                "            return AlterIsrResponse(ErrorCode.UNKNOWN_TOPIC_ID, partition)\n",
                "",
            ),
        ),
        "an AlterIsr of topic",
    ),
    "the controller does not store who is to remove a replica": (
        (
            Patch(
                "zk_controller/controller.py",
                "deleted={**self._contents.deleted, **there})",
                "deleted={**self._contents.deleted})",
            ),
        ),
        "is to remove its replica of topic",
    ),
    "what waits at a leader is not told that the topic is deleted": (
        (
            Patch(
                "replica/partition.py",
                "        self._end_leading(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)\n",
                "        self.leader = None\n",
            ),
        ),
        "",
    ),
}
SEEDS = {"nobody removes a replica of a topic that is not known any more": 2}
"""Of what takes a topic that is deleted while a broker of it is down, and made anew before that is back: seldom met."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_a_planted_fault_is_found(portfolio: list[Transitions], name: str) -> None:
    patches, word = FAULTS[name]
    with patched(*patches) as root:
        divergence = first_parting(portfolio, Parts.of(root), SimulationPlan(seed=SEEDS.get(name, 0)))
    assert divergence is not None
    assert word in divergence.headline, divergence.headline
