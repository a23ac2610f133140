"""Protocols that do not come with Fencepost, taken along to Spark's workers: their text travels with the tasks.

A worker has Fencepost, installed or sent, and not the file that a command line named, nor another package that
registers a protocol. So the sources of that module, and of the modules beside it that are imported, are sent as text; a
worker imports them from memory, once a process, and registers the protocol.

A worker may have a module or a protocol of that name already: by an earlier task, or by an installed package. Where its
text, or what is traced of it, is another, the work is refused: it would be done by another protocol.
"""

from __future__ import annotations

import importlib
import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from importlib.util import spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Final, Generic, TypeVar

from ..model.core.errors import BadInput
from ..model.core.protocol import Protocol
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
    """A protocol's text: ``place`` is ``module:name``, ``sources`` are that module and those that it needs.

    ``digest``: of what is traced of it here, which may be of an older text than the files hold by now.
    """

    protocol: str
    place: str
    sources: tuple[Source, ...]
    digest: str


class OtherTextError(BadInput):
    """A worker has another text of a protocol than the process that sent the work."""


def texts() -> tuple[Text, ...]:
    """What this process has of protocols that do not come with Fencepost."""
    return tuple(
        Text(protocol, f"{module}:{name}", _sources(module), digest_of(REGISTRY[protocol].protocol))
        for protocol, (module, name) in REGISTRY.places().items()
    )


def digest_of(protocol: Protocol) -> str:
    """The hash of all variants as terms; the same in each process that reads the same text."""
    digest = sha256()
    for name in protocol.variants:
        traced = protocol.traced(name)
        variables = [(v.name, [each.name for each in v.per], v.values.sort, v.dead) for v in traced.variables.values()]
        actions = [(a.name, [(p, i.name) for p, i in a.params.items()], a.guards, a.writes) for a in traced.actions]
        promises = [list(each.items()) for each in (traced.invariants, traced.witnesses, traced.live)]
        digest.update(repr((name, list(protocol.constants), variables, actions, promises)).encode())
    return digest.hexdigest()


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
        module.__dict__[_TEXT] = source.text
        exec(compile(source.text, source.file, "exec", dont_inherit=True), module.__dict__)  # noqa: S102 - it is the import


_TEXT: Final = "__fencepost_text__"
"""The name, in a module that came with a task, of the text that it was imported from."""

_memory = _Memory()
_installed: set[Text] = set()


def install(shipped: Sequence[Text]) -> None:
    """Register these protocols in this process; one that it has is left as it is.

    Raises OtherTextError where what it has is another text.
    """
    for text in shipped:
        if text in _installed:
            continue
        if _memory not in sys.meta_path:
            sys.meta_path.insert(0, _memory)
        changed = _forget_changed(text.sources)
        for source in text.sources:
            _refuse_another(source, text.protocol)
            _memory.sources[source.module] = source
        importlib.invalidate_caches()
        if changed or text.protocol not in REGISTRY:
            try:
                REGISTRY.named(text.place, "a task's protocol")
            except BadInput as error:
                # A file that was changed since this process read it, and is no protocol now.
                raise OtherTextError(error.what, error.where, error.mend) from error
        if digest_of(REGISTRY[text.protocol].protocol) != text.digest:
            raise OtherTextError(
                f"a worker reads another protocol of the name {text.protocol!r} than this process",
                text.place,
                "start again once all its files are saved, and restart the workers of a cluster",
            )
        _installed.add(text)


def _forget_changed(sources: Sequence[Source]) -> bool:
    """Drop the modules of an earlier task, if the text of one of them has changed since. Whether it has."""
    came = {source.module: vars(sys.modules[source.module]).get(_TEXT) for source in sources if _is_here(source)}
    if all(came[source.module] in (None, source.text) for source in sources if source.module in came):
        return False
    for module, text in came.items():
        if text is not None:
            del sys.modules[module]
    return True


def _is_here(source: Source) -> bool:
    return sys.modules.get(source.module) is not None


def _refuse_another(source: Source, protocol: str) -> None:
    """Raises OtherTextError where a module of that name, imported from another text, is here already."""
    module = sys.modules.get(source.module)
    if module is None:
        return
    file = getattr(module, "__file__", None)
    there = getattr(module, _TEXT, None)
    if there is None and file is not None and Path(file).is_file():
        there = Path(file).read_text(encoding="utf-8", errors="replace")
    if there != source.text:
        raise OtherTextError(
            f"a worker has another module of the name {source.module!r}, {file or 'built in'}, which {protocol} needs",
            source.file,
            "rename the module, or install the same package for the workers and restart them",
        )


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
