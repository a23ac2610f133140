"""The answer of a check over brokers' files: the verdict, the problems, the next steps and the replicas."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from ..run_report import Verdict
from .replicas import ReplicaTable


@dataclass(frozen=True)
class Finding:
    """One problem in plain words.

    Args:
        verdict: ``violated``, or ``unknown`` for a question that the files leave open.
        subject: The partition, broker or file, or the first ones of several.
        text: The problem.
        details: Lines that locate it: records, files, bytes.
        check: The name of the check that found it.
        subjects: All of them, if there are several.
    """

    verdict: Verdict
    subject: str
    text: str
    details: tuple[str, ...] = ()
    check: str = ""
    subjects: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Every partition, broker or file that the problem is about."""
        return self.subjects or (self.subject,)

    def to_json(self) -> dict[str, Any]:
        """All fields but ``subjects``."""
        return {
            "verdict": self.verdict,
            "subject": self.subject,
            "text": self.text,
            "details": list(self.details),
            "check": self.check,
        }


@dataclass(frozen=True)
class Answer:
    """The answer, in the order in which every presentation shows it.

    Args:
        verdict: The verdict.
        headline: The verdict's reason in half a line.
        findings: The problems: violations first.
        next_steps: What to do next, a sentence each.
        replicas: Partition by broker.
        skipped: Why directories were left out, a line each.
        notes: What changes no verdict and is worth a line: truncations without a loss, an unfinished search.
        remarks: The other results that change no verdict.
    """

    verdict: Verdict
    headline: str
    findings: tuple[Finding, ...] = ()
    next_steps: tuple[str, ...] = ()
    replicas: ReplicaTable = field(default_factory=ReplicaTable)
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "headline": self.headline,
            "problems": [finding.to_json() for finding in self.findings],
            "next_steps": list(self.next_steps),
            "replicas": self.replicas.to_json(),
            "skipped": list(self.skipped),
            "observations": list(self.notes),
        }

    @property
    def last_line(self) -> str:
        """How many directories were skipped, and why; empty if none was."""
        if not self.skipped:
            return ""
        count = "1 directory" if len(self.skipped) == 1 else f"{len(self.skipped)} directories"
        return f"skipped {count}: {'; '.join(self.skipped)}"
