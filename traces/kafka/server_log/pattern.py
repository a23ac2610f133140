"""A row of the table of Kafka's log messages, and how it is matched."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final

from ...timeline.event_kind import EventKind

Fields = dict[str, Any]
"""Fields of ``Observation`` by name."""

_LARGEST_OFFSET: Final = 2**63 - 1
_LARGEST_EPOCH: Final = 2**31 - 1
_PARTITION = r"[A-Za-z0-9._-]{1,249}-\d{1,10}|\[[A-Za-z0-9._-]{1,249},\d{1,10}\]"
_OFFSET = r"-?\d{1,19}"
_NUMBER = r"-?\d{1,10}"
_SET = r"[\d, ]*"

_REGEX: Final[Mapping[str, str]] = {
    "partition": _PARTITION,
    "topic": r"[A-Za-z0-9._-]{1,249}",
    "topic_id": r"\S+?",
    "directory": r".{0,4096}?",
    "details": r".*",
    **dict.fromkeys(("isr", "replicas"), _SET),
    **dict.fromkeys(("high_watermark", "log_end", "last_offset", "log_start", "offset"), _OFFSET),
    **dict.fromkeys(("leader_epoch", "previous_epoch", "partition_epoch", "leader", "node", "follower"), _NUMBER),
}
_OFFSETS = {"high_watermark", "log_end", "log_start", "offset"}
_EPOCHS = {"leader_epoch", "previous_epoch", "partition_epoch"}
_TOKEN = re.compile(r"<([\w*$]+)>|([{}])")


def set_of(text: str) -> frozenset[int]:
    """Broker ids of ``1,2`` or ``[1, 2]``."""
    return frozenset(int(each) for each in re.findall(r"\d+", text))


def offset_of(text: str) -> int:
    """An offset. Raises ValueError if it is too large."""
    value = int(text)
    if value > _LARGEST_OFFSET:
        raise ValueError(f"{text} is no offset of Kafka's")
    return value


def epoch_of(text: str) -> int:
    """An epoch, -1 for none. Raises ValueError if it is too large."""
    value = int(text)
    if not -1 <= value <= _LARGEST_EPOCH:
        raise ValueError(f"{text} is no epoch of Kafka's")
    return value


def partition_of(text: str) -> str:
    """``orders-0`` of ``orders-0`` and of ``[orders,0]``."""
    return text[1:-1].replace(",", "-") if text.startswith("[") else text


def topic_id_of(text: str) -> str | None:
    """The id of ``Some(id)`` or ``id``."""
    inner = text[5:-1] if text.startswith("Some(") else text
    return None if inner in ("None", "", "null") else inner


def compile_template(text: str) -> re.Pattern[str]:
    """A regular expression for a template.

    ``<name>`` is a field, ``<*>`` any text, ``<$>`` the end, and ``{...}`` is optional; all else is literal.
    """
    pieces: list[str] = []
    place = 0
    for token in _TOKEN.finditer(text):
        pieces.append(re.escape(text[place : token.start()]))
        place = token.end()
        name = token[1]
        if token[2]:
            pieces.append("(?:" if token[2] == "{" else ")?")
        elif name == "*":
            pieces.append(".*?")
        elif name == "$":
            pieces.append("$")
        else:
            pieces.append(f"(?P<{name}>{_REGEX[name]})")
    pieces.append(re.escape(text[place:]))
    return re.compile("".join(pieces))


def convert(groups: Mapping[str, str | None]) -> Fields:
    """The fields of a match, with their types. Raises ValueError for a number that is none of Kafka's."""
    fields: Fields = {}
    for name, text in groups.items():
        if text is None:
            continue
        if name in _OFFSETS:
            fields[name] = offset_of(text)
        elif name == "last_offset":
            fields["log_end"] = offset_of(text) + 1
        elif name in _EPOCHS:
            fields[name] = epoch_of(text)
        elif name in ("isr", "replicas"):
            fields[name] = set_of(text)
        elif name in ("leader", "node", "follower"):
            fields[name] = int(text)
        elif name == "partition":
            fields[name] = partition_of(text)
        elif name == "topic_id":
            fields[name] = topic_id_of(text)
        else:
            fields[name] = text
    return fields


@dataclass(frozen=True, slots=True)
class Pattern:
    """One message of Kafka's.

    Args:
        kind: The event that the message reports.
        text: Template of the message behind its prefix; see ``compile_template``.
        releases: First and last release that log it, ``2.4-3.1``; the last is open for ``3.3-``.
        details: Reads the rest of the message, and yields the fields of one or several events.
        constant: Fields that all such messages have.
    """

    kind: EventKind
    text: str
    releases: str
    details: Callable[[str], Iterator[Fields]] | None = None
    constant: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LoggerPatterns:
    """All messages of one logger that Fencepost reads.

    Args:
        level: Level at which the logger reports what a timeline needs.
        prefixes: Templates of what the logger puts before each message.
        patterns: Rows of the table.
    """

    level: str
    prefixes: tuple[str, ...]
    patterns: tuple[Pattern, ...]

    @cached_property
    def _compiled_prefixes(self) -> list[re.Pattern[str]]:
        return [compile_template(each) for each in self.prefixes]

    @cached_property
    def _rows(self) -> list[tuple[re.Pattern[str], Pattern]]:
        return [(compile_template(each.text), each) for each in self.patterns]

    def match(self, message: str) -> Iterator[tuple[EventKind, Fields]]:
        """Yield the events of a message. Raises ValueError for a number that is none of Kafka's."""
        for prefix in self._compiled_prefixes:
            before = prefix.match(message)
            if before is None:
                continue
            for regex, pattern in self._rows:
                found = regex.match(message, before.end())
                if found is None:
                    continue
                groups = {**before.groupdict(), **{k: v for k, v in found.groupdict().items() if v is not None}}
                rest = groups.pop("details", None)
                fields = {**pattern.constant, **convert(groups)}
                if pattern.details is None:
                    yield pattern.kind, fields
                    return
                for more in pattern.details(rest or ""):
                    yield pattern.kind, {**fields, **more}
                return
