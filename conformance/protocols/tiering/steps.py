"""By what is seen of brokers before and after an event: the steps of the model that may lead there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from ....traces.format import Value
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event

Cells = Mapping[str, Value]

_BEGINS: Final = (
    "truncate_fully",
    "start_at_local_start",
    "start_at_log_start",
    "build_to_epuo",
    "build_to_local_start",
)
_LOOKS: Final = ("find_highest_remote_offset", "note_copied")


def _number(value: Value | None) -> int:
    assert isinstance(value, int)
    return value


def steps_of_copies(before: Cells, now: Cells, copies: int) -> Iterator[ModelStep]:
    """What is in the store."""
    for number in range(copies):
        if before.get(f"stored[{number}]") != now[f"stored[{number}]"]:
            yield "copy_segment", {"copy": number}
            yield "remove_objects", {"copy": number}


def steps_before(node: int) -> Iterator[ModelStep]:
    """What a leader may have done before it decided something, and lost power."""
    yield from ((name, {"leader": node}) for name in ("expire", *_LOOKS))


def steps_amid(node: int, before: Cells, log_start: int, local_start: int) -> Iterator[ModelStep]:
    """What a broker did as its power was lost, where its log begins later on its disk for that.

    Once it is up again, it may not have read yet what it went by.
    """
    replica, leader, at = {"replica": node}, {"leader": node}, f"[{node}]"
    if log_start > _number(before.get(f"log_start{at}", log_start)):
        yield "follow_log_start", {**replica, "start": log_start}
        yield "expire", leader
    if local_start > _number(before.get(f"local_start{at}", local_start)):
        yield "delete_local", {**leader, "end": local_start}


def steps_of_broker(
    node: int, before: Cells, now: Cells, log_size: int, event: Event, *, started: bool
) -> Iterator[ModelStep]:
    """What a broker has done; one that has just ``started``, before it lost power, too."""
    replica, leader, at = {"replica": node}, {"leader": node}, f"[{node}]"

    def changed(*names: str) -> bool:
        return started or any(before.get(f"{name}{at}") != now[f"{name}{at}"] for name in names)

    if started:
        yield "restart", replica
        yield "replace_replica", replica
    epoch = _number(now[f"leader_epoch{at}"])
    if changed("leads", "settled", "leader_epoch", "highest_remote") and epoch != -1:
        yield "begin_to_lead", {**replica, "epoch": epoch}
        yield "become_follower", {**replica, "epoch": epoch}
        yield "settle", replica
        yield "give_up_role", replica
    if now[f"leads{at}"]:
        yield from ((name, leader) for name in _LOOKS)
    if changed("begins"):
        yield "stop_building", {"follower": node}
    old = [_number(before.get(f"record_epoch{at}[{offset}]", -1)) for offset in range(log_size)]
    new = [_number(now[f"record_epoch{at}[{offset}]"]) for offset in range(log_size)]
    if changed("log_start", "local_start", "leo") or old != new:
        yield from _of_log(node, old, new, before, now, event)


def _of_log(node: int, old: list[int], new: list[int], before: Cells, now: Cells, event: Event) -> Iterator[ModelStep]:
    replica, leader, at = {"replica": node}, {"leader": node}, f"[{node}]"
    for offset, (each, following) in enumerate(zip(new, [*new[1:], -1], strict=True)):
        if each not in (-1, following):
            yield "append", {**replica, "epoch": each, "end": offset + 1}
    start = _number(now[f"log_start{at}"])
    parts = [offset for offset, (a, b) in enumerate(zip(old, new, strict=True)) if a not in (b, -1)]
    # What the log's new start has left behind is gone too, and says nothing of where it was cut.
    cut = [offset for offset in parts if offset >= start]
    begin = _number(now[f"local_start{at}"])
    # One that begins earlier now was cut there, and has got records since.
    earlier = [begin] if begin < _number(before.get(f"local_start{at}", 0)) else []
    ends = dict.fromkeys([_number(now[f"leo{at}"]), *parts[:1], *cut[:1], *earlier])
    yield from (("truncate", {**replica, "end": end}) for end in ends)
    yield "follow_log_start", {**replica, "start": start}
    yield "delete_local", {**leader, "end": begin}
    yield "expire", leader
    if event.name == "delete-records":
        yield "delete_records", {**leader, "start": start}
    yield from ((name, {"follower": node}) for name in _BEGINS)
