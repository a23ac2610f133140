"""One binding for each protocol that has a system to be held against it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ..binding import Binding
from .fencing import FENCING
from .snapshots import SNAPSHOTS
from .truncation import TRUNCATION

BINDINGS: Final[Mapping[str, Binding]] = {each.protocol: each for each in (FENCING, TRUNCATION, SNAPSHOTS)}
"""The bindings, by protocol."""
