"""Every pinned count, recomputed: states, depth, violated invariant, length, and the obligations of proofs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Final

from .command import Outcome, run_alone, show
from .item import Item

PART: Final = "counts"
FILE: Final = Path(__file__).with_name("counts.jsonl")
"""One query of ``fencepost explore`` a line, cheap ones first; ``pinned`` has the counts of the first record."""


def count_items() -> Iterator[Item]:
    """Return an item for each query, and one for each proof."""
    for each in show("protocols")["protocols"]:
        described = show("protocols", each["protocol"])
        proofs = filter(None, (described["proof"], *described["more_proofs"]))
        for name, variant in sorted({(each["protocol"], proof["variant"]) for proof in proofs}):
            yield Item(PART, f"prove/{name}/{variant}", partial(count_obligations, name, variant))
    for line in FILE.read_text(encoding="utf-8").splitlines():
        query = json.loads(line)
        yield Item(PART, f"explore/{_key(query)}", partial(explore, query))


def explore(query: dict[str, Any]) -> Any:
    """Return verdict, states, depth, violated invariant and length, and whether they are those of the list."""
    args = ["explore", query["protocol"], "--variant", query["variant"], "--json"]
    args += [each for name in query.get("invariants", ()) for each in ("--invariant", name)]
    args += [each for guard in query.get("dropped", ()) for each in ("--drop", guard)]
    args += [each for name, value in query["constants"].items() for each in (f"--{name.replace('_', '-')}", str(value))]
    found = run_alone(*args, *(["--symmetry"] if query.get("symmetry") else []))
    if not isinstance(found.value, dict):
        return _failed(found)
    value = found.value
    counts = {
        "verdict": value["verdict"],
        "states": value["distinct"],
        "depth": value["depth"],
        "violated": value["violated"],
        "steps": None if value["trace"] is None else len(value["trace"]),
        "exit_code": found.exit_code,
    }
    return counts | {"is_pinned": query.get("pinned", {}).items() <= counts.items()}


def count_obligations(protocol: str, variant: str) -> Any:
    """Return verdict and numbers of obligations, lemmas and invariants of each proof of a variant."""
    found = run_alone("prove", protocol, "--variant", variant, "--json")
    if not isinstance(found.value, dict):
        return _failed(found)
    counts = [
        {"verdict": proof["verdict"]}
        | {name: len(proof[name]) for name in ("obligations", "lemmas", "promises", "witnesses")}
        for proof in found.value["proofs"]
    ]
    return {"exit_code": found.exit_code, "proofs": counts}


def _key(query: dict[str, Any]) -> str:
    words = [query["protocol"], query["variant"], ",".join(f"{n}={v}" for n, v in query["constants"].items())]
    words += [f"without {guard}" for guard in query.get("dropped", ())]
    words += [f"for {name}" for name in query.get("invariants", ())]
    return "/".join([*words, *(["by symmetry"] if query.get("symmetry") else [])])


def _failed(found: Outcome) -> dict[str, Any]:
    return {"exit_code": found.exit_code, "errors": found.errors[-500:]}
