"""The remote part of one replica's log, and what its role does about it (``RLMTask`` and its kinds in Kafka)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from ..replica.partition import Partition
from ..wire.messages import Envelope, FetchRequest, ListOffsetsRequest, ListOffsetsResponse
from .bootstrap import Bootstrap
from .config import TieredTopic, TieringConfig
from .copier import Copier
from .cutting import cut
from .errors import RemoteStorageError
from .expiry import Expiry
from .metrics import TieringMetrics
from .reader import Reader
from .segments import RemoteSegments, SegmentState
from .steps import Pause, Steps, Tasks
from .store import RemoteStore

if TYPE_CHECKING:
    from .manager import RemoteLogManager

COPY, EXPIRE, BUILD, CUT, READ = "copy", "expire", "build", "cut", "read"
"""Names of its tasks; of reads there may be many."""


class TopicName(NamedTuple):
    """What names a partition in the metadata log."""

    topic: str
    topic_id: UUID
    partition: int


class RemotePartition:
    """A ``RemoteLog`` of ``impl/replica``."""

    def __init__(self, manager: RemoteLogManager, partition: Partition, topic: TieredTopic, topic_id: UUID) -> None:
        self._manager = manager
        self.partition = partition
        self.config_of_topic = topic
        self.topic = TopicName(partition.key.topic, topic_id, partition.key.partition)
        self.tasks = Tasks(partition, manager.jobs)
        self.reader = Reader(self)
        self.copier: Copier | None = None
        """Of a leader, for one leader epoch."""
        self.expiry = Expiry(self)
        self.copying: set[UUID] = set()
        """The copies that this process has begun in this leader epoch and not given up."""

    # -- what its parts go by ---------------------------------------------------------------------------------------

    @property
    def config(self) -> TieringConfig:
        """The broker's settings, as of now."""
        return self._manager.config

    @property
    def store(self) -> RemoteStore:
        """The object store."""
        return self._manager.store

    @property
    def metrics(self) -> TieringMetrics:
        """The broker's."""
        return self._manager.metrics

    @property
    def node_id(self) -> int:
        """The broker's."""
        return self.partition.runtime.node_id

    def now(self) -> int:
        """Milliseconds since some moment."""
        return self.partition.runtime.clock.now()

    def wall(self) -> int:
        """Milliseconds since 1970, by which retention goes."""
        return self.partition.runtime.clock.wall()

    def new_id(self) -> UUID:
        """Of another copy."""
        return self._manager.new_id()

    def segments(self) -> RemoteSegments:
        """What the metadata log says of this partition, as far as this broker has read it."""
        return self._manager.metadata.segments(self.partition.key, self.topic.topic_id)

    def commit(self, value: bytes, decided: Callable[[], bool | None]) -> Steps:
        """``RemoteLogMetadata.commit``."""
        return self._manager.metadata.commit(value, decided, self.wall)

    def is_known(self, segment: UUID) -> bool | None:
        """Whether the metadata log has it; ``None`` for not yet."""
        here = self.segments()
        return True if here.get(segment) is not None or here.was_deleted(segment) else None

    def is_finished(self, segment: UUID) -> bool | None:
        """Whether its copy is finished; ``None`` for not yet.

        It never will be where somebody has begun to delete it before, such as a deposed leader that has not heard of
        this one: it is copied anew then.
        """
        known = self.segments().get(segment)
        if known is None:
            return False if self.segments().was_deleted(segment) else None
        return None if known.state is SegmentState.COPY_SEGMENT_STARTED else bool(known.objects)

    def is_deleting(self, segment: UUID, unfinished: bool) -> bool | None:
        """Whether the metadata log says that it is being deleted; ``None`` for not yet.

        One that was to be deleted as ``unfinished`` never will be where it is finished.
        """
        known = self.segments().get(segment)
        if known is None:
            return True if self.segments().was_deleted(segment) else None
        if unfinished and known.state is SegmentState.COPY_SEGMENT_FINISHED:
            return False
        return True if known.state is SegmentState.DELETE_SEGMENT_STARTED else None

    def is_deleted(self, segment: UUID) -> bool | None:
        """Whether it is gone; ``None`` for not yet."""
        return True if self.segments().was_deleted(segment) else None

    # -- roles ------------------------------------------------------------------------------------------------------

    def leading(self) -> None:
        """Copy and delete from now on."""
        self.ended()
        self.copier = Copier(self)
        self.tasks.start(COPY, self._again_and_again(self._copy_once))
        self.tasks.start(EXPIRE, self._again_and_again(self.expiry.run))

    def following(self) -> None:
        """Do nothing before the leader's answers ask for it."""
        self.ended()

    def ended(self) -> None:
        """Stop everything; whoever reads is answered by nobody, and asks another leader when its time is over."""
        self.tasks.stop_all()
        self.copier = None
        self.copying.clear()

    def fire(self) -> None:
        """Go on with what has waited."""
        self.tasks.fire()

    def _again_and_again(self, once: Callable[[], Steps]) -> Steps:
        """Run a task at every interval; where the store fails, sooner, and less and less soon."""
        config = self._manager.config
        backoff = config.task_retry_backoff_ms
        while True:
            wait = self.config.task_interval_ms
            try:
                yield from once()
                backoff = self.config.task_retry_backoff_ms
            except RemoteStorageError:
                wait, backoff = backoff, min(2 * backoff, self.config.task_retry_backoff_max_ms)
            yield Pause(wait)

    def _copy_once(self) -> Steps:
        copier = self.copier
        if copier is None:
            return
        try:
            yield from copier.run()
        finally:
            self.copying.clear()
        self.expiry.delete_local()

    # -- requests ---------------------------------------------------------------------------------------------------

    def fetch(self, envelope: Envelope, request: FetchRequest) -> None:
        """Answer a consumer's fetch below the local log start."""
        self.tasks.start_another(READ, self.reader.fetch(envelope, request))

    def list_offsets(self, envelope: Envelope, request: ListOffsetsRequest) -> ListOffsetsResponse | None:
        """Answer for a timestamp."""
        self.tasks.start_another(READ, self.reader.list_offsets(envelope, request))
        return None

    def last_tiered_offset(self) -> int:
        """As of the last look of the upload task in this leader epoch, -1 before the first."""
        return -1 if self.copier is None or self.copier.highest is None else self.copier.highest

    # -- following --------------------------------------------------------------------------------------------------

    def begins_after_tiered(self) -> bool:
        """Whether it is empty, here and in remote storage, and KIP-1023 is switched on."""
        log = self.partition.log
        return self.config.follower_fetch_last_tiered_offset_enable and log.log_start == log.end

    def moved(self, leader_start: int) -> None:
        """Begin after what is in remote storage."""
        self.tasks.start(BUILD, Bootstrap(self).run(leader_start))

    def cut(self, offset: int) -> None:
        """Cut below the local log start."""
        self.tasks.start(CUT, cut(self, offset))

    def building(self) -> bool:
        """Whether it is about to do either: it asks its leader for nothing else meanwhile."""
        return not {BUILD, CUT}.isdisjoint(self.tasks.names())
