"""A story in the brokers' own ids: renamed whole, and the same story when it is renamed back."""

from __future__ import annotations

import re

import pytest
from fencepost.model.core.ground import ground
from fencepost.model.explore import Exploration, Query, explore
from fencepost.model.protocols.fencing import fencing
from fencepost.traces.build_run_report import story_of_run
from fencepost.traces.replica_map import with_replicas
from fencepost.traces.report.page import page_data, render_page
from fencepost.traces.report.text import render_text
from fencepost.traces.run_report import from_json, to_json
from fencepost.traces.stepper import DirectStepper

SYSTEM = ground(
    fencing.traced("truncate-to-hw"), {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
)


@pytest.fixture(scope="module")
def found() -> Exploration:
    return explore(Query.of(SYSTEM), "batch")


def test_all_of_it_is_renamed(found: Exploration) -> None:
    story = story_of_run(
        DirectStepper(SYSTEM.traced, SYSTEM.constants), found.path, verdict=found.verdict, violated=found.violated
    )
    assert story.noun == "replica"
    renamed = with_replicas(story, SYSTEM, (7, 11, 5), "broker")
    assert renamed.replicas == (7, 11, 5) and renamed.noun == "broker"
    assert {cell for cell in renamed.moments[0].state if cell.startswith("leo[")} == {"leo[7]", "leo[11]", "leo[5]"}
    ids = {0: 7, 1: 11, 2: 5}
    for before, after in zip(story.moments, renamed.moments, strict=True):
        for name, value in before.params.items():
            assert after.params[name] == (value if name == "epoch" else ids[value])
        for r in range(3):
            leader = before.state[f"leader[{r}]"]
            assert after.state[f"leader[{ids[r]}]"] == (leader if leader is None else ids[leader])
            assert after.state[f"isr[{ids[r]}]"] == sorted(ids[m] for m in before.state[f"isr[{r}]"])
            assert after.state[f"record_epoch[{ids[r]}][0]"] == before.state[f"record_epoch[{r}][0]"]
            assert after.state[f"leo[{ids[r]}]"] == before.state[f"leo[{r}]"], "an offset is no replica"
    (breach, *_) = (each for moment in renamed.moments for each in moment.broken)
    assert set(re.findall(r"leo\[(\d+)\]", breach.detail)) <= {"7", "11", "5"}
    assert all(f"{cell} is " in breach.detail for cell in breach.cells)
    assert from_json(to_json(renamed)) == renamed, "the noun is read back too"
    assert with_replicas(story, SYSTEM, (0, 1, 2), "replica") == story


def test_what_a_person_reads(found: Exploration) -> None:
    story = story_of_run(
        DirectStepper(SYSTEM.traced, SYSTEM.constants), found.path, verdict=found.verdict, violated=found.violated
    )
    renamed = with_replicas(story, SYSTEM, (7, 11, 5), "broker")
    text = render_text(renamed, width=200)
    assert "logs read broker: [id@epoch ...]" in text and "broker 7, 11, 5: " in text
    data = page_data(renamed)
    assert (data["noun"], data["replicas"]) == ("broker", [7, 11, 5])
    assert '"noun":"broker"' in render_page(renamed)


@pytest.mark.parametrize("ids", [(1, 2), (1, 2, 2), (1, 2, 3, 4)])
def test_ids_that_are_none(found: Exploration, ids: tuple[int, ...]) -> None:
    story = story_of_run(DirectStepper(SYSTEM.traced, SYSTEM.constants), found.path, verdict=found.verdict)
    with pytest.raises(ValueError, match="an id for each of 3 replicas"):
        with_replicas(story, SYSTEM, ids, "broker")
