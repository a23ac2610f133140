"""``fencepost mutants --generated``: how many random mutants of a system's source are noticed."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.loading import is_place
from ...model.core.protocol import Protocol
from ...model.core.registry import PROTOCOLS, REGISTRY
from ..harness import find_harness, held_to, plan_of, stepped_at
from ..mutants.generated.answer import print_measure, print_row
from ..mutants.generated.driving import Drive
from ..mutants.generated.equivalent import Equivalent
from ..mutants.generated.measure import Row
from ..mutants.generated.run import Asked, measure
from ..mutants.generated.source import Source, our_source, source_of
from ..plan import constants_of
from ..simulation.registry import Mode, offered
from .explore import protocol_named
from .output import print_json, stdout
from .progress import BarColumn, progress_bar

SECONDS: Final = 60.0
"""Of the processor, for each mutant."""


def generated(
    *,
    count: int,
    source: Path | None,
    system: str | None,
    protocol: str | None,
    only: Sequence[str],
    seed: int,
    seconds: float,
    jobs: int | None,
    at_least: float | None,
    constants: Mapping[str, int],
    json: bool,
    json_lines: bool,
) -> ExitCode:
    """Draw, judge, print. ``source`` None: of ``impl/``. Raises BadInput as its parts do.

    Each mutant is told as soon as it is judged, except in one JSON object.
    """
    where, drives, arguments = (
        _ours(protocol, only, constants) if source is None else _theirs(source, system, protocol, only, constants)
    )
    asked = Asked(where, drives, count, seed, seconds, jobs or os.cpu_count() or 1, arguments)
    out, lines = stdout(), sys.stdout
    # On a terminal rows are the progress, and a bar would be drawn into them.
    with progress_bar(BarColumn()) if json or not out.is_terminal else nullcontext() as bar:
        task = None if bar is None else bar.add_task("generated mutants", total=count)

        def told(row: Row, done: int, of: int) -> None:
            if json_lines:
                print_json(row.to_json(), lines)
            elif not json:
                print_row(row, out)
            if bar is not None and task is not None:
                bar.update(
                    task, completed=done, total=of, detail=f"{done} of {of}, {row.mutant.name}: {row.fate.value}"
                )

        found = measure(asked, told)
    if json_lines:
        print_json(found.counts_to_json())
    elif json:
        print_json(found.to_json())
    else:
        print_measure(found, out)
    return found.exit_code(at_least)


def _ours(
    protocol: str | None, only: Sequence[str], constants: Mapping[str, int]
) -> tuple[Source, list[Drive], list[Equivalent]]:
    """What ``impl/`` has of a protocol, or of all; driven in each way that there is."""
    names = [protocol_named(protocol).name] if protocol is not None else list(REGISTRY)
    if protocol is None and constants:
        raise BadInput("protocols have different constants", "the constants", "name a --protocol too")
    drives: list[Drive] = []
    arguments: list[Equivalent] = []
    for name in names:
        harness = find_harness(name)
        if harness is None or not harness.drives:
            continue
        arguments += harness.find_equivalents()
        ways = {Mode.FREE: harness.free, Mode.LOCKSTEP: harness.over_impl}
        there = (way for way, make in ways.items() if make is not None)
        drives += [Drive(way.value, name, None, _at(PROTOCOLS[name], way, constants)) for way in there]
    if not drives:
        raise BadInput("impl/ has nothing of it", "--protocol", "name another one, or give --source and --system")
    return our_source(names, only), drives, arguments


def _theirs(
    folder: Path, system: str | None, protocol: str | None, only: Sequence[str], constants: Mapping[str, int]
) -> tuple[Source, list[Drive], list[Equivalent]]:
    """Somebody's folder, driven by what ``--system`` names."""
    if system is None:
        raise BadInput("nothing says how it is driven", "--source", "add --system file.py:attribute")
    place = protocol if protocol is not None and is_place(protocol) else None
    name = None if protocol is None else protocol_named(protocol).name
    with closing(offered(system, name, None)) as found:
        spec, ways = REGISTRY.named(found.protocol), found.ways
    file = system.rpartition(":")[0]
    besides = Path(file).resolve() if file.endswith(".py") else None
    drives = [Drive(way.value, spec.name, None, _at(spec.protocol, way, constants), system, place) for way in ways]
    harness = find_harness(spec.name)
    arguments = () if harness is None else harness.find_equivalents()
    return source_of(folder, only, besides), drives, list(arguments)


def _at(protocol: Protocol, way: Mode, constants: Mapping[str, int]) -> tuple[tuple[tuple[str, int], ...], ...]:
    """At which constants runs are: those given, else for free runs those of the plan, else the default ones."""
    if way is Mode.LOCKSTEP:
        return (tuple(stepped_at(protocol.name, constants).items()),)
    text = held_to(protocol.name)
    if constants:
        return (tuple(text.check_constants(constants).items()),)
    planned = plan_of(protocol).free or ("",)
    return tuple(tuple(constants_of(text, each).items()) for each in planned)
