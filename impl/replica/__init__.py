"""The broker node and its replicas: leader and follower roles, fencing, truncation, high watermark, ISR (KIP-320)."""

from .acl import ANY, Acl, AclTable, AllowAll, Authorizer, Kind, Operation
from .broker import HIGH_WATERMARKS, RECOVERY_POINTS, Broker, OffsetHandler
from .config import BrokerConfig
from .partition import Partition, PartitionState, Role

__all__ = [
    "ANY",
    "HIGH_WATERMARKS",
    "RECOVERY_POINTS",
    "Acl",
    "AclTable",
    "AllowAll",
    "Authorizer",
    "Broker",
    "BrokerConfig",
    "Kind",
    "OffsetHandler",
    "Operation",
    "Partition",
    "PartitionState",
    "Role",
]
