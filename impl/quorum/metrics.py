"""The three metrics of KIP-630, "Metrics", in Prometheus' text format.

Names are those that Prometheus' JMX exporter makes of the text's. Times are of the node's clock, so that a simulation
gives the same numbers each time; the library's own histograms note when they were made, by the wall clock, and are not
used for that reason.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, HistogramMetricFamily, Metric

_PREFIX = "kafka_controller_KafkaController_"
BUCKETS_MS = (1, 5, 10, 50, 100, 500, 1_000, 5_000, 10_000, 60_000)
"""Upper bounds, inclusive, of the histograms' buckets."""


class LatencyHistogram:
    """Counts of times in milliseconds."""

    def __init__(self, name: str, text: str) -> None:
        self._name = _PREFIX + name
        self._text = text
        self._counts = [0] * (len(BUCKETS_MS) + 1)
        self._sum = 0

    def observe(self, milliseconds: int) -> None:
        """Count one."""
        self._counts[bisect_left(BUCKETS_MS, milliseconds)] += 1
        self._sum += milliseconds

    def family(self) -> Metric:
        """In the library's form: cumulative counts."""
        buckets, total = [], 0
        for bound, count in zip([*map(str, BUCKETS_MS), "+Inf"], self._counts, strict=True):
            total += count
            buckets.append((bound, float(total)))
        return HistogramMetricFamily(self._name, self._text, buckets=buckets, sum_value=float(self._sum))


class QuorumMetrics:
    """One node's metrics: a collector in a registry of its own."""

    def __init__(self) -> None:
        self.generated = LatencyHistogram("GenSnapshotLatencyMs", "Time it took to generate a snapshot.")
        self.loaded = LatencyHistogram("LoadSnapshotLatencyMs", "Time it took to load the snapshot.")
        self.snapshot_bytes = 0
        """Size of the latest snapshot."""
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        yield self.generated.family()
        yield self.loaded.family()
        size = GaugeMetricFamily(_PREFIX + "SnapshotSizeBytes", "Size of the latest snapshot in bytes.")
        size.add_metric([], self.snapshot_bytes)
        yield size

    def text(self) -> str:
        """The exposition, version 0.0.4 of the text format."""
        return generate_latest(self._registry).decode()
