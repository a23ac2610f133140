"""The lockstep harness: it lets the model pass, and finds each planted defect for what it is."""

from __future__ import annotations

from itertools import count

import pytest
from fencepost.conformance.deadline import Deadline
from fencepost.conformance.harness import binding_of
from fencepost.conformance.lockstep.divergence import Sort
from fencepost.conformance.lockstep.expect import Try
from fencepost.conformance.lockstep.faults import Fault, Kind
from fencepost.conformance.lockstep.model_adapter import ModelAdapter
from fencepost.conformance.lockstep.play import repeat
from fencepost.conformance.lockstep.runner import Drawing, Plan, conform
from fencepost.conformance.lockstep.space import Space
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict

from . import planted
from .planted import SMALL, held

VARIANTS = [
    ("fencing", "kip-320"),
    ("fencing", "kip-320-restarts"),
    ("truncation", "kip-320-mended"),
]

DEFECTS = [
    (planted.Lying, "kip-320", Sort.CELLS, "leo[1] is 2 in the model, 1 in the implementation"),
    (planted.StartsElsewhere, "kip-320", Sort.CELLS, "leo[0] is 0 in the model, 1 in the implementation"),
    (planted.WrongCode, "kip-320", Sort.ERROR, "answered NOT_LEADER_OR_FOLLOWER; by the model it does not happen"),
    (planted.ChangesOnRefusal, "kip-320", Sort.CHANGED, "isr["),
    (planted.ActsLate, "kip-320", Sort.CHANGED, "deliver-late() changes no state"),
    (planted.HidesWhatIsLate, "kip-320", Sort.CHANGED, "in the implementation"),
    (planted.ActsTwice, "kip-320", Sort.CELLS, "next_record_id is 1 in the model, 2 in the implementation"),
    (planted.ActsThoughLost, "kip-320", Sort.REFUSED, "by the model it does not happen, with REQUEST_TIMED_OUT"),
    (planted.WritesToAFullDisk, "kip-320", Sort.CHANGED, "in the implementation"),
    (planted.ReachesTheIsolated, "kip-320", Sort.REFUSED, "is isolated"),
    (planted.LetsTheOfflineJoin, "kip-320", Sort.REFUSED, "is marked offline"),
    (planted.FallsOver, "kip-320", Sort.RAISED, "ZeroDivisionError: offset / 0"),
    (planted.Contradicts, "kip-320", Sort.CONTRADICTED, ": the record at offset 1 is not what was written there"),
    (planted.SpeaksNonsense, "kip-320", Sort.UNKNOWN, "leader_resign(leader=0), which is no step of the model"),
    (planted.LosesOnCrash, "kip-320-restarts", Sort.CELLS, "leo["),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("protocol", "variant"), VARIANTS)
@pytest.mark.parametrize("draw", ["hypothesis", "random"])
def test_the_model_conforms_to_itself_with_every_fault(protocol: str, variant: str, draw: Drawing) -> None:
    found = held(ModelAdapter(protocol, variant), Plan(examples=300, steps=60, seed=7, draw=draw))
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
    assert found.coverage.steps > 2_000
    assert all(count.enabled > 0 for count in found.coverage.actions.values())
    drawn = {kind for kind, count in found.coverage.faults.items() if count > 0}
    assert drawn == set(Kind) - (set() if variant == "kip-320-restarts" else {Kind.CRASH})
    assert found.coverage.unseen(found.space) == ()


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("defect", "variant", "sort", "words"), DEFECTS, ids=[row[0].__name__ for row in DEFECTS])
def test_a_planted_defect_is_found_named_and_made_small(
    defect: type[ModelAdapter], variant: str, sort: Sort, words: str
) -> None:
    found = held(defect("fencing", variant))
    assert found.verdict is Verdict.VIOLATED
    assert found.repeatable
    assert found.failure is not None and found.failure.divergence is not None
    assert found.failure.divergence.sort is sort
    assert words in "\n".join((found.failure.divergence.headline, *found.failure.divergence.lines))
    assert len(found.failure.tries) <= 10
    # No single step of it can be left out.
    adapter = defect("fencing", variant)
    for index in range(len(found.failure.tries)):
        shorter = (*found.failure.tries[:index], *found.failure.tries[index + 1 :])
        assert repeat(found.space, adapter, found.failure.seed, shorter).divergence is None


def test_a_defect_that_random_runs_find_is_made_as_small() -> None:
    found = held(planted.Lying("fencing"), Plan(examples=300, seed=3, draw="random"))
    assert found.failure is not None and found.found > len(found.failure.tries)
    last = found.failure.tries[-1].call
    assert last is not None and last[0] in ("follower_fetch", "leader_write") and len(found.failure.tries) <= 8


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", [3, 4, 5])
def test_what_hypothesis_does_not_shrink_is_minimal_too(seed: int) -> None:
    """How the matrix judges defects: by the first run that shows one, made small by delta debugging alone."""
    adapter = planted.Lying("fencing")
    found = held(adapter, Plan(examples=300, seed=seed, shrink=False))
    assert found.failure is not None and found.repeatable and found.found > len(found.failure.tries) <= 8
    for index in range(len(found.failure.tries)):
        shorter = (*found.failure.tries[:index], *found.failure.tries[index + 1 :])
        assert repeat(found.space, adapter, found.failure.seed, shorter).divergence is None


def test_a_system_that_answers_otherwise_each_time_is_reported_as_such() -> None:
    found = held(planted.AnswersAtRandom("fencing"))
    assert found.verdict is Verdict.VIOLATED and not found.repeatable
    assert found.failure is not None and found.failure.divergence is not None


def test_one_that_parts_from_the_model_otherwise_each_time_is_not_repeatable() -> None:
    """The same steps lead to it, and yet it is another divergence."""
    plan = Plan(examples=300, seed=3, shrink=False)
    found = held(planted.ShowsAnotherEachTime("fencing"), plan)
    assert found.verdict is Verdict.VIOLATED and not found.repeatable
    # The clean case: what differs is the address of an object alone.
    same = held(planted.NamesAnObject("fencing"), plan)
    assert same.verdict is Verdict.VIOLATED and same.repeatable
    assert same.failure is not None and same.failure.divergence is not None
    assert "is full" in same.failure.divergence.detail


def test_cells_that_were_never_shown_are_named_and_nothing_shown_is_no_verdict() -> None:
    little = held(planted.SeesLittle("fencing"))
    assert little.verdict is Verdict.HOLDS
    unseen = little.coverage.unseen(little.space)
    assert "hw[0]" in unseen and "leo[0]" not in unseen
    nothing = held(planted.SeesNothing("fencing"))
    assert nothing.verdict is Verdict.UNKNOWN and "showed no cell" in (nothing.reason or "")


def test_a_broken_promise_of_an_unsafe_variant_is_told() -> None:
    plan = Plan(examples=2_000, seed=2, draw="random")
    adapter = ModelAdapter("fencing", "truncate-to-hw")
    found = held(adapter, plan)
    assert found.failure is not None and found.failure.divergence is not None
    assert found.failure.divergence.sort is Sort.PROMISE
    assert "_isr does not hold" in found.failure.divergence.detail
    others = held(adapter, Plan(examples=200, seed=2, draw="random", invariants=frozenset({"type_ok"})))
    assert others.verdict is Verdict.HOLDS


def test_the_same_seed_draws_the_same_and_another_seed_another() -> None:
    runs = [held(ModelAdapter("fencing"), Plan(examples=60, seed=seed)).coverage for seed in (5, 5, 6)]
    assert runs[0].visits == runs[1].visits and runs[0].met == runs[1].met
    assert runs[0].visits != runs[2].visits


def test_only_the_faults_that_are_wanted_and_supported_are_drawn() -> None:
    class Few(ModelAdapter):
        faults = frozenset({Kind.ISOLATE, Kind.HEAL, Kind.CRASH})

    found = held(Few("fencing"), Plan(examples=50, faults={Kind.ISOLATE, Kind.LOSE_REQUEST, Kind.CRASH}))
    assert set(found.coverage.faults) == {Kind.ISOLATE}
    assert found.faults == (Kind.ISOLATE,), "kip-320 has no restart, so nothing can crash in it"


def test_time_that_runs_out_is_no_verdict() -> None:
    found = held(ModelAdapter("fencing"), Plan(examples=100_000, max_seconds=0.2))
    assert found.verdict is Verdict.UNKNOWN and "0.2 s ran out" in (found.reason or "")


@pytest.mark.parametrize("looks", range(1, 700, 29))
def test_budget_that_ends_within_an_example_is_unknown(monkeypatch: pytest.MonkeyPatch, looks: int) -> None:
    """Hypothesis calls an example flaky that draws fewer numbers than an earlier one with the same beginning."""
    clock = count()
    monkeypatch.setattr(Deadline, "has_passed", property(lambda self: self.at is not None and next(clock) >= looks))
    found = held(ModelAdapter("fencing"), Plan(examples=400, max_seconds=1000.0))
    assert found.verdict is Verdict.UNKNOWN and "1000 s ran out" in (found.reason or "")


def test_bad_input_passes_through_the_harness() -> None:
    class Unmet(ModelAdapter):
        def observe(self) -> dict[str, object]:  # type: ignore[override]
            raise BadInput("no broker listens", "--impl", "start it")

    with pytest.raises(BadInput, match="no broker listens"):
        held(Unmet("fencing"))


def test_a_try_that_makes_no_sense_where_it_comes_is_passed_over() -> None:
    system = ground(PROTOCOLS["fencing"].traced(None), SMALL)
    space = Space(system, binding_of("fencing", "--protocol"))
    write = Try(("leader_write", (("leader", 0),)))
    never_sent = Try(("become_leader", (("leader", 0), ("epoch", 1))))
    faults = [Try(None, Fault(kind, 0)) for kind in (Kind.HEAL, Kind.MARK_ONLINE, Kind.CRASH)]
    late = Try(None, Fault(Kind.DELIVER_LATE))
    played = repeat(space, ModelAdapter("fencing"), 0, [never_sent, *faults, late, write])
    assert played.tries == (write,)
    assert played.divergence is None and played.history[-1].error == "NOT_LEADER_OR_FOLLOWER"


def test_an_implementation_may_do_more_at_once_and_say_so() -> None:
    class Eager(ModelAdapter):
        """Raises the high watermark while it answers a fetch, as brokers do."""

        def take(self, call: tuple[str, tuple[tuple[str, int], ...]]) -> tuple[tuple[str, dict[str, int]], ...]:
            steps = super().take(call)
            raise_it = ("leader_inc_high_watermark", (("leader", dict(call[1]).get("leader", 0)),))
            if call[0] == "follower_fetch" and raise_it in self.space.node(self.state).after:
                steps += super().take(raise_it)
            return steps  # type: ignore[return-value]

    system = ground(PROTOCOLS["fencing"].traced(None), SMALL)
    found = conform(Eager("fencing"), system, binding_of("fencing", "--protocol"), Plan(examples=200, seed=4))
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
    counts = found.coverage.actions
    assert counts["leader_inc_high_watermark"].beside > 0
    assert all(count.beside == 0 for name, count in counts.items() if name != "leader_inc_high_watermark")
