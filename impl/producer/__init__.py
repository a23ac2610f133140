"""The producer: a client whose records are in the log in order and once, whatever is lost or repeated (KIP-98)."""

from .config import BufferExhausted, Delivery, PartitionFailed, ProducerConfig, ProducerError, RecordTooLarge
from .producer import Producer

__all__ = [
    "BufferExhausted",
    "Delivery",
    "PartitionFailed",
    "Producer",
    "ProducerConfig",
    "ProducerError",
    "RecordTooLarge",
]
