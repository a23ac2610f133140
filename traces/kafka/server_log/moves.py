"""What a node printed, as steps of the model, looked at in the few offsets that are watched (``history.py``).

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
    Entry,
    Follows,
    Hears,
    Leads,
    Learns,
    Loads,
    Raises,
    Sets,
    Truncates,
)
from .history import CONTROLLER, History, Quorum, decision, quorum_states

Step: TypeAlias = "tuple[str, Mapping[str, int]]"

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
    """Whether the model may have no such step: where it refuses this, nothing is wrong, and the trace ends there."""


def moves_of(history: History, watched: Sequence[int], *, fences: bool = False) -> dict[int, list[Move]]:
    """By broker id, and CONTROLLER, what it did in the order in which it printed it.

    ``fences``: the model's controller takes a follower out of the ISR in the same leader epoch (K14).
    """
    number = {node: replica for replica, node in enumerate(history.replicas)}
    found = {CONTROLLER: list(_decisions(history, number, fences=fences))}
    for node in history.replicas:
        broker = _Broker(node, number, watched, fences=fences)
        found[node] = list(broker.moves(_fetches_first(_without_opening(history.printed[node]))))
    return found


def _decisions(history: History, number: Mapping[int, int], *, fences: bool) -> Iterator[Move]:
    first = history.decided[0]
    begun = Quorum(-1, frozenset(history.replicas)).after(decision(first))
    yield Move(
        first,
        CONTROLLER,
        ((("controller_elect_leader", {"new_leader": number[begun.leader]}),),),
        _quorum(begun, 0, number),
    )
    epoch = 0
    for entry, state, said in quorum_states(history):
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


def _quorum(state: Quorum, epoch: int, number: Mapping[int, int]) -> dict[str, Value]:
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
    """A leader prints what a fetch reported after all that came of it: put that line first."""
    if not all(entry.thread for entry in log):
        return _fetches_first_without_threads(log)
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


def _fetches_first_without_threads(log: Sequence[Entry]) -> list[Entry]:
    """The same for a layout without threads, in which other threads' lines may stand between those of one fetch.

    Lines since the last fetch of the same follower may have come of this one, as far as its offset allows.
    """
    heard: dict[int, int] = {}
    came: list[int] = []
    since: dict[int, int] = {}
    appended: list[tuple[int, int]] = []
    """Log ends of the leader, each with its place: no follower has fetched what its leader has not appended."""
    places = []
    for place, entry in enumerate(log):
        key = (place, 1)
        match entry.said:
            case Appends(end=grown):
                appended.append((grown, place))
            case Asks() | Raises() | Sets():
                came.append(place)
            case Hears(replica=replica, end=end):
                if heard.get(replica) != end:
                    heard[replica] = end
                    floor = next((at for grown, at in appended if grown >= end), since.get(replica, -1))
                    of_one = [each for each in came if each > max(floor, since.get(replica, -1))]
                    key = (_begun(log, of_one, end, place), 0)
                since[replica] = place
            case Leads() | Follows() | Loads():
                heard, came, since, appended = {}, [], {}, []
            case _:
                pass
        places.append(key)
    return [log[place] for place in sorted(range(len(log)), key=lambda each: (places[each], each))]


def _begun(log: Sequence[Entry], of_one: Sequence[int], end: int, place: int) -> int:
    """The first line of what came of the fetch that is reported at `place`; itself where nothing did."""
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
            # no role until it hears of another epoch, and what it did in this one no line reports (``_beyond``).
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
