"""``Files`` in memory: deterministic, and with a crash that leaves no more than POSIX promises.

Each file keeps two contents: what is written, and what would be there after a crash, with the list of the writes and
cuts between the two. ``fsync`` carries that list over; a crash carries over a part of it that the seed decides: all,
none, a beginning, a selection, or a selection out of order, with each write whole, missing or with a hole torn into it
at any byte. Each folder does the same with its names: every creation, renaming and removal that was not synced
survives or not by itself.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

Hook = Callable[[str, str], None]


class _Write(NamedTuple):
    position: int
    data: bytes


class _Cut(NamedTuple):
    size: int


_Change = _Write | _Cut


@dataclass(slots=True, eq=False)
class _FileNode:
    live: bytearray = field(default_factory=bytearray)
    durable: bytearray = field(default_factory=bytearray)
    pending: list[_Change] = field(default_factory=list)

    def sync(self) -> None:
        for change in self.pending:
            _apply(self.durable, change)
        self.pending.clear()


@dataclass(slots=True, eq=False)
class _FolderNode:
    live: dict[str, _Node] = field(default_factory=dict)
    durable: dict[str, _Node] = field(default_factory=dict)
    pending: list[_Entry] = field(default_factory=list)

    def change(self, *entry: tuple[str, _Node | None]) -> None:
        """Set names or, with ``None``, remove them: one change, that survives a crash as one or not at all."""
        self.pending.append(entry)
        _enter(self.live, entry)

    def sync(self) -> None:
        for entry in self.pending:
            _enter(self.durable, entry)
        self.pending.clear()


_Node = _FileNode | _FolderNode
_Entry = tuple[tuple[str, _Node | None], ...]


def _apply(content: bytearray, change: _Change) -> None:
    if isinstance(change, _Cut):
        del content[change.size :]
        return
    position, data = change
    if position > len(content):  # an earlier write was lost: a file has zeros in such a hole
        content.extend(bytes(position - len(content)))
    content[position : position + len(data)] = data


def _enter(names: dict[str, _Node], entry: _Entry) -> None:
    for name, node in entry:
        if node is None:
            names.pop(name, None)
        else:
            names[name] = node


class SimulatedFile:
    """An open file. After a crash it answers every call with ``EBADF``: its process is gone."""

    def __init__(self, owner: SimulatedFiles, node: _FileNode, path: str) -> None:
        self._owner = owner
        self._node = node
        self.path = path
        self._boot = owner.crashes
        owner.open_files += 1

    def _live(self) -> bytearray:
        if self._boot != self._owner.crashes:
            raise OSError(errno.EBADF, "the file was open when the machine crashed, or is closed", self.path)
        return self._node.live

    @property
    def size(self) -> int:
        """Bytes in the file."""
        return len(self._live())

    def append(self, data: bytes) -> int:
        """Write at the end; where the disk is full, as much as there is room for, and then ``ENOSPC``."""
        live = self._live()
        if self._owner.hook is not None:
            self._owner.hook("append", self.path)
        position = len(live)
        room = self._owner.room()
        kept = bytes(data) if len(data) <= room else bytes(data[:room])
        live += kept
        self._owner.changes += 1
        if kept:
            self._node.pending.append(_Write(position, kept))
        self._owner.used += len(kept)
        if len(kept) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), self.path)
        return position

    def pread(self, position: int, length: int) -> bytes:
        """Bytes from ``position``."""
        live = self._live()
        if self._owner.hook is not None:
            self._owner.hook("pread", self.path)
        return bytes(live[position : position + max(length, 0)])

    def truncate(self, size: int) -> None:
        """Cut to ``size`` bytes."""
        live = self._live()
        if self._owner.hook is not None:
            self._owner.hook("truncate", self.path)
        if size < len(live):
            self._owner.used -= len(live) - size
            del live[size:]
            self._owner.changes += 1
            self._node.pending.append(_Cut(size))

    def fsync(self) -> None:
        """Carry everything over. Where the hook fails it, a part by chance, and the rest is never tried again."""
        self._live()
        try:
            if self._owner.hook is not None:
                self._owner.hook("fsync", self.path)
        except OSError:
            _survive(self._node.durable, self._node.pending, self._owner.chance)
            self._node.pending.clear()
            raise
        self._node.sync()

    def close(self) -> None:
        """Refuse all further use."""
        if self._boot == self._owner.crashes:
            self._owner.open_files -= 1
        self._boot = -1


class SimulatedFiles:
    """A disk in memory.

    ``seed`` decides what failed syncs leave. ``capacity`` is in bytes of file content, ``None`` for no bound; it may be
    set at any time. ``hook`` is called as ``hook(operation, path)`` before each operation of files and folders
    (``open append pread truncate fsync list make_dir rename remove fsync_dir``); an ``OSError`` that it raises is what
    the operation fails with. ``changes`` counts what has changed names or contents: as long as it stays, so do they.
    ``open_files`` counts what is open now.
    """

    def __init__(self, seed: int = 0, *, capacity: int | None = None, hook: Hook | None = None) -> None:
        self.seed = seed
        self.chance = random.Random(seed)  # noqa: S311 - repeatable on purpose
        self.capacity = capacity
        self.hook = hook
        self.used = 0
        self.crashes = 0
        self.changes = 0
        self.open_files = 0
        self._root = _FolderNode()

    def room(self) -> int:
        """Bytes that can still be written."""
        return 1 << 62 if self.capacity is None else max(0, self.capacity - self.used)

    # -- the interface ----------------------------------------------------------------------------------------------

    def open(self, path: str, *, create: bool = False) -> SimulatedFile:
        """Open for reading and writing."""
        self._called("open", path)
        folder, name = self._parent(path)
        node = folder.live.get(name)
        if node is None:
            if not create:
                raise _missing(path)
            node = _FileNode()
            self._change(folder, (name, node))
        if isinstance(node, _FolderNode):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        return SimulatedFile(self, node, path)

    def exists(self, path: str) -> bool:
        """Whether the path is there."""
        try:
            folder, name = self._parent(path)
        except OSError:
            return False
        return not path or name in folder.live

    def list(self, folder: str) -> list[str]:
        """Names, sorted."""
        self._called("list", folder)
        return sorted(self._folder(folder).live)

    def make_dir(self, folder: str) -> None:
        """One level; its parent must be there."""
        self._called("make_dir", folder)
        parent, name = self._parent(folder)
        node = parent.live.get(name)
        if node is None:
            self._change(parent, (name, _FolderNode()))
        elif isinstance(node, _FileNode):
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), folder)

    def rename(self, source: str, target: str) -> None:
        """Within one folder: all that a log needs, and all that is atomic on every file system."""
        self._called("rename", source)
        folder, old = self._parent(source)
        other, new = self._parent(target)
        if other is not folder:
            raise OSError(errno.EXDEV, "a rename into another folder", target)
        node = folder.live.get(old)
        if node is None:
            raise _missing(source)
        replaced = folder.live.get(new)
        if isinstance(replaced, _FileNode) and replaced is not node:
            self.used -= len(replaced.live)
        self._change(folder, (old, None), (new, node))

    def remove(self, path: str) -> None:
        """Remove a file, or a folder with nothing in it."""
        self._called("remove", path)
        folder, name = self._parent(path)
        node = folder.live.get(name)
        if node is None:
            raise _missing(path)
        if isinstance(node, _FolderNode):
            if node.live:
                raise OSError(errno.ENOTEMPTY, os.strerror(errno.ENOTEMPTY), path)
        else:
            self.used -= len(node.live)
        self._change(folder, (name, None))

    def fsync_dir(self, folder: str) -> None:
        """Carry the folder's own names over; not those of the folders in it."""
        node = self._folder(folder)
        try:
            self._called("fsync_dir", folder)
        except OSError:
            _survive_names(node.durable, node.pending, self.chance)
            node.pending.clear()
            raise
        node.sync()

    # -- crashes ----------------------------------------------------------------------------------------------------

    def crash(self, seed: int) -> None:
        """Power off and on: what was not synced survives as ``seed`` has it. Open files are gone."""
        self._root = _crashed_folder(self._root, random.Random(seed), {})  # noqa: S311 - repeatable on purpose
        self.crashes += 1
        self.open_files = 0
        self.changes += 1
        self.used = _bytes_in(self._root)

    def crashed_copy(self, seed: int) -> SimulatedFiles:
        """The disk as ``crash(seed)`` would leave it now, by itself; this one goes on untouched."""
        copy = SimulatedFiles(seed, capacity=self.capacity)
        copy._root = _crashed_folder(self._root, random.Random(seed), {})  # noqa: S311 - repeatable on purpose
        copy.used = _bytes_in(copy._root)
        return copy

    # -- looking ----------------------------------------------------------------------------------------------------

    def image(self) -> Iterator[tuple[str, bytes, bytes, int]]:
        """Each name that is there, or would be after a crash, sorted: its path; content; content that is synced; how
        many changes of it are not. Of a folder, and where a name is not there, the content is empty.
        """
        yield from _image(self._root, "")

    # -- names ------------------------------------------------------------------------------------------------------

    def _change(self, folder: _FolderNode, *entry: tuple[str, _Node | None]) -> None:
        self.changes += 1
        folder.change(*entry)

    def _called(self, operation: str, path: str) -> None:
        if self.hook is not None:
            self.hook(operation, path)

    def _folder(self, path: str) -> _FolderNode:
        node: _Node | None = self._root
        for name in path.split("/") if path else ():
            if node is None:
                break  # a folder that is not there is ENOENT, as by POSIX, however far up it is
            if not isinstance(node, _FolderNode):
                raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
            node = node.live.get(name)
        if node is None:
            raise _missing(path)
        if isinstance(node, _FileNode):
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), path)
        return node

    def _parent(self, path: str) -> tuple[_FolderNode, str]:
        folder, _, name = path.rpartition("/")
        return self._folder(folder), name


def _missing(path: str) -> FileNotFoundError:
    return FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)


def _survive(content: bytearray, pending: list[_Change], chance: random.Random) -> None:
    """Carry over the part of ``pending`` that a crash leaves."""
    how = chance.choice(("all", "none", "prefix", "selection", "reordered"))
    if how == "none":
        return
    changes = list(pending)
    if how == "prefix" and changes:
        del changes[chance.randrange(len(changes)) + 1 :]
        last = changes[-1]
        if isinstance(last, _Write):
            changes[-1] = _Write(last.position, last.data[: chance.randint(0, len(last.data))])
    elif how != "all":
        changes = [torn for change in changes for torn in _torn(change, chance)]
        if how == "reordered":
            chance.shuffle(changes)
    for change in changes:
        _apply(content, change)


def _torn(change: _Change, chance: random.Random) -> list[_Change]:
    """Whole, lost, or (a write) with a hole at any byte: what is before and behind it as two writes."""
    how = chance.randrange(4)
    if how < 2 or (how == 2 and isinstance(change, _Cut)):
        return [change]
    if how == 3 or isinstance(change, _Cut):
        return []
    size = len(change.data)
    if chance.random() < 0.5:  # formats keep at the front what their checksums do not cover
        size = min(size, 32)
    start, end = sorted(chance.randint(0, size) for _ in range(2))
    parts = _Write(change.position, change.data[:start]), _Write(change.position + end, change.data[end:])
    return [part for part in parts if part.data]


def _survive_names(names: dict[str, _Node], pending: list[_Entry], chance: random.Random) -> None:
    how = chance.choice(("all", "none", "selection", "selection"))
    for entry in pending:
        if how == "all" or (how == "selection" and chance.random() < 0.5):
            _enter(names, entry)


def _crashed_folder(folder: _FolderNode, chance: random.Random, copies: dict[int, _FileNode]) -> _FolderNode:
    names = dict(folder.durable)
    _survive_names(names, folder.pending, chance)
    result = _FolderNode()
    for name in sorted(names):
        node = names[name]
        if isinstance(node, _FolderNode):
            result.durable[name] = _crashed_folder(node, chance, copies)
            continue
        # A renaming half survived may leave one file under two names.
        if id(node) not in copies:
            content = bytearray(node.durable)
            _survive(content, node.pending, chance)
            copies[id(node)] = _FileNode(content, bytearray(content))
        result.durable[name] = copies[id(node)]
    result.live = dict(result.durable)
    return result


def _image(folder: _FolderNode, path: str) -> Iterator[tuple[str, bytes, bytes, int]]:
    yield f"{path}/", b"", b"", len(folder.pending)
    for name in sorted(folder.live.keys() | folder.durable.keys()):
        live, durable = folder.live.get(name), folder.durable.get(name)
        for node in (live,) if live is durable else (live, durable):
            if isinstance(node, _FolderNode):
                yield from _image(node, f"{path}/{name}")
            elif node is not None:
                there = bytes(node.live) if node is live else b""
                yield f"{path}/{name}", there, bytes(node.durable) if node is durable else b"", len(node.pending)


def _bytes_in(folder: _FolderNode) -> int:
    return sum(_bytes_in(node) if isinstance(node, _FolderNode) else len(node.live) for node in folder.live.values())
