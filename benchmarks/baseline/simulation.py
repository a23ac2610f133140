"""How soon simulation detects each planned defect, and what it reaches without one.

Random draws shift with the code, so ``compare`` takes these values as distributions.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from .adapter import detect_planned, planned_defects
from .command import run_alone, show
from .item import Item

PART: Final = "simulation"
EVENTS: Final = 2_000
"""Limit of the events up to the first detection of a defect."""


def simulation_items(seeds: int) -> Iterator[Item]:
    """Return reach by protocol, then each seed of all defects, so that a sample has all defects."""
    for each in show("protocols")["protocols"]:
        name = each["protocol"]
        yield Item(PART, f"reach/{name}/{seeds}", partial(measure_reach, name, seeds))
    for seed in range(seeds):
        for name, defect in planned_defects():
            yield Item(PART, f"detection/{name}/{defect}/{seed}", partial(detect, name, defect, seed))


def measure_reach(protocol: str, runs: int) -> Any:
    """Return the actions taken, guards that never refused, and lines executed in simulated runs."""
    options = ["--way", "free", "--runs", str(runs), "--jobs", "1", "--json"]
    found = run_alone("conform", "--protocol", protocol, *options)
    if not isinstance(found.value, dict):
        return {"exit_code": found.exit_code, "errors": found.errors[-500:]}
    free = found.value["free"]
    source = free["source"] or {}
    return {
        "exit_code": found.exit_code,
        "runs": free["runs"],
        "events": free["events"],
        "actions": free["steps"],
        "guards_never_met": free["guards_never_met"],
        "kinds": free["kinds"],
        "lines": source.get("lines"),
        "executed": source.get("executed"),
        "watched_runs": source.get("watched_runs"),
    }


def detect(protocol: str, defect: str, seed: int) -> Any:
    """Return the events to the first divergence of a system with a planned defect, and the check that reported it."""
    return detect_planned(protocol, defect, seed, EVENTS)
