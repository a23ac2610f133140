"""Lines of several files, put together by node.

A node logs into one file or several, and a file may hold the lines of several nodes, behind prefixes that tell them
apart. A stream is the part of a file that one process logged.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Generic, TypeVar

from .line import Line

T = TypeVar("T")


@dataclass(slots=True)
class Stream(Generic[T]):
    """What one file holds of one process.

    Args:
        file: Path as the user named it.
        name: Text before the layout, without times; empty if there is none.
        nodes: Ids that lines of the stream name as their own.
        items: What was read of its lines, in their order.
        levels: Loggers, by the last part of their names, and the levels at which they logged.
    """

    file: str
    name: str
    nodes: set[int] = field(default_factory=set)
    items: list[T] = field(default_factory=list)
    levels: set[tuple[str, str]] = field(default_factory=set)

    @property
    def node(self) -> int | None:
        """The only node that names itself in the stream."""
        return next(iter(self.nodes)) if len(self.nodes) == 1 else None


def adopt_nodes(streams: Sequence[Stream[T]]) -> None:
    """Give a file that names no node the node of its folder: Kafka writes several files into one folder."""
    by_folder: dict[tuple[Path, str], set[int]] = defaultdict(set)
    for stream in streams:
        by_folder[Path(stream.file).parent, stream.name] |= stream.nodes
    for stream in streams:
        if not stream.nodes:
            known = by_folder[Path(stream.file).parent, stream.name]
            if len(known) == 1:
                stream.nodes |= known


def merge_streams(
    streams: Sequence[Stream[T]], line_of: Callable[[T], Line], kind_of: Callable[[T], str]
) -> list[tuple[T, Stream[T]]]:
    """All items of one node by time; within a file in the order of its lines.

    A line that several files hold counts once: copies, rolled files and overlapping excerpts repeat lines.

    Args:
        line_of: The line of an item.
        kind_of: What tells several items of one line apart.
    """
    keyed: list[tuple[int, int, int, T, Stream[T]]] = []
    seen: Counter[tuple[int | None, str, str]] = Counter()
    contents: set[tuple[tuple[int | None, str], ...]] = set()

    def first_time(stream: Stream[T]) -> int:
        times = (line_of(item).time for item in stream.items)
        return next((time for time in times if time is not None), -1)

    for order, stream in enumerate(sorted(streams, key=lambda each: (first_time(each), each.file, each.name))):
        content = tuple((line_of(item).time, line_of(item).message) for item in stream.items)
        if content in contents:
            continue
        contents.add(content)
        latest = -1
        own: Counter[tuple[int | None, str, str]] = Counter()
        for index, item in enumerate(stream.items):
            line = line_of(item)
            key = (line.time, line.message, kind_of(item))
            own[key] += 1
            latest = max(latest, -1 if line.time is None else line.time)
            if line.time is not None and own[key] <= seen[key]:
                continue
            keyed.append((latest, order, index, item, stream))
        for key, count in own.items():
            seen[key] = max(seen[key], count)
    keyed.sort(key=lambda each: each[:3])
    return [(item, stream) for *_, item, stream in keyed]
