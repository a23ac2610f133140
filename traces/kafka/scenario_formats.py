"""Partitions in message formats 0, 1 and 2 beside each other, healthy and after a clean failover.

Brokers before 3.0 write the older formats if a topic asks for them (``message.format.version``). Format 2 alone has
leader epochs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from .client import Record
from .cluster import BROKER_IDS
from .scenario_compaction import CHECKPOINT
from .staging import TOPIC_CONFIG, Staging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_FORMATS = {"format-0": "0.9.0", "format-1": "0.10.2"}
RECORDS = 5


class Formats(Staging):
    """Two stages: healthy, and after the death of the leader of two topics."""

    NAME = "formats"
    SUMMARY = "partitions in old message formats, and a clean failover"
    TOPICS: ClassVar[dict[str, tuple[int, ...]]] = {
        "format-0": (1, 2, 3),
        "format-1": (2, 3, 1),
        "format-2": (1, 3, 2),
    }
    BROKER: ClassVar[dict[str, object]] = {"log.index.size.max.bytes": 4096, "log.segment.delete.delay.ms": 1}
    KEPT_NAMES = frozenset({CHECKPOINT})
    EXAMPLE = "2-clean-failover"
    STORY = "Three topics, one partition each, in message formats 0, 1 and 2. High watermarks:"

    @classmethod
    def table(cls, stages: Sequence[Mapping[str, Any]]) -> list[str]:
        """High watermarks of every topic."""
        return cls.row_a_stage(stages, lambda node: str(node["high_watermarks"]))

    def run(self) -> None:
        """Both stages."""
        configs = {
            topic: {**TOPIC_CONFIG, **({"message.format.version": _FORMATS[topic]} if topic in _FORMATS else {})}
            for topic in self.TOPICS
        }
        self._start(configs)
        self._append(RECORDS)
        self._wait_high_watermarks(dict.fromkeys(self.TOPICS, RECORDS), BROKER_IDS)
        self._take("1-healthy", "Three brokers; every record is on every replica and committed.")
        self.cluster.nodes[1].kill()
        for topic in self.TOPICS:
            self._wait_isr(topic, {2, 3})
        self._append(RECORDS)
        self._wait_high_watermarks(dict.fromkeys(self.TOPICS, 2 * RECORDS), (2, 3))
        self._take(
            "2-clean-failover", "Broker 1 was killed; brokers 2 and 3 have as many records again, all committed."
        )

    def _append(self, records: int) -> None:
        with self.client.producer(self.cluster.bootstrap, acks="all") as producer:
            for topic in self.TOPICS:
                batch = []
                for _ in range(records):
                    self._clock += 1
                    batch.append(
                        Record(f"k{self.random.randrange(9)}", f"{self.random.getrandbits(32):08x}", self._clock)
                    )
                self._note(topic, producer.send_batch(topic, batch), batch, "all", "none")
