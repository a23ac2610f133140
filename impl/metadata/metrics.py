"""The metrics of KIP-631, "New Metrics", in Prometheus' text format; those of KIP-630 are in ``impl.quorum.metrics``.

Names are those that Prometheus' JMX exporter makes of the text's. Whoever runs the controller or broker calls what has
happened; times are of the clock that is given. Offsets are exclusive ends: a lag is 0 for who has replayed all that is
committed, and for the active controller, whose state is ahead of that.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from ..net.interface import Clock
from ..quorum.metrics import LatencyHistogram

WINDOW_MS = 60_000
"""A rate is that of the last minute, as a meter's OneMinuteRate; of less where less has passed since it was made."""
SLOT_MS = 1_000
_CONTROLLER = "kafka_controller_KafkaController_"
_BROKER = "kafka_controller_KafkaServer_"


class Meter:
    """How many a second."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._start = clock.now()
        self._slots: deque[tuple[int, int]] = deque()  # number of a slot since the start, and how many were in it
        self._count = 0

    def mark(self, count: int = 1) -> None:
        """So many now."""
        slot = (self._clock.now() - self._start) // SLOT_MS
        if self._slots and self._slots[-1][0] == slot:
            count += self._slots.pop()[1]
        self._slots.append((slot, count))
        self._forget(slot)

    def rate(self) -> float:
        """A second, of the last whole slots and this one. 0 where no time has passed."""
        elapsed = self._clock.now() - self._start
        slot = elapsed // SLOT_MS
        self._forget(slot)
        # The slot that began a window ago has gone: what is left began with the next one.
        since = max(0, (slot + 1) * SLOT_MS - WINDOW_MS)
        passed = elapsed - since
        return sum(count for _, count in self._slots) * 1_000 / passed if passed else 0.0

    def _forget(self, slot: int) -> None:
        while self._slots and self._slots[0][0] <= slot - WINDOW_MS // SLOT_MS:
            self._slots.popleft()


class _Lag:
    """How far a node's state is behind what is committed."""

    def __init__(self) -> None:
        self._replayed = 0
        self._stable = 0

    def replayed(self, end: int) -> None:
        """The state is that of the records below ``end``: it goes back where a node starts again."""
        self._replayed = end

    def stable(self, end: int) -> None:
        """What is below ``end`` is committed, as far as this node knows: the last stable offset."""
        self._stable = end

    @property
    def metadata_lag(self) -> int:
        """Committed records that are not in the state."""
        return max(0, self._stable - self._replayed)


class ControllerMetrics(_Lag):
    """One controller's metrics: a collector in a registry of its own."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self.commit_latency = LatencyHistogram("MetadataCommitLatencyMs", "Time from appending a record to its commit.")
        self.commits = Meter(clock)
        self.requests = Meter(clock)
        self._clock = clock
        self._snapshot = 0
        self._end = 0
        self._pending: deque[tuple[int, int]] = deque()  # ends of what was appended, and when
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def elected(self, end: int) -> None:
        """This controller is the active one, and what it appends begins at ``end``."""
        self._pending.clear()
        self._end = end

    def resigned(self) -> None:
        """It no longer is: what it has appended and not committed has no latency, as another one decides about it."""
        self._pending.clear()

    def appended(self, end: int) -> None:
        """The active controller has appended all below ``end`` that it had not before."""
        self._pending.append((end, self._clock.now()))

    def stable(self, end: int) -> None:
        """What is below ``end`` is committed. Where it is what this controller has appended, it counts as commits."""
        super().stable(end)
        now = self._clock.now()
        while self._pending and self._end < end:
            last, when = self._pending[0]
            upto = min(last, end)
            for _ in range(self._end, upto):
                self.commit_latency.observe(now - when)
            self.commits.mark(upto - self._end)
            self._end = upto
            if upto == last:
                self._pending.popleft()

    def snapshot(self, end: int) -> None:
        """The latest snapshot has all below ``end``; 0 while there is none."""
        self._snapshot = end

    def request(self) -> None:
        """A request has been processed."""
        self.requests.mark()

    @property
    def snapshot_lag(self) -> int:
        """Committed records that are in no snapshot."""
        return max(0, self._stable - self._snapshot)

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        lag = "Records below the last stable offset that this controller has not replayed."
        yield _gauge(_CONTROLLER + "MetadataLag", lag, self.metadata_lag)
        yield self.commit_latency.family()
        rate = "Records committed to the metadata topic, a second."
        yield _gauge(_CONTROLLER + "MetadataCommitRate", rate, self.commits.rate())
        lag = "Records below the last stable offset that are not in the last snapshot."
        yield _gauge(_CONTROLLER + "MetadataSnapshotLag", lag, self.snapshot_lag)
        yield _gauge(_CONTROLLER + "ControllerRequestsRate", "Requests processed, a second.", self.requests.rate())

    def text(self) -> str:
        """The exposition, version 0.0.4 of the text format."""
        return generate_latest(self._registry).decode()


class BrokerMetrics(_Lag):
    """One broker's metric: a collector in a registry of its own."""

    def __init__(self) -> None:
        super().__init__()
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        lag = "Records below the last stable offset that this broker has not replayed."
        yield _gauge(_BROKER + "MetadataLag", lag, self.metadata_lag)

    def text(self) -> str:
        """The exposition, version 0.0.4 of the text format."""
        return generate_latest(self._registry).decode()


def _gauge(name: str, text: str, value: float) -> Metric:
    found = GaugeMetricFamily(name, text)
    found.add_metric([], value)
    return found
