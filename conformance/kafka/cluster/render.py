"""A story as it is carried out on a cluster: numbered steps, each with all brokers' logs as they are after it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....traces.kafka.cluster import BROKER_IDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from ....traces.kafka.image import PartitionState
    from .stage import Stage, Stored


@dataclass(frozen=True)
class Told:
    """One step: what was done or seen, and the brokers' logs after it."""

    what: str
    logs: dict[int, list[Stored]]

    def lines(self, number: int) -> list[str]:
        """As text."""
        shown = "   ".join(f"{broker}: [{' '.join(map(str, log))}]" for broker, log in self.logs.items())
        return [f"{number:3}  {self.what}", f"     {shown}"]


class Telling:
    """The steps of a story. ``say`` gets each line as it comes."""

    def __init__(self, stage: Stage, topic: str, say: Callable[[str], None]) -> None:
        """``topic``: the one whose logs are told, unless a step is about another."""
        self._stage = stage
        self._say = say
        self.topic = topic
        self.steps: list[Told] = []

    def tell(self, what: str, topic: str | None = None) -> None:
        """Something was done, or seen."""
        about = topic or self.topic
        told = Told(what, {broker: self._stage.log(broker, about) for broker in BROKER_IDS})
        self.steps.append(told)
        for line in told.lines(len(self.steps)):
            self._say(line)


def decided(state: PartitionState) -> str:
    """What the controller has decided, in words."""
    return f"epoch {state.leader_epoch}, ISR {' '.join(map(str, state.isr))}"
