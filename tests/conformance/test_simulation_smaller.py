"""A failing run made small: a calm takes the place of what nobody chose, and two nodes change places.

Constants: replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects, binding_of, held_to
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.controller.system import FreeControllers
from fencepost.conformance.protocols.snapshots.system import FreeQuorum
from fencepost.conformance.simulation import shrink
from fencepost.conformance.simulation.events import Event, EventKind, event_of
from fencepost.conformance.simulation.machine import Machine
from fencepost.conformance.simulation.quiesce import calm
from fencepost.conformance.simulation.render import script
from fencepost.conformance.simulation.runner import SimulationPlan, SimulationResult, simulate
from fencepost.conformance.simulation.schedule import lines_of
from fencepost.conformance.simulation.shrink import RunRecord, plainer, repeat, rewritten, smallest
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.model.core.ground import ground
from fencepost.model.protocols.snapshots import snapshots

DEFECTS = {each.name: each for each in all_defects() if each.protocol == "controller"}


def calm_of(rounds: int) -> Event:
    return Event(EventKind.CALM, args=(("rounds", rounds),))


@pytest.fixture(scope="module")
def ways() -> Transitions:
    at = constants_of(snapshots, "3/0/8/8/2/0/0/1")
    return Transitions(ground(snapshots.traced(FreeQuorum.implemented), at), binding_of("snapshots", "--protocol"))


def leaders(ran: RunRecord) -> set[object]:
    observed = ran.history[-1].observed
    assert observed is not None
    return {value for name, value in observed.items() if name.startswith("leader[")}


def test_in_a_calm_all_takes_its_course_and_nothing_is_mended(ways: Transitions) -> None:
    system = FreeQuorum()
    stands = Event(EventKind.TIMER, "election", 1)
    late = Event(EventKind.TIME, args=(("ms", 1000),))
    elected = repeat(system, ways, 1, (late, late, stands, calm_of(1)))
    assert elected.divergence is None and leaders(elected) == {1}
    assert elected.events == (late, late, stands, calm_of(1)), "it is one event, whatever comes of it"
    assert sum(done.in_peace for done in elected.history) > 5
    cuts = tuple(Event(EventKind.CUT, node=node) for node in range(3))
    divergence = repeat(system, ways, 1, (*cuts, late, late, stands, calm_of(3)))
    assert divergence.divergence is None and not leaders(divergence) & {0, 1, 2}
    peaceful = repeat(system, ways, 1, (*cuts, late, late, stands, Event(EventKind.PEACE)))
    assert leaders(peaceful) & {0, 1, 2}, "a peace mends the cuts"
    system.close()


def test_after_a_calm_the_run_goes_on(ways: Transitions) -> None:
    system = FreeQuorum()
    machine = Machine(ways, system, 1)
    assert machine.start() is None and calm(machine, calm_of(2)) is None
    assert machine.peace is None
    assert machine.perform(next(each.event for each in machine.pending() if each.event.what is EventKind.TIME)) is None
    assert not machine.history[-1].in_peace
    system.close()


def test_a_calm_is_written_told_and_read_back(ways: Transitions) -> None:
    system = FreeQuorum()
    ran = repeat(system, ways, 1, (calm_of(3),))
    system.close()
    assert "drain: 3 times every message in flight arrives" in "\n".join(script(ran))
    assert event_of(calm_of(3).to_json(), "here") == calm_of(3)
    assert sum("calm" in line for line in lines_of(ran, "memory")) == 1
    assert list(plainer(calm_of(3))) == [calm_of(1), calm_of(2)]


def test_shorter_runs_have_a_calm_or_other_nodes() -> None:
    def at(node: int, source: int | None = None) -> Event:
        return Event(EventKind.DELIVER, "Fetch", node, source)

    run = [at(0), at(1), at(1, 0), Event(EventKind.PEACE)]
    found = [list(each) for each in rewritten(run)]
    assert all(len(each) < len(run) for each in found)
    assert [at(0), calm_of(2), Event(EventKind.PEACE)] in found
    assert [at(0, 1), Event(EventKind.PEACE)] in found, "without the first two, and the others in each other's places"
    assert [calm_of(2), at(0, 1), Event(EventKind.PEACE)] in found
    assert run not in found


def passes(milliseconds: int) -> Event:
    return Event(EventKind.TIME, args=(("ms", milliseconds),))


def test_time_passes_at_once(ways: Transitions) -> None:
    """What happened in between comes before all of it, or after."""
    due = Event(EventKind.TIMER, "due", 1)
    found = [list(each) for each in rewritten([passes(200), due, passes(100), due])]
    assert found[:2] == [[passes(300), due, due], [due, passes(300), due]]
    system = FreeQuorum()
    ran = repeat(system, ways, 1, (passes(2_345), Event(EventKind.TIMER, "due", 7)))
    assert ran.events == (passes(2_345),), "so long is not offered, and is as good as in parts; what cannot be is not"
    assert system.clock.now() == 2_345
    system.close()


def test_what_is_waited_for_happens_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """A heartbeat from before its broker wished to stop is late, and unfences it (15 events, each of which is needed).

    Four of five heartbeats were sent when they were due, so that time had to pass before each.
    """
    monkeypatch.setattr(shrink, "DRAWS", 0)
    made = Event(EventKind.CALL, "create-topic", 3, args=(("partition", 0), ("first", 2)))
    due, beat = Event(EventKind.TIMER, "due", 2), Event(EventKind.DELIVER, "BrokerHeartbeat", 3, 2)
    waits = [passes(200), due, passes(200), due, passes(200), replace(due, node=3)]
    stops = [Event(EventKind.OPERATE, "shut-down", 2), due, passes(200), beat, due]
    events = [made, *waits, *stops, replace(beat, number=1), replace(beat, number=1), beat]
    text = held_to("controller")
    at = Transitions(ground(text.traced(None), constants_of(text, "3/1/2")), binding_of("controller", "--protocol"))
    with patched(*DEFECTS["stopped-broker-unfenced"].patches) as root:
        system = FreeControllers(Parts.of(root))
        failed = repeat(system, at, 182137, events)
        assert failed.divergence is not None and failed.events == tuple(events)
        best, repeatable, minimal = smallest(system, failed)
        system.close()
    assert repeatable
    assert len(best.events) <= 12 or not minimal
    assert Event(EventKind.TIMER, "heartbeat", 2) in best.events or not minimal


def found_with(*patches: Patch) -> SimulationResult:
    text = held_to("controller")
    system_ways = Transitions(
        ground(text.traced(None), constants_of(text, "3/3/1")), binding_of("controller", "--protocol")
    )
    with patched(*patches) as root:
        system = FreeControllers(Parts.of(root))
        found = simulate(system, [system_ways], SimulationPlan(runs=60, seed=0))
        system.close()
    return found


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["shutdown-leads-on", "fenced-stays-in-isr"])
def test_a_run_that_begins_with_elections_becomes_short(name: str) -> None:
    """Each message of an election is an event, and who is elected is named by all that follow."""
    found = found_with(*DEFECTS[name].patches)
    assert found.failure is not None and found.repeatable
    assert len(found.failure.events) <= 8 < found.found


def test_where_the_time_is_over_a_run_is_repeatable_and_not_minimal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shrink, "SECONDS", 0.0)
    found = found_with(*DEFECTS["shutdown-leads-on"].patches)
    assert found.failure is not None and len(found.failure.events) == found.found
    assert found.repeatable and not found.minimal


def test_where_the_time_is_over_as_another_run_was_drawn_that_one_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def then_late(self: shrink._Search, best: Sequence[Event]) -> Sequence[Event]:
        self._deadline = 0.0
        return best

    monkeypatch.setattr(shrink._Search, "drawn", then_late)
    monkeypatch.setattr(shrink, "LONG", 1)
    found = found_with(*DEFECTS["shutdown-leads-on"].patches)
    assert found.failure is not None and len(found.failure.events) == 2
    assert found.repeatable and not found.minimal
