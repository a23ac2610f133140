"""Simulation: whatever a text that running systems are held to allows, a model allows too, at what it maps to.

The two are texts of their own, with other variables and constants: a running system shows the image of a log, and no
log; a model that is explored has a short log and no requests in flight. A mapping gives the running text's cells as
functions of a model's state, and views give what it cannot know in several ways (what a request says). Of each state
that the model reaches, in each view, each step that the running text takes is looked at: the model must have a run of
a few steps (``Relation.path``) to a state that maps to what that step leads to, or stay where it is. Then by induction
every run of such steps from the initial state is one of the model, and what the model promises holds of it.

Steps of some actions are not asked about (``but``): those that say only that a process is there or not. Differences are
collected, each with the step of the model that comes nearest, and the guards of it that refuse: in one of the model's
states that map to the same, as to look for it takes far longer.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

from ..core.algebra import Algebra, Value, View
from ..core.errors import BadInput
from ..core.ground import Instance, State, System, ground
from ..core.protocol import TracedProtocol
from ..interpret.reader import Reader, bound
from ..interpret.reference import IntState, Reference
from ..interpret.staged import stage

PATH: Final = 2
"""So many steps of the model may stand for one, where a relation does not say otherwise."""

CellMap: TypeAlias = Mapping[str, Callable[..., Value]]
"""For each variable its cells, as ``f(*indices)``."""
Changes: TypeAlias = Mapping[str, int]
"""Cells by their names in the running text, with other values."""
Ways: TypeAlias = Callable[[Algebra, View], Sequence[Changes]]


@dataclass(frozen=True)
class Relation:
    """How states of a model are seen as states of a running text.

    ``cells``: given a state of the model, those of each of its variables. ``views``: each way in which cells may differ
    from that. ``compared``: the variables that must come out alike. ``but``: its actions that are not asked about.
    ``grows``: a variable that no step of the model can raise where ``is_full`` holds: there a constant ends the model
    and not the running text, and a step that raises it is not asked about.
    ``comes_to``: given a state of the running text, the cells that are compared with other values: where a step of the
    model has in it what a running system asks for first, and hears of later.
    """

    cells: Callable[[Algebra, View], CellMap]
    views: Ways
    compared: Collection[str]
    but: Collection[str] = ()
    grows: str | None = None
    is_full: Callable[[Algebra, View], Value] = lambda _k, _s: False
    comes_to: Callable[[Algebra, View], Changes] = lambda _k, _s: {}
    excused: Callable[[Algebra, View, View], Value] | None = None
    path: int = PATH


@dataclass(frozen=True)
class Unmatched:
    """Steps of the running text that the model has no run for. ``count``: how many are of this kind.

    ``nearest`` is the step of the model that would lead there with the fewest guards gone, and ``guards`` those; None
    where none would. ``state`` is a state of the model with one such step, ``view`` what was other there.
    """

    instance: Instance
    nearest: Instance | None
    guards: tuple[str, ...]
    state: State
    view: Changes
    count: int

    @property
    def kind(self) -> tuple[str, str, tuple[str, ...]]:
        """The action, the nearest one of the model, and its guards that refuse."""
        return self.instance.action, "" if self.nearest is None else self.nearest.action, self.guards

    def __str__(self) -> str:
        if self.nearest is None:
            return f"{self.instance}: no step of the model leads there, whatever its guards"
        return f"{self.instance}: {self.nearest} is refused by {', '.join(self.guards)}"


@dataclass(frozen=True)
class Simulated:
    """The answer. ``states``: of the model; ``matched``: by action of the running text, how many of its steps were."""

    states: int
    matched: Mapping[str, int]
    unmatched: tuple[Unmatched, ...]

    @property
    def kinds(self) -> set[tuple[str, str, tuple[str, ...]]]:
        """The differences, each once."""
        return {each.kind for each in self.unmatched}


class _Seen:
    """States of the model as states of the running text, and what of these is compared."""

    def __init__(self, system: System, running: System, relation: Relation) -> None:
        self._system = system
        self._k = Reference(system).k
        self._running, self._running_k = running, Reference(running).k
        self._running_keys: dict[State, State] = {}
        self.relation = relation
        mapped = relation.cells(self._k, IntState(system, system.initial))
        missing = sorted(set(running.layout.by_variable) - mapped.keys())
        if missing:
            raise BadInput(f"nothing says what {', '.join(missing)} is", "the relation", "map every variable")
        self._cells = [(cell.variable.name, cell.index) for cell in running.layout.cells]
        self._compared = [n for n, (name, _) in enumerate(self._cells) if name in relation.compared]
        self._numbers = {cell.name: n for n, cell in enumerate(running.layout.cells)}
        self._keys: dict[State, State] = {}

    def views(self, state: State) -> Iterator[tuple[Changes, State]]:
        """The state that one of the model maps to, and each other way in which it may be."""
        s = IntState(self._system, state)
        cells = self.relation.cells(self._k, s)
        whole = tuple(int(cells[name](*index)) for name, index in self._cells)
        yield {}, whole
        for view in self.relation.views(self._k, s):
            changed = list(whole)
            for name, value in view.items():
                changed[self._numbers[name]] = value
            yield view, tuple(changed)

    def key(self, running: State) -> State:
        """What is compared of a state of the running text. Kept, as each is where many steps lead."""
        found = self._running_keys.get(running)
        if found is None:
            changed = list(running)
            for name, value in self.relation.comes_to(self._running_k, IntState(self._running, running)).items():
                changed[self._numbers[name]] = value
            found = self._running_keys[running] = tuple(changed[number] for number in self._compared)
        return found

    def key_of(self, state: State) -> State:
        """What is compared of a state of the model. Kept, as each is many states' successor."""
        found = self._keys.get(state)
        if found is None:
            cells = self.relation.cells(self._k, IntState(self._system, state))
            chosen = (self._cells[number] for number in self._compared)
            found = self._keys[state] = tuple(int(cells[name](*index)) for name, index in chosen)
        return found

    def is_full(self, state: State) -> bool:
        """Whether the model has no room for another record."""
        return bool(self.relation.is_full(self._k, IntState(self._system, state)))

    def excuses(self, state: State, after: State) -> bool:
        """Whether a step of the running text to this state is not asked about."""
        excused = self.relation.excused
        if excused is None:
            return False
        return bool(excused(self._k, IntState(self._system, state), IntState(self._running, after)))

    def grows(self, before: State, after: State) -> bool:
        """Whether a step of the running text raises what the model has no room for."""
        name = self.relation.grows
        return name is not None and after[self._numbers[name]] > before[self._numbers[name]]


class _Model:
    """The model's runs of a few steps, and the one that comes nearest to a step that it does not take."""

    def __init__(self, traced: TracedProtocol, system: System, seen: _Seen) -> None:
        self._traced, self._system, self._seen = traced, system, seen
        self.staged = stage(system)
        every = [f"{action.name}.{name}" for action in traced.actions for name, _ in action.guards]
        self._free = ground(traced.drop(*every), system.constants)
        self._effects = stage(self._free).successors

    def has_run(self, state: State, wanted: State) -> bool:
        """Whether a run of so few steps leads to what is wanted; none, where the state is that already."""
        level = {state}
        for _ in range(self._seen.relation.path + 1):
            if any(self._seen.key_of(each) == wanted for each in level):
                return True
            level = {after for each in level for _, after in self.staged.successors(each)}
        return False

    def nearest(self, state: State, wanted: State) -> tuple[Instance | None, tuple[str, ...]]:
        """The step that would lead there with the fewest guards gone."""
        best: tuple[Instance | None, tuple[str, ...]] = (None, ())
        for number, after in self._effects(state):
            if self._seen.key_of(after) != wanted:
                continue
            instance = self._free.instances[number]
            action = self._traced.action(instance.action)
            read = Reader(self._system, state, bound(action, instance.params))
            refused = tuple(f"{action.name}.{name}" for name, guard in action.guards if not read(guard))
            if best[0] is None or len(refused) < len(best[1]):
                best = instance, refused
        return best


def simulate(running: System, traced: TracedProtocol, constants: Mapping[str, int], relation: Relation) -> Simulated:
    """Whether each step of ``running``, at what a state of ``traced`` at ``constants`` maps to, is a run of that.

    The model is explored whole, so its constants are small. Raises BadInput for a relation that lacks a variable.
    """
    system = ground(traced, constants)
    seen = _Seen(system, running, relation)
    model, takes = _Model(traced, system, seen), stage(running)
    asked = {n for n, each in enumerate(running.instances) if each.action not in relation.but}
    matched: dict[str, int] = {each.action: 0 for n, each in enumerate(running.instances) if n in asked}
    kinds: dict[tuple[str, str, tuple[str, ...]], Unmatched] = {}
    found, level = {system.initial}, [system.initial]
    known: dict[tuple[State, State], bool] = {}
    told: dict[tuple[State, State], tuple[Instance | None, tuple[str, ...]]] = {}
    while level:
        following = []
        for state in level:
            following += [after for _, after in model.staged.successors(state)]
            full = seen.is_full(state)
            for view, at in seen.views(state):
                for number, after in takes.successors(at):
                    if number not in asked or (full and seen.grows(at, after)):
                        continue
                    if seen.excuses(state, after):
                        continue
                    instance, wanted = running.instances[number], seen.key(after)
                    if (state, wanted) not in known:
                        known[state, wanted] = model.has_run(state, wanted)
                    if known[state, wanted]:
                        matched[instance.action] += 1
                        continue
                    if (at, wanted) not in told:
                        told[at, wanted] = model.nearest(state, wanted)
                    nearest, guards = told[at, wanted]
                    new = Unmatched(instance, nearest, guards, state, view, 1)
                    old = kinds.get(new.kind)
                    kinds[new.kind] = new if old is None else replace(old, count=old.count + 1)
        level = [state for state in dict.fromkeys(following) if state not in found]
        found.update(level)
    return Simulated(len(found), matched, tuple(kinds.values()))
