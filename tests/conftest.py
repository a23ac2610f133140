"""Hypothesis profiles for all tests: ``HYPOTHESIS_PROFILE=ci`` (the default) or ``long``.

``ci`` draws the same examples in every run; ``long`` draws ten times as many, from a seed that the header prints and
that ``--hypothesis-seed`` brings back.
"""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("ci", derandomize=True, deadline=None, print_blob=True)
settings.register_profile(
    "long", max_examples=1000, deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "ci")


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    if PROFILE not in ("ci", "long"):
        raise pytest.UsageError(f"HYPOTHESIS_PROFILE: there is no profile {PROFILE!r}; choose ci or long")
    settings.load_profile(PROFILE)
    # Chosen before Hypothesis's own plugin reads it, and before workers are started with a copy of the options.
    if PROFILE == "long" and config.option.hypothesis_seed is None:
        config.option.hypothesis_seed = str(random.SystemRandom().randrange(1 << 32))


def pytest_report_header(config: pytest.Config) -> str:
    seed = config.option.hypothesis_seed
    drawn = f"--hypothesis-seed={seed}" if seed is not None else "derandomized"
    return f"hypothesis profile {PROFILE}: {drawn}"
