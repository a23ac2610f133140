"""Time zones of logs whose lines name none: ``--time-zone [SOURCE=]ZONE``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ...model.core.errors import BadInput
from ..kafka.server_log.line import Line

OPTION: Final = "--time-zone"
_OFFSET: Final = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?(\d\d))?")
_FIX: Final = "name a zone such as Europe/Berlin, or an offset such as +02:00"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_STEP: Final = 60_000
"""Milliseconds by which a line may be older than the one before it without another offset."""


@dataclass(frozen=True)
class TimeZones:
    """The zone of each file whose lines name none.

    Args:
        everywhere: Zone of all other files; ``None`` reads them as UTC.
        by_source: Zones of files, and of folders with all files in them.
    """

    everywhere: tzinfo | None = None
    by_source: tuple[tuple[Path, tzinfo], ...] = ()

    @classmethod
    def parse(cls, options: Sequence[str], inputs: Sequence[Path]) -> TimeZones:
        """Parse the values of the option.

        Raises:
            BadInput: A zone is unknown, a source is no input, or one has two zones.
        """
        everywhere: tzinfo | None = None
        by_source: dict[Path, tzinfo] = {}
        for option in options:
            source, separator, name = option.rpartition("=")
            zone = parse_zone(name)
            if not separator:
                if everywhere is not None:
                    raise BadInput("two zones without a source", OPTION, "name one, and SOURCE=ZONE for other files")
                everywhere = zone
                continue
            path = Path(source).resolve()
            if not any(
                path == each or path in each.parents or each in path.parents for each in map(Path.resolve, inputs)
            ):
                raise BadInput(f"{source} is no input", OPTION, "name a file or folder as in the command line")
            if path in by_source:
                raise BadInput(f"{source} has two zones", OPTION, "name one")
            by_source[path] = zone
        return cls(everywhere, tuple(by_source.items()))

    def zone_of(self, path: Path) -> tzinfo | None:
        """The zone of a file: that of the nearest source."""
        own = path.resolve()
        found = [(len(source.parts), zone) for source, zone in self.by_source if source in (own, *own.parents)]
        return max(found, key=lambda each: each[0])[1] if found else self.everywhere


def parse_zone(name: str) -> tzinfo:
    """Parse an IANA name or an offset. Raises BadInput for another text."""
    if name in ("Z", "UTC"):
        return UTC
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        minutes = int(offset[2]) * 60 + int(offset[3] or 0)
        if minutes > 14 * 60 or int(offset[3] or 0) > 59:
            raise BadInput(f"{name} is no offset of a time zone", OPTION, _FIX)
        return timezone(timedelta(minutes=minutes if offset[1] == "+" else -minutes))
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as unknown:
        raise BadInput(f"{name or 'an empty name'} is no time zone that is known here", OPTION, _FIX) from unknown


class ZonedLines:
    """Converts the times of one file's lines, in their order, from a zone to UTC."""

    def __init__(self, zone: tzinfo) -> None:
        self._zone = zone
        self._latest: int | None = None

    def convert(self, line: Line) -> Line:
        """The line with its time in UTC. Lines that name their zone, or no date, stay as they are."""
        if line.time is None or line.zoned or line.relative:
            return line
        local = (_EPOCH + timedelta(milliseconds=line.time)).replace(tzinfo=self._zone)
        time = _millis(local)
        if self._latest is not None and time < self._latest - _STEP:
            # In the hour that occurs twice, a time that goes back is in its second part.
            time = max(time, _millis(local.replace(fold=1)))
        self._latest = time
        return replace(line, time=time, zoned=True)


def _millis(moment: datetime) -> int:
    return (moment.astimezone(UTC) - _EPOCH) // timedelta(milliseconds=1)
