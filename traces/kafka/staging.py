"""What every recorded scenario is made of: records that depend on the seed, waiting for the cluster, taking a stage."""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, ClassVar

from .capture import Capture, batches, checkpoint
from .client import Client, PartitionState, Record
from .cluster import BROKER_IDS, CONTROLLER_ID, NODE_NAMES, Cluster, RecordingError, wait_until

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

# Records carry this time and not the clock's, so that a recording depends on its seed as far as Kafka allows.
EPOCH_MS = 1_750_000_000_000
HOUR_MS = 3_600_000
STORE = "remote"
"""The folder of ``LocalTieredStorage``, beside the nodes' own, where topics are tiered."""
TOPIC_CONFIG = {
    "min.insync.replicas": "1",
    "retention.ms": "-1",
    "segment.ms": str(HOUR_MS),
    "segment.jitter.ms": "0",
}
"""What every topic of a recording is told: nothing expires, and a segment ends when the records' clock jumps."""
KEPT = """\
Each stage holds the data directories of all nodes at one instant: every process was stopped with SIGSTOP while they
were copied. Index files, producer state snapshots, the cleaner's checkpoint and lock files are left out; what is here
is byte for byte what Kafka wrote. `corpus.json` says for each stage how each node stood and what its logs
held, which records were produced, and each file's size and SHA-256. A run with the same seed produces the same
records; the ids and times that Kafka makes up itself differ."""


class Staging(ABC):
    """One recording: `run` plays every stage on `cluster`, fills `capture`, and tells `say` of each stage."""

    NAME: ClassVar[str]
    """What ``--scenario`` calls it."""
    SUMMARY: ClassVar[str]
    """One line for the command's help."""
    TOPICS: ClassVar[Mapping[str, tuple[int, ...]]]
    """Topic to its replicas, the preferred leader first."""
    VERSION: ClassVar[str | None] = None
    """The release that it needs; None: the newest."""
    TEST_JARS: ClassVar[tuple[str, ...]] = ()
    """Artifacts whose test jars it needs (``maven.TEST_JARS``)."""
    BROKER: ClassVar[Mapping[str, object]] = {}
    """What its brokers are told beside ``cluster``'s own; ``{home}`` in a value is the folder of the run."""
    CONTROLLER: ClassVar[Mapping[str, object]] = {}
    """What its controller is told."""
    KEPT_NAMES: ClassVar[frozenset[str]] = frozenset()
    """Files of data directories that its corpus holds beside ``capture.kept``."""
    KEPT_FOLDERS: ClassVar[tuple[str, ...]] = ()
    """Folders beside the nodes' own in the folder of the run that its corpus holds."""
    STORY: ClassVar[str]
    """What README.md says above its table."""
    KEPT: ClassVar[str] = KEPT
    """What README.md says of the files that there are."""
    EXAMPLE: ClassVar[str]
    """The stage that README.md shows a command for."""

    @classmethod
    @abstractmethod
    def table(cls, stages: Sequence[Mapping[str, Any]]) -> list[str]:
        """The lines of README.md's table, from the manifest's stages."""

    @staticmethod
    def row_a_stage(stages: Sequence[Mapping[str, Any]], cell: Callable[[Mapping[str, Any]], str]) -> list[str]:
        """A table with a row for each stage and a column for each broker, of which ``cell`` tells."""
        rows = ["| stage | broker-1 | broker-2 | broker-3 |", "|---|---|---|---|"]
        for stage in stages:
            cells = []
            for id_ in BROKER_IDS:
                node = stage["nodes"][NODE_NAMES[id_]]
                cells.append(cell(node) + (" (dead)" if node["process"] == "killed" else ""))
            rows.append(f"| {stage['name']} | {' | '.join(cells)} |")
        return rows

    def __init__(
        self, cluster: Cluster, client: Client, capture: Capture, seed: int, say: Callable[[str], None]
    ) -> None:
        self.cluster = cluster
        self.client = client
        self.capture = capture
        self.random = random.Random(seed)  # noqa: S311 - payloads, not secrets
        self.say = say
        self.produced: list[dict[str, Any]] = []
        self._clock = EPOCH_MS

    @abstractmethod
    def run(self) -> None:
        """Every stage in order. Raises `RecordingError` when the cluster does something else."""

    def facts(self) -> dict[str, Any]:
        """More facts of the run than the stages and the produced records."""
        return {}

    def _start(self, configs: Mapping[str, Mapping[str, str]]) -> None:
        """Start every node, create the topics, and wait until all of their replicas are in the ISR."""
        self.cluster.start(CONTROLLER_ID)
        self.cluster.start(*BROKER_IDS)
        for topic, replicas in self.TOPICS.items():
            self.client.create_topic(self.cluster.bootstrap, topic, replicas, configs[topic])
        for topic, replicas in self.TOPICS.items():
            self._wait_state(topic, replicas[0], set(replicas))

    def _transaction(self, topic: str, records: list[Record], ending: str, codec: str = "none") -> None:
        """One batch in a transaction of its own, which is ``committed`` or ``aborted``."""
        with self.client.producer(
            self.cluster.bootstrap, acks="all", compression=codec, transactional_id=f"recorder-{ending}"
        ) as producer:
            producer.init_transactions()
            producer.begin()
            offsets = producer.send_batch(topic, records)
            self._note(topic, offsets, records, "all", codec, transaction=ending)
            if ending == "committed":
                producer.commit()
            else:
                producer.abort()

    def _produce(self, topic: str, *, acks: str, epoch: int) -> None:
        with self.client.producer(self.cluster.bootstrap, acks=acks) as producer:
            self._send(producer, topic, acks=acks, epoch=epoch)

    def _send(self, producer: Any, topic: str, *, acks: str, epoch: int) -> None:
        """One record in a batch of its own, which the leader must have written in `epoch`."""
        self._clock += 1
        record = Record(f"{topic}-{self.random.randrange(1000):03}", f"{self.random.getrandbits(64):016x}", self._clock)
        offsets = producer.send_batch(topic, [record])
        self._note(topic, offsets, [record], acks, "none", epoch=epoch)
        written = {
            base: batch_epoch
            for id_ in BROKER_IDS
            if self.cluster.nodes[id_].running and not self.cluster.nodes[id_].paused
            for batch_epoch, base, _ in batches(self.cluster.nodes[id_].directory / f"{topic}-0")
        }
        if written.get(offsets[0]) != epoch:
            raise RecordingError(
                f"{topic}: offset {offsets[0]} was to be written in leader epoch {epoch}, not {written.get(offsets[0])}"
            )

    def _note(
        self, topic: str, offsets: list[int], records: list[Record], acks: str, codec: str, **more: object
    ) -> None:
        for offset, record in zip(offsets, records, strict=True):
            self.produced.append(
                {"topic": topic, "offset": offset, "key": record.key, "value": record.value,
                 "timestamp": record.timestamp, "headers": len(record.headers), "acks": acks, "codec": codec, **more}
            )  # fmt: skip

    def _describe(self) -> dict[str, PartitionState]:
        return self.client.describe(self.cluster.bootstrap, sorted(self.TOPICS))

    def _wait_state(self, topic: str, leader: int | None, isr: set[int] | None) -> None:
        """Wait for a leader, and for an ISR unless that is None."""
        wait_until(
            f"leader {leader} of {topic} with ISR {'any' if isr is None else sorted(isr)}",
            lambda: (state := self._describe()[topic]).leader == leader and (isr is None or set(state.isr) == isr),
            pause=0.2,
        )

    def _wait_isr(self, topic: str, isr: set[int]) -> None:
        """Wait until a topic has a leader and this ISR."""
        wait_until(
            f"a leader of {topic} with ISR {sorted(isr)}",
            lambda: (state := self._describe()[topic]).leader in isr and set(state.isr) == isr,
            pause=0.2,
        )

    def _wait_high_watermarks(self, expected: dict[str, int], broker_ids: Collection[int]) -> None:
        """Wait until the checkpoint files of the brokers have these high watermarks: then a copy has them too."""
        wanted = {f"{topic}-0": offset for topic, offset in expected.items()}

        def flushed() -> bool:
            found = [
                checkpoint(self.cluster.nodes[id_].directory / "replication-offset-checkpoint") for id_ in broker_ids
            ]
            return all(offsets.get(name) == offset for offsets in found for name, offset in wanted.items())

        wait_until(f"high watermarks {wanted} in the checkpoints of brokers {list(broker_ids)}", flushed)

    def _assert_end(self, topic: str, leader: int, end: int) -> None:
        """The leader's log ends at `end` and every other replica's before it."""
        ends = {
            id_: max((e for _, _, e in batches(self.cluster.nodes[id_].directory / f"{topic}-0")), default=0)
            for id_ in BROKER_IDS
        }
        if ends[leader] != end or any(other >= end for id_, other in ends.items() if id_ != leader):
            raise RecordingError(f"{topic}: only broker {leader} was to end at offset {end}; the ends are {ends}")

    def _take(self, name: str, what: str) -> None:
        self.capture.take(self.cluster, name, what, self._describe() if self.cluster.live_brokers else None)
        self.say(f"{name}: {what}")
