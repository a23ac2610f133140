"""How the model's state is seen as one of ``impl_spec.py``, by which that text is held against ``kip-1023-safe``.

The model has a segment for each leader epoch and first offset; here each such pair is the number of a copy. It has no
metadata log: what it says of segments stands in it in the order of the pairs, first where all are started and then
where they are finished. How far a broker has read in it is tried in several ways, and so is which copy a leader is
about to begin, and where a follower is about to begin that was told what is so now.

Who leads, what is fetched and cut, and high watermarks are given to the running text, as ``fencing`` judges them. So
its steps for those are not asked about; what is, are the decisions of a leader's remote log manager, and of a follower
whose fetch offset is not on its leader.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from ...core.algebra import Algebra, Value, View
from ...explore.simulate import CellMap, Changes, Relation
from .bootstrap import epuo, epuo_is_known
from .impl_state import OFFSET_LIMIT, Begins
from .remote_log import next_upload
from .state import Segment, follows, leads

OF_FENCING: Final = (
    "replace_replica",
    "begin_to_lead",
    "become_follower",
    "settle",
    "give_up_role",
    "restart",
    "append",
    "truncate",
)
"""What ``fencing`` has: the model is a broker's role as soon as it hears of it, and its log is cut by then."""
UNFINISHED: Final = ("give_up_copy", "remove_objects")
"""The model deletes a segment in one step, and what was begun and came to no end stays."""


def running_constants(constants: Mapping[str, int]) -> dict[str, int]:
    """The running text's constants for some of the model: a copy for each segment that the model has."""
    kept = {name: constants[name] for name in ("replicas", "log_size", "max_leader_epoch")}
    return {**kept, "copies": (constants["max_leader_epoch"] + 1) * constants["log_size"]}


def _copies(k: Algebra) -> int:
    return int((k.c.max_leader_epoch + 1) * k.c.log_size)


def _of_partition(k: Algebra, s: View) -> CellMap:
    return {
        "newest_epoch": lambda: s.newest_epoch,
        "elected": lambda: s.epoch_leader[s.newest_epoch],
        "isr": lambda: s.isr,
        "metadata_leader": lambda: k.NONE,
        "retention": lambda: k.c.expires,
    }


def _leader_of(k: Algebra, s: View, follower: Value) -> int | None:
    return next((r for r in range(k.c.replicas) if follows(k, s, r, follower)), None)


def _moved_by(k: Algebra, s: View, follower: Value) -> int | None:
    """The leader that answers a follower's fetch with OFFSET_MOVED_TO_TIERED_STORAGE or OFFSET_OUT_OF_RANGE."""
    leader = _leader_of(k, s, follower)
    return leader if leader is not None and s.leo[follower] < s.local_start[leader] else None


def _of_replicas(k: Algebra, s: View) -> CellMap:
    def first_epoch(r: Value) -> Value:
        if s.log_start[r] < s.leo[r]:
            return s.record_epoch[r, s.log_start[r]]
        return s.leader_epoch[r] if leads(k, s, r) else -1

    def told_start(follower: Value) -> Value:
        leader = _leader_of(k, s, follower)
        return -1 if leader is None else s.log_start[leader]

    def told_local(follower: Value) -> Value:
        leader = _moved_by(k, s, follower)
        return -1 if leader is None else s.local_start[leader]

    def told_epuo(follower: Value) -> Value:
        leader = _moved_by(k, s, follower)
        return -1 if leader is None else int(epuo(s, leader)) if epuo_is_known(k, s, leader) else -1

    return {
        "leader_epoch": lambda r: s.leader_epoch[r],
        "leads": lambda r: int(leads(k, s, r)),
        "settled": lambda r: int(_leader_of(k, s, r) is not None),
        "log_start": lambda r: s.log_start[r],
        "local_start": lambda r: s.local_start[r],
        "leo": lambda r: s.leo[r],
        "hw": lambda r: s.hw[r],
        "rolled": lambda r: s.leo[r],
        "record_epoch": lambda r, o: s.record_epoch[r, o],
        "first_epoch": first_epoch,
        "highest_remote": lambda r: s.highest_remote[r],
        "has_read": lambda _r: OFFSET_LIMIT,
        "flag": lambda _r: k.c.last_tiered_offset,
        "begins": lambda _r: Begins.nowhere,
        "told_start": told_start,
        "told_local": told_local,
        "told_epuo": told_epuo,
    }


def _of_copies(k: Algebra, s: View) -> CellMap:
    number = _copies(k)

    def state(copy: int) -> Value:
        return s.segment_state[divmod(copy, k.c.log_size)]

    def there(copy: int) -> bool:
        return bool(state(copy) != Segment.none)

    def copier(copy: int) -> Value:
        return s.epoch_leader[copy // k.c.log_size] if there(copy) else k.NONE

    def epoch(copy: int, offset: int) -> Value:
        return (
            s.remote_epoch[copy // k.c.log_size, offset] if offset < s.segment_end[divmod(copy, k.c.log_size)] else -1
        )

    return {
        "copier": copier,
        "copy_start": lambda c: c % k.c.log_size if there(c) else -1,
        "copy_end": lambda c: s.segment_end[divmod(c, k.c.log_size)],
        "copy_epoch": epoch,
        "copying": lambda c: int(there(c) and s.leader_epoch[copier(c)] == c // k.c.log_size),
        "begun_in": lambda c: c // k.c.log_size if there(c) else -1,
        "is_done": lambda c: int(state(c) == Segment.copy_finished),
        "deletes": lambda _r, _c: 0,
        "stored": lambda c: int(state(c) in (Segment.copied, Segment.copy_finished)),
        "started_at": lambda c: c if there(c) else -1,
        "finished_at": lambda c: number + c if state(c) == Segment.copy_finished else -1,
        "deleting_at": lambda _c: -1,
        "deleted_at": lambda _c: -1,
    }


def cells(k: Algebra, s: View) -> CellMap:
    """Every variable of the running text, of a state of the model."""
    return {**_of_partition(k, s), **_of_replicas(k, s), **_of_copies(k, s)}


def _reads(k: Algebra, s: View) -> Sequence[Changes]:
    """A broker has read a part of the metadata log: nothing, what is started, or some of what is finished."""
    ends = [0, *range(_copies(k), 2 * _copies(k))]
    return [{f"has_read[{r}]": end} for r in range(k.c.replicas) for end in ends if leads(k, s, r)]


def _begins(k: Algebra, s: View) -> Sequence[Changes]:
    """A follower whose fetch offset is not on its leader is about to begin where it has asked for."""
    found: list[Changes] = []
    for follower in range(k.c.replicas):
        if _moved_by(k, s, follower) is not None:
            jumps = k.c.last_tiered_offset == 1 and s.log_start[follower] == s.leo[follower]
            found.append({f"begins[{follower}]": Begins.at_epuo if jumps else Begins.at_local_start})
    return found


def _begun(k: Algebra, s: View) -> Sequence[Changes]:
    """A leader is about to begin a copy, of whatever it may be."""
    found: list[Changes] = []
    for leader in range(k.c.replicas):
        if not leads(k, s, leader):
            continue
        epoch = s.leader_epoch[leader]
        for start in range(next_upload(k, s, leader), k.c.log_size):
            copy = epoch * k.c.log_size + start
            if s.segment_state[epoch, start] != Segment.none:
                continue
            for end in range(start, k.c.log_size + 1):
                of = {f"copier[{copy}]": leader, f"copy_start[{copy}]": start, f"copy_end[{copy}]": end}
                records = {f"copy_epoch[{copy}][{o}]": s.record_epoch[leader, o] for o in range(end)}
                found.append({**of, **records, f"copying[{copy}]": 1})
    return found


def _views(k: Algebra, s: View) -> Sequence[Changes]:
    return [*_reads(k, s), *_begins(k, s), *_begun(k, s)]


def _comes_to(k: Algebra, s: View) -> Changes:
    """What is asked for is so: a copy that is to be finished is known to be, and one that is to be deleted is gone."""
    changes: dict[str, int] = {}
    for copy in range(k.c.copies):
        if any(s.deletes[r, copy] == 1 for r in range(k.c.replicas)):
            changes |= {f"begun_in[{copy}]": -1, f"is_done[{copy}]": 0, f"stored[{copy}]": 0}
        elif (
            s.is_done[copy] == 1
            and s.leads[s.copier[copy]] == 1
            and copy // k.c.log_size == s.leader_epoch[s.copier[copy]]
        ):
            last = s.copy_end[copy] - 1
            changes[f"highest_remote[{s.copier[copy]}]"] = max(s.highest_remote[s.copier[copy]], last)
    return changes


RELATION: Final = Relation(
    cells,
    _views,
    compared={
        "leader_epoch",
        "leads",
        "log_start",
        "local_start",
        "leo",
        "record_epoch",
        "highest_remote",
        "begun_in",
        "is_done",
        "stored",
    },
    but=(*OF_FENCING, *UNFINISHED),
    comes_to=_comes_to,
)
"""The running text's decisions about a log's remote part, of ``kip-1023-safe`` at constants without switches."""
