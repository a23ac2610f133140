"""Brokers' logs as a trace: one look at the final state, at as many of its cells as the files show."""

from __future__ import annotations

from typing import Final

from ...model.core.registry import REGISTRY
from ..format import Trace, TraceEvent, TraceHeader, Value
from ..kafka.abstraction import ABSENT, Abstraction
from ..run_report import Json

MAX_BLOCKS: Final = 8
"""Logs that differ in more places are not laid out: the model's state would be too large to look at."""


def look_at(target: Abstraction, variant: str, source: dict[str, Json]) -> Trace:
    """The one event: each replica's LEO, the leader epochs of its records, and which offsets hold none.

    Not observed are high watermarks, as a checkpoint lags behind them, and the records' ids: the order in which
    records of different logs were written is not known. A replica without files may hold anything.
    """
    constants = target.constants()
    observed: dict[str, Value] = {}
    for replica in range(len(target.nodes)):
        observed[f"leo[{replica}]"] = target.end(replica)
        for offset, block in enumerate(target.blocks):
            absent = block.identities[replica] == ABSENT
            epoch = ABSENT if absent else target.epochs[block.epochs[replica]]
            observed[f"record_epoch[{replica}][{offset}]"] = epoch
            if absent:
                observed[f"record_id[{replica}][{offset}]"] = ABSENT
    told: dict[str, Json] = {
        **source,
        "brokers": {str(replica): node for replica, node in enumerate(target.nodes)},
        "offsets": {str(offset): [block.first, block.last] for offset, block in enumerate(target.blocks)},
        "leader epochs": {str(model): real for real, model in target.epochs.items()},
    }
    header = TraceHeader(REGISTRY.of_brokers_logs.name, variant, constants, complete=False, source=told)
    return Trace(header, (TraceEvent(1, observed=observed),))


def not_laid_out(target: Abstraction) -> str | None:
    """Why logs cannot be told as a state of the model; None where they can."""
    if target.holes:
        return f"broker {target.holes[0]}'s log lacks offsets that another has (compaction leaves such holes)"
    if len(target.blocks) > MAX_BLOCKS:
        return f"the logs differ in {len(target.blocks)} places; a state is made of up to {MAX_BLOCKS} offsets"
    return None
