"""The TLA+ modules of ``fencing``: one for each set of variables, whose constants are the rules of its variants."""

from __future__ import annotations

from typing import Final

from ...core.tla import TlaModule
from .state import Rules, fencing

_SHARED: Final = ("truncation", "fenced", "validated", "restart")
"""Rules that are constants of every module."""
_NAMES: Final = {"restart": "AfterRestart"}
"""``Restart`` is an action."""
_FAIR: Final = {"kip": "KipFairSpec", "fair-fetches": "FairFetchSpec"}


@fencing.tla_module
def module(rules: Rules) -> TlaModule:
    """Give the module of a variant."""
    if rules.shipped:
        shapes = ("TypeOk", "RunningOk", "ReplayOk", "FencesOk")
        return TlaModule("KafkaBrokers", (*_SHARED, "remote_leo", "forgets", "fences"), _NAMES, shapes=shapes)
    if rules.running:
        return TlaModule("Kip320Cluster", _SHARED, _NAMES, shapes=("TypeOk", "ClusterOk"))
    if rules.alter_isr is not None:
        shapes = ("TypeOk", "RemoteLeosOk", "AlterIsrOk", "LeaderKnowsIsr")
        return TlaModule("Kip497", (*_SHARED, "alter_isr"), _NAMES, shapes=shapes)
    if rules.told:
        fair = {"fair-fetches": _FAIR["fair-fetches"]}
        return TlaModule(
            "Kip320Brokers", (*_SHARED, "remote_leo"), _NAMES, shapes=("TypeOk", "RemoteLeosOk"), fairness=fair
        )
    return TlaModule("Kip320", _SHARED, _NAMES, fairness=_FAIR | {"least": "LeastFairSpec"})
