"""The TLA+ module of ``controller``."""

from __future__ import annotations

from dataclasses import fields

from ...core.tla import TlaModule
from .state import Rules, controller


@controller.tla_module
def module(_rules: Rules) -> TlaModule:
    """Give the one module of all variants, whose rules are constants of it."""
    return TlaModule("Controller", rules=tuple(each.name for each in fields(Rules)))
