"""The id of the node that logged a message."""

from __future__ import annotations

import re

_NODE = re.compile(
    r"\[Partition \S+ broker=(\d{1,10})\]"
    r"|Partition \[\S+\] on broker (\d{1,10}):"
    r"|\[[A-Z][\w -]{0,60}? (?:id|broker|brokerId|nodeId|controllerId|replicaId)=(\d{1,10})[\],: ]"
    r"|\[\w{1,60} [oO]n [bB]roker (\d{1,10})\]"
    r"|\[[A-Z][a-z]{1,20} (?:Manager|state machine) on (?:Broker|Controller) (\d{1,10})\]"
    r"|\[Controller (\d{1,10})\]"
    r"|\[(?:Kafka Server|KafkaServer id=) ?(\d{1,10})\]"
    r"|(?:Broker|Controller) (\d{1,10}) (?:epoch|skipped|received|ignoring|handling)"
)


def node_id_of(message: str) -> int | None:
    """The id that Kafka puts at the start of a message of its own node, such as ``[Broker id=1]``."""
    found = _NODE.match(message)
    if found is None:
        return None
    return int(next(each for each in found.groups() if each is not None))
