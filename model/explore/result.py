"""The query of an exploration, and its answer."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sized
from dataclasses import dataclass, field
from enum import Enum
from typing import Final

from ..core.enum_value import plain_params
from ..core.errors import BadInput
from ..core.exit_code import ExitCode, exit_code
from ..core.ground import Instance, State, System
from ..interpret.staged import COMPILING, Staged, source_of, stage
from . import memory

TYPE_OK: Final = "type_ok"
"""The invariant that every engine relies on."""


class Verdict(Enum):
    """The three verdicts. Nothing ever turns an ``unknown`` into a ``holds``."""

    HOLDS = "holds"
    VIOLATED = "violated"
    UNKNOWN = "unknown"

    @property
    def exit_code(self) -> ExitCode:
        """The exit code of a command that ends with this verdict."""
        return exit_code(self)


@dataclass(frozen=True)
class Limits:
    """How far an exploration may go.

    ``max_states``: distinct states. ``max_memory``: resident bytes of this process, which are asked for before they are
    taken. ``max_depth``: steps of a run; where it is None the symbolic engine has a bound of its own. ``max_effort``:
    z3's resource units for one depth, of that engine alone.
    """

    max_states: int = 50_000_000
    max_memory: int = 8 << 30
    max_depth: int | None = None
    max_effort: int = 1_000_000_000


@dataclass(frozen=True)
class Progress:
    """How far an exploration is: levels finished, distinct states so far, states still to expand."""

    depth: int
    distinct: int
    frontier: int


OnProgress = Callable[[Progress], None]


@dataclass(frozen=True)
class Query:
    """What to explore for.

    ``invariants``: those to check; ``type_ok`` is checked in any case, because every engine relies on it.
    ``symmetry``: count orbits under renaming of replicas instead of states.
    """

    system: System
    invariants: tuple[str, ...]
    symmetry: bool = False
    limits: Limits = Limits()

    @classmethod
    def of(
        cls,
        system: System,
        invariants: tuple[str, ...] = (),
        symmetry: bool = False,
        limits: Limits | None = None,
    ) -> Query:
        """A query for these invariants (none given: all). Raises BadInput for an unknown invariant."""
        for name in invariants:
            if name not in system.invariants:
                raise BadInput(
                    f"{system.name} has no invariant {name!r}",
                    "--invariant",
                    f"choose of {', '.join(system.invariants)}",
                )
        chosen = tuple(n for n in system.invariants if not invariants or n in invariants or n == "type_ok")
        return cls(system, chosen, symmetry, limits or Limits())


@dataclass(frozen=True)
class Step:
    """One step of a path: the instance that happened and the state after it."""

    instance: Instance
    state: State


@dataclass(frozen=True)
class Coverage:
    """How often an action was enabled in a distinct state (transitions), and how often it led to a new one."""

    transitions: int = 0
    discoveries: int = 0


@dataclass(frozen=True)
class Finding:
    """An invariant that is violated, and the steps of a shortest counterexample to it."""

    invariant: str
    path: list[Step]

    def to_json(self) -> dict[str, object]:
        """The invariant, and the steps as in a trace."""
        steps = [{"action": s.instance.action, "params": plain_params(s.instance.params)} for s in self.path]
        return {"invariant": self.invariant, "trace": steps}


@dataclass
class Exploration:
    """The answer.

    ``distinct``: distinct states (orbits, with symmetry) at most as far from the initial state as the violation; all
    reachable ones where there is none; the symbolic engine counts none. ``depth``: states on the longest shortest path
    to one of them, the initial state included. ``path``: the steps of a shortest counterexample. ``coverage`` counts
    the fully explored levels. ``memory``: the most bytes that were resident in this process until then.
    """

    query: Query
    engine: str
    verdict: Verdict
    distinct: int
    depth: int
    seconds: float
    violated: str | None = None
    path: list[Step] | None = None
    reason: str | None = None
    coverage: dict[str, Coverage] = field(default_factory=dict)
    witnesses: dict[str, int] = field(default_factory=dict)
    memory: int = 0
    findings: list[Finding] | None = None
    """Every violated invariant with its shortest counterexample (``every.py``); None if the search ends at the first.

    ``violated`` and ``path`` are those of the first.
    """
    whole: bool = True
    """With ``findings``: whether every reachable state was visited, so that all other invariants hold."""
    engine_note: str | None = None
    """More on the engine: its compiler, and the number of states from which it ran."""

    @property
    def transitions(self) -> dict[str, int]:
        """How often each action was enabled in a distinct state. Engines agree on this; who discovers is a race."""
        return {name: seen.transitions for name, seen in self.coverage.items()}

    @property
    def undecided(self) -> tuple[str, ...]:
        """With ``findings``: the invariants that are neither violated nor known to hold."""
        if self.findings is None or self.whole:
            return ()
        violated = {each.invariant for each in self.findings}
        return tuple(name for name in self.query.invariants if name not in violated)

    @property
    def states_per_second(self) -> float:
        """Distinct states found in a second."""
        return self.distinct / self.seconds if self.seconds else 0.0

    def to_json(self) -> dict[str, object]:
        """The object that ``fencepost explore --json`` prints."""
        traced = self.query.system.traced
        steps = None
        if self.path is not None:
            steps = [{"action": s.instance.action, "params": plain_params(s.instance.params)} for s in self.path]
        return {
            "protocol": traced.protocol.name,
            "variant": traced.variant.name,
            "engine": self.engine,
            "verdict": self.verdict.value,
            "distinct": self.distinct,
            "depth": self.depth,
            "violated": self.violated,
            "trace": steps,
            "seconds": round(self.seconds, 3),
            "states_per_second": round(self.states_per_second),
            "reason": self.reason,
            "constants": self.query.system.constants,
            "invariants": list(self.query.invariants),
            "symmetry": self.query.symmetry,
            "witnesses": self.witnesses,
            "coverage": {
                name: {"transitions": c.transitions, "discoveries": c.discoveries} for name, c in self.coverage.items()
            },
            "memory_bytes": self.memory,
            **({} if self.findings is None else {"violations": [each.to_json() for each in self.findings]}),
            **({} if self.findings is None else {"undecided": list(self.undecided)}),
            **({"engine_note": self.engine_note} if self.engine_note else {}),
        }


class Watch:
    """Time, memory and budget of one exploration."""

    EVERY = 1024
    """So many states, expanded or found, between two looks at the memory: a few MiB where a state is a tuple."""

    def __init__(self, limits: Limits, on_progress: OnProgress | None) -> None:
        self._limits = limits
        self._on_progress = on_progress
        self._start = time.perf_counter()
        self._next = 0

    @property
    def seconds(self) -> float:
        """Seconds since the start."""
        return time.perf_counter() - self._start

    @property
    def peak(self) -> int:
        """The most bytes that were ever resident in this process."""
        return memory.peak()

    def report(self, depth: int, distinct: int, frontier: int) -> None:
        """Report the progress."""
        if self._on_progress is not None:
            self._on_progress(Progress(depth, distinct, frontier))

    def too_deep(self, steps: int) -> str | None:
        """Why runs of so many steps are not looked at, in words; None where they are."""
        most = self._limits.max_depth
        return f"runs of more than {most} steps (--max-depth)" if most is not None and steps > most else None

    def due(self, seen: int) -> bool:
        """Whether ``EVERY`` states were seen since this was last so: for engines that expand one state at a time."""
        if seen < self._next:
            return False
        self._next = seen + self.EVERY
        return True

    def exhausted(self, distinct: int, known: Sized = ()) -> str | None:
        """Which budget has run out, in words; None while there is room.

        ``known``: a dictionary of the states, which may be the next to grow: to twice its size, beside the former one.
        """
        if distinct > self._limits.max_states:
            return f"more than {self._limits.max_states:,} states (--max-states)"
        return None if self.grants(2 * sys.getsizeof(known)) else self.too_much

    @property
    def too_much(self) -> str:
        """The reason of an ``unknown`` where memory is denied."""
        return spent(self._limits.max_memory)

    def staged(self, system: System) -> Staged | None:
        """The system compiled to Python functions; None where there is no memory for it."""
        source = source_of(system)
        return stage(system, source) if self.grants(COMPILING * len(source)) else None

    def grants(self, more: int) -> bool:
        """Whether so many bytes more may be taken; what is free and resident is given back before it is denied."""
        if memory.resident() + more <= self._limits.max_memory:
            return True
        memory.give_back()
        return memory.resident() + more <= self._limits.max_memory


def spent(max_memory: int) -> str:
    """The reason of an ``unknown`` where so many bytes are not enough."""
    return f"more than {max_memory / (1 << 20):,.0f} MiB of memory (--max-memory)"


def conclude(answer: Exploration) -> Exploration:
    """The verdict of an exploration that saw every reachable state: a witness never met makes it ``violated``."""
    for name, count in answer.witnesses.items():
        if not count:
            answer.verdict = Verdict.VIOLATED
            answer.violated = name
            answer.reason = f"the witness {name} never happened: the model may be vacuous"
            break
    return answer
