"""What can be seen of a running cluster, in the cells of ``impl_spec.py``: the log, progress, requests."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final
from uuid import UUID

from ....impl.kraft.node import ControllerNode
from ....impl.metadata.image import PartitionKey
from ....impl.wire.controller import AlterPartitionRequest, BrokerHeartbeatRequest, BrokerRegistrationRequest
from ....traces.format import Value
from .metadata_log import Prefix
from .nodes import LIFE_BITS

NAMES: Final = ("first", "second")
"""The topic of each partition."""
_LIFE: Final = (1 << LIFE_BITS) - 1


def life_of(incarnation: UUID) -> int:
    """The number of a broker's process."""
    return incarnation.int & _LIFE


class Topics:
    """The numbers of topics, in the order in which their ids are first seen."""

    def __init__(self) -> None:
        self._numbers: dict[UUID, int] = {}

    def number(self, topic: UUID) -> int:
        """That of a topic in the log."""
        return self._numbers.setdefault(topic, len(self._numbers))

    def known(self, topic: UUID) -> int:
        """The same; -1 for one that was never in the log."""
        return self._numbers.get(topic, -1)

    @property
    def drawn(self) -> int:
        """How many there were."""
        return len(self._numbers)


def cells_of_log(prefix: Prefix, brokers: Sequence[int], partitions: int, topics: Topics) -> dict[str, Value]:
    """What the newest log comes to."""
    image = prefix.image
    known = image.brokers
    cells: dict[str, Value] = {
        "registered": tuple(sorted(known)),
        "unfenced": tuple(sorted(each for each, state in known.items() if not state.fenced)),
        "alive": tuple(sorted(filter(image.alive, known))),
        "shutting_down": tuple(sorted(each for each, state in known.items() if state.shutting_down)),
    }
    for broker in brokers:
        state = known.get(broker)
        cells[f"broker_epoch[{broker}]"] = -1 if state is None else state.epoch
        cells[f"incarnation[{broker}]"] = -1 if state is None else life_of(state.incarnation)
        cells[f"shutdown_offset[{broker}]"] = prefix.shut_down.get(broker, -1)
    for number in range(partitions):
        topic = image.names.get(NAMES[number])
        held = None if topic is None else image.partitions.get(PartitionKey(topic, 0))
        there = topic is not None and held is not None
        cells[f"topic[{number}]"] = topics.number(topic) if there and topic is not None else -1
        cells[f"leader[{number}]"] = None if held is None or held.leader < 0 else held.leader
        cells[f"leader_epoch[{number}]"] = -1 if held is None else held.leader_epoch
        cells[f"partition_epoch[{number}]"] = -1 if held is None else held.partition_epoch
        cells[f"isr[{number}]"] = () if held is None else tuple(sorted(held.isr))
    cells["topics"] = topics.drawn
    return cells


def cells_of_controller(number: int, node: ControllerNode | None) -> dict[str, Value]:
    """How a controller is, and how far."""
    if node is None:
        ends = dict.fromkeys((f"{name}[{number}]" for name in ("node_end", "node_applied", "snapshot_end")), 0)
        return {f"role[{number}]": "down", f"node_epoch[{number}]": -1, **ends}
    replica = node.quorum.replica
    return {
        f"role[{number}]": "standby" if node.active is None else "active",
        f"node_epoch[{number}]": node.quorum.epoch,
        f"node_end[{number}]": replica.end,
        f"node_applied[{number}]": replica.applied,
        f"snapshot_end[{number}]": replica.snapshots.latest_end,
    }


def cells_of_request(
    body: Any, partitions: Mapping[str, int], topics: Topics, brokers: Sequence[int]
) -> dict[str, Value]:
    """What a broker's request says."""
    if isinstance(body, BrokerRegistrationRequest):
        return {f"as_incarnation[{body.broker}]": life_of(body.incarnation)}
    if isinstance(body, BrokerHeartbeatRequest):
        return {
            f"beat_epoch[{body.broker}]": body.broker_epoch,
            f"beat_end[{body.broker}]": body.metadata_offset + 1,
            f"wants_fence[{body.broker}]": int(body.want_fence),
            f"wants_stop[{body.broker}]": int(body.want_shut_down),
        }
    if isinstance(body, AlterPartitionRequest):
        where = f"[{body.broker}][{partitions[body.partition.topic]}]"
        named = dict(body.new_isr)
        return {
            f"asks_epoch{where}": body.broker_epoch,
            f"asks_topic{where}": topics.known(body.topic_id),
            f"asks_leader_epoch{where}": body.leader_epoch,
            f"asks_partition_epoch{where}": body.partition_epoch,
            f"asks_isr{where}": tuple(sorted(named)),
            **{f"asks_member_epoch{where}[{each}]": named.get(each, -1) for each in brokers},
        }
    return {}


def nothing_said(brokers: Sequence[int], partitions: int) -> dict[str, Value]:
    """The same of who has asked for nothing."""
    cells: dict[str, Value] = {}
    for broker in brokers:
        cells |= dict.fromkeys((f"as_incarnation[{broker}]", f"beat_epoch[{broker}]"), -1)
        cells |= dict.fromkeys((f"{name}[{broker}]" for name in ("beat_end", "wants_fence", "wants_stop")), 0)
        for number in range(partitions):
            where = f"[{broker}][{number}]"
            names = ("asks_epoch", "asks_topic", "asks_leader_epoch", "asks_partition_epoch")
            cells |= dict.fromkeys((f"{name}{where}" for name in names), -1)
            cells[f"asks_isr{where}"] = ()
            cells |= dict.fromkeys((f"asks_member_epoch{where}[{each}]" for each in brokers), -1)
    return cells
