"""``fencepost check``: brokers' data directories against the protocol; with no path, everything there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from ...model.core.registry import REGISTRY
from ...model.explore.result import OnProgress
from ...model.explore.result import Progress as Explored
from ...traces.kafka.checks import FilesReport
from ...traces.report.folder import refuse_foreign
from ...traces.report.index import FORMAT, report_json, write_report
from ...traces.report.obligation import Obligation, overall
from ...traces.report.table import print_table
from ..check.builtin import builtin_tasks
from ..check.files import Cluster, Searches, bundled_clusters, file_tasks, read_cluster
from ..check.task import Task, carry_out
from . import output

_LOST = {"6-unclean-election: ": (("payments", 0),)}
"""In the bundled corpus, the logs that an unclean election left: no run of kip-320 reaches them."""

_EXIT = {"holds": 0, "violated": 1, "unknown": 3}
_BAD_INPUT = 2


def check(
    *path: Path,
    variant: str | None = None,
    report: Path = Path("report"),
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Hold brokers' data directories against the protocol; with no path, check all models and the bundled corpus.

    Writes a report folder: index.html with a page for each counterexample, report.json, junit.xml.

    Parameters
    ----------
    path
        The data directory (log.dirs) of one broker each, of one cluster.
    variant
        Hold the logs against this variant of the protocol that brokers' logs are states of; the safe one by default.
    report
        The folder for the report. One that is there is replaced, if it is a report.
    json
        Print one JSON object on standard output.
    """
    of_logs = REGISTRY.of_brokers_logs.protocol
    if variant is not None:
        of_logs.traced(variant)
    refuse_foreign(report, FORMAT)
    cluster: Cluster | None = None
    if path:
        cluster = read_cluster("", path)
        for fault in cluster.refused:
            output.note(f"fencepost: {fault}")
        if not cluster.report.brokers:
            return _BAD_INPUT
        tasks = file_tasks(cluster, "brokers' files", Searches(of_logs, variant))
    else:
        tasks = [*builtin_tasks(), *_corpus_tasks(variant)]
    results = _carry_out(tasks)
    folder = write_report(report, results)
    code = _EXIT[overall(results)]
    if cluster is not None and (cluster.refused or cluster.report.bad_input):
        code = _BAD_INPUT
    if json:
        answer: dict[str, object] = dict(report_json(results))
        if cluster is not None:
            answer["files"] = cluster.report.to_json()
            answer["refused"] = [{"what": f.what, "where": f.where, "mend": f.mend} for f in cluster.refused]
        output.print_json(answer)
    else:
        _print(results, None if cluster is None else cluster.report)
    output.written(folder)
    return code


def _corpus_tasks(variant: str | None) -> list[Task]:
    tasks: list[Task] = []
    searches = Searches(REGISTRY.of_brokers_logs.protocol, variant)
    for cluster in bundled_clusters():
        lost = _LOST.get(cluster.label, ())
        tasks += file_tasks(cluster, "a recorded Kafka cluster", searches, lost=lost, condensed=True)
    return tasks


def _carry_out(tasks: Sequence[Task]) -> list[Obligation]:
    with output.progress_bar() as bar:
        whole = bar.add_task("check", total=len(tasks))
        done = -1

        def on_task(task: Task) -> OnProgress:
            nonlocal done
            done += 1
            bar.update(whole, completed=done, description=f"{done + 1} of {len(tasks)}: {task.name}", detail="")

            def told(at: Explored) -> None:
                bar.update(whole, detail=f"{at.distinct:,} states")

            return told

        return carry_out(tasks, on_task)


def _print(results: Sequence[Obligation], files: FilesReport | None) -> None:
    console = output.stdout()
    if files is not None:
        _print_files(files, console)
        _print_runs(results, console)
    print_table(results, console)


def _print_files(files: FilesReport, console: Console) -> None:
    """What the closing table has no room for: problems of the input, divergences, what is merely worth knowing."""
    for problem in files.problems:
        (output.note if problem.severity == "error" else lambda text: console.print(text, markup=False))(
            f"fencepost: {problem}"
        )
    for comparison in files.comparisons:
        name = f"{comparison.topic}-{comparison.partition}"
        for truncation in comparison.truncations:
            if not truncation.by_controller and any(t.by_controller for t in comparison.truncations):
                continue
            kept = "" if truncation.agrees_after is not False else ", and the logs still differ after it"
            console.print(
                f"{name}: {truncation.follower} as follower of {truncation.leader} truncates to offset "
                f"{truncation.offset} and loses {_counted(truncation.records_lost, 'record')}{kept}",
                markup=False,
            )
    for result in files.checks:
        if result.informative and result.verdict != "holds":
            console.print(f"note: {result}", markup=False)


def _print_runs(results: Sequence[Obligation], console: Console) -> None:
    """The runs that end in the logs of partitions whose replicas differ, step by step."""
    for result in results:
        story = result.story
        if story is None or "brokers" not in story.source or story.source["replicas agree"]:
            continue
        console.print(f"\n{result.name}: {result.detail}", markup=False)
        brokers = story.source["brokers"]
        assert isinstance(brokers, dict)
        console.print("  " + ", ".join(f"replica {r} is {broker}" for r, broker in brokers.items()), markup=False)
        for moment in story.moments[1:]:
            params = ", ".join(f"{name}={value}" for name, value in moment.params.items())
            broken = "".join(f"   breaks {breach.invariant}" for breach in moment.broken)
            console.print(f"  {moment.step:3}  {moment.action}({params}){broken}", markup=False)


def _counted(number: int, noun: str) -> str:
    """``1 record``, ``2 records``."""
    return f"{number:,} {noun}" + ("" if number == 1 else "s")
