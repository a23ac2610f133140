"""Unpack a bundled recording when it is first used, and keep it in the cache."""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Final

from ...model.core.caches import cache_folder
from ...model.core.errors import BadInput
from ...model.core.temporary_folder import TemporaryFolder
from .archive import is_unpacked, unpack

NAMES: Final = ("failover", "compacted", "tiered", "mining")
"""The recordings; the archive of each is ``NAME.tar.gz``."""

_temporary: dict[Path, TemporaryFolder] = {}
"""Where an archive is unpacked without a usable cache; removed when the process ends."""


def archive_of(name: str) -> Path:
    """Archive of a recording."""
    return Path(__file__).with_name(f"{name}.tar.gz")


def unpacked(name: str) -> Path:
    """Folder with the files of a bundled recording. Raises BadInput as ``unpacked_archive`` does."""
    return unpacked_archive(archive_of(name))


def unpacked_archive(archive: Path) -> Path:
    """Folder with an archive's files.

    The folder is in the cache, under the archive's name and digest. Without a cache that can be written, it is a
    temporary folder of this process.

    Raises:
        BadInput: The archive is damaged or missing, or nothing can be written.
    """
    root = cache_folder("bundled")
    if root is not None:
        folder = root / f"{archive.name.partition('.')[0]}-{_digest(archive)}"
        if _cached(archive, folder):
            return folder
    return _unpacked_temporarily(archive)


@cache
def _digest(archive: Path) -> str:
    try:
        return hashlib.sha256(archive.read_bytes()).hexdigest()[:16]
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", str(archive), "install Fencepost again") from error


@cache
def _cached(archive: Path, folder: Path) -> bool:
    """Have the archive's files in a folder of the cache; return whether that was possible.

    The files that are there are compared with the archive first: a changed recording would change verdicts.
    """
    if is_unpacked(archive, folder):
        return True
    try:
        folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with TemporaryFolder(".part-", folder.parent) as beside:
            part = beside / "unpacked"
            unpack(archive, part)
            with _locked(folder.parent):
                # Another process may have unpacked it in the meantime.
                if not is_unpacked(archive, folder):
                    with suppress(FileNotFoundError):
                        folder.rename(beside / "changed")
                    part.rename(folder)
    except OSError:
        return False
    return is_unpacked(archive, folder)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keep other processes from replacing files of a folder."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


def _unpacked_temporarily(archive: Path) -> Path:
    if archive not in _temporary:
        try:
            made = TemporaryFolder("fencepost-bundled-")
            unpack(archive, made.path)
        except OSError as error:
            mend = "set XDG_CACHE_HOME or TMPDIR to a writable folder with room"
            raise BadInput(f"cannot be unpacked: {error.strerror or error}", str(archive), mend) from error
        _temporary[archive] = made
    return _temporary[archive].path
