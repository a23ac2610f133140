"""Read Kafka's server logs: one or several files of each node, as its log4j prints them, or slf4j-simple.

The loggers that say something of a partition are ``kafka.cluster.Partition`` (DEBUG), ``state.change.logger`` (INFO),
``UnifiedLog`` (TRACE) and, at the controller, ``ReplicationControlManager`` (DEBUG); ``words.py`` has what they say.
All other lines are passed over.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Final

from ....model.core.errors import BadInput
from .entries import Decides, Entry, Leads
from .words import decided, said_by

LOGGERS: Final = {
    "kafka.cluster.Partition": "DEBUG",
    "state.change.logger": "INFO",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "TRACE",
    "org.apache.kafka.controller.ReplicationControlManager": "DEBUG",
}
"""What is read, and how much of it must be printed."""
LONGEST: Final = 1 << 20
"""Of a longer line nothing is read."""
MOST: Final = 1_000_000
"""So many lines that say something are taken in at most, of all files."""
_INTERNAL: Final = "__cluster_metadata-0"
_DAY: Final = 24 * 3600 * 1000

_SIMPLE = re.compile(
    r"(\d\d):(\d\d):(\d\d)\.(\d{3}) (?:\[([^\]]{1,200})\] )?(TRACE|DEBUG|INFO|WARN|ERROR) ([\w.$]+) - (.*)"
)
_LOG4J = re.compile(
    r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d{3})\] (?:\[([^\]]{1,200})\] )?(TRACE|DEBUG|INFO|WARN|ERROR)"
    r" (.*) \(([\w.$]+)\)"
)
_NODE = re.compile(r"\[(?:Partition \S+ broker=|Broker id=|QuorumController id=|ReplicaManager broker=)(\d{1,10})\]")
_TRACES: Final = {"UnifiedLog": "TRACE", "ReplicationControlManager": "DEBUG"}
"""The loggers that print something at this level at any node of their kind, and nothing that is needed above it."""


def logger_options(loggers: Mapping[str, str] = LOGGERS) -> tuple[str, ...]:
    """The options of a JVM whose slf4j binding is slf4j-simple, as the recorder's has it, that turn them on."""
    simple = "-Dorg.slf4j.simpleLogger"
    return (
        f"{simple}.showThreadName=true",
        *(f"{simple}.log.{name}={level.lower()}" for name, level in loggers.items()),
    )


@dataclass
class Printed:
    """What some files say. ``nodes``: by broker, what it printed of each partition, in its order."""

    nodes: dict[int, dict[str, list[Entry]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    decided: dict[str, dict[int, Entry]] = field(default_factory=lambda: defaultdict(dict))
    """By partition and partition epoch, what the controller has decided; of several controllers who was first."""


@dataclass
class _File:
    """What one file says, before it is known which node's it is."""

    path: Path
    node: int | None = None
    first: int | None = None
    entries: list[tuple[str, Entry]] = field(default_factory=list)
    levels: set[tuple[str, str]] = field(default_factory=set)
    leads: bool = False


def read_server_logs(paths: Sequence[Path]) -> Printed:
    """Read the files, several of one node in the order in which they begin. Raises BadInput for what is none such."""
    files = []
    left = MOST
    for path in paths:
        files.append(_read(path, left))
        left -= len(files[-1].entries)
    printed = Printed()
    for file in sorted(files, key=lambda each: each.first or 0):
        assert file.node is not None
        for name, entry in file.entries:
            if isinstance(entry.said, Decides):
                known = printed.decided[name].setdefault(entry.said.version, entry)
                if (entry.at, entry.file) < (known.at, known.file):
                    printed.decided[name][entry.said.version] = entry
            else:
                printed.nodes[file.node][name].append(entry)
    return printed


@dataclass(frozen=True, slots=True)
class Line:
    """A line of a log. ``at``: milliseconds, of whichever day; ``logger``: the last part of its name."""

    number: int
    at: int
    thread: str
    level: str
    logger: str
    message: str


def lines_of(path: Path) -> Iterator[Line]:
    """The lines that are a log's; others are passed over. Raises BadInput for a time that is none."""
    clock = _Clock()
    for number, text in _lines(path):
        simple = _SIMPLE.fullmatch(text)
        other = None if simple else _LOG4J.fullmatch(text)
        if simple:
            thread, level, logger, message = simple[5] or "", simple[6], simple[7], simple[8]
        elif other:
            thread, level, message, logger = other[3] or "", other[4], other[5], other[6]
        else:
            continue
        try:
            at = clock.of_day(*map(int, simple.groups()[:4])) if simple else clock.of_date(other[1], other[2])  # type: ignore[index]
        except ValueError as wrong:
            mend = "name a log that a node of Kafka's printed"
            raise BadInput(f"its time is none ({wrong})", f"{path}, line {number}", mend) from wrong
        yield Line(number, at, thread, level, logger.rpartition(".")[2], message)


def _read(path: Path, left: int) -> _File:
    found = _File(path)
    altered: set[str] = set()
    for line in lines_of(path):
        where, last, message = f"{path}, line {line.number}", line.logger, line.message
        found.first = line.at if found.first is None else found.first
        found.levels.add((last, line.level))
        node = _NODE.search(message, 0, 400)
        if node is not None:
            _name_node(found, int(node[1]), where)
        try:
            said = decided(message, altered) if last == "ReplicationControlManager" else said_by(last, message)
        except ValueError as wrong:
            raise BadInput(str(wrong), where, "name a log that a node of Kafka's printed") from wrong
        if said is None or said[0] == _INTERNAL:
            continue
        if len(found.entries) >= left:
            raise BadInput(
                f"the files say more than {MOST:,} things of partitions", where, "name a shorter piece of them"
            )
        found.entries.append((said[0], Entry(line.at, str(path), line.number, line.thread, said[1])))
        found.leads = found.leads or isinstance(said[1], Leads)
    _refuse(found)
    return found


def _refuse(found: _File) -> None:
    """Refuse what nothing can be learned from, or less than one would think."""
    mend = "set the loggers to the levels that docs/mining.md has, and record anew"
    if not found.levels:
        raise BadInput(
            "no line of it is one of Kafka's log", str(found.path), "name a node's server.log, or its output"
        )
    if found.node is None:
        raise BadInput("no line says which node printed it", str(found.path), mend)
    for logger, level in _TRACES.items():
        printed = {each for name, each in found.levels if name == logger}
        if printed and not printed & {level, "TRACE"}:
            raise BadInput(f"{logger} says nothing at {level} in it", str(found.path), mend)
    if found.leads and not {("Partition", "DEBUG"), ("Partition", "TRACE")} & found.levels:
        raise BadInput("the broker leads, and Partition says nothing at DEBUG in it", str(found.path), mend)


def _name_node(found: _File, node: int, where: str) -> None:
    if found.node not in (None, node):
        raise BadInput(f"it is of node {found.node} and of node {node}", where, "name files of one node each")
    found.node = node


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Lines with their numbers; one that is too long is left out, however long it is."""
    try:
        with path.open("rb") as file:
            number = 0
            while line := file.readline(LONGEST):
                number += 1
                whole = line.endswith(b"\n") or len(line) < LONGEST
                while not whole:
                    rest = file.readline(LONGEST)
                    line, whole = b"", rest.endswith(b"\n") or len(rest) < LONGEST
                yield number, line.decode("utf-8", "replace").rstrip("\r\n")
    except OSError as failed:
        raise BadInput(f"cannot be read: {failed.strerror}", str(path), "name a node's server.log") from failed


@dataclass
class _Clock:
    """Milliseconds that never go back by half a day: after midnight another day begins."""

    day: int = 0
    last: int = 0

    def of_day(self, hours: int, minutes: int, seconds: int, millis: int) -> int:
        if hours > 23 or minutes > 59 or seconds > 60:
            raise ValueError(f"{hours}:{minutes}:{seconds}")
        at = self.day + ((hours * 60 + minutes) * 60 + seconds) * 1000 + millis
        if at < self.last - _DAY // 2:
            self.day += _DAY
            at += _DAY
        self.last = at
        return at

    @staticmethod
    def of_date(date: str, millis: str) -> int:
        """Of log4j's date: local time, of which only differences matter."""
        since = datetime.strptime(date, "%Y-%m-%d %H:%M:%S") - datetime(2000, 1, 1)  # noqa: DTZ001, DTZ007
        return int(since.total_seconds()) * 1000 + int(millis)
