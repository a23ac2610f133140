"""All checks of brokers' files, and the one report that they make."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from .batches import Limits
from .compaction_checks import check_compacted, cleaned_below
from .controller_checks import (
    check_assigned,
    check_isr_agrees,
    check_leader_epochs,
    check_leader_in_isr,
    check_leaders_without_folder,
    check_quorum_leaders,
    check_registered,
    check_topic_ids,
)
from .cross_checks import AGREEMENT, PartitionComparison, Replica, compare_replicas
from .directories import SecondCopy, by_node
from .epoch_cache_checks import check_epoch_caches
from .history import check_history
from .losses import check_committed_kept
from .one_time import Older, check_one_time, doubted, older_copies
from .other_topics import Key, OtherTopic, find_other_topics
from .partition import METADATA_TOPIC
from .policies import cleanup_policy
from .presence import check_members_present
from .remote_checks import check_remote
from .replay_checks import check_replay
from .replica_checks import (
    check_epoch_cache,
    check_epochs_monotone,
    check_offsets_contiguous,
    check_offsets_ordered,
)
from .snapshot_checks import (
    check_boot_rule_of_kafka,
    check_boot_rule_of_text,
    check_snapshot_contents,
    check_snapshot_files,
    check_snapshot_ids,
)
from .snapshot_cross_checks import compare_snapshots
from .unclean_elections import UncleanElection, check_unclean_elections, unclean_elections
from .verdicts import CheckResult, Verdict, overall

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from ...model.core.errors import BadInput
    from .broker import BrokerFiles
    from .image import MetadataImage, PartitionState
    from .partition import PartitionFiles
    from .problems import Problem
    from .remote_store import RemoteStore

CONTROLLER_LOG = "controller_log_present"
OF_ONE_TOPIC = "folders_of_one_topic"


@dataclass(frozen=True, slots=True)
class FilesReport:
    """What the data directories of one cluster's brokers tell, in one object for a report."""

    brokers: tuple[BrokerFiles, ...]
    checks: tuple[CheckResult, ...]
    comparisons: tuple[PartitionComparison, ...]
    """One per partition that at least two of the brokers hold."""
    controller: str | None
    """The broker (label) whose metadata log gave the controller's decisions; ``None`` if none has such a log."""
    older: Older = field(default_factory=dict)
    """The brokers (labels) whose copies are older than others', and how that shows."""
    unclean_elections: tuple[UncleanElection, ...] = ()
    """Those of the partitions that some directory here has, by partition and metadata offset."""
    other_topics: Mapping[tuple[str, Key], OtherTopic] = field(default_factory=dict)
    """The folders, by broker label and partition, that are or may be of another topic of that name."""

    @property
    def problems(self) -> tuple[Problem, ...]:
        """The problems of all brokers' files."""
        return tuple(problem for broker in self.brokers for problem in broker.problems)

    @property
    def bad_input(self) -> bool:
        """Whether some file could not be read as it should: exit code 2."""
        return any(problem.severity == "error" for problem in self.problems)

    @property
    def verdict(self) -> Verdict:
        """The verdict over all checks that are not informative."""
        return overall(self.checks)

    def to_json(self) -> dict[str, Any]:
        """One JSON object: brokers, problems, checks, comparisons; no row per batch or record."""
        return {
            "verdict": self.verdict,
            "controller": self.controller,
            "older_copies": dict(self.older),
            "unclean_elections": [election.to_json() for election in self.unclean_elections],
            "brokers": [broker.to_json() for broker in self.brokers],
            "problems": [problem.to_json() for problem in self.problems],
            "checks": [check.to_json() for check in self.checks],
            "comparisons": [comparison.to_json() for comparison in self.comparisons],
        }


def check_brokers(
    brokers: Sequence[BrokerFiles],
    second: Sequence[SecondCopy] = (),
    limits: Limits | None = None,
    store: RemoteStore | None = None,
    skipped: Sequence[BadInput] = (),
    topics: Iterable[str] | None = None,
) -> FilesReport:
    """Run every check that the files of these brokers allow; results do not depend on the brokers' order.

    Directories of one node are put together (``directories.by_node``). ``second``: what was left out since it is a
    second copy of one that is there; which of the two is of the others' time nobody can say. ``store``: that of tiered
    topics, of the same time; without one only what is in the directories is looked at.

    ``topics``: the topics that were read; all by default. ``skipped``: why directories were not read. A comparison of
    replicas is ``unknown`` where such a directory may have had another replica.

    Raises ``BadInput`` for two copies of one directory, for different cluster ids, and for a store that fails.
    """
    limits = limits or Limits()
    ordered = by_node(brokers)
    controller = newest_metadata(ordered)
    image = controller.metadata if controller else None
    older = older_copies(ordered, controller)
    checks: list[CheckResult] = check_one_time(ordered, controller, older, second)
    older = {**older, **{each.label: "there are two copies of it" for each in second}}
    comparisons: list[PartitionComparison] = []
    elections: list[UncleanElection] = []
    if ordered and image is None:
        checks.append(_no_controller_log(ordered))
    checks += check_registered(ordered, image)
    others = find_other_topics(ordered, image)
    for key in sorted({key for broker in ordered for key in broker.partitions}):
        named = [broker for broker in ordered if key in broker.partitions]
        checks.extend(_other_topics(named, key, others, image.partition(*key) if image else None))
        holders = [broker for broker in named if not _is_left_over(others, broker, key)]
        if not holders:
            continue
        replicas: list[Replica] = [(b.label, b.node_id, b.booted(key)) for b in holders]
        cleaned = None if older else _told_clean(replicas) if image is None else cleaned_below(replicas, image)
        for broker in holders:
            checks.extend(_replica(broker, key, image, cleaned))
        state = image.partition(*key) if image else None
        own = {broker.label: _topic_id(broker.metadata, key[0]) for broker in holders}
        same = [each for each in _of_one_topic(replicas, image, own) if (each[0], key) not in others]
        in_order = frozenset(broker.label for broker in holders if broker.clean_shutdown)
        first = len(checks)
        if len(same) > 1:
            comparison, results = compare_replicas(same, state)
            comparisons.append(comparison)
            checks.extend(results)
        if same and key[0] != METADATA_TOPIC:
            labels = [label for label, _, _ in same]
            checks += [doubted(each, labels, older) for each in check_compacted(same, image, in_order, limits)]
        if key[0] != METADATA_TOPIC:
            labels = [label for label, _, _ in replicas]
            checks.append(doubted(check_topic_ids(replicas[0][2].name, replicas, image, own), labels, older))
            checks.extend(doubted(each, labels, older) for each in _controller(same, state, image, in_order))
            if image is not None:
                checks.extend(check_members_present(key, image, ordered, older, others))
            unclean = unclean_elections(image, *key) if image is not None else ()
            elections.extend(unclean)
            logs = {broker.label: broker.metadata for broker in holders}
            name = replicas[0][2].name
            losses = check_committed_kept(same, image, logs, unclean, name, limits, stopped=in_order)
            proven = any(each.verdict == "violated" for each in losses)
            checks += [*losses, *check_unclean_elections(same, unclean, name, proven=proven)]
            checks.extend(check_epoch_caches(same, image, logs, name))
            if skipped and not _all_here(replicas, state):
                checks[first:] = [_without(each, skipped[0]) for each in checks[first:]]
                if len(same) < 2:
                    what = (
                        f"only {replicas[0][0]}'s log was compared: {skipped[0].where} was skipped ({skipped[0].what})"
                    )
                    checks.append(CheckResult(AGREEMENT, "unknown", name, what))
        else:
            nodes = [(broker.label, broker.booted(key), broker.snapshots) for broker in holders]
            checks.extend(compare_snapshots(nodes, nodes[0][1].name))
            checks.extend(check_replay(holders))
            quorum = check_quorum_leaders(holders, nodes[0][1].name)
            checks += [] if quorum is None else [quorum]
            if controller is not None and image is not None:
                folders = {each for broker in ordered for each in broker.partitions}
                checks.extend(check_leaders_without_folder(image, controller.booted(key), folders))
    if image is not None:
        for key in _without_folders(ordered, image, topics):
            checks.extend(check_members_present(key, image, ordered, older, others))
    checks += check_remote(ordered, image, older, store)
    label = controller.label if controller else None
    return FilesReport(tuple(ordered), tuple(checks), tuple(comparisons), label, older, tuple(elections), others)


def _is_left_over(others: Mapping[tuple[str, Key], OtherTopic], broker: BrokerFiles, key: tuple[str, int]) -> bool:
    """Whether the folder is surely of a removed topic: Kafka deletes it unseen, so nothing in it is judged."""
    other = others.get((broker.label, key))
    return other is not None and other.sure


def _other_topics(
    holders: Sequence[BrokerFiles],
    key: Key,
    others: Mapping[tuple[str, Key], OtherTopic],
    state: PartitionState | None,
) -> list[CheckResult]:
    """A remark for each folder of a removed topic, ``unknown`` for one that may be of another topic.

    ``unknown`` too for a broker in the ISR of the topic that has the name now: its copy is older than that.
    """
    results = []
    for broker in holders:
        other = others.get((broker.label, key))
        if other is None:
            continue
        member = state is not None and broker.node_id in state.isr
        message = other.reason
        if other.sure:
            after = "it is in the ISR of the topic that has the name now, so its copy is older"
            message += f"; {after if member else 'the broker deletes the folder when it starts'}"
        files = broker.partitions[key]
        subject = f"{broker.label}: {files.name}"
        informative = other.sure and not member
        results.append(CheckResult(OF_ONE_TOPIC, "unknown", subject, message, str(files.path), informative))
    return results


def _without_folders(
    brokers: Sequence[BrokerFiles], image: MetadataImage, topics: Iterable[str] | None
) -> list[tuple[str, int]]:
    """The partitions that no directory has a folder of, though an ISR member's directory is here."""
    nodes = {broker.node_id for broker in brokers}
    held = {key for broker in brokers for key in broker.partitions}
    chosen = None if topics is None else set(topics)
    return [
        (name, number)
        for name, topic in sorted(image.topics.items())
        if chosen is None or name in chosen
        for number, history in sorted(topic.history.items())
        if (name, number) not in held and not nodes.isdisjoint(history[-1].isr)
    ]


def _all_here(replicas: list[Replica], state: PartitionState | None) -> bool:
    """Whether the logs of all assigned replicas were read."""
    return state is not None and set(state.replicas) <= {node for _, node, _ in replicas}


def _without(result: CheckResult, skipped: BadInput) -> CheckResult:
    """A comparison that lacks a directory: ``holds`` becomes ``unknown``, and what is violated stays so."""
    if result.verdict != "holds" or result.informative:
        return result
    message = f"{result.message}; {skipped.where} was skipped ({skipped.what})"
    return replace(result, verdict="unknown", message=message)


def _told_clean(replicas: list[Replica]) -> int | None:
    """The largest cleaner offset of a partition; ``None`` if no ``cleaner-offset-checkpoint`` has one."""
    return max((files.cleaned for _, _, files in replicas if files.cleaned is not None), default=None)


def _no_controller_log(brokers: Sequence[BrokerFiles]) -> CheckResult:
    """A note that there is no controller log, with the checks that need one."""
    message = (
        "no directory has a controller log (__cluster_metadata-0), as in a ZooKeeper cluster; not checked: elections, "
        "ISRs, fenced brokers, assignments, and leader epochs against the controller"
    )
    return CheckResult(CONTROLLER_LOG, "unknown", ", ".join(each.label for each in brokers), message, informative=True)


def _of_one_topic(replicas: list[Replica], image: MetadataImage | None, own: dict[str, UUID | None]) -> list[Replica]:
    """The replicas that are of the topic which the controller has under that name.

    Where no controller tells: all, or none where their topic ids differ.
    """
    # A folder without its own file is of the topic that its broker knows under the name.
    by_label = {label: files.topic_id or own.get(label) for label, _, files in replicas}
    ids = set(by_label.values()) - {None}
    known = _topic_id(image, replicas[0][2].topic)
    if known is not None:
        return [replica for replica in replicas if by_label[replica[0]] in (None, known)]
    return replicas if len(ids) <= 1 else []


def _topic_id(image: MetadataImage | None, topic: str) -> UUID | None:
    return image.topics[topic].topic_id if image is not None and topic in image.topics else None


def newest_metadata(brokers: Sequence[BrokerFiles]) -> BrokerFiles | None:
    """The broker whose metadata log would win an election: the largest (epoch, LEO), the first of equals."""
    known = [broker for broker in brokers if broker.metadata is not None]
    return max(known, key=_metadata_rank, default=None)


def _metadata_rank(broker: BrokerFiles) -> tuple[int, int]:
    image = broker.metadata
    assert image is not None
    return image.epoch, image.end_offset


def _replica(
    broker: BrokerFiles, key: tuple[str, int], image: MetadataImage | None, cleaned: int | None
) -> list[CheckResult]:
    files = broker.partitions[key]
    subject = f"{broker.label}: {files.name}"
    policy = cleanup_policy(image, key[0], broker.node_id)
    results = [
        check_epochs_monotone(files, subject),
        check_epoch_cache(files, subject, clean_shutdown=broker.clean_shutdown),
        check_offsets_contiguous(files, subject, policy, cleaned),
        check_offsets_ordered(files, subject, clean_shutdown=broker.clean_shutdown),
    ]
    if key[0] == METADATA_TOPIC:
        results += _snapshots(broker, files, subject)
        if broker.metadata is not None:
            results += check_history(broker.metadata, broker.booted(key), subject)
    return results


def _snapshots(broker: BrokerFiles, files: PartitionFiles, subject: str) -> list[CheckResult]:
    contents = check_snapshot_contents(broker.snapshots, broker.replayed, subject)
    return [
        check_boot_rule_of_text(files, subject),
        check_boot_rule_of_kafka(files, subject),
        check_snapshot_ids(files, broker.snapshots, subject),
        check_snapshot_files(files, broker.snapshots, subject),
        *([] if contents is None else [contents]),
    ]


def _controller(
    replicas: list[Replica], state: PartitionState | None, image: MetadataImage | None, stopped: frozenset[str]
) -> list[CheckResult]:
    if image is None or not replicas:
        return []
    subject = replicas[0][2].name
    results = check_leader_epochs(replicas, state, image)
    if state is not None:
        results.append(check_leader_in_isr(subject, state, image))
        results.append(check_isr_agrees(subject, replicas, state, image, stopped))
        results.append(check_assigned(subject, replicas, state))
    return results
