"""A free run as a file, and back: a line a piece, JSON. Whoever has it lets the same events happen again.

The first line is the head: format, protocol, variant, constants, what ``--impl`` named, and the seed that the system is
reset with. Each further line is an event (``events.Event.to_json``) and, for people, what the model made of it and
which cells changed; only the event is read back.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...traces.format import Value, value_json
from ...traces.run_report import Json
from ..lockstep.expect import Try
from .events import Event, event_of
from .shrink import RunRecord

FORMAT: Final = "fencepost-schedule"
_MEND: Final = "give a schedule that fencepost conform wrote"


@dataclass(frozen=True)
class Schedule:
    """What a file says: enough to run it again."""

    protocol: str
    variant: str
    constants: Mapping[str, int]
    impl: str
    seed: int
    events: tuple[Event, ...]
    met: tuple[str, ...] = ()
    """What it was kept for (``corpus.py``)."""


def lines_of(ran: RunRecord, impl: str, more: Mapping[str, Json] | None = None, *, plain: bool = False) -> list[str]:
    """The lines of a run. ``impl`` is what ``--impl`` names; ``more`` goes to the head. ``plain``: events alone."""
    system = ran.ways.system
    head: dict[str, Json] = {
        "format": FORMAT,
        "protocol": system.name,
        "variant": system.traced.variant.name,
        "constants": dict(system.constants),
        "impl": impl,
        "seed": ran.seed,
        **(more or {}),
    }
    if ran.divergence is not None:
        head["disagreement"] = ran.divergence.headline
    lines = [json.dumps(head)]
    before: Mapping[str, Value] = {}
    for done in ran.history:
        after = before if done.observed is None else done.observed
        if done.event is not None and not done.in_peace:
            told: dict[str, Json] = done.event.to_json()
            if plain:
                lines.append(json.dumps(told))
                continue
            if done.path:
                told["model"] = [str(Try(call)) for call, _ in done.path]
            changed = {name: value_json(value) for name, value in after.items() if before.get(name, _UNSEEN) != value}
            if changed:
                told["seen"] = changed
            if done.happened.told:
                told["told"] = done.happened.told
            lines.append(json.dumps(told))
        before = after
    return lines


_UNSEEN: Final = object()


def is_schedule(path: Path) -> bool:
    """Whether a file begins as a schedule does; what cannot be read is none."""
    try:
        with path.open(encoding="utf-8") as file:
            head = json.loads(file.readline(1 << 16))
    except (OSError, ValueError):
        return False
    return isinstance(head, dict) and head.get("format") == FORMAT


def read_schedule(path: Path) -> Schedule:
    """Read a schedule. Raises BadInput with file and line for anything else."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(f"it cannot be read: {error}", str(path), _MEND) from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            row = json.loads(line)
        except ValueError as error:
            raise BadInput("no JSON", f"{path}, line {number}", _MEND) from error
        if not isinstance(row, dict):
            raise BadInput("no JSON object", f"{path}, line {number}", _MEND)
        rows.append(row)
    if not rows or rows[0].get("format") != FORMAT:
        raise BadInput("this is no schedule", f"{path}, line 1", _MEND)
    head = rows[0]
    for name, kind in (("protocol", str), ("variant", str), ("impl", str), ("seed", int), ("constants", dict)):
        if type(head.get(name)) is not kind:
            raise BadInput(f"the head has no {name}", f"{path}, line 1", _MEND)
    constants = head["constants"]
    if not all(type(value) is int for value in constants.values()):
        raise BadInput("a constant is no integer", f"{path}, line 1", _MEND)
    told = ("model", "seen", "told")
    events = tuple(
        event_of({key: value for key, value in row.items() if key not in told}, f"{path}, line {number}")
        for number, row in enumerate(rows[1:], 2)
    )
    met = head.get("met", [])
    if not isinstance(met, list) or not all(isinstance(each, str) for each in met):
        raise BadInput("what it met is no list of texts", f"{path}, line 1", _MEND)
    return Schedule(head["protocol"], head["variant"], constants, head["impl"], head["seed"], events, tuple(met))
