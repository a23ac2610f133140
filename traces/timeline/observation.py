"""One thing that one process reported about one partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, Literal

from .event_kind import EventKind

Outcome = Literal["ok", "failed", "unknown"]
"""``unknown``: the request may or may not have taken effect, for example after a timeout."""

METADATA_LOG: Final = "__cluster_metadata-0"


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One line of a log, one batch of a file or one operation of a client.

    ``None`` means that the source does not say. Offsets, epochs and ids are Kafka's own numbers; a log end offset is
    exclusive. ``EventKind`` lists the fields that each kind sets.

    The only order that always holds is the order within one process: ``sequence`` ascends within one ``node``
    or one ``client``. Times of different processes come from different clocks. Checkers order events of different
    processes by epochs, and by time only if epochs cannot.

    Args:
        kind: What happened.
        partition: ``TOPIC-NUMBER``; empty for an event of a whole node.
        file: Path as the user named it.
        line: Line in the file, from 1; 0 if the file has no lines.
        sequence: Position within the process, over all its files.
        text: The message as the timeline shows it.
        time: Milliseconds since 1970 by the clock of the process; ``None`` if unknown or relative.
        zoned: Whether the source, or the user, states the time zone of ``time``; otherwise it is read as UTC.
        relative: Whether ``time`` counts from an unknown day: the lines of the file have no date.
        began: Time at which a client sent the request; ``time`` is then the time of the response.
        node: Broker or controller id.
        client: Name of a client process; a client has no ``node``.
        topic_id: The topic's id, which tells topics of the same name apart.
        previous_epoch: Leader epoch of the process before this event; -1 after a start.
        offset: The one offset that the kind is about.
        follower: Replica that a leader reports about.
        directory: Log directory of the log.
        role: State of a quorum node: ``Leader``, ``Follower``, ``Candidate``, ...
        voted_for: Node that a quorum node voted for in ``leader_epoch``.
        outcome: Of a client's operation or a vote.
        acks: ``-1`` for ``all``.
        value: What a client wrote or read, as text.
        started: Position of the request of a client's operation, comparable with ``sequence``.
        idempotent: Whether the producer is idempotent.
        unique_value: Whether the history writes each value once.
        compacted: Whether the topic is compacted, so that records may be missing.
        logger: Name of the logger, and its level, if it is a log line.
        topic: Set, with an empty ``partition``, if the event belongs to all partitions of a topic.
    """

    kind: EventKind
    partition: str
    file: str
    line: int
    sequence: int = 0
    text: str = ""
    time: int | None = None
    zoned: bool = False
    relative: bool = False
    began: int | None = None
    node: int | None = None
    client: str | None = None
    topic_id: str | None = None
    leader_epoch: int | None = None
    previous_epoch: int | None = None
    partition_epoch: int | None = None
    leader: int | None = None
    isr: frozenset[int] | None = None
    replicas: frozenset[int] | None = None
    log_start: int | None = None
    high_watermark: int | None = None
    log_end: int | None = None
    offset: int | None = None
    follower: int | None = None
    directory: str | None = None
    role: str | None = None
    voted_for: int | None = None
    outcome: Outcome | None = None
    acks: int | None = None
    value: str | None = None
    started: int | None = None
    idempotent: bool | None = None
    unique_value: bool | None = None
    compacted: bool | None = None
    logger: str | None = None
    level: str | None = None
    topic: str | None = None

    @property
    def where(self) -> str:
        """``FILE, line 3``, or ``FILE``."""
        return f"{self.file}, line {self.line}" if self.line else self.file

    @property
    def process(self) -> str:
        """``broker 1`` or the client's name."""
        if self.client is not None:
            return f"client {self.client}"
        return "unknown node" if self.node is None else f"node {self.node}"

    def to_json(self) -> dict[str, Any]:
        """All fields that are set; sets become sorted lists."""
        values = {name: getattr(self, name) for name in self.__slots__}
        return {
            name: sorted(value) if isinstance(value, frozenset) else value
            for name, value in values.items()
            if value is not None and value != "" and not (name in ("zoned", "relative") and not value)
        }
