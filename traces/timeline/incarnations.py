"""Which observations of one topic name belong to the same topic: a deleted topic may be created again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from .event_kind import EventKind
from .observation import Observation
from .partition_timeline import PartitionTimeline

K = EventKind
Incarnation = tuple[str, int, int]
"""Comparable only with equality: topic id, or the node and the number of its interval."""

_ENDS = frozenset({K.LOG_DELETED, K.TOPIC_DELETED})
_ROLES = frozenset({K.LEADER_STARTED, K.FOLLOWER_STARTED, K.QUORUM_ROLE})


@dataclass(frozen=True)
class Incarnations:
    """The incarnation of each observation.

    A node's observations are cut where its log or the topic is deleted, where the topic id changes, and where leader
    epochs go back or start again without their records. Parts with one topic id belong together. Without a cut or a
    deletion all observations belong together. A part without a topic id, if there are several parts, is comparable only
    with itself.
    """

    by_observation: Mapping[int, Incarnation]
    identified: frozenset[int]
    """The observations (by ``id``) of the parts in which some line names the topic id."""

    @classmethod
    def of(cls, timeline: PartitionTimeline) -> Incarnations:
        """Cut the observations of each node."""
        parts: list[tuple[Incarnation, list[Observation]]] = []
        # A topic deleted at one node may be created again at another, whose lines begin later.
        cut = any(each.kind in _ENDS for each in timeline.observations)
        for (node, client), observations in timeline.by_process.items():
            own = _parts(observations)
            cut = cut or len(own) > 1
            for number, members in enumerate(own):
                known = next((each.topic_id for each in members if each.topic_id is not None), None)
                key = (known, 0, 0) if known is not None else (client or "", -1 if node is None else node, number + 1)
                parts.append((key, members))
        named = [(key, members) for key, members in parts if key[1:] == (0, 0)]
        alone = not cut and len({key for key, _ in named}) <= 1
        mapping = {id(each): ("", 0, 0) if alone else key for key, members in parts for each in members}
        return cls(mapping, frozenset(id(each) for _, members in named for each in members))

    def __getitem__(self, observation: Observation) -> Incarnation:
        return self.by_observation[id(observation)]

    def is_identified(self, observation: Observation) -> bool:
        """Whether the topic id of an observation is known, so that its topic is certain."""
        return id(observation) in self.identified


def _parts(observations: Sequence[Observation]) -> list[list[Observation]]:
    """Cut one process's observations, in its order."""
    parts: list[list[Observation]] = [[]]
    epoch = -1
    topic_id: str | None = None
    ended = False
    watermark = 0
    for each in observations:
        role = each.kind in _ROLES and each.leader_epoch is not None
        goes_back = role and each.leader_epoch is not None and each.leader_epoch < epoch
        if role and each.leader_epoch == epoch and each.log_end is not None and each.log_end < watermark:
            # The role of this epoch starts again without the records that it had: it may be another topic.
            goes_back = True
        changes = each.topic_id is not None and topic_id is not None and each.topic_id != topic_id
        if goes_back or changes or (ended and each.kind not in _ENDS):
            parts.append([])
            epoch, topic_id, ended, watermark = -1, None, False, 0
        if role and each.leader_epoch is not None:
            epoch = each.leader_epoch
        topic_id = each.topic_id or topic_id
        watermark = 0 if each.kind is K.TRUNCATED else max(watermark, each.high_watermark or 0)
        ended = ended or each.kind in _ENDS
        parts[-1].append(each)
    return parts
