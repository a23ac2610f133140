"""Planting faults into the traces of one file, and the ground truth of it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...model.core.enum_value import plain_params
from ..run_report import Json
from .draws import Purpose
from .plan import Plan
from .walk import Rows, Walker, Walks


@dataclass(frozen=True)
class Planted:
    """One row of ``planted.jsonl``: at which step of a trace a fault shows for the first time, and how.

    ``guard``: by which the variant refuses the step; None where it takes it with another effect on ``variables``.
    """

    trace: int
    fault: str
    step: int
    action: str
    params: tuple[tuple[str, int], ...]
    guard: str | None
    variables: tuple[str, ...]

    def to_json(self) -> dict[str, Json]:
        """The row as a JSON object."""
        return {
            "trace": self.trace,
            "fault": self.fault,
            "step": self.step,
            "action": self.action,
            "params": plain_params(self.params),
            "guard": self.guard,
            "variables": list(self.variables),
        }


def plant(who: Walker, plan: Plan, walks: Walks) -> tuple[list[Planted], Rows]:
    """Walk those of the walks that the plan picks: along the path to a place, its step, and on under the fault.

    Returns the ground truth, in the order of the traces, and the rows of the walks.
    """
    low = int(walks.ids[0])
    ids, faults = plan.among(who.draws, low, low + walks.ids.size)
    rows: Rows = (ids - low).astype(np.intp)
    counts = np.array([len(places) for places in plan.places], dtype=np.int64)
    drawn = who.draws.below(counts[faults], ids, 0, Purpose.PLACE)
    truth = []
    for trace, row, fault, number in zip(ids.tolist(), rows.tolist(), faults.tolist(), drawn.tolist(), strict=True):
        place = plan.places[fault][number]
        steps = len(place.calls)
        walks.calls[:steps, row] = place.calls
        walks.keys[:, :steps, row] = place.keys
        walks.lengths[row] = steps
        action, params = who.calls.all[place.calls[-1]]
        truth.append(Planted(trace, plan.faults[fault], steps, action, params, place.guard, place.variables))
    who.walk(walks, rows, np.array(plan.rules, dtype=np.intp)[faults])
    return truth, rows
