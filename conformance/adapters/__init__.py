"""Adapters that are here: brokers, consumers and quorums of ``impl/``, on simulated disks (``memory``) or real ones."""

from __future__ import annotations

from ...model.core.errors import BadInput
from ..lockstep.adapter import Adapter
from .fencing import FencingAdapter
from .parts import Parts
from .snapshots import SnapshotsAdapter
from .truncation import TruncationAdapter

ADAPTERS: dict[str, type[FencingAdapter] | type[TruncationAdapter] | type[SnapshotsAdapter]] = {
    FencingAdapter.protocol: FencingAdapter,
    TruncationAdapter.protocol: TruncationAdapter,
    SnapshotsAdapter.protocol: SnapshotsAdapter,
}
"""By the protocol that they implement."""


def make(protocol: str | None, variant: str | None, *, disk: bool, parts: Parts | None = None) -> Adapter:
    """The adapter of a protocol, ``fencing`` unless one is named. Raises BadInput for what ``impl/`` does not do.

    ``variant`` may be any one of the protocol, to see where brokers differ from it.
    """
    name = protocol or FencingAdapter.protocol
    if name not in ADAPTERS:
        raise BadInput(f"impl/ does not implement {name!r}", "--protocol", f"name one of {', '.join(ADAPTERS)}")
    return ADAPTERS[name](parts, disk=disk, variant=variant)


def memory(protocol: str | None, variant: str | None) -> Adapter:
    """Brokers on simulated disks, which can crash, fill up and fail."""
    return make(protocol, variant, disk=False)


def disk(protocol: str | None, variant: str | None) -> Adapter:
    """Brokers on files below a temporary folder."""
    return make(protocol, variant, disk=True)
