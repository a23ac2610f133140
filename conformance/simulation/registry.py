"""Which systems there are, how ``--impl`` finds one, and in which of the two ways it can be driven."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY
from ..harness import find_harness
from ..lockstep import registry as lockstep
from ..lockstep.adapter import Adapter
from .model_system import ModelSystem
from .system import MakeSystem, SimulatedSystem

MODEL: Final = "model"
"""The model itself, for every protocol that has a binding."""
_NEEDED: Final = ("name", "protocol", "variant", "reset", "pending", "step", "observe", "close")
_SEE: Final = "see conformance/simulation/system.py and conformance/lockstep/adapter.py"


class Mode(Enum):
    """The two ways in which a system is held against a model, in the order in which they are taken."""

    FREE = "free"
    LOCKSTEP = "lockstep"


_OWN: Final = {Mode.FREE: ("pending", "step"), Mode.LOCKSTEP: ("apply", "inject")}
"""What tells for which of the two a class is written."""


@dataclass(frozen=True)
class Offered:
    """What ``--impl`` names: as a system that runs freely, as an adapter, or as both."""

    free: SimulatedSystem | None = None
    lockstep: Adapter | None = None

    @property
    def ways(self) -> tuple[Mode, ...]:
        """How it can be driven."""
        there = {Mode.FREE: self.free, Mode.LOCKSTEP: self.lockstep}
        return tuple(way for way in Mode if there[way] is not None)

    @property
    def protocol(self) -> str:
        """The protocol that it implements."""
        made = self.free or self.lockstep
        assert made is not None
        return made.protocol

    def close(self) -> None:
        """Release everything."""
        for each in (self.free, self.lockstep):
            if each is not None:
                each.close()


def offered(spec: str, protocol: str | None, variant: str | None, wanted: Sequence[Mode] = ()) -> Offered:
    """Make what ``--impl`` names, for the ways that are wanted; none given: all that it offers.

    Raises BadInput where there is no such system, where it is neither, and where it does not offer what is wanted.
    """
    asked = set(wanted or Mode)
    free, adapter = _named(spec, protocol), lockstep.named(spec, protocol)
    if free is None and adapter is None:
        mend = f"name one of {', '.join(system_names(protocol))}, or module:attribute, or file.py:attribute"
        made = lockstep.called(lockstep.placed(spec, mend), spec, protocol, variant)
        found = _seen(made, spec)
    else:
        ways = {way for way, make in ((Mode.FREE, free), (Mode.LOCKSTEP, adapter)) if make is not None}
        _refuse(set(wanted) - ways, spec)
        found = Offered(
            None if free is None or Mode.FREE not in asked else lockstep.called(free, spec, protocol, variant),
            None if adapter is None or Mode.LOCKSTEP not in asked else lockstep.make_adapter(spec, protocol, variant),
        )
    _refuse(set(wanted) - set(found.ways), spec)
    return Offered(
        found.free if Mode.FREE in asked else None,
        found.lockstep if Mode.LOCKSTEP in asked else None,
    )


def make_system(spec: str, protocol: str | None, variant: str | None) -> SimulatedSystem:
    """Make the freely running system that ``--impl`` names. Raises BadInput where it is none."""
    found = offered(spec, protocol, variant, (Mode.FREE,)).free
    assert found is not None
    return found


def _refuse(absent: set[Mode], spec: str) -> None:
    for way in Mode:
        if way in absent:
            has = " and ".join(_OWN[way])
            raise BadInput(f"{spec} has no {has}", f"--way {way.value}", f"leave --way out; {_SEE}")


def _seen(made: Any, spec: str) -> Offered:
    """What an object of somebody's own can be driven as: by what it has."""
    if not hasattr(made, "step") and hasattr(made, "happen"):
        type(made).step = type(made).happen  # its name before 1.0
    own = {way: not lockstep.lacking(made, names) for way, names in _OWN.items()}
    if not any(own.values()):
        # An adapter is asked for where nothing tells; most of its names are asked of both.
        missing = ", ".join(lockstep.lacking(made, lockstep.NEEDED))
        raise BadInput(f"what it makes has no {missing}, and no pending, step", f"--impl {spec}", _SEE)
    for way, needed in ((Mode.FREE, _NEEDED), (Mode.LOCKSTEP, lockstep.NEEDED)):
        missing = ", ".join(lockstep.lacking(made, needed))
        if own[way] and missing:
            raise BadInput(f"what it makes has no {missing}", f"--impl {spec}", _SEE)
    return Offered(made if own[Mode.FREE] else None, made if own[Mode.LOCKSTEP] else None)


def _named(name: str, protocol: str | None) -> MakeSystem | None:
    """A system that the protocol's harness names; of the protocol of brokers' logs where none is named."""
    if name == MODEL:
        return lambda protocol, variant: ModelSystem(protocol, variant)
    harness = find_harness(protocol or REGISTRY.of_brokers_logs.name)
    return None if harness is None else harness.find_free(name)


def simulated_names(protocol: str | None) -> tuple[str, ...]:
    """The systems of a protocol that run freely and have a name of their own."""
    harness = find_harness(protocol or REGISTRY.of_brokers_logs.name)
    return (*(() if harness is None else harness.free_names), MODEL)


def system_names(protocol: str | None) -> tuple[str, ...]:
    """All systems of a protocol that have a name of their own, however they are driven, the default first."""
    names = dict.fromkeys((*simulated_names(protocol), *lockstep.adapter_names(protocol)))
    return (*(name for name in names if name != MODEL), MODEL)
