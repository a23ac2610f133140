"""Tiered storage (KIP-405): the remote log manager, reads below the local log start, and followers that begin after it.

KIP-1023 is in ``bootstrap.py``. What a replica asks of all this is ``impl/replica/remote.py``.
"""

from .config import TieredTopic, TieringConfig
from .errors import CorruptRemoteMetadata, CorruptRemoteSegment, RemoteStorageError
from .jobs import Jobs, SimulatedJobs, ThreadJobs
from .manager import RemoteLogManager
from .metadata import METADATA
from .remote import RemotePartition
from .segments import RemoteSegment, RemoteSegments, SegmentState
from .store import RemoteStore

__all__ = [
    "METADATA",
    "CorruptRemoteMetadata",
    "CorruptRemoteSegment",
    "Jobs",
    "RemoteLogManager",
    "RemotePartition",
    "RemoteSegment",
    "RemoteSegments",
    "RemoteStorageError",
    "RemoteStore",
    "SegmentState",
    "SimulatedJobs",
    "ThreadJobs",
    "TieredTopic",
    "TieringConfig",
]
