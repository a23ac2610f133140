"""``fencepost ingest``: recorded traces, brokers' data and Parquet of another layout into a corpus."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.registry import REGISTRY
from ...traces.corpus.ingest import Ingested, Named, NothingIngested, files_below, ingest_files, ingest_traces
from ...traces.corpus.layout import CorpusHeader
from ...traces.corpus.logs import look_at, not_laid_out
from ...traces.corpus.manifest import PLANTED, SOURCES
from ...traces.corpus.output import refuse_taken
from ...traces.corpus.place import shown_path
from ...traces.corpus.relay import relay
from ...traces.kafka.abstraction import abstract
from ...traces.text import counted
from ..check.files import Cluster, read_cluster
from .bundled_paths import resolve_bundled_one
from .explore import protocol_named
from .help_groups import grouped
from .ingest_printed import printed_traces
from .masters import READ, Work, master_for, refuse_master
from .options import Whole, unwrapped
from .output import files_done, laid_out, note, print_json, stdout, written

_META = "meta.properties"
_DEPTHS = ("", "*/", "*/*/")
"""Where below SRC brokers' folders are looked for: itself, brokers of one cluster, clusters."""


@grouped(
    Input=(
        "src",
        "kafka_log",
        "protocol",
        "variant",
    ),
    Parquet=(
        "column",
        "incomplete",
    ),
    Output=(
        "out",
        "json",
        "master",
    ),
)
@unwrapped
def ingest(
    src: Path | None = None,
    *,
    out: Path,
    kafka_log: Annotated[list[Path] | None, Parameter(consume_multiple=True, negative=())] = None,
    protocol: str | None = None,
    variant: str | None = None,
    incomplete: Annotated[bool, Parameter(negative=())] = False,
    column: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    master: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    **constants: Whole,
) -> ExitCode:
    """Lay out traces as a corpus for fencepost mine.

    Each faulty trace is named on a line of its own, and the others are written; the exit code is 2 then. The file
    sources.jsonl in the corpus lists the origin of each trace.

    Parameters
    ----------
    src
        Trace (JSON Lines, as fencepost conform and the recorder write it) or a folder of them, searched through; a
        folder of brokers' data directories, or of clusters of them; or a folder of Parquet files in another layout.
    kafka_log
        Logs that the nodes of an Apache Kafka cluster printed, in place of SRC: a file or several of each broker and
        controller, with the loggers of docs/how-to/read-server-logs.md. Each partition becomes one trace or several.
        If --protocol names the protocol of the controllers' own log, only that log is read, and becomes one trace.
    protocol
        Protocol of Parquet files that do not name theirs; its constants are options too, as for explore. For traces of
        a protocol that is not installed, its place: file.py:name or module:name.
    variant
        Variant of such Parquet files; of brokers' logs, that of the protocol whose states they are. The safe one by
        default; with --kafka-log, the one that Apache Kafka's brokers are checked against.
    column
        Column of Parquet files under another name, written COLUMN=NAME, as in action=event_name: NAME holds the corpus'
        COLUMN (repeatable).
    incomplete
        Allow missing steps in the traces of such Parquet files.
    out
        Folder of the corpus, which is not there yet; with a cluster, on storage that all workers share.
    json
        Print one JSON object on standard output.
    master
        Spark master that runs the tasks: local[N], local[*] or spark://HOST:PORT; serial: this process, without Spark.
        By default serial or local[*], by the size of the corpus; standard error names it.
    """
    start = time.perf_counter()
    refuse_taken(out)
    refuse_master(master)
    src = None if src is None else resolve_bundled_one(src)
    logs = kafka_log or []
    columns = _columns(column)
    given = None if logs or protocol is None else _given(protocol, variant, constants, not incomplete)
    if logs and src is not None:
        raise BadInput("it is what is ingested", "--kafka-log", "leave SRC out")
    shown = next(iter(logs), src)
    if shown is None:
        raise BadInput("nothing to ingest is named", "SRC", "name traces, brokers' data or Parquet, or --kafka-log")
    try:
        if logs:
            _refuse_columns(columns)
            done = ingest_traces(*printed_traces(logs, variant, protocol), out, _no_partition(shown))
        else:
            # A cluster's workers are in other folders.
            done = _ingested(shown.absolute(), out, variant, given, master, columns)
    except NothingIngested as nothing:
        done = nothing.ingested
    for problem in done.problems:
        note(f"fencepost: {problem}")
    if done.files:
        written(out)
    else:
        note(f"{out} is not written: nothing in {shown_path(shown)} could be ingested")
    _tell(shown, out, done, time.perf_counter() - start, json)
    return ExitCode.BAD_INPUT if done.problems or not done.files else ExitCode.DONE


def _no_partition(log: Path) -> BadInput:
    what = "no line in it begins the history of a partition"
    return BadInput(
        what,
        shown_path(log),
        "name the logs of the brokers, with the loggers that docs/how-to/read-server-logs.md names",
    )


def _no_partition_of(src: Path) -> BadInput:
    mend = "name the data directories of all brokers of a cluster"
    return BadInput("no partition has a log at two brokers", shown_path(src), mend)


def _given(protocol: str, variant: str | None, constants: Mapping[str, int], complete: bool) -> CorpusHeader:
    spec = protocol_named(protocol)
    values = spec.check_constants({name.replace("-", "_"): value for name, value in constants.items()})
    return CorpusHeader(spec.name, spec.traced(variant).variant.name, values, complete)


def _columns(pairs: Sequence[str]) -> dict[str, str]:
    """The files' names of columns, by the corpus', of ``COLUMN=NAME``. Raises BadInput."""
    found: dict[str, str] = {}
    for pair in pairs:
        column, _, name = pair.partition("=")
        if not column or not name:
            mend = "write COLUMN=NAME, as in action=event_name"
            raise BadInput(f"{pair!r} renames no column", "--column", mend)
        if column in found or name in found.values():
            raise BadInput(f"{column if column in found else name} is named twice", "--column", "name each once")
        found[column] = name
    return found


def _refuse_columns(columns: Mapping[str, str]) -> None:
    """Raise BadInput for renamed columns of a source that has none."""
    if columns:
        raise BadInput("only Parquet files have columns", "--column", "leave it out")


def _ingested(
    src: Path,
    out: Path,
    variant: str | None,
    given: CorpusHeader | None,
    master: str | None,
    columns: Mapping[str, str],
) -> Ingested:
    if src.is_file() and src.suffix == ".parquet":
        master = _master(master, [src])
        with files_done("laying out") as told:
            return relay([src], out, given, master, told, columns=columns)
    if src.is_file():
        _refuse_columns(columns)
        master = _master(master, [src])
        with files_done("ingesting") as told:
            return ingest_files(src.parent, [src], out, master, told)
    try:
        names = sorted(each.name for each in src.iterdir())
    except OSError as error:
        mend = "name traces, brokers' data directories or Parquet files that you may read"
        raise BadInput(f"cannot be read: {error.strerror}", shown_path(src), mend) from error
    clusters = _clusters(src)
    if clusters:
        _refuse_columns(columns)
        return ingest_traces(*_looks(src, clusters, variant), out, _no_partition_of(src))
    parquet = files_below(src, "*.parquet")
    if parquet:
        master = _master(master, parquet)
        with files_done("laying out") as told:
            done = relay(parquet, out, given, master, told, src, columns)
        return replace(done, problems=(*done.problems, *_left_out(src)))
    _refuse_columns(columns)
    paths = [*files_below(src, "*.jsonl"), *files_below(src, "*.jsonl.gz")]
    if not paths:
        what = "the folder is empty" if not names else "the folder holds neither traces nor brokers' data nor Parquet"
        raise BadInput(what, shown_path(src), "name a folder with traces (*.jsonl) or brokers' data directories")
    master = _master(master, paths)
    with files_done("ingesting") as told:
        return ingest_files(src, paths, out, master, told)


def _left_out(src: Path) -> list[BadInput]:
    """The traces beside Parquet files: a corpus is made of either. Lists of a corpus are no traces."""
    return [
        BadInput(
            "left out: a trace beside Parquet files", shown_path(path), "move it into another folder, and ingest that"
        )
        for pattern in ("*.jsonl", "*.jsonl.gz")
        for path in files_below(src, pattern)
        if path.name not in (SOURCES, PLANTED)
    ]


def _master(master: str | None, paths: Sequence[Path]) -> str:
    """Who lays out these files."""
    size = 0
    for path in paths:
        with suppress(OSError):
            # It is named when it is read.
            size += path.stat().st_size
    return master_for(master, Work(size, "bytes", READ))


def _clusters(src: Path) -> dict[Path, list[Path]]:
    """Brokers' data directories by the folder in which they lie."""
    found: dict[Path, list[Path]] = {}
    for depth in _DEPTHS:
        for meta in sorted(src.glob(depth + _META)):
            found.setdefault(meta.parent.parent, []).append(meta.parent)
    return found


def _looks(src: Path, clusters: dict[Path, list[Path]], variant: str | None) -> tuple[list[Named], list[BadInput]]:
    """A look at each partition of which at least two brokers hold a log; and what is wrong with the files."""
    held_to = REGISTRY.of_brokers_logs.protocol.traced(variant).variant.name
    named: list[Named] = []
    problems: list[BadInput] = []
    for folder, brokers in clusters.items():
        cluster = read_cluster("", brokers)
        problems += cluster.refused
        problems += [each.as_bad_input() for each in cluster.report.problems if each.severity == "error"]
        label = folder.relative_to(src).as_posix() if folder.is_relative_to(src) else folder.name
        for each in _partitions(cluster, label, held_to):
            if isinstance(each, Named):
                named.append(each)
            else:
                problems.append(each)
    return named, problems


def _partitions(cluster: Cluster, label: str, variant: str) -> Iterator[Named | BadInput]:
    for topic, number in cluster.partitions:
        logs = cluster.partition(topic, number)
        name = f"{topic}-{number}" if label in ("", ".") else f"{label}/{topic}-{number}"
        target = abstract(logs, cluster.replication(topic, number))
        reason = cluster.no_state(topic, number) or not_laid_out(target)
        if reason is not None:
            yield BadInput(f"left out: {reason}", name, "fencepost check tells what it can of such logs")
            continue
        yield Named(name, look_at(target, variant, {"topic": topic, "partition": number}))


def _tell(src: Path, out: Path, done: Ingested, seconds: float, json: bool) -> None:
    if json:
        problems: Sequence[dict[str, str]] = [
            {"what": each.what, "where": each.where, "mend": each.mend} for each in done.problems
        ]
        print_json(
            {
                "src": str(src),
                "out": str(out) if done.files else None,
                "files": len(done.files),
                "traces": done.traces,
                "events": done.events,
                "problems": problems,
                "seconds": round(seconds, 3),
            }
        )
        return
    left = f", {counted(len(done.problems), 'problem')}" if done.problems else ""
    told = f"{laid_out(done.traces, done.events, len(done.files))}{left}, {seconds:.1f} s"
    stdout().print(told, markup=False, soft_wrap=True)
