"""Real brokers under load and chaos: what they print is explained, but for the finding that is provoked among it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.conformance.kafka.cluster.chaos import LAG_MS, SETTINGS, Loaded, chaos
from fencepost.conformance.kafka.cluster.stage import Stage, Stored
from fencepost.model.explore.result import Verdict
from fencepost.traces.kafka.cluster import NODE_NAMES
from fencepost.traces.kafka.server_log.lines import logger_options
from fencepost.traces.kafka.server_log.traces import traces_of_logs
from fencepost.traces.replay import replay

from .kafka_jvm import needs_kafka


@pytest.mark.parametrize(
    ("log", "lost"),
    [
        ("abc", []),
        ("ab", [(2, "c")]),
        # Another one has its place, and was acknowledged there as well.
        ("abd", [(2, "c")]),
        ("acb", [(1, "b"), (2, "c")]),
    ],
)
def test_an_acknowledged_record_that_is_not_there_is_lost(log: str, lost: list[tuple[int, str]]) -> None:
    acknowledged = [(0, "a"), (1, "b"), (2, "c"), *([(2, "d")] if "d" in log else [])]
    found = Loaded("load-0", 5, acknowledged)
    found.refused["TimeoutException"] += 1
    found.look_for(Stored(offset, 0, value) for offset, value in enumerate(log))
    assert found.lost == lost
    gone = f", {len(lost)} of them lost" if lost else ""
    told = f"load-0: {len(acknowledged)} of 5 records were acknowledged{gone}, 1 got TimeoutException; no trouble"
    assert found.words() == told


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["chaos"], "chaos: what it is for are its nodes' logs; name a new folder with --keep"),
        (["chaos", "--keep", "run", "--for", "1x"], "'1x' is no duration: write 60s, 5m or 1h"),
        (["k15"], "FINDING: no finding is called 'k15'; name one of h1, k11"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, arguments: list[str], words: str) -> None:
    command = [sys.executable, "-m", "fencepost.conformance.kafka.cluster", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False, cwd=tmp_path)
    assert (done.returncode, done.stdout, list(tmp_path.iterdir())) == (2, "", [])
    assert len(done.stderr.splitlines()) == 1 and words in done.stderr


@pytest.mark.kafka
@pytest.mark.nightly(seconds=180)
def test_k11_is_found_in_the_logs_of_brokers_under_chaos_and_nothing_else_is(tmp_path: Path) -> None:
    """A minute of it; `docs/explanation/measurements.md` has ten."""
    with needs_kafka():
        made = Stage(keep=tmp_path / "kept", lag_ms=LAG_MS, settings=SETTINGS, options=logger_options())
    with made as stage:
        found, lost = chaos(stage, 60, seed=1)
    assert lost.verdict is Verdict.VIOLATED, lost.words()
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
