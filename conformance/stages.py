"""What there is of each text, from its sentences to what is mined: one table, made of the registry and the harnesses.

The documentation site has it in Markdown, and a check's report on its first page.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

from ..model.core.registration import Registration
from ..model.core.registry import REGISTRY
from ..model.prove.proof import Proof
from ..model.prove.specialize import FixedProof
from ..traces.report.overview import Overview
from ..traces.text import counted
from .harness import Harness, find_harness

COLUMNS: Final = (
    "text",
    "protocol",
    "specification",
    "model",
    "explored",
    "proved with no bound",
    "`impl/` held to it",
    "mined",
    "brokers' files",
)
_ROOT: Final = __name__.partition(".")[0]


def stages() -> Overview:
    """The table of the protocols that come with Fencepost, in the order of the table of clauses.

    Cells are Markdown, as far as names are set in backticks. Nothing is traced for it: it takes tenths of a second.
    """
    names = [name for name in _clauses() if name in REGISTRY and REGISTRY[name].package.startswith(f"{_ROOT}.")]
    return Overview("What there is of each text", COLUMNS, tuple(_row(REGISTRY[name]) for name in names))


def markdown(table: Overview) -> list[str]:
    """The lines of a table in Markdown."""
    rules = "|".join("---" for _ in table.columns)
    return [f"| {' | '.join(table.columns)} |", f"|{rules}|", *(f"| {' | '.join(row)} |" for row in table.rows)]


def _row(registration: Registration) -> tuple[str, ...]:
    protocol, harness = registration.protocol, find_harness(registration.name)
    rules = protocol.variants[protocol.default_variant].rules
    actions = [each for each in protocol.actions.values() if each.present(rules)]
    promises = [each for each in protocol.invariants.values() if each.present(rules)]
    others = len(protocol.variants) - 1
    breaks = 0 if harness is None else len(harness.find_plan().breaks)
    return (
        protocol.source,
        f"`{registration.name}`",
        _specified(registration.name),
        f"{len(actions)} actions, {len(promises)} invariants",
        f"`{protocol.default_variant}` and {others} others, {breaks} of which must break",
        ", ".join(map(_proved, registration.find_proofs())) or "not yet",
        ", ".join(_ways(harness)) or "not yet",
        # Each event is held against the guards and effects, each state against the promises.
        "yes" if actions and promises else "not yet",
        _asked_of_files(registration.name),
    )


def _specified(name: str) -> str:
    """The TLA+ module, and how many sentences of the text have a row in the table of clauses."""
    module = f"{name.capitalize()}.tla"
    if not files(_ROOT).joinpath("specs", module).is_file():
        return "not yet"
    sentences = re.findall(r"^\| [A-Z]+[0-9]+ \|", _clauses()[name], re.MULTILINE)
    return f"`{module}`, {len(sentences)} sentences"


def _asked_of_files(name: str) -> str:
    """How many checks of brokers' files are of a protocol's text, by the table of them."""
    rows = re.findall(r"^\| `\w+` \| ([^|]*) \|", _spec("FILES.md"), re.MULTILINE)
    checks = sum(f"`{name}`" in row for row in rows)
    return counted(checks, "check") if checks else "not yet"


def _spec(name: str) -> str:
    return files(_ROOT).joinpath("specs", name).read_text(encoding="utf-8")


def _clauses() -> dict[str, str]:
    """The parts of the table of clauses that are about a protocol, by its name."""
    return dict(re.findall(r"^## (\w+): (.*?)(?=^## |\Z)", _spec("CLAUSES.md"), re.MULTILINE | re.DOTALL))


def _proved(proof: Proof) -> str:
    """The variant, and what the proof leaves out."""
    return f"`{proof.variant}`" + (f" ({proof.told})" if isinstance(proof, FixedProof) else "")


def _ways(harness: Harness | None) -> Iterator[str]:
    """How ``impl/`` is driven."""
    if harness is not None and harness.over_impl is not None:
        yield "lockstep"
    if harness is not None and harness.free is not None:
        yield "free run"
