"""Crashes at random points, and the storage defects that they find."""

from __future__ import annotations

import os

import pytest
from fencepost.impl.log import LogError

from .crashes import CrashFailure, crash_points, main
from .faults import FAULTS

pytestmark = pytest.mark.draws

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
TRIES = 12
"""Workloads of 250 crashes each that a defect may survive at most."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("workload", range(40 if LONG else 4))
def test_every_crash_is_recovered_from(workload: int) -> None:
    """No record that was synced is lost, no other is served, and the log always opens."""
    assert crash_points(2000 if LONG else 250, seed=workload, workload_seed=workload) > 100


def test_two_thousand_crashes_over_the_fixed_workload(capsys: pytest.CaptureFixture[str]) -> None:
    main(2000, 1)
    assert capsys.readouterr().out.startswith("seed 1: 2000 crashes at ")


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FAULTS)
def test_each_storage_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    FAULTS[name](monkeypatch)
    for workload in range(TRIES):
        try:
            crash_points(250, seed=workload, workload_seed=workload)
        except CrashFailure as failure:
            if isinstance(failure.__cause__, AssertionError | LogError):
                return
            raise  # an accident of the patch itself
        except (AssertionError, LogError):  # the running log differs from the list, or fails: found without a crash
            return
    pytest.fail(f"{name}: {TRIES} workloads of 250 crashes did not find it")
