"""A hand-written breadth-first search of kip-320: what a Python programmer would write for this one model.

The yardstick of ``benchmarks/explore.py``. States are tuples: the two counters, a tuple of (LEO-long) logs of
(id, epoch) pairs, then high watermarks, leader epochs, leaders and ISRs (bit masks) by replica, the quorum's state,
and the requests by epoch. It checks the same four invariants.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

State = tuple[Any, ...]


def replaced(items: tuple[Any, ...], index: int, value: Any) -> tuple[Any, ...]:
    """The tuple with one item changed."""
    return (*items[:index], value, *items[index + 1 :])


def successors(s: State, replicas: range, log_size: int, max_records: int, max_epoch: int) -> Iterator[State]:
    """All next states, with repetitions."""
    next_id, next_epoch, logs, hw, epoch, leader, isr, q_epoch, q_leader, q_isr, requests = s
    if next_epoch <= max_epoch:
        for r in replicas:
            if q_isr >> r & 1 and q_leader != r:
                sent = (*requests, (r, q_isr))
                yield (next_id, next_epoch + 1, logs, hw, epoch, leader, isr, next_epoch, r, q_isr, sent)
            if q_leader == r or q_isr >> r & 1:
                new_leader = -1 if q_leader == r else q_leader
                new_isr = q_isr if q_leader == r and q_isr == 1 << r else q_isr & ~(1 << r)
                sent = (*requests, (new_leader, new_isr))
                yield (next_id, next_epoch + 1, logs, hw, epoch, leader, isr, next_epoch, new_leader, new_isr, sent)
    for e, (named, its_isr) in enumerate(requests):
        if named < 0:
            continue
        for r in replicas:
            if epoch[r] >= e:
                continue
            if r == named:
                yield (
                    next_id,
                    next_epoch,
                    logs,
                    hw,
                    replaced(epoch, r, e),
                    replaced(leader, r, r),
                    replaced(isr, r, its_isr),
                    q_epoch,
                    q_leader,
                    q_isr,
                    requests,
                )
            elif leader[named] == named and epoch[named] == e:
                end = 0
                for o in range(min(len(logs[r]), len(logs[named])), 0, -1):
                    if logs[r][o - 1] == logs[named][o - 1]:
                        end = o
                        break
                yield (
                    next_id,
                    next_epoch,
                    replaced(logs, r, logs[r][:end]),
                    replaced(hw, r, min(end, hw[r])),
                    replaced(epoch, r, e),
                    replaced(leader, r, named),
                    replaced(isr, r, its_isr),
                    q_epoch,
                    q_leader,
                    q_isr,
                    requests,
                )
    for a in replicas:
        if leader[a] != a:
            continue
        log = logs[a]
        end = len(log)
        if next_id < max_records and end < log_size:
            longer = replaced(logs, a, (*log, (next_id, epoch[a])))
            yield (next_id + 1, next_epoch, longer, hw, epoch, leader, isr, q_epoch, q_leader, q_isr, requests)
        mark = hw[a]
        if mark < end and all(
            leader[m] == a and epoch[m] == epoch[a] and mark < len(logs[m]) for m in replicas if isr[a] >> m & 1
        ):
            higher = replaced(hw, a, mark + 1)
            yield (next_id, next_epoch, logs, higher, epoch, leader, isr, q_epoch, q_leader, q_isr, requests)
        is_true = q_leader == a and epoch[a] == q_epoch
        for f in replicas:
            follows = leader[f] == a and epoch[f] == epoch[a]
            if follows and len(logs[f]) < end:
                size = len(logs[f])
                yield (
                    next_id,
                    next_epoch,
                    replaced(logs, f, (*logs[f], log[size])),
                    replaced(hw, f, min(mark, size + 1)),
                    epoch,
                    leader,
                    isr,
                    q_epoch,
                    q_leader,
                    q_isr,
                    requests,
                )
            if not is_true:
                continue
            if f != a and isr[a] >> f & 1 and not (follows and end <= len(logs[f])):
                less = isr[a] & ~(1 << f)
                changed = replaced(isr, a, less)
                yield (next_id, next_epoch, logs, hw, epoch, leader, changed, q_epoch, q_leader, less, requests)
            reached = mark == end or (mark < end and log[mark][1] == epoch[a])
            if not isr[a] >> f & 1 and follows and mark <= len(logs[f]) and reached:
                more = isr[a] | 1 << f
                changed = replaced(isr, a, more)
                yield (next_id, next_epoch, logs, hw, epoch, leader, changed, q_epoch, q_leader, more, requests)


def holds(s: State, replicas: range, log_size: int, max_records: int, max_epoch: int) -> bool:
    """``type_ok``, ``weak_isr``, ``strong_isr`` and ``leader_in_isr``."""
    next_id, next_epoch, logs, hw, epoch, leader, isr, q_epoch, q_leader, q_isr, _ = s
    if not (next_id <= max_records and next_epoch <= max_epoch + 1 and -1 <= q_epoch <= max_epoch):
        return False
    if q_leader != -1 and not q_isr >> q_leader & 1:
        return False
    for a in replicas:
        if len(logs[a]) > log_size or not (0 <= hw[a] <= log_size and -1 <= epoch[a] <= max_epoch):
            return False
        if leader[a] == a and hw[a]:
            committed = logs[a][: hw[a]]
            if len(committed) < hw[a]:
                return False
            for r in replicas:
                if (isr[a] | q_isr) >> r & 1 and logs[r][: hw[a]] != committed:
                    return False
    return True


def search(replicas: int, log_size: int, max_records: int, max_leader_epoch: int) -> tuple[int, int]:
    """Distinct states and depth. Raises AssertionError where an invariant breaks."""
    every = range(replicas)
    nobody, nothing = (-1,) * replicas, (0,) * replicas
    initial: State = (0, 0, ((),) * replicas, nothing, nobody, nobody, nothing, -1, -1, (1 << replicas) - 1, ())
    seen: dict[State, State | None] = {initial: None}
    level, depth = [initial], 0
    while level:
        depth += 1
        following = []
        for state in level:
            assert holds(state, every, log_size, max_records, max_leader_epoch), state
            for after in successors(state, every, log_size, max_records, max_leader_epoch):
                if after not in seen:
                    seen[after] = state
                    following.append(after)
        level = following
    return len(seen), depth
