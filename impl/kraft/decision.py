"""What the active controller decides: records to append, and what is answered once they are stable."""

from __future__ import annotations

from typing import NamedTuple

from ..metadata import changes
from ..metadata.elections import PartitionImage
from ..metadata.image import Image, PartitionKey
from ..metadata.values import MetadataRecord
from ..wire.controller import ControllerResponse


class Decision(NamedTuple):
    """``records``: none where the request only reads, or is refused. ``atomic``: they are stable together or not at
    all; else they may become so one part after another, each of which leaves a state that may be."""

    answer: ControllerResponse | None
    records: tuple[MetadataRecord, ...] = ()
    atomic: bool = True


def isr_records(after: dict[PartitionKey, PartitionImage]) -> tuple[MetadataRecord, ...]:
    """A record for each partition that changes."""
    return tuple(changes.isr(key, partition) for key, partition in after.items())


def fence_records(image: Image, broker: int, *, by_event: bool) -> tuple[MetadataRecord, ...]:
    """Fence a broker that is not: out of every ISR and leadership with it.

    Where it is not ``by_event``, the IsrChanges come first, and the last record finds nothing more to do to partitions.
    """
    fence = changes.fence(broker, image.brokers[broker].epoch)
    return (fence,) if by_event else (*isr_records(image.without(broker)), fence)
