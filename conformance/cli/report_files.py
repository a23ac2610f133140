"""Write a command's reports so that a failure to write one never hides the answer."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from .output import note, written


class ReportFiles:
    """The files and folders that a command writes besides its answer.

    A failure is kept until the answer was printed. It then gets a line of its own, and exit code 2 unless the verdict
    is violated: a missing report must not look like a passed check, and a violation stays one.
    """

    def __init__(self) -> None:
        self._failed: list[BadInput] = []

    def write(self, path: Path, write: Callable[[], object], *, quiet: bool = False) -> bool:
        """Write one file or folder, and report its name unless ``quiet``; returns whether it was written."""
        try:
            write()
        except BadInput as error:
            self._failed.append(error)
            return False
        except OSError as error:
            mend = "name a file in a folder that is there and writable"
            self._failed.append(BadInput(f"cannot write: {error.strerror or error}", str(path), mend))
            return False
        if not quiet:
            written(path)
        return True

    def exit_code(self, code: ExitCode) -> ExitCode:
        """Report the failures on standard error, after the answer; returns the exit code. ``code``: the verdict's."""
        failed = list(dict.fromkeys(map(str, self._failed)))
        for error in failed:
            note(f"fencepost: {error}")
        return ExitCode.BAD_INPUT if failed and code is not ExitCode.VIOLATED else code
