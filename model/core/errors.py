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
        return type(self), (self.what, self.where, self.mend)


class ProtocolError(FencepostError):
    """A protocol's text is wrong: an unknown variable, a guard that is not a condition, a cell written twice.

    Whoever finds it says ``what`` and, if he can, how to ``mend`` it; the line is known to those who run the text
    (``places.Reading``), and they make it a ``BadText``.
    """

    def __init__(self, what: str, mend: str = "") -> None:
        super().__init__(f"{what}; {mend}" if mend else what)
        self.what = what
        self.mend = mend

    def __reduce__(self) -> tuple[type[ProtocolError], tuple[str, ...]]:
        return type(self), (self.what, self.mend)


class BadText(BadInput, ProtocolError):
    """A mistake in the text of a protocol, with the file and the line where it stands."""

    def __init__(self, what: str, where: str, mend: str) -> None:
        BadInput.__init__(self, what, where, mend)

    def __reduce__(self) -> tuple[type[BadText], tuple[str, str, str]]:
        return type(self), (self.what, self.where, self.mend)
