"""The template and its tutorial: what the tutorial shows is the template's code, runs, and finds what it says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fencepost.conformance.lockstep.adapter import Adapter
from fencepost.conformance.protocols.fencing import template, template_simulation
from fencepost.conformance.protocols.fencing.template import TemplateAdapter

from .conftest import Fencepost

DOCS = Path(__file__).parents[2] / "docs"
SIMULATION, LOCKSTEP = DOCS / "tutorials" / "test-your-system.md", DOCS / "how-to" / "test-in-lockstep.md"
SOURCE = Path(template.__file__).read_text(encoding="utf-8")
FREE = Path(template_simulation.__file__).read_text(encoding="utf-8")
UNFENCED = "        self.check_epoch(mine.epoch, theirs.epoch)\n"


def blocks(language: str, page: Path) -> list[str]:
    """The blocks of code of a page in one language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)


@pytest.fixture
def my_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the template, as the tutorial's first line makes it."""
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "my_log.py"
    path.write_text(SOURCE)
    return path


def test_every_piece_of_the_tutorial_is_the_templates() -> None:
    for page, source, least in ((SIMULATION, FREE, 10), (LOCKSTEP, SOURCE, 6)):
        pieces = blocks("python", page)
        assert len(pieces) >= least
        for piece in pieces:
            assert piece in source
    assert UNFENCED in blocks("python", LOCKSTEP)


def test_the_template_is_an_adapter() -> None:
    adapter: Adapter = TemplateAdapter(None, None)
    adapter.reset({"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}, 1)
    assert adapter.observe()["quorum_isr"] == (0, 1)
    adapter.close()


def test_the_copy_conforms(fencepost: Fencepost, my_log: Path) -> None:
    said = fencepost("conform", "--impl", "my_log.py:TemplateAdapter", "--examples", 400, "--json")
    assert said.code == 0, said.json["disagreement"]
    assert said.json["cells_never_observed"] == []
    assert all(said.json["faults"].values()) and set(said.json["faults"]) == {"lose-request", "isolate", "heal"}


def test_without_the_fencing_the_tutorials_story_is_told(fencepost: Fencepost, my_log: Path) -> None:
    assert SOURCE.count(UNFENCED) == 1
    my_log.write_text(SOURCE.replace(UNFENCED, ""))
    (told,) = (block for block in blocks("console", LOCKSTEP) if "--html" in block)
    command = told.splitlines()[0].removeprefix("$ fencepost ").split()
    said = fencepost(*command)
    assert said.code == 1 and Path("why.html").is_file()
    printed, shown = " ".join(said.out.split()), " ".join(told.split("\n", 1)[1].split())
    for line in ("The implementation answered with the wrong error code.", "guard epoch_not_fenced wants"):
        assert line in printed and line in shown
    for action in ("become_leader", "become_follower", "follower_fetch"):
        assert f"{action}(leader=" in printed and f"{action}(leader=" in shown
    again = next(line for line in told.splitlines() if "--replay" in line).split()
    assert again[0] == "fencepost" and " ".join(again) in printed
    assert fencepost(*again[1:]).code == 1
    my_log.write_text(SOURCE)
    assert fencepost(*again[1:]).code == 0
