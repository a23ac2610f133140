"""Importing somebody else's modules: whatever goes wrong is one line with their file and line."""

from __future__ import annotations

import importlib
import sys
import traceback
from pathlib import Path
from types import ModuleType

from .errors import BadInput, FencepostError
from .user_error import is_user_error


def module_named(name: str, where: str) -> ModuleType:
    """A module on the import path, or in the folder that the process was started in. Raises BadInput without."""
    if "" not in sys.path:
        # A console script does not look in the folder that it is started in; whoever names a module there means it.
        sys.path.append("")
    return imported(name, f"{where} {name}")


def imported(name: str, where: str, package: str | None = None) -> ModuleType:
    """A module, from ``package`` if its name begins with a dot. Raises BadInput where it cannot be imported."""
    try:
        return importlib.import_module(name, package)
    except BadInput:
        raise
    except FencepostError as error:
        raise BadInput(str(error), _line_of(error, where), "mend the text") from error
    except BaseException as error:
        if not is_user_error(error):
            raise
        what = " ".join(f"{type(error).__name__}: {error}".split())
        mend = "name a module that is there" if isinstance(error, ModuleNotFoundError) else "mend the text"
        raise BadInput(f"importing it raised {what}", _line_of(error, where), mend) from error


def _line_of(error: BaseException, where: str) -> str:
    """The last line of somebody else's code that an error came through, or ``where`` if there was none."""
    if isinstance(error, SyntaxError) and error.filename is not None:
        return f"{error.filename}, line {error.lineno}"
    ours = str(Path(__file__).parents[2])
    for frame in reversed(traceback.extract_tb(error.__traceback__)):
        if not frame.filename.startswith((ours, "<", sys.prefix, sys.base_prefix)):
            return f"{frame.filename}, line {frame.lineno}"
    return where
