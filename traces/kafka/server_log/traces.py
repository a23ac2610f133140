"""From Kafka's server logs to traces, one of each partition."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from ....model.core.registry import REGISTRY
from ...format import Trace, TraceHeader
from ...run_report import Json
from ...stepper import stepper_for
from .history import History, NoHistoryError, history_of, watched_of
from .lines import read_server_logs
from .moves import moves_of
from .order import BUDGET, in_order

_FENCED: Final = "the controller has taken a broker out of the ISR by itself, for which this variant has no step"


@dataclass(frozen=True)
class LogReport:
    """What came of a partition. ``trace`` None: nothing, and ``why``; with a trace, why it ends early, if it does."""

    name: str
    trace: Trace | None
    why: str | None = None
    tried: int = 0
    explained: bool = False
    """Whether an order was found in which the model explains all of it."""


def traces_of_logs(paths: Sequence[Path], variant: str, budget: int = BUDGET) -> Iterator[LogReport]:
    """The traces of all partitions that these nodes printed something of. Raises BadInput for files that are no logs.

    Each is complete: a step that no line tells of did not happen. Where the model explains the lines in no order at
    all, the trace ends with the first line that it refuses.
    """
    printed = read_server_logs(paths)
    for name in sorted({name for log in printed.nodes.values() for name in log} | printed.decided.keys()):
        try:
            history = history_of(printed, name)
        except NoHistoryError as why:
            yield LogReport(name, None, str(why))
            continue
        yield _report(history, variant, budget)


def _report(history: History, variant: str, budget: int) -> LogReport:
    watched, history = watched_of(history)
    of_logs = REGISTRY.of_brokers_logs
    traced = of_logs.protocol.traced(variant)
    moves = moves_of(history, watched, fences="controller_fence_follower" in {each.name for each in traced.actions})
    steps = [step for queue in moves.values() for move in queue for step in move.rows[0]]
    constants = {
        "replicas": len(history.replicas),
        "log_size": len(watched),
        "max_records": max(1, sum(action == "leader_write" for action, _ in steps)),
        "max_leader_epoch": max([1, *(params["epoch"] for _, params in steps if "epoch" in params), _last(history)]),
    }
    stepper = stepper_for(traced, constants, often=False)
    found = in_order(stepper, moves, budget, history.cut)
    why = history.ended
    if not found.certain and found.refused is not None:
        line = f"{found.refused.entry.file}, line {found.refused.entry.line}"
        if found.tried >= budget:
            why = f"{found.tried:,} moves were tried, and no order was found: {line}, is not explained"
        elif why is None:
            why = f"{line}, is not explained; {_FENCED}"
    source: dict[str, Json] = {
        "partition": history.name,
        "brokers": {str(replica): node for replica, node in enumerate(history.replicas)},
        "offsets": {str(offset): real for offset, real in enumerate(watched)},
        "moves tried": found.tried,
    }
    header = TraceHeader(of_logs.name, variant, constants, complete=True, source=source, partial=why)
    return LogReport(history.name, Trace(header, found.events), why, found.tried, found.refused is None)


def _last(history: History) -> int:
    """The last leader epoch that the controller began."""
    return max(getattr(entry.said, "epoch", None) or 0 for entry in history.decided)
