"""Who may do what (``org.apache.kafka.server.authorizer``): an interface, one that allows all, and one by a table."""

from __future__ import annotations

from collections.abc import Iterable
from enum import Enum
from typing import NamedTuple, Protocol

from ..wire.messages import BROKER_PRINCIPAL

CLUSTER = "kafka-cluster"
"""The name of the one cluster resource."""
ANY = "*"
"""In an entry of the table: every principal, or every name."""


class Operation(Enum):
    """Operations of Kafka's ACLs."""

    READ = "Read"
    WRITE = "Write"
    DELETE = "Delete"
    DESCRIBE = "Describe"
    CLUSTER_ACTION = "ClusterAction"
    """What brokers do among themselves: the old right to OffsetsForLeaderEpoch."""


class Kind(Enum):
    """Kinds of resources."""

    TOPIC = "Topic"
    GROUP = "Group"
    CLUSTER = "Cluster"


class Authorizer(Protocol):
    """Decides each request by itself; has no state that a request changes."""

    def authorize(self, principal: str, operation: Operation, kind: Kind, name: str) -> bool:
        """Whether ``principal`` may do this to the resource called ``name``."""


class AllowAll:
    """No ACLs: everyone may do everything."""

    def authorize(self, principal: str, operation: Operation, kind: Kind, name: str) -> bool:  # noqa: ARG002
        """Yes."""
        return True


class Acl(NamedTuple):
    """One right. ``principal`` and ``name`` may be ``ANY``."""

    principal: str
    operation: Operation
    kind: Kind
    name: str


class AclTable:
    """Allows what an entry allows; super users everything. Read, Write and Delete imply Describe, as in Kafka."""

    def __init__(self, entries: Iterable[Acl], super_users: Iterable[str] = (BROKER_PRINCIPAL,)) -> None:
        self._entries = frozenset(entries)
        self._super_users = frozenset(super_users)

    def authorize(self, principal: str, operation: Operation, kind: Kind, name: str) -> bool:
        """Whether the table has the right, or one that implies it."""
        if principal in self._super_users:
            return True
        operations = [operation]
        if operation is Operation.DESCRIBE:
            operations += [Operation.READ, Operation.WRITE, Operation.DELETE]
        return any(
            Acl(who, what, kind, which) in self._entries
            for what in operations
            for who in (principal, ANY)
            for which in (name, ANY)
        )
