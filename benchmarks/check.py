"""CPU seconds of ``fencepost check``: ``python -m benchmarks.check [--mib 250]`` at the root.

Two inputs: the bundled stage after an unclean election, and three replicas of one partition with many records, equal
but for the last ones of one replica. The aims are 3 and 12 CPU seconds. Each check is a process of its own; the files
were just written, so they are read from the operating system's cache.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from cyclopts import App
from fencepost.traces.kafka.capture import broker_directories, bundled_corpus

from tests.traces.kafka.encoder import Partition, batch, write_broker

VALUE_BYTES = 1000
RECORDS_PER_BATCH = 16
SEGMENT_BYTES = 1 << 27
AIMS = {"6-unclean-election": 3.0, "replicas": 12.0}

app = App(help=__doc__, version_flags=[])


def cpu_seconds(*directories: Path) -> tuple[float, int]:
    """CPU seconds of a check in a fresh process, user and system, and its exit code."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as scratch:
        program = "from fencepost.conformance.cli import run; run()"
        command = [sys.executable, "-c", program, "check", *map(str, directories), "--report", f"{scratch}/report"]
        code = subprocess.run(command, capture_output=True, check=False).returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime - before.ru_utime + after.ru_stime - before.ru_stime, code


def replicas(folder: Path, mib: int) -> list[Path]:
    """Three brokers with ``mib`` MiB of one partition each; the log of the third ends a batch earlier."""
    segments: dict[int, bytes] = {}
    size, offset, last = 0, 0, 0
    while size < mib << 20:
        first, parts, bytes_ = offset, [], 0
        while bytes_ < SEGMENT_BYTES and size + bytes_ < mib << 20:
            values = [f"{offset + n:x}".encode().ljust(VALUE_BYTES, b".") for n in range(RECORDS_PER_BATCH)]
            parts.append(batch(offset, values, epoch=offset >> 17))
            bytes_ += len(parts[-1])
            last, offset = offset, offset + RECORDS_PER_BATCH
        segments[first] = b"".join(parts)
        size += bytes_
    cache = [(epoch, epoch << 17) for epoch in range((offset - 1 >> 17) + 1)]
    whole = Partition(segments, cache, high_watermark=last)
    tail = max(segments)
    shorter = dict(segments)
    shorter[tail] = segments[tail][: -len(parts[-1])]
    short = Partition(shorter, cache, high_watermark=last)
    return [
        write_broker(folder / f"broker-{node}", node, {"load-0": short if node == 3 else whole}, directory=None)
        for node in (1, 2, 3)
    ]


@app.default
def main(mib: int = 250) -> None:
    """Measure both inputs and print a line for each."""
    seconds, code = cpu_seconds(*broker_directories(bundled_corpus(), "6-unclean-election"))
    print(
        f"6-unclean-election: {seconds:.1f} CPU s, exit {code}; {seconds / AIMS['6-unclean-election']:.2f} of the aim"
    )
    with tempfile.TemporaryDirectory() as scratch:
        directories = replicas(Path(scratch), mib)
        seconds, code = cpu_seconds(*directories)
    print(f"3 replicas of {mib} MiB: {seconds:.1f} CPU s, exit {code}; {seconds / AIMS['replicas']:.2f} of the aim")


if __name__ == "__main__":
    app()
