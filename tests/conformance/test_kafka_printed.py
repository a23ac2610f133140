"""What real brokers and controllers print is recorded anew, and explained: K14, a leader that dies, a late voter.

Those that are bundled are in ``tests/traces/kafka/printed.tar.gz``.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from fencepost.conformance.kafka.cluster.finding import find_finding
from fencepost.conformance.kafka.cluster.finding_executor import execute
from fencepost.conformance.kafka.cluster.quorum import record_late_voter, record_quorum
from fencepost.conformance.kafka.cluster.stage import Stage
from fencepost.model.protocols.snapshots.kafka_spec import VARIANT, printed
from fencepost.traces.kafka.cluster import NODE_NAMES
from fencepost.traces.kafka.server_log.lines import logger_options
from fencepost.traces.kafka.server_log.quorum import trace_of_quorum
from fencepost.traces.kafka.server_log.traces import traces_of_logs

from .kafka_jvm import commands_below, needs_kafka

pytestmark = pytest.mark.kafka


@pytest.mark.nightly(seconds=60)
def test_k14_real_brokers_fence_a_follower_in_the_same_leader_epoch(tmp_path: Path) -> None:
    said: list[str] = []
    with needs_kafka():
        made = Stage(keep=tmp_path / "kept", options=logger_options())
    with made as stage:
        result = execute(find_finding("k14"), stage, say=said.append)
    assert result.differences() == []
    assert not [line for roles in result.seen.roles.values() for line in roles if "leader epoch 0" not in line]
    # The controller's log has what it says of its own topics, too.
    logs = [tmp_path / "kept" / f"{name}.out" for name in NODE_NAMES.values()]
    told = {each.name: each for each in traces_of_logs(logs, "kip-320-kafka-fences")}["k14-0"]
    assert told.explained and told.trace is not None
    steps = [event.action for event in told.trace.events]
    assert steps.count("controller_fence_follower") == 2 and "controller_shrink_isr" not in steps


@pytest.mark.nightly(seconds=180)
@pytest.mark.parametrize(
    ("record", "wanted"),
    [
        (record_quorum, {"take_office", "resume", "raise_high_watermark", "generate_snapshot"}),
        (record_late_voter, {"delete_before_snapshot", "follower_start_over", "fetch_snapshot", "resume"}),
    ],
    ids=["leader-killed", "late-voter"],
)
def test_what_a_quorum_prints_is_explained(tmp_path: Path, record: Callable[..., list[Path]], wanted: set[str]) -> None:
    with needs_kafka():
        logs = record(tmp_path / "run", say=lambda _: None)
    assert not [each for each in commands_below(os.getpid()).values() if str(tmp_path) in each], "it leaves no process"
    told = trace_of_quorum(logs, printed.traced(VARIANT))
    assert told.explained and told.why is None and told.trace is not None
    assert wanted <= {event.action for event in told.trace.events}
