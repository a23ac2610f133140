"""One difference between two records."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final


@dataclass(frozen=True)
class Difference:
    """Where two records differ. ``path``: keys and indices into the value, empty for the item itself."""

    part: str
    key: str
    path: str
    old: Any
    new: Any

    def __str__(self) -> str:
        """``PART KEY PATH: OLD became NEW``, each value in at most 200 characters."""
        where = " ".join(filter(None, (self.part, self.key, self.path)))
        return f"{where}: {_short(self.old)} became {_short(self.new)}"

    @property
    def is_prose(self) -> bool:
        """Whether both values are sentences, which may be rewritten without a change of behaviour."""
        return all(isinstance(each, str) and " " in each.strip() for each in (self.old, self.new))


ABSENT: Final = "(absent)"
"""Stands for a value that one record lacks."""


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:197]}..."
