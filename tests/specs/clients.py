"""What the modules of running consumers have in common: ``specs/ClientPartition.tla``, and how a test reads it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from fencepost.model.core.ground import State, System
from fencepost.model.protocols.truncation.state import Outcome

from .modules import Module

VARIANTS = ("kip-320-kafka", "kip-320-kafka-ends", "kip-320-kafka-late", "kip-320-kafka-shipped")
"""The variants of Apache Kafka's consumer."""

PARTITION = {
    "nextRecordId": ("next_record_id",),
    "elections": ("quorum_leader_epoch", "epoch_leader", "epoch_unclean"),
    "replicaLog": ("log_start", "leo", "record_id", "record_epoch"),
    "replicaState": ("hw", "leader_epoch", "leading"),
    "answer": ("outcome", "answered_epoch", "reported", "reported_epoch", "told"),
    "committed": ("committed", "committed_epoch", "committed_seen"),
    "acknowledged": ("acknowledged", "acknowledged_epoch", "acknowledged_seen"),
    "refused": ("refused", "refused_epoch", "refused_seen"),
    "foundAgain": ("found_again",),
}
"""Our names for the cells of those TLA+ variables that say nothing of the consumer itself."""


def steps_of(module: Module, name: str = "Next") -> list[str]:
    """The actions of ``Next``, those of the parts among them that it is put together from; sorted."""
    steps = re.findall(r"^ *\\/ (?:\\E [^:]+ : )?(\w+)", module.definitions[name].text, flags=re.MULTILINE)
    return sorted(each for step in steps for each in (steps_of(module, step) if step.endswith("Next") else [step]))


class Cells:
    """A state's cells, as records and functions of a module."""

    def __init__(self, system: System, state: State) -> None:
        self.of = {each.name: state[each.number] for each in system.layout.cells}
        self.replicas = range(system.constants["replicas"])
        self.offsets = range(system.constants["log_size"])

    def named(self, **names: str) -> dict[str, int]:
        return {tla: self.of[ours] for tla, ours in names.items()}

    def records(self, name: str, place: str = "") -> dict[int, dict[str, int]]:
        return {
            o: {"id": self.of[f"{name}_id{place}[{o}]"], "epoch": self.of[f"{name}_epoch{place}[{o}]"]}
            for o in self.offsets
        }

    def _commit(self, name: str) -> dict[str, int]:
        return self.named(offset=name, epoch=f"{name}_epoch", seen=f"{name}_seen")

    def partition(self) -> Mapping[str, Any]:
        """The variables of ``PARTITION``."""
        return {
            "nextRecordId": self.of["next_record_id"],
            "elections": [
                self.named(leader=f"epoch_leader[{epoch}]", unclean=f"epoch_unclean[{epoch}]")
                for epoch in range(self.of["quorum_leader_epoch"] + 1)
            ],
            "replicaLog": {
                r: self.named(start=f"log_start[{r}]", end=f"leo[{r}]") | {"records": self.records("record", f"[{r}]")}
                for r in self.replicas
            },
            "replicaState": {
                r: self.named(hw=f"hw[{r}]", leaderEpoch=f"leader_epoch[{r}]", leading=f"leading[{r}]")
                for r in self.replicas
            },
            "answer": {
                "outcome": Outcome.names[self.of["outcome"]],
                **self.named(answeredEpoch="answered_epoch", reported="reported", reportedEpoch="reported_epoch"),
                **self.named(told="told"),
            },
            "committed": self._commit("committed"),
            "acknowledged": self._commit("acknowledged"),
            "refused": self._commit("refused"),
            "foundAgain": self.of["found_again"],
        }
