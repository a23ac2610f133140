"""What lockstep draws depends on the seed alone, whatever else the process has imported."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from fencepost.conformance.lockstep.generate import BITS
from fencepost.conformance.lockstep.runner import drawn_numbers
from hypothesis import find, settings

# The runs that a seed gives, before and after a module is imported whose constants Hypothesis takes for its draws, by
# our strategy and by one that they would fit.
TWICE = """
import json, sys
from fencepost.conformance.harness import binding_of
from fencepost.conformance.lockstep import runner
from fencepost.conformance.lockstep.model_adapter import ModelAdapter
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from hypothesis import strategies

system = ground(
    PROTOCOLS["fencing"].traced("kip-320"), {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
)

def drawn():
    binding, plan = binding_of("fencing", "here"), runner.Plan(examples=30, seed=5)
    return repr(sorted(runner.conform(ModelAdapter("fencing"), system, binding, plan).coverage.visits.items()))

OF_BYTES = strategies.binary(min_size=3, max_size=3).map(lambda it: int.from_bytes(it, "big"))
ways = [runner.drawn_numbers, lambda: OF_BYTES]
told = []
for number, way in enumerate(ways):
    runner.drawn_numbers = way
    before = drawn()
    __import__(f"constants_{number}")
    told.append(before == drawn())
print(json.dumps(told))
"""


def test_a_seed_gives_the_same_runs_whatever_is_imported(tmp_path: Path) -> None:
    """A process of its own, as Hypothesis remembers the constants that it has met."""
    for number in range(2):
        words = [(each * 1_000_003 + number).to_bytes(5, "big")[-3:] for each in range(1, 300)]
        lines = [f"B = {words!r}", f"S = {[word.hex()[:3] for word in words]!r}", f"I = {list(range(100, 400))!r}"]
        (tmp_path / f"constants_{number}.py").write_text("\n".join(lines))
    run = subprocess.run(
        [sys.executable, "-c", TWICE], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120
    )
    assert json.loads(run.stdout) == [True, False], "ours are the same; bytes, which such constants fit, are not"


@pytest.mark.parametrize("least", [0, 1, 0x100, 0x12_3456])
def test_numbers_have_their_bits_and_shrink_towards_zero(least: int) -> None:
    def at_least(number: int) -> bool:
        assert 0 <= number < 1 << BITS
        return number >= least

    assert find(drawn_numbers(), at_least, settings=settings(derandomize=True, database=None)) == least
