"""The errors that a person meets: one line that says what is wrong, where, and how to mend it."""

from __future__ import annotations


class FencepostError(Exception):
    """Base of every error that the command line reports without a stack trace."""


class BadInput(FencepostError):
    """The input or the command line is wrong: exit code 2.

    ``str(error)`` is one line, ``WHERE: WHAT; MEND``. ``where`` names a file with its line or byte position,
    or the option of the command line.
    """

    def __init__(self, what: str, where: str, mend: str) -> None:
        super().__init__(f"{where}: {what}; {mend}")
        self.what = what
        self.where = where
        self.mend = mend

    def __reduce__(self) -> tuple[type[BadInput], tuple[str, str, str]]:
        # An exception is pickled by its message alone, and this one is made of three parts.
        return BadInput, (self.what, self.where, self.mend)


class ProtocolError(FencepostError):
    """A protocol's text is wrong: an unknown variable, a guard that is not a condition, a cell written twice."""
