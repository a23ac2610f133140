"""What happens to the recorded cluster, stage by stage: a clean failover, and an unclean election that loses a commit.

Three topics of one partition each, on brokers 1, 2 and 3, with ``min.insync.replicas=1``:

- ``orders`` goes through the clean failover. Its first leader dies with a record that nobody fetched.
- ``payments`` goes through the unclean election. Its leader alone commits a record, dies, and a replica without that
  record is elected. Both logs stay at two offsets and three records, small enough to search the model for a run that
  ends in them.
- ``mixed-compression`` has every codec, null keys and values, headers, transactions with both endings, several
  segments, and a log start offset inside a batch.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from .capture import checkpoint
from .client import Record
from .cluster import BROKER_IDS, NODE_NAMES, wait_until
from .staging import HOUR_MS, TOPIC_CONFIG, Staging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
RECORDS_PER_CODEC = 40
BATCHES_PER_CODEC = 2
#: DeleteRecords moves the log start offset of ``mixed-compression`` here: into the first gzip batch.
LOG_START = 45

_CONFIG = {
    **TOPIC_CONFIG,
    "unclean.leader.election.enable": "false",  # the one that happens is asked for, and so happens when it should
}


class Failover(Staging):
    """A clean failover, and an unclean election that loses a committed record."""

    NAME = "failover"
    SUMMARY = "a clean failover and an unclean election"
    TOPICS = {  # noqa: RUF012 - as the base class has it
        "mixed-compression": (1, 2, 3),
        "orders": (1, 2, 3),
        "payments": (2, 3, 1),
    }
    EXAMPLE = "3-clean-failover"
    STORY = """\
Three topics, one partition each, on brokers 1, 2 and 3, with `min.insync.replicas=1`: `orders` goes through the clean
failover, `payments` through the unclean election, and `mixed-compression` has every codec, null keys and values,
headers, a committed and an aborted transaction, several segments, and a log start offset inside a batch. The leader
epoch of each record, from offset 0 on, and the checkpointed high watermark:"""

    @classmethod
    def table(cls, stages: Sequence[Mapping[str, Any]]) -> list[str]:
        """Leader epochs and high watermarks of the two short logs."""
        rows = ["| stage | topic | broker-1 | broker-2 | broker-3 |", "|---|---|---|---|---|"]
        for stage in stages:
            for partition in ("orders-0", "payments-0"):
                cells = []
                for id_ in BROKER_IDS:
                    node = stage["nodes"][NODE_NAMES[id_]]
                    epochs = [str(epoch) for epoch, first, end in node["logs"][partition] for _ in range(first, end)]
                    dead = " (dead)" if node["process"] == "killed" else ""
                    cells.append(f"{' '.join(epochs)}, HW {node['high_watermarks'][partition]}{dead}")
                rows.append(f"| {stage['name']} | {partition.removesuffix('-0')} | {' | '.join(cells)} |")
        return rows

    def run(self) -> None:
        """Stages 1 to 7."""
        self.steady()
        self.leader_killed()
        self.clean_failover()
        self.old_leader_back()
        self.lone_leader()
        self.unclean_election()
        self.all_back()

    def steady(self) -> None:
        """Stage 1: three brokers, replicas that agree, every record committed."""
        self._start(dict.fromkeys(self.TOPICS, _CONFIG))
        self._produce_mixed()
        self._produce("orders", acks="all", epoch=0)
        self._produce("payments", acks="all", epoch=0)
        self._wait_high_watermarks({"orders": 1, "payments": 1}, BROKER_IDS)
        self._take("1-steady", "Three brokers; every record is on every replica and committed.")

    def leader_killed(self) -> None:
        """Stage 2: the leader of orders takes a record that no follower fetches, and dies.

        The followers are stopped first, and for longer than a fetch waits at the leader, so that none is under way
        whose answer would carry the record. They keep their sockets and their place in the ISR.
        """
        with self.client.producer(f"127.0.0.1:{self.cluster.nodes[1].port}", acks="1") as producer:
            producer.warm_up("orders")
            for follower in (2, 3):
                self.cluster.nodes[follower].pause()
            time.sleep(0.6)
            self._send(producer, "orders", acks="1", epoch=0)
            self._assert_end("orders", 1, 2)
            self.cluster.nodes[1].kill()
        self._take(
            "2-leader-killed",
            "Broker 1, leader of orders in epoch 0, took a record with acks=1 that no follower fetched, and was killed"
            " with SIGKILL. The record is above the high watermark.",
        )
        for follower in (2, 3):
            self.cluster.nodes[follower].resume()

    def clean_failover(self) -> None:
        """Stage 3: a replica in the ISR leads, and writes over the offset that only the dead leader has."""
        self._wait_state("orders", 2, {2, 3})
        self._wait_state("payments", 2, {2, 3})
        self._produce("orders", acks="all", epoch=1)
        self._wait_high_watermarks({"orders": 2}, (2, 3))
        self._take(
            "3-clean-failover",
            "Broker 2 was elected from the ISR for orders and wrote in epoch 1 at the offset where dead broker 1 has"
            " its uncommitted record of epoch 0.",
        )

    def old_leader_back(self) -> None:
        """Stage 4: the old leader truncates its tail and joins the ISR again."""
        self.cluster.start(1)
        for topic in self.TOPICS:
            self._wait_state(topic, 2, set(BROKER_IDS))
        self._wait_high_watermarks({"orders": 2}, BROKER_IDS)
        self._take(
            "4-old-leader-back",
            "Broker 1 was started again, truncated orders to offset 1, fetched the record of epoch 1 and joined the"
            " ISR.",
        )

    def lone_leader(self) -> None:
        """Stage 5: both followers of payments are dead, the ISR is the leader alone, and it commits a record.

        An ISR of one is no smaller than min.insync.replicas=1, so KIP-966 makes no dead follower eligible.
        """
        self.cluster.nodes[1].kill()
        self.cluster.nodes[3].kill()
        self._wait_state("payments", 2, {2})
        self._produce("payments", acks="all", epoch=0)
        self._wait_high_watermarks({"payments": 2}, (2,))
        self._take(
            "5-lone-leader",
            "Brokers 1 and 3 were killed with SIGKILL and left the ISR of payments; broker 2, alone in it, took a"
            " record with acks=all in epoch 0 and committed it.",
        )

    def unclean_election(self) -> None:
        """Stage 6: the lone leader dies too, and a stale replica is elected uncleanly: a committed record is lost."""
        self.cluster.nodes[2].kill()
        self.cluster.start(3)
        self._wait_state("payments", None, None)
        self.client.elect_unclean(self.cluster.bootstrap, "payments")
        self._wait_state("payments", 3, {3})
        self._produce("payments", acks="all", epoch=2)
        self._wait_high_watermarks({"payments": 2}, (3,))
        self._take(
            "6-unclean-election",
            "Broker 2 was killed with SIGKILL. Broker 3, which lacks its last record, was started again, elected by an"
            " unclean election, and wrote in epoch 2 at the offset that broker 2 had committed in epoch 0.",
        )

    def all_back(self) -> None:
        """Stage 7: every replica follows the unclean leader; the committed record is gone from all."""
        self.cluster.start(1, 2)
        self._wait_state("payments", 3, set(BROKER_IDS))
        self._wait_state("orders", 2, set(BROKER_IDS))
        self._wait_high_watermarks({"orders": 2, "payments": 2}, BROKER_IDS)
        self._take(
            "7-all-back",
            "Brokers 1 and 2 were started again; broker 2 truncated payments to offset 1, below the high watermark that"
            " it had, and all replicas agree on the log without the lost record.",
        )

    def _produce_mixed(self) -> None:
        """Fill mixed-compression: a segment per codec, two transactions, and a log start inside a batch."""
        topic = "mixed-compression"
        per_batch = RECORDS_PER_CODEC // BATCHES_PER_CODEC
        for codec in CODECS:
            with self.client.producer(self.cluster.bootstrap, acks="all", compression=codec) as producer:
                self._clock += 2 * HOUR_MS  # past segment.ms: the next batch rolls a segment
                for _ in range(BATCHES_PER_CODEC):
                    records = [self._mixed_record(codec, number) for number in range(per_batch)]
                    self._note(topic, producer.send_batch(topic, records), records, "all", codec)
        for ending in ("committed", "aborted"):
            self._transaction(topic, [self._mixed_record(ending, number) for number in range(5)], ending, "lz4")
        # Two control records, one for each ending.
        self._wait_high_watermarks({topic: len(CODECS) * RECORDS_PER_CODEC + 2 * (5 + 1)}, BROKER_IDS)
        self.client.delete_before(self.cluster.bootstrap, topic, LOG_START)

        def trimmed() -> bool:
            homes = [self.cluster.nodes[id_].directory for id_ in BROKER_IDS]
            return all(
                checkpoint(home / "log-start-offset-checkpoint").get(f"{topic}-0") == LOG_START
                and min(int(segment.stem) for segment in (home / f"{topic}-0").glob("*.log")) == RECORDS_PER_CODEC
                for home in homes
            )

        wait_until(f"log start offset {LOG_START} of {topic} on every broker", trimmed)

    def _mixed_record(self, label: str, number: int) -> Record:
        self._clock += 1
        # Words repeat so that each codec has something to compress.
        words = " ".join(self.random.choice(("alpha", "beta", "gamma", "delta")) for _ in range(6))
        return Record(
            key=None if number % 7 == 3 else f"{label}-{number}",
            value=None if number % 11 == 5 else words,
            timestamp=self._clock,
            headers=(("codec", label.encode()),) if number % 4 == 0 else (),
        )
