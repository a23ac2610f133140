"""The configurations that TLC runs with in the tests, as ``fencepost spec --cfg`` prints them."""

from __future__ import annotations

from fencepost.conformance.harness import plan_of
from fencepost.conformance.plan import constants_of
from fencepost.model.core.ground import System
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.tla import TlaModule
from fencepost.model.core.tlc_config import tlc_config


def module_of(protocol: Protocol, variant: str) -> TlaModule:
    """The TLA+ module of a variant."""
    module = protocol.module_of(variant)
    assert module is not None
    return module


def constants_text(system: System) -> str:
    """The constants of a grounded variant's module, as a configuration has them."""
    config = tlc_config(system.traced.protocol, system.traced.variant.name, system.constants)
    return "\n".join(["CONSTANTS", *(f"    {name} = {value}" for name, value in config.constants.items())])


def cfg_of(protocol: Protocol, variant: str, constants: tuple[int, ...], *checked: str) -> str:
    """The variant's configuration at these constants, checking only these invariants of the module."""
    values = dict(zip(protocol.constants, constants, strict=True))
    text = tlc_config(protocol, variant, values).text.partition("INVARIANTS")[0]
    return "\n".join([text, *(f"INVARIANT {name}" for name in checked), ""])


def whole_cfg(protocol: Protocol, variant: str, at: str = "", fairness: str | None = None) -> str:
    """The variant's configuration with all of its invariants, or its liveness properties under a fairness.

    ``at``: the constants, as in ``3/2/2/2``; by default those of the plan.
    """
    plan = plan_of(protocol)
    values = constants_of(protocol, at or {**plan.holds, **plan.breaks}.get(variant, plan.at))
    return tlc_config(protocol, variant, values, fairness=fairness).text
