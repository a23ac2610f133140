"""A folder of results that appears under its name only when it is whole, and replaces only an older one of its kind.

It is written under a temporary name beside its own and renamed at the end, so that nobody ever reads half a report. In
it, ``report.json`` has the fields ``format``, by which an older one is known, and ``contents``: what was written, each
with a hash. An older one is deleted only where it is that and no more: a file that somebody has put there, or a test
that somebody has gone on with, is not ours to take away.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from hashlib import blake2b
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput

REPORT: Final = "report.json"

_CACHES: Final = frozenset({"__pycache__", ".pytest_cache"})
"""Folders that Python and pytest leave behind where a report's tests were run: not worth anything to anybody."""

_MEND: Final = "name a folder that does not exist yet, is empty, or holds an older report and nothing else"


@contextmanager
def new_folder(folder: Path, kind: str) -> Iterator[Path]:
    """A temporary folder to write into; it becomes ``folder`` when the block ends, and is gone where it raises.

    ``kind``: the ``format`` that the block gives its ``report.json``, which is given the list of files when it ends. An
    older folder of that kind is replaced. Raises ``BadInput`` when ``folder`` holds something else, or cannot be
    written: nothing is touched then.
    """
    target = Path(folder).absolute()
    refuse_foreign(target, kind)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        building = Path(tempfile.mkdtemp(prefix=f".{target.name}.", suffix=".new", dir=target.parent))
    except OSError as error:
        raise _unwritable(folder, error) from error
    try:
        building.chmod(0o755)  # mkdtemp makes it private; a report is for whoever may read the folder above
        yield building
        report = building / REPORT
        told = json.loads(report.read_text(encoding="utf-8"))
        told["contents"] = _hashes(building)
        report.write_text(json.dumps(told, indent=1, allow_nan=False) + "\n", encoding="ascii")
        _swap(building, target, kind)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> BadInput:
    return BadInput(f"cannot write the report: {error.strerror}", str(folder), "name another folder")


def refuse_foreign(target: Path, kind: str) -> None:
    """Raise BadInput unless a report can be written there, and may: nothing, an empty folder, or an older one."""
    refuse_unwritable(target)
    refuse_other_contents(target, kind)


def refuse_unwritable(target: Path) -> None:
    """Raise BadInput unless a folder can be made there."""
    above = next(parent for parent in target.absolute().parents if parent.exists())
    for wrong, why in ((not above.is_dir(), "Not a directory"), (not os.access(above, os.W_OK), "Permission denied")):
        if wrong:
            raise BadInput(f"cannot write the report: {why}", str(target), "name another folder")


def refuse_other_contents(target: Path, kind: str) -> None:
    """Raise BadInput unless nothing is there, an empty folder, or an older report."""
    if not target.exists() and not target.is_symlink():
        return
    if target.is_symlink() or not target.is_dir():
        raise BadInput("the report goes into a folder, and this is none", str(target), _MEND)
    try:
        if any(target.iterdir()):
            _refuse_other(target, kind)
    except OSError as error:
        raise BadInput(f"cannot be read: {error.strerror}", str(target), _MEND) from error


def _refuse_other(target: Path, kind: str) -> None:
    """Raise BadInput where a folder is not an older report, as it was written."""
    old = None
    # A pipe of that name would be waited for.
    if (target / REPORT).is_file() and not (target / REPORT).is_symlink():
        with suppress(ValueError, RecursionError):
            old = json.loads((target / REPORT).read_text(encoding="utf-8"))
    if not isinstance(old, dict) or old.get("format") != kind:
        raise BadInput("the folder holds something that is not a report", str(target), _MEND)
    wrote = old.get("contents")
    if not isinstance(wrote, dict):
        raise BadInput("the report there does not say which files it consists of", str(target), "delete it yourself")
    there = _hashes(target)
    folders = {parent.as_posix() for name in wrote for parent in Path(name).parents}
    for name in sorted(there.keys() - wrote.keys() - {REPORT} - folders):
        raise BadInput(f"beside a report the folder holds {name!a}", str(target), _MEND)
    for name in sorted(there.keys() & wrote.keys()):
        if there[name] != wrote[name]:
            what = f"{name!a} of the report there was changed since"
            raise BadInput(what, str(target), "keep it elsewhere, or name another folder")


def _hashes(folder: Path) -> dict[str, str]:
    """What a folder holds, ``REPORT`` apart, by its path in it: a file's hash; nothing for what is no file.

    Caches are passed over. A folder is listed where it holds none of what is listed.
    """
    found: dict[str, str] = {}
    for at, folders, names in os.walk(folder):
        folders[:] = sorted(set(folders) - _CACHES)
        here = Path(at)
        for name in sorted([*names, *(each for each in folders if (here / each).is_symlink())]):
            path = here / name
            plain = path.is_file() and not path.is_symlink()
            found[path.relative_to(folder).as_posix()] = _hash(path) if plain else ""
        if not names and not folders and here != folder:
            found[here.relative_to(folder).as_posix()] = ""
    found.pop(REPORT, None)
    return found


def _hash(path: Path) -> str:
    with path.open("rb") as file:
        digest = blake2b(digest_size=16)
        while piece := file.read(1 << 20):
            digest.update(piece)
    return digest.hexdigest()


def _swap(building: Path, target: Path, kind: str) -> None:
    """Put the finished folder in place; if that fails, the older report comes back."""
    old = building.with_suffix(".old")
    if target.exists():
        target.rename(old)
    try:
        if old.exists() and any(old.iterdir()):
            # Nobody knows it under this name: what was put there meanwhile is seen, and kept.
            _refuse_other(old, kind)
        building.rename(target)
    except (OSError, BadInput):
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
