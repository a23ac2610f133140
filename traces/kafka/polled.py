"""A live cluster, asked again and again what it shows of one partition: no agent, no log level, no restart.

Of each broker that has a replica, over Kafka's own protocol:

- Metadata: whom it would tell clients leads, and in which leader epoch. That is only a guess at what its replica is in.
- OffsetForLeaderEpoch naming that leader epoch as the current one (KIP-320). A broker compares it with its replica's
  before it answers anything (K1): without an error it leads in just that epoch, and tells its log end; with
  NOT_LEADER_OR_FOLLOWER it is in that epoch, and follows. For older epochs it tells where each ends in its log.
- Fetch of a consumer (KIP-392), again with that epoch: its high watermark, as a follower, too.

Every release since 0.11 answers some of these; `negotiation.py` finds the versions, and what is missing.

And of data directories that are at hand: the ends and leader epochs of the logs, as their segments have them.

An answer is of one instant between question and answer. Nobody is asked before the last one has answered, so that the
looks are in the order of their instants.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...model.core.errors import BadInput
from .batches import BudgetSpent, Limits, SegmentScan
from .negotiation import (
    EPOCH_ENDS,
    FETCH,
    FETCH_BY_NAME,
    LATEST,
    METADATA,
    Missing,
    Negotiation,
    epoch_end_request,
    fetch_request,
    latest_request,
    metadata_request,
)
from .problems import ProblemLog
from .wire import NO_EPOCH, Connection, WireError

_LINEAGE: Final = 3
"""So many leader epochs before the present one are asked for."""
CLIENT: Final = "fencepost-record"
"""The client id of every request of the recorder."""
_BOOTSTRAP: Final = -1
"""The id of a bootstrap server while its own is not known."""
_LARGEST: Final = 64 * 1024 * 1024
"""Of a directory that holds more than this, nothing is read."""


@dataclass(frozen=True)
class Look:
    """What was seen of one broker's replica at one instant; None: that was not. Offsets and ids are Kafka's.

    ``starts``: where leader epochs begin in its log, as far as it is known, in order. ``of``: what was asked. Of a
    quorum's nodes besides, whom it follows, whom it voted for, and, of who leads, how far it knows the logs of others.
    """

    at: float
    broker: int
    of: str
    epoch: int | None = None
    leads: bool | None = None
    end: int | None = None
    high_watermark: int | None = None
    starts: tuple[tuple[int, int], ...] = ()
    follows: int | None = None
    voted: int | None = None
    counted: tuple[tuple[int, int], ...] = ()

    @property
    def said(self) -> tuple[object, ...]:
        """What it says, whenever that was."""
        seen = (self.epoch, self.leads, self.end, self.high_watermark, self.starts)
        return (*seen, self.follows, self.voted, self.counted)


@dataclass
class Polled:
    """What was seen. ``replicas``: of the partition, as first heard of. ``failures``: questions without an answer.

    ``missing``: observations that the brokers' release does not offer.
    """

    topic: str
    partition: int
    replicas: tuple[int, ...] = ()
    looks: list[Look] = field(default_factory=list)
    polls: int = 0
    failures: int = 0
    missing: Missing = field(default_factory=Missing)


class Poller:
    """Asks for one partition; a context manager. Raises BadInput where no bootstrap server knows of the topic."""

    def __init__(
        self, bootstrap: Sequence[tuple[str, int]], topic: str, partition: int, directories: Sequence[Path] = ()
    ) -> None:
        self._negotiation = Negotiation()
        self.polled = Polled(topic, partition, missing=self._negotiation.missing)
        self._bootstrap = list(bootstrap)
        self._directories = {_broker_of(each): each / f"{topic}-{partition}" for each in directories}
        self._connections: dict[int, Connection] = {}
        self._lineages: dict[tuple[int, int], tuple[tuple[int, int], ...]] = {}
        """By broker and leader epoch in which it leads."""
        self._last: dict[tuple[int, str], tuple[object, ...]] = {}
        self._topic_id: Any = None
        self._began = time.monotonic()

    def __enter__(self) -> Poller:
        told = []
        for host, port in self._bootstrap:
            first = Negotiation()
            try:
                with Connection(host, port, CLIENT) as connection:
                    if self._learn(_BOOTSTRAP, connection, first) is not None:
                        self._began = time.monotonic()
                        return self
                    told += [f"{connection}: {reason}" for reason in first.missing.reasons]
            except WireError as error:
                told.append(str(error))
        where = "--bootstrap " + ",".join(f"{host}:{port}" for host, port in self._bootstrap)
        unknown, mend = self._unknown()
        raise BadInput("; ".join(told) or unknown, where, mend)

    def __exit__(self, *_: object) -> None:
        for connection in self._connections.values():
            connection.close()

    def _unknown(self) -> tuple[str, str]:
        """What is wrong where all were reached, and nobody knows of it; and how to mend that, and what else may be."""
        partition, topic = self.polled.partition, self.polled.topic
        return (
            f"there is no partition {partition} of topic {topic!r}",
            "name brokers that run, and a topic that they have",
        )

    def _learn(self, node: int, connection: Connection, negotiation: Negotiation) -> tuple[int, int] | None:
        """Leader and leader epoch by a broker's metadata, which lists the brokers as well; -1: it has none."""
        answer = negotiation.ask(
            node, connection, METADATA, lambda version: metadata_request(version, self.polled.topic)
        )
        if answer is None:
            return None
        for broker in answer.brokers:
            self._is_at(int(broker.node_id), broker.host, int(broker.port))
        for topic in answer.topics:
            for partition in topic.partitions:
                if int(partition.partition_index) == self.polled.partition:
                    topic_id = getattr(topic, "topic_id", None)
                    self._topic_id = topic_id if topic_id is not None and topic_id.int else None
                    if not self.polled.replicas:
                        self.polled.replicas = tuple(sorted(int(each) for each in partition.replica_nodes))
                    if not hasattr(partition, "leader_epoch"):
                        for api in (EPOCH_ENDS, FETCH):
                            negotiation.missing.add(
                                node, api, "the node's metadata has no leader epoch (before Kafka 2.1)"
                            )
                    return int(partition.leader_id), int(getattr(partition, "leader_epoch", NO_EPOCH))
        return None

    def _is_at(self, node: int, host: str, port: int) -> None:
        """Where a node is reached from now on."""
        known = self._connections.get(node)
        if known is None or (known.host, known.port) != (host, port):
            self._connections[node] = Connection(host, port, CLIENT, 2.0)

    def poll(self) -> None:
        """Ask every broker once, one after the other. Who does not answer is left out."""
        self.polled.polls += 1
        for broker in self.polled.replicas:
            self._read_directory(broker)
            connection = self._connections.get(broker)
            try:
                if connection is not None:
                    self._ask(broker, connection)
            except WireError:
                self.polled.failures += 1

    def run(self, every: float, seconds: float, on_poll: Callable[[Polled], None] | None = None) -> Polled:
        """Poll every so many seconds, for so many."""
        end = time.monotonic() + seconds
        due = time.monotonic()
        while due < end:
            time.sleep(max(0.0, due - time.monotonic()))
            self.poll()
            if on_poll is not None:
                on_poll(self.polled)
            due = max(due + every, time.monotonic())
        return self.polled

    # -- one broker -------------------------------------------------------------------------------------------------

    def _ask(self, broker: int, connection: Connection) -> None:
        learned = self._learn(broker, connection, self._negotiation)
        if learned is None:
            return
        leader, epoch = learned
        leads = self._ask_epoch(broker, connection, epoch)
        # If the role is unknown, metadata decides who is asked; a broker that does not lead answers with an error.
        if leads or (leads is None and leader == broker):
            self._ask_latest(broker, connection)
        if epoch != NO_EPOCH:
            self._ask_high_watermark(broker, connection, epoch)

    def _ask_epoch(self, broker: int, connection: Connection, epoch: int) -> bool | None:
        """Whether a replica leads in `epoch`; None where the broker does not say."""
        ends = None if epoch == NO_EPOCH else self._epoch_end(broker, connection, epoch, epoch)
        if ends is None:
            return None
        error = ends.error_code.name
        if error == "not_leader_or_follower":
            self._take(broker, "role", epoch=epoch, leads=False)
            return False
        if error != "none":
            return False
        # Where older epochs end does not change while it leads in this one.
        starts = self._lineages.get((broker, epoch), ())
        self._take(broker, "end", epoch=epoch, leads=True, end=int(ends.end_offset), starts=starts)
        if not starts:
            self._lineages[broker, epoch] = self._lineage(broker, connection, epoch)
        return True

    def _ask_latest(self, broker: int, connection: Connection) -> None:
        topic, partition = self.polled.topic, self.polled.partition
        answer = self._negotiation.ask(
            broker, connection, LATEST, lambda version: latest_request(version, topic, partition)
        )
        if answer is not None:
            told = answer.topics[0].partitions[0]
            if told.error_code.name == "none":
                self._take(broker, "offsets", high_watermark=int(told.offset))

    def _ask_high_watermark(self, broker: int, connection: Connection, epoch: int) -> None:
        topic, partition, topic_id = self.polled.topic, self.polled.partition, self._topic_id
        answer = self._negotiation.ask(
            broker,
            connection,
            FETCH if topic_id is not None else FETCH_BY_NAME,
            lambda version: fetch_request(version, topic, topic_id, partition, epoch),
        )
        if answer is None:
            return
        for topics in answer.responses:
            for data in topics.partitions:
                if data.error_code.name in ("none", "offset_out_of_range") and int(data.high_watermark) >= 0:
                    self._take(broker, "high watermark", epoch=epoch, high_watermark=int(data.high_watermark))

    def _epoch_end(self, broker: int, connection: Connection, of: int, current: int) -> Any:
        """What a broker answers of the end of a leader epoch, in the epoch ``current``; None if it does not."""
        topic, partition = self.polled.topic, self.polled.partition
        answer = self._negotiation.ask(
            broker, connection, EPOCH_ENDS, lambda version: epoch_end_request(version, topic, partition, of, current)
        )
        return None if answer is None else answer.topics[0].partitions[0]

    def _lineage(self, broker: int, connection: Connection, epoch: int) -> tuple[tuple[int, int], ...]:
        """Where the present leader epoch and some before it begin: each where the one before it ends."""
        found: dict[int, int] = {0: 0} if epoch <= _LINEAGE else {}
        for older in range(epoch - 1, max(epoch - 1 - _LINEAGE, -1), -1):
            answer = self._epoch_end(broker, connection, older, epoch)
            if answer is None or answer.error_code.name != "none":
                return ()
            end = int(answer.end_offset)
            if end >= 0:
                found[older + 1] = end
        return tuple(sorted(found.items()))

    def _read_directory(self, broker: int) -> None:
        folder = self._directories.get(broker)
        if folder is None or not folder.is_dir():
            return
        limits = Limits()
        starts: dict[int, int] = {}
        end: int | None = None
        try:
            segments = sorted(folder.glob("*.log"))
            if not segments or sum(each.stat().st_size for each in segments) > _LARGEST:
                return
            for segment in segments:
                with segment.open("rb") as file:
                    for batch in SegmentScan(file, segment.stat().st_size, ProblemLog(segment), limits=limits):
                        starts.setdefault(batch.leader_epoch, batch.base_offset)
                        end = batch.last_offset + 1
        except (OSError, BudgetSpent):
            self.polled.failures += 1  # it was rolled or deleted meanwhile
            return
        if end is None:
            end = int(segments[-1].stem)
        self._take(broker, "directory", end=end, starts=tuple(sorted(starts.items())))

    def _take(self, broker: int, of: str, **seen: Any) -> None:
        """Keep a look, unless it says what the last one of the kind said."""
        look = Look(time.monotonic() - self._began, broker, of, **seen)
        if self._last.get((broker, of)) != look.said:
            self._last[broker, of] = look.said
            self.polled.looks.append(look)


def _broker_of(directory: Path) -> int:
    """Whose data directory it is, by its meta.properties. Raises BadInput."""
    try:
        lines = (directory / "meta.properties").read_text(encoding="utf-8").splitlines()
    except OSError as missing:
        raise BadInput(
            f"has no meta.properties ({missing.strerror})", str(directory), "name a broker's log.dirs"
        ) from missing
    told: Mapping[str, str] = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
    try:
        return int(told["node.id"] if "node.id" in told else told["broker.id"])
    except (KeyError, ValueError) as strange:
        raise BadInput(
            "meta.properties names no node.id and no broker.id", str(directory), "name a broker's log.dirs"
        ) from strange
