"""What a controller's decisions must never be, looked at after each batch of the metadata log: brokers and epochs.

An image alone tells how things are now. These rules are about all states on the way: a batch is appended whole, and so
are the records of a metadata transaction (KIP-868), so what holds only within one is nobody's state.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .verdicts import CheckResult, Verdict

if TYPE_CHECKING:
    from uuid import UUID

    from .image import BrokerState, MetadataImage, PartitionState
    from .partition import PartitionFiles

FENCED = "fenced_brokers_lead_nothing"
ISR = "isr_never_empty"
REUSED = "broker_epochs_never_reused"
FALLS = "partition_epochs_rise"
RULES = {
    FENCED: "no fenced broker leads a partition",
    ISR: "no partition is without an ISR",
    REUSED: "each registration has a greater broker epoch than the broker's last one",
    FALLS: "the epochs of partitions and leaders never fall",
}
_ELR_VERSION = 2
"""Of PartitionRecord and PartitionChangeRecord: from this on they can name eligible leader replicas (KIP-966)."""
_ELR_FEATURE = "eligible.leader.replicas.version"


@dataclass(frozen=True, slots=True)
class Breach:
    """Where a rule was first broken: the metadata offset, and how. ``sure`` is false where it may be none."""

    offset: int
    message: str
    sure: bool = True


@dataclass(slots=True)
class _Registration:
    epoch: int
    incarnation: UUID


@dataclass(slots=True)
class HistoryWatch:
    """Follows the changes of an image, and notes in ``image.breaches`` the first breach of each rule."""

    image: MetadataImage
    _registrations: dict[int, _Registration] = field(default_factory=dict)
    """Of brokers that are registered no more, too."""
    _migrating: set[int] = field(default_factory=set)
    """Brokers that are still ZooKeeper's (KIP-866): these are registered as fenced, and lead."""
    _leads: dict[int, set[tuple[str, int]]] = field(default_factory=dict)
    _led_by: dict[tuple[str, int], int] = field(default_factory=dict)
    _moved: dict[tuple[str, int], int] = field(default_factory=dict)
    """Partitions whose leader was named since the last batch ended, and at which offset."""
    _fenced: dict[int, int] = field(default_factory=dict)
    """Brokers that were registered or fenced since the last batch ended, and at which offset."""
    _anew: set[int] = field(default_factory=set)
    """Those of them that were registered last, and not fenced since."""

    def _breach(self, rule: str, offset: int, message: str, *, sure: bool = True) -> None:
        known = self.image.breaches.get(rule)
        if known is None or (sure and not known.sure):
            self.image.breaches[rule] = Breach(offset, message, sure)

    def registered(self, offset: int, broker: BrokerState, incarnation: UUID, *, migrating: bool) -> None:
        """A RegisterBrokerRecord: of another process of the broker it has a new epoch, of the same one it may not."""
        broker_id, epoch = broker.broker_id, broker.epoch
        last = self._registrations.get(broker_id)
        if last is not None and (epoch < last.epoch or (epoch == last.epoch and incarnation != last.incarnation)):
            who = "the same process" if incarnation == last.incarnation else "another process"
            message = f"{who} of broker {broker_id} is registered with broker epoch {epoch}, after {last.epoch}"
            self._breach(REUSED, offset, message)
        self._registrations[broker_id] = _Registration(epoch, incarnation)
        if migrating:
            self._migrating.add(broker_id)
        else:
            self._migrating.discard(broker_id)
        self._fenced[broker_id] = offset
        self._anew.add(broker_id)

    def changes(self, offset: int, broker_id: int) -> None:
        """A record fences, unfences, changes or removes a broker."""
        self._fenced[broker_id] = offset
        self._anew.discard(broker_id)

    def partition(self, topic: str, number: int, old: PartitionState | None, new: PartitionState) -> None:
        """A partition has a new state."""
        name, offset = f"{topic}-{number}", new.offset
        if old is not None and (new.partition_epoch <= old.partition_epoch or new.leader_epoch < old.leader_epoch):
            message = f"{name} goes from partition epoch {old.partition_epoch} to {new.partition_epoch}"
            message += f", and from leader epoch {old.leader_epoch} to {new.leader_epoch}"
            self._breach(FALLS, offset, message)
        if not new.isr:
            self._empty(name, new)
        key = topic, number
        led_by = self._led_by.get(key)
        if led_by != new.leader:
            self._leads.get(led_by if led_by is not None else -1, set()).discard(key)
            self._leads.setdefault(new.leader, set()).add(key)
            self._led_by[key] = new.leader
        self._moved[key] = offset

    def _empty(self, name: str, state: PartitionState) -> None:
        """With eligible leader replicas (KIP-966) an ISR may be empty, while there is no leader."""
        message = f"{name} has no ISR, and leader {state.leader}"
        if state.record_version < _ELR_VERSION or state.leader >= 0:
            self._breach(ISR, state.offset, message)
        elif not state.eligible and not self.image.features.get(_ELR_FEATURE):
            # Features may stand in a snapshot alone that this node's log does not tell of (KAFKA-19648).
            known = "metadata.version" in self.image.features
            self._breach(ISR, state.offset, f"{message}; no eligible leader is named", sure=known)

    def removed(self, topic: str) -> None:
        """A topic is no more."""
        for key in [key for key in self._led_by if key[0] == topic]:
            self._leads[self._led_by.pop(key)].discard(key)
            self._moved.pop(key, None)

    def settle(self) -> None:
        """A batch has ended: what there is now is a state of the cluster."""
        brokers = self.image.brokers
        fenced = {
            broker_id: offset
            for broker_id, offset in self._fenced.items()
            if broker_id in brokers and brokers[broker_id].fenced and broker_id not in self._migrating
        }
        for broker_id, offset in fenced.items():
            for topic, number in sorted(self._leads.get(broker_id, ())):
                at = max(offset, self._moved.get((topic, number), 0))
                # Before 4.0 Kafka wrote the registration alone where a session was over and not yet fenced.
                how = "registered anew, thus fenced (KAFKA-18106)" if broker_id in self._anew else "fenced"
                self._breach(FENCED, at, f"broker {broker_id} is {how}, and leads {topic}-{number}")
        for key, offset in self._moved.items():
            leader = brokers.get(self._led_by[key])
            if leader is not None and leader.fenced and leader.broker_id not in self._migrating:
                message = f"{key[0]}-{key[1]} is led by broker {leader.broker_id}, which is fenced"
                self._breach(FENCED, offset, message)
        self._fenced.clear()
        self._anew.clear()
        self._moved.clear()


def check_history(image: MetadataImage, files: PartitionFiles, subject: str) -> list[CheckResult]:
    """Each rule, over all states that this node's metadata log went through, the snapshot that it begins with included.

    Where part of the log could not be read a record that is missing may be the reason: ``unknown``. If Kafka rejects a
    record of the log, the rules apply up to that record: no controller replays more.
    """
    results = []
    end = image.rejected_at
    for rule, words in RULES.items():
        breach = image.breaches.get(rule)
        if breach is not None and (end is None or breach.offset < end):
            message = f"{breach.message}, at metadata offset {breach.offset}"
            where = files.where(breach.offset) if breach.offset >= max(image.loaded, files.log_start) else ""
            judged = image.complete or end is not None
            verdict: Verdict = "violated" if breach.sure and judged else "unknown"
            results.append(CheckResult(rule, verdict, subject, message, where))
        elif end is not None:
            message = f"{words}, up to metadata offset {end}, whose record is rejected"
            results.append(CheckResult(rule, "unknown", subject, message, informative=True))
        else:
            results.append(CheckResult(rule, "holds" if image.complete else "unknown", subject, words))
    return results
