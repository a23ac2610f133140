"""What ``compaction`` promises in the end, and under which fairness.

Nobody needs to write or to be elected, and nothing obliges an operator. A segment is rolled in the end
(``segment.ms``), or the active one would never be cleaned. No fairness is asked of tombstones: with the mended rules
one waits for the last record, where that is one which it beats.
"""

from __future__ import annotations

from ...core.algebra import Algebra, Value, View
from ...core.domains import REPLICA
from ...core.protocol import Fair, Form
from ..logs import OFFSET
from .state import compaction, follows, holds, key_at

compaction.assume_fair(
    "fair-cleaners",
    (
        Fair("roll_segment", per=("replica",)),
        Fair("remove_record", per=("replica",)),
        Fair("consumer_fetch"),
    ),
    "each replica rolls its active segment and removes what is beaten, and the consumer reads on",
)


@compaction.eventually(Form.LEADS_TO, replica=REPLICA, one=OFFSET, other=OFFSET)
def duplicate_goes(k: Algebra, s: View, replica: Value, one: Value, other: Value) -> tuple[Value, Value]:
    """Of two committed records of one key a replica has but one in the end, unless one is the last of its log."""

    def both() -> Value:
        same = key_at(s, replica, one) == key_at(s, replica, other)
        there = k.all(holds(k, s, replica, one), holds(k, s, replica, other))
        return k.all(one != other, follows(k, s, replica), there, same)

    inside = k.all(one + 1 < s.leo[replica], other + 1 < s.leo[replica])
    return k.all(both(), inside, one < s.hw, other < s.hw), k.negate(both())


@compaction.eventually(Form.LEADS_TO, offset=OFFSET)
def consumer_passes(k: Algebra, s: View, offset: Value) -> tuple[Value, Value]:
    """The consumer comes past each committed record that the leader has, or the leader has it no longer."""
    there = k.all(k.c.consumers == 1, s.leader != k.NONE, offset < s.hw, holds(k, s, s.leader, offset))
    return there, k.any(offset < s.position, k.negate(there))
