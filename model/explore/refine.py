"""Refinement: every step of one variant is a short run of another, or nothing, once its states are mapped.

A mapping gives the cells of the other variant as functions of a state of this one. It is checked along every step
that this one can take, by exploration: of the initial state, that it maps to the other's; of a step from ``s`` to
``t``, that the other has a run of at most ``PATH`` steps from the state that ``s`` maps to, to the one that ``t`` maps
to. Then whatever is promised of all runs of the other holds of this one's, mapped. Where a step has no such run, its
difference is told by which guards of the other refuse what would have led there, and all differences are collected,
each with a shortest run. What holds whatever the steps say is told besides: whether the other's promises hold in every
mapped state, and how many of these the other does not reach.

A cell of the other may keep what no step of it reads any more. A protocol says which, and what all states have there
then; both sides are compared with that in its place. It is checked: from every state that the other reaches it takes,
so compared, the steps that it takes without the cells' values, and the same promises hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, TypeAlias

from ..core.algebra import Value
from ..core.enum_value import plain_params
from ..core.errors import BadInput
from ..core.ground import Instance, State, System, ground
from ..core.protocol import TracedProtocol
from ..interpret.reader import Reader, bound
from ..interpret.reference import IntState, Reference
from ..interpret.staged import stage
from .path import path_to
from .result import Limits, OnProgress, Step, Verdict, Watch

PATH: Final = 2
"""So many steps of the other variant may stand for one: a request may ask for two changes at once."""

StateMapping: TypeAlias = Mapping[str, Callable[..., Value]]
"""For variables of the other variant their cells, as ``f(k, s, *indices)`` over a state of this one.

A variable that is not given is the one of that name in this one. Of one variant alone: what its cells are compared as.
"""


@dataclass(frozen=True)
class Apart:
    """A kind of step that the other variant has no run for.

    ``action``: whose step. ``nearest``: the step of the other that would lead there with the fewest guards gone, and
    those guards; None where no step would, whatever its guards. ``path``: a shortest run to it, its step last;
    ``before`` and ``after``: what that step maps to. ``count``: how many steps are of this kind.
    """

    action: str
    nearest: Instance | None
    guards: tuple[str, ...]
    path: list[Step]
    before: State
    after: State
    count: int

    def __str__(self) -> str:
        if self.nearest is None:
            return f"{self.action}: no step leads there, whatever its guards"
        return f"{self.action}: {self.nearest} is refused by {', '.join(self.guards)}"


@dataclass
class Refinement:
    """The answer.

    ``distinct``: states of this one; ``mapped``: states of the other that they map to; ``unreached``: those of them
    that the other does not reach, None where that was not counted (a budget). ``steps``: of this one, looked at.
    ``apart``: the differences, the nearest first. ``broken``: a promise of the other that some mapped state breaks,
    with a shortest run to it.
    """

    system: System
    other: System
    but: tuple[str, ...]
    verdict: Verdict
    distinct: int = 0
    mapped: int = 0
    unreached: int | None = None
    steps: int = 0
    seconds: float = 0.0
    reason: str | None = None
    apart: list[Apart] = field(default_factory=list)
    broken: str | None = None
    broken_path: list[Step] | None = None

    @property
    def path(self) -> list[Step] | None:
        """The run that is told: to the nearest difference, else to the broken promise."""
        return self.apart[0].path if self.apart else self.broken_path

    def to_json(self) -> dict[str, Any]:
        """The object that ``fencepost explore --refines --json`` prints."""
        traced = self.system.traced

        def told(path: list[Step]) -> list[dict[str, Any]]:
            return [{"action": s.instance.action, "params": plain_params(s.instance.params)} for s in path]

        return {
            "protocol": traced.protocol.name,
            "variant": traced.variant.name,
            "refines": self.other.traced.variant.name,
            "but": list(self.but),
            "constants": self.system.constants,
            "verdict": self.verdict.value,
            "reason": self.reason,
            "distinct": self.distinct,
            "mapped": self.mapped,
            "unreached": self.unreached,
            "steps": self.steps,
            "broken": self.broken,
            "differences": [
                {
                    "action": each.action,
                    "nearest": None if each.nearest is None else str(each.nearest),
                    "refused_by": list(each.guards),
                    "count": each.count,
                    "trace": told(each.path),
                    "before": cells(self.other, each.before),
                    "after": cells(self.other, each.after),
                }
                for each in self.apart
            ],
            "trace": None if self.path is None else told(self.path),
            "seconds": round(self.seconds, 3),
        }


def cells(system: System, state: State) -> dict[str, str]:
    """A state by the names of its cells."""
    return {c.name: c.variable.values.told(v) for c, v in zip(system.layout.cells, state, strict=True)}


class _Mapped:
    """States of one variant as states of the other."""

    def __init__(self, system: System, other: System, mapping: StateMapping) -> None:
        self._system = system
        self._k = Reference(system).k
        self._cells: list[int | tuple[Callable[..., Value], tuple[int, ...]]] = []
        for cell in other.layout.cells:
            given = mapping.get(cell.variable.name)
            number = system.layout.by_name.get(cell.name)
            if given is None and number is None:
                raise BadInput(
                    f"{system.traced.variant.name} has no {cell.variable.name}, which {other.traced.variant.name} has",
                    "--refines",
                    "name a variant whose variables it has, or that the protocol maps it to",
                )
            self._cells.append((given, cell.index) if given is not None else number or 0)

    def __call__(self, state: State) -> State:
        s = IntState(self._system, state)
        return tuple(
            state[each] if isinstance(each, int) else int(each[0](self._k, s, *each[1])) for each in self._cells
        )


class _Other:
    """The runs of the other variant between two mapped states, and why there is none."""

    def __init__(self, system: System, whole: TracedProtocol, unread: StateMapping) -> None:
        self.system = system
        self._staged = stage(system)
        self._unread = bool(unread)
        self._compared = _Mapped(system, system, unread)
        every = [f"{action.name}.{name}" for action in whole.actions for name, _ in action.guards]
        self._free = ground(whole.drop(*every), system.constants)
        self._effects = stage(self._free).successors
        self._reached: dict[State, frozenset[State]] = {}
        self._known: dict[tuple[State, State], bool] = {}

    def _after(self, state: State) -> frozenset[State]:
        found = self._reached.get(state)
        if found is None:
            found = self._reached[state] = frozenset(self.compared(a) for _, a in self._staged.successors(state))
        return found

    def compared(self, state: State) -> State:
        """A state without what no step reads any more."""
        return self._compared(state) if self._unread else state

    def has_run(self, before: State, after: State) -> bool:
        """At most ``PATH`` steps lead from one to the other; none where they are the same."""
        if before == after:
            return True
        found = self._known.get((before, after))
        if found is None:
            level, found = {before}, False
            for _ in range(PATH):
                level = {state for each in level for state in self._after(each)}
                if after in level:
                    found = True
                    break
            self._known[before, after] = found
        return found

    def unreached(self, states: set[State], watch: Watch) -> tuple[int | None, str | None]:
        """How many of these no run of the other comes to, and what its states show to be read all the same.

        None and the reason where a budget runs out before that is known.
        """
        initial = self.system.initial
        left, found, level = set(states) - {self.compared(initial)}, {initial}, [initial]
        while level and (left or self._unread):
            following: set[State] = set()
            for state in level:
                after = {each for _, each in self._staged.successors(state)}
                if self._unread and self._reads(state, after):
                    return None, f"{self.system.traced.variant.name} reads what is said to be unread"
                following |= after
            level = list(following - found)
            found.update(level)
            left.difference_update(map(self.compared, level))
            exhausted = watch.exhausted(len(found))
            if exhausted is not None:
                return None, exhausted if self._unread else None
        return len(left), None

    def _reads(self, state: State, after: set[State]) -> bool:
        """What is compared does not tell the steps from this state, or what is promised of it."""
        seen = self.compared(state)
        promised = all(holds(state) == holds(seen) for holds in self._staged.invariants.values())
        return not promised or {self.compared(each) for each in after} != self._after(seen)

    def nearest(self, before: State, after: State) -> tuple[Instance | None, tuple[str, ...]]:
        """The step that would lead there with the fewest guards gone, and those; None where none would."""
        best: tuple[Instance | None, tuple[str, ...]] = (None, ())
        for number, state in self._effects(before):
            if self.compared(state) != after:
                continue
            instance = self._free.instances[number]
            action = self.system.traced.action(instance.action)
            read = Reader(self.system, before, bound(action, instance.params))
            refused = tuple(f"{action.name}.{name}" for name, guard in action.guards if not read(guard))
            if best[0] is None or len(refused) < len(best[1]):
                best = instance, refused
        return best


def refine(
    system: System,
    other: TracedProtocol,
    mapping: StateMapping | None = None,
    but: tuple[str, ...] = (),
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
    unread: StateMapping | None = None,
) -> Refinement:
    """Whether a system refines another variant of its protocol, at the same constants.

    ``but``: guards of the other that may refuse, ``ACTION.GUARD``: it is taken without them. ``unread``: for variables
    of the other what their cells are compared as. ``violated`` where a step has no run, a promise breaks in a mapped
    state, or the initial states differ; ``unknown`` where a budget runs out before every step was seen, or what is said
    to be unread is read, and nothing is violated. Raises BadInput for an unknown guard, and for a variable that is
    neither there nor mapped.
    """
    abstract = ground(other.drop(*but), system.constants)
    watch = Watch(limits or Limits(), on_progress)
    answer = Refinement(system, abstract, but, Verdict.HOLDS)
    whole, runs = _Mapped(system, abstract, mapping or {}), _Other(abstract, other, unread or {})
    promises = stage(abstract).invariants
    staged = stage(system)

    def mapped(state: State) -> State:
        return runs.compared(whole(state))

    parent: dict[State, State | None] = {system.initial: None}
    image = {system.initial: mapped(system.initial)}
    seen: set[State] = set()
    kinds: dict[tuple[str, str, tuple[str, ...]], Apart] = {}

    steps_to = partial(path_to, system, staged.successors, parent)

    def look(state: State) -> None:
        if image[state] not in seen:
            seen.add(image[state])
            broken = next((name for name, holds in promises.items() if not holds(image[state])), None)
            if broken is not None and answer.broken is None:
                answer.broken, answer.broken_path = broken, steps_to(state)

    if image[system.initial] != runs.compared(abstract.initial):
        answer.verdict, answer.reason = Verdict.VIOLATED, "the initial state maps to another one than the initial one"
        return answer
    look(system.initial)
    level, depth = [system.initial], 0
    while level and answer.reason is None:
        depth += 1
        following: list[State] = []
        for done, state in enumerate(level):
            for number, after in staged.successors(state):
                answer.steps += 1
                if after not in parent:
                    parent[after] = state
                    image[after] = mapped(after)
                    look(after)
                    following.append(after)
                if not runs.has_run(image[state], image[after]):
                    instance = system.instances[number]
                    nearest, guards = runs.nearest(image[state], image[after])
                    kind = (instance.action, "" if nearest is None else nearest.action, guards)
                    known = kinds.get(kind)
                    if known is not None:
                        kinds[kind] = replace(known, count=known.count + 1)
                        continue
                    path = [*steps_to(state), Step(instance, after)]
                    kinds[kind] = Apart(instance.action, nearest, guards, path, image[state], image[after], 1)
            if watch.due(len(parent) + done):
                watch.report(depth, len(parent), len(level) - done)
                answer.reason = watch.exhausted(len(parent), parent)
                if answer.reason is not None:
                    break
        level = following
        deep = watch.too_deep(depth)
        if level and deep is not None:
            answer.reason = answer.reason or deep
    if answer.reason is None:
        answer.unreached, answer.reason = runs.unreached(seen, watch)
    answer.distinct, answer.mapped, answer.seconds = len(parent), len(seen), watch.seconds
    answer.apart = sorted(kinds.values(), key=lambda each: len(each.path))
    if answer.apart or answer.broken is not None:
        answer.verdict = Verdict.VIOLATED
    elif answer.reason is not None:
        answer.verdict = Verdict.UNKNOWN
    return answer
