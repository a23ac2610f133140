"""Timers that nodes set, held to their configuration: each runs off after one of the times that it allows, to the ms.

Of a heartbeat that is sent a millisecond early, or a request that counts as lost too late, nothing is seen: messages
and states are those of a run that may be, in which time passes a little otherwise. A configuration is a promise all the
same ("broker.heartbeat.interval.ms"), so after each event what a node has set since is compared with it. Whether a
timer is set at all is shown by what never comes (``simulation/quiesce.py``, ``crash_image.py``).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple, TypeAlias

from ...impl.kraft.config import ControllerConfig, LifecycleConfig
from ...impl.quorum.config import QuorumConfig
from ...impl.replica.config import BrokerConfig
from ...impl.replica.timers import Key, Timers
from ...impl.tiering import TieringConfig
from ..adapters.nodes import RunningNodes
from ..lockstep.adapter import Contradiction
from ..simulation.events import Event
from ..simulation.system import StepResult


class Mistimed(Contradiction):
    """A node means to do something at a time that no setting of its gives."""


class Wait(NamedTuple):
    """The times after which a timer may run off, in milliseconds.

    ``since``: after something that may have happened a while ago (a request came, somebody was heard of); else from
    when it is set.
    """

    times: Collection[int]
    since: bool = False


Waits: TypeAlias = Mapping[str, Wait]
"""By the first part of a timer's key."""


class Timed(NamedTuple):
    """The timers of one part of a process, and what its configuration has for them."""

    timers: Timers
    waits: Waits


_AT_ONCE: Final = 0


@lru_cache(64)
def waits_of_broker(config: BrokerConfig, tiering: TieringConfig | None = None, far: int = 0) -> Waits:
    """Of the replicas that a broker holds. ``far``: how far off a job is looked at that has not come to its end."""
    refused, found_nothing, unanswered = (
        config.replica_fetch_backoff_ms,
        config.replica_fetch_wait_ms,
        config.request_timeout_ms,
    )
    waits = {
        "fetch": Wait({_AT_ONCE, found_nothing, refused, unanswered}),
        "isr": Wait({config.isr_interval_ms}),
        "produce": Wait({unanswered}, since=True),
        "high-watermarks": Wait({config.high_watermark_interval_ms}),
        "recovery-points": Wait({config.recovery_point_interval_ms}),
        "log-cleaner": Wait({_AT_ONCE, config.cleaner.backoff_ms}),
    }
    if tiering is not None:
        times = {_AT_ONCE, far, unanswered, tiering.task_interval_ms, tiering.metadata_poll_ms, tiering.read_retry_ms}
        backoff = tiering.task_retry_backoff_ms
        while backoff < tiering.task_retry_backoff_max_ms:
            times.add(backoff)
            backoff *= 2
        waits["remote"] = Wait(times | {tiering.task_retry_backoff_max_ms}, since=True)
    return waits


@lru_cache(64)
def waits_of_quorum(config: QuorumConfig) -> Waits:
    """Of a replica of the quorum's log: each candidate waits for one to two election time-outs, and of those that the
    leader names when it resigns each for one more than the one before."""
    timeout = config.election_timeout_ms
    elections = {config.fetch_timeout_ms, *range(timeout, 2 * timeout)}
    elections.update(place * timeout for place in range(len(config.voters)))
    fetches = _AT_ONCE, config.request_timeout_ms, config.retry_backoff_ms
    return {
        "election": Wait(elections),
        "fetch": Wait({*fetches, config.fetch_wait_ms}),
        "fetch-snapshot": Wait(set(fetches)),
        "begin-epoch": Wait({config.request_timeout_ms}),
        "advance-begin": Wait({_AT_ONCE, config.begin_offset_interval_ms}),
        "generate-snapshot": Wait({_AT_ONCE}),
        "clean-snapshots": Wait({_AT_ONCE}),
    }


@lru_cache(64)
def waits_of_controller(config: ControllerConfig) -> Waits:
    """Of a controller of KIP-631: a broker's session is over so long after it was heard of last."""
    return {
        "heartbeat": Wait({config.heartbeat_interval_ms}),
        "sessions": Wait({config.session_timeout_ms}, since=True),
    }


@lru_cache(64)
def waits_of_lifecycle(config: LifecycleConfig) -> Waits:
    """Of a broker of KIP-631: what it sends next to the controller."""
    return {
        "heartbeat": Wait({_AT_ONCE, config.heartbeat_interval_ms, config.request_timeout_ms, config.retry_backoff_ms})
    }


class TimedNodes(RunningNodes):
    """Nodes whose timers are looked at after each event. Which there are, a protocol's own system says."""

    @abstractmethod
    def _timed(self, node: int) -> Iterable[Timed]:
        """The timers of a node that is there, if only as one that has given up; always in the same order."""

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes."""
        self._moments: set[int] = set()
        """When anything has happened."""
        self._known_timers: dict[tuple[int, int], tuple[Timers, int, dict[Key, int]]] = {}
        """By node and part: its timers, how often any had been set when they were looked at last, and when each was to
        run off."""
        happened = super().reset(constants, seed)
        self.look_at_timers()
        return happened

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does, and ``Mistimed``."""
        happened = super().step(event)
        self.look_at_timers()
        return happened

    def look_at_timers(self) -> None:
        """Hold to its configuration what has been set since the last time. Raises ``Mistimed``.

        Whoever lets time pass in the midst of an event, or before a run begins, looks before it does.
        """
        now = self.clock.now()
        self._moments.add(now)
        for node in sorted(self.nodes):
            for part, timed in enumerate(self._timed(node)):
                timers, sets, known = self._known_timers.get((node, part), (None, 0, {}))
                if timers is not timed.timers:
                    known = {}
                elif sets == timed.timers._number:
                    continue  # most nodes have done nothing in an event
                found = {key: at for key in timed.timers.keys() if (at := timed.timers.get(key)) is not None}  # noqa: SIM118 - it is no dict
                self._known_timers[node, part] = timed.timers, timed.timers._number, found
                for key, at in found.items():
                    if known.get(key) != at:
                        check_timer(node, key, at, timed.waits, now, self._moments)


def check_timer(node: int, key: Key, at: int, waits: Waits, now: int, moments: Collection[int]) -> None:
    """A timer that a node has set ``now`` runs off at a time that its configuration allows. Raises ``Mistimed``.

    ``moments``: when anything has happened so far.
    """
    name = " ".join(str(part) for part in key)
    wait = waits.get(key[0])
    if wait is None:
        raise Mistimed(f"node {node} sets a timer {name}, of which its configuration says nothing")
    if not any(at - moment in wait.times for moment in (moments if wait.since else (now,))):
        allowed = ", ".join(map(str, sorted(wait.times)[:6])) + (", ..." if len(wait.times) > 6 else "")
        after = " after something that has happened" if wait.since else ""
        told = f"its configuration allows {allowed} ms{after}"
        raise Mistimed(f"node {node} sets its timer {name} to run off {at - now} ms from now, and {told}")
