"""A follower that is to cut its log below its local log start: all that is left of it is in remote storage then.

(In Kafka the log begins anew at the cut, and knows of no producers: ``UnifiedLog.truncateTo``.)
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .errors import RemoteStorageError
from .known_producers import Unread, producers_before
from .steps import Steps

if TYPE_CHECKING:
    from .remote import RemotePartition


def cut(remote: RemotePartition, offset: int) -> Steps:
    """Cut at ``offset``, and let the follower ask anew where to cut; at once, or where it cannot be done, later.

    Nothing changes before it is known what producers had sent: whoever leads with the rest takes no record twice.
    """
    partition = remote.partition
    follower, log = partition.follower, partition.log
    if follower is None:
        return
    wait = partition.runtime.config.replica_fetch_backoff_ms
    try:
        producers = yield from producers_before(remote, log.epochs.entries, log.log_start, offset)
    except (Unread, RemoteStorageError):
        pass
    else:
        if partition.follower is follower:
            partition.truncate_to(offset, producers)
            wait = 0
    if partition.follower is follower:
        follower.go_on(wait)
