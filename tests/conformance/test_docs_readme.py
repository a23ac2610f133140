"""The overview of the protocols on a report's first page, and the mutant matrix of the documents."""

from __future__ import annotations

import json
import re
from collections import Counter
from html import unescape
from pathlib import Path

import fencepost
import pytest
from fencepost.conformance.cli import check as checking
from fencepost.conformance.harness import find_harness
from fencepost.conformance.stages import markdown, stages
from fencepost.model.core.registry import PROTOCOLS, REGISTRY
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.specialize import FixedProof
from fencepost.traces.report.index import Obligation, write_report

ROOT = Path(str(fencepost.__file__)).parent
SOURCES = Path(__file__).parents[2]
HEAD = (
    "| text | protocol | specification | model | explored | proved with no bound | `impl/` held to it | mined "
    "| brokers' files |"
)
ORDER = ("fencing", "truncation", "snapshots", "controller", "compaction", "tiering")


def sentences(protocol: str) -> int:
    """How many rows the protocol's part of the table of clauses has."""
    text = (ROOT / "specs" / "CLAUSES.md").read_text(encoding="utf-8")
    (part,) = re.findall(rf"^## {protocol}: .*?(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    return len(re.findall(r"^\| [A-Z]+[0-9]+ \|", part, re.MULTILINE))


def asked_of_files(protocol: str) -> int:
    """In how many rows of the table of checks the protocol is named."""
    lines = (ROOT / "specs" / "FILES.md").read_text(encoding="utf-8").splitlines()
    return sum(f"`{protocol}`" in line.split("|")[2] for line in lines if line.startswith("| `"))


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
        f"{asked_of_files(name)} checks",
    )
    return f"| {' | '.join(cells)} |"


def test_overview_has_the_numbers_of_each_protocol() -> None:
    assert set(ORDER) == {name for name in REGISTRY if REGISTRY[name].package.startswith("fencepost.")}
    expected = [row(name) for name in ORDER]
    head, rule, *rows = markdown(stages())
    assert (head, rule) == (HEAD, "|---|---|---|---|---|---|---|---|---|")
    assert rows == expected


def test_a_report_of_all_there_is_begins_with_that_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check's own command writes it; what is asked is another matter, and takes a minute."""
    held = Obligation("one", "group", "holds", "holds", "", 1, "states", 0.0)
    monkeypatch.setattr(checking, "_everything", lambda *_, **__: [held])
    assert checking.check(report=tmp_path / "report", json=True) == 0
    told = json.loads(capsys.readouterr().out)["overview"]
    rows = [f"| {' | '.join(cells)} |" for cells in told["rows"]]
    assert rows == [row(name) for name in ORDER] and told["columns"] == HEAD.strip("| ").split(" | ")
    page = (tmp_path / "report" / "index.html").read_text(encoding="utf-8")
    first = page.split("<table")[1]
    shown = [unescape(re.sub(r"<code>(.*?)</code>", r"`\1`", cell)) for cell in re.findall(r"<td>(.*?)</td>", first)]
    assert shown == [cell for cells in told["rows"] for cell in cells]
    assert json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))["overview"] == told


def test_a_report_of_somebody_s_brokers_has_no_such_table(tmp_path: Path) -> None:
    write_report(tmp_path / "report", [])
    assert "overview" not in json.loads((tmp_path / "report" / "report.json").read_text(encoding="utf-8"))
    assert 'class="overview"' not in (tmp_path / "report" / "index.html").read_text(encoding="utf-8")


MATRIX = "| protocol and variant | mutants | killed | equivalent | harmless | implied | proved | argued |"
JUDGED = ("killed", "equivalent", "harmless")
REASONS = ("implied", "proved", "argued")


def judged(name: str) -> str:
    """What becomes of a protocol's mutants, as a row of the guide, by the file that the matrix is held against."""
    lines = (SOURCES / "tests" / "conformance" / f"mutants_{name}.txt").read_text(encoding="utf-8").splitlines()
    verdicts = [re.fullmatch(r"(\w+)(?: \((\w+)\))?: .*", line.split(" | ")[1]) for line in lines]
    assert lines and all(verdicts)
    counts = Counter(word for each in verdicts if each is not None for word in each.groups() if word is not None)
    assert set(counts) <= {*JUDGED, *REASONS} and sum(counts[word] for word in JUDGED) == len(lines)
    assert sum(counts[word] for word in REASONS) == len(lines) - counts["killed"]
    numbers = (len(lines), *(counts[word] for word in (*JUDGED, *REASONS)))
    return f"| `{name}` {PROTOCOLS[name].default_variant} | {' | '.join(map(str, numbers))} |"


def test_matrix_of_the_guide_is_the_pinned_one() -> None:
    lines = (SOURCES / "docs" / "how-to" / "find-missing-invariants.md").read_text(encoding="utf-8").splitlines()
    start = lines.index(MATRIX) + 2
    end = lines.index("", start)
    pinned = [path.stem.removeprefix("mutants_") for path in Path(__file__).parent.glob("mutants_*.txt")]
    assert sorted(lines[start:end]) == sorted(map(judged, pinned))
