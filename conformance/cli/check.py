"""``fencepost check``: brokers' data directories against the protocol; with no path, everything there is."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter
from rich.console import Console

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY
from ...model.explore.result import OnProgress
from ...model.explore.result import Progress as Explored
from ...traces.kafka.batches import Limits as ReadLimits
from ...traces.kafka.remote_store import read_store
from ...traces.report.folder import refuse_foreign
from ...traces.report.index import FORMAT, Note, report_json, write_report
from ...traces.report.obligation import Obligation, overall
from ...traces.report.table import print_table
from ...traces.story import Story
from ..check.files import Cluster, Searches, bundled_clusters, file_tasks, read_cluster
from ..check.groups import all_groups, answering
from ..check.mining import bundled_mining
from ..check.notes import cluster_notes
from ..check.task import Task, carry_out
from ..stages import stages
from . import options, output
from .annotations import annotate, place_of
from .options import Positive, unwrapped
from .progress import progress_bar

_LOST = {"6-unclean-election: ": (("payments", 0),)}
"""In the bundled corpus, the logs that an unclean election left: no run of kip-320 reaches them."""

_EXIT = {"holds": 0, "violated": 1, "unknown": 3}
_BAD_INPUT = 2


@unwrapped
def check(
    *path: Path,
    topic: Annotated[tuple[str, ...], Parameter(negative=())] = (),
    max_records: Positive | None = None,
    remote: str | None = None,
    variant: str | None = None,
    report: Path = Path("report"),
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Hold brokers' data directories against the protocol; with no path, check all models and what is bundled.

    That is a recorded cluster, and a corpus of traces with two planted bugs, which is mined on Spark.

    Writes a report folder: index.html with a page for each counterexample, report.json, junit.xml.

    Parameters
    ----------
    path
        Data directories (log.dirs) of brokers of one cluster. Several of one broker are put together by its node id.
    topic
        Check this topic alone, and the metadata log; more than one may be named.
    max_records
        Read at most so many records and headers of records in all (2^25), and end with exit code 2 beyond.
    remote
        The store of tiered topics, of the time of the directories: a folder, or a URL such as s3://bucket/prefix. Its
        objects are held against the remote log metadata in the directories.
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
    notes: list[Note] = []
    if not path:
        mend = "name brokers' data directories"
        options.refuse_idle(
            "there are no directories to read", mend, topic=topic, max_records=max_records, remote=remote
        )
    options.refuse_twice(topic=topic)
    limits = ReadLimits() if max_records is None else ReadLimits(items=max_records)
    if path:
        store = None if remote is None else read_store(remote)
        cluster = read_cluster("", path, topics=topic or None, limits=limits, store=store)
        notes = cluster_notes(cluster)
        if not cluster.report.brokers:
            for fault in cluster.refused:
                output.note(f"fencepost: {fault}")
            return _BAD_INPUT
        _require_topics(cluster, topic)
        results = _carry_out(file_tasks(cluster, "brokers' files", Searches(of_logs, variant)))
    else:
        results = _everything(variant)
    # What there is of each text is of a check of all of it, and says nothing of somebody's brokers.
    overview = None if path else stages()
    folder = write_report(report, results, notes, overview)
    _annotate(results)
    code = _EXIT[overall(results)]
    if cluster is not None and (cluster.refused or cluster.report.bad_input):
        code = _BAD_INPUT
    if json:
        answer: dict[str, object] = dict(report_json(results, notes, overview))
        if cluster is not None:
            answer["files"] = cluster.report.to_json()
            answer["refused"] = [{"what": f.what, "where": f.where, "mend": f.mend} for f in cluster.refused]
            for note in notes:
                if note.kind == "left out":
                    output.note(f"fencepost: {note.text}")
        output.print_json(answer)
    else:
        _print(results, notes)
    output.written(folder)
    return code


def _annotate(results: Sequence[Obligation]) -> None:
    """Annotations for CI: what is not met, at the promise that its story breaks where it has one."""
    for each in results:
        if not each.met:
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
            raise BadInput(f"no directory has the topic {topic!r}", "--topic", "name one as its folders are called")


def _everything(variant: str | None) -> list[Obligation]:
    # The models in processes of their own, while this one reads files, and waits for Spark.
    with answering(all_groups()) as models, bundled_mining() as mining:
        files = _carry_out(_corpus_tasks(variant))
        with progress_bar() as bar:
            whole = bar.add_task("the models", total=None)
            met = 0

            def on_group(name: str, obligations: int) -> None:
                nonlocal met
                met += obligations
                bar.update(whole, detail=f"{met} obligations, last of {name}")

            answers = models.wait(on_group)
        return [*answers, *files, *_carry_out(mining)]


def _corpus_tasks(variant: str | None) -> list[Task]:
    tasks: list[Task] = []
    searches = Searches(REGISTRY.of_brokers_logs.protocol, variant)
    for cluster in bundled_clusters():
        lost = _LOST.get(cluster.label, ())
        tasks += file_tasks(cluster, "a recorded Kafka cluster", searches, lost=lost, condensed=True)
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


def _print(results: Sequence[Obligation], notes: Sequence[Note]) -> None:
    console = output.stdout()
    for note in notes:
        match note.kind:
            case "left out" | "problem":
                output.note(f"fencepost: {note.text}")
            case "truncation" | "loss":
                console.print(note.text, markup=False, soft_wrap=True)
            case _:
                console.print(f"note: {note.text}", markup=False, soft_wrap=True)
    for result in results:
        if result.story is not None and not result.met and result.story.noun != "replica":
            _print_run(result, result.story, console)
    print_table(results, console)


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
