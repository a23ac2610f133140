"""A standalone Spark cluster for tests: a master and workers, each a process of its own, on loopback.

The commands are those that a user types. What a process says is read a line at a time, and shown where a wait fails.
"""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import sysconfig
import threading
import time
from pathlib import Path
from types import TracebackType

import psutil

START_SECONDS = 120.0
"""A JVM takes two seconds on a quiet machine, and many on a busy one."""


class Daemon:
    """One process of the cluster, and what it has said."""

    def __init__(self, scratch: Path, *arguments: str) -> None:
        """``scratch``: a folder for its temporary files, which it cannot take away when it is killed."""
        self.lines: list[str] = []
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self.process = subprocess.Popen(
            [sys.executable, "-m", "fencepost.traces.standalone", *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._queue.put(line.rstrip("\n"))
        self._queue.put(None)

    def wait_for(self, text: str, times: int = 1) -> str:
        """The line in which ``text`` comes up for the given time; fails where none comes."""
        deadline = time.monotonic() + START_SECONDS
        while True:
            found = [line for line in self.lines if text in line]
            if len(found) >= times:
                return found[times - 1]
            try:
                line = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            assert line is not None, f"{text!r} {times} times is not among\n" + "\n".join(self.lines)
            self.lines.append(line)

    def tree(self) -> list[psutil.Process]:
        """The processes that it has started: the JVM, its executors and their Python."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def kill(self) -> None:
        """End it as a machine ends that loses its power: all processes at once, none of them asked."""
        for process in self.tree():
            process.send_signal(signal.SIGKILL)
        self.process.kill()
        self.process.wait()

    def stop(self) -> None:
        """End it in good order."""
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(60)


class Cluster:
    """A master and its workers, of a core each; ``scratch`` is an existing folder for their temporary files."""

    def __init__(self, scratch: Path, workers: int = 2) -> None:
        self.master = Daemon(scratch, "master", "--port", "0")
        self.workers: list[Daemon] = []
        try:
            self.url = self.master.wait_for("Starting Spark master at").split()[-1]
            self.workers = [Daemon(scratch, "worker", self.url) for _ in range(workers)]
            self.master.wait_for("Registering worker", workers)
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """End all of it."""
        for each in [*self.workers, self.master]:
            each.stop()

    def __enter__(self) -> Cluster:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def python_without_the_package(folder: Path) -> Path:
    """An interpreter that has every installed library but this package: it must be sent to it, or is not found.

    A script that runs this interpreter without its site-packages, on a folder of links to what else is in there.
    """
    libraries = folder / "site"
    libraries.mkdir()
    for site in {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}:
        for entry in sorted(Path(site).iterdir()):
            name = entry.name.lower()
            if "fencepost" not in name and entry.suffix != ".pth" and name != "__pycache__":
                (libraries / entry.name).symlink_to(entry)
    script = folder / "python"
    script.write_text(f'#!/bin/sh\nPYTHONPATH="$PYTHONPATH:{libraries}" exec {sys.executable} -S "$@"\n')
    script.chmod(0o755)
    return script
