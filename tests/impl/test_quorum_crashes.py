"""Crashes at random points of a quorum, and the planted defects that they and a bad network find."""

from __future__ import annotations

import os

import pytest
from fencepost.impl.log import LogError

from .quorum_crashes import crash_points, main
from .quorum_faults import CHAOS_FAULTS, CRASH_FAULTS
from .test_quorum_chaos import chaos

pytestmark = pytest.mark.draws

LONG = os.environ.get("HYPOTHESIS_PROFILE") == "long"
TRIES = 24
"""Workloads that a defect may survive at most."""


def test_every_start_up_is_valid_and_no_committed_record_lost() -> None:
    changes, started = crash_points(5_000 if LONG else 400, seed=1)
    assert changes > 1_000
    assert all(started.values()), "from a snapshot, from a log alone, and from one that counts as empty"


def test_the_command_says_what_it_has_done(capsys: pytest.CaptureFixture[str]) -> None:
    main(50, 3)
    assert capsys.readouterr().out.startswith("seed 3: 50 crashes at ")


def many_crashes() -> None:
    for tried in range(TRIES):
        crash_points(400, seed=tried, workload_seed=630 + tried)


def much_chaos() -> None:
    for seed in range(TRIES):
        chaos(seed, 4, 3)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CRASH_FAULTS)
def test_each_defect_of_storage_is_found_by_crashes(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CRASH_FAULTS[name](monkeypatch)
    with pytest.raises((AssertionError, LogError)):  # LogError: the workload itself restarts machines that crashed
        many_crashes()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", CHAOS_FAULTS)
def test_each_defect_of_the_protocol_is_found_by_a_bad_network(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CHAOS_FAULTS[name](monkeypatch)
    with pytest.raises(AssertionError):
        much_chaos()
