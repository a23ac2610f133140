"""A contradiction between observations of one partition."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from .observation import Observation


@dataclass(frozen=True, slots=True, kw_only=True)
class Contradiction:
    """Observations that no correct run of the protocol produces together.

    Args:
        check: Name of the checker, in snake_case.
        partition: ``TOPIC-NUMBER``.
        message: One sentence with the brokers, epochs and offsets.
        evidence: The observations that contradict each other, the decisive one last.
        verdict: ``unknown`` if the observations contradict each other only under an assumption that the files do
            not prove; the message then names the assumption.
        cause: The observation that explains the contradiction, such as an unclean election.
        lost: First and last offset of the committed records that are lost, if known.
    """

    check: str
    partition: str
    message: str
    evidence: tuple[Observation, ...]
    verdict: Literal["violated", "unknown"] = "violated"
    cause: Observation | None = None
    lost: tuple[int, int] | None = None

    def to_json(self) -> dict[str, Any]:
        """All fields; observations by file and line."""
        return {
            "check": self.check,
            "partition": self.partition,
            "verdict": self.verdict,
            "message": self.message,
            "evidence": [each.where for each in self.evidence],
            "cause": None if self.cause is None else self.cause.where,
            "lost": None if self.lost is None else list(self.lost),
        }
