"""``fencepost mine``: which traces of a corpus break which promise, how many bugs that is, and their stories."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...traces.corpus.manifest import read_corpus
from ...traces.corpus.place import Place
from ...traces.mine.answer import Answer, Coverage, Group, Problem
from ...traces.mine.follow import Batch, Following
from ...traces.mine.follow import follow as run_follow
from ...traces.mine.job import MAX_GROUPS, Asked
from ...traces.mine.job import mine as run
from ...traces.mine.reachable_gap import MAX_STATES
from ...traces.mine.workers import OnProgress, Progress
from ...traces.replay import Budget
from ...traces.report.folder import refuse_unwritable
from ...traces.report.mining import refuse_out, write_mining
from ...traces.text import counted
from .bundled_paths import resolve_bundled_one
from .explore import protocol_named
from .help_groups import grouped
from .masters import MINED, SPARK, Work, master_for, refuse_master
from .options import Natural, Positive, Seconds, unwrapped
from .output import note, print_json, stdout
from .progress import progress_bar
from .report_files import ReportFiles

_EVERY_SECONDS: Final = 5.0
"""Where standard error is no terminal, progress is a line now and then."""


@grouped(
    Input=(
        "corpus",
        "variant",
        "protocol",
    ),
    Output=(
        "out",
        "json",
        "max_groups",
    ),
    Limits=(
        "max_skipped",
        "max_frontier",
        "max_states",
    ),
    Spark=(
        "master",
        "follow",
        "until_idle",
        "checkpoint",
    ),
)
@unwrapped
def mine(
    corpus: Path,
    *,
    protocol: Annotated[Sequence[str], Parameter(negative=())] = (),
    variant: str | None = None,
    master: str | None = None,
    out: Path | None = None,
    max_groups: Natural = MAX_GROUPS,
    max_skipped: Natural = Budget.max_skipped,
    max_frontier: Positive = Budget.max_frontier,
    max_states: Natural = MAX_STATES,
    follow: Annotated[bool, Parameter(negative=())] = False,
    checkpoint: Path | None = None,
    until_idle: Seconds | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> ExitCode:
    """Check every trace of a corpus against a variant, and report each distinct bug by its shortest trace.

    A file that cannot be read is named on a line of its own, and the others are mined.

    Parameters
    ----------
    corpus
        Folder of a corpus, as fencepost simulate and fencepost ingest write it: its path, or its URI (s3:, ...).
    variant
        Variant to check the traces against, whichever made them; by default the protocol's safe one.
    protocol
        Place of a protocol of the corpus that is not installed: file.py:name or module:name (repeatable). Its text goes
        to Spark's workers with the tasks.
    out
        Folder to write: the report, and for each bug its trace and a test that fails until the bug is fixed.
    json
        Print one JSON object on standard output.
    max_groups
        Number of bugs to report, those with the most traces; the others are counted.
    max_skipped
        Number of unobserved steps between two events at most, in traces that may lack events.
    max_frontier
        Number of states that may explain a trace at once; beyond it the trace is unknown.
    max_states
        Size of the model's whole graph up to which the corpus is compared with it.
    master
        Spark master that runs the tasks: local[N], local[*] or spark://HOST:PORT; serial: this process, without Spark.
        By default serial or local[*], by the size of the corpus; standard error names it. With
        --follow always Spark.
    follow
        Mine the files that arrive in the folder as well, until interrupted: each batch of them is a line on standard
        error, and the answer comes at the end. With --out, the report is written anew whenever a new bug shows.
    until_idle
        Seconds without a new file after which --follow ends.
    checkpoint
        Folder of what outlives a restart of --follow; by default one beside CORPUS, CORPUS.follow.
    """
    for each in protocol:
        protocol_named(each, "--protocol")
    if out is not None:
        refuse_out(out)
        _warn_unwritable(out)
    refuse_master(master)
    corpus = resolve_bundled_one(corpus)
    asked = Asked(corpus, variant, max_groups, Budget(max_skipped, max_frontier), max_states)
    said: set[Problem] = set()
    if follow:
        answer = _follow(Following(asked, checkpoint or _beside(corpus), until_idle), master or SPARK, out, said)
    else:
        _refuse_without_follow(checkpoint, until_idle)
        if master is None:
            master = master_for(None, Work(read_corpus(corpus).events, "events", MINED))
        with _mining() as told:
            answer = run(asked, master, told)
    files = ReportFiles()
    if out is not None:
        reported = [answer]
        # The report names its own files, so that the answer does too.
        files.write(out, lambda: reported.append(write_mining(out, answer, str(Place.of(corpus)))))
        answer = reported[-1]
    for problem in answer.problems:
        if problem not in said:
            note(f"fencepost: {problem}")
    if json:
        print_json(answer.to_json())
    else:
        _print(answer)
    return files.exit_code(answer.verdict.exit_code)


def _warn_unwritable(out: Path) -> None:
    """Warn before the work if the report cannot be written: the answer is printed without it."""
    try:
        refuse_unwritable(out)
    except BadInput as wrong:
        note(f"fencepost: warning: {wrong}; the answer is printed all the same")


def _beside(corpus: Path) -> Path:
    """The checkpoint of a folder that is followed, where none is named."""
    folder = corpus.absolute()
    return folder.with_name(f"{folder.name}.follow")


def _refuse_without_follow(checkpoint: Path | None, until_idle: float | None) -> None:
    for name, value in (("--checkpoint", checkpoint), ("--until-idle", until_idle)):
        if value is not None:
            raise BadInput("it says how a folder is followed", name, "add --follow, or leave it out")


def _follow(asked: Following, master: str, out: Path | None, said: set[Problem]) -> Answer:
    """Follow; what is said of problems on the way is taken into ``said``."""

    def told(batch: Batch, answer: Callable[[], Answer]) -> None:
        note(str(batch))
        for problem in batch.problems:
            note(f"fencepost: {problem}")
            said.add(problem)
        for bug in batch.new:
            note(f"new: {bug}")
        if out is not None and batch.new:
            try:
                write_mining(out, answer(), str(asked.asked.corpus))
            except (BadInput, OSError) as error:
                # The report is written again at the end, and a failure then decides the exit code.
                note(f"fencepost: warning: {error}; mining continues")

    return run_follow(asked, master, told)


@contextmanager
def _mining() -> Iterator[OnProgress]:
    """Progress on standard error: a bar on a terminal, else a line every few seconds, and one at the end."""
    with progress_bar() as bar:
        task = bar.add_task("mining", total=None)
        last = time.monotonic()
        shown = noted = ""

        def told(progress: Progress) -> None:
            nonlocal last, shown, noted
            shown = str(progress)
            bar.update(task, completed=progress.files, total=progress.of, detail=shown)
            if not sys.stderr.isatty() and progress.events and time.monotonic() - last >= _EVERY_SECONDS:
                last, noted = time.monotonic(), shown
                note(shown)

        yield told
    if shown != noted:
        note(shown)


def _print(answer: Answer) -> None:
    console = stdout()

    def line(text: str = "") -> None:
        console.print(text, markup=False, soft_wrap=True)

    line(f"verdict  {answer.verdict.value}, held against {', '.join(answer.variants)}")
    events = counted(answer.events, "event")
    line(f"traces   {answer.traces:,} with {events}, {answer.violating_traces:,} of them violate")
    for number, group in enumerate(answer.groups, 1):
        line()
        for text in _group(number, group):
            line(text)
    if answer.groups_left_off:
        line()
        line(f"{counted(answer.groups_left_off, 'more bug')} left off (--max-groups)")
    for each in answer.unknown:
        line(f"unknown  {counted(each.count, 'trace')}, the first {each.first}: {each.reason}")
    for coverage in answer.coverage:
        line()
        for text in _coverage(coverage):
            line(text)
    line()
    line(f"{answer.seconds:.1f} s, {answer.events_per_second:,.0f} events a second")


def _group(number: int, group: Group) -> Iterator[str]:
    yield f"{number}. {group.bug}"
    shortest = f"shortest {group.shortest} (bad at its event {group.prefix})"
    yield f"   {counted(group.count, 'trace')}; first {group.first}, {shortest}"
    for name, (traces, after) in group.then.items():
        yield f"   then {name} breaks: {counted(traces, 'trace')}, {counted(after, 'step')} later at the soonest"
    if group.mutants:
        yield f"   as if: {'; '.join(group.mutants)}"
    if group.minimal is not None:
        yield f"   {counted(len(group.minimal), 'step')}" + ("" if group.note is None else f"; {group.note}")
        yield from (f"   {event.step:3}  {event.call}" for event in group.minimal.events)
    if group.file is not None:
        yield f"   {group.file}"


def _coverage(coverage: Coverage) -> Iterator[str]:
    constants = "/".join(str(value) for value in coverage.constants.values())
    yield f"coverage of {coverage.protocol} {coverage.variant} at {constants}"
    for what, share in (
        ("states", coverage.states),
        ("steps", coverage.steps),
        ("abstract states", coverage.abstract),
        ("moves between abstract states", coverage.moves),
    ):
        if share.visited is not None and share.of is not None and share.fraction is not None:
            yield f"  {share.visited:,} of {share.of:,} {what} ({share.fraction:.1%})"
    for what, names in (("actions", coverage.actions_unseen), ("guards", coverage.guards_unseen)):
        if names:
            yield f"  {what} never exercised: {', '.join(names)}"
    for unvisited in coverage.unvisited:
        yield f"  never visited, {counted(unvisited.steps, 'step')} away: {unvisited.state}"
    if coverage.unvisited_left_out:
        yield f"  and {counted(coverage.unvisited_left_out, 'abstract state')} more"
    for rare in coverage.rarest[:3]:
        yield f"  seldom: {rare.action}, {counted(rare.count, 'time')}, first in trace {rare.first}, where {rare.state}"
    yield from (f"  {text}" for text in coverage.notes)
