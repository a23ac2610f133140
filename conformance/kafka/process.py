"""A JVM with the driver, which is asked for one thing at a time, in lines of JSON."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...model.core.errors import BadInput
from ...traces.jvm import java_binary
from .jars import BROKERS, CLEANERS, CONSUMER, CONTROLLERS, QUORUM, RELEASE, TIERED, classes

__all__ = ["BROKERS", "CLEANERS", "CONSUMER", "CONTROLLERS", "QUORUM", "TIERED", "DriverFailedError", "Jvm", "OfKafka"]

_OPTIONS: Final = (
    "-Xmx512m",
    "-XX:+UseSerialGC",
    "-XX:TieredStopAtLevel=1",
    "-Dorg.slf4j.simpleLogger.defaultLogLevel=off",
    # What shuffles lists has a seed.
    "--add-opens=java.base/java.util=ALL-UNNAMED",
)


class DriverFailedError(Exception):
    """Kafka threw what nobody in it caught: the last line of its message, with the place."""


_MEMORY: Final = "/dev/shm"  # noqa: S108 - a folder of its own is made in it


class OfKafka:
    """A system that runs Apache Kafka's classes. ``release``: which, as long as it has not begun."""

    release: str = RELEASE


class Jvm:
    """A driver's process. Its brokers' files lie in a temporary folder, which goes with it.

    That is in memory where the system has a place for files there: a process that ends leaves as much, and they are
    synced at every turn.
    """

    def __init__(self, release: str = RELEASE, options: Sequence[str] = (), drives: str = BROKERS) -> None:
        found = classes(release, drives=drives)
        self.release = found.release
        place = _MEMORY if os.access(_MEMORY, os.W_OK) else None
        self._folder = Path(tempfile.mkdtemp(prefix="fencepost-kafka-", dir=place))
        self._errors = (self._folder / "stderr").open("wb")
        command = [str(java_binary()), *_OPTIONS, *options, "-cp", found.classpath, f"fencepost.kafka.{drives}"]
        try:
            self._process = subprocess.Popen(  # noqa: S603 - the JVM that was found, and our own classes
                [*command, str(self._folder / "brokers")],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._errors,
            )
        except OSError as failed:
            self.close()
            raise BadInput(
                f"does not start ({failed.strerror})", command[0], "set JAVA_HOME to another JVM"
            ) from failed

    @property
    def pid(self) -> int:
        """Of its process."""
        return self._process.pid

    def ask(self, do: str, **more: Any) -> Mapping[str, Any]:
        """Have one thing happen. Raises DriverFailedError where Kafka throws, and where the process is gone."""
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            self._process.stdin.write(json.dumps({"do": do, **more}).encode() + b"\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):
            line = b""
        if not line:
            raise DriverFailedError(f"the JVM ended: {self._last_words()}")
        answer: Mapping[str, Any] = json.loads(line)
        if "failed" in answer:
            raise DriverFailedError(answer["failed"])
        return answer

    def plant(self, defect: str = "NONE") -> None:
        """Have a change of a few lines in Kafka's classes hold from the next reset on, and no other; ``NONE``: none.

        By its name in ``Defect.java``, ``QuorumDefect.java``, ``Planted.java``, ``ControllerDefect.java``,
        ``CleanerDefect.java`` or ``TieringDefect.java``, by what is driven.
        """
        self.ask("plant", defect=defect)

    def _last_words(self) -> str:
        self._errors.flush()
        lines = (self._folder / "stderr").read_text(encoding="utf-8", errors="replace").strip().splitlines()
        return lines[-1] if lines else "it said nothing"

    def close(self) -> None:
        """End it; may be called more than once."""
        process = getattr(self, "_process", None)
        if process is not None and process.poll() is None:
            process.kill()
        if process is not None:
            process.wait()
            for pipe in (process.stdin, process.stdout):
                with contextlib.suppress(OSError):
                    pipe.close()
        self._errors.close()
        shutil.rmtree(self._folder, ignore_errors=True)
