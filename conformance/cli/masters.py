"""Who does the work where nobody says: this process, or Spark on all cores, by what would take less time.

Spark takes ten seconds until its first task is under way (the JVM, then a Python of its own for each core), and from
then on each core has its share. What one process does in a second was measured by ``benchmarks/masters.py``; where the
two meet depends on the number of cores, and a corpus must be of millions of events for it.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Final

from ...traces.corpus.spread import SERIAL
from ...traces.spark_cluster import is_local
from .output import note

SPARK: Final = "local[*]"
"""Spark on all cores of this machine."""

START_SECONDS: Final = 10.0
"""From the start of a session to its first result."""

SHARE: Final = 0.9
"""Share of each core's time that goes into the work: two cores take 0.51 to 0.58 of the time of one."""

WALKED: Final = 400_000
"""Events a second of walks of a model."""
WALKED_IMPL: Final = 2_000
"""Of walks of an implementation, faults on, a divergence told at once."""
MINED: Final = 1_000_000
"""Events a second held against guards, effects and promises, and counted."""
READ: Final = 4_000_000
"""Bytes a second of traces in JSON Lines, or of Parquet in another layout, that are laid out."""


@dataclass(frozen=True)
class Work:
    """So much work: ``count`` of ``unit``, of which this process does ``rate`` in a second."""

    count: int
    unit: str
    rate: int

    @property
    def seconds(self) -> float:
        """What it takes in this process."""
        return self.count / self.rate


def cores() -> int:
    """The cores that this process may run on."""
    return len(os.sched_getaffinity(0))


def faster(work: Work, cores: int) -> str:
    """The master that is likely to be done first."""
    return SPARK if START_SECONDS + work.seconds / (SHARE * cores) < work.seconds else SERIAL


def refuse_master(master: str | None) -> None:
    """Raise BadInput for what is no master, before any work is done for it."""
    if master is not None and master != SERIAL:
        is_local(master)


def master_for(master: str | None, work: Work) -> str:
    """The master that was asked for; where none was, the faster one, and a line on standard error that says so."""
    if master is not None:
        return master
    chosen = faster(work, cores())
    where = "in this process" if chosen == SERIAL else "on Spark, all cores"
    note(f"{work.count:,} {work.unit}: {where} (--master {chosen}; another one is taken if you name it)")
    return chosen
