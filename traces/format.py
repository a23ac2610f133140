"""The trace format, version 1: what a trace is, in memory and as JSON Lines.

The first line of a file is the header, every other line an event; ``trace.schema.json`` beside this file is the
published JSON Schema (draft 2020-12) of both. ``read.py`` and ``write.py`` move traces between memory and files.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any, Final, TypeAlias

from ..model.core.enum_value import plain_params
from .run_report import Json

FORMAT: Final = "fencepost-trace"
VERSION: Final = 1
SCHEMA_FILE: Final = "trace.schema.json"

Value: TypeAlias = "int | str | tuple[int, ...] | None"
"""The value of a cell in a trace: an integer or a replica, a name of an enumeration, a sorted set of replicas, or None.

None is no replica, and the value of a dead cell of an enumeration.
"""


@cache
def trace_schema() -> dict[str, Any]:
    """The published JSON Schema. ``$defs/header`` is that of the first line, ``$defs/event`` that of the others."""
    text = files(__package__).joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@dataclass(frozen=True)
class TraceHeader:
    """What a trace is a trace of.

    ``constants`` has a value for each constant of the protocol. ``complete`` says that every step that happened is
    an event; otherwise events may be missing anywhere. ``source`` is free: where the trace came from. ``partial``: why
    the trace reports only a part of the run, such as where its end is cut off; None: it reports all. No replay of a
    partial trace answers ``holds``.
    """

    protocol: str
    variant: str
    constants: Mapping[str, int]
    complete: bool = False
    source: Mapping[str, Json] = field(default_factory=dict)
    partial: str | None = None

    def to_json(self) -> dict[str, Json]:
        """The header as a JSON object; ``partial`` only of a trace that is."""
        body: dict[str, Json] = {
            "format": FORMAT,
            "version": VERSION,
            "protocol": self.protocol,
            "variant": self.variant,
            "constants": dict(self.constants),
            "complete": self.complete,
            "source": dict(self.source),
        }
        return body if self.partial is None else body | {"partial": self.partial}


@dataclass(frozen=True)
class TraceEvent:
    """One step and what was observed of the state after it.

    ``action`` None: no step at all, only a look at the state. A parameter that is None is not known; of an enumeration
    it is a member, an int that is written by its name. ``observed``
    holds cells by name, as many as the recorder saw. ``line`` is the line of the file, counted from 1, if any.
    """

    step: int
    action: str | None = None
    params: Mapping[str, int | None] = field(default_factory=dict)
    observed: Mapping[str, Value] = field(default_factory=dict)
    source: Mapping[str, Json] = field(default_factory=dict)
    line: int | None = field(default=None, compare=False)

    def to_json(self) -> dict[str, Json]:
        """The event as a JSON object, without what is empty."""
        body: dict[str, Json] = {"step": self.step}
        if self.action is not None:
            body |= {"action": self.action, "params": plain_params(self.params)}
        if self.observed:
            body["observed"] = {cell: value_json(value) for cell, value in self.observed.items()}
        if self.source:
            body["source"] = dict(self.source)
        return body

    @property
    def call(self) -> str:
        """``follower_fetch(leader=0, follower=?)``, or ``a look at the state``."""
        if self.action is None:
            return "a look at the state"
        params = (f"{name}={'?' if value is None else value}" for name, value in self.params.items())
        return f"{self.action}({', '.join(params)})"


@dataclass(frozen=True)
class Trace:
    """A header and its events; their step numbers increase."""

    header: TraceHeader
    events: tuple[TraceEvent, ...]

    def __len__(self) -> int:
        return len(self.events)


def value_json(value: Value) -> Json:
    """A cell's value as JSON."""
    return list(value) if isinstance(value, tuple) else value


def json_line(item: TraceHeader | TraceEvent) -> str:
    """One line of a trace file, with its line feed. ASCII, so that no byte of it can be damaged by a code page."""
    return json.dumps(item.to_json(), allow_nan=False, separators=(", ", ": ")) + "\n"
