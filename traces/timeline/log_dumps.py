"""Output of ``kafka-dump-log`` (``DumpLogSegments``) as a source of observations.

The text of Kafka 0.11 to 4.4, with and without ``--deep-iteration`` and ``--print-data-log``, and that of the metadata
log with ``--cluster-metadata-decoder``. Lines that say something else are skipped.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from ...model.core.errors import BadInput
from ..kafka.partition import SNAPSHOT_NAME
from .event_kind import EventKind
from .log_builder import LogBuilder, node_of_path, partition_of_folder
from .observation import METADATA_LOG, Observation
from .source import SourceResult
from .text_file import open_text, read_head

K = EventKind
_DUMPING: Final = re.compile(r"Dumping (?P<path>\S.*?)\s*$")
_STARTING: Final = re.compile(r"(?:Log s|S)tarting offset: (-?\d+)")
_BATCH: Final = re.compile(r"baseOffset: (?P<base>\d+) lastOffset: (?P<last>\d+) ")
_RECORD: Final = re.compile(r"(?P<deep>\|? ?)offset: (?P<offset>\d+) ")
_EPOCH: Final = re.compile(r"partitionLeaderEpoch: (-?\d+)")
_TIME: Final = re.compile(r"(?:CreateTime|LogAppendTime): (-?\d+)")
_CONTROL: Final = re.compile(r"endTxnMarker: |isControl: true|isTransactional: true.* endTxnMarker")
_PAYLOAD: Final = re.compile(r" payload: (.*)$", re.DOTALL)
_HEAD_CHARS: Final = 65536
_NO_LEADER_CHANGE: Final = -2
MAX_LINES: Final = 20_000_000
_FIX: Final = "dump the segments again from the folder above TOPIC-PARTITION: --files orders-0/00000000000000000000.log"


class LogDumps:
    """Read dumps of log segments."""

    name = "log dump"

    def accepts(self, path: Path) -> bool:
        """Accept a file that begins to dump a log segment within its first lines."""
        lines = read_head(path, _HEAD_CHARS).splitlines()
        dumps = [number for number, line in enumerate(lines) if _DUMPING.match(line)]
        return any(
            ".log" in lines[number] or ".checkpoint" in lines[number] or _STARTING.match(lines[number + 1])
            for number in dumps
            if number + 1 < len(lines) or ".log" in lines[number]
        )

    def read(self, paths: Sequence[Path]) -> SourceResult:
        """Read all files."""
        found: list[Observation] = []
        problems: list[BadInput] = []
        for order, path in enumerate(paths):
            reader = _Dump(path, order << 40)
            try:
                with open_text(path, errors="replace") as file:
                    for number, line in enumerate(file, 1):
                        if number > MAX_LINES:
                            what = f"the dump has more than {MAX_LINES:,} lines"
                            raise BadInput(what, str(path), "dump the last segments alone")
                        reader.take(line.rstrip("\n"), number)
            except BadInput as failed:
                problems.append(failed)
                # A log that is cut off would look shorter than it is.
                continue
            found += reader.finish()
            problems += reader.problems
        return SourceResult(tuple(found), tuple(problems))


class _Dump:
    """One file with dumps of one segment or several."""

    def __init__(self, path: Path, first: int) -> None:
        self.problems: list[BadInput] = []
        self._path = path
        self._sequence = first
        self._logs: dict[tuple[str, int | None], LogBuilder] = {}
        self._log: LogBuilder | None = None
        self._epoch: int | None = None
        self._control = False
        self._printed = False
        self._metadata = False
        self._decoder = _MetadataDecoder()
        self._decoded: list[Observation] = []

    def take(self, line: str, number: int) -> None:
        """Take a line in."""
        printed, self._printed = self._printed, False
        dumping = _DUMPING.match(line)
        if dumping is not None:
            self._begin(dumping["path"], number)
            return
        log = self._log
        if log is None:
            return
        starting = _STARTING.match(line)
        if starting is not None:
            log.log_start = min(log.log_start, int(starting[1])) if log.log_start is not None else int(starting[1])
            return
        batch = _BATCH.match(line)
        if batch is not None:
            self._epoch = _number(_EPOCH, line)
            self._control = "isControl: true" in line
            log.add_batch(int(batch["base"]), int(batch["last"]), self._epoch, _number(_TIME, line), number)
            return
        record = _RECORD.match(line)
        if record is not None:
            self._take_record(log, record, line, number)
        elif printed:
            # The line goes on with a payload that has a line feed, or reports an error: the value is unknown.
            log.forget_value()

    def _begin(self, path: str, number: int) -> None:
        folder = re.split(r"[/\\]", path)
        partition = partition_of_folder(folder[-2]) if len(folder) > 1 else None
        partition = partition or partition_of_folder(self._path.stem) or partition_of_folder(self._path.name)
        self._log, self._epoch, self._control = None, None, False
        if not path.endswith((".log", ".checkpoint")):
            return
        if partition is None:
            where = f"{self._path}, line {number}"
            self.problems.append(BadInput(f"{path} does not name its partition", where, _FIX))
            return
        node = node_of_path("/".join(folder[:-2])) if len(folder) > 2 else None
        node = node if node is not None else node_of_path(str(self._path))
        self._metadata = partition == METADATA_LOG
        if self._metadata:
            self._decoder.begin(folder[-1])
        key = partition, node
        if key not in self._logs:
            template = Observation(
                kind=K.LOG_CONTENT,
                partition=partition,
                file=str(self._path),
                line=number,
                sequence=self._sequence + (len(self._logs) << 32),
                node=node,
                text=path,
            )
            self._logs[key] = LogBuilder(template, line=number)
        self._log = self._logs[key]

    def _take_record(self, log: LogBuilder, record: re.Match[str], line: str, number: int) -> None:
        offset = int(record["offset"])
        epoch = self._epoch
        if not record["deep"].strip():
            # Kafka before 2.0 prints records in place of their batches, and no leader epoch.
            epoch = _number(_EPOCH, line)
            log.add_batch(offset, offset, epoch, _number(_TIME, line), number)
        payload = _PAYLOAD.search(line)
        if payload is None or self._control or _CONTROL.search(line):
            return
        if self._metadata:
            self._decoded += self._decoder.decode(payload[1], log.template, offset, _number(_TIME, line), number)
        else:
            log.add_record(offset, payload[1], epoch, number)
            self._printed = True

    def finish(self) -> Iterator[Observation]:
        """All observations."""
        for log in self._logs.values():
            yield from log.finish()
        yield from self._decoded


def _number(pattern: re.Pattern[str], line: str) -> int | None:
    match = pattern.search(line)
    return None if match is None else int(match[1])


class _MetadataDecoder:
    """Replays the records of a metadata log as far as partitions are concerned, each offset once."""

    def __init__(self) -> None:
        self._topics: dict[str, str] = {}
        self._states: dict[tuple[str, int], dict[str, int]] = {}
        self._next = 0
        self._in_snapshot = False
        self._skips = False

    def begin(self, name: str) -> None:
        """Begin a segment or a snapshot, by its file's name: a snapshot stands for the log up to its end offset."""
        snapshot = SNAPSHOT_NAME.fullmatch(name)
        self._in_snapshot = snapshot is not None
        if snapshot is not None:
            end = int(snapshot[1])
            self._skips = end <= self._next
            self._next = max(self._next, end)

    def _is_replayed(self, offset: int) -> bool:
        """Whether the state has a record already."""
        if self._in_snapshot:
            return self._skips
        if offset < self._next:
            return True
        self._next = offset + 1
        return False

    def decode(
        self, payload: str, template: Observation, offset: int, time: int | None, line: int
    ) -> Iterator[Observation]:
        """The observations of one record; none for a record of another kind."""
        if self._is_replayed(offset):
            return
        try:
            body = json.loads(payload)
            kind, data = str(body["type"]), dict(body["data"])
            topic_id = data.get("topicId")
            if kind == "TOPIC_RECORD":
                self._topics[str(topic_id)] = str(data["name"])
                return
            topic = self._topics.get(str(topic_id))
            if topic is None or kind not in ("PARTITION_RECORD", "PARTITION_CHANGE_RECORD", "REMOVE_TOPIC_RECORD"):
                return
            shared: dict[str, Any] = {
                "file": template.file,
                "line": line,
                "sequence": template.sequence + (1 << 31) + offset,
                "time": time,
                "zoned": True,
                "topic_id": topic_id,
                "text": payload,
            }
            if kind == "REMOVE_TOPIC_RECORD":
                yield Observation(kind=K.TOPIC_DELETED, partition="", topic=topic, **shared)
                return
            number = int(data["partitionId"])
            yield from self._partition(f"{topic}-{number}", (str(topic_id), number), kind, data, shared)
        except (ValueError, KeyError, TypeError):
            # It may have raised any epoch.
            self._states.clear()

    def _partition(
        self, name: str, key: tuple[str, int], kind: str, data: dict[str, Any], shared: dict[str, Any]
    ) -> Iterator[Observation]:
        fields: dict[str, Any] = {}
        if "isr" in data and data["isr"] is not None:
            fields["isr"] = frozenset(data["isr"])
        if data.get("replicas") is not None:
            fields["replicas"] = frozenset(data["replicas"])
        leader = data.get("leader", _NO_LEADER_CHANGE)
        if leader != _NO_LEADER_CHANGE:
            fields["leader"] = int(leader)
        if kind == "PARTITION_RECORD":
            state = {"leader_epoch": int(data.get("leaderEpoch", 0)), "partition_epoch": int(data["partitionEpoch"])}
            self._states[key] = state
            fields |= state
            yield Observation(kind=K.PARTITION_CREATED, partition=name, **fields, **shared)
            return
        known = self._states.get(key)
        unclean = data.get("leaderRecoveryState") == 1
        if known is not None:
            known["partition_epoch"] += 1
            fields["partition_epoch"] = known["partition_epoch"]
            if "leader" in fields:
                # The controller raises the epoch in each record that names a leader.
                known["leader_epoch"] += 1
                fields["leader_epoch"] = known["leader_epoch"]
        event = K.UNCLEAN_ELECTION if unclean else K.PARTITION_CHANGED
        yield Observation(kind=event, partition=name, **fields, **shared)
