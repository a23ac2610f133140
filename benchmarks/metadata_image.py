"""What an image of many partitions costs: ``python benchmarks/metadata_image.py [PARTITIONS]``.

100 brokers, topics of ten partitions with three replicas each. Prints milliseconds of processor time, best of five (for
snapshots, of one), and the resident memory that the image has taken.
"""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable
from typing import Any

import psutil
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.metadata import changes
from fencepost.impl.metadata.elections import PartitionImage
from fencepost.impl.metadata.image import Image, PartitionKey
from fencepost.impl.metadata.machine import MetadataMachine
from fencepost.impl.quorum import SnapshotId
from fencepost.impl.wire.controller import Endpoint

BROKERS = 100
EACH = 10


class _Writer:
    """Keeps a snapshot in a file."""

    id = SnapshotId(1, 0)

    def __init__(self) -> None:
        self.file = SimulatedFiles(1).open("snapshot", create=True)

    def append(self, data: bytes) -> None:
        self.file.append(data)

    def finished(self) -> None:
        """Nothing is left to do."""


def filled(partitions: int) -> MetadataMachine:
    """A machine with an image of so many partitions."""
    machine = MetadataMachine()
    image = machine.image
    for broker in range(BROKERS):
        ends = (Endpoint("PLAINTEXT", f"broker-{broker}", 9092),)
        image.replay(changes.register(broker, broker, uuid.UUID(int=broker), ends, None))
        image.replay(changes.unfence(broker, broker))
    for number in range(partitions):
        topic = uuid.uuid5(uuid.NAMESPACE_OID, str(number // EACH))
        if number % EACH == 0:
            image.replay(changes.topic(topic, f"topic-{number // EACH}"))
        replicas = tuple((number + place) % BROKERS for place in (0, 1, 7))
        state = PartitionImage(replicas, replicas, replicas[0], 0, 0)
        image.replay(changes.partition(PartitionKey(topic, number % EACH), state))
    return machine


def told(what: str, job: Callable[[], Any], times: int = 5) -> Any:
    """Run and print; gives what the job gives."""
    best, found = float("inf"), None
    for _ in range(times):
        start = time.process_time()
        found = job()
        best = min(best, time.process_time() - start)
    print(f"{what:<52}{best * 1_000:10.1f} ms")
    return found


def main(partitions: int = 100_000) -> None:
    """Build, fork, fence, write and load."""
    process = psutil.Process()
    before = process.memory_info().rss
    machine = told("replay of the image's own records", lambda: filled(partitions), 1)
    print(f"{'resident memory':<52}{(process.memory_info().rss - before) / 2**20:10.1f} MiB")
    image: Image = machine.image
    told("fork, as a controller becomes active", image.fork)

    def fence() -> None:
        image.fork().replay(changes.fence(3, 3))

    told("fork, and FenceBroker of one broker in a hundred", fence)
    told("whether a broker leads anything, where it does not", lambda: image.leads(BROKERS))
    writer = _Writer()
    told("snapshot", lambda: machine.snapshot(writer), 1)
    print(f"{'its size':<52}{writer.file.size / 2**20:10.1f} MiB")
    loaded = MetadataMachine()
    told("loading it, everything checked", lambda: loaded.load(SnapshotId(1, 0), writer.file), 1)
    told("comparing two images", lambda: loaded.image == image)
    if loaded.image != image:
        raise SystemExit("metadata_image.py: the snapshot holds another image; look at MetadataMachine")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
