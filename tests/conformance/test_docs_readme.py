"""The README's table of the five texts says what there is: each cell is made anew from the registry and the folders."""

from __future__ import annotations

import re
from pathlib import Path

import fencepost
from fencepost.conformance.harness import find_harness
from fencepost.model.core.registry import REGISTRY
from fencepost.model.prove.fixed import FixedProof
from fencepost.model.prove.proof import Proof

ROOT = Path(str(fencepost.__file__)).parent
SOURCES = Path(__file__).parents[2]
HEAD = "| text | protocol | specification | model | explored | proved with no bound | `impl/` held to it | mined |"
ORDER = ("fencing", "truncation", "snapshots", "controller", "tiering", "compaction")


def sentences(protocol: str) -> int:
    """How many rows the protocol's part of the table of clauses has."""
    text = (ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## {protocol}: .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return len(re.findall(r"^\| [A-Z]+[0-9]+ \|", part, re.MULTILINE))


def proved(proof: Proof) -> str:
    """The variant, and what the proof leaves out."""
    return f"`{proof.variant}`" + (f" ({proof.told})" if isinstance(proof, FixedProof) else "")


def row(name: str) -> str:
    """What there is of a protocol, as a row of the table."""
    registration, harness = REGISTRY[name], find_harness(name)
    assert harness is not None
    protocol, plan = registration.protocol, harness.find_plan()
    module = f"{name.capitalize()}.tla"
    assert (ROOT / "specs" / module).is_file()
    traced = protocol.traced()
    variants = [each for each in protocol.variants if each != protocol.default_variant]
    proofs = ", ".join(map(proved, registration.find_proofs())) or "not yet"
    ways = [way for way, made in (("lockstep", harness.over_impl), ("free run", harness.free)) if made is not None]
    cells = (
        protocol.source,
        f"`{name}`",
        f"`{module}`, {sentences(name)} sentences",
        f"{len(traced.actions)} actions, {len(traced.invariants)} invariants",
        f"`{protocol.default_variant}` and {len(variants)} others, {len(plan.breaks)} of which must break",
        proofs,
        ", ".join(ways) or "not yet",
        "yes",
    )
    return f"| {' | '.join(cells)} |"


def test_the_table_of_the_five_texts_is_true() -> None:
    lines = (SOURCES / "README.md").read_text(encoding="utf-8").splitlines()
    start = lines.index(HEAD)
    assert set(ORDER) == {name for name in REGISTRY if REGISTRY[name].package.startswith("fencepost.")}
    expected = [row(name) for name in ORDER]
    assert lines[start + 2 : start + 2 + len(ORDER)] == expected, "\n".join(["", HEAD, *expected])
    assert not lines[start + 2 + len(ORDER)].startswith("|")
