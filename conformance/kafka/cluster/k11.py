"""K11 on real brokers: an acknowledged record is lost, by clean elections alone, with ``min.insync.replicas=2``.

A leader that learns of two elections in one metadata update keeps what its followers had told it in its older leader
epoch (``Partition.makeLeader``: ``isNewLeader`` is "did not lead", not "in another epoch"). It counts a record that a
follower has truncated meanwhile, and tells its producer that the record is committed. Once that follower is elected,
the record is gone. The row K11 of specs/DEVIATIONS.md; ``kip-320-kafka-stale-acks`` in the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .loss_check import Lost, answered, ended, left
from .render import Telling, decided

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .stage import Stage

A, B, C = 1, 2, 3
RECORD: Final = "r"


def k11(
    stage: Stage, topic: str, *, held: bool, say: Callable[[str], None] = print, copies: Path | None = None
) -> Lost:
    """Carry the story out on a new topic. Without ``held``, broker 1 hears of each election when it is decided.

    ``copies``: a folder for copies of the brokers' directories: ``acknowledged`` when the producer has been told, and
    ``lost`` in the end. Raises RecordingError where the cluster does something else up to the producer's answer.
    """
    told, found = Telling(stage, topic, say), Lost(RECORD)
    stage.all_up()
    stage.new_topic(topic, (A, B, C), min_isr=2)
    of_b, of_c = (stage.hold_fetches(A, follower) for follower in (B, C))
    of_b.wait()
    of_c.wait()
    told.tell(f"broker {A} leads in epoch 0, ISR {A} {B} {C}; the fetches of {B} and {C} are held")
    with stage.clients.lone_producer(stage.cluster.address(A), "producer") as producer:
        producer.warm_up(topic)
        sent = producer.send(topic, RECORD)
        stage.wait_logs(topic, {A: ["r@0"]})
        told.tell(f"a producer sends {RECORD} with acks=all")
        stage.fetch(of_c, C, topic, ["r@0"])
        told.tell(f"{C} fetches: it has {RECORD}")
        of_c.let_one()
        assert not sent.answered, "the high watermark must wait for broker B"
        told.tell(f"{C} fetches again: {A} knows that {C} has it; {B}, in the ISR, lags")
        metadata = stage.hold_metadata(A) if held else None
        if metadata is not None:
            metadata.wait()
        at_b = [stage.hold_fetches(B, follower) for follower in (A, C)]
        state = stage.elect(topic, (B, A, C), by=C)
        for broker in (B, C) if held else (A, B, C):
            stage.wait_heard(broker, topic, 1)
        hears = "has not heard of it" if held else "hears of it"
        told.tell(f"broker {B} is elected (preferred, clean): {decided(state)}; {A} {hears}")
        of_b.open()
        of_c.open()
        again = stage.hold_fetches(A, C)
        for each in at_b:
            each.open()
        stage.wait_logs(topic, {C: []} if held else {A: [], C: []})
        told.tell(f"broker {C} follows {B} and truncates" + ("" if held else f", as does {A}"))
        stage.shut_down(B)
        state = stage.wait_decided(topic, A)
        stage.wait_heard(C, topic, 2)
        again.wait()
        told.tell(
            f"broker {B} shuts down in order: {A} is elected, {decided(state)}; the fetches of {C} at {A} are held"
        )
        if metadata is not None:
            metadata.open()
        stage.wait_heard(A, topic, 2)
        told.tell(f"broker {A}: {stage.roles(A, topic)[-1]}")
        answered(sent, found)
        told.tell(f"the producer is told {found.error or f'NONE, offset {found.acknowledged}'}")
    stage.wait_ended(B)
    if found.acknowledged is not None:
        stage.wait_stored(topic, {A: 1})
    found.before = stage.logs(topic)
    with stage.clients.consumer(stage.cluster.address(A), "consumer", topic) as consumer:
        found.read = consumer.poll(10 if found.acknowledged is not None else 1)
        told.tell(f"a consumer reads from {A}: {', '.join(map(str, found.read)) or 'nothing'}")
        if copies is not None:
            stage.copy(copies / "acknowledged")
        state = stage.elect(topic, (C, A, B), by=C)
        stage.wait_heard(C, topic, 3)
        again.open()
        stage.wait_heard(A, topic, 3)
        stage.wait_logs(topic, {A: [], C: []})
        stage.wait_stored(topic, {A: 0, C: 0})
        told.tell(f"broker {C}, in the ISR, is elected (preferred, clean): {decided(state)}; {A} follows it")
        ended(consumer, found, told)
    left(stage, topic, (A, B, C), found, copies)
    return found
