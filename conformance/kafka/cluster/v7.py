"""V7 on real brokers: a consumer is told of a truncation that never was.

An answer to Metadata with UNKNOWN_TOPIC_OR_PARTITION makes it forget the topic's id, and what comes next is taken for a
topic that was created anew, be its leader epoch older (``Metadata.updateLatestMetadata``). So it goes to a former
leader, which has no records of the epoch of its position, and says so; the consumer throws LogTruncationException. The
row V7 of specs/DEVIATIONS.md.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import wait_until
from .clients import ClientError
from .frames import METADATA
from .h1 import PROTOCOLS, Gap, ReadTopic
from .render import Telling, decided

if TYPE_CHECKING:
    from collections.abc import Callable

    from .clients import Polled
    from .proxy import Hold
    from .stage import Stage

A, B, C = 1, 2, 3
FIRST, SECOND, THIRD = "r", "s", "t"
_POLL: Final = 0.5


@dataclass
class Untruncated(Gap):
    """What came of it."""

    @property
    def truncated(self) -> list[Polled]:
        """What some consumer has read, and its leader's log has no more."""
        there = {(each.offset, each.value) for each in self.last[A]}
        return [each for read in self.read.values() for each in read if (each.offset, each.value) not in there]

    @property
    def lost(self) -> bool:
        """Whether a consumer was told of a truncation that never was."""
        return bool(self.thrown) and not self.truncated

    def words(self) -> str:
        """The same in a sentence."""
        gone = ", ".join(sorted({each.value for each in self.truncated})) or "nothing"
        return f"{gone} was truncated; consumers were told {', '.join(sorted(set(self.thrown.values()))) or 'nothing'}"


class _Steered:
    """Consumers that reach one broker alone, so that this is the one that they ask for metadata."""

    def __init__(self, stage: Stage, read: ReadTopic) -> None:
        self._stage, self._read = stage, read
        self._refused: dict[tuple[int, str], Hold] = {}

    def name(self, protocol: str) -> str:
        """Its client id."""
        return f"{self._read.name}-{protocol}"

    def reach(self, *brokers: int) -> None:
        """From now on nothing of theirs gets to any other broker."""
        for protocol in PROTOCOLS:
            for broker in (A, B, C):
                key = broker, self.name(protocol)
                if broker in brokers and key in self._refused:
                    self._refused.pop(key).open()
                elif broker not in brokers and key not in self._refused:
                    self._refused[key] = self._stage.gate.refuse(*key)

    def ask(self, broker: int) -> None:
        """Each reaches this broker alone, until that has answered it what it knows of the topic, or it has thrown."""
        before = len(self._stage.gate.seen)
        self.reach(broker)

        def answered(protocol: str) -> bool:
            return any(
                each.response
                and (each.target, each.header.api, each.header.client, each.what)
                == (broker, METADATA, self.name(protocol), "passed")
                for each in self._stage.gate.seen[before:]
            )

        def all_are() -> bool:
            for protocol, consumer in self._read.consumers.items():
                if protocol not in self._read.found.thrown:
                    try:
                        self._read.found.read[protocol] += consumer.poll(_POLL)
                    except ClientError as error:
                        self._read.found.thrown[protocol] = error.name
            return all(each in self._read.found.thrown or answered(each) for each in PROTOCOLS)

        wait_until(f"broker {broker} to answer the consumers", all_are, pause=0)


def v7(stage: Stage, topic: str, *, held: bool, say: Callable[[str], None] = print) -> Untruncated:
    """Carry the story out on a new topic, of a stage whose lag is seconds.

    Without ``held``, nobody is asked who does not know the topic. Raises RecordingError where the cluster does
    something else.
    """
    found = Untruncated()
    stage.all_up()
    told = Telling(stage, topic, say)
    read = ReadTopic(stage, topic, found, told)
    at_c = stage.hold_metadata(C)
    at_c.wait()
    stage.new_topic(topic, (B, A), min_isr=1)
    told.tell(f"broker {B} leads in epoch 0, and {A} follows; {C} has not heard of the topic")
    # A producer would ask whom the consumers are to ask, too.
    refused = [stage.gate.refuse(C, "producer")]
    read.write(B, FIRST)
    stage.wait_logs(topic, {A: [f"{FIRST}@0"]})
    at_b = stage.hold_metadata(B)
    at_b.wait()
    state = stage.elect(topic, (A, B), by=A)
    stage.wait_heard(A, topic, state.leader_epoch)
    told.tell(f"broker {A} is elected (preferred, clean): {decided(state)}; {B} has not heard of it")
    state = stage.wait_isr(topic, (A,))
    told.tell(f"{B} does not fetch, and leaves the ISR: {decided(state)}")
    refused.append(stage.gate.refuse(B, "producer"))
    read.write(A, SECOND)
    steered = _Steered(stage, read)
    steered.reach(A)
    with ExitStack() as stack:
        for protocol in PROTOCOLS:
            made = stage.clients.consumer(stage.cluster.address(A), steered.name(protocol), topic, protocol)
            read.consumers[protocol] = stack.enter_context(made)
        read.read(2)
        found.before = stage.logs(topic)
        if held:
            steered.ask(C)
            told.tell(f"the consumers reach {C} alone: UNKNOWN_TOPIC_OR_PARTITION")
        steered.ask(B)
        told.tell(f"the consumers reach {B} alone, by which {B} leads in epoch 0")
        if held:
            read.read(3)
        steered.reach(A, B, C)
        read.write(A, THIRD)
        if not held:
            read.read(3)
        found.after = stage.logs(topic)
    for each in (*refused, at_b, at_c):
        each.open()
    stage.wait_logs(topic, {B: [str(each) for each in found.after[A]]})
    stage.wait_isr(topic, (A, B))
    told.tell(f"all hear of all, and {B} follows {A}")
    found.last = stage.logs(topic)
    return found
