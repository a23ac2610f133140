"""TK1 on real brokers: a broker deletes on its disk what was never uploaded, as it goes by a log that it has cut.

What a broker knows of the highest offset in remote storage only rises while its process lives
(``UnifiedLog.updateHighestOffsetInRemoteStorage``): neither a truncation nor another leader epoch lowers it. After an
unclean election other records are at those offsets, and local retention takes them for uploaded
(``deletableSegments``). Where they are acknowledged, and that broker is elected before they are, it uploads what comes
behind them, by which the other replicas take them for uploaded, too. The row TK1 of specs/DEVIATIONS.md;
``keeps-highest`` in the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import wait_until
from .render import Telling, decided
from .tiers import TOPIC, Deleted, Store, left, read_all, wait_in_isr, wait_uploaded, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....traces.kafka.image import PartitionState
    from .stage import Stage

A, B, C = 1, 2, 3
OLD: Final = ("r1", "r2", "r3", "r4")
NEW: Final = ("s1", "s2", "s3", "s4")
NEXT: Final = ("t1",)


def elect_empty(stage: Stage, topic: str, told: Telling) -> PartitionState:
    """A leads, and is stopped; B, which is down and has nothing, is started and elected uncleanly, and A follows it."""
    stage.cluster.nodes[A].pause()
    stage.wait_decided(topic, -1)
    stage.cluster.start(B)
    stage.clients.elect_unclean(stage.cluster.address(B), topic)
    state = stage.wait_decided(topic, B)
    stage.wait_heard(B, topic, state.leader_epoch)
    told.tell(f"broker {A} is stopped (SIGSTOP), and {B} is elected uncleanly: {decided(state)}")
    stage.cluster.nodes[A].resume()
    wait_in_isr(stage, topic, A)
    told.tell(f"broker {A} goes on, follows {B}, and has cut its log to nothing: it joins the ISR")
    return state


def tk1(stage: Stage, topic: str, *, fails: bool, say: Callable[[str], None] = print) -> Deleted:
    """Carry the story out on a new topic, of a stage with ``settings``. Without ``fails`` the store does not.

    The records of before the unclean election are lost in any case, and are no matter here. Raises RecordingError where
    the cluster does something else up to the last election.
    """
    told, found, store, before = Telling(stage, topic, say), Deleted(), Store(stage, topic), Deleted()
    stage.all_up()
    stage.new_topic(topic, (A, B), min_isr=1, more=TOPIC)
    stage.shut_down(B)
    stage.wait_ended(B)
    write(stage, topic, A, OLD, before)
    wait_uploaded(stage, topic, store, len(OLD) - 1, f"{OLD[-1]}@0", (A,))
    told.tell(f"broker {A} leads in epoch 0, {B} is down; {', '.join(OLD)}: all but the last go to remote storage")
    if fails:
        store.fails(B, on=True)
    state = elect_empty(stage, topic, told)
    write(stage, topic, B, NEW, found)
    epoch = state.leader_epoch
    last = f"{NEW[-1]}@{epoch}"
    if fails:
        stage.wait_logs(topic, {A: [last], B: [f"{each}@{epoch}" for each in NEW]})
        kept = f"{B} cannot upload them yet, and {A} has deleted all but the last"
    else:
        wait_until(f"{B} to upload {topic}", lambda: set(NEW[:-1]) <= store.values())
        stage.wait_logs(topic, {A: [last], B: [last]})
        kept = "all but the last go to remote storage"
    told.tell(f"{', '.join(NEW)} are acknowledged (acks=all); {kept}")
    state = stage.elect(topic, (A, B), by=C)
    stage.wait_heard(B, topic, state.leader_epoch)
    if fails:
        store.fails(B, on=False)
    told.tell(f"broker {A}, in the ISR, is elected (preferred, clean): {decided(state)}; {B} follows it")
    write(stage, topic, A, NEXT, found)
    wait_until(f"{A} to upload {NEW[-1]} of {topic}", lambda: NEW[-1] in store.values())
    stage.wait_logs(topic, {broker: [f"{NEXT[-1]}@{state.leader_epoch}"] for broker in (A, B)})
    left(stage, topic, store, found)
    told.tell(f"{', '.join(NEXT)} is acknowledged; what comes before it goes to remote storage, and from both disks")
    read = read_all(stage, topic, A, found)
    # Where the leader looked for its log start before it had uploaded anything it says 0, and that is out of range.
    told.tell(f"a consumer reads none of {', '.join(found.gone)}" if found.lost else read)
    return found
