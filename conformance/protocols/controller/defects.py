"""Defects of ``impl/kraft``, and of what it keeps its metadata in, which are driven against ``controller``."""

from __future__ import annotations

from typing import Final

from ...mutants.defects import Defect
from ...mutants.patched import Patch

CONSTANTS: Final = (3, 3, 2)
"""Brokers, controllers, partitions."""


def _of(name: str, doc: str, file: str, old: str, new: str, issue: str = "") -> Defect:
    return Defect(name, "controller", doc, (Patch(f"{file}.py", old, new),), issue, CONSTANTS)


_REGISTERED_ONLY: Final = "    if known is None:\n"
_OF_PROCESS: Final = "    if known is None or known.epoch != body.broker_epoch:\n"

DEFECTS: Final[tuple[Defect, ...]] = (
    # -- who asks ---------------------------------------------------------------------------------------------------
    _of(
        "stale-heartbeat-taken",
        "a heartbeat of a broker's former process counts",
        "kraft/heartbeats",
        _OF_PROCESS,
        _REGISTERED_ONLY,
        "KAFKA-7235",
    ),
    _of(
        "stale-leader-alters",
        "AlterPartition is taken from a broker's former process",
        "kraft/alter_partition",
        _OF_PROCESS,
        _REGISTERED_ONLY,
        "KAFKA-7235",
    ),
    _of(
        "live-number-taken",
        "a process registers under a number that another live process has",
        "kraft/registrations",
        "        if sessions.is_live(body.broker, known.epoch, now):\n"
        "            return Decision(BrokerRegistrationResponse(ErrorCode.DUPLICATE_BROKER_REGISTRATION))\n",
        "",
    ),
    _of(
        "same-process-registers-anew",
        "a process that registers again, as it was not answered, gets another epoch",
        "kraft/registrations",
        "known is not None and known.incarnation == body.incarnation:",
        "known is not None and known.incarnation == body.incarnation and known.fenced is None:",
        "KAFKA-16952",
    ),
    # -- the ISR ----------------------------------------------------------------------------------------------------
    _of(
        "fenced-member-joins",
        "a fenced broker is let into the ISR",
        "kraft/alter_partition",
        "    if not image.alive(member.broker):\n",
        "    if member.broker not in image.brokers:\n",
        "KAFKA-13916",
    ),
    _of(
        "restarted-member-joins",
        "whoever has restarted since the leader looked is let into the ISR",
        "kraft/alter_partition",
        "return member.broker_epoch == image.brokers[member.broker].epoch",
        "return True",
    ),
    _of(
        "old-partition-epoch-taken",
        "an ISR is taken up that was asked for before the last change",
        "kraft/alter_partition",
        "    if body.partition_epoch < partition.partition_epoch:\n        return ErrorCode.INVALID_UPDATE_VERSION\n",
        "",
    ),
    _of(
        "old-leader-epoch-taken",
        "whoever led an older leader epoch may ask for an ISR",
        "kraft/alter_partition",
        "    if body.leader_epoch < partition.leader_epoch:\n        return ErrorCode.FENCED_REPLICA\n",
        "",
    ),
    _of(
        "follower-alters",
        "whoever does not lead may ask for an ISR",
        "kraft/alter_partition",
        "    if body.broker != partition.leader:\n        return ErrorCode.INVALID_REQUEST\n",
        "",
    ),
    _of(
        "newer-state-fenced",
        "a controller that is out of date fences a leader that knows of a later state",
        "kraft/alter_partition",
        "return ErrorCode.NOT_CONTROLLER  # it knows",
        "return ErrorCode.FENCED_REPLICA  # it knows",
        "KAFKA-14154",
    ),
    _of(
        "fenced-stays-in-isr",
        "whoever is fenced stays in the ISR",
        "metadata/elections",
        "    isr = tuple(each for each in partition.isr if each != broker) or partition.isr\n    leader",
        "    isr = partition.isr\n    leader",
    ),
    _of(
        "last-member-removed",
        "the last member of an ISR leaves it when it is fenced",
        "metadata/elections",
        "if each != broker) or partition.isr\n",
        "if each != broker)\n",
    ),
    # -- elections --------------------------------------------------------------------------------------------------
    _of(
        "fenced-preferred-elected",
        "the preferred replica is elected though it is fenced",
        "metadata/elections",
        "    if first not in partition.isr or not alive(first):\n",
        "    if first not in partition.isr:\n",
    ),
    _of(
        "fenced-broker-elected",
        "when a broker is unfenced a member of an ISR is elected that is fenced",
        "kraft/heartbeats",
        "lambda each: each == broker or image.alive(each)",
        "lambda each: True",
    ),
    _of(
        "nobody-elected-anew",
        "a partition stays without a leader when the last member of its ISR is unfenced",
        "kraft/heartbeats",
        "        if partition.leader == NO_LEADER and broker in partition.replicas:\n",
        "        if partition.leader == NO_LEADER and broker == partition.replicas[0]:\n",
    ),
    # -- brokers come and go ----------------------------------------------------------------------------------------
    _of(
        "shutdown-answered-early",
        "a broker may stop before the others know that it leads nothing any more",
        "kraft/heartbeats",
        "        there = lowest is None or lowest >= session.shutdown_offset\n",
        "        there = lowest is None or lowest >= 0\n",
    ),
    _of(
        "shutdown-leads-on",
        "a broker is in controlled shutdown and leads on",
        "kraft/heartbeats",
        "records = (*isr_records(image.without(body.broker)), shut_down)",
        "records = (shut_down,)",
    ),
    _of(
        "stopped-broker-unfenced",
        "a heartbeat that is late unfences a broker that was fenced to stop, and it is elected",
        "kraft/heartbeats",
        "        works = not body.want_fence and not known.shutting_down\n",
        "        works = not body.want_fence\n",
    ),
    _of(
        "sessions-forgotten",
        "a new active controller has no session for whoever was unfenced before, and never fences it",
        "kraft/sessions",
        "for broker, known in image.brokers.items() if not known.fenced\n",
        "for broker, known in image.brokers.items() if known.fenced\n",
        "KAFKA-13841",
    ),
    _of(
        "fenced-in-time",
        "a broker is fenced before its session is over",
        "kraft/sessions",
        "            if now - session.heard_at >= self._timeout and",
        "            if now - session.heard_at >= self._timeout // 2 and",
    ),
    # -- what is stable ---------------------------------------------------------------------------------------------
    _of(
        "answered-before-stable",
        "a change is acknowledged when it is appended",
        "kraft/node",
        "self._waiting.append(_Waiting(quorum.replica.end, request, decision.answer))",
        "self._waiting.append(_Waiting(0, request, decision.answer))",
    ),
    _of(
        "refusal-before-stable",
        "a refusal is answered though it may be that of a change which is lost",
        "kraft/node",
        "self._waiting.append(_Waiting(quorum.replica.end, request, decision.answer))",
        "self._waiting.append(_Waiting(quorum.replica.end if parts else 0, request, decision.answer))",
    ),
    _of(
        "deposed-acknowledges",
        "a controller that is deposed says that what it has appended is done",
        "kraft/node",
        "refused(body, ErrorCode.NOT_CONTROLLER))\n\n    def _answer_stable",
        "each.answer or body)\n\n    def _answer_stable",
    ),
    Defect(
        "pending-kept",
        "controller",
        "a controller that is elected again still has in mind what was pending when it was deposed",
        (
            Patch(
                "kraft/node.py",
                "        self.active = None\n        self.metrics.resigned()",
                "        self.kept = None if self.active is None else self.active.image\n"
                "        self.active = None\n        self.metrics.resigned()",
            ),
            Patch(
                "kraft/node.py",
                "            self.machine.image,\n            cluster_id",
                "            getattr(self, 'kept', None) or self.machine.image,\n            cluster_id",
            ),
        ),
        constants=CONSTANTS,
    ),
    _of(
        "applied-above-stable",
        "brokers and standbys replay records that are not stable",
        "quorum/replica",
        "        while self.applied < self.high_watermark:\n"
        "            batches = self.log.read(self.applied, up_to=self.high_watermark)\n",
        "        while self.applied < self.end:\n            batches = self.log.read(self.applied, up_to=self.end)\n",
    ),
    _of(
        "active-too-soon",
        "whoever is elected is active before all of its log is stable",
        "kraft/node",
        "            if replica.applied == replica.end and self.refusal is None:",
        "            if self.refusal is None:",
    ),
    # -- snapshots --------------------------------------------------------------------------------------------------
    _of(
        "snapshot-of-pending",
        "the active controller makes a snapshot of what it has in mind",
        "kraft/node",
        "        if len(self.quorum.config.voters) > 1 and not self._yielded:\n"
        "            self._yielded = True\n"
        "            self.quorum.resign()\n"
        "        else:\n"
        "            self._yielded = False\n"
        "            take_snapshot(self.quorum)\n",
        "        committed = self.machine.image\n"
        "        self.machine.image = committed if self.active is None else self.active.image\n"
        "        take_snapshot(self.quorum)\n"
        "        self.machine.image = committed\n",
    ),
    _of(
        "snapshot-lacks-configs",
        "a snapshot has no configs",
        "metadata/image",
        "for resource, values in sorted(self.configs.items()):",
        "for resource, values in sorted(self.configs.items())[:0]:",
    ),
    _of(
        "snapshot-lacks-fenced",
        "a snapshot does not say who is fenced",
        "metadata/changes",
        '"Fenced": known.fenced,',
        '"Fenced": True,',
    ),
    Defect(
        "snapshot-kept-over-load",
        "controller",
        "loading a snapshot keeps what the snapshot lacks",
        (
            Patch(
                "metadata/machine.py",
                "        self._take(image)\n\n    def clear",
                "        image.configs = {**self.image.configs, **image.configs}\n"
                "        self._take(image)\n\n    def clear",
            ),
            Patch("metadata/machine.py", "        self._take(Image())\n", "        self.image = self.image.fork()\n"),
        ),
        constants=CONSTANTS,
    ),
    _of(
        "snapshot-not-published",
        "a broker goes on as before with what has changed by a snapshot that it has loaded",
        "metadata/machine",
        "            image.touched = touched.union(self.image.partitions, image.partitions)\n",
        "            image.touched = touched\n",
    ),
    _of(
        "two-snapshots",
        "two nodes are told to make a snapshot at once",
        "kraft/snapshots",
        "        if turn is not None:\n            return turn.node == node\n",
        "        if turn is not None and turn.node == node:\n            return True\n",
    ),
    _of(
        "standby-tells-nothing",
        "a standby never tells the active controller where its snapshot ends, so that nobody tells it to make one",
        "kraft/node",
        "        elif quorum.leader_id not in (-1, self.address):\n",
        "        elif self._heartbeat is not None:\n",
    ),
    _of(
        "told-and-makes-none",
        "a broker that is told to make a snapshot makes none",
        "kraft/lifecycle",
        "            if body.should_snapshot:\n",
        "            if body.should_snapshot and body.is_fenced:\n",
    ),
    # -- topics -----------------------------------------------------------------------------------------------------
    _of(
        "deletion-leaves-partitions",
        "a topic is deleted, and its partitions stay",
        "metadata/image",
        "        for key in keys:\n            del self.partitions[key]\n        self._touch(keys)\n",
        "        self._touch(keys)\n",
    ),
    _of(
        "deletion-leaves-configs",
        "a topic is deleted, and the next one of its name has its configs",
        "metadata/image",
        "        self.configs.pop(ResourceKey(ResourceType.TOPIC, told.name), None)\n",
        "",
    ),
    _of(
        "topic-id-again",
        "a topic made anew under its name has the id of the former one",
        "kraft/topics",
        "    topic = topic_id(cluster_id, epoch, offset)\n",
        "    topic = topic_id(cluster_id, 0, len(body.name))\n",
        "KAFKA-19383",
    ),
    _of(
        "stray-replica-kept",
        "a broker that was away keeps the replica of a topic that was deleted, and made anew",
        "kraft/publisher",
        "            if state is None or self._broker.address not in state.replicas:\n",
        "            if there.topic_id == UUID(int=0):\n",
        "KAFKA-14616",
    ),
    _of(
        "replica-not-deleted",
        "a broker keeps the replica of a topic that is deleted",
        "kraft/publisher",
        "        if told is not None:\n            self._delete(told[0])\n",
        "        if told is not None and key.partition:\n            self._delete(told[0])\n",
    ),
    # -- what producers are told --------------------------------------------------------------------------------------
    _of(
        "acknowledged-by-leader-alone",
        "a record is acknowledged under acks=all when its leader has it",
        "replica/leader",
        "if request.acks == -1 and self._partition.high_watermark <= last_offset:",
        "if request.acks == -2:",
    ),
    _of(
        "follower-counts-unsynced",
        "a follower asks for what is behind records that it has not synced",
        "replica/follower",
        "            if log.recovery_point < log.end:\n                log.flush()\n",
        "",
    ),
    # -- replaying --------------------------------------------------------------------------------------------------
    _of(
        "replayed-twice",
        "the first record of a batch is replayed twice",
        "quorum/replica",
        "                    for first in range(0, len(records), _APPLY_RECORDS):\n",
        "                    for first in (0, *range(0, len(records), _APPLY_RECORDS)):\n",
    ),
    _of(
        "batch-replayed-in-part",
        "of a batch the first record alone is replayed",
        "quorum/replica",
        "self.machine.apply(records[first : first + _APPLY_RECORDS])",
        "self.machine.apply(records[first : first + 1])",
    ),
    _of(
        "published-before-own-registration",
        "a broker takes up its roles from metadata that do not have this process yet",
        "kraft/publisher",
        "if self.published == 0 and (mine is None or mine.incarnation != self._incarnation):",
        "if self.published == 0 and mine is None:",
    ),
    _of(
        "roles-not-taken-up",
        "a broker does not hear that a partition has another leader, where its ISR is as it was",
        "kraft/publisher",
        "and (known is None or known[1] != state):",
        "and (known is None or known[1].isr != state.isr):",
    ),
)
"""By what they are of."""
