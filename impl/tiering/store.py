"""The object store, through fsspec: a folder by default, anything else that fsspec knows by its URL.

What is in it is known from the metadata log alone: no listing is ever asked for, so that one that is late, or cached,
changes nothing. A segment is some objects that have its id in their names, and nothing is written to an object twice.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import google_crc32c
from fsspec.core import url_to_fs

from ..files.disk import DiskFiles
from ..files.interface import Files
from .errors import RemoteStorageError
from .filesystem import DurableFileSystem

CHUNK = 8 << 20
"""Bytes that are written at once; S3 takes parts from 5 MiB on."""


@dataclass(slots=True)
class StoreCounts:
    """What was asked of the store since it was opened."""

    puts: int = 0
    gets: int = 0
    deletes: int = 0
    put_bytes: int = 0
    got_bytes: int = 0
    failures: int = 0

    @property
    def requests(self) -> int:
        """All of them."""
        return self.puts + self.gets + self.deletes


class RemoteStore:
    """Objects by their names below ``root`` of a file system of fsspec's. Every failure is a ``RemoteStorageError``.

    May be asked from several threads at once where the file system may.
    """

    def __init__(self, filesystem: Any, root: str) -> None:
        self._fs = filesystem
        self._root = root.strip("/") if isinstance(filesystem, DurableFileSystem) else root.rstrip("/")
        self.counts = StoreCounts()

    @classmethod
    def in_files(cls, files: Files, root: str = "") -> RemoteStore:
        """A folder of ``files``: real or simulated."""
        return cls(DurableFileSystem(files), root)

    @classmethod
    def at(cls, url: str | Path, **options: Any) -> RemoteStore:
        """The store at a folder's path or a URL. ``options`` are the file system's (for S3 ``client_kwargs`` ...).

        Raises ``RemoteStorageError`` where fsspec has nothing for the URL.
        """
        parts = urlsplit(str(url))
        if parts.scheme in ("", "file"):
            return cls.in_files(DiskFiles(parts.path))
        # Each broker its own, and no listing of what was there is kept: s3fs would answer ``info`` by it.
        options = {"use_listings_cache": False, "skip_instance_cache": True, **options}
        try:
            filesystem, root = url_to_fs(str(url), **options)
        except (ImportError, ValueError) as error:
            mend = "give a folder, or install what the URL needs (for s3:// the extra 's3')"
            raise RemoteStorageError(f"{error}", str(url), mend) from error
        return cls(filesystem, root)

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if self._root else name

    def _failed(self, what: str, name: str, error: Exception) -> RemoteStorageError:
        self.counts.failures += 1
        return RemoteStorageError(f"{what} failed: {type(error).__name__}: {error}".replace("\n", " "), self._at(name))

    def put(self, name: str, chunks: Iterable[bytes]) -> tuple[int, int]:
        """Write an object; gives its size and CRC-32C. It is durable on return.

        Where it fails there may be a part of it: ``size`` tells.
        """
        crc = size = 0
        self.counts.puts += 1
        try:
            writer = self._fs.open(self._at(name), "wb", block_size=CHUNK)
            try:
                for chunk in chunks:
                    writer.write(chunk)
                    crc = google_crc32c.extend(crc, chunk)
                    size += len(chunk)
            except BaseException:
                writer.discard()
                raise
            writer.close()
        except Exception as error:
            raise self._failed("writing", name, error) from error
        self.counts.put_bytes += size
        return size, crc

    def get(self, name: str, start: int | None = None, end: int | None = None) -> bytes:
        """Bytes of an object: from ``start`` up to ``end``, all by default; fewer where it ends."""
        self.counts.gets += 1
        try:
            data = self._fs.cat_file(self._at(name), start=start, end=end)
        except Exception as error:
            raise self._failed("reading", name, error) from error
        self.counts.got_bytes += len(data)
        return bytes(data)

    def size(self, name: str) -> int:
        """How many bytes an object has, -1 where there is none."""
        self.counts.gets += 1
        try:
            return int(self._fs.info(self._at(name))["size"])
        except FileNotFoundError:
            return -1
        except Exception as error:
            raise self._failed("looking at", name, error) from error

    def delete(self, name: str) -> None:
        """Remove an object; nothing where there is none."""
        self.counts.deletes += 1
        try:
            self._fs.rm_file(self._at(name))
        except FileNotFoundError:
            pass
        except Exception as error:
            raise self._failed("removing", name, error) from error
