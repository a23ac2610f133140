"""A broker's data directory (one of Kafka's ``log.dirs``): a folder for each partition, and what they share.

``meta.properties`` names the node; seven checkpoints hold, for all partitions together, the high watermarks, the
recovery points, the log starts, the local log starts, how far compacted logs are cleaned, which of them copy holes, and
the leader epochs that the replicas are in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

from ..files.interface import Files, read_file
from .checkpoints import (
    CLEANED_OFFSETS,
    EPOCH_CHECKPOINT,
    HIGH_WATERMARKS,
    HOLES,
    LEADER_EPOCHS,
    LOCAL_LOG_STARTS,
    LOG_STARTS,
    RECOVERY_POINTS,
    TEMPORARY,
    Key,
    read_offsets,
    write_offsets,
)
from .checkpoints import write_atomically as _write
from .config import LogConfig
from .epochs import UNDEFINED_EPOCH
from .errors import LogError
from .log import Log
from .segment import LOG_SUFFIX
from .topic_id import PARTITION_METADATA, read_topic_id, write_topic_id

META = "meta.properties"

_KEPT = (EPOCH_CHECKPOINT, PARTITION_METADATA)
"""What lies beside a partition's segments."""

_NO_ID = UUID(int=0)
_TOPIC = re.compile(r"[A-Za-z0-9._-]{1,249}")
_FOLDER = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_DELETED = re.compile(r".*-delete")
_MENDS = {
    HIGH_WATERMARKS: "delete the file: the high watermarks are learnt from the leaders",
    RECOVERY_POINTS: "delete the file: the logs are then recovered as a whole",
    LOG_STARTS: "put the file back from a copy, or write it anew with a line for each log that does not start at 0",
    LOCAL_LOG_STARTS: "put the file back from a copy, or write it anew with each log's first segment's base offset",
    CLEANED_OFFSETS: "delete the file: the logs are then cleaned from their starts",
    HOLES: "delete the file, and the folders of compacted partitions where the power failed while they were copied",
    LEADER_EPOCHS: "delete the file after the controller has elected leaders in newer epochs",
}


def is_partition(topic: str, partition: int) -> bool:
    """Whether this may be the name of a topic (Kafka's ``Topic.validate``) and the number of a partition."""
    return bool(_TOPIC.fullmatch(topic)) and topic not in (".", "..") and 0 <= partition < 1 << 31


@dataclass(frozen=True, slots=True)
class _Offsets:
    """One partition's lines in the shared checkpoints: the ``OffsetStore`` of its log."""

    directory: DataDirectory
    key: Key

    def store_recovery_point(self, offset: int) -> None:
        self.directory.store(RECOVERY_POINTS, {self.key: offset})

    def store_log_start(self, offset: int) -> None:
        self.directory.store(LOG_STARTS, {self.key: offset})

    def store_local_start(self, offset: int) -> None:
        self.directory.store(LOCAL_LOG_STARTS, {self.key: offset})

    def lower_cleaned(self, offset: int) -> None:
        if self.directory.cleaned(*self.key) > offset:
            self.directory.store(CLEANED_OFFSETS, {self.key: offset})

    def store_holes(self, offset: int | None) -> None:
        if offset is None:
            self.directory.forget(HOLES, self.key)
        else:
            self.directory.store(HOLES, {self.key: offset})


class DataDirectory:
    """The open data directory in ``files``. Partitions are opened by ``log``, when they are asked for."""

    def __init__(
        self,
        files: Files,
        *,
        node_id: int,
        cluster_id: str,
        config: LogConfig | None = None,
        topics: Mapping[str, LogConfig] | None = None,
    ) -> None:
        """Make or open it; ``topics`` have other settings than ``config``.

        Raises ``LogError`` for another node's directory, ``CorruptCheckpoint``, and ``OSError``.
        """
        self.files = files
        self.node_id = node_id
        self.cluster_id = cluster_id
        self.config = config or LogConfig()
        self._topics = dict(topics or {})
        self._logs: dict[Key, Log] = {}
        self._unsure: set[str] = set()
        """Checkpoints that could not be written: what is on disk is what they had, or were to have."""
        self._in_doubt: set[Key] = set()
        """Partitions whose log could not be opened: nobody knows what is synced of it."""
        self._clean_up()
        self._identify()
        self._offsets = {name: read_offsets(files, name, mend) for name, mend in _MENDS.items()}
        self._forget_gone()

    def _clean_up(self) -> None:
        """Remove what a crash ended: temporary files, and folders of deleted partitions."""
        found = self.files.list("")
        for name in found:
            if name.endswith(TEMPORARY):
                self.files.remove(name)
            elif _DELETED.fullmatch(name):
                self._empty(name)
        if self.files.list("") != found:
            self.files.fsync_dir("")

    def _forget_gone(self) -> None:
        """Remove the lines of partitions that have no folder: a crash came after that was deleted, and before them."""
        there = set(self.files.list(""))
        for name, lines in list(self._offsets.items()):
            kept = {key: offset for key, offset in lines.items() if f"{key[0]}-{key[1]}" in there}
            if len(kept) < len(lines):
                self._write(name, kept)

    def _identify(self) -> None:
        """Write ``meta.properties`` in the form of KRaft (version 1), or see that it is this node's."""
        if not self.files.exists(META):
            text = f"#\nnode.id={self.node_id}\nversion=1\ncluster.id={self.cluster_id}\n"
            _write(self.files, META, text.encode())
            return
        lines = read_file(self.files, META).decode(errors="replace").splitlines()
        found = dict(line.split("=", 1) for line in lines if "=" in line and not line.startswith("#"))
        for name, mine in (("node.id", str(self.node_id)), ("cluster.id", self.cluster_id)):
            if found.get(name) != mine:
                what = f"{name} is {found.get(name)!r}, this node has {mine!r}"
                raise LogError(what, META, "start the node on its own data directory")

    # -- partitions -------------------------------------------------------------------------------------------------

    def partitions(self) -> list[Key]:
        """``(topic, partition)`` of every partition that has a folder, sorted."""
        matches = (_FOLDER.fullmatch(name) for name in self.files.list(""))
        return sorted((match[1], int(match[2])) for match in matches if match)

    def log(self, topic: str, partition: int) -> Log:
        """The open log of a partition, made where there is none, recovered where it was not open.

        Raises ``LogError`` for a name that is no topic's, else like ``Log``.
        """
        key = topic, partition
        if key not in self._logs:
            if not is_partition(topic, partition):
                raise LogError(f"{topic!r:.80} {partition} names no partition", "topic", "use letters, digits, . _ -")
            folder = f"{topic}-{partition}"
            if not self.files.exists(folder):
                # Offsets of a partition that had this name and was lost say nothing of this one.
                for name in _MENDS:
                    self.forget(name, key)
                self._make(folder)
                if self.config_of(topic).compacted:  # nothing is synced: else no hole could be told from a tear
                    self.store(RECOVERY_POINTS, {key: 0})
            names = RECOVERY_POINTS, LOG_STARTS, LOCAL_LOG_STARTS
            config = self._config_for(key)
            offsets = [self._offsets[name].get(key, 0) for name in names]
            if config.compacted and key not in self._offsets[RECOVERY_POINTS]:
                offsets[0] = -1
            try:
                if key in self._in_doubt:
                    self._write_anew(folder, (), ())
                if config.compacted and key not in self._offsets[CLEANED_OFFSETS]:
                    self.store(CLEANED_OFFSETS, {key: 0})
                if key not in self._offsets[RECOVERY_POINTS]:
                    self.forget(HOLES, key)  # that was lost, and nothing tells what was flushed
                copies_holes = key in self._offsets[HOLES]
                self._logs[key] = Log(
                    self.files, folder, config, _Offsets(self, key), *offsets, copies_holes=copies_holes
                )
            except OSError:
                self._in_doubt.add(key)
                raise
            self._in_doubt.discard(key)
        return self._logs[key]

    def _make(self, folder: str) -> None:
        """Make a partition's folder; where its name cannot be synced there is none, or it would never be synced."""
        self.files.make_dir(folder)
        try:
            self.files.fsync_dir("")
        except OSError:
            self.files.remove(folder)
            raise

    def reopen(self, topic: str, partition: int) -> Log:
        """Recover a partition's log as after a restart: what brings back one that is offline. Raises like ``log``.

        After a sync that failed, a later one need not carry what that one lost (see ``File.fsync``), so all that may be
        in doubt is written anew: the two last segments, as the one before the last is synced before the last is begun,
        the epochs, the names that were removed, and the checkpoints of all logs.
        """
        for name in sorted(self._unsure):
            self._write(name, self._offsets[name])
        log = self._logs.pop((topic, partition), None)
        if log is not None:
            offline = log.offline is not None
            log.close()
            if offline:
                self._in_doubt.add((topic, partition))
                self._write_anew(log.folder, log.removing, log.renaming)
                self._in_doubt.discard((topic, partition))
        return self.log(topic, partition)

    def _write_anew(self, folder: str, removing: Iterable[str], renaming: Iterable[str]) -> None:
        for path in renaming:
            if self.files.exists(path):
                _write(self.files, path, read_file(self.files, path))
        for path in removing:
            if not self.files.exists(path):
                self.files.open(path, create=True).close()
                self.files.remove(path)
        names = self.files.list(folder)
        bases = sorted({name.partition(".")[0] for name in names if name.endswith(LOG_SUFFIX)})[-2:]
        for name in names:
            if not name.endswith(TEMPORARY) and (name.partition(".")[0] in bases or name in _KEPT):
                _write(self.files, f"{folder}/{name}", read_file(self.files, f"{folder}/{name}"))
        self.files.fsync_dir(folder)

    def delete(self, topic: str, partition: int) -> None:
        """Remove a partition. After a crash it is there as it was, or not at all."""
        key = topic, partition
        log = self._logs.pop(key, None)
        if log is not None:
            log.abandon()  # what it has not synced is to go as well
        folder = f"{topic}-{partition}"
        if self.files.exists(folder):
            deleted = f"{folder}.{(self.topic_id(topic, partition) or _NO_ID).hex}-delete"
            if self.files.exists(deleted):
                self._empty(deleted)
            self.files.rename(folder, deleted)
            self.files.fsync_dir("")
            self._empty(deleted)
            self.files.fsync_dir("")
        self._in_doubt.discard(key)
        for name in _MENDS:
            self.forget(name, key)

    def _empty(self, folder: str) -> None:
        for name in self.files.list(folder):
            self.files.remove(f"{folder}/{name}")
        self.files.remove(folder)

    def topic_id(self, topic: str, partition: int) -> UUID | None:
        """The id of the topic that a partition is of, as its folder has it. Raises ``OSError``."""
        return read_topic_id(self.files, f"{topic}-{partition}")

    def store_topic_id(self, topic: str, partition: int, topic_id: UUID) -> None:
        """Store it beside the log, which has none so far. It survives a crash on return. Raises ``OSError``."""
        try:
            write_topic_id(self.files, f"{topic}-{partition}", topic_id)
        except OSError:
            self._in_doubt.add((topic, partition))
            raise

    # -- offsets ----------------------------------------------------------------------------------------------------

    def high_watermark(self, topic: str, partition: int) -> int:
        """The high watermark that was last stored, 0 if none was. The log may end below it."""
        return self._offsets[HIGH_WATERMARKS].get((topic, partition), 0)

    def store_high_watermarks(self, offsets: Mapping[Key, int]) -> None:
        """Store high watermarks; partitions that are not named keep theirs. They survive a crash on return."""
        self.store(HIGH_WATERMARKS, offsets)

    def leader_epoch(self, topic: str, partition: int) -> int:
        """The leader epoch that was last stored, -1 if none was."""
        return self._offsets[LEADER_EPOCHS].get((topic, partition), UNDEFINED_EPOCH)

    def store_leader_epoch(self, topic: str, partition: int, epoch: int) -> None:
        """Store the leader epoch that a replica is about to act in. It survives a crash on return."""
        self.store(LEADER_EPOCHS, {(topic, partition): epoch})

    def config_of(self, topic: str) -> LogConfig:
        """The settings of a topic's logs."""
        return self._topics.get(topic, self.config)

    def _config_for(self, key: Key) -> LogConfig:
        """The settings of a log; one that is in the cleaner's checkpoint may have holes, whatever its topic's say now.

        So a broker that learns of its topics' settings later, from the metadata log, can open it.
        """
        config = self.config_of(key[0])
        known = config.compacted or key not in self._offsets[CLEANED_OFFSETS]
        return config if known else replace(config, cleanup_policy="compact,delete")

    def configure(self, topic: str, config: LogConfig | None) -> None:
        """Give a topic's logs other settings, those that are open too; ``None`` for the directory's."""
        if config is None:
            self._topics.pop(topic, None)
        else:
            self._topics[topic] = config
        for key, log in self._logs.items():
            if key[0] != topic:
                continue
            if self.config_of(topic).compacted and key not in self._offsets[CLEANED_OFFSETS]:
                self.store(CLEANED_OFFSETS, {key: 0})
            log.configure(self._config_for(key))

    def cleaned(self, topic: str, partition: int) -> int:
        """How far a compacted log is cleaned, 0 if it never was; the log may begin above it."""
        return self._offsets[CLEANED_OFFSETS].get((topic, partition), 0)

    def store_cleaned(self, topic: str, partition: int, offset: int) -> None:
        """Store how far a compacted log is cleaned. It survives a crash on return."""
        self.store(CLEANED_OFFSETS, {(topic, partition): offset})

    def store_recovery_points(self) -> None:
        """Store the recovery point of every open log, so that opening it looks at less."""
        points = {key: log.recovery_point for key, log in self._logs.items() if log.offline is None}
        self.store(RECOVERY_POINTS, points)
        for key, point in points.items():
            self._logs[key].checkpointed(point)

    def store(self, name: str, offsets: Mapping[Key, int]) -> None:
        """Change lines of one of the checkpoints, on disk first."""
        known = self._offsets[name]
        if name in self._unsure or any(known.get(key) != offset for key, offset in offsets.items()):
            self._write(name, {**known, **offsets})

    def _write(self, name: str, offsets: dict[Key, int]) -> None:
        """Write a checkpoint; where that fails nobody knows what is on disk, and its lines may be of either."""
        self._unsure.add(name)
        write_offsets(self.files, name, offsets)
        self._unsure.discard(name)
        self._offsets[name] = offsets

    def forget(self, name: str, key: Key) -> None:
        """Remove a partition's line from one of the checkpoints, on disk first."""
        if key in self._offsets[name]:
            self._write(name, {other: offset for other, offset in self._offsets[name].items() if other != key})

    def flush(self) -> None:
        """Flush every open log that is not offline, and store the recovery points."""
        for log in self._logs.values():
            if log.offline is None:
                log.flush()
        self.store_recovery_points()

    def close(self) -> None:
        """Flush everything and close the files: a clean shutdown. They are closed, too, where it raises."""
        try:
            self.flush()
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Close the files as they are: what is not synced stays so, as where the process is killed."""
        for log in self._logs.values():
            log.abandon()
        self._logs.clear()
