"""Samples of a system's steps, by the reference interpreter, held against the finite symbolic relation."""

from __future__ import annotations

from fencepost.model.core.ground import System, ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.explore.result import Verdict
from fencepost.model.interpret.symbolic import Symbolic
from fencepost.model.prove.crosscheck import CrossCheck, Sample, crosscheck, exhaustive
from fencepost.model.prove.spread import spread


def at(protocol: Protocol, variant: str, constants: str) -> System:
    """A variant at constants as a command line has them: ``2/1/1/0``."""
    values = dict(zip(protocol.constants, map(int, constants.split("/")), strict=True))
    return ground(protocol.traced(variant), values)


def every_step(system: System, seed: int, *, thorough: int = 5, refused: int | None = 500) -> CrossCheck:
    """That the relation has every step that there is, and none of those that are refused.

    ``thorough``: so many steps have all their near misses asked; ``refused``: so many of the refused, None for all.
    """
    sample = exhaustive(system)
    return _held(system, sample, seed, thorough, len(sample.refused) if refused is None else refused)


def drawn(
    system: System, seed: int, count: int, max_states: int, *, thorough: int = 5, refused: int = 500
) -> CrossCheck:
    """The same of ``count`` steps, spread over the actions, out of the first ``max_states`` states."""
    sample = spread(system, count, seed, max_states=max_states)
    assert len(sample.transitions) == count
    return _held(system, sample, seed, thorough, refused)


def tells_apart(system: System, steps: Sample, other: Symbolic, seed: int) -> CrossCheck:
    """The planted fault: another relation, which some of these steps must tell from the system's own."""
    check = crosscheck(system, steps, seed, symbolic=other, thorough=0, refused=2000, states=0)
    assert check.verdict is Verdict.VIOLATED
    return check


def _held(system: System, sample: Sample, seed: int, thorough: int, refused: int) -> CrossCheck:
    check = crosscheck(system, sample, seed, thorough=thorough, refused=refused)
    print(f"{system.traced.variant.name} {'/'.join(map(str, system.constants.values()))}, seed {seed}: {check}")
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    thorough = min(thorough, len(sample.transitions))
    assert (check.accepted, check.determined) == (len(sample.transitions), thorough)
    assert check.near_misses == len(sample.transitions) + thorough * len(system.layout.cells)
    assert check.refused == min(refused, len(sample.refused))
    return check
