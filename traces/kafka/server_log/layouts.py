"""Layouts of log lines: Kafka's own configuration files, Strimzi, Logback, slf4j-simple and JSON.

``LAYOUTS`` is the table: one regular expression per layout. A line may have any text before its layout, such as
``kafka-1  | `` or a syslog header; that text names the stream. The leftmost match of any layout wins.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any, Final

from .line import Line

_LEVEL = r"(?P<level>TRACE|DEBUG|INFO|WARN|WARNING|ERROR|FATAL)"
_HALF = r"(?: ?(?P<half>[AaPp])\.?[Mm]\b\.?)?"
# The abbreviation of a zone, such as CET, does not tell the offset.
_ZONE = (
    r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d:?\d\d)"
    r"| (?!TRACE|DEBUG|INFO|WARN|ERROR|FATAL)[A-Z]{3,4}(?=[\] ]))?"
)
_DAY_OF = (
    r"(?P<date>\d{4}[-/]\d\d[-/]\d\d|\d{1,2}/\d{1,2}/\d{4}|\d\d/\d\d/\d\d|\d{1,2}\.\d{1,2}\.\d{4}"
    r"|\d{1,2}[- /][A-Z][a-z]{2}[- /]\d{4}|[A-Z][a-z]{2} \d{1,2}, \d{4})"
)
_DATE = rf"{_DAY_OF}(?:[T:]|,? )(?P<clock>\d{{1,2}}:\d\d:\d\d)(?:[.,:](?P<fraction>\d{{1,9}}))?{_HALF}{_ZONE}"
_CLOCK = rf"(?P<clock>\d{{1,2}}:\d\d:\d\d)(?:[.,](?P<fraction>\d{{3}}))?{_HALF}"
_LOGGER = r"(?P<logger>[A-Za-z_][\w.$]{0,200})(?::\d{1,6})?"
_THREAD = r"\[(?P<thread>(?!\d{4}-\d\d-)[^\]]{1,200})\]"
_AFTER = r"\[(?P<after>[^\]]{1,200})\]"
_MESSAGE = r"(?P<message>.*?)"
_START = r"(?:^|(?<=[\s|:>\]\"'`(}*,]))"
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
    "time of day, logger last": (
        rf"\[?{_CLOCK}\]? +(?:{_THREAD} +)?{_LEVEL} +{_MESSAGE} \({_LOGGER}\)(?: {_AFTER})?\s*$"
    ),
    "no logger": rf"\[?{_DATE}\]? +(?:{_THREAD} +)?{_LEVEL} +{_KNOWN}$",
    "no time": rf"(?:{_THREAD} +)?{_LEVEL} +{_LOGGER} - {_MESSAGE}$",
    "no time, logger last": rf"{_LEVEL} +{_MESSAGE} \({_LOGGER}\)\s*$",
}
"""By name, in the order in which they are tried."""

_COMPILED = {name: re.compile(_START + text) for name, text in LAYOUTS.items()}
_ANY_LEVEL = re.compile(r"TRACE|DEBUG|INFO|WARN|ERROR|FATAL")
_ANSI = re.compile(
    r"(?:\x1b|\^\[|\u241b)\[[0-9;?]*[A-Za-z]"
    # A copy may have lost the escape character.
    r"|\[(?:[01];3\d|3\d|9\d|38;5;\d{1,3})m|\[[01]?m(?![A-Za-z0-9])"
)
_TAIL_ENDS = frozenset("\"'`*,;|n}")
_TAIL = re.compile(r"(?:[\s\"'`*,;|]|\\n|\{(?:code|noformat)\})+$")
_KNOWN_BEGINNING = re.compile(
    r"\[(?:Partition \S{3,260} broker=\d|(?:Broker|Controller) id=\d"
    r"|(?:UnifiedLog|Log|MergedLog|LogLoader) partition=\S"
    r"|ReplicaFetcher replicaId=\d|Replica\w{0,30}Manager (?:on )?broker[= ]\d|RaftManager (?:node)?[iI]d=\d"
    r"|QuorumController id=\d|(?:Kafka|Broker|Controller)Server id=\d"
    r"|(?:Partition|Replica)StateMachine controllerId=\d)"
)
"""How Kafka begins messages that name their logger, whatever stands before them."""
_ANY_LOGGER = re.compile(
    r"(?:[A-Za-z_$][\w$]*\.)+(?:Partition|UnifiedLog|Log|MergedLog|LogLoader|LogManager|ReplicaFetcherThread|logger"
    r"|ReplicaFetcherManager|QuorumState|KafkaRaftClient|QuorumController|ReplicationControlManager|KafkaController"
    r"|KafkaServer|BrokerServer|ControllerServer)\b"
)
_LOGGER_LAST = re.compile(rf" \((?=[a-z]\w*\.){_LOGGER}\)(?: {_AFTER})?(?=$|[\"'`,;])")
_ANY_TIME = re.compile(rf"(?<![\d.]){_DATE}")
_ANY_CLOCK = re.compile(rf"(?<![\d:T]){_CLOCK}(?![\d:])")
_MILLIS = re.compile(r"(?<![\d.])1[0-9]{12}(?![\d.])")
_LEVEL_WORD = re.compile(r"(?<![A-Za-z])(?:trace|debug|info|warn(?:ing)?|error|fatal)(?![A-Za-z])", re.IGNORECASE)
_HEADING = re.compile(
    r"==> (.+) <=="
    r"|[\W_]*((?:(?:logs?|output) (?:of|from|on) )?(?:the )?(?:kafka|broker|node|server|controller|pod|container)s?"
    r"[ _.#-]{0,3}(?:id )?[ =:#]{0,2}\d{1,9})(?:[ '\u2019]s)?(?: \(?\w{1,20}\)?)?(?: logs?| output)?[\W_]*",
    re.IGNORECASE,
)
"""A line between the lines of two nodes: ``==> broker-1/server.log <==`` of ``tail``, or ``Broker 2:``."""
_LONGEST_HEADING = 200
_DOCKER = frozenset({"log", "stream", "time", "attrs"})
_MAX_PREFIX = 400
_MAX_DEPTH = 5
_DAY = timedelta(days=1)
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# Keys of JSON layouts: log4j's JsonLayout and JSON template layouts (ECS, GELF, Logstash, GCP), docker, journald.
_MESSAGE_KEYS = (
    "formattedMessage",
    "message",
    "msg",
    "log",
    "MESSAGE",
    "textPayload",
    "@message",
    "short_message",
    "line",
    "_raw",
    "body",
    "LogMessage",
    "LogEntry",
)
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
    "TimeGenerated",
    "_time",
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
    _partial: dict[str, str] = field(default_factory=dict)
    _day: int = 0
    _last: int = 0

    def parse(self, number: int, text: str, depth: int = 0) -> Iterator[Line]:
        """Yield the line, or nothing if no layout matches. A JSON array of events yields several lines.

        Args:
            depth: Layouts around this one: JSON may hold a line of text, or JSON again.
        """
        text = text.strip("\ufeff \t\r\n")
        if "\0" in text:
            text = text.replace("\0", "")
        if "m" in text and ("\x1b" in text or "[" in text):
            text = _ANSI.sub("", text)
        if "&" in text and ";" in text:
            text = unescape(text)
        brace = text.find("{")
        if 0 <= brace < _MAX_PREFIX and text.endswith(("}", "},", "}]")) and '":' in text[brace : brace + 80]:
            yield from self._of_json(number, text, brace, depth)
            return
        if text[-1:] in _TAIL_ENDS:
            text = _TAIL.sub("", text)
        line = self._of_text(number, text)
        if line is not None and depth < _MAX_DEPTH and line.message[:1] != "[":
            line = self._quoted(line, depth)
        elif line is None:
            line = self._of_message(number, text)
        if line is not None:
            yield line
        elif depth == 0 and len(text) < _LONGEST_HEADING and (heading := _HEADING.fullmatch(text)) is not None:
            # The following lines are of another file or another node.
            self._section = next(each for each in heading.groups() if each is not None)

    def _of_text(self, number: int, text: str) -> Line | None:
        found = self._match(text)
        if found is None:
            return None
        parts = found.groupdict()
        time, zoned = self._time(parts)
        message, logger = parts["message"], parts.get("logger") or ""
        if not logger and (last := _LOGGER_LAST.search(message)) is not None:
            # A cell of a table: more cells come after it.
            message, logger = message[: last.start()], last["logger"]
        return Line(
            number,
            time,
            parts.get("thread") or parts.get("after") or "",
            parts["level"].replace("WARNING", "WARN"),
            logger,
            message.rstrip(),
            "/".join(filter(None, (self._section, stream_name(text[: found.start()])))),
            zoned,
            parts.get("clock") is not None and parts.get("date") is None,
        )

    def _quoted(self, line: Line, depth: int) -> Line:
        """The line of Kafka's that another program has logged as its own message; else the line as it is."""
        begins = _KNOWN_BEGINNING.search(line.message)
        inner = None if begins is None else next(self.parse(line.number, line.message, depth + 1), None)
        if inner is None:
            return line
        late = inner.time is None and line.time is not None
        return replace(
            inner,
            stream="/".join(filter(None, (line.stream, inner.stream))),
            time=line.time if late else inner.time,
            zoned=line.zoned if late else inner.zoned,
            relative=line.relative if late else inner.relative,
        )

    def _of_message(self, number: int, text: str) -> Line | None:
        """A line in an unknown layout, by the beginning of Kafka's message in it."""
        begins = _KNOWN_BEGINNING.search(text, 0, _MAX_PREFIX * 2)
        if begins is None:
            return None
        before, message = text[: begins.start()], text[begins.start() :]
        last = _LOGGER_LAST.search(message)
        named = _ANY_LOGGER.search(before)
        logger = last["logger"] if last is not None else named[0] if named is not None else ""
        message = message if last is None else message[: last.start()]
        dates = list(_ANY_TIME.finditer(before))
        dated = dates[-1] if dates else None
        clocked = _ANY_CLOCK.search(before) if dated is None else None
        millis = _MILLIS.search(before) if dated is None and clocked is None else None
        word = _LEVEL_WORD.search(before)
        parts = [each.start() for each in (dated, clocked, millis, word, named) if each is not None]
        found = dated or clocked
        time: int | None
        if millis is not None:
            time, zoned = int(millis[0]), True
        else:
            time, zoned = (None, False) if found is None else self._time(found.groupdict())
        return Line(
            number,
            time,
            "",
            "" if word is None else word[0].upper().replace("WARNING", "WARN"),
            logger,
            message.rstrip(),
            "/".join(filter(None, (self._section, stream_name(before[: min(parts, default=len(before))])))),
            zoned,
            clocked is not None,
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
            half = (parts.get("half") or "").lower()
            if half:
                hours = hours % 12 + (12 if half == "p" else 0)
            if hours > 23 or minutes > 59 or seconds > 60:
                return None, False
            date = parts.get("date")
            if date is None:
                return self._time_of_day(((hours * 60 + minutes) * 60 + seconds) * 1000 + fraction), False
            year, month, day = _day_of(date, american=bool(half))
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
        yield from self.parse_value(number, value, stream_name(text[:start]), depth)

    def parse_value(self, number: int, value: Any, prefix: str = "", depth: int = 0) -> Iterator[Line]:
        """Yield the lines in a JSON value: an event, or events at any depth as search engines return them."""
        if depth > _MAX_DEPTH * 2:
            return
        if isinstance(value, list):
            for each in value:
                yield from self.parse_value(number, each, prefix, depth + 1)
            return
        if not isinstance(value, dict):
            return
        line = self._of_object(number, value, prefix, min(depth, _MAX_DEPTH))
        if line is not None:
            yield line
            return
        labels, pairs = value.get("stream"), value.get("values")
        if isinstance(labels, dict) and isinstance(pairs, list):
            # Loki: pairs of a time and a line, with the labels of their stream.
            name = "/".join(str(each) for _, each in sorted(labels.items()))
            for pair in pairs:
                if isinstance(pair, list) and len(pair) > 1:
                    event = {"time": pair[0], "line": pair[1], "host": name}
                    yield from self.parse_value(number, event, prefix, depth + 1)
            return
        time, zoned = _json_time(_first(value, _TIME_KEYS))
        for each in value.values():
            if not isinstance(each, dict | list):
                continue
            for inner in self.parse_value(number, each, prefix, depth + 1):
                yield replace(inner, time=time, zoned=zoned) if inner.time is None else inner

    def _of_object(self, number: int, value: Mapping[str, Any], prefix: str, depth: int) -> Line | None:
        message = _first(value, _MESSAGE_KEYS)
        if depth > _MAX_DEPTH:
            return None
        if isinstance(message, dict):
            return self._of_object(number, message, prefix, depth + 1)
        if isinstance(message, list) and message and all(isinstance(each, int) and 0 <= each < 256 for each in message):
            # The journal's notation of a message with control characters.
            message = bytes(message).decode("utf-8", "replace")
        if not isinstance(message, str):
            return None
        if ("stream" in value and value.keys() <= _DOCKER) or value.get("logtag") == "P":
            stream_key = _text(value.get("stream"))
            message = self._partial.pop(stream_key, "") + message
            if not message.endswith("\n") and value.get("logtag") != "F":
                self._partial[stream_key] = message
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


def _day_of(date: str, *, american: bool = False) -> tuple[int, int, int]:
    """Year, month and day of ``2026-03-04``, ``26/03/04``, ``4 Mar 2026``, ``Mar 4, 2026``, ``04.03.2026`` and others.

    Args:
        american: Whether the month comes first in ``03/04/2026``; the text may also tell.

    Raises:
        ValueError: The text is no date, or the month may be the day.
    """
    one, two, three = re.split("[- /.]", date.replace(",", ""))
    if two in _MONTHS:
        return int(three), _MONTHS.index(two) + 1, int(one)
    if one in _MONTHS:
        return int(three), _MONTHS.index(one) + 1, int(two)
    if len(three) == 4:
        first, second = int(one), int(two)
        if "." in date or first > 12:
            return int(three), second, first
        if second > 12 or american or first == second:
            return int(three), first, second
        raise ValueError(f"{date} has the month or the day first")
    year, month, day = one, two, three
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
