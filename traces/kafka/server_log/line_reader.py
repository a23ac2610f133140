"""Read the lines of a server log: plain text or compressed, in any layout of ``layouts.py``."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final

from ....model.core.errors import BadInput
from ...compressed import DAMAGED, UTF_16, open_decompressed
from .layouts import LayoutParser
from .line import Line

LONGEST: Final = 1 << 20
"""Bytes of a line; the reader skips a longer one."""

_FIX = "name a node's server.log"


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines that have a known layout; other lines are skipped.

    Raises:
        BadInput: The file cannot be read, is no regular file, or its compressed data is damaged.
    """
    parser = LayoutParser()
    for number, text in read_text_lines(path):
        yield from parser.parse(number, text)


def read_text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, from 1. Lines longer than ``LONGEST`` are left out."""
    number = 0
    try:
        if path.exists() and not path.is_file():
            what = "it is a folder" if path.is_dir() else "it is no regular file"
            raise BadInput(what, str(path), _FIX)
        with open_decompressed(path) as file:
            encoding = UTF_16.get(file.read(2))
            file.seek(0)
            for line in _whole_lines(file) if encoding is None else _decoded_lines(file, encoding):
                number += 1
                if line is not None:
                    yield number, line
    except DAMAGED as damaged:
        where = f"{path}, line {number}" if number else str(path)
        raise BadInput(f"the compressed data is damaged after it: {damaged}", where, "copy the file again") from damaged
    except OSError as failed:
        raise BadInput(f"cannot be read: {failed.strerror or failed}", str(path), _FIX) from failed


def _whole_lines(file: IO[bytes]) -> Iterator[str | None]:
    while line := file.readline(LONGEST):
        whole = line.endswith(b"\n") or len(line) < LONGEST
        if whole:
            yield line.decode("utf-8", "replace").rstrip("\r\n")
            continue
        while not whole:
            rest = file.readline(LONGEST)
            whole = rest.endswith(b"\n") or len(rest) < LONGEST
        yield None


def _decoded_lines(file: IO[bytes], encoding: str) -> Iterator[str | None]:
    """Lines of UTF-16, as PowerShell writes it."""
    for line in file.read().decode(encoding, "replace").splitlines():
        yield line if len(line) < LONGEST else None
