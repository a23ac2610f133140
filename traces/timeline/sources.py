"""All kinds of file that a timeline is made of."""

from __future__ import annotations

import stat
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.temporary_folder import TemporaryFolder
from .archives import is_archive, unpack
from .client_histories import ClientHistories
from .jepsen_histories import JepsenHistories
from .log_dumps import LogDumps
from .partition_folders import PartitionFolders, is_data_directory, partition_folders_of
from .server_logs import ServerLogs
from .source import Source, SourceResult
from .time_zones import TimeZones

_FOLDERS: Final = PartitionFolders()


def all_sources(zones: TimeZones | None = None) -> tuple[Source, ...]:
    """All sources, in the order of trying them. Server logs are last: they accept every file."""
    return (_FOLDERS, ClientHistories(), JepsenHistories(), LogDumps(), ServerLogs(zones))


_FIX = "name server logs, dumps, partition folders or client histories"


def read_sources(paths: Sequence[Path], zones: TimeZones | None = None) -> SourceResult:
    """Read files and folders, each by the first source that accepts it.

    A folder that no source accepts stands for the regular files in it, at any depth; a broker's data directory for its
    partition folders. Archives are unpacked for the time of the reading.

    Args:
        zones: Time zones of lines that name none.
    """
    with TemporaryFolder("fencepost-timeline-") as folder:
        unpacked: dict[str, str] = {}
        members = [_unpacked(path, folder, unpacked) for path in paths]
        problems = [each for each in members if isinstance(each, BadInput)]
        result = _read([each for each in members if isinstance(each, Path)], all_sources(zones))
    result = replace(result, problems=(*problems, *result.problems))
    return _with_names(result, unpacked) if unpacked else result


def _unpacked(path: Path, folder: Path, unpacked: dict[str, str]) -> Path | BadInput:
    """The path itself, or the folder into which its archive is unpacked."""
    try:
        if not path.is_file() or not is_archive(path):
            return path
        target = unpack(path, folder / str(len(unpacked)))
    except BadInput as failed:
        return failed
    except OSError as failed:
        return BadInput(f"cannot be unpacked: {failed.strerror or failed}", str(path), "unpack it and name the folder")
    unpacked[str(target)] = str(path)
    return target


def _with_names(result: SourceResult, unpacked: Mapping[str, str]) -> SourceResult:
    """Name each archive in place of the folder into which it was unpacked."""

    def named(text: str) -> str:
        for folder, archive in unpacked.items():
            text = text.replace(folder, archive)
        return text

    return SourceResult(
        tuple(replace(each, file=named(each.file)) for each in result.observations),
        tuple(BadInput(named(each.what), named(each.where), each.mend) for each in result.problems),
        tuple(map(named, result.notes)),
    )


def _read(paths: Sequence[Path], sources: Sequence[Source]) -> SourceResult:
    assigned: dict[str, list[Path]] = {source.name: [] for source in sources}
    problems: list[BadInput] = []
    directories: list[str] = []
    for path in paths:
        try:
            for member, source in _assign(path, sources, directories):
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
        (*_directory_note(directories), *(each for result in results for each in result.notes)),
    )


def _directory_note(directories: Sequence[str]) -> Iterator[str]:
    if directories:
        parents = {str(Path(each).parent) for each in directories}
        named = f"{parents.pop()}/*" if len(parents) == 1 < len(directories) else " ".join(directories)
        yield f"fencepost check compares whole data directories: fencepost check {named}"


def _assign(path: Path, sources: Sequence[Source], directories: list[str]) -> Iterator[tuple[Path, Source | None]]:
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        yield path, None
        return
    if is_data_directory(path):
        directories.append(str(path))
        yield from ((each, _FOLDERS) for each in partition_folders_of(path))
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
            yield from _assign(member, sources, directories)
