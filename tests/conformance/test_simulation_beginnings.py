"""Runs that go on from where an earlier one met what is seldom met: they repeat it, and come further."""

from __future__ import annotations

import pytest
from fencepost.conformance.simulation import prefix_corpus
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.coverage_feedback import CoverageFeedback
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.simulation.prefix_corpus import (
    BACK,
    FIRST,
    KEPT,
    SHARE,
    STEP,
    Course,
    Prefix,
    PrefixCorpus,
    at_of,
)
from fencepost.conformance.simulation.runner import SimulationPlan, play, run_seed, simulate
from fencepost.conformance.simulation.shrink import RunRecord
from fencepost.conformance.simulation.transitions import Transitions

from .planted_free import ways_of

SMALL = {"replicas": 2, "log_size": 2, "max_records": 4, "max_leader_epoch": 4}
PLAN = SimulationPlan(runs=60, events=60, seed=3)


@pytest.fixture(scope="module")
def ways() -> Transitions:
    return ways_of("fencing", "kip-320", **SMALL)


def event(name: str) -> Event:
    return Event(EventKind.CALL, name)


def course(ways: Transitions, seed: int, met: dict[str, int], length: int) -> Course:
    """Of a run of so many events, with the steps that it met and after how many."""
    events = tuple(event(f"{seed} {number}") for number in range(length))
    return Course(at_of(ways), Prefix(seed, events), {(STEP, name, ""): after for name, after in met.items()})


def test_what_is_seldom_met_is_kept_up_to_there_and_drawn_until_it_is_not_seldom(ways: Transitions) -> None:
    known = PrefixCorpus()
    for seed in range(FIRST):
        known.take(course(ways, seed, {"append": 1, **({"truncate": 3} if seed == 5 else {})}, 9))
    assert not known.is_seldom((STEP, "append", "")) and known.is_seldom((STEP, "truncate", ""))
    drawn = [known.draw(ways, seed) for seed in range(200)]
    begun = [each for each in drawn if each is not None]
    assert 0.6 * SHARE < len(begun) / len(drawn) < 1.4 * SHARE, "others are all drawn"
    whole = (event("5 0"), event("5 1"), event("5 2"))
    assert {each.seed for each in begun} == {5}
    assert all(each.events == whole[: len(each.events)] for each in begun)
    assert {len(each.events) for each in begun} == set(range(len(whole) + 1)) and len(whole) < BACK
    assert [known.draw(ways, seed) for seed in range(200)] == drawn
    other = ways_of("fencing", "kip-320", **{**SMALL, "replicas": 3})
    assert all(known.draw(other, seed) is None for seed in range(50)), "nobody was there at these constants"
    for seed in range(100, 108):
        known.take(course(ways, seed, {"append": 1, "truncate": 2}, 9))
    assert all(known.draw(ways, seed) is None for seed in range(200))


def test_the_last_ones_are_kept_and_the_first_runs_are_all_drawn(ways: Transitions) -> None:
    known = PrefixCorpus()
    for seed in range(FIRST - 1):
        known.take(course(ways, seed, {"append": 1}, 2))
        assert known.draw(ways, seed) is None
    for seed in range(100, 200):
        known.take(course(ways, seed, {"truncate": 1} if seed % 10 == 0 else {"append": 1}, 2))
    seeds = {each.seed for seed in range(300) if (each := known.draw(ways, seed)) is not None}
    assert seeds == {190 - 10 * back for back in range(KEPT)}


def test_one_that_learns_apart_tells_the_same(ways: Transitions) -> None:
    known, again = CoverageFeedback(), CoverageFeedback()
    for number in range(FIRST + 4):
        apart = known.apart()
        apart.ran(course(ways, number, {"truncate": 2} if number == 7 else {"append": 1}, 5))
        assert [known.beginnings.draw(ways, seed) for seed in range(20)] == [
            again.beginnings.draw(ways, seed) for seed in range(20)
        ], "what is learned apart is known when it is told"
        told = apart.learned(known)
        known.take(told)
        again.take(told)
    assert any(known.beginnings.draw(ways, seed) for seed in range(20))


def runs(ways: Transitions, memory: CoverageFeedback) -> list[RunRecord]:
    """So many runs of the model, one after the other."""
    met = SimulationCoverage()
    return [play(ModelSystem(), ways, run_seed(PLAN.seed, each), PLAN, memory, met) for each in range(PLAN.runs)]


def test_runs_go_on_from_there(ways: Transitions) -> None:
    found = runs(ways, CoverageFeedback())
    seeds = [run_seed(PLAN.seed, number) for number in range(PLAN.runs)]
    went_on = [number for number, ran in enumerate(found) if ran.seed != seeds[number]]
    assert went_on and min(went_on) >= FIRST
    begun = []
    for number in went_on:
        first = found[seeds.index(found[number].seed)]
        pairs = enumerate(zip(found[number].events, first.events, strict=False))
        begun.append(next((place for place, (one, other) in pairs if one != other), len(first.events)))
    assert sum(each > 0 for each in begun) > len(begun) / 2 and max(begun) > 2 * BACK, "they begin as that run did"
    assert [ran.events for ran in runs(ways, CoverageFeedback())] == [ran.events for ran in found]


def test_they_come_further_than_runs_that_are_all_drawn(ways: Transitions, monkeypatch: pytest.MonkeyPatch) -> None:
    def seldomest() -> int:
        """How often the five steps happened that happened least."""
        counts: dict[str, int] = {}
        for seed in range(4):
            plan = SimulationPlan(runs=100, events=60, seed=seed)
            for action, times in simulate(ModelSystem(), [ways], plan).met.steps.items():
                counts[action] = counts.get(action, 0) + times
        return sum(sorted(filter(None, counts.values()))[:5])

    going_on = seldomest()
    monkeypatch.setattr(prefix_corpus, "SHARE", 0.0)
    assert going_on > seldomest()
