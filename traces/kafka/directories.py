"""Several data directories of one broker (``log.dirs``, ``metadata.log.dir``): put together, or told apart as copies.

A broker with more than one disk has its partitions spread over its directories. ``meta.properties`` has the node's id,
the same in all of them, and from Kafka 3.7 on each directory's own (KIP-858).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ...model.core.errors import BadInput
from .broker import METADATA, BrokerFiles, read_broker

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from pathlib import Path

    from .batches import Limits


class SecondCopy(BadInput):
    """A directory that cannot stand beside another one of the same node: a copy of it, or of another moment.

    ``label``: that node's.
    """

    def __init__(self, label: str, what: str, where: str, mend: str) -> None:
        super().__init__(what, where, mend)
        self.label = label


class OtherCluster(BadInput):
    """A directory of another cluster than those before it."""


def read_brokers(
    paths: Iterable[str | Path],
    *,
    limits: Limits | None = None,
    on_bytes: Callable[[int], None] | None = None,
) -> list[BrokerFiles]:
    """Read the data directories of brokers of one cluster: one ``BrokerFiles`` for each directory, in the order given.

    Raises ``BadInput`` as ``read_broker`` and ``require_one_cluster`` do.
    """
    brokers = [read_broker(path, limits=limits, on_bytes=on_bytes) for path in paths]
    require_one_cluster(brokers)
    return brokers


def require_one_cluster(brokers: Sequence[BrokerFiles]) -> None:
    """Raise ``BadInput`` for different cluster ids, ``SecondCopy`` for two directories that no broker has at once.

    That is where they have one directory id, or hold the same partition: Kafka does not start with such two.
    """
    for index, broker in enumerate(brokers):
        for earlier in brokers[:index]:
            _require_one_cluster(earlier, broker)
            if broker.node_id is not None and broker.node_id == earlier.node_id:
                _require_two_directories(earlier, broker)


def _require_one_cluster(earlier: BrokerFiles, broker: BrokerFiles) -> None:
    if None not in (broker.cluster_id, earlier.cluster_id) and broker.cluster_id != earlier.cluster_id:
        raise OtherCluster(
            f"cluster id {broker.cluster_id}, but {earlier.path} is of cluster {earlier.cluster_id}",
            str(broker.path / "meta.properties"),
            "name the directories of one cluster",
        )


def _require_two_directories(earlier: BrokerFiles, broker: BrokerFiles) -> None:
    mend = "name each directory of a broker once, all of one moment"
    mine, theirs = broker.meta, earlier.meta
    if mine and theirs and mine.directory_id is not None and mine.directory_id == theirs.directory_id:
        what = f"node id {broker.node_id} and directory id {mine.directory_id} are also those of {earlier.path}"
        raise SecondCopy(broker.label, what, str(broker.path / "meta.properties"), mend)
    shared = min(broker.partitions.keys() & earlier.partitions.keys(), default=None)
    if shared is not None:
        path = broker.partitions[shared].path
        what = f"broker {broker.node_id} has {path.name} in {earlier.path} too"
        raise SecondCopy(broker.label, what, str(path), mend)


def by_node(brokers: Sequence[BrokerFiles]) -> list[BrokerFiles]:
    """One ``BrokerFiles`` for each node, by node id; what it is does not depend on the order of the directories.

    Raises ``BadInput`` as ``require_one_cluster`` does.
    """
    require_one_cluster(brokers)
    ordered = sorted(brokers, key=lambda b: (b.node_id is None, b.node_id or 0, str(b.path)))
    nodes: list[BrokerFiles] = []
    for broker in ordered:
        if nodes and broker.node_id is not None and nodes[-1].node_id == broker.node_id:
            nodes[-1] = _merged(nodes[-1], broker)
        else:
            nodes.append(broker)
    return nodes


def _merged(one: BrokerFiles, other: BrokerFiles) -> BrokerFiles:
    """Both directories as one; all that comes from the metadata log comes from the one that has it."""
    quorum = other if METADATA in other.partitions else one
    return replace(
        one,
        directories=(*one.directories, *other.directories),
        partitions=dict(sorted({**one.partitions, **other.partitions}.items())),
        quorum=quorum.quorum,
        metadata=quorum.metadata,
        snapshots=quorum.snapshots,
        replayed=quorum.replayed,
        boots_from=quorum.boots_from,
        remote={**one.remote, **other.remote},
        checkpointed=(one.checkpointed | other.checkpointed) - one.partitions.keys() - other.partitions.keys(),
        # Kafka leaves a marker in each directory.
        clean_shutdown=one.clean_shutdown and other.clean_shutdown,
        clean_epoch=one.clean_epoch if one.clean_epoch == other.clean_epoch else None,
        problems=(*one.problems, *other.problems),
    )
