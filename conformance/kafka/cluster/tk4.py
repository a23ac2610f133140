"""TK4 on real brokers: what is in remote storage is deleted, as a follower goes on without having built its epochs.

A follower whose leader has its next records in remote storage alone cuts its log to begin behind them, and then reads
the leader epochs of what comes before from there (``TierStateMachine.buildRemoteLogAuxState``). Where the store fails
in between, it tries again, unless it hears of another leader epoch: then it fetches from where its log ends, as if all
had been built. It joins the ISR, and when it leads takes remote segments of epochs before its first one for useless,
and deletes them (``deleteLogSegmentsDueToLeaderEpochCacheTruncation``). The row TK4 of specs/DEVIATIONS.md;
``offsets-first`` in the model.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .render import Telling, decided
from .tiers import TOPIC, Deleted, Store, left, read_all, settled, wait_fails, wait_in_isr, wait_uploaded, write

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

A, B, C = 1, 2, 3
OLD: Final = ("r1", "r2", "r3")
NEW: Final = ("r4", "r5")


def tk4(stage: Stage, topic: str, *, fails: bool, say: Callable[[str], None] = print) -> Deleted:
    """Carry the story out on a new topic, of a stage with ``settings``. Without ``fails`` the store does not.

    Raises RecordingError where the cluster does something else up to the last election.
    """
    told, found, store = Telling(stage, topic, say), Deleted(), Store(stage, topic)
    stage.all_up()
    stage.new_topic(topic, (A, B, C), min_isr=2, more=TOPIC)
    stage.shut_down(B)
    stage.wait_ended(B)
    told.tell(f"broker {A} leads in epoch 0; broker {B}, whose log is empty, shuts down in order")
    write(stage, topic, A, OLD, found)
    wait_uploaded(stage, topic, store, len(OLD) - 1, f"{OLD[-1]}@0", (A, C))
    told.tell(f"{', '.join(OLD)} are acknowledged (acks=all); all but the last, a segment each, go to remote storage")
    state = stage.elect(topic, (C, A, B), by=C)
    stage.wait_heard(C, topic, state.leader_epoch)
    write(stage, topic, C, NEW, found)
    uploaded = len(OLD) + len(NEW) - 1
    last = f"{NEW[-1]}@{state.leader_epoch}"
    wait_uploaded(stage, topic, store, uploaded, last, (A, C))
    told.tell(f"broker {C} is elected (preferred, clean): {decided(state)}; {', '.join(NEW)} are acknowledged likewise")
    if fails:
        store.fails(B, on=True)
    stage.all_up()
    if fails:
        wait_fails(stage, B)
        begins = "is back, and begins behind what is in remote storage, which fails as it asks for the epochs"
    else:
        stage.wait_logs(topic, {B: [last]})
        begins = "is back, and begins behind what is in remote storage"
    told.tell(f"broker {B} {begins}")
    state = stage.elect(topic, (A, C, B), by=C)
    stage.wait_heard(B, topic, state.leader_epoch)
    stage.wait_logs(topic, {B: [last]})
    wait_in_isr(stage, topic, B)
    elected = f"is elected (preferred, clean): epoch {state.leader_epoch}"
    told.tell(f"broker {A} {elected}; {B} fetches from its log's end, and joins the ISR")
    if fails:
        store.fails(B, on=False)
    found.uploaded = store.segments
    state = stage.elect(topic, (B, A, C), by=C)
    stage.wait_heard(B, topic, state.leader_epoch)
    settled(store, uploaded)
    left(stage, topic, store, found)
    remain = f"{found.remain} of {found.uploaded} segments are left in remote storage"
    told.tell(f"broker {B}, in the ISR, is elected (preferred, clean): {decided(state)}; {remain}")
    told.tell(read_all(stage, topic, B, found))
    return found
