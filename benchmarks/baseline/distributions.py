"""Compare values that depend on random draws: nothing that was reached may drop to zero, and no share may fall far."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from statistics import median
from typing import Any, Final

from .difference import Difference

SHARE: Final = 0.05
"""A share of killed mutants, of found seeds or of executed lines may fall by so much."""
SLOWER: Final = 2.0
"""The median number of events up to a detection may grow by this factor."""
FEWEST: Final = 5
"""From so many detections on, medians are compared."""


def compare_generated(part: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare the share of generated mutants that were killed, and the killers."""
    fates = [_fates(items) for items in (old, new)]
    shares = [_share(each["killed"], each.total()) for each in fates]
    if shares[1] < shares[0] - SHARE or not fates[0].total() or not fates[1].total():
        yield Difference(part, "generated", "share killed", *(f"{share:.3f}" for share in shares))
    killers = [_killers(items) for items in (old, new)]
    for name in sorted(killers[0].keys() - killers[1].keys()):
        if killers[0][name] >= FEWEST:
            yield Difference(part, "generated", f"killed by {name}", killers[0][name], 0)


def compare_reach(part: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare actions, failing guards, kinds of events and executed lines of each protocol."""
    for key in sorted(old.keys() | new.keys()):
        one, other = old.get(key), new.get(key)
        if one is None or other is None:
            yield Difference(part, key, "", one is not None, other is not None)
            continue
        if one["exit_code"] != other["exit_code"]:
            yield Difference(part, key, "exit_code", one["exit_code"], other["exit_code"])
        if "actions" not in one or "actions" not in other:
            continue
        for name in ("actions", "kinds"):
            for each, count in sorted(one[name].items()):
                if count >= FEWEST and not other[name].get(each, 0):
                    yield Difference(part, key, f"{name}: {each}", count, 0)
        for guard in sorted({*other["guards_never_met"]} - {*one["guards_never_met"]}):
            yield Difference(part, key, f"guard {guard}", "refused", "never refused")
        shares = [_share(each["executed"] or 0, each["lines"] or 0) for each in (one, other)]
        if shares[1] < shares[0] - SHARE:
            yield Difference(part, key, "share of lines executed", *(f"{share:.3f}" for share in shares))


def compare_detections(part: str, old: Mapping[str, Any], new: Mapping[str, Any]) -> Iterator[Difference]:
    """Compare, for each defect, the share of seeds that found it, the median of events, and the checks."""
    one, other = (_by_defect(items) for items in (old, new))
    for key in sorted(one.keys() | other.keys()):
        seeds = (one.get(key, []), other.get(key, []))
        if not all(seeds):
            yield Difference(part, key, "seeds", len(seeds[0]), len(seeds[1]))
            continue
        events = [[each["events"] for each in of if each["events"] is not None] for of in seeds]
        shares = [_share(len(found), len(of)) for found, of in zip(events, seeds, strict=True)]
        if (shares[0] and not shares[1]) or shares[1] < shares[0] - 3 * SHARE - 1 / len(seeds[1]):
            yield Difference(part, key, "share of seeds that find it", *(f"{share:.3f}" for share in shares))
        elif min(map(len, events)) >= FEWEST and median(events[1]) > SLOWER * median(events[0]):
            yield Difference(part, key, "median of events", median(events[0]), median(events[1]))
        checks = [Counter(each["check"] for each in of if each["check"]) for of in seeds]
        for check, count in sorted(checks[0].items()):
            if count >= FEWEST and not checks[1][check]:
                yield Difference(part, key, f"found by {check}", count, 0)


def _by_defect(items: Mapping[str, Any]) -> dict[str, list[Any]]:
    found: dict[str, list[Any]] = {}
    for key, value in items.items():
        found.setdefault(key.rpartition("/")[0], []).append(value)
    return found


def _rows(items: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for value in items.values():
        if isinstance(value, list):
            yield from value


def _fates(items: Mapping[str, Any]) -> Counter[str]:
    return Counter(row["fate"] for row in _rows(items) if row["fate"] != "equivalent")


def _killers(items: Mapping[str, Any]) -> Counter[str]:
    return Counter(str(row["killer"]) for row in _rows(items) if row["fate"] == "killed" and "killer" in row)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
