"""What goes wrong with metadata records: one line that says what, where (byte, field or line) and how to mend it."""

from __future__ import annotations

from ..log.errors import LogError


class CorruptRecord(LogError):
    """Bytes that are no metadata record, or none that this version of the software knows: nothing of it is applied.

    ``byte`` is where in the bytes that were given, counted from what ``decode`` was told that they begin at.
    """

    def __init__(self, what: str, byte: int, mend: str = "fetch the record again from a replica that has it") -> None:
        super().__init__(what, f"metadata record, byte {byte}", mend)
        self.byte = byte


class InvalidRecord(LogError):
    """A record that its schema does not let be written, or ``metadata.format`` does not: nothing was written."""

    def __init__(self, what: str, where: str, mend: str = "give what the schema asks for") -> None:
        super().__init__(what, where, mend)


class InvalidSchema(LogError):
    """A schema that is no schema. ``path`` names its file."""

    def __init__(self, what: str, path: str, mend: str = "mend the schema") -> None:
        super().__init__(what, path, mend)
        self.path = path
