"""Copy the nodes' data directories at one instant, keep what says something, and list it in a manifest.

What is kept: segments, the checkpoint files, ``partition.metadata``, ``meta.properties`` and, of
``__cluster_metadata-0``, the log, the snapshots and ``quorum-state``. What is not: index files, preallocated to 10 MiB
each and rebuilt by Kafka from the segments, producer state snapshots, the cleaner's checkpoint, and lock files.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import struct
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...model.core.errors import BadInput
from ..bundled.unpacked import unpacked
from .cluster import BROKER_IDS, CONTROLLER_ID, NODE_NAMES, Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from .client import PartitionState

MANIFEST = "corpus.json"
README = "README.md"

_KEPT_NAMES = frozenset(
    {
        ".kafka_cleanshutdown",
        "leader-epoch-checkpoint",
        "log-start-offset-checkpoint",
        "meta.properties",
        "partition.metadata",
        "quorum-state",
        "recovery-point-offset-checkpoint",
        "replication-offset-checkpoint",
    }
)
_KEPT_SUFFIXES = frozenset({".checkpoint", ".log"})

# The head of a v2 record batch (Kafka documentation, "Record Batch"): base offset, length, partition leader epoch,
# magic, CRC, attributes and last offset delta. The length counts from behind itself.
_HEAD = struct.Struct(">qiibIhi")
_LENGTH_ENDS_AT = 12
_COUNT_AT = 57


def kept(path: Path, names: frozenset[str] = frozenset()) -> bool:
    """Whether a file of a data directory belongs in a corpus; those called ``names``, too."""
    return path.name in _KEPT_NAMES or path.suffix in _KEPT_SUFFIXES or path.name in names


def kept_of_store(path: Path) -> bool:
    """Whether a file of ``LocalTieredStorage`` belongs in a corpus: records and leader epochs, no indexes."""
    return path.suffix in (".log", ".leader_epoch_checkpoint")


def checkpoint(path: Path) -> dict[str, int]:
    """An offset checkpoint file as ``{"topic-partition": offset}``; empty while there is no such file.

    For waiting on a live broker, so a half-written file reads as empty: Kafka replaces it by a rename a moment later.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()[2:]
        entries = (line.rsplit(" ", 2) for line in lines)
        return {f"{topic}-{partition}": int(offset) for topic, partition, offset in entries}
    except (OSError, ValueError):
        return {}


def batches(partition: Path) -> Iterator[tuple[int, int, int]]:
    """``(leader epoch, base offset, next offset)`` of each batch of a partition's segments, in offset order."""
    for segment in sorted(partition.glob("*.log")):
        data = segment.read_bytes()
        at = 0
        while at + _HEAD.size <= len(data):
            base, length, epoch, _magic, _crc, _attributes, last_delta = _HEAD.unpack_from(data, at)
            if length <= 0:  # a preallocated tail
                break
            yield epoch, base, base + last_delta + 1
            at += _LENGTH_ENDS_AT + length


def record_count(partition: Path) -> int:
    """The records of a partition's segments, as the batches' headers count them; control records too."""
    found = 0
    for segment in sorted(partition.glob("*.log")):
        data = segment.read_bytes()
        at = 0
        while at + _COUNT_AT + 4 <= len(data):
            found += int.from_bytes(data[at + _COUNT_AT : at + _COUNT_AT + 4], "big")
            at += _LENGTH_ENDS_AT + int.from_bytes(data[at + 8 : at + _LENGTH_ENDS_AT], "big")
    return found


def epoch_runs(partition: Path) -> list[list[int]]:
    """The log by leader epoch: ``[epoch, first offset, end offset]`` per run of batches of one epoch."""
    runs = []
    for epoch, group in groupby(batches(partition), key=lambda batch: batch[0]):
        run = list(group)
        runs.append([epoch, run[0][1], run[-1][2]])
    return runs


class Capture:
    """The corpus that a recording fills, stage by stage, in the directory `home`.

    `names`: files of data directories that it keeps beside the usual; `folders`: those beside the nodes' own.
    """

    def __init__(self, home: Path, names: frozenset[str] = frozenset(), folders: Sequence[str] = ()) -> None:
        self.home = home
        self._names = names
        self._folders = tuple(folders)
        self.stages: list[dict[str, Any]] = []

    def take(self, cluster: Cluster, name: str, what: str, partitions: Mapping[str, PartitionState] | None) -> None:
        """Freeze `cluster`, copy every node's directory to the stage `name`, and note how each node stood.

        `partitions` is what the cluster's metadata said of each topic, None where no broker could be asked.
        """
        nodes: dict[str, Any] = {}
        with cluster.frozen():
            for node_id, node in cluster.nodes.items():
                copy = self.home / name / node.name
                _copy(node.directory, copy, lambda path: kept(path, self._names))
                state: dict[str, Any] = {"process": "running" if node.running else "killed"}
                if node_id in BROKER_IDS:
                    state["logs"] = {
                        partition.name: epoch_runs(partition)
                        for partition in sorted(copy.iterdir())
                        if partition.is_dir() and not partition.name.startswith("__")
                    }
                    state["high_watermarks"] = dict(sorted(checkpoint(copy / "replication-offset-checkpoint").items()))
                nodes[node.name] = state
            for folder in self._folders:
                _copy(cluster.home / folder, self.home / name / folder, kept_of_store)
        stage: dict[str, Any] = {"name": name, "what": what, "nodes": nodes}
        if partitions is not None:
            stage["partitions"] = {
                f"{topic}-0": {"leader": state.leader, "isr": list(state.isr), "elr": list(state.elr)}
                for topic, state in sorted(partitions.items())
            }
        self.stages.append(stage)

    def finish(self, about: Mapping[str, Any], readme: str) -> None:
        """Write the manifest: `about`, the stages, and each file's size and SHA-256."""
        (self.home / README).write_text(readme, encoding="utf-8")
        manifest = {
            "format": "fencepost-kafka-corpus",
            "version": 1,
            **about,
            "stages": self.stages,
            "files": file_list(self.home),
        }
        # One line for each stage, record and file: short, and a diff shows what changed.
        parts = []
        for key, value in manifest.items():
            text = json.dumps(value)
            if isinstance(value, list) and value and isinstance(value[0], dict):
                text = "[\n  " + ",\n  ".join(json.dumps(entry) for entry in value) + "\n ]"
            parts.append(f" {json.dumps(key)}: {text}")
        (self.home / MANIFEST).write_text("{\n" + ",\n".join(parts) + "\n}\n", encoding="utf-8")


def copy_kept(source: Path, target: Path) -> None:
    """Copy what belongs in a corpus of a data directory."""
    _copy(source, target, kept)


def _copy(source: Path, target: Path, wanted: Callable[[Path], bool]) -> None:
    for path in sorted(path for path in source.rglob("*") if path.is_file() and wanted(path)):
        at = target / path.relative_to(source)
        at.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, at)


def file_list(corpus: Path) -> list[dict[str, Any]]:
    """Every file but the manifest and README.md, by path: path (relative, with slashes), size in bytes, SHA-256."""
    found = []
    for path in corpus.rglob("*"):
        relative = path.relative_to(corpus).as_posix()
        if path.is_file() and relative not in (MANIFEST, README):
            data = path.read_bytes()
            found.append({"path": relative, "bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()})
    return sorted(found, key=lambda entry: str(entry["path"]))


def load_manifest(corpus: Path) -> dict[str, Any]:
    """The manifest of the corpus at `corpus`. Raises `BadInput` when there is none or it is not one."""
    path = corpus / MANIFEST
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except OSError as failed:
        raise BadInput(
            f"no manifest there ({failed.strerror})", str(path), "name a directory that the recorder wrote"
        ) from failed
    except ValueError as failed:
        raise BadInput(f"not JSON ({failed})", str(path), "record the corpus anew") from failed
    if not isinstance(manifest, dict) or manifest.get("format") != "fencepost-kafka-corpus":
        raise BadInput("not a corpus manifest", str(path), "name a directory that the recorder wrote")
    return manifest


BUNDLED = ("failover", "compacted", "tiered")
"""The recorded scenarios that are part of the package."""


def bundled_corpus(scenario: str = "failover") -> Path:
    """Folder with the unpacked corpus of a bundled scenario."""
    return unpacked(scenario)


def node_directories(corpus: Path, stage: str) -> list[Path]:
    """The data directories of all nodes of a stage, brokers first: a controller has a metadata log too."""
    return [corpus / stage / NODE_NAMES[id_] for id_ in (*BROKER_IDS, CONTROLLER_ID)]


def broker_directories(corpus: Path, stage: str) -> list[Path]:
    """The brokers' data directories of a stage, by broker id: what ``fencepost check`` takes."""
    return [corpus / stage / NODE_NAMES[id_] for id_ in BROKER_IDS]
