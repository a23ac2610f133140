"""Files that may be compressed with gzip, bzip2 or xz, whatever their names."""

from __future__ import annotations

import bz2
import gzip
import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Final

UTF_16: Final = {b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
"""Encodings by the byte order mark of a text file."""

DAMAGED: Final = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)
"""The exceptions of damaged compressed data; a BadGzipFile is an OSError too."""

_OPENERS: Final[tuple[tuple[bytes, Any], ...]] = (
    (b"\x1f\x8b", gzip.open),
    (b"BZh", bz2.open),
    (b"\xfd7zXZ\x00", lzma.open),
)


@contextmanager
def open_decompressed(path: Path) -> Iterator[IO[bytes]]:
    """Open a file in bytes, decompressed. Raises OSError, and while it is read those of ``DAMAGED``."""
    with path.open("rb") as raw:
        head = raw.read(6)
        raw.seek(0)
        opener = next((each for magic, each in _OPENERS if head.startswith(magic)), None)
        if opener is None:
            yield raw
            return
        with opener(raw, "rb") as data:
            yield data
