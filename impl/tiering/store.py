"""Object store, through fsspec: a folder by default, or any URL that fsspec supports.

The metadata log alone lists the contents. The store never requests a listing, so a late or cached one changes nothing.
A segment is several objects with its id in their names. Objects are never rewritten.
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
"""Bytes per write; S3 accepts parts from 5 MiB."""


@dataclass(slots=True)
class StoreCounts:
    """Numbers of requests, bytes and failures since the store was opened."""

    puts: int = 0
    gets: int = 0
    deletes: int = 0
    put_bytes: int = 0
    got_bytes: int = 0
    failures: int = 0

    @property
    def requests(self) -> int:
        """Number of requests of all kinds."""
        return self.puts + self.gets + self.deletes


class RemoteStore:
    """Named objects below ``root`` of an fsspec file system.

    Every failure is a ``RemoteStorageError``. The store is thread-safe if its file system is.
    """

    def __init__(self, filesystem: Any, root: str) -> None:
        self._fs = filesystem
        self._root = root.strip("/") if isinstance(filesystem, DurableFileSystem) else root.rstrip("/")
        self.counts = StoreCounts()

    @classmethod
    def in_files(cls, files: Files, root: str = "") -> RemoteStore:
        """Return a store in a folder of ``files``, real or simulated."""
        return cls(DurableFileSystem(files), root)

    @classmethod
    def at(cls, url: str | Path, **options: Any) -> RemoteStore:
        """Open the store at a folder's path or a URL.

        ``options`` go to the file system (for S3 ``client_kwargs`` ...). Raises ``RemoteStorageError`` if fsspec
        does not support the URL.
        """
        parts = urlsplit(str(url))
        if parts.scheme in ("", "file"):
            return cls.in_files(DiskFiles(parts.path))
        # One file system per broker, without a cache of listings: s3fs would answer ``info`` from it.
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
        """Write an object and return its size and CRC-32C. It is durable on return.

        After a failure, a part of it may exist; ``size`` reports how much.
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
        """Read an object from ``start`` up to ``end``; all by default, fewer at its end."""
        self.counts.gets += 1
        try:
            data = self._fs.cat_file(self._at(name), start=start, end=end)
        except Exception as error:
            raise self._failed("reading", name, error) from error
        self.counts.got_bytes += len(data)
        return bytes(data)

    def size(self, name: str) -> int:
        """Return the size of an object in bytes, or -1 if it does not exist."""
        self.counts.gets += 1
        try:
            return int(self._fs.info(self._at(name))["size"])
        except FileNotFoundError:
            return -1
        except Exception as error:
            raise self._failed("looking at", name, error) from error

    def delete(self, name: str) -> None:
        """Remove an object, if it exists."""
        self.counts.deletes += 1
        try:
            self._fs.rm_file(self._at(name))
        except FileNotFoundError:
            pass
        except Exception as error:
            raise self._failed("removing", name, error) from error
