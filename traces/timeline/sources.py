"""All kinds of file that a timeline is made of."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from .client_histories import ClientHistories
from .jepsen_histories import JepsenHistories
from .log_dumps import LogDumps
from .partition_folders import PartitionFolders
from .server_logs import ServerLogs
from .source import Source, SourceResult

SOURCES: Final[tuple[Source, ...]] = (
    PartitionFolders(),
    ClientHistories(),
    JepsenHistories(),
    LogDumps(),
    ServerLogs(),
)
"""In the order in which they are asked. Server logs are last: they accept every file."""

_FIX = "name server logs, dumps, partition folders or client histories"


def read_sources(paths: Sequence[Path], sources: Sequence[Source] = SOURCES) -> SourceResult:
    """Read files and folders, each by the first source that accepts it.

    A folder that no source accepts stands for the regular files in it, at any depth.
    """
    assigned: dict[str, list[Path]] = {source.name: [] for source in sources}
    problems: list[BadInput] = []
    for path in paths:
        try:
            for member, source in _assign(path, sources):
                if source is None:
                    problems.append(BadInput("it is no regular file", str(member), _FIX))
                elif member not in assigned[source.name]:
                    assigned[source.name].append(member)
        except OSError as failed:
            problems.append(BadInput(f"cannot be read: {failed.strerror or failed}", str(path), _FIX))
    results = [source.read(assigned[source.name]) for source in sources if assigned[source.name]]
    return SourceResult(
        tuple(each for result in results for each in result.observations),
        (*problems, *(each for result in results for each in result.problems)),
        tuple(each for result in results for each in result.notes),
    )


def _assign(path: Path, sources: Sequence[Source]) -> Iterator[tuple[Path, Source | None]]:
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        yield path, None
        return
    source = next((each for each in sources if each.accepts(path)), None)
    if source is not None or stat.S_ISREG(mode):
        yield path, source
        return
    members = sorted(path.iterdir())
    if not members:
        raise BadInput("the folder is empty", str(path), _FIX)
    for member in members:
        # Hidden files and links to nowhere are no part of a folder of logs.
        if member.name.startswith(".") or not member.exists():
            continue
        if member.is_dir() or member.is_file():
            yield from _assign(member, sources)
