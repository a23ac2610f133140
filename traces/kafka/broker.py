"""The data directory of one broker, or of several of one cluster."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...model.core.errors import BadInput
from .batches import Batch, Limits
from .boot import boot_snapshot, emptied
from .image import ImageBuilder, MetadataImage, State
from .misnamed_path import how_to_name
from .partition import METADATA_TOPIC, SEGMENT_NAME, SNAPSHOT_NAME, PartitionFiles, SnapshotId, read_partition
from .problems import Problem, ProblemLog
from .remote_metadata import REMOTE_TOPIC, RemoteEvents
from .snapshot_files import ReplayedStates, SnapshotFile, read_snapshot
from .statefiles import (
    MetaProperties,
    QuorumState,
    present,
    read_integer,
    read_meta_properties,
    read_offset_checkpoint,
    read_quorum_state,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_PARTITION_FOLDER = re.compile(r"([A-Za-z0-9._-]{1,249})-(0|[1-9][0-9]{0,9})")
_MOVED_FOLDER = re.compile(r".*-(delete|future|stray)")

CLEANED = "cleaner-offset-checkpoint"
PREVIEW = "@metadata-0"
"""The folder of the metadata log in Kafka 2.8's preview of KRaft."""
METADATA = METADATA_TOPIC, 0
"""The controllers' own log."""

NOT_KAFKA = "not a Kafka data directory"


@dataclass(frozen=True, slots=True)
class DataDirectory:
    """One of a broker's ``log.dirs``; ``directory_id`` is its own (KIP-858), where it has one."""

    path: Path
    directory_id: str | None

    def to_json(self) -> dict[str, Any]:
        """Both fields."""
        return {"path": str(self.path), "directory_id": self.directory_id}


@dataclass(frozen=True, slots=True)
class BrokerFiles:
    """Everything that was read from one data directory, or from several of one broker (``directories.by_node``)."""

    path: Path
    meta: MetaProperties | None
    partitions: dict[tuple[str, int], PartitionFiles]
    """By ``(topic, partition)``, sorted; the metadata log is ``("__cluster_metadata", 0)``."""
    quorum: QuorumState | None
    metadata: MetadataImage | None
    """The controller's decisions as this node's own metadata log has them; ``None`` without such a log."""
    clean_shutdown: bool
    """Whether Kafka left its marker of a clean stop; without one, checkpoints may lag what the broker knew."""
    problems: tuple[Problem, ...]
    """All problems of all files, in the order of the files."""
    snapshots: tuple[SnapshotFile, ...] = ()
    """Those of the metadata log, by their ids."""
    replayed: dict[int, State] = field(default_factory=dict)
    """By a snapshot's end offset: the state that the log itself makes up to there, where the log tells it."""

    boots_from: SnapshotFile | None = None
    """The snapshot that Kafka starts from in place of the metadata log on disk, if it does (``boot.py``).

    ``metadata`` is then that snapshot's.
    """

    directories: tuple[DataDirectory, ...] = ()
    """The directories that this was read from: one, or all that were given of the broker's ``log.dirs``."""
    remote: dict[int, RemoteEvents] = field(default_factory=dict)
    """By partition of ``__remote_log_metadata``, what this node's replica of it says of remote segments (KIP-405)."""
    checkpointed: frozenset[tuple[str, int]] = frozenset()
    """The partitions without a folder that ``replication-offset-checkpoint`` has a high watermark above 0 of."""
    clean_epoch: int | None = None
    """The broker epoch in the marker of a clean stop (KIP-966), where there is one."""

    def booted(self, key: tuple[str, int]) -> PartitionFiles:
        """A partition's log as this node would have it once Kafka has started."""
        files = self.partitions[key]
        return emptied(files, self.boots_from) if key == METADATA and self.boots_from else files

    @property
    def node_id(self) -> int | None:
        """The node id of ``meta.properties``."""
        return self.meta.node_id if self.meta else None

    @property
    def cluster_id(self) -> str | None:
        """The cluster id of ``meta.properties``."""
        return self.meta.cluster_id if self.meta else None

    @property
    def label(self) -> str:
        """``broker 2``, or the folder's path where the node id is not known."""
        return str(self.path) if self.node_id is None else f"broker {self.node_id}"

    def to_json(self) -> dict[str, Any]:
        """A summary for a report; no row per batch or record."""
        return {
            "path": str(self.path),
            "node_id": self.node_id,
            "cluster_id": self.cluster_id,
            "directory_id": self.meta.directory_id if self.meta else None,
            "directories": [directory.to_json() for directory in self.directories],
            "clean_shutdown": self.clean_shutdown,
            "quorum_state": self.quorum.to_json() if self.quorum else None,
            "metadata": self.metadata.to_json() if self.metadata else None,
            "boots_from": str(self.boots_from.id) if self.boots_from else None,
            "partitions": [partition.to_json() for partition in self.partitions.values()],
            "problems": [problem.to_json() for problem in self.problems],
        }


def data_bytes(path: str | Path) -> int:
    """The bytes of all segments below a data directory: what ``on_bytes`` will add up to."""
    return sum(file.stat().st_size for file in Path(path).glob("*/*.log") if file.is_file())


def read_broker(
    path: str | Path,
    *,
    topics: Iterable[str] | None = None,
    limits: Limits | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> BrokerFiles:
    """Read one broker's data directory (one of its ``log.dirs``), whole; or of ``topics`` alone.

    With them come the metadata log, and that of remote storage.

    What cannot be read in one file becomes a ``Problem`` and the rest is still read. ``on_bytes`` is called
    with the size of each segment after it was read.

    Raises ``BadInput`` for a path that does not exist, is no directory, or is no Kafka data directory.
    """
    root = Path(path)
    limits = limits or Limits()
    folders = _partition_folders(root)
    every = frozenset(folders)
    if topics is not None:
        chosen = {*topics, METADATA_TOPIC, REMOTE_TOPIC}
        folders = {key: folder for key, folder in folders.items() if key[0] in chosen}
    problems: list[Problem] = []
    meta = _meta(root, problems)
    watermarks = _checkpoint(root / "replication-offset-checkpoint", problems)
    starts = _checkpoint(root / "log-start-offset-checkpoint", problems)
    recovery = _checkpoint(root / "recovery-point-offset-checkpoint", problems)
    cleaned = _checkpoint(root / CLEANED, problems)
    cleaner_told = present(root / CLEANED)

    if (root / PREVIEW).is_dir():
        what = "the metadata log of Kafka 2.8's KRaft preview, which Fencepost does not read"
        mend = "the checks that need the controller's decisions are left out"
        problems.append(Problem("preview-metadata", what, root / PREVIEW, mend, severity="note"))
    partitions: dict[tuple[str, int], PartitionFiles] = {}
    image: MetadataImage | None = None
    quorum: QuorumState | None = None
    snapshots: tuple[SnapshotFile, ...] = ()
    replayed: ReplayedStates | None = None
    boots_from: SnapshotFile | None = None
    remote: dict[int, RemoteEvents] = {}
    for (topic, index), folder in sorted(folders.items()):
        key = topic, index
        builder = None
        replay: Callable[[Batch, ProblemLog], None] | None = None
        if key == METADATA:
            snapshots, builder = _read_snapshots(folder, problems, limits)
            replayed = ReplayedStates(builder, (each.id.end_offset for each in snapshots))

            def replay(
                batch: Batch,
                log: ProblemLog,
                builder: ImageBuilder = builder,
                replayed: ReplayedStates = replayed,
            ) -> None:
                replayed.reach(batch.base_offset)
                builder.replay(batch, log)

        elif topic == REMOTE_TOPIC:
            told = remote[index] = RemoteEvents()

            def replay(batch: Batch, log: ProblemLog, told: RemoteEvents = told) -> None:
                told.take(batch, log, limits)

        files = read_partition(
            folder,
            topic,
            index,
            high_watermark=watermarks.get(key),
            log_start_checkpoint=starts.get(key),
            recovery_point=recovery.get(key),
            cleaned=cleaned.get(key),
            cleaner_told=cleaner_told,
            limits=limits,
            on_batch=replay,
            on_bytes=on_bytes,
        )
        partitions[key] = files
        problems.extend(files.problems)
        if index in remote and topic == REMOTE_TOPIC:
            # A torn tail, or a log below its high watermark, lacks events that other replicas have acted on.
            whole = not files.damaged and not files.torn and files.log_end >= (files.high_watermark or 0)
            remote[index].complete &= whole and files.log_start == 0
        if builder and replayed:
            replayed.reach(files.log_end)
            image = builder.image
            committed = max((known.end_offset for known, _ in files.snapshots), default=0)
            ended = files.log_end < max(committed, files.high_watermark or 0)
            image.complete = image.complete and not files.damaged and not ended
            boots_from = boot_snapshot(files, snapshots)
            if boots_from:
                image = _image_of(boots_from, limits)
                replayed.by_end.pop(boots_from.id.end_offset, None)
            state = folder / "quorum-state"
            if present(state):
                state_log = ProblemLog(state)
                quorum = read_quorum_state(state, state_log)
                problems.extend(state_log.result())
    clean, clean_epoch = _clean_shutdown(root / ".kafka_cleanshutdown")
    states = replayed.by_end if replayed else {}
    return BrokerFiles(
        path=root,
        meta=meta,
        partitions=partitions,
        quorum=quorum,
        metadata=image,
        clean_shutdown=clean,
        problems=tuple(problems),
        snapshots=snapshots,
        replayed=states,
        boots_from=boots_from,
        directories=(DataDirectory(root, meta.directory_id if meta else None),),
        remote=remote,
        clean_epoch=clean_epoch,
        checkpointed=frozenset(key for key, mark in watermarks.items() if mark > 0 and key not in every),
    )


def _clean_shutdown(marker: Path) -> tuple[bool, int | None]:
    """Whether the marker is there, and the broker epoch in it: an older Kafka leaves an empty file."""
    if not present(marker):
        return False, None
    try:
        found = json.loads(read_text(marker, ProblemLog(marker)) or "")
        return True, read_integer(found["brokerEpoch"])
    except (ValueError, RecursionError, TypeError, KeyError):
        return True, None


def _image_of(snapshot: SnapshotFile, limits: Limits) -> MetadataImage:
    """What a snapshot alone makes; it was read before, so its problems are known."""
    return read_snapshot(snapshot.path, snapshot.id, limits)[1].image


def _partition_folders(root: Path) -> dict[tuple[str, int], Path]:
    """The partition folders below ``root``; raises ``BadInput`` where this is no data directory."""
    if not root.exists():
        raise BadInput("no such directory", str(root), "name the data directory of a broker")
    if not root.is_dir():
        raise BadInput("not a directory", str(root), how_to_name(root))
    folders: dict[tuple[str, int], Path] = {}
    try:
        for entry in sorted(root.iterdir()):
            match = _PARTITION_FOLDER.fullmatch(entry.name)
            if match and entry.is_dir() and not _MOVED_FOLDER.fullmatch(entry.name):
                folders[match[1], int(match[2])] = entry
    except OSError as error:
        raise BadInput(error.strerror or str(error), str(root), "make the directory readable") from None
    if not folders and not (root / "meta.properties").exists():
        raise BadInput(NOT_KAFKA, str(root), how_to_name(root))
    if not (root / "meta.properties").exists() and not any(_has_segment(folder) for folder in folders.values()):
        raise BadInput(NOT_KAFKA, str(root), how_to_name(root))
    return folders


def topic_names(root: Path) -> list[str]:
    """List the topics that have a partition in a data directory. Raises ``BadInput`` as ``read_broker``."""
    return sorted({topic for topic, _ in _partition_folders(root)})


def _has_segment(folder: Path) -> bool:
    try:
        return any(SEGMENT_NAME.fullmatch(entry.name) for entry in folder.iterdir())
    except OSError:
        return False


def _meta(root: Path, problems: list[Problem]) -> MetaProperties | None:
    path = root / "meta.properties"
    log = ProblemLog(path)
    meta = None
    if present(path):
        meta = read_meta_properties(path, log)
    else:
        log.add("no-meta-properties", "no meta.properties", "copy it from the broker: it holds the node id")
    problems.extend(log.result())
    return meta


def _checkpoint(path: Path, problems: list[Problem]) -> dict[tuple[str, int], int]:
    if not present(path):
        return {}
    log = ProblemLog(path)
    entries = read_offset_checkpoint(path, log)
    problems.extend(log.result())
    return {key: offset for key, (offset, _) in entries.items()}


def _read_snapshots(
    folder: Path, problems: list[Problem], limits: Limits
) -> tuple[tuple[SnapshotFile, ...], ImageBuilder]:
    """Every snapshot, and the image from which to replay the log.

    Where the log does not begin at 0, that is the oldest snapshot that reaches its first segment.
    """
    starts = [int(p.name[:20]) for p in folder.glob("*.log") if SEGMENT_NAME.fullmatch(p.name)]
    start = min(starts, default=0)
    builder = ImageBuilder(limits, from_start=start == 0)
    found: list[SnapshotFile] = []
    for snapshot, path in _named_snapshots(folder):
        read, loaded, faults = read_snapshot(path, snapshot, limits)
        found.append(read)
        problems.extend(faults)
        if start > 0 and snapshot.end_offset >= start and not builder.image.end_offset:
            builder = loaded
    return tuple(found), builder


def _named_snapshots(folder: Path) -> list[tuple[SnapshotId, Path]]:
    named = [(SNAPSHOT_NAME.fullmatch(path.name), path) for path in folder.glob("*.checkpoint")]
    return sorted((SnapshotId(int(match[1]), int(match[2])), path) for match, path in named if match)
