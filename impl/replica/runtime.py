"""What the parts of one broker share: its number, settings, clock, timers, data directory, and its requests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..log.directory import DataDirectory
from ..log.errors import CorruptBatch, CorruptCheckpoint, CorruptLog, LogOffline
from ..net.interface import Clock, Transport
from ..wire.messages import BROKER_PRINCIPAL, Envelope
from .config import BrokerConfig
from .remote import RemoteLogs
from .timers import Timers

Handler = Callable[[Any], None]
"""Takes the body of an answer; the node has looked at whether it is well formed."""

STORAGE_FAILURES = (LogOffline, CorruptLog, CorruptBatch, CorruptCheckpoint, OSError)
"""What a disk that fails, or holds what nobody wrote, raises.

``CorruptBatch``: a follower copies batches by their CRC, and finds only later that the records inside do not parse.
"""


class Requests:
    """Sends requests and answers, and knows which requests are not answered yet."""

    def __init__(self, node_id: int, transport: Transport, first_correlation: int) -> None:
        self.node_id = node_id
        self._transport = transport
        self._correlation = first_correlation
        self._waiting: dict[int, tuple[int, Handler]] = {}

    def request(self, destination: int, body: Any, handler: Handler) -> int:
        """Send a request; the first answer to it goes to ``handler``. Gives its correlation id."""
        self._correlation = correlation = self._correlation + 1
        self._waiting[correlation] = destination, handler
        self._transport.send(Envelope(self.node_id, destination, correlation, body, BROKER_PRINCIPAL))
        return correlation

    def forget(self, correlation: int | None) -> None:
        """Take no answer to this request any more; ``None`` is none."""
        if correlation is not None:
            self._waiting.pop(correlation, None)

    def answered(self, envelope: Envelope) -> None:
        """An answer has arrived: one that nobody waits for (late, or a repeat) is ignored."""
        waiting = self._waiting.get(envelope.correlation)
        if waiting is not None and waiting[0] == envelope.source:
            del self._waiting[envelope.correlation]
            waiting[1](envelope.body)

    def respond(self, request: Envelope, body: Any) -> None:
        """Answer a request."""
        self._transport.send(Envelope(self.node_id, request.source, request.correlation, body, BROKER_PRINCIPAL))


class Runtime(Requests):
    """One broker's requests, and what else its parts share."""

    def __init__(
        self,
        node_id: int,
        config: BrokerConfig,
        transport: Transport,
        clock: Clock,
        directory: DataDirectory,
        first_correlation: int,
        remote_logs: RemoteLogs | None = None,
    ) -> None:
        super().__init__(node_id, transport, first_correlation)
        self.config = config
        self.clock = clock
        self.directory = directory
        self.compacted = dict(config.compacted)
        """The topics that are compacted, and how each is cleaned now."""
        self.min_insync: dict[str, int] = {}
        """The topics that have a ``min.insync.replicas`` of their own now."""
        self.timers = Timers()
        self.remote_logs = remote_logs

    def min_insync_replicas(self, topic: str) -> int:
        """How many members an ISR must have for acks=-1: what the topic says, else the broker."""
        return self.min_insync.get(topic, self.config.min_insync_replicas)
