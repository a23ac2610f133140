"""What a finding's run showed: answers to clients, logs at named moments, and the invariants that judge them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .clients import Polled
    from .stage import Stored

_ROLE: Final = re.compile(
    r"(Leader|Follower) .* starts at leader epoch (\d+) .*"
    r"Previous leader (?:Some\((-?\d+)\)|None) and previous leader epoch was (-?\d+)"
)


@dataclass
class TopicObservations:
    """What was observed of one topic."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """Offset in the producer's answer, by record."""
    errors: dict[str, str] = field(default_factory=dict)
    """Simple name of the producer's exception, by record."""
    read: dict[str, list[Polled]] = field(default_factory=dict)
    """Records that a consumer got, in order, by its name."""
    thrown: dict[str, str] = field(default_factory=dict)
    """Simple name of the exception that a consumer threw, by its name."""
    logs: dict[str, dict[int, list[Stored]]] = field(default_factory=dict)
    """Each broker's log, by moment."""
    segments: dict[str, int] = field(default_factory=dict)
    """Number of segments in remote storage, by moment."""
    remote: dict[str, set[str]] = field(default_factory=dict)
    """Records in remote storage, by moment."""
    roles: dict[int, list[str]] = field(default_factory=dict)
    """By broker, the lines about the roles that it took; of the last moment."""

    @property
    def has_outcome(self) -> bool:
        """Whether some client got an answer: without any, nothing can be judged."""
        return bool(self.acknowledged or self.errors or self.thrown or any(self.read.values()))

    def skipped(self, leader: int, moment: str) -> dict[str, list[str]]:
        """Records of the leader's log below a consumer's last one that this consumer never got, by its name.

        A consumer that threw is left out.
        """
        found = {}
        for name, read in self.read.items():
            if name not in self.thrown and read:
                got = {(each.offset, each.value) for each in read}
                below = [each for each in self.logs[moment][leader] if each.offset < read[-1].offset]
                missing = [str(each) for each in below if (each.offset, each.value) not in got]
                if missing:
                    found[name] = missing
        return found

    def truncated(self, leader: int, moment: str) -> list[str]:
        """Records that some consumer got, and that the leader's log does not have."""
        there = {(each.offset, each.value) for each in self.logs[moment][leader]}
        return sorted({e.value for read in self.read.values() for e in read if (e.offset, e.value) not in there})

    def as_data(self, leader: int | None, moment: str) -> dict[str, object]:
        """Everything in the notation of a finding's file, by the names of its expectations.

        ``leader``, ``moment``: the log that ``skipped`` compares with; left out without a leader.
        """
        values = {name: [each.value for each in read] for name, read in self.read.items()}
        skipped = {} if leader is None else {"skipped": self.skipped(leader, moment)}
        return {
            "acknowledged": self.acknowledged,
            "errors": self.errors,
            "read": {name: [polled_text(each) for each in read] for name, read in self.read.items()},
            "values_read": values,
            "thrown": self.thrown,
            "logs": {
                moment: {str(broker): [str(each) for each in log] for broker, log in logs.items()}
                for moment, logs in self.logs.items()
            },
            "segments": self.segments,
            "roles": {str(broker): [role_text(line) for line in lines] for broker, lines in self.roles.items()},
            **skipped,
        }


def polled_text(record: Polled) -> str:
    """A record that a consumer got, as ``OFFSET: VALUE@EPOCH``."""
    return f"{record.offset}: {record.value}@{record.leader_epoch}"


def role_text(line: str) -> str:
    """A broker's line about a role, as ``leader in 2, before 1 in 0``; the line itself if it has another form."""
    found = _ROLE.search(line)
    if found is None:
        return line
    role, epoch, previous, before = found.groups()
    return f"{role.lower()} in {epoch}, before {previous or 'nobody'} in {before}"


@dataclass(frozen=True)
class Invariant:
    """The invariant that a finding shows broken, and how a run's verdict reads."""

    name: str
    violated: str
    holds: str
    leader: int | None = None
    moment: str = "end"

    def broken_by(self, seen: TopicObservations) -> list[str]:
        """Names of the records or exceptions that break it; empty if it holds."""
        return sorted(INVARIANTS[self.name](seen, self))


def _acknowledged_is_stored(seen: TopicObservations, invariant: Invariant) -> set[str]:
    """Each acknowledged record is in some broker's log, or in remote storage."""
    logs = seen.logs[invariant.moment].values()
    stored = {record.value for log in logs for record in log} | seen.remote.get(invariant.moment, set())
    return seen.acknowledged.keys() - stored


def _acknowledged_is_readable(seen: TopicObservations, _: Invariant) -> set[str]:
    """Each acknowledged record was read from some leader."""
    return seen.acknowledged.keys() - {record.value for read in seen.read.values() for record in read}


def _no_silent_gap(seen: TopicObservations, invariant: Invariant) -> set[str]:
    """No consumer skips a record of its leader's log without an exception."""
    assert invariant.leader is not None
    skipped = seen.skipped(invariant.leader, invariant.moment)
    return {record for records in skipped.values() for record in records}


def _no_false_truncation(seen: TopicObservations, invariant: Invariant) -> set[str]:
    """A consumer throws only if its leader's log lacks a record that some consumer got."""
    assert invariant.leader is not None
    truncated = seen.truncated(invariant.leader, invariant.moment)
    return set() if truncated else set(seen.thrown.values())


INVARIANTS: Final[Mapping[str, Callable[[TopicObservations, Invariant], set[str]]]] = {
    "acknowledged_is_stored": _acknowledged_is_stored,
    "acknowledged_is_readable": _acknowledged_is_readable,
    "no_silent_gap": _no_silent_gap,
    "no_false_truncation": _no_false_truncation,
}
