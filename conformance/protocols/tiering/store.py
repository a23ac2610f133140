"""The object store of a run: each piece of a broker's work with it is an event, and it may fail, or tell late.

A request is done when its event comes, all at once, unless the broker loses power in its midst. What a broker has asked
for it may have forgotten by then, as it is deposed: it is done all the same, and nobody hears of it.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from typing import Any, Final

from ....impl.files.interface import Files
from ....impl.net.interface import Clock
from ...adapters.nodes import EFFECTS
from ...simulation.power import Power

FAR: Final = 1 << 40
"""So far off a job is looked at that waits for its event: when to look for what is done by an event."""
WORKS, FAILS, BREAKS, LATE = "store", "store-fails", "store-breaks", "store-late"
"""What comes of a request: it is served; refused; broken off when something of it is done; or what was written lately
is not found yet."""
STORE_AWAY, STORE_BACK = "store-away", "store-back"
"""From the one to the other it refuses whatever would be served."""


class EventJob:
    """One request, or several, of a broker."""

    def __init__(self, work: Callable[[], Any], clock: Clock) -> None:
        self._work = work
        self._clock = clock
        self._result: Any = None
        self._error: Exception | None = None
        self._ran = False

    def run(self) -> None:
        """Do it."""
        try:
            self._result = self._work()
        except Exception as error:
            self._error = error
        self._ran = True

    def due(self) -> int:
        """When to look at it next."""
        return self._clock.now() + (0 if self._ran else FAR)

    def done(self) -> bool:
        """Whether it has come to an end."""
        return self._ran

    def result(self) -> Any:
        """What it gave; raises what it raised."""
        if self._error is not None:
            raise self._error
        return self._result


class EventJobs:
    """Those of one process, the oldest first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.waiting: list[EventJob] = []

    def submit(self, work: Callable[[], Any]) -> EventJob:
        """It waits for its event."""
        job = EventJob(work, self._clock)
        self.waiting.append(job)
        return job

    def close(self) -> None:
        """Nobody looks at what is left."""
        self.waiting.clear()


class Bucket:
    """The store's files, as a broker that is at work uses them; ``mood`` is what comes of its requests now."""

    def __init__(self, files: Files, power: Power) -> None:
        self._files = files
        self._power = power
        self.mood = WORKS
        self.left = 0
        """After so many changes more it breaks off."""
        self.changed = 0
        """How often anything has changed."""

    def _operate(self, operation: str, path: str) -> None:
        if self.mood == FAILS or (self.mood == BREAKS and operation in EFFECTS and self.left <= 0):
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)
        if operation in EFFECTS:
            self._power.effect()
            self.left -= 1
            self.changed += 1

    def open(self, path: str, *, create: bool = False) -> Any:
        """A file; one that is looked for late is not there."""
        self._operate("open", path)
        if self.mood == LATE and not create:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return _Object(self._files.open(path, create=create), self._operate)

    def exists(self, path: str) -> bool:
        """Whether it is there."""
        return self._files.exists(path)

    def list(self, folder: str) -> list[str]:
        """Names."""
        return self._files.list(folder)

    def make_dir(self, folder: str) -> None:
        """Make a folder."""
        self._operate("make_dir", folder)
        self._files.make_dir(folder)

    def rename(self, source: str, target: str) -> None:
        """Give a file another name."""
        self._operate("rename", target)
        self._files.rename(source, target)

    def remove(self, path: str) -> None:
        """Remove a name."""
        self._operate("remove", path)
        self._files.remove(path)

    def fsync_dir(self, folder: str) -> None:
        """Make names durable."""
        self._operate("fsync_dir", folder)
        self._files.fsync_dir(folder)


class _Object:
    def __init__(self, file: Any, operate: Callable[[str, str], None]) -> None:
        self._file = file
        self._operate = operate
        self.path: str = file.path

    @property
    def size(self) -> int:
        return int(self._file.size)

    def append(self, data: bytes) -> int:
        self._operate("append", self.path)
        return int(self._file.append(data))

    def pread(self, position: int, length: int) -> bytes:
        return bytes(self._file.pread(position, length))

    def truncate(self, size: int) -> None:
        self._operate("truncate", self.path)
        self._file.truncate(size)

    def fsync(self) -> None:
        self._operate("fsync", self.path)
        self._file.fsync()

    def close(self) -> None:
        self._file.close()
