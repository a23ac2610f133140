"""What a running cluster's metadata log has, read past its nodes, and what everyone who has replayed it must hold.

The records are those of the nodes' own logs, decoded and replayed by the code of ``impl/`` as it is, whatever defect
the nodes have. What is committed is what everyone has, offset for offset; an image, a broker's, a controller's or that
of a snapshot, is what the records below its end come to; that of an active controller is what its whole log comes to,
what is pending too; and what anybody was told is committed when it is told.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from ....impl.log.errors import LogError
from ....impl.metadata import changes
from ....impl.metadata.codec import decode
from ....impl.metadata.image import Image
from ....impl.metadata.machine import MetadataMachine
from ....impl.metadata.values import MetadataRecord
from ....impl.quorum.node import QuorumNode
from ....impl.wire.controller import ResourceType
from ...lockstep.adapter import Contradiction

_UNKNOWN: Final = -1


class WrongState(Contradiction):
    """What a node holds, or has said, is not what the metadata log comes to."""


class Entry(NamedTuple):
    """A record of the log; one of the quorum's own, with no value, is there for its epoch alone."""

    epoch: int
    value: bytes | None


@dataclass(frozen=True)
class Prefix:
    """What a prefix of a log comes to. ``shut_down``: by broker, where the record is by which it shuts down.

    What a broker or a partition is after a record the model judges. It has no word for configs, so these are made here
    once more, of the records themselves: by type and name of what has them, with each topic's name by its id.
    """

    image: Image
    shut_down: dict[int, int]
    configs: Mapping[tuple[int, str], Mapping[str, str]]
    names: Mapping[UUID, str]

    def after(self, offset: int, entry: Entry) -> Prefix:
        """With one more record. Raises ``WrongState`` where the image has other configs than were set."""
        if entry.value is None:
            return self
        record = decode(entry.value)
        image = self.image.fork()
        image.replay(record)
        shut_down = self.shut_down
        if record.type == changes.BROKER:
            broker = record.fields["BrokerId"]
            stops = bool(record.fields.get("InControlledShutdown"))
            shut_down = {each: at for each, at in shut_down.items() if each != broker}
            shut_down |= {broker: offset} if stops else {}
        configs, names = _set(record, self.configs, self.names)
        if image.configs != configs:
            raise WrongState(f"after record {offset}, {record}, the configs are {image.configs}, and not {configs}")
        return Prefix(image, shut_down, configs, names)


def _set(
    record: MetadataRecord, configs: Mapping[tuple[int, str], Mapping[str, str]], names: Mapping[UUID, str]
) -> tuple[Mapping[tuple[int, str], Mapping[str, str]], Mapping[UUID, str]]:
    """Configs and topics' names after a record. Those of a topic go with it; nothing is left of what is not set."""
    told: Mapping[str, Any] = record.fields
    if record.type == changes.TOPIC:
        return configs, {**names, told["TopicId"]: told["Name"]}
    if record.type == changes.REMOVE_TOPIC:
        gone = (int(ResourceType.TOPIC), names[told["TopicId"]])
        left = {topic: name for topic, name in names.items() if topic != told["TopicId"]}
        return {resource: values for resource, values in configs.items() if resource != gone}, left
    if record.type != changes.CONFIG:
        return configs, names
    resource = told["ResourceType"], told["ResourceName"]
    values = {name: value for name, value in configs.get(resource, {}).items() if name != told["Name"]}
    if told["Value"] is not None:
        values[told["Name"]] = told["Value"]
    others = {each: held for each, held in configs.items() if each != resource}
    return {**others, resource: values} if values else others, names


def same(one: Any, other: Any) -> bool:
    """Whether two images say the same; one may be of a copy of ``impl/`` with classes of its own."""
    names = ("brokers", "topics", "names", "partitions", "configs", "features")
    return all(getattr(one, name) == getattr(other, name) for name in names)


def _differ(one: Any, other: Any) -> str:
    for name in ("brokers", "topics", "names", "partitions", "configs", "features"):
        has, should = getattr(one, name), getattr(other, name)
        for key in {*has, *should} if has != should else ():
            if has.get(key) != should.get(key):
                return f"of {name} it has {key}: {has.get(key)}, and not {should.get(key)}"
    return "they say the same"


def leaves(record: MetadataRecord) -> int | None:
    """The broker that a record fences, or by which it shuts down."""
    if record.type == changes.FENCE:
        return int(record.fields["Id"])
    stops = record.type == changes.BROKER and record.fields.get("InControlledShutdown")
    return int(record.fields["BrokerId"]) if stops else None


class MetadataLog:
    """Of one run."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        """What is committed."""
        self._prefixes = [Prefix(Image(), {}, {}, {})]
        """By end, what it comes to."""
        self._seen: dict[int, tuple[tuple[object, ...], int]] = {}
        self._loaded: set[tuple[int, int, object]] = set()

    @property
    def end(self) -> int:
        """The end of what is committed, as far as anybody knows."""
        return len(self.entries)

    def prefix(self, end: int) -> Prefix:
        """What the committed records below an end come to. Raises ``WrongState`` for an end that is not committed."""
        if not 0 <= end <= self.end:
            raise WrongState(f"nobody has committed more than {self.end} records, and {end} are gone by")
        return self._prefixes[end]

    def look(self, node: QuorumNode, image: Any) -> None:
        """Learn what a node has committed, and hold it to what is known. Raises ``WrongState``.

        ``image``: that of its state machine.
        """
        replica = node.replica
        where = f"node {node.address}"
        marks = (id(node), replica.begin, replica.applied, replica.high_watermark, replica.end, node.epoch, id(image))
        seen = self._seen.get(node.address)
        if seen is not None and seen[0] == marks:
            return
        low = replica.begin
        if seen is not None and seen[0][0] == id(node):
            low = max(low, min(seen[1], replica.high_watermark))
        for offset, entry in self._read(node, low, replica.high_watermark):
            if offset == self.end:
                self._commit(offset, entry)
            if offset > self.end or self.entries[offset] != entry:
                raise WrongState(f"{where} has committed another record at {offset} than was committed there")
        if replica.high_watermark > self.end:
            raise WrongState(f"{where}: its high watermark is {replica.high_watermark}, and {self.end} are committed")
        if replica.applied > replica.high_watermark:
            raise WrongState(f"{where} has applied {replica.applied} records above {replica.high_watermark}")
        made = self.prefix(replica.applied).image
        if not same(image, made):
            raise WrongState(f"{where} has applied the records below {replica.applied}, and {_differ(image, made)}")
        self._look_at_snapshots(node)
        self._seen[node.address] = marks, replica.high_watermark

    def whole(self, node: QuorumNode) -> Prefix:
        """What all of a node's log comes to, what is not committed too."""
        found = self.prefix(self._low(node))
        for found in self.pending(node):  # noqa: B007 - the last one
            pass
        return found

    def pending(self, node: QuorumNode) -> Iterator[Prefix]:
        """What a node's log comes to behind each record that it does not know to be committed."""
        low = self._low(node)
        prefix = self.prefix(low)
        for offset, entry in self._read(node, low, node.replica.end):
            prefix = prefix.after(offset, entry)
            yield prefix

    def beyond(self, node: QuorumNode) -> Iterator[Prefix]:
        """What a node's log comes to behind each record beyond what is committed, if it has all of that."""
        prefix = self.prefix(self.end)
        has_it = self.is_committed(node.replica.epoch_at(self.end - 1), self.end)
        for offset, entry in self._read(node, self.end, node.replica.end) if has_it else ():
            prefix = prefix.after(offset, entry)
            yield prefix

    def _low(self, node: QuorumNode) -> int:
        return min(max(node.replica.begin, node.replica.high_watermark), self.end)

    def records(self, node: QuorumNode, begin: int) -> list[MetadataRecord]:
        """What a node's log has from an offset on, but for the quorum's own."""
        found = self._read(node, max(begin, node.replica.begin), node.replica.end)
        return [decode(entry.value) for _, entry in found if entry.value is not None]

    def is_committed(self, epoch: int, end: int) -> bool:
        """Whether all below an end is committed, the last of it in this epoch."""
        return end <= self.end and (end == 0 or epoch == _UNKNOWN or self.entries[end - 1].epoch == epoch)

    def _commit(self, offset: int, entry: Entry) -> None:
        self._prefixes.append(self._prefixes[-1].after(offset, entry))
        self.entries.append(entry)

    def _look_at_snapshots(self, node: QuorumNode) -> None:
        """Each snapshot of a node, once: it holds what the records below its end come to, and those are committed."""
        for snapshot in node.replica.snapshots.ids:
            key = node.address, id(node), (snapshot.end_offset, snapshot.epoch)
            if key in self._loaded:
                continue
            self._loaded.add(key)
            where = f"the snapshot of node {node.address} up to {snapshot.end_offset}"
            machine = MetadataMachine()
            try:
                with node.replica.snapshots.opened(snapshot) as file:
                    machine.load(snapshot, file)
            except (LogError, OSError) as error:
                raise WrongState(f"{where} cannot be loaded: {error}") from error
            made = self.prefix(snapshot.end_offset).image
            if not same(machine.image, made):
                raise WrongState(f"{where}: {_differ(machine.image, made)}")

    def _read(self, node: QuorumNode, begin: int, end: int) -> list[tuple[int, Entry]]:
        found: list[tuple[int, Entry]] = []
        offset = begin
        while offset < end:
            batches = node.replica.log.read(offset, up_to=end)
            if not batches:
                break
            for batch in batches:
                found += [
                    (record.offset, Entry(batch.leader_epoch, None if batch.is_control else record.value))
                    for record in batch.records()
                    if begin <= record.offset < end
                ]
            offset = batches[-1].next_offset
        return found


def check_active(node: QuorumNode, log: MetadataLog, image: Any) -> None:
    """An active controller's image is what its whole log comes to. Raises ``WrongState``."""
    made = log.whole(node).image
    if not same(image, made):
        told = f"its log ends at {node.replica.end}, and {_differ(image, made)}"
        raise WrongState(f"node {node.address} is active, {told}")
