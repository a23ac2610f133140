"""The model's metadata log, as it is in the logs of real controllers: which record stands for which of the model's.

The records are decoded and replayed by the code of ``impl/`` as it is, whatever defect the nodes have. A batch may be
several records of the model, which are then stable, and replayed, at once; the quorum's own records are none.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from ....impl.log.batch import Batch
from ....impl.metadata import changes
from ....impl.metadata.codec import decode
from ....impl.metadata.image import Image, PartitionKey
from ....impl.metadata.values import MetadataRecord
from ....impl.quorum.node import QuorumNode
from ....impl.wire.messages import NO_LEADER
from ....traces.format import Value
from ...lockstep.adapter import ModelStep

_ALL: Final = 1 << 30


class Place(NamedTuple):
    """A record of the model. ``end`` and ``epoch`` of its batch in the real log; ``image`` is what the log comes to
    with it, None where the batch goes on. ``broker_epoch``: of a registration, as the real log has it, else -1."""

    end: int
    epoch: int
    image: Image | None
    broker_epoch: int


def batches_of(quorum: QuorumNode, begin: int) -> Iterator[Batch]:
    """What a node's log has from an offset on."""
    while begin < quorum.replica.end:
        for batch in quorum.replica.log.read(begin, _ALL):
            yield batch
            begin = batch.next_offset


class SteppedLog:
    """The model's log of a run; what is there before it begins is ``first``, up to ``base``."""

    def __init__(self, quorum: QuorumNode, partitions: int) -> None:
        self.base = quorum.replica.end
        self.base_epoch = quorum.epoch
        self.places: list[Place] = []
        self.created: set[int] = set()
        self._names = {f"t{number}": number for number in range(partitions)}
        self.first = Image()
        for batch in batches_of(quorum, 0):
            if not batch.is_control:
                for record in batch.records():
                    self.first.replay(decode(record.value or b""))

    # -- what is appended -------------------------------------------------------------------------------------------

    def take(self, quorum: QuorumNode, begin: int, node: int, also: Sequence[ModelStep] = ()) -> list[ModelStep]:
        """The steps by which a node's log has what is behind ``begin``; ``also``: records of the model alone before."""
        steps: list[ModelStep] = []
        for batch in batches_of(quorum, begin):
            if batch.is_control:
                continue
            found: list[tuple[ModelStep, Image | None, int]] = [(each, None, -1) for each in also]
            begins = image = self._last()
            records = [decode(record.value or b"") for record in batch.records()]
            fences = any(told.type == changes.FENCE for told in records)
            for told in records:
                before, image = begins if fences else image, image.fork()
                image.replay(told)
                # Of a broker that is fenced without an event, what becomes of its partitions comes first.
                step = None if fences and told.type == changes.ISR else self._step(told, before, image, node)
                if step is not None:
                    found.append((step, image, int(told.fields.get("BrokerEpoch", -1))))
            steps += [step for step, _, _ in found]
            self.places += [Place(batch.next_offset, quorum.epoch, image, epoch) for _, image, epoch in found]
        return steps

    def _last(self) -> Image:
        known = [each.image for each in self.places if each.image is not None]
        return known[-1] if known else self.first

    def _step(self, told: MetadataRecord, before: Image, after: Image, node: int) -> ModelStep | None:
        fields: dict[str, Any] = dict(told.fields)
        if told.type == changes.BROKER:
            return "register_broker", {"node": node, "broker": fields["BrokerId"]}
        if told.type == changes.UNFENCE:
            return "unfence_broker", {"node": node, "broker": fields["Id"]}
        if told.type == changes.FENCE:
            broker = fields["Id"]
            led = [key for key, each in before.partitions.items() if each.leader == broker]
            others = [after.partitions[key].leader for key in led if after.partitions[key].leader != NO_LEADER]
            return "fence_broker", {"node": node, "broker": broker, "successor": others[0] if others else broker}
        if told.type == changes.REMOVE_TOPIC:
            return "remove_topic", {"node": node, "partition": self._names[before.topics[fields["TopicId"]].name]}
        if told.type not in (changes.PARTITION, changes.ISR):
            return None
        key = PartitionKey(fields["TopicId"], fields["PartitionId"])
        state = after.partitions[key]
        about = {"node": node, "partition": self._names[after.topics[key.topic].name], "leader": state.leader}
        if told.type == changes.PARTITION:
            self.created.add(about["partition"])
            return "create_topic", about
        return ("alter_partition" if before.partitions[key].leader == state.leader else "elect_leader"), about

    def cut(self, end: int) -> None:
        """A controller has become active with so many records: the rest is gone."""
        del self.places[end:]

    # -- who has how much of it -------------------------------------------------------------------------------------

    def within(self, quorum: QuorumNode, end: int) -> int:
        """How many records of it a node's log has below an offset."""
        replica = quorum.replica
        found = 0
        for place in self.places:
            if place.end > min(end, replica.end) or replica.epoch_at(place.end - 1) != place.epoch:
                break
            found += 1
        return found

    def broker_epoch(self, epoch: int) -> int:
        """A broker epoch as the model has it: the number of its record, -1 for one that was there at first."""
        known = (number for number, place in enumerate(self.places) if place.broker_epoch == epoch)
        return -1 if epoch < self.base else next(known, _ALL)

    # -- looking ----------------------------------------------------------------------------------------------------

    def image_cells(self, holder: str, who: int, image: Any) -> dict[str, Value]:
        """The cells of a holder's image, which may be of a copy of ``impl/`` with classes of its own."""
        brokers = sorted(image.brokers.items())
        unfenced = [(broker, known) for broker, known in brokers if not known.fenced]
        cells: dict[str, Value] = {
            f"{holder}_registered[{who}]": tuple(broker for broker, _ in brokers),
            f"{holder}_unfenced[{who}]": tuple(broker for broker, _ in unfenced),
            f"{holder}_shutting_down[{who}]": tuple(broker for broker, known in unfenced if known.shutting_down),
        }
        for name, number in self._names.items():
            topic, at = image.names.get(name), f"[{who}][{number}]"
            state = None if topic is None else image.partitions.get((topic, 0))
            leader = None if state is None or state.leader == NO_LEADER else state.leader
            cells[f"{holder}_leader{at}"] = leader
            cells[f"{holder}_leader_epoch{at}"] = -1 if state is None else state.leader_epoch
            cells[f"{holder}_partition_epoch{at}"] = -1 if state is None else state.partition_epoch
            cells[f"{holder}_isr{at}"] = () if state is None else tuple(sorted(state.isr))
            cells[f"{holder}_doubted{at}"] = 0
        return cells

    def cells(self) -> dict[str, Value]:
        """What the log comes to with each record, and which topics' ids are drawn."""
        cells: dict[str, Value] = {"end": len(self.places)}
        for number, place in enumerate(self.places):
            if place.image is not None:
                cells |= self.image_cells("prefix", number, place.image)
        booted = 1 if self.first.topics else 0
        cells |= {f"created[{n}]": 1 if n in self.created else booted for n in self._names.values()}
        return cells
