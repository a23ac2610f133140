"""K14 on real brokers: a follower is fenced, or shuts down in order, and leaves the ISR in the same leader epoch.

Nothing is held, and nothing is lost: it is what any cluster does that loses a follower. In KIP-320's model the
controller begins a new leader epoch for that. The row K14 of specs/DEVIATIONS.md; in the model it is
``kip-320-kafka-fences``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import wait_until
from .loss_check import Lost, answered, left
from .render import Telling, decided

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from .stage import Stage

A, B, C = 1, 2, 3
RECORDS: Final = ("q", "r", "s")


def k14(stage: Stage, topic: str, *, say: Callable[[str], None] = print, copies: Path | None = None) -> Lost:
    """Carry it out on a new topic. Raises RecordingError where the cluster does something else."""
    told, found = Telling(stage, topic, say), Lost(RECORDS[-1])
    stage.all_up()
    stage.new_topic(topic, (A, B, C), min_isr=1)
    address = stage.cluster.address(A)

    def isr(what: str, wanted: Sequence[int]) -> None:
        def there() -> bool:
            state = stage.decided(topic)
            return state is not None and sorted(state.isr) == list(wanted)

        wait_until(f"the ISR to be {list(wanted)}", there)
        state = stage.decided(topic)
        assert state is not None and state.leader_epoch == 0
        told.tell(f"{what}: {decided(state)}")

    def write(record: str, brokers: Sequence[int]) -> None:
        with stage.clients.lone_producer(address, f"producer-{record}") as producer:
            sent = producer.send(topic, record)
            answered(sent, found)
        have = [f"{each}@0" for each in RECORDS[: RECORDS.index(record) + 1]]
        stage.wait_logs(topic, dict.fromkeys(brokers, have))
        told.tell(f"a producer sends {record} with acks=all, and is told {found.error or found.acknowledged}")

    write(RECORDS[0], (A, B, C))
    stage.cluster.nodes[C].kill()
    isr(f"broker {C} is killed, and its session ends", (A, B))
    write(RECORDS[1], (A, B))
    stage.all_up()
    isr(f"broker {C} starts again, fetches, and {A} asks for it", (A, B, C))
    stage.shut_down(B)
    isr(f"broker {B} shuts down in order", (A, C))
    stage.wait_ended(B)
    write(RECORDS[2], (A, C))
    left(stage, topic, (A, B, C), found, copies)
    return found
