"""What the messages of Apache Kafka's brokers, and of their clients, stand for in the model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...kafka.clients import Produce, ProduceAnswer, Read, ReadAnswer
from ...kafka.controller import AlterPartition, AlterPartitionAnswer, Fetch, FetchAnswer
from ...lockstep.adapter import ModelStep
from ...simulation.mailbox import Letter


def stands_for(letter: Letter) -> Sequence[ModelStep]:
    """What a request is to the model; an answer, what it brings."""
    request = letter.request or letter
    # Of what stands for nothing, and of clients, one of them is None; those are in no step.
    asker: Any = request.source
    asked: Any = request.destination
    pair = {"leader": asked, "follower": asker}
    match letter.body:
        case Fetch():
            return [("follower_acknowledge", pair)]
        case FetchAnswer(error="NONE", diverges=True):
            return [("truncate_partly", pair)]
        case FetchAnswer(error="NONE") as brought:
            hears = [("follower_hear_high_watermark", pair)]
            return [("follower_fetch", pair), *hears] if brought.records else hears
        case AlterPartition():
            return [("controller_grant_isr", {"leader": asker})]
        case AlterPartitionAnswer():
            return [("leader_learn_isr", {"leader": asker})]
        case Produce():
            return [("leader_write", {"leader": asked})]
        case ProduceAnswer(error="NONE") as told:
            return [("producer_hears", {"leader": asked, "offset": told.offset})]
        case Read(offset):
            return [("consumer_reads", {"leader": asked, "offset": offset})]
        case ReadAnswer(error="NONE") as told:
            return [("consumer_reads", {"leader": asked, "offset": offset}) for offset, _ in told.records]
    return ()
