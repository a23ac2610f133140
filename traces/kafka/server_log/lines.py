"""Read the server logs of a cluster for ``ingest``: all files of each node, merged by time.

``LOGGERS`` report about partitions; ``words.py`` has what they report. All other lines are skipped.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from ....model.core.errors import BadInput
from .entries import Decides, Entry, Leads, Learns, Said
from .line import Line
from .line_reader import read_lines
from .node_id import node_id_of
from .streams import Stream, adopt_nodes, merge_streams
from .ties import order_ties
from .words import (
    CONTROLLER_LOGGER,
    LOG_LOGGERS,
    ZOOKEEPER_LOGGERS,
    decided,
    decided_with_zookeeper,
    said_by,
)

T = TypeVar("T")

LOGGERS: Final = {
    "kafka.cluster.Partition": "DEBUG",
    "state.change.logger": "INFO",
    "org.apache.kafka.storage.internals.log.UnifiedLog": "TRACE",
    "org.apache.kafka.controller.ReplicationControlManager": "DEBUG",
}
"""What is read, and the level that it needs. Before 4.0 the log is ``kafka.log.UnifiedLog``."""
MOST: Final = 1_000_000
"""Lines of all files that report something."""
_INTERNAL: Final = "__cluster_metadata-0"
_OWN_LOG: Final = "name a log that a node of Kafka's printed"
_LEVELS: Final = "set the loggers to the levels that docs/how-to/read-server-logs.md has, and record anew"


def logger_options(loggers: Mapping[str, str] = LOGGERS) -> tuple[str, ...]:
    """JVM options that turn the loggers on if the slf4j binding is slf4j-simple, as the recorder's is."""
    simple = "-Dorg.slf4j.simpleLogger"
    return (
        f"{simple}.showThreadName=true",
        *(f"{simple}.log.{name}={level.lower()}" for name, level in loggers.items()),
    )


@dataclass
class Printed:
    """What some files report.

    Args:
        nodes: By broker and partition, what the broker reported, in its order.
        decided: By partition and partition epoch, what the controller decided; of several controllers the first.
        unordered: By broker and partition, the time from which the order of the broker's lines is unknown.
        with_zookeeper: Partitions that a controller with ZooKeeper reports about.
        isr_updates: By partition and partition epoch, the ISRs that leaders asked for and got.
    """

    nodes: dict[int, dict[str, list[Entry]]] = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    decided: dict[str, dict[int, Entry]] = field(default_factory=lambda: defaultdict(dict))
    unordered: dict[tuple[int, str], int] = field(default_factory=dict)
    with_zookeeper: set[str] = field(default_factory=set)
    isr_updates: dict[str, dict[int, Entry]] = field(default_factory=lambda: defaultdict(dict))


def read_server_logs(paths: Sequence[Path]) -> Printed:
    """Read the files. Raises BadInput for files that are no server logs, or that lack a logger."""
    streams = read_streams(paths, _is_read, node_id_of)
    printed = Printed()
    for node, own in by_node(streams).items():
        _read_node(node, own, printed)
    for name, entries in printed.decided.items():
        if name in printed.with_zookeeper:
            for version, entry in printed.isr_updates[name].items():
                entries.setdefault(version, entry)
        _name_new_epochs(entries)
    return printed


def _keep_isr_update(printed: Printed, entry: Entry, line: Line) -> None:
    update = decided_with_zookeeper("Partition", line.message)
    if update is not None:
        name, said = update
        printed.isr_updates[name].setdefault(said.version, replace(entry, said=said))


def _name_new_epochs(entries: dict[int, Entry]) -> None:
    """Leave out the leader epochs that a decision repeats: a controller with ZooKeeper logs whole states."""
    epoch: int | None = None
    for version, entry in sorted(entries.items()):
        said = entry.said
        assert isinstance(said, Decides)
        if said.epoch is not None and said.epoch == epoch:
            entries[version] = replace(entry, said=replace(said, epoch=None))
        epoch = epoch if said.epoch is None else said.epoch


def _is_read(line: Line) -> bool:
    logger = line.logger_class
    return logger in ("Partition", CONTROLLER_LOGGER) or logger in LOG_LOGGERS or logger in ZOOKEEPER_LOGGERS


def read_streams(
    paths: Sequence[Path], is_read: Callable[[Line], bool], node_of: Callable[[str], int | None]
) -> list[Stream[Line]]:
    """The lines of some files that a reader needs, by file and prefix.

    Args:
        is_read: Whether a line may report something.
        node_of: The node that a message names as its own.

    Raises:
        BadInput: A file cannot be read, or no line has a layout of Kafka's logs.
    """
    streams: list[Stream[Line]] = []
    left = MOST
    for path in paths:
        found: dict[str, Stream[Line]] = {}
        for line in read_lines(path):
            stream = found.setdefault(line.stream, Stream(str(path), line.stream))
            stream.levels.add((line.logger_class, line.level))
            node = node_of(line.message)
            if node is not None:
                stream.nodes.add(node)
                if len(stream.nodes) > 1:
                    one, other = sorted(stream.nodes)[:2]
                    what = f"it is of node {one} and of node {other}"
                    raise BadInput(what, f"{path}, line {line.number}", "name files of one node each")
            if line.time is None:
                raise BadInput("its time is none", f"{path}, line {line.number}", _OWN_LOG)
            if is_read(line):
                stream.items.append(line)
                left -= 1
                if left < 0:
                    what = f"the files say more than {MOST:,} things of partitions"
                    raise BadInput(what, f"{path}, line {line.number}", "name a shorter piece of them")
        # A logger that is off leaves an empty file.
        if not found and (_is_filled(path) or len(paths) == 1):
            mend = "name a node's server.log, or its output"
            raise BadInput("no line of it is one of Kafka's log", str(path), mend)
        streams += found.values()
    streams.sort(key=lambda each: (each.file, each.name))
    adopt_nodes(streams)
    return streams


def _is_filled(path: Path) -> bool:
    """Whether a file has any content."""
    try:
        return path.stat().st_size > 0
    except OSError:
        return True


def by_node(streams: Iterable[Stream[T]]) -> dict[int, list[Stream[T]]]:
    """The streams of each node. Raises BadInput for lines of a node that no line names."""
    found: dict[int, list[Stream[T]]] = defaultdict(list)
    for stream in streams:
        if stream.node is not None:
            found[stream.node].append(stream)
        elif stream.items:
            raise BadInput("no line says which node printed it", stream.file, "put a node's files into one folder")
    return dict(sorted(found.items()))


def _read_node(node: int, streams: Sequence[Stream[Line]], printed: Printed) -> None:
    levels = {each for stream in streams for each in stream.levels}
    altered: set[str] = set()
    entries: dict[str, list[Entry]] = defaultdict(list)
    latest = 0
    leads = False
    for line, stream in merge_streams(streams, lambda each: each, lambda _: ""):
        latest = latest if line.time is None else max(latest, line.time)
        logger = line.logger_class
        try:
            said: tuple[str, Said] | None
            if logger == CONTROLLER_LOGGER:
                said = decided(line.message, altered)
            elif logger in ZOOKEEPER_LOGGERS and line.message.startswith("[Controller "):
                said = decided_with_zookeeper(logger, line.message)
                printed.with_zookeeper |= {said[0]} if said is not None else set()
            else:
                said = said_by(logger, line.message)
                if logger == "Partition" and said is not None and isinstance(said[1], Learns):
                    _keep_isr_update(printed, Entry(latest, stream.file, line.number, line.thread, said[1]), line)
        except ValueError as wrong:
            raise BadInput(str(wrong), f"{stream.file}, line {line.number}", _OWN_LOG) from wrong
        if said is None or said[0] == _INTERNAL:
            continue
        entry = Entry(latest, stream.file, line.number, line.thread, said[1])
        if isinstance(entry.said, Decides):
            known = printed.decided[said[0]].setdefault(entry.said.version, entry)
            if (entry.at, entry.file) < (known.at, known.file):
                printed.decided[said[0]][entry.said.version] = entry
            continue
        leads = leads or isinstance(entry.said, Leads)
        entries[said[0]].append(entry)
    where = streams[0].file if len(streams) == 1 else f"node {node}"
    _check_levels(where, levels, reports=bool(entries), leads=leads)
    for name, own in entries.items():
        ordered, unknown = order_ties(own)
        printed.nodes[node][name] = ordered
        if unknown is not None:
            printed.unordered[node, name] = unknown


def _check_levels(where: str, levels: set[tuple[str, str]], *, reports: bool, leads: bool) -> None:
    """Refuse a node whose logs lack a logger, or its level: a step that no line reports would count as none.

    Args:
        where: The node's file, or the node.
        levels: Loggers and levels in all files of the node.
        reports: Whether the node reports about a partition.
        leads: Whether it leads one.
    """

    def at(loggers: Iterable[str], *wanted: str) -> bool:
        return any((logger, level) in levels for logger in loggers for level in wanted)

    printed = {logger for logger, _ in levels}
    logs = LOG_LOGGERS & printed or {"UnifiedLog"}
    is_broker = bool({"Partition", "logger"} & printed)
    if leads and not at(["Partition"], "DEBUG", "TRACE"):
        raise BadInput("the broker leads, and Partition says nothing at DEBUG in it", where, _LEVELS)
    if (reports or (is_broker and LOG_LOGGERS & printed)) and not at(logs, "TRACE"):
        raise BadInput(f"{min(logs)} says nothing at TRACE in it", where, _LEVELS)
    if reports and "logger" not in printed:
        mend = "name the node's state-change.log too, in which Kafka's own configuration has it"
        raise BadInput("state.change.logger says nothing in it", where, mend)
    if CONTROLLER_LOGGER in printed and not at([CONTROLLER_LOGGER], "DEBUG", "TRACE"):
        raise BadInput(f"{CONTROLLER_LOGGER} says nothing at DEBUG in it", where, _LEVELS)
