"""The obligations of real brokers' files: what they tell by themselves, and whether the model reaches them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import count, islice
from pathlib import Path

from ...model.core.errors import BadInput
from ...model.core.protocol import Protocol
from ...model.explore import Limits, Verdict
from ...model.explore.result import OnProgress
from ...traces.build_story import story_of_run
from ...traces.kafka.abstraction import Abstraction, Block, abstract
from ...traces.kafka.batches import BudgetSpent
from ...traces.kafka.batches import Limits as ReadLimits
from ...traces.kafka.broker import BrokerFiles, read_broker
from ...traces.kafka.capture import BUNDLED, bundled_corpus, load_manifest, node_directories
from ...traces.kafka.checks import FilesReport, check_brokers
from ...traces.kafka.directories import OtherCluster, SecondCopy, require_one_cluster
from ...traces.kafka.losses import NAME as LOSSES
from ...traces.kafka.partition import METADATA_TOPIC, PartitionFiles
from ...traces.kafka.policies import cleanup_policy
from ...traces.kafka.reach import Reach, reach_any
from ...traces.kafka.remote_store import RemoteStore, read_store
from ...traces.kafka.staging import STORE
from ...traces.kafka.verdicts import CheckResult
from ...traces.renamed import with_replicas
from ...traces.stepper import DirectStepper
from ...traces.story import Json, Story
from ...traces.words import counted
from ..harness import plan_of
from .task import Outcome, Task

MAX_OFFSETS = 4
"""Logs that need more of the model's offsets than this are not searched for: the state space is too large."""

LIMITS = Limits(max_states=6_000_000)
"""Of one search. At three replicas, about 15 seconds and 500 MiB."""

_SEVERITY = {"holds": Verdict.HOLDS, "violated": Verdict.VIOLATED, "unknown": Verdict.UNKNOWN}


@dataclass(frozen=True)
class Cluster:
    """The brokers of one cluster at one instant, read and checked. ``label`` stands before each obligation.

    ``refused``: why directories were left out, a line each.
    """

    label: str
    report: FilesReport
    refused: tuple[BadInput, ...] = ()

    def partition(self, topic: str, number: int) -> dict[int, PartitionFiles]:
        """The logs of one partition by node id."""
        found = {}
        for broker in self.report.brokers:
            files = broker.partitions.get((topic, number))
            if files is not None and broker.node_id is not None:
                found[broker.node_id] = files
        return found

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The partitions that at least two of the brokers hold, without the controllers' own log."""
        keys = {key for broker in self.report.brokers for key in broker.partitions if key[0] != METADATA_TOPIC}
        return sorted(key for key in keys if len(self.partition(*key)) > 1)

    def no_state(self, topic: str, number: int) -> str | None:
        """Why the logs of a partition are no state that the cluster was in; None where they may be one."""
        holders = [broker for broker in self.report.brokers if (topic, number) in broker.partitions]
        apart = [broker.label for broker in holders if broker.label in self.report.older]
        if apart:
            return f"the copies are not of one time: {apart[0]}: {self.report.older[apart[0]]}"
        if len({broker.partitions[topic, number].topic_id for broker in holders} - {None}) > 1:
            return "the copies are of different topics of that name: their topic ids differ"
        damaged = [node for node, files in self.partition(topic, number).items() if files.damaged]
        return f"broker {damaged[0]}'s log could not be read in full" if damaged else None

    def ids(self, topic: str, number: int, target: Abstraction) -> tuple[int, ...]:
        """The node id of each replica of the model: the brokers at hand, then others that the controller assigned.

        A replica that nobody has named gets a number that no broker here has.
        """
        states = [b.metadata.partition(topic, number) for b in self.report.brokers if b.metadata is not None]
        assigned = {node for state in states if state is not None for node in state.replicas}
        others = sorted(assigned - set(target.nodes))[: target.unseen]
        spare = count(1 + max((*target.nodes, *assigned), default=-1))
        return (*target.nodes, *others, *islice(spare, target.unseen - len(others)))

    def compacted(self, topic: str, number: int) -> bool:
        """Whether holes in a partition's logs are what its configuration allows: on each broker that holds it."""
        images = {each.label: each.metadata for each in self.report.brokers}
        image = images.get(self.report.controller or "")
        return all(cleanup_policy(image, topic, node).compacted for node in self.partition(topic, number))

    def replication(self, topic: str, number: int) -> int:
        """The replication factor, as the controller has it; else the number of logs given."""
        logs = self.partition(topic, number)
        for broker in self.report.brokers:
            state = broker.metadata.partition(topic, number) if broker.metadata else None
            if state is not None:
                return max(len(state.replicas), len(logs))
        return len(logs)


def read_cluster(
    label: str,
    paths: Sequence[Path],
    *,
    topics: Iterable[str] | None = None,
    limits: ReadLimits | None = None,
    store: RemoteStore | None = None,
) -> Cluster:
    """Read brokers' data directories as far as they can be read; of the partitions, those of ``topics`` where given.

    Directories of one node are one broker's. A path that is no such directory, is a second copy of one that came
    before, or is of another cluster, is ``refused``. ``limits`` are those of all directories together, and of what the
    checks read again. ``store``: that of tiered topics, if it is to be looked at. Raises ``BudgetSpent`` where there is
    more than may be read, and BadInput where the store fails.
    """
    limits = limits or ReadLimits()
    brokers: list[BrokerFiles] = []
    refused: list[BadInput] = []
    for path in paths:
        try:
            broker = read_broker(path, topics=topics, limits=limits)
            require_one_cluster([*brokers, broker])
        except BudgetSpent:
            raise
        except BadInput as fault:
            refused.append(fault)
        else:
            brokers.append(broker)
    second = [fault for fault in refused if isinstance(fault, SecondCopy)]
    # A directory of another cluster holds no replica of this one.
    skipped = [fault for fault in refused if not isinstance(fault, (SecondCopy, OtherCluster))]
    return Cluster(label, check_brokers(brokers, second, limits, store, skipped), tuple(refused))


def bundled_clusters() -> list[Cluster]:
    """The recorded stages of the bundled corpora, in the order in which they happened.

    Raises BadInput for one that is not whole.
    """
    clusters: list[Cluster] = []
    for scenario in BUNDLED:
        corpus = bundled_corpus(scenario)
        manifest = load_manifest(corpus)
        of = f"{scenario}, " if "scenario" in manifest else ""
        stages = [stage["name"] for stage in manifest["stages"]]
        for stage in stages:
            folder = corpus / stage / STORE
            store = read_store(str(folder)) if folder.is_dir() else None
            clusters.append(read_cluster(f"{of}{stage}: ", node_directories(corpus, stage), store=store))
    for cluster in clusters:
        for fault in (*cluster.refused, *(p.as_bad_input() for p in cluster.report.problems if p.severity == "error")):
            raise fault
    return clusters


class Searches:
    """Searches for runs of one variant that end in brokers' logs; logs that look alike are searched for once."""

    def __init__(self, protocol: Protocol, variant: str | None = None) -> None:
        self.protocol = protocol
        self.variant = variant or protocol.default_variant
        self.promised = self.variant in (protocol.default_variant, *plan_of(protocol).holds)
        """Whether the variant promises that no committed record is lost: it is one of those that must hold."""
        self._found: dict[tuple[object, ...], list[Reach]] = {}

    def reached(self, cluster: Cluster, key: tuple[str, int], target: Abstraction) -> Outcome:
        """Whether a run ends in the logs of one partition."""
        reason = not_searched(target, cluster, key)
        if reason is not None:
            return Outcome(Verdict.UNKNOWN, reason, 0, "states")
        searches = self._searches(target)
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
        # What safe crashes leave, idle replicas leave too: those variants would only take longer.
        others = [
            each.name for each in self.protocol.variants.values() if each.name != self.variant and not each.restarts
        ]
        found = reach_any(self.protocol, (self.variant, *others), target, limits=LIMITS)
        self._found[target.shape] = found
        return found

    def all_reached(
        self, cluster: Cluster, targets: Mapping[tuple[str, int], Abstraction], _told: OnProgress
    ) -> Outcome:
        """Whether a run ends in the logs of each partition: the worst outcome, and whose it is."""
        outcomes = {key: self.reached(cluster, key, target) for key, target in targets.items()}
        states = sum(outcome.count for outcome in outcomes.values())
        for wanted in (Verdict.VIOLATED, Verdict.UNKNOWN, Verdict.HOLDS):
            for key, outcome in outcomes.items():
                if outcome.verdict is wanted:
                    detail = outcome.detail if len(targets) == 1 else f"{_named(key)}: {outcome.detail}"
                    return replace(outcome, detail=detail, count=states)
        raise AssertionError("there is no partition to reach")


def file_tasks(
    cluster: Cluster,
    group: str,
    searches: Searches,
    *,
    lost: Iterable[tuple[str, int]] = (),
    condensed: bool = False,
) -> list[Task]:
    """One obligation for each kind of check, one for each partition whose replicas differ, one for all the others.

    Held against a variant that breaks its promises, a loss is what that may bring about: a note.
    ``lost`` are partitions that no run of the variant is expected to reach (in the bundled corpus, after an unclean
    election). ``condensed`` makes one obligation of all kinds of check.
    """
    missing = set(lost)
    by_check: dict[str, list[CheckResult]] = {}
    for result in cluster.report.checks:
        if not result.informative and not (result.check == LOSSES and not searches.promised):
            by_check.setdefault(_obligation(result, missing, condensed=condensed), []).append(result)
    tasks = []
    for name in sorted(by_check):
        expected = Verdict.VIOLATED if name in {_lost_name(key) for key in missing} else Verdict.HOLDS
        tasks.append(Task(cluster.label + name, group, partial(_summed, by_check[name]), expected))
    targets = {
        key: abstract(cluster.partition(*key), cluster.replication(*key), compacted=cluster.compacted(*key))
        for key in cluster.partitions
    }
    agreed = {key: target for key, target in targets.items() if target.agreed}
    if agreed:
        what = f"{len(agreed)} partitions whose replicas agree" if len(agreed) > 1 else _named(next(iter(agreed)))
        tasks.append(Task(f"{cluster.label}{what}: reachable", group, partial(searches.all_reached, cluster, agreed)))
    for key, target in targets.items():
        if key not in agreed:
            run = partial(searches.all_reached, cluster, {key: target})
            expected = Verdict.VIOLATED if key in missing else Verdict.HOLDS
            tasks.append(Task(f"{cluster.label}{_named(key)}: reachable", group, run, expected))
    return tasks


def _obligation(result: CheckResult, missing: set[tuple[str, int]], *, condensed: bool) -> str:
    """The obligation that a result belongs to. A loss that is expected has one of its own."""
    for key in missing:
        if result.check == LOSSES and result.subject == _named(key):
            return _lost_name(key)
    return "files by themselves" if condensed else result.check


def _lost_name(key: tuple[str, int]) -> str:
    return f"{_named(key)}: {LOSSES}"


def _named(key: tuple[str, int]) -> str:
    return f"{key[0]}-{key[1]}"


def _summed(results: list[CheckResult], _told: OnProgress) -> Outcome:
    """Several results as one: the worst verdict, and what the first result with it says."""
    unit = "log" if len(results) == 1 else "logs"
    for wanted in ("violated", "unknown"):
        worst = [result for result in results if result.verdict == wanted]
        if worst:
            more = f" (and {len(worst) - 1} more)" if len(worst) > 1 else ""
            place = f" ({worst[0].where})" if worst[0].where else ""
            kind = f"{worst[0].check}: " if len({result.check for result in results}) > 1 else ""
            detail = f"{kind}{worst[0].subject}: {worst[0].message}{place}{more}"
            return Outcome(_SEVERITY[wanted], detail, len(results), unit)
    detail = f"in all {len(results)}" if len(results) > 1 else f"{results[0].subject}: {results[0].message}"
    return Outcome(Verdict.HOLDS, detail, len(results), unit)


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
