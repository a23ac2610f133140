"""What a producer and a consumer ask of Apache Kafka's brokers, and what they are told."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Produce:
    """A client sends a record, and is no idempotent producer: what comes twice is two records."""

    payload: str


@dataclass(frozen=True)
class ProduceAnswer:
    """The record is taken as its producer has asked (``acks``), at this offset, or refused."""

    error: str
    offset: int
    payload: str


@dataclass(frozen=True)
class Read:
    """A consumer asks for what comes from an offset on."""

    offset: int


@dataclass(frozen=True)
class ReadAnswer:
    """Offsets and payloads."""

    error: str
    records: tuple[tuple[int, str], ...]
