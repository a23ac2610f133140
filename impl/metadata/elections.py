"""What becomes of a partition when brokers come and go: pure, and the same wherever a record is replayed.

(Kafka's ``PartitionChangeBuilder`` and ``ReplicationControlManager.generateLeaderAndIsrUpdates``.) A leader epoch
begins with another leader, or none, and with nothing else; every change raises the partition epoch.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from ..wire.messages import NO_LEADER


class PartitionImage(NamedTuple):
    """One partition. ``replicas`` in the order of preference; ``isr`` is never empty."""

    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    leader: int
    leader_epoch: int
    partition_epoch: int
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()

    def led_anew(self, leader: int, isr: tuple[int, ...]) -> PartitionImage:
        """With this leader and ISR in a new leader epoch."""
        return self._replace(
            leader=leader, isr=isr, leader_epoch=self.leader_epoch + 1, partition_epoch=self.partition_epoch + 1
        )

    def with_isr(self, isr: tuple[int, ...]) -> PartitionImage:
        """With another ISR, in the same leader epoch."""
        return self._replace(isr=isr, partition_epoch=self.partition_epoch + 1)


Alive = Callable[[int], bool]
"""Whether a broker may lead: registered, not fenced, not shutting down."""


def without(partition: PartitionImage, broker: int, alive: Alive, *, unclean: bool) -> PartitionImage:
    """Take a broker out of the ISR, unless it is the last member, and out of leadership.

    The last member stays: what it holds is the only record of what was committed. The very same partition where the
    broker neither leads nor leaves the ISR.
    """
    isr = tuple(each for each in partition.isr if each != broker) or partition.isr
    leader = partition.leader
    if leader == broker:
        leader, isr = _best(partition, isr, lambda each: each != broker and alive(each), unclean=unclean)
    if leader != partition.leader:
        return partition.led_anew(leader, isr)
    return partition if isr == partition.isr else partition.with_isr(isr)


def elected(partition: PartitionImage, alive: Alive, *, unclean: bool) -> PartitionImage:
    """Elect a leader where nobody leads; the very same partition where there is one, or nobody can."""
    if partition.leader != NO_LEADER:
        return partition
    leader, isr = _best(partition, partition.isr, alive, unclean=unclean)
    return partition if leader == NO_LEADER else partition.led_anew(leader, isr)


def preferred(partition: PartitionImage, alive: Alive) -> PartitionImage | None:
    """Elect the preferred replica; the very same partition where it leads, ``None`` where it may not."""
    first = partition.replicas[0]
    if first == partition.leader:
        return partition
    if first not in partition.isr or not alive(first):
        return None
    return partition.led_anew(first, partition.isr)


def _best(
    partition: PartitionImage, isr: tuple[int, ...], alive: Alive, *, unclean: bool
) -> tuple[int, tuple[int, ...]]:
    """The first live replica in the ISR; else with ``unclean`` the first live one, which is the ISR then; else nobody.

    ``unclean`` is ``unclean.leader.election.enable``: what only others hold of what was committed is lost by it.
    """
    live = [each for each in partition.replicas if alive(each)]
    for each in live:
        if each in isr:
            return each, isr
    return (live[0], (live[0],)) if live and unclean else (NO_LEADER, isr)
