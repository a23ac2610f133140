"""Of which processes a leader says that they have what it counts (KIP-903).

A follower that comes back with less than it had is another process, with another broker epoch. Who leads names the
process of each member that it proposes, and may name none but the one whose fetch it has served: where it named one
that has only asked, the controller would take up who has nothing.
"""

from __future__ import annotations

from typing import Final, NamedTuple, TypeAlias

from ....impl.wire.controller import AlterPartitionRequest, ReplicaRequest
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import Envelope, FetchRequest, FetchResponse, TopicPartition
from .metadata_log import WrongState

_NOBODY: Final = -1
_Key: TypeAlias = tuple[int, TopicPartition, int]
"""A leader, a partition, a follower."""


class _Served(NamedTuple):
    """The epoch in the last fetch that was served, and in the last one before this event."""

    epoch: int
    before: int


class Members:
    """Of one run."""

    def __init__(self) -> None:
        self._asked: dict[tuple[int, int], tuple[TopicPartition, int]] = {}
        """By sender and correlation id: what a fetch is of, and the epoch in it."""
        self._served: dict[_Key, _Served] = {}

    def event(self) -> None:
        """An event begins."""
        self._served = {key: _Served(each.epoch, each.epoch) for key, each in self._served.items()}

    def sent(self, envelope: Envelope) -> None:
        """A node sends a message. Raises ``WrongState`` for a member whose process was not served.

        The ISR is proposed in the midst of the fetch that completes it, by the epoch of the one before.
        """
        body = envelope.body
        if isinstance(body, ReplicaRequest) and isinstance(body.body, FetchRequest):
            self._asked[envelope.source, envelope.correlation] = body.body.partition, body.replica_epoch
        elif isinstance(body, FetchResponse):
            asked = self._asked.get((envelope.destination, envelope.correlation))
            if asked is not None and body.error is ErrorCode.NONE:
                key = envelope.source, asked[0], envelope.destination
                known = self._served.get(key)
                self._served[key] = _Served(asked[1], _NOBODY if known is None else known.before)
        elif isinstance(body, AlterPartitionRequest):
            for member in body.new_isr:
                self._check(body, member.broker, member.broker_epoch)

    def _check(self, body: AlterPartitionRequest, member: int, epoch: int) -> None:
        served = self._served.get((body.broker, body.partition, member), _Served(_NOBODY, _NOBODY))
        if member != body.broker and epoch not in (_NOBODY, *served):
            was = "none" if served.epoch == _NOBODY else f"that of epoch {served.epoch}"
            raise WrongState(
                f"broker {body.broker} names the process of epoch {epoch} of broker {member} in the ISR of"
                f" {body.partition}, and has served fetches of {was}"
            )
