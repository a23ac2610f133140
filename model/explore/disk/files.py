"""Files of keys: written once from first to last, synced, and only then given their name.

A file says nothing of itself: the manifest has its length and its digest, so that one that was cut or changed is found.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...core.errors import BadInput
from ...core.regular_file import open_regular
from .order import BITS, Actions, Rows, order_of

CHUNK: Final = 1 << 16
"""Keys that are read at once."""

PADDING: Final = 32
"""Rows past the last key of a chunk that may be read: the compiled engine reads whole vectors, whatever is in them."""

RESERVED: Final = 64 << 20
"""Bytes of the disk that are left to others."""

DIGEST: Final = 16


class DiskFull(Exception):
    """There is no room for what is to be written; the text says where, and how much is there."""


def content_of(array: npt.NDArray[Any]) -> memoryview:
    """The bytes of an array, to be read or written."""
    view: Any = array.reshape(-1)
    return memoryview(view).cast("B")


def digest() -> Any:
    """A new digest of a file's content."""
    return hashlib.blake2b(digest_size=DIGEST)


def free_bytes(folder: Path) -> int:
    """Bytes that this user may still write in the file system of a folder."""
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize


def sync_folder(folder: Path) -> None:
    """Have the names in a folder on disk."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


class Writer:
    """A file that is being written under the name ``part``. Raises DiskFull before there is no room, or for any error.

    ``count``: keys so far. ``bytes``: of all that was written.
    """

    def __init__(self, part: Path) -> None:
        self.part = part
        self.count = 0
        self.bytes = 0
        self._digest = digest()
        try:
            self._file = part.open("wb", buffering=0)
        except OSError as error:
            raise self._failed(error) from error

    def _failed(self, error: OSError) -> DiskFull:
        return DiskFull(f"{self.part.parent} takes no more: {error.strerror}")

    def write(self, keys: Rows) -> None:
        """Append keys, shape (n, words), which come after all before."""
        self.append(np.ascontiguousarray(keys, dtype=np.uint64))
        self.count += len(keys)

    def append(self, values: npt.NDArray[Any]) -> None:
        """Append the bytes of an array."""
        if not values.size:
            return
        free = free_bytes(self.part.parent)
        if free < values.nbytes + RESERVED:
            raise DiskFull(f"{self.part.parent} has {free >> 20:,} MiB left, of which {RESERVED >> 20} are not taken")
        content = content_of(values)
        self._digest.update(content)
        try:
            while content:
                content = content[self._file.write(content) :]
        except OSError as error:
            raise self._failed(error) from error
        self.bytes += values.nbytes

    def finish(self, path: Path) -> str:
        """Sync it, and give it its name. The digest of its content."""
        try:
            os.fsync(self._file.fileno())
            self._file.close()
            self.part.replace(path)
            sync_folder(path.parent)
        except OSError as error:
            raise self._failed(error) from error
        return str(self._digest.hexdigest())

    def close(self) -> None:
        """Write no more, and leave it without a name."""
        self._file.close()

    def discard(self) -> None:
        """Close and remove it; without effect once it has its name."""
        self._file.close()
        with suppress(OSError):
            self.part.unlink(missing_ok=True)


class Keys:
    """A file of ``count`` keys of so many words. Raises BadInput where it is shorter."""

    def __init__(self, path: Path, count: int, words: int) -> None:
        self.path = path
        self.count = count
        self.words = words

    def _short(self) -> BadInput:
        return BadInput("it is cut", str(self.path), "give a directory of its own, or remove this one")

    def chunks(self, begins: int = 0, ends: int | None = None) -> Iterator[Rows]:
        """The keys from one place to another, in order, ``CHUNK`` at once. A chunk is valid until the next one."""
        ends = self.count if ends is None else ends
        buffer = np.zeros((min(CHUNK, ends - begins) + PADDING, self.words), dtype=np.uint64)
        with open_regular(self.path, buffering=0) as file:
            file.seek(begins * 8 * self.words)
            for at in range(begins, ends, CHUNK):
                rows = buffer[: min(CHUNK, ends - at)]
                self.read(file, content_of(rows))
                yield rows

    def read(self, file: Any, into: memoryview) -> None:
        """Fill ``into`` from where the file stands."""
        while into:
            got = file.readinto(into)
            if not got:
                raise self._short()
            into = into[got:]

    def place(self, order: int) -> int:
        """How many of the keys come before this hash: 2**64 is after all."""
        if order >= 1 << BITS:
            return self.count
        low, high = 0, self.count
        row = np.zeros((1, self.words), dtype=np.uint64)
        with open_regular(self.path, buffering=0) as file:
            while low < high:
                middle = (low + high) // 2
                file.seek(middle * 8 * self.words)
                self.read(file, content_of(row))
                if int(order_of(row)[0]) < order:
                    low = middle + 1
                else:
                    high = middle
        return low


@dataclass(frozen=True)
class Spill:
    """Candidates of a level that went to disk: their keys in order, and the action of each in another file."""

    keys: Keys
    actions: Path

    def chunks(self, begins: int, ends: int) -> Iterator[tuple[Rows, Actions]]:
        """Keys and actions from one place to another, in order."""
        with open_regular(self.actions, buffering=0) as file:
            file.seek(2 * begins)
            for some in self.keys.chunks(begins, ends):
                actions = np.empty(len(some), dtype=np.uint16)
                self.keys.read(file, content_of(actions))
                yield some, actions


def spill(folder: Path, name: str, words: int, found: Iterable[tuple[Rows, Actions]]) -> Spill:
    """Write candidates, which come in order. They are read again before the search goes on. Raises DiskFull."""
    keys = Writer(folder / f"spill-{name}.part")
    try:
        beside = Writer(folder / f"spill-{name}-actions.part")
        try:
            for some, actions in found:
                keys.write(some)
                beside.append(actions)
        finally:
            beside.close()
    finally:
        keys.close()
    return Spill(Keys(keys.part, keys.count, words), beside.part)
