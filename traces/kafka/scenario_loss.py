"""A clean failover, and an unclean election that loses committed records, on any release: with what is true of each.

Three topics of one partition each, with ``min.insync.replicas=1``:

- ``orders`` goes through the clean failover. Its first leader dies with records that no follower fetched.
- ``payments`` goes through the unclean election. Its leader commits records alone and dies; a replica without them is
  elected.
- ``users`` is compacted and has been cleaned.

Unlike `Failover` it pins no leader epoch: a shrink of the ISR raises the epoch with ZooKeeper and in early KRaft.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar

from .capture import batches, checkpoint
from .client import Record
from .cluster import BROKER_IDS, wait_until
from .scenario_compaction import CHECKPOINT
from .staging import HOUR_MS, TOPIC_CONFIG, Staging

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_CONFIG = {**TOPIC_CONFIG, "unclean.leader.election.enable": "false"}
_UNCLEAN = {**_CONFIG, "unclean.leader.election.enable": "true"}
_COMPACTED = {**TOPIC_CONFIG, "cleanup.policy": "compact", "min.cleanable.dirty.ratio": "0.01"}
SHARED = 5
"""Committed records of ``payments`` that every replica has."""
LOST = 3
"""Committed records of ``payments`` that its leader alone has."""


class Loss(Staging):
    """Four stages: healthy, after a clean failover, after an unclean election, with every broker back."""

    NAME = "loss"
    SUMMARY = "a clean failover and an unclean election on any release"
    TOPICS: ClassVar[dict[str, tuple[int, ...]]] = {
        "orders": (1, 2, 3),
        "payments": (2, 3, 1),
        "users": (3, 1, 2),
    }
    BROKER: ClassVar[dict[str, object]] = {
        "log.cleaner.backoff.ms": 200,
        "log.index.size.max.bytes": 4096,
        "log.segment.delete.delay.ms": 1,  # 0.11 does not start with 0
    }
    KEPT_NAMES = frozenset({CHECKPOINT})
    EXAMPLE = "3-unclean-election"
    STORY = """\
Three topics, one partition each, on brokers 1, 2 and 3, with `min.insync.replicas=1`: `orders` goes through the clean
failover, `payments` through the unclean election, `users` is compacted. How far each log reaches:"""

    elects_on_request = True
    """Whether the unclean election is requested; if not, the topic's configuration allows it."""

    @classmethod
    def table(cls, stages: Sequence[Mapping[str, Any]]) -> list[str]:
        """Log ends and high watermarks of payments."""

        def cell(node: Mapping[str, Any]) -> str:
            runs = node["logs"].get("payments-0", [])
            return f"LEO {runs[-1][2] if runs else 0}, HW {node['high_watermarks'].get('payments-0', 0)}"

        return cls.row_a_stage(stages, cell)

    def facts(self) -> dict[str, Any]:
        """The truth: committed offsets that were lost, by partition, and who led in which epoch at each stage."""
        return {"lost": self.lost, "leaders": self.leaders}

    def run(self) -> None:
        """Every stage in order."""
        self.lost: dict[str, list[int]] = {}
        self.leaders: list[dict[str, Any]] = []
        self.healthy()
        self.clean_failover()
        self.unclean_election()
        self.all_back()

    def healthy(self) -> None:
        """Stage 1: three brokers, replicas that agree, every record committed, users cleaned."""
        self._start({"orders": _CONFIG, "payments": _CONFIG, "users": _COMPACTED})
        for topic in ("orders", "payments"):
            self._append(topic, [1] * (SHARED - 2) + [2])
        for _ in range(4):
            self._clock += 2 * HOUR_MS  # past segment.ms: the next batch rolls a segment
            self._append("users", [4, 4], keys=5)
        self._wait_high_watermarks({"orders": SHARED, "payments": SHARED, "users": 32}, BROKER_IDS)
        self._wait_cleaned()
        self._mark("1-healthy", "Three brokers; every record is on every replica and committed.")

    def clean_failover(self) -> None:
        """Stage 2: the leader of orders dies with records that no follower has; a follower in the ISR leads."""
        with self.client.producer(f"127.0.0.1:{self.cluster.nodes[1].port}", acks="1") as producer:
            producer.warm_up("orders")
            for follower in (2, 3):
                self.cluster.nodes[follower].pause()
            time.sleep(0.6)
            self._batch(producer, "orders", 2, acks="1")
            self._assert_end("orders", 1, SHARED + 2)
            self.cluster.nodes[1].kill()
        for follower in (2, 3):
            self.cluster.nodes[follower].resume()
        for topic in self.TOPICS:
            self._wait_isr(topic, {2, 3})
        self._append("orders", [1])
        self._append("payments", [1])
        self._wait_high_watermarks({"orders": SHARED + 1, "payments": SHARED + 1}, (2, 3))
        self._mark(
            "2-clean-failover",
            "Broker 1 took two records of orders with acks=1 that no follower fetched, and was killed. Another one was"
            " elected from the ISR and wrote at the offset where broker 1 has an uncommitted record.",
        )

    def unclean_election(self) -> None:
        """Stage 3: the lone leader of payments commits records and dies, and a replica without them is elected."""
        leader = self._describe()["payments"].leader
        assert leader is not None
        (other,) = {2, 3} - {leader}
        self.cluster.start(1)
        for topic in self.TOPICS:
            self._wait_isr(topic, {1, 2, 3})
        for follower in (1, other):
            self.cluster.nodes[follower].kill()
        self._wait_isr("payments", {leader})
        self.lost["payments-0"] = self._append("payments", [1, LOST - 1])
        self._wait_high_watermarks({"payments": SHARED + 1 + LOST}, (leader,))
        if not self.elects_on_request:
            self.client.replace_topic_config(self.cluster.bootstrap, "payments", _UNCLEAN)
        self.cluster.nodes[leader].kill()
        self.cluster.start(other)
        if self.elects_on_request:
            self._wait_state("payments", None, None)
            self.client.elect_unclean(self.cluster.bootstrap, "payments")
        self._wait_state("payments", other, {other})
        self._append("payments", [1])
        self._wait_high_watermarks({"payments": SHARED + 2}, (other,))
        self._mark(
            "3-unclean-election",
            f"Broker {leader}, alone in the ISR of payments, committed {LOST} records with acks=all and was killed."
            f" Broker {other}, which lacks them, was elected by an unclean election and wrote at their first offset.",
        )
        self._unclean_leader = other

    def all_back(self) -> None:
        """Stage 4: every replica follows the unclean leader; the committed records are gone from all."""
        self.cluster.start(*(id_ for id_ in BROKER_IDS if id_ != self._unclean_leader))
        for topic in self.TOPICS:
            self._wait_isr(topic, set(BROKER_IDS))
        self._wait_high_watermarks({"payments": SHARED + 2}, BROKER_IDS)
        self._mark("4-all-back", "Every broker runs; the committed records are gone from every replica.")

    # -- steps ------------------------------------------------------------------------------------------------------

    def _append(self, topic: str, batches_: Sequence[int], keys: int = 1000) -> list[int]:
        """Batches of so many records each, acknowledged by every replica in the ISR: their offsets."""
        offsets = []
        with self.client.producer(self.cluster.bootstrap, acks="all") as producer:
            for records in batches_:
                offsets += self._batch(producer, topic, records, keys=keys)
        return offsets

    def _batch(self, producer: Any, topic: str, records: int, *, acks: str = "all", keys: int = 1000) -> list[int]:
        batch = []
        for _ in range(records):
            self._clock += 1
            key, value = f"{topic}-{self.random.randrange(keys):03}", f"{self.random.getrandbits(64):016x}"
            batch.append(Record(key, value, self._clock))
        offsets: list[int] = producer.send_batch(topic, batch)
        self._note(topic, offsets, batch, acks, "none")
        return offsets

    def _wait_cleaned(self) -> None:
        def cleaned() -> bool:
            homes = [self.cluster.nodes[id_].directory for id_ in BROKER_IDS]
            return all(checkpoint(home / CHECKPOINT).get("users-0", 0) > 0 for home in homes)

        wait_until("users to be cleaned on every broker", cleaned)

    def _mark(self, name: str, what: str) -> None:
        """Take a stage, and note who leads each topic in which epoch, as the leader's own files have it."""
        self._take(name, what)
        for topic, state in sorted(self._describe().items()):
            epochs = [] if state.leader is None else self._epochs(state.leader, topic)
            self.leaders.append(
                {"stage": name, "topic": topic, "leader": state.leader, "isr": list(state.isr),
                 "leader_epoch": max(epochs, default=None)}
            )  # fmt: skip

    def _epochs(self, broker: int, topic: str) -> list[int]:
        folder = self.cluster.nodes[broker].directory / f"{topic}-0"
        lines = (folder / "leader-epoch-checkpoint").read_text(encoding="utf-8").splitlines()[2:]
        return [int(line.split()[0]) for line in lines] + [epoch for epoch, _, _ in batches(folder)]
