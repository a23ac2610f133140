"""Text files that may be compressed, or in UTF-16 as PowerShell writes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from typing import IO

from ...model.core.errors import BadInput
from ..compressed import DAMAGED, UTF_16, open_decompressed


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that may be compressed.

    Raises:
        BadInput: The file cannot be read, or its compressed data is damaged; also inside the block.
    """
    try:
        with open_decompressed(path) as data:
            yield data
    except DAMAGED as damaged:
        raise BadInput(f"the compressed data is damaged: {damaged}", str(path), "copy the file again") from damaged
    except OSError as failed:
        why = failed.strerror or str(failed)
        raise BadInput(f"cannot be read: {why}", str(path), "name a file that you may read") from failed


@contextmanager
def open_text(path: Path, *, errors: str = "strict") -> Iterator[IO[str]]:
    """Open a file as text, whatever its lines' length.

    Raises:
        BadInput: The file cannot be read, or its compressed data is damaged; also inside the block.
    """
    with open_bytes(path) as data:
        start = data.read(2)
        data.seek(0)
        encoding = "utf-16" if start in UTF_16 else "utf-8-sig"
        with TextIOWrapper(data, encoding=encoding, errors=errors) as text:
            yield text


def read_head(path: Path, size: int) -> str:
    """Return the first characters of a file, as far as they can be read; empty for a folder."""
    if not path.is_file():
        return ""
    try:
        with open_text(path, errors="replace") as file:
            return file.read(size)
    except BadInput:
        return ""
