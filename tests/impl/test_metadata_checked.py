"""Metadata logs in the form of KIP-631's page, as our controllers write them: decoded, held to the same rules, and
faults that are planted found."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from uuid import UUID

import pytest
from fencepost.conformance.harness import binding_of
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.controller.system import FreeControllers
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.coverage_feedback import CoverageFeedback
from fencepost.conformance.simulation.runner import SimulationPlan, play, run_seed
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.impl.log import Record
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.metadata import MetadataRecord, changes, encode
from fencepost.impl.metadata.elections import PartitionImage
from fencepost.impl.metadata.image import Image, PartitionKey
from fencepost.impl.metadata.machine import MetadataMachine
from fencepost.impl.quorum.snapshots import SnapshotId
from fencepost.impl.wire.controller import ResourceType
from fencepost.model.core.ground import ground
from fencepost.model.protocols.controller.impl_spec import cluster
from fencepost.traces.kafka.broker import BrokerFiles, read_broker
from fencepost.traces.kafka.checks import check_brokers
from fencepost.traces.kafka.history import FALLS, FENCED, ISR, REUSED
from fencepost.traces.kafka.image import MetadataImage
from fencepost.traces.kafka.metadata import MetadataError
from fencepost.traces.kafka.metadata_page import decode_page_record, is_of_page

from .metadata_images import KEY, TOPIC, alive, registered, state, story

LOG = "__cluster_metadata-0"
NONE = -1


def written(folder: Path, records: Sequence[MetadataRecord], *, extra: Sequence[bytes] = ()) -> BrokerFiles:
    """A controller's directory whose log has these records, each in a batch of its own; ``extra``: values behind it."""
    (folder / LOG).mkdir(parents=True)
    (folder / "meta.properties").write_text("#\nnode.id=3\nversion=1\ncluster.id=c\n", encoding="utf-8")
    values = [*map(encode, records), *extra]
    batches = [encode_batch([Record(each, None, 0)], base_offset=n, leader_epoch=1) for n, each in enumerate(values)]
    (folder / LOG / "00000000000000000000.log").write_bytes(b"".join(batches))
    (folder / LOG / "leader-epoch-checkpoint").write_text("0\n1\n1 0\n", encoding="utf-8")
    return read_broker(folder)


def broken(broker: BrokerFiles) -> set[str]:
    """The rules that are violated."""
    return {each.check for each in check_brokers([broker]).checks if each.verdict == "violated"}


def told_by(image: MetadataImage) -> dict[str, object]:
    """What the checks' image has, in words that ours has, too."""
    return {
        "brokers": {n: (each.epoch, each.fenced, each.in_controlled_shutdown) for n, each in image.brokers.items()},
        "partitions": {
            (topic.topic_id, number): (each.replicas, each.isr, each.leader, each.leader_epoch, each.partition_epoch)
            for topic in image.topics.values()
            for number, states in topic.history.items()
            for each in states[-1:]
        },
        "topics": {topic.topic_id: name for name, topic in image.topics.items()},
        "configs": {name: dict(values) for name, values in image.configs.items() if values},
        "features": {name: level for name, level in image.features.items() if level},
    }


def told_of(image: Image) -> dict[str, object]:
    """The same of ours."""
    topics: Mapping[UUID, str] = {topic: each.name for topic, each in image.topics.items()}
    configs = {resource.name: dict(values) for resource, values in image.configs.items()}
    return {
        "brokers": {n: (each.epoch, each.fenced, each.shutting_down) for n, each in image.brokers.items()},
        "partitions": {
            (key.topic, key.partition): (each.replicas, each.isr, each.leader, each.leader_epoch, each.partition_epoch)
            for key, each in image.partitions.items()
        },
        "topics": dict(topics),
        "configs": configs,
        "features": {name: level for name, level in image.features.items() if level},
    }


@pytest.mark.parametrize("seed", range(12))
def test_the_image_is_that_of_the_controllers_own_code(seed: int, tmp_path: Path) -> None:
    """A random log with records of every type, the events of FenceBroker among them."""
    records = [changes.feature("metadata.format", 2), *story(seed, 150)]
    image = Image()
    for record in records:
        image.replay(record)
    found = written(tmp_path / "3", records)
    assert found.problems == () and found.metadata is not None and found.metadata.complete
    assert told_by(found.metadata) == told_of(image)


@pytest.mark.parametrize("seed", [4, 7])
def test_directories_of_running_controllers_are_in_order(seed: int, tmp_path: Path) -> None:
    """Logs and snapshots of three controllers on real files, after anything has happened to them."""
    constants = constants_of(cluster, "3/3/2")
    ways = Transitions(ground(cluster.traced(None), constants), binding_of("controller", "--protocol"))
    system = FreeControllers(disk=True)
    ran = play(
        system,
        ways,
        run_seed(seed, seed),
        SimulationPlan(runs=1, events=250, seed=seed),
        CoverageFeedback(),
        SimulationCoverage(),
    )
    assert ran.divergence is None
    up = [each for each in system.voters if each not in system.down]
    images = {each: told_of(system.controller(each).machine.image) for each in up}
    applied = {each: system.controller(each).quorum.replica for each in up}
    for each in up:
        shutil.copytree(system.store._root / str(each), tmp_path / str(each))  # type: ignore[attr-defined]
    system.close()
    brokers = [read_broker(tmp_path / str(each)) for each in up]
    assert any(broker.snapshots for broker in brokers)
    report = check_brokers(brokers)
    assert [each for each in report.checks if each.verdict != "holds"] == []
    for each, broker in zip(up, brokers, strict=True):
        assert broker.metadata is not None and broker.metadata.complete
        if applied[each].applied == applied[each].end:
            assert told_by(broker.metadata) == images[each]


def isr(isr: tuple[int, ...], leader: int, epochs: tuple[int, int]) -> MetadataRecord:
    return changes.isr(KEY, PartitionImage((0, 1, 2), isr, leader, *epochs))


START = [
    changes.feature("metadata.format", 2),
    *(record for broker in range(3) for record in alive(broker, 1 + 2 * broker)),
    changes.topic(TOPIC, "t"),
    changes.partition(KEY, state(epochs=(0, 0))),
    changes.fence(0, 1),
]
"""Three brokers, and a partition whose leader is fenced by the event: 1 leads then, in leader epoch 1."""

FAULTS = {
    "a fenced broker is elected": ([isr((0, 1, 2), 0, (2, 2))], {FENCED}),
    "an ISR is empty": ([isr((), NONE, (2, 2))], {ISR}),
    "an epoch falls": ([isr((1,), 1, (1, 1))], {FALLS}),
    "an older broker epoch is registered": ([registered(0, 1), registered(0, 0)], {REUSED}),
    "a topic is made twice": ([changes.topic(UUID(int=9), "t")], {"metadata_log_replays"}),
    "a topic that is not there is removed": ([changes.remove_topic(UUID(int=9))], {"metadata_log_replays"}),
    "a partition of no topic has an ISR": (
        [changes.isr(PartitionKey(UUID(int=9), 0), PartitionImage((0,), (0,), 0, 1, 1))],
        {"metadata_log_replays"},
    ),
    "a broker that is not there is removed": ([changes.unregister(9, 1)], {"metadata_log_replays"}),
    "a former process is unfenced": ([changes.unfence(0, 77)], {"metadata_log_replays"}),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_found(fault: str, tmp_path: Path) -> None:
    assert broken(written(tmp_path / "clean" / "3", START)) == set()
    records, rules = FAULTS[fault]
    assert broken(written(tmp_path / "3", [*START, *records])) == rules


def test_the_event_takes_a_broker_out_of_everything(tmp_path: Path) -> None:
    """The last member stays, and its partition has no leader."""
    records = [*START, changes.fence(1, 3), changes.fence(2, 5)]
    found = written(tmp_path / "3", records).metadata
    assert found is not None
    states = found.topics["t"].history[0]
    assert [(each.isr, each.leader, each.leader_epoch, each.partition_epoch) for each in states] == [
        ((0, 1, 2), 0, 0, 0),
        ((1, 2), 1, 1, 1),
        ((2,), 2, 2, 2),
        ((2,), NONE, 3, 3),
    ]
    elected = [*START, changes.config(ResourceType.TOPIC, "t", "unclean.leader.election.enable", "true")]
    elected += [isr((1,), 1, (1, 2)), changes.fence(1, 3)]
    found = written(tmp_path / "unclean" / "3", elected).metadata
    assert found is not None and found.topics["t"].history[0][-1].isr == (2,)


def test_what_does_not_decode_is_named_with_its_byte(tmp_path: Path) -> None:
    good = encode(changes.topic(UUID(int=9), "u"))
    for number, (value, told) in enumerate(
        {
            good[:-3]: "cut off or malformed",
            good + b"\0": "1 bytes are left after a TopicRecord",
            b"\x63\x00\x00": "of a type that is none of KIP-631's",
            bytes([good[0], 9]) + good[2:]: "of version 9, the newest is 0",
        }.items()
    ):
        found = written(tmp_path / str(number), START, extra=[value])
        assert found.problems == () and found.metadata is not None and not found.metadata.complete
        assert found.metadata.rejection is not None and told in str(found.metadata.rejection)


def test_the_form_is_that_of_the_first_record() -> None:
    """A log of Kafka's whose first record has a wrong frame version is none of the page's."""
    assert is_of_page(encode(START[0])) and is_of_page(encode(START[1]))
    assert not is_of_page(b"") and not is_of_page(b"\x01\x0c\x00\x02a\x00\x01\x00")
    assert not is_of_page(b"\x0c" + b"\x0c\x00\x02a\x00\x01\x00")
    with pytest.raises(MetadataError, match="cut off"):
        decode_page_record(b"")
    assert decode_page_record(encode(changes.fence(4, 9))).fields == {"Id": 4, "Epoch": 9}


class Written:
    """What a snapshot is written to."""

    def __init__(self, end: int) -> None:
        self.id = SnapshotId(end, 1)
        self.parts: list[bytes] = []

    def append(self, data: bytes) -> None:
        self.parts.append(data)

    def finished(self) -> None:
        """Nothing follows."""


def with_snapshot(
    folder: Path, records: Sequence[MetadataRecord], of: Sequence[MetadataRecord], parts: int
) -> set[str]:
    """The rules that are broken of a log with these records and a snapshot, at its end, of what others come to."""
    machine, writer = MetadataMachine(batch_records=3), Written(len(records))
    for record in of:
        machine.image.replay(record)
    machine.snapshot(writer)
    written(folder, records)
    name = f"{len(records):020d}-0000000001.checkpoint"
    (folder / LOG / name).write_bytes(b"".join(writer.parts[:parts]))
    return broken(read_broker(folder))


def test_a_snapshot_is_held_to_the_log(tmp_path: Path) -> None:
    """One that lacks what the log has, and one that ends early, are named."""
    records = [*START, changes.config(ResourceType.TOPIC, "t", "min.insync.replicas", "2")]
    assert with_snapshot(tmp_path / "3", records, records, 9) == set()
    assert with_snapshot(tmp_path / "lacks" / "3", records, records[:-1], 9) == {"snapshot_contents_match_log"}
    assert with_snapshot(tmp_path / "early" / "3", records, records, 2) == {
        "snapshot_files_match_names",
        "snapshot_contents_match_log",
    }
