"""Server logs of Kafka's brokers and controllers as a source of observations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import tzinfo
from pathlib import Path
from typing import Any, Final

from ...model.core.errors import BadInput
from ..kafka.server_log.cluster_id import cluster_id_of
from ..kafka.server_log.line import Line
from ..kafka.server_log.line_reader import read_lines
from ..kafka.server_log.node_id import node_id_of
from ..kafka.server_log.patterns import match_message
from ..kafka.server_log.streams import Stream, adopt_nodes, merge_streams
from ..kafka.server_log.time_order import in_time_order
from ..text import counted
from .event_kind import EventKind
from .observation import Observation
from .source import SourceResult
from .time_zones import TimeZones, ZonedLines

MAX_EVENTS: Final = 2_000_000
"""Events of all files together."""

_EMPTY = "the file is empty"
_SOURCE_FIX = "name a server.log of Kafka, the output of its process, or a folder of them"


@dataclass(slots=True)
class _Event:
    """One event, before the node of its stream is known."""

    line: Line
    kind: EventKind
    fields: dict[str, Any]
    node: int | None


class ServerLogs:
    """Read server logs in any layout.

    A file may hold lines of several nodes, if their lines start with different text (``docker compose logs``). A node
    may have several files: they are merged by time, and a line that several of them hold counts once.
    """

    name = "server log"

    def __init__(self, zones: TimeZones | None = None) -> None:
        self._zones = zones or TimeZones()

    def accepts(self, path: Path) -> bool:
        """Accept every file: a file without a line of Kafka's is a problem that names the reason."""
        return path.is_file()

    def read(self, paths: Sequence[Path]) -> SourceResult:
        """Read all files."""
        streams: list[Stream[_Event]] = []
        problems: list[BadInput] = []
        remarks: list[str] = []
        empty: list[Path] = []
        left = MAX_EVENTS
        clusters: dict[str, str] = {}
        for path in paths:
            found, problem, remark = _read_file(path, left, clusters, self._zones.zone_of(path))
            if remark == _EMPTY:
                empty.append(path)
            elif remark is not None:
                remarks.append(remark)
            if problem is not None:
                problems.append(problem)
            streams += found
            left -= sum(len(each.items) for each in found)
        if len(clusters) > 1:
            (one, first), (other, second) = sorted(clusters.items(), key=lambda each: each[1])[:2]
            what = f"the lines are of several clusters: {one} ({first}) and {other} ({second})"
            return SourceResult((), (*problems, BadInput(what, "the server logs", "name the logs of one cluster")))
        streams.sort(key=lambda each: (each.file, each.name))
        adopt_nodes(streams)
        notes = list(remarks)
        if empty:
            others = f" and {counted(len(empty) - 1, 'other file')}" if len(empty) > 1 else ""
            notes.append(f"{empty[0]}{others}: {_EMPTY if not others else 'the files are empty'}")
        unknown = sum(1 for each in streams for event in each.items if event.node is None and each.node is None)
        if unknown:
            notes.append(f"{counted(unknown, 'event')} of nodes that no line names: they take no part in the checks")
        return SourceResult(tuple(_observations(streams)), tuple(problems), tuple(notes))


def _read_file(
    path: Path, left: int, clusters: dict[str, str], zone: tzinfo | None
) -> tuple[list[Stream[_Event]], BadInput | None, str | None]:
    """The streams of one file, what cannot be read of it, and what is worth a note.

    Args:
        left: Events that may still be read.
        zone: Time zone of lines that name none; ``None`` reads them as UTC.
        clusters: Ids of the clusters, each with a line that names it; the file's are added.
    """
    streams: dict[str, Stream[_Event]] = {}
    zoned = None if zone is None else ZonedLines(zone)
    lines = 0
    events = 0
    problem: BadInput | None = None
    try:
        for line in read_lines(path):
            lines += 1
            line = line if zoned is None else zoned.convert(line)
            stream = streams.get(line.stream)
            if stream is None:
                stream = streams[line.stream] = Stream(str(path), line.stream)
            node = node_id_of(line.message)
            if node is not None:
                stream.nodes.add(node)
            cluster = cluster_id_of(line.logger_class, line.message)
            if cluster is not None:
                clusters.setdefault(cluster, f"{path}, line {line.number}")
            try:
                found = list(match_message(line.logger_class, line.message))
            except ValueError as wrong:
                problem = BadInput(str(wrong), f"{path}, line {line.number}", "the line is skipped; copy the log again")
                continue
            for kind, fields in found:
                own = fields.pop("node", None)
                own = node if own is None else own
                if own is not None:
                    stream.nodes.add(own)
                stream.items.append(_Event(line, kind, fields, own))
                events += 1
            if events > left:
                what = f"the files have more than {MAX_EVENTS:,} events"
                problem = BadInput(what, f"{path}, line {line.number}", "name a shorter part of them")
                break
    except BadInput as failed:
        problem = failed
    remark = None
    if problem is None and not lines:
        why = _why_no_lines(path)
        if why is None:
            remark = _EMPTY
        else:
            problem = BadInput(why, str(path), _SOURCE_FIX)
    elif problem is None and not events:
        remark = f"{path}: {counted(lines, 'log line')}, none about partitions, controllers or the quorum"
    for stream in streams.values():
        stream.items = in_time_order(stream.items, _time_of)
    return list(streams.values()), problem, remark


def _time_of(event: _Event) -> int | None:
    return event.line.time


def _why_no_lines(path: Path) -> str | None:
    """Why no line of a file has a layout; ``None`` for an empty file."""
    with path.open("rb") as file:
        head = file.read(4096)
    if not head:
        return None
    if head[257:262] == b"ustar":
        return "it is a damaged tar archive"
    if b"fencepost-trace" in head:
        return "it is a trace, which fencepost replay checks"
    if b"\0" in head[:1024] and head[:2] not in (b"\xff\xfe", b"\xfe\xff") and head[:2] != b"\x1f\x8b":
        return "it is a binary file"
    return "no line has a known layout of Kafka's logs"


def _observations(streams: Sequence[Stream[_Event]]) -> Iterator[Observation]:
    """Events of each node in its order, each line once."""
    by_node: dict[int | None, list[Stream[_Event]]] = defaultdict(list)
    for stream in streams:
        if stream.node is not None:
            by_node[stream.node].append(stream)
            continue
        # Lines of several nodes without a prefix: only lines that name their node belong to one.
        parts: dict[int | None, Stream[_Event]] = {}
        for event in stream.items:
            part = parts.setdefault(event.node, Stream(stream.file, stream.name))
            part.items.append(event)
        for node, part in parts.items():
            by_node[node].append(part)
    for node in sorted(by_node, key=lambda each: (each is None, each or 0)):
        for sequence, (event, stream) in enumerate(merge_streams(by_node[node], _line_of, _kind_of)):
            yield from _convert(event, stream, node, sequence)


def _line_of(event: _Event) -> Line:
    return event.line


def _kind_of(event: _Event) -> str:
    return f"{event.kind}{event.fields.get('partition')}"


def _convert(event: _Event, stream: Stream[_Event], node: int | None, sequence: int) -> Iterator[Observation]:
    line = event.line
    fields = dict(event.fields)
    kind = event.kind
    recovering = fields.pop("recovering", False)
    if recovering and kind is EventKind.PARTITION_CHANGED:
        kind = EventKind.UNCLEAN_ELECTION
    if kind is EventKind.LEADER_STARTED or (kind is EventKind.CONTROLLER_CHANGED and "leader" not in fields):
        fields["leader"] = node
    if kind is EventKind.UNCLEAN_ELECTION and line.logger_class == "logger" and "leader_epoch" not in fields:
        # The new leader itself logs that it recovers from the election.
        fields["leader"] = node
    if kind is EventKind.LOG_CREATED and str(fields.get("directory", "")).endswith("-future"):
        kind = EventKind.COPY_CREATED
    if fields.get("topic") is not None:
        fields["partition"] = ""
    partition = fields.pop("partition", None)
    if partition is None:
        return
    yield Observation(
        kind=kind,
        partition=partition,
        file=stream.file,
        line=line.number,
        sequence=sequence,
        text=line.message,
        time=line.time,
        zoned=line.zoned,
        relative=line.relative,
        node=node,
        logger=line.logger,
        level=line.level,
        **fields,
    )
