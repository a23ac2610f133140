"""TK17 on real brokers: a leader lets go of what is committed, as it begins on its disk where a former log did.

A log that is cut below its log start, in its first segment, begins where it is cut; its local log start stays where it
was (``UnifiedLog.truncateTo``). What is written there then lies below it. When the broker leads, its remote log manager
looks for where the log begins in remote storage, finds nothing, and lets the log begin at the local log start
(``RLMCopyTask.maybeUpdateLogStartOffsetOnBecomingLeader``); the followers do as their leader does. A log is cut below
its log start after an unclean election. The row TK17 of specs/DEVIATIONS.md.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final

from .render import Telling, decided
from .tiers import TOPIC, Deleted, read_all, write
from .tk1 import A, B, C, elect_empty

if TYPE_CHECKING:
    from collections.abc import Callable

    from .stage import Stage

OLD: Final = ("r1", "r2")
NEW: Final = ("s1", "s2")
ONE_SEGMENT: Final = {**TOPIC, "segment.ms": "604800000"}
"""Nothing is uploaded: no segment is full."""
_LOOKED: Final = 5.0
"""In so many seconds a leader's tasks, which run twice a second, have looked in remote storage."""


class LetGo(Deleted):
    """What came of the records of a topic whose log begins later and later."""

    def words(self) -> str:
        """The same in a sentence."""
        gone = ", ".join(self.gone)
        return f"acknowledged, and below where the log begins now: {gone}" if gone else super().words()


def tk17(stage: Stage, topic: str, *, deletes: bool, say: Callable[[str], None] = print) -> LetGo:
    """Carry the story out on a new topic, of a stage with ``settings``. Without ``deletes`` no record is deleted.

    The records of before the unclean election are lost in any case, and are no matter here. Raises RecordingError where
    the cluster does something else up to the last election.
    """
    told, found, before = Telling(stage, topic, say), LetGo(), Deleted()
    stage.all_up()
    stage.new_topic(topic, (A, B), min_isr=1, more=ONE_SEGMENT)
    stage.shut_down(B)
    stage.wait_ended(B)
    write(stage, topic, A, OLD, before)
    if deletes:
        stage.clients.delete_before(stage.cluster.address(A), topic, 1)
    gone = f"{OLD[0]} is deleted (DeleteRecords)" if deletes else "nothing is deleted"
    told.tell(f"broker {A} leads in epoch 0, {B} is down; {', '.join(OLD)}: {gone}")
    state = elect_empty(stage, topic, told)
    write(stage, topic, B, NEW, found)
    new = [f"{each}@{state.leader_epoch}" for each in NEW]
    stage.wait_logs(topic, {A: new, B: new})
    told.tell(f"{', '.join(NEW)} are acknowledged (acks=all), and both have them")
    state = stage.elect(topic, (A, B), by=C)
    stage.wait_heard(A, topic, state.leader_epoch)
    time.sleep(_LOOKED)
    told.tell(f"broker {A}, in the ISR, is elected (preferred, clean): {decided(state)}; {B} follows it")
    told.tell(read_all(stage, topic, A, found))
    state, again = stage.elect(topic, (B, A), by=C), LetGo(found.acknowledged)
    stage.wait_heard(B, topic, state.leader_epoch)
    read = read_all(stage, topic, B, again)
    told.tell(f"broker {B} is elected again (preferred, clean): {decided(state)}; {read}")
    found.kept = {each.value for each in (*found.read, *again.read)}
    return found
