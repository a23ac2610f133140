"""One replica of one partition: its log, its role, its leader epoch, its high watermark (``Partition`` in Kafka)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from ..compaction.edge import refused
from ..log.batch import Batch
from ..log.epochs import EpochEntry
from ..log.log import Log
from ..wire.errors import ErrorCode
from ..wire.messages import NO_LEADER, NO_TOPIC_ID, LeaderAndIsrRequest, TopicPartition
from .deletions import Deletions
from .follower import Follower
from .leader import Leader
from .producers import Producers
from .purgatory import Purgatory
from .remote import REMOTE_TIMER, RemoteLog
from .runtime import STORAGE_FAILURES, Runtime
from .validate import is_consistent


class Role(Enum):
    """What a replica does."""

    OFFLINE = "offline"
    """Its disk has failed: it does nothing until it is reopened."""
    NONE = "none"
    """It has been started, and waits for a LeaderAndIsr."""
    LEADER = "leader"
    TRUNCATING = "truncating"
    """It follows, and has not yet heard from its leader where to cut its log."""
    FOLLOWER = "follower"


class PartitionState(NamedTuple):
    """All that a replica goes by, to be looked at."""

    role: Role
    leader: int
    """Whom it follows, itself where it leads, -1 without a role."""
    leader_epoch: int
    isr: frozenset[int]
    """As of the last LeaderAndIsr, and for a leader of the last AlterIsr; empty without a role."""
    maximal_isr: frozenset[int]
    partition_epoch: int
    replicas: tuple[int, ...]
    offline: frozenset[int]
    log_start: int
    high_watermark: int
    synced: int
    end: int
    epochs: tuple[tuple[int, int], ...]
    """The leader epoch cache: epochs and where each begins."""
    progress: tuple[tuple[int, int], ...]
    """Of a leader: followers and their ends in this epoch, -1 where that is not known."""
    waiting: int
    """Produces that wait for the high watermark."""
    topic_id: UUID = NO_TOPIC_ID
    """``NO_TOPIC_ID`` where it was told of none yet."""


class Partition:
    """A replica. Raises like ``DataDirectory.log`` when it is opened."""

    def __init__(self, runtime: Runtime, key: TopicPartition) -> None:
        self.runtime = runtime
        self.key = key
        self.purgatory = Purgatory(runtime, key)
        """Produces that wait for the high watermark; empty but for a leader's."""
        self.deletions = Deletions(runtime, key)
        """Deletions that wait for the followers; empty but for a leader's."""
        self.failure: str | None = None
        """Why it is offline."""
        self.log: Log = runtime.directory.log(*key)
        self._open()
        self.remote: RemoteLog | None = runtime.remote_logs(self) if runtime.remote_logs is not None else None
        """The remote part of its log, where its topic has one."""

    def _open(self) -> None:
        directory = self.runtime.directory
        self.topic_id = directory.topic_id(*self.key) or NO_TOPIC_ID
        # The log holds no epoch that was not stored before; should the file have been lost, it says the least.
        self.leader_epoch = max(directory.leader_epoch(*self.key), self.log.latest_epoch)
        self.request: LeaderAndIsrRequest | None = None
        """What was taken up last since the start."""
        self.leader: Leader | None = None
        self.follower: Follower | None = None
        self.producers = Producers()
        self._stored_high_watermark = directory.high_watermark(*self.key)
        self.high_watermark = self._stored_high_watermark
        self.set_high_watermark(max(self.log.local_start, min(self.high_watermark, self.log.end)))

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def role(self) -> Role:
        """What it does now."""
        if self.failure is not None:
            return Role.OFFLINE
        if self.leader is not None:
            return Role.LEADER
        if self.follower is not None:
            return Role.TRUNCATING if self.follower.truncating else Role.FOLLOWER
        return Role.NONE

    def state(self) -> PartitionState:
        """Everything; looking changes nothing."""
        leader, follower, request, log = self.leader, self.follower, self.request, self.log
        isr = leader.isr if leader is not None else None
        members = isr.members if isr is not None else request.isr if request is not None else frozenset()
        return PartitionState(
            role=self.role,
            leader=self.runtime.node_id if leader else follower.leader if follower else NO_LEADER,
            leader_epoch=self.leader_epoch,
            isr=members,
            maximal_isr=isr.maximal if isr is not None else members,
            partition_epoch=isr.partition_epoch if isr else request.partition_epoch if request else -1,
            replicas=request.replicas if request else (),
            offline=isr.offline if isr else request.offline if request else frozenset(),
            log_start=log.log_start,
            high_watermark=self.high_watermark,
            synced=log.recovery_point,
            end=log.end,
            epochs=tuple((entry.epoch, entry.start_offset) for entry in log.epochs.entries),
            progress=tuple((each.replica, each.end) for each in leader.progress.values()) if leader else (),
            waiting=len(self.purgatory),
            topic_id=self.topic_id,
        )

    # -- roles ------------------------------------------------------------------------------------------------------

    def take_up(self, request: LeaderAndIsrRequest) -> ErrorCode:
        """Lead or follow as the controller says; the request is well formed and names this replica.

        NONE where it was taken up or is in force already. FENCED_REPLICA, and nothing is changed, for an older leader
        epoch, for another leader in the same epoch, and where a replica that was restarted is to lead again in the
        epoch in which it has led: it has lost its high watermark, and with it what it committed in that epoch.
        INCONSISTENT_TOPIC_ID where it is a replica of another topic that had, or has, this name.
        """
        here = self.runtime.node_id
        if not is_consistent(request.topic_id, self.topic_id):
            return ErrorCode.INCONSISTENT_TOPIC_ID
        if request.leader_epoch < self.leader_epoch:
            return ErrorCode.FENCED_REPLICA
        if self.topic_id == NO_TOPIC_ID != request.topic_id:
            self.runtime.directory.store_topic_id(*self.key, request.topic_id)
            self.topic_id = request.topic_id
        if request.leader == NO_LEADER:
            # Nobody to be or to follow. Kafka's makeFollowers aborts the transition too; the next epoch fences all.
            return ErrorCode.NONE
        if request.leader_epoch == self.leader_epoch:
            if self.request is not None:
                return self._repeated(request, self.request)
            if request.leader == here:
                return ErrorCode.FENCED_REPLICA
        else:
            # On disk before anything is done in it: a restarted replica must not take up an older one.
            self.runtime.directory.store_leader_epoch(*self.key, request.leader_epoch)
        self.leader_epoch = request.leader_epoch
        self.request = request
        if request.leader == here:
            self._become_leader(request)
        else:
            self._become_follower(request)
        return ErrorCode.NONE

    def _repeated(self, request: LeaderAndIsrRequest, known: LeaderAndIsrRequest) -> ErrorCode:
        if request.leader != known.leader:
            return ErrorCode.FENCED_REPLICA
        leader = self.leader
        if leader is not None:
            # Its ISR may be known by an answer to an AlterIsr, which says nothing of the marks.
            leader.isr.mark(request.offline, request.partition_epoch)
            if leader.isr.take(request.isr, request.partition_epoch):
                # The controller's answer to an AlterIsr was lost, and this tells of it (see ``Isr.take``).
                leader.isr_changed()
        return ErrorCode.NONE

    def _become_leader(self, request: LeaderAndIsrRequest) -> None:
        self.log.assign_epoch(request.leader_epoch)
        self._end_following()
        if self.leader is not None:
            self.leader.close()  # what waits goes on waiting: its records are in the log still
        self.leader = Leader(self, request)
        self._set_isr_timer()
        self.leader.advance()
        if self.remote is not None:
            self.remote.leading()

    def _become_follower(self, request: LeaderAndIsrRequest) -> None:
        self._end_leading(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._end_following()
        self.follower = Follower(self, request)
        if self.remote is not None:
            self.remote.following()

    def _end_leading(self, error: ErrorCode) -> None:
        leader, self.leader = self.leader, None
        if leader is not None:
            leader.close()
            self.purgatory.fail(error)
            self.deletions.fail(error)

    def _end_following(self) -> None:
        follower, self.follower = self.follower, None
        if follower is not None:
            follower.close()

    def _set_isr_timer(self) -> None:
        at = self.runtime.clock.now() + self.runtime.config.isr_interval_ms
        self.runtime.timers.set(("isr", self.key), at)

    # -- timers -----------------------------------------------------------------------------------------------------

    def fire(self, name: str) -> None:
        """Do what the timer ``(name, partition)`` is for; nothing where the replica has not the role for it."""
        if self.failure is not None:
            return
        with self.storage():
            if name == "fetch" and self.follower is not None:
                self.follower.send()
            elif name == "isr" and self.leader is not None:
                self._set_isr_timer()
                self.leader.look_at_isr()
            elif name == "produce" and self.leader is not None:
                self.purgatory.expire()
            elif name == "delete" and self.leader is not None:
                self.deletions.expire()
            elif name == REMOTE_TIMER and self.remote is not None:
                self.remote.fire()

    # -- the log ----------------------------------------------------------------------------------------------------

    def set_high_watermark(self, offset: int) -> None:
        """Set it. Below what is stored it is stored first: what is cut off and written anew was not committed."""
        if offset < self._stored_high_watermark:
            self.runtime.directory.store_high_watermarks({self.key: offset})
            self._stored_high_watermark = offset
        self.high_watermark = offset

    def high_watermark_stored(self, offset: int) -> None:
        """The broker has stored it, with those of other partitions."""
        self._stored_high_watermark = offset

    def truncate_to(self, offset: int, producers: bytes = b"") -> None:
        """Cut the log, and the high watermark with it: on disk before the log, or a crash would bring back a higher.

        ``producers``: like ``Log.truncate_to``.
        """
        end = min(offset, self.log.end)
        if end < self.high_watermark:
            self.set_high_watermark(end)
        end = self.log.truncate_to(end, producers)
        if end < self.high_watermark:  # the cut fell into a batch
            self.set_high_watermark(end)
        self.producers.truncated(end)

    def start_at(self, offset: int) -> None:
        """Throw the log away; it begins anew at ``offset``: the leader's log start, or its batch's base."""
        self.log.truncate_fully_and_start_at(offset)
        self.set_high_watermark(offset)
        self.producers.truncated(0)

    def stop(self) -> None:
        """Give up the role for good: the replica is to be deleted. What waits is answered, no timer is left."""
        self._end_leading(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        self._end_following()
        self._end_remote()
        self.request = None

    def refused(self, batches: list[Batch]) -> str | None:
        """Why its topic, which is compacted, does not take these of a producer; ``None`` where it does."""
        config = self.runtime.compacted.get(self.key.topic)
        return refused(config, batches) if config is not None else None

    def _end_remote(self) -> None:
        if self.remote is not None:
            self.remote.ended()

    def start_after_remote(
        self, log_start: int, offset: int, epochs: Sequence[EpochEntry], producers: bytes = b""
    ) -> None:
        """Throw the log away; it begins anew at ``offset``, after what is in remote storage from ``log_start`` on.

        All of that is committed. Raises like ``Log.start_after_remote``.
        """
        self.log.start_after_remote(log_start, offset, epochs, producers)
        self.set_high_watermark(offset)
        self.producers.truncated(0)

    # -- failing disks ----------------------------------------------------------------------------------------------

    @contextmanager
    def storage(self) -> Iterator[None]:
        """Where the disk fails inside, the replica goes offline."""
        try:
            yield
        except STORAGE_FAILURES as error:
            self.go_offline(str(error))

    def go_offline(self, why: str) -> None:
        """Give up the role; what waits is answered with KAFKA_STORAGE_ERROR."""
        self.failure = why
        self._end_leading(ErrorCode.KAFKA_STORAGE_ERROR)
        self._end_following()
        self._end_remote()
        self.request = None

    def reopen(self) -> None:
        """Recover the log as after a restart; it has no role then. Raises like ``DataDirectory.log``."""
        self.log = self.runtime.directory.reopen(*self.key)
        self._end_leading(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        self._end_following()
        self._end_remote()
        self._open()
        self.failure = None
