"""A live quorum, asked again and again what it shows of the metadata log.

Of each controller, over Kafka's own protocol, DescribeQuorum (KIP-595, KIP-836): who leads answers, and nobody else. It
tells its leader epoch, its high watermark, its log end, and how far it knows the logs of the others. And of data
directories that are at hand: the node's state file (``quorum-state``), and the ends and leader epochs of its log.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from .negotiation import QUORUM, Negotiation, quorum_request
from .polled import CLIENT, Poller
from .wire import Connection, WireError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

TOPIC: Final = "__cluster_metadata"
_STATE: Final = "quorum-state"


class QuorumPoller(Poller):
    """Asks for the metadata log; a context manager.

    Any broker knows the controllers; of controllers the one that leads does. Raises BadInput where no bootstrap server
    knows of them.
    """

    def __init__(self, bootstrap: Sequence[tuple[str, int]], directories: Sequence[Path] = ()) -> None:
        super().__init__(bootstrap, TOPIC, 0, directories)
        self._by_address = True
        self._servers: dict[int, Connection] = {}

    def _unknown(self) -> tuple[str, str]:
        return "none of them leads the quorum", "name a broker that runs, or all controllers"

    def _describe(self, node: int, connection: Connection, negotiation: Negotiation) -> tuple[Any, Any]:
        """One partition as its leader describes it, and the voters' addresses; None of a node that does not lead.

        There are no addresses before DescribeQuorum 2 (Kafka 3.9).
        """
        answer = negotiation.ask(node, connection, QUORUM, lambda version: quorum_request(version, TOPIC))
        if answer is None:
            return None, ()
        told = [each for topic in answer.topics for each in topic.partitions if each.error_code.name == "none"]
        return (told[0], getattr(answer, "nodes", ())) if told else (None, ())

    def _learn(self, node: int, connection: Connection, negotiation: Negotiation) -> tuple[int, int] | None:
        told, nodes = self._describe(node, connection, negotiation)
        if told is None:
            return None
        for voter in nodes:
            for listener in voter.listeners[:1]:
                self._is_at(int(voter.node_id), listener.host, int(listener.port))
        if not self.polled.replicas:
            self.polled.replicas = tuple(sorted(int(each.replica_id) for each in told.current_voters))
            self._by_address = bool(nodes)
        return int(told.leader_id), int(told.leader_epoch)

    def _ask(self, broker: int, connection: Connection) -> None:
        told, _ = self._describe(broker, connection, self._negotiation)
        if told is not None and int(told.leader_id) == broker:
            self._take_description(told)

    def poll(self) -> None:
        """Ask every voter once. Voters without a known address are asked through the bootstrap servers.

        A broker forwards the request to the controller that leads; of controllers that one alone answers.
        """
        super().poll()
        if self._by_address:
            return
        for number, (host, port) in enumerate(self._bootstrap):
            server = self._servers.setdefault(number, Connection(host, port, CLIENT, 2.0))
            try:
                told, _ = self._describe(-1 - number, server, self._negotiation)
            except WireError:
                self.polled.failures += 1
                continue
            if told is not None and int(told.leader_id) in self.polled.replicas:
                self._take_description(told)
                return

    def __exit__(self, *error: object) -> None:
        for server in self._servers.values():
            server.close()
        super().__exit__(*error)

    def _take_description(self, told: Any) -> None:
        """Keep what the leader of the quorum shows."""
        leader = int(told.leader_id)
        ends = {int(each.replica_id): int(each.log_end_offset) for each in told.current_voters}
        self._take(
            leader,
            "quorum",
            epoch=int(told.leader_epoch),
            leads=True,
            end=ends.get(leader),
            high_watermark=int(told.high_watermark) if told.high_watermark >= 0 else None,
            counted=tuple(sorted((voter, end) for voter, end in ends.items() if voter != leader and end >= 0)),
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
