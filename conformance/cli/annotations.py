"""GitHub's annotations: where ``GITHUB_ACTIONS`` is set, what fails is shown beside the text that it is about.

A line ``::error file=...,line=...,title=...::message`` on standard error. Escapes are GitHub's (toolkit,
``command.ts``): in a message ``%``, CR and LF; in a property ``:`` and ``,`` too.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, NamedTuple

from ...model.core.protocol import Protocol

VARIABLE: Final = "GITHUB_ACTIONS"

_MESSAGE: Final = {"%": "%25", "\r": "%0D", "\n": "%0A"}
_PROPERTY: Final = _MESSAGE | {":": "%3A", ",": "%2C"}


class Place(NamedTuple):
    """A line of a file, from 1 on."""

    file: str
    line: int


def place_of(protocol: Protocol, *names: str | None) -> Place | None:
    """Where the protocol's text has the first of these names that is an action, a promise or a witness of it."""
    for name in names:
        if name is None:
            continue
        for texts in (protocol.actions, protocol.invariants, protocol.witnesses, protocol.liveness):
            if name in texts:
                code = texts[name].text.__code__
                return Place(code.co_filename, code.co_firstlineno)
    return None


def annotate(title: str, message: str, place: Place | None = None, *, failed: bool = True) -> None:
    """One annotation: an error, or a warning where nothing is decided. Without ``GITHUB_ACTIONS`` nothing is said."""
    if not os.environ.get(VARIABLE):
        return
    where: list[str] = []
    if place is not None:
        where = [f"file={_escaped(_from_workspace(place.file), _PROPERTY)}", f"line={place.line}"]
    properties = ",".join([*where, f"title={_escaped(title, _PROPERTY)}"])
    level = "error" if failed else "warning"
    # Not through the console: it would show the message's escapes, and this is read by a machine.
    print(f"::{level} {properties}::{_escaped(message, _MESSAGE)}", file=sys.stderr, flush=True)


def _escaped(text: str, escapes: dict[str, str]) -> str:
    return "".join(escapes.get(each, each) for each in text)


def _from_workspace(file: str) -> str:
    """GitHub knows files by their path in the workspace."""
    try:
        return str(Path(file).resolve().relative_to(Path(os.environ.get("GITHUB_WORKSPACE") or Path.cwd()).resolve()))
    except ValueError:
        return file
