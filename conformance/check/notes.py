"""Remarks on brokers' files beside the verdicts: the same lines in the terminal, the page and JSON."""

from __future__ import annotations

from collections.abc import Iterable

from ...traces.kafka.checks import CONTROLLER_LOG, OF_ONE_TOPIC
from ...traces.kafka.losses import NAME as LOSSES
from ...traces.kafka.policies import late_cleaning
from ...traces.kafka.verdicts import CheckResult
from ...traces.report.index import Note
from ...traces.text import counted
from .files import Cluster
from .truncations import prescribed_truncations

SHOWN = 6
"""So many subjects are named if one note is about several."""


def cluster_notes(cluster: Cluster) -> list[Note]:
    """Skipped directories, unreadable files, truncations, lost records one by one, and remarks, in that order."""
    found = [Note("left out", str(fault)) for fault in cluster.refused]
    found += [
        Note("problem" if problem.severity == "error" else "note", str(problem)) for problem in cluster.report.problems
    ]
    found += [Note("truncation", f"{each.subject}: {each.text}") for each in prescribed_truncations(cluster)]
    found += [Note("loss", line) for line in _losses(cluster.report.checks)]
    found += [Note("note", line) for line in _informative(cluster.report.checks)]
    found += [Note("note", line) for line in _late_cleaning(cluster)]
    return found


def remarks(cluster: Cluster) -> list[str]:
    """Return what changes no verdict: files that Kafka leaves behind, informative results, and risky settings."""
    found = [str(problem) for problem in cluster.report.problems if problem.severity != "error"]
    return [
        *found,
        *_informative(each for each in cluster.report.checks if each.check not in (CONTROLLER_LOG, OF_ONE_TOPIC)),
        *_late_cleaning(cluster),
    ]


def _late_cleaning(cluster: Cluster) -> list[str]:
    """Return each topic's settings with which a tombstone can go too early, once for all of its replicas."""
    topics = sorted({topic for each in cluster.report.brokers for topic, _ in each.partitions})
    nodes = [each.node_id for each in cluster.report.brokers]
    lines = [
        f"topic {topic}: {line}"
        for topic in topics
        for node in nodes
        for line in late_cleaning(cluster.image, topic, node)
    ]
    return list(dict.fromkeys(lines))


def _losses(results: Iterable[CheckResult]) -> Iterable[str]:
    for result in results:
        if result.check != LOSSES or result.verdict == "holds" or result.informative or result.data.get("within"):
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
