"""The TLA+ modules of ``fencing``."""

from __future__ import annotations

from ...core.tla import TlaModule
from .state import Rules, fencing

_FAIR = {"kip": "KipFairSpec", "fair-fetches": "FairFetchSpec", "least": "LeastFairSpec"}


def _fairness(name: str) -> dict[str, str]:
    """The sets of fairness conditions that the module of a variant has a specification for."""
    kinds = {"kip-320": tuple(_FAIR), "kip-320-restarts": ("fair-fetches",), "kip-320-brokers": ("fair-fetches",)}
    old = ("kip", "fair-fetches") if not fencing.variants[name].restarts else ()
    return {kind: _FAIR[kind] for kind in kinds.get(name, old)}


@fencing.tla_module
def module(rules: Rules) -> TlaModule:
    """Give the module of a variant."""
    name = next(each.name for each in fencing.variants.values() if each.rules == rules)
    shapes = ["TypeOk"]
    if rules.running:
        shapes += ["ReplayOk" if rules.forgets else "RunningOk"] if rules.shipped else ["ClusterOk"]
        shapes += ["FencesOk"] if rules.fences else []
    elif rules.told:
        shapes += ["RemoteLeosOk"] + (["AlterIsrOk", "LeaderKnowsIsr"] if rules.alter_isr else [])
    return TlaModule("".join(map(str.capitalize, name.split("-"))), shapes=tuple(shapes), fairness=_fairness(name))
