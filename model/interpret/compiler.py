"""The C compiler that is there, and what it has compiled: kept on disk by the hash of all that it depends on.

A compiled text is loaded by ctypes. Its file ends in a digest of the file and of its own key, so that one that was cut,
changed or put there under another's name is noticed, and compiled again.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import platform
import shlex
import shutil
import stat
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from ..core.caches import cache_folder
from ..core.errors import BadInput
from ..core.temporary_folder import TemporaryFolder

FLAGS: Final = ("-O1", "-std=gnu11", "-fPIC", "-shared", "-pthread", "-w")
"""One function of some thousand short lines. With ``-O2`` gcc 12 took 1.5, 1.9 and 3 times as long, and the search then
1.05, 0.89 and 0.90 of its CPU time: kip-320 at 3/3/3/2, and ``snapshots`` and ``controller`` by default.
"""

MOST_KEPT: Final = 500
"""Files that are kept; each has some hundred KiB."""

_NAMES: Final = ("cc", "gcc", "clang")
_DIGEST: Final = 32
_FOLDER: Final = "compiled"
_SECONDS: Final = 600


@dataclass(frozen=True)
class Compiler:
    """A C compiler: the command, and the first line of what it says of its version."""

    command: tuple[str, ...]
    version: str

    @property
    def flags(self) -> tuple[str, ...]:
        """What it is told; on x86-64 to use all that this processor can do."""
        return (*FLAGS, "-march=native") if platform.machine() == "x86_64" else FLAGS


@cache
def find_compiler() -> Compiler | None:
    """The one that ``CC`` names, or ``cc``, ``gcc`` or ``clang``, or the one that ``ziglang`` brings; None without.

    Raises BadInput where ``CC`` names none.
    """
    if not sys.platform.startswith("linux"):
        return None
    named = shlex.split(os.environ.get("CC", ""))
    if named:
        version = _version(named)
        if version is None:
            raise BadInput(f"{shlex.join(named)} is no C compiler that runs", "CC", "name another one, or unset it")
        return Compiler(tuple(named), version)
    found = [[path] for name in _NAMES if (path := shutil.which(name))]
    if find_spec("ziglang") is not None:
        found.append([sys.executable, "-m", "ziglang", "cc"])
    for command in found:
        version = _version(command)
        if version is not None:
            return Compiler(tuple(command), version)
    return None


def _version(command: Sequence[str]) -> str | None:
    try:
        said = subprocess.run(  # noqa: S603 - the compiler of this machine, or the one that its user names
            [*command, "--version"], capture_output=True, text=True, timeout=60, check=True
        )
    except (OSError, subprocess.SubprocessError, UnicodeDecodeError):
        return None
    return said.stdout.partition("\n")[0].strip() or None


@cache
def _processor() -> str:
    """What this processor can do, as Linux says: compiled code of another one might not run here."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines():
            if line.startswith(("flags", "Features")):
                return line
    return platform.processor()


def _key(compiler: Compiler, text: str) -> bytes:
    parts = (text, *compiler.command, compiler.version, *compiler.flags, platform.machine(), _processor())
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=_DIGEST).digest()


def _digest(content: bytes, key: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=_DIGEST, key=key).digest()


_loaded: dict[bytes, ctypes.CDLL] = {}


def kept(compiler: Compiler, text: str) -> bool:
    """Whether the text has been compiled before."""
    key = _key(compiler, text)
    if key in _loaded:
        return True
    folder = cache_folder(_FOLDER)
    return folder is not None and _sound(_place(folder, key), key)


def _place(folder: Path, key: bytes) -> Path:
    return folder / f"{key.hex()}.so"


def compiled(compiler: Compiler, text: str) -> ctypes.CDLL:
    """A text, compiled and loaded. Raises BadInput where the compiler refuses it, or where nothing can be loaded."""
    key = _key(compiler, text)
    found = _loaded.get(key)
    if found is None:
        found = _loaded[key] = _load(compiler, text, key)
    return found


def _load(compiler: Compiler, text: str, key: bytes) -> ctypes.CDLL:
    folder = cache_folder(_FOLDER)
    if folder is not None:
        if _sound(_place(folder, key), key):
            return _opened(_place(folder, key))
        if _keeps(folder):
            # A full disk, or a folder that just went: the temporary folder may still do.
            with suppress(OSError, BadInput):
                return _compiled_in(folder, compiler, text, key)
    try:
        with TemporaryFolder("fencepost-compiled-") as own:
            return _opened(_compile(compiler, text, key, own))
    except OSError as error:
        raise BadInput(f"cannot write the compiled search: {error}", "--engine", "take batch, or set TMPDIR") from error


def _compiled_in(folder: Path, compiler: Compiler, text: str, key: bytes) -> ctypes.CDLL:
    """Compile into the cache. Raises OSError where it cannot be written."""
    with TemporaryFolder(".part-", folder) as own:
        opened = _opened(_compile(compiler, text, key, own).replace(_place(folder, key)))
    _forget(folder)
    return opened


def _forget(folder: Path) -> None:
    """Keep the newest files alone: a text that is being written has another hash each time."""
    with suppress(OSError):
        files = sorted(folder.glob("*.so"), key=lambda file: file.stat().st_mtime, reverse=True)
        for file in files[MOST_KEPT:]:
            file.unlink(missing_ok=True)


def _keeps(folder: Path) -> bool:
    """Whether there is a folder for it to which nobody else may write; without one this process alone has it."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        return _ours(folder.stat()) and os.access(folder, os.W_OK)
    except OSError:
        return False


def _compile(compiler: Compiler, text: str, key: bytes, folder: Path) -> Path:
    source, made = folder / "search.c", folder / "search.so"
    source.write_text(text, encoding="ascii")
    command = [*compiler.command, *compiler.flags, str(source), "-o", str(made)]
    try:
        done = subprocess.run(  # noqa: S603 - the same, and our own text
            command, capture_output=True, text=True, errors="replace", timeout=_SECONDS
        )
        said = done.stderr.strip().partition("\n")[0] if done.returncode else ""
        if done.returncode or not made.is_file():
            raise BadInput(f"{compiler.version} did not compile a search: {said}", "--engine", "take batch")
    except (OSError, subprocess.SubprocessError) as error:
        raise BadInput(f"{compiler.version} did not run: {error}", "--engine", "take batch") from error
    with made.open("r+b") as file:
        content = file.read()
        file.write(_digest(content, key))
        file.flush()
        os.fsync(file.fileno())
    return made


def _opened(path: Path) -> ctypes.CDLL:
    try:
        return ctypes.CDLL(str(path))
    except OSError as error:
        raise BadInput(f"what was compiled cannot be loaded: {error}", "--engine", "take batch") from error


def _ours(status: os.stat_result) -> bool:
    """Whether a file or folder is this user's, and nobody else may write to it."""
    return status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)


def _sound(path: Path, key: bytes) -> bool:
    """Whether a kept file is there, this user's own, and what was written under this key."""
    try:
        with path.open("rb") as file:
            status = os.fstat(file.fileno())
            if not stat.S_ISREG(status.st_mode) or not _ours(status) or not _ours(path.parent.stat()):
                return False
            content = file.read()
    except OSError:
        return False
    return len(content) > _DIGEST and _digest(content[:-_DIGEST], key) == content[-_DIGEST:]
