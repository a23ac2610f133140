"""Apache Kafka's brokers with tiered storage under the driver, and what a test has them do."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from fencepost.conformance.kafka.process import Jvm

from .test_kafka_driver import Trio

EARLIEST, EARLIEST_LOCAL, LAST_TIERED, EARLIEST_PENDING_UPLOAD = -2, -4, -5, -6
TOPIC: Final = {
    "internal.segment.bytes": "100",
    "local.retention.bytes": "1",
    "retention.bytes": "-1",
    "retention.ms": "-1",
}
"""A segment has one record, and what is uploaded goes from the disk, but for the active segment."""


class Tiers(Trio):
    """Three brokers, and a metadata log that each of them has replayed so far."""

    def __init__(self, jvm: Jvm, *, from_tiered: bool = False, **topic: str) -> None:
        self._sent = 0
        self._metadata: list[Any] = []
        configs = {name.replace("_", "."): value for name, value in topic.items()}
        super().__init__(jvm, min_isr=1, topic=TOPIC | configs, fromTiered=from_tiered)

    def ask(self, do: str, **more: Any) -> list[Any]:
        """And what was written to the remote log metadata meanwhile is kept."""
        sent = super().ask(do, **more)
        self._metadata += self.answer["metadata"]
        return sent

    def lead(self, leader: int, isr: Sequence[int], *hear: int) -> None:
        """The controller elects somebody, with this ISR, and those hear of it; of all that was before, too."""
        self.decide(leader=leader, isr=list(isr))
        self.hear(*hear)

    def hear(self, *nodes: int) -> None:
        """Brokers replay what there is of the metadata log, in one delta."""
        for node in nodes:
            self.replay(node, len(self.log) - self.replayed[node])

    def store(self, node: int, *, fails: bool) -> None:
        """Remote storage fails at a broker from now on, or does not any more."""
        self.ask("store", at=node, fails=fails)

    def produce(self, leader: int, count: int = 1) -> None:
        """So many records, each in a batch of its own."""
        for _ in range(count):
            self._sent += 1
            (told,) = self.ask("produce", node=leader, request=-self._sent, payload=f"r{self._sent}", acks=1)
            assert told["error"] == "NONE"

    def upload(self, leader: int) -> None:
        """A leader uploads what it may, and deletes it from its disk."""
        self.ask("copy", node=leader)
        self.ask("retain", node=leader)

    def begin_copy(self, leader: int, steps: int) -> None:
        """A leader copies its next segment, step by step: the task stops before each thing that it does outside.

        ``steps``: 1, it has written that it is started; 2, it is in the store; 3, it has written that it is finished.
        """
        self.ask("work", node=leader, what="copy")
        self.go(leader, steps)

    def go(self, node: int, steps: int = 1) -> None:
        """The task that is under way goes on."""
        for _ in range(steps):
            self.ask("go", node=node)

    def learn(self, *nodes: int) -> None:
        """Brokers read the remote log metadata."""
        for node in nodes:
            self.ask("learn", node=node)

    def follow(self, follower: int, leader: int) -> list[Any]:
        """One round of a fetcher: what its leader has answered."""
        answers = []
        sent = self.ask("fetch", node=follower)
        while asked := [each for each in sent if each["from"] == follower and each["to"] == leader]:
            served = self.ask("serve", node=leader, id=asked[0]["id"])
            answer = next(each for each in served if each.get("request") == asked[0]["id"])
            answers.append(answer)
            sent = self.ask("answer", node=follower, id=answer["id"])
        return answers

    def listed(self, node: int, timestamp: int) -> tuple[str, int, int]:
        """Error, offset and leader epoch that a client is told of a sentinel of ListOffsets."""
        listed = self.jvm.ask("list", node=node, timestamp=timestamp)["listed"]
        return listed["error"], listed["offset"], listed["epoch"]

    def starts(self, node: int) -> tuple[int, int, int]:
        """Log start, local log start and end of a broker's log."""
        seen = self.seen[node]
        return seen["logStart"], seen["localStart"], seen["end"]

    def epochs(self, node: int) -> list[tuple[int, int]]:
        """Its leader epoch checkpoint: epochs, and where they begin."""
        return [(epoch, start) for epoch, start in self.seen[node]["epochs"]]

    def copies(self) -> dict[str, Any]:
        """By copy: the offsets, the epochs, and the last state of its metadata."""
        found: dict[str, Any] = {}
        for each in self._metadata:
            found.setdefault(each["copy"], {}).update(each)
        return found
