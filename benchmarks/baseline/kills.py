"""Which check finds each planned defect, each defect in Kafka's classes, and each mutant of model and source."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, Final

from .adapter import detect_in_kafka, planned_defects
from .command import Outcome, run_alone, show
from .item import Item
from .kafka_plan import KafkaPlan, read_plans
from .normalise import normalise

PART: Final = "kills"
GENERATED, SEEDS_OF_GENERATED = 500, 100
"""Number of generated mutants, and of the seeds that they are drawn from."""
JUDGES: Final = ("explorer", "proof", "hypothesis", "free", "replay")
"""Columns of ``fencepost mutants --json``."""


def kill_items() -> Iterator[Item]:
    """Return planned defects, defects in Kafka's classes, model mutants by action, and generated mutants."""
    for protocol, defect in planned_defects():
        yield Item(PART, f"planned/{protocol}/{defect}", partial(judge_defect, protocol, defect))
    for each in show("protocols")["protocols"]:
        name = each["protocol"]
        for action in show("protocols", name)["actions"]:
            yield Item(PART, f"model/{name}/{action['name']}", partial(judge_mutants, name, action["name"]))
    for plan in read_plans():
        for defect in plan.defects:
            yield Item(PART, f"kafka/{plan.protocol}/{defect}", partial(judge_kafka, plan, defect))
    for seed in range(SEEDS_OF_GENERATED):
        yield Item(PART, f"generated/{seed}", partial(judge_generated, seed))


def judge_defect(protocol: str, name: str) -> Any:
    """Return whether a planned defect is found, and by which judges."""
    found = run_alone("mutants", "--impl", "--protocol", protocol, "--only", name, "--json")
    rows = [] if not isinstance(found.value, dict) else [row for row in found.value["rows"] if row["name"] == name]
    return _judged(rows[0]) if rows else _failed(found)


def judge_mutants(protocol: str, action: str) -> Any:
    """Return the same of each mutant of an action, by name; of the protocol's safe variant."""
    found = run_alone("mutants", "--model", "--protocol", protocol, "--only", f"{action}.", "--json")
    if not isinstance(found.value, dict):
        # An action of other variants has no mutant in the safe one.
        return {} if found.exit_code == 2 else _failed(found)
    return {row["name"]: _judged(row) for row in found.value["rows"]}


def judge_kafka(plan: KafkaPlan, name: str) -> Any:
    """Return whether a defect in Kafka's classes is found, after how many events, and by which check."""
    found = detect_in_kafka(plan, name)
    return {"found": found["events"] is not None, "by": found["check"], "events": found["events"]}


def judge_generated(seed: int) -> Any:
    """Return the fate of some mutants that are drawn of ``impl/`` from a seed, and what killed them."""
    count = str(GENERATED // SEEDS_OF_GENERATED)
    found = run_alone("mutants", "--impl", "--generated", count, "--seed", str(seed), "--jobs", "1", "--json")
    if not isinstance(found.value, dict):
        return _failed(found)
    dropped = ("seconds", "diff", "why", "complaint")
    return [{name: value for name, value in row.items() if name not in dropped} for row in found.value["rows"]]


def _judged(row: dict[str, Any]) -> dict[str, Any]:
    judges = {name: row[name] for name in JUDGES if name in row and row[name]["outcome"] != "none"}
    return {
        "found": row["verdict"] == "killed",
        "verdict": row["verdict"],
        "change": row["change"],
        "reason": row["reason"],
        "by": {name: cell["outcome"] for name, cell in judges.items()},
        "steps": {name: cell["length"] for name, cell in judges.items() if cell["length"] is not None},
        "detail": {name: normalise(cell["detail"], ()) for name, cell in judges.items() if cell["detail"]},
    }


def _failed(found: Outcome) -> dict[str, Any]:
    return {"found": False, "exit_code": found.exit_code, "errors": found.errors[-500:]}
