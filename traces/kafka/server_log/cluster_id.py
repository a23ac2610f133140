"""The id of the cluster to which the process that logged a message belongs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

_ID: Final = r"([A-Za-z0-9_-]{1,64})"
_PATTERNS: Final[Mapping[str, re.Pattern[str]]] = {
    "KafkaServer": re.compile(rf"(?:\[KafkaServer id=\d+\] )?Cluster ID = {_ID}"),
    "QuorumController": re.compile(rf"\[[^\]]{{1,80}}\] Creating new QuorumController with clusterId {_ID}"),
    "BrokerLifecycleManager": re.compile(rf"\[\w+ id=\d+\] Incarnation \S+ of broker \d+ in cluster {_ID} is now "),
}


def cluster_id_of(logger_class: str, message: str) -> str | None:
    """The cluster's id, if the message of this logger names it: brokers and controllers do so when they start."""
    pattern = _PATTERNS.get(logger_class)
    found = None if pattern is None else pattern.match(message)
    return None if found is None else found[1]
