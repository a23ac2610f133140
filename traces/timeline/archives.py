"""Zip and tar archives of logs, dumps and data directories."""

from __future__ import annotations

import tarfile
import zipfile
import zlib
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from .text_file import open_bytes

MAX_BYTES: Final = 4 << 30
"""Size of all members of one archive."""
_SUFFIXES: Final = (".gz", ".bz2", ".xz", ".tgz", ".tbz2", ".txz", ".tar", ".zip")
_TAR: Final = slice(257, 262)


def is_archive(path: Path) -> bool:
    """Whether a file is a zip or tar archive, compressed or not."""
    try:
        with open_bytes(path) as data:
            head = data.read(512)
    except BadInput:
        return False
    return head[:4] == b"PK\x03\x04" or head[_TAR] == b"ustar"


def unpack(path: Path, target: Path) -> Path:
    """Unpack an archive into a folder of its own name below ``target``, and return that folder.

    Raises:
        BadInput: The archive is damaged, encrypted or too large.
    """
    folder = target / archive_name(path)
    folder.mkdir(parents=True)
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as zipped:
                _refuse_large(path, sum(each.file_size for each in zipped.infolist()))
                zipped.extractall(folder)  # noqa: S202 - zipfile leaves the folder by no member
        else:
            with tarfile.open(path) as tar:
                _refuse_large(path, sum(each.size for each in tar.getmembers()))
                tar.extractall(folder, filter="data")
    except (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError) as failed:
        what = f"the archive cannot be unpacked: {str(failed).splitlines()[0] if str(failed) else 'it is damaged'}"
        raise BadInput(what, str(path), "copy it again, or unpack it and name the folder") from failed
    return folder


def archive_name(path: Path) -> str:
    """The name without the endings of archives: ``broker-1`` for ``broker-1.tar.gz``."""
    name = path.name
    while name.lower().endswith(_SUFFIXES):
        name = name[: name.rindex(".")]
    return name or path.name


def _refuse_large(path: Path, size: int) -> None:
    if size > MAX_BYTES:
        what = f"its members have {size:,} bytes, more than {MAX_BYTES:,}"
        raise BadInput(what, str(path), "unpack it and name the files that matter")
