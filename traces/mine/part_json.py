"""A `Part` as JSON and back: what has been mined so far outlives the process that mined it.

Nothing is executed on the way back, and everything is checked: a file of another kind is refused, never misread.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import numpy as np

from ..format import Trace, json_line
from ..read import TraceReader
from ..run_report import Json
from .answer import Bug, Problem
from .coverage import Prints, Seen
from .part import Model, Part, Sighting

_LITTLE: Final = "<u8"


def part_to_json(part: Part) -> dict[str, Json]:
    """The part as a JSON object; equal parts give equal objects, whatever order they were merged in."""
    return {
        "traces": part.traces,
        "events": part.events,
        "violating": part.violating,
        "sightings": [_sighting(part.sightings[bug]) for bug in sorted(part.sightings, key=repr)],
        "unknown": {reason: list(counts) for reason, counts in sorted(part.unknown.items())},
        "seen": [{"model": _model(model), **_seen(part.seen[model])} for model in sorted(part.seen)],
        "problems": [problem.to_json() for problem in part.problems],
    }


def part_from_json(found: Any) -> Part:
    """The inverse. Raises ValueError, KeyError or TypeError for anything else."""
    sightings = [_read_sighting(each) for each in found["sightings"]]
    return Part(
        traces=_count(found["traces"]),
        events=_count(found["events"]),
        violating=_count(found["violating"]),
        sightings={sighting.bug: sighting for sighting in sightings},
        unknown={reason: (_count(count), _count(first)) for reason, (count, first) in found["unknown"].items()},
        seen={_read_model(each["model"]): _read_seen(each) for each in found["seen"]},
        problems=[Problem(each["what"], each["where"], each["mend"]) for each in found["problems"]],
    )


def _count(value: Any) -> int:
    if type(value) is not int:
        raise ValueError(f"{value!r} is no number")
    return value


def _model(model: Model) -> Json:
    protocol, variant, constants = model
    return [protocol, variant, dict(constants)]


def _read_model(found: Any) -> Model:
    protocol, variant, constants = found
    return str(protocol), str(variant), tuple((str(name), _count(value)) for name, value in constants.items())


def _sighting(sighting: Sighting) -> dict[str, Json]:
    lines = [json_line(sighting.trace.header), *(json_line(event) for event in sighting.trace.events)]
    return {
        "bug": sighting.bug.to_json(),
        "changes": list(sighting.bug.changes),
        "model": _model(sighting.model),
        "count": sighting.count,
        "first": sighting.first,
        "prefix": sighting.prefix,
        "shortest": sighting.shortest,
        "trace": "".join(lines),
        "shapes": [[list(shape), count] for shape, count in sorted(sighting.shapes.items())],
        "then": {name: list(counts) for name, counts in sorted(sighting.then.items())},
    }


def _read_sighting(found: Any) -> Sighting:
    bug = found["bug"]
    seen = Bug(bug["protocol"], bug["kind"], bug["action"], bug["guard"], tuple(bug["variables"]), bug["invariant"])
    return Sighting(
        bug=replace(seen, changes=tuple(map(str, found["changes"]))),
        model=_read_model(found["model"]),
        count=_count(found["count"]),
        first=_count(found["first"]),
        prefix=_count(found["prefix"]),
        shortest=_count(found["shortest"]),
        trace=_read_trace(found["trace"]),
        shapes={tuple(shape): _count(count) for shape, count in found["shapes"]},
        then={name: (_count(count), _count(after)) for name, (count, after) in found["then"].items()},
    )


def _read_trace(text: str) -> Trace:
    reader = TraceReader(io.BytesIO(text.encode("ascii")), "trace")
    events = tuple(reader)
    if reader.header is None or reader.problems:
        raise ValueError(f"a trace in it is damaged: {reader.problems[0] if reader.problems else 'no header'}")
    return Trace(reader.header, events)


def _seen(seen: Seen) -> dict[str, Json]:
    return {
        "events": seen.events,
        "actions": _sorted(seen.actions),
        "guards": _sorted(seen.guards),
        "marks": [[mark, first] for mark, first in sorted(seen.marks.items())],
        "moves": [[mark, action, *counts] for (mark, action), counts in sorted(seen.moves.items())],
        "states": _prints(seen.states),
        "steps": _prints(seen.steps),
        "capped": seen.capped,
    }


def _read_seen(found: Mapping[str, Any]) -> Seen:
    return Seen(
        events=_count(found["events"]),
        actions={name: _count(value) for name, value in found["actions"].items()},
        guards={name: _count(value) for name, value in found["guards"].items()},
        marks={_count(mark): _count(first) for mark, first in found["marks"]},
        moves={(_count(mark), str(action)): (_count(n), _count(first)) for mark, action, n, first in found["moves"]},
        states=_read_prints(found["states"]),
        steps=_read_prints(found["steps"]),
        capped=bool(found["capped"]),
    )


def _sorted(counts: Mapping[str, int]) -> dict[str, Json]:
    return {name: counts[name] for name in sorted(counts)}


def _prints(prints: Prints) -> str:
    return base64.b64encode(prints.astype(_LITTLE).tobytes()).decode("ascii")


def _read_prints(text: str) -> Prints:
    read = np.frombuffer(base64.b64decode(text.encode("ascii"), validate=True), dtype=_LITTLE)
    return read.astype(np.uint64)
