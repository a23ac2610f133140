"""The ISR of a partition that this replica leads, and how the leader has the controller change it (KIP-497).

Until the controller has answered, and for as long as it might still take up what was asked, the high watermark waits
for everyone who may be in the ISR (``maximalIsr`` in Kafka). Messages can be late and repeated here, so that holds even
after a refusal: a copy of the request may be taken up later, or was taken up before. It ends when the partition epoch
has moved on, since a request names the one that it goes by.
"""

from __future__ import annotations

from collections.abc import Callable

from ..log.log import Log
from ..wire.errors import ErrorCode
from ..wire.messages import CONTROLLER, AlterIsrRequest, AlterIsrResponse, LeaderAndIsrRequest, Response
from .progress import Progress
from .runtime import Runtime


class Isr:
    """``members`` and ``partition_epoch`` as the controller last had them in this leader epoch."""

    def __init__(self, runtime: Runtime, request: LeaderAndIsrRequest, changed: Callable[[], None]) -> None:
        """``changed`` is called when an answer has brought another ISR."""
        self._runtime = runtime
        self._changed = changed
        self._partition = request.partition
        self._topic_id = request.topic_id
        self._leader_epoch = request.leader_epoch
        self.members = request.isr
        self.partition_epoch = request.partition_epoch
        self.offline = request.offline
        self._marked_at = request.partition_epoch
        self.proposed: frozenset[int] = frozenset()
        """Whoever was in a proposal for this partition epoch."""
        self.fenced = False
        """The controller has another leader by now: nothing is proposed until it says so itself."""
        self._correlation: int | None = None
        self._lost_at = 0

    @property
    def maximal(self) -> frozenset[int]:
        """Everyone who is, or may soon be, in the controller's ISR."""
        return self.members | self.proposed

    @property
    def in_flight(self) -> bool:
        """Whether an AlterIsr waits for its answer."""
        return self._correlation is not None

    def close(self) -> None:
        """The leader epoch is over."""
        self._runtime.forget(self._correlation)
        self._correlation = None

    def mark(self, offline: frozenset[int], partition_epoch: int) -> None:
        """Take up the controller's marks, unless later ones are known."""
        if partition_epoch >= self._marked_at:
            self.offline, self._marked_at = offline, partition_epoch

    def take(self, members: frozenset[int], partition_epoch: int) -> bool:
        """Take up a later ISR of the controller in this leader epoch; gives whether it is one.

        In one leader epoch the leader alone changes the ISR, and it names the partition epoch that it knows: no
        proposal for an epoch that it has not seen can be on its way.
        """
        if partition_epoch <= self.partition_epoch:
            return False
        self.close()
        self.members, self.partition_epoch, self.proposed = members, partition_epoch, frozenset()
        self.fenced = False
        return True

    def wanted(self, progress: list[Progress], log: Log, high_watermark: int, epoch_start: int) -> frozenset[int]:
        """Who should be in the ISR now.

        Out: who has not been caught up to the log's end for ``replica.lag.time.max.ms``. In: who follows in this epoch
        and has reached the high watermark, once that has reached the start of the epoch; before, the leader does not
        know the high watermark of its predecessor (KAFKA-7128). Not in: who is marked offline (KIP-320, "Leader Fetch
        Handling"); and whose log begins below this one. What it has there it could not compare with anything, and has
        not dropped yet: it may never have been committed.
        """
        now = self._runtime.clock.now()
        lag = self._runtime.config.replica_lag_time_max_ms
        wanted = set(self.members)
        for each in progress:
            if each.replica in self.members:
                if each.end != log.end and now - each.caught_up_at >= lag:
                    wanted.remove(each.replica)
            elif (
                each.end >= high_watermark >= epoch_start
                and each.log_start >= log.log_start
                and now - each.fetched_at <= lag
                and each.replica not in self.offline
            ):
                wanted.add(each.replica)
        return frozenset(wanted)

    def propose(self, wanted: frozenset[int]) -> bool:
        """Ask the controller for this ISR, one request at a time; gives whether it was asked.

        Where the ISR is as it should be but a proposal is open, it is asked for the same: that moves the partition
        epoch on, and the proposal is void. One to make it smaller is open too while its answer is lost: the controller
        may have taken it up, and whoever it left out would stay so.
        """
        now = self._runtime.clock.now()
        if self.fenced or (self.in_flight and now < self._lost_at):
            return False
        if wanted == self.members and not self.proposed:
            return False
        self.close()
        self.proposed |= wanted
        asks = self._runtime.node_id, self._partition, self._leader_epoch
        body = AlterIsrRequest(*asks, wanted, self.partition_epoch, self._topic_id)
        self._correlation = self._runtime.request(CONTROLLER, body, self._answered)
        self._lost_at = now + self._runtime.config.request_timeout_ms
        return True

    def _answered(self, body: Response) -> None:
        self._correlation = None
        if not isinstance(body, AlterIsrResponse) or body.partition != self._partition:
            return
        mine = body.leader == self._runtime.node_id and body.leader_epoch == self._leader_epoch
        if mine and self.take(body.isr, body.partition_epoch):
            self._changed()
        elif body.error is ErrorCode.UNKNOWN_TOPIC_ID:
            self.fenced = True  # the topic is deleted
        elif body.error is ErrorCode.FENCED_REPLICA:
            # The controller is in a later leader epoch, for good. It does not say which ISR it had last in this one: it
            # may have taken up what was proposed, its answer was lost, and whoever was proposed leads by now.
            self.fenced = True
