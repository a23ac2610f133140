"""The answer of a check over brokers' files, and how a later search changes it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ...traces.kafka.checks import CONTROLLER_LOG, OF_ONE_TOPIC
from ...traces.kafka.partition import METADATA_TOPIC
from ...traces.kafka.verdicts import CheckResult
from ...traces.report.answer import Answer, Finding
from ...traces.report.obligation import Obligation
from ...traces.run_report import Verdict
from ...traces.text import counted
from .files import Cluster
from .findings import SHOWN, file_findings
from .next_steps import next_steps
from .notes import remarks
from .replica_rows import replica_table
from .truncations import prescribed_truncations


def file_answer(cluster: Cluster, *, losses: bool = True) -> Answer:
    """Judge brokers' directories by their files alone.

    ``losses``: whether a lost committed record is a problem; not so for a variant that allows losses.
    """
    findings = file_findings(cluster, losses=losses)
    truncations = prescribed_truncations(cluster)
    verdict, headline = _verdict(cluster, findings)
    partitions = any(broker.partitions for broker in cluster.report.brokers)
    return Answer(
        verdict=verdict,
        headline=headline,
        findings=findings,
        next_steps=next_steps(cluster, findings, truncations),
        replicas=replica_table(cluster, {name for each in findings for name in each.names}),
        skipped=tuple(str(fault) for fault in cluster.refused),
        notes=(
            *(f"{each.subject}: {each.text}" for each in truncations if not each.loss_reported),
            *_left_over(cluster.report.checks),
            *(each.message for each in cluster.report.checks if each.check == CONTROLLER_LOG and partitions),
        ),
        remarks=tuple(remarks(cluster)),
    )


def add_search(answer: Answer, searched: Sequence[Obligation]) -> Answer:
    """Add the search's results: a violation is a finding; an unfinished search is a note and changes no verdict."""
    # The files' own finding about a partition is the same fact, with the lost offsets.
    known = {name for each in answer.findings if each.verdict == "violated" for name in each.names}
    broken = tuple(
        Finding("violated", subject, each.detail, (), "search")
        for each in searched
        for subject in [each.name.removesuffix(": reachable")]
        if each.verdict == "violated" and subject not in known
    )
    # Without a limit reached there was nothing to search, or an answer that the report has already.
    undecided = tuple(
        f"{each.name}: the search did not finish: {each.detail}"
        for each in searched
        if each.verdict == "unknown" and each.unfinished
    )
    answer = replace(answer, notes=(*answer.notes, *undecided))
    if not broken:
        return answer
    findings = tuple(sorted((*answer.findings, *broken), key=lambda each: each.verdict != "violated"))
    steps = answer.next_steps or (
        "Look at the run in the report: it shows one way in which the replicas can have come to differ.",
    )
    return replace(answer, verdict="violated", headline=_problems(findings), findings=findings, next_steps=steps)


def _left_over(results: Sequence[CheckResult]) -> list[str]:
    """One line for each removed topic: the folders that are left of it, which were not judged."""
    subjects: dict[str, list[str]] = {}
    for each in results:
        if each.check == OF_ONE_TOPIC and each.informative:
            subjects.setdefault(each.message, []).append(each.subject)
    return [
        f"{', '.join(names[:SHOWN])}{f' and {len(names) - SHOWN} more' if len(names) > SHOWN else ''}: {message}"
        for message, names in subjects.items()
    ]


def judged(results: Sequence[CheckResult]) -> int:
    """How many checks came to a verdict other than ``unknown``."""
    return sum(each.verdict != "unknown" for each in results if not each.informative)


def _verdict(cluster: Cluster, findings: Sequence[Finding]) -> tuple[Verdict, str]:
    """The verdict and its reason. Unread input is never part of ``holds``."""
    if any(each.verdict == "violated" for each in findings):
        return "violated", _problems(findings)
    left_over = {place for place, other in cluster.report.other_topics.items() if other.sure}
    partitions = {
        key for broker in cluster.report.brokers for key in broker.partitions if (broker.label, key) not in left_over
    }
    if not partitions or not judged(cluster.report.checks):
        where = "the directory has" if len(cluster.report.brokers) == 1 else "the directories have"
        reason = f"{where} no partition" if not partitions else "no check came to a verdict"
        return "unknown", f"nothing was judged: {reason}"
    if findings:
        return "unknown", f"{counted(len(findings), 'open question')}, no violation found"
    if cluster.refused:
        return "unknown", f"the rest holds, and {_directories(len(cluster.refused))} skipped"
    brokers = ", ".join(broker.label.removeprefix("broker ") for broker in cluster.report.brokers)
    noun = "broker" if len(cluster.report.brokers) == 1 else "brokers"
    topics = [key for key in partitions if key[0] != METADATA_TOPIC]
    what = [counted(len(topics), "partition")] if topics else []
    what += ["the metadata log"] if len(topics) < len(partitions) else []
    return "holds", f"{' and '.join(what)} of {noun} {brokers}, {judged(cluster.report.checks)} checks"


def _problems(findings: Sequence[Finding]) -> str:
    violations = sum(each.verdict == "violated" for each in findings)
    questions = len(findings) - violations
    more = f", {counted(questions, 'open question')}" if questions else ""
    subjects = list(dict.fromkeys(each.subject for each in findings if each.verdict == "violated"))
    where = f" in {subjects[0]}" if len(subjects) == 1 else ""
    return f"{counted(violations, 'problem')}{where}{more}"


def _directories(count: int) -> str:
    return "1 directory was" if count == 1 else f"{count} directories were"
