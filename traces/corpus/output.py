"""A folder that appears under its name only when all that belongs in it is there."""

from __future__ import annotations

import fcntl
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex

from ...model.core.errors import BadInput
from .place import shown_path

_MEND = "name a folder that is not there yet, in one that is there, writable and has room"


def refuse_taken(out: Path) -> None:
    """Raise BadInput where a new folder cannot be made at this place, before any work is done for it."""
    try:
        taken = out.is_dir() and any(out.iterdir())
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", shown_path(out), _MEND) from error
    if taken:
        raise BadInput("the folder is there already, and not empty", shown_path(out), _MEND)
    if out.exists() and not out.is_dir():
        raise BadInput("it is there already, and no folder", shown_path(out), _MEND)
    parent = out.absolute().parent
    if not parent.is_dir():
        raise BadInput("there is no such folder to put it in", shown_path(out), _MEND)
    if not os.access(parent, os.W_OK):
        raise BadInput("cannot be written: Permission denied", shown_path(out), _MEND)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """A hidden folder beside ``out``, renamed to it when the block ends, removed when that ends in an exception.

    Raises BadInput where ``out`` is there already and not empty, or cannot be written.
    """
    refuse_taken(out)
    out = out.absolute()
    part = hidden(out)
    try:
        lock = _make_locked(part)
    except OSError as error:
        # Whatever is there already is somebody else's.
        raise BadInput(f"cannot be written: {error.strerror}", shown_path(out), _MEND) from error
    remove_leftovers(out)
    try:
        yield part
        # What a task that was killed has left; another has done its work.
        for left in part.glob(".*.part"):
            left.unlink()
        _sync(part)
        part.rename(out)
        _sync(out.parent)
    except OSError as error:
        why = error.strerror or str(error)
        raise BadInput(f"cannot be written: {why}", shown_path(error.filename or out), _MEND) from error
    finally:
        shutil.rmtree(part, ignore_errors=True)
        os.close(lock)


def _make_locked(part: Path) -> int:
    """Make a folder, and lock it until the returned descriptor is closed: by ``remove_leftovers`` of no other process.

    Raises OSError where the folder cannot be made. Some file systems of a network have no locks.
    """
    with ExitStack() as held:
        # Between the two steps no other process may find the folder without a lock.
        with suppress(OSError):
            held.enter_context(_locked(part.parent))
        part.mkdir()
        lock = os.open(part, os.O_RDONLY | os.O_CLOEXEC)
        with suppress(OSError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock


def remove_leftovers(out: Path) -> None:
    """Remove the hidden folders that killed processes left of ``out``; a folder of a live process is locked."""
    name = re.compile(rf"\.{re.escape(out.name)}\.[0-9a-f]{{16}}\.part")
    with suppress(OSError), _locked(out.parent):
        for path in sorted(out.parent.iterdir()):
            if name.fullmatch(path.name) and path.is_dir() and not path.is_symlink():
                with suppress(OSError), _locked(path, fcntl.LOCK_NB):
                    shutil.rmtree(path, ignore_errors=True)


@contextmanager
def _locked(folder: Path, flags: int = 0) -> Iterator[None]:
    """Hold a folder's lock. Raises OSError where that is not possible, and with ``LOCK_NB`` where it is taken."""
    handle = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | flags)
        yield
    finally:
        os.close(handle)


def hidden(path: Path) -> Path:
    """A name beside ``path`` that nobody else has: process ids repeat from machine to machine, and from run to run.

    What is made under it has the permissions that the umask gives, as other users' workers may write into it.
    """
    return path.with_name(f".{path.name}.{token_hex(8)}.part")


def _sync(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
