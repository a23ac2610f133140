"""A folder of results that appears under its name only when it is whole, and replaces only an older one of its kind.

It is written under a temporary name beside its own and renamed at the end, so that nobody ever reads half a report. In
it, ``report.json`` has the field ``format``: by that an older one is known.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput

REPORT: Final = "report.json"


@contextmanager
def new_folder(folder: Path, kind: str) -> Iterator[Path]:
    """A temporary folder to write into; it becomes ``folder`` when the block ends, and is gone where it raises.

    ``kind``: the ``format`` that the block gives its ``report.json``. An older folder of that kind is replaced. Raises
    ``BadInput`` when ``folder`` holds something else, or cannot be written: nothing is touched then.
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
        _swap(building, target)
    except OSError as error:
        raise _unwritable(folder, error) from error
    finally:
        shutil.rmtree(building, ignore_errors=True)


def _unwritable(folder: Path, error: OSError) -> BadInput:
    return BadInput(f"cannot write the report: {error.strerror}", str(folder), "name another folder")


def refuse_foreign(target: Path, kind: str) -> None:
    """Raise BadInput unless a report may be written there: nothing, an empty folder, or an older one of its kind."""
    if not target.exists() and not target.is_symlink():
        return
    mend = "name a folder that does not exist yet, is empty, or holds an older report"
    if target.is_symlink() or not target.is_dir():
        raise BadInput("the report goes into a folder, and this is none", str(target), mend)
    if not any(target.iterdir()):
        return
    try:
        old = json.loads((target / REPORT).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        old = None
    if not isinstance(old, dict) or old.get("format") != kind:
        raise BadInput("the folder holds something that is not a report", str(target), mend)


def _swap(building: Path, target: Path) -> None:
    """Put the finished folder in place; if that fails, the older report comes back."""
    old = building.with_suffix(".old")
    if target.exists():
        target.rename(old)
    try:
        building.rename(target)
    except OSError:
        if old.exists():
            old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)
