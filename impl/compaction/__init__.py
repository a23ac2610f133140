"""The log cleaner, with the strategies of KIP-280; and what producers and consumers of a compacted topic need."""

from .cleaner import Cleaned, Cleaner
from .config import CleanerConfig, CompactionConfig, InvalidConfig, topic_config
from .edge import refused
from .manager import Cleanable, LogCleaner
from .offset_map import OffsetMap
from .strategy import ABSENT, Kind, Strategy
from .table import Table

__all__ = [
    "ABSENT",
    "Cleanable",
    "Cleaned",
    "Cleaner",
    "CleanerConfig",
    "CompactionConfig",
    "InvalidConfig",
    "Kind",
    "LogCleaner",
    "OffsetMap",
    "Strategy",
    "Table",
    "refused",
    "topic_config",
]
