"""Pack a folder of recorded files into one archive with the same bytes for the same files.

python -m fencepost.traces.bundled.archive FOLDER ARCHIVE
"""

from __future__ import annotations

import gzip
import io
import tarfile
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Final

import cyclopts

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ..run_app import run_module
from ..write import write_whole

if TYPE_CHECKING:
    from collections.abc import Iterable

_DAMAGED: Final = (tarfile.TarError, gzip.BadGzipFile, zlib.error, EOFError)
_EXECUTABLE, _PLAIN, _FOLDER = 0o755, 0o644, 0o755
"""Modes of members: of a file's mode, Git records only whether its owner may execute it."""

app = cyclopts.App(name="fencepost.traces.bundled.archive", help_format="plaintext", version_flags=())


def pack(folder: Path, archive: Path, names: Iterable[str] | None = None) -> Path:
    """Pack a folder's files and empty folders, sorted by path, without times and owners; return the archive.

    Args:
        folder: Folder whose contents are packed.
        archive: File to write.
        names: Entries of the folder to pack; by default all.
    """
    entries = sorted(folder.iterdir()) if names is None else [folder / name for name in names]
    members = sorted(member for entry in entries for member in (entry, *entry.rglob("*")) if _is_member(member))
    with (
        archive.open("wb") as file,
        gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w") as tar,
    ):
        for path in members:
            member = tarfile.TarInfo(path.relative_to(folder).as_posix())
            if path.is_dir():
                member.type, member.mode = tarfile.DIRTYPE, _FOLDER
                tar.addfile(member)
                continue
            member.size = path.stat().st_size
            member.mode = _EXECUTABLE if path.stat().st_mode & 0o100 else _PLAIN
            with path.open("rb") as content:
                tar.addfile(member, content)
    return archive


def _is_member(path: Path) -> bool:
    """Whether a path has a member of its own: a file, or a folder without entries."""
    return path.is_file() or (path.is_dir() and not any(path.iterdir()))


def unpack(archive: Path, folder: Path) -> None:
    """Unpack an archive into a folder, which is made.

    Raises:
        BadInput: The archive is damaged.
        OSError: The folder cannot be written.
    """
    try:
        with _opened(archive) as tar:
            tar.extractall(folder, filter="data")
    except _DAMAGED as error:
        raise _damaged(archive, error) from error


def is_unpacked(archive: Path, folder: Path) -> bool:
    """Whether a folder holds the files of an archive, byte for byte, and no others.

    Raises:
        BadInput: The archive is damaged.
    """
    try:
        there = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if _is_member(path)}
    except OSError:
        return False
    try:
        with _opened(archive) as tar:
            for member in tar:
                if member.name not in there:
                    return False
                there.remove(member.name)
                content = tar.extractfile(member)
                if content is not None and not _holds(folder / member.name, content.read()):
                    return False
    except _DAMAGED as error:
        raise _damaged(archive, error) from error
    return not there


def _holds(path: Path, content: bytes) -> bool:
    try:
        return path.read_bytes() == content
    except OSError:
        return False


def _opened(archive: Path) -> tarfile.TarFile:
    """Open an archive; decompressing all of it first checks its checksum."""
    return tarfile.open(fileobj=io.BytesIO(gzip.decompress(archive.read_bytes())), mode="r:")


def _damaged(archive: Path, error: Exception) -> BadInput:
    why = " ".join(str(error).split())
    return BadInput(f"the archive is damaged ({why})", str(archive), "install Fencepost again")


@app.default
def command(folder: Path, archive: Path) -> ExitCode:
    """Pack a recorded folder.

    Parameters
    ----------
    folder
        Folder that a recorder wrote.
    archive
        Archive to write (.tar.gz).
    """
    if not folder.is_dir():
        raise BadInput("there is no such folder", str(folder), "name a folder that a recorder wrote")
    write_whole(archive, lambda part: pack(folder, part))
    return ExitCode.DONE


if __name__ == "__main__":
    run_module(app)
