"""KIP-631's metrics, by a clock that the test moves."""

from __future__ import annotations

import pytest
from fencepost.impl.metadata.metrics import BrokerMetrics, ControllerMetrics, Meter
from fencepost.impl.quorum.metrics import QuorumMetrics
from prometheus_client.parser import text_string_to_metric_families

PREFIX = "kafka_controller_KafkaController_"


class HandClock:
    """Milliseconds that stand still; it may begin anywhere."""

    def __init__(self, start: int = 12_345) -> None:
        self.time = start

    def now(self) -> int:
        return self.time

    def wall(self) -> int:
        return self.time


def samples(text: str) -> dict[str, float]:
    """By name; buckets by their bound, too."""
    return {
        each.name + (f" {each.labels['le']}" if each.labels else ""): each.value
        for family in text_string_to_metric_families(text)
        for each in family.samples
    }


def test_the_names_are_those_of_the_text() -> None:
    controller = {each.name for each in text_string_to_metric_families(ControllerMetrics(HandClock()).text())}
    names = (
        "MetadataLag",
        "MetadataCommitLatencyMs",
        "MetadataCommitRate",
        "MetadataSnapshotLag",
        "ControllerRequestsRate",
    )
    assert controller == {PREFIX + each for each in names}
    (broker,) = text_string_to_metric_families(BrokerMetrics().text())
    assert broker.name == "kafka_controller_KafkaServer_MetadataLag"
    # One node's page may have both KIPs': no name is in two of them.
    both = ControllerMetrics(HandClock()).text() + QuorumMetrics().text()
    assert len(list(text_string_to_metric_families(both))) == 5 + 3


@pytest.mark.parametrize("kind", ["controller", "broker"])
def test_the_lag_of_a_state(kind: str) -> None:
    metrics = ControllerMetrics(HandClock()) if kind == "controller" else BrokerMetrics()
    name = PREFIX + "MetadataLag" if kind == "controller" else "kafka_controller_KafkaServer_MetadataLag"
    assert samples(metrics.text())[name] == 0
    metrics.stable(10)
    metrics.replayed(4)
    assert metrics.metadata_lag == samples(metrics.text())[name] == 6
    metrics.replayed(10)
    assert samples(metrics.text())[name] == 0
    metrics.replayed(12)  # the active controller's state is ahead of what is committed
    assert samples(metrics.text())[name] == 0
    metrics.replayed(0)  # started again
    assert samples(metrics.text())[name] == 10


def test_the_lag_of_the_snapshot() -> None:
    metrics = ControllerMetrics(HandClock())
    metrics.stable(10)
    assert samples(metrics.text())[PREFIX + "MetadataSnapshotLag"] == 10  # there is none
    metrics.snapshot(7)
    assert metrics.snapshot_lag == samples(metrics.text())[PREFIX + "MetadataSnapshotLag"] == 3
    metrics.snapshot(10)
    assert samples(metrics.text())[PREFIX + "MetadataSnapshotLag"] == 0


def test_the_latency_of_commits_is_that_of_each_record() -> None:
    clock = HandClock()
    metrics = ControllerMetrics(clock)
    metrics.elected(100)
    metrics.appended(110)
    clock.time += 7
    metrics.appended(115)
    metrics.stable(100)
    assert samples(metrics.text())[PREFIX + "MetadataCommitLatencyMs_count"] == 0
    clock.time += 2
    metrics.stable(112)  # ten records after 9 ms, and two of five after 2
    found = samples(metrics.text())
    name = PREFIX + "MetadataCommitLatencyMs"
    assert (found[f"{name}_count"], found[f"{name}_sum"]) == (12, 10 * 9 + 2 * 2)
    assert (found[f"{name}_bucket 1"], found[f"{name}_bucket 5"], found[f"{name}_bucket 10"]) == (0, 2, 12)
    clock.time += 1_000
    metrics.stable(115)
    metrics.stable(115)
    found = samples(metrics.text())
    assert (found[f"{name}_count"], found[f"{name}_sum"]) == (15, 94 + 3 * 1_002)


def test_what_others_have_committed_is_not_this_controllers() -> None:
    clock = HandClock()
    metrics = ControllerMetrics(clock)
    metrics.elected(0)
    metrics.appended(10)
    metrics.stable(4)
    metrics.resigned()
    clock.time += 1_000
    metrics.stable(10)  # by whoever leads now, which may have written something else there
    found = samples(metrics.text())
    assert found[PREFIX + "MetadataCommitLatencyMs_count"] == 4
    metrics.elected(20)
    metrics.appended(21)
    metrics.stable(21)
    assert samples(metrics.text())[PREFIX + "MetadataCommitLatencyMs_count"] == 5


def test_a_rate_is_that_of_the_last_minute() -> None:
    clock = HandClock()
    meter = Meter(clock)
    assert meter.rate() == 0
    meter.mark(10)
    assert meter.rate() == 0  # no time has passed
    clock.time += 500
    assert meter.rate() == 20
    clock.time += 1_500
    meter.mark()
    meter.mark()
    assert meter.rate() == 12 / 2
    clock.time += 57_999  # 59,999 since the start: all of it still counts
    assert meter.rate() == pytest.approx(12 / 59.999)
    clock.time += 1  # the first second goes
    assert meter.rate() == pytest.approx(2 / 59)
    clock.time += 1_999
    assert meter.rate() == pytest.approx(2 / 60, rel=0.02)
    clock.time += 1
    assert meter.rate() == 0
    for _ in range(600):
        clock.time += 1_000
        meter.mark(5)
    assert meter.rate() == pytest.approx(5 * 60 / 59)  # the second that has just begun has its five already
    assert len(meter._slots) == 60


def test_the_rates_of_a_controller() -> None:
    clock = HandClock()
    metrics = ControllerMetrics(clock)
    metrics.elected(0)
    metrics.appended(30)
    for _ in range(50):
        metrics.request()
    clock.time += 10_000
    metrics.stable(30)
    found = samples(metrics.text())
    assert found[PREFIX + "MetadataCommitRate"] == 3
    assert found[PREFIX + "ControllerRequestsRate"] == 5
    clock.time += 120_000
    found = samples(metrics.text())
    assert (found[PREFIX + "MetadataCommitRate"], found[PREFIX + "ControllerRequestsRate"]) == (0, 0)


def test_two_clocks_alike_give_the_same_text() -> None:
    texts = []
    for start in (0, 99_999):
        clock = HandClock(start)
        metrics = ControllerMetrics(clock)
        metrics.elected(0)
        for end in range(1, 40):
            clock.time += 137
            metrics.appended(end)
            metrics.stable(end - 3)
            metrics.request()
        texts.append(metrics.text())
    assert texts[0] == texts[1]
