"""The controller's index from brokers to the partitions of one topic that list them (``BrokersToIsrs``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from .journal import Journal

_LEADER = -(1 << 31)
_NOBODY = -1


class MembershipIndex:
    """Follows Kafka's index for a topic whose ISR or eligible replicas name a broker twice.

    Kafka adds such a partition twice and removes both entries at once; a later removal then throws. Without a broker
    that is named twice the index cannot throw, so no other topic needs one.
    """

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._entries: dict[int, tuple[int, ...]] = {}

    def update(
        self, partition: int, before: Sequence[int], after: Sequence[int], was: int | None, leader: int | None
    ) -> str:
        """Replace a partition's members; return why Kafka throws, or an empty text.

        ``was`` and ``leader`` are the leaders before and after; ``None`` in an index that marks no leader.
        """
        old = sorted([*before, _NOBODY] if was == _NOBODY else before)
        new = sorted([*after, _NOBODY] if leader == _NOBODY else after)
        i = j = 0
        while i < len(old) or j < len(new):
            if i == len(old) or (j < len(new) and old[i] > new[j]):
                self._add(new[j], _marked(partition, new[j] == leader))
                j += 1
            elif j == len(new) or old[i] < new[j]:
                wrong = self._remove(old[i], _marked(partition, old[i] == was))
                if wrong:
                    return wrong
                i += 1
            else:
                wrong = self._change(old[i], _marked(partition, old[i] == was), _marked(partition, old[i] == leader))
                if wrong:
                    return wrong
                i, j = i + 1, j + 1
        return ""

    def forget(self, brokers: Sequence[int]) -> None:
        """Drop the topic's entries of these brokers."""
        for broker in brokers:
            self._journal.discard(self._entries, broker)

    def _add(self, broker: int, entry: int) -> None:
        self._journal.put(self._entries, broker, (*self._entries.get(broker, ()), entry))

    def _change(self, broker: int, before: int, after: int) -> str:
        if before == after:
            return ""
        if broker not in self._entries:
            return f"broker {broker} is not indexed for the partition"
        entries = self._entries[broker]
        self._journal.put(self._entries, broker, tuple(after if each == before else each for each in entries))
        return ""

    def _remove(self, broker: int, entry: int) -> str:
        entries = self._entries.get(broker, ())
        if entry not in entries:
            return f"broker {broker} was named twice before, and its entry is gone"
        left = tuple(each for each in entries if each != entry)
        left += (0,) * (len(entries) - 1 - len(left))  # Kafka's array keeps the zeros that it did not fill
        if left:
            self._journal.put(self._entries, broker, left)
        else:
            self._journal.discard(self._entries, broker)
        return ""


def names_twice(members: Sequence[int]) -> bool:
    """Whether some broker is named twice, or the place of an absent leader is taken by a member."""
    return len(members) > 0 and (_NOBODY in members or len(set(members)) != len(members))


def index_of(
    journal: Journal, partitions: Mapping[int, Sequence[int]], leaders: Mapping[int, int] | None
) -> MembershipIndex:
    """The index of a topic's partitions; ``leaders`` is ``None`` for one that marks no leader."""
    index = MembershipIndex(journal)
    for partition, members in partitions.items():
        index.update(partition, (), members, None, None if leaders is None else leaders[partition])
    return index


def _marked(partition: int, leads: bool) -> int:
    return partition | _LEADER if leads else partition
