"""Images for tests: small ones by name, and random ones by a seed, always by records."""

from __future__ import annotations

import random
from uuid import UUID

from fencepost.impl.metadata import MetadataRecord, changes
from fencepost.impl.metadata.elections import PartitionImage
from fencepost.impl.metadata.image import Image, PartitionKey
from fencepost.impl.wire.controller import Endpoint, ResourceType

TOPIC = UUID(int=7)
KEY = PartitionKey(TOPIC, 0)


def registered(broker: int, epoch: int) -> MetadataRecord:
    """A broker's registration."""
    return changes.register(broker, epoch, UUID(int=epoch), (Endpoint("PLAINTEXT", f"b{broker}", 9092),), None)


def alive(broker: int, epoch: int) -> list[MetadataRecord]:
    """A broker that registers and is unfenced."""
    return [registered(broker, epoch), changes.unfence(broker, epoch)]


def cluster(*states: PartitionImage, brokers: int = 3) -> Image:
    """Brokers 0, 1, ... of epochs 10, 11, ..., all alive, and a topic "t" with partitions in these states."""
    image = Image()
    records = [record for broker in range(brokers) for record in alive(broker, 10 + broker)]
    records.append(changes.topic(TOPIC, "t"))
    records += [changes.partition(PartitionKey(TOPIC, number), state) for number, state in enumerate(states)]
    for record in records:
        image.replay(record)
    return image


def state(
    isr: tuple[int, ...] = (0, 1, 2),
    leader: int = 0,
    epochs: tuple[int, int] = (5, 9),
    replicas: tuple[int, ...] = (0, 1, 2),
) -> PartitionImage:
    """A partition."""
    return PartitionImage(replicas, isr, leader, *epochs)


def story(seed: int, steps: int) -> list[MetadataRecord]:
    """Records that fit one after another, of every type, as chance has it."""
    chance = random.Random(seed)
    image, records = Image(), list[MetadataRecord]()

    def add(*made: MetadataRecord) -> None:
        for record in made:
            image.replay(record)
            records.append(record)

    for step in range(steps):
        move = chance.random()
        broker = chance.randrange(5)
        known = image.brokers.get(broker)
        if move < 0.3:
            if known is None or known.fenced:
                add(registered(broker, step + 1))
            elif not known.shutting_down and chance.random() < 0.3:
                add(changes.registration(broker, known._replace(shutting_down=True)))
        elif move < 0.55 and known is not None:
            add((changes.unfence if known.fenced else changes.fence)(broker, known.epoch))
        elif move < 0.58 and known is not None and known.fenced:
            add(changes.unregister(broker, known.epoch))
        elif move < 0.72 and image.brokers:
            topic, name = UUID(int=step), f"t{chance.randrange(6)}"
            if name not in image.names:
                add(changes.topic(topic, name))
                for number in range(chance.randrange(3)):
                    replicas = tuple(chance.sample(sorted(image.brokers), chance.randint(1, len(image.brokers))))
                    add(changes.partition(PartitionKey(topic, number), PartitionImage(replicas, replicas, -1, 0, 0)))
        elif move < 0.85 and image.partitions:
            key = chance.choice(sorted(image.partitions))
            there = image.partitions[key]
            leader = chance.choice(there.replicas)
            add(changes.isr(key, there.led_anew(leader, (leader,))))
        elif move < 0.9 and image.topics:
            add(changes.remove_topic(chance.choice(sorted(image.topics))))
        elif move < 0.97 and image.names:
            name = chance.choice(sorted(image.names))
            values = image.configs.get((ResourceType.TOPIC, name), {})
            gone = "min.insync.replicas" in values
            add(changes.config(ResourceType.TOPIC, name, "min.insync.replicas", None if gone else "2"))
        elif move >= 0.97:
            add(changes.feature("metadata.format", 3 - image.features.get("metadata.format", 1)))
    return records
