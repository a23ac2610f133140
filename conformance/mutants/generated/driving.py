"""How a system is driven to judge its mutants: freely or in lockstep, against one protocol, at some constants."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Literal, cast

from ....model.core.errors import BadInput
from ....model.core.ground import System, ground
from ....model.core.protocol import Protocol
from ....model.core.registry import REGISTRY
from ....traces.run_report import Json
from ...adapters.parts import Parts
from ...harness import binding_of, find_harness, held_to, in_lockstep, over_impl
from ...lockstep.adapter import Adapter
from ...lockstep.binding import Binding
from ...lockstep.goals import Goals
from ...lockstep.space import Space
from ...simulation.registry import Mode, offered
from ...simulation.system import SimulatedSystem
from ...simulation.transitions import Transitions

Engine = Literal["free", "lockstep"]


@dataclass(frozen=True)
class Drive:
    """``system``: what ``--system`` names, None for what ``impl/`` has. ``place``: of a protocol that is not installed.

    ``constants``: one or more sets of them, which runs go through by turns; a drive in lockstep has one.
    """

    engine: Engine
    protocol: str
    variant: str | None
    constants: tuple[tuple[tuple[str, int], ...], ...]
    system: str | None = None
    place: str | None = None
    beside: bool = False
    """Whether it only happens to run the mutant's file, and gets less of the time for that."""

    @property
    def weight(self) -> float:
        """Its share of the time that there is for a mutant, beside those of others."""
        return 3.0 if self.engine == "free" and not self.beside else 1.0

    @property
    def name(self) -> str:
        """What a table calls it."""
        return f"{self.protocol} {self.engine}"

    def take_in(self) -> None:
        """Import its protocol, where that is not installed, in this process. Raises BadInput where it cannot."""
        if self.place is not None:
            REGISTRY.named(self.place)

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        return {
            "engine": self.engine,
            "protocol": self.protocol,
            "variant": self.variant,
            "constants": [dict(each) for each in self.constants],
            "system": self.system,
            "place": self.place,
            "beside": self.beside,
        }

    @classmethod
    def from_json(cls, told: Mapping[str, Json]) -> Drive:
        """A drive from its JSON object, which ``to_json`` made."""
        constants = cast("list[dict[str, int]]", told["constants"])
        return cls(
            cast("Engine", told["engine"]),
            cast("str", told["protocol"]),
            cast("str | None", told["variant"]),
            tuple(tuple(each.items()) for each in constants),
            cast("str | None", told["system"]),
            cast("str | None", told["place"]),
            cast("bool", told["beside"]),
        )


@contextmanager
def made(drive: Drive, parts: Parts | None) -> Iterator[Adapter | SimulatedSystem]:
    """The system of a drive, made of these classes where it is ours. Raises BadInput as what makes it does."""
    system: Adapter | SimulatedSystem | None
    if drive.system is not None:
        found = offered(drive.system, drive.protocol, drive.variant, (Mode(drive.engine),))
        system = found.free if drive.engine == "free" else found.lockstep
        assert system is not None
    elif drive.engine == "free":
        system = free_over_impl(drive.protocol, drive.variant, parts)
    else:
        system = over_impl(drive.protocol, drive.variant, disk=False, parts=parts)
    with closing(system):
        yield system


def free_over_impl(protocol: str, variant: str | None, parts: Parts | None) -> SimulatedSystem:
    """The freely running system of what ``impl/`` has of a protocol. Raises BadInput where there is none."""
    harness = find_harness(protocol)
    make = None if harness is None else harness.find_free_over()
    if make is None:
        raise BadInput(f"no system of impl/ runs freely for {protocol!r}", "--protocol", "name another one")
    return make(parts, disk=False, variant=variant)


class Grounds:
    """What was computed of a protocol: its places for a drive in lockstep, its ways for a free one. Kept for the next.

    Nothing of it depends on the system, so a process that judges a mutant may take it over from the one before it.
    """

    def __init__(self) -> None:
        self._goals: dict[tuple[str, str, tuple[tuple[str, int], ...]], Goals] = {}
        self._ways: dict[tuple[str, str, tuple[tuple[str, int], ...]], Transitions] = {}

    def goals(self, drive: Drive, variant: str) -> Goals:
        """Of a drive in lockstep."""
        constants = drive.constants[0]
        key = (drive.protocol, variant, constants)
        if key not in self._goals:
            self._goals[key] = Goals(Space(_system(drive, variant, constants), _binding(drive)))
        return self._goals[key]

    def ways(self, drive: Drive, variant: str) -> list[Transitions]:
        """Of a free drive: one for each of its constants."""
        found = []
        for constants in drive.constants:
            key = (drive.protocol, variant, constants)
            if key not in self._ways:
                self._ways[key] = Transitions(_system(drive, variant, constants), _binding(drive))
            found.append(self._ways[key])
        return found

    def prepare(self, drive: Drive) -> None:
        """Compute what a drive over ``impl/`` needs."""
        with made(drive, None) as system:
            if drive.engine == "free":
                self.ways(drive, system.variant)
            else:
                self.goals(drive, system.variant)


def _system(drive: Drive, variant: str, constants: tuple[tuple[str, int], ...]) -> System:
    return ground(_text(drive)[0].traced(variant), dict(constants))


def _binding(drive: Drive) -> Binding:
    return _text(drive)[1]


def _text(drive: Drive) -> tuple[Protocol, Binding]:
    """What the system is held to that way, and its binding."""
    if drive.engine == "lockstep":
        return in_lockstep(drive.protocol, "--protocol")
    return held_to(drive.protocol), binding_of(drive.protocol, "--protocol")
