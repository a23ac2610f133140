"""The TLA+ modules that come with Fencepost, as files."""

from __future__ import annotations

import re
from importlib.resources import files
from pathlib import Path
from typing import Final

_ROOT: Final = __name__.partition(".")[0]


def module_files(module: str) -> list[Path]:
    """Return the file of a module, followed by those of the modules that it extends."""
    folder = Path(str(files(_ROOT).joinpath("specs")))
    found = [folder / f"{module}.tla"]
    for path in found:
        extends = re.search(r"^EXTENDS (.+)$", path.read_text(encoding="ascii"), re.MULTILINE)
        for name in extends[1].split(", ") if extends else ():
            file = folder / f"{name}.tla"
            if file.is_file() and file not in found:
                found.append(file)
    return found
