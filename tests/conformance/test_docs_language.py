"""docs/language.md: its Python is one protocol that works, and its table of mistakes is what is said."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from fencepost.conformance.cli import main
from fencepost.model.core.registry import REGISTRY

TEXT = (Path(__file__).parents[2] / "docs" / "language.md").read_text(encoding="utf-8")
PROTOCOL = "\n\n".join(re.findall(r"^```python\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL))
ROWS = re.findall(r"^\| `(.+?)` \| (.+?) \|$", TEXT.partition("## Mistakes")[2], re.MULTILINE)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What a command line names by its file is known for the rest of the process: not of these."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(REGISTRY, "_loaded", {})
    monkeypatch.setattr(REGISTRY, "_places", {})


def run(text: str, *options: str) -> int:
    Path("lease_of_the_page.py").write_text(text, encoding="utf-8")
    REGISTRY._loaded.clear()
    return main(["explore", "lease_of_the_page.py:lease", *options])


def test_the_protocol_of_the_page_holds_and_its_twin_breaks(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(PROTOCOL, "--liveness") == 0
    told = capsys.readouterr().out
    assert "lease fenced (replicas 2, max_epoch 2): holds" in told
    assert "asked_is_granted under fair-grants: holds" in told
    assert "sometimes two_epochs_wrote: 0" not in told
    assert run(PROTOCOL, "--variant", "trusting") == 1
    assert "violated: newest_epoch_wrote_last" in capsys.readouterr().out


@pytest.mark.parametrize(("written", "said"), ROWS)
def test_a_mistake_of_the_page_is_refused_in_these_words(
    written: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = PROTOCOL + (
        "\n\n@lease.action(client=REPLICA)\ndef mistaken(k, s, client):\n"
        f'    yield "asked", {written}\n    yield s.update(epoch=0)\n'
    )
    line = 1 + text[: text.rindex('yield "asked"')].count("\n")
    assert run(text) == 2
    assert capsys.readouterr().err.startswith(f"fencepost: lease_of_the_page.py, line {line}: {said}")


def test_there_are_rows() -> None:
    assert len(ROWS) >= 16
