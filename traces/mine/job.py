"""Mining a corpus: file paths go out to Spark's tasks, findings come back, and become an answer.

Rows never travel. A task opens its file with PyArrow, goes through some row groups as NumPy columns, and returns a
`Part`: counts, and of each bug one trace. Nothing is shuffled. Parts are merged by sums, minima and unions, so neither
the cut into files and tasks nor the master can change the answer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.registry import PROTOCOLS
from ..background import Background
from ..corpus.files import ROW_GROUP
from ..corpus.layout import CorpusHeader
from ..corpus.manifest import ANEW, Corpus, CorpusFile, read_corpus
from ..corpus.place import Place, shown_path
from ..corpus.spread import SERIAL
from ..replay import Budget
from .against import variant_for
from .answer import Answer, Group, Problem, Unknown
from .bad_step import explaining
from .groups import Explained, Family, families
from .minimal import Task, Told, bad_step_of, tell
from .part import Model, Part, Sighting
from .reachable_gap import MAX_STATES, Known, coverage_of, known_graph
from .work_unit import Question, Unit
from .workers import OnProgress, Workers

MAX_GROUPS: Final = 50
"""So many groups are minimised and told, unless somebody asks for more."""

_LAST: Final = 1 << 31
"""More row groups than a file has: a task goes as far as there are any."""

UNIT: Final = 8 * ROW_GROUP
"""At most so many events are mined by one task: about a second's work."""


@dataclass(frozen=True)
class Asked:
    """What to mine for: the corpus' folder or its URI, the variant (None: the safe one), and how far to go."""

    corpus: Path
    variant: str | None = None
    max_groups: int = MAX_GROUPS
    budget: Budget = field(default_factory=Budget)
    max_states: int = MAX_STATES


def mine(asked: Asked, master: str = SERIAL, on_progress: OnProgress | None = None) -> Answer:
    """Mine a corpus. ``seconds`` of the answer are without the start of a session.

    Raises BadInput where there is nothing to mine: no corpus, an unknown variant, no file that can be held against it.
    """
    # A cluster's workers are in other folders.
    corpus = read_corpus(Place.of(asked.corpus).absolute().where)
    files, problems = _usable(corpus, asked.variant)
    models = sorted({model_for(file.header, asked.variant) for file in files})
    # The graphs are explored while Spark starts.
    graphs = Background(lambda: {model: known_graph(model, asked.max_states) for model in models})
    with Workers(master, on_progress) as workers:
        start = time.perf_counter()
        known = graphs.result()
        whole = frozenset(model for model, graph in known.items() if graph.whole is not None)
        part = mine_files(files, Question(asked.variant, asked.budget, whole), workers)
        part.problems[:0] = problems
        return conclude(part, known, asked, workers, start)


def _usable(corpus: Corpus, variant: str | None) -> tuple[list[CorpusFile], list[Problem]]:
    files, problems = [], [Problem.of(problem) for problem in corpus.problems]
    refused: BadInput | None = None
    for file in corpus.files:
        try:
            variant_for(file.header, variant, file.path)
        except BadInput as error:
            if error.where != file.path:
                raise
            refused = refused or error
            problems.append(Problem.of(error))
        else:
            files.append(file)
    if refused is not None and not files:
        raise refused
    return files, problems


def model_for(header: CorpusHeader, variant: str | None) -> Model:
    """What a file's traces are held against. Raises BadInput for an unknown variant."""
    traced = PROTOCOLS[header.protocol].traced(variant)
    return header.protocol, traced.variant.name, tuple(traced.protocol.check_constants(header.constants).items())


def units_of(files: Sequence[CorpusFile], tasks: int) -> list[Unit]:
    """The files cut into parts of whole row groups, of a size that keeps so many tasks busy."""
    events = sum(file.events for file in files)
    groups = max(1, min(UNIT, events // max(1, 4 * tasks)) // ROW_GROUP)
    found = []
    for file in files:
        # A row group has at most ROW_GROUP events, but for a single trace that has more.
        count = max(1, -(-file.events // (groups * ROW_GROUP)))
        cuts = [*range(0, count * groups, groups), _LAST]
        found += [Unit(file, low, high) for low, high in pairwise(cuts)]
    return found


def mine_files(files: Sequence[CorpusFile], question: Question, workers: Workers) -> Part:
    """Mine files by whoever works; what is wrong with one is told once."""
    units = units_of(files, workers.tasks)
    whole = Part()
    for part in workers.mine(units, question):
        whole.merge(part)
    whole.problems += _miscounted(files, whole)
    first: dict[str, Problem] = {}
    for problem in sorted(whole.problems, key=lambda each: (each.where.partition(", row group ")[0], each.where)):
        first.setdefault(problem.where.partition(", row group ")[0], problem)
    whole.problems = list(first.values())
    return whole


def _miscounted(files: Sequence[CorpusFile], whole: Part) -> list[Problem]:
    """Files that were read in full and have another number of traces than was said of them."""
    unread = {problem.where.partition(", row group ")[0] for problem in whole.problems}
    found = []
    for file in files:
        counted = whole.traces_of[file.path]
        if file.traces is not None and counted != file.traces and shown_path(file.path) not in unread:
            what = f"it has {counted:,} traces, and by the manifest {file.traces:,}"
            found.append(Problem(what, shown_path(file.path), ANEW))
    whole.traces_of.clear()
    return found


def conclude(part: Part, known: Mapping[Model, Known], asked: Asked, workers: Workers, start: float) -> Answer:
    """The answer that the merged parts give: bugs grouped and told, coverage beside the graphs."""
    groups, left_off = groups_of(part, asked.budget, asked.max_groups, workers)
    return Answer(
        variants=tuple(sorted({model[1] for model in known})),
        traces=part.traces,
        events=part.events,
        violating_traces=part.violating,
        groups=tuple(groups),
        groups_left_off=left_off,
        unknown=tuple(Unknown(reason, *counts) for reason, counts in sorted(part.unknown.items())),
        coverage=tuple(coverage_of(m, part.seen[m], known[m], asked.max_states) for m in sorted(part.seen)),
        problems=tuple(part.problems),
        seconds=time.perf_counter() - start,
    )


def groups_of(part: Part, budget: Budget, max_groups: int, workers: Workers) -> tuple[list[Group], int]:
    """The bugs with the most traces, each minimised by whoever works; and how many more there are."""
    found = families([_explained(each, budget) for each in part.sightings.values()])
    told = workers.map(partial(tell, budget=budget), [_task(family) for family in found[:max_groups]])
    return [_group(family, story) for family, story in zip(found, told, strict=False)], len(found[max_groups:])


def _explained(sighting: Sighting, budget: Budget) -> Explained:
    bug = sighting.bug
    if bug.kind == "promise":
        return Explained(sighting, ())
    found = bad_step_of(bug, sighting.model, sighting.trace, budget)
    if found is None:
        return Explained(sighting, ())
    traced = PROTOCOLS[sighting.model[0]].traced(sighting.model[1])
    return Explained(sighting, explaining(traced, sighting.trace.header.constants, found[1]))


def _task(family: Family) -> Task:
    sighting = family.merged
    return Task(sighting.bug, sighting.model, sighting.trace, family.changes[0].name if family.changes else None)


def _group(family: Family, told: Told) -> Group:
    merged = family.merged
    return Group(
        bug=merged.bug,
        count=merged.count,
        first=merged.first,
        shortest=merged.shortest,
        prefix=merged.prefix,
        constants=dict(told.trace.header.constants),
        variant=merged.model[1],
        shape=told.shape,
        signatures=len(merged.shapes),
        then=dict(sorted(merged.then.items())),
        mutants=tuple(change.name for change in family.changes),
        minimal=told.trace,
        minimised=told.minimised,
        note=told.note,
    )
