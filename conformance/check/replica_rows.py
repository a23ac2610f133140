"""The table of replicas that a check of brokers' files shows, made from what was read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...traces.kafka.broker import BrokerFiles
from ...traces.kafka.cross_checks import PartitionComparison
from ...traces.kafka.image import PartitionState
from ...traces.kafka.partition import METADATA_TOPIC, PartitionFiles
from ...traces.kafka.truncation import effective_epochs
from ...traces.report.replicas import ReplicaRow, ReplicaTable
from .files import Cluster

Key = tuple[str, int]

_OTHER = {True: "old topic", False: "old topic?"}
"""The cell of a folder of another topic of that name, by whether the files prove it."""


def replica_table(cluster: Cluster, suspects: Iterable[str]) -> ReplicaTable:
    """Build the table.

    Args:
        cluster: The brokers.
        suspects: Names of partitions with a finding, which come first.
    """
    wanted = set(suspects)
    keys = sorted({key for broker in cluster.report.brokers for key in broker.partitions})
    comparisons = {(each.topic, each.partition): each for each in cluster.report.comparisons}
    rows = {
        key: _rows(cluster, key, comparisons.get(key))
        for key in keys
        if key[0] != METADATA_TOPIC or _name(key) in wanted
    }
    with_finding = [key for key in rows if _name(key) in wanted]
    # A leader enters its epoch before its followers do, and a high watermark lags: neither is a difference of logs.
    alike = {"leader", "newest", "same"}
    differing = [key for key in rows if key not in with_finding and any(row.log not in alike for row in rows[key])]
    equal = [key for key in rows if key not in with_finding and key not in differing]
    ordered = [*with_finding, *differing, *equal]
    shown = sum(len(rows[key]) for key in (*with_finding, *differing))
    return ReplicaTable(tuple(row for key in ordered for row in rows[key]), shown, tuple(_name(key) for key in equal))


def _rows(cluster: Cluster, key: Key, comparison: PartitionComparison | None) -> list[ReplicaRow]:
    """One row for each replica of a partition, by node id."""
    holders = [broker for broker in cluster.report.brokers if key in broker.partitions]
    holders.sort(key=lambda broker: (broker.node_id is None, broker.node_id or 0, broker.label))
    state = cluster.elected(*key)
    others = cluster.report.other_topics
    current = [broker for broker in holders if (broker.label, key) not in others]
    reference = _reference(current or holders, key, state)
    rows = []
    for number, broker in enumerate(holders):
        files, best = broker.partitions[key], reference.partitions[key]
        values, wanted = _values(files), _values(best)
        rows.append(
            ReplicaRow(
                partition=_name(key),
                broker=str(broker.path) if broker.node_id is None else broker.node_id,
                leader=None if state is None else state.leader,
                leader_epoch=None if state is None else state.leader_epoch,
                isr=None if state is None else state.isr,
                epoch=values["epoch"],
                log_start=files.log_start,
                high_watermark=files.high_watermark,
                log_end=files.log_end,
                log=_OTHER[others[broker.label, key].sure]
                if (broker.label, key) in others
                else _compared(broker, reference, key, state, comparison),
                differs=frozenset(name for name in values if values[name] != wanted[name]),
                first=number == 0,
            )
        )
    return rows


def _values(files: PartitionFiles) -> dict[str, int | None]:
    epochs = effective_epochs(files)
    return {
        "epoch": epochs[-1].epoch if epochs else None,
        "log_start": files.log_start,
        "high_watermark": files.high_watermark,
        "log_end": files.log_end,
    }


def _reference(holders: Sequence[BrokerFiles], key: Key, state: PartitionState | None) -> BrokerFiles:
    """The elected leader if its directory is here, else the replica with the newest epoch and longest log."""
    for broker in holders:
        if state is not None and broker.node_id == state.leader:
            return broker

    def rank(broker: BrokerFiles) -> tuple[int, int]:
        values = _values(broker.partitions[key])
        epoch, end = values["epoch"], values["log_end"]
        return -1 if epoch is None else epoch, end or 0

    return max(holders, key=rank)


def _compared(
    broker: BrokerFiles,
    reference: BrokerFiles,
    key: Key,
    state: PartitionState | None,
    comparison: PartitionComparison | None,
) -> str:
    """A replica's log against the reference's: ``leader``, ``same``, ``2 behind``, ``differs at 7``."""
    files, best = broker.partitions[key], reference.partitions[key]
    if files.unread is not None:
        return "not read"
    if files.damaged:
        return "damaged"
    if broker is reference:
        return "leader" if state is not None and broker.node_id == state.leader else "newest"
    for each in () if comparison is None else comparison.divergences:
        if {each.a, each.b} == {broker.label, reference.label}:
            return f"differs at {each.difference.offset}"
    behind = best.log_end - files.log_end
    if behind == 0:
        return "same"
    return f"{behind} behind" if behind > 0 else f"{-behind} ahead"


def _name(key: Key) -> str:
    return f"{key[0]}-{key[1]}"
