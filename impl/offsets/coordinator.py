"""The group coordinator's part that keeps committed offsets (``GroupMetadataManager`` and ``OffsetMetadataManager``).

What is committed is what the offsets log says, read from its start; a later record takes the place of an earlier one
with the same key, and one without a value (a tombstone) takes the commit away. A commit is acknowledged when its
record is synced, and only then answered to an OffsetFetch.

There are no members and no generations here: whoever may, commits. Transactions neither. Who may is for the broker to
say before it hands a request over: Read on group and topic for a commit, Describe for a fetch (``replica/access.py``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..log import CorruptBatch, InvalidAppend, Log, LogError, LogOffline, Record
from ..net.interface import Clock
from ..replica.broker import Broker
from ..wire.errors import ErrorCode
from ..wire.messages import (
    NO_EPOCH,
    OffsetCommitRequest,
    OffsetCommitResponse,
    OffsetFetchRequest,
    OffsetFetchResponse,
    TopicPartition,
)
from .schema import (
    EPOCH_VERSION,
    MAX_STRING,
    PLAIN_VERSION,
    CommittedOffset,
    OffsetKey,
    decode_key,
    decode_value,
    encode_key,
    encode_value,
)

OFFSETS_TOPIC = "__consumer_offsets"
_MAX_OFFSET = (1 << 63) - 1
_MAX_EPOCH = (1 << 31) - 1


class CorruptOffsets(LogError):
    """A record of the offsets log whose CRC is right and whose key or value does not parse. ``offset`` is its own."""

    def __init__(self, what: str, folder: str, offset: int) -> None:
        mend = "restore the log from a replica that reads it"
        super().__init__(what, f"{folder}, offset {offset}", mend)
        self.offset = offset


@dataclass(frozen=True, slots=True)
class OffsetsConfig:
    """The settings of a coordinator, with Kafka's defaults."""

    metadata_max_bytes: int = 4096
    """``offset.metadata.max.bytes``: the most UTF-8 bytes of metadata in a commit."""
    write_epochs: bool = True
    """Whether every broker reads value version 3 (``inter.broker.protocol.version`` is 2.1 or later).

    Until then version 2 is written, and the epochs of a commit are lost.
    """


def coordinate(broker: Broker, clock: Clock, config: OffsetsConfig | None = None) -> GroupCoordinator:
    """Let a broker keep the committed offsets of all groups, in its data directory. Raises like ``GroupCoordinator``.

    To be called for each process of the broker, before it gets any message.
    """
    log = broker.directory.log(OFFSETS_TOPIC, 0)
    broker.coordinator = here = GroupCoordinator(log, clock, known=lambda it: it in broker.metadata, config=config)
    return here


class GroupCoordinator:
    """The committed offsets of all groups, over an open offsets log that nobody else appends to."""

    def __init__(
        self,
        log: Log,
        clock: Clock,
        *,
        known: Callable[[TopicPartition], bool],
        config: OffsetsConfig | None = None,
        leader_epoch: int = 0,
    ) -> None:
        """Read the log. ``known`` says whether a partition exists.

        ``leader_epoch`` goes into new batches where the log has no larger one. Raises ``CorruptOffsets``, and what
        reading the log raises.
        """
        self._log = log
        self._clock = clock
        self._known = known
        self._config = config or OffsetsConfig()
        self._epoch = max(leader_epoch, log.latest_epoch)
        self._offsets = _read(log)

    @property
    def committed(self) -> dict[OffsetKey, CommittedOffset]:
        """A copy of everything that is committed."""
        return dict(self._offsets)

    # -- requests ---------------------------------------------------------------------------------------------------

    def commit(self, request: OffsetCommitRequest, principal: str = "") -> OffsetCommitResponse:  # noqa: ARG002
        """OffsetCommit. With an error nothing is changed, but after KAFKA_STORAGE_ERROR nobody knows what the log has.

        Errors: INVALID_GROUP_ID (empty or too long), UNKNOWN_TOPIC_OR_PARTITION, INVALID_REQUEST (negative offset, an
        epoch below -1, numbers or text that no message can hold), OFFSET_METADATA_TOO_LARGE, MESSAGE_TOO_LARGE,
        KAFKA_STORAGE_ERROR.
        """
        return OffsetCommitResponse(self._commit(request))

    def _commit(self, request: OffsetCommitRequest) -> ErrorCode:
        error = _check_group(request.group) or self._invalid(request)
        if error:
            return error
        epochs = (request.leader_epoch, request.serving_epoch) if self._config.write_epochs else (NO_EPOCH, NO_EPOCH)
        committed = CommittedOffset(request.offset, *epochs, request.metadata, self._clock.wall())
        return self._write(OffsetKey(request.group, request.partition), committed)

    def fetch(self, request: OffsetFetchRequest, principal: str = "") -> OffsetFetchResponse:  # noqa: ARG002
        """OffsetFetch. Nothing committed is no error, as in Kafka, also where the partition is not known.

        Errors: INVALID_GROUP_ID.
        """
        error = _check_group(request.group)
        if error:
            return OffsetFetchResponse(error)
        found = self._offsets.get(OffsetKey(request.group, request.partition))
        if found is None:
            return OffsetFetchResponse(ErrorCode.NONE)
        return OffsetFetchResponse(
            ErrorCode.NONE, found.offset, found.leader_epoch, found.serving_epoch, found.metadata
        )

    def delete(self, group: str, partition: TopicPartition) -> ErrorCode:
        """Take a commit away, by a tombstone; NONE where there is none. Errors: KAFKA_STORAGE_ERROR."""
        key = OffsetKey(group, partition)
        return self._write(key, None) if key in self._offsets else ErrorCode.NONE

    # -- checks -----------------------------------------------------------------------------------------------------

    def _invalid(self, request: OffsetCommitRequest) -> ErrorCode:
        epochs = request.leader_epoch, request.serving_epoch
        size = _bytes(request.metadata)
        if not self._known(request.partition):
            return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if not 0 <= request.offset <= _MAX_OFFSET or not all(NO_EPOCH <= epoch <= _MAX_EPOCH for epoch in epochs):
            return ErrorCode.INVALID_REQUEST
        if size is None:
            return ErrorCode.INVALID_REQUEST
        return ErrorCode.OFFSET_METADATA_TOO_LARGE if size > self._config.metadata_max_bytes else ErrorCode.NONE

    # -- log --------------------------------------------------------------------------------------------------------

    def _write(self, key: OffsetKey, committed: CommittedOffset | None) -> ErrorCode:
        version = EPOCH_VERSION if self._config.write_epochs else PLAIN_VERSION
        value = None if committed is None else encode_value(committed, version)
        try:
            self._log.append_as_leader([Record(value, encode_key(key), self._clock.wall())], self._epoch)
            self._log.flush()
        except InvalidAppend:
            return ErrorCode.MESSAGE_TOO_LARGE
        except LogOffline:
            return ErrorCode.KAFKA_STORAGE_ERROR
        if committed is None:
            self._offsets.pop(key, None)
        else:
            self._offsets[key] = committed
        return ErrorCode.NONE


def _check_group(group: str) -> ErrorCode:
    size = _bytes(group)
    return ErrorCode.NONE if size is not None and 0 < size <= MAX_STRING else ErrorCode.INVALID_GROUP_ID


def _bytes(text: str) -> int | None:
    """How long the text is in UTF-8; ``None`` for text that is no Unicode."""
    try:
        return len(text.encode())
    except UnicodeEncodeError:
        return None


def _read(log: Log) -> dict[OffsetKey, CommittedOffset]:
    offsets: dict[OffsetKey, CommittedOffset] = {}
    try:
        for record in log.records(log.log_start):
            try:
                if record.key is None:
                    raise ValueError("no key")
                key = decode_key(record.key)
                if key is None:
                    continue
                if record.value is None:
                    offsets.pop(key, None)
                else:
                    offsets[key] = decode_value(record.value)
            except ValueError as error:
                raise CorruptOffsets(str(error), log.folder, record.offset) from None
    except CorruptBatch as error:
        raise CorruptOffsets(error.what, log.folder, log.log_start) from None
    return offsets
