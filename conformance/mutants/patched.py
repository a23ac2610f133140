"""A copy of ``impl/`` with a line changed: how an implementation mutant comes to life.

A mutant is a difference to the source text, so it reads as in a code review, and ``impl/`` holds nothing for its sake.
The copy is imported under a name of its own beside the real package. Messages, files and network are shared with it,
unless the patch is in one of them, so that both speak of the same classes.
"""

from __future__ import annotations

import importlib
import itertools
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType

from ... import impl
from ...model.core.errors import ProtocolError

_SHARED = ("wire", "net", "files")
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Patch:
    """In ``file`` (within ``impl/``), the text ``old``, which stands there exactly once, becomes ``new``."""

    file: str
    old: str
    new: str

    @property
    def module(self) -> str:
        """The module's name within ``impl``: ``log/log.py`` is ``log.log``."""
        return self.file.removesuffix(".py").replace("/", ".").removesuffix(".__init__")

    def applied_to(self, source: str) -> str:
        """The patched text. Raises ProtocolError where ``old`` does not stand there once, or nothing changes."""
        found = source.count(self.old)
        if found != 1 or self.old == self.new:
            raise ProtocolError(
                f"impl/{self.file}: the text to patch stands there {found} times, not once: {self.old!r}"
            )
        return source.replace(self.old, self.new)


class _PatchedLoader(SourceFileLoader):
    """Compiles the patched text; no bytecode file is read or written for it."""

    def __init__(self, name: str, path: str, patches: Sequence[Patch]) -> None:
        super().__init__(name, path)
        self._patches = patches

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - a loader's signature
        source = Path(self.path).read_text(encoding="utf-8")
        for patch in self._patches:
            source = patch.applied_to(source)
        return compile(source, self.path, "exec", dont_inherit=True)


class _Finder:
    """Finds the patched modules of one copy; the import system finds the others by the copy's path."""

    def __init__(self, root: str, patches: Sequence[Patch]) -> None:
        self._patched: dict[str, list[Patch]] = {}
        for patch in patches:
            self._patched.setdefault(f"{root}.{patch.module}", []).append(patch)

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> ModuleSpec | None:
        """The module, if it is one of those with a patch."""
        patches = self._patched.get(name)
        if patches is None:
            return None
        path = str(_folder() / patches[0].file)
        return spec_from_file_location(name, path, loader=_PatchedLoader(name, path, patches))


def _folder() -> Path:
    return Path(impl.__path__[0])


def _real_modules(package: str) -> list[str]:
    """A package of ``impl`` and all modules in it, by their names within ``impl``."""
    found = importlib.import_module(f"{impl.__name__}.{package}")
    inside = [name for _, name, _ in pkgutil.walk_packages(found.__path__, f"{found.__name__}.")]
    for name in inside:
        importlib.import_module(name)
    return [name.removeprefix(f"{impl.__name__}.") for name in (found.__name__, *inside)]


@contextmanager
def patched(*patches: Patch) -> Iterator[ModuleType]:
    """The patched copy of ``impl``, as long as the block lasts; its modules are imported below its own name.

    Raises ProtocolError where a patch does not fit its file any more, when that module is imported.
    """
    root = f"{impl.__name__}_mutant_{next(_numbers)}"
    finder = _Finder(root, patches)
    spec = spec_from_file_location(root, _folder() / "__init__.py", submodule_search_locations=[str(_folder())])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[root] = module
    touched = {patch.module.split(".")[0] for patch in patches}
    for package in _SHARED:
        if package not in touched:
            for name in _real_modules(package):
                sys.modules[f"{root}.{name}"] = sys.modules[f"{impl.__name__}.{name}"]
    sys.meta_path.insert(0, finder)
    try:
        spec.loader.exec_module(module)
        for patch in patches:
            importlib.import_module(f"{root}.{patch.module}")
        yield module
    finally:
        sys.meta_path.remove(finder)
        for name in [name for name in sys.modules if name == root or name.startswith(f"{root}.")]:
            del sys.modules[name]
