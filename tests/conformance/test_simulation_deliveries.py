"""What a producer tells its application, held against what it was given, sent and heard: real ones, and broken ones."""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.deliveries import Deliveries, Shown
from fencepost.conformance.protocols.fencing.response_rules import WrongAnswer
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.impl.log.records import Record
from fencepost.impl.net.clock import SimulatedClock
from fencepost.impl.producer import Delivery
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import (
    Envelope,
    MetadataRequest,
    MetadataResponse,
    ProduceRequest,
    ProduceResponse,
    TopicPartition,
)

from .test_simulation_fencing import first_parting, ways_at

PARTITION = TopicPartition("t", 0)
BATCHES = "producer/batches.py"


class Story:
    """A producer of one record a batch that hears what it is told here, and is held to it. Broker 0 leads epoch 0."""

    def __init__(self, parts: Parts) -> None:
        self.clock = SimulatedClock()
        config = parts.producer_config(
            brokers=(0, 1),
            producer_id=1,
            batch_bytes=1,
            retry_backoff_ms=20,
            request_timeout_ms=100,
            delivery_timeout_ms=1_000,
        )
        self.sent: list[Envelope] = []
        self.producer = parts.producer(self, self.clock, config)
        self.held = Deliveries(config)
        self._taken = 0

    def send(self, envelope: Envelope) -> None:
        """What the producer sends; as its transport."""
        self.sent.append(envelope)

    def _look(self, *, woken: bool = False) -> None:
        for envelope in self.sent[self._taken :]:
            self.held.sent(envelope, self.clock.now())
        self._taken = len(self.sent)
        producer = self.producer
        shown = Shown(producer.pending, producer.buffered, producer.deadline())
        self.held.look(shown, self.clock.now(), woken=woken)

    def gives(self, records: int) -> None:
        """So many records."""
        for number in range(records):
            payload = b"%d" % number
            self.held.gave(payload, self.producer.send(PARTITION, Record(payload, timestamp=0)), self.clock.now())
        self.wakes(0)

    def wakes(self, later: int) -> None:
        """Time passes, and then it is woken."""
        self.clock.advance(later)
        self.producer.wake()
        self.held.woken(self.clock.now())
        self._look(woken=True)

    def hears(self, request: int, body: MetadataResponse | ProduceResponse) -> None:
        """The answer to one of its requests, by how many it had sent before that one."""
        asked = self.sent[request]
        answer = Envelope(asked.destination, asked.source, asked.correlation, body)
        self.producer.receive(answer)
        self.held.heard(answer, self.clock.now())
        self._look()

    def begins(self) -> None:
        """Four records, of which the first is acknowledged, and three are on their way as requests 2, 3 and 4."""
        self.gives(4)
        self.hears(0, MetadataResponse(ErrorCode.NONE, 0, 0))
        self.hears(1, ProduceResponse(ErrorCode.NONE, 0))


def out_of_order(story: Story) -> None:
    story.begins()
    for request in (4, 2, 3):
        story.hears(request, ProduceResponse(ErrorCode.NONE, request - 1))
    assert story.held.delivered == [(b"%d" % number, number) for number in range(4)]


def another_leads(story: Story) -> None:
    story.begins()
    story.hears(3, ProduceResponse(ErrorCode.NONE, 2))
    story.hears(2, ProduceResponse(ErrorCode.NOT_LEADER_OR_FOLLOWER))
    story.wakes(20)
    story.hears(5, MetadataResponse(ErrorCode.NONE, 1, 1))
    assert [each.destination for each in story.sent[6:]] == [1]
    story.hears(5, MetadataResponse(ErrorCode.NONE, 0, 0))
    story.wakes(100)


def given_up(story: Story) -> None:
    story.begins()
    story.hears(3, ProduceResponse(ErrorCode.NONE, 2))
    story.wakes(1_000)
    assert story.held.failed and story.held.waiting == 0
    story.hears(2, ProduceResponse(ErrorCode.NONE, 1))
    assert len(story.held.delivered) == 2


STORIES = {each.__name__: each for each in (out_of_order, another_leads, given_up)}
WHOLE = (
    "        while self._batches and self._batches[0].done:\n            self._batches.popleft()\n",
    "        if batch is self._batches[0]:\n            self._batches.popleft()\n",
)
"""What is delivered behind the first stays in the queue when the first goes."""
FAULTS = [
    ("out_of_order", Patch(BATCHES, *WHOLE), "0 records wait, and a producer wants to be woken"),
    ("out_of_order", Patch(BATCHES, "base_offset + place", "base_offset + place + 1"), "is acknowledged at"),
    ("out_of_order", Patch(BATCHES, "        self._let_go(batch)\n        while", "        while"), "a producer shows"),
    (
        "another_leads",
        Patch(BATCHES, "        self.stale = True\n        self.retry_at", "        self.retry_at"),
        "before it has asked who leads",
    ),
    (
        "another_leads",
        Patch(BATCHES, "        elif error.retriable or error is", "        elif error is"),
        "heard nothing of it",
    ),
    (
        "given_up",
        Patch(
            BATCHES, "            if not batch.done:\n                for", "            if True:\n                for"
        ),
        "heard nothing of it",
    ),
    (
        "given_up",
        Patch(BATCHES, "return self.fail(ErrorCode.REQUEST_TIMED_OUT)", "return self.fail(ErrorCode.INVALID_REQUEST)"),
        "is to be given up with REQUEST_TIMED_OUT",
    ),
]


@pytest.mark.parametrize("story", STORIES)
def test_a_producer_that_does_right_passes(story: str) -> None:
    with patched() as root:
        STORIES[story](Story(Parts.of(root)))


@pytest.mark.parametrize(("story", "patch", "words"), FAULTS)
def test_a_planted_fault_is_found(story: str, patch: Patch, words: str) -> None:
    with patched(patch) as root, pytest.raises(WrongAnswer, match=words):
        STORIES[story](Story(Parts.of(root)))


def test_what_is_sent_again_is_the_same() -> None:
    """Another batch by the same sequence number, and one to somebody who does not lead."""
    with patched() as root:
        story = Story(Parts.of(root))
        story.begins()
    asked = story.sent[2]
    assert isinstance(asked.body, ProduceRequest) and isinstance(story.sent[0].body, MetadataRequest)
    with pytest.raises(WrongAnswer, match="still waits for the answer"):
        story.held.sent(asked, 0)
    story.hears(2, ProduceResponse(ErrorCode.NONE, 1))
    with pytest.raises(WrongAnswer, match="has told its application"):
        story.held.sent(asked, 0)
    unaware = Deliveries(story.producer.config)
    unaware.gave(b"0", Delivery(PARTITION), 0)
    with pytest.raises(WrongAnswer, match="knows leader and epoch None"):
        unaware.sent(story.sent[1], 0)


FREELY = {
    "more batches are under way than may be": (
        Patch(BATCHES, "width = 1 if batches and batches[0].sequence == 0 else self.config.max_in_flight", "width = 9"),
        "batches are under way",
    ),
    "what has timed out is awaited for ever": (
        Patch(
            BATCHES,
            "                batch.correlation = None\n                self._retry(now)\n",
            "                self._retry(now)\n",
        ),
        "wants to be woken",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FREELY)
def test_an_application_beside_running_brokers_finds_a_fault(name: str) -> None:
    patch, words = FREELY[name]
    with patched(patch) as root:
        divergence = first_parting([ways_at("2/4/6/12"), ways_at("3/4/6/12")], Parts.of(root), SimulationPlan())
    assert divergence is not None and words in divergence.headline
