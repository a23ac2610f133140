"""Histories of Jepsen's ``kafka`` workload, in EDN, as a source of observations.

A history is a vector of operations, or one operation after the other. Jepsen's keys stand for topic-partitions that
each test chooses by itself, so key 5 is ``key 5`` here, not the name of a partition. Only completions are observations;
an invocation says when its completion's request was sent.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from ...model.core.errors import BadInput
from .client_histories import value_text
from .edn import EdnError, read_edn
from .event_kind import EventKind
from .observation import Observation, Outcome
from .source import SourceResult
from .text_file import open_text, read_head

K = EventKind
_FIX: Final = "name a history.edn of Jepsen's kafka workload"
_HEAD: Final = re.compile(r"^[\s,(\[]*(;[^\n]*\n[\s,(\[]*)*(#[A-Za-z.]+)?\s*\{[^\n]{0,4000}?:(type|process|f)\b")
_OUTCOMES: Final[Mapping[str, Outcome]] = {"ok": "ok", "fail": "failed", "info": "unknown"}
_READS_AND_WRITES: Final = ("send", "poll", "txn")


class JepsenHistories:
    """Read histories of Jepsen's ``kafka`` workload."""

    name = "Jepsen history"

    def accepts(self, path: Path) -> bool:
        """Accept a file that begins with an operation."""
        if not path.is_file():
            return False
        return ".edn" in path.suffixes or _HEAD.match(read_head(path, 8192)) is not None

    def read(self, paths: Sequence[Path]) -> SourceResult:
        """Read all files. An operation of another workload is left out."""
        found: list[Observation] = []
        problems: list[BadInput] = []
        for order, path in enumerate(paths):
            history = _History(path, order << 40)
            known = len(problems)
            try:
                with open_text(path) as file:
                    text = file.read()
                for line, value in read_edn(text):
                    found += history.take(value, line)
            except EdnError as error:
                problems.append(BadInput(str(error), f"{path}, line {error.line}", "correct or copy the history again"))
            except BadInput as error:
                problems.append(error)
            except UnicodeDecodeError:
                problems.append(BadInput("it is not UTF-8", str(path), _FIX))
            if not history.operations and len(problems) == known:
                problems.append(BadInput("it has no operation of the kafka workload", str(path), _FIX))
        notes = ("Jepsen histories count as histories of producers with acks=all",) if found else ()
        return SourceResult(tuple(found), tuple(problems), notes)


class _History:
    """The operations of one file, in order."""

    def __init__(self, path: Path, first: int) -> None:
        self.operations = 0
        self._path = path
        self._first = first
        self._count = 0
        self._invoked: dict[str, int] = {}
        self._partitions: dict[str, dict[str, None]] = {}
        self._subscribed: set[str] = set()

    def take(self, operation: Any, line: int) -> Iterator[Observation]:
        """The observations of one operation."""
        self._count += 1
        if not isinstance(operation, dict) or operation.get("process") in (None, "nemesis"):
            return
        kind, name = operation.get("type"), operation.get("f")
        client = str(operation["process"])
        sequence = self._first + (self._count << 20)
        if kind == "invoke":
            self._invoked[client] = sequence
            return
        started = self._invoked.pop(client, None)
        outcome = _OUTCOMES.get(str(kind))
        if outcome is None:
            return
        shared = {
            "file": str(self._path),
            "line": line,
            "client": client,
            "started": started,
            "unique_value": True,
        }
        if name in ("assign", "subscribe", "crash"):
            self.operations += 1
            yield from self._assigned(operation, str(name), sequence, shared)
        elif name in _READS_AND_WRITES:
            self.operations += 1
            yield from self._transaction(operation, outcome, sequence, shared)

    def _assigned(
        self, operation: dict[Any, Any], name: str, sequence: int, shared: dict[str, Any]
    ) -> Iterator[Observation]:
        client = shared["client"]
        known = self._partitions.setdefault(client, {})
        keys = operation.get("value")
        named = [_partition(key) for key in keys] if isinstance(keys, tuple | frozenset) else []
        if name == "subscribe":
            self._subscribed.add(client)
        elif name == "assign":
            self._subscribed.discard(client)
        start = 0 if operation.get("seek-to-beginning?") and operation.get("type") == "ok" else None
        # An assignment takes the place of the last one, of all its partitions.
        for place, partition in enumerate(dict.fromkeys([*known, *named])):
            begins = start if partition in named else None
            yield Observation(
                kind=K.ASSIGNED, partition=partition, sequence=sequence + place, offset=begins, outcome="ok", **shared
            )

    def _transaction(
        self, operation: dict[Any, Any], outcome: Outcome, sequence: int, shared: dict[str, Any]
    ) -> Iterator[Observation]:
        steps = operation.get("value")
        if not isinstance(steps, tuple):
            return
        client = shared["client"]
        known = self._partitions.setdefault(client, {})
        rebalanced = bool(operation.get("rebalance-log"))
        # Without a log of rebalances, a subscribed consumer may be given another position at any poll.
        may_rebalance = client in self._subscribed and "rebalance-log" not in operation
        place = 0
        if outcome != "ok" and any(isinstance(step, tuple) and step[:1] == ("poll",) for step in steps):
            # The consumer may have moved on without a result, or back after an abort.
            for partition in known:
                yield Observation(
                    kind=K.ASSIGNED, partition=partition, sequence=sequence + place, outcome="unknown", **shared
                )
                place += 1
        for step in steps:
            if not isinstance(step, tuple) or not step:
                continue
            if step[0] == "send" and len(step) == 3:
                offset, value = step[2] if _is_pair(step[2]) else (None, step[2])
                yield Observation(
                    kind=K.PRODUCE,
                    partition=_partition(step[1]),
                    sequence=sequence + place,
                    outcome=outcome,
                    offset=offset if isinstance(offset, int) and outcome == "ok" else None,
                    value=value_text(value),
                    acks=-1,
                    **shared,
                )
                place += 1
            elif step[0] == "poll" and len(step) == 2 and isinstance(step[1], dict) and outcome == "ok":
                for key, pairs in step[1].items():
                    partition = _partition(key)
                    if rebalanced or may_rebalance:
                        told: Outcome = "ok" if rebalanced else "unknown"
                        known_ = [*known, partition] if rebalanced else [partition]
                        for each in dict.fromkeys(known_):
                            yield Observation(
                                kind=K.ASSIGNED, partition=each, sequence=sequence + place, outcome=told, **shared
                            )
                            place += 1
                    known[partition] = None
                    for pair in pairs if isinstance(pairs, tuple) else ():
                        if _is_pair(pair) and isinstance(pair[0], int):
                            yield Observation(
                                kind=K.POLL,
                                partition=partition,
                                sequence=sequence + place,
                                outcome="ok",
                                offset=pair[0],
                                value=value_text(pair[1]),
                                **shared,
                            )
                            place += 1


def _is_pair(value: object) -> bool:
    return isinstance(value, tuple) and len(value) == 2


def _partition(key: object) -> str:
    text = str(key)
    return text if re.fullmatch(r"\S+-[0-9]+", text) else f"key {text}"
