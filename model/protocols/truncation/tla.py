"""The TLA+ modules of ``truncation``: of consumers that run by themselves, and of those whose exchanges are a step."""

from __future__ import annotations

from ...core.tla import TlaModule
from .state import Rules, is_own, is_stepwise, truncation


@truncation.tla_module
def module(rules: Rules) -> TlaModule:
    """Give the module of a variant."""
    if is_stepwise(rules):
        return TlaModule("Truncation", rules=("check", "reset", "seen"))
    if is_own(rules):
        return TlaModule("Kip320Client")
    return TlaModule("ValidatingClient", rules=("ends_alone", "late"))
