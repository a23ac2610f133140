"""What an empty follower copies until it is in the ISR: ``python -m benchmarks.tiering`` at the root.

KIP-1023 says that it may come down to 10 or 15 % where a follower begins with the earliest offset that is not uploaded
yet, and not with its leader's local log start. A leader has ``--mib`` of log on its disk, of which 80, 85, 90 and 95 %
are in remote storage too (``--shares``), and an older segment in remote storage alone, so that offset 0 has moved. An
empty broker starts, and is measured until the controller has it in the ISR: bytes and requests that it has from its
leader, bytes and requests that it has from the store (leader epochs, producers), and seconds by the clock. Once as it
was before (``local``: from the local log start), once by the KIP (``tiered``).

Nothing of a segment is copied in part, so what is left to copy is the share that is not uploaded: a follower reads
``1 - share`` of the leader's local log, and some hundred bytes of auxiliary state. The table has that beside what was
measured. Brokers, controller and clock are real and share one process, as does the network between them (messages are
counted, and cost nothing); logs are real files, synced; the store is a folder, or with ``--store s3`` an S3-compatible
server (moto) in a process of its own.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from cyclopts import App
from fencepost.impl.files import DiskFiles
from fencepost.impl.log import LogConfig, Record, encode_batch
from fencepost.impl.net import LoopbackHost
from fencepost.impl.replica import Broker, BrokerConfig
from fencepost.impl.tiering import METADATA, RemoteLogManager, RemoteStore, ThreadJobs, TieredTopic, TieringConfig
from fencepost.impl.wire.messages import (
    Envelope,
    FetchResponse,
    ListOffsetsResponse,
    OffsetsForLeaderEpochResponse,
    TopicPartition,
)
from fencepost.impl.zk_controller import Controller
from fencepost.model.core.errors import BadInput

from tests.impl.s3_server import require_s3, s3_server

app = App(help=__doc__, version_flags=[])

TP = TopicPartition("orders", 0)
MIB = 1 << 20
RECORD = b"." * 1000
BATCH = 64
TIMEOUT = 120_000
NEVER = 1 << 40
_ANSWERS = FetchResponse, ListOffsetsResponse, OffsetsForLeaderEpochResponse


@dataclass
class Row:
    """What one follower needed. ``leader_bytes`` are of records, those of the metadata log included."""

    store: str
    share: float
    way: str
    local_log: int
    leader_bytes: int = 0
    leader_requests: int = 0
    store_bytes: int = 0
    store_requests: int = 0
    seconds: float = 0.0

    @property
    def bytes(self) -> int:
        """All of them."""
        return self.leader_bytes + self.store_bytes


class Counting(LoopbackHost):
    """Counts what broker 1 is answered by broker 0."""

    def __init__(self) -> None:
        super().__init__()
        self.bytes = self.requests = 0

    def send(self, envelope: Envelope) -> None:
        if (envelope.source, envelope.destination) == (0, 1) and isinstance(envelope.body, _ANSWERS):
            self.requests += 1
            if isinstance(envelope.body, FetchResponse):
                self.bytes += len(envelope.body.records)
        super().send(envelope)


class Cluster:
    """A controller, broker 0 and, once it is started, broker 1."""

    def __init__(self, folder: Path, open_store: Any, segment_bytes: int, *, enabled: bool) -> None:
        self.net = Counting()
        self.folder = folder
        self._open_store = open_store
        self.tiering = TieringConfig(
            follower_fetch_last_tiered_offset_enable=enabled, task_interval_ms=10, metadata_poll_ms=1
        )
        self.config = BrokerConfig(
            log=LogConfig(segment_bytes=segment_bytes),
            replica_lag_time_max_ms=300,
            isr_interval_ms=10,
            replica_fetch_wait_ms=1,
            replica_fetch_backoff_ms=10,
            recovery_point_interval_ms=NEVER,
        )
        self.controller = Controller(self.net, self.net.clock, DiskFiles(folder / "controller"))
        self.net.attach(self.controller)
        self.managers: dict[int, RemoteLogManager] = {}
        self.brokers: dict[int, Broker] = {}

    def start(self, node: int, life: int = 1) -> None:
        """Start a broker."""
        manager = RemoteLogManager(
            self._open_store(),
            ThreadJobs(self.net.clock, poll_ms=1),
            self.net.clock,
            {TP.topic: TieredTopic()},
            self.tiering,
        )
        files = DiskFiles(self.folder / f"broker-{node}-{life}")
        broker = Broker(
            node, files, self.net, self.net.clock, self.config, first_correlation=life << 32, remote_logs=manager
        )
        self.managers[node], self.brokers[node] = manager, broker
        self.net.attach(broker)
        self.controller.broker_started(node, life)

    def stop(self, node: int) -> None:
        """Its process is gone."""
        self.net.detach(node)
        self.managers.pop(node).close()
        self.brokers.pop(node).directory.abandon()

    def until(self, condition: Any) -> None:
        """Run until something is so."""
        self.net.run(condition, timeout=TIMEOUT)

    def in_isr(self, node: int, partition: TopicPartition = TP) -> bool:
        """Whether the controller has it there."""
        return node in self.controller.partition(partition).isr

    def write(self, size: int) -> None:
        """So many bytes of records at the leader, at least, acknowledged."""
        partition = self.brokers[0].partitions[TP]
        log, leader = partition.log, partition.leader
        assert leader is not None
        end = log.size + size
        batch = encode_batch([Record(RECORD, timestamp=self.net.clock.wall())] * BATCH)
        while log.size < end:
            log.append_batches_as_leader(batch, leader.epoch)
        leader.advance()
        self.until(lambda: partition.high_watermark == log.end)

    def uploaded(self) -> bool:
        """Whether all is uploaded that can be."""
        here = self.managers[0].partitions[TP]
        return here.copier is not None and not here.copier.candidates()


def measure(folder: Path, open_store: Any, store: str, mib: int, segment: int, share: float, enabled: bool) -> Row:
    """One follower."""
    cluster = Cluster(folder, open_store, segment, enabled=enabled)
    cluster.start(0)
    cluster.start(1)
    for partition in (METADATA, TP):
        cluster.controller.create_partition(partition, (0, 1))
    cluster.until(lambda: all(cluster.in_isr(1, partition) for partition in (METADATA, TP)))
    cluster.stop(1)
    cluster.until(lambda: not any(cluster.in_isr(1, partition) for partition in (METADATA, TP)))
    log = cluster.brokers[0].partitions[TP].log
    # An old segment that goes from the leader's disk, then the share; what begins a segment seals the one before.
    cluster.write(segment + 1)
    base = log.segment_bases[-1]
    cluster.write(round(mib * MIB * share))
    cluster.until(cluster.uploaded)
    cluster.managers[0].config = replace(cluster.tiering, task_interval_ms=NEVER)
    log.delete_local_before(base)
    cluster.write(mib * MIB - log.size)
    tiered = cluster.managers[0].partitions[TP].last_tiered_offset()
    local = sum(each.size for each in log.sealed if each.end <= tiered + 1) / log.size

    row = Row(store, round(local, 4), "tiered" if enabled else "local", log.size)
    cluster.net.bytes = cluster.net.requests = 0
    start = time.perf_counter()
    cluster.start(1, 2)
    cluster.until(lambda: cluster.in_isr(1))
    row.seconds = round(time.perf_counter() - start, 3)
    row.leader_bytes, row.leader_requests = cluster.net.bytes, cluster.net.requests
    counts = cluster.managers[1].store.counts
    row.store_bytes, row.store_requests = counts.got_bytes, counts.requests
    follower = cluster.brokers[1].partitions[TP].log
    assert follower.end == log.end and follower.log_start == log.log_start == 0
    assert follower.local_start == (tiered + 1 if enabled else log.local_start)
    assert follower.epochs.epoch_for(0) == log.epochs.epoch_for(0)
    cluster.stop(1)
    cluster.stop(0)
    return row


@contextmanager
def stores(kind: str, folder: Path) -> Iterator[Any]:
    """How a broker opens a store that is empty: ``open(number)`` gives that of run ``number``."""
    if kind == "s3":
        with s3_server() as (url, options):
            yield lambda number: lambda: RemoteStore.at(f"{url}/{number}", **options)
    else:
        yield lambda number: lambda: RemoteStore.at(folder / f"store-{number}")


@app.default
def main(
    *,
    mib: int = 64,
    segment_kib: int = 512,
    shares: tuple[float, ...] = (0.8, 0.85, 0.9, 0.95),
    store: Literal["folder", "s3", "both"] = "both",
    as_json: bool = False,
) -> int:
    """Measure. Exit code 2 where there is no such store.

    Parameters
    ----------
    mib
        The leader's local log.
    segment_kib
        segment.bytes.
    shares
        How much of the local log is in remote storage.
    store
        Where it is.
    as_json
        Print a row for each run as JSON, and nothing else.
    """
    try:
        if store != "folder":
            require_s3()  # before anything is measured
        rows = _rows(mib, segment_kib << 10, shares, ("folder", "s3") if store == "both" else (store,))
    except BadInput as absent:
        print(absent, file=sys.stderr)
        return 2
    _show(rows, mib, segment_kib, as_json=as_json)
    return 0


def _rows(mib: int, segment: int, shares: tuple[float, ...], kinds: tuple[str, ...]) -> list[Row]:
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as scratch:
        for kind in kinds:
            with stores(kind, Path(scratch) / kind) as open_store:
                for number, (share, enabled) in enumerate((s, e) for s in shares for e in (False, True)):
                    folder = Path(scratch) / kind / str(number)
                    opener = open_store(number)
                    rows.append(measure(folder, opener, kind, mib, segment, share, enabled))
    return rows


def _show(rows: list[Row], mib: int, segment_kib: int, *, as_json: bool) -> None:
    if as_json:
        print(json.dumps([asdict(row) for row in rows]))
        return
    print(f"{mib} MiB of local log, segments of {segment_kib} KiB")
    print(
        "store  tiered   way     MiB from leader  requests   bytes of store  requests  seconds   bytes  1-share  time"
    )
    for before, after in zip(rows[::2], rows[1::2], strict=True):
        for row in (before, after):
            told = (
                f"{row.store:6} {row.share:6.1%}  {row.way:7} {row.leader_bytes / MIB:12.2f} {row.leader_requests:12}"
                f" {row.store_bytes:16} {row.store_requests:9} {row.seconds:8.2f}"
            )
            if row is after:
                share, time_share = after.bytes / before.bytes, after.seconds / before.seconds
                told += f"  {share:6.1%}  {1 - after.share:6.1%} {time_share:6.1%}"
            print(told)


if __name__ == "__main__":
    sys.exit(app())
