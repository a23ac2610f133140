"""V6 on real brokers: a consumer takes what comes late from a leader that it has left, and then passes over records.

It asks a leader, and hears of another one before the answer has come. Nobody compares the leader epoch in which it has
asked: if the answer begins at its position still, it is taken (``FetchCollector.handleInitializeSuccess``). A position
that ListOffsets gave has no epoch, and is not validated when the leader changes; when the late answer has moved it on,
it is the new leader's already. The row V6 of specs/DEVIATIONS.md; ``kip-320-kafka-late`` in the model.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import CONTROLLER_ID, RecordingError, wait_until
from .frames import FETCH
from .h1 import PROTOCOLS, Gap, ReadTopic
from .render import Telling, decided

if TYPE_CHECKING:
    from collections.abc import Callable

    from .proxy import Hold
    from .stage import Stage

A, B, C = 1, 2, 3
LOST, PASSED_OVER, NEXT = "x", "y", "z"
"""What the former leader alone has; what the next one has in its place; what comes after that."""
_POLL: Final = 0.5


@dataclass
class Late(Gap):
    """What came of it."""

    @property
    def lost(self) -> bool:
        """Whether a consumer has passed over a record in silence."""
        return bool(self.skipped(B))

    def words(self) -> str:
        """The same in a sentence."""
        return self.in_silence(B)


def v6(stage: Stage, topic: str, *, held: bool, say: Callable[[str], None] = print) -> Late:
    """Carry the story out on a new topic. Without ``held``, the answer comes before the consumers hear of the election.

    They hear of it from broker C, which leads another topic. Raises RecordingError where the cluster does something
    else.
    """
    found = Late()
    stage.all_up()
    told = Telling(stage, topic, say)
    read = ReadTopic(stage, topic, found, told)
    other = f"{topic}-other"
    stage.new_topic(other, (C,), min_isr=1)
    of_b = _leads_alone(stage, topic, told)
    read.write(A, LOST)
    addresses = ",".join(stage.cluster.address(broker) for broker in (A, B, C))
    with ExitStack() as stack:
        answers: list[Hold] = []
        at_b: list[Hold] = []
        for protocol in PROTOCOLS:
            name = f"{topic}-{protocol}"
            if held:
                answers.append(stage.gate.hold(A, FETCH, name, responses=True))
            at_b.append(stage.gate.hold(B, FETCH, name))
            consumer = stack.enter_context(stage.clients.consumer(addresses, name, topic, protocol))
            # Metadata is asked of a broker to which there is a connection that waits for nothing, if there is any.
            consumer.end_of(other)
            read.consumers[protocol] = consumer
        if held:
            _poll_until(read, f"broker {A} to answer", answers)
            told.tell(f"the consumers, at offset 0 by ListOffsets, fetch from {A}; the answers are held")
        else:
            read.read(1)
        found.before = stage.logs(topic)
        cut = [stage.gate.refuse(CONTROLLER_ID, str(A)), stage.hold_metadata(A)]
        stage.wait_decided(topic, -1)
        told.tell(f"broker {A} is cut off from the controller, and fenced when its session is over: nobody leads")
        stage.clients.elect_unclean(stage.cluster.address(C), topic)
        state = stage.wait_decided(topic, B)
        stage.wait_heard(B, topic, state.leader_epoch)
        told.tell(f"broker {B} is elected uncleanly: {decided(state)}")
        for value in (PASSED_OVER, NEXT):
            read.write(B, value)
        if held:
            _poll_until(read, f"the consumers to fetch from {B}", at_b)
            told.tell(f"the consumers hear of the election, and fetch from {B}; these fetches are held")
            for each in answers:
                each.open()
            told.tell(f"what {A} had answered comes to the consumers")
            read.read(1)
        for each in at_b:
            each.open()
        read.read(2)
        found.after = stage.logs(topic)
    for each in (*cut, of_b):
        each.open()
    stage.wait_logs(topic, {A: [str(each) for each in found.after[B]]})
    stage.wait_isr(topic, (A, B))
    told.tell(f"broker {A} is back, and follows {B}")
    found.last = stage.logs(topic)
    return found


def _leads_alone(stage: Stage, topic: str, told: Telling) -> Hold:
    """Broker A leads, and B is outside the ISR: it has shut down in order, and is back, but its fetches are held."""
    stage.new_topic(topic, (A, B), min_isr=1)
    stage.shut_down(B)
    stage.wait_ended(B)
    state = stage.wait_isr(topic, (A,))
    told.tell(f"broker {A} leads, and {B} shuts down in order: {decided(state)}")
    of_b = stage.hold_fetches(A, B)
    stage.all_up()
    of_b.wait()
    told.tell(f"broker {B} is back; its fetches are held")
    return of_b


def _poll_until(read: ReadTopic, what: str, holds: list[Hold]) -> None:
    """Consumers poll, as all they do they do while they are polled, until something is held at each of these."""

    def there() -> bool:
        for consumer in read.consumers.values():
            if got := consumer.poll(_POLL / len(read.consumers)):
                raise RecordingError(f"{got[0]} was read before {what}")
        return all(each.waiting for each in holds)

    wait_until(what, there, pause=0)
