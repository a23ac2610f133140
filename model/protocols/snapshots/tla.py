"""The TLA+ modules of ``snapshots``: one of a quorum that runs by itself, and one of all other variants."""

from __future__ import annotations

from dataclasses import fields

from ...core.tla import TlaModule
from .state import Rules, snapshots

LATE = frozenset({"late_responses"})
"""A response that is late is no state of a quorum that runs by itself."""


@snapshots.tla_module
def module(rules: Rules) -> TlaModule:
    """Give the module of a variant."""
    if rules.running:
        return TlaModule("Kip630Quorum", lacks=LATE)
    return TlaModule("Snapshots", rules=tuple(each.name for each in fields(Rules) if each.name != "running"))
