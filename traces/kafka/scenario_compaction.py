"""A compacted topic that is cleaned several times over a failover, and comes back to a leader that did not see it.

- ``accounts`` is cleaned in every stage. Its tombstones may go at once (``delete.retention.ms=1``), it has two
  transactions, and the brokers' maps have room for 40 keys, so that a cleaning takes several passes and may end inside
  of a segment.
- ``balances`` is both compacted and deleted from (``cleanup.policy=compact,delete``); its tombstones stay.
- ``journal`` is not compacted: what is a hole there is a fault.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .capture import batches, checkpoint, record_count
from .client import Record
from .cluster import BROKER_IDS, NODE_NAMES, wait_until
from .staging import HOUR_MS, KEPT, TOPIC_CONFIG, Staging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_COMMON = {
    **TOPIC_CONFIG,
    "message.timestamp.after.max.ms": str((1 << 63) - 1),
}
_COMPACTED = {**_COMMON, "min.cleanable.dirty.ratio": "0.01"}
_CONFIGS = {
    "accounts": {**_COMPACTED, "cleanup.policy": "compact", "delete.retention.ms": "1"},
    "balances": {**_COMPACTED, "cleanup.policy": "compact,delete", "delete.retention.ms": "86400000"},
    "journal": {**_COMMON, "cleanup.policy": "delete"},
}
COMPACTED = ("accounts", "balances")
_FUTURE_MS = 4_100_000_000_000
"""In 2099: a marker of a transaction has the time of the clock, and may not begin a segment that never closes."""
KEYS = {"accounts": 60, "balances": 12, "journal": 12}
"""Distinct keys of each topic."""
BATCH = 8
"""Records a batch."""
CHECKPOINT = "cleaner-offset-checkpoint"


class Compaction(Staging):
    """Four stages, each with a cleaning of its own."""

    NAME = "compacted"
    SUMMARY = "compacted topics that are cleaned several times over a failover"
    TOPICS: ClassVar[dict[str, tuple[int, ...]]] = {
        "accounts": (1, 2, 3),
        "balances": (2, 3, 1),
        "journal": (3, 1, 2),
    }
    BROKER: ClassVar[dict[str, object]] = {
        # 2 MiB of slots of 24 bytes each would hold 80,000 keys: so few may be taken that a cleaning needs more passes.
        "log.cleaner.io.buffer.load.factor": 0.00046,
        "log.cleaner.backoff.ms": 100,
    }
    KEPT_NAMES = frozenset({CHECKPOINT})
    KEPT = KEPT.replace(
        "Index files, producer state snapshots, the cleaner's checkpoint and lock files are left out; what is here\n",
        "Index files, producer state snapshots and lock files are left out; what is here\n",
    )
    EXAMPLE = "3-failover"
    STORY = """\
Three topics, one partition each, on brokers 1, 2 and 3: `accounts` (`cleanup.policy=compact`) has 60 keys, which is
more than the brokers' offset maps have room for, tombstones that may go at once, and a committed and an aborted
transaction; `balances` (`compact,delete`) keeps its tombstones for a day; `journal` is not compacted. How far each
broker had cleaned `accounts` (`cleaner-offset-checkpoint`), its LEO, and how many records it had:"""

    @classmethod
    def table(cls, stages: Sequence[Mapping[str, Any]]) -> list[str]:
        """How far each broker had cleaned accounts."""
        return cls.row_a_stage(stages, lambda node: "clean below {}, LEO {}, {} records".format(*node["accounts"]))

    def run(self) -> None:
        """Stages 1 to 4."""
        self.cleaned_once()
        self.cleaned_again()
        self.failover()
        self.old_leader_back()

    def cleaned_once(self) -> None:
        """Stage 1: segments full of overwritten keys, and the first cleaning of each replica."""
        self._clock = _FUTURE_MS
        self._start(_CONFIGS)
        for topic in self.TOPICS:
            self._round(topic, segments=4)
        self._transactions()
        self._close_and_clean(BROKER_IDS)
        self._take("1-cleaned-once", "Three brokers; each has cleaned its replicas of the compacted topics.")

    def cleaned_again(self) -> None:
        """Stage 2: more of the same keys, some deleted by a tombstone."""
        for topic in self.TOPICS:
            self._round(topic, segments=2, tombstones=True)
        self._close_and_clean(BROKER_IDS)
        self._take(
            "2-cleaned-again",
            "More records of the same keys, every sixth of them a tombstone; each broker has cleaned a second time, and"
            " in accounts tombstones of before are gone.",
        )

    def failover(self) -> None:
        """Stage 3: the leader of accounts dies with what it has cleaned; the others go on in a new leader epoch."""
        self.cluster.nodes[1].kill()
        self._wait_state("accounts", 2, {2, 3})
        for topic in self.TOPICS:
            self._wait_state(topic, self.TOPICS[topic][1 if self.TOPICS[topic][0] == 1 else 0], {2, 3})
            self._round(topic, segments=2, tombstones=True)
        self._close_and_clean((2, 3))
        self._take(
            "3-failover",
            "Broker 1, leader of accounts, was killed with SIGKILL. Broker 2 leads in epoch 1; brokers 2 and 3 took"
            " more records of the same keys and cleaned a third time, below what broker 1 has of them, too.",
        )

    def old_leader_back(self) -> None:
        """Stage 4: broker 1 fetches a log with holes, and cleans what it had once more."""
        self.cluster.start(1)
        for topic in self.TOPICS:
            self._wait_state(topic, self.TOPICS[topic][1 if self.TOPICS[topic][0] == 1 else 0], set(BROKER_IDS))
            self._round(topic, segments=1)
        self._close_and_clean(BROKER_IDS)
        self._take(
            "4-old-leader-back",
            "Broker 1 was started again, fetched from a log with holes, and cleaned again with the others.",
        )

    def _round(self, topic: str, *, segments: int, tombstones: bool = False) -> None:
        """Write each key once a segment in changing order, a segment for each time that the clock jumps."""
        keys = [f"{topic}-{number:03}" for number in range(KEYS[topic])]
        with self.client.producer(self.cluster.bootstrap, acks="all", compression="lz4") as producer:
            for _ in range(segments):
                self._clock += 2 * HOUR_MS  # past segment.ms: the next batch rolls a segment
                self.random.shuffle(keys)
                for at in range(0, len(keys), BATCH):
                    records = [
                        self._record(key, tombstone=tombstones and (at + number) % 6 == 0)
                        for number, key in enumerate(keys[at : at + BATCH])
                    ]
                    self._note(topic, producer.send_batch(topic, records), records, "all", "lz4")

    def _record(self, key: str, *, tombstone: bool = False) -> Record:
        self._clock += 1
        return Record(key, None if tombstone else f"{self.random.getrandbits(64):016x}", self._clock)

    def _transactions(self) -> None:
        """A committed and an aborted one, each with records of keys that are there."""
        for ending in ("committed", "aborted"):
            self._transaction("accounts", [self._record(f"accounts-{number:03}") for number in range(4)], ending)

    def _close_and_clean(self, broker_ids: tuple[int, ...]) -> None:
        """Roll the active segments by one more batch, and wait until all before is clean and checkpointed."""
        self._clock += 2 * HOUR_MS
        ends = {}
        for topic in self.TOPICS:
            with self.client.producer(self.cluster.bootstrap, acks="all") as producer:
                records = [self._record(f"{topic}-000")]
                (offset,) = producer.send_batch(topic, records)
                self._note(topic, [offset], records, "all", "none")
                ends[topic] = offset + 1
        self._wait_high_watermarks(ends, broker_ids)

        def clean() -> bool:
            found = [checkpoint(self.cluster.nodes[id_].directory / CHECKPOINT) for id_ in broker_ids]
            return all(each.get(f"{topic}-0") == ends[topic] - 1 for each in found for topic in COMPACTED)

        wanted = {topic: ends[topic] - 1 for topic in COMPACTED}
        wait_until(f"{CHECKPOINT} {wanted} on brokers {list(broker_ids)}", clean, pause=0.3)

    def _take(self, name: str, what: str) -> None:
        super()._take(name, what)
        for id_ in BROKER_IDS:
            node = self.capture.stages[-1]["nodes"][NODE_NAMES[id_]]
            home = self.capture.home / name / NODE_NAMES[id_]
            clean = checkpoint(home / CHECKPOINT)["accounts-0"]
            end = max(end for _, _, end in batches(home / "accounts-0"))
            node["accounts"] = [clean, end, record_count(home / "accounts-0")]
