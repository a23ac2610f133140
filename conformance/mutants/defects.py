"""A defect of the implementation: a small change to its source that a reviewer could miss."""

from __future__ import annotations

from dataclasses import dataclass

from .patched import Patch

Constants = tuple[int, ...]
"""A protocol's constants in its own order: of fencing and truncation ``replicas``, ``log_size``, ``max_records`` and
``max_leader_epoch``."""

USUAL: Constants = (2, 2, 2, 2)


@dataclass(frozen=True)
class Defect:
    """A named defect. ``doc``: what goes wrong, in a sentence. ``issue``: the Kafka issue of that kind, if any.

    ``protocol`` is the one that it is driven against, at ``constants`` that are large enough to show it.
    """

    name: str
    protocol: str
    doc: str
    patches: tuple[Patch, ...]
    issue: str = ""
    constants: Constants = USUAL


def defect(
    name: str, protocol: str, doc: str, file: str, old: str, new: str, *, issue: str = "", constants: Constants = USUAL
) -> Defect:
    """A defect of one place."""
    return Defect(name, protocol, doc, (Patch(file, old, new),), issue, constants)
