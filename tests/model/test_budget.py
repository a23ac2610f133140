"""What grounding comes to, counted beforehand, beside what it then is."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from fencepost.model.core.budget import MAX_WORK, ground_size, too_large
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import Grounder, ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.core.terms import Term
from fencepost.traces.vocabulary import PROTOCOLS

VARIANTS = [(protocol, name) for protocol in PROTOCOLS.values() for name in protocol.variants]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(("protocol", "variant"), VARIANTS, ids=lambda each: getattr(each, "name", each))
def test_what_is_counted_is_what_grounding_makes(
    protocol: Protocol, variant: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    visited = 0
    before = Grounder._ground

    def counted(self: Grounder, t: Term, binding: Mapping[Term, Term]) -> Term:
        nonlocal visited
        visited += 1
        return before(self, t, binding)

    monkeypatch.setattr(Grounder, "_ground", counted)
    # What is counted is the work where nothing is remembered: at most so much is done.
    monkeypatch.setattr(Grounder, "_known", lambda _self, _term: ((), {}))
    traced = protocol.traced(variant)
    small = {name: spec.minimum for name, spec in protocol.constants.items()} | {"replicas": 2}
    for constants in (small, {}):
        size = ground_size(traced, constants)
        visited = 0
        system = ground(traced, constants)
        assert size.cells == len(system.layout.cells)
        assert size.instances == len(system.by_step)
        # Beyond the visits, ``work`` has the cells that are chosen from, and the replacements after an update.
        assert visited <= size.work
        assert size.work <= 13 * visited


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda each: each.name)
def test_the_largest_constants_are_counted_and_not_grounded(protocol: Protocol) -> None:
    largest = {name: spec.largest for name, spec in protocol.constants.items()}
    size = ground_size(protocol.traced(), largest)
    assert size.work > 1000 * MAX_WORK
    reason = too_large(protocol.traced(), largest)
    assert reason is not None
    assert f"{size.instances:,} instances of actions over {size.cells:,} cells" in reason


@pytest.mark.sampled(2)
@pytest.mark.parametrize("protocol", PROTOCOLS.values(), ids=lambda each: each.name)
def test_the_default_constants_are_far_from_the_budget(protocol: Protocol) -> None:
    assert too_large(protocol.traced(), {}) is None
    assert ground_size(protocol.traced(), {}).work * 30 < MAX_WORK


def test_a_budget_is_met_exactly() -> None:
    traced = PROTOCOLS["fencing"].traced()
    work = ground_size(traced, {}).work
    assert too_large(traced, {}, work) is None
    assert too_large(traced, {}, work - 1) is not None


def test_a_constant_that_is_none_is_refused_as_by_grounding() -> None:
    with pytest.raises(BadInput, match="no constant 'brokers'"):
        ground_size(PROTOCOLS["fencing"].traced(), {"brokers": 3})
