"""K12 on real brokers: an acknowledged record is lost, as a leader forgets whom it has asked to have in the ISR.

A leader counts, beside the ISR, whoever it has proposed until it knows what came of it (KIP-497). One that has learned
of an ISR by the controller's answer replays the record of that ISR later, takes it for the committed one once more, and
forgets what it has proposed since (``Partition.makeLeader``, ``updateAssignmentAndIsr``). The controller has let the
proposed replica in, and may have it lead. The row K12 of specs/DEVIATIONS.md; ``kip-320-kafka-forgets`` in the model.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import CONTROLLER_ID
from .frames import ALTER_PARTITION
from .loss_check import Lost, answered, ended, left
from .render import Telling, decided

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .stage import Stage

A, B, C = 1, 2, 3
RECORD: Final = "s"
LAG_MS: Final = 4000
"""``replica.lag.time.max.ms`` that the story needs; Kafka's default is 30,000.

For so long after it was caught up a replica outside the ISR is waited for all the same, too
(``maybeIncrementLeaderHW``): the leader has forgotten it only then.
"""


def k12(
    stage: Stage, topic: str, *, held: bool, say: Callable[[str], None] = print, copies: Path | None = None
) -> Lost:
    """Carry the story out on a new topic, of a stage with `LAG_MS`.

    Without ``held``, the leader replays the record of each ISR before it asks for another.

    ``copies``: a folder for copies of the brokers' directories: ``acknowledged`` when the producer has been told, and
    ``lost`` in the end. Raises RecordingError where the cluster does something else up to the producer's answer.
    """
    told, found = Telling(stage, topic, say), Lost(RECORD)
    stage.all_up()
    stage.new_topic(topic, (A,), min_isr=2)
    of_b, of_c = (stage.hold_fetches(A, follower) for follower in (B, C))
    stage.clients.reassign(stage.cluster.address(C), topic, (A, B, C))
    stage.wait_replayed(A, topic, 1)
    of_b.wait()
    of_c.wait()
    told.tell(f"broker {A} leads in epoch 0, ISR {A}; {B} and {C} are added as replicas, and their fetches are held")
    metadata = stage.hold_metadata(A)
    metadata.wait()
    of_b.let_until(f"broker {A} to be answered", lambda: stage.answered_isr(A, topic) == [A, B])
    told.tell(f"{B} fetches: {A} asks for ISR {A} {B}, and is answered; it has not replayed the record")
    brought = stage.hold_metadata(A, responses=True)
    metadata.let_on()
    brought.wait()
    if not held:
        brought.let_on()
        stage.wait_replayed(A, topic, 2)
        told.tell(f"broker {A} replays the record of that ISR")
    answers = stage.gate.hold(CONTROLLER_ID, ALTER_PARTITION, str(A), responses=True)
    of_c.let_until("the controller to answer", lambda: bool(answers.waiting))
    state = stage.wait_decided(topic, A)
    told.tell(f"{C} fetches: {A} asks for {C} too, and is granted {decided(state)}; the answer is held")
    if held:
        brought.let_on()
        stage.wait_replayed(A, topic, 2)
        told.tell(f"broker {A} replays the record of the ISR before, which it knows by the answer")
        answers.open()
        told.tell(f"the answer comes to {A}")
    of_b.open()
    time.sleep(2 * LAG_MS / 1000)
    told.tell(f"{2 * LAG_MS / 1000:g} s go by, in which {B} fetches and {C} does not")
    with stage.clients.lone_producer(stage.cluster.address(A), "producer") as producer:
        sent = producer.send(topic, RECORD)
        stage.wait_logs(topic, {A: ["s@0"], B: ["s@0"]})
        told.tell(f"a producer sends {RECORD} with acks=all, and {B} has it")
        if not held:
            time.sleep(2 * LAG_MS / 1000)
            assert not sent.answered, "the high watermark must wait for whoever was proposed"
            told.tell(f"{2 * LAG_MS / 1000:g} s later the producer has no answer: the high watermark waits for {C}")
            stage.fetch(of_c, C, topic, ["s@0"])
            of_c.let_one()
            told.tell(f"{C} fetches, and fetches again")
        answered(sent, found)
        told.tell(f"the producer is told {found.error or f'NONE, offset {found.acknowledged}'}")
    answers.open()
    stage.wait_stored(topic, {A: 1})
    found.before = stage.logs(topic)
    with stage.clients.consumer(stage.cluster.address(A), "consumer", topic) as consumer:
        found.read = consumer.poll(10)
        told.tell(f"a consumer reads from {A}: {', '.join(map(str, found.read)) or 'nothing'}")
        if copies is not None:
            stage.copy(copies / "acknowledged")
        state = stage.elect(topic, (C, A, B), by=C)
        stage.wait_heard(C, topic, 1)
        of_c.open()
        brought.open()
        metadata.open()
        for broker in (A, B):
            stage.wait_heard(broker, topic, 1)
        stage.wait_followed(topic, C, (A, B))
        told.tell(f"broker {C}, in the ISR, is elected (preferred, clean): {decided(state)}; {A} and {B} follow it")
        ended(consumer, found, told)
    left(stage, topic, (A, B, C), found, copies)
    return found
