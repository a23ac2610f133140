"""What holds systems against one protocol: its binding, its adapters, the defects to find, the plan of its checks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Protocol

from ..model.core.errors import BadInput, ProtocolError
from ..model.core.protocol import Protocol as Model
from ..model.core.registration import Ref, looked_up
from ..model.core.registry import REGISTRY
from .adapters.parts import Parts
from .lockstep.adapter import Adapter, MakeAdapter
from .lockstep.binding import Binding
from .mutants.arguments import Arguments, Collected
from .mutants.defects import Defect
from .mutants.generated.equivalent import Equivalent
from .plan import Plan, constants_of
from .simulation.system import MakeSystem, SimulatedSystem


class MakeOver(Protocol):
    """Makes an adapter over the classes of ``impl/``, or over those of a copy with a defect."""

    def __call__(self, parts: Parts | None = None, *, disk: bool = False, variant: str | None = None) -> Adapter:
        """``disk``: on files below a temporary folder, instead of on simulated disks."""
        ...


class MakeFreeOver(Protocol):
    """Makes the freely running system of the classes of ``impl/``, or of those of a copy with a defect."""

    def __call__(
        self, parts: Parts | None = None, *, disk: bool = False, variant: str | None = None
    ) -> SimulatedSystem:
        """``disk``: on files below a temporary folder, instead of on simulated disks."""
        ...


@dataclass(frozen=True)
class Harness:
    """Each part may be given as ``module:name`` (``registration.Ref``), and is imported when it is asked for.

    ``package``: the ``__name__`` of the module that says it. ``over_impl``: the adapter of what ``impl/`` has of the
    protocol: it answers to the names ``memory`` and ``disk``. ``adapters``: others, by the name that ``--impl`` takes.
    ``free`` and ``free_adapters``: the same for systems that run freely, by the same names where they are the same.
    ``text``: the protocol that systems are held to, where that is another text than the one which is explored and
    proved; it has the same name. ``lockstep``: the binding of the one that is explored, where ``text`` is for systems
    that run freely alone, and an adapter is driven step for step beside the other. ``defects``: planned defects of
    ``impl/``. ``arguments``: by variant, why mutants that nobody kills are harmless.
    ``drives``: the files of ``impl/`` with the protocol's own code, that its systems run and that mutants are drawn of;
    what reads bytes, refuses malformed input, keeps time or counts is none of it. ``equivalents``: arguments for those.
    ``printed``: the place of the protocol that traces of what Apache Kafka's nodes have printed are of, where that is
    neither the one that is explored nor named as it is.
    """

    package: str
    binding: Binding | Ref | None = None
    over_impl: MakeOver | Ref | None = None
    adapters: Mapping[str, MakeAdapter | Ref] = field(default_factory=dict)
    free: MakeFreeOver | Ref | None = None
    text: Model | Ref | None = None
    lockstep: Binding | Ref | None = None
    free_adapters: Mapping[str, MakeSystem | Ref] = field(default_factory=dict)
    defects: tuple[Defect, ...] | Ref = ()
    arguments: Mapping[str, Collected | Ref] = field(default_factory=dict)
    plan: Plan | Ref = field(default_factory=Plan)
    drives: tuple[str, ...] = ()
    equivalents: tuple[Equivalent, ...] | Ref = ()
    printed: Ref | None = None

    @property
    def printed_place(self) -> str | None:
        """``module:name`` of ``printed``, from anywhere."""
        if self.printed is None:
            return None
        return f"{self.package}{self.printed}" if self.printed.startswith(".") else self.printed

    def find_binding(self) -> Binding | None:
        """The binding, if there is one."""
        found: Binding | None = looked_up(self.binding, self.package)
        return found

    def find_lockstep(self) -> Binding | None:
        """The binding of the text that is explored, if systems that run freely are held to another one."""
        found: Binding | None = looked_up(self.lockstep, self.package)
        return found

    def find_over_impl(self) -> MakeOver | None:
        """What makes the adapter over ``impl/``, if there is one."""
        found: MakeOver | None = looked_up(self.over_impl, self.package)
        return found

    def find_adapter(self, name: str) -> MakeAdapter | None:
        """What makes the adapter of that name, if there is one."""
        over = self.find_over_impl()
        if name in OVER_IMPL and over is not None:
            return lambda _protocol, variant: over(disk=name == "disk", variant=variant)
        found: MakeAdapter | None = looked_up(self.adapters.get(name), self.package)
        return found

    @property
    def adapter_names(self) -> tuple[str, ...]:
        """What ``--impl`` takes for this protocol, in lockstep."""
        return (*(OVER_IMPL if self.over_impl is not None else ()), *self.adapters)

    def find_free_over(self) -> MakeFreeOver | None:
        """What makes the freely running system of ``impl/``, if there is one."""
        found: MakeFreeOver | None = looked_up(self.free, self.package)
        return found

    def find_free(self, name: str) -> MakeSystem | None:
        """What makes the freely running system of that name, if there is one."""
        over = self.find_free_over()
        if name in OVER_IMPL and over is not None:
            return lambda _protocol, variant: over(disk=name == "disk", variant=variant)
        found: MakeSystem | None = looked_up(self.free_adapters.get(name), self.package)
        return found

    @property
    def free_names(self) -> tuple[str, ...]:
        """What ``--impl`` takes for this protocol, for free runs."""
        return (*(OVER_IMPL if self.free is not None else ()), *self.free_adapters)

    def find_text(self) -> Model | None:
        """The text that systems are held to, if it is one of its own."""
        found: Model | None = looked_up(self.text, self.package)
        return found

    def find_defects(self) -> tuple[Defect, ...]:
        """The planned defects."""
        found: tuple[Defect, ...] = looked_up(self.defects, self.package)
        return found

    def arguments_for(self, variant: str) -> Arguments:
        """The arguments for the mutants of one variant; none for a variant that nobody argued about."""
        found: Collected | None = looked_up(self.arguments.get(variant), self.package)
        return {} if found is None else found.arguments

    def find_equivalents(self) -> tuple[Equivalent, ...]:
        """Why generated mutants do the same as the text."""
        found: tuple[Equivalent, ...] = looked_up(self.equivalents, self.package)
        return found

    def find_plan(self) -> Plan:
        """The plan."""
        found: Plan = looked_up(self.plan, self.package)
        return found


OVER_IMPL: Final = ("memory", "disk")
"""Simulated disks, which can crash, fill up and fail; and real files."""


def find_harness(protocol: str) -> Harness | None:
    """The harness of a protocol, if it is registered with one. Raises ProtocolError for something else."""
    registration = REGISTRY.get(protocol)
    found = None if registration is None else registration.find_harness()
    if found is not None and not isinstance(found, Harness):
        raise ProtocolError(f"the harness of {protocol} is a {type(found).__name__}, no Harness")
    return found


def held_to(protocol: str, where: str = "PROTOCOL") -> Model:
    """The text that systems of a protocol are held to. Raises BadInput for an unknown one; ``where`` named it."""
    registration = REGISTRY.named(protocol, where)
    harness = find_harness(registration.name)
    text = None if harness is None else harness.find_text()
    return registration.protocol if text is None else text


def plan_of(model: Model) -> Plan:
    """The plan of a protocol; an empty one for a protocol without, or one that is not registered."""
    registration = REGISTRY.get(model.name)
    harness = find_harness(model.name) if registration is not None and registration.protocol is model else None
    return Plan() if harness is None else harness.find_plan()


def arguments_for(protocol: str, variant: str) -> Arguments:
    """The arguments for the mutants of one variant of a protocol."""
    harness = find_harness(protocol)
    return {} if harness is None else harness.arguments_for(variant)


def binding_of(protocol: str, where: str) -> Binding:
    """The binding of a protocol. Raises BadInput where it has none; ``where`` is what named the protocol."""
    harness = find_harness(protocol)
    binding = None if harness is None else harness.find_binding()
    if binding is None:
        bound = ", ".join(bound_protocols()) or "none"
        raise BadInput(f"there is no binding for {protocol!r}", where, f"protocols that have one: {bound}")
    return binding


def stepped(protocol: str, where: str = "PROTOCOL") -> Model:
    """The text that an adapter is driven beside, step for step. Raises BadInput for an unknown protocol."""
    registration = REGISTRY.named(protocol, where)
    harness = find_harness(registration.name)
    return held_to(protocol, where) if harness is None or harness.lockstep is None else registration.protocol


def in_lockstep(protocol: str, where: str = "PROTOCOL") -> tuple[Model, Binding]:
    """That text, and its binding. Raises BadInput where there is none; ``where`` named the protocol."""
    harness = find_harness(REGISTRY.named(protocol, where).name)
    own = None if harness is None else harness.find_lockstep()
    return stepped(protocol, where), binding_of(protocol, where) if own is None else own


def stepped_at(protocol: str, given: Mapping[str, int], where: str = "PROTOCOL") -> dict[str, int]:
    """The constants at which an adapter is driven: those given, and the plan's. Raises BadInput for others."""
    text = stepped(protocol, where)
    return dict(text.check_constants({**constants_of(text, plan_of(text).stepped), **given}))


def bound_protocols() -> Iterator[str]:
    """The names of the protocols that have a binding."""
    for name in REGISTRY:
        harness = find_harness(name)
        if harness is not None and harness.binding is not None:
            yield name


def all_defects() -> tuple[Defect, ...]:
    """The planned defects of all protocols."""
    found = (find_harness(name) for name in REGISTRY)
    return tuple(defect for harness in found if harness is not None for defect in harness.find_defects())


def over_impl(protocol: str | None, variant: str | None = None, *, disk: bool, parts: Parts | None = None) -> Adapter:
    """The adapter of what ``impl/`` has of a protocol; of that of brokers' logs where none is named.

    ``variant`` may be any one of the protocol, to see where brokers differ from it. Raises BadInput for a protocol that
    ``impl/`` does not implement.
    """
    name = protocol or REGISTRY.of_brokers_logs.name
    harness = find_harness(name)
    make = None if harness is None else harness.find_over_impl()
    if make is None:
        known = ", ".join(each for each in REGISTRY if (h := find_harness(each)) is not None and h.over_impl)
        raise BadInput(f"impl/ does not implement {name!r}", "--protocol", f"name one of {known}")
    return make(parts, disk=disk, variant=variant)
