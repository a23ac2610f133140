"""Reading traces: a line at a time, everything wrong with them named by file and line.

``TraceReader`` streams. ``scan_trace`` reads a whole file and keeps whatever could be read beside the problems;
``read_trace`` raises the first problem instead.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Final

from ..model.core.errors import BadInput
from ..model.core.protocol import LARGEST_CONSTANT, Protocol
from ..model.core.registry import PROTOCOLS
from .compressed import DAMAGED, open_decompressed
from .format import FORMAT, VERSION, Trace, TraceEvent, TraceHeader
from .vocabulary import Vocabulary, header_faults, shown

MAX_LINE: Final = 1 << 20
"""Longest line, in bytes: an event of the largest constants with every cell observed takes a third of it."""

MAX_PROBLEMS: Final = 50
"""A file of garbage yields at most this many problems and one that says how many more there were."""

_HEADER_FIELDS: Final = {"format", "version", "protocol", "variant", "constants", "complete", "partial", "source"}
_EVENT_FIELDS: Final = {"step", "action", "params", "observed", "source"}
_HEADER_EXAMPLE: Final = f'begin the file with {{"format": "{FORMAT}", "version": {VERSION}, "protocol": ...}}'


class _Twice(ValueError):
    """A JSON object that has one key twice."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise _Twice(f"the key {shown(twice)} stands twice in one object")
    return found


def _no_constant(name: str) -> Any:
    raise _Twice(f"{name} is no JSON number")


def _is_value(value: object) -> bool:
    if isinstance(value, list):
        return all(type(each) is int for each in value)
    return value is None or type(value) in (int, str)


class TraceReader:
    """Iterates over the good events of a stream of bytes; ``problems`` grows as it goes.

    After construction ``header`` is set, or None where the first line is no header; ``vocabulary`` is None unless the
    header is right in all its parts. Without a vocabulary, events are checked for their form alone. An event with
    anything wrong is left out.
    """

    def __init__(self, stream: IO[bytes], name: str, protocols: Mapping[str, Protocol] = PROTOCOLS) -> None:
        self.name = name if name.isprintable() else ascii(name)
        self.problems: list[BadInput] = []
        self.header: TraceHeader | None = None
        self.vocabulary: Vocabulary | None = None
        self._stream = stream
        self._dropped = 0
        self._line = 0
        self._last_step: tuple[int, int] | None = None
        self._pushed_back: dict[str, Any] | None = None
        self._read_header(protocols)

    def finish(self) -> list[BadInput]:
        """All problems so far, with a closing one where some were not kept."""
        if not self._dropped:
            return list(self.problems)
        more = BadInput(
            f"{self._dropped} more problems are not listed", self.name, "mend the first ones, then look again"
        )
        return [*self.problems, more]

    def __iter__(self) -> Iterator[TraceEvent]:
        if self._pushed_back is not None:
            first, self._pushed_back = self._pushed_back, None
            yield from self._event(first)
        while True:
            found = self._next_object()
            if found is None:
                return
            yield from self._event(found)

    def _wrong(self, what: str, mend: str, column: int | None = None) -> None:
        if len(self.problems) >= MAX_PROBLEMS:
            self._dropped += 1
            return
        where = f"{self.name}, line {max(self._line, 1)}" + ("" if column is None else f", column {column}")
        self.problems.append(BadInput(what, where, mend))

    def _next_object(self) -> dict[str, Any] | None:
        """The next line that holds a JSON object; None at the end. Lines that do not are noted and passed over."""
        while True:
            raw = self._stream.readline(MAX_LINE + 1)
            if not raw:
                return None
            self._line += 1
            if len(raw) > MAX_LINE:
                self._wrong(f"the line is longer than {MAX_LINE} bytes", "write one event to a line")
                while raw and not raw.endswith(b"\n"):
                    raw = self._stream.readline(MAX_LINE)
                continue
            if raw.isspace():
                continue
            value = self._parse(raw)
            if isinstance(value, dict):
                return value
            if value is not None:
                self._wrong(f"the line holds {shown(value)}", "write one JSON object to a line")

    def _parse(self, raw: bytes) -> object:
        cut = "" if raw.endswith(b"\n") else " (the file ends in the middle of this line)"
        try:
            value = json.loads(raw.decode(), object_pairs_hook=_object, parse_constant=_no_constant)
        except UnicodeDecodeError as error:
            self._wrong(f"byte {error.start} of the line is not UTF-8{cut}", "write the trace in UTF-8")
        except json.JSONDecodeError as error:
            self._wrong(f"not JSON: {error.msg}{cut}", "write one JSON object to a line", error.colno)
        except RecursionError:
            self._wrong("the JSON is nested too deeply", "write an event as the schema has it")
        except _Twice as error:
            self._wrong(str(error), "write an event as the schema has it")
        except ValueError:
            self._wrong("a number has too many digits", "write an event as the schema has it")
        else:
            if value is None:
                self._wrong("the line holds null", "write one JSON object to a line")
            return value
        return None

    def _read_header(self, protocols: Mapping[str, Protocol]) -> None:
        found = self._next_object()
        if found is None:
            if self._line == 0:
                self._wrong("the file is empty", _HEADER_EXAMPLE)
            elif not self.problems:
                self._wrong("the header is missing: every line is blank", _HEADER_EXAMPLE)
            return
        if "format" not in found:
            # A broken line before this one has been named already, and may have been the header.
            if not self.problems:
                self._wrong("the header is missing", _HEADER_EXAMPLE)
            self._pushed_back = found
            return
        before = len(self.problems)
        header = self._header(found)
        if header is None:
            return
        self.header = header
        for fault in header_faults(header, protocols):
            self._wrong(fault.what, fault.mend)
        if len(self.problems) == before:
            self.vocabulary = Vocabulary.of(protocols[header.protocol], header.variant, dict(header.constants))

    def _header(self, found: dict[str, Any]) -> TraceHeader | None:
        if found["format"] != FORMAT:
            self._wrong(f"the format is {shown(found['format'])}", f'only "{FORMAT}" is read here')
            return None
        version = found.get("version")
        if type(version) is not int or version != VERSION:
            told = "missing" if version is None else shown(version)
            self._wrong(f"the format's version is {told}", f"only version {VERSION} is read here")
            return None
        before = len(self.problems)
        for name in ("protocol", "variant"):
            if not isinstance(found.get(name), str):
                told = shown(found[name]) if name in found else "missing"
                self._wrong(f"{name} of the header is {told}", f"give the {name}'s name")
        constants = found.get("constants")
        if not isinstance(constants, dict):
            told = shown(constants) if "constants" in found else "missing"
            self._wrong(f"constants of the header are {told}", "give an object with a number for each constant")
        else:
            for name, value in constants.items():
                if type(value) is not int:
                    mend = f"give an integer of at most {LARGEST_CONSTANT}"
                    self._wrong(f"the constant {shown(name)} is {shown(value)}", mend)
        if type(found.get("complete", False)) is not bool:
            self._wrong(f"complete of the header is {shown(found['complete'])}", "give true or false")
        if "partial" in found and not (isinstance(found["partial"], str) and found["partial"]):
            self._wrong(f"partial of the header is {shown(found['partial'])}", "give the reason, or leave it out")
        self._check_extras(found, _HEADER_FIELDS, "the header")
        if len(self.problems) > before or self._dropped:
            return None
        return TraceHeader(
            found["protocol"],
            found["variant"],
            found["constants"],
            found.get("complete", False),
            found.get("source", {}),
            found.get("partial"),
        )

    def _check_extras(self, found: dict[str, Any], known: set[str], whose: str) -> None:
        if not isinstance(found.get("source", {}), dict):
            self._wrong(f"source of {whose} is {shown(found['source'])}", "give an object")
        for name in found:
            if name not in known:
                self._wrong(f"{whose} has a field {shown(name)}", f"its fields are {', '.join(sorted(known))}")

    def _event(self, found: dict[str, Any]) -> Iterator[TraceEvent]:
        noted = len(self.problems) + self._dropped
        self._check_step(found)
        action = found.get("action")
        if action is not None and not isinstance(action, str):
            self._wrong(f"the action is {shown(action)}", "give its name, or null for a look at the state")
        params = found.get("params", {})
        if not isinstance(params, dict):
            self._wrong(f"params are {shown(params)}", "give an object with a number for each parameter")
        else:
            for name, value in params.items():
                if value is not None and type(value) not in (int, str):
                    mend = "give an integer, the name of a value, or null"
                    self._wrong(f"the parameter {shown(name)} is {shown(value)}", mend)
            if params and action is None:
                self._wrong("there are params but no action", "name the action, or leave the params out")
        observed = found.get("observed", {})
        if not isinstance(observed, dict):
            self._wrong(f"observed is {shown(observed)}", "give an object with a value for each cell")
        elif self.vocabulary is None:
            for name, value in observed.items():
                if not _is_value(value):
                    self._wrong(
                        f"{shown(name)} is observed as {shown(value)}",
                        "give an integer, a list of them, a name, or null",
                    )
        self._check_extras(found, _EVENT_FIELDS, "the event")
        if len(self.problems) + self._dropped > noted:
            return
        cells = {name: tuple(value) if isinstance(value, list) else value for name, value in observed.items()}
        event = TraceEvent(found["step"], action, params, cells, found.get("source", {}), self._line)
        if self.vocabulary is not None:
            for fault in self.vocabulary.faults(event):
                self._wrong(fault.what, fault.mend)
        if len(self.problems) + self._dropped == noted:
            yield event if self.vocabulary is None else self.vocabulary.bound(event)

    def _check_step(self, found: dict[str, Any]) -> None:
        step = found.get("step")
        if type(step) is not int or step < 0:
            told = shown(step) if "step" in found else "missing"
            self._wrong(f"the step number is {told}", "give an integer from 0")
            return
        if self._last_step is not None and step <= self._last_step[0]:
            last, line = self._last_step
            self._wrong(f"step {step} comes after step {last} of line {line}", "number the steps upwards")
        else:
            self._last_step = (step, self._line)


@dataclass(frozen=True)
class Scan:
    """What could be read of a trace: the events with nothing wrong in them, and all problems in the file's order."""

    header: TraceHeader | None
    vocabulary: Vocabulary | None
    events: tuple[TraceEvent, ...]
    problems: tuple[BadInput, ...]


def scan_trace(path: Path | str, protocols: Mapping[str, Protocol] = PROTOCOLS) -> Scan:
    """Read a file, which may be compressed, as far as it can be read.

    Raises BadInput only if the file itself cannot be opened or read, or its compressed data is damaged.
    """
    name = str(path)
    shown_name = name if name.isprintable() else ascii(name)
    try:
        with open_decompressed(Path(path)) as stream:
            reader = TraceReader(stream, name, protocols)
            events = tuple(reader)
    except DAMAGED as error:
        raise BadInput(f"the compressed data is damaged: {error}", shown_name, "copy the file again") from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        raise BadInput(f"cannot be read: {why}", shown_name, "name a trace file that you may read") from error
    return Scan(reader.header, reader.vocabulary, events, tuple(reader.finish()))


def read_trace(path: Path | str, protocols: Mapping[str, Protocol] = PROTOCOLS) -> Trace:
    """Read a file that must be right. Raises BadInput for its first problem."""
    scan = scan_trace(path, protocols)
    for problem in scan.problems:
        raise problem
    assert scan.header is not None
    return Trace(scan.header, scan.events)
