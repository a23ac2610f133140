"""A system that was written against the former names of the simulation's contract still runs."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest
from fencepost.conformance.free.events import Event, What
from fencepost.conformance.free.system import FreeSystem, Happened, Pending
from fencepost.conformance.protocols.fencing import template_simulation
from fencepost.conformance.simulation.registry import make_system
from fencepost.conformance.testing import Failed, assert_runs_freely
from fencepost.traces.format import Value


def written_before(path: Path, *, overrides_happen: str = "") -> Path:
    text = Path(template_simulation.__file__).read_text(encoding="utf-8")
    for new, old in (("conformance.simulation", "conformance.free"), ("EventKind", "What")):
        text = text.replace(new, old)
    path.write_text(text + overrides_happen, encoding="utf-8")
    return path


LOSES_REQUESTS = """

class Loses(TemplateFree):
    def happen(self, event):
        result = super().happen(event)
        for broker in self.brokers:
            broker.high_watermark = len(broker.disk.log)
        return result
"""


def test_template_with_former_names_holds(tmp_path: Path) -> None:
    place = f"{written_before(tmp_path / 'mine.py')}:TemplateFree"
    assert_runs_freely(lambda *_: make_system(place, "fencing", None), runs=5, seed=1)


def test_overridden_happen_is_called(tmp_path: Path) -> None:
    place = f"{written_before(tmp_path / 'lossy.py', overrides_happen=LOSES_REQUESTS)}:Loses"
    with pytest.raises(Failed):
        assert_runs_freely(lambda *_: make_system(place, "fencing", None), runs=5, seed=1)


def test_system_that_has_happen_alone_gets_step(tmp_path: Path) -> None:
    path = tmp_path / "plain.py"
    path.write_text(
        "class Plain:\n    name, protocol, variant = 'plain', 'fencing', 'kip-320'\n"
        + "".join(
            f"    def {each}(self, *_, **__): return None if '{each}' == '__init__' else '{each}'\n"
            for each in (*METHODS, "happen", "__init__")
        ),
        encoding="utf-8",
    )
    made: FreeSystem = make_system(f"{path}:Plain", "fencing", None)
    assert made.step(Event(What.TIMER, "fetch", 1)) == "happen"


METHODS = ("reset", "pending", "observe", "close")


def test_former_classes_are_todays() -> None:
    event = Event(What.TIMER, "fetch", 1)
    cells: Mapping[str, Value] = {"leader": 1}
    assert Happened(given=frozenset(cells)).inputs == frozenset(cells)
    assert Pending(event).event is event
