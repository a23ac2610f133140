"""What the tests of the core share: fencing at given constants."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.protocols.fencing import fencing

Fencing = Callable[..., System]

CONSTANTS = ("replicas", "log_size", "max_records", "max_leader_epoch")


@cache
def _at(constants: str, variant: str, dropped: tuple[str, ...]) -> System:
    values = dict(zip(CONSTANTS, map(int, constants.split("/")), strict=True))
    return ground(fencing.traced(variant).drop(*dropped), values)


@pytest.fixture(scope="session")
def at() -> Fencing:
    """``at("3/2/2/2", "kip-101", "leader_write.log_not_full")``: a variant at constants, less the guards named."""

    def build(constants: str, variant: str = "kip-320", *dropped: str) -> System:
        return _at(constants, variant, dropped)

    return build
