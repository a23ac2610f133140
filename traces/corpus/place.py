"""Where a corpus lies: a path of this machine, or a URI of a file system that Arrow knows (file, s3, gs, abfs, hdfs).

Only reading is asked of other file systems. Credentials are those that Arrow finds in the environment.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.fs as pafs

from ...model.core.errors import BadInput
from ...model.core.regular_file import NotRegularFileError, check_regular, open_regular, read_regular

_SCHEME: Final = re.compile(r"[a-z][a-z0-9+.-]*:/")
_MEND: Final = "name the folder of a corpus that you may read, by its path or as file:, s3:, gs:, abfs: or hdfs:"


def shown_path(path: Path | str) -> str:
    """A path as a message shows it: on one line, whatever its name holds."""
    name = str(path)
    return name if name.isprintable() else ascii(name)


@dataclass(frozen=True)
class Place:
    """A folder or file. ``where`` is its path, or its URI for a file system other than this machine's."""

    where: str

    @classmethod
    def of(cls, where: Path | str) -> Place:
        """The place of a path or URI; a file: URI of this machine is its path."""
        text = str(where)
        if not _SCHEME.match(text):
            return cls(text)
        # A URI that passed through a Path has one slash left.
        scheme, _, rest = text.partition(":")
        rest = rest.lstrip("/")
        if scheme == "file":
            return cls("/" + unquote(urlsplit(f"file:///{rest}").path).lstrip("/"))
        return cls(f"{scheme}://{rest}".rstrip("/"))

    @property
    def local(self) -> bool:
        """Whether it is a path of this machine."""
        return not _SCHEME.match(self.where)

    def absolute(self) -> Place:
        """The same place for a process that runs in another folder, such as a cluster's worker."""
        return Place(str(Path(self.where).absolute())) if self.local else self

    def __str__(self) -> str:
        return shown_path(self.where)

    def __truediv__(self, name: str) -> Place:
        """What is in this folder under a name."""
        return Place(str(Path(self.where) / name) if self.local else f"{self.where}/{name}")

    def source(self) -> dict[str, Any]:
        """The arguments of PyArrow's readers: ``source``, and ``filesystem`` where it is not the local one.

        Raises BadInput for a file system that Arrow does not know, or cannot reach; OSError for a local path that is no
        regular file.
        """
        if self.local:
            return {"source": arrow_source(self.where)}
        filesystem, path = self._opened()
        return {"source": path, "filesystem": filesystem}

    def _opened(self) -> tuple[Any, str]:
        try:
            filesystem, path = _from_uri(self.where)
        except (OSError, pa.ArrowException, ValueError) as error:
            raise BadInput(f"cannot be read: {_first(error)}", str(self), _MEND) from error
        return filesystem, path

    def names(self) -> list[str]:
        """What is in this folder, sorted. Raises BadInput where it cannot be read."""
        try:
            if self.local:
                return sorted(each.name for each in Path(self.where).iterdir())
            filesystem, path = self._opened()
            return sorted(info.base_name for info in filesystem.get_file_info(pafs.FileSelector(path)))
        except (OSError, pa.ArrowException) as error:
            raise BadInput(f"cannot be read: {_first(error)}", str(self), _MEND) from error

    def read(self) -> bytes:
        """The whole of this file. Raises BadInput where it cannot be read."""
        try:
            if self.local:
                return read_regular(self.where)
            filesystem, path = self._opened()
            with filesystem.open_input_stream(path) as stream:
                content: bytes = stream.read()
            return content
        except (OSError, pa.ArrowException) as error:
            raise BadInput(f"cannot be read: {_first(error)}", str(self), _MEND) from error

    def leads_out_of(self, folder: Place) -> bool:
        """Whether this is a symbolic link to a file outside a folder."""
        if not (self.local and folder.local):
            return False
        path = Path(self.where)
        try:
            return path.is_symlink() and not path.resolve().is_relative_to(Path(folder.where).resolve())
        except (OSError, RuntimeError):
            # A loop of links: opening it fails.
            return False

    def size(self) -> int | None:
        """The bytes of this file; None where there is no file of that name."""
        if self.local:
            file = Path(self.where)
            return file.stat().st_size if file.is_file() else None
        filesystem, path = self._opened()
        info = filesystem.get_file_info(path)
        return int(info.size) if info.type == pafs.FileType.File else None


def arrow_source(path: str) -> str | IO[bytes]:
    """What Arrow opens to read a file of this machine: its path, or an open file if its name is not UTF-8.

    Raises OSError for a path that is no regular file.
    """
    if is_utf8(path):
        check_regular(path)
        return path
    return open_regular(path)


def is_utf8(path: Path | str) -> bool:
    """Whether a path can be handed to Arrow, which encodes it in UTF-8."""
    try:
        str(path).encode()
    except UnicodeEncodeError:
        return False
    return True


def _from_uri(uri: str) -> tuple[Any, str]:
    """A file system, and the path in it."""
    found: tuple[Any, str] = pafs.FileSystem.from_uri(uri)
    return found


def _first(error: Exception) -> str:
    """What an error says, on one line."""
    if isinstance(error, NotRegularFileError):
        return str(error.strerror)
    if isinstance(error, OSError) and error.errno:
        return os.strerror(error.errno)
    lines = str(error).splitlines()
    return lines[0].rstrip(".") if lines else type(error).__name__
