"""The image: every record that fits and that does not, fencing as an event, forks, and the fewest records."""

from __future__ import annotations

from uuid import UUID

import pytest
from fencepost.impl.metadata import MetadataRecord, changes, decode, encode
from fencepost.impl.metadata.elections import elected, preferred, without
from fencepost.impl.metadata.image import UNCLEAN_ELECTION, Image, PartitionKey
from fencepost.impl.metadata.replay_errors import (
    BrokerState,
    InvalidFeature,
    InvalidPartition,
    PartitionExists,
    ReplayError,
    StaleBroker,
    TopicExists,
    UnknownBroker,
    UnknownConfig,
    UnknownPartition,
    UnknownRecord,
    UnknownTopic,
)
from fencepost.impl.wire.controller import ResourceType

from .metadata_images import KEY, TOPIC, alive, cluster, registered, state, story

OTHER = UUID(int=99)
MISFITS: dict[str, tuple[MetadataRecord, type[ReplayError]]] = {
    "an older registration": (registered(0, 9), StaleBroker),
    "a new process while the former is not fenced": (registered(0, 20), BrokerState),
    "the same process with other endpoints": (
        changes.register(0, 10, UUID(int=10), (), None),
        BrokerState,
    ),
    "the end of a broker that is not there": (changes.unregister(9, 1), UnknownBroker),
    "the end of a former process": (changes.unregister(0, 1), StaleBroker),
    "the end of a broker that is not fenced": (changes.unregister(0, 10), BrokerState),
    "fencing of nobody": (changes.fence(9, 1), UnknownBroker),
    "fencing of a former process": (changes.fence(0, 1), StaleBroker),
    "unfencing of nobody": (changes.unfence(9, 1), UnknownBroker),
    "unfencing of a former process": (changes.unfence(0, 1), StaleBroker),
    "unfencing twice": (changes.unfence(0, 10), BrokerState),
    "a topic's name twice": (changes.topic(OTHER, "t"), TopicExists),
    "a topic's id twice": (changes.topic(TOPIC, "u"), TopicExists),
    "a topic that is being deleted": (
        MetadataRecord(changes.TOPIC, 0, {"Name": "u", "TopicId": OTHER, "Deleting": True}),
        UnknownRecord,
    ),
    "the end of no topic": (changes.remove_topic(OTHER), UnknownTopic),
    "a partition of no topic": (changes.partition(PartitionKey(OTHER, 0), state()), UnknownTopic),
    "a partition twice": (changes.partition(KEY, state()), PartitionExists),
    "a partition with a gap before it": (changes.partition(PartitionKey(TOPIC, 2), state()), UnknownPartition),
    "a partition without replicas": (
        changes.partition(PartitionKey(TOPIC, 1), state((), -1, (0, 0), ())),
        InvalidPartition,
    ),
    "a replica twice": (changes.partition(PartitionKey(TOPIC, 1), state((0,), 0, (0, 0), (0, 0))), InvalidPartition),
    "an ISR of nobody": (changes.isr(KEY, state((), -1, (6, 10))), InvalidPartition),
    "an ISR with a stranger": (changes.isr(KEY, state((0, 7), 0, (5, 10))), InvalidPartition),
    "a member twice": (changes.isr(KEY, state((0, 0), 0, (5, 10))), InvalidPartition),
    "a leader outside of the ISR": (changes.isr(KEY, state((1, 2), 0, (6, 10))), InvalidPartition),
    "an older leader epoch": (changes.isr(KEY, state((0, 1), 0, (4, 10))), InvalidPartition),
    "another leader in the same epoch": (changes.isr(KEY, state((0, 1), 1, (5, 10))), InvalidPartition),
    "a partition epoch that is not the next": (changes.isr(KEY, state((0, 1), 0, (5, 9))), InvalidPartition),
    "the ISR of no partition": (changes.isr(PartitionKey(TOPIC, 5), state()), UnknownPartition),
    "epochs below 0": (changes.partition(PartitionKey(TOPIC, 1), state(epochs=(-1, 0))), InvalidPartition),
    "a config of no topic": (changes.config(ResourceType.TOPIC, "u", "a", "b"), UnknownTopic),
    "the end of a config that is not set": (changes.config(ResourceType.TOPIC, "t", "a", None), UnknownConfig),
    "a feature below 0": (changes.feature("f", -1), InvalidFeature),
    "the end of a feature that is off": (changes.feature("f", 0), InvalidFeature),
    "a type that the image has no use for": (MetadataRecord("AnotherRecord", 0, {}), UnknownRecord),
}


@pytest.mark.parametrize("name", MISFITS)
def test_what_does_not_fit_is_named_and_changes_nothing(name: str) -> None:
    record, error = MISFITS[name]
    image = cluster(state())
    with pytest.raises(error, match="nothing of it was applied"):
        image.replay(record)
    assert image == cluster(state())


def test_fencing_twice_is_named() -> None:
    image = cluster(state())
    image.replay(changes.fence(0, 10))
    with pytest.raises(BrokerState):
        image.replay(changes.fence(0, 10))


def test_a_feature_is_turned_on_and_off() -> None:
    image = cluster(state())
    before = dict(image.features)
    image.replay(changes.feature("f", 2))
    assert image.features == {**before, "f": 2}
    image.replay(changes.feature("f", 0))
    assert image.features == before
    with pytest.raises(InvalidFeature):
        image.replay(changes.feature("f", 0))


def test_one_record_takes_a_broker_out_of_everything() -> None:
    image = cluster(state(), state((0,), 0), state((1, 2), 1), state((0, 1), 1))
    image.replay(changes.fence(0, 10))
    found = [(each.isr, each.leader, each.leader_epoch, each.partition_epoch) for each in image.partitions.values()]
    # It leads no more; where it is the last member it stays one and nobody leads; where it is no member nothing is new.
    # With another leader a leader epoch begins, and not with a follower that leaves.
    assert found == [((1, 2), 1, 6, 10), ((0,), -1, 6, 10), ((1, 2), 1, 5, 9), ((1,), 1, 5, 10)]
    assert not image.alive(0) and not image.leads(0) and image.leads(1)


def test_the_event_and_a_record_for_each_partition_make_the_same_image() -> None:
    states = state(), state((0,), 0), state((1, 2), 1), state((0, 1), 1), state((2, 0), 0)
    by_event, by_records = cluster(*states), cluster(*states)
    made = [changes.isr(key, after) for key, after in by_records.without(0).items()]
    assert len(made) == 4
    for record in (*made, changes.fence(0, 10)):
        by_records.replay(record)
    by_event.replay(changes.fence(0, 10))
    assert by_event == by_records


def test_an_unclean_election_is_for_topics_that_allow_it() -> None:
    image = cluster(state((0,), 0))
    image.replay(changes.config(ResourceType.BROKER, "", UNCLEAN_ELECTION, "true"))
    image.replay(changes.config(ResourceType.TOPIC, "t", UNCLEAN_ELECTION, "false"))
    image.replay(changes.fence(0, 10))
    assert image.partitions[KEY].leader == -1 and image.partitions[KEY].isr == (0,)
    allowing = cluster(state((0,), 0))
    allowing.replay(changes.config(ResourceType.BROKER, "", UNCLEAN_ELECTION, "true"))
    allowing.replay(changes.fence(0, 10))
    assert allowing.partitions[KEY].leader == 1 and allowing.partitions[KEY].isr == (1,)


def test_elections() -> None:
    there = state((1, 2), -1)
    assert elected(there, lambda each: each == 2, unclean=False) == state((1, 2), 2, (6, 10))
    assert elected(there, lambda each: each == 0, unclean=False) is there
    assert elected(there, lambda each: each == 0, unclean=True) == state((0,), 0, (6, 10))
    assert elected(state(), lambda _: True, unclean=True) == state()
    assert preferred(state(leader=1), lambda _: True) == state(leader=0, epochs=(6, 10))
    assert preferred(state((1, 2), 1), lambda _: True) is None
    assert preferred(state(leader=1), lambda each: each != 0) is None
    assert without(state((1, 2), 1), 0, lambda _: True, unclean=True) == state((1, 2), 1)


def test_a_process_tells_that_it_shuts_down_and_the_next_one_does_not() -> None:
    image = cluster(state())
    image.replay(changes.registration(0, image.brokers[0]._replace(shutting_down=True)))
    assert image.brokers[0].shutting_down and not image.alive(0)
    image.replay(changes.fence(0, 10))
    image.replay(registered(0, 50))
    assert image.brokers[0].fenced and not image.brokers[0].shutting_down


def test_records_of_version_0() -> None:
    """They name no epoch of the broker, no process, and no partition epoch, which rises with each record then."""
    image = cluster()
    image.replay(MetadataRecord(changes.FENCE, 0, {"Id": 0}))
    image.replay(MetadataRecord(changes.UNFENCE, 0, {"Id": 0}))
    made = changes.partition(KEY, state())
    image.replay(made._replace(version=0, fields={k: v for k, v in made.fields.items() if k != "PartitionEpoch"}))
    after = changes.isr(KEY, state((0, 1), 0, (6, 0)))
    image.replay(after._replace(version=0, fields={k: v for k, v in after.fields.items() if k != "PartitionEpoch"}))
    assert image.partitions[KEY] == state((0, 1), 0, (6, 6))
    ends: tuple[object, ...] = ()
    fields = {"BrokerId": 8, "BrokerEpoch": 3, "EndPoints": ends, "Rack": None}
    image.replay(MetadataRecord(changes.BROKER, 0, fields))
    assert image.brokers[8].fenced and image.brokers[8].incarnation == UUID(int=0)


@pytest.mark.parametrize("seed", range(20))
def test_its_records_make_the_same_image_and_are_the_fewest(seed: int) -> None:
    image = Image()
    for record in story(seed, 150):
        image.replay(record)
    made = list(image.records())
    again = Image()
    for record in made:
        again.replay(decode(encode(record)))
    assert again == image and list(again.records()) == made
    entities = len(image.brokers) + len(image.topics) + len(image.partitions) + len(image.features)
    assert len(made) == entities + sum(map(len, image.configs.values()))


@pytest.mark.parametrize("seed", range(10))
def test_a_fork_goes_its_own_way(seed: int) -> None:
    records = story(seed, 200)
    committed = Image()
    for record in records[:100]:
        committed.replay(record)
    before = list(committed.records())
    pending = committed.fork()
    for record in records[100:]:
        pending.replay(record)
    assert list(committed.records()) == before, "dropping the fork goes back"
    for record in records[100:]:
        committed.replay(record)
    assert committed == pending


def test_images_differ_by_everything() -> None:
    whole = story(3, 300)
    image = Image()
    for record in whole:
        other = image.fork()
        other.replay(record)
        assert other != image, record
        image = other
    assert image != 5


def test_what_is_touched_is_noted_where_somebody_asks() -> None:
    image = cluster(state(), state((1,), 1))
    image.touched = set()
    image.replay(changes.fence(0, 10))
    assert image.touched == {KEY}
    image.replay(changes.remove_topic(TOPIC))
    assert image.touched == {KEY, PartitionKey(TOPIC, 1)}
    assert alive(3, 30)[1].type == changes.UNFENCE
