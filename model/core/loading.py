"""A protocol that no package registers, named on a command line: ``file.py:name``, or ``module:name``.

What is named is a ``Protocol`` or a ``Registration``. Of a protocol, the registration that stands beside it in the same
module is taken; without one there is the text alone, which can be explored, mutated, replayed, simulated and mined.
"""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Final

from .errors import BadInput
from .importing import imported, module_named
from .protocol import Protocol
from .registration import Registration

FORMS: Final = "file.py:name or module:name"

_by_file: Final[dict[str, tuple[Path, int]]] = {}
"""The files that were named, and when they were changed, by the name of their module."""


def is_place(name: str) -> bool:
    """Whether this is a place where a protocol stands, and not a protocol's name."""
    return ":" in name


@dataclass(frozen=True)
class Loaded:
    """A protocol that was found at its place: the module's name, and the name within it."""

    registration: Registration
    module: str
    name: str


def load(place: str, where: str) -> Loaded:
    """The registration of the protocol at ``place``. Raises BadInput where there is none; ``where`` is what named it.

    A file's folder is put on the import path, so that the modules beside it import, and it is imported by its own
    name, so that they may import it.
    """
    path, _, name = place.rpartition(":")
    if not path or not name:
        raise BadInput(f"{place!r} names no protocol", where, f"write {FORMS}")
    module = module_of_file(Path(path), where) if path.endswith(".py") else module_named(path, where)
    found: Any = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, Registration):
        return Loaded(found, module.__name__, name)
    if isinstance(found, Protocol):
        return Loaded(_beside(module, found), module.__name__, name)
    there = ", ".join(key for key, value in vars(module).items() if isinstance(value, Protocol | Registration))
    what = "nothing" if found is None else f"a {type(found).__name__}"
    raise BadInput(
        f"{name} in {path} is {what}, no protocol",
        where,
        f"name one of {there}" if there else "name a variable that holds a Protocol or a Registration",
    )


def _beside(module: ModuleType, protocol: Protocol) -> Registration:
    for value in vars(module).values():
        if isinstance(value, Registration) and value.protocol is protocol:
            return value
    return Registration(module.__name__, protocol)


def module_of_file(path: Path, where: str) -> ModuleType:
    """The module that a file is. Raises BadInput where it is not there, or cannot be imported under its name."""
    file = path.absolute()
    if not file.is_file():
        raise BadInput(f"there is no file {path}", where, f"write {FORMS}")
    if not file.stem.isidentifier():
        raise BadInput(f"{path.name} is no name of a module", where, "name the file by letters, digits and _")
    folder = str(file.parent)
    if sys.path[0] != folder:
        sys.path.insert(0, folder)
    state = (file, file.stat().st_mtime_ns)
    if _by_file.get(file.stem, state) != state:
        # Another file of that name, or this one before it was changed, was named earlier by the same process.
        sys.modules.pop(file.stem, None)
        importlib.invalidate_caches()
    module = imported(file.stem, str(path))
    _by_file[file.stem] = state
    found = getattr(module, "__file__", None)
    if found is None or not Path(found).is_file() or not Path(found).samefile(file):
        raise BadInput(f"another module is called {file.stem}, {found or 'built in'}", str(path), "rename the file")
    return module
