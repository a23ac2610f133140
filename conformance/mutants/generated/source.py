"""Whose source is mutated: that of ``impl/``, as far as a protocol's systems run it, or a folder of somebody else's.

A mutant is imported, not written anywhere: ``impl/`` as a patched copy beside the real one (``patched.py``), a user's
module in its own place, with the changed text instead of the one in the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatch
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

from .... import impl
from ....model.core.errors import BadInput
from ....model.core.registry import REGISTRY
from ...adapters.parts import Parts
from ...harness import find_harness
from ..patched import Patch, patched
from .drawing import Mutant
from .text import Text

_TESTS: Final = ("test_*.py", "*_test.py", "conftest.py", "setup.py")
_SKIPPED: Final = frozenset({"__pycache__", ".venv", "venv", ".git", "build", "tests"})


@dataclass(frozen=True)
class Source:
    """A folder and the files in it that are mutated, by their paths within it, with ``/``.

    ``is_ours``: the folder is ``impl/``, of which a system gets a copy.
    """

    folder: Path
    files: tuple[str, ...]
    is_ours: bool

    def text(self, file: str) -> str:
        """A file as it is."""
        return (self.folder / file).read_text(encoding="utf-8")

    def path(self, file: str) -> str:
        """The file's name as Python has it in code objects."""
        return str(self.folder / file)


def our_source(protocols: Sequence[str], only: Sequence[str]) -> Source:
    """What the systems of these protocols run of ``impl/``. Raises BadInput where that is nothing."""
    driven = sorted({file for name in protocols for file in files_driven(name)})
    return _chosen(Path(impl.__path__[0]), driven, only, is_ours=True)


def files_driven(protocol: str) -> tuple[str, ...]:
    """The files of ``impl/`` with the protocol's own code, as its harness says."""
    harness = find_harness(protocol)
    return () if harness is None else harness.drives


def drivers_of(file: str) -> list[str]:
    """The protocols whose systems run a file of ``impl/``."""
    return [name for name in REGISTRY if file in files_driven(name)]


def source_of(folder: Path, only: Sequence[str], besides: Path | None) -> Source:
    """All modules below a folder but tests. ``besides``: the file with the adapter, which is no part of the system.

    Raises BadInput where there is none.
    """
    root = folder.resolve()
    if not root.is_dir():
        raise BadInput("there is no such folder", f"--source {folder}", "name the folder of the system's modules")
    found = []
    for path in sorted(root.rglob("*.py")):
        within = path.relative_to(root)
        plain = not _SKIPPED & set(within.parts) and not any(fnmatch(path.name, each) for each in _TESTS)
        if plain and path != besides:
            found.append(within.as_posix())
    return _chosen(root, found, only, is_ours=False)


def _chosen(folder: Path, files: Sequence[str], only: Sequence[str], *, is_ours: bool) -> Source:
    if not files:
        raise BadInput(f"{folder} has no module of a system", "--source", "name the folder of the system's modules")
    for pattern in only:
        if not any(fnmatch(file, pattern) for file in files):
            raise BadInput(f"no file is called {pattern!r}", "--only", f"choose of {', '.join(files)}")
    chosen = [file for file in files if not only or any(fnmatch(file, pattern) for pattern in only)]
    return Source(folder, tuple(chosen), is_ours)


def texts_of(source: Source) -> list[Text]:
    """The files, read. Raises BadInput for one that is no Python."""
    found = []
    for file in source.files:
        try:
            found.append(Text(file, source.text(file)))
        except (SyntaxError, UnicodeDecodeError, OSError) as error:
            raise BadInput(
                f"it is no Python text: {error}", source.path(file), "mend it, or name others by --only"
            ) from error
    return found


@contextmanager
def loaded(source: Source, mutant: Mutant | None) -> Iterator[Parts | None]:
    """Import the source with a mutant in it, or as it is, for as long as the block lasts.

    Gives the classes of the copy where the source is ours; None else, where a module is to be imported in the block.
    """
    if source.is_ours:
        if mutant is None:
            yield Parts.of()
            return
        with patched(Patch(mutant.file, source.text(mutant.file), mutant.text)) as root:
            yield Parts.of(root)
        return
    if mutant is None:
        yield None
        return
    finder = _Replacing(source.folder / mutant.file, mutant.text)
    sys.meta_path.insert(0, finder)
    try:
        yield None
    finally:
        sys.meta_path.remove(finder)


def modules_from(source: Source) -> list[ModuleType]:
    """The modules that were imported from a folder."""
    found = []
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str) and Path(file).resolve().is_relative_to(source.folder):
            found.append(module)
    return found


class _ReplacedLoader(SourceFileLoader):
    """Compiles another text than the file's; no bytecode file is read or written for it."""

    def __init__(self, name: str, path: str, text: str) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - a loader's signature
        return compile(self._text, self.path, "exec", dont_inherit=True)


class _Replacing:
    """Lets the others find a module, and puts another text into the one that comes from this file."""

    def __init__(self, path: Path, text: str) -> None:
        self._path = path
        self._text = text

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """The module's spec, if it comes from the file."""
        for finder in sys.meta_path:
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is None:
                continue
            if spec.origin is None or Path(spec.origin).resolve() != self._path:
                return None
            folders = spec.submodule_search_locations
            loader = _ReplacedLoader(name, spec.origin, self._text)
            return spec_from_file_location(name, spec.origin, loader=loader, submodule_search_locations=folders)
        return None
