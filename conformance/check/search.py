"""The bounded search for runs of the model that end in brokers' logs. It runs last, and only ever adds a violation."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial

from ...model.core.protocol import Protocol
from ...model.core.registration import Registration
from ...model.explore import Limits, Verdict
from ...model.explore.result import OnProgress
from ...traces.build_run_report import story_of_run
from ...traces.kafka.abstraction import Abstraction, Block, abstract, merge_equal
from ...traces.kafka.reach import Reach, guided_reach, reach_any
from ...traces.replica_map import with_replicas
from ...traces.run_report import Json, Story
from ...traces.stepper import DirectStepper
from ...traces.text import counted
from ..harness import plan_of
from .files import Cluster
from .release_variants import earlier_variants, lossy_variants
from .task import Outcome, Task, unknown

MAX_OFFSETS = 4
"""Logs that need more of the model's offsets are only compared with the invariants: the state space is too large."""

MAX_STATES = 1_000_000
"""States of one search by default: at three replicas, about 3 seconds and 100 MiB."""

QUICK = 100_000
"""States of a search with equal logs merged, which is tried before all replicas are looked at."""

EASY = 3_000
"""States of the guided search that is tried first: healthy replicas need few."""

GUIDED = 60_000
"""States of a guided search for the cause of a loss."""

MAX_SECONDS = 60.0
"""Seconds of all searches by default."""

Key = tuple[str, int]


@dataclass(frozen=True)
class SearchLimits:
    """The budget: ``max_states`` and ``max_memory`` (bytes) of one search, ``max_seconds`` of all together."""

    max_states: int = MAX_STATES
    max_seconds: float = MAX_SECONDS
    max_memory: int = Limits.max_memory


@dataclass(frozen=True)
class SearchAnswer:
    """The answer for all logs of one shape.

    Args:
        verdict: ``holds`` if the variant has a run that ends in the logs, ``violated`` if it cannot have one.
        sentence: The answer in words.
        states: States that were visited.
        run: The search that found a run, of the variant or of a lossy one; None if none was found.
        merged: Whether equal logs are one in the run.
        unfinished: Whether a limit of the search was reached before an answer.
    """

    verdict: Verdict
    sentence: str
    states: int
    run: Reach | None = None
    merged: bool = False
    unfinished: bool = False


class Searches:
    """Searches for runs of one variant that end in brokers' logs; logs that look alike are searched for once."""

    def __init__(
        self, registration: Registration, variant: str | None = None, limits: SearchLimits | None = None
    ) -> None:
        self.registration = registration
        self.protocol = registration.protocol
        self.variant = variant or self.protocol.default_variant
        self.limits = limits or SearchLimits()
        self.promised = self.variant in (self.protocol.default_variant, *plan_of(self.protocol).holds)
        """Whether the variant promises that no committed record is lost: it is one of those that must hold."""
        self._found: dict[tuple[object, ...], SearchAnswer] = {}
        self._spent = 0.0
        self._states = 0

    def reached(self, cluster: Cluster, key: Key) -> Outcome:
        """Whether a run ends in the logs of one partition."""
        reason = cluster.no_state(*key)
        if reason is not None:
            return unknown(reason)
        target = abstract(cluster.partition(*key), cluster.replication(*key), compacted=cluster.compacted(*key))
        if target.holes:
            what = "log lacks offsets that another has (compaction leaves such holes)"
            return unknown(f"broker {target.holes[0]}'s {what}")
        default = self.variant == self.protocol.default_variant
        earlier = earlier_variants(cluster, self.registration) if default else ()
        found = self.answer(target, earlier, lost=cluster.has_lost(*key))
        if found.run is None:
            return Outcome(found.verdict, found.sentence, found.states, "states", unfinished=found.unfinished)
        logs = merge_equal(target) if found.merged else target
        ids = cluster.ids(*key, logs)
        sentence = found.sentence + _lossy_words(found.run, ids, self.protocol) + _merged_words(logs)
        story = reach_story(replace(found, sentence=sentence), found.run, logs, ids, self.registration)
        return Outcome(found.verdict, sentence, found.states, "states", story)

    def answer(self, target: Abstraction, earlier: tuple[str, ...] = (), *, lost: bool = False) -> SearchAnswer:
        """The answer for logs, remembered for all that the model sees alike.

        Args:
            target: The logs.
            earlier: Older variants that the brokers may have run.
            lost: Whether the files prove a loss, so that its cause is looked for first.
        """
        shape = (*target.shape, earlier, lost)
        if shape not in self._found:
            if self._spent >= self.limits.max_seconds:
                reason = f"more than {self.limits.max_seconds:g} seconds of searching (--max-seconds)"
                return SearchAnswer(Verdict.UNKNOWN, reason, 0, unfinished=True)
            start = time.monotonic()
            self._states = 0
            self._found[shape] = self._search(target, earlier, lost)
            self._spent += time.monotonic() - start
        return self._found[shape]

    def _search(self, target: Abstraction, earlier: tuple[str, ...], lost: bool) -> SearchAnswer:
        """Search in the cheapest order: guided, the proof's invariants, then a cause or every state."""
        proof = self.registration.find_proof()
        small = merge_equal(target)
        searchable = len(target.blocks) <= MAX_OFFSETS
        if proof is None or proof.variant != self.variant:
            return self._search_unproved(replace(target, newest=()))
        if searchable:
            for logs in (small, target):
                found = self._guided(self.protocol, self.variant, logs, EASY)
                if found.verdict is Verdict.HOLDS:
                    return self._reached(found, merged=logs.replicas < target.replicas)
        # With it comes z3, which most directories do not need.
        from ...traces.kafka.ruled_out import is_ruled_out

        # A cached epoch without records is no proof of a leader: retention and stale caches leave such entries too.
        if is_ruled_out(proof, replace(target, newest=())):
            sentence = f"no run of {self.variant} ends in these logs, by its proved invariants"
            if lost or not earlier:
                return self._cause(sentence, target, small, earlier)
            return self._search_earlier(sentence, target, small, earlier)
        if not searchable:
            reason = f"the logs differ in {len(target.blocks)} places; the search goes up to {MAX_OFFSETS}"
            return SearchAnswer(Verdict.UNKNOWN, f"not ruled out by the invariants; {reason}", self._states)
        found = self._reach(self.protocol, self.variant, target, self.limits.max_states)
        if found.verdict is Verdict.HOLDS:
            return self._reached(found, merged=False)
        reason = found.search.reason or f"no run ends in them within {found.bounds}"
        unfinished = found.verdict is Verdict.UNKNOWN
        sentence = f"not ruled out by the invariants; {reason}"
        return SearchAnswer(Verdict.UNKNOWN, sentence, self._states, unfinished=unfinished)

    def _search_unproved(self, target: Abstraction) -> SearchAnswer:
        """Search for a run of a variant without a proof: what it does not reach within the bounds, another must."""
        if len(target.blocks) > MAX_OFFSETS:
            reason = f"the logs differ in {len(target.blocks)} places; the search goes up to {MAX_OFFSETS}"
            return SearchAnswer(Verdict.UNKNOWN, reason, 0)
        found = self._reach(self.protocol, self.variant, target, self.limits.max_states)
        if found.verdict is Verdict.HOLDS:
            return self._reached(found, merged=False)
        if found.verdict is Verdict.UNKNOWN:
            sentence = f"{self.variant}: {found.search.reason}"
            return SearchAnswer(Verdict.UNKNOWN, sentence, self._states, unfinished=True)
        cause = self._cause(f"no run of {self.variant} ends in these logs ({found.bounds})", target, target)
        return cause if cause.run is not None else replace(cause, verdict=Verdict.UNKNOWN)

    def _reached(self, found: Reach, *, merged: bool) -> SearchAnswer:
        assert found.search.path is not None
        sentence = f"reachable by {counted(len(found.search.path), 'step')} of {found.variant}"
        return SearchAnswer(Verdict.HOLDS, sentence, self._states, found, merged)

    def _search_earlier(
        self, sentence: str, target: Abstraction, small: Abstraction, earlier: tuple[str, ...]
    ) -> SearchAnswer:
        """Search older variants before a cause: logs that the variant cannot have may be theirs.

        They have no proof, and lose records themselves, so only a run with a loss gives more than ``unknown``.
        """
        searchable = len(target.blocks) <= MAX_OFFSETS
        for variant in earlier if searchable else ():
            found = self._reach_or_guide(self.protocol, variant, target, small)
            if found.search.path is not None:
                merged = found.system.constants["replicas"] < target.replicas
                reached = self._reached(found, merged=merged)
                reason = f"and by no run of {self.variant}; the files do not show which of the two the brokers ran"
                return replace(reached, verdict=Verdict.UNKNOWN, sentence=f"{reached.sentence}, {reason}")
        cause = self._cause(sentence, target, small, earlier)
        if cause.run is not None:
            return cause
        reason = f"{sentence}; the release may be older, and no run of {' or '.join(earlier)} was found"
        return replace(cause, verdict=Verdict.UNKNOWN, sentence=reason)

    def _reach_or_guide(self, protocol: Protocol, variant: str, target: Abstraction, small: Abstraction) -> Reach:
        found = self._reach(protocol, variant, small, QUICK)
        return found if found.verdict is Verdict.HOLDS else self._guided(protocol, variant, target, GUIDED)

    def _cause(
        self, sentence: str, target: Abstraction, small: Abstraction, earlier: tuple[str, ...] = ()
    ) -> SearchAnswer:
        """Look for a run that loses records, first by unclean elections alone; ``violated`` in any case."""
        lossy = self.registration.find_lossy()
        if lossy is None or len(target.blocks) > MAX_OFFSETS:
            return SearchAnswer(Verdict.VIOLATED, sentence, self._states)
        for variant in lossy_variants(lossy, self.registration, earlier):
            found = self._reach_or_guide(lossy, variant, target, small)
            if found.search.path is not None:
                sentence += f"; a run of {counted(len(found.search.path), 'step')} that loses records ends in them"
                return SearchAnswer(
                    Verdict.VIOLATED,
                    sentence,
                    self._states,
                    found,
                    merged=found.system.constants["replicas"] < target.replicas,
                )
        return SearchAnswer(Verdict.VIOLATED, sentence, self._states)

    def _guided(self, protocol: Protocol, variant: str, target: Abstraction, most: int) -> Reach:
        limits = Limits(max_states=min(most, self.limits.max_states), max_memory=self.limits.max_memory)
        found = guided_reach(protocol, variant, target, later=0, limits=limits)
        self._states += found.search.distinct
        return found

    def _reach(self, protocol: Protocol, variant: str, target: Abstraction, most: int) -> Reach:
        limits = Limits(max_states=min(most, self.limits.max_states), max_memory=self.limits.max_memory)
        (found,) = reach_any(protocol, (variant,), target, limits=limits)
        self._states += found.search.distinct
        return found

    def all_reached(self, cluster: Cluster, keys: Sequence[Key], _told: OnProgress) -> Outcome:
        """Whether a run ends in the logs of each partition: the worst outcome, and whose it is."""
        outcomes = {key: self.reached(cluster, key) for key in keys}
        states = sum(outcome.count for outcome in outcomes.values())
        order = (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.HOLDS)
        worst = min(keys, key=lambda key: (order.index(outcomes[key].verdict), not outcomes[key].unfinished))
        outcome = outcomes[worst]
        detail = outcome.detail if len(keys) == 1 else f"{_named(worst)}: {outcome.detail}"
        return replace(outcome, detail=detail, count=states)


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


def reach_story(
    answer: SearchAnswer, run: Reach, logs: Abstraction, ids: Sequence[int], registration: Registration
) -> Story:
    """The run that ends in the logs; replicas have the brokers' ``ids``."""
    assert run.search.path is not None
    system = run.system
    absent: dict[str, Json] = {"not among the directories": list(ids[len(logs.nodes) :])}
    equal: list[Json] = [list(nodes) for nodes in logs.merged if len(nodes) > 1]
    story = story_of_run(
        DirectStepper(system.traced, system.constants),
        run.search.path,
        verdict=answer.verdict,
        headline=answer.sentence[0].upper() + answer.sentence[1:] + ".",
        source={
            "replicas agree": logs.agreed,
            "brokers": list(logs.nodes),
            **({"brokers with one log": equal} if equal else {}),
            **(absent if len(ids) > len(logs.nodes) else {}),
            "offsets": {str(o): _span(block) for o, block in enumerate(logs.blocks)},
            "leader epochs": {str(model): real for real, model in logs.epochs.items()},
        },
    )
    view = registration.view_of(registration.protocol.default_variant)
    return with_replicas(replace(story, view=view), system, ids, "broker")


def _lossy_words(run: Reach, ids: Sequence[int], protocol: Protocol) -> str:
    """The steps of a run that the protocol itself does not have: ``: replica_lose_log(replica=3)``."""
    steps = []
    for step in run.search.path or ():
        if step.instance.action not in protocol.actions:
            params = ", ".join(f"{name}={ids[value]}" for name, value in step.instance.params)
            steps.append(f"{step.instance.action}({params})")
    return f": {', '.join(steps)}" if steps else ""


def _merged_words(logs: Abstraction) -> str:
    """Which brokers a run shows as one."""
    groups = ["brokers " + ", ".join(map(str, nodes)) for nodes in logs.merged if len(nodes) > 1]
    return f" ({'; '.join(groups)} as one)" if groups else ""


def _span(block: Block) -> str:
    return str(block.first) if block.first == block.last else f"{block.first} to {block.last}"
