"""What a directory holds, as its manifest says: of what search it is, the levels that are finished, and how it ended.

The manifest is written by rename after everything that it names is on disk, so that whoever comes after a crash finds
the last finished level. Its own digest stands in it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any, Final

from ...core.errors import BadInput
from ...core.ground import System
from ...core.regular_file import open_regular, read_regular
from ...interpret.packing import Packing
from ...interpret.staged import source_of
from ..result import Query
from .files import DIGEST, DiskFull, Keys, content_of, digest, sync_folder

FORMAT: Final = 1
"""Of the files, their order and the manifest."""

MANIFEST: Final = "manifest.json"
LOCK: Final = "lock"
_PART: Final = "manifest.part"
_OURS: Final = re.compile(r"(level|spill|run)-[0-9]{5,}(-[0-9a-f]{12})?(-actions)?\.part")
"""What a process leaves behind that was killed."""

_ANOTHER: Final = "give a directory of its own, or remove this one"


@dataclass(frozen=True)
class LevelFile:
    """A finished level: its states, and the digest of its file."""

    states: int
    digest: str


@dataclass(frozen=True)
class Ending:
    """How a search ended. ``chain``: keys in hexadecimal, from the initial state to the one that breaks a promise.

    ``violated``: the invariant that the last of them breaks; None where it has a step by this instance that leaves the
    domains. ``chain`` is None where all that is reachable was seen.
    """

    violated: str | None = None
    instance: int | None = None
    chain: list[list[str]] | None = None


@dataclass
class Content:
    """What the manifest says beside what it is of: levels in order, and what the expanded ones came to.

    ``coverage``: by action how often it was enabled, and how often it found a new state. ``seconds``: what it took.
    """

    levels: list[LevelFile] = field(default_factory=list)
    coverage: dict[str, tuple[int, int]] = field(default_factory=dict)
    witnesses: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    ending: Ending | None = None

    @property
    def states(self) -> int:
        """All that were found."""
        return sum(level.states for level in self.levels)


def level_path(folder: Path, number: int) -> Path:
    """The file of a level; that of the initial state is 0."""
    return folder / f"level-{number:05}.keys"


def of_query(query: Query) -> dict[str, Any]:
    """What a directory is of: a search goes on only where all of it is the same."""
    traced = query.system.traced
    return {
        "format": FORMAT,
        "fencepost": version("fencepost"),
        "protocol": traced.protocol.name,
        "variant": traced.variant.name,
        "constants": dict(query.system.constants),
        "invariants": list(query.invariants),
        "symmetry": query.symmetry,
        "byteorder": sys.byteorder,
        "text": text_digest(query.system),
    }


def text_digest(system: System) -> str:
    """Of all that a search depends on: the variant's text, less its dropped guards, its cells, its initial state."""
    fields = [(each.word, each.shift, each.bits, each.low, each.high) for each in Packing(system.layout).fields]
    actions = [instance.action for instance in system.instances]
    parts = (source_of(system), repr(fields), repr(system.initial), repr(actions))
    return hashlib.blake2b("\0".join(parts).encode(), digest_size=DIGEST).hexdigest()


def _sealed(told: Mapping[str, Any]) -> str:
    text = json.dumps(told, sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=DIGEST).hexdigest()


class Directory:
    """A directory of one search, which no other process takes meanwhile. ``content``: what its manifest says.

    One that is not there, or empty, is begun. Raises BadInput for one of another search, for one with other files and
    no manifest, and where a file is cut, changed or missing; nothing is written then.
    """

    def __init__(self, folder: Path, query: Query) -> None:
        self.folder = folder
        self.words = Packing(query.system.layout).words
        self._of = of_query(query)
        self._lock: IO[bytes] | None = None
        try:
            folder.mkdir(parents=False, exist_ok=True)
            found = sorted(path.name for path in folder.iterdir())
        except OSError as error:
            raise BadInput(f"cannot be a directory of states: {error.strerror}", str(folder), "name another") from error
        if MANIFEST not in found and set(found) - {LOCK, _PART}:
            raise BadInput("it has files, and no manifest of an exploration", str(folder), "name an empty directory")
        self._take()
        try:
            self.content = self._read() if MANIFEST in found else Content()
            self.clear()
            if MANIFEST not in found:
                self.write()
        except BaseException:
            self.release()
            raise

    def _take(self) -> None:
        try:
            self._lock = open_regular(self.folder / LOCK, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            self.release()
            raise BadInput(
                "another process explores in it", str(self.folder), "wait for it, or name another"
            ) from error
        except OSError as error:
            raise BadInput(f"cannot write: {error.strerror}", str(self.folder), "name another directory") from error

    def release(self) -> None:
        """Let others have it."""
        if self._lock is not None:
            self._lock.close()

    def clear(self, runs: bool = True) -> None:
        """Remove what was not finished, by us or by one that was killed: files of names that are ours alone.

        ``runs``: those of ``known.py``, too.
        """
        for path in self.folder.iterdir():
            found = _OURS.fullmatch(path.name)
            if found and (runs or found[1] != "run") and not path.is_symlink():
                path.unlink(missing_ok=True)

    def _read(self) -> Content:
        where = self.folder / MANIFEST
        try:
            told = json.loads(read_regular(where))
            seal = told.pop("digest")
            if seal != _sealed(told):
                raise ValueError("digest")
            of = told.pop("of")
            if of["format"] != FORMAT:
                raise BadInput(f"it has format {of['format']}, and this is {FORMAT}", str(where), _ANOTHER)
            self._refuse_other(of)
            content = _content(told)
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror}", str(where), _ANOTHER) from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise BadInput("it is cut or changed, or no manifest of an exploration", str(where), _ANOTHER) from error
        for number, level in enumerate(content.levels):
            self._check(number, level)
        return content

    def _refuse_other(self, of: Mapping[str, Any]) -> None:
        for name, ours in self._of.items():
            if of.get(name) != ours:
                if name == "text":
                    what = f"it is of another text of {of['protocol']} {of['variant']}"
                else:
                    what = f"it is of {name} {_shown(of.get(name))}, and this is of {_shown(ours)}"
                raise BadInput(what, str(self.folder), _ANOTHER)

    def _check(self, number: int, level: LevelFile) -> None:
        path = level_path(self.folder, number)
        found = digest()
        try:
            size = path.stat().st_size
            if size != level.states * 8 * self.words:
                raise BadInput(f"it is cut or changed: {size:,} bytes", str(path), _ANOTHER)
            for keys in Keys(path, level.states, self.words).chunks():
                found.update(content_of(keys))
        except OSError as error:
            raise BadInput(f"cannot be read: {error.strerror}", str(path), _ANOTHER) from error
        if found.hexdigest() != level.digest:
            raise BadInput("it was changed", str(path), _ANOTHER)

    def level(self, number: int) -> Keys:
        """The states of a finished level."""
        return Keys(level_path(self.folder, number), self.content.levels[number].states, self.words)

    def write(self) -> None:
        """Write the manifest, whole or not at all. Raises DiskFull."""
        told: dict[str, Any] = {"of": self._of, **asdict(self.content)}
        told["digest"] = _sealed(json.loads(json.dumps(told)))
        part = self.folder / _PART
        try:
            with open_regular(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC) as file:
                file.write(f"{json.dumps(told, indent=1)}\n".encode("ascii"))
                file.flush()
                os.fsync(file.fileno())
            part.replace(self.folder / MANIFEST)
            sync_folder(self.folder)
        except OSError as error:
            raise DiskFull(f"{self.folder} takes no more: {error.strerror}") from error

    @property
    def bytes(self) -> int:
        """What the finished levels take on disk."""
        return self.content.states * 8 * self.words


def _shown(value: object) -> str:
    if isinstance(value, dict):
        return " ".join(f"{name} {each}" for name, each in value.items())
    return ", ".join(map(str, value)) if isinstance(value, list) else str(value)


def _content(told: Mapping[str, Any]) -> Content:
    ending = told["ending"]
    return Content(
        [LevelFile(**level) for level in told["levels"]],
        {name: (int(seen), int(new)) for name, (seen, new) in told["coverage"].items()},
        {name: int(count) for name, count in told["witnesses"].items()},
        float(told["seconds"]),
        None if ending is None else Ending(**ending),
    )
