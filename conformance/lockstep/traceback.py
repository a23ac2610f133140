"""Where an exception of a system under test was raised, as its author looks for it: a file and a line of theirs."""

from __future__ import annotations

import sysconfig
import traceback
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_OURS: Final = Path(__file__).resolve().parents[2]
_HARNESS: Final = frozenset(
    str(Path(__file__).parents[1] / way / name) for way in ("lockstep", "free") for name in ("machine.py", "watch.py")
)
_LIBRARIES: Final = tuple(
    Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")
)


@dataclass(frozen=True)
class Raised:
    """A place in somebody's code: the file as it was loaded, the line from 1 on, the function."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        path = Path(self.file)
        with suppress(ValueError):
            path = path.resolve().relative_to(Path.cwd())
        return f"{path}:{self.line}, in {self.function}"


def raised_at(error: BaseException) -> Raised | None:
    """The innermost frame of the author's own code; of any code where the exception passed none of theirs.

    What is not theirs: the standard library, installed packages, Fencepost. None where it was raised by the harness.
    """
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename not in _HARNESS]
    if not frames:
        return None
    own = [frame for frame in frames if _is_own(frame.filename)]
    frame = (own or frames)[-1]
    return Raised(frame.filename, frame.lineno or 1, frame.name)


def _is_own(filename: str) -> bool:
    if filename.startswith("<"):
        return False
    path = Path(filename).resolve()
    return not any(path.is_relative_to(folder) for folder in (_OURS, *_LIBRARIES))
