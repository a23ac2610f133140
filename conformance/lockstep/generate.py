"""What to try next: steps that the model allows, steps that it refuses, and faults, the seldom met ones first.

Every choice is made from one number of a ``Source``: Hypothesis's, which shrinks it towards 0, or a seeded generator's,
for long runs. Number 0 is the first step that the model allows, so that what is left after shrinking is plain.
"""

from __future__ import annotations

import random
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from itertools import accumulate
from typing import Final, Protocol, TypeAlias

from ...model.core.ground import State
from .coverage import Coverage
from .expect import Standing, Try, askable, expectation
from .faults import EVENTS, MODIFIERS, OF_A_REPLICA, STORAGE, Fault, Kind
from .goals import Goals, Place
from .machine import Machine
from .space import Call, Node, Pair, Space

BITS: Final = 24
"""Of the number of one choice."""

_LOW: Final = 14
_SOUGHT: Final = range(384, 740)
"""Of 1024 choices those with which a step is tried that a seldom met guard refuses, where there is one."""
_TOWARD: Final = range(256, 560)
"""Those with which a step is taken that leads to where a seldom met guard refuses something, where there is one."""
_REFUSED: Final = range(560, 740)
_MODIFIED: Final = range(740, 920)
_EVENTS: Final = range(920, 1024)
"""Those for steps that are refused, for steps with a fault, for faults alone; all others are for enabled steps."""
_WITHOUT_FAULTS: Final = range(750, 1024)
"""Refused steps where no faults are drawn."""
_AGAIN: Final = 4
"""So often another action is drawn in the place of one that the run does without."""
_LED: Final = 0.85
"""The share of runs that are led to an action first."""
_TO_REFUSALS: Final = 0.45
"""The share of those that are led to a refusal."""
_ASIDE: Final = 20
"""One of so many tries on the way is something else."""
_JUMPS: Final = (1, 500, 10_000, 60_000, 86_400_000)
"""Milliseconds of a clock jump: within a fetch, around Kafka's 500 ms, its 10 and 30 second lags, a day."""


Weighed: TypeAlias = tuple[list[Call], list[int]]
"""Instances of actions, and the running sums of their weights."""


class Source(Protocol):
    """Where choices come from."""

    def number(self) -> int:
        """The next number of ``BITS`` bits."""


class SeededSource:
    """Choices of a seeded generator."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - nothing secret

    def number(self) -> int:
        """The next number."""
        return self._chance.getrandbits(BITS)


class DrawnSource:
    """Choices that ``draw`` makes: Hypothesis's."""

    def __init__(self, draw: Callable[[], int]) -> None:
        self._draw = draw

    def number(self) -> int:
        """The next number."""
        return self._draw()


class Chooser:
    """Chooses tries by what ``coverage`` had met when the round began. ``faults`` are the kinds to draw from."""

    def __init__(self, space: Space, coverage: Coverage, faults: Collection[Kind], goals: Goals) -> None:
        self.space = space
        self.goals = goals
        kinds = [kind for kind in Kind if kind in faults and (kind is not Kind.CRASH or space.crashes)]
        self.modifiers = [kind for kind in kinds if kind in MODIFIERS]
        self.events = [kind for kind in kinds if kind in EVENTS]
        self.replicas = range(space.system.constants.get("replicas", 0))
        self._visits = dict(coverage.visits)
        self._met = dict(coverage.met)
        self._modified_before = dict(coverage.modified)
        self._weights = _action_weights(coverage)
        self._avoided: frozenset[str] = frozenset()
        self._route: list[Call] = []
        self._spoil: Kind | None = None
        self._allowed: dict[State, Weighed] = {}
        self._forbidden: dict[State, tuple[Weighed, list[tuple[Pair, Call]]]] = {}
        self._leading: dict[State, list[tuple[Call, frozenset[Pair]]]] = {}
        self._rare_at: dict[State, frozenset[Pair]] = {}
        mean = sum(self._met.values()) / max(1, len(space.askable))
        # Before anything was met, all are.
        self._rare = frozenset(pair for pair in space.askable if 4 * self._met.get(pair, 0) <= mean)

    def begin(self, source: Source) -> None:
        """Begin a run: choose where it is led first, and the actions that it does without wherever there is another.

        Every run that does everything looks like every other. Where half of the actions are left out, the others come
        often enough to get deep (swarm testing: Groce, Zhang, Eide, Chen, Regehr, ISSTA 2012). Number 0 leads nowhere
        and leaves out none.
        """
        number = source.number()
        chance = random.Random(number)  # noqa: S311 - nothing secret
        names = sorted(action.name for action in self.space.system.traced.actions)
        self._avoided = frozenset(name for name in names if number and chance.getrandbits(1))
        self._route, self._spoil = [], None
        if number and chance.random() < _LED:
            state, call = self._goal(chance)
            self._route = [call, *reversed(self.goals.path(state))]
            self._spoil = chance.choice((None, *self.modifiers))

    def next(self, machine: Machine, source: Source) -> Try | None:
        """The next try; None where nothing at all can be tried."""
        number = source.number()
        high, low = number >> _LOW, number & ((1 << _LOW) - 1)
        node, standing = machine.node, machine.standing
        if self._route and high % _ASIDE:
            asked = self._led(node, standing, low)
            if asked is not None:
                return asked
        for chosen in self._preferred(machine, high, low):
            if chosen is not None:
                return chosen
        return self._enabled(node, standing, low) or self._refused(node, standing, low) or self._event(standing, low)

    def _preferred(self, machine: Machine, high: int, low: int) -> Iterator[Try | None]:
        """What the number asks for, the most wanted first; None where that cannot be."""
        node, standing = machine.node, machine.standing
        if high and high % (3 if standing.late else 8) == 0:
            # What is late has to come before it is too late to matter, and what stands in the way has to go.
            yield self._ending(standing, low)
        if standing.offline and high % 4 == 1:
            yield self._barred(node, standing)
        if high in _SOUGHT:
            yield self._sought(machine, low)
        if high in _TOWARD:
            yield self._toward(machine, low)
        if not self.modifiers and not self.events:
            if high in _WITHOUT_FAULTS:
                yield self._refused(node, standing, low)
        elif high in _REFUSED:
            yield self._refused(node, standing, low)
        elif high in _MODIFIED:
            yield self._modified(node, standing, high, low)
        elif high in _EVENTS:
            yield self._event(standing, low)

    def _goal(self, chance: random.Random) -> Place:
        """Where to, and what to try there: a step of an action that was seldom enabled, or a guard seldom met."""
        steps, refusals = self.goals.steps, self.goals.refusals
        places: list[Place] = []
        if chance.random() < _TO_REFUSALS:
            (pair,) = chance.choices(list(refusals), [1 / (1 + self._met.get(each, 0)) for each in refusals])
            places = refusals[pair]
        if not places:
            (action,) = chance.choices(list(steps), [self._weights[name] for name in steps])
            places = chance.choice(list(steps[action].values()))
        # The nearer ones rather: a system does not take every step as it was planned, and long ways go astray.
        return places[int(len(places) * chance.random() ** 3)]

    def _led(self, node: Node, standing: Standing, low: int) -> Try | None:
        """The next step of the route. One that is not enabled is left out: the system has taken it by itself, or a try
        aside has changed what there is to do."""
        while self._route:
            call = self._route.pop()
            if call[0] in self.space.crashes:
                if Kind.CRASH in self.events:
                    return Try(None, Fault(Kind.CRASH, dict(call[1])["replica"], seed=low))
            elif call in node.after:
                asked = Try(call)
                if not self._route and self._spoil is not None:
                    spoilt = Try(call, Fault(self._spoil))
                    if expectation(self.space, node, spoilt, standing) is not None:
                        return spoilt
                if standing.clear or expectation(self.space, node, asked, standing) is not None:
                    return asked
            elif not self._route and askable(self.space, node, call):
                asked = Try(call)
                if standing.clear or expectation(self.space, node, asked, standing) is not None:
                    return asked
        return None

    def _barred(self, node: Node, standing: Standing) -> Try | None:
        """A step that the model allows, and a replica's being marked offline forbids."""
        for call in node.after:
            params = dict(call[1])
            barring = [name for name in self.space.binding.actions[call[0]].offline if params[name] in standing.offline]
            if barring and expectation(self.space, node, Try(call), standing) is not None:
                return Try(call)
        return None

    def stuck(self, node: Node) -> bool:
        """Whether no step but a crash leads anywhere from here: a bounded model has come to its end."""
        return all(node.after[call] == node.state for call in self._weighed(node)[0])

    def _enabled(self, node: Node, standing: Standing, low: int) -> Try | None:
        call = self._call(node, low)
        if call is None or standing.clear:
            return None if call is None else Try(call)
        asked = Try(call)
        if expectation(self.space, node, asked, standing) is not None:
            return asked
        return next(
            (Try(each) for each in self._weighed(node)[0] if expectation(self.space, node, Try(each), standing)), None
        )

    def _call(self, node: Node, low: int) -> Call | None:
        calls, sums = self._weighed(node)
        if not calls:
            return None
        call = calls[bisect_right(sums, low * sums[-1] >> _LOW)]
        for _ in range(_AGAIN):
            if call[0] not in self._avoided:
                break
            low = (low * 40_503 + 7_919) % (1 << _LOW)
            call = calls[bisect_right(sums, low * sums[-1] >> _LOW)]
        return call

    def _weighed(self, node: Node) -> Weighed:
        """The steps that are enabled, and the sums of their weights: seldom tried actions, seldom met states."""
        found = self._allowed.get(node.state)
        if found is None:
            crashes, weights, visits = self.space.crashes, self._weights, self._visits
            calls = [call for call in node.after if call[0] not in crashes]
            # An action with many parameters is no likelier than one with few.
            alike = Counter(call[0] for call in calls)
            each = (
                1 + 400 * weights[call[0]] // ((1 + visits.get(node.after[call], 0)) * alike[call[0]]) for call in calls
            )
            found = self._allowed[node.state] = (calls, list(accumulate(each)))
        return found

    def _refused(self, node: Node, standing: Standing, low: int) -> Try | None:
        """A step that can be asked for and is refused."""
        calls, sums = self._denied(node)[0]
        return self._first_askable(node, standing, calls, bisect_right(sums, low * sums[-1] >> _LOW)) if calls else None

    def _sought(self, machine: Machine, low: int) -> Try | None:
        """A step that is refused here by a guard which was seldom met so far, and not yet in this run."""
        node = machine.node
        rare = self._denied(node)[1]
        calls = [call for pair, call in rare if pair not in machine.met] if rare else ()
        return self._first_askable(node, machine.standing, calls, low % len(calls)) if calls else None

    def _toward(self, machine: Machine, low: int) -> Try | None:
        """An enabled step after which a seldom met guard can be asked about, one not yet met in this run."""
        if self._rare <= machine.met:
            return None
        node = machine.node
        found = self._leading.get(node.state)
        if found is None:
            steps = ((call, node.after[call]) for call in self._weighed(node)[0])
            led = ((call, self._rare_in(after)) for call, after in steps if after != node.state)
            found = self._leading[node.state] = [(call, pairs) for call, pairs in led if pairs]
        calls = [call for call, pairs in found if not pairs <= machine.met]
        if not calls:
            return None
        asked = Try(calls[low % len(calls)])
        fits = machine.standing.clear or expectation(self.space, node, asked, machine.standing) is not None
        return asked if fits else None

    def _rare_in(self, state: State) -> frozenset[Pair]:
        """The seldom met guards that are the first to refuse something in a state."""
        found = self._rare_at.get(state)
        if found is None:
            places = zip(self.space.pairs, self.space.first_refusing(state), strict=True)
            found = self._rare_at[state] = self._rare.intersection(guards[n] for guards, n in places if n >= 0)
        return found

    def _first_askable(self, node: Node, standing: Standing, calls: Sequence[Call], start: int) -> Try | None:
        for number in range(len(calls)):
            call = calls[(start + number) % len(calls)]
            if askable(self.space, node, call):
                asked = Try(call)
                if standing.clear or expectation(self.space, node, asked, standing) is not None:
                    return asked
        return None

    def _denied(self, node: Node) -> tuple[Weighed, list[tuple[Pair, Call]]]:
        """The steps that may be asked for and are refused, with the sums of their weights; and those by rare guards."""
        found = self._forbidden.get(node.state)
        if found is None:
            space, calls, pairs = self.space, [], []
            for call, guards, first in zip(space.tries, space.pairs, space.first_refusing(node.state), strict=True):
                if first >= 0 and guards[first] in space.askable:
                    calls.append(call)
                    pairs.append(guards[first])
            alike = Counter(pairs)
            each = (1 + 40_000 // ((1 + self._met.get(pair, 0)) * alike[pair]) for pair in pairs)
            rare = [(pair, call) for pair, call in zip(pairs, calls, strict=True) if pair in self._rare]
            found = self._forbidden[node.state] = ((calls, list(accumulate(each))), rare)
        return found

    def _modified(self, node: Node, standing: Standing, high: int, low: int) -> Try | None:
        """A step with a fault in it: most often one that is enabled, and the fault that its action met least."""
        asked = self._refused(node, standing, low) if high & 14 == 14 else None
        calls = [asked.call] if asked is not None and asked.call is not None else self._weighed(node)[0]
        alike = Counter(call[0] for call in calls)
        found: list[Try] = []
        weights: list[int] = []
        for call in calls:
            action = self.space.binding.actions[call[0]]
            for kind in self.modifiers:
                if (action.stores if kind in STORAGE else action.exchange) is not None:
                    found.append(Try(call, Fault(kind)))
                    weights.append(1 + 4_000 // ((1 + self._modified_before.get((call[0], kind), 0)) * alike[call[0]]))
        sums = list(accumulate(weights))
        start = bisect_right(sums, low * sums[-1] >> _LOW) if sums else 0
        fitting = (each for each in (*found[start:], *found[:start]))
        return next((each for each in fitting if expectation(self.space, node, each, standing) is not None), None)

    def _event(self, standing: Standing, low: int) -> Try | None:
        """A fault alone: each kind that fits is as likely as any other."""
        fitting = [kind for kind in self.events if self._fits(kind, standing)]
        if not fitting:
            return None
        kind, rest = fitting[low % len(fitting)], low // len(fitting)
        if kind is Kind.CLOCK_JUMP:
            return Try(None, Fault(kind, millis=_JUMPS[rest % len(_JUMPS)]))
        if kind not in OF_A_REPLICA:
            return Try(None, Fault(kind))
        standing_of = {Kind.HEAL: standing.isolated, Kind.MARK_ONLINE: standing.offline}
        replicas = sorted(standing_of.get(kind, self.replicas))
        return Try(None, Fault(kind, replicas[rest % len(replicas)], seed=rest if kind is Kind.CRASH else 0))

    def _fits(self, kind: Kind, standing: Standing) -> bool:
        match kind:
            case Kind.DELIVER_LATE:
                return standing.late > 0
            case Kind.HEAL:
                return bool(standing.isolated)
            case Kind.MARK_ONLINE:
                return bool(standing.offline)
            case Kind.ISOLATE:
                # With one replica cut off the others go on; with more, hardly anything is left to try.
                return not standing.isolated
            case Kind.MARK_OFFLINE:
                return not standing.offline
            case _:
                return True

    def _ending(self, standing: Standing, low: int) -> Try | None:
        """The end of a fault that stands."""
        ends = (
            *((Kind.DELIVER_LATE, None) for _ in range(min(standing.late, 1))),
            *((Kind.HEAL, replica) for replica in sorted(standing.isolated)),
            *((Kind.MARK_ONLINE, replica) for replica in sorted(standing.offline)),
        )
        fitting = [Fault(kind, replica) for kind, replica in ends if kind in self.events]
        return Try(None, fitting[low % len(fitting)]) if fitting else None


def _action_weights(coverage: Coverage) -> dict[str, int]:
    """From 1 to 16: actions that were seldom enabled so far are tried the more eagerly."""
    counts = {name: count.enabled for name, count in coverage.actions.items()}
    mean = sum(counts.values()) / max(1, len(counts))
    return {name: max(1, min(16, round(2 * (1 + mean) / (1 + count)))) for name, count in counts.items()}
