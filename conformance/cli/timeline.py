"""``fencepost timeline``: logs, dumps and histories as one timeline per partition."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode, exit_code
from ...traces.text import counted
from ...traces.timeline.checkers import TimelineReport, check_timeline
from ...traces.timeline.clocks import zone_notes
from ...traces.timeline.partition_timeline import PartitionTimeline
from ...traces.timeline.rows import PartitionRows, partition_rows
from ...traces.timeline.sources import read_sources
from ...traces.timeline.text import print_partition, print_verdict, verdict_of
from ...traces.timeline.time_zones import TimeZones
from ...traces.timeline.timeline import Timeline, topic_of
from .bundled_paths import resolve_bundled
from .options import refuse_twice, unwrapped
from .output import note, print_json, refuse_unwritable, stdout, write_text
from .report_files import ReportFiles

_INTERNAL_TOPICS = ("__consumer_offsets", "__transaction_state", "__share_group_state", "__remote_log_metadata")


@unwrapped
def timeline(
    *path: Path,
    topic: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    time_zone: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    html: Path | None = None,
    verbose: Annotated[bool, Parameter(negative=())] = False,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> ExitCode:
    """Show one timeline per partition, and check that its reports do not contradict each other.

    Reads the server logs of brokers and controllers from Kafka 0.11 to 4.4, in any common layout, the output of
    kafka-dump-log, folders of single partitions, and histories of clients (ours and Jepsen's). The exit code is 1 if
    reports contradict each other, 3 if that is unknown, and 2 if no file reports anything.

    Parameters
    ----------
    path
        Files, folders or archives of them: all files of all nodes together. Compressed files are read too.
    topic
        Show this topic alone (repeatable).
    time_zone
        Time zone of logs that name none, as [SOURCE=]ZONE (repeatable). ZONE is a name such as Europe/Berlin or an
        offset such as +02:00. SOURCE is a file or folder; without it the zone is that of all other logs.
    html
        Write the timelines to this HTML page.
    verbose
        Print frequent events too, such as appends.
    json
        Print one JSON object on standard output.
    """
    if not path:
        raise BadInput("no file is named", "FILE", "name server logs of Kafka's brokers and controllers")
    refuse_twice(topic=topic)
    refuse_unwritable(html)
    path = resolve_bundled(path)
    read = read_sources(path, TimeZones.parse(time_zone, path))
    for problem in read.problems:
        note(f"fencepost: {problem}")
    timelines = Timeline.of(read.observations, topic)
    if not timelines.partitions:
        for each in read.notes:
            note(f"fencepost: {each}")
        if topic and read.observations:
            known = sorted({topic_of(each.partition) for each in read.observations if each.partition})
            note(f"fencepost: --topic: no file reports it; name one of {', '.join(known)}")
        elif not read.problems and not read.notes:
            note("fencepost: FILE: no file reports a partition; name server logs of Kafka's brokers and controllers")
        return ExitCode.BAD_INPUT
    report = check_timeline(timelines)
    notes = (*read.notes, *zone_notes(timelines.partitions))
    tables = [partition_rows(each, report.contradictions, everything=verbose) for each in timelines.partitions]
    files = ReportFiles()
    if html is not None:
        # Jinja is not loaded without a page.
        from ...traces.timeline.page import render_timelines

        page = render_timelines(tables, report, read.problems, notes)
        files.write(html, lambda: write_text(html, page))
    if json:
        print_json(_json(timelines.partitions, tables, report, read.problems, notes))
    else:
        _print(tables, report, read.problems, notes, topic, verbose)
    return files.exit_code(exit_code(verdict_of(report, len(read.problems))))


def _print(
    tables: Sequence[PartitionRows],
    report: TimelineReport,
    problems: Sequence[BadInput],
    notes: Sequence[str],
    topics: Sequence[str],
    verbose: bool,
) -> None:
    out = stdout()
    hidden = 0
    ours = [each for each in tables if topic_of(each.partition) not in _INTERNAL_TOPICS]
    for table in tables:
        internal = topic_of(table.partition) in _INTERNAL_TOPICS
        if internal and ours and not (topics or verbose or table.contradictions):
            hidden += 1
            continue
        print_partition(out, table, everything=verbose)
    for each in notes:
        out.print(f"note: {each}", markup=False, soft_wrap=True)
    if hidden:
        out.print(
            f"note: {counted(hidden, 'partition')} of internal topics not shown; --topic shows one", soft_wrap=True
        )
    print_verdict(out, report, len(problems))


def _json(
    timelines: Sequence[PartitionTimeline],
    tables: Sequence[PartitionRows],
    report: TimelineReport,
    problems: Sequence[BadInput],
    notes: Sequence[str],
) -> dict[str, object]:
    return {
        "verdict": verdict_of(report, len(problems)),
        "contradictions": [each.to_json() for each in report.contradictions],
        "compared": report.comparisons,
        "partitions": [
            {
                "partition": each.partition,
                "brokers": {str(node): state.to_json() for node, state in table.states.items()},
                "events": [seen.to_json() for seen in each.observations],
            }
            for each, table in zip(timelines, tables, strict=True)
        ],
        "problems": [{"what": each.what, "where": each.where, "mend": each.mend} for each in problems],
        "notes": list(notes),
    }
