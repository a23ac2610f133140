"""A run of controllers and brokers step for step beside the model: what is where, and what has happened by itself.

After each step everybody is looked at: epochs that were heard of, what has become stable, who has replayed it, who is
active by that, what producers were told. The model is led along these as steps of its own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ....impl.metadata.image import PartitionKey
from ....impl.quorum.node import QuorumNode
from ....impl.replica.partition import PartitionState
from ....impl.wire.messages import NO_LEADER, Envelope
from ....model.core.enum_value import Member
from ....model.core.errors import BadInput
from ....model.protocols.controller.state import Heard, Run
from ....model.protocols.controller.state import Role as NodeRole
from ....traces.format import Value
from ...adapters.stored import StoredAdapter
from ...lockstep.adapter import ModelStep
from .lockstep_cluster import KraftCluster, topic_of
from .lockstep_log import SteppedLog

BY_CHANGES: Final = "isr-changes"
"""The variant in which a broker is fenced by an IsrChange for each of its partitions."""
_MOST: Final = {"replicas": 2, "snapshots": 0}


class SteppedRun(StoredAdapter):
    """Nodes have the model's numbers here: controllers from 0 on, as brokers."""

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """New disks, new nodes. Raises BadInput for constants with which no nodes can be driven."""
        for name, most in _MOST.items():
            if constants[name] > most:
                raise BadInput(f"no nodes can be driven where {name} is {constants[name]}", f"--{name}", f"give {most}")
        self._constants = constants
        self._cluster = cluster = KraftCluster(
            self._parts,
            self._new_store(seed),
            constants["replicas"],
            constants["nodes"],
            constants["partitions"],
            seed,
            bootstrapped=constants["bootstrapped"] == 1,
            by_event=self.variant != BY_CHANGES,
        )
        self._voters = cluster.voters
        self._log = SteppedLog(cluster.quorum(self._voters[0]), constants["partitions"])
        self._stable = 0
        self._leader_end = 0
        self._active_epoch = -1
        self._epochs = dict.fromkeys(self._nodes, -1)
        self._roles = dict.fromkeys(self._nodes, NodeRole.standby)
        self._applied = dict.fromkeys(self._nodes, 0)
        self._views = dict.fromkeys(cluster.brokers, 0)
        self._lost: set[int] = set()
        """The brokers whose disks were lost when they went."""
        self._registrations: dict[int, Envelope] = {}
        self._awaits: set[int] = set()
        self._producing: dict[int, tuple[int, int, int]] = {}
        """By partition, the request of its producer, whom it was sent to, and the leader epoch."""
        self._leaders: dict[int, int] = {}
        """By epoch, who was elected for it."""
        self._serial = 0

    # -- nodes as the model numbers them ----------------------------------------------------------------------------

    @property
    def _nodes(self) -> range:
        return range(len(self._voters))

    def _quorum(self, node: int) -> QuorumNode:
        return self._cluster.quorum(self._voters[node])

    def _active(self, node: int) -> Any:
        return self._cluster.controllers[self._voters[node]].active

    def _epoch(self, node: int) -> int:
        return self._quorum(node).epoch - self._log.base_epoch - 1

    @property
    def _newest(self) -> int:
        return max(self._epoch(node) for node in self._nodes)

    def _leader(self, epoch: int) -> int | None:
        """Who leads an epoch, and has heard of no later one."""
        found = self._cluster.leader_of(epoch + self._log.base_epoch + 1)
        return None if found is None else self._voters.index(found)

    def _role(self, node: int) -> Member:
        if self._active(node) is not None:
            return NodeRole.active
        return NodeRole.elected if self._quorum(node).is_leader else NodeRole.standby

    def _has(self, node: int) -> int:
        """How many records a controller has."""
        quorum = self._quorum(node)
        return self._log.within(quorum, quorum.replica.end)

    def _is_registered(self, broker: int) -> bool:
        there = self._cluster.processes.get(broker)
        return there is not None and there.lifecycle._is_registered

    def _run_of(self, broker: int) -> Member:
        if not self._is_registered(broker):
            return Run.lost if broker in self._lost else Run.stopped
        return Run.stopping if self._cluster.processes[broker].lifecycle.want_shut_down else Run.running

    def _has_view(self, broker: int) -> bool:
        return self._is_registered(broker) and self._cluster.processes[broker].publisher.published > 0

    def _state(self, broker: int, partition: int) -> PartitionState | None:
        """A replica that takes part; None where there is none."""
        if not self._has_view(broker):
            return None
        there = self._cluster.processes[broker].broker.partitions.get(topic_of(partition))
        return None if there is None else there.state()

    def _data(self, broker: int, partition: int) -> int:
        there = self._cluster.processes[broker].broker.partitions.get(topic_of(partition))
        if there is None or there.log.end == 0:
            return -1
        return there.log.epoch_for(there.log.end - 1)

    def _leader_by(self, broker: int, partition: int) -> int:
        """Who leads by a broker's metadata; its replica goes on in its role where nobody does."""
        if not self._has_view(broker):
            return NO_LEADER
        image = self._cluster.processes[broker].machine.image
        topic = image.names.get(topic_of(partition).topic)
        known = None if topic is None else image.partitions.get(PartitionKey(topic, 0))
        return NO_LEADER if known is None else known.leader

    def _presumes(self, broker: int, partition: int) -> bool:
        """A broker leads, by its metadata and by what it does."""
        state = self._state(broker, partition)
        return self._leader_by(broker, partition) == broker and state is not None and state.role.value == "leader"

    def _follows(self, follower: int, leader: int, partition: int) -> bool:
        """In the leader's own epoch."""
        mine, theirs = self._state(follower, partition), self._state(leader, partition)
        if mine is None or theirs is None or not self._presumes(leader, partition):
            return False
        follows = mine.role.value in ("follower", "truncating") and mine.leader == leader
        by_metadata = self._leader_by(follower, partition) == leader
        return follows and by_metadata and mine.leader_epoch == theirs.leader_epoch

    # -- what has happened ------------------------------------------------------------------------------------------

    def _noticed(self) -> list[ModelStep]:
        """The steps by which everybody has come to where it is."""
        steps = [*self._epochs_heard(), *self._committed()]
        for node in self._nodes:
            if self._roles[node] != NodeRole.active:
                steps += self._replayed(node)
        steps += self._activated()
        for broker, process in self._cluster.processes.items():
            if self._has_view(broker):
                end = self._log.within(process.quorum, process.publisher.published)
                steps += [("replay_metadata", {"broker": broker})] * (end - self._views[broker])
                self._views[broker] = max(self._views[broker], end)
        for partition, (request, broker, epoch) in list(self._producing.items()):
            if request in self._cluster.produced:
                del self._producing[partition]
                state = self._state(broker, partition)
                # In a later epoch the producer sends again, and minds no answer to what it has sent before.
                if self._presumes(broker, partition) and state is not None and state.leader_epoch == epoch:
                    steps.append(("acknowledge", {"leader": broker, "partition": partition}))
        return steps

    def _epochs_heard(self) -> list[ModelStep]:
        steps: list[ModelStep] = []
        for node in self._nodes:
            epoch = self._epoch(node)
            if epoch > self._epochs[node]:
                self._left_office(node)
                self._epochs[node], self._roles[node] = epoch, NodeRole.standby
                steps.append(("hear_of_epoch", {"node": node, "epoch": epoch}))
        return steps

    def _left_office(self, node: int) -> None:
        if self._roles[node] == NodeRole.active:
            self._applied[node] = 0

    def _committed(self) -> list[ModelStep]:
        ends = (self._quorum(node) for node in self._nodes)
        stable = max(self._log.within(each, each.replica.high_watermark) for each in ends)
        leader = self._leader(self._newest)
        risen, self._stable = stable - self._stable, max(stable, self._stable)
        return [("commit", {"node": -1 if leader is None else leader})] * risen

    def _replayed(self, node: int) -> list[ModelStep]:
        quorum = self._quorum(node)
        applied = self._log.within(quorum, quorum.replica.applied)
        more, self._applied[node] = applied - self._applied[node], max(applied, self._applied[node])
        return [("replay_record", {"node": node})] * more

    def _activated(self) -> list[ModelStep]:
        steps: list[ModelStep] = []
        for node in self._nodes:
            if self._active(node) is not None and self._roles[node] != NodeRole.active:
                self._roles[node] = NodeRole.active
                self._active_epoch = self._epoch(node)
                self._log.cut(self._applied[node])
                self._awaits.clear()
                self._cluster.registered.clear()
                steps.append(("activate", {"node": node}))
        return steps

    def _appended(self, node: int, begin: int, also: tuple[ModelStep, ...] = ()) -> list[ModelStep]:
        steps = self._log.take(self._quorum(node), begin, node, also)
        if steps and self._epoch(node) == self._newest:
            self._leader_end = len(self._log.places)
        if steps and self._active(node) is not None:
            self._applied[node] = len(self._log.places)
        return steps

    # -- looking ----------------------------------------------------------------------------------------------------

    def observe(self) -> Mapping[str, Value]:
        """Everything but what the model remembers for its promises, and a broker's that does not take part."""
        cells: dict[str, Value] = {
            "brokers": tuple(self._cluster.brokers),
            "leader_end": self._leader_end,
            "stable": self._stable,
            "newest_epoch": self._newest,
            "active_epoch": self._active_epoch,
            **self._log.cells(),
        }
        for node in self._nodes:
            cells |= self._cells_of_node(node)
        for broker in self._cluster.brokers:
            cells[f"run[{broker}]"] = self._run_of(broker).label
            if self._is_registered(broker):
                epoch = self._cluster.processes[broker].lifecycle.broker_epoch
                cells[f"own_epoch[{broker}]"] = self._log.broker_epoch(epoch)
            if self._has_view(broker):
                cells |= self._cells_of_view(broker)
        return cells

    def _cells_of_node(self, node: int) -> dict[str, Value]:
        quorum, active = self._quorum(node), self._active(node)
        cells: dict[str, Value] = {
            f"node_epoch[{node}]": self._epoch(node),
            f"role[{node}]": self._role(node).label,
            f"snapshot_end[{node}]": -1,
            f"making[{node}]": 0,
            f"order_epoch[{node}]": -1,
        }
        if active is not None and self._epoch(node) == self._active_epoch:
            cells[f"node_applied[{node}]"] = self._has(node)
            for other in self._nodes:
                told = other != node and self._voters[other] in active.turns._nodes
                cells[f"heard[{other}]"] = (Heard.idle if told else Heard.unknown).label
            cells |= self._log.image_cells("node", node, active.image)
        elif active is None and quorum.replica.applied >= self._log.base:
            cells[f"node_applied[{node}]"] = self._log.within(quorum, quorum.replica.applied)
            image = self._cluster.controllers[self._voters[node]].machine.image
            cells |= self._log.image_cells("node", node, image)
        return cells

    def _cells_of_view(self, broker: int) -> dict[str, Value]:
        process = self._cluster.processes[broker]
        end = self._log.within(process.quorum, process.publisher.published)
        if end < self._views[broker]:
            return {}
        cells: dict[str, Value] = {f"view_applied[{broker}]": end, f"view_reached[{broker}]": end}
        cells |= self._log.image_cells("view", broker, process.machine.image)
        for partition in range(self._constants["partitions"]):
            at = f"[{broker}][{partition}]"
            cells[f"data{at}"] = self._data(broker, partition)
            if self._presumes(broker, partition):
                cells |= self._cells_of_proposal(broker, partition, at)
        return cells

    def _cells_of_proposal(self, broker: int, partition: int, at: str) -> dict[str, Value]:
        member, epoch = self._proposed(broker, partition)
        return {f"proposed{at}": member, f"proposed_epoch{at}": epoch}

    def _proposed(self, broker: int, partition: int) -> tuple[int | None, int]:
        """Whom a leader has asked for, and as which process."""
        leader = self._cluster.processes[broker].broker.partitions[topic_of(partition)].leader
        asked = self._cluster.asked.get((broker, topic_of(partition)))
        if leader is None or asked is None or not leader.isr.proposed:
            return None, -1
        body: Any = asked.body
        members = {each.broker: each.broker_epoch for each in body.new_isr}
        joining = sorted(members.keys() - leader.isr.members)
        if joining:
            return joining[0], self._log.broker_epoch(members[joining[0]])
        leaving = sorted(leader.isr.members - members.keys())
        return (leaving[0] if leaving else None), -1
