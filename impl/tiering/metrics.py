"""The metrics of KIP-405, KIP-963 and KIP-1018 that are cheap, in Prometheus' text format.

Names are those that Prometheus' JMX exporter makes of Kafka's (``BrokerTopicMetrics``); a rate is of the last minute.
"""

from __future__ import annotations

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import GaugeMetricFamily, Metric

from ..metadata.metrics import Meter
from ..net.interface import Clock

_PREFIX = "kafka_server_BrokerTopicMetrics_"


class TieringMetrics:
    """One broker's metrics of all its tiered topics together: a collector in a registry of its own."""

    def __init__(self, clock: Clock) -> None:
        self.copied = Meter(clock)
        """Bytes whose copies were finished."""
        self.copy_requests = Meter(clock)
        self.copy_errors = Meter(clock)
        self.fetched = Meter(clock)
        """Bytes that were read for consumers."""
        self.fetch_requests = Meter(clock)
        self.fetch_errors = Meter(clock)
        self.delete_requests = Meter(clock)
        self.delete_errors = Meter(clock)
        self.build_requests = Meter(clock)
        """Times that a follower was to begin after what is in remote storage."""
        self.build_errors = Meter(clock)
        self.copy_lag_bytes = 0
        """Of the partition that was looked at last: what could be copied and is not."""
        self.copy_lag_segments = 0
        self._registry = CollectorRegistry()
        self._registry.register(self)

    def collect(self) -> Iterator[Metric]:
        """What the registry asks for."""
        meters = {
            "RemoteCopyBytesPerSec": ("Bytes copied to remote storage.", self.copied),
            "RemoteCopyRequestsPerSec": ("Copies of segments begun.", self.copy_requests),
            "RemoteCopyErrorsPerSec": ("Copies of segments that failed.", self.copy_errors),
            "RemoteFetchBytesPerSec": ("Bytes read from remote storage for consumers.", self.fetched),
            "RemoteFetchRequestsPerSec": ("Fetches that remote storage was read for.", self.fetch_requests),
            "RemoteFetchErrorsPerSec": ("Reads of remote storage that failed.", self.fetch_errors),
            "RemoteDeleteRequestsPerSec": ("Deletions of remote segments begun.", self.delete_requests),
            "RemoteDeleteErrorsPerSec": ("Deletions of remote segments that failed.", self.delete_errors),
            "BuildRemoteLogAuxStateRequestsPerSec": ("Builds of auxiliary state begun.", self.build_requests),
            "BuildRemoteLogAuxStateErrorsPerSec": ("Builds of auxiliary state that failed.", self.build_errors),
        }
        for name, (text, meter) in meters.items():
            yield _gauge(name, f"{text[:-1]}, a second.", meter.rate())
        yield _gauge("RemoteCopyLagBytes", "Bytes that could be copied and are not.", self.copy_lag_bytes)
        yield _gauge("RemoteCopyLagSegments", "Segments that could be copied and are not.", self.copy_lag_segments)

    def text(self) -> str:
        """The exposition, version 0.0.4 of the text format."""
        return generate_latest(self._registry).decode()


def _gauge(name: str, text: str, value: float) -> Metric:
    found = GaugeMetricFamily(_PREFIX + name, text)
    found.add_metric([], value)
    return found
