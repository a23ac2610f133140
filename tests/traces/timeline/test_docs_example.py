"""The example of a client history in docs/timeline.md."""

from __future__ import annotations

import re
from pathlib import Path

from fencepost.traces.timeline.checkers import CHECKERS, check_timeline
from fencepost.traces.timeline.sources import read_sources
from fencepost.traces.timeline.timeline import Timeline

PAGE = (Path(__file__).parents[3] / "docs" / "timeline.md").read_text(encoding="utf-8")


def test_example_is_violated_on_the_lines_that_the_page_names(tmp_path: Path) -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    path = tmp_path / "history.jsonl"
    path.write_text(example)
    report = check_timeline(Timeline.of(read_sources([path]).observations))
    (found,) = report.contradictions
    assert (found.check, found.verdict) == ("acknowledged_record_skipped", "violated")
    assert {each.line for each in found.evidence} == {3, 6}


def test_page_has_a_row_for_each_check() -> None:
    assert [name for name in (each.name for each in CHECKERS) if f"| `{name}` |" not in PAGE] == []
