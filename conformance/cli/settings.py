"""Defaults of a project: ``[tool.fencepost.COMMAND]`` in the nearest ``pyproject.toml``, from the working folder up.

A key is an option's name without its dashes, or a constant's. What is typed comes first; a default that has nothing to
say beside what is typed (``seed`` beside ``--replay``) steps back. A key that no option has is an error: a default that
is never applied would seem to be.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter as Kind
from pathlib import Path
from typing import Final, TypeAlias

from cyclopts import App, ArgumentCollection, Token
from cyclopts.config import Dict

from ...model.core.errors import BadInput
from ...model.core.registry import PROTOCOLS

FILE: Final = "pyproject.toml"
KEYS: Final = ("tool", "fencepost")

_LOCKSTEP: Final = frozenset({"examples", "steps", "fault", "draw"})
_FREE: Final = frozenset({"runs", "events", "source", "corpus", "jobs"})
_DRAWN: Final = _LOCKSTEP | _FREE | {"way", "time", "seed", "faults", "max_seconds"}
STEPS_BACK: Final[Mapping[tuple[str, str], frozenset[str]]] = {
    ("conform", "replay"): _DRAWN,
    ("conform", "way=free"): _LOCKSTEP,
    ("conform", "way=lockstep"): _FREE,
    ("conform", "time"): frozenset({"runs", "examples", "max_seconds"}),
    ("conform", "examples"): frozenset({"time"}),
    ("conform", "runs"): frozenset({"time"}),
    ("conform", "corpus"): frozenset({"jobs"}),
    ("conform", "jobs"): frozenset({"corpus"}),
    ("conform", "max_seconds"): frozenset({"time"}),
    ("conform", "faults"): frozenset({"fault"}),
}
"""For a command and an option that is typed, or one with its value, the defaults that mean nothing beside it."""

Table: TypeAlias = dict[str, object]


@dataclass(frozen=True)
class _Found:
    """The table of all commands, and the file's text, for the numbers of its lines."""

    path: Path
    text: str
    table: Table

    def where(self, command: str | None, key: str | None) -> str:
        """``pyproject.toml, line 12``."""
        return f"{self.path}, line {_line(self.text, command, key)}"


class Settings:
    """What Cyclopts asks, after what was typed, for values of a command's options. Raises BadInput for a bad file."""

    def __init__(self, commands: tuple[str, ...]) -> None:
        self.commands = commands

    def __call__(self, app: App, commands: tuple[str, ...], arguments: ArgumentCollection) -> None:
        """Give the arguments that were not typed their defaults from the file."""
        found = _read()
        if found is None or not commands or commands[0] not in self.commands:
            return
        for name, each in found.table.items():
            if name not in self.commands:
                raise BadInput(f"there is no command {name!r}", found.where(name, None), _mend(self.commands))
            if not isinstance(each, dict):
                raise BadInput(f"{name} is no table", found.where(None, name), f"write [tool.fencepost.{name}]")
        command = commands[0]
        table = found.table.get(command, {})
        assert isinstance(table, dict)
        options, constants = _options(arguments)
        typed = {word for words in options.values() for word in words}
        for key in table:
            if _name(key) not in options and _name(key) not in constants:
                names = [*options, *constants]
                raise BadInput(f"{command} has no option {key!r}", found.where(command, key), _mend(names))
        idle = {name for option in typed for name in STEPS_BACK.get((command, option), ())}
        kept = {key: value for key, value in table.items() if _name(key) in options and _name(key) not in idle}
        Dict({command: kept}, source=str(found.path))(app, commands, arguments)
        for key, value in table.items():
            if _name(key) in constants:
                _set_constant(arguments, _name(key), value, found.where(command, key))


def _options(arguments: ArgumentCollection) -> tuple[dict[str, list[str]], list[str]]:
    """The options of a command, each with how it was typed (``way``, ``way=free``), and the constants that it takes."""
    options: dict[str, list[str]] = {}
    constants: list[str] = []
    for argument in arguments:
        if argument.field_info.kind is Kind.VAR_KEYWORD:
            constants = list(dict.fromkeys(name for each in PROTOCOLS.values() for name in each.constants))
        else:
            name = _name(argument.field_info.name)
            tokens = argument.tokens
            options[name] = [name, *(f"{name}={token.value}" for token in tokens)] if tokens else []
    return options, constants


def _set_constant(arguments: ArgumentCollection, name: str, value: object, where: str) -> None:
    """Give a constant its default: all of them are one argument, of which Cyclopts fills in the whole or nothing."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise BadInput(f"{value!r} is no whole number", where, "write it in decimal digits")
    for argument in arguments:
        if argument.field_info.kind is Kind.VAR_KEYWORD and name not in {
            _name(token.keys[0]) for token in argument.tokens if token.keys
        }:
            argument.append(Token(keyword=f"--{name}", value=str(value), source=FILE, keys=(name,)))


def _name(key: str) -> str:
    return key.replace("-", "_")


def _mend(names: Sequence[str]) -> str:
    return f"choose of {', '.join(names)}"


def _read() -> _Found | None:
    """The nearest file's table; None where there is no file, or no such table in it."""
    here = Path.cwd()
    path = next((folder / FILE for folder in (here, *here.parents) if (folder / FILE).is_file()), None)
    if path is None:
        return None
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    try:
        text = path.read_text(encoding="utf-8")
        node: object = tomllib.loads(text)
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise BadInput(f"cannot be read: {error}", str(shown), "mend it") from error
    for key in KEYS:
        node = node.get(key, {}) if isinstance(node, dict) else {}
    if not isinstance(node, dict):
        raise BadInput("tool.fencepost is no table", str(shown), "write [tool.fencepost.COMMAND]")
    return _Found(shown, text, node) if node else None


def _line(text: str, command: str | None, key: str | None) -> int:
    """The line of a key in a command's table, else that of the table, else the first; quotes and dots are seen past."""
    header: str | None = None
    best = 1
    for number, line in enumerate(text.splitlines(), 1):
        bare = re.sub(r"[\"' ]", "", line.split("#")[0])
        if bare.startswith("["):
            header = bare.strip("[]")
        inside = ".".join(part for part in (header, bare.partition("=")[0]) if part is not None)
        if bare.startswith("["):
            inside = header or ""
        wanted = ".".join([*KEYS, *(part for part in (command, key) if part is not None)])
        if inside == wanted or inside.startswith(f"{wanted}."):
            return number
        if command is not None and inside == ".".join([*KEYS, command]):
            best = number
    return best
