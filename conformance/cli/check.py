"""``fencepost check``: brokers' data directories against the protocol; with no path, everything there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console
from rich.text import Text

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode, exit_code
from ...model.core.registry import REGISTRY
from ...model.core.source_location import near
from ...model.explore.result import OnProgress, Verdict
from ...model.explore.result import Progress as Explored
from ...traces.kafka.batches import Limits as ReadLimits
from ...traces.kafka.broker import topic_names
from ...traces.kafka.remote_store import read_store
from ...traces.report.answer import Answer
from ...traces.report.index import report_json, write_report
from ...traces.report.obligation import Obligation, overall
from ...traces.report.screen import print_answer, print_finding, print_replicas, print_verdict
from ...traces.report.table import closing_table, print_table
from ...traces.run_report import Story
from ...traces.text import printable
from ..check.files import Cluster, bundled_clusters, file_tasks, read_cluster
from ..check.groups import all_groups, answering
from ..check.judge import add_search, file_answer
from ..check.mining import bundled_mining
from ..check.notes import cluster_notes
from ..check.search import (
    MAX_SECONDS,
    MAX_STATES,
    Searches,
    SearchLimits,
    explained_partitions,
    search_tasks,
)
from ..check.task import Task, carry_out
from ..stages import stages
from . import options, output
from .annotations import annotate, place_of
from .bundled_paths import resolve_bundled, resolve_bundled_store
from .help_groups import grouped
from .options import Positive, Seconds, unwrapped
from .progress import progress_bar
from .report_files import ReportFiles

_LOST = {
    "6-unclean-election: ": {("payments", 0): Verdict.VIOLATED},
    "7-all-back: ": {("payments", 0): Verdict.UNKNOWN},
}
"""In the bundled corpus, the logs after an unclean election, and the verdict that they must have."""


@grouped(
    Input=(
        "path",
        "topic",
        "remote",
        "max_records",
    ),
    Output=(
        "verbose",
        "report",
        "json",
    ),
    Search=(
        "variant",
        "no_search",
        "max_states",
        "max_seconds",
    ),
)
@unwrapped
def check(
    *path: Path,
    topic: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    max_records: Positive | None = None,
    remote: str | None = None,
    variant: str | None = None,
    no_search: Annotated[bool, Parameter(negative=())] = False,
    max_states: Positive | None = None,
    max_seconds: Seconds | None = None,
    verbose: Annotated[bool, Parameter(negative=())] = False,
    report: Path = Path("report"),
    json: Annotated[bool, Parameter(negative=())] = False,
) -> ExitCode:
    """Check brokers' data directories; without a path, check all models and the bundled recordings.

    The verdict comes from the files. A bounded search for a run of the model that ends in these logs comes last: it can
    add a violation, and a search that does not finish is a note. Exit codes: 0 holds, 1 violated, 2 nothing could be
    judged, 3 unknown.

    Writes a report folder: index.html with a page for each counterexample, report.json, junit.xml.

    Parameters
    ----------
    path
        Data directories (log.dirs) of brokers of one cluster. Several of one broker are put together by its node id.
    topic
        Topic to check alone, with the metadata log (repeatable).
    remote
        Store of tiered topics, of the time of the directories: a folder, or a URL such as s3://bucket/prefix. Its
        objects are compared with the remote log metadata in the directories.
    max_records
        Limit of records and headers of records to read in all (2^25); beyond it the exit code is 2.
    verbose
        Print all replicas, all remarks, and every check with its verdict.
    report
        Folder for the report. An older report there is replaced. If it cannot be written, the answer is printed all the
        same, and the exit code is 2 unless a violation makes it 1.
    json
        Print one JSON object on standard output.
    variant
        Variant of the protocol to check the logs against; the safe one by default.
    no_search
        Leave the search out.
    max_states
        Limit of distinct states of one search; by default 1,000,000.
    max_seconds
        Limit in seconds of searching, after which no search starts; by default 60.
    """
    of_logs = REGISTRY.of_brokers_logs
    if variant is not None:
        of_logs.protocol.traced(variant)
    options.refuse_twice(topic=topic)
    budget = SearchLimits(max_states or MAX_STATES, MAX_SECONDS if max_seconds is None else max_seconds)
    if no_search:
        why, mend = "no search is made", "leave it out, or --no-search"
        options.refuse_idle(why, mend, max_states=max_states, max_seconds=max_seconds)
    if not path:
        mend = "name brokers' data directories"
        options.refuse_idle(
            "there are no directories to read", mend, topic=topic, max_records=max_records, remote=remote
        )
        return _check_bundled(variant, budget, report, search=not no_search, json=json)
    limits = ReadLimits() if max_records is None else ReadLimits(items=max_records)
    cluster = read_cluster(
        "",
        resolve_bundled(path),
        topics=topic or None,
        limits=limits,
        store=None if remote is None else read_store(resolve_bundled_store(remote)),
    )
    if not cluster.report.brokers:
        for fault in cluster.refused:
            output.note(f"fencepost: {fault}")
        return ExitCode.BAD_INPUT
    _require_topics(cluster, topic)
    return _check_directories(cluster, Searches(of_logs, variant, budget), report, no_search, verbose, json)


def _check_directories(
    cluster: Cluster, searches: Searches, report: Path, no_search: bool, verbose: bool, json: bool
) -> ExitCode:
    """Judge directories by their files, print that, then search, and write the report."""
    group = "brokers' files"
    results = _carry_out(file_tasks(cluster, group, losses=searches.promised))
    answer = file_answer(cluster, losses=searches.promised)
    notes = cluster_notes(cluster)
    console = output.stdout()
    strip = _common_folder(cluster)
    if not json:
        print_replicas(answer.replicas, console, everything=verbose)
        print_answer(answer, console, everything=verbose, strip=strip)
        # The search may take a while, and standard output may be a pipe.
        console.file.flush()
    explained = explained_partitions(cluster) if searches.promised else []
    searched = [] if no_search else _carry_out(search_tasks(cluster, group, searches, explained))
    results += searched
    whole = add_search(answer, searched)
    if not json:
        _print_search(answer, whole, searched, console, strip, verbose=verbose)
    if verbose and not json:
        for line in whole.remarks:
            console.print(Text(printable(f"remark: {line}")), soft_wrap=True)
        console.print(closing_table(results))
    files = ReportFiles()
    index = report.absolute() / "index.html"
    files.write(index, lambda: write_report(report, results, notes, answer=whole))
    _annotate(results)
    if json:
        told = report_json(results, notes, answer=whole)
        told["files"] = cluster.report.to_json()
        told["refused"] = [{"what": f.what, "where": f.where, "mend": f.mend} for f in cluster.refused]
        output.print_json(told)
    if whole.last_line:
        output.note(whole.last_line) if json else console.print(Text(printable(whole.last_line)), soft_wrap=True)
    return files.exit_code(exit_code(whole.verdict))


def _print_search(
    before: Answer, after: Answer, searched: Sequence[Obligation], console: Console, strip: str, *, verbose: bool
) -> None:
    """Print what the search adds: a violation with its run, or a note that it did not finish."""
    for note in after.notes[len(before.notes) :]:
        console.print(Text(printable(f"note: {note}")))
    if after.verdict != before.verdict:
        print_verdict(after, console)
    known = set(before.findings)
    for finding in after.findings:
        if finding not in known:
            print_finding(finding, console, everything=verbose, strip=strip)
    for step in after.next_steps[len(before.next_steps) :]:
        console.print(Text(printable(f"next: {step}")))
    for result in searched:
        if result.story is not None and result.verdict == "violated" and verbose:
            _print_run(result, result.story, console)


def _common_folder(cluster: Cluster) -> str:
    """The folder above all directories with a slash at its end, which the screen leaves out; empty for none."""
    paths = [directory.path for broker in cluster.report.brokers for directory in broker.directories]
    parents = {str(path.parent) for path in paths}
    (folder,) = parents if len(parents) == 1 else ("",)
    return f"{folder}/" if folder not in ("", ".", "/") else ""


def _check_bundled(variant: str | None, budget: SearchLimits, report: Path, *, search: bool, json: bool) -> ExitCode:
    """Check all models, the bundled recordings and the bundled corpus of traces."""
    results = _everything(variant, budget, search=search)
    overview = stages()
    files = ReportFiles()
    index = report.absolute() / "index.html"
    files.write(index, lambda: write_report(report, results, (), overview))
    _annotate(results)
    if json:
        output.print_json(report_json(results, (), overview))
    else:
        print_table(results, output.stdout())
    return files.exit_code(exit_code(overall(results)))


def _annotate(results: Sequence[Obligation]) -> None:
    """Annotations for CI: what is not met, at the promise that its story breaks where it has one."""
    for each in results:
        if not each.met and not each.open:
            story = each.story
            place = None
            if story is not None and story.protocol in REGISTRY:
                place = place_of(REGISTRY[story.protocol].protocol, story.violated)
            title = f"{each.group}: {each.name}: {each.outcome}"
            annotate(title, each.detail or each.outcome, place, failed=each.verdict != "unknown")


def _require_topics(cluster: Cluster, topics: Sequence[str]) -> None:
    """Raise BadInput for a topic that no directory has: nothing would be checked of it."""
    known = {key[0] for broker in cluster.report.brokers for key in broker.partitions}
    for topic in topics:
        if topic not in known:
            # Only the topics asked for were read. Kafka's own come last.
            roots = [each.path for broker in cluster.report.brokers for each in broker.directories]
            there = {name for root in roots for name in topic_names(root)}
            names = sorted(there, key=lambda name: (name.startswith("__"), name))
            raise BadInput(f"no directory has the topic {topic!r}", "--topic", near(topic, names))


def _everything(variant: str | None, budget: SearchLimits, *, search: bool) -> list[Obligation]:
    # The models in processes of their own, while this one reads files, and waits for Spark.
    with answering(all_groups()) as models, bundled_mining() as mining:
        files = _carry_out(_corpus_tasks(variant, budget, search=search))
        with progress_bar() as bar:
            whole = bar.add_task("the models", total=None)
            met = 0

            def on_group(name: str, obligations: int) -> None:
                nonlocal met
                met += obligations
                bar.update(whole, detail=f"{met} obligations, last of {name}")

            answers = models.wait(on_group)
        return [*answers, *files, *_carry_out(mining)]


def _corpus_tasks(variant: str | None, budget: SearchLimits, *, search: bool = True) -> list[Task]:
    tasks: list[Task] = []
    group = "a recorded Kafka cluster"
    searches = Searches(REGISTRY.of_brokers_logs, variant, budget)
    for cluster in bundled_clusters():
        lost = _LOST.get(cluster.label, {})
        tasks += file_tasks(cluster, group, losses=searches.promised, lost=lost, condensed=True)
        if search:
            tasks += search_tasks(cluster, group, searches, skip=lost)
    return tasks


def _carry_out(tasks: Sequence[Task]) -> list[Obligation]:
    with progress_bar() as bar:
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


def _print_run(result: Obligation, story: Story, console: Console) -> None:
    """The run that ends in logs that no run of the variant ends in, step by step."""
    console.print(f"\n{result.name}: {result.detail}", markup=False)
    console.print(f"  replicas are brokers {', '.join(map(str, story.replicas))}", markup=False)
    broken: set[str] = set()
    for moment in story.moments[1:]:
        params = ", ".join(f"{name}={value}" for name, value in moment.params.items())
        now = {breach.invariant for breach in moment.broken}
        said = f"   breaks {', '.join(sorted(now - broken))}" if now - broken else ""
        said += f"   {', '.join(sorted(broken - now))}: holds again" if broken - now else ""
        broken = now
        console.print(f"  {moment.step:3}  {moment.action}({params}){said}", markup=False)
