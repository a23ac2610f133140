"""Protocols that do not come with Fencepost, taken along to Spark's workers: their text travels with the tasks.

A worker has Fencepost, installed or sent, and not the file that a command line named, nor another package that
registers a protocol. So the sources of that module, and of the modules beside it that are imported, are sent as text; a
worker imports them from memory, once a process, and registers the protocol.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from ..model.core.loading import load
from ..model.core.registry import REGISTRY

T = TypeVar("T")
R = TypeVar("R")


@dataclass(frozen=True)
class Source:
    """One module: its name, its file where it comes from, its text, and whether it is a package."""

    module: str
    file: str
    text: str
    package: bool


@dataclass(frozen=True)
class Text:
    """A protocol's text: ``place`` is ``module:name``, ``sources`` are that module and those that it needs."""

    protocol: str
    place: str
    sources: tuple[Source, ...]


def texts() -> tuple[Text, ...]:
    """What this process has of protocols that do not come with Fencepost."""
    return tuple(
        Text(protocol, f"{module}:{name}", _sources(module)) for protocol, (module, name) in REGISTRY.places().items()
    )


def _root(name: str, file: str, package: bool) -> Path:
    """The folder from which a module is imported."""
    return Path(file).absolute().parents[name.count(".") + package]


def _sources(name: str) -> tuple[Source, ...]:
    """The module and every imported one from the same folder, in the order of their names.

    Where other people's packages lie too, those of its own package alone.
    """
    installed = {Path(sysconfig.get_path(kind)).absolute() for kind in ("purelib", "platlib")}
    candidates: dict[str, tuple[str, bool]] = {}
    for other, module in sorted(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file is not None and file.endswith(".py") and getattr(module, "__name__", None) == other:
            candidates[other] = (file, hasattr(module, "__path__"))
    root = _root(name, *candidates[name])
    top = name.partition(".")[0]
    return tuple(
        Source(other, file, Path(file).read_text(encoding="utf-8"), package)
        for other, (file, package) in candidates.items()
        if (other.partition(".")[0] == top or root not in installed) and _root(other, file, package) == root
    )


class _Memory(MetaPathFinder, Loader):
    """Imports modules whose text came with a task. One of that name that is there already is left alone."""

    def __init__(self) -> None:
        self.sources: dict[str, Source] = {}

    def find_spec(self, fullname: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The module, if its text has come."""
        source = self.sources.get(fullname)
        if source is None:
            return None
        return spec_from_loader(fullname, self, origin=source.file, is_package=source.package)

    def exec_module(self, module: ModuleType) -> None:
        """Run the text."""
        source = self.sources[module.__name__]
        exec(compile(source.text, source.file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - it is the import


_memory = _Memory()
_installed: set[Text] = set()


def install(shipped: Sequence[Text]) -> None:
    """Register these protocols in this process; those that it has are left as they are."""
    for text in shipped:
        if text in _installed:
            continue
        if _memory not in sys.meta_path:
            sys.meta_path.insert(0, _memory)
        _memory.sources.update((source.module, source) for source in text.sources)
        importlib.invalidate_caches()
        if text.protocol not in REGISTRY:
            REGISTRY.add(load(text.place, "a task's protocol").registration)
        _installed.add(text)


@dataclass(frozen=True)
class Carried(Generic[T, R]):
    """Work for a task of Spark's, and the protocols that it may need."""

    work: Callable[[T], R]
    shipped: tuple[Text, ...]

    def __call__(self, item: T) -> R:
        """Register what came along, then do the work."""
        install(self.shipped)
        return self.work(item)


def carried(work: Callable[[T], R]) -> Callable[[T], R]:
    """The work, with the protocols that this process has and a worker may lack."""
    shipped = texts()
    return Carried(work, shipped) if shipped else work
