"""Whether copies of several brokers can be of one time.

A broker that stopped long ago looks like an old copy of one that runs, so most old copies say nothing wrong. What gives
one away is that the rest of the files know of something which that broker can only have done later. What is asked is
asked of the metadata log, which tells the order of things, never of the logs that are to be judged.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .partition import METADATA_TOPIC
from .verdicts import CheckResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .broker import BrokerFiles
    from .directories import SecondCopy

NAME = "copies_of_one_time"

Older = Mapping[str, str]
"""By the label of a broker whose copy is older than others': how that shows."""


def older_copies(brokers: Sequence[BrokerFiles], newest: BrokerFiles | None) -> Older:
    """The brokers whose copies are older than what the ``newest`` metadata log, or another copy, knows of them."""
    if newest is None or newest.metadata is None:
        return {}
    found: dict[str, str] = {}
    for broker in brokers:
        reason = _registered(broker, newest) or _started_again(broker, newest) or _led(broker, brokers, newest)
        if broker is not newest and reason:
            found[broker.label] = reason
    return found


def check_one_time(
    brokers: Sequence[BrokerFiles], newest: BrokerFiles | None, older: Older, second: Sequence[SecondCopy]
) -> list[CheckResult]:
    """``unknown`` for each copy that cannot be of one time with the others; nothing is asked of a single broker.

    ``second``: directories that were left out since another one of the same node was there.
    """
    results = [CheckResult(NAME, "unknown", f"two copies of {each.label}", str(each)) for each in second]
    for broker in brokers:
        reason = older.get(broker.label) or _own_metadata(broker) or _outrun(broker, brokers, newest)
        if reason:
            results.append(CheckResult(NAME, "unknown", broker.label, reason, str(broker.path)))
        elif lag := _lag(broker, newest):
            results.append(CheckResult(NAME, "unknown", broker.label, lag, str(broker.path), informative=True))
    if all(each.informative for each in results) and len(brokers) > 1 and newest is not None:
        message = f"nothing in the metadata log of {newest.label} says that these {len(brokers)} are not"
        results.append(CheckResult(NAME, "holds", "the copies", message))
    return results


def doubted(result: CheckResult, brokers: Sequence[str], older: Older) -> CheckResult:
    """A ``violated`` that compares copies of different times is ``unknown``; anything else stays as it is.

    Only for what a difference in time can bring about. What both of two copies say is committed stays so for ever.
    """
    reason = next((f"{label}: {older[label]}" for label in brokers if label in older), None)
    if reason is None or result.verdict != "violated":
        return result
    message = f"{result.message}; but the copies are not of one time ({reason})"
    return CheckResult(result.check, "unknown", result.subject, message, result.where, result.informative, result.data)


def _lag(broker: BrokerFiles, newest: BrokerFiles | None) -> str:
    """What is worth knowing, though a broker that runs may be a little behind the controller."""
    image, own = newest.metadata if newest else None, broker.metadata
    if newest is None or image is None or own is None or not own.complete or broker.node_id not in image.brokers:
        return ""
    if image.brokers[broker.node_id].fenced or own.end_offset >= image.end_offset:
        return ""
    return (
        f"its metadata log ends at {own.end_offset} and {newest.label}'s, which has it unfenced, at "
        f"{image.end_offset}: it lags, or its copy is older"
    )


def _registered(broker: BrokerFiles, newest: BrokerFiles) -> str:
    """The controller unfences a broker once its metadata log has its registration (``BrokerHeartbeatManager``)."""
    image, own = newest.metadata, broker.metadata
    if image is None or own is None or not own.complete or broker.node_id is None:
        return ""
    state = image.brokers.get(broker.node_id)
    if state is None or image.unfenced.get(broker.node_id) != state.epoch or own.end_offset > state.epoch:
        return ""
    return (
        f"its metadata log ends at {own.end_offset}, before its registration at {state.epoch}, with which "
        f"{newest.label}'s has it unfenced: it is an older copy"
    )


def _started_again(broker: BrokerFiles, newest: BrokerFiles) -> str:
    """A broker removes the marker of a clean stop, with its broker epoch, before it is unfenced again (KIP-966)."""
    image = newest.metadata
    if image is None or broker.node_id is None or broker.clean_epoch is None or broker.clean_epoch < 0:
        return ""
    state = image.brokers.get(broker.node_id)
    if state is None or image.unfenced.get(broker.node_id) != state.epoch or state.epoch <= broker.clean_epoch:
        return ""
    return (
        f"it was stopped cleanly at broker epoch {broker.clean_epoch}, and {newest.label}'s metadata log has it "
        f"started again at {state.epoch}: it is an older copy"
    )


def _led(broker: BrokerFiles, brokers: Sequence[BrokerFiles], newest: BrokerFiles) -> str:
    """Records of an epoch that this broker led were written after it had read that it led."""
    image, own = newest.metadata, broker.metadata
    if image is None or own is None or not own.complete:
        return ""
    for name, topic in sorted(image.topics.items()):
        for number, history in sorted(topic.history.items()):
            led = {s.leader_epoch: s for s in reversed(history) if s.leader == broker.node_id}
            for epoch, state in sorted(led.items()):
                if state.offset < max(own.end_offset, image.loaded):
                    continue
                for other in brokers:
                    files = other.partitions.get((name, number))
                    if other is broker or files is None or files.topic_id not in (None, topic.topic_id):
                        continue
                    if bool(np.any(files.batches.leader_epoch == epoch)):
                        return (
                            f"{other.label} has records of {name}-{number} that it wrote as leader of epoch {epoch}, "
                            f"elected at metadata offset {state.offset}; its own metadata log ends at "
                            f"{own.end_offset}: it is an older copy"
                        )
    return ""


def _outrun(broker: BrokerFiles, brokers: Sequence[BrokerFiles], newest: BrokerFiles | None) -> str:
    """A leader has every record of its epoch before anybody else: nobody's log of that epoch goes on where its ends.

    It may have lost them since, so what is ``violated`` by their absence stays so.
    """
    if newest is None or newest.metadata is None:
        return ""
    for (topic, number), files in broker.partitions.items():
        state = newest.metadata.partition(topic, number)
        if topic == METADATA_TOPIC or state is None or state.leader != broker.node_id or files.damaged:
            continue
        for other in brokers:
            theirs = other.partitions.get((topic, number))
            if theirs is None or other is broker or theirs.topic_id != files.topic_id:
                continue
            later = (theirs.batches.leader_epoch == state.leader_epoch) & (theirs.batches.base_offset >= files.log_end)
            if bool(np.any(later)):
                return (
                    f"it leads {files.name} in epoch {state.leader_epoch} and its log ends at {files.log_end}, where "
                    f"{other.label}'s goes on with records of that epoch: its copy is older, or it has lost them"
                )
    return ""


def _own_metadata(broker: BrokerFiles) -> str:
    """A broker knows a leader epoch by its metadata log before it has records of it."""
    own = broker.metadata
    if own is None or not own.complete:
        return ""
    for (topic, number), files in broker.partitions.items():
        state = own.partition(topic, number)
        if topic == METADATA_TOPIC or state is None or files.topic_id not in (None, own.topics[topic].topic_id):
            continue
        above = np.flatnonzero(files.batches.leader_epoch > state.leader_epoch)
        if len(above):
            row = int(above[0])
            return (
                f"{files.name} has leader epoch {files.batches.leader_epoch[row]} and its own metadata log knows "
                f"{state.leader_epoch}: this directory is not of one moment"
            )
    return ""
