"""The free run: it lets the model pass, finds each planted defect for what it is, and makes it small."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from fencepost.conformance.harness import binding_of, bound_protocols, held_to, plan_of
from fencepost.conformance.plan import constants_of
from fencepost.conformance.simulation.coverage_feedback import CoverageFeedback
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.model_system import ModelSystem
from fencepost.conformance.simulation.registry import make_system
from fencepost.conformance.simulation.runner import RunRecord, SimulationPlan, harmless, repeat, simulate
from fencepost.conformance.simulation.schedule import is_schedule, lines_of, read_schedule
from fencepost.conformance.simulation.scheduler import Scheduler
from fencepost.conformance.simulation.system import EnabledEvent
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.budget import too_large
from fencepost.model.core.domains import REPLICA
from fencepost.model.core.errors import BadInput
from fencepost.model.core.registry import PROTOCOLS
from fencepost.model.explore.result import Verdict
from fencepost.model.protocols.fencing.state import is_true_leader

from . import planted_free as planted
from .planted_free import followed, ways_of

BINDING = binding_of("fencing", "--protocol")


@pytest.fixture(autouse=True)
def _few_draws(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is found is made small in a second."""
    monkeypatch.setattr("fencepost.conformance.simulation.shrink.DRAWS", 200)


PROMISING = replace(
    BINDING, actions={**BINDING.actions, "leader_write": replace(BINDING.actions["leader_write"], promised=True)}
)

DEFECTS = [
    (planted.ShowsLess, "kip-320", Sort.CELLS, "leo[1] is 2 in the model, 1 in the implementation"),
    (planted.TakesWhatIsLate, "kip-320", Sort.CELLS, "in the implementation"),
    (planted.AnswersWrongly, "kip-320", Sort.ERROR, "it answered NOT_LEADER_OR_FOLLOWER; by the model it is refused"),
    (planted.WritesNothing, "kip-320", Sort.MISSING, "and yet leader_write(leader="),
    (planted.ForgetsOnCrash, "kip-320-restarts", Sort.CELLS, "leo["),
    (planted.FallsOver, "kip-320", Sort.RAISED, "ZeroDivisionError: offset / 0"),
    (planted.SpeaksNonsense, "kip-320", Sort.UNKNOWN, "leader_resign"),
    (planted.ShowsTooMuch, "kip-320", Sort.UNKNOWN, "mood[0]"),
]

DROPPED = [
    ("fencing", "kip-320", "follower_fetch.epoch_not_fenced"),
    ("fencing", "kip-320", "become_follower.leader_epoch_matches"),
    ("fencing", "kip-320", "become_leader.epoch_newer"),
    ("fencing", "kip-320", "leader_inc_high_watermark.isr_acknowledges"),
    ("fencing", "kip-320", "leader_expand_isr.hw_reached_epoch"),
    ("truncation", "kip-320-mended", "consumer_fetch.below_high_watermark"),
]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("protocol", "variant"),
    [("fencing", "kip-320"), ("fencing", "kip-320-brokers"), ("truncation", "kip-320-mended")],
)
def test_the_model_follows_itself_with_messages_in_flight(protocol: str, variant: str) -> None:
    found = followed(ModelSystem(protocol, variant))
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
    assert found.met.events > 1_000
    assert found.met.wide == 0
    kinds = {what.value for what, _ in found.kinds}
    assert {"deliver", "lose", "repeat", "timer"} <= kinds


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("defect", "variant", "sort", "words"), DEFECTS, ids=[row[0].__name__ for row in DEFECTS])
def test_a_planted_defect_is_found_named_and_made_small(
    defect: type[ModelSystem], variant: str, sort: Sort, words: str
) -> None:
    found = followed(defect("fencing", variant), binding=PROMISING)
    assert found.verdict is Verdict.VIOLATED
    assert found.failure is not None and found.failure.divergence is not None
    assert found.failure.divergence.sort is sort
    assert words in found.failure.divergence.headline
    assert found.repeatable and found.minimal
    # The model's own events name epochs, so that an election cannot be left out without those after it.
    assert len(found.failure.events) <= 24
    _is_minimal(defect("fencing", variant), found.failure)


def _is_minimal(system: ModelSystem, failure: RunRecord) -> None:
    """No event of it can be left out."""
    assert failure.divergence is not None
    for left_out in range(len(failure.events)):
        events = failure.events[:left_out] + failure.events[left_out + 1 :]
        divergence = repeat(system, failure.ways, failure.seed, events).divergence
        assert divergence is None or not failure.divergence.alike(divergence)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("protocol", "variant", "guard"), DROPPED)
def test_a_system_without_a_guard_is_found(protocol: str, variant: str, guard: str) -> None:
    found = followed(ModelSystem(protocol, variant, [guard]))
    assert found.verdict is Verdict.VIOLATED
    assert found.failure is not None and found.failure.divergence is not None
    divergence = found.failure.divergence
    named = any(each.guard == guard.partition(".")[2] for each in divergence.refusals)
    assert named or divergence.broken or divergence.cells or "holds an integer from" in divergence.detail


def test_what_is_hidden_widens_the_frontier_and_no_more() -> None:
    found = followed(planted.Hides("fencing", "kip-320"), SimulationPlan(runs=30, events=100, seed=1))
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
    assert found.met.wide > 0 and found.met.widest > 1
    assert not any(name.startswith("hw[") for name in found.met.cells)


def test_what_is_not_there_need_not_be_shown() -> None:
    """Records above the end of a log, requests never sent: nothing can change there unseen."""
    found = followed(
        planted.ShowsWhatIsThere("fencing", "kip-320-brokers"), SimulationPlan(runs=30, events=100, seed=1)
    )
    assert found.verdict is Verdict.HOLDS, found.reason or (found.failure and found.failure.divergence)
    assert found.met.wide == 0 and found.met.events > 500


def test_the_same_seed_draws_the_same_runs() -> None:
    plan = SimulationPlan(runs=20, events=80, seed=5)
    first, second = (followed(ModelSystem("fencing", "kip-320"), plan) for _ in range(2))
    assert (first.met, first.kinds) == (second.met, second.kinds)
    other = followed(ModelSystem("fencing", "kip-320"), replace(plan, seed=6))
    assert other.kinds != first.kinds


def test_a_run_of_nothing_is_no_verdict() -> None:
    found = followed(planted.Idle("fencing", "kip-320"), SimulationPlan(runs=3))
    assert found.verdict is Verdict.UNKNOWN
    assert found.reason is not None and "nothing ever happened" in found.reason


def test_too_many_paths_are_no_verdict(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.simulation.tracker.MAX_STATES", 1)
    found = followed(ModelSystem("fencing", "kip-320"), SimulationPlan(runs=3, events=50))
    assert found.verdict is Verdict.UNKNOWN and found.unfinished == 3
    assert found.reason is not None and "runs were given up" in found.reason


@pytest.mark.sampled(3)
@pytest.mark.parametrize("where", ["happen", "pending", "observe"])
def test_what_cannot_be_driven_is_no_verdict(where: str) -> None:
    """What a harness waits for in vain is no fault of the system's; but where that parts in another run, it does."""
    system = planted.Stuck("fencing", "kip-320")
    system.where = where
    found = followed(system, SimulationPlan(runs=20, events=100, seed=3))
    assert found.verdict is Verdict.UNKNOWN and 0 < found.unfinished < 20
    assert found.reason is not None and found.reason.endswith("given up: broker 1 did not come up in 60 s")


def test_without_faults_nothing_goes_wrong() -> None:
    found = followed(ModelSystem("fencing", "kip-320-restarts"), SimulationPlan(runs=30, events=100, faults=False))
    assert found.verdict is Verdict.HOLDS
    assert not {what.value for what, _ in found.kinds} & {"lose", "repeat", "crash", "cut", "probe"}


def _commits(k: Algebra, s: View, well: Value) -> Value:
    """What the leader has is committed."""
    leads = s.quorum_leader != k.NONE
    return k.implies(
        leads,
        k.forall(REPLICA, lambda r: k.implies(k.all(k.member(r, well), is_true_leader(k, s, r)), s.hw[r] == s.leo[r])),
    )


def test_in_the_end_what_must_come_has_come() -> None:
    settling = replace(BINDING, settles=(_commits,))
    found = followed(ModelSystem("fencing", "kip-320"), SimulationPlan(runs=20, events=60), settling)
    assert found.verdict is Verdict.HOLDS, found.failure and found.failure.divergence
    lazy = planted.NeverFetches("fencing", "kip-320")
    found = followed(lazy, SimulationPlan(runs=60, events=60), settling)
    assert found.failure is not None and found.failure.divergence is not None
    assert found.failure.divergence.sort is Sort.NEVER
    assert "What the leader has is committed" in found.failure.divergence.headline
    assert found.failure.events[-1].what is EventKind.PEACE
    assert found.repeatable
    assert len(found.failure.events) <= 8
    # Without the peace at its end the run is as any other.
    events = found.failure.events[:-1]
    assert repeat(lazy, found.failure.ways, found.failure.seed, events).divergence is None


def test_a_schedule_is_read_back_and_runs_again(tmp_path: Path) -> None:
    system = planted.ShowsLess("fencing", "kip-320")
    found = followed(system)
    assert found.failure is not None
    file = tmp_path / "disagreement.schedule.jsonl"
    file.write_text("\n".join(lines_of(found.failure, "model")) + "\n", encoding="utf-8")
    assert is_schedule(file)
    read = read_schedule(file)
    assert (read.protocol, read.variant, read.impl) == ("fencing", "kip-320", "model")
    assert read.events == found.failure.events
    again = repeat(system, ways_of("fencing", "kip-320", **read.constants), read.seed, read.events)
    assert again.divergence is not None and again.divergence.headline == found.failure.divergence.headline  # type: ignore[union-attr]


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('{"event": "explode"}', "there is no event 'explode'"),
        ('{"event": "deliver", "number": -1}', "an event's number is -1"),
        ('{"event": "call", "colour": 1}', "an event has no 'colour'"),
        ('{"event": "call", "args": {"a": 1.5}}', "an event's a is 1.5"),
        ("[]", "no JSON object"),
        ("{", "no JSON"),
    ],
)
def test_a_bad_schedule_is_refused_with_its_line(tmp_path: Path, line: str, words: str) -> None:
    file = tmp_path / "bad.jsonl"
    head = '{"format": "fencepost-schedule", "protocol": "p", "variant": "v", "constants": {}, "impl": "x", "seed": 1}'
    file.write_text(f"{head}\n{line}\n", encoding="utf-8")
    with pytest.raises(BadInput) as error:
        read_schedule(file)
    assert words in str(error.value) and "line 2" in str(error.value)


def test_no_schedule_is_taken_for_one(tmp_path: Path) -> None:
    other = tmp_path / "trace.jsonl"
    other.write_text('{"format": "fencepost-trace"}\n', encoding="utf-8")
    assert not is_schedule(other) and not is_schedule(tmp_path / "nowhere")
    with pytest.raises(BadInput, match="this is no schedule"):
        read_schedule(other)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", list(bound_protocols()))
def test_what_a_plan_runs_at_is_within_what_the_command_takes(protocol: str) -> None:
    plan = plan_of(PROTOCOLS[protocol])
    system = make_system("memory", protocol, None)
    assert plan.free
    for at in plan.free:
        assert too_large(held_to(protocol).traced(system.variant), constants_of(held_to(protocol), at)) is None, at


def test_runs_go_through_the_constants_by_turns() -> None:
    portfolio = [ways_of("fencing", "kip-320", **{**planted.SMALL, "replicas": number}) for number in (2, 3)]
    found = simulate(ModelSystem("fencing", "kip-320"), portfolio, SimulationPlan(runs=4, events=40))
    assert [each["replicas"] for each in found.constants] == [2, 3]
    assert "leo[2]" in found.met.cells


def drawn(pending: Sequence[EnabledEvent], *, faults: bool = True) -> Counter[tuple[str, EventKind, bool]]:
    """By name, event and whether power is lost in its midst, what twenty runs draw of the same pending events."""
    found: Counter[tuple[str, EventKind, bool]] = Counter()
    memory = CoverageFeedback()
    for seed in range(20):
        scheduler = Scheduler(seed, memory, faults=faults)
        for _ in range(20):
            event = scheduler.next(pending)
            assert event is not None
            scheduler.after(event, (), new=False)
            found[event.name, event.what, event.crash is not None] += 1
    return found


def test_what_a_system_weighs_less_is_drawn_less() -> None:
    often, seldom = Event(EventKind.CALL, "often", 0), Event(EventKind.CALL, "seldom", 0)
    found = drawn([EnabledEvent(often), EnabledEvent(seldom, weight=0.01)], faults=False)
    assert 0 < found["often", EventKind.CALL, False] > 10 * found["seldom", EventKind.CALL, False]
    alike = drawn([EnabledEvent(often), EnabledEvent(seldom)], faults=False)
    assert alike["often", EventKind.CALL, False] < 10 * alike["seldom", EventKind.CALL, False]


def test_each_failure_comes_to_an_event_of_a_sort_of_its_own() -> None:
    """Among a hundred events that look like it there is one: it is lost, comes twice, and is broken off."""
    plain = [EnabledEvent(Event(EventKind.DELIVER, "Fetch", 0, 1, number), number) for number in range(1, 60)]
    rare = EnabledEvent(Event(EventKind.DELIVER, "Fetch", 0, 1), 0, sort="a snapshot")
    memory = CoverageFeedback()
    for failure in ("lost", "repeated", "broken"):
        assert memory.fresh(plain[0], failure) == 0
        assert memory.fresh(rare, failure) > 0.2
        for _ in range(50):
            memory.failed(rare, failure)
        assert memory.fresh(rare, failure) < 0.02
    assert {(what, broken) for _, what, broken in drawn([rare])} >= {
        (EventKind.LOSE, False),
        (EventKind.REPEAT, False),
        (EventKind.DELIVER, True),
    }
    assert {what for _, what, _ in drawn([rare], faults=False)} == {EventKind.DELIVER}


def test_a_timer_of_which_nothing_came_waits_until_something_else_happens_there() -> None:
    dull, other = Event(EventKind.TIMER, "dull", 0), Event(EventKind.TIMER, "dull", 1)
    came = Counter[str]()
    for seed in range(40):
        scheduler = Scheduler(seed, CoverageFeedback(), faults=False)
        scheduler.after(dull, (), new=False, changed=False)
        came["after nothing"] += scheduler.next([EnabledEvent(dull), EnabledEvent(other)]) == dull
        scheduler.after(Event(EventKind.DELIVER, "Fetch", 1, 0), (), new=False)
        came["after a message to another"] += scheduler.next([EnabledEvent(dull), EnabledEvent(other)]) == dull
        scheduler.after(Event(EventKind.DELIVER, "Fetch", 0, 1), (), new=False)
        came["after a message"] += scheduler.next([EnabledEvent(dull), EnabledEvent(other)]) == dull
    assert max(came["after nothing"], came["after a message to another"]) <= 5
    assert 10 <= came["after a message"] <= 30


def test_where_nothing_changes_somebody_is_elected_even_in_calm() -> None:
    """Many runs begin in calm, and a cluster in which nobody leads yet would stay as it is for all of that."""
    pending = [EnabledEvent(Event(EventKind.CALL, "produce", 0)), EnabledEvent(Event(EventKind.OPERATE, "elect"))]
    waited, crashed = [], 0
    for seed in range(40):
        scheduler = Scheduler(seed, CoverageFeedback(), faults=False)
        for number in range(100):
            event = scheduler.next([*pending, EnabledEvent(Event(EventKind.CRASH, node=0))])
            assert event is not None
            scheduler.after(event, ("Produce",), new=False, changed=False)
            if event.what is EventKind.OPERATE:
                waited.append(number)
                break
            crashed += event.what is EventKind.CRASH
    assert len(waited) >= 36 and sorted(waited)[20] < 40
    assert crashed == 0


def test_what_hides_nothing_is_at_nodes_whose_disks_work() -> None:
    here, there = (
        EnabledEvent(Event(EventKind.DELIVER, "Fetch", 0, 1)),
        EnabledEvent(Event(EventKind.DELIVER, "Fetch", 1, 0)),
    )
    trouble = [
        EnabledEvent(Event(EventKind.CRASH, node=0)),
        EnabledEvent(Event(EventKind.CUT, node=1)),
        EnabledEvent(Event(EventKind.DISK, "full", 0)),
    ]
    assert harmless([here, there, *trouble]) == [here, there]
    assert harmless([here, there, *trouble, EnabledEvent(Event(EventKind.DISK, "mended", 1))]) == [here]
