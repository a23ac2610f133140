"""How fast metadata records are written and read: ``python benchmarks/metadata_records.py [RECORDS]``.

PartitionRecords and IsrChangeRecords of three replicas, and BrokerRecords of two endpoints, in their newest versions.
Beside them a PartitionRecord as one call of ``struct`` with everything known beforehand, which nobody could undercut in
Python. Prints records a second of processor time, best of three, and ratios within this run.
"""

from __future__ import annotations

import struct
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from fencepost.impl.metadata import MetadataFormat, MetadataRecord, decode, encode

NEWEST = MetadataFormat(2).newest
TOPICS = [uuid.uuid5(uuid.NAMESPACE_OID, str(n)) for n in range(1_000)]
WHOLE = struct.Struct(">2b i 16s b3i b3i bb iii b")


def partition(number: int) -> MetadataRecord:
    """A partition with all of its replicas in sync."""
    replicas = (number % 100, (number + 1) % 100, (number + 2) % 100)
    fields = {
        "PartitionId": number % 10,
        "TopicId": TOPICS[number // 10 % 1_000],
        "Replicas": replicas,
        "Isr": replicas,
    }
    fields |= {"RemovingReplicas": (), "AddingReplicas": (), "Leader": replicas[0], "LeaderEpoch": 3}
    return MetadataRecord("PartitionRecord", NEWEST["PartitionRecord"], fields | {"PartitionEpoch": number})


def isr_change(number: int) -> MetadataRecord:
    """One replica is away."""
    fields = {"PartitionId": number % 10, "TopicId": TOPICS[number // 10 % 1_000], "Isr": (number % 100, 101)}
    fields |= {"Leader": number % 100, "LeaderEpoch": 3, "PartitionEpoch": number}
    return MetadataRecord("IsrChangeRecord", NEWEST["IsrChangeRecord"], fields)


def broker(number: int) -> MetadataRecord:
    """A registration."""
    ends = tuple(
        {"Name": name, "Host": f"broker-{number}", "Port": 9092, "SecurityProtocol": 0} for name in ("IN", "OUT")
    )
    fields = {"BrokerId": number, "BrokerEpoch": number, "EndPoints": ends, "Rack": "a", "IncarnationId": TOPICS[0]}
    return MetadataRecord(
        "BrokerRecord", NEWEST["BrokerRecord"], fields | {"Fenced": True, "InControlledShutdown": False}
    )


def rate(job: Callable[[Any], Any], items: Iterable[Any], count: int) -> float:
    """Calls a second, best of three."""
    best = 0.0
    for _ in range(3):
        start = time.process_time()
        for each in items:
            job(each)
        best = max(best, count / (time.process_time() - start))
    return best


def by_hand(record: MetadataRecord) -> bytes:
    """A PartitionRecord of just this form."""
    f = record.fields
    epochs = f["Leader"], f["LeaderEpoch"], f["PartitionEpoch"]
    topic = f["TopicId"].int.to_bytes(16, "big")
    return WHOLE.pack(2, 1, f["PartitionId"], topic, 4, *f["Replicas"], 4, *f["Isr"], 1, 1, *epochs, 0)


def main(count: int = 100_000) -> None:
    """Print the figures."""
    print(f"{count:,} records of each; records a second of processor time")
    rates: dict[str, tuple[float, float]] = {}
    for make in partition, isr_change, broker:
        records = [make(number) for number in range(count)]
        values = [encode(each) for each in records]
        assert [decode(each).fields.keys() for each in values[:10]] == [each.fields.keys() for each in records[:10]]
        write, read = rate(encode, records, count), rate(decode, values, count)
        rates[make.__name__] = write, read
        size = sum(map(len, values)) / count
        print(f"  {records[0].type:<18}{size:>6.1f} bytes{write:>14,.0f} written{read:>14,.0f} read")
    records = [partition(number) for number in range(count)]
    assert all(by_hand(each) == encode(each) for each in records)
    hand = rate(by_hand, records, count), rate(WHOLE.unpack, [encode(each) for each in records], count)
    print(f"  {'one call of struct':<18}{WHOLE.size:>6.1f} bytes{hand[0]:>14,.0f} written{hand[1]:>14,.0f} read")
    ours = rates["partition"]
    print(f"struct : codec, a PartitionRecord  written {hand[0] / ours[0]:.2f} x  read {hand[1] / ours[1]:.2f} x")


if __name__ == "__main__":
    main(*[int(each) for each in sys.argv[1:2]])
