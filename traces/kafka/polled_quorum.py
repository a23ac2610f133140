"""A live quorum, asked again and again what it shows of the metadata log.

Of each controller, over Kafka's own protocol, DescribeQuorum (KIP-595, KIP-836): who leads answers, and nobody else. It
tells its leader epoch, its high watermark, its log end, and how far it knows the logs of the others. And of data
directories that are at hand: the node's state file (``quorum-state``), and the ends and leader epochs of its log.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from .polled import Poller
from .wire import messages

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from .wire import Connection

TOPIC: Final = "__cluster_metadata"
_STATE: Final = "quorum-state"


class QuorumPoller(Poller):
    """Asks for the metadata log; a context manager.

    Any broker knows the controllers; of controllers the one that leads does. Raises BadInput where no bootstrap server
    knows of them.
    """

    def __init__(self, bootstrap: Sequence[tuple[str, int]], directories: Sequence[Path] = ()) -> None:
        super().__init__(bootstrap, TOPIC, 0, directories)

    def _unknown(self) -> tuple[str, str]:
        return "none of them leads the quorum", "name a broker that runs, or all controllers"

    def _describe(self, connection: Connection) -> tuple[Any, Any]:
        """Of one partition, what is told, and where the voters are; None of who does not lead."""
        quorum = messages("describe_quorum", 2)
        asked = quorum.TopicData(topic_name=TOPIC, partitions=(quorum.PartitionData(partition_index=0),))
        answer = connection.ask(quorum.DescribeQuorumRequest(topics=(asked,)))
        told = [each for topic in answer.topics for each in topic.partitions if each.error_code.name == "none"]
        return (told[0], answer.nodes) if told else (None, ())

    def _learn(self, connection: Connection) -> tuple[int, int] | None:
        told, nodes = self._describe(connection)
        if told is None:
            return None
        for node in nodes:
            for listener in node.listeners[:1]:
                self._is_at(int(node.node_id), listener.host, int(listener.port))
        if not self.polled.replicas:
            self.polled.replicas = tuple(sorted(int(each.replica_id) for each in told.current_voters))
        return int(told.leader_id), int(told.leader_epoch)

    def _ask(self, broker: int, connection: Connection) -> None:
        told, _ = self._describe(connection)
        if told is None or int(told.leader_id) != broker:
            return
        ends = {int(each.replica_id): int(each.log_end_offset) for each in told.current_voters}
        self._take(
            broker,
            "quorum",
            epoch=int(told.leader_epoch),
            leads=True,
            end=ends.get(broker),
            high_watermark=int(told.high_watermark) if told.high_watermark >= 0 else None,
            counted=tuple(sorted((voter, end) for voter, end in ends.items() if voter != broker and end >= 0)),
        )

    def _read_directory(self, broker: int) -> None:
        super()._read_directory(broker)
        folder = self._directories.get(broker)
        if folder is None:
            return
        try:
            told = json.loads((folder / _STATE).read_text(encoding="utf-8"))
            epoch, leader, voted = (int(told[name]) for name in ("leaderEpoch", "leaderId", "votedId"))
        except (OSError, ValueError, KeyError, TypeError):
            self.polled.failures += 1
            return
        # Of who leads, or has led, the file says no more than whom it was elected.
        others = leader != broker
        self._take(
            broker,
            "state file",
            epoch=epoch,
            follows=leader if others and leader >= 0 else None,
            voted=voted if others and voted >= 0 else None,
        )
