"""The rows of ``specs/CLAUSES.md``, and what they name that does not exist."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from fencepost.model.core.protocol import Protocol

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True)
class Clause:
    """A row of the table: ``became``, ``rows`` of DEVIATIONS.md and ``tests`` are the names in it."""

    number: str
    sentence: str
    became: tuple[str, ...]
    rows: tuple[str, ...]
    tests: tuple[str, ...]


def read_rows(text: str, letter: str, deviations: str, prefix: str = "") -> tuple[list[Clause], list[tuple[int, str]]]:
    """The rows whose number begins with a letter: those that became something, and of the others number and last cell.

    ``deviations``: the letters with which the rows of DEVIATIONS.md begin that these may name, each behind ``prefix``.
    """
    clauses, outside = [], []
    for line in text.splitlines():
        if not re.match(rf"\| {letter}\d+ \|", line):
            continue
        cells = [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
        if len(cells) < 5:
            outside.append((int(cells[0][len(letter) :]), cells[-1]))
            continue
        number, _, sentence, became, tests = cells
        names = tuple(re.findall(r"`([^`]+)`", became))
        rows = tuple(re.findall(rf"\b{prefix}[{deviations}]\d+\b", re.sub(r"`[^`]+`", "", became)))
        clauses.append(Clause(number, sentence, names, rows, tuple(re.findall(r"`([^`]+)`", tests))))
    return clauses, outside


@cache
def functions_of(path: str) -> frozenset[str]:
    """The test functions of a file."""
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    return frozenset(n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test_"))


def faults(protocol: Protocol, clause: Clause, deviations: str, *, rows_suffice: bool = False) -> list[str]:
    """What the row names that does not exist. ``rows_suffice``: a sentence may have become a deviation alone."""
    found = []
    for name in clause.became:
        variant, _, guard = name.rpartition(": ")
        action, dot, guard = guard.partition(".")
        guards = {a.name: dict(a.guards) for a in protocol.traced(variant or None).actions}
        if dot and guard not in guards.get(action, {}):
            found.append(f"{clause.number}: no guard {name}")
        elif not dot and name not in {*protocol.invariant_names, *protocol.liveness}:
            found.append(f"{clause.number}: no invariant or property {name}")
    found += [f"{clause.number}: no row {row}" for row in clause.rows if f"\n| {row} |" not in deviations]
    for test in clause.tests:
        path, _, function = test.partition("::")
        if not (ROOT / path).is_file() or function not in functions_of(path):
            found.append(f"{clause.number}: no test {test}")
    if not clause.tests or not (clause.became or (rows_suffice and clause.rows)):
        found.append(f"{clause.number}: a sentence that became nothing, or that no test holds")
    return found


def told_of_proofs(deviations: str, heading: str) -> tuple[set[str], set[str]]:
    """The promises that the table below a heading has as proved, and those that it has as bounded."""
    part = deviations.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    rows = [line.split("|") for line in part.splitlines() if line.startswith("| `")]
    proved = {name for row in rows if "**bounded**" not in row[2] for name in re.findall(r"`(\w+)`", row[1])}
    return proved, {name for row in rows for name in re.findall(r"`(\w+)`", row[1])} - proved
