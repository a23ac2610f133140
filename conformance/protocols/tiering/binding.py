"""The binding of ``tiering``: every step is a broker's own, at an event at which it may come.

What a broker answers is held against its own state where the answer is sent (``responses.py``): none of these steps is
one that somebody asks for and is refused.
"""

from __future__ import annotations

from typing import Final

from ....model.core.algebra import Algebra, Value, View
from ....model.core.domains import REPLICA
from ....model.protocols.tiering.impl_spec import begins_at_epuo, in_copy, is_same_record, tiered
from ....model.protocols.tiering.impl_state import COPY, GIVEN, NOT_LOOKED, OF_BROKER, OFFSET
from ...lockstep.binding import ActionBinding, Binding, unasked

_AT_FIRST: Final = frozenset(variable for variable in tiered.traced(None).variables)
"""A run begins with brokers that know each other, and may have uploaded something."""


def _newest(k: Algebra, s: View, replica: Value) -> Value:
    return k.all(s.leads[replica] == 1, s.leader_epoch[replica] == s.newest_epoch, s.elected == replica)


def _is_recorded(k: Algebra, s: View, well: Value) -> Value:
    """The metadata log has a leader that is well; that of Kafka's runs never fails."""
    if k.rules.of_kafka:
        return k.all()
    return k.exists(REPLICA, lambda r: k.all(r == s.metadata_leader, k.member(r, well)))


def _waits(k: Algebra, s: View, well: Value, leader: Value, follower: Value) -> Value:
    """A follower has to begin after what is in remote storage, and cannot hear what that is, or nobody can say.

    The latter where an unclean election has brought a log start back that lies below that of who has uploaded it: what
    was uploaded along with a segment says nothing of what was deleted before. Of an EPUO at the end of its log a leader
    of Kafka's says that it is unknown, until there is a record (TK13), and behind one at the log start nobody finds a
    segment (TK16). What is in remote storage nowhere (TK1) has no leader epoch there.
    """

    def says_all(copy: Value) -> Value:
        def known(offset: Value) -> Value:
            asked = k.all(s.log_start[leader] <= offset, offset < s.copy_end[copy])
            return k.implies(asked, s.copy_epoch[copy, offset] != -1)

        there = k.all(s.finished_at[copy] != -1, s.deleted_at[copy] == -1, s.local_start[leader] <= s.copy_end[copy])
        return k.implies(there, k.forall(OFFSET, known))

    can_hear = k.all(_is_recorded(k, s, well), k.forall(COPY, says_all))
    if k.rules.of_kafka:
        at_end = s.leo[leader] <= s.highest_remote[leader] + 1
        at_start = s.highest_remote[leader] < s.log_start[leader]
        can_hear = k.all(can_hear, k.negate(k.all(begins_at_epuo(k, s, follower), k.any(at_end, at_start))))
    if k.rules.keeps_highest:
        can_hear = k.all(can_hear, _serves_all(k, s, leader))
    return k.all(k.negate(can_hear), s.leo[follower] < s.local_start[leader])


def _serves_all(k: Algebra, s: View, leader: Value) -> Value:
    """Each offset from a log start to the local one is in a copy that nobody deletes."""

    def served(offset: Value) -> Value:
        def has(copy: Value) -> Value:
            there = k.all(s.finished_at[copy] != -1, s.deleting_at[copy] == -1, s.stored[copy] == 1)
            return k.all(there, in_copy(k, s, copy, offset), is_same_record(k, s, copy, leader, offset))

        below = k.all(s.log_start[leader] <= offset, offset < s.local_start[leader])
        return k.implies(below, k.exists(COPY, has))

    return k.forall(OFFSET, served)


def _partition_is_led(k: Algebra, s: View, well: Value) -> Value:
    """A leader leads, unless the last of the ISR are not well, and whoever is well is in its ISR, or waits."""

    def right(leader: Value) -> Value:
        return k.all(k.member(leader, well), _newest(k, s, leader))

    def waits(follower: Value) -> Value:
        return k.exists(REPLICA, lambda r: k.all(_led(k, s, well, r), _waits(k, s, well, r, follower)))

    anybody = k.exists(REPLICA, lambda r: k.all(k.member(r, s.isr), k.member(r, well)))
    whole = k.forall(REPLICA, lambda r: k.implies(k.member(r, well), k.any(k.member(r, s.isr), waits(r))))
    return k.implies(anybody, k.all(k.exists(REPLICA, right), whole))


def _led(k: Algebra, s: View, well: Value, leader: Value) -> Value:
    return k.all(k.member(leader, well), _newest(k, s, leader))


def _followers_have_all(k: Algebra, s: View, well: Value) -> Value:
    """A follower that is well has its leader's log, from where it says that it begins or later, or it waits."""

    def same(leader: Value, follower: Value) -> Value:
        ends = k.all(s.leo[leader] == s.leo[follower], s.hw[follower] == s.hw[leader], s.hw[leader] == s.leo[leader])
        starts = s.log_start[leader] <= s.log_start[follower]
        follows = k.all(_led(k, s, well, leader), k.member(follower, well))
        return k.implies(follows, k.any(k.all(ends, starts), _waits(k, s, well, leader, follower)))

    return k.forall(REPLICA, lambda a: k.forall(REPLICA, lambda b: same(a, b)))


def _all_is_uploaded(k: Algebra, s: View, well: Value) -> Value:
    """A leader that is well has uploaded all its segments but the active one, and nothing of it is left undone.

    It can do so while the metadata log has a leader that is well. Nothing below a log start is a segment of the log any
    more. Kafka leaves what came to no end (TI8), and comes to a halt before what has no leader epoch (TK12).
    """

    def right(leader: Value) -> Value:
        looked = s.highest_remote[leader] != NOT_LOOKED
        first = k.max(s.highest_remote[leader] + 1, s.log_start[leader])
        all_is = s.rolled[leader] <= first
        if k.rules.of_kafka:
            all_is = k.any(all_is, s.record_epoch[leader, first] == -1)
        return k.implies(_led(k, s, well, leader), k.all(looked, all_is))

    def over(copy: Value) -> Value:
        begun, finished = s.started_at[copy] != -1, k.all(s.finished_at[copy] != -1, s.deleting_at[copy] == -1)
        return k.implies(begun, k.any(k.rules.of_kafka, finished, s.deleted_at[copy] != -1))

    somebody = k.exists(REPLICA, lambda r: _led(k, s, well, r))
    return k.implies(
        _is_recorded(k, s, well), k.all(k.forall(REPLICA, right), k.implies(somebody, k.forall(COPY, over)))
    )


def _nothing_useless_is_left(k: Algebra, s: View, well: Value) -> Value:
    """A leader that is well has deleted each copy below its log start, or of epochs before all of its log's.

    It can do so while the metadata log has a leader that is well. Kafka finds what is below a log start by the epochs
    of the log, of which the first is the only one that can be there (TK14), and forgets a copy when another one comes
    to begin where it does (TK15).
    """

    def useless(leader: Value, copy: Value) -> Value:
        def is_older(offset: Value) -> Value:
            return k.implies(in_copy(k, s, copy, offset), s.copy_epoch[copy, offset] < s.first_epoch[leader])

        def is_first(offset: Value) -> Value:
            return k.all(in_copy(k, s, copy, offset), s.copy_epoch[copy, offset] == s.first_epoch[leader])

        def is_instead(other: Value) -> Value:
            later = s.finished_at[copy] < s.finished_at[other]
            return k.all(later, s.copy_start[other] == s.copy_start[copy])

        below = s.copy_end[copy] <= s.log_start[leader]
        if not k.rules.of_kafka:
            return k.any(below, k.forall(OFFSET, is_older))
        found = k.any(k.all(below, k.exists(OFFSET, is_first)), k.forall(OFFSET, is_older))
        return k.all(found, k.negate(k.exists(COPY, is_instead)))

    def right(leader: Value, copy: Value) -> Value:
        there = k.all(s.finished_at[copy] != -1, s.deleted_at[copy] == -1)
        return k.implies(k.all(_led(k, s, well, leader), there), k.negate(useless(leader, copy)))

    return k.implies(_is_recorded(k, s, well), k.forall(REPLICA, lambda r: k.forall(COPY, lambda c: right(r, c))))


def _leader_serves_all(k: Algebra, s: View, well: Value) -> Value:
    """A leader that is well has each offset from its log start on locally or in a copy that nobody deletes."""
    if k.rules.keeps_highest:
        return k.all()  # as ``leader_can_serve``
    return k.forall(REPLICA, lambda r: k.implies(_led(k, s, well, r), _serves_all(k, s, r)))


def _guards() -> dict[str, set[str]]:
    """By action, the guards that it has in any variant."""
    found: dict[str, set[str]] = {}
    for variant in tiered.variants:
        for action in tiered.traced(variant).actions:
            found.setdefault(action.name, set()).update(name for name, _ in action.guards)
    return found


TIERING: Final = Binding(
    "tiering",
    {
        action: ActionBinding({guard: unasked() for guard in sorted(guards)}, named=True)
        for action, guards in _guards().items()
    },
    parties={variant: dict.fromkeys(OF_BROKER, lambda _: None) for variant in tiered.variants},
    inputs=_AT_FIRST | GIVEN,
    settles=(_partition_is_led, _followers_have_all, _all_is_uploaded, _nothing_useless_is_left, _leader_serves_all),
    asks=frozenset({"produce"}),
    # What is asked, and tried, again and again moves nothing.
    restless=frozenset({"told_start", "told_local", "told_epuo", "begins"}),
    # Of a follower that is moved to a tiered offset nothing is seen before it has it: a fetch refused, offsets asked
    # for, the metadata log read, a checkpoint fetched from the store, each with a pause where it comes in vain.
    quiet=20,
)
"""The steps are named by the events at which they may come."""
