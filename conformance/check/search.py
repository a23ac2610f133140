"""The bounded search for runs of the model that end in brokers' logs. It runs last, and only ever adds a violation."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...model.core.protocol import Protocol
from ...model.explore import Limits, Verdict
from ...model.explore.result import OnProgress
from ...traces.build_story import story_of_run
from ...traces.kafka.abstraction import Abstraction, Block, abstract
from ...traces.kafka.reach import Reach, reach_any
from ...traces.renamed import with_replicas
from ...traces.stepper import DirectStepper
from ...traces.story import Json, Story
from ...traces.words import counted
from ..harness import plan_of
from .files import Cluster
from .task import Outcome, Task

MAX_OFFSETS = 4
"""Logs that need more of the model's offsets are not searched: the state space is too large."""

MAX_STATES = 1_000_000
"""States of one search by default: at three replicas, about 3 seconds and 100 MiB."""

MAX_SECONDS = 60.0
"""Seconds of all searches by default."""

Key = tuple[str, int]


@dataclass(frozen=True)
class SearchLimits:
    """The budget: ``max_states`` and ``max_memory`` (bytes) of one search, ``max_seconds`` of all together."""

    max_states: int = MAX_STATES
    max_seconds: float = MAX_SECONDS
    max_memory: int = Limits.max_memory


class Searches:
    """Searches for runs of one variant that end in brokers' logs; logs that look alike are searched for once."""

    def __init__(self, protocol: Protocol, variant: str | None = None, limits: SearchLimits | None = None) -> None:
        self.protocol = protocol
        self.variant = variant or protocol.default_variant
        self.limits = limits or SearchLimits()
        self.promised = self.variant in (protocol.default_variant, *plan_of(protocol).holds)
        """Whether the variant promises that no committed record is lost: it is one of those that must hold."""
        self._found: dict[tuple[object, ...], list[Reach]] = {}
        self._spent = 0.0

    def reached(self, cluster: Cluster, key: Key) -> Outcome:
        """Whether a run ends in the logs of one partition."""
        target = abstract(cluster.partition(*key), cluster.replication(*key), compacted=cluster.compacted(*key))
        reason = not_searched(target, cluster, key)
        if reason is not None:
            return Outcome(Verdict.UNKNOWN, reason, 0, "states")
        searches = self._searches(target)
        if not searches:
            reason = f"more than {self.limits.max_seconds:g} seconds (--max-seconds)"
            return Outcome(Verdict.UNKNOWN, reason, 0, "states")
        first, last = searches[0], searches[-1]
        states = sum(each.search.distinct for each in searches)
        if first.verdict is Verdict.UNKNOWN:
            return Outcome(Verdict.UNKNOWN, f"{first.variant}: {first.search.reason}", states, "states")
        detail = reach_sentence(first, last)
        # Where no variant at all reaches the logs, the bounds of the search may be what is wrong.
        verdict = first.verdict if last.verdict is Verdict.HOLDS else Verdict.UNKNOWN
        story = reach_story(first, last, target, cluster.ids(*key, target), detail)
        return Outcome(verdict, detail, states, "states", story)

    def _searches(self, target: Abstraction) -> list[Reach]:
        """One for each variant up to the first that reaches the logs; remembered by what the model sees of them."""
        if target.shape in self._found:
            return self._found[target.shape]
        left = self.limits.max_seconds - self._spent
        if left <= 0:
            return []
        # What safe crashes leave, idle replicas leave too: those variants would only take longer.
        others = [
            each.name for each in self.protocol.variants.values() if each.name != self.variant and not each.restarts
        ]
        start = time.monotonic()
        limits = Limits(max_states=self.limits.max_states, max_memory=self.limits.max_memory)
        found = reach_any(self.protocol, (self.variant, *others), target, limits=limits)
        self._spent += time.monotonic() - start
        self._found[target.shape] = found
        return found

    def all_reached(self, cluster: Cluster, keys: Sequence[Key], _told: OnProgress) -> Outcome:
        """Whether a run ends in the logs of each partition: the worst outcome, and whose it is."""
        outcomes = {key: self.reached(cluster, key) for key in keys}
        states = sum(outcome.count for outcome in outcomes.values())
        for wanted in (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.HOLDS):
            for key, outcome in outcomes.items():
                if outcome.verdict is wanted:
                    detail = outcome.detail if len(keys) == 1 else f"{_named(key)}: {outcome.detail}"
                    return replace(outcome, detail=detail, count=states)
        raise AssertionError("there is no partition to reach")


def search_tasks(cluster: Cluster, group: str, searches: Searches, skip: Iterable[Key] = ()) -> list[Task]:
    """Return one search for each partition whose logs diverge, and one for all others.

    ``skip``: partitions whose cause is known already.
    """
    explained = set(skip)
    keys = [key for key in cluster.partitions if key not in explained]
    differing = {(each.topic, each.partition) for each in cluster.report.comparisons if each.divergences}
    groups: dict[tuple[str, str], list[Key]] = {}
    for key in keys:
        ends = {files.log_end for files in cluster.partition(*key).values()}
        kind = "agree" if len(ends) == 1 else "lag"
        if cluster.no_state(*key) is not None:
            kind = "cannot be compared"
        groups.setdefault((kind, _named(key) if key in differing else ""), []).append(key)
    tasks = []
    for (kind, _), members in groups.items():
        what = _named(members[0]) if len(members) == 1 else f"{len(members)} partitions whose replicas {kind}"
        run = partial(searches.all_reached, cluster, members)
        tasks.append(Task(f"{cluster.label}{what}: reachable", group, run, optional=True))
    return tasks


def explained_partitions(cluster: Cluster) -> list[Key]:
    """Return the partitions whose divergence an unclean election in the metadata log explains."""
    return sorted({(each.topic, each.partition) for each in cluster.report.unclean_elections})


def _named(key: Key) -> str:
    return f"{key[0]}-{key[1]}"


def not_searched(target: Abstraction, cluster: Cluster, key: tuple[str, int]) -> str | None:
    """Why the model is not searched for a partition's logs; None where it is."""
    reason = cluster.no_state(*key)
    if reason is not None:
        return reason
    if target.holes:
        return f"broker {target.holes[0]}'s log lacks offsets that another has (compaction leaves such holes)"
    if len(target.blocks) > MAX_OFFSETS:
        return f"the logs differ in {len(target.blocks)} places; the search goes up to {MAX_OFFSETS} offsets"
    return None


def reach_sentence(first: Reach, last: Reach) -> str:
    """What the searches found: ``reachable by 17 steps of kip-320``, or which other variant reaches the logs."""
    if first.verdict is Verdict.HOLDS:
        assert first.search.path is not None
        return f"reachable by {counted(len(first.search.path), 'step')} of {first.variant}"
    sentence = f"no run of {first.variant} reaches this ({first.bounds})"
    if last.verdict is Verdict.HOLDS:
        assert last.search.path is not None
        return f"{sentence}, but {last.variant} does, by {counted(len(last.search.path), 'step')}"
    if last.verdict is Verdict.UNKNOWN:
        return f"{sentence}; whether {last.variant} does is unknown: {last.search.reason}"
    return f"{sentence}, nor does one of any other variant: it may take more records or leader epochs than that"


def reach_story(first: Reach, last: Reach, target: Abstraction, ids: Sequence[int], headline: str) -> Story | None:
    """The run that ends in the logs, where a variant has one; replicas have the brokers' ``ids``."""
    if last.verdict is not Verdict.HOLDS or last.search.path is None:
        return None
    system = last.system
    absent: dict[str, Json] = {"not among the directories": list(ids[len(target.nodes) :])}
    story = story_of_run(
        DirectStepper(system.traced, system.constants),
        last.search.path,
        verdict=first.verdict,
        headline=headline[0].upper() + headline[1:] + ".",
        source={
            "replicas agree": target.agreed,
            "brokers": list(target.nodes),
            **(absent if len(ids) > len(target.nodes) else {}),
            "offsets": {str(o): _span(block) for o, block in enumerate(target.blocks)},
            "leader epochs": {str(model): real for real, model in target.epochs.items()},
        },
    )
    return with_replicas(story, system, ids, "broker")


def _span(block: Block) -> str:
    return str(block.first) if block.first == block.last else f"{block.first} to {block.last}"
