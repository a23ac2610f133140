"""The recorder's requests, at versions that a broker has, and the observations that are missing for want of one.

ApiVersions names the versions of each node. A request goes out at the newest version that the node and kio both have.
If they have none in common, or the node rejects the request, the recorder does not send it to that node again, and the
observation that it serves is missing: `Missing` says so.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

from .wire import CONSUMER, NO_EPOCH, Connection, ConnectionClosed, messages

REJECTIONS: Final = frozenset(
    {
        "unsupported_version",
        "invalid_request",
        "topic_authorization_failed",
        "cluster_authorization_failed",
    }
)
"""Errors that the same request would get again. They end up in the broker's logs."""
_CLOSED: Final = 2
"""So many times in a row a node may close the connection on one request: it may have been killed once."""


@dataclass(frozen=True)
class Api:
    """A request of Kafka's protocol, and the observation that needs it.

    ``versions``: those that kio has, and that the observation can be made by; the first came with release ``since``.
    """

    name: str
    key: int
    versions: range
    since: str
    observation: str


METADATA: Final = Api("Metadata", 3, range(4, 13), "0.11", "any observation")
EPOCH_ENDS: Final = Api(
    "OffsetForLeaderEpoch",
    23,
    range(2, 5),
    "2.1",
    "leader epochs, roles, the leader's log end, starts of leader epochs",
)
LATEST: Final = Api("ListOffsets", 2, range(1, 11), "0.10.1", "the leader's high watermark")
FETCH: Final = Api("Fetch", 1, range(11, 18), "2.4", "high watermarks of followers")
FETCH_BY_NAME: Final = Api("Fetch", 1, range(11, 13), "2.4", FETCH.observation)
"""For a topic without an id, as ZooKeeper clusters had them before 2.8."""
QUORUM: Final = Api("DescribeQuorum", 55, range(3), "3.0", "any observation of the quorum")


@dataclass
class Missing:
    """Observations that some nodes do not show, each with the reason."""

    _nodes: dict[tuple[Api, str], set[int]] = field(default_factory=lambda: defaultdict(set))

    def add(self, node: int, api: Api, reason: str) -> None:
        """Note that `node` does not show what `api` serves; ``reason`` follows the nodes' names."""
        self._nodes[api, reason].add(node)

    @property
    def observations(self) -> list[str]:
        """The observations that some node does not show, in order."""
        return sorted({api.observation for api, _ in self._nodes})

    def has(self, api: Api) -> bool:
        """Whether some node does not show what `api` serves."""
        return any(each.key == api.key for each, _ in self._nodes)

    @property
    def reasons(self) -> list[str]:
        """The reasons alone, in order."""
        return sorted({reason for _, reason in self._nodes})

    @property
    def lines(self) -> list[str]:
        """One line for each observation and reason, in order."""
        found = [
            f"not recorded: {api.observation} of node{'s' if len(nodes) > 1 else ''} "
            f"{', '.join(map(str, sorted(nodes)))}: {reason}"
            for (api, reason), nodes in self._nodes.items()
        ]
        return sorted(found)


class Negotiation:
    """Sends requests at negotiated versions, and fills `missing`."""

    def __init__(self) -> None:
        self.missing = Missing()
        self._stopped: set[tuple[int, int]] = set()
        """Node and request that it rejected."""
        self._closed: dict[tuple[int, int], int] = {}

    def version(self, connection: Connection, api: Api) -> int | None:
        """The newest common version, or None. Raises WireError."""
        has = connection.versions(api.key)
        common = () if has is None else [each for each in api.versions if has[0] <= each <= has[1]]
        return max(common, default=None)

    def ask(self, node: int, connection: Connection, api: Api, build: Callable[[int], Any]) -> Any:
        """The answer to the request that `build` makes for a version; None if the node has none, or rejected one.

        Raises WireError where no answer comes.
        """
        at = (node, api.key)
        if at in self._stopped:
            return None
        version = self.version(connection, api)
        if version is None:
            has = connection.versions(api.key)
            versions = "does not have it" if has is None else f"has {has[0]} to {has[1]}"
            needed = f"{api.name} {api.versions[0]} to {api.versions[-1]} is needed (Kafka {api.since} or newer)"
            self.missing.add(node, api, f"{needed}, and the node {versions}")
            return None
        try:
            answer = connection.ask(build(version))
        except ConnectionClosed:
            self._closed[at] = self._closed.get(at, 0) + 1
            if self._closed[at] >= _CLOSED:
                self._stop(node, api, f"closes the connection on {api.name} {version}")
            raise
        self._closed.pop(at, None)
        rejected = next((code for code in _codes(answer) if code in REJECTIONS), None)
        if rejected is not None:
            self._stop(node, api, f"answers {api.name} {version} with {rejected}")
            return None
        return answer

    def _stop(self, node: int, api: Api, what: str) -> None:
        self._stopped.add((node, api.key))
        self.missing.add(node, api, f"the node {what}; not asked again")


def _codes(answer: Any) -> Iterator[str]:
    """Every error code of an answer, from the outside in."""
    code = getattr(answer, "error_code", None)
    if code is not None:
        yield code.name
    for part in ("topics", "responses", "partitions"):
        for each in getattr(answer, part, None) or ():
            yield from _codes(each)


# -- requests, by version ---------------------------------------------------------------------------------------------


def metadata_request(version: int, topic: str) -> Any:
    """Metadata of one topic, which creates none: 4 is the first version that can say so."""
    module = messages("metadata", version)
    names: dict[str, Any] = {"name": topic, **({"topic_id": None} if version >= 10 else {})}
    more: dict[str, Any] = {"include_topic_authorized_operations": False} if version >= 8 else {}
    if 8 <= version <= 10:
        more["include_cluster_authorized_operations"] = False
    return module.MetadataRequest(
        topics=(module.MetadataRequestTopic(**names),), allow_auto_topic_creation=False, **more
    )


def epoch_end_request(version: int, topic: str, partition: int, leader_epoch: int, current: int) -> Any:
    """OffsetForLeaderEpoch of a consumer: the end of ``leader_epoch`` at a broker in the epoch ``current``."""
    module = messages("offset_for_leader_epoch", version)
    asked = module.OffsetForLeaderPartition(
        partition=partition, current_leader_epoch=current, leader_epoch=leader_epoch
    )
    more = {"replica_id": CONSUMER} if version >= 3 else {}
    return module.OffsetForLeaderEpochRequest(
        topics=(module.OffsetForLeaderTopic(topic=topic, partitions=(asked,)),), **more
    )


def latest_request(version: int, topic: str, partition: int) -> Any:
    """ListOffsets for the latest offset that a consumer may read: the high watermark of a leader."""
    module = messages("list_offsets", version)
    asked = module.ListOffsetsPartition(partition_index=partition, timestamp=-1)
    more: dict[str, Any] = {"isolation_level": 0} if version >= 2 else {}
    if version >= 10:
        more["timeout"] = timedelta(seconds=1)
    return module.ListOffsetsRequest(
        replica_id=CONSUMER, topics=(module.ListOffsetsTopic(name=topic, partitions=(asked,)),), **more
    )


def fetch_request(version: int, topic: str, topic_id: UUID | None, partition: int, leader_epoch: int) -> Any:
    """Fetch of a consumer in a leader epoch, of as little as there is, outside of any session.

    From 13 on it names the topic by its id.
    """
    module = messages("fetch", version)
    more: dict[str, Any] = {"last_fetched_epoch": NO_EPOCH} if version >= 12 else {}
    asked = module.FetchPartition(
        partition=partition, current_leader_epoch=leader_epoch, fetch_offset=0, partition_max_bytes=1, **more
    )
    if version >= 13:
        topic_ = module.FetchTopic(topic_id=topic_id, partitions=(asked,))
    else:
        topic_ = module.FetchTopic(topic=topic, partitions=(asked,))
    replica = {"replica_state": module.ReplicaState(replica_id=CONSUMER)} if version >= 15 else {"replica_id": CONSUMER}
    return module.FetchRequest(
        **replica, max_wait=timedelta(0), min_bytes=0, topics=(topic_,), forgotten_topics_data=()
    )


def quorum_request(version: int, topic: str) -> Any:
    """DescribeQuorum of the metadata log."""
    module = messages("describe_quorum", version)
    asked = module.TopicData(topic_name=topic, partitions=(module.PartitionData(partition_index=0),))
    return module.DescribeQuorumRequest(topics=(asked,))
