"""Workers, each a process of its own, that tasks are given to as they come free."""

from __future__ import annotations

import json
import os
import queue
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, Final

from ....traces.run_report import Json
from .driving import Drive
from .source import Source

_PROGRAM: Final = f"from {__package__}.worker import main; main()"
Task = Mapping[str, Json]


class Workers:
    """A pool of them. The first to be free takes the next task."""

    def __init__(self, source: Source, drives: Sequence[Drive], jobs: int) -> None:
        self._executor = ThreadPoolExecutor(jobs, thread_name_prefix="mutants")
        self._free: queue.SimpleQueue[_Worker] = queue.SimpleQueue()
        self._all: list[_Worker] = []
        head: dict[str, Json] = {
            "folder": str(source.folder),
            "files": list(source.files),
            "ours": source.is_ours,
            "drives": [drive.to_json() for drive in drives],
        }
        for _ in range(jobs):
            worker = _Worker(head)
            self._all.append(worker)
            self._free.put(worker)

    def submit(self, task: Task) -> Future[Mapping[str, Any]]:
        """Let a worker do a task; what it tells."""
        return self._executor.submit(self._done, task)

    def _done(self, task: Task) -> Mapping[str, Any]:
        worker = self._free.get()
        try:
            return worker.done(task)
        finally:
            self._free.put(worker)

    def close(self) -> None:
        """End them all; what they have not begun is dropped."""
        self._executor.shutdown(wait=False, cancel_futures=True)
        for worker in self._all:
            worker.close()


class _Worker:
    def __init__(self, head: Task) -> None:
        # Sets of strings come in the same order in each.
        environment = {**os.environ, "PYTHONHASHSEED": "0"}
        self._process = subprocess.Popen(  # noqa: S603 - this very Python
            [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        self._head: Task | None = head

    def done(self, task: Task) -> Mapping[str, Any]:
        """Let it do a task, after it has got ready."""
        if self._head is not None:
            self._asked(self._head)
            self._head = None
        return self._asked(task)

    def _asked(self, said: Task) -> Mapping[str, Any]:
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps(said) + "\n")
            self._process.stdin.flush()
        except BrokenPipeError:
            return {"raised": "its worker is gone"}
        line = self._process.stdout.readline()
        told: Mapping[str, Any] = json.loads(line) if line else {"raised": "its worker is gone"}
        return told

    def close(self) -> None:
        self._process.terminate()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()
        self._process.wait()


@contextmanager
def workers(source: Source, drives: Sequence[Drive], jobs: int) -> Iterator[Workers]:
    """A pool for as long as the block lasts."""
    pool = Workers(source, drives, jobs)
    try:
        yield pool
    finally:
        pool.close()
