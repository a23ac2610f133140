"""The advice that follows from the findings of a check of brokers' files."""

from __future__ import annotations

from collections.abc import Sequence

from ...traces.kafka.checks import OF_ONE_TOPIC
from ...traces.kafka.cross_checks import AGREEMENT
from ...traces.kafka.losses import NAME as LOSSES
from ...traces.kafka.partition import METADATA_TOPIC
from ...traces.kafka.unclean_elections import NAME as UNCLEAN
from ...traces.report.answer import Finding
from ...traces.text import brokers_named
from .files import Cluster
from .truncations import PrescribedTruncation

_COPY_AGAIN = "Keep a copy of the named log, and let the broker copy the partition from another replica."
_CACHE = (
    "Move leadership to a replica whose epoch cache is complete, then let the named broker copy the partition again."
)

ADVICE = {
    "copies_of_one_time": "Stop all brokers, copy all directories, and check again: these may be of different times.",
    "readable": "Replace the unreadable files by a fresh copy of the broker's directory, and check again.",
    "epoch_cache_matches_batches": _CACHE,
    "epoch_caches_agree": _CACHE,
    "cached_epochs_had_leaders": _CACHE,
    "leader_epoch_in_cache": _CACHE,
    AGREEMENT: (
        "Decide which replica is right, then let the others copy the partition from it; keep copies of all first."
    ),
    "offsets_contiguous": _COPY_AGAIN,
    "epochs_monotone": _COPY_AGAIN,
    "topic_ids_match": "Keep a copy of the folder with the other topic id, and find its topic before you move it away.",
    OF_ONE_TOPIC: (
        "Find out whether the topic was deleted and created anew while the named broker was down; keep its folder "
        "until then."
    ),
    "metadata_log_replays": (
        "Copy the metadata logs of all controllers before one restarts: a controller that replays this record stops."
    ),
}
"""One sentence for each check with advice of its own."""

METADATA_DIFFERS = (
    "Copy the metadata logs of all controllers before one restarts, and compare them with kafka-dump-log "
    "--cluster-metadata-decoder; never delete one."
)

DOUBTS = frozenset({"copies_of_one_time", "readable", OF_ONE_TOPIC})
"""Checks whose advice is for open questions, too."""

LOST_TRACES = (
    "Compare the records that producers had acknowledged with the log of {}: the directories no longer show the loss."
)

FALLBACK = "Keep copies of all directories, and look at the named files with kafka-dump-log."


def next_steps(
    cluster: Cluster, findings: Sequence[Finding], truncations: Sequence[PrescribedTruncation]
) -> tuple[str, ...]:
    """Return what to do next, the most urgent first; nothing if there is no finding and no skipped directory."""
    steps: list[str] = []
    holders = {
        (result.subject, result.data["follower"])
        for result in cluster.report.checks
        if result.check == LOSSES and result.verdict == "violated" and "follower" in result.data
    }
    copied = {subject for subject, _ in holders}
    rescued = sorted(
        {each.truncation.follower for each in truncations if each.loss_reported} | {label for _, label in holders}
    )
    unread = any(each.severity == "error" and each.kind != "old-magic" for each in cluster.report.problems)
    if rescued:
        one = len(rescued) == 1
        what = f"the {'directory' if one else 'directories'} of {brokers_named(rescued)}"
        when = "it starts: it has records that it" if one else "they start: they have records that they"
        steps.append(f"Copy {what} before {when} will delete.")
    for finding in findings:
        if finding.check == LOSSES and finding.verdict == "violated":
            source = "from that copy (kafka-dump-log --print-data-log shows them), or from their producers"
            if finding.subject not in copied:
                source = "from their producers"
            steps.append(f"Produce the lost records of {finding.subject} again {source}.")
        elif finding.check == UNCLEAN and not missing_brokers(cluster, [finding]):
            steps.append(LOST_TRACES.format(finding.subject))
        elif finding.check == AGREEMENT and finding.subject.startswith(METADATA_TOPIC):
            steps.append(METADATA_DIFFERS)
        elif finding.check == "readable" and not unread:
            continue
        elif finding.check in ADVICE and (finding.verdict == "violated" or finding.check in DOUBTS):
            steps.append(ADVICE[finding.check])
    missing = missing_brokers(cluster, findings)
    if missing:
        noun = "directory" if len(missing) == 1 else "directories"
        steps.append(f"Check again with the {noun} of {brokers_named([f'broker {node}' for node in missing])}.")
    if cluster.refused:
        steps.append("Correct the skipped paths, and check again.")
    if findings and not steps:
        steps.append(FALLBACK)
    return tuple(dict.fromkeys(steps))


def missing_brokers(cluster: Cluster, findings: Sequence[Finding]) -> list[int]:
    """The replicas of partitions with a finding whose directories are not at hand."""
    present = {broker.node_id for broker in cluster.report.brokers}
    subjects = {name for finding in findings for name in finding.names}
    wanted = {
        node
        for broker in cluster.report.brokers
        for key in broker.partitions
        if f"{key[0]}-{key[1]}" in subjects
        for state in [cluster.elected(*key)]
        if state is not None
        for node in state.replicas
    }
    return sorted(wanted - present)
