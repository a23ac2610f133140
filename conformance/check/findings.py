"""The problems that brokers' files show, in plain words: each fact once, violations first."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...traces.kafka.cross_checks import AGREEMENT
from ...traces.kafka.loss_words import loss_words
from ...traces.kafka.losses import NAME as LOSSES
from ...traces.kafka.problems import Problem
from ...traces.kafka.verdicts import CheckResult
from ...traces.report.answer import Finding
from ...traces.text import counted
from .files import Cluster

SHOWN = 6
"""So many subjects are named if one finding is about several."""

RESTATED = frozenset({AGREEMENT, "truncation_keeps_committed", "truncation_restores_agreement"})
"""Checks that report a loss by its divergence or truncation, which a proven loss reports with the lost offsets."""


def file_findings(cluster: Cluster, *, losses: bool = True) -> tuple[Finding, ...]:
    """Return the findings of all checks that count, and of unreadable files and skipped directories.

    Args:
        cluster: The brokers and their report.
        losses: Whether a lost committed record is a problem; not so for a variant that allows losses.
    """
    results = [
        each
        for each in cluster.report.checks
        if not each.informative and each.verdict != "holds" and (losses or each.check != LOSSES)
    ]
    proven = {each.subject for each in results if each.check == LOSSES and each.verdict == "violated"}
    unread = _unread_partitions(cluster)
    parts: dict[tuple[str, str], list[CheckResult]] = {}
    for each in results:
        if each.data.get("within"):
            parts.setdefault((each.subject, each.data["within"]), []).append(each)
    blocked: list[CheckResult] = []
    found: list[Finding] = []
    for each in results:
        if each.verdict == "unknown" and _partition(each.subject) in unread:
            blocked.append(each)
        elif (each.check not in RESTATED or each.subject not in proven) and not each.data.get("within"):
            found.append(_finding(each, parts.get((each.subject, each.data.get("follower", "")), ())))
    told = {each.where for each in results if each.verdict == "violated"}
    found += _unreadable([each for each in cluster.report.problems if each.severity == "error"], told)
    if blocked:
        names = tuple(sorted({_partition(each.subject) for each in blocked}))
        text = f"{counted(len(blocked), 'check')} not decided, since part of a log could not be read"
        found.append(Finding("unknown", _listed(names), text, (), "readable", names))
    return tuple(sorted(_merged(found), key=_rank))


def _unreadable(problems: Sequence[Problem], told: set[str]) -> list[Finding]:
    """One finding for each file: its first problem, and how many more there are. ``told``: places of violations."""
    by_file: dict[Path, list[Problem]] = {}
    for problem in problems:
        if problem.where not in told:
            by_file.setdefault(problem.path, []).append(problem)
    found = []
    for first, *others in by_file.values():
        more = f" (and {counted(len(others), 'more problem')} of this file)" if others else ""
        details = tuple(str(each) for each in others)
        found.append(Finding("unknown", first.where, f"{first.what}{more}; {first.mend}", details, "readable"))
    return found


def _rank(finding: Finding) -> tuple[bool, bool, bool]:
    """Violations first, of them losses; of open questions, unreadable files."""
    return finding.verdict != "violated", finding.check != LOSSES, finding.check != "readable"


def _unread_partitions(cluster: Cluster) -> set[str]:
    """The names of partitions of which some replica could not be read in full: their other doubts follow from that."""
    return {files.name for broker in cluster.report.brokers for files in broker.partitions.values() if files.damaged}


def _partition(subject: str) -> str:
    """``orders-0`` of ``broker 2: orders-0``."""
    return subject.rpartition(": ")[2]


def _finding(result: CheckResult, parts: Sequence[CheckResult]) -> Finding:
    """One finding. ``parts``: the results of other replicas that show the same loss, which it names."""
    text = loss_words(result.data, [each.data for each in parts]) if parts else result.message
    details = tuple(result.data.get("told", ())) or ((result.where,) if result.where else ())
    return Finding(result.verdict, result.subject, text, details, result.check)


def _merged(findings: Sequence[Finding]) -> list[Finding]:
    """Make one finding of those of one check with one text: about several subjects."""
    groups: dict[tuple[str, str, str], list[Finding]] = {}
    for each in findings:
        groups.setdefault((each.check, each.verdict, each.text), []).append(each)
    merged = []
    for members in groups.values():
        first = members[0]
        subjects = tuple(dict.fromkeys(name for each in members for name in each.names))
        if len(members) > 1 and len(subjects) > 1:
            details = tuple(dict.fromkeys(line for each in members for line in each.details))
            first = Finding(first.verdict, _listed(subjects), first.text, details, first.check, subjects)
        merged.append(first)
    return merged


def _listed(subjects: Sequence[str]) -> str:
    more = f" and {len(subjects) - SHOWN} more" if len(subjects) > SHOWN else ""
    return f"{', '.join(subjects[:SHOWN])}{more}"
