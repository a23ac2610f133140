"""One thing that a check set out to show, and how it went."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from ..run_report import VERDICTS, Story, Verdict
from ..text import counted
from .beside import Beside


@dataclass(frozen=True)
class Obligation:
    """A property or a file that was checked.

    ``expected`` is ``violated`` for a must-fail twin, which is there to show that the check can fail. ``count``
    is in ``unit`` (states, events, files); ``seconds`` is wall time. ``story`` is the counterexample, if any;
    ``text`` tells of one that is no run from the initial state. ``beside`` are two runs that show the property, for a
    page of their own. An ``optional`` obligation can only add a violation: its ``unknown`` changes no verdict.
    Raises ValueError for a verdict that is none of the three, and for a count or time that is negative or not finite.
    """

    name: str
    group: str
    verdict: Verdict
    expected: Verdict
    detail: str
    count: int
    unit: str
    seconds: float
    story: Story | None = None
    text: str = ""
    beside: Beside | None = None
    optional: bool = False
    unfinished: bool = False
    """Whether a limit was reached before an answer."""

    def __post_init__(self) -> None:
        for verdict in (self.verdict, self.expected):
            if verdict not in VERDICTS:
                raise ValueError(f"{self.name}: {verdict!r} is not one of {', '.join(VERDICTS)}")
        if self.count < 0 or self.seconds < 0 or not math.isfinite(self.seconds):
            raise ValueError(f"{self.name}: count {self.count} or seconds {self.seconds} is no measurement")

    @property
    def met(self) -> bool:
        """Whether the verdict is the expected one."""
        return self.verdict == self.expected

    @property
    def open(self) -> bool:
        """Whether it is a search that did not finish, which changes no verdict."""
        return self.optional and self.verdict == "unknown"

    @property
    def outcome(self) -> str:
        """The verdict in words that also say whether it was to be: ``violated (expected)``."""
        if self.expected == "holds":
            return self.verdict
        return f"{self.verdict} (expected)" if self.met else f"{self.verdict}, not {self.expected}"


@dataclass(frozen=True)
class Note:
    """A line beside the verdicts. ``kind``: ``left out``, ``problem``, ``truncation``, ``loss`` or ``note``."""

    kind: str
    text: str


def grouped(results: Sequence[Obligation]) -> dict[str, list[Obligation]]:
    """The obligations by group, groups in the order in which they first come up."""
    groups: dict[str, list[Obligation]] = {}
    for each in results:
        groups.setdefault(each.group, []).append(each)
    return groups


def overall(results: Sequence[Obligation]) -> Verdict:
    """The verdict on all of them: ``violated`` if one came out wrong, else ``unknown`` if one ran out of budget.

    A must-fail twin that holds counts as ``violated``: the check did not catch what it is there to catch. Obligations
    that came to no verdict at all are ``unknown`` together: a check that judged nothing holds nothing.
    """
    unmet = [each for each in results if not each.met and not each.open]
    if any(each.verdict != "unknown" for each in unmet):
        return "violated"
    return "unknown" if unmet or all(each.open for each in results) else "holds"


def summary(results: Sequence[Obligation]) -> str:
    """``12 obligations: 11 met, 1 unmet, 3 must-fail twins caught``, in one line."""
    met = sum(each.met for each in results)
    unfinished = sum(each.open for each in results)
    twins = [each for each in results if each.expected == "violated"]
    text = f"{counted(len(results), 'obligation')}: {met} met"
    if met + unfinished < len(results):
        text += f", {len(results) - met - unfinished} not met"
    if unfinished:
        text += f", {counted(unfinished, 'search')} not finished"
    if twins:
        text += f"; {sum(each.met for each in twins)} of {len(twins)} must-fail twins caught"
    return text
