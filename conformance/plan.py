"""What is checked of a protocol, and at which constants: the plan that its folder holds, read by the engines.

Constants are written as everywhere: ``3/2/2/2``, in the order in which the protocol declares them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from ..model.core.errors import ProtocolError
from ..model.core.protocol import Protocol
from ..model.explore.result import Verdict
from ..traces.report.beside import Beside
from .mutants.beyond import Beyond

Written = str
"""Constants in the protocol's order, with slashes between."""


def constants_of(protocol: Protocol, at: Written) -> dict[str, int]:
    """``3/2/2/2`` as constants of a protocol, and its default ones for an empty text.

    Raises ProtocolError where they are not its.
    """
    if not at:
        return {name: spec.default for name, spec in protocol.constants.items()}
    names = list(protocol.constants)
    values = at.split("/")
    if len(values) != len(names) or not all(v.isdecimal() for v in values):
        raise ProtocolError(f"{at!r} are no constants of {protocol.name}: {'/'.join(names)}")
    return dict(zip(names, map(int, values), strict=True))


def written(constants: Mapping[str, int]) -> Written:
    """``3/2/2/2``: the constants in the order of the protocol."""
    return "/".join(map(str, constants.values()))


def named_constants(protocol: Protocol, constants: Mapping[str, int]) -> str:
    """``replicas 3, log_size 4``: the constants that differ from their defaults, or ``default constants``."""
    other = [
        f"{name} {constants[name]}" for name, spec in protocol.constants.items() if constants[name] != spec.default
    ]
    return ", ".join(other) or "default constants"


def guards_by_action(guards: Iterable[str]) -> list[str]:
    """``follower_fetch: same_epoch, is_next``: a line for each action, of guards written ``action.guard``."""
    found: dict[str, list[str]] = {}
    for each in guards:
        action, _, guard = each.partition(".")
        found.setdefault(action, []).append(guard)
    return [f"{action}: {', '.join(names)}" for action, names in found.items()]


@dataclass(frozen=True)
class Comparison:
    """What two runs held side by side come to: ``holds`` where they show what they are to show. ``states`` visited."""

    verdict: Verdict
    detail: str
    states: int
    page: Beside | None = None


@dataclass(frozen=True)
class Compared:
    """A page of the report with two runs, and how they are found."""

    name: str
    run: Callable[[], Comparison]


@dataclass(frozen=True)
class Plan:
    """Nothing in it is needed: of a protocol with an empty plan, the default variant is held at default constants.

    Explored to the end: the default variant at ``at``, where it must hold; other variants that must hold (``holds``)
    or break (``breaks``); and the default one without one guard at a time (``needed``, ``action.guard``), which must
    break at ``at``. ``engines``: by variant, where batch and reference must visit the same states. ``relations``:
    constants at which every step of the symbolic relation is held against the reference, and constants at which some
    are. ``liveness``: where the liveness properties are checked; those in ``fails``, pairs (property, fairness), must
    not hold. ``proves``: the proof with no bound is asked, too, which of some protocols takes longer than a check may.
    ``replayed``: a variant that breaks, with the constants of its counterexample, which must be a run of
    that variant, and refused by the default one. ``unproved``: variants through which the proof must not go.

    Of the mutant matrix: ``rungs`` are the constants at which mutants are tried, in this order. ``symmetric``: orbits
    under renaming of replicas are searched and compared, instead of states. ``beyond``: by mutant, where else one
    breaks a promise.

    ``free``: constants that free runs go through by turns; none: the default ones. Small ones reach depth, large ones
    breadth. They are of the text that systems are held to (``Harness.text``). ``stepped``: those at which an adapter is
    driven where nobody gives others. ``followed``: a check lets what ``impl/``
    has of it run freely, too. ``compared``: pairs of runs that the report shows side by side, each a ``Compared`` as
    ``module:name``, from the plan's own package on.
    """

    at: Written = ""
    holds: Mapping[str, Written] = field(default_factory=dict)
    breaks: Mapping[str, Written] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    engines: Mapping[str, Written] = field(default_factory=dict)
    relations: tuple[Written, Written] | None = None
    liveness: Written | None = None
    fails: frozenset[tuple[str, str]] = frozenset()
    replayed: tuple[str, Written] | None = None
    proves: bool = True
    unproved: tuple[str, ...] = ()
    rungs: tuple[Written, ...] = ()
    symmetric: bool = False
    beyond: Mapping[str, Beyond] = field(default_factory=dict)
    free: tuple[Written, ...] = ()
    stepped: Written = ""
    followed: bool = True
    compared: tuple[str, ...] = ()
