"""What a broker that goes away costs the metadata log, as an event or record by record.

``python benchmarks/replication_volume.py``: the arithmetic of KIP-630, "Amount of Data Replicated", from real encoders.
A broker is fenced, in a cluster of 100 brokers with 100,000 topics of 10 partitions and 3 replicas each. Either the
controller writes one IsrChangeRecord for each partition that the broker has a replica of, or one FenceBrokerRecord, and
whoever reads it works the rest out. What is counted: the text's own sums; the values of our records; and these in the
record batches of ``impl/log``, of one record, of ``--batch``, and of all; times the brokers that they are sent to.
Last, what shipped Kafka writes at the same event, by the layout of its records.

Bytes are exact and the same on every machine. ``--json`` prints them alone.
"""

from __future__ import annotations

import json
import sys
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cyclopts import App
from fencepost.impl.log import Record
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.metadata import MetadataFormat, MetadataRecord

app = App(help=__doc__, version_flags=[])

MIB, KIB = 1 << 20, 1 << 10
TEXT_ISR_CHANGE = {
    "partition id": 4, "topic id": 16, "ISR ids": 8, "leader id": 4, "leader epoch": 4, "api key": 2, "api version": 2,
}  # fmt: skip
"""KIP-630's parts of an IsrChange, in bytes. Three replicas without the one that is away leave two in the ISR."""
TEXT_FENCE_BROKER = {"broker id": 4, "api key": 2, "api version": 2}
"""And of a FenceBroker."""
SHIPPED = {
    "frame version": 1, "type": 1, "version": 1, "partition id": 4, "topic id": 16, "number of tags": 1,
    "tag and size of the ISR": 2, "length of the ISR": 1, "ISR ids": 8,
}  # fmt: skip
"""Of the PartitionChangeRecord that Kafka 4.4.0 writes for each partition: it has no event (DEVIATIONS C2)."""
SHIPPED_LEADER = {"tag and size of the leader": 2, "leader id": 4}
"""What it has more for the third of the partitions that get another leader."""
SHIPPED_FENCE = {
    "frame version": 1, "type": 1, "version": 1, "broker id": 4, "broker epoch": 8, "number of tags": 1,
    "tag and size of the fencing": 2, "fencing": 1,
}  # fmt: skip
"""And of the one BrokerRegistrationChangeRecord behind them."""
TIMESTAMP = 1_600_000_000_000
"""Milliseconds, of every record: those of one event come within one."""


@dataclass(frozen=True)
class Cluster:
    """How large it is. Replicas are spread evenly, so that no broker has two partitions of one topic."""

    topics: int = 100_000
    partitions: int = 10
    replicas: int = 3
    brokers: int = 100

    @property
    def hosted(self) -> int:
        """Partitions that one broker has a replica of, on the average."""
        return self.topics * self.partitions * self.replicas // self.brokers

    def replicas_of(self, number: int) -> list[int]:
        """The brokers of a partition, the preferred leader first."""
        return [(number * self.replicas + n) % self.brokers for n in range(self.replicas)]

    def without(self, broker: int) -> Iterator[tuple[int, list[int]]]:
        """The partitions that a broker has a replica of, and who is left in their ISR."""
        for number in range(self.topics * self.partitions):
            replicas = self.replicas_of(number)
            if broker in replicas:
                yield number, [each for each in replicas if each != broker]


def isr_changes(cluster: Cluster, broker: int, level: int) -> list[bytes]:
    """The values of the records that take a broker out of every ISR, as ``metadata.format`` lets them be written."""
    form = MetadataFormat(level)
    version = form.newest["IsrChangeRecord"]
    values = []
    for number, isr in cluster.without(broker):
        topic, partition = divmod(number, cluster.partitions)
        fields = {"PartitionId": partition, "TopicId": uuid.UUID(int=topic + (1 << 100)), "Isr": isr}
        fields |= {"Leader": isr[0], "LeaderEpoch": 1} | ({"PartitionEpoch": 1} if version else {})
        values.append(form.encode(MetadataRecord("IsrChangeRecord", version, fields)))
    return values


def fence(broker: int, level: int) -> list[bytes]:
    """The one event."""
    form = MetadataFormat(level)
    version = form.newest["FenceBrokerRecord"]
    fields = {"Id": broker} | ({"Epoch": 1} if version else {})
    return [form.encode(MetadataRecord("FenceBrokerRecord", version, fields))]


def in_batches(values: Sequence[bytes], size: int) -> int:
    """Bytes of the batches that so many records each make."""
    records = [Record(value, None, TIMESTAMP) for value in values]
    return sum(
        len(encode_batch(records[first : first + size], base_offset=first)) for first in range(0, len(records), size)
    )


def measured(cluster: Cluster, batch: int, broker: int = 7) -> list[dict[str, int | str]]:
    """A row for each way and level: records, and bytes for one broker that has to write them."""
    rows: list[dict[str, int | str]] = []
    for level in (1, 2):
        for way, values in ("IsrChange", isr_changes(cluster, broker, level)), ("FenceBroker", fence(broker, level)):
            rows.append(
                {
                    "way": way,
                    "metadata.format": level,
                    "records": len(values),
                    "values": sum(map(len, values)),
                    "one a batch": in_batches(values, 1),
                    f"{batch} a batch": in_batches(values, batch),
                    "one batch": in_batches(values, len(values)),
                }
            )
    return rows


def shipped(cluster: Cluster) -> dict[str, int]:
    """Bytes of the values that Kafka 4.4.0 writes, for one broker that persists them."""
    led = cluster.hosted // cluster.replicas
    change, leader = sum(SHIPPED.values()), sum(SHIPPED_LEADER.values())
    return {
        "PartitionChange": change,
        "PartitionChange with a leader": change + leader,
        "BrokerRegistrationChange": sum(SHIPPED_FENCE.values()),
        "records": cluster.hosted + 1,
        "values": cluster.hosted * change + led * leader + sum(SHIPPED_FENCE.values()),
    }


def snapshot(cluster: Cluster, level: int = 2, sampled: int = 10_000) -> int:
    """Bytes of the PartitionRecords of all partitions, values alone, by the mean of the first ``sampled``."""
    form = MetadataFormat(level)
    total, count = 0, min(sampled, cluster.topics * cluster.partitions)
    for number in range(count):
        topic, partition = divmod(number, cluster.partitions)
        replicas = cluster.replicas_of(number)
        fields = {"PartitionId": partition, "TopicId": uuid.UUID(int=topic), "Replicas": replicas, "Isr": replicas}
        fields |= {"RemovingReplicas": (), "AddingReplicas": (), "Leader": replicas[0], "LeaderEpoch": 0}
        fields |= {"PartitionEpoch": 0} if form.newest["PartitionRecord"] else {}
        total += len(form.encode(MetadataRecord("PartitionRecord", form.newest["PartitionRecord"], fields)))
    return total * cluster.topics * cluster.partitions // count


def by_the_text(cluster: Cluster) -> dict[str, int]:
    """KIP-630's own sums, in bytes."""
    isr_change, fenced = sum(TEXT_ISR_CHANGE.values()), sum(TEXT_FENCE_BROKER.values())
    others = cluster.brokers - 1
    return {
        "IsrChange": isr_change,
        "FenceBroker": fenced,
        "partitions": cluster.hosted,
        "IsrChange, one broker": isr_change * cluster.hosted,
        "IsrChange, all others": isr_change * cluster.hosted * others,
        "FenceBroker, all others": fenced * others,
    }


def scaled(size: int) -> str:
    """In the units that the text means by MB and KB: 2**20 and 2**10 bytes."""
    return f"{size / MIB:,.2f} MiB" if size >= MIB // 10 else f"{size / KIB:,.2f} KiB"


@app.default
def main(*, topics: int = 100_000, brokers: int = 100, batch: int = 1_000, as_json: bool = False) -> None:
    """Count. ``topics`` and ``brokers`` of the cluster, records a ``batch``, and whether to print JSON."""
    cluster = Cluster(topics=topics, brokers=brokers)
    text, rows = by_the_text(cluster), measured(cluster, batch)
    whole, kafka = snapshot(cluster), shipped(cluster)
    if as_json:
        json.dump({"text": text, "measured": rows, "snapshot": whole, "shipped": kafka}, sys.stdout)
        print()
        return
    others = brokers - 1
    print(f"{topics:,} topics of {cluster.partitions} partitions and {cluster.replicas} replicas, {brokers} brokers")
    print(f"one broker goes: {text['partitions']:,} of its partitions have another ISR, {others} brokers are told\n")
    print("KIP-630's sums:")
    for name, parts in ("IsrChange", TEXT_ISR_CHANGE), ("FenceBroker", TEXT_FENCE_BROKER):
        print(f"  {name:<12}{' + '.join(map(str, parts.values()))} = {sum(parts.values())} bytes")
    for name in ("IsrChange, one broker", "IsrChange, all others", "FenceBroker, all others"):
        print(f"  {name:<26}{text[name]:>14,} bytes{scaled(text[name]):>15}")
    kinds = ["values", "one a batch", f"{batch} a batch", "one batch"]
    print("\nOur records, bytes a record, for one broker, and for all others:")
    print(f"  {'':<12}{'format':>6}{'records':>9}  {'':<14}{'a record':>9}{'one broker':>13}{'all others':>14}")
    for row in rows:
        for kind in kinds if row["records"] != 1 else kinds[:2]:
            size, count = int(row[kind]), int(row["records"])
            head = f"{row['way']:<12}{row['metadata.format']:>6}{count:>9,}" if kind == "values" else " " * 27
            print(f"  {head}  {kind:<14}{size / count:>9.1f}{scaled(size):>13}{scaled(size * others):>14}")
    print()
    for level in (0, 2):
        event, changes = int(rows[level + 1]["one batch"]), int(rows[level][kinds[2]])
        print(f"metadata.format {rows[level]['metadata.format']}: {kinds[2]}, records : event {changes / event:,.0f} x")
    size = kafka["values"]
    change, leader = kafka["PartitionChange"], kafka["PartitionChange with a leader"]
    print(f"\nKafka 4.4.0 has no event: {kafka['records']:,} records of {change} bytes, {leader} with another leader;")
    print(f"values alone, one broker {scaled(size)}, all others {scaled(size * others)}.")
    print(f"Every snapshot has all {topics * cluster.partitions:,} partitions anyway: {scaled(whole)} of values.")


if __name__ == "__main__":
    app()
