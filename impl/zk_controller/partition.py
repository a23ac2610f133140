"""What the controller knows of one partition, and the rules by which it changes: pure, nothing is sent or stored.

Every election, and every change of the ISR by the controller itself, starts a new leader epoch; a leader's AlterIsr and
the marks do not. All of them raise the partition epoch. (Kafka's ``PartitionStateMachine`` and
``KafkaController.removeReplicasFromIsr``.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from ..wire.errors import ErrorCode
from ..wire.messages import NO_EPOCH, NO_LEADER, NO_TOPIC_ID
from .errors import ElectionNotNeeded, NotEligible, NotInIsr


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Replicas in the order of preference; leader, its epoch, ISR; ``offline``: the replicas marked so."""

    replicas: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: frozenset[int]
    partition_epoch: int
    offline: frozenset[int]
    topic_id: UUID = NO_TOPIC_ID
    """Of the topic: one that is made anew under its name has another (KIP-516)."""

    @staticmethod
    def unled(replicas: Sequence[int], offline: frozenset[int], topic_id: UUID = NO_TOPIC_ID) -> PartitionState:
        """A new partition before its first election: no leader epoch yet, and every replica in the ISR."""
        there = frozenset(replicas)
        return PartitionState(tuple(replicas), NO_LEADER, NO_EPOCH, there, 0, offline & there, topic_id)

    def _new_epoch(self, leader: int, isr: frozenset[int]) -> PartitionState:
        return replace(
            self,
            leader=leader,
            leader_epoch=self.leader_epoch + 1,
            isr=isr,
            partition_epoch=self.partition_epoch + 1,
        )

    # -- elections --------------------------------------------------------------------------------------------------

    def elect(self, replica: int, where: str) -> PartitionState:
        """A clean election, for which members that are offline leave the ISR.

        Raises ``NotEligible`` for a replica that is outside of the ISR or offline, and ``ElectionNotNeeded``.
        """
        if replica not in self.isr:
            raise NotEligible(f"replica {replica} is outside of the ISR", where, "elect a member, or uncleanly")
        self._check_online(replica, where)
        if replica == self.leader:
            raise ElectionNotNeeded(f"replica {replica} leads already", where, "leave it")
        return self._new_epoch(replica, self.isr - self.offline)

    def elect_unclean(self, replica: int, where: str, *, enabled: bool) -> PartitionState:
        """Make a replica leader and whole ISR, whatever it holds. Raises ``NotEligible``.

        ``enabled`` is ``unclean.leader.election.enable``; a member of the ISR holds every committed record and needs
        none.
        """
        if replica not in self.replicas:
            raise NotEligible(f"broker {replica} has no replica", where, f"elect one of {self.replicas}")
        if replica not in self.isr and not enabled:
            mend = "set unclean.leader.election.enable, or wait for a member of the ISR"
            raise NotEligible(f"replica {replica} is outside of the ISR", where, mend)
        self._check_online(replica, where)
        return self._new_epoch(replica, frozenset((replica,)))

    def _check_online(self, replica: int, where: str) -> None:
        if replica in self.offline:
            raise NotEligible(f"replica {replica} is marked offline", where, "elect a live one, or start its broker")

    def prefer(self, *, unclean: bool) -> PartitionState:
        """Elect the first live replica in the ISR; else, if ``unclean`` allows it, the first live one; else nobody.

        Unchanged where that one leads already.
        """
        leader, isr = self._best(self.isr, unclean=unclean)
        return self if leader == self.leader else self._new_epoch(leader, isr)

    def _best(self, isr: frozenset[int], *, unclean: bool) -> tuple[int, frozenset[int]]:
        """Whom to elect with this ISR, and the ISR after that."""
        live = [replica for replica in self.replicas if replica not in self.offline]
        for replica in live:
            if replica in isr:
                return replica, isr - self.offline
        return (live[0], frozenset(live[:1])) if live and unclean else (NO_LEADER, isr)

    # -- failures ---------------------------------------------------------------------------------------------------

    def shrink(self, replica: int, where: str) -> PartitionState:
        """Take a failed replica out of the ISR; where it leads, nobody leads then. Raises ``NotInIsr``.

        While the last member leads, it stays in the ISR: what it holds is the only record of what was committed. (As in
        the KIP's model, one that does not lead is taken out even so. ``fail`` never does that.)
        """
        leads = replica == self.leader
        if not leads and replica not in self.isr:
            raise NotInIsr(f"replica {replica} neither leads nor is in the ISR", where, "leave it")
        last = leads and self.isr == {replica}
        return self._new_epoch(
            NO_LEADER if leads else self.leader,
            self.isr if last else self.isr - {replica},
        )

    def fail(self, replica: int, *, unclean: bool) -> PartitionState:
        """Mark a replica offline; out of the ISR with it unless it is the last member, and elect another leader.

        One new leader epoch for all of it, and none where the replica neither leads nor leaves the ISR.
        """
        marked = self._mark(self.offline | {replica})
        isr = self.isr if self.isr == {replica} else self.isr - {replica}
        leader = self.leader
        if leader == replica:
            leader, isr = marked._best(isr, unclean=unclean)
        if leader == self.leader and isr == self.isr:
            return marked
        return replace(self, offline=marked.offline)._new_epoch(leader, isr)

    def recover(self, replica: int, *, unclean: bool) -> PartitionState:
        """Take the mark away; a partition without a leader gets one, if now there is one to be had."""
        unmarked = self._mark(self.offline - {replica})
        return unmarked if self.leader != NO_LEADER else unmarked.prefer(unclean=unclean)

    def _mark(self, offline: frozenset[int]) -> PartitionState:
        """Other marks, and a partition epoch by which the leader tells the later ones."""
        if offline == self.offline:
            return self
        return replace(self, offline=offline, partition_epoch=self.partition_epoch + 1)

    # -- the leader's wish ------------------------------------------------------------------------------------------

    def alter_isr(
        self, broker: int, leader_epoch: int, isr: frozenset[int], partition_epoch: int
    ) -> PartitionState | ErrorCode:
        """The state with the leader's ISR, this very state where that holds already, or why not.

        A leader that asks for the ISR that holds, by the present partition epoch, gets a new one: proposals of it that
        are still on their way are void then.
        """
        if leader_epoch > self.leader_epoch:
            return ErrorCode.UNKNOWN_LEADER_EPOCH
        if leader_epoch < self.leader_epoch or broker != self.leader or self.leader == NO_LEADER:
            return ErrorCode.FENCED_REPLICA
        if isr == self.isr and partition_epoch < self.partition_epoch:
            return self  # a repeated request: the answer was lost
        if partition_epoch != self.partition_epoch:
            return ErrorCode.INVALID_UPDATE_VERSION
        if self.leader not in isr or not isr <= frozenset(self.replicas):
            return ErrorCode.INVALID_REQUEST
        # KIP-320, "Leader Fetch Handling": a zombie would count for acks=all, but cannot become leader.
        if isr & self.offline:
            return ErrorCode.INELIGIBLE_REPLICA
        return replace(self, isr=isr, partition_epoch=self.partition_epoch + 1)
