"""What a message of Kafka's loggers says of a partition, in the words of Apache Kafka 4.4.0."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from .entries import (
    Appends,
    Asks,
    Decides,
    Follows,
    Hears,
    Leads,
    Learns,
    Loads,
    Raises,
    Restarts,
    Said,
    Sets,
    Truncates,
)

_LARGEST: Final = 2**63 - 1
_NAME = r"([A-Za-z0-9._-]{1,249}-\d{1,10})"
_OFFSET = r"(-?\d{1,19})"
_AT = rf"\[Partition {_NAME} broker=\d+\]"
_OF = rf"\[UnifiedLog partition={_NAME}, dir=.{{0,4096}}?\]"


def _set(text: str) -> frozenset[int]:
    return frozenset(int(each) for each in re.findall(r"\d+", text))


def _number(text: str) -> int:
    found = int(text)
    if found > _LARGEST:
        raise ValueError(f"{text} is no offset of Kafka's")
    return found


def _epoch(text: str) -> int:
    found = int(text)
    if not 0 <= found < 2**31:
        raise ValueError(f"{text} is no epoch of Kafka's")
    return found


_STATE = (
    (
        re.compile(
            rf"\[Broker id=\d+\] Leader {_NAME} (?:with topic id \S+ )?starts at leader epoch {_OFFSET}"
            rf" from offset {_OFFSET} with partition epoch \d+, high watermark {_OFFSET}, ISR \[([\d,]*)\]"
        ),
        lambda epoch, end, hw, isr: Leads(_epoch(epoch), _number(end), _number(hw), _set(isr)),
    ),
    (
        re.compile(
            rf"\[Broker id=\d+\] Follower {_NAME} (?:with topic id \S+ )?starts at leader epoch {_OFFSET}"
            rf" from offset {_OFFSET} with partition epoch \d+ and high watermark {_OFFSET}\."
            r" Current leader is (-?\d{1,10})\."
        ),
        lambda epoch, end, hw, leader: Follows(_epoch(epoch), _number(end), _number(hw), int(leader)),
    ),
    (
        re.compile(
            rf"\[Broker id=\d+\] Skipped the become-leader state change for {_NAME} .{{1,4000}}? isr=\[([\d, ]*)\],"
        ),
        lambda isr: Learns(_set(isr)),
    ),
)
_PARTITION = (
    (
        re.compile(rf"{_AT} Log loaded for partition \S+ with initial high watermark {_OFFSET}"),
        lambda hw: Loads(_number(hw)),
    ),
    (
        re.compile(rf"{_AT} High watermark updated from \(offset=-?\d+.{{0,80}}? to \(offset={_OFFSET}"),
        lambda hw: Raises(_number(hw)),
    ),
    (
        re.compile(rf"{_AT} Recorded replica (\d{{1,10}}) log end offset \(LEO\) position {_OFFSET} "),
        lambda replica, end: Hears(int(replica), _number(end)),
    ),
    (
        re.compile(rf"{_AT} Submitting ISR state change .{{1,400}}?isrWithBrokerEpoch=\[(.{{0,4000}}?)\], l"),
        lambda isr: Asks(_set(" ".join(re.findall(r"brokerId=(\d+)", isr)))),
    ),
    (
        re.compile(rf"{_AT} ISR updated to ([\d,]*) "),
        lambda isr: Learns(_set(isr)),
    ),
)
_LOG = (
    (
        re.compile(
            rf"{_OF} Appended message set with last offset: -?\d+,"
            rf" first offset: -?\d+, next offset: {_OFFSET},"
        ),
        lambda end: Appends(_number(end)),
    ),
    (
        re.compile(rf"{_OF} Truncating to offset {_OFFSET}$"),
        lambda end: Truncates(_number(end)),
    ),
    (
        re.compile(rf"{_OF} Setting high watermark \(offset={_OFFSET},"),
        lambda hw: Sets(_number(hw)),
    ),
    (
        re.compile(rf"{_OF} Truncate and start at offset "),
        lambda: Restarts(),
    ),
)
_CREATED = re.compile(
    rf"\[QuorumController id=\d+\] Replayed PartitionRecord for new partition {_NAME} with .{{0,80}}?"
    r"replicas=\[([\d, ]*)\], .{0,8000}? isr=\[([\d, ]*)\], .{0,8000}? leader=(-?\d+), .{0,80}?leaderEpoch=(\d+),"
    r" partitionEpoch=(\d+)"
)
_CHANGED = re.compile(rf"\[QuorumController id=\d+\] partition change for {_NAME} with topic ID \S+: (.*)")
_ALTERED = re.compile(rf"\[QuorumController id=\d+\] Node \d+ has altered ISR for {_NAME}\.")
_BEFORE_AFTER = re.compile(r"(\w+): (-?\d+|\[[^\]]*\]|\w+) -> (-?\d+|\[[^\]]*\]|\w+)")

_BY_LOGGER: Final = {"logger": _STATE, "Partition": _PARTITION, "UnifiedLog": _LOG}
"""By the last part of a logger's name (``state.change.logger``); the controller's are told apart in ``_decided``."""


def said_by(logger: str, message: str) -> tuple[str, Said] | None:
    """The partition, and what is said of it; None for nothing. Raises ValueError for numbers that are none of Kafka's.

    ``logger``: the last part of its name.
    """
    words: Sequence[tuple[re.Pattern[str], Callable[..., Said]]] = _BY_LOGGER.get(logger, ())
    for pattern, make in words:
        found = pattern.match(message)
        if found is not None:
            return found[1], make(*found.groups()[1:])
    return None


def decided(message: str, altered: set[str]) -> tuple[str, Said] | None:
    """The same of a controller's decisions. Whose ISR a leader has had altered is told one line before: ``altered``."""
    created = _CREATED.match(message)
    if created is not None:
        name, replicas, isr, leader, epoch, version = created.groups()
        said = Decides(_epoch(version), int(leader), _epoch(epoch), _set(isr), _set(replicas), created=True)
        return name, said
    asked = _ALTERED.match(message)
    if asked is not None:
        altered.add(asked[1])
        return None
    changed = _CHANGED.match(message)
    if changed is None:
        return None
    name = changed[1]
    fields = {each[0]: (each[1], each[2]) for each in _BEFORE_AFTER.findall(changed[2])}
    if "partitionEpoch" not in fields:
        raise ValueError(f"a change of {name} names no partition epoch")
    replicas = fields.get("replicas")
    moved = replicas is not None and _set(replicas[0]) != _set(replicas[1])
    said = Decides(
        _epoch(fields["partitionEpoch"][1]),
        int(fields["leader"][1]) if "leader" in fields else None,
        _epoch(fields["leaderEpoch"][1]) if "leaderEpoch" in fields else None,
        _set(fields["isr"][1]) if "isr" in fields else None,
        _set(replicas[1]) if replicas is not None and moved else None,
        altered=name in altered,
    )
    altered.discard(name)
    return name, said
