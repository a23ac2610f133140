"""Process groups that end with the process that started them, and a Spark cluster that does."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from fencepost.traces.orphan_guard import OrphanGuard
from fencepost.traces.spark import spark_session

from .spark_cluster import Cluster

SECONDS = 20.0

PARENT = """
import subprocess, sys, time
from fencepost.traces.orphan_guard import OrphanGuard

with OrphanGuard() as guard:
    # A shell with a child of its own, as a JVM has executors.
    child = subprocess.Popen(["/bin/sh", "-c", "sleep 1000 & sleep 1000"], process_group=0)
    if sys.argv[1] == "watched":
        guard.watch(child.pid)
    print(child.pid, flush=True)
    time.sleep(1000)
"""


def gone(processes: list[psutil.Process]) -> bool:
    """Whether all of them end within ``SECONDS``; a zombie, which waits for its parent, has ended."""
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        if not [each for each in processes if each.is_running() and each.status() != psutil.STATUS_ZOMBIE]:
            return True
        time.sleep(0.05)
    return False


def started(watched: str) -> tuple[subprocess.Popen[str], list[psutil.Process]]:
    """A parent, and the two processes of its group."""
    parent = subprocess.Popen([sys.executable, "-c", PARENT, watched], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    shell = psutil.Process(int(parent.stdout.readline()))
    deadline = time.monotonic() + SECONDS
    while len(shell.children()) < 2 and time.monotonic() < deadline:
        time.sleep(0.02)
    return parent, [shell, *shell.children()]


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_group_ends_with_its_parent(number: signal.Signals) -> None:
    parent, group = started("watched")
    parent.send_signal(number)
    parent.wait(SECONDS)
    assert len(group) == 3 and gone(group)


def test_group_without_a_guard_outlives_its_parent() -> None:
    parent, group = started("unwatched")
    parent.kill()
    parent.wait(SECONDS)
    time.sleep(0.5)
    assert all(each.is_running() for each in group)
    for each in group:
        each.kill()


def test_forgotten_group_is_left_alone() -> None:
    with OrphanGuard() as guard:
        kept, ended = (subprocess.Popen(["sleep", "1000"], process_group=0) for _ in range(2))
        for each in (kept, ended):
            guard.watch(each.pid)
        guard.forget(kept.pid)
    assert ended.wait(SECONDS) == -signal.SIGKILL
    assert kept.poll() is None
    kept.kill()
    kept.wait()


@pytest.mark.spark
@pytest.mark.parametrize("role", ["worker", "master"])
def test_killed_daemon_takes_its_jvm_and_executors_along(tmp_path: Path, role: str) -> None:
    with Cluster(tmp_path, workers=1) as cluster:
        session = spark_session("a job", cluster.url)
        try:
            assert session.sparkContext.parallelize(range(4), 2).map(lambda number: number + 1).sum() == 10
            daemon = cluster.master if role == "master" else cluster.workers[0]
            tree = daemon.tree()
            jvms = [each for each in tree if each.name() == "java"]
            assert len(jvms) == (1 if role == "master" else 2), "the daemon, and a worker's executor"
            # Only the process that a user sees, unlike Daemon.kill.
            daemon.process.kill()
            daemon.process.wait(SECONDS)
            assert gone(tree)
        finally:
            session.stop()
