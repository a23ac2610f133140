"""Client histories in Fencepost's own format, JSON Lines, as a source of observations.

``client-history.schema.json`` beside this file is the published JSON Schema.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from ...model.core.errors import BadInput
from .event_kind import EventKind
from .observation import Observation
from .source import SourceResult
from .text_file import open_text, read_head

K = EventKind
FORMAT: Final = "fencepost-client-history"
SCHEMA_FILE: Final = "client-history.schema.json"
MAX_PROBLEMS: Final = 20
_FIX: Final = f"write it as {SCHEMA_FILE} describes it"
_HEAD_CHARS: Final = 4096


@cache
def history_schema() -> dict[str, Any]:
    """Return the published JSON Schema. ``$defs/header`` is the first line, ``$defs/operation`` any other."""
    text = files(__package__).joinpath(SCHEMA_FILE).read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema


@cache
def _validator(part: str) -> Draft202012Validator:
    return Draft202012Validator({**history_schema(), "anyOf": [{"$ref": f"#/$defs/{part}"}]})


class ClientHistories:
    """Read histories of producers and consumers."""

    name = "client history"

    def accepts(self, path: Path) -> bool:
        """Accept a file whose first line names the format."""
        return FORMAT in read_head(path, _HEAD_CHARS).partition("\n")[0]

    def read(self, paths: Sequence[Path]) -> SourceResult:
        """Read all files. A file with a wrong line is left out: the checks rely on complete histories."""
        found: list[Observation] = []
        problems: list[BadInput] = []
        for number, path in enumerate(paths):
            known = len(problems)
            own = list(_Reader(path, number, problems).observations())
            if len(problems) == known:
                found += own
        return SourceResult(tuple(found), tuple(problems))


class _Reader:
    """One file. ``order`` keeps the clients of several files in the order of the files."""

    def __init__(self, path: Path, order: int, problems: list[BadInput]) -> None:
        self._path = path
        self._first = order << 40
        self._problems = problems
        self._own = 0
        self._partitions: dict[str, dict[str, None]] = {}
        self._common: dict[str, Any] = {}
        self._acks: int | None = None

    def observations(self) -> Iterator[Observation]:
        try:
            with open_text(self._path) as file:
                for line, raw in enumerate(file, 1):
                    if raw.isspace():
                        continue
                    body = self._parse(raw, line, "header" if line == 1 else "operation")
                    if body is None:
                        continue
                    if line == 1:
                        self._take_header(body)
                    else:
                        yield from self._operation(body, line)
        except BadInput as failed:
            self._problems.append(failed)
        except UnicodeDecodeError:
            self._problems.append(BadInput("it is not UTF-8", str(self._path), "write the history in UTF-8"))
        if self._own > MAX_PROBLEMS:
            more = self._own - MAX_PROBLEMS
            self._problems.append(BadInput(f"{more} more lines are wrong", str(self._path), "correct the first ones"))

    def _wrong(self, what: str, line: int, fix: str = _FIX) -> None:
        self._own += 1
        if self._own <= MAX_PROBLEMS:
            self._problems.append(BadInput(what, f"{self._path}, line {line}", fix))

    def _parse(self, raw: str, line: int, part: str) -> dict[str, Any] | None:
        try:
            body = json.loads(raw)
        except (ValueError, RecursionError) as error:
            self._wrong(f"not JSON: {str(error).splitlines()[0]}", line, "write one JSON object a line")
            return None
        chosen = part
        if part == "operation" and isinstance(body, dict):
            op = body.get("op")
            chosen = "assign" if op in ("subscribe", "rebalance", "restart") else str(op)
            if chosen not in ("produce", "poll", "seek", "commit", "assign"):
                self._wrong(f"the operation is {json.dumps(op)[:40]}", line)
                return None
        fault = best_match(_validator(chosen).iter_errors(body))
        if fault is None:
            assert isinstance(body, dict)
            return body
        where = "".join(f".{each}" if isinstance(each, str) else f"[{each}]" for each in fault.absolute_path)
        self._wrong(f"{where.lstrip('.') or 'the line'}: {fault.message.splitlines()[0][:120]}", line)
        return None

    def _take_header(self, body: dict[str, Any]) -> None:
        self._acks = _acks(body.get("acks"))
        self._common = {
            "idempotent": body.get("idempotent"),
            "unique_value": True if body.get("unique_values") else None,
            "compacted": True if body.get("compacted") else None,
        }

    def _operation(self, body: dict[str, Any], line: int) -> Iterator[Observation]:
        client, op = str(body["client"]), body["op"]
        try:
            times = {"time": _millis(body.get("time")), "began": _millis(body.get("began"))}
        except ValueError:
            self._wrong("the time is no date", line)
            return
        shared = {"file": str(self._path), "line": line, "client": client, "zoned": True, **times, **self._common}
        sequence = self._first + (line << 20)
        known = self._partitions.setdefault(client, {})
        if op in ("assign", "subscribe", "rebalance", "restart"):
            named = body.get("partitions")
            for place, partition in enumerate(known if named is None else named):
                yield Observation(kind=K.ASSIGNED, partition=partition, sequence=sequence + place, **shared)
            return
        partition = body["partition"]
        known[partition] = None
        if op == "poll":
            for place, record in enumerate(body["records"]):
                yield Observation(
                    kind=K.POLL,
                    partition=partition,
                    sequence=sequence + place,
                    outcome="ok",
                    offset=record["offset"],
                    value=value_text(record.get("value")),
                    leader_epoch=record.get("leader_epoch"),
                    **shared,
                )
            return
        fields: dict[str, Any] = {"offset": body.get("offset")}
        if op == "produce":
            fields |= {
                "outcome": body["outcome"],
                "value": value_text(body.get("value")),
                "leader_epoch": body.get("leader_epoch"),
                "acks": _acks(body["acks"]) if "acks" in body else self._acks,
            }
        elif op == "commit":
            fields["outcome"] = body.get("outcome", "ok")
        yield Observation(kind=K(op), partition=partition, sequence=sequence, **fields, **shared)


def value_text(value: object) -> str | None:
    """Return a value as the checks compare it: text as it is, anything else as JSON; None if it is unknown."""
    return value if value is None or isinstance(value, str) else json.dumps(value)


def _acks(value: object) -> int | None:
    return -1 if value == "all" else value if isinstance(value, int) else None


def _millis(value: object) -> int | None:
    if value is None or isinstance(value, int):
        return value
    moment = datetime.fromisoformat(str(value).upper().replace("Z", "+00:00"))
    return int(moment.timestamp() * 1000)
