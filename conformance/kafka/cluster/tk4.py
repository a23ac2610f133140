"""TK4 on real brokers: what is in remote storage is deleted, as a follower goes on without having built its epochs.

A follower whose leader has its next records in remote storage alone cuts its log to begin behind them, and then reads
the leader epochs of what comes before from there (``TierStateMachine.buildRemoteLogAuxState``). Where the store fails
in between, it tries again, unless it hears of another leader epoch: then it fetches from where its log ends, as if all
had been built. It joins the ISR, and when it leads takes remote segments of epochs before its first one for useless, and
deletes them (``deleteLogSegmentsDueToLeaderEpochCacheTruncation``). The row TK4 of specs/DEVIATIONS.md;
``offsets-first`` in the model.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ....traces.kafka.cluster import wait_until
from ..jars import RELEASE, TIERED, classes
from .clients import ClientError, Polled
from .stage import stored
from .telling import Telling, decided

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from .stage import Stage

A, B, C = 1, 2, 3
OLD: Final = ("r1", "r2", "r3")
NEW: Final = ("r4", "r5")
_STORE: Final = "store"
_PAUSE: Final = 0.3
"""A segment is full after 100 ms, and a record comes so many seconds after the one before."""
_SETTLED: Final = 20.0
"""In so many seconds a leader's tasks, which run twice a second, have done what they are about to do."""
_STILL: Final = 3.0
"""And have done all of it where nothing has changed for so long."""
TOPIC: Final[Mapping[str, str]] = {
    "remote.storage.enable": "true",
    "segment.ms": "100",
    "retention.bytes": "-1",
    "local.retention.bytes": "1",
}
"""All is kept for ever, and on disks only what is not in remote storage yet."""


def settings(release: str = RELEASE) -> dict[str, object]:
    """What brokers with remote storage are told: a folder of the stage's is the store. Raises BadInput as ``classes``."""
    ours = classes(release, drives=TIERED).classpath.split(":")[0]
    return {
        "remote.log.storage.system.enable": True,
        "remote.log.storage.manager.class.name": "fencepost.kafka.RemoteStore",
        "remote.log.storage.manager.class.path": f"{ours}/",
        "rsm.config.folder": f"{{home}}/{_STORE}",
        "remote.log.metadata.manager.listener.name": "BROKER",
        "rlmm.config.remote.log.metadata.topic.num.partitions": 1,
        "rlmm.config.remote.log.metadata.topic.replication.factor": 3,
        "remote.log.manager.task.interval.ms": 500,
        "replica.fetch.backoff.ms": 500,
    }


@dataclass
class Deleted:
    """What came of the records of a topic that keeps all for ever."""

    acknowledged: dict[str, int] = field(default_factory=dict)
    """By record, the offset that its producer was told."""
    uploaded: int = 0
    """So many segments were in remote storage before the last election."""
    left: int = 0
    """And so many after it."""
    read: list[Polled] = field(default_factory=list)
    """What a consumer reads from the beginning, in the end."""
    thrown: str | None = None
    """What it throws then, where it is not told of all."""
    kept: set[str] = field(default_factory=set)
    """The records that are on some broker's disk in the end, or in remote storage."""

    @property
    def gone(self) -> list[str]:
        """The records that the producer was told to be committed, and that are nowhere any more."""
        return sorted(self.acknowledged.keys() - self.kept)

    @property
    def lost(self) -> bool:
        """Whether there is one."""
        return bool(self.gone)

    def words(self) -> str:
        """The same in a sentence."""
        if self.lost:
            return f"{', '.join(self.gone)} were acknowledged, and are in no broker's log, and not in remote storage"
        return f"all {len(self.acknowledged)} records that were acknowledged are there"


class _Store:
    """The folder that is remote storage."""

    def __init__(self, stage: Stage, topic: str) -> None:
        self._folder = stage.home / _STORE
        self._copies = self._folder / f"{topic}-0"

    def fails(self, broker: int, *, on: bool) -> None:
        """It fails at a broker from now on, or does not any more."""
        self._folder.mkdir(exist_ok=True)
        flag = self._folder / f"fails-at-{broker}"
        if on:
            flag.touch()
        else:
            flag.unlink()

    @property
    def segments(self) -> int:
        """So many are in it, with all that belongs to them."""
        return sum(1 for each in self._copies.glob("*/LEADER_EPOCH") if (each.parent / "log").exists())

    def values(self) -> set[str]:
        """The records in it."""
        return {each.value for log in sorted(self._copies.glob("*/log")) for each in stored(log)}


def tk4(stage: Stage, topic: str, *, fails: bool, say: Callable[[str], None] = print) -> Deleted:
    """Carry the story out on a new topic, of a stage with ``settings``. Without ``fails`` the store does not.

    Raises RecordingError where the cluster does something else up to the last election.
    """
    told, found, store = Telling(stage, topic, say), Deleted(), _Store(stage, topic)
    stage.all_up()
    stage.new_topic(topic, (A, B, C), min_isr=2, more=TOPIC)
    stage.shut_down(B)
    stage.wait_ended(B)
    told.tell(f"broker {A} leads in epoch 0; broker {B}, whose log is empty, shuts down in order")
    _write(stage, topic, A, OLD, found)
    _wait_uploaded(stage, topic, store, len(OLD) - 1, f"{OLD[-1]}@0")
    told.tell(f"{', '.join(OLD)} are acknowledged (acks=all); all but the last, a segment each, go to remote storage")
    state = stage.elect(topic, (C, A, B), by=C)
    stage.wait_heard(C, topic, state.leader_epoch)
    _write(stage, topic, C, NEW, found)
    uploaded = len(OLD) + len(NEW) - 1
    last = f"{NEW[-1]}@{state.leader_epoch}"
    _wait_uploaded(stage, topic, store, uploaded, last)
    told.tell(f"broker {C} is elected (preferred, clean): {decided(state)}; {', '.join(NEW)} are acknowledged likewise")
    if fails:
        store.fails(B, on=True)
    stage.all_up()
    if fails:
        _wait_printed(stage, B, "the store fails")
        told.tell(
            f"broker {B} is back; it begins behind what is in remote storage, which fails at {B} as it asks for epochs"
        )
    else:
        stage.wait_logs(topic, {B: [last]})
        told.tell(f"broker {B} is back; it begins behind what is in remote storage")
    state = stage.elect(topic, (A, C, B), by=C)
    stage.wait_heard(B, topic, state.leader_epoch)
    stage.wait_logs(topic, {B: [last]})
    wait_until(f"broker {B} to be in the ISR of {topic}", lambda: _is_in_isr(stage, topic))
    told.tell(
        f"broker {A} is elected (preferred, clean), epoch {state.leader_epoch}; {B} fetches on, and is in the ISR"
    )
    if fails:
        store.fails(B, on=False)
    found.uploaded = store.segments
    state = stage.elect(topic, (B, A, C), by=C)
    stage.wait_heard(B, topic, state.leader_epoch)
    _settle(store, uploaded)
    found.left = store.segments
    found.kept = store.values() | {each.value for log in stage.logs(topic).values() for each in log}
    told.tell(
        f"broker {B}, in the ISR, is elected (preferred, clean): {decided(state)}; {found.left} of {found.uploaded} segments"
        " are left in remote storage"
    )
    _read(stage, topic, len(OLD) + len(NEW), found)
    read = ", ".join(each.value for each in found.read) or "nothing"
    told.tell(f"a consumer reads from the beginning: {read}" + (f", and throws {found.thrown}" if found.thrown else ""))
    return found


def _write(stage: Stage, topic: str, leader: int, values: Sequence[str], found: Deleted) -> None:
    """Records with acks=all, each in a segment of its own."""
    with stage.clients.lone_producer(stage.cluster.address(leader), "producer") as producer:
        for value in values:
            time.sleep(_PAUSE)
            found.acknowledged[value] = producer.send(topic, value).offset()


def _wait_uploaded(stage: Stage, topic: str, store: _Store, segments: int, last: str) -> None:
    """Until so many segments are in remote storage, and who leads and who follows have the last record alone on disk."""
    wait_until(f"{segments} segments of {topic} in remote storage", lambda: store.segments == segments)
    stage.wait_logs(topic, {A: [last], C: [last]})


def _wait_printed(stage: Stage, broker: int, words: str) -> None:
    log = stage.cluster.nodes[broker].log
    before = log.read_text(errors="replace").count(words)
    wait_until(f"broker {broker} to print {words!r}", lambda: log.read_text(errors="replace").count(words) > before)


def _is_in_isr(stage: Stage, topic: str) -> bool:
    state = stage.decided(topic)
    return state is not None and B in state.isr


def _settle(store: _Store, uploaded: int) -> None:
    """Until a leader's tasks have deleted something and go on no more, or have had the time to."""
    deadline = time.monotonic() + _SETTLED
    seen, since = store.segments, time.monotonic()
    while time.monotonic() < deadline:
        time.sleep(0.1)
        if store.segments != seen:
            seen, since = store.segments, time.monotonic()
        if seen < uploaded and time.monotonic() - since > _STILL:
            return


def _read(stage: Stage, topic: str, count: int, found: Deleted) -> None:
    """What a consumer reads within ten seconds, no more than so many records, or until it throws."""
    deadline = time.monotonic() + 10
    with stage.clients.consumer(stage.cluster.address(B), f"{topic}-consumer", topic) as consumer:
        while len(found.read) < count and time.monotonic() < deadline:
            try:
                found.read += consumer.poll(1)
            except ClientError as error:
                found.thrown = error.name
                return
