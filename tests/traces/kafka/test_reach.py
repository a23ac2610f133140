"""Is there a run of the model that ends in these logs? Runs there and back, and logs that nothing could leave."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from fencepost.model.core.ground import State, ground
from fencepost.model.explore import Limits, Verdict
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.fencing import fencing
from fencepost.model.protocols.fencing.lossy import lossy
from fencepost.model.protocols.fencing.proof import kip_320
from fencepost.traces.kafka.abstraction import ABSENT, Abstraction, NewestEpoch, abstract, merge_equal
from fencepost.traces.kafka.partition import PartitionFiles
from fencepost.traces.kafka.reach import WIDTHS, Reach, guided_reach, reach, reach_any
from fencepost.traces.kafka.ruled_out import is_ruled_out
from fencepost.traces.kafka.statefiles import EpochEntry
from fencepost.traces.kafka.truncation import EpochCache
from fencepost.traces.record import check_run, run_of
from fencepost.traces.stepper import CompiledStepper, TakenStep
from hypothesis import given, settings
from hypothesis import strategies as st

from .replica_logs import logs_of, plain, read

LIMITS = Limits(max_states=2_000_000)

UNCLEAN = abstract({1: plain("a0", 1), 2: plain("a0 b0", 2), 3: plain("a0 c2", 2)}, 3)
"""An unclean election: b was committed (below broker 2's high watermark), and is not on the leader of epoch 2."""


def confirmed(found: Reach, target: Abstraction) -> State:
    """The state in which the run ends, each step confirmed by the reference, and the state the target's logs."""
    assert found.verdict is Verdict.HOLDS
    path = found.search.path
    assert path is not None
    run = run_of(path)
    check_run(Reference(found.system), run)
    state = run[-1].state if run else found.system.initial
    layout = found.system.layout
    for r in range(len(target.nodes)):
        assert read(layout, state, f"leo[{r}]") == target.end(r)
        mark = target.high_watermarks[r]
        assert mark is None or mark <= read(layout, state, f"hw[{r}]")
        for o, block in enumerate(target.blocks):
            if block.identities[r] == ABSENT:
                continue
            assert read(layout, state, f"record_epoch[{r}][{o}]") == target.epochs[block.epochs[r]]
            for other in range(r):
                if block.identities[other] != ABSENT:
                    ids = [read(layout, state, f"record_id[{each}][{o}]") for each in (r, other)]
                    assert (ids[0] == ids[1]) == (block.identities[r] == block.identities[other])
    return state


@settings(max_examples=12)
@given(
    st.lists(st.integers(0, 1 << 16), min_size=4, max_size=40),
    st.tuples(st.integers(1, 5), st.integers(1, 5)),
    st.sampled_from([(0, 1, 2), (0, 1, 9), (3, 4, 5), (2, 7, 30)]),
    st.integers(0, 500),
)
def test_where_a_run_of_the_model_ends_a_run_is_found(
    choices: list[int], widths: tuple[int, int], epochs: tuple[int, ...], start: int
) -> None:
    run = list(walk(choices))
    state = run[-1].state if run else SYSTEM.initial
    target = abstract(logs_of(SYSTEM, state, widths, epochs, start), 3)
    (found,) = reach_any(fencing, ["kip-320"], target, limits=LIMITS)
    confirmed(found, target)
    assert found.search.path is not None
    # An epoch of the known run may stand for several real ones, and each needs a step of the controller's.
    known = max(state[cell.number] for cell in SYSTEM.layout.cells if cell.variable.name == "record_epoch")
    more = max(0, target.last_epoch - known)
    assert len(found.search.path) <= len(run) + more, "the shortest run is no longer than one that is known"


SYSTEM = ground(fencing.traced("kip-320"), {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2})
STEPPER = CompiledStepper(SYSTEM)


def walk(choices: list[int]) -> list[TakenStep]:
    """A walk through kip-320 at 3/2/2/2: the n-th number chooses among the steps of the n-th state."""
    run: list[TakenStep] = []
    for choice in choices:
        steps = STEPPER.every(run[-1].state if run else SYSTEM.initial)
        if not steps:
            break
        run.append(steps[choice % len(steps)])
    return run


def test_an_unclean_election_is_reached_by_truncation_to_the_high_watermark_alone() -> None:
    safe = reach(fencing, "kip-320", UNCLEAN, spare=0, limits=LIMITS)
    assert safe.verdict is Verdict.VIOLATED
    assert safe.bounds == "3 replicas, 2 offsets, 3 records, leader epochs up to 2"
    assert safe.search.path is None
    lossy = reach(fencing, "truncate-to-hw", UNCLEAN, spare=0, limits=LIMITS)
    confirmed(lossy, UNCLEAN)
    assert lossy.search.path is not None and len(lossy.search.path) == 19


def test_the_same_logs_are_reached_where_the_record_was_not_committed() -> None:
    # The planted fault of the case above, taken out: b is above every high watermark.
    target = abstract({1: plain("a0", 1), 2: plain("a0 b0", 1), 3: plain("a0 c2", 1)}, 3)
    confirmed(reach(fencing, "kip-320", target, spare=0, limits=LIMITS), target)


@pytest.mark.parametrize(
    "logs",
    [
        {1: plain("a1 b0"), 2: plain("a1")},
        {1: plain("a0 b0", 2), 2: plain("c0", 1)},
    ],
    ids=["epochs fall", "two records of one epoch at one offset"],
)
def test_what_no_variant_leaves_is_reached_by_none(logs: dict[int, object]) -> None:
    target = abstract(logs, 2)  # type: ignore[arg-type]
    designs = [each.name for each in fencing.variants.values() if not each.restarts]
    searches = reach_any(fencing, designs, target, limits=LIMITS)
    assert [each.variant for each in searches] == designs
    assert {each.verdict for each in searches} == {Verdict.VIOLATED}
    assert {(each.spare, each.later) for each in searches} == {WIDTHS[-1]}, "the last search stands"


def test_variants_are_asked_in_turn_up_to_the_first_that_reaches() -> None:
    order = ["kip-320", "kip-279", "truncate-to-hw", "kip-101"]
    target = abstract({1: plain("a0", 1), 2: plain("", 0)}, 2)
    searches = reach_any(fencing, order, target, limits=LIMITS)
    reached = [each.verdict is Verdict.HOLDS for each in searches]
    assert reached == [False] * (len(reached) - 1) + [True]
    assert [each.variant for each in searches] == order[: len(searches)]


def test_a_replica_without_files_may_hold_what_the_others_lack() -> None:
    # The high watermark of 2 needs a second member of the ISR that has both records, and broker 2 has one.
    logs = {1: plain("a0 b0", 2), 2: plain("a0", 1)}
    target = abstract(logs, 3)
    assert target.unseen == 1
    found = reach(fencing, "kip-320", target, spare=0, limits=LIMITS)
    confirmed(found, target)
    assert found.system.constants["replicas"] == 3


def test_a_leader_elected_after_the_last_record_may_have_moved_a_high_watermark() -> None:
    # Broker 3 wrote b in epoch 3 and lost the leadership to broker 2, which wrote a. Then it was elected again, alone
    # in the ISR, and counted b as committed: no record tells of that epoch.
    target = abstract({1: plain("", 0), 2: plain("a4 a4", 0), 3: plain("b3 b3", 2)}, 3)
    assert reach(fencing, "kip-320", target, spare=0, limits=LIMITS).verdict is Verdict.VIOLATED
    (found,) = reach_any(fencing, ["kip-320"], target, limits=LIMITS)
    confirmed(found, target)
    assert found.later == 1


@pytest.mark.parametrize("variant", ["kip-320", "truncate-to-hw"])
def test_a_spent_budget_is_unknown_and_never_an_answer(variant: str) -> None:
    found = reach(fencing, variant, UNCLEAN, spare=0, limits=Limits(max_states=200))
    assert found.verdict is Verdict.UNKNOWN
    assert found.search.reason == "more than 200 states (--max-states)"
    searches = reach_any(fencing, ["kip-320"], UNCLEAN, limits=Limits(max_states=200))
    assert [each.verdict for each in searches] == [Verdict.UNKNOWN]


def test_empty_logs_are_reached_by_doing_nothing() -> None:
    target = abstract({1: plain("", 0), 2: plain("", 0), 3: plain("", 0)}, 3)
    found = reach(fencing, "kip-320", target, spare=0, limits=LIMITS)
    assert found.search.path == []
    confirmed(found, target)


@pytest.mark.parametrize("wrong", ["longer", "higher", "newer"])
def test_the_run_to_one_state_is_not_taken_for_another(wrong: str) -> None:
    """The confirmation of this file is no formality: it refuses a run to other logs."""
    target = abstract({1: plain("a0", 1), 2: plain("a0", 0)}, 2)
    others: dict[str, Callable[[], Abstraction]] = {
        "longer": lambda: abstract({1: plain("a0", 0), 2: plain("", 0)}, 2),
        "higher": lambda: abstract({1: plain("a0", 1), 2: plain("a0", 1)}, 2),
        "newer": lambda: abstract({1: plain("a1", 1), 2: plain("a1", 0)}, 2),
    }
    found = reach(fencing, "kip-320", target, spare=0, limits=LIMITS)
    confirmed(found, target)
    with pytest.raises(AssertionError):
        confirmed(found, others[wrong]())


EMPTY_LEADER = {
    1: plain("a1 b1 c1", 3, cache=[(1, 0)]),
    2: plain("a1 b1", 2, cache=[(1, 0)]),
    3: plain("a1", 1, cache=[(1, 0), (2, 1)]),
}
"""Broker 3 leads epoch 2 from offset 1 on and wrote nothing in it; broker 1 had committed three records in epoch 1."""


def test_epoch_entry_without_records_rules_logs_out() -> None:
    """Without the entry the logs are those of followers that lag; with it, broker 3 leads without committed records."""
    target = abstract(EMPTY_LEADER, 3)
    assert target.newest == (NewestEpoch(1, False), NewestEpoch(1, False), NewestEpoch(2, True))
    assert is_ruled_out(kip_320, target)
    without = {node: replace(log, epoch_cache=None) for node, log in EMPTY_LEADER.items()}  # type: ignore[type-var]
    assert not is_ruled_out(kip_320, abstract(without, 3))
    confirmed(reach(fencing, "kip-320", abstract(without, 3), spare=0, limits=LIMITS), abstract(without, 3))


def test_epoch_cache_that_contradicts_the_log_is_no_condition() -> None:
    wrong = plain("a1 b1", 2, cache=[(1, 0), (2, 1)])
    assert abstract({1: wrong}, 1).newest == (None,), "the entry begins below the LEO, and has no record"


def logs_with_caches(run: list[TakenStep]) -> dict[int, PartitionFiles]:
    """The logs at the end of a run of ``SYSTEM``, with the epoch caches that Kafka's rules make along it."""
    layout = SYSTEM.layout
    caches = [EpochCache(()) for _ in range(SYSTEM.constants["replicas"])]
    before = SYSTEM.initial
    for step in run:
        params = dict(step.params)
        for r, cache in enumerate(caches):
            end = read(layout, step.state, f"leo[{r}]")
            cache.truncate_from_end(end + 1 if end >= read(layout, before, f"leo[{r}]") else end)
            for offset in range(read(layout, before, f"leo[{r}]"), end):
                cache.assign(read(layout, step.state, f"record_epoch[{r}][{offset}]"), offset)
        if step.action == "become_leader":
            leader = params["leader"]
            caches[leader].assign(params["epoch"], read(layout, step.state, f"leo[{leader}]"))
        before = step.state
    plain_logs = logs_of(SYSTEM, before, (1, 1), (0, 1, 2))
    return {
        node: replace(log, epoch_cache=tuple(EpochEntry(*each) for each in cache._entries))  # type: ignore[type-var]
        for (node, log), cache in zip(sorted(plain_logs.items()), caches, strict=True)
    }


@settings(max_examples=60)
@given(st.lists(st.integers(0, 1 << 16), min_size=4, max_size=60))
def test_invariants_never_rule_out_a_reachable_state(choices: list[int]) -> None:
    target = abstract(logs_with_caches(list(walk(choices))), 3)
    assert not is_ruled_out(kip_320, target)


LOGS = st.lists(st.sampled_from(["a0", "b1", "c2"]), max_size=2).map(" ".join)


@settings(max_examples=40)
@given(st.lists(LOGS, min_size=2, max_size=2), st.integers(0, 2), st.integers(0, 2))
def test_merged_logs_are_reached_only_if_all_are(texts: list[str], twin: int, mark: int) -> None:
    """Three replicas, two of them with one log: a run of the two distinct logs means that one of all three exists."""
    three = [*texts, texts[twin % 2]]
    target = abstract({n: plain(text, min(mark, len(text.split()))) for n, text in enumerate(three, 1)}, 3)
    small = merge_equal(target)
    assert small.replicas < target.replicas and small.merged
    (merged,) = reach_any(fencing, ["kip-320"], small, limits=LIMITS)
    if merged.verdict is Verdict.HOLDS:
        (whole,) = reach_any(fencing, ["kip-320"], target, limits=LIMITS)
        confirmed(whole, target)
    if is_ruled_out(kip_320, target):
        assert merged.verdict is Verdict.VIOLATED


@settings(max_examples=40)
@given(st.lists(LOGS, min_size=3, max_size=3), st.lists(st.integers(0, 2), min_size=3, max_size=3))
def test_ruled_out_logs_are_reached_by_no_search(texts: list[str], marks: list[int]) -> None:
    rows = zip(texts, marks, strict=True)
    logs = {n: plain(text, min(mark, len(text.split()))) for n, (text, mark) in enumerate(rows, 1)}
    target = abstract(logs, 3)
    if is_ruled_out(kip_320, target):
        (found,) = reach_any(fencing, ["kip-320"], target, limits=LIMITS)
        assert found.verdict is not Verdict.HOLDS


def test_equal_logs_merge_into_the_one_that_led() -> None:
    logs = {1: plain("a0", 1, cache=[(0, 0)]), 2: plain("a0", 0, cache=[(0, 0), (1, 1)]), 3: plain("", 0)}
    small = merge_equal(abstract(logs, 3))
    assert small.nodes == (2, 3) and small.merged == ((1, 2), (3,))
    assert small.newest[0] == NewestEpoch(1, True) and small.high_watermarks == (1, 0)


def test_lost_disk_explains_a_loss() -> None:
    target = abstract({1: plain("a0", 1), 2: plain("b1", 1, cache=[(1, 0)])}, 2)
    assert is_ruled_out(kip_320, target)
    found = guided_reach(lossy, "kip-320-lossy", target, later=0, limits=LIMITS)
    confirmed(found, target)
    assert found.search.path is not None
    actions = {step.instance.action for step in found.search.path}
    assert actions & {"replica_lose_log", "controller_elect_uncleanly"}


def test_guided_search_that_ends_early_is_unknown() -> None:
    found = guided_reach(fencing, "kip-320", UNCLEAN, later=0, limits=Limits(max_states=100))
    assert found.verdict is Verdict.UNKNOWN
    assert found.search.reason == "more than 100 states (--max-states)"
