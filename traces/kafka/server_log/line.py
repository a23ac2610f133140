"""One line of a server log, whatever its layout."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """A line that a Kafka process logged.

    Args:
        number: Line of the file, from 1.
        time: Milliseconds since 1970; ``None`` if the layout has no time. Without ``zoned`` it is read as UTC.
            Layouts with a time of day only count from day 0 of the file.
        thread: Empty if the layout has none.
        level: ``INFO``, ``WARN``, ...; empty if the layout has none.
        logger: Name as printed, possibly shortened; empty if the layout has none.
        message: The text that Kafka passed to the logger.
        stream: The part of the line before Kafka's own layout, such as a container's name. Lines of one stream of
            one file come from one process.
        zoned: Whether the line states its time zone.
        relative: Whether the line has a time of day only.
    """

    number: int
    time: int | None
    thread: str
    level: str
    logger: str
    message: str
    stream: str = ""
    zoned: bool = False
    relative: bool = False

    @property
    def logger_class(self) -> str:
        """Last part of the logger's name: ``Partition``, or ``logger`` for ``state.change.logger``."""
        return self.logger.rpartition(".")[2]
