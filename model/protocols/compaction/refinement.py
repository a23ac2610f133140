"""How the model's state is seen as one of ``impl_spec.py``, by which that text is held against ``empty-batch``.

``empty-batch`` is ``kip-280-safe`` where an empty batch takes the last record's offset up, as brokers have it. Its
brokers all know the one high watermark; running ones each have their own, which is tried in several ways. It has no
clock: of a tombstone the delete horizon is over as soon as it is set, and it is set when it is first cleaned, or by a
pass that the power cut off before it wrote its checkpoint. What a pass of a cleaner has done is tried in each way in
which it may be: any records that are gone, and any end.

Who leads, how far logs go and what is committed is given to the running text, as ``fencing`` judges it. What is asked
about are the cleaner, producers, followers, the operator and the consumer. Where a tombstone goes before all had it, or
what it beats comes later, the running text says so (``late``) and promises nothing of the key from there on; the model
has a guard that waits, so such steps have no counterpart and are not asked about. Nor are those after which a log
has two records of a key below its checkpoint: that is a promise of the running text, and a guard of the model.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Final

from ...core.algebra import Algebra, Value, View
from ...explore.simulate import CellMap, Changes, Relation
from .impl_spec import survivor_is_alone
from .state import follows, holds

VARIANT: Final = "empty-batch"
"""The variant that running brokers are held against."""
NOT_ASKED: Final = ("restart", "consumer_start_over")
"""A process that knows of no leader is one that has not heard of it; who starts over, X4 in DEVIATIONS."""


def running_constants(constants: Mapping[str, int]) -> dict[str, int]:
    """The running text's constants for those of the model. There is some value of the header."""
    names = ("replicas", "log_size", "keys", "timestamps", "header_values", "max_leader_epoch")
    return {name: max(1, constants[name]) if name == "header_values" else constants[name] for name in names}


def _next_for_consumer(k: Algebra, s: View, leader: int) -> Value:
    """What the consumer is given next, at or after its position; what it comes past without a record counts as read."""
    if leader == k.NONE:
        return s.position
    offsets = range(int(s.position), k.c.log_size)
    return next((o for o in offsets if holds(k, s, leader, o)), max(int(s.position), int(s.leo[leader])))


def _position(k: Algebra, s: View) -> Value:
    return _next_for_consumer(k, s, int(s.leader))


def cells(k: Algebra, s: View) -> CellMap:
    """Every variable of the running text, of a state of the model."""

    def tombstone(replica: Value, offset: Value) -> bool:
        return bool(holds(k, s, replica, offset) and s.record_tombstone[s.record_epoch[replica, offset], offset] == 1)

    def has_joined(replica: Value) -> bool:
        return bool(follows(k, s, replica))

    return {
        "leader": lambda: s.leader,
        "leader_epoch": lambda: s.leader_epoch,
        "hw": lambda: s.hw,
        "leads": lambda r: int(s.leader == r),
        "joined": lambda r: s.joined[r] if has_joined(r) else -1,
        "own_hw": lambda r: s.hw if has_joined(r) else 0,
        "leo": lambda r: s.leo[r],
        "record_epoch": lambda r, o: s.record_epoch[r, o] if o < s.leo[r] else -1,
        "active": lambda r: s.active[r],
        "checkpoint": lambda r: s.checkpoint[r],
        "horizon": lambda r, o: 0 if tombstone(r, o) and o < s.checkpoint[r] else -1,
        "goes": lambda _r, _o: 0,
        "marks": lambda _r, _o: 0,
        "reached": lambda r: s.checkpoint[r],
        "cleaned_at": lambda _r: 0,
        "retention": lambda: 0,
        "eager": lambda: 1,
        "rolls": lambda: 1,
        "record_key": lambda e, o: s.record_key[e, o],
        "record_tombstone": lambda e, o: s.record_tombstone[e, o],
        "record_timestamp": lambda e, o: s.record_timestamp[e, o],
        "record_header": lambda e, o: s.record_header[e, o],
        "record_earlier_header": lambda e, o: s.record_earlier_header[e, o],
        "committed": lambda o: s.committed[o] if o < s.hw else -1,
        "topic_strategy": lambda: s.topic_strategy,
        "broker_strategy": lambda r: s.broker_strategy[r],
        "since": lambda: s.since,
        "deleted_version": lambda key: s.deleted_version[key],
        "dropped": lambda _key: 0,
        "late": lambda _key: 0,
        "unsure": lambda _key: 0,
        "position": lambda: _position(k, s),
        "table": lambda key: s.table[key],
    }


def _lagging(k: Algebra, s: View) -> list[Changes]:
    """A broker has not heard yet how far the log is committed, and the consumer has not come past what is not there."""
    found: list[Changes] = [
        {f"own_hw[{r}]": end} for r in range(k.c.replicas) if follows(k, s, r) for end in range(int(s.hw))
    ]
    if _position(k, s) != s.position:
        found.append({"position": int(s.position)})
    return found


def _passes(k: Algebra, s: View) -> list[Changes]:
    """What a cleaner may have done: any records that are gone, whatever it says of how far it is."""
    found: list[Changes] = []
    for r in range(k.c.replicas):
        held = [o for o in range(k.c.log_size) if holds(k, s, r, o)]
        horizons: list[Changes] = [{}]
        marked = {f"horizon[{r}][{o}]": 0 for o in held if s.record_tombstone[s.record_epoch[r, o], o] == 1}
        horizons += [marked] * bool(marked)
        for gone in product((0, 1), repeat=len(held)):
            goes = {f"goes[{r}][{o}]": flag for o, flag in zip(held, gone, strict=True)}
            for end in range(int(s.checkpoint[r]), int(s.leo[r]) + 1):
                if not any(gone) and end == s.checkpoint[r]:
                    continue
                found += [{**goes, f"reached[{r}]": end, **horizon} for horizon in horizons]
    return found


def _views(k: Algebra, s: View) -> Sequence[Changes]:
    return [*_lagging(k, s), *_passes(k, s)]


def _comes_to(k: Algebra, s: View) -> Changes:
    """Who has come past what is not there has read as far as the next record."""
    return {"position": int(_position(k, s))}


def _is_no_record(k: Algebra, after: View, epoch: int, offset: int) -> bool:
    """The model has no such record: of a header that constants leave out, or an occurrence before none."""
    header, earlier = after.record_header[epoch, offset], after.record_earlier_header[epoch, offset]
    repeated = earlier != -1 and (header == -1 or k.c.repeated_headers == 0)
    return bool(repeated or (header != -1 and k.c.header_values == 0))


def _excused(k: Algebra, s: View, after: View) -> bool:
    """Of a key nothing is promised from here on, or a promise is broken, or a constant ends the model."""
    written = product(range(k.c.max_leader_epoch + 1), range(k.c.log_size))
    return (
        any(after.late[key] == 1 for key in range(k.c.keys))
        or (s.changes == k.c.max_changes and after.topic_strategy != s.topic_strategy)
        or (k.c.consumers == 0 and int(after.position) not in (int(s.position), int(_position(k, s))))
        or any(_is_no_record(k, after, epoch, offset) for epoch, offset in written)
        or not survivor_is_alone(k, after)
    )


RELATION: Final = Relation(
    cells,
    _views,
    compared={
        "leader",
        "leader_epoch",
        "hw",
        "active",
        "leo",
        "record_epoch",
        "checkpoint",
        "record_key",
        "record_tombstone",
        "record_timestamp",
        "record_header",
        "record_earlier_header",
        "topic_strategy",
        "since",
        "deleted_version",
        "position",
        "table",
    },
    but=NOT_ASKED,
    comes_to=_comes_to,
    excused=_excused,
    path=3,
)
"""Of a state of ``empty-batch`` as one of ``brokers``. A pass of a cleaner is as many steps as it does things."""
