"""What came of one record: what its producer and a consumer were told, and the logs before and after."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .clients import ClientError, Polled

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from .clients import Consumer, Sent
    from .render import Telling
    from .stage import Stage, Stored


@dataclass
class Lost:
    """What came of a record that was sent with ``acks=all``."""

    record: str
    acknowledged: int | None = None
    """The offset that the producer was told, where it was told one."""
    error: str | None = None
    """The simple name of the exception that the producer got instead."""
    read: list[Polled] = field(default_factory=list)
    """What a consumer read from the leader before the last election."""
    read_after: list[Polled] = field(default_factory=list)
    """What the same consumer read after it."""
    thrown: str | None = None
    """What that consumer threw after it."""
    roles: dict[int, list[str]] = field(default_factory=dict)
    """By broker, the lines in which it says which roles it took up."""
    before: dict[int, list[Stored]] = field(default_factory=dict)
    """All logs when the producer had been answered."""
    after: dict[int, list[Stored]] = field(default_factory=dict)
    """All logs in the end."""

    @property
    def lost(self) -> bool:
        """Whether a record that the producer was told to be committed is in no log any more."""
        left = {record.value for log in self.after.values() for record in log}
        return self.acknowledged is not None and self.record not in left

    def words(self) -> str:
        """The same in a sentence."""
        if self.lost:
            return f"{self.record} was acknowledged at offset {self.acknowledged}, and is in no broker's log"
        told = f"acknowledged at offset {self.acknowledged}" if self.error is None else f"refused with {self.error}"
        return f"{self.record} was {told}"


def answered(sent: Sent, found: Lost) -> None:
    """Wait for what the producer is told."""
    try:
        found.acknowledged = sent.offset()
    except ClientError as error:
        found.error = error.name


def ended(consumer: Consumer, found: Lost, told: Telling) -> None:
    """What the consumer sees next, within two seconds."""
    try:
        found.read_after = consumer.poll(2)
    except ClientError as error:
        found.thrown = error.name
    told.tell(f"the consumer goes on: {found.thrown or ', '.join(map(str, found.read_after)) or 'nothing'}")


def left(stage: Stage, topic: str, brokers: Iterable[int], found: Lost, copies: Path | None) -> None:
    """The logs in the end, the roles that the brokers say they took up, and copies of their directories as ``lost``."""
    found.after = stage.logs(topic)
    found.roles = {broker: stage.roles(broker, topic) for broker in brokers}
    if copies is not None:
        stage.copy(copies / "lost")
