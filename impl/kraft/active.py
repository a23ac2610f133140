"""The active controller: decides, on the image of all that its log holds (``QuorumController`` in Kafka).

Its image is ahead of what is committed ("pending changes" in KIP-631). It is made from the committed one when the
controller becomes active and is thrown away when it no longer is, with all that did not become stable.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..metadata import changes
from ..metadata.features import METADATA_FORMAT
from ..metadata.image import Image
from ..metadata.values import MetadataRecord
from ..wire.controller import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    ControllerHeartbeatRequest,
    ControllerHeartbeatResponse,
    ControllerRequest,
    ControllerResponse,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    ElectLeadersRequest,
    ElectLeadersResponse,
    IncrementalAlterConfigsRequest,
    IncrementalAlterConfigsResponse,
)
from ..wire.errors import ErrorCode
from .alter_partition import alter_partition
from .config import ControllerConfig
from .configs import alter_configs
from .decision import Decision, fence_records
from .heartbeats import heartbeat
from .registrations import register
from .sessions import Sessions
from .snapshots import SnapshotTurns
from .topics import create_topic, delete_topic, elect_leaders

FORMAT_LEVEL = 2
"""The level of ``metadata.format`` whose records this software writes."""


class ActiveController:
    """One time of being active, in one epoch of the quorum. It sends and appends nothing: its node does."""

    def __init__(
        self,
        config: ControllerConfig,
        committed: Image,
        *,
        cluster_id: str,
        voters: tuple[int, ...],
        epoch: int,
        now: int,
    ) -> None:
        """``committed``: the image of the whole log, all of which is stable."""
        self.config = config
        self.epoch = epoch
        self.image = committed.fork()
        """With all pending changes."""
        self.sessions = Sessions(config.session_timeout_ms, committed, now)
        self.turns = SnapshotTurns(config, voters, now)
        self._cluster_id = cluster_id
        self._voters = voters

    def first_records(self) -> tuple[MetadataRecord, ...]:
        """What a cluster begins with: the level of its records. Nothing where there is one."""
        return () if METADATA_FORMAT in self.image.features else (changes.feature(METADATA_FORMAT, FORMAT_LEVEL),)

    def decide(self, body: ControllerRequest, *, end: int, stable: int, now: int) -> Decision:
        """What to do about a well-formed request. Heartbeats are noted, the image is left as it is.

        ``end``: of the log, ``stable``: of what is committed.
        """
        decision: Decision = _DECIDES[type(body)](self, body, end, stable, now)
        return decision

    def replay(self, records: tuple[MetadataRecord, ...]) -> None:
        """Take decided records into the image. Raises ``ReplayError`` where a decision was wrong."""
        for record in records:
            self.image.replay(record)

    def expire(self, now: int) -> Decision | None:
        """Fence a broker whose session is over; the next one is looked at after that."""
        for broker in self.sessions.expired(self.image, now):
            return Decision(None, fence_records(self.image, broker, by_event=self.config.fence_by_event), atomic=False)
        return None

    # -- requests ---------------------------------------------------------------------------------------------------

    def _register(self, body: BrokerRegistrationRequest, end: int, _stable: int, now: int) -> Decision:
        return register(
            self.image,
            self.sessions,
            body,
            cluster_id=self._cluster_id,
            offset=end,
            now=now,
            by_event=self.config.fence_by_event,
        )

    def _heartbeat(self, body: BrokerHeartbeatRequest, end: int, stable: int, now: int) -> Decision:
        by_event = self.config.fence_by_event
        decision = heartbeat(self.image, self.sessions, body, end=end, now=now, by_event=by_event)
        answer = decision.answer
        if not isinstance(answer, BrokerHeartbeatResponse) or answer.error is not ErrorCode.NONE:
            return decision
        turn = self._turn(body.broker, body.metadata_offset, body.snapshot_offset, stable, now)
        told = BrokerHeartbeatResponse(
            ErrorCode.NONE, answer.is_caught_up, answer.is_fenced, answer.should_shut_down, turn
        )
        return decision._replace(answer=told, atomic=False)

    def _standby(self, body: ControllerHeartbeatRequest, _end: int, stable: int, now: int) -> Decision:
        if body.node not in self._voters:
            return Decision(ControllerHeartbeatResponse(ErrorCode.INCONSISTENT_VOTER_SET))
        turn = self._turn(body.node, body.metadata_offset, body.snapshot_offset, stable, now)
        return Decision(ControllerHeartbeatResponse(ErrorCode.NONE, turn))

    def _turn(self, node: int, metadata_offset: int, snapshot_end: int, stable: int, now: int) -> bool:
        return self.turns.heard(
            node, metadata_end=metadata_offset + 1, snapshot_end=snapshot_end, stable=stable, now=now
        )

    def _alter_partition(self, body: AlterPartitionRequest, _end: int, _stable: int, _now: int) -> Decision:
        return alter_partition(self.image, body)

    def _create(self, body: CreateTopicsRequest, end: int, _stable: int, _now: int) -> Decision:
        return create_topic(self.image, body, cluster_id=self._cluster_id, epoch=self.epoch, offset=end)

    def _delete(self, body: DeleteTopicsRequest, _end: int, _stable: int, _now: int) -> Decision:
        return delete_topic(self.image, body)

    def _alter_configs(self, body: IncrementalAlterConfigsRequest, _end: int, _stable: int, _now: int) -> Decision:
        return alter_configs(self.image, body)

    def _elect(self, body: ElectLeadersRequest, _end: int, _stable: int, _now: int) -> Decision:
        return elect_leaders(self.image, body)


_DECIDES: dict[type[Any], Callable[[ActiveController, Any, int, int, int], Decision]] = {
    BrokerRegistrationRequest: ActiveController._register,
    BrokerHeartbeatRequest: ActiveController._heartbeat,
    ControllerHeartbeatRequest: ActiveController._standby,
    AlterPartitionRequest: ActiveController._alter_partition,
    CreateTopicsRequest: ActiveController._create,
    DeleteTopicsRequest: ActiveController._delete,
    IncrementalAlterConfigsRequest: ActiveController._alter_configs,
    ElectLeadersRequest: ActiveController._elect,
}

_REFUSALS: dict[type[Any], Callable[[Any, ErrorCode], ControllerResponse]] = {
    BrokerRegistrationRequest: lambda _, error: BrokerRegistrationResponse(error),
    BrokerHeartbeatRequest: lambda _, error: BrokerHeartbeatResponse(error),
    ControllerHeartbeatRequest: lambda _, error: ControllerHeartbeatResponse(error),
    AlterPartitionRequest: lambda body, error: AlterPartitionResponse(error, body.partition),
    CreateTopicsRequest: lambda _, error: CreateTopicsResponse(error),
    DeleteTopicsRequest: lambda _, error: DeleteTopicsResponse(error),
    IncrementalAlterConfigsRequest: lambda _, error: IncrementalAlterConfigsResponse(error),
    ElectLeadersRequest: lambda _, error: ElectLeadersResponse(error),
}


def refused(body: ControllerRequest, error: ErrorCode) -> ControllerResponse:
    """What an error is answered in."""
    return _REFUSALS[type(body)](body, error)
