"""H1 on real brokers: after an unclean election Kafka's consumer passes over a record, and nobody is told.

Its fetches name no last fetched epoch, and when it validates its position against a new leader it compares the end
offset that it is told alone (``SubscriptionState.maybeCompleteValidation``). Where the new leader's log has another
record, of an *older* leader epoch, just below the position, the end is not smaller, and nothing is noticed. The rows H1
and V1 of specs/DEVIATIONS.md; KIP-320, "Consumer Handling".

Three topics go the same way together. ``gap`` has the unclean election; ``shorter`` has it too, but its new leader has
no record below the position, so that the end is smaller; ``clean`` has a clean election in its place.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import wait_until
from .clients import ClientError, Polled
from .render import Telling

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clients import Consumer
    from .stage import Stage, Stored

A, B, C = 1, 2, 3
UNSEEN, READ, NEXT = "x", "r", "y"
"""The record that broker A alone has; the one that is read, and lost; the one that comes after them."""
PROTOCOLS: Final = ("classic", "consumer")
"""Kafka has two implementations of its consumer."""


@dataclass
class Gap:
    """What came of one of the topics."""

    read: dict[str, list[Polled]] = field(default_factory=dict)
    """By implementation of the consumer, what it read, in order."""
    thrown: dict[str, str] = field(default_factory=dict)
    """By implementation, the simple name of what it threw, if anything."""
    before: dict[int, list[Stored]] = field(default_factory=dict)
    """All logs when the first record had been read."""
    after: dict[int, list[Stored]] = field(default_factory=dict)
    """All logs when the last record had been written."""
    last: dict[int, list[Stored]] = field(default_factory=dict)
    """All logs once every broker is back."""

    def skipped(self, leader: int) -> list[Stored]:
        """Records of the leader's log, below the last one that was read, that some consumer never got, nor any word."""
        found = []
        for protocol, read in self.read.items():
            if protocol not in self.thrown and read:
                got = {(each.offset, each.value) for each in read}
                below = [each for each in self.after[leader] if each.offset < read[-1].offset]
                found += [each for each in below if (each.offset, each.value) not in got]
        return found

    def in_silence(self, leader: int) -> str:
        """The same in a sentence."""
        told = ", ".join(sorted({str(each) for each in self.skipped(leader)})) or "nothing"
        return f"passed over in silence: {told}"


@dataclass
class Gaps:
    """What came of the three."""

    gap: Gap = field(default_factory=Gap)
    shorter: Gap = field(default_factory=Gap)
    clean: Gap = field(default_factory=Gap)

    @property
    def lost(self) -> bool:
        """Whether a consumer has passed over a record in silence."""
        return bool(self.gap.skipped(A))

    def words(self) -> str:
        """The same in a sentence."""
        return self.gap.in_silence(A)


class ReadTopic:
    """One of the topics, and who reads it."""

    def __init__(self, stage: Stage, name: str, found: Gap, told: Telling) -> None:
        self.stage, self.name, self.found, self._told = stage, name, found, told
        self.consumers: dict[str, Consumer] = {}

    def tell(self, what: str) -> None:
        """Something was done to it, or seen of it."""
        self._told.tell(f"{self.name}: {what}", self.name)

    def write(self, at: int, value: str, acks: str = "all") -> None:
        """A producer writes a record at a broker, which acknowledges it."""
        address = self.stage.cluster.address(at)
        with self.stage.clients.lone_producer(address, "producer", acks) as producer:
            offset = producer.send(self.name, value).offset()
        self.tell(f"a producer writes {value} with acks={acks} at {at}: NONE, offset {offset}")

    def read(self, count: int) -> None:
        """Each consumer reads on until it has so many records, or has thrown; told whatever it gets."""

        def there() -> bool:
            for protocol, consumer in self.consumers.items():
                mine = self.found.read.setdefault(protocol, [])
                if protocol not in self.found.thrown and len(mine) < count:
                    try:
                        mine += consumer.poll(0.5)
                    except ClientError as error:
                        self.found.thrown[protocol] = error.name
            return all(name in self.found.thrown or len(read) >= count for name, read in self.found.read.items())

        wait_until(f"consumers of {self.name} to have {count} records", there, pause=0)
        for protocol, read in self.found.read.items():
            what = ", ".join(map(str, read))
            if protocol in self.found.thrown:
                what += f", and throws {self.found.thrown[protocol]}"
            self.tell(f"a KafkaConsumer (group.protocol={protocol}) has read {what}")


def h1(stage: Stage, prefix: str, *, say: Callable[[str], None] = print) -> Gaps:
    """Carry the story out on three new topics, named ``PREFIX-gap`` and so on; their control runs are among them.

    Raises RecordingError where the cluster does something else.
    """
    found = Gaps()
    stage.all_up()
    told = Telling(stage, f"{prefix}-gap", say)
    gap = ReadTopic(stage, f"{prefix}-gap", found.gap, told)
    shorter = ReadTopic(stage, f"{prefix}-shorter", found.shorter, told)
    clean = ReadTopic(stage, f"{prefix}-clean", found.clean, told)
    topics = (gap, shorter, clean)
    for topic in topics:
        stage.new_topic(topic.name, (A, B, C) if topic is clean else (A, B), min_isr=1)
    of_a = [stage.hold_fetches(A, follower) for follower in (B, C)]
    for each in of_a:
        each.wait()
    told.tell(f"broker {A} leads all three in epoch 0; the fetches of {B} and {C} are held")
    for topic in (gap, clean):
        topic.write(A, UNSEEN, acks="1")
    at_b = [stage.hold_fetches(leader, A) for leader in (B, C)]
    stage.shut_down(A)
    for topic in topics:
        stage.wait_decided(topic.name, B)
        stage.wait_heard(B, topic.name, 1)
    for each in of_a:
        each.open()
    stage.wait_ended(A)
    for each in at_b:
        each.open()
    told.tell(f"broker {A} shuts down in order: {B} leads all three in epoch 1; until {A} ends its fetches are held")
    addresses = ",".join(stage.cluster.address(broker) for broker in (A, B, C))
    with ExitStack() as stack:
        for topic in topics:
            for protocol in PROTOCOLS:
                name = f"{topic.name}-{protocol}"
                made = stage.clients.consumer(addresses, name, topic.name, protocol)
                topic.consumers[protocol] = stack.enter_context(made)
        for topic in topics:
            topic.write(B, READ)
            topic.read(1)
            topic.found.before = stage.logs(topic.name)
        state = stage.elect(clean.name, (C, B, A), by=C)
        stage.wait_heard(C, clean.name, state.leader_epoch)
        clean.tell(f"broker {C} is elected (preferred, clean): epoch {state.leader_epoch}")
        clean.write(C, NEXT)
        clean.read(2)
        stage.shut_down(B)
        for topic in (gap, shorter):
            stage.wait_decided(topic.name, -1)
        stage.wait_ended(B)
        told.tell(f"broker {B} shuts down in order: nobody leads {gap.name} and {shorter.name}")
        stage.all_up(but=(B,))
        for topic in (gap, shorter):
            stage.clients.elect_unclean(stage.cluster.address(C), topic.name)
            state = stage.wait_decided(topic.name, A)
            stage.wait_heard(A, topic.name, state.leader_epoch)
            topic.tell(f"broker {A} is back, and elected uncleanly: epoch {state.leader_epoch}")
            topic.write(A, NEXT)
            topic.read(2)
        for topic in topics:
            topic.found.after = stage.logs(topic.name)
    stage.all_up()
    stage.wait_logs(gap.name, {B: [str(each) for each in found.gap.after[A]]})
    stage.wait_logs(clean.name, {broker: [str(each) for each in found.clean.after[C]] for broker in (A, B)})
    gap.tell(f"broker {B} is back, and follows {A}")
    for topic in topics:
        topic.found.last = stage.logs(topic.name)
    return found
