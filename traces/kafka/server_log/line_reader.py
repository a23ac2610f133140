"""Read the lines of a server log: plain text or compressed, in any layout of ``layouts.py``."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import IO, Final

from ....model.core.errors import BadInput
from ...compressed import DAMAGED, UTF_16, open_decompressed
from .json_documents import read_document
from .layouts import LayoutParser
from .line import Line
from .wrapped_lines import rejoin

LONGEST: Final = 1 << 20
"""Bytes of a line; the reader skips a longer one."""

_WIDE = re.compile(rb"[\t -~]\0[\t -~]\0[\t -~]\0")
"""UTF-16 without a byte order mark."""
_FIX = "name a node's server.log"


def read_lines(path: Path) -> Iterator[Line]:
    """Yield the lines that have a known layout; other lines are skipped.

    Raises:
        BadInput: The file cannot be read, is no regular file, or its compressed data is damaged.
    """
    parser = LayoutParser()
    lines = read_text_lines(path)
    head = list(islice(lines, 1))
    if head and head[0][1].lstrip("\ufeff \t")[:1] in ("{", "["):
        document = read_document(head[0][1], path)
        if document is not None:
            yield from parser.parse_value(1, document)
            return
    for number, text in rejoin(chain(head, lines)):
        yield from parser.parse(number, text)


def read_text_lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, from 1. Lines longer than ``LONGEST`` are left out."""
    number = 0
    try:
        if path.exists() and not path.is_file():
            what = "it is a folder" if path.is_dir() else "it is no regular file"
            raise BadInput(what, str(path), _FIX)
        with open_decompressed(path) as file:
            head = file.read(6)
            encoding = "utf-16-le" if _WIDE.match(head) else UTF_16.get(head[:2])
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
            text = line.decode("utf-8", "replace").rstrip("\r\n")
            # Old Macintosh files, and progress bars, have carriage returns alone.
            yield from text.split("\r") if "\r" in text else (text,)
            continue
        while not whole:
            rest = file.readline(LONGEST)
            whole = rest.endswith(b"\n") or len(rest) < LONGEST
        yield None


def _decoded_lines(file: IO[bytes], encoding: str) -> Iterator[str | None]:
    """Lines of UTF-16, as PowerShell writes it."""
    for line in file.read().decode(encoding, "replace").splitlines():
        yield line if len(line) < LONGEST else None
