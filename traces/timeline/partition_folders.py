"""Folders of single partitions (``orders-0``) as a source of observations, read as ``fencepost check`` reads them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ..kafka.partition import SEGMENT_NAME, read_partition
from ..kafka.problems import ProblemLog
from ..kafka.statefiles import encode_uuid, read_meta_properties
from .event_kind import EventKind
from .log_builder import LogBuilder, node_of_path, partition_of_folder
from .observation import Observation
from .source import SourceResult

K = EventKind
_META: Final = "meta.properties"
_EPOCHS: Final = "leader-epoch-checkpoint"
_FIX: Final = "copy the folder again while the broker is down"


_OF_BROKER: Final = frozenset(
    {
        _META,
        "replication-offset-checkpoint",
        "recovery-point-offset-checkpoint",
        "log-start-offset-checkpoint",
        "cleaner-offset-checkpoint",
    }
)
_PASSING: Final = ("-delete", "-future", "-stray")


def is_data_directory(path: Path) -> bool:
    """Whether a folder is a broker's data directory: it has the broker's own files."""
    return path.is_dir() and any((path / name).is_file() for name in _OF_BROKER)


def partition_folders_of(directory: Path) -> list[Path]:
    """The partition folders of a data directory, without copies that move and topics that are being deleted."""
    return [
        each
        for each in sorted(directory.iterdir())
        if each.is_dir() and partition_of_folder(each.name) is not None and not each.name.endswith(_PASSING)
    ]


class PartitionFolders:
    """Read partition folders: segments and the leader epoch cache."""

    name = "partition folder"

    def accepts(self, path: Path) -> bool:
        """Accept a folder with a partition's name and a segment or an epoch cache in it."""
        if not path.is_dir() or partition_of_folder(path.resolve().name) is None:
            return False
        names = [each.name for each in path.iterdir()]
        return _EPOCHS in names or any(SEGMENT_NAME.fullmatch(name) for name in names)

    def read(self, paths: Sequence[Path]) -> SourceResult:
        """Read all folders. A log with a part that could not be read is a problem."""
        found: list[Observation] = []
        problems: list[BadInput] = []
        notes: list[str] = []
        for order, path in enumerate(paths):
            name = partition_of_folder(path.resolve().name)
            assert name is not None
            topic, _, number = name.rpartition("-")
            files = read_partition(path, topic, int(number))
            errors = [each for each in files.problems if each.severity == "error"]
            problems += [each.as_bad_input() for each in errors]
            if files.unread is not None or not files.segments:
                if not errors:
                    problems.append(BadInput("it has no segment", str(path), _FIX))
                continue
            node = _node_of(path)
            if node is None:
                notes.append(f"{path} does not name its broker; put it in a folder such as broker-1")
            template = Observation(
                kind=K.LOG_CONTENT,
                partition=name,
                file=str(path),
                line=0,
                sequence=order << 40,
                node=node,
                topic_id=None if files.topic_id is None else encode_uuid(files.topic_id),
            )
            log = LogBuilder(template, log_start=files.log_start)
            for entry in files.epoch_cache or ():
                log.add_epoch(entry.epoch, entry.start_offset)
            columns = files.batches
            rows = zip(
                columns.base_offset.tolist(),
                columns.last_offset.tolist(),
                columns.leader_epoch.tolist(),
                columns.max_timestamp.tolist(),
                strict=True,
            )
            for base, last, epoch, time in rows:
                log.add_batch(base, last, epoch, time, 0)
            log.log_start, log.log_end = files.log_start, files.log_end
            # Behind a part that could not be read, the log may have any record.
            found += log.observations if files.damaged else log.finish()
        return SourceResult(tuple(found), tuple(problems), tuple(notes))


def _node_of(path: Path) -> int | None:
    """The broker of a partition folder: by ``meta.properties`` beside it, or by the path."""
    beside = path.resolve().parent / _META
    if beside.is_file():
        node = read_meta_properties(beside, ProblemLog(beside)).node_id
        if node is not None:
            return node
    return node_of_path(str(path.parent)) if str(path.parent) != "." else node_of_path(str(path.resolve().parent))
