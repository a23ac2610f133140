"""What a broker's cleaner would do if its time had come: on a copy of its disk, with the clock set forward.

A tombstone goes after ``delete.retention.ms``, and a run is over sooner, or cleans nothing just then. So now and then a
broker is begun on a copy of its disk, and its cleaner does what it would do later: a reader from the start comes to the
same state. It has another partition beside, of what producers of a run do not write: transactions that reach over
several segments, records of an old format, compressed batches. A pass that its disk fails leaves nothing for the next.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Final, NamedTuple, cast

from ....impl.compaction.manager import Cleanable, LogCleaner
from ....impl.files.interface import Files, read_file
from ....impl.files.simulated import SimulatedFiles
from ....impl.log.batch import Batch, encode_batch, read_batches
from ....impl.log.codecs import Codec
from ....impl.log.legacy import encode_message
from ....impl.log.log import Log
from ....impl.log.records import Record, StoredRecord
from ....impl.log.segment import LOG_SUFFIX
from ....impl.net.interface import Clock
from ....impl.replica.broker import Broker
from ....impl.wire.messages import TopicPartition
from ...adapters.cluster import PARTITION
from ...checks.crash_image import check_reads
from ...checks.recovery import is_of_disk
from .records import Row, Sent, made, row_of
from .responses import WrongState, check_ages, check_tombstones, state_of

OTHER: Final = TopicPartition(PARTITION.topic, PARTITION.partition + 1)
"""What is cleaned beside."""
_ABORT, _COMMIT = 0, 1
_MAGIC: Final = 1
_OF_OLD: Final = -1
"""The leader epoch that records of old formats are read with."""
_PRODUCERS: Final = (1_000, 1_001)
"""The ids of those that write transactions."""
_ROUNDS: Final = 4
_WRITES: Final = 5
_FAILS_WITHIN: Final = (8, 40)
"""A pass that fails does so within so many operations on its disk, one of these."""


@dataclass
class LateClock:
    """A ``Clock`` that is ``by`` milliseconds ahead of another."""

    clock: Clock
    by: int = 0

    def now(self) -> int:
        """Milliseconds since some moment."""
        return self.clock.now() + self.by

    def wall(self) -> int:
        """Milliseconds since 1970."""
        return self.clock.wall() + self.by


class Topic(NamedTuple):
    """How a topic is cleaned: ``compaction.strategy``, ``delete.retention.ms``, ``min.compaction.lag.ms``.

    ``all_mapped``: whether a pass knows the keys of all that it does not clean, so that no tombstone has to stay.
    """

    strategy: str
    retention: int
    least_age: int
    all_mapped: bool


class Contents(NamedTuple):
    """What is in a log: its records by offset, those that are committed, and the offsets of those that are aborted."""

    rows: Mapping[int, Row]
    committed: tuple[Row, ...]
    aborted: tuple[int, ...]


def contents_of(files: Files, partition: TopicPartition) -> Contents:
    """Read past the broker. What is of a transaction that is undecided is in ``rows`` alone."""
    rows: dict[int, Row] = {}
    is_open: dict[int, list[int]] = {}
    committed, aborted = set[int](), list[int]()
    for batch in _batches(files, str(partition)):
        records = batch.records()
        if batch.is_control:
            ended = is_open.pop(batch.producer_id, []) if records else []
            if records and struct.unpack(">hh", records[0].key or b"")[1] == _ABORT:
                aborted += ended
            else:
                committed.update(ended)
            continue
        offsets = [record.offset for record in records]
        rows.update((record.offset, row_of(record, batch.delete_horizon)) for record in records)
        if batch.is_transactional:
            is_open.setdefault(batch.producer_id, []).extend(offsets)
        else:
            committed.update(offsets)
    return Contents(rows, tuple(rows[offset] for offset in sorted(committed)), tuple(aborted))


def _batches(files: Files, folder: str) -> Iterator[Batch]:
    for name in files.list(folder):
        if name.endswith(LOG_SUFFIX):
            yield from read_batches(read_file(files, f"{folder}/{name}"))


class Ahead:
    """One look at a broker that was opened on ``files``, a copy, by a clock of its own. ``seed`` decides what comes.

    ``stable``: the high watermark of ``PARTITION``, which the running broker knows of.
    """

    def __init__(
        self,
        broker: Broker,
        files: SimulatedFiles,
        clock: LateClock,
        topic: Topic,
        constants: Mapping[str, int],
        stable: int,
        seed: int,
    ) -> None:
        self._broker = broker
        self._files = files
        self._clock = clock
        self._topic = topic
        self._constants = constants
        self._stable = min(stable, self._log(PARTITION).end)
        self._chance = Random(f"ahead {seed}")  # noqa: S311 - repeatable on purpose
        self._serial = 0
        self._transactions = self._chance.random() < 0.5
        self._open: set[int] = set()
        self._sequences: dict[int, int] = {}

    def check(self) -> None:
        """Clean, some rounds over. Raises ``WrongState`` and ``NotFound``."""
        both = self._chance.random() < 0.5
        fails = both and self._chance.random() < 0.5
        for number in range(_ROUNDS):
            if both:
                self._write()
            self._clock.by += self._chance.choice((0, self._topic.retention + 1))
            if fails and number == 0:
                self._fail()
                self._pass(OTHER)  # by what the failed one has left in the cleaner
                self._pass(PARTITION)
                continue
            for partition in self._chance.sample((PARTITION, OTHER), 2) if both else (PARTITION,):
                self._pass(partition)

    # -- a pass -----------------------------------------------------------------------------------------------------

    def _log(self, partition: TopicPartition) -> Log:
        return self._broker.directory.log(*partition)

    def _cleanable(self, partition: TopicPartition) -> Cleanable | None:
        """What its cleaner would do next of a partition, be it due or not."""
        cleaner, key = cast(LogCleaner, self._broker.cleaner), (partition.topic, partition.partition)
        log = self._log(partition)
        if self._chance.random() < 0.5:
            log.roll()
        cleaner.roll(key)
        return cleaner.cleanable(key, self._stable if partition == PARTITION else log.end)

    def _pass(self, partition: TopicPartition) -> None:
        cleaner, log = cast(LogCleaner, self._broker.cleaner), self._log(partition)
        key = partition.topic, partition.partition
        before, spans = contents_of(self._files, partition), (log.log_start, log.end)
        found, clean = self._cleanable(partition), self._broker.directory.cleaned(*key)
        if found is None:
            return
        if cleaner.clean(found) is None:
            raise WrongState(f"{self._where(partition)} is taken for damaged: {cleaner.uncleanable.get(key)}")
        after, cleaned = contents_of(self._files, partition), self._broker.directory.cleaned(*key)
        if (log.log_start, log.end) != spans:
            raise WrongState(
                f"{self._where(partition)} goes from {log.log_start} to {log.end} then, and not from {spans}"
            )
        try:
            self._check(before, after, clean, cleaned)
        except WrongState as wrong:
            raise WrongState(f"{self._where(partition)}: {wrong}") from wrong
        check_reads(log, after.rows, _decode)

    def _where(self, partition: TopicPartition) -> str:
        return f"{partition} is cleaned {self._clock.by} ms later, and"

    def _check(self, before: Contents, after: Contents, clean: int, cleaned: int) -> None:
        for offset, row in after.rows.items():
            was = before.rows.get(offset)
            if was is not None and was.epoch == row.epoch == _OF_OLD and row.key is row.value is None:
                continue  # it tells where the log ends: there are no empty batches in old formats
            if was is None or was.content != row.content:
                raise WrongState(f"there is {row.content} at offset {offset}, where {was and was.content} was")
        strategy = self._topic.strategy
        wanted, has = (state_of(each.committed, strategy, self._constants) for each in (before, after))
        if has != wanted:
            raise WrongState(f"a reader has {has}, and not {wanted}")
        left = [offset for offset in after.aborted if offset < cleaned]
        if left:
            raise WrongState(f"the record at offset {left[0]} of an aborted transaction is left, below {cleaned}")
        keys = [row.key for row in after.committed if row.offset < cleaned and row.epoch != _OF_OLD]
        if len(set(keys)) < len(keys):
            raise WrongState(f"the log is clean up to {cleaned}, and has two records of a key there")
        wall = self._clock.wall()
        check_ages(before.rows, after.rows, clean, cleaned, wall, self._topic.least_age)
        if clean < cleaned and self._topic.all_mapped:
            check_tombstones(before.rows, after.rows, clean, wall)

    def _fail(self) -> None:
        """A pass over the partition that its disk fails at some point; it is opened anew, and is as it was."""
        before, found = contents_of(self._files, PARTITION), self._cleanable(PARTITION)
        if found is None:
            return
        left = self._chance.randrange(self._chance.choice(_FAILS_WITHIN))

        def hook(_operation: str, path: str) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise OSError(errno.EIO, os.strerror(errno.EIO), path)

        self._files.hook = hook
        try:
            done = cast(LogCleaner, self._broker.cleaner).clean(found)
        except Exception as error:
            # Whatever a system under test raises is what we are looking for.
            if left >= 0 or not is_of_disk(error):
                raise WrongState(f"{self._where(PARTITION)} there is {type(error).__name__}: {error}") from error
        else:
            if done is None:
                raise WrongState(f"{self._where(PARTITION)} a disk that fails is taken for a damaged log")
        finally:
            self._files.hook = None
        self._broker.directory.reopen(*PARTITION)
        wanted, has = (
            state_of(each.committed, self._topic.strategy, self._constants)
            for each in (before, contents_of(self._files, PARTITION))
        )
        if has != wanted:
            raise WrongState(f"{self._where(PARTITION)} the disk failed: a reader has {has}, and not {wanted}")

    # -- what is cleaned beside -------------------------------------------------------------------------------------

    def _write(self) -> None:
        log = self._log(OTHER)
        for _ in range(self._chance.randint(1, _WRITES)):
            log.append_as_follower(self._batch(log.end))
            if self._chance.random() < 0.3:
                log.roll()
        log.flush()

    def _batch(self, offset: int) -> bytes:
        """What comes next: records of somebody's, or the marker of a transaction."""
        producer = self._chance.choice(_PRODUCERS)
        if producer in self._open and self._chance.random() < 0.4:
            self._open.discard(producer)
            kind = self._chance.choice((_ABORT, _COMMIT))
            end = Record(struct.pack(">hi", 0, 0), struct.pack(">hh", 0, kind), self._clock.wall())
            return _transactional([end], offset, producer, -1, control=True)
        records = [self._record() for _ in range(self._chance.randint(1, 3))]
        kinds = ("plain", "compressed", "old", *(("transaction",) * 2 if self._transactions else ()))
        how = self._chance.choice(kinds)
        if how == "old":
            first = records[0]
            return encode_message(StoredRecord(offset, -1, first.value, first.key, first.timestamp, ()), _MAGIC, 0)
        codec = Codec.GZIP if how == "compressed" else Codec.NONE
        if how != "transaction":
            return encode_batch(records, base_offset=offset, leader_epoch=0, codec=codec)
        self._open.add(producer)
        sequence = self._sequences.get(producer, 0)
        self._sequences[producer] = sequence + len(records)
        return _transactional(records, offset, producer, sequence)

    def _record(self) -> Record:
        self._serial += 1
        chance, constants = self._chance, self._constants
        longs = constants["header_values"]
        drawn = (
            chance.randrange(constants["keys"]),
            int(chance.random() < 0.3),
            chance.randrange(constants["timestamps"]),
        )
        return made(Sent(*drawn, chance.randint(0, longs), chance.randint(0, longs)), constants, self._serial)


def _transactional(
    records: Sequence[Record], offset: int, producer: int, sequence: int, *, control: bool = False
) -> bytes:
    return encode_batch(
        records,
        base_offset=offset,
        leader_epoch=0,
        producer_id=producer,
        producer_epoch=0,
        base_sequence=sequence,
        control=control,
        transactional=True,
    )


def _decode(data: bytes) -> Sequence[Row]:
    return [
        row_of(record, batch.delete_horizon)
        for batch in read_batches(data)
        if not batch.is_control
        for record in batch.records()
    ]
