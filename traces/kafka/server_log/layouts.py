"""Layouts of log lines: Kafka's own configuration files, Strimzi, Logback, slf4j-simple and JSON.

``LAYOUTS`` is the table: one regular expression per layout. A line may have any text before its layout, such as
``kafka-1  | `` or a syslog header; that text names the stream. The leftmost match of any layout wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from .line import Line

_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)"
_ZONE = r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d))?"
_DAY_OF = r"(?P<date>\d{4}[-/]\d\d[-/]\d\d|\d\d/\d\d/\d\d|\d{1,2} [A-Z][a-z]{2} \d{4})"
_DATE = rf"{_DAY_OF}[T ](?P<clock>\d\d:\d\d:\d\d)(?:[.,:](?P<fraction>\d{{1,9}}))?{_ZONE}"
_CLOCK = r"(?P<clock>\d\d:\d\d:\d\d)[.,](?P<fraction>\d{3})"
_LOGGER = r"(?P<logger>[A-Za-z_][\w.$]{0,200})(?::\d{1,6})?"
_THREAD = r"\[(?P<thread>(?!\d{4}-\d\d-)[^\]]{1,200})\]"
_AFTER = r"\[(?P<after>[^\]]{1,200})\]"
_MESSAGE = r"(?P<message>.*?)"
_START = r"(?:^|(?<=[\s|:>\]\"'`(]))"
_KNOWN = r"(?P<message>\[(?:Partition|Broker|Controller|UnifiedLog|Log|Replica\w+|RaftManager|QuorumController) .*)"

LAYOUTS: Final[Mapping[str, str]] = {
    # Kafka's log4j.properties and log4j2.yaml: [%d] %p %m (%c)%n. Strimzi: %d{ISO8601} %p %m (%c) [%t].
    "kafka": rf"\[?{_DATE}\]? +(?:{_THREAD} +)?{_LEVEL} +{_MESSAGE} \({_LOGGER}\)(?: {_AFTER})?\s*$",
    # Strimzi with log4j2: %d %-5p [%t] %c{{1}}:%L - %m. Others have a colon in place of the dash.
    "strimzi 4": rf"\[?{_DATE}\]? +{_LEVEL} +{_THREAD} +{_LOGGER}(?: +--?|:) {_MESSAGE}$",
    "spring boot": rf"{_DATE} +{_LEVEL} +\d+ --- (?:\[[^\]]*\] )??{_THREAD} +{_LOGGER} *: {_MESSAGE}$",
    # Logback: %d [%thread] %-5level %logger - %msg.
    "logback": rf"\[?{_DATE}\]? +{_THREAD} +{_LEVEL} +{_LOGGER} +--? {_MESSAGE}$",
    "logger first": rf"\[?{_DATE}\]? +{_LEVEL} +{_LOGGER}(?: +--?|:) {_MESSAGE}$",
    "level first": rf"{_LEVEL} +\[?{_DATE}\]? +(?:{_THREAD} +)?{_LOGGER}(?: +--?|:) {_MESSAGE}$",
    # slf4j-simple and Logback's default: time of day, no date.
    "time of day": rf"{_CLOCK} (?:{_THREAD} )?{_LEVEL} +{_LOGGER} --? {_MESSAGE}$",
    "no logger": rf"\[?{_DATE}\]? +(?:{_THREAD} +)?{_LEVEL} +{_KNOWN}$",
    "no time": rf"(?:{_THREAD} +)?{_LEVEL} +{_LOGGER} - {_MESSAGE}$",
    "no time, logger last": rf"{_LEVEL} +{_MESSAGE} \({_LOGGER}\)\s*$",
}
"""By name, in the order in which they are tried."""

_COMPILED = {name: re.compile(_START + text) for name, text in LAYOUTS.items()}
_ANY_LEVEL = re.compile(r"TRACE|DEBUG|INFO|WARN|ERROR|FATAL")
_ANSI = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_HEADING = re.compile(
    r"==> (.+) <=="
    r"|[\W_]*((?:(?:logs?|output) (?:of|from|on) )?(?:the )?(?:kafka|broker|node|server|controller|pod|container)s?"
    r"[ _.#-]{0,3}(?:id )?[ =:#]{0,2}\d{1,9})(?:[ '\u2019]s)?(?: \(?\w{1,20}\)?)?(?: logs?| output)?[\W_]*",
    re.IGNORECASE,
)
"""A line between the lines of two nodes: ``==> broker-1/server.log <==`` of ``tail``, or ``Broker 2:``."""
_LONGEST_HEADING = 200
_MAX_PREFIX = 400
_MAX_DEPTH = 5
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Keys of JSON layouts: log4j's JsonLayout and JSON template layouts (ECS, GELF, Logstash, GCP), docker, journald.
_MESSAGE_KEYS = ("message", "msg", "log", "MESSAGE", "textPayload", "@message", "short_message", "line", "_raw", "body")
_LEVEL_KEYS = ("level", "log.level", "severity", "levelname", "loglevel", "log_level", "lvl")
_LOGGER_KEYS = ("loggerName", "logger_name", "logger", "log.logger", "_logger", "category", "class")
_THREAD_KEYS = ("thread", "thread_name", "threadName", "process.thread.name", "_thread")
_TIME_KEYS = (
    "@timestamp",
    "timestamp",
    "timeMillis",
    "instant",
    "time",
    "ts",
    "date",
    "datetime",
    "asctime",
    "@t",
    "__REALTIME_TIMESTAMP",
)
_STREAM_KEYS = (
    "kubernetes.pod_name",
    "kubernetes.pod.name",
    "pod_name",
    "pod",
    "container_name",
    "CONTAINER_NAME",
    "docker.container_name",
    "host.name",
    "hostname",
    "_HOSTNAME",
    "source_host",
    "host",
    "logStream",
)


@dataclass(slots=True)
class LayoutParser:
    """Parse the lines of one file. It remembers the layout of the last line, and the day of times without a date."""

    _name: str = "kafka"
    _section: str = ""
    _day: int = 0
    _last: int = 0

    def parse(self, number: int, text: str, depth: int = 0) -> Iterator[Line]:
        """Yield the line, or nothing if no layout matches. A JSON array of events yields several lines.

        Args:
            depth: Layouts around this one: JSON may hold a line of text, or JSON again.
        """
        text = text.strip("\ufeff \t\r\n")
        if "\x1b" in text:
            text = _ANSI.sub("", text)
        brace = text.find("{")
        if 0 <= brace < _MAX_PREFIX and text.endswith(("}", "},", "}]")) and '":' in text[brace : brace + 80]:
            yield from self._of_json(number, text, brace, depth)
            return
        line = self._of_text(number, text)
        if line is not None:
            yield line
        elif depth == 0 and len(text) < _LONGEST_HEADING and (heading := _HEADING.fullmatch(text)) is not None:
            # What follows is another file or another node.
            self._section = next(each for each in heading.groups() if each is not None)

    def _of_text(self, number: int, text: str) -> Line | None:
        found = self._match(text)
        if found is None:
            return None
        parts = found.groupdict()
        time, zoned = self._time(parts)
        return Line(
            number,
            time,
            parts.get("thread") or parts.get("after") or "",
            parts["level"].replace("WARNING", "WARN"),
            parts.get("logger") or "",
            parts["message"].rstrip(),
            "/".join(filter(None, (self._section, stream_name(text[: found.start()])))),
            zoned,
            parts.get("clock") is not None and parts.get("date") is None,
        )

    def _match(self, text: str) -> re.Match[str] | None:
        """The leftmost layout. Raises nothing: a line of another program has no match."""
        found = _COMPILED[self._name].match(text)
        if found is not None:
            return found
        if _ANY_LEVEL.search(text, 0, _MAX_PREFIX * 2) is None:
            return None
        best: tuple[int, int] | None = None
        match: re.Match[str] | None = None
        for rank, (name, pattern) in enumerate(_COMPILED.items()):
            each = pattern.search(text)
            if each is None or each.start() > _MAX_PREFIX:
                continue
            # A layout without a time also matches inside one with a time: the dated layout wins.
            untimed = 1 if name.startswith("no time") else 0
            key = (untimed * _MAX_PREFIX * 2 + each.start(), rank)
            if best is None or key < best:
                best, match, chosen = key, each, name
        if match is not None:
            self._name = chosen
        return match

    def _time(self, parts: Mapping[str, str | None]) -> tuple[int | None, bool]:
        """Milliseconds, and whether the zone is stated. A time that does not exist counts as none."""
        clock = parts.get("clock")
        if clock is None:
            return None, False
        fraction = int(((parts.get("fraction") or "0") + "00")[:3])
        try:
            hours, minutes, seconds = map(int, clock.split(":"))
            if hours > 23 or minutes > 59 or seconds > 60:
                return None, False
            date = parts.get("date")
            if date is None:
                return self._time_of_day(((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction), False
            year, month, day = _day_of(date)
            moment = datetime(year, month, day, hours, minutes, min(seconds, 59), tzinfo=UTC)
        except ValueError:
            return None, False
        millis = (moment - _EPOCH) // timedelta(milliseconds=1) + fraction + (1000 if seconds > 59 else 0)
        zone = parts.get("zone")
        if not zone:
            return millis, False
        if zone[0] in "+-":
            digits = zone[1:].replace(":", "")
            offset = (int(digits[:2]) * 60 + int(digits[2:])) * 60_000
            millis -= offset if zone[0] == "+" else -offset
        return millis, True

    def _time_of_day(self, at: int) -> int:
        """Times that never go back by half a day: after midnight the next day begins."""
        day = _DAY // timedelta(milliseconds=1)
        at += self._day
        if at < self._last - day // 2:
            self._day += day
            at += day
        self._last = at
        return at

    def _of_json(self, number: int, text: str, brace: int, depth: int) -> Iterator[Line]:
        start = brace - 1 if brace and text[brace - 1] == "[" else brace
        try:
            value = json.loads(text[start:].rstrip(","))
        except (ValueError, RecursionError):
            return
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, dict):
                line = self._of_object(number, each, stream_name(text[:start]), depth)
                if line is not None:
                    yield line

    def _of_object(self, number: int, value: Mapping[str, Any], prefix: str, depth: int) -> Line | None:
        message = _first(value, _MESSAGE_KEYS)
        if depth > _MAX_DEPTH:
            return None
        if isinstance(message, dict):
            return self._of_object(number, message, prefix, depth + 1)
        if not isinstance(message, str):
            return None
        message = message.rstrip("\r\n")
        stream = "/".join(filter(None, (prefix, _text(_first(value, _STREAM_KEYS)))))
        time, zoned = _json_time(_first(value, _TIME_KEYS))
        level = _text(_first(value, _LEVEL_KEYS)).upper().replace("WARNING", "WARN")
        logger = _text(_first(value, _LOGGER_KEYS))
        if not logger:
            inner = next(self.parse(number, message, depth + 1), None)
            if inner is not None:
                outer = (inner.time is None or inner.relative) and time is not None
                return replace(
                    inner,
                    stream="/".join(filter(None, (stream, inner.stream))),
                    time=time if outer else inner.time,
                    zoned=zoned if outer else inner.zoned,
                    relative=inner.relative and not outer,
                )
            if not message.startswith("["):
                return None
        return Line(number, time, _text(_first(value, _THREAD_KEYS)), level, logger, message, stream, zoned)


_MONTHS: Final = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")


def _day_of(date: str) -> tuple[int, int, int]:
    """Year, month and day of ``2026-03-04``, ``26/03/04`` or ``4 Mar 2026``. Raises ValueError for another text."""
    if " " in date:
        day, month, year = date.split(" ")
        return int(year), _MONTHS.index(month) + 1, int(day)
    year, month, day = re.split("[-/]", date)
    return int(year) + (2000 if len(year) == 2 else 0), int(month), int(day)


_MOVING = re.compile(
    r"\d{4}[-/]\d\d[-/]\d\d[T ]\d\d:\d\d:\d\d[\d.,]*(?:Z| ?[+-]\d\d:?\d\d)?"
    r"|\b[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)?|\d\d:\d\d:\d\d[\d.,]*|\[\d+\]|:\d+:|<\d+>\d?"
)


def stream_name(prefix: str) -> str:
    """What stays the same in the text before the layouts of one process: times, counters and punctuation go."""
    if not prefix.strip(" \t>|`\"'["):
        return ""
    return " ".join(_MOVING.sub(" ", prefix).split()).strip(" |>:`\"'[")


def _first(value: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    for key in keys:
        if key in value:
            return value[key]
        if "." in key:
            inner: Any = value
            for part in key.split("."):
                inner = inner.get(part) if isinstance(inner, dict) else None
            if inner is not None:
                return inner
    return None


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


_ISO = re.compile(rf"\s*{_DATE}\s*$")


def _json_time(value: Any) -> tuple[int | None, bool]:
    """Milliseconds of an ISO time, of seconds, milliseconds, microseconds or nanoseconds, or of log4j's ``instant``."""
    if isinstance(value, dict):
        seconds, nanos = value.get("epochSecond"), value.get("nanoOfSecond", 0)
        if isinstance(seconds, int) and isinstance(nanos, int):
            return seconds * 1000 + nanos // 1_000_000, True
        return None, False
    if isinstance(value, str):
        found = _ISO.match(value)
        if found is not None:
            return LayoutParser()._time(found.groupdict())
        try:
            value = float(value)
        except ValueError:
            return None, False
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e19:
        return None, False
    for limit, scale in ((1e11, 1e-3), (1e14, 1), (1e17, 1e3)):
        if value < limit:
            return int(value / scale), True
    return int(value / 1e6), True
