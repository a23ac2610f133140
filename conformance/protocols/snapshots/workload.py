"""How likely events of a running quorum are, so that runs come to where snapshots are fetched, and where that fails.

The model's constants allow of so many records and epochs: they are spread over a run, whose rest would be idle. Votes
are quick beside the patience of who waits for them. Only whom a leader's log has left behind starts over: who is away
stays away until then, or is slow, and the leader appends, snapshots and advances its LBO meanwhile. A snapshot that is
half fetched is come between. In some runs nobody waits for anything, and a weight makes nothing impossible.

In others logs part: a leader appends what nobody else gets, and fails; the next one does the same before the first is
back. So a log has ends of epochs that no other has, and who comes back has to cut.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Mapping
from typing import Final, NamedTuple

from ....impl.quorum.node import QuorumNode
from ...adapters.nodes import DUE
from ...simulation.events import Event, EventKind

_HURRIED: Final = 4
"""In one of so many runs nobody waits for anything."""
_LAGGING: Final = 8
"""In a run that waits, the node with a number below this that is drawn is slow: in some there is no such node."""
_A_RECORD: Final = 20
_AN_EPOCH: Final = 25
"""After so many events there may be one more."""
_SPENT: Final = 0.05
"""How likely a record or an epoch is that is too soon."""
_AWAY: Final = 0.02
"""How likely who is away comes back before it is left behind."""
_RATHER: Final = 4.0
"""How likely what leads on is."""
_PATIENT: Final = 0.2
"""How likely time passes, or a failure comes, while something is waited for."""

_PARTING: Final = 2
"""In one of so many runs that wait, logs part."""
_A_TERM: Final = 45
_TOGETHER: Final = 15
"""Of so many events, in the first ones logs need not part: what is committed before is what may be lost."""
_ALONE: Final = 8.0
"""How likely a leader fails that has a record which nobody else has."""
_KEPT: Final = 0.1
"""How likely others get what such a leader has."""

_CHATTER: Final = 0.03
"""How likely it is asked, and answered, who leads where nobody does."""

_APPENDS: Final = frozenset({"append", "append-two", "append-three"})
_LEAVING: Final = frozenset({"delete-records", "generate-snapshot", "advance-begin"})
_BRINGING: Final = frozenset({"QuorumFetch", "QuorumFetchResponse"})
_ELECTING: Final = frozenset({"Vote", "VoteResponse", "BeginQuorumEpoch"})


class Course(NamedTuple):
    """What a quorum is about: how many events are over; who leads (None: nobody does), its LBO and LEO, and the end of
    its latest snapshot; the newest epoch; who stands, where votes are in flight; the end of each log; who is away; who
    has begun to fetch a snapshot; whether a majority of the voters can be reached, and who of these it can do without.
    """

    events: int
    leader: int | None
    begin: int
    end: int
    covered: int
    epoch: int
    standing: frozenset[int]
    ends: Mapping[int, int]
    away: frozenset[int]
    fetching: frozenset[int]
    has_majority: bool
    spare: frozenset[int]


def course_of(
    events: int, there: Mapping[int, QuorumNode], voters: Collection[int], ends: Mapping[int, int], *, voting: bool
) -> Course:
    """``there``: who can be reached. ``ends``: of everybody's log. ``voting``: whether votes are in flight."""
    leaders = [number for number, node in there.items() if node.is_leader]
    leader = max(leaders, key=lambda number: there[number].epoch, default=None)
    log = None if leader is None else there[leader].replica
    majority = len(voters) // 2 + 1
    reached = sum(number in voters for number in there)
    return Course(
        events,
        leader,
        -1 if log is None else log.begin,
        -1 if log is None else log.end,
        -1 if log is None else log.snapshots.latest_end,
        max((node.epoch for node in there.values()), default=-1),
        frozenset(number for number, node in there.items() if voting and node.ballot.voted == number),
        ends,
        frozenset(number for number in ends if number not in there),
        frozenset(number for number, node in there.items() if node.replica.fetching is not None),
        reached >= majority,
        frozenset(number for number in there if reached - (number in voters) >= majority),
    )


class Workload:
    """Of one run, by its seed."""

    def __init__(self, seed: int) -> None:
        self._waits = seed // 6 % _HURRIED != 0
        self._slow = seed // 24 % _LAGGING
        self._parts = seed // 192 % _PARTING == 0

    def at(self, course: Course) -> Callable[[Event], float]:
        """How likely each event is now, beside 1."""
        if not self._waits:
            return lambda _event: 1.0
        if course.leader is None:
            return lambda event: self._unled(event, course)
        if self._is_parting(course):
            alone = _is_alone(course)
            return lambda event: self._parting(event, course, alone=alone)
        kept = self._kept(course)
        return lambda event: self._led(event, course, kept)

    def mood(self, course: Course) -> Hashable:
        """All of a course that decides how likely events are: alike where this is."""
        if not self._waits:
            return None
        if course.leader is None:
            return course.standing, course.has_majority, course.away, tuple(course.ends.items())
        if self._is_parting(course):
            return course.leader, _is_alone(course), _has_many(course), course.spare
        too_soon = _is_early(course), _is_new(course)
        waited = course.fetching, self._kept(course), course.away, course.has_majority
        return course.leader, course.covered, *too_soon, *waited

    def _kept(self, course: Course) -> frozenset[int]:
        """Who is waited for to be left behind."""
        behind = course.away | ({self._slow} & course.spare)
        return frozenset(node for node in behind if node != course.leader and course.begin <= course.ends[node])

    def _is_parting(self, course: Course) -> bool:
        """Whether logs are to part now."""
        return self._parts and course.events % _A_TERM >= _TOGETHER

    def _parting(self, event: Event, course: Course, *, alone: bool) -> float:
        """A leader appends what it alone has, and fails where the others can do without it.

        ``alone``: it has such a record.
        """
        leads = event.node == course.leader
        match event.what:
            case EventKind.CALL if event.name in _APPENDS:
                return _SPENT if _has_many(course) else 1.0 if alone else _RATHER
            case EventKind.CRASH | EventKind.CUT | EventKind.OPERATE if (
                leads and alone and course.leader in course.spare
            ):
                # What a crash leaves of it is for the disk to say.
                return _ALONE if event.what is EventKind.CUT else _ALONE / 4
            case EventKind.CRASH | EventKind.CUT | EventKind.OPERATE if leads:
                return _SPENT
            case EventKind.DELIVER if event.name in _BRINGING:
                return _KEPT
            case EventKind.START | EventKind.HEAL:
                return _RATHER if not course.has_majority or alone else _KEPT
            case EventKind.TIME:
                return _PATIENT
        return 1.0

    def _unled(self, event: Event, course: Course) -> float:
        """An election comes to its end; where none is held, time passes."""
        match event.what:
            case EventKind.DELIVER:
                return _RATHER if event.name in _ELECTING else _CHATTER
            case EventKind.TIME if course.has_majority and not course.standing:
                return _RATHER if event.arg("ms") == 1_000 else _PATIENT
            case EventKind.TIMER if event.name != DUE:
                return _CHATTER
            case EventKind.TIMER if course.standing:
                return _SPENT  # each candidacy is an epoch, and one is on its way
            case EventKind.TIMER:
                there = [end for node, end in course.ends.items() if node not in course.away]
                return 1.0 if course.ends.get(event.node or 0, 0) == max(there, default=0) else _PATIENT
            case EventKind.START | EventKind.HEAL if not course.has_majority:
                return _RATHER
            case EventKind.START | EventKind.HEAL if self._parts and event.node in _ahead(course):
                return _AWAY
            case EventKind.TIME | EventKind.CRASH | EventKind.CUT | EventKind.DISK | EventKind.PROBE:
                return _PATIENT
        return 1.0

    def _led(self, event: Event, course: Course, kept: Collection[int]) -> float:
        """``kept``: who is waited for to be left behind."""
        match event.what:
            case EventKind.CALL if event.name in _APPENDS and _is_early(course):
                return _SPENT
            case EventKind.CALL if event.name == "delete-records" and int(event.arg("lbo")) > course.covered:
                return _PATIENT
            case EventKind.CRASH | EventKind.CUT | EventKind.OPERATE | EventKind.DISK if event.node == course.leader:
                if _is_new(course):
                    return _SPENT
            case EventKind.TIME:
                return _PATIENT
        return self._amid(event, course) if course.fetching else self._leaving(event, course, kept)

    def _leaving(self, event: Event, course: Course, kept: Collection[int]) -> float:
        match event.what:
            case EventKind.START | EventKind.HEAL if event.node in course.away and course.has_majority:
                return _AWAY if event.node in kept else _RATHER
            case EventKind.TIMER | EventKind.DELIVER if event.node in kept:
                return _AWAY
            case EventKind.CALL | EventKind.TIMER if kept and event.node == course.leader and event.name in _LEAVING:
                return _RATHER
        return 1.0

    def _amid(self, event: Event, course: Course) -> float:
        concerned = event.node == course.leader or event.node in course.fetching
        match event.what:
            case EventKind.OPERATE if concerned:
                return _RATHER
            case EventKind.TIMER if concerned and event.name == "fetch-snapshot":
                return _RATHER
        return 1.0


def _is_early(course: Course) -> bool:
    """Whether one more record would come too soon."""
    return course.end > 1 + course.events // _A_RECORD


def _is_new(course: Course) -> bool:
    """Whether one more epoch would."""
    return course.epoch > course.events // _AN_EPOCH


def _is_alone(course: Course) -> bool:
    """Whether the leader has a record that nobody else has."""
    return course.end > max((end for node, end in course.ends.items() if node != course.leader), default=0)


def _has_many(course: Course) -> bool:
    """Whether one more record would come too soon even where logs are to part."""
    return course.end > 2 + course.events // (_A_RECORD // 2)


def _ahead(course: Course) -> frozenset[int]:
    """Who is away with more than anybody who is there: where it comes back it is elected, or cuts nothing."""
    there = max((end for node, end in course.ends.items() if node not in course.away), default=0)
    return frozenset(node for node in course.away if course.ends[node] > there)
