"""A quorum of Apache Kafka's nodes under the driver, and what is in flight, for tests that say each step."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fencepost.conformance.kafka.process import Jvm

CHUNK = 1_000


class Nodes:
    """Nodes that are asked for one thing at a time; ``seen``: what each is like, ``flight``: what nobody has got."""

    def __init__(self, jvm: Jvm, nodes: int = 3, voters: int | None = None, *, rolls: bool = True) -> None:
        self.jvm = jvm
        self.seen: dict[int, Any] = {}
        self.flight: list[Mapping[str, Any]] = []
        settings = {"fetchBytes": 1, "chunk": CHUNK, "seed": 1, "rolls": rolls}
        self.ask("reset", nodes=nodes, voters=nodes if voters is None else voters, **settings)

    def ask(self, do: str, **more: Any) -> list[Mapping[str, Any]]:
        """What was sent."""
        answer = self.jvm.ask(do, **more)
        self.seen |= {int(node): seen for node, seen in answer["seen"].items()}
        self.flight += answer["sent"]
        return list(answer["sent"])

    def there(self, kind: str, source: int, to: int) -> list[Mapping[str, Any]]:
        """All messages of a kind in flight between two nodes."""
        return [each for each in self.flight if (each["kind"], each["from"], each["to"]) == (kind, source, to)]

    def has(self, kind: str, source: int, to: int) -> bool:
        """Whether there is one."""
        return bool(self.there(kind, source, to))

    def find(self, kind: str, source: int, to: int) -> Mapping[str, Any]:
        """The newest message of a kind in flight."""
        return self.there(kind, source, to)[-1]

    def deliver(self, message: Mapping[str, Any], *, again: bool = False) -> list[Mapping[str, Any]]:
        """Have a message arrive; ``again``: it stays in flight."""
        if not again:
            self.flight.remove(message)
        return self.ask("response" if "request" in message else "request", node=message["to"], id=message["id"])

    def exchange(self, kind: str, asker: int, asked: int) -> Mapping[str, Any]:
        """A request and its answer arrive; gives the answer."""
        self.deliver(self.find(kind, asker, asked))
        answer = self.find(f"{kind} answer", asked, asker)
        self.deliver(answer)
        return answer

    def lose(self, node: int | None = None) -> None:
        """Lose what is in flight, from and to a node."""
        self.flight = [each for each in self.flight if node is not None and node not in (each["from"], each["to"])]

    def wait(self, node: int) -> None:
        """All timers of a node run off."""
        self.ask("elapse", node=node, ms=4_000)

    def elect(self, node: int, *voters: int) -> None:
        """A node asks these others whether they would vote for it, and then for their votes."""
        self.lose(node)
        former = self.seen[node]["epoch"] if self.seen[node]["role"] == "leader" else -1
        for _ in range(20):
            asked = [voter for voter in voters if self.there("VOTE", node, voter)]
            if self.seen[node]["role"] == "leader" and self.seen[node]["epoch"] > former:
                break
            if asked:
                self.exchange("VOTE", node, asked[0])
            else:
                self.wait(node)
        assert self.seen[node]["role"] == "leader"

    def follow(self, node: int, leader: int) -> None:
        """A voter hears who leads."""
        self.exchange("BEGIN_QUORUM_EPOCH", leader, node)

    def fetch(self, node: int, leader: int) -> Mapping[str, Any]:
        """A fetch, sent anew where the last one was lost, and its answer."""
        return self._again("FETCH", node, leader)

    def fetch_snapshot(self, node: int, leader: int) -> Mapping[str, Any]:
        """The same of bytes of a snapshot."""
        return self._again("FETCH_SNAPSHOT", node, leader)

    def _again(self, kind: str, node: int, leader: int) -> Mapping[str, Any]:
        for _ in range(8):
            if self.there(kind, node, leader):
                break
            self.ask("elapse", node=node, ms=0)
        return self.exchange(kind, node, leader)

    def append(self, leader: int, *records: str) -> None:
        """A client appends a batch."""
        self.ask("append", node=leader, records=list(records))

    def snapshot(self, node: int, end: int, chunks: int = 1) -> None:
        """A node's state machine has a snapshot made up to an end of a batch."""
        self.ask("snapshot", node=node, end=end, bytes=(chunks - 1) * CHUNK)

    def clean(self, node: int, end: int, epoch: int) -> None:
        """A log begins at a snapshot's end from then on."""
        self.ask("delete", node=node, end=end, epoch=epoch)

    def log(self, node: int) -> list[str]:
        """Offset, epoch and payload of each record."""
        return list(self.seen[node]["records"])

    def snapshots(self, node: int) -> list[tuple[int, int]]:
        """End and epoch of each."""
        return [(end, epoch) for end, epoch, *_ in self.seen[node]["snapshots"]]


def led(jvm: Jvm, *, rolls: bool = True) -> Nodes:
    """The first of three leads in epoch 1 with three records of clients; the second has them, the third is new.

    The second knows that all of them are committed; the third has not heard of anything.
    """
    nodes = Nodes(jvm, rolls=rolls)
    nodes.elect(0, 1)
    nodes.follow(1, 0)
    for record in ("r0", "r1", "r2"):
        nodes.append(0, record)
    while nodes.seen[1]["hw"] < 4:
        nodes.fetch(1, 0)
    return nodes
