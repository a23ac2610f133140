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


def absent_places(where: str, tables: str) -> list[str]:
    """Check the last cell of a row without guard or invariant.

    Args:
        where: Files, tests (``file::function``), rows of the two tables, or a reason in words.
        tables: The text of CLAUSES.md and DEVIATIONS.md.

    Returns:
        One line for each file, test or row that does not exist, or one line if the cell has neither place nor reason.
    """
    words = re.sub(r"`[^`]+`", "", where)
    rows = re.findall(r"\bT?[A-Z]\d+\b", words)
    places = [name for name in re.findall(r"`([^`]+)`", where) if "/" in name]
    found = []
    for place in places:
        path, separator, function = place.partition("::")
        if separator and not ((ROOT / path).is_file() and function in functions_of(path)):
            found.append(f"no test {place}")
        elif not (ROOT / path).exists():
            found.append(f"no file {place}")
    found += [f"no row {row}" for row in rows if f"\n| {row} |" not in tables]
    reason = re.sub(r"\bT?[A-Z]\d+\b|^(nothing|not implemented):", "", words).strip(" ,;:.")
    return found if places or rows or reason else ["no place and no reason"]


def told_of_proofs(deviations: str, heading: str) -> tuple[set[str], set[str]]:
    """The promises that the table below a heading has as proved, and those that it has as bounded."""
    part = deviations.partition(f"\n### {heading}\n")[2].partition("\n### ")[0]
    rows = [line.split("|") for line in part.splitlines() if line.startswith("| `")]
    proved = {name for row in rows if "**bounded**" not in row[2] for name in re.findall(r"`(\w+)`", row[1])}
    return proved, {name for row in rows for name in re.findall(r"`(\w+)`", row[1])} - proved
