"""A finding on real brokers as data: settings, a trace of steps, an invariant, expected observations.

``findings/*.toml`` has one file per finding. Its keys:

- ``id``, ``title``, ``about``; ``protocol`` and ``variant`` of the model that shows it; ``control``: how its control
  run differs, if it has one;
- ``lag_ms`` (``replica.lag.time.max.ms``), ``tiered``, and ``topic``, the topic of each step that names none;
- ``trace``: steps. ``do`` names a function of ``finding_steps.py``, whose parameters are further keys. ``say`` is the
  line that is reported afterwards; ``topic`` may list several, with one step for each. ``only`` limits a step to the
  ``fault`` or the ``control`` run, or to what came of it up to now: ``acknowledged`` or ``refused`` (the producer's
  answer), ``violated`` or ``holds`` (the invariant);
- ``invariant``: its ``name`` in ``observations.py``, its parameters, and how each verdict reads;
- ``expected``: observations per run and topic; ``check``: what ``fencepost check`` reports of the copies.
"""

from __future__ import annotations

import inspect
import string
import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, get_args, get_origin, get_type_hints

from ....model.core.errors import BadInput
from .finding_steps import APIS, STEPS, held_by
from .observations import INVARIANTS, Invariant
from .stage import PATIENCE_MS

FOLDER: Final = Path(__file__).parent / "findings"
FAULT: Final = "fault"
CONTROL: Final = "control"
CONDITIONS: Final = (FAULT, CONTROL, "acknowledged", "refused", "violated", "holds")
WORDS: Final = frozenset({
    "run", "topic", "state", "epoch", "polled", "roles", "answers", "fates", "acknowledged", "broken", "truncated",
    "thrown", "segments", "count",
})  # fmt: skip
"""What the texts may refer to in braces; `finding_executor` has their values."""
_OBSERVED: Final = frozenset({
    "acknowledged", "errors", "read", "values_read", "thrown", "logs", "segments", "roles", "skipped", "broken",
    "unread", "verdict",
})  # fmt: skip
_MEND: Final = "mend the file; see finding.py"


@dataclass(frozen=True)
class Step:
    """One step of a trace."""

    do: str
    arguments: dict[str, Any]
    topic: str
    say: str | None
    only: str | None


@dataclass(frozen=True)
class Expected:
    """Expected observations of a topic in a run, by their names in `TopicObservations.as_data`."""

    run: str
    topic: str
    leader: int | None
    """Broker whose log ``skipped`` compares with."""
    values: dict[str, Any]


@dataclass(frozen=True)
class DirectoryCheck:
    """What ``fencepost check`` reports of copies of broker directories, each named ``COPY/BROKER``."""

    directories: tuple[str, ...]
    exit_code: int
    prints: str


@dataclass(frozen=True)
class Finding:
    """A finding, as its file has it."""

    id: str
    title: str
    protocol: str
    variant: str
    about: str
    control: str | None
    lag_ms: int
    tiered: bool
    topic: str
    trace: tuple[Step, ...]
    invariant: Invariant
    expected: tuple[Expected, ...]
    checks: tuple[DirectoryCheck, ...]

    def __str__(self) -> str:
        return f"{self.id} ({self.title})"

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of its runs."""
        return (FAULT,) if self.control is None else (FAULT, CONTROL)


def find_finding(id_: str) -> Finding:
    """The finding with this id, in any case. Raises KeyError."""
    return all_findings()[id_.lower()]


@cache
def all_findings() -> dict[str, Finding]:
    """All findings by id in lower case, in the order of their file names. Raises BadInput for a faulty file."""
    read = [read_finding(file.read_text(encoding="utf-8"), file.name) for file in sorted(FOLDER.glob("*.toml"))]
    return {each.id.lower(): each for each in read}


def read_finding(text: str, where: str) -> Finding:
    """A finding from its file's text. Raises BadInput, naming ``where``, for what cannot be executed or judged."""
    try:
        data = tomllib.loads(text)
        topic = data.get("topic", "")
        steps = [
            step
            for number, each in enumerate(data["trace"], 1)
            for step in _read_steps(each, topic, f"{where}: step {number}")
        ]
        found = Finding(
            id=data["id"],
            title=data["title"],
            protocol=data["protocol"],
            variant=data["variant"],
            about=data["about"],
            control=data.get("control"),
            lag_ms=data.get("lag_ms", PATIENCE_MS),
            tiered=data.get("tiered", False),
            topic=topic,
            trace=tuple(steps),
            invariant=Invariant(**data["invariant"]),
            expected=tuple(_read_expected(each, topic, where) for each in data["expected"]),
            checks=tuple(
                DirectoryCheck(tuple(each["directories"]), each["exit_code"], each["prints"])
                for each in data.get("check", ())
            ),
        )
    except tomllib.TOMLDecodeError as wrong:
        raise BadInput(f"it is no TOML: {wrong}", where, _MEND) from wrong
    except KeyError as missing:
        raise BadInput(f"{missing} is missing", where, _MEND) from missing
    except TypeError as wrong:
        raise BadInput(str(wrong), where, _MEND) from wrong
    _check(found, where)
    return found


def _read_steps(data: dict[str, Any], topic: str, where: str) -> list[Step]:
    """One step, or one for each of its topics."""
    arguments = dict(data)
    do, say, only = arguments.pop("do"), arguments.pop("say", None), arguments.pop("only", None)
    topics = arguments.pop("topic", topic)
    if do not in STEPS:
        raise BadInput(f"no step is called {do!r}", where, _MEND)
    if only is not None and only not in CONDITIONS:
        raise BadInput(f"only = {only!r}", where, f"name one of {', '.join(CONDITIONS)}")
    try:
        inspect.signature(STEPS[do]).bind(None, **arguments)
    except TypeError as wrong:
        raise BadInput(f"{do}: {wrong}", where, _MEND) from wrong
    hints = get_type_hints(STEPS[do])
    converted = {name: _converted(value, hints[name], f"{where}: {do}: {name}") for name, value in arguments.items()}
    if converted.get("api", "Fetch") not in APIS:
        raise BadInput(f"no API is called {converted['api']!r}", where, f"name one of {', '.join(APIS)}")
    _check_words(say, where)
    return [Step(do, converted, each, say, only) for each in (topics if isinstance(topics, list) else [topics])]


def _converted(value: Any, hint: Any, where: str) -> Any:
    """A value of the file as a parameter's type has it: a table's keys may be numbers. Raises BadInput for another."""
    origin, arguments = get_origin(hint), get_args(hint)
    if type(None) in arguments:
        return _converted(value, arguments[0], where)
    if origin is list and isinstance(value, list):
        return [_converted(each, arguments[0], where) for each in value]
    if origin is dict and isinstance(value, dict):
        key = int if arguments[0] is int else str
        try:
            return {key(name): _converted(each, arguments[1], where) for name, each in value.items()}
        except ValueError as wrong:
            raise BadInput(f"{list(value)} are no numbers", where, _MEND) from wrong
    if type(value) is hint or (hint is float and type(value) is int):
        return value
    raise BadInput(f"{value!r} is no {hint}", where, _MEND)


def _read_expected(data: dict[str, Any], topic: str, where: str) -> Expected:
    values = dict(data)
    run, topic, leader = values.pop("run"), values.pop("topic", topic), values.pop("leader", None)
    if unknown := sorted(values.keys() - _OBSERVED):
        raise BadInput(f"nothing observed is called {', '.join(unknown)}", where, _MEND)
    return Expected(run, topic, leader, values)


def _check_words(text: str | None, where: str) -> None:
    for _, name, _, _ in string.Formatter().parse(text or ""):
        if name is not None and name.split("[")[0] not in WORDS:
            raise BadInput(f"{{{name}}} has no value", where, f"name one of {', '.join(sorted(WORDS))}")


def _check(finding: Finding, where: str) -> None:
    """Raise BadInput where a run would stop for the file's fault, or be judged by what it never observes."""
    invariant = finding.invariant
    if invariant.name not in INVARIANTS:
        raise BadInput(f"no invariant is called {invariant.name!r}", where, _MEND)
    if invariant.name in ("no_silent_gap", "no_false_truncation") and invariant.leader is None:
        raise BadInput(f"{invariant.name} compares with the log of a leader", where, "name it: leader = 1")
    for text in (invariant.violated, invariant.holds):
        _check_words(text, where)
    for run in finding.runs:
        _check_run(finding, run, where)
        if not any("verdict" in each.values for each in finding.expected if each.run == run):
            raise BadInput(f"no verdict is expected of the {run} run", where, _MEND)
    topics = {step.topic for step in finding.trace}
    if strange := {each.topic for each in finding.expected} - topics:
        raise BadInput(f"no step is about the topic {', '.join(sorted(strange))!r}", where, _MEND)
    if strange := {each.run for each in finding.expected} - set(finding.runs):
        raise BadInput(f"it has no run {', '.join(sorted(strange))}", where, _MEND)


def _check_run(finding: Finding, run: str, where: str) -> None:
    """Raise BadInput for a step that needs a hold or a moment that no step before it has made."""
    invariant, held = finding.invariant, set[str]()
    judged = invariant.name == "acknowledged_is_readable"
    for number, step in enumerate(finding.trace, 1):
        if step.only in (FAULT, CONTROL) and step.only != run:
            continue
        at = f"{where}: step {number}"
        used = {*step.arguments.get("holds", ()), *(step.arguments.get(each) for each in ("hold", "other"))}
        if missing := used - held - {None}:
            raise BadInput(f"nothing is held as {sorted(missing)} in the {run} run", at, _MEND)
        held.update(held_by(step.do, step.arguments))
        if step.do == "observe" and step.topic == finding.topic and step.only in (None, run):
            judged = judged or step.arguments["moment"] == invariant.moment
        if not judged and (step.only in ("violated", "holds") or "{broken}" in (step.say or "")):
            raise BadInput(f"{invariant.name} is judged before {invariant.moment!r} is observed", at, _MEND)
    if not judged:
        raise BadInput(f"the {run} run does not observe {invariant.moment!r}, which the invariant needs", where, _MEND)
