"""The result of one check over brokers' files."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from collections.abc import Iterable

Verdict = Literal["holds", "violated", "unknown"]


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One check on one subject (``broker 2: orders-0``, ``orders-0``).

    ``where`` names the file and byte that decided it, or is empty where the whole subject did.
    An ``informative`` result tells something worth knowing that breaks no promise of the protocol, so it
    takes no part in the overall verdict.
    """

    check: str
    verdict: Verdict
    subject: str
    message: str
    where: str = ""
    informative: bool = False
    data: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        place = f" ({self.where})" if self.where else ""
        return f"{self.check}: {self.verdict}: {self.subject}: {self.message}{place}"

    def to_json(self) -> dict[str, Any]:
        """All fields."""
        return {
            "check": self.check,
            "verdict": self.verdict,
            "subject": self.subject,
            "message": self.message,
            "where": self.where,
            "informative": self.informative,
            "data": self.data,
        }


def overall(results: Iterable[CheckResult]) -> Verdict:
    """``violated`` if any result is, else ``unknown`` if any is or there is none, else ``holds``.

    Informative results do not count.
    """
    verdicts = {result.verdict for result in results if not result.informative}
    if "violated" in verdicts:
        return "violated"
    return "holds" if verdicts == {"holds"} else "unknown"
