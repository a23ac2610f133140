"""Schedules that met something new, kept as files and gone on from: runs reach ever further, night after night.

Something new is a step of the model, two steps one right after the other, a guard that refuses, a line of the system's
source. A run that meets one is kept up to there. Half of the later runs repeat the beginning of one that was kept, and
are drawn from there on. What is drawn depends on the seed and on what the folder has when the runs begin.
"""

from __future__ import annotations

import hashlib
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...traces.write import write_whole
from ..executed import Executed, shown
from .events import Event
from .machine import Machine
from .prefix_corpus import Prefix
from .schedule import Schedule, lines_of, read_schedule
from .shrink import RunRecord
from .transitions import Transitions

SUFFIX: Final = ".schedule.jsonl"
_SHARE: Final = 0.5
"""So many runs go on from a schedule that was kept, once there is one."""


class Corpus:
    """The schedules of one system at one variant in a folder. ``began``: how many there were; ``kept``: and came."""

    def __init__(self, folder: Path, impl: str, executed: Executed | None = None) -> None:
        """Raises BadInput for a folder that cannot be made, and for a schedule in it that cannot be read."""
        try:
            folder.mkdir(exist_ok=True)
        except OSError as error:
            raise BadInput(f"cannot be made: {error.strerror}", f"--corpus {folder}", "name a folder") from error
        self.folder = folder
        self.impl = impl
        self.kept = 0
        self._executed = executed
        self._schedules = [read_schedule(path) for path in sorted(folder.glob(f"*{SUFFIX}"))]
        self._schedules = [each for each in self._schedules if each.impl == impl]
        self.began = len(self._schedules)
        self._known = {feature for each in self._schedules for feature in each.met}
        self._fresh: list[str] = []
        self._cut = 0
        self._before = ""
        self._refused = 0
        self._lines = 0

    def begin(self, ways: Transitions, seed: int) -> Prefix | None:
        """The beginning of a run: of one that was kept, at the same constants, or None for one that is all drawn."""
        self._fresh, self._cut, self._before = [], 0, ""
        chance = random.Random(seed ^ 0x2545F491)  # noqa: S311 - repeatable on purpose
        fitting = [each for each in self._schedules if self._fits(each, ways)]
        if not fitting or chance.random() >= _SHARE:
            return None
        chosen = chance.choice(fitting)
        # Rather much of it than little: it is its end that was hard to come to.
        length = len(chosen.events) - int(len(chosen.events) * chance.random() ** 2)
        return Prefix(chosen.seed, chosen.events[:length])

    def _fits(self, schedule: Schedule, ways: Transitions) -> bool:
        system = ways.system
        wanted = system.name, system.traced.variant.name, dict(system.constants)
        return (schedule.protocol, schedule.variant, dict(schedule.constants)) == wanted

    def look(self, machine: Machine) -> None:
        """After an event of a run: take note of what is new in it."""
        new = [feature for feature in self._features(machine) if feature not in self._known]
        if new:
            self._known.update(new)
            self._fresh += dict.fromkeys(new)
            self._cut = len(machine.history)

    def _features(self, machine: Machine) -> list[str]:
        found = []
        for (action, _), _state in machine.history[-1].path:
            found += [f"step {action}", f"steps {self._before}, {action}"]
            self._before = action
        refused = machine.follower.met.refused
        if len(refused) > self._refused:
            found += [f"refused {action}.{guard}" for action, guard in list(refused)[self._refused :]]
            self._refused = len(refused)
        if self._executed is not None and len(self._executed.order) > self._lines:
            found += [f"line {shown(Path(file))}:{line}" for file, line in self._executed.order[self._lines :]]
            self._lines = len(self._executed.order)
        return found

    def end(self, ran: RunRecord) -> None:
        """A run is over: keep it up to where it last met something new. One with a divergence has its own file."""
        if not self._fresh or ran.divergence is not None:
            return
        history = tuple(done for done in ran.history[: self._cut] if not done.in_peace)
        kept = replace(ran, history=history)
        lines = lines_of(kept, self.impl, {"met": list(self._fresh)}, plain=True)
        text = "".join(f"{line}\n" for line in lines)
        name = hashlib.sha256(text.encode()).hexdigest()[:16] + SUFFIX
        write_whole(self.folder / name, lambda part: part.write_text(text, encoding="utf-8"))
        system = ran.ways.system
        constants: Mapping[str, int] = system.constants
        events: Sequence[Event] = kept.events
        variant = system.traced.variant.name
        self._schedules.append(
            Schedule(system.name, variant, constants, self.impl, ran.seed, tuple(events), tuple(self._fresh))
        )
        self.kept += 1
