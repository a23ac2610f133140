"""Brokers' directories read as one cluster, and one obligation for each kind of check on them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import count, islice
from pathlib import Path
from uuid import UUID

from ...model.core.errors import BadInput
from ...model.explore import Verdict
from ...model.explore.result import OnProgress
from ...traces.kafka.abstraction import Abstraction
from ...traces.kafka.batches import BudgetSpent
from ...traces.kafka.batches import Limits as ReadLimits
from ...traces.kafka.broker import BrokerFiles, read_broker
from ...traces.kafka.capture import BUNDLED, bundled_corpus, load_manifest, node_directories
from ...traces.kafka.checks import FilesReport, check_brokers
from ...traces.kafka.directories import OtherCluster, SecondCopy, require_one_cluster
from ...traces.kafka.image import MetadataImage, PartitionState
from ...traces.kafka.losses import NAME as LOSSES
from ...traces.kafka.partition import METADATA_TOPIC, PartitionFiles
from ...traces.kafka.policies import cleanup_policy
from ...traces.kafka.remote_store import RemoteStore, read_store
from ...traces.kafka.staging import STORE
from ...traces.kafka.verdicts import CheckResult
from .task import Outcome, Task

_SEVERITY = {"holds": Verdict.HOLDS, "violated": Verdict.VIOLATED, "unknown": Verdict.UNKNOWN}


@dataclass(frozen=True)
class Cluster:
    """The brokers of one cluster at one instant, read and checked. ``label`` stands before each obligation.

    ``refused``: why directories were left out, a line each.
    """

    label: str
    report: FilesReport
    refused: tuple[BadInput, ...] = ()

    @property
    def image(self) -> MetadataImage | None:
        """The metadata of the broker with the newest metadata log; None without a metadata log."""
        images = {each.label: each.metadata for each in self.report.brokers}
        return images.get(self.report.controller or "")

    def partition(self, topic: str, number: int) -> dict[int, PartitionFiles]:
        """The logs of one partition by node id, without those of another topic of that name."""
        found = {}
        for broker in self.report.brokers:
            files = broker.partitions.get((topic, number))
            other = (broker.label, (topic, number)) in self.report.other_topics
            if files is not None and broker.node_id is not None and not other:
                found[broker.node_id] = files
        return found

    @property
    def partitions(self) -> list[tuple[str, int]]:
        """The partitions that at least two of the brokers hold, without the controllers' own log."""
        keys = {key for broker in self.report.brokers for key in broker.partitions if key[0] != METADATA_TOPIC}
        return sorted(key for key in keys if len(self.partition(*key)) > 1)

    def no_state(self, topic: str, number: int) -> str | None:
        """Why the logs of a partition are no state that the cluster was in; None where they may be one."""
        key = topic, number
        holders = [
            broker
            for broker in self.report.brokers
            if key in broker.partitions and (broker.label, key) not in self.report.other_topics
        ]
        apart = [broker.label for broker in holders if broker.label in self.report.older]
        if apart:
            return f"the copies are not of one time: {apart[0]}: {self.report.older[apart[0]]}"
        if len({_topic_id(broker, topic, number) for broker in holders} - {None}) > 1:
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

    def has_lost(self, topic: str, number: int) -> bool:
        """Whether the files prove that the partition has lost committed records."""
        name = _named((topic, number))
        return any(
            each.check == LOSSES and each.subject == name and each.verdict == "violated" for each in self.report.checks
        )

    def compacted(self, topic: str, number: int) -> bool:
        """Whether holes in a partition's logs are what its configuration allows: on each broker that holds it."""
        return all(cleanup_policy(self.image, topic, node).compacted for node in self.partition(topic, number))

    def elected(self, topic: str, number: int) -> PartitionState | None:
        """The newest decision of the controller about a partition; None without a metadata log."""
        return None if self.image is None else self.image.partition(topic, number)

    def replication(self, topic: str, number: int) -> int:
        """The replication factor, as the controller has it; else the number of logs given."""
        logs = self.partition(topic, number)
        for broker in self.report.brokers:
            state = broker.metadata.partition(topic, number) if broker.metadata else None
            if state is not None:
                return max(len(state.replicas), len(logs))
        return len(logs)


def _topic_id(broker: BrokerFiles, topic: str, number: int) -> UUID | None:
    """The topic id of a folder; without ``partition.metadata`` that of the topic in the broker's own metadata log."""
    known = broker.metadata.topics.get(topic) if broker.metadata else None
    return broker.partitions[topic, number].topic_id or (known.topic_id if known else None)


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
    topics = None if topics is None else tuple(topics)
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
    return Cluster(label, check_brokers(brokers, second, limits, store, skipped, topics), tuple(refused))


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


def file_tasks(
    cluster: Cluster,
    group: str,
    *,
    losses: bool = True,
    lost: Mapping[tuple[str, int], Verdict] | None = None,
    condensed: bool = False,
) -> list[Task]:
    """Return one obligation for each kind of check.

    Args:
        cluster: The brokers and their report.
        group: Heading of the obligations.
        losses: Whether a lost committed record is a problem; not so for a variant that allows losses.
        lost: Partitions that an unclean election has damaged, in a bundled corpus, and the verdict to expect of each.
        condensed: Make one obligation of all kinds of check.
    """
    missing = lost or {}
    by_check: dict[str, list[CheckResult]] = {}
    for result in cluster.report.checks:
        if not result.informative and not (result.check == LOSSES and not losses):
            by_check.setdefault(_obligation(result, missing, condensed=condensed), []).append(result)
    expected = {_lost_name(key): verdict for key, verdict in missing.items()}
    return [
        Task(cluster.label + name, group, partial(_summed, by_check[name]), expected.get(name, Verdict.HOLDS))
        for name in sorted(by_check)
    ]


def _obligation(result: CheckResult, missing: Iterable[tuple[str, int]], *, condensed: bool) -> str:
    """The obligation that a result belongs to. An expected loss has one of its own."""
    for key in missing:
        if result.verdict != "holds" and result.subject == _named(key):
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
