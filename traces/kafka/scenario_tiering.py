"""A tiered topic over two leader epochs, and an empty follower that begins at the last tiered offset (KIP-1023).

``archive`` is on brokers 1 and 2. Both have uploaded segments of it, each in the epoch that it led, and deleted most of
what is uploaded from the local log. Broker 3 is then made a replica: with ``follower.fetch.last.tiered.offset.enable``
it begins at the earliest offset that is not uploaded, though the leader has older ones in its local log. ``plain`` is
not tiered.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .capture import batches, checkpoint
from .client import Record
from .cluster import BROKER_IDS, wait_until
from .staging import HOUR_MS, STORE, TOPIC_CONFIG, Staging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_COMMON = {**TOPIC_CONFIG, "cleanup.policy": "delete"}
SEGMENT = 20
"""Records a segment, in two batches; about 1,400 bytes."""
_CONFIGS = {
    "archive": {
        **_COMMON,
        "remote.storage.enable": "true",
        "local.retention.ms": "-1",
        "local.retention.bytes": "4000",  # some uploaded segments stay in the local log
    },
    "plain": _COMMON,
}
DELETED = 2 * SEGMENT
"""DeleteRecords moves the log start offset of ``archive`` here: two remote segments go."""
METADATA_PARTITIONS = 2


class Tiering(Staging):
    """Four stages; the last with an empty follower that has joined the ISR."""

    NAME = "tiered"
    SUMMARY = "tiered storage, and an empty follower that begins at the last tiered offset"
    VERSION = "4.3.1"  # the newest with a test jar of kafka-storage, which has LocalTieredStorage
    TEST_JARS = ("kafka-storage",)
    TOPICS: ClassVar[dict[str, tuple[int, ...]]] = {"archive": (1, 2), "plain": (1, 2)}
    CONTROLLER: ClassVar[dict[str, object]] = {"remote.log.storage.system.enable": True}
    BROKER: ClassVar[dict[str, object]] = {
        "remote.log.storage.system.enable": True,
        "remote.log.storage.manager.class.name": "org.apache.kafka.server.log.remote.storage.LocalTieredStorage",
        "remote.log.storage.manager.impl.prefix": "rsm.config.",
        "rsm.config.dir": "{home}/" + STORE,
        "remote.log.metadata.manager.listener.name": "BROKER",
        "rlmm.config.remote.log.metadata.topic.num.partitions": METADATA_PARTITIONS,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 3,
        "remote.log.manager.task.interval.ms": 300,
        "remote.log.manager.thread.pool.size": 2,
        "follower.fetch.last.tiered.offset.enable": True,
    }
    KEPT_FOLDERS = (STORE,)
    EXAMPLE = "4-empty-follower"
    STORY = """\
Two topics of one partition each: `archive` is tiered (`remote.storage.enable=true`), `plain` is not. `remote` is the
folder of `LocalTieredStorage`, the remote storage manager of Kafka's own tests, with the segments and the leader
epochs that go with them; which segments there are is in `__remote_log_metadata`. Of `archive`, where the log and the
local log of each broker start, and where they end:"""

    @classmethod
    def table(cls, stages: Sequence[Mapping[str, Any]]) -> list[str]:
        """Where each broker's log, and its local log, begins and ends."""

        def bounds(node: Mapping[str, Any]) -> str:
            told = node.get("archive")
            return "start {}, local start {}, LEO {}".format(*told) if told else "none"

        return cls.row_a_stage(stages, bounds)

    def run(self) -> None:
        """Stages 1 to 4."""
        self.tiered()
        self.failover()
        self.trimmed()
        self.empty_follower()

    def tiered(self) -> None:
        """Stage 1: segments in the store, those of before deleted from the local logs."""
        self._start(_CONFIGS)
        self._segments("plain", 1)
        end = self._segments("archive", 7)
        self._wait_tiered(end, (1, 2))
        self._take(
            "1-tiered",
            "Broker 1 leads archive in epoch 0; all but the active segment are uploaded, and the first of them are"
            " deleted from the local logs of brokers 1 and 2.",
        )

    def failover(self) -> None:
        """Stage 2: a second leader epoch, in which broker 2 uploads."""
        self.cluster.nodes[1].kill()
        self._wait_state("archive", 2, {2})
        with self.client.producer(self.cluster.bootstrap, acks="all") as producer:
            self._batch(producer, "archive", SEGMENT // 2)  # the segment has records of both epochs now
        end = self._segments("archive", 3)
        self._wait_tiered(end, (2,))
        self._take(
            "2-failover",
            "Broker 1 was killed with SIGKILL; broker 2 leads archive in epoch 1 and uploads, one segment with records"
            " of both epochs among them.",
        )

    def trimmed(self) -> None:
        """Stage 3: broker 1 is back; the first remote segments are deleted with the records in them."""
        self.cluster.start(1)
        self._wait_state("archive", 2, {1, 2})
        self.client.delete_before(self.cluster.bootstrap, "archive", DELETED)

        def gone() -> bool:
            starts = [checkpoint(self.cluster.nodes[id_].directory / "log-start-offset-checkpoint") for id_ in (1, 2)]
            return all(each.get("archive-0") == DELETED for each in starts) and self._remote_start() >= DELETED

        wait_until(f"log start offset {DELETED} of archive, and no remote segment below it", gone)
        self._wait_tiered(self._end(2), (1, 2))
        self._take(
            "3-trimmed",
            f"Broker 1 was started again and fetched what it lacked; DeleteRecords moved the log start offset to"
            f" {DELETED}, and the remote segments below it are deleted.",
        )

    def empty_follower(self) -> None:
        """Stage 4: broker 3 has nothing, and begins behind all that is uploaded."""
        self.client.reassign(self.cluster.bootstrap, "archive", BROKER_IDS)
        self._wait_state("archive", 2, set(BROKER_IDS))
        self._wait_tiered(self._end(2), BROKER_IDS)
        self._take(
            "4-empty-follower",
            "Broker 3 was made a replica of archive with nothing of it. It has built its leader epochs from the remote"
            " log up to the last tiered offset, fetched from there on, and joined the ISR, though older records were in"
            " the leader's local log.",
        )

    def _segments(self, topic: str, count: int) -> int:
        """Write `count` segments and the first batch of the next; the LEO."""
        with self.client.producer(self.cluster.bootstrap, acks="all") as producer:
            for _ in range(count):
                self._clock += 2 * HOUR_MS  # past segment.ms: the next batch rolls a segment
                for _ in range(2):
                    self._batch(producer, topic, SEGMENT // 2)
            self._clock += 2 * HOUR_MS
            return self._batch(producer, topic, SEGMENT // 2)

    def _batch(self, producer: Any, topic: str, count: int) -> int:
        records = []
        for _ in range(count):
            self._clock += 1
            records.append(
                Record(f"{topic}-{self.random.randrange(100):02}", self.random.randbytes(20).hex(), self._clock)
            )
        offsets = producer.send_batch(topic, records)
        self._note(topic, offsets, records, "all", "none")
        return int(offsets[-1]) + 1

    def _end(self, broker_id: int) -> int:
        return max(end for _, _, end in batches(self.cluster.nodes[broker_id].directory / "archive-0"))

    def _remote_start(self) -> int:
        starts = [int(path.name[:20]) for path in self._store().rglob("*.log")]
        return min(starts, default=0)

    def _store(self) -> Path:
        return self.cluster.home / STORE / "kafka-tiered-storage"

    def _wait_tiered(self, end: int, broker_ids: tuple[int, ...]) -> None:
        """Wait until all but the active segments are uploaded, and local logs and metadata have come to rest."""
        self._wait_high_watermarks({"archive": end}, broker_ids)
        seen: list[tuple[Any, ...]] = []

        def settled() -> bool:
            homes = [self.cluster.nodes[id_].directory for id_ in broker_ids]
            actives = [max(int(path.stem) for path in (home / "archive-0").glob("*.log")) for home in homes]
            uploaded = max(
                (end for each in self._store().glob("archive-0-*") for _, _, end in batches(each)), default=0
            )
            metadata = [
                tuple(batches(node.directory / f"__remote_log_metadata-{number}"))
                for node in self.cluster.live_brokers
                for number in range(METADATA_PARTITIONS)
            ]
            marks = [
                checkpoint(node.directory / "replication-offset-checkpoint").get(f"__remote_log_metadata-{number}")
                for node in self.cluster.live_brokers
                for number in range(METADATA_PARTITIONS)
            ]
            committed = all(
                (each[-1][2] if each else 0) == (mark or 0) for each, mark in zip(metadata, marks, strict=True)
            )
            local = [sorted(path.name for path in (home / "archive-0").glob("*.log")) for home in homes]
            seen.append((metadata, local))
            at_rest = len(seen) > 12 and all(each == seen[-1] for each in seen[-12:])
            return uploaded == max(actives) and committed and at_rest

        wait_until("the upload of all but the active segment of archive", settled, pause=0.3)

    def _take(self, name: str, what: str) -> None:
        super()._take(name, what)
        for id_ in BROKER_IDS:
            node = self.cluster.nodes[id_]
            home = self.capture.home / name / node.name
            if not (home / "archive-0").is_dir():
                continue
            starts = sorted(int(path.stem) for path in (home / "archive-0").glob("*.log"))
            log_start = checkpoint(home / "log-start-offset-checkpoint").get("archive-0", starts[0])
            end = max((end for _, _, end in batches(home / "archive-0")), default=starts[-1])
            self.capture.stages[-1]["nodes"][node.name]["archive"] = [log_start, starts[0], end]
