"""Execute a finding's trace on a cluster of real brokers, and compare what it showed with what is expected."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....model.explore.result import Verdict
from ....traces.kafka.cluster import BROKER_IDS
from .finding import FAULT, Finding
from .finding_steps import STEPS, FindingRun
from .observations import TopicObservations

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ....traces.kafka.image import PartitionState
    from .finding import Step
    from .stage import Stage


@dataclass(frozen=True)
class FindingResult:
    """What a run of a finding showed, by topic."""

    finding: Finding
    run: str
    topics: dict[str, TopicObservations]

    @property
    def seen(self) -> TopicObservations:
        """Observations of the topic that the invariant is about."""
        return self.topics[self.finding.topic]

    @property
    def broken(self) -> list[str]:
        """Records or exceptions that break the invariant."""
        return self.finding.invariant.broken_by(self.seen)

    @property
    def verdict(self) -> Verdict:
        """Whether the invariant held; unknown if no client got any answer."""
        if not self.seen.has_outcome:
            return Verdict.UNKNOWN
        return Verdict.VIOLATED if self.broken else Verdict.HOLDS

    def words(self) -> str:
        """The verdict in a sentence."""
        if self.verdict is Verdict.UNKNOWN:
            return "no client got an answer"
        invariant = self.finding.invariant
        text = invariant.violated if self.broken else invariant.holds
        return text.format_map(_words(self, self.finding.topic))

    def differences(self) -> list[str]:
        """Where the observations differ from the expected ones; empty if nowhere."""
        found = []
        for expected in self.finding.expected:
            if expected.run == self.run:
                about = f"{expected.topic}: " if expected.topic else ""
                observed = self._as_data(expected.topic, expected.leader)
                found += [f"{about}{each}" for each in _differences(expected.values, observed, "")]
        return found

    def _as_data(self, topic: str, leader: int | None) -> dict[str, object]:
        invariant, seen = self.finding.invariant, self.topics[topic]
        read = {record.value for records in seen.read.values() for record in records}
        return {
            **seen.as_data(leader or invariant.leader, invariant.moment),
            "unread": sorted(seen.acknowledged.keys() - read),
            "broken": self.broken,
            "verdict": self.verdict.value,
        }


def _differences(expected: dict[str, Any], observed: dict[str, Any], prefix: str) -> list[str]:
    """Groups are compared name by name, and all else as a whole; further records may be ``unread``."""
    found = []
    for name, wanted in expected.items():
        is_group = name in ("logs", "roles", "values_read", "segments") and not prefix
        if is_group:
            found += _differences(wanted, observed[name], f"{name}.")
        elif name == "unread" and set(wanted) <= set(observed[name]):
            continue
        elif observed.get(name) != wanted:
            found.append(f"{prefix}{name} is {observed.get(name)}, and {wanted} is expected")
    return found


def execute(
    finding: Finding,
    stage: Stage,
    run: str = FAULT,
    *,
    name: str | None = None,
    say: Callable[[str], None] = print,
    copies: Path | None = None,
) -> FindingResult:
    """Execute a run of a finding on new topics of a stage with the finding's settings.

    Args:
        run: ``fault`` or ``control``.
        name: the prefix of the topics' names; the finding's id if there is none.
        say: gets each line of the report.
        copies: a folder for copies of the brokers' directories.

    Raises:
        RecordingError: the cluster did not do in time what a step waits for.
    """
    assert run in finding.runs, f"{finding} has no {run} run"
    result = FindingResult(finding, run, defaultdict(TopicObservations))
    told = 0

    def tell(line: str) -> None:
        nonlocal told
        told += 1
        logs = ((broker, stage.log(broker, state.topic)) for broker in BROKER_IDS)
        say(f"{told:3}  {line}")
        say("     " + "   ".join(f"{broker}: [{' '.join(map(str, log))}]" for broker, log in logs))

    prefix = finding.id.lower() if name is None else name
    state = FindingRun(stage, prefix, tell, "", result.topics[finding.topic], finding.tiered, copies)
    try:
        stage.all_up()
        for step in finding.trace:
            state.topic = f"{prefix}-{step.topic}" if step.topic else prefix
            state.seen = result.topics[step.topic]
            if _applies(step, run, result):
                STEPS[step.do](state, **step.arguments)
                if step.say is not None:
                    tell(step.say.format_map(_words(result, step.topic, state)))
    finally:
        state.close()
    return result


def _applies(step: Step, run: str, result: FindingResult) -> bool:
    match step.only:
        case None:
            return True
        case "acknowledged":
            return bool(result.seen.acknowledged)
        case "refused":
            return not result.seen.acknowledged
        case "violated" | "holds":
            return result.verdict.value == step.only
    return step.only == run


class _Roles:
    """A broker's latest line about its role, by the broker's id."""

    def __init__(self, state: FindingRun) -> None:
        self._state = state

    def __getitem__(self, broker: int) -> str:
        return self._state.stage.roles(broker, self._state.topic)[-1]


class _Words(dict[str, object]):
    """Values of a text's words, by name; a record without an answer has none yet."""

    def __missing__(self, key: str) -> str:
        return "unknown"


def _words(result: FindingResult, topic: str, state: FindingRun | None = None) -> dict[str, object]:
    """Values of `finding.WORDS` for a text about a topic."""
    seen, invariant = result.topics[topic], result.finding.invariant
    refused = seen.errors.items()
    values: dict[str, object] = {
        "acknowledged": _Words(seen.acknowledged),
        "answers": _Words({**{r: f"NONE, offset {o}" for r, o in seen.acknowledged.items()}, **seen.errors}),
        "fates": _Words(
            {
                **{record: f"acknowledged at offset {offset}" for record, offset in seen.acknowledged.items()},
                **{record: f"refused with {error}" for record, error in refused},
            }
        ),
        "segments": seen.segments,
        "count": len(seen.acknowledged),
        "thrown": ", ".join(sorted(set(seen.thrown.values()))) or "nothing",
    }
    if invariant.moment in seen.logs or invariant.name == "acknowledged_is_readable":
        values["broken"] = ", ".join(invariant.broken_by(seen)) or "nothing"
    if invariant.leader is not None and invariant.moment in seen.logs:
        values["truncated"] = ", ".join(seen.truncated(invariant.leader, invariant.moment)) or "nothing"
    if state is not None:
        values |= {"run": state.name, "topic": state.topic, "polled": state.polled, "roles": _Roles(state)}
        values |= _decision(state.state)
    return values


def _decision(state: PartitionState | None) -> dict[str, object]:
    if state is None:
        return {}
    return {
        "epoch": state.leader_epoch,
        "state": f"epoch {state.leader_epoch}, ISR {' '.join(map(str, state.isr))}",
    }
