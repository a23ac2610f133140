"""Compare two records: exactly, but for random draws, which are compared as distributions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from . import kills, simulation
from .difference import ABSENT, Difference
from .distributions import compare_detections, compare_generated, compare_reach
from .record import Parts

Items = Mapping[str, Any]

DISTRIBUTIONS: Final[Mapping[tuple[str, str], Callable[[str, Items, Items], Iterator[Difference]]]] = {
    (kills.PART, "generated"): compare_generated,
    (simulation.PART, "reach"): compare_reach,
    (simulation.PART, "detection"): compare_detections,
}
"""By part and first word of the key, how values that depend on random draws are compared."""
IGNORED: Final = {(kills.PART, "planned"): ("steps", "detail"), (kills.PART, "kafka"): ("events",)}
"""By part and first word of the key, fields that depend on random draws: length and description of a found run."""


def compare(old: Parts, new: Parts) -> list[Difference]:
    """Return every difference. A part that one record lacks altogether was not recorded, and is one difference."""
    found: list[Difference] = []
    for part in sorted(old.keys() | new.keys()):
        if part not in old or part not in new:
            found.append(Difference(part, "", "", part in old, part in new))
            continue
        groups = {key.partition("/")[0] for key in (*old[part], *new[part])}
        drawn = {group for group in groups if (part, group) in DISTRIBUTIONS}
        for group in sorted(drawn):
            both = (_of_group(old[part], group), _of_group(new[part], group))
            found += DISTRIBUTIONS[part, group](part, *both)
        keys = [key for key in sorted(old[part].keys() | new[part].keys()) if key.partition("/")[0] not in drawn]
        for key in keys:
            values = (each[part].get(key, ABSENT) for each in (old, new))
            found += _differences(part, key, "", *values)
    return found


def _of_group(items: Items, group: str) -> Items:
    return {key: value for key, value in items.items() if key.partition("/")[0] == group}


def _differences(part: str, key: str, path: str, old: Any, new: Any) -> Iterator[Difference]:
    """Yield the leaves that differ."""
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            if name not in IGNORED.get((part, key.partition("/")[0]), ()):
                yield from _differences(part, key, f"{path}.{name}", old.get(name, ABSENT), new.get(name, ABSENT))
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for number, (one, other) in enumerate(zip(old, new, strict=True)):
            yield from _differences(part, key, f"{path}[{number}]", one, other)
    elif type(old) is not type(new) or old != new:
        yield Difference(part, key, path, old, new)
