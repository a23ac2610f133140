"""Real brokers under load and chaos: what they print is explained, but for the finding that is provoked among it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.conformance.kafka.cluster.chaos import LAG_MS, SETTINGS, chaos
from fencepost.conformance.kafka.cluster.stage import Stage
from fencepost.model.explore.result import Verdict
from fencepost.traces.kafka.cluster import NODE_NAMES
from fencepost.traces.kafka.server_log.lines import logger_options
from fencepost.traces.kafka.server_log.traces import traces_of_logs
from fencepost.traces.replay import replay

from .kafka_jvm import needs_kafka

pytestmark = pytest.mark.kafka


@pytest.mark.night(seconds=180)
def test_k11_is_found_in_the_logs_of_brokers_under_chaos_and_nothing_else_is(tmp_path: Path) -> None:
    """A minute of it; `docs/measured.md` has ten."""
    with needs_kafka():
        made = Stage(keep=tmp_path / "kept", lag_ms=LAG_MS, settings=SETTINGS, options=logger_options())
    with made as stage:
        found, lost = chaos(stage, 60, seed=1)
    assert lost.lost, lost.words()
    (load,) = found
    assert len(load.acknowledged) > 200 and load.lost == [] and len(load.troubles) >= 3
    logs = [tmp_path / "kept" / f"{name}.out" for name in NODE_NAMES.values()]
    told = {each.name: each for each in traces_of_logs(logs, "kip-320-kafka-fences")}
    answers = {name: replay(told[name].trace) for name in ("load-0-0", "k11-0")}
    assert answers["load-0-0"].verdict is Verdict.HOLDS, told["load-0-0"].why
    assert len(told["load-0-0"].trace or ()) > 50
    k11 = answers["k11-0"]
    assert (k11.verdict, k11.cause) == (Verdict.VIOLATED, "guard")
    assert k11.event is not None and k11.event.call == "leader_inc_high_watermark(leader=0)"
