"""How the model keeps up with a system that runs by itself: a frontier of states that explain all that was seen.

After each event the system is looked at. From each state of the frontier (usually there is one) all runs of at most
``MAX_STEPS`` steps of the model are tried that end in what is seen; a step must change a cell that differs from what is
seen, or one that cannot be seen, so that the usual event costs a comparison. No run: the two part.

A state of the frontier carries the mail: for each message in flight, the states in which it was sent. The system may be
looked at only after an event, and a message may leave at any point in it, so there may be several.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Final

from ...model.core.ground import State
from ...model.interpret.explain import Refusal
from ...traces.format import Value
from ...traces.observe import encode
from ..lockstep.binding import Effect
from ..lockstep.divergence import CellDifference, error_words
from ..lockstep.expect import Try
from ..lockstep.space import Call
from .candidate import Candidate, Path, Spent, apart, path_to
from .coverage import SimulationCoverage
from .divergence import Divergence, Sort
from .events import Event, EventKind
from .response_match import Half, ResponseMatch
from .system import Message, RequestOutcome, StepResult, changed
from .transitions import Transitions, differing

MAX_STEPS: Final = 32
"""So many steps of the model between two looks: a batch that is fetched, and counted, is two steps a record."""

MAX_STATES: Final = 4_000
"""So many states are come to for one event, before it is given up: unknown."""

MAX_FRONTIER: Final = 1_024
"""So many states may explain the same at once."""

RECENT: Final = 300
"""The mail of so many messages is kept, whatever is pending."""

MAX_TOLD: Final = 8
"""So many differing cells, and refusals, are told."""


class StateTracker:
    """The model's side of one run. ``met`` counts over all runs."""

    def __init__(self, ways: Transitions, met: SimulationCoverage | None = None) -> None:
        self.ways = ways
        self.met = met if met is not None else SimulationCoverage()
        self._fitting = ResponseMatch(ways)
        initial = ways.system.initial
        self.threads: list[Candidate] = [Candidate(initial, {}, Path((initial,), ()))]
        self._cells = ways.system.layout.cells
        self._by_name = ways.system.layout.by_name
        self._target: list[int | None] = [None] * len(self._cells)
        """By number of the cell, what is seen; None where nothing is."""
        self._seen: Mapping[str, Value] = {}
        self._known: set[str] = set()
        """The variables of which a cell was ever seen in this run."""
        self._down: set[int] = set()
        self._messages: dict[int, Message] = {}
        self._unseen: tuple[int, ...] = ()
        self._first = True
        self._spent: Spent | None = None
        """Why a state of the frontier was given up: that nothing explains what is seen cannot be said any more."""

    @property
    def state(self) -> State:
        """One of the states that explain everything so far."""
        return self.threads[0].state

    @property
    def down(self) -> Collection[int]:
        """The nodes whose process has ended, or has given up."""
        return self._down

    def start(self, happened: StepResult, observed: Mapping[str, Value]) -> Divergence | None:
        """The first look. Raises Spent."""
        return self.after(None, None, happened, observed)

    def after(
        self, event: Event | None, delivered: int | None, happened: StepResult, observed: Mapping[str, Value]
    ) -> Divergence | None:
        """Follow one event. ``delivered``: the number of the message that arrived in it, if one did. Raises Spent."""
        if happened.anew:
            self._begin_anew()
        try:
            changed = self._look(observed)
        except ValueError as strange:
            return Divergence(Sort.UNKNOWN, event, str(strange), len(self.threads))
        try:
            self._take(happened.inputs)
            halves = self._halves(delivered, happened.crashed)
            whole = self.ways.calls(happened.steps)
            judged = [(each, self.ways.calls(each.steps)) for each in happened.judged]
            for name in (name for message in happened.sent for said in message.says for name in said.cells):
                self._by_name[name]
        except KeyError as error:
            return Divergence(
                Sort.UNKNOWN, event, f"it tells of {error}, which the model does not have", len(self.threads)
            )
        self._down -= happened.started
        restarts = self.ways.restarts(happened.started)
        # Where a process ends between two events, nothing happens in it before: what it was is known.
        busy = frozenset() if event is not None and event.what is EventKind.CRASH else happened.crashed
        hidden = self._hidden([thread.state for thread in self.threads], busy)
        quick = not changed and not hidden and not self._first
        self._first = False
        ways: list[tuple[Candidate, list[Path]]] = []
        while True:
            ways = [
                (thread, [Path((thread.state,), ())] if quick else self._tried(thread, halves, whole, restarts, hidden))
                for thread in self.threads
            ]
            ends = [path.states[-1] for _, paths in ways for path in paths]
            more = hidden if quick else hidden | self._hidden(ends, busy)
            if more == hidden:
                break
            # What has become live, and is not shown, may have become so in more ways than one.
            hidden = more
        found: list[Candidate] = []
        dirty: list[Candidate] = []
        for thread, paths in ways:
            for path in paths:
                if not all(self._fitting.fits(thread, path, each, calls) for each, calls in judged):
                    continue
                if not all(self._fitting.said_in(path, message) for message in happened.sent):
                    continue
                (dirty if any(map(self.ways.broken, path.states)) else found).append(
                    self._moved(thread, path, happened)
                )
        self._down |= happened.crashed
        self._messages.update((each.number, each) for each in happened.sent)
        if not found:
            if self._spent is not None:
                raise self._spent
            if dirty:
                return self._broken(event, dirty[0])
            return self._part(event, halves, whole, judged, restarts, hidden, happened.sent)
        self._count(found, judged)
        self.threads = apart(found)
        if len(self.threads) > MAX_FRONTIER:
            raise Spent(f"more than {MAX_FRONTIER} states of the model explain what was seen")
        return None

    def _begin_anew(self) -> None:
        """What was followed is over: the model is in its initial state, and no message says anything to it."""
        initial = self.ways.system.initial
        self.threads = [Candidate(initial, {}, Path((initial,), ()))]
        self._messages.clear()
        self._spent = None
        self._first = True

    def forget(self, pending: Iterable[int]) -> None:
        """Let the mail go that is no longer in flight: what is not pending, and not of late (it may be kept back)."""
        kept = set(pending)
        kept.update(sorted(self._messages)[-RECENT:])
        for thread in self.threads:
            thread.mail = {number: states for number, states in thread.mail.items() if number in kept}
        self._messages = {number: each for number, each in self._messages.items() if number in kept}

    # -- looking ----------------------------------------------------------------------------------------------------

    def _take(self, names: Collection[str]) -> None:
        """Have every thread hold what is seen of these cells. Raises KeyError for one that the binding gives nobody."""
        if not names:
            return
        numbers = {self._by_name[name]: name for name in names}
        for number, name in numbers.items():
            if self._cells[number].variable.name not in self.ways.binding.inputs:
                raise KeyError(name)
        seen = {number: value for number in numbers if (value := self._target[number]) is not None}
        for thread in self.threads:
            thread.state = tuple(seen.get(number, value) for number, value in enumerate(thread.state))

    def _look(self, observed: Mapping[str, Value]) -> bool:
        """Take note of what is seen; gives whether any of it is new. Raises ValueError for what no cell can hold."""
        before = self._seen
        if observed == before and not self._first:
            return False
        target, cells = self._target, self._cells
        for name in observed if self._first else changed(before, observed):
            number = self._by_name.get(name)
            if number is None:
                raise ValueError(f"it shows {name}, and the model has no such cell")
            target[number] = encode(cells[number], observed[name])
        if observed.keys() != before.keys() or self._first:
            for name in before:
                if name not in observed:
                    target[self._by_name[name]] = None
            self._known |= {cells[self._by_name[name]].variable.name for name in observed}
            self.met.cells.update(observed)
            self._unseen = tuple(number for number, value in enumerate(target) if value is None)
        self._seen = dict(observed)
        return True

    def _hidden(self, states: Sequence[State], crashed: frozenset[int]) -> frozenset[int]:
        """The cells that are not seen and may change unseen, given that these are the states."""
        owner, down = self.ways.owner, self._down
        return frozenset(
            number for number in self._unseen if owner[number] not in down and self._may_hide(number, states, crashed)
        )

    def _may_hide(self, number: int, states: Sequence[State], crashed: frozenset[int]) -> bool:
        """Whether a cell that is not seen may change unseen: not one that is only dead just now.

        A dead one becomes live by a step that changes another cell as well, which is seen or may change unseen.
        """
        variable = self._cells[number].variable
        if self.ways.owner[number] in crashed or variable.live is None:
            return True
        return variable.name not in self._known and any(number in self.ways.live(state) for state in states)

    # -- the model's paths ------------------------------------------------------------------------------------------

    def _halves(self, delivered: int | None, crashed: frozenset[int]) -> tuple[Half, ...]:
        message = None if delivered is None else self._messages.get(delivered)
        if message is None or not message.steps:
            return ()
        calls = self.ways.calls(message.steps)
        if message.destination not in crashed:
            actions = self.ways.binding.actions
            calls = tuple(call for call in calls if not actions[call[0]].torn)
        return (Half(message, calls),)

    def _tried(
        self,
        thread: Candidate,
        halves: Sequence[Half],
        whole: Sequence[Call],
        restarts: Sequence[Call],
        hidden: frozenset[int],
    ) -> list[Path]:
        """The paths from one state of several; none, and that is remembered, where the budget runs out."""
        try:
            return self._paths(thread, halves, whole, restarts, hidden)
        except Spent as spent:
            if len(self.threads) == 1:
                raise
            self._spent = spent
            return []

    def _paths(
        self,
        thread: Candidate,
        halves: Sequence[Half],
        whole: Sequence[Call],
        restarts: Sequence[Call],
        hidden: frozenset[int],
    ) -> list[Path]:
        """All ends in what is seen that the model can come to from a state, each by a shortest path.

        States that break a promise are gone through last, so that they are told of only where there is no other way.
        """
        start = thread.state
        ends: list[Path] = []
        parents: dict[State, tuple[State, Call] | None] = {start: None}
        level: list[State] = [start]
        later: list[State] = []
        for depth in range(MAX_STEPS + 1):
            level_next: list[State] = []
            for state in level:
                wanted = self._differing(state)
                if not wanted:
                    ends.append(path_to(parents, state))
                    if not hidden:
                        return ends
                if depth == MAX_STEPS:
                    continue
                for call, after in self._steps(thread, state, halves, whole, restarts):
                    if after in parents or not self._matters(state, after, wanted, hidden):
                        continue
                    parents[after] = (state, call)
                    if len(parents) > MAX_STATES:
                        raise Spent(f"more than {MAX_STATES} states of the model were come to in one event")
                    (later if self.ways.broken(after) else level_next).append(after)
            level = level_next
            if not level:
                if ends or not later:
                    break
                level, later = later, []
        return ends

    def _differing(self, state: State) -> frozenset[int]:
        """The cells in which a state is not what is seen."""
        target = self._target
        return frozenset([number for number in differing(state, target) if target[number] is not None])

    def _matters(self, state: State, after: State, wanted: frozenset[int], hidden: frozenset[int]) -> bool:
        """Whether a step changes what has to change, or what may have changed unseen, and nothing of who is down."""
        matters = False
        owner, down = self.ways.owner, self._down
        for number in differing(state, after):
            if down and owner[number] in down:
                return False
            matters = matters or number in wanted or number in hidden
        return matters

    def _steps(
        self,
        thread: Candidate,
        state: State,
        halves: Sequence[Half],
        whole: Sequence[Call],
        restarts: Sequence[Call],
    ) -> Iterator[tuple[Call, State]]:
        ways = self.ways
        for half in halves:
            for call in half.calls:
                for after in self._half(thread, state, half, call):
                    if after is not None and after != state:
                        yield call, after
        for call in (*whole, *restarts):
            after = ways.doing(call)(state)
            if after is not None and after != state:
                yield call, after
        yield from ways.within(state)

    def _half(self, thread: Candidate, state: State, half: Half, call: Call) -> Iterator[State | None]:
        """What a message's arrival does, for each state in which it may have been sent."""
        exchange = self.ways.binding.actions[call[0]].exchange
        if exchange is None:
            yield self.ways.doing(call)(state)
            return
        sent = thread.mail.get(half.message.number, (state,))
        if half.is_request:
            for then in sent:
                yield self.ways.asked(state, then, call)[1]
        elif exchange.effect is not Effect.ASKED:
            for then in sent:
                yield self.ways.answered(state, then, call)[1]

    def _moved(self, thread: Candidate, path: Path, happened: StepResult) -> Candidate:
        mail = thread.mail
        if happened.sent:
            mail = dict(mail)
            for message in happened.sent:
                mail[message.number] = tuple(dict.fromkeys(self._fitting.said_in(path, message)))
        return Candidate(path.states[-1], mail, path)

    # -- where the two part -----------------------------------------------------------------------------------------

    def _missaid(self, event: Event | None, path: Path, message: Message, size: int) -> Divergence:
        state = path.states[-1]
        shown = self.ways.space.show_all(state)
        wrong = [each for each in message.says if not self._fitting.is_so(state, each)] or list(message.says)
        told = (
            f"{' and '.join(each.cells)} {'is' if len(each.cells) == 1 else 'are'} "
            f"{' and '.join(str(shown[name]) for name in each.cells)}, and it says {each.value}"
            for each in wrong
        )
        return Divergence(Sort.SAID, event, f"{message.name}: {'; '.join(told)}", size)

    def _broken(self, event: Event | None, thread: Candidate) -> Divergence:
        for depth, state in enumerate(thread.last.states):
            names = self.ways.broken(state)
            if names:
                steps = tuple(str(Try(call)) for call in thread.last.calls[:depth])
                detail = f"{names[0]} does not hold after it"
                return Divergence(Sort.PROMISE, event, detail, len(self.threads), steps=steps, broken=names[0])
        raise AssertionError("no promise is broken")

    def _part(
        self,
        event: Event | None,
        halves: Sequence[Half],
        whole: Sequence[Call],
        judged: Sequence[tuple[RequestOutcome, tuple[Call, ...]]],
        restarts: Sequence[Call],
        hidden: frozenset[int],
        sent: Sequence[Message] = (),
    ) -> Divergence:
        thread = self.threads[0]
        paths = self._paths(thread, halves, whole, restarts, hidden)
        size = len(self.threads)
        if paths:
            for each, calls in judged:
                if not self._fitting.fits(thread, paths[0], each, calls):
                    return self._wrong_answer(event, thread, paths[0], each, calls, size)
            for message in sent:
                if not self._fitting.said_in(paths[0], message):
                    return self._missaid(event, paths[0], message, size)
        nearest, steps = self._nearest(thread, halves, whole, restarts, hidden)
        cells = tuple(self._difference(nearest, number) for number in sorted(self._differing(nearest))[:MAX_TOLD])
        refusals: list[Refusal] = []
        for half in halves:
            for call in half.calls:
                refusals += self._refusals(thread, half, call)
        for call in whole:
            if self.ways.space.refusing(thread.state, call):
                refusals.append(self.ways.space.explain(thread.state, call))
        detail = str(cells[0]) if cells else "no state of the model explains it"
        told = tuple(str(Try(call)) for call in steps)
        return Divergence(Sort.CELLS, event, detail, size, cells, tuple(dict.fromkeys(refusals))[:MAX_TOLD], told)

    def _wrong_answer(
        self,
        event: Event | None,
        thread: Candidate,
        path: Path,
        judged: RequestOutcome,
        calls: Sequence[Call],
        size: int,
    ) -> Divergence:
        refusals, codes, enabled = [], set[str | None](), None
        for call in calls:
            for sight in dict.fromkeys(self._fitting.sights(thread, path.states[:1], judged, call)):
                guards = self.ways.space.refusing(sight, call)
                if guards:
                    codes |= self.ways.answer(sight, call, guards).errors
                    refusals.append(self.ways.space.explain(sight, call))
                else:
                    enabled = call
        answered = f"it answered {error_words(judged.error)}"
        if enabled is not None and judged.error is None:
            detail = f"{answered}, and yet {Try(enabled)} did not happen"
            return Divergence(Sort.MISSING, event, detail, size, refusals=tuple(refusals)[:MAX_TOLD])
        if enabled is not None:
            detail = f"{answered}; by the model {Try(enabled)} is to be done"
        else:
            wanted = " or ".join(sorted(map(error_words, codes)))
            detail = f"{answered}; by the model it is refused, with {wanted}"
        return Divergence(Sort.ERROR, event, detail, size, refusals=tuple(dict.fromkeys(refusals))[:MAX_TOLD])

    def _nearest(
        self,
        thread: Candidate,
        halves: Sequence[Half],
        whole: Sequence[Call],
        restarts: Sequence[Call],
        hidden: frozenset[int],
    ) -> tuple[State, tuple[Call, ...]]:
        """The state nearest to what is seen that the model can come to, and how."""
        start = thread.state
        parents: dict[State, tuple[State, Call] | None] = {start: None}
        queue = [start]
        for state in queue:
            wanted = self._differing(state)
            for call, after in self._steps(thread, state, halves, whole, restarts):
                if after not in parents and self._matters(state, after, wanted, hidden):
                    parents[after] = (state, call)
                    queue.append(after)
            if len(queue) > MAX_STATES // 4:
                break
        best = min(queue, key=lambda state: len(self._differing(state)))
        return best, path_to(parents, best).calls

    def _difference(self, state: State, number: int) -> CellDifference:
        cell = self._cells[number]
        return CellDifference(cell.name, self.ways.space.show_all(state)[cell.name], self._seen[cell.name])

    def _refusals(self, thread: Candidate, half: Half, call: Call) -> Iterator[Refusal]:
        """Why a message may not do what it stands for."""
        exchange = self.ways.binding.actions[call[0]].exchange
        for then in thread.mail.get(half.message.number, (thread.state,)):
            sight = thread.state
            if exchange is not None:
                side = exchange.asker if half.is_request else exchange.asked
                party = self.ways.side(side, call, thread.state)
                if party is not None or not half.is_request:
                    sight = self.ways.as_of(sight, then, party)
            if self.ways.space.refusing(sight, call):
                yield self.ways.space.explain(sight, call)

    # -- counting ---------------------------------------------------------------------------------------------------

    def _count(self, ways: Sequence[Candidate], judged: Sequence[tuple[RequestOutcome, tuple[Call, ...]]]) -> None:
        """Count an event by all that explain it, which may still be one state: what any of them has happen is met."""
        met = self.met
        met.events += 1
        size = len({thread.state for thread in ways}) if len(ways) > 1 else 1
        if size > 1:
            met.wide += 1
            met.widest = max(met.widest, size)
        steps: Counter[str] = Counter()
        refused: Counter[tuple[str, str]] = Counter()
        for thread in ways:
            steps |= Counter([action for action, _ in thread.last.calls])
            refused |= Counter(self._refusing(thread, judged))
        for action, times in steps.items():
            met.steps[action] = met.steps.get(action, 0) + times
        for pair, times in refused.items():
            met.refused[pair] = met.refused.get(pair, 0) + times

    def _refusing(
        self, thread: Candidate, judged: Sequence[tuple[RequestOutcome, tuple[Call, ...]]]
    ) -> Iterator[tuple[str, str]]:
        """The guards by which what was refused in an event is so in the model."""
        for each, calls in judged:
            if each.error is not None:
                for call in calls:
                    for sight in self._fitting.sights(thread, thread.last.states[:1], each, call):
                        yield from ((call[0], guard) for guard in self.ways.space.refusing(sight, call))
