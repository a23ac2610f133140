"""A patched copy of the implementation behaves as patched, shares what it should, and leaves the real one alone."""

from __future__ import annotations

import importlib
import sys

import pytest
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.log import epochs, log
from fencepost.model.core.errors import ProtocolError

OFF_BY_ONE = Patch(
    "log/epochs.py", "end = self._entries[higher].start_offset", "end = self._entries[higher].start_offset + 1"
)


def test_only_the_copy_is_changed() -> None:
    entries = [epochs.EpochEntry(0, 0), epochs.EpochEntry(2, 5)]
    with patched(OFF_BY_ONE) as copy:
        theirs = importlib.import_module(f"{copy.__name__}.log.epochs")
        assert theirs.LeaderEpochCache(entries).end_offset_for(1, 9) == (0, 6)
        assert epochs.LeaderEpochCache(entries).end_offset_for(1, 9) == (0, 5)
        # What imports the patched module is a copy too, and uses it.
        copied = importlib.import_module(f"{copy.__name__}.log.log")
        assert copied.Log is not log.Log
        assert copied.LeaderEpochCache is theirs.LeaderEpochCache


def test_files_are_shared_unless_they_are_patched() -> None:
    with patched(OFF_BY_ONE) as copy:
        assert importlib.import_module(f"{copy.__name__}.files.simulated").SimulatedFiles is SimulatedFiles
    torn = Patch("files/simulated.py", "how = chance.randrange(4)", "how = 3")
    with patched(torn) as copy:
        assert importlib.import_module(f"{copy.__name__}.files.simulated").SimulatedFiles is not SimulatedFiles


def test_nothing_stays_behind() -> None:
    before = set(sys.modules), list(sys.meta_path)
    with patched(OFF_BY_ONE) as copy:
        importlib.import_module(f"{copy.__name__}.log.directory")
        assert copy.__name__ in sys.modules
    assert (set(sys.modules), list(sys.meta_path)) == before


@pytest.mark.parametrize(
    "patch",
    [
        Patch("log/epochs.py", "no such text", "other"),
        Patch("log/epochs.py", "self._entries", "self._other"),  # stands there many times
        Patch("log/epochs.py", OFF_BY_ONE.old, OFF_BY_ONE.old),
    ],
)
def test_a_patch_that_does_not_fit_is_refused(patch: Patch) -> None:
    with pytest.raises(ProtocolError, match=r"impl/log/epochs\.py"), patched(patch):
        pass
