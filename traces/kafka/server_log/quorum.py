"""What a quorum's nodes have printed of the metadata log, as a trace: Kafka's controllers, from their first start on.

As for partitions (``moves.py``, ``order.py``) a line is one or several steps with what it shows of the state after
them, only a few offsets are watched, and the order between nodes is looked for with the model. Nodes print which state
they are in, what their log has and what they know to be committed; what they send each other is not needed. So some
steps come with the line that could not be without them: a candidate counts votes before it leads, a leader counts
fetches before it commits, and who has fetched has synced.

Kafka counts epochs from 0, in which nobody has stood yet; the model's first one is Kafka's second.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from pathlib import Path
from typing import Final

from ....model.core.protocol import TracedProtocol
from ...format import Trace, TraceHeader, Value
from ...run_report import Json
from ...stepper import stepper_for
from .history import MAX_EPOCHS, MAX_WATCHED
from .moves import Move, Step
from .order import BUDGET, in_order
from .quorum_lines import QuorumEntry, read_quorum_logs
from .quorum_words import (
    LOG,
    NOBODY,
    Asks,
    Becomes,
    BeginsAnew,
    Beyond,
    Cleans,
    Commits,
    GivesUp,
    Grows,
    Installs,
    Loads,
    Publishes,
    Shrinks,
    Snaps,
    Starts,
)
from .traces import LogReport

MAX_VOTERS: Final = 5
"""The model counts the fetches of so many."""
Rows = tuple[tuple[Step, ...], ...]


def trace_of_quorum(paths: Sequence[Path], traced: TracedProtocol, budget: int = BUDGET) -> LogReport:
    """The trace of the metadata log, of a variant for what Kafka's quorum does.

    It is complete: a step that no line tells of did not happen, but for those that come with one. What observers (a
    broker) have printed is left out. Raises BadInput for files that are no such logs.
    """
    printed = read_quorum_logs(paths)
    states = [each.said for log in printed.values() for each in log if isinstance(each.said, Becomes)]
    nodes = sorted(frozenset[int]().union(*(each.voters for each in states)))
    if not 1 <= len(nodes) <= MAX_VOTERS:
        return LogReport(LOG, None, f"it has {len(nodes)} voters, and a quorum of {MAX_VOTERS} at most is told")
    missing = [node for node in nodes if node not in printed]
    if missing:
        return LogReport(LOG, None, f"there is no log of node {missing[0]}, which votes")
    logs, why = _supported({node: printed[node] for node in nodes})
    for node in nodes:
        first = next((each.said for each in logs[node] if isinstance(each.said, Becomes)), None)
        if first is None or first.epoch != 0 or first.before is not None:
            return LogReport(LOG, None, f"the log of node {node} does not begin where it was first started")
    watched = _watched(logs)
    number = {node: replica for replica, node in enumerate(nodes)}
    moves = {node: list(_Node(node, number, watched).moves(logs[node])) for node in nodes}
    epochs = [each.said.epoch - 1 for log in logs.values() for each in log if isinstance(each.said, Becomes)]
    constants = quorum_constants(len(nodes), len(watched), max(0, *epochs))
    stepper = stepper_for(traced, constants, often=False)
    found = in_order(stepper, moves, budget, nodes if why else ())
    if not found.certain and found.refused is not None:
        line = f"{found.refused.entry.file}, line {found.refused.entry.line}"
        if found.tried >= budget:
            why = f"{found.tried:,} moves were tried, and no order was found: {line}, is not explained"
    source: dict[str, Json] = {
        "partition": LOG,
        "nodes": {str(replica): node for node, replica in number.items()},
        "offsets": {str(offset): real for offset, real in enumerate(watched)},
        "moves tried": found.tried,
    }
    header = TraceHeader(
        traced.protocol.name, traced.variant.name, constants, complete=True, source=source, partial=why
    )
    return LogReport(LOG, Trace(header, found.events), why, found.tried, found.refused is None)


def quorum_constants(replicas: int, log_size: int, max_leader_epoch: int) -> dict[str, int]:
    """The model's constants for a quorum of real nodes, of which everybody votes."""
    return {
        "replicas": replicas,
        "observers": 0,
        "log_size": log_size,
        "max_leader_epoch": max_leader_epoch,
        "max_chunks": 1,
        "minimum_records": 0,
        "late_responses": 0,
        "lag_expires": 0,
    }


def _supported(printed: Mapping[int, Sequence[QuorumEntry]]) -> tuple[dict[int, list[QuorumEntry]], str | None]:
    """The lines up to where some node does what no step is read of, and what that was."""
    ends = [
        (each.at, f"node {node}: {each.said.what}")
        for node, log in printed.items()
        for each in log
        if isinstance(each.said, Beyond)
    ]
    ends += [
        (at, f"node {node}: its log begins elsewhere") for node, log in printed.items() for at in _thrown_away(log)
    ]
    ends += [
        (each.at, f"node {node} is in epoch {each.said.epoch}")
        for node, log in printed.items()
        for each in log
        if isinstance(each.said, Becomes) and each.said.epoch > MAX_EPOCHS
    ]
    end, why = min(ends, default=(None, None))
    kept = {node: [each for each in log if end is None or each.at < end] for node, log in printed.items()}
    return kept, why


def _thrown_away(log: Sequence[QuorumEntry]) -> Iterator[int]:
    """When a node threw all of its log away, and did not say that it had fetched a snapshot, before it started anew."""
    at: int | None = None
    for entry in log:
        match entry.said:
            case BeginsAnew():
                at = entry.at
            case Installs():
                at = None
            case Starts() if at is not None:
                yield at
                at = None
    if at is not None:
        yield at


def _watched(logs: Mapping[int, Sequence[QuorumEntry]]) -> list[int]:
    """The offsets that are watched: where epochs begin, where logs were cut, before a snapshot's end, and the last."""
    found, last = {0}, 0
    for log in logs.values():
        begins = False
        end = 0
        for entry in log:
            match entry.said:
                case Becomes(state="Leader"):
                    begins = True
                case Grows(end=new):
                    if begins:
                        found.add(end)
                    begins, end = False, new
                    last = max(last, new - 1)
                case Shrinks(end=cut):
                    found.add(cut)
                    end = cut
                case Snaps(end=snapped) if snapped:
                    found.add(snapped - 1)
                case Installs(end=snapped):
                    end = snapped
    return [*sorted(found - {last})[: MAX_WATCHED - 1], last]


@dataclass
class _Node:
    """A node, as its lines tell: what it was when it printed the next one. Offsets and epochs are Kafka's."""

    node: int
    number: Mapping[int, int]
    watched: Sequence[int]
    state: str = ""
    epoch: int = 0
    leader: int = NOBODY
    voted: int = NOBODY
    end: int = 0
    hw: int = 0
    lbo: int = 0
    snapped: int = 0
    loaded: int = 0
    """The end of the latest snapshot, and of the one that was loaded: these four as the model has them."""
    fetching: bool = False
    others: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.me = self.number[self.node]
        self.others = [replica for replica in self.number.values() if replica != self.me]

    def moves(self, log: Sequence[QuorumEntry]) -> Iterator[Move]:
        """Its lines as moves."""
        for entry in log:
            found = self._move(entry)
            if found is not None:
                rows, observed = found
                yield Move(entry, self.node, rows, observed)

    def _at(self, offset: int) -> int:
        return bisect_left(self.watched, offset)

    def _move(self, entry: QuorumEntry) -> tuple[Rows, dict[str, Value]] | None:
        me = self.me
        match entry.said:
            case Becomes() as said:
                return self._becomes(said)
            case Grows(end=end):
                count, self.end = self._at(end) - self._at(self.end), end
                if count <= 0:
                    return None
                sync: Step = ("sync", {"replica": me})
                if self.state == "Leader":
                    step: Step = ("client_append", {"leader": me})
                else:
                    step = ("follower_fetch", {"leader": self.number.get(self.leader, me), "follower": me})
                return ((*(step,) * count, sync),), {f"leo[{me}]": self._at(end)}
            case Shrinks(end=end) if end < self.end:
                before, self.end = self._at(self.end), end
                if self._at(end) == before:
                    return None
                step = ("follower_truncate", {"leader": self.number.get(self.leader, me), "follower": me})
                return ((step,),), {f"leo[{me}]": self._at(end)}
            case Commits(hw=hw, leads=leads) if self._at(hw) > self.hw:
                count, self.hw = self._at(hw) - self.hw, self._at(hw)
                observed: dict[str, Value] = {f"hw[{me}]": self.hw, f"leo[{me}]": self._at(self.end)}
                if leads:
                    return tuple(self._commits(count)), observed
                fetch: Step = ("follower_fetch", {"leader": self.number.get(self.leader, me), "follower": me})
                return ((), (fetch,)), observed
            case Snaps(end=end) if self._at(end) > self.snapped:
                self.snapped = self._at(end)
                step = ("generate_snapshot", {"replica": me, "offset": self.snapped - 1, "more": 0})
                return ((step,),), {f"snapshot_size[{me}][{self.snapped - 1}]": 1}
            case Cleans(start=start) if self._at(start) > self.lbo:
                self.lbo = self._at(start)
                return ((("delete_before_snapshot", {"replica": me, "lbo": self.lbo}),),), {f"lbo[{me}]": self.lbo}
            case Asks() | Installs() | GivesUp() as said:
                return self._fetches(said)
            case Loads(end=end):
                self.loaded = self._at(end)
                if self.loaded > self.lbo or self.loaded == self.lbo > 0:
                    return ((),), {f"snapshot_size[{me}][{self.loaded - 1}]": 1}
            case Publishes(end=end) if self._at(end) > max(self.hw, self.loaded):
                # It learns what is committed, and no more: by another thread, behind the line that says so.
                return ((),), {f"hw[{me}]": self._at(end)}
        return None

    def _fetches(self, said: Asks | Installs | GivesUp) -> tuple[Rows, dict[str, Value]]:
        """A snapshot that is fetched, as far as its lines tell."""
        me = self.me
        pair = {"leader": self.number.get(self.leader, me), "follower": me}
        match said:
            case Asks(end=end, has_it=has_it):
                self.fetching = not has_it
                return ((("follower_start_over", pair),),), {f"fetching[{me}]": -1 if has_it else self._at(end) - 1}
            case Installs(end=end):
                self.end, at = end, self._at(end)
                self.lbo = self.hw = self.snapped = at
                self.fetching = False
                observed: dict[str, Value] = {f"{name}[{me}]": at for name in ("lbo", "leo", "hw")}
                return ((("fetch_snapshot", pair),),), observed | {f"snapshot_size[{me}][{at - 1}]": 1}
            case GivesUp():
                self.fetching = False
                return ((("rediscover_at", pair),),), {f"fetching[{me}]": -1}

    def _commits(self, count: int) -> Iterator[tuple[Step, ...]]:
        """A leader has counted fetches, of as many as it takes, and commits; it may have counted them before."""
        raised: tuple[Step, ...] = (("raise_high_watermark", {"leader": self.me}),) * count
        for size in range(len(self.others) + 1):
            for some in combinations(self.others, size):
                counts = tuple(("count_fetch", {"leader": self.me, "follower": each}) for each in some)
                yield (*counts, *raised)

    def _becomes(self, said: Becomes) -> tuple[Rows, dict[str, Value]] | None:
        me, newer = self.me, said.epoch > self.epoch
        leader, voted = self.number.get(said.leader), self.number.get(said.voted)
        starts = said.before is None
        known = (self.state, self.epoch, self.leader, self.voted)
        gives_up, self.fetching = self.fetching and not newer and not starts, False
        self.state, self.epoch, self.leader, self.voted = said.state, said.epoch, said.leader, said.voted
        observed: dict[str, Value] = {
            f"leader_epoch[{me}]": said.epoch - 1,
            f"leader[{me}]": me if said.state == "Leader" else leader,
            f"leo[{me}]": self._at(self.end),
        }
        if said.state not in ("Leader", "Resigned"):
            # Those print no vote.
            observed[f"voted[{me}]"] = me if said.state == "Candidate" else voted
        if starts:
            self.hw, self.loaded = self.lbo, 0
            if known[0] == "":
                return ((),), observed
            return ((("resume", {"replica": me, "end": self._at(self.end)}),),), observed
        hears: list[tuple[Step, ...]] = [()]
        if newer:
            hears = [(("hear_of_epoch", {"replica": me, "teller": each}),) for each in self.others]
            hears += [(("learn_leader", {"replica": me, "teller": each}),) for each in self.others]
            hears.append((("leave_epoch", {"replica": me}),))
        elif gives_up:
            hears = [(("give_up_snapshot", {"replica": me}),)]
        match said.state:
            case "Candidate":
                return ((("stand", {"replica": me, "epoch": said.epoch - 1}),),), observed
            case "Leader":
                return tuple(self._elected()), observed
            case "Resigned":
                return ((("resign", {"leader": me}),),), observed
            case "Follower":
                return tuple(self._follows(self.number.get(said.leader, me))), observed
            case "Prospective" if known[0] == "Candidate" and not newer:
                return ((("lose_election", {"replica": me}),),), observed
        if voted is not None and (newer or known[3] != said.voted):
            gives: Step = ("give_vote", {"candidate": voted, "voter": me})
            return tuple((*each, gives) for each in hears), observed
        return tuple(hears), observed

    def _elected(self) -> Iterator[tuple[Step, ...]]:
        takes: Step = ("take_office", {"replica": self.me})
        for size in range(len(self.others) + 1):
            for some in combinations(self.others, size):
                yield (*(("count_vote", {"candidate": self.me, "voter": each}) for each in some), takes)

    def _follows(self, leader: int) -> Iterator[tuple[Step, ...]]:
        yield (("begin_epoch", {"leader": leader, "follower": self.me}),)
        for each in self.others:
            yield (("learn_leader", {"replica": self.me, "teller": each}),)
        yield (("learn_resigned_leader", {"replica": self.me, "teller": leader}),)
        yield (("end_epoch", {"leader": leader, "follower": self.me}),)
        yield ()
