"""What a replica asks of the remote part of its log (KIP-405), where its topic has one. ``impl/tiering`` answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

from ..wire.messages import Envelope, FetchRequest, ListOffsetsRequest, ListOffsetsResponse

if TYPE_CHECKING:
    from .partition import Partition

REMOTE_TIMER = "remote"
"""The timer ``("remote", partition)``: what waits for the store, for another broker, or for its time."""


class RemoteLog(Protocol):
    """The remote part of one replica's log, and what is done about it by the role that the replica has."""

    def leading(self) -> None:
        """The replica leads, in a new leader epoch."""

    def following(self) -> None:
        """The replica follows, in a new leader epoch."""

    def ended(self) -> None:
        """The replica has no role any more."""

    def fire(self) -> None:
        """The timer ``("remote", partition)`` has run off. Raises like ``Log.read``."""

    def fetch(self, envelope: Envelope, request: FetchRequest) -> None:
        """Answer a consumer's fetch of an offset below the local log start, at some time."""

    def list_offsets(self, envelope: Envelope, request: ListOffsetsRequest) -> ListOffsetsResponse | None:
        """Answer for a timestamp that remote records may have; ``None``: it is answered at some time."""

    def last_tiered_offset(self) -> int:
        """The last offset of this leader's lineage that is in remote storage; -1 where none is known to be."""

    def moved(self, leader_start: int) -> None:
        """The leader's records at this follower's end are in remote storage, or below its log start ``leader_start``.

        It is made to begin where its leader's local log does, or with the earliest offset that is not uploaded yet
        (KIP-1023), and then follows on, or tries again.
        """

    def cut(self, offset: int) -> None:
        """This follower's log is to end at ``offset``, below its local log start: what comes before is remote.

        It is cut when it is known what producers had sent by then; the follower asks anew where to cut after that, or
        where it could not be known.
        """

    def begins_after_tiered(self) -> bool:
        """Whether this replica, as it is now, may begin with the earliest offset that is not uploaded yet."""


class RemoteLogs(Protocol):
    """The remote parts of a broker's replicas."""

    def __call__(self, partition: Partition) -> RemoteLog | None:
        """The remote part of a replica that is opened; ``None`` where its topic has none."""

    def tiered(self, topic: str) -> bool:
        """Whether the topic has ``remote.storage.enable``."""
