"""Which guards of KIP-320 a promise needs at three replicas, and how soon it breaks without them.

The matrix of mutants (``tests/conformance/test_mutants_model.py``) accounts for every guard, at the smallest constants
at which one tells; here all are at 3/2/2/2, where the shortest run is sometimes shorter.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from fencepost.model.core.ground import System
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.expected import STATE_COUNTS, WITHOUT_GUARD

from .guards import run_without
from .pinned import breaches_by_guard, graphs_by_variant

At = Callable[..., System]

GRAPHS = graphs_by_variant(fencing, STATE_COUNTS)["kip-320"]
_ALL = breaches_by_guard(fencing, WITHOUT_GUARD, "kip-320")
BREAKS = {guard: (violated, steps) for guard, (violated, steps, constants) in _ALL.items() if constants == "3/2/2/2"}

# Where the log has room for all records, the guard says nothing.
ROOM = {guard: row for guard, row in _ALL.items() if guard not in BREAKS}


@pytest.mark.parametrize("guard", BREAKS)
def test_without_it_a_promise_breaks(at: At, guard: str) -> None:
    assert run_without(at("3/2/2/2"), at("3/2/2/2", "kip-320", guard), guard) == BREAKS[guard]


def test_a_log_that_is_full_takes_no_record(at: At) -> None:
    for guard, (violated, length, constants) in ROOM.items():
        answer = explore(Query.of(at(constants, "kip-320", guard)))
        assert (answer.verdict, answer.violated, len(answer.path or [])) == (Verdict.VIOLATED, violated, length)
        assert explore(Query.of(at("2/2/2/2", "kip-320", guard))).distinct == GRAPHS["2/2/2/2"][0]
