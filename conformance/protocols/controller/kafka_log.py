"""What the records of Apache Kafka's metadata log come to, replayed once more beside its controllers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from ....traces.format import Value
from .metadata_log import WrongState


class Entry(NamedTuple):
    """What is at an offset: its epoch, and what the record says; nothing of the one by which an epoch begins."""

    epoch: int
    record: Mapping[str, Any] | None


@dataclass(frozen=True)
class Broker:
    """A registration. ``process``: the number of what has registered; ``at``: the offset of its last record."""

    epoch: int
    process: int
    fenced: bool
    stopping: bool
    at: int

    @property
    def alive(self) -> bool:
        """Unfenced, and not in controlled shutdown."""
        return not self.fenced and not self.stopping


@dataclass(frozen=True)
class Partition:
    """The partition of a topic. ``leader``: None where nobody leads; ``isr``: in the order that Kafka has it in."""

    topic: str
    leader: int | None
    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    recovering: bool


@dataclass(frozen=True)
class Image:
    """What a prefix of a log comes to. ``names``: those of topics, by their ids; ``partitions``: by topics' names."""

    brokers: Mapping[int, Broker] = field(default_factory=dict)
    names: Mapping[str, str] = field(default_factory=dict)
    partitions: Mapping[str, Partition] = field(default_factory=dict)
    shut_down: Mapping[int, int] = field(default_factory=dict)
    """By broker, where the record is by which it shuts down."""

    def alive(self, broker: int) -> bool:
        """Whether a broker may lead."""
        return broker in self.brokers and self.brokers[broker].alive

    def after(self, offset: int, entry: Entry) -> Image:
        """With one more record."""
        told = entry.record
        if told is None:
            return self
        match told["record"]:
            case "RegisterBrokerRecord":
                return self._registered(offset, told)
            case "BrokerRegistrationChangeRecord" | "FenceBrokerRecord" | "UnfenceBrokerRecord":
                return self._changed(offset, told)
            case "TopicRecord":
                return replace(self, names={**self.names, told["topic"]: told["name"]})
            case "RemoveTopicRecord":
                gone = self.names[told["topic"]]
                names = {topic: name for topic, name in self.names.items() if topic != told["topic"]}
                left = {name: each for name, each in self.partitions.items() if name != gone}
                return replace(self, names=names, partitions=left)
            case "PartitionRecord" | "PartitionChangeRecord":
                name = self.names[told["topic"]]
                return replace(self, partitions={**self.partitions, name: self._partition(name, told)})
        return self

    def _registered(self, offset: int, told: Mapping[str, Any]) -> Image:
        broker = told["broker"]
        known = Broker(told["epoch"], told["process"], told["fenced"], told["stopping"], offset)
        before = self.brokers.get(broker)
        kept = known.stopping and before is not None and before.process == known.process
        shut_down = {each: at for each, at in self.shut_down.items() if each != broker or kept}
        return replace(self, brokers={**self.brokers, broker: known}, shut_down=shut_down)

    def _changed(self, offset: int, told: Mapping[str, Any]) -> Image:
        broker = told["broker"]
        known = self.brokers.get(broker)
        if known is None or known.epoch != told["epoch"]:
            raise WrongState(f"record {offset} is about broker {broker} of epoch {told['epoch']}, and there is {known}")
        stopping = bool(told.get("stopping", known.stopping))
        after = replace(known, fenced=bool(told.get("fenced", known.fenced)), stopping=stopping)
        shut_down = {**self.shut_down, broker: offset} if stopping and not known.stopping else self.shut_down
        return replace(self, brokers={**self.brokers, broker: after}, shut_down=shut_down)

    def _partition(self, name: str, told: Mapping[str, Any]) -> Partition:
        if told["record"] == "PartitionRecord":
            return Partition(
                told["topic"],
                _leader(told["leader"]),
                told["leaderEpoch"],
                told["partitionEpoch"],
                tuple(told["isr"]),
                bool(told["recovering"]),
            )
        known = self.partitions[name]
        return replace(
            known,
            leader=_leader(told["leader"]) if "leader" in told else known.leader,
            leader_epoch=known.leader_epoch + ("leader" in told),
            partition_epoch=known.partition_epoch + 1,
            isr=tuple(told["isr"]) if "isr" in told else known.isr,
            recovering=bool(told["recovering"]) if "recovering" in told else known.recovering,
        )

    def check(self, where: str, seen: Mapping[str, Any]) -> None:
        """Hold what a controller has in mind to it. Raises ``WrongState``."""
        brokers = {
            number: {"epoch": b.epoch, "process": b.process, "fenced": b.fenced, "stopping": b.stopping}
            for number, b in self.brokers.items()
        }
        has = {int(number): dict(each) for number, each in seen["brokers"].items()}
        if has != brokers:
            raise WrongState(f"{where}: of brokers it has {has}, and not {brokers}")
        there = {
            name: {
                "topic": p.topic,
                "leader": -1 if p.leader is None else p.leader,
                "leaderEpoch": p.leader_epoch,
                "partitionEpoch": p.partition_epoch,
                "recovering": int(p.recovering),
                "isr": list(p.isr),
            }
            for name, p in self.partitions.items()
        }
        if seen["partitions"] != there:
            raise WrongState(f"{where}: of partitions it has {seen['partitions']}, and not {there}")


def _leader(told: int) -> int | None:
    return None if told < 0 else told


class Logs:
    """The voters' logs of one run, and what is committed. ``names``: those of topics by their ids, of all logs."""

    def __init__(self) -> None:
        self.own: dict[int, list[Entry]] = {}
        self.committed: list[Entry] = []
        self._images = [Image()]
        """By end, what the committed records come to."""
        self.names: dict[str, str] = {}

    def learn(self, node: int, seen: Mapping[str, Any]) -> None:
        """What a voter's log has, and what it holds to be committed. Raises ``WrongState``."""
        mine = self.own.setdefault(node, [])
        del mine[seen["from"] :]
        mine += [Entry(each["at"], each if "record" in each else None) for each in seen["records"]]
        if len(mine) != seen["end"]:
            raise WrongState(f"controller {node}: its log ends at {seen['end']}, and {len(mine)} records were seen")
        for entry in mine[len(self.committed) : seen["hw"]]:
            self._images.append(self._images[-1].after(len(self.committed), entry))
            self.committed.append(entry)
        if self.committed[: seen["hw"]] != mine[: seen["hw"]]:
            raise WrongState(f"controller {node} has committed other records than were committed")
        active = seen["active"] >= 0
        image = self.whole(node) if active else self._images[seen["applied"]]
        for each in seen["records"]:
            if each.get("record") == "TopicRecord":
                self.names[each["topic"]] = each["name"]
        end = seen["end"] if active else seen["applied"]
        image.check(f"controller {node}, which has replayed {end} records", seen["image"])

    def whole(self, node: int) -> Image:
        """What all of a voter's log comes to."""
        mine = self.own[node]
        same = len(self.committed)
        if mine[:same] != self.committed:
            same = next(
                at for at, pair in enumerate(zip([*mine, None], self.committed, strict=False)) if pair[0] != pair[1]
            )
        image = self._images[same]
        for offset in range(same, len(mine)):
            image = image.after(offset, mine[offset])
        return image

    def check_registered(self, broker: int, process: int, epoch: int) -> None:
        """Somebody has been told its broker epoch: it was registered with that. Raises ``WrongState``."""
        told = {"record": "RegisterBrokerRecord", "broker": broker, "process": process, "epoch": epoch}.items()
        if not any(entry.record is not None and told <= entry.record.items() for entry in self.committed):
            raise WrongState(f"process {process} of broker {broker} is told the epoch {epoch}, and it has no such one")

    def prefix(self, end: int) -> Image:
        """What the committed records below an end come to."""
        return self._images[end]

    def is_committed(self, epoch: int, end: int) -> bool:
        """Whether all below an end is committed, the last of it in this epoch."""
        return end <= len(self.committed) and (end == 0 or self.committed[end - 1].epoch == epoch)


def cells_of(image: Image, brokers: Sequence[int], names: Sequence[str], topics: dict[str, int]) -> dict[str, Value]:
    """What the newest log comes to, in the cells of the text. ``topics``: their numbers, in the order of that log."""
    known = image.brokers
    cells: dict[str, Value] = {
        "registered": tuple(sorted(known)),
        "unfenced": tuple(sorted(each for each, state in known.items() if not state.fenced)),
        "alive": tuple(sorted(each for each, state in known.items() if state.alive)),
        "shutting_down": tuple(sorted(each for each, state in known.items() if state.stopping)),
    }
    for broker in brokers:
        state = known.get(broker)
        cells[f"broker_epoch[{broker}]"] = -1 if state is None else state.epoch
        cells[f"incarnation[{broker}]"] = -1 if state is None else state.process
        cells[f"registered_at[{broker}]"] = -1 if state is None else state.at
        cells[f"shutdown_offset[{broker}]"] = image.shut_down.get(broker, -1)
    for number, name in enumerate(names):
        held = image.partitions.get(name)
        cells[f"topic[{number}]"] = -1 if held is None else topics.setdefault(held.topic, len(topics))
        cells[f"leader[{number}]"] = None if held is None else held.leader
        cells[f"leader_epoch[{number}]"] = -1 if held is None else held.leader_epoch
        cells[f"partition_epoch[{number}]"] = -1 if held is None else held.partition_epoch
        cells[f"isr[{number}]"] = () if held is None else tuple(sorted(held.isr))
        cells[f"recovering[{number}]"] = 0 if held is None else int(held.recovering)
    cells["topics"] = len(topics)
    return cells
