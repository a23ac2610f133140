"""A broker's registration and heartbeats (``BrokerLifecycleManager`` in Kafka)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple
from uuid import UUID

from ..net.interface import Clock
from ..replica.runtime import Requests
from ..replica.timers import Key, Timers
from ..wire.controller import (
    NO_BROKER_EPOCH,
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    BrokerRegistrationResponse,
    Endpoint,
)
from ..wire.errors import ErrorCode
from .config import LifecycleConfig

HEARTBEAT: Key = ("heartbeat",)


class Standing(NamedTuple):
    """What a heartbeat tells of the broker. Ends are exclusive."""

    metadata_end: int
    snapshot_end: int
    ready: bool
    """Whether it has taken up what the metadata say of it, and its disk works."""


class Lifecycle:
    """Keeps one broker process registered. ``standing`` is asked at each heartbeat, ``to`` for the controller's id.

    ``snapshot`` is called when the controller says that it is this broker's turn.
    """

    def __init__(
        self,
        broker: int,
        requests: Requests,
        timers: Timers,
        clock: Clock,
        config: LifecycleConfig,
        *,
        cluster_id: str,
        incarnation: UUID,
        endpoints: tuple[Endpoint, ...],
        rack: str | None,
        standing: Callable[[], Standing],
        to: Callable[[], int],
        snapshot: Callable[[], object],
    ) -> None:
        self._requests = requests
        self._timers = timers
        self._clock = clock
        self._config = config
        self._registration = BrokerRegistrationRequest(broker, cluster_id, incarnation, endpoints, rack)
        self._standing = standing
        self._to = to
        self._snapshot = snapshot
        self._correlation: int | None = None
        self.broker_epoch = NO_BROKER_EPOCH
        """What the controller has answered to the registration."""
        self._is_registered = False
        self.fenced = True
        """What it has answered to the latest heartbeat."""
        self.want_shut_down = False
        """Set it to ask for a controlled shutdown."""
        self.may_shut_down = False
        """Whether the process may stop now: nobody waits for it."""
        self.refused = ErrorCode.NONE
        """Why the latest request was refused."""
        self._next_in(0)

    @property
    def incarnation(self) -> UUID:
        """The id of this process."""
        return self._registration.incarnation

    def _next_in(self, milliseconds: int) -> None:
        self._timers.set(HEARTBEAT, self._clock.now() + milliseconds)

    def send(self) -> None:
        """Send the next request; one that is not answered yet counts as lost."""
        self._requests.forget(self._correlation)
        if self.may_shut_down:
            return
        body: Any = self._registration
        if self._is_registered:
            standing = self._standing()
            body = BrokerHeartbeatRequest(
                self._registration.broker,
                self.broker_epoch,
                standing.metadata_end - 1,
                standing.snapshot_end,
                not standing.ready,
                self.want_shut_down,
            )
        self._correlation = self._requests.request(self._to(), body, self._answered)
        self._next_in(self._config.request_timeout_ms)

    def _answered(self, body: Any) -> None:
        self._correlation = None
        self.refused = body.error
        self._next_in(self._config.retry_backoff_ms)
        if body.error is ErrorCode.STALE_BROKER_EPOCH:
            # Another process has this id now, or a controller that is out of date was asked. Whoever lives registers;
            # shipped Kafka's broker goes on with its heartbeats, and is refused until somebody restarts it.
            self._is_registered = False
        if body.error is not ErrorCode.NONE:
            return
        if isinstance(body, BrokerRegistrationResponse):
            self.broker_epoch = body.broker_epoch
            self._is_registered = True
            self._next_in(0)
        elif isinstance(body, BrokerHeartbeatResponse):
            self.fenced = body.is_fenced
            self.may_shut_down = body.should_shut_down and self.want_shut_down
            # One that waits to be unfenced, or to stop, asks again soon.
            waits = body.is_fenced or self.want_shut_down
            self._next_in(self._config.retry_backoff_ms if waits else self._config.heartbeat_interval_ms)
            if body.should_snapshot:
                self._snapshot()
