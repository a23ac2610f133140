"""Unclean leader elections in the metadata log, and whether the directories show their cost.

An election is unclean if the new leader was neither in the last non-empty ISR nor an eligible leader replica (KIP-966).
``LeaderRecoveryState`` alone does not decide: Kafka 4 also sets it when the last ISR member returns from a crash.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..text import brokers_named, counted
from .epoch_conflicts import conflicting_rows, latest_epoch
from .truncation import effective_epochs
from .verdicts import CheckResult

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .cross_checks import Replica
    from .image import MetadataImage, PartitionState
    from .partition import PartitionFiles

NAME = "unclean_election_losses_known"


@dataclass(frozen=True, slots=True)
class UncleanElection:
    """One unclean election of a partition.

    ``last_isr`` is the last ISR with a member before it; ``None`` if the metadata log here begins later.
    """

    topic: str
    partition: int
    leader: int
    leader_epoch: int
    metadata_offset: int
    last_isr: tuple[int, ...] | None

    def __str__(self) -> str:
        isr = "is not in this metadata log" if self.last_isr is None else f"was {list(self.last_isr)}"
        return (
            f"broker {self.leader} was elected uncleanly in leader epoch {self.leader_epoch} "
            f"(metadata offset {self.metadata_offset}); the last ISR {isr}"
        )

    def to_json(self) -> dict[str, Any]:
        """All fields, and the sentence."""
        return {
            "topic": self.topic,
            "partition": self.partition,
            "leader": self.leader,
            "leader_epoch": self.leader_epoch,
            "metadata_offset": self.metadata_offset,
            "last_isr": None if self.last_isr is None else list(self.last_isr),
            "sentence": str(self),
        }


def unclean_elections(image: MetadataImage, topic: str, partition: int) -> tuple[UncleanElection, ...]:
    """The unclean elections of one partition, oldest first, as far back as log and snapshot go."""
    found: list[UncleanElection] = []
    before: PartitionState | None = None
    last_isr: tuple[int, ...] | None = None
    for state in image.history(topic, partition):
        if _elected_uncleanly(before, state, last_isr):
            found.append(UncleanElection(topic, partition, state.leader, state.leader_epoch, state.offset, last_isr))
        last_isr = state.isr or last_isr
        before = state
    return tuple(found)


def may_lose_committed(image: MetadataImage, topic: str, partition: int) -> bool:
    """Whether an election of the partition may have lost committed records, as far as log and snapshot go.

    It was unclean, or its leader recovers: the last member of an ISR that returns from a crash may lack its end.
    """
    recovers = any(state.leader_recovery_state for state in image.history(topic, partition))
    return recovers or bool(unclean_elections(image, topic, partition))


def _elected_uncleanly(before: PartitionState | None, state: PartitionState, last_isr: tuple[int, ...] | None) -> bool:
    if state.leader < 0:
        return False
    if before is None:
        # A snapshot keeps the state of the partition and not the election behind it.
        return state.leader_recovery_state != 0
    if state.leader_epoch == before.leader_epoch or state.leader == before.leader:
        return False
    if last_isr is None:
        return state.leader_recovery_state != 0
    return state.leader not in last_isr and state.leader not in before.elr


def check_unclean_elections(
    replicas: Sequence[Replica], elections: Sequence[UncleanElection], subject: str, *, proven: bool
) -> list[CheckResult]:
    """Each unclean election that the directories do not show to be harmless is ``unknown``.

    The log of a member of the last ISR decides, as long as it has not followed the new leader: its records either
    conflict with the new leader's epoch (``losses.py`` reports those below the high watermark) or all survived.
    Partitions without an unclean election have no result. ``proven``: whether a loss is proven already.
    """
    results: list[CheckResult] = []
    for election in elections:
        doubts = _doubts(replicas, election)
        where = {"election": election.to_json()}
        if doubts:
            what = "whether more was lost" if proven else "the loss"
            message = f"{election}; {'; '.join(doubts)}, so {what} is unknown"
            results.append(CheckResult(NAME, "unknown", subject, message, data=where))
        else:
            message = f"{election}; the logs of that ISR show what was lost"
            results.append(CheckResult(NAME, "holds", subject, message, data=where))
    return results


def _doubts(replicas: Sequence[Replica], election: UncleanElection) -> list[str]:
    """Why the directories do not decide what an election cost; empty if they do."""
    if election.last_isr is None:
        return ["who may have held more records is not known"]
    by_node = {node: (label, files) for label, node, files in replicas}
    whole = [files for _, _, files in replicas if not files.damaged]
    reference = next((files for files in whole if latest_epoch(files) >= election.leader_epoch), None)
    entries = [] if reference is None else effective_epochs(reference)
    start = next((entry.start_offset for entry in entries if entry.epoch >= election.leader_epoch), None)
    doubts: list[str] = []
    missing = [f"broker {node}" for node in election.last_isr if node not in by_node]
    if missing:
        named, alone = brokers_named(missing), len(missing) == 1
        doubts.append(f"{named}'s directory is missing" if alone else f"the directories of {named} are missing")
    by_doubt: dict[tuple[str, str], list[str]] = {}
    for label, files in (by_node[node] for node in election.last_isr if node in by_node):
        doubt = _doubt(files, election, reference, start)
        if doubt is not None:
            by_doubt.setdefault(doubt, []).append(label)
    for (one, many), labels in by_doubt.items():
        doubts.append((one if len(labels) == 1 else many).format(brokers_named(labels)))
    return doubts


def _doubt(
    files: PartitionFiles, election: UncleanElection, reference: PartitionFiles | None, start: int | None
) -> tuple[str, str] | None:
    """Why the log of one member of the last ISR does not decide: of one broker, and of several; ``{}`` names them."""
    if files.unread is not None:
        reason = files.unread.replace("{", "{{").replace("}", "}}")
        return f"{{}}'s log was not read ({reason})", f"the logs of {{}} were not read ({reason})"
    if files.damaged:
        return "part of {}'s log could not be read", "parts of the logs of {} could not be read"
    if latest_epoch(files) >= election.leader_epoch:
        after = "followed a later leader and may have truncated"
        return f"{{}} has {after}", f"{{}} have {after}"
    if reference is None or start is None:
        return (f"no directory shows where leader epoch {election.leader_epoch} starts",) * 2
    mark = files.high_watermark
    if mark is None:
        return "{} has no high watermark", "{} have no high watermark"
    if 0 < start <= reference.log_start and files.log_start < start:
        return (f"the log of that epoch starts at {start} now, where deletion may hide the loss",) * 2
    rows = conflicting_rows(reference, files)
    above = int((files.records.offset[rows] >= mark).sum())
    if above and not len(rows) - above:
        what, may = counted(above, "record"), f"checkpointed high watermark {mark} that may have been committed"
        return f"{{}} has {what} above its {may}", f"{{}} have {what} each above their {may}"
    return None
