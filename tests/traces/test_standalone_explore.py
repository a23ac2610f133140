"""States on disk and a cluster of Spark's, of which the driver or a worker is killed at random moments."""

from __future__ import annotations

import json
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from .spark_cluster import Cluster, Daemon

SMALL = """
from fencepost.conformance.cli import run
from fencepost.model.explore.disk import spread
spread.ALONE, spread.SLICE, spread.WAYS = 20_000, 30_000, 2
run()
"""
"""The command, as if levels of so many states were large: it is a cluster that is asked, and not for how long."""


def begun(*arguments: object) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", SMALL, "explore", *map(str, arguments), "--json"]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def ended(running: subprocess.Popen[str], code: int) -> dict[str, Any]:
    """What it answers, but for what depends on how quickly it went and on how often it was begun."""
    out, err = running.communicate(timeout=300)
    assert running.returncode == code, err
    timed = ("seconds", "states_per_second", "memory_bytes", "engine", "engine_note")
    return {name: value for name, value in json.loads(out).items() if name not in timed}


def levels(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.glob("*.keys")}


@pytest.mark.spark
@pytest.mark.nightly(seconds=400)
@pytest.mark.parametrize(("variant", "code"), [("kip-320", 0), ("kip-320-first-try", 1)])
def test_drivers_and_workers_that_are_killed_change_nothing(tmp_path: Path, variant: str, code: int) -> None:
    """Twenty are killed, each with all its processes; a driver that was killed is begun again in the same directory."""
    seed = 1
    print(f"seed {seed}")
    draw = random.Random(seed)
    asked = ("fencing", "--variant", variant, "--engine", "batch")
    whole = ended(begun(*asked, "--dir", tmp_path / "whole"), code)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    killed, finished = {"driver": 0, "worker": 0}, 0
    with Cluster(scratch) as cluster:

        def start() -> subprocess.Popen[str]:
            return begun(*asked, "--dir", tmp_path / str(finished), "--master", cluster.url)

        def compare(running: subprocess.Popen[str]) -> None:
            folder = tmp_path / str(finished)
            assert ended(running, code) == whole
            assert levels(folder) == levels(tmp_path / "whole")
            assert not list(folder.glob("*.part"))

        before = time.monotonic()
        compare(start())
        took = time.monotonic() - before
        finished += 1
        while sum(killed.values()) < 20:
            running = start()
            try:
                running.wait(draw.uniform(0.3, 1.0) * took)
            except subprocess.TimeoutExpired:
                who = draw.choice(list(killed))
                killed[who] += 1
                if who == "driver":
                    running.send_signal(signal.SIGKILL)
                    running.communicate()
                    continue
                place = draw.randrange(2)
                cluster.workers[place].kill()
                cluster.workers[place] = Daemon(scratch, "worker", cluster.url)
            compare(running)
            finished += 1
        compare(start())
    assert min(killed.values()) >= 5
