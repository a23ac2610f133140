"""Checks of partitions' files against the controller's decisions in the metadata log."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from ..text import counted
from .divergence import first_difference
from .partition import METADATA_TOPIC
from .statefiles import encode_uuid, nearly_equal
from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence
    from uuid import UUID

    from .broker import BrokerFiles
    from .cross_checks import Replica
    from .image import MetadataImage, PartitionState
    from .partition import PartitionFiles

REGISTERED = "brokers_registered"
_LOG = "the metadata log"


def check_leader_epochs(
    replicas: list[Replica], state: PartitionState | None, image: MetadataImage
) -> list[CheckResult]:
    """No batch has a leader epoch above the one that the controller last gave out."""
    name = "leader_epochs_known_to_controller"
    results: list[CheckResult] = []
    for label, _, files in replicas:
        subject = f"{label}: {files.name}"
        if state is None:
            message = "the metadata log does not know this partition"
            results.append(CheckResult(name, "unknown", subject, message))
            continue
        above = np.flatnonzero(files.batches.leader_epoch > state.leader_epoch)
        if len(above):
            row = int(above[0])
            offset = int(files.batches.base_offset[row])
            message = (
                f"leader epoch {files.batches.leader_epoch[row]} at offset {offset}, "
                f"the controller's is {state.leader_epoch} as of metadata offset {state.offset}"
            )
            results.append(CheckResult(name, _fault(image), subject, message, files.where(offset)))
        else:
            message = f"all epochs are at most the controller's {state.leader_epoch}"
            results.append(CheckResult(name, _sure(image), subject, message))
    return results


_LEADER_IN_ISR = "leader_in_isr"


def check_leader_in_isr(subject: str, state: PartitionState, image: MetadataImage) -> CheckResult:
    """The leader is in the ISR, and the ISR among the replicas, in every state that the metadata log holds."""
    topic, _, index = subject.rpartition("-")
    history = image.topics[topic].history[int(index)]
    wrong = _outside(history)
    if wrong is not None:
        return CheckResult(_LEADER_IN_ISR, _fault(image), subject, f"{wrong[1]} at metadata offset {wrong[0].offset}")
    message = f"in {counted(len(history), 'state')}; now leader {state.leader}, ISR {list(state.isr)}"
    return CheckResult(_LEADER_IN_ISR, _sure(image), subject, message)


def check_leaders_without_folder(
    image: MetadataImage, files: PartitionFiles, folders: Container[tuple[str, int]]
) -> list[CheckResult]:
    """Check the same for partitions that no directory at hand has a folder of; report those that break it.

    ``files`` is the metadata log that made the image.
    """
    results = []
    for topic in sorted(image.topics.values(), key=lambda each: each.name):
        for number, history in sorted(topic.history.items()):
            wrong = None if (topic.name, number) in folders else _outside(history)
            if wrong is not None:
                state, words = wrong
                message = f"{words} at metadata offset {state.offset}"
                where = files.where(state.offset) if state.offset >= max(image.loaded, files.log_start) else ""
                subject = f"{topic.name}-{number}"
                results.append(CheckResult(_LEADER_IN_ISR, _fault(image), subject, message, where))
    return results


def _outside(history: Sequence[PartitionState]) -> tuple[PartitionState, str] | None:
    """The first state whose leader is not in the ISR or whose ISR is not within the replicas, and how."""
    for past in history:
        if past.leader >= 0 and past.leader not in past.replicas:
            return past, f"leader {past.leader} is not among the replicas {list(past.replicas)}"
        if past.leader >= 0 and past.leader not in past.isr:
            return past, f"leader {past.leader} is not in the ISR {list(past.isr)}"
        if not set(past.isr) <= set(past.replicas):
            return past, f"ISR {list(past.isr)} is not within the replicas {list(past.replicas)}"
    return None


def check_quorum_leaders(brokers: Sequence[BrokerFiles], subject: str) -> CheckResult | None:
    """Check that the ``quorum-state`` files name one leader for each quorum epoch.

    Returns ``None`` for fewer than two files that name a leader. Kafka writes the file before a node votes or follows
    (``org.apache.kafka.raft.QuorumState``), so two leaders of one epoch are a split quorum.
    """
    name = "one_quorum_leader_per_epoch"
    known = [(each, each.quorum) for each in brokers if each.quorum is not None and each.quorum.leader_id >= 0]
    leaders: dict[int, tuple[int, str]] = {}
    for broker, quorum in known:
        leader, label = leaders.setdefault(quorum.leader_epoch, (quorum.leader_id, broker.label))
        if leader != quorum.leader_id:
            message = (
                f"two leaders of quorum epoch {quorum.leader_epoch}: {leader} by {label}'s quorum-state, "
                f"{quorum.leader_id} by {broker.label}'s"
            )
            return CheckResult(name, "violated", subject, message, str(broker.path / subject / "quorum-state"))
    if len(known) < 2:
        return None
    return CheckResult(name, "holds", subject, f"{len(known)} quorum-state files")


def check_isr_agrees(
    subject: str, replicas: list[Replica], state: PartitionState, image: MetadataImage, stopped: frozenset[str]
) -> CheckResult:
    """Every replica in the ISR holds all records below the largest high watermark in the ISR, and they agree.

    The strong ISR property of KIP-320's model, with the checkpointed high watermarks in place of the brokers' own
    (which are never lower). A replica outside the ISR promises nothing. A short log is ``violated`` only of a broker in
    ``stopped``, those that were shut down cleanly: the copy of one that ran may be older than the others.
    """
    name = "isr_agrees_below_high_watermark"
    members = [(label, files) for label, node, files in replicas if node in state.isr]
    marks = [files.high_watermark for _, files in members if files.high_watermark is not None]
    if not members:
        message = f"none of the ISR {list(state.isr)} is among the directories" if state.isr else "the ISR is empty"
        return CheckResult(name, "unknown", subject, message, informative=True)
    if not marks:
        return CheckResult(name, "unknown", subject, "no member of the ISR has a high watermark here")
    bound = max(marks)
    reference_label, reference = max(members, key=lambda member: member[1].log_end)
    verdict: Verdict = _sure(image)
    short = ""
    for label, files in members:
        if files.log_end < bound:
            if files.damaged:
                verdict = "unknown"
                continue
            message = (
                f"{label} is in the ISR {list(state.isr)} with LEO {files.log_end}, below the high watermark {bound}"
            )
            if label in stopped:
                return CheckResult(name, _fault(image), subject, message, str(files.path))
            short = short or f"{message}: its copy may be older"
            continue
        found, _ = first_difference(reference, files, 0, bound)
        if found is not None:
            message = f"{label} and {reference_label} are in the ISR and differ at offset {found.offset}, below {bound}"
            return CheckResult(name, _fault(image), subject, message, files.where(found.offset))
        if files.damaged:
            verdict = "unknown"
    if short:
        return CheckResult(name, "unknown", subject, short)
    absent = len(state.isr) - len(members)
    missing = f"; {counted(absent, 'other member')} of the ISR not among the directories" if absent else ""
    if any(files.damaged for _, files in members):
        missing += "; part of a log could not be read"
    return CheckResult(
        name, verdict, subject, f"{counted(len(members), 'member')}, no divergence below {bound}{missing}"
    )


def check_topic_ids(
    subject: str, replicas: list[Replica], image: MetadataImage | None, own: Mapping[str, UUID | None]
) -> CheckResult:
    """``partition.metadata`` names the same topic id on every replica, and the controller's.

    ``own``: by a broker's label, the topic's id in that broker's own metadata log. A replica of an older topic of that
    name, which its broker's metadata log has too, is no contradiction: that broker was stopped when the topic was made
    anew, or its copy is older (``unknown``).
    """
    name = "topic_ids_match"
    topic = replicas[0][2].topic
    expected = None
    source = ""
    if image is not None and topic in image.topics:
        expected, source = image.topics[topic].topic_id, _LOG
    seen = 0
    behind: CheckResult | None = None
    damaged: CheckResult | None = None
    for label, _, files in replicas:
        if files.topic_id is None:
            continue
        seen += 1
        if expected is None:
            expected, source = files.topic_id, label
        elif files.topic_id != expected:
            message = f"{label} has topic id {encode_uuid(files.topic_id)}, {source} has {encode_uuid(expected)}"
            where = str(files.path / "partition.metadata")
            if nearly_equal(files.topic_id, expected):
                message += ": ids are random, and these are nearly equal, so one of the files is damaged"
                damaged = damaged or CheckResult(name, "unknown", subject, message, where)
                continue
            if own.get(label) != files.topic_id:
                sure = image is None or source != _LOG or image.complete
                return CheckResult(name, "violated" if sure else "unknown", subject, message, where)
            message += ": as in its own metadata log, so it was stopped when the topic was made anew, or copied before"
            behind = behind or CheckResult(name, "unknown", subject, message, where)
    undecided = damaged or behind
    if undecided is not None:
        return undecided
    if expected is None:
        if image is None:
            # A ZooKeeper cluster before 2.8 has no topic ids, and nothing to compare.
            return CheckResult(name, "unknown", subject, "no replica has a topic id", informative=True)
        return CheckResult(name, "unknown", subject, "no replica names its topic id")
    return CheckResult(name, "holds", subject, f"{encode_uuid(expected)} on {seen} replicas")


def check_registered(brokers: Sequence[BrokerFiles], image: MetadataImage | None) -> list[CheckResult]:
    """Each node with partitions is registered: another node id is one that ``meta.properties`` has by damage.

    Returns:
        ``unknown`` for each node that the metadata log does not know. Empty if it knows all.
    """
    if image is None or not image.complete or not image.brokers:
        return []
    return [
        CheckResult(
            REGISTERED,
            "unknown",
            broker.label,
            f"the metadata log registers no broker {broker.node_id}, and this directory has partitions of a broker",
            str(broker.path / "meta.properties"),
        )
        for broker in brokers
        if broker.node_id not in image.brokers and any(topic != METADATA_TOPIC for topic, _ in broker.partitions)
    ]


def check_assigned(subject: str, replicas: list[Replica], state: PartitionState) -> CheckResult:
    """Informative: folders of brokers that are not among the partition's replicas are strays."""
    name = "replicas_assigned"
    strays = [label for label, node, _ in replicas if node is not None and node not in state.replicas]
    if strays:
        message = f"{', '.join(strays)} hold a folder, the replicas are {list(state.replicas)}"
        return CheckResult(name, "violated", subject, message, informative=True)
    return CheckResult(name, "holds", subject, f"replicas {list(state.replicas)}", informative=True)


def _sure(image: MetadataImage) -> Verdict:
    """``holds``, or ``unknown`` where part of the metadata log could not be read."""
    return "holds" if image.complete else "unknown"


def _fault(image: MetadataImage) -> Verdict:
    """``violated``, or ``unknown`` where what could not be read may have decided otherwise."""
    return "violated" if image.complete else "unknown"
