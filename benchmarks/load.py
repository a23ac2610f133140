"""A million records through three replicas with failovers: ``python -m benchmarks.load`` at the root.

Brokers, controller, producers, consumer and network share one process, and the network's clock is simulated, so the
figures tell what the code costs, not what a network does. Every record is checked (``tests/impl/load.py``): in order,
not lost, not doubled, the same in every replica. Memory is that of a fresh process for each run, at the end and at its
highest; on real files the log itself is not in it.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
import time
from typing import Annotated, Any

import psutil
from cyclopts import App, Parameter

from tests.impl.load import VALUE_BYTES, Load

app = App(help=__doc__, version_flags=[])


def peak() -> float:
    """The most memory that this process has had, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


@app.command
def one(records: int, failovers: int, seed: int, *, disk: bool = False) -> None:
    """One run in this process, as JSON."""
    before = peak()
    with tempfile.TemporaryDirectory() as scratch:
        load = Load(records, failovers, seed, folder=scratch if disk else None)
        start = time.perf_counter()
        load.run()
        seconds = time.perf_counter() - start
        counts = load.rack.net.counts
        found = {
            "records": records,
            "seconds": seconds,
            "failovers": dict(load.happened),
            "simulated": load.rack.net.clock.now() / 1000,
            "log_mib": load.log_bytes() / (1 << 20),
            "start_mib": before,
            "end_mib": psutil.Process().memory_info().rss / (1 << 20),
            "peak_mib": peak(),
            "messages": {name: getattr(counts, name) for name in ("sent", "lost", "cut", "duplicated", "reordered")},
        }
        load.close()
    print(json.dumps(found))


def measure(records: int, failovers: int, seed: int, *, disk: bool) -> dict[str, Any]:
    """A run in a fresh process; print its line."""
    command = [sys.executable, "-m", "benchmarks.load", "one", str(records), str(failovers), str(seed)]
    run = subprocess.run([*command, *(["--disk"] if disk else [])], check=True, capture_output=True, text=True)
    found: dict[str, Any] = json.loads(run.stdout)
    where = "disk" if disk else "memory"
    print(
        f"{where:>8}{records:>11,}{records / found['seconds']:>11,.0f}{sum(found['failovers'].values()):>11}"
        f"{found['log_mib']:>10.0f}{found['start_mib']:>11.1f}{found['end_mib']:>9.1f}{found['peak_mib']:>10.1f}",
        flush=True,
    )
    return found


@app.default
def main(
    records: int = 1_000_000,
    failovers: int = 25,
    seed: int = 1,
    *,
    disk: Annotated[bool, Parameter(negative="")] = False,
) -> None:
    """Run a quarter of the records and all of them, in memory or, with --disk, on files in a temporary folder."""
    print(f"{records:,} records of {VALUE_BYTES} bytes, three replicas, seed {seed}: every record checked")
    print("   files    records  records/s  failovers   log MiB  start MiB  end MiB  peak MiB")
    quarter, whole = (measure(count, failovers, seed, disk=disk) for count in (records // 4, records))
    print(f"failovers: {whole['failovers']}, messages: {whole['messages']}, {whole['simulated']:.0f} simulated seconds")
    ratio = whole["peak_mib"] / quarter["peak_mib"]
    if disk:
        print(f"peak memory, {records:,} : {records // 4:,} records: {ratio:.2f} x")
        return
    # Each log is there twice: as written, and as a crash would leave it.
    rest = [each["end_mib"] - each["start_mib"] - 2 * each["log_mib"] for each in (quarter, whole)]
    grown = (whole["end_mib"] - quarter["end_mib"]) * (1 << 20) / (records - records // 4)
    per = whole["log_mib"] * (1 << 20) / records
    print(
        f"memory at the end grows by {grown:.0f} bytes a record; three replicas' logs, each twice, take {2 * per:.0f}"
    )
    print(f"above start and logs: {rest[0]:.1f} and {rest[1]:.1f} MiB")


if __name__ == "__main__":
    app()
