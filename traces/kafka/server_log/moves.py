"""What a node printed, as steps of the model, looked at in a few offsets.

Only some offsets are watched: an end of a log is then the number of those below it. A run of real brokers, looked at
so, is a run of the model (``kafka/abstraction.py`` says why), if those are among them on which a guard looks that
counts what is *not* there: where a log was cut, and what a replica lacked that a leader would have out of the ISR.

A line is one or several steps in a row, with what it shows of the state after the last. What it is may be open, as a
follower's high watermark is that of records that have come with it, or of an answer without any: then there are several
such rows, and whoever puts the lines of all nodes in order finds out (``order.py``).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol, TypeAlias

from ...format import Value
from .entries import (
    Appends,
    Asks,
    Decides,
    Entry,
    Follows,
    Hears,
    Leads,
    Learns,
    Loads,
    Raises,
    Restarts,
    Sets,
    Truncates,
)
from .lines import Printed

Step: TypeAlias = "tuple[str, Mapping[str, int]]"

MAX_EPOCHS: Final = 60
"""What came in later leader epochs is left out."""
MAX_REPLICAS: Final = 7
MAX_WATCHED: Final = 24
"""So many offsets are watched at most, beside the last."""
CONTROLLER: Final = -1
_OF_ONE_FETCH_MS: Final = 5_000
"""Longer than a leader takes over a fetch, on a machine that is busy, too."""


class Place(Protocol):
    """A line: when it was printed, in milliseconds, and where it is."""

    @property
    def at(self) -> int: ...
    @property
    def file(self) -> str: ...
    @property
    def line(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Move:
    """A line: rows of steps that it may be, the likeliest first, and what it shows. No step: a look at the state."""

    entry: Place
    node: int
    rows: tuple[tuple[Step, ...], ...]
    observed: Mapping[str, Value]
    maybe: bool = False
    """Whether the model may have no such step: where it refuses this, nothing is wrong, and nothing more is told."""


@dataclass(frozen=True)
class History:
    """A partition, with all that was printed of it as long as the model has words for it.

    ``replicas``: broker ids, in the order of the model's. ``ended``: why nothing is told of what came later, if so.
    ``cut``: of whom something later was printed; CONTROLLER, too. By whose clock that is later is not asked: whoever
    waits for what was left out waits for one of these (``order.py``).
    """

    name: str
    replicas: tuple[int, ...]
    decided: tuple[Entry, ...]
    printed: Mapping[int, Sequence[Entry]]
    ended: str | None = None
    cut: frozenset[int] = frozenset()

    def before(self, end: int, why: str) -> History:
        """The same up to a time."""
        decided = tuple(each for each in self.decided if each.at < end)
        printed = {node: [each for each in log if each.at < end] for node, log in self.printed.items()}
        cut = {node for node, log in printed.items() if len(log) < len(self.printed[node])}
        cut |= {CONTROLLER} if len(decided) < len(self.decided) else set()
        return History(self.name, self.replicas, decided, printed, why, self.cut | cut)


class NotToldError(Exception):
    """Why a partition's history cannot be told from its beginning."""


def history_of(printed: Printed, name: str) -> History:
    """A partition's history. Raises NotToldError where it does not begin with the partition's creation."""
    decided = [entry for _, entry in sorted(printed.decided.get(name, {}).items())]
    first = _decision(decided[0]) if decided else None
    if first is None or not first.created or first.replicas is None or first.isr is None:
        raise NotToldError("no controller's log tells of its creation")
    if first.isr != first.replicas or first.leader not in first.replicas:
        raise NotToldError("it was created with a leader or an ISR that is not of all replicas")
    if len(first.replicas) > MAX_REPLICAS:
        raise NotToldError(f"it has more than {MAX_REPLICAS} replicas")
    missing = sorted(first.replicas - printed.nodes.keys())
    if missing:
        raise NotToldError(f"there is no log of broker {missing[0]}, which has a replica")
    logs = {node: printed.nodes[node][name] for node in first.replicas}
    found = History(name, tuple(sorted(first.replicas)), tuple(decided), logs)
    ends = [
        each
        for each in (_undecided(found, first.replicas), *(_beyond(node, logs[node]) for node in found.replicas))
        if each
    ]
    end = min(ends, default=None)
    return found if end is None else found.before(*end)


def _undecided(history: History, replicas: frozenset[int]) -> tuple[int, str] | None:
    """When the controller first decided what the model has no step for, and what that was."""
    for place, (entry, state, said) in enumerate(_states(history)):
        last = history.decided[place]
        why = _untold(state, _decision(last), said, replicas)
        if why is not None:
            missing = said.version != _decision(last).version + 1
            return (last.at + 1 if missing else entry.at), why
    return None


def _beyond(node: int, log: Sequence[Entry]) -> tuple[int, str] | None:
    """When a broker first did what the model has no step for, and what that was."""
    found = _first_beyond(log)
    return None if found is None else (found[0], f"broker {node} {found[1]}")


def _first_beyond(log: Sequence[Entry]) -> tuple[int, str] | None:
    epoch, led, up, resumed = -1, False, True, False
    for entry in log:
        match entry.said:
            case Restarts():
                return entry.at, "threw its log away, and began anew at its leader's log start"
            case Leads(epoch=new) | Follows(epoch=new) if new > MAX_EPOCHS:
                return entry.at, f"is in leader epoch {new}"
            case Loads():
                up = False
            case Leads(epoch=new):
                resumed = not up and led and new == epoch
                epoch, led, up = new, True, True
            case Follows(epoch=epoch):
                led, up, resumed = False, True, False
            case Appends() | Raises() if resumed:
                return entry.at, f"was started again, and went on in leader epoch {epoch}, in which it had led"
            case _:
                pass
    return None


def _decision(entry: Entry) -> Decides:
    assert isinstance(entry.said, Decides)
    return entry.said


@dataclass(frozen=True)
class _Quorum:
    """The controller's leader (-1: nobody) and ISR."""

    leader: int
    isr: frozenset[int]

    def after(self, said: Decides) -> _Quorum:
        return _Quorum(self.leader if said.leader is None else said.leader, self.isr if said.isr is None else said.isr)

    def step(self, said: Decides) -> tuple[str, dict[str, int]] | None:
        """The step that a record is, by broker ids; None where the model has none."""
        after = self.after(said)
        lost = self.isr - after.isr
        if after.leader not in (-1, *after.isr):
            return None
        if said.epoch is None:
            told = self.leader != -1 and (said.altered or (after.isr < self.isr and self.leader in after.isr))
            return ("controller_grant_isr", {"leader": self.leader}) if told else None
        if not after.isr <= self.isr or len(lost) > 1:
            return None
        gone = next(iter(lost), None)
        if after.leader == -1:
            return ("controller_shrink_isr", {"replica": self.leader}) if gone in (None, self.leader) else None
        if after.leader == self.leader:
            return None if gone is None else ("controller_shrink_isr", {"replica": gone})
        if gone is None:
            return "controller_elect_leader", {"new_leader": after.leader}
        if gone == self.leader:
            return "controller_fail_over", {"failed": gone, "new_leader": after.leader}
        return None


def _untold(state: _Quorum, before: Decides, said: Decides, replicas: frozenset[int]) -> str | None:
    """Why the model has no step for a record of the controller's."""
    what = f"in partition epoch {said.version} the controller"
    if said.version != before.version + 1:
        return f"what the controller decided in partition epoch {before.version + 1} is in no file"
    if said.replicas is not None or not (said.isr or frozenset()) <= replicas:
        return f"{what} gives it other replicas"
    if said.epoch is not None and said.epoch > MAX_EPOCHS:
        return f"{what} begins leader epoch {said.epoch}"
    if (said.epoch is None and said.isr is None) or state.step(said) is not None:
        return None
    after = state.after(said)
    if not after.isr <= state.isr or after.leader not in (-1, *state.isr):
        return f"{what} elects a leader uncleanly, or changes the ISR by itself"
    changed = f"{sorted(after.isr)} in place of {sorted(state.isr)}"
    return f"{what} has the ISR {changed}, which is no step of the model"


# -- which offsets are watched --------------------------------------------------------------------------------------


def watched_of(history: History) -> tuple[list[int], History]:
    """The offsets that are watched, ascending, and the history up to where there would be more than there may be.

    Those at which logs were cut, and at which replicas lagged that were to leave the ISR; the first and the last.
    """
    found = {0}
    for at, offset in sorted({*_parted(history), *_fenced(history)}):
        if offset not in found and len(found) == MAX_WATCHED:
            return sorted(found), history.before(at, f"logs differ at more than {MAX_WATCHED} offsets")
        found.add(offset)
    ends = [each.said.end for log in history.printed.values() for each in log if isinstance(each.said, Appends)]
    return sorted({*found, max(0, *ends) - 1} - {-1} if ends else found), history


def _parted(history: History) -> Iterator[tuple[int, int]]:
    for log in history.printed.values():
        end, isr = 0, frozenset[int]()
        heard: dict[int, int] = {}
        for entry in log:
            match entry.said:
                case Leads(end=end, isr=isr):
                    heard = {}
                case Appends(end=end) | Follows(end=end):
                    pass
                case Learns(isr=isr):
                    pass
                case Hears(replica=replica, end=told):
                    heard[replica] = told
                case Asks(isr=asked):
                    for each in sorted(isr - asked):
                        yield entry.at, max(0, heard.get(each, 0))
                case Truncates(end=cut) if cut < end:
                    yield entry.at, cut
                    end = cut
                case _:
                    pass


def _fenced(history: History) -> Iterator[tuple[int, int]]:
    """Where those were, for their leader, whom the controller has taken out of the ISR by itself."""
    for entry, state, said in _states(history):
        if said.epoch is None and said.isr is not None and not said.altered:
            log = [each for each in history.printed.get(state.leader, ()) if each.at <= entry.at]
            for lost in sorted(state.isr - said.isr):
                told = [each.said.end for each in log if isinstance(each.said, Hears) and each.said.replica == lost]
                if told and told[-1] >= 0:
                    yield entry.at, told[-1]


def _states(history: History) -> Iterator[tuple[Entry, _Quorum, Decides]]:
    """The controller's decisions but the first, each with what held before."""
    first = _decision(history.decided[0])
    state = _Quorum(-1 if first.leader is None else first.leader, first.isr or frozenset())
    for entry in history.decided[1:]:
        yield entry, state, _decision(entry)
        state = state.after(_decision(entry))


def ends(history: History) -> list[int]:
    """The first and the last offset that a log had."""
    last = [each.said.end for log in history.printed.values() for each in log if isinstance(each.said, Appends)]
    return sorted({0, max(last) - 1}) if last else []


# -- steps ----------------------------------------------------------------------------------------------------------


def moves_of(history: History, watched: Sequence[int], *, fences: bool = False) -> dict[int, list[Move]]:
    """By broker id, and CONTROLLER, what it did in the order in which it printed it.

    ``fences``: the model's controller takes a follower out of the ISR in the same leader epoch (K14).
    """
    number = {node: replica for replica, node in enumerate(history.replicas)}
    found = {CONTROLLER: list(_decisions(history, number, fences=fences))}
    for node in history.replicas:
        told = _Broker(node, number, watched, fences=fences)
        found[node] = list(told.moves(_fetches_first(_without_opening(history.printed[node]))))
    return found


def _decisions(history: History, number: Mapping[int, int], *, fences: bool) -> Iterator[Move]:
    first = history.decided[0]
    begun = _Quorum(-1, frozenset(history.replicas)).after(_decision(first))
    yield Move(
        first,
        CONTROLLER,
        ((("controller_elect_leader", {"new_leader": number[begun.leader]}),),),
        _quorum(begun, 0, number),
    )
    epoch = 0
    for entry, state, said in _states(history):
        if said.epoch is None and said.isr is None:
            continue
        after, epoch = state.after(said), epoch if said.epoch is None else said.epoch
        found = state.step(said)
        assert found is not None, "a history has what the model has a step for"
        step: Step = (found[0], {name: number[node] for name, node in found[1].items()})
        rows: tuple[tuple[Step, ...], ...] = ((step,),)
        unasked = said.epoch is None and not said.altered
        gone = sorted(number[each] for each in state.isr - after.isr)
        if unasked and fences:
            rows = (tuple(("controller_fence_follower", {"replica": each}) for each in gone),)
        elif unasked:
            # It has fenced a broker. This model's controller takes nobody out of the ISR without a new leader epoch
            # but who a leader would have out: where the leader has records that the replica lacks, it might have asked.
            asks = [("leader_ask_shrink", {"leader": number[state.leader], "follower": each}) for each in gone]
            rows = ((*asks, step), (("leader_ask_again", {"leader": number[state.leader]}), *asks, step), *rows)
        yield Move(entry, CONTROLLER, rows, _quorum(after, epoch, number), maybe=unasked and not fences)


def _quorum(state: _Quorum, epoch: int, number: Mapping[int, int]) -> dict[str, Value]:
    return {
        "quorum_leader_epoch": epoch,
        "quorum_leader": None if state.leader == -1 else number[state.leader],
        "quorum_isr": tuple(sorted(number[each] for each in state.isr)),
    }


def _without_opening(log: Sequence[Entry]) -> list[Entry]:
    """A log that is opened sets its high watermark one line before it says that it is open: that is not a leader's."""
    found: list[Entry] = []
    last: dict[str, int] = {}
    """By thread, the place of what it printed last."""
    for entry in log:
        before = last.get(entry.thread, -1)
        if isinstance(entry.said, Loads) and before >= 0 and isinstance(found[before].said, Sets):
            del found[before]
            last = {thread: place - (place > before) for thread, place in last.items()}
        last[entry.thread] = len(found)
        found.append(entry)
    return found


def _fetches_first(log: Sequence[Entry]) -> list[Entry]:
    """A leader prints what a fetch has told it after all that came of it: put that line first."""
    heard: dict[int, int] = {}
    came: dict[str, list[int]] = {}
    """By thread, the lines that it has printed since it printed anything else: what came of one fetch."""
    places = []
    for place, entry in enumerate(log):
        of_one = came.setdefault(entry.thread, [])
        key = (place, 1)
        match entry.said:
            case Asks() | Raises() | Sets():
                of_one.append(place)
            case Hears(replica=replica, end=end):
                if heard.get(replica) != end:
                    heard[replica] = end
                    key = (_begun(log, of_one, end, place), 0)
                of_one.clear()
            case Leads():
                heard = {}
                of_one.clear()
            case _:
                of_one.clear()
        places.append(key)
    return [log[place] for place in sorted(range(len(log)), key=lambda each: (places[each], each))]


def _begun(log: Sequence[Entry], of_one: Sequence[int], end: int, place: int) -> int:
    """The first line of what came of the fetch that is told at `place`; itself where nothing did."""
    found = place
    for each in reversed(of_one):
        said = log[each].said
        if log[place].at - log[each].at > _OF_ONE_FETCH_MS or (isinstance(said, Raises | Sets) and said.hw > end):
            break
        found = each
    return found


@dataclass
class _Broker:
    """A broker, as its lines tell: what it was when it printed the next one. Offsets are real ones."""

    node: int
    number: Mapping[int, int]
    watched: Sequence[int]
    fences: bool = False
    epoch: int = -1
    leader: int | None = None
    end: int = 0
    hw: int = -1
    """As the model has it since; -1: that is not known."""
    isr: frozenset[int] = frozenset()
    led: bool = False
    """Whether it has led in this epoch."""
    heard: dict[int, int] = field(default_factory=dict)

    def moves(self, log: Sequence[Entry]) -> Iterator[Move]:
        for entry in log:
            found = self._move(entry)
            if found is not None:
                rows, observed = found
                yield Move(entry, self.node, rows, observed)

    @property
    def _me(self) -> int:
        return self.number[self.node]

    @property
    def _later(self) -> list[tuple[Step, ...]]:
        """That a leader learns of one fencing or another, if the model has them."""
        places = range(len(self.number) - 1) if self.fences else ()
        return [(("leader_learn_later_isr", {"leader": self._me, "place": place}),) for place in places]

    def _at(self, offset: int) -> int:
        """An offset as the model has it."""
        return bisect_left(self.watched, offset)

    def _members(self, isr: frozenset[int]) -> Value:
        return tuple(sorted(self.number[each] for each in isr if each in self.number))

    def _move(self, entry: Entry) -> tuple[tuple[tuple[Step, ...], ...], dict[str, Value]] | None:
        me = self._me
        match entry.said:
            case Leads(epoch=epoch, end=end, hw=hw, isr=isr):
                return self._role(epoch, self.node, end, hw, isr)
            case Follows(epoch=epoch, end=end, hw=hw, leader=leader):
                return self._role(epoch, leader, end, hw, frozenset())
            case Loads(hw=hw) if self.epoch >= 0:
                self.leader, self.hw, self.heard = None, self._at(hw), {}
                step = ("restart", {"replica": me, "stored": self.hw})
                return ((step,),), {f"leo[{me}]": self._at(self.end), f"hw[{me}]": self.hw}
            case Appends(end=end):
                return self._append(end)
            case Truncates(end=end) if end < self.end:
                before, self.end, self.hw = self._at(self.end), end, -1
                if self._at(end) == before or self.leader is None:
                    return None
                params = {"leader": self._number(self.leader), "follower": me, "end": self._at(end)}
                return ((("truncate_partly", params),),), {f"leo[{me}]": self._at(end)}
            case Sets(hw=hw) if self.leader not in (None, self.node):
                return self._set(hw)
            case Raises(hw=hw) if self.leader == self.node:
                steps = max(0, self._at(hw) - max(self.hw, 0))
                if self.hw == self._at(hw):
                    return None
                self.hw = self._at(hw)
                return ((("leader_inc_high_watermark", {"leader": me}),) * steps,), {f"hw[{me}]": self.hw}
            case Hears(replica=replica, end=end) if replica in self.number and self.leader == self.node:
                if self.heard.get(replica) == self._at(end) or end < 0:
                    return None
                self.heard[replica] = self._at(end)
                step = ("follower_acknowledge", {"leader": me, "follower": self.number[replica]})
                return ((step,), ()), {f"remote_leo[{me}][{self.number[replica]}]": self._at(end)}
            case Asks(isr=isr) if self.leader == self.node:
                asks = [
                    (f"leader_ask_{what}", {"leader": me, "follower": self.number[each]})
                    for what, which in (("shrink", self.isr - isr), ("expand", isr - self.isr))
                    for each in sorted(which)
                    if each in self.number
                ]
                return (tuple(asks), (("leader_ask_again", {"leader": me}), *asks)), {
                    f"asked_isr[{me}]": self._members(isr)
                }
            case Learns(isr=isr) if self.leader == self.node:
                self.isr = isr
                return ((("leader_learn_isr", {"leader": me}),), *self._later, ()), {f"isr[{me}]": self._members(isr)}
        return None

    def _number(self, node: int) -> int:
        return self.number.get(node, self._me)

    def _role(
        self, epoch: int, leader: int, end: int, hw: int, isr: frozenset[int]
    ) -> tuple[tuple[tuple[Step, ...], ...], dict[str, Value]] | None:
        me = self._me
        if epoch == self.epoch and (self.leader == leader or (leader == self.node and self.led)):
            # It knows that already; or was started again, and leads in the epoch in which it led. In the model it has
            # no role until it hears of another epoch, and what it did in this one is told nowhere (``_beyond``).
            return None
        self.epoch, self.leader, self.end, self.hw, self.isr = epoch, leader, end, self._at(hw), isr
        self.heard, self.led = {}, leader == self.node
        observed: dict[str, Value] = {
            f"leader_epoch[{me}]": epoch,
            f"leader[{me}]": self.number.get(leader),
            f"leo[{me}]": self._at(end),
            f"hw[{me}]": self.hw,
        }
        if leader != self.node:
            return ((("hear_of_leader", {"replica": me, "epoch": epoch}),),), observed
        observed[f"isr[{me}]"] = self._members(isr)
        begins: Step = ("become_leader", {"leader": me, "epoch": epoch})
        return ((begins,), *((begins, *more) for more in self._later)), observed

    def _append(self, end: int) -> tuple[tuple[tuple[Step, ...], ...], dict[str, Value]] | None:
        me, count = self._me, self._at(end) - self._at(self.end)
        self.end = end
        if count <= 0 or self.leader is None:
            return None
        if self.leader == self.node:
            step: Step = ("leader_write", {"leader": me})
        else:
            self.hw = -1
            step = ("follower_fetch", {"leader": self._number(self.leader), "follower": me})
        return ((step,) * count,), {f"leo[{me}]": self._at(end)}

    def _set(self, hw: int) -> tuple[tuple[tuple[Step, ...], ...], dict[str, Value]] | None:
        if self.hw == self._at(hw):
            return None
        assert self.leader is not None
        self.hw = self._at(hw)
        step = ("follower_hear_high_watermark", {"leader": self._number(self.leader), "follower": self._me})
        return ((), (step,)), {f"hw[{self._me}]": self.hw}
