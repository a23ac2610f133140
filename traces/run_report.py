"""A run of a model, ready to be told: what the presenters in ``report/`` read, and nothing else.

A ``Story`` names no engine. It carries every state as a mapping from cell name to JSON value, with the cell
names of the trace format: ``var``, ``var[r]`` (replica or epoch) and ``var[r][o]`` (replica and offset).
Whoever has a protocol and a path builds one; the terminal, the page and the report folder only read it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, Final, Literal, TypeAlias, TypeVar, cast

from ..model.core.enum_value import Member
from ..model.core.errors import BadInput
from ..model.core.view import LogView, Route

Json: TypeAlias = "bool | int | float | str | list[Json] | tuple[Json, ...] | dict[str, Json] | None"
"""A JSON value. A tuple is a list to JSON, and becomes one in a ``Moment`` and in a ``Call``."""
Verdict: TypeAlias = Literal["holds", "violated", "unknown"]
VERDICTS: Final[tuple[Verdict, ...]] = ("holds", "violated", "unknown")

FORMAT: Final = "fencepost-story"
VERSION: Final = 1

_CELL: Final = re.compile(r"(?P<variable>[^\[\]]+)(?P<index>(?:\[\w+\])*)")


def split_cell(cell: str) -> tuple[str, tuple[int | str, ...]]:
    """Take ``record_id[1][0]`` apart into ``("record_id", (1, 0))``. Raises ValueError for anything else.

    An index by an enumeration is one of its names.
    """
    match = _CELL.fullmatch(cell)
    if match is None:
        raise ValueError(f"not a cell name: {cell!r}")
    parts = re.findall(r"\w+", match["index"])
    return match["variable"], tuple(int(part) if part.isdigit() else part for part in parts)


@dataclass(frozen=True)
class Call:
    """An action with its parameters, as in ``follower_fetch(leader=0, follower=1)``."""

    action: str
    params: Mapping[str, Json] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", _plain(self.params))


@dataclass(frozen=True)
class Breach:
    """An invariant that does not hold in a state; ``detail`` says how, ``cells`` are those to look at."""

    invariant: str
    detail: str = ""
    cells: tuple[str, ...] = ()


@dataclass(frozen=True)
class Change:
    """A cell that a step wrote. A cell that one of the two states lacks counts as None there."""

    cell: str
    old: Json
    new: Json


@dataclass(frozen=True)
class Moment:
    """One state of the run, and the action that led to it (None for the first).

    ``enabled`` lists every action that can happen in this state, ``broken`` every invariant that does not hold in it.
    """

    step: int
    action: str | None
    params: Mapping[str, Json]
    state: Mapping[str, Json]
    enabled: tuple[Call, ...] = ()
    broken: tuple[Breach, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "params", _plain(self.params))
        object.__setattr__(self, "state", _plain(self.state))


@dataclass(frozen=True)
class Story:
    """A run of one protocol's variant, with its verdict.

    ``headline`` explains the outcome in a sentence; ``violated`` names the property that broke, if any;
    ``promises`` says each property in words; ``source`` says where the run came from (engine, seed, file).
    ``noun`` is what a replica is called: ``broker`` in a story about brokers' files, where ``replicas`` are node ids.
    With ``loop_start`` the run is a lasso: the state of the last moment is that of ``moments[loop_start]``, and
    the steps after ``loop_start`` repeat for ever; when it is the last index, the run stutters there for ever.

    Raises ValueError when there is no moment, when the verdict is not one of ``VERDICTS``, when a ``violated``
    name does not go with the verdict, or when ``loop_start`` is out of range or closes no loop.
    """

    protocol: str
    variant: str
    constants: Mapping[str, Json]
    verdict: Verdict
    violated: str | None
    headline: str
    source: Mapping[str, Json]
    replicas: tuple[int, ...]
    view: LogView
    moments: tuple[Moment, ...]
    promises: Mapping[str, str] = field(default_factory=dict)
    loop_start: int | None = None
    noun: str = "replica"

    def __post_init__(self) -> None:
        if not self.moments:
            raise ValueError("a story needs at least the initial state")
        if self.verdict not in VERDICTS:
            raise ValueError(f"verdict is {self.verdict!r}, not one of {', '.join(VERDICTS)}")
        if self.violated is not None and self.verdict != "violated":
            raise ValueError(f"{self.violated} is named as violated, but the verdict is {self.verdict}")
        if self.loop_start is not None:
            if not 0 <= self.loop_start < len(self.moments):
                raise ValueError(f"the loop starts at moment {self.loop_start} of {len(self.moments)}")
            if self.moments[self.loop_start].state != self.moments[-1].state:
                raise ValueError("the last state of a lasso must be the one that its loop starts in")

    def changes(self, index: int) -> tuple[Change, ...]:
        """The cells that ``moments[index]`` changed against the moment before it, in the state's own order."""
        if index == 0:
            return ()
        old, new = self.moments[index - 1].state, self.moments[index].state
        cells = list(new) + [cell for cell in old if cell not in new]
        return tuple(Change(cell, old.get(cell), new.get(cell)) for cell in cells if old.get(cell) != new.get(cell))

    def first_breach(self) -> int | None:
        """The index of the first moment in which ``violated`` (or, if None, anything) does not hold."""
        for index, moment in enumerate(self.moments):
            if any(self.violated in (None, breach.invariant) for breach in moment.broken):
                return index
        return None

    @property
    def stutters(self) -> bool:
        """Whether the run is a lasso whose loop has no step."""
        return self.loop_start == len(self.moments) - 1


def to_json(story: Story) -> str:
    """The story as one JSON object (ASCII, one line); ``from_json`` reads it back to an equal story."""
    body = cast("dict[str, Json]", _plain(story))
    return json.dumps({"format": FORMAT, "version": VERSION, **body}, ensure_ascii=True, allow_nan=False)


def from_json(text: str, where: str = "story") -> Story:
    """Read what ``to_json`` wrote. Raises ``BadInput`` that names ``where`` and the field that is wrong."""
    try:
        root = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(f"not JSON: {error.msg}", f"{where}, line {error.lineno}", "write it with to_json") from error
    if not isinstance(root, dict) or (root.get("format"), root.get("version")) != (FORMAT, VERSION):
        raise BadInput(f"not a {FORMAT} of version {VERSION}", where, "write it with to_json")
    reader = _Reader(where)
    try:
        return reader.story(root)
    except ValueError as error:
        raise BadInput(str(error), where, "write it with to_json") from error


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: _plain(each) for key, each in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(each) for each in value]
    if isinstance(value, Member):
        return value.label
    return value


_T = TypeVar("_T")


class _Reader:
    """Reads dataclasses out of parsed JSON, and names the field at fault."""

    def __init__(self, where: str) -> None:
        self._where = where

    def get(self, node: Mapping[str, Any], path: str, name: str, kind: type[_T], *, none: bool = False) -> _T:
        """``node[name]`` if it is a ``kind`` (a bool is no int), or None where that is allowed."""
        value = node.get(name)
        if value is None and none:
            return cast("_T", None)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            what = f"{path}{name} is {'missing' if name not in node else type(value).__name__}"
            raise BadInput(what, self._where, f"it must be {kind.__name__}{' or null' if none else ''}")
        return value

    def names(self, node: Mapping[str, Any], path: str, name: str) -> tuple[str, ...]:
        values = self.get(node, path, name, list)
        if not all(isinstance(each, str) for each in values):
            raise BadInput(f"{path}{name} holds more than names", self._where, "it must be a list of strings")
        return tuple(values)

    def text_map(self, node: Mapping[str, Any], path: str, name: str) -> dict[str, str]:
        values = self.get(node, path, name, dict)
        return {key: self.get(values, f"{path}{name}.", key, str) for key in values}

    def each(
        self, node: Mapping[str, Any], path: str, name: str, read: Callable[[dict[str, Any], str], _T]
    ) -> tuple[_T, ...]:
        found = []
        for index, value in enumerate(self.get(node, path, name, list)):
            at = f"{path}{name}[{index}]"
            if not isinstance(value, dict):
                raise BadInput(f"{at} is {type(value).__name__}", self._where, "it must be an object")
            found.append(read(value, f"{at}."))
        return tuple(found)

    def call(self, node: dict[str, Any], path: str) -> Call:
        return Call(self.get(node, path, "action", str), self.get(node, path, "params", dict))

    def breach(self, node: dict[str, Any], path: str) -> Breach:
        name, detail = (self.get(node, path, each, str) for each in ("invariant", "detail"))
        return Breach(name, detail, self.names(node, path, "cells"))

    def moment(self, node: dict[str, Any], path: str) -> Moment:
        return Moment(
            step=self.get(node, path, "step", int),
            action=self.get(node, path, "action", str, none=True),
            params=self.get(node, path, "params", dict),
            state=self.get(node, path, "state", dict),
            enabled=self.each(node, path, "enabled", self.call),
            broken=self.each(node, path, "broken", self.breach),
            notes=self.names(node, path, "notes"),
        )

    def route(self, node: dict[str, Any], path: str) -> Route:
        optional = {name: self.get(node, path, name, str, none=True) for name in ("target", "sent", "consults")}
        return Route(self.get(node, path, "source", str), **optional)

    def view(self, node: dict[str, Any], path: str) -> LogView:
        optional = {
            each.name: self.get(node, path, each.name, str, none=True)
            for each in fields(LogView)
            if each.name not in ("fields", "controller", "per_epoch", "labels", "routes")
        }
        routes = self.get(node, path, "routes", dict)
        return LogView(
            fields=self.names(node, path, "fields"),
            controller=self.names(node, path, "controller"),
            per_epoch=self.names(node, path, "per_epoch"),
            labels=self.text_map(node, path, "labels"),
            routes={
                name: self.route(self.get(routes, f"{path}routes.", name, dict), f"{path}routes.{name}.")
                for name in routes
            },
            **optional,
        )

    def story(self, node: dict[str, Any]) -> Story:
        replicas = self.get(node, "", "replicas", list)
        if not all(type(each) is int for each in replicas):
            raise BadInput("replicas holds more than numbers", self._where, "it must be a list of integers")
        return Story(
            protocol=self.get(node, "", "protocol", str),
            variant=self.get(node, "", "variant", str),
            constants=self.get(node, "", "constants", dict),
            verdict=cast("Verdict", self.get(node, "", "verdict", str)),
            violated=self.get(node, "", "violated", str, none=True),
            headline=self.get(node, "", "headline", str),
            source=self.get(node, "", "source", dict),
            replicas=tuple(replicas),
            view=self.view(self.get(node, "", "view", dict), "view."),
            moments=self.each(node, "", "moments", self.moment),
            promises=self.text_map(node, "", "promises"),
            loop_start=self.get(node, "", "loop_start", int, none=True),
            noun=self.get({"noun": "replica", **node}, "", "noun", str),
        )
