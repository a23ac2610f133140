"""The configuration of TLC for a protocol's variant: the text of a ``.cfg`` file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .errors import BadInput
from .protocol import Protocol
from .tla import TlaModule, tla_name, tla_value

SPECIFICATION = "Spec"


@dataclass(frozen=True)
class TlcConfig:
    """TLC's configuration of a module: properties to check, and constants. All names and values are TLA+."""

    module: TlaModule
    about: str
    specification: str
    constants: Mapping[str, str]
    invariants: tuple[str, ...]
    properties: tuple[str, ...]

    @property
    def text(self) -> str:
        """The lines of the ``.cfg`` file."""
        lines = [
            f"\\* {self.about}",
            "\\* Run TLC with -deadlock: a run may end.",
            f"SPECIFICATION {self.specification}",
            "CONSTANTS",
            *(f"    {name} = {value}" for name, value in self.constants.items()),
        ]
        for title, names in (("INVARIANTS", self.invariants), ("PROPERTIES", self.properties)):
            if names:
                lines += [title, *(f"    {name}" for name in names)]
        return "\n".join([*lines, ""])


def tlc_config(
    protocol: Protocol,
    variant: str,
    constants: Mapping[str, int],
    invariants: Sequence[str] | None = None,
    fairness: str | None = None,
) -> TlcConfig:
    """Return the configuration of TLC for a variant.

    Args:
        protocol: The protocol.
        variant: Name of one of its variants.
        constants: Value of each of the protocol's constants.
        invariants: Names of the invariants to check; None: all.
        fairness: Set of fairness conditions under which TLC checks the liveness properties instead of invariants.

    Raises:
        BadInput: The variant has no TLA+ module, no such invariant, or no specification with this fairness.
    """
    module = protocol.module_of(variant)
    if module is None:
        raise BadInput(f"{protocol.name} ({variant}) has no TLA+ module", "PROTOCOL", "choose another protocol")
    rules = protocol.variants[variant].rules
    values = {
        tla_name(name): f"{{{', '.join(map(str, range(value)))}}}" if name == "replicas" else str(value)
        for name, value in constants.items()
        if name not in module.lacks
    }
    values |= {module.constant_of(name): tla_value(getattr(rules, name)) for name in module.rules}
    about = f"{variant}: {protocol.variants[variant].doc}"
    if fairness is None:
        checked = _checked(protocol, variant, module, invariants)
        return TlcConfig(module, about, SPECIFICATION, values, checked, ())
    if fairness not in module.fairness:
        known = ", ".join(module.fairness)
        mend = f"choose one of {known}" if known else "leave it out"
        raise BadInput(f"{module.name} has no specification with the fairness {fairness!r}", "--fairness", mend)
    return TlcConfig(module, about, module.fairness[fairness], values, (), tuple(map(tla_name, protocol.liveness)))


def _checked(protocol: Protocol, variant: str, module: TlaModule, invariants: Sequence[str] | None) -> tuple[str, ...]:
    """The invariants that TLC checks."""
    rules = protocol.variants[variant].rules
    known = [name for name, each in protocol.invariants.items() if each.present(rules)]
    if invariants is None:
        return (*module.shapes, *map(tla_name, known))
    for name in invariants:
        if name not in ("type_ok", *known):
            raise BadInput(
                f"{protocol.name} ({variant}) has no invariant {name!r}",
                "--invariant",
                f"choose one of {', '.join(('type_ok', *known))}",
            )
    return tuple(map(tla_name, invariants))
