"""The order of a broker's lines about one partition that two of its files hold within one millisecond.

Kafka's own configuration writes roles to ``state-change.log`` and all else to ``server.log``. A line that starts a role
reports the log end and the high watermark at that moment, which mostly tells what came before it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

from .entries import Appends, Asks, Entry, Follows, Hears, Leads, Learns, Loads, Raises, Sets, Truncates


def order_ties(entries: Sequence[Entry]) -> tuple[list[Entry], int | None]:
    """Order the entries, and return the time from which the order is unknown, if any.

    Args:
        entries: Of one broker and partition, by time; those of one file in the order of its lines.
    """
    ordered: list[Entry] = []
    leads = False
    for _, members in groupby(entries, key=lambda each: each.at):
        group = list(members)
        if len({each.file for each in group}) > 1:
            found = _merge(group, leads=leads)
            if found is None:
                return ordered, group[0].at
            group = found
        for each in group:
            if isinstance(each.said, Leads | Follows):
                leads = isinstance(each.said, Leads)
        ordered += group
    return ordered, None


def _merge(group: Sequence[Entry], *, leads: bool) -> list[Entry] | None:
    """Lines of one millisecond in order; ``None`` if it is unknown."""
    merged: list[Entry] = []
    by_file: dict[str, list[Entry]] = {}
    for each in group:
        by_file.setdefault(each.file, []).append(each)
    for _, own in sorted(by_file.items()):
        merged_next = _merge_two(merged, own, leads=leads) if merged else own
        if merged_next is None:
            return None
        merged = merged_next
    return merged


def _merge_two(one: Sequence[Entry], two: Sequence[Entry], *, leads: bool) -> list[Entry] | None:
    """Merge two ordered lists in the one order that all pairs allow."""
    merged: list[Entry] = []
    left, right = list(one), list(two)
    while left and right:
        first = _is_first(left[0], right[0], leads=leads)
        if first is None:
            return None
        merged.append(left.pop(0) if first else right.pop(0))
        said = merged[-1].said
        if isinstance(said, Leads | Follows):
            leads = isinstance(said, Leads)
    return [*merged, *left, *right]


def _is_first(one: Entry, two: Entry, *, leads: bool) -> bool | None:
    """Whether the first line comes before the second, from what they report; ``None`` if that is unknown."""
    if isinstance(two.said, Leads | Follows) and not isinstance(one.said, Leads | Follows):
        return _is_before_role(one, two.said, leads=leads)
    if isinstance(one.said, Leads | Follows) and not isinstance(two.said, Leads | Follows):
        before = _is_before_role(two, one.said, leads=leads)
        return None if before is None else not before
    if isinstance(one.said, Learns) and isinstance(two.said, Learns) and one.said.isr == two.said.isr:
        return True
    return None


def _is_before_role(entry: Entry, role: Leads | Follows, *, leads: bool) -> bool | None:
    match entry.said:
        case Loads():
            return True
        case Appends(end=end):
            return end <= role.end
        case Truncates(end=end):
            return False if end < role.end else None
        case Sets(hw=hw) | Raises(hw=hw):
            if hw == role.hw:
                return True
            return False if hw > role.hw else None
        case Hears() | Asks() | Learns():
            # Only a leader logs it.
            if isinstance(role, Follows):
                return True
            return None if leads else False
        case _:
            return None
