"""The controller's image against the folders: who is in an ISR has the partition's log."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from .verdicts import CheckResult

if TYPE_CHECKING:
    from collections.abc import Container, Sequence

    from .broker import BrokerFiles
    from .image import MetadataImage
    from .one_time import Older

NAME = "isr_members_have_their_logs"


def check_members_present(
    key: tuple[str, int],
    image: MetadataImage,
    brokers: Sequence[BrokerFiles],
    older: Older,
    others: Container[tuple[str, tuple[str, int]]] = (),
) -> list[CheckResult]:
    """Each member of a partition's ISR, of those whose directories are here, has a folder of it.

    A broker makes the folder when it applies the partition's record, some time after that is in its metadata log. So it
    must have had one where it was unfenced later than that, as it had then read so far, or where the leader has taken
    it into the ISR since, as it had then fetched all. Elsewhere, and where not all of its ``log.dirs`` are here
    (KIP-858) or its copy is an older one, a missing folder is worth knowing, and breaks nothing for sure. A folder that
    the broker's own ``replication-offset-checkpoint`` names was there. The only member of an ISR has the only copy of
    all committed records, so without its folder the verdict is open. One result
    for each of these, and one for all others together; none where no member is here. ``others``: the folders, by broker
    label and partition, that are of another topic of that name.
    """
    state = image.partition(*key)
    members = [broker for broker in brokers if state is not None and broker.node_id in state.isr]
    if state is None or not members:
        return []
    subject = f"{key[0]}-{key[1]}"
    results, present = [], 0
    for broker in members:
        if key in broker.partitions and (broker.label, key) not in others:
            present += 1
            continue
        doubt = _doubt(broker, key, image, older)
        message = f"{broker.label} is in the ISR {list(state.isr)}, and has no folder of it"
        if key in broker.checkpointed and broker.label not in older and not _absent_directories(broker, image):
            message += "; its replication-offset-checkpoint still has the high watermark"
            results.append(CheckResult(NAME, "violated", subject, message, str(broker.path)))
        elif doubt:
            alone = state.isr == (broker.node_id,) and broker.label not in older
            alone = alone and not _absent_directories(broker, image)
            results.append(CheckResult(NAME, "unknown", subject, f"{message}: {doubt}", informative=not alone))
        else:
            where = ", ".join(str(directory.path) for directory in broker.directories)
            results.append(CheckResult(NAME, "violated", subject, message, where))
    if present:
        results.append(CheckResult(NAME, "holds", subject, f"{present} of {len(state.isr)} members"))
    return results


def _doubt(broker: BrokerFiles, key: tuple[str, int], image: MetadataImage, older: Older) -> str:
    """Why the broker may have no folder for all that; empty where it must have had one."""
    own = broker.metadata
    if broker.label in older:
        return f"its copy is not of the others' time: {older[broker.label]}"
    if own is None or own.partition(*key) is None or own.topics[key[0]].topic_id != image.topics[key[0]].topic_id:
        return "its own metadata log has no such partition"
    node = broker.node_id if broker.node_id is not None else -1
    registered = own.brokers.get(node)
    if registered is None or not registered.log_dirs:
        return "no record says which log.dirs it has"
    absent = _absent_directories(broker, image)
    if absent:
        return f"of its log.dirs, {', '.join(absent)} is not here"
    history = own.topics[key[0]].history[key[1]]
    joined = any(
        node in after.isr and node not in before.isr and before.leader == after.leader not in (-1, node)
        for before, after in pairwise(history)
    )
    if not joined and own.unfenced.get(node, -1) <= history[0].offset:
        return "it need not have applied the record that made it"
    return ""


def _absent_directories(broker: BrokerFiles, image: MetadataImage) -> list[str]:
    """The ids of the broker's registered ``log.dirs`` that are not here; empty if no record has their ids."""
    registered = image.brokers.get(-1 if broker.node_id is None else broker.node_id)
    given = {directory.directory_id for directory in broker.directories}
    return [each for each in (registered.log_dirs if registered else ()) if each not in given]
