"""What both ways of ``fencepost conform`` share: what was asked, which system and variant it is, what is answered."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from ...model.core.budget import too_large
from ...model.core.errors import BadInput
from ...model.core.ground import System, ground
from ...model.core.protocol import Protocol
from ...model.explore.result import Verdict
from ...traces.kafka.maven import is_version
from ...traces.report.obligation import Obligation
from ...traces.run_report import Json
from ...traces.text import counted
from ..deadline import Deadline
from ..kafka.cluster.lazy_start import SlowSystem
from ..kafka.process import OfKafka
from ..simulation.registry import Mode
from ..system_closer import SystemCloser
from .output import note, stdout, write_text
from .report_files import ReportFiles

FINDING_LINES: Final = 20
"""A divergence that is not shrunk yet is reported by so many lines."""


def _warn(text: str) -> None:
    note(f"fencepost: {text}")


@dataclass(frozen=True)
class Asked:
    """What the command line says, whichever way is taken. ``place``: a protocol that is named by its file or module.

    ``seconds`` and ``max_seconds`` are those of one way. ``trace``: where a divergence is to be written, if that was
    said. ``kafka``: a release of Apache Kafka.
    """

    impl: str
    place: str | None
    protocol: str | None
    variant: str | None
    constants: Mapping[str, int]
    invariants: tuple[str, ...]
    seed: int
    faults: bool
    seconds: float | None
    max_seconds: float | None
    step_timeout: float
    trace: Path | None
    html: Path | None
    kafka: str | None = None
    shrink_until: Deadline | None = None
    """The end of --time or --max-seconds, for all modes together."""
    closer: SystemCloser = field(default_factory=lambda: SystemCloser(warn=_warn))
    """Closes the systems after the answer was printed."""
    files: ReportFiles = field(default_factory=ReportFiles)
    """Keeps failures to write until then."""

    def begin(self, system: object) -> None:
        """Have a system run the release of Apache Kafka that was asked for, and start it where that takes long.

        Raises BadInput where it runs no Kafka, or Kafka is out of reach.
        """
        if self.kafka is not None:
            self._of_release(system, self.kafka)
        if isinstance(system, SlowSystem):
            system.troubles = self.faults
            note(f"Apache Kafka {system.release}: {system.starts}")
            system.begin()

    @staticmethod
    def _of_release(system: object, release: str) -> None:
        if not isinstance(system, OfKafka):
            mend = "leave it out, or name --impl kafka"
            raise BadInput("no class of Apache Kafka runs in this system", f"--kafka {release}", mend)
        if not is_version(release):
            raise BadInput(f"{release!r} is not a version of Kafka", "--kafka", "write it as in 4.4.0")
        system.release = release

    @property
    def again(self) -> list[str]:
        """The words with which every command about this system begins."""
        words = ["fencepost", "conform", "--impl", self.impl]
        words += [] if self.kafka is None else ["--kafka", self.kafka]
        return words if self.place is None else [*words, "--protocol", self.place]

    @property
    def promises(self) -> list[str]:
        """The invariants as options."""
        return [word for name in self.invariants for word in ("--invariant", name)]

    def grounded(self, text: Protocol, variant: str, constants: Mapping[str, int]) -> System:
        """The system that somebody is held to. Raises BadInput where it is too large."""
        traced = text.traced(variant)
        reason = too_large(traced, constants)
        if reason is not None:
            raise BadInput(reason, "the constants", "choose smaller ones: runs are drawn among the states of the model")
        return ground(traced, dict(constants))

    def chosen(self, system: System) -> frozenset[str] | None:
        """The promises that are demanded; None for all. Raises BadInput for one that there is not."""
        for name in self.invariants:
            if name not in system.invariants:
                known = ", ".join(system.invariants)
                raise BadInput(f"{system.name} has no invariant {name!r}", "--invariant", f"choose of {known}")
        return frozenset(self.invariants) or None

    def page(self, render: Callable[[], str]) -> None:
        """Write the page of a divergence, where one is wanted."""
        if self.html is not None:
            path = self.html
            self.files.write(path, lambda: write_text(path, render()))

    def no_page(self) -> None:
        """Say that there is none, where one was wanted."""
        if self.html is not None:
            note(f"{self.html} is not written: there is no divergence")


@dataclass(frozen=True)
class Told:
    """The answer of one way. ``show`` prints it for a person."""

    way: Mode
    verdict: Verdict
    json: dict[str, Json]
    obligations: Sequence[Obligation]
    show: Callable[[], None]
    failed: bool = False
    """Whether there is a divergence that was written."""


def note_finding(lines: Sequence[str], length: str, path: Path) -> None:
    """Report a divergence before it is shrunk, on standard error.

    Args:
        lines: The run and the divergence; only the last ``FINDING_LINES`` of a long run are shown.
        length: How long the run is, ``87 events``.
        path: The file that has the whole run.
    """
    note(f"violated: a divergence after {length}, not shrunk yet ({path} has the run so far):")
    left_out = len(lines) - FINDING_LINES
    if left_out > 0:
        note(f"  ... {counted(left_out, 'line')} before these")
    for line in lines[-FINDING_LINES:]:
        note(f"  {line}")


def print_shrinking(minimal: bool, repeatable: bool | None, hung: bool) -> None:
    """Print how far the run was shrunk, if it is not minimal or does not repeat."""
    if repeatable is False:
        told = "It did not end alike when it was repeated: the system answers otherwise from run to run."
    elif hung:
        told = "It was not shrunk: every repetition takes the whole --step-timeout."
    elif repeatable is None:
        told = "There was no time left to repeat or to shrink it."
    elif not minimal:
        told = "There was no time to shrink it further."
    else:
        return
    stdout().print(told, markup=False)


def together(told: Sequence[Told]) -> Verdict:
    """The verdict on all ways: violated if one is, else unknown if one is."""
    found = {each.verdict for each in told}
    return next((each for each in (Verdict.VIOLATED, Verdict.UNKNOWN) if each in found), Verdict.HOLDS)


def options_of(constants: Mapping[str, int]) -> list[str]:
    """Constants as options."""
    return [word for name, value in constants.items() for word in (f"--{name.replace('_', '-')}", str(value))]
