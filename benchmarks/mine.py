"""How fast mining is, as ratios within one run: ``python benchmarks/mine.py [--events N] [--corpus DIR]``.

One corpus of 100-step walks of the consumer's protocol (truncation, 3/2/2/2) is generated, 20 million events in 200,000
traces unless told otherwise, and everything is measured on it: a bare Parquet scan; the promises by NumPy in one
process, by Spark tasks that open their own files (what ``fencepost mine`` does), by DuckDB and by Spark SQL windows,
from the same terms (``mine_sql.py``); replay in lockstep beside the reference replay; both passes with coverage on one
core and on two, with the memory of all processes; and that again on three times the events. Each runs in a process of
its own, first cold, then ``--repeat`` times warm, of which the best counts. The start of a Spark session is told apart.
DuckDB must be installed, or that line is left out. The load of the machine is printed: figures under load mean little.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import psutil
from cyclopts import App, Parameter
from rich.console import Console
from rich.table import Table

PROTOCOL = "truncation"
STEPS = 100
CORES = 2
SAMPLE_SECONDS = 0.1

LINES: Mapping[str, str] = {
    "scan": "bare Parquet scan, two threads",
    "numpy": "promises, NumPy in one process",
    "promises": "promises, Spark tasks",
    "promises1": "promises, Spark tasks, local[1]",
    "duckdb": "promises, DuckDB",
    "windows": "promises, Spark SQL windows",
    "all": "both passes and coverage, Spark tasks",
    "all1": "both passes and coverage, local[1]",
    "lockstep": "replay in lockstep, one process",
    "carried": "the same, states carried (as with holes)",
    "reference": "replay by the reference, one process",
    "compiled": "replay by the compiled model, one process",
}

app = App(help_format="plaintext")


@app.default
def main(
    events: int = 20_000_000,
    *,
    corpus: Path | None = None,
    larger: Path | None = None,
    repeat: int = 3,
    only: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    triple: bool = True,
) -> None:
    """Measure. ``corpus`` and ``larger`` are kept, or made where they are not there; ``only``: these lines."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder:
        place = corpus or Path(folder) / "corpus"
        _corpus(place, events)
        console.print(f"load {os.getloadavg()[0]:.1f}, {psutil.cpu_count()} cores; {_size(place)}")
        found = {}
        for name in only or LINES:
            told = _child(name, place, repeat)
            if told is not None:
                found[name] = told
                console.print(f"  {name}: {_rates(told)}; load {os.getloadavg()[0]:.1f}", highlight=False)
        if triple and not only:
            wide = larger or Path(folder) / "larger"
            _corpus(wide, 3 * events)
            told = _child("all", wide, 1)
            if told is not None:
                found["larger"] = told
    console.print(_table(found))
    for line in _ratios(found):
        console.print(line, highlight=False)


def _corpus(place: Path, events: int) -> None:
    if place.is_dir():
        return
    traces = max(1, events // STEPS)
    options = ["--traces", str(traces), "--events", str(STEPS), "--seed", "1", "--out", str(place)]
    words = [sys.executable, "-m", "fencepost.conformance.cli", "simulate", PROTOCOL, *options]
    run = "from fencepost.conformance.cli import main; import sys; sys.exit(main(sys.argv[1:]))"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", run, *words[3:], "--master", f"local[{CORES}]"], check=True)
    print(f"generated in {time.perf_counter() - start:.0f} s", flush=True)


def _size(place: Path) -> str:
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    size = sum(each["bytes"] for each in manifest["files"])
    count = len(manifest["files"])
    return f"{manifest['events']:,} events in {manifest['traces']:,} traces, {count} files, {size / 2**20:,.0f} MiB"


def _child(name: str, place: Path, repeat: int) -> dict[str, Any] | None:
    """What a line measures, in a fresh process; ``peak`` is the resident memory of it and all its children."""
    words = [sys.executable, str(Path(__file__).with_name("mine_lines.py")), name, str(place), str(repeat)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as process:
        peak = 0
        while process.poll() is None:
            peak = max(peak, _resident(process.pid))
            time.sleep(SAMPLE_SECONDS)
        assert process.stdout is not None
        said = process.stdout.read().decode().strip().splitlines()
    if process.returncode or not said:
        print(f"  {name}: left out, exit code {process.returncode}", flush=True)
        return None
    told: dict[str, Any] = json.loads(said[-1])
    return told | {"peak": peak}


def _resident(pid: int) -> int:
    total = 0
    try:
        parent = psutil.Process(pid)
        for process in (parent, *parent.children(recursive=True)):
            total += process.memory_info().rss
    except psutil.Error:
        # A process that has just ended holds nothing.
        pass
    return total


def _rates(told: Mapping[str, Any]) -> str:
    cold = told["events"] / told["cold"] / 1e6
    warm = told["events"] / min(told["warm"]) / 1e6
    return f"{warm:.3g} million events/s warm, {cold:.3g} cold"


def _rate(found: Mapping[str, dict[str, Any]], name: str) -> float | None:
    return found[name]["events"] / min(found[name]["warm"]) if name in found else None


def _table(found: Mapping[str, dict[str, Any]]) -> Table:
    table = Table("", "cold M/s", "warm M/s", "CPU s a M", "peak MiB", "session s", title="mining")
    for name, told in found.items():
        events = told["events"]
        table.add_row(
            LINES.get(name, "both passes and coverage, three times the events"),
            f"{events / told['cold'] / 1e6:.3f}",
            f"{events / min(told['warm']) / 1e6:.3f}",
            f"{told['cpu'] / events * 1e6:.2f}" if told.get("cpu") else "",
            f"{told['peak'] / 2**20:,.0f}",
            f"{told['session']:.1f}" if told.get("session") else "",
        )
    return table


def _ratios(found: Mapping[str, dict[str, Any]]) -> list[str]:
    lines = []
    for told, name, other, least in (
        ("promises : DuckDB", "promises", "duckdb", "at least 1.3"),
        ("promises : Spark SQL windows", "promises", "windows", "at least 5"),
        ("promises : bare scan", "promises", "scan", "at least 0.35"),
        ("lockstep : reference replay", "lockstep", "reference", "at least 10"),
        ("lockstep : compiled replay", "lockstep", "compiled", ""),
    ):
        mine, theirs = _rate(found, name), _rate(found, other)
        if mine is not None and theirs is not None:
            lines.append(f"{told:<40}{mine / theirs:8.2f} x   {least}")
    for name in ("promises", "all"):
        two, one = _rate(found, name), _rate(found, f"{name}1")
        if two is not None and one is not None:
            lines.append(f"{name + ', wall of local[2] : local[1]':<40}{one / two:8.2f}     at most 0.65")
    if "all" in found and "larger" in found:
        peaks = [found[name]["peak"] / 2**20 for name in ("all", "larger")]
        lines.append(f"{'memory, three times the events : once':<40}{peaks[1] / peaks[0]:8.2f}     {peaks[1]:,.0f} MiB")
    return lines


if __name__ == "__main__":
    app()
