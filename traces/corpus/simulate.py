"""Random walks of a model as a corpus: the same seed gives the same bytes, whoever walks which part of it.

What a trace is depends on the seed, its id and what is asked for, and on nothing else; which traces lie in which file
depends on how many there are. So files are written independently, by tasks of Spark or one after the other.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np

from ...model.core.budget import too_large
from ...model.core.errors import BadInput
from ...model.core.ground import ground
from ...model.core.registry import PROTOCOLS, REGISTRY
from ..run_report import Json
from .draws import Draws
from .faults import fault_named, rules_of
from .files import PART, Written, write_events
from .layout import CorpusHeader, CorpusLayout
from .manifest import PLANTED, write_manifest, write_whole
from .output import new_folder
from .plan import Plan
from .plant import Planted, plant
from .spread import SERIAL, OnDone, spread
from .walk import Walker, Walks, numbered

FILE_EVENTS: Final = 1 << 20
"""About so many events go into a file, so that neither a task nor its memory is large."""

MAX_TRACES: Final = 1 << 31
MAX_EVENTS: Final = 1 << 20
MAX_SEED: Final = (1 << 64) - 1


@dataclass(frozen=True)
class Simulation:
    """What to simulate: so many traces of at most so many events. ``files``: how many files, None: by their size.

    ``walked``: what takes the steps, the model or an implementation of it by its adapter's name.
    """

    protocol: str
    variant: str
    constants: tuple[tuple[str, int], ...]
    traces: int
    events: int
    seed: int
    files: int | None = None
    walked: str = "model"

    @property
    def header(self) -> CorpusHeader:
        """The header of every file."""
        source: dict[str, Json] = {"simulated": self.walked, "seed": self.seed}
        return CorpusHeader(self.protocol, self.variant, dict(self.constants), True, source)

    def cuts(self) -> list[tuple[int, int]]:
        """For each file its first trace id and the one after its last."""
        files = self.files or max(1, -(-self.traces * self.events // FILE_EVENTS))
        files = min(files, self.traces)
        return [(self.traces * n // files, self.traces * (n + 1) // files) for n in range(files)]


@dataclass(frozen=True)
class Simulated:
    """What came out. ``ended``: traces that ended before their last step, as nothing more could happen."""

    files: tuple[Written, ...]
    ended: int
    planted: tuple[Planted, ...]

    @property
    def events(self) -> int:
        """Events of all files."""
        return sum(file.events for file in self.files)

    @property
    def traces(self) -> int:
        """Traces of all files."""
        return sum(file.traces for file in self.files)


def simulation(
    protocol: str,
    variant: str | None,
    constants: Mapping[str, int],
    traces: int,
    events: int,
    seed: int,
    files: int | None = None,
) -> Simulation:
    """A simulation with everything filled in. Raises BadInput for what cannot be simulated, by the option's name."""
    spec = REGISTRY.named(protocol).protocol
    values = spec.check_constants(constants)
    name = spec.traced(variant).variant.name
    for option, value, largest in (("--traces", traces, MAX_TRACES), ("--events", events, MAX_EVENTS)):
        if not 1 <= value <= largest:
            raise BadInput(f"{value} is out of range", option, f"give a number from 1 to {largest}")
    if not 0 <= seed <= MAX_SEED:
        raise BadInput(f"{seed} is out of range", "--seed", f"give a number from 0 to {MAX_SEED}")
    if files is not None and not 1 <= files <= traces:
        raise BadInput(f"{traces} traces do not fill {files} files", "--files", f"give a number from 1 to {traces}")
    reason = too_large(spec.traced(name), values)
    if reason is not None:
        raise BadInput(reason, f"{spec.name} at {'/'.join(map(str, values.values()))}", "give smaller constants")
    return Simulation(spec.name, name, tuple(values.items()), traces, events, seed, files)


@lru_cache(maxsize=2)
def walker(asked: Simulation, faults: tuple[str, ...] = ()) -> Walker:
    """What walks; its rules 1, 2, ... are those of the faults. Kept, since a process writes file after file."""
    traced = PROTOCOLS[asked.protocol].traced(asked.variant)
    system = ground(traced, dict(asked.constants))
    found = Walker(system, CorpusLayout.of(asked.header), Draws(asked.seed))
    for name in faults:
        found.add(*rules_of(fault_named(traced, name), system))
    return found


@dataclass(frozen=True)
class FileDone:
    """One file that was written; ``ended`` and ``planted`` as in ``Simulated``."""

    written: Written
    ended: int
    planted: tuple[Planted, ...] = ()


WriteFile: TypeAlias = Callable[[Simulation, str, int], FileDone]
"""Writes one file of a simulation, by its number, into a folder. Pickled, and called in processes of Spark's."""


def write_file(asked: Simulation, folder: str, number: int, plan: Plan | None = None) -> FileDone:
    """Write one file of walks of the model."""
    who = walker(asked, plan.asked if plan else ())
    low, high = asked.cuts()[number]
    walks = Walks.of(numbered(range(low, high)), asked.events, who.batch.packing.words)
    planted: list[Planted] = []
    plain = np.arange(high - low)
    if plan is not None:
        planted, theirs = plant(who, plan, walks)
        plain = np.setdiff1d(plain, theirs)
    who.walk(walks, plain)
    events = walks.events(who.layout, who.calls, who.batch.packing)
    written = write_events(Path(folder) / PART.format(number), who.layout, events, observed=True)
    return FileDone(written, int((walks.lengths < asked.events).sum()), tuple(planted))


def simulate(
    asked: Simulation,
    out: Path,
    plan: Plan | None = None,
    master: str = SERIAL,
    on_done: OnDone | None = None,
    write: WriteFile | None = None,
) -> Simulated:
    """Write the corpus, and the ground truth of what was planted beside it.

    ``write``: what writes a file, where that is not ``write_file``. ``out`` is a folder that is not there yet, on
    storage that all workers share. Raises BadInput where it cannot be written, or Spark does not start; ``out`` is then
    as it was.
    """
    with new_folder(out) as part:
        work = partial(write or partial(write_file, plan=plan), asked, str(part))
        done = spread(range(len(asked.cuts())), work, master, on_done)
        files: list[Written] = []
        ended, planted = 0, list[Planted]()
        for each in done:
            if isinstance(each, BadInput):
                raise each
            files.append(each.written)
            ended += each.ended
            planted += each.planted
            if not (part / each.written.name).is_file():
                mend = "name a folder that all workers share"
                raise BadInput("a worker has written its files elsewhere", str(out), mend)
        if plan is not None:
            planted.sort(key=lambda each: each.trace)
            write_whole(part / PLANTED, "".join(json.dumps(each.to_json()) + "\n" for each in planted))
        write_manifest(part, files)
    return Simulated(tuple(files), ended, tuple(planted))
