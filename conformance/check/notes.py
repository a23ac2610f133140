"""What is worth knowing of brokers' files beside the verdicts: the same lines in the terminal, the page and JSON."""

from __future__ import annotations

from collections.abc import Iterable

from ...traces.kafka.losses import NAME as LOSSES
from ...traces.kafka.verdicts import CheckResult
from ...traces.report.index import Note
from ...traces.words import counted
from .files import Cluster

SHOWN = 6
"""So many subjects are named where one note is about several."""


def cluster_notes(cluster: Cluster) -> list[Note]:
    """What was left out or could not be read, truncations, lost records one by one, and notes, in that order."""
    found = [Note("left out", str(fault)) for fault in cluster.refused]
    found += [
        Note("problem" if problem.severity == "error" else "note", str(problem)) for problem in cluster.report.problems
    ]
    found += [Note("truncation", line) for line in _truncations(cluster)]
    found += [Note("loss", line) for line in _losses(cluster.report.checks)]
    found += [Note("note", line) for line in _informative(cluster.report.checks)]
    return found


def _truncations(cluster: Cluster) -> Iterable[str]:
    """What a follower cuts off under the elected leader; where none is known, under each that could be."""
    for comparison in cluster.report.comparisons:
        elected = [each for each in comparison.truncations if each.by_controller]
        for each in elected or comparison.truncations:
            kept = "" if each.agrees_after is not False else ", and the logs still differ after it"
            yield (
                f"{comparison.topic}-{comparison.partition}: {each.follower} as follower of {each.leader} truncates to "
                f"offset {each.offset} and loses {counted(each.records_lost, 'record')}{kept}"
            )


def _losses(results: Iterable[CheckResult]) -> Iterable[str]:
    for result in results:
        if result.check != LOSSES or result.verdict == "holds" or result.informative:
            continue
        what = "lost" if result.verdict == "violated" else "missing, whether lost is unknown"
        for told in result.data.get("told", ()):
            yield f"{result.subject}: {what}, though committed by {result.data['follower']}: {told}"
        more = result.data.get("records_lost", 0) - len(result.data.get("told", ()))
        if more > 0:
            yield f"{result.subject}: and {counted(more, 'record')} more"


def _informative(results: Iterable[CheckResult]) -> Iterable[str]:
    """Informative results that are not ``holds``; those that differ in their subject alone are one line."""
    by_message: dict[tuple[str, str, str, str], list[str]] = {}
    for result in results:
        if result.informative and result.verdict != "holds":
            place = f" ({result.where})" if result.where else ""
            by_message.setdefault((result.check, result.verdict, result.message, place), []).append(result.subject)
    for (check, verdict, message, place), subjects in by_message.items():
        if len(subjects) == 1:
            yield f"{check}: {verdict}: {subjects[0]}: {message}{place}"
        else:
            more = f" and {len(subjects) - SHOWN} more" if len(subjects) > SHOWN else ""
            yield f"{check}: {verdict}: {message}{place}, of {len(subjects)}: {', '.join(subjects[:SHOWN])}{more}"
