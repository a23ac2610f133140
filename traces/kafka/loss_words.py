"""The sentence for a proven loss of committed records, and for the same loss as several replicas show it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..text import brokers_named, counted
from .divergence import range_words

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def loss_words(loss: Mapping[str, Any], parts: Sequence[Mapping[str, Any]] = ()) -> str:
    """Return the sentence for one loss.

    Args:
        loss: The ``data`` of a violated result of the check.
        parts: Those of other replicas whose lost records ``loss`` includes.
    """
    alike = [each for each in parts if _cut(each) == _cut(loss)]
    holders = [str(each["follower"]) for each in (loss, *alike)]
    core = _core(loss, holders)
    because = loss["because"]
    message = f"{because}; {core}" if loss["unclean_election"] is not None else f"{core}: {because}"
    message += f"; committed and lost: {_offsets(loss)}"
    rest: dict[str, list[str]] = {}
    for each in parts:
        if each not in alike:
            rest.setdefault(_offsets(each), []).append(str(each["follower"]))
    for offsets, names in rest.items():
        message += f"; {brokers_named(names)} {'has' if len(names) == 1 else 'have'} {offsets} of them"
    return message


def _core(loss: Mapping[str, Any], holders: Sequence[str]) -> str:
    """``broker 1 truncates to 2 and loses 8 records``; a broker that is no replica any more truncates nothing."""
    who, one = brokers_named(holders), len(holders) == 1
    truncated = loss["records_truncated"]
    if not loss["assigned"]:
        what = counted(loss["records_lost"], "record")
        be, have = ("is", "has") if one else ("are", "have")
        return f"{who} {be} no replica any more, and {have} {what} that {loss['leader']} began without"
    if not truncated:
        return f"{loss['leader']} led on without records of {who}"
    what = counted(truncated, "record")
    if one:
        return f"{who} truncates to {loss['truncate_to']} and loses {what}"
    return f"{who} truncate to {loss['truncate_to']} and lose {what} each"


def _cut(loss: Mapping[str, Any]) -> tuple[object, ...]:
    return loss["offsets"], loss["truncate_to"], loss["records_truncated"], loss["assigned"]


def _offsets(loss: Mapping[str, Any]) -> str:
    return range_words(tuple((first, last) for first, last in loss["offsets"]))
