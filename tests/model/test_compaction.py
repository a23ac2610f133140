"""KIP-280, exhaustively: what the text and each twin break and how soon, and that the mended rules break nothing.

Constants: replicas/log size/keys/timestamps/header values/repeated headers/leader epoch/changes/brokers' strategy
(0 unset, 1 offset, 2 timestamp, 3 header)/consumers.
"""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.explore import Exploration, Query, Verdict, explore
from fencepost.model.explore.graph import build_graph
from fencepost.model.explore.liveness import check_property
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.compaction import compaction

from .conftest import COMPILED

DEFAULT = "2/2/1/2/0/0/1/1/0/1"
PROMISES = tuple(compaction.invariants)
SAFE = "kip-280-safe"

# Distinct states and depth of the safe variant, and of the one with an empty batch.
HOLDS = {
    "2/2/1/2/0/0/1/0/2/1": ((801825, 22), (913425, 24)),
    "2/3/1/2/0/0/0/0/2/0": ((336253, 21), (374689, 23)),
    "2/3/2/1/0/0/0/0/0/0": ((304977, 22), (321425, 22)),
    "1/3/2/2/0/0/0/0/2/1": ((68306, 16), (69962, 16)),
    "2/2/1/1/1/0/0/1/0/1": ((456857, 19), (489257, 25)),
    "1/3/1/1/2/1/0/0/3/0": ((288402, 13), (298161, 13)),
}
# The same of the others: two replicas under timestamps, and one with headers while a strategy is set.
TIMESTAMPS = "2/2/1/2/0/0/0/0/2/1"
HEADERS = "1/2/1/1/1/1/0/1/0/0"
OTHERS = {
    "kip-280": ((30305, 18), (41445, 11)),
    "slow-readers": ((28325, 18), (25755, 11)),
    "uncleaned-tail": ((26729, 18), (25887, 11)),
    "late-producers": ((25697, 18), (25755, 11)),
    "reads-again": ((32769, 21), (27807, 13)),
    "changes-uncleaned": ((25697, 18), (29823, 11)),
    "rolling-change": ((25697, 18), (37065, 11)),
    "maps-dirty-part": ((25697, 18), (25755, 11)),
    "forgets-deletes": ((25697, 18), (25755, 11)),
    "reads-by-offset": ((25697, 18), (25755, 11)),
    "removes-last": ((29145, 20), (27807, 13)),
    "ties-to-lower": ((20177, 18), (18959, 10)),
    "first-occurrence": ((25697, 18), (25715, 11)),
    "anomalous-stays": ((25697, 18), (25725, 11)),
    "trusts-header": ((25697, 18), (29115, 11)),
    "cleans-uncommitted": ((42297, 18), (41677, 11)),
    "cleans-active": ((63489, 18), (41663, 11)),
    "empty-batch": ((29449, 20), (27807, 13)),
    SAFE: ((25697, 18), (25755, 11)),
}
_TOMBSTONES = "1/2/1/2/0/0/0/0/2/0"
_READ = "1/2/1/2/0/0/0/0/2/1"
_SET = "1/3/1/2/0/0/0/1/0/0"
_TWO_KEYS = "1/3/2/2/0/0/0/0/2/0"
_SLOW = "2/3/2/1/0/0/0/0/0/0"
"""Of these two replicas one may lag. The strategy is ``offset``: so it is in Kafka as shipped."""
_UNCOMMITTED = "1/2/1/1/0/0/0/0/0/0"
# Steps of the shortest run that breaks a promise asked for alone, and where.
BREACHES = {
    ("kip-280", _SLOW): {"deleted_stays_deleted": 14},
    ("kip-280", _TOMBSTONES): {"deleted_stays_deleted": 8},
    ("kip-280", _READ): {"consumer_agrees": 7},
    ("kip-280", _SET): {"winner_is_kept": 8},
    ("kip-280", _TWO_KEYS): {"survivor_is_alone": 10},
    ("slow-readers", _SLOW): {"deleted_stays_deleted": 14},
    ("slow-readers", "1/3/2/1/0/0/0/0/0/1"): {"consumer_agrees": 11},
    ("uncleaned-tail", _TOMBSTONES): {"deleted_stays_deleted": 8},
    ("late-producers", _TWO_KEYS): {"deleted_stays_deleted": 10},
    ("reads-again", "2/2/1/1/0/0/1/0/0/1"): {"consumer_agrees": 17},
    ("changes-uncleaned", "2/2/1/2/0/0/0/1/0/0"): {"winner_is_kept": 11},
    ("rolling-change", _SET): {"winner_is_kept": 8},
    ("rolling-change", "2/2/1/2/0/0/0/1/0/0"): {"winner_is_kept": 9},
    ("maps-dirty-part", _TWO_KEYS): {"survivor_is_alone": 10},
    ("forgets-deletes", _READ): {"consumer_agrees": 7},
    ("reads-by-offset", _READ): {"consumer_agrees": 7},
    ("ties-to-lower", "1/3/1/2/0/0/0/0/2/0"): {"winner_is_kept": 8},
    ("ties-to-lower", "1/3/1/1/1/0/0/0/3/0"): {"winner_is_kept": 8},
    ("first-occurrence", "1/3/1/1/2/1/0/0/3/0"): {"winner_is_kept": 7},
    ("anomalous-stays", "1/3/1/1/1/0/0/0/3/0"): {"winner_is_kept": 7},
    ("trusts-header", "1/3/1/1/1/0/0/1/0/0"): {"winner_is_kept": 8, "header_is_long": 3},
    ("cleans-uncommitted", _UNCOMMITTED): {"uncommitted_is_whole": 5, "active_segment_is_uncleaned": 4},
    ("cleans-active", _UNCOMMITTED): {"active_segment_is_uncleaned": 4},
}


@cache
def at(constants: str, variant: str = SAFE, *dropped: str) -> System:
    values = dict(zip(compaction.constants, map(int, constants.split("/")), strict=True))
    return ground(compaction.traced(variant).drop(*dropped), values)


def answer_to(system: System, *invariants: str, symmetry: bool = False) -> Exploration:
    """The batch engine's answer; a counterexample is walked again by the reference, whose opinion counts."""
    answer = explore(Query.of(system, invariants, symmetry=symmetry))
    if answer.path is not None:
        reference = Reference(system)
        state = system.initial
        for step in answer.path:
            assert not set(answer.query.invariants) & set(reference.broken(state)), "a shorter path breaks it too"
            after = reference.step(state, step.instance.action, step.instance.params)
            assert after == step.state
            state = after
        assert answer.violated in reference.broken(state)
    return answer


def never(answer: Exploration) -> set[str]:
    """The actions that no state enables."""
    return {name for name, count in answer.transitions.items() if not count}


def test_the_default_constants_and_variant() -> None:
    assert "/".join(str(spec.default) for spec in compaction.constants.values()) == DEFAULT
    assert compaction.default_variant == SAFE
    assert set(OTHERS) == set(compaction.variants)


@pytest.mark.nightly(seconds=30)
def test_the_mended_rules_keep_every_promise_at_the_default_constants() -> None:
    answer = answer_to(at(DEFAULT))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, 6732593, 23)
    assert answer.query.invariants == ("type_ok", *PROMISES)
    assert all(answer.witnesses.values())


@pytest.mark.sampled(3)
@pytest.mark.parametrize("variant", [SAFE, "empty-batch"])
@pytest.mark.parametrize("constants", HOLDS)
def test_distinct_states_and_depth_of_the_safe_variants(constants: str, variant: str) -> None:
    answer = answer_to(at(constants, variant))
    expected = HOLDS[constants][variant == "empty-batch"]
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)
    assert all(answer.witnesses.values())


@pytest.mark.nightly(seconds=60)
@pytest.mark.parametrize(
    ("variant", "constants", "expected"),
    [
        (SAFE, "3/2/1/1/0/0/1/0/0/0", (2106391, 27)),
        (SAFE, "2/3/1/1/0/0/1/0/0/1", (4302329, 28)),
        (SAFE, "2/2/1/2/0/0/0/2/0/1", (1641409, 20)),
        ("empty-batch", "3/2/1/1/0/0/1/0/0/0", (2367553, 29)),
        ("empty-batch", "2/3/1/1/0/0/1/0/0/0", (1508817, 26)),
    ],
)
def test_so_it_is_at_larger_constants(variant: str, constants: str, expected: tuple[int, int]) -> None:
    answer = answer_to(at(constants, variant))
    assert (answer.verdict, answer.distinct, answer.depth) == (Verdict.HOLDS, *expected)


def test_no_action_is_vacuous() -> None:
    """With elections; while strategies are set; and the two of some variants alone."""
    seen = {action.name for action in compaction.traced().actions}
    assert set(compaction.actions) - seen == {"follower_fetch_empty_batch", "consumer_start_over"}
    for constants in ("2/2/1/1/0/0/1/0/0/1", "1/2/1/1/0/0/0/2/0/1"):
        seen &= never(explore(Query.of(at(constants), ("type_ok",))))
    assert seen == set()
    again = never(explore(Query.of(at(TIMESTAMPS, "reads-again"), ("type_ok",))))
    assert not again & {"follower_fetch_empty_batch", "consumer_start_over"}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("variant", list(OTHERS))
def test_distinct_states_and_depth_of_every_variant(variant: str) -> None:
    for constants, expected in zip((TIMESTAMPS, HEADERS), OTHERS[variant], strict=True):
        answer = explore(Query.of(at(constants, variant), ("type_ok",)))
        assert (answer.distinct, answer.depth, answer.path) == (*expected, None), constants


def test_the_engines_visit_the_same_states() -> None:
    for variant, constants in (
        (SAFE, "2/2/1/1/0/0/0/0/0/1"),
        ("kip-280", "1/2/1/1/1/0/0/1/0/1"),
        ("removes-last", "2/2/1/1/0/0/1/0/0/0"),
    ):
        query = Query.of(at(constants, variant))
        batch, staged, *compiled = (explore(query, engine=name) for name in ("batch", "reference", *COMPILED))
        for other in (staged, *compiled):
            assert (batch.distinct, batch.depth, batch.transitions) == (other.distinct, other.depth, other.transitions)
            assert batch.witnesses == other.witnesses


@pytest.mark.sampled(3)
@pytest.mark.parametrize(("variant", "constants"), list(BREACHES))
def test_what_each_variant_breaks_and_how_soon(variant: str, constants: str) -> None:
    for name, length in BREACHES[variant, constants].items():
        answer = answer_to(at(constants, variant), name)
        assert answer.path is not None
        assert (answer.violated, len(answer.path)) == (name, length)


def test_the_text_s_divergence_is_found() -> None:
    """Leader and one follower have the last record, another has not; it goes; who lacks it leads and gives its offset.

    With two replicas there is none: somebody must still have the record whose offset is given again.
    """
    answer = answer_to(at("3/2/1/2/0/0/1/0/2/0", "removes-last"), symmetry=True)
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == ("offsets_agree", 16)
    told = [(step.instance.action, dict(step.instance.params)) for step in answer.path]
    (removed,) = [params for action, params in told if action == "remove_record"]
    leaders = [params["replica"] for action, params in told if action == "elect_leader"]
    assert leaders[0] == removed["replica"] and removed["offset"] == 1
    fetched = {params["replica"] for action, params in told if action == "follower_fetch" and params["offset"] == 1}
    assert fetched == {0, 1, 2} - set(leaders)
    assert [action for action, _ in told[-3:]] == ["leader_expand_isr", "elect_leader", "leader_write"]
    layout, last = at("3/2/1/2/0/0/1/0/2/0", "removes-last").layout.by_name, answer.path[-1].state
    at_offset_1 = [last[layout[f"record_epoch[{replica}][1]"]] for replica in range(3)]
    assert sorted(at_offset_1) == [-1, 0, 1], "removed, the committed one, another one"
    two = explore(Query.of(at("2/2/1/2/0/0/1/0/2/0", "removes-last"), ("offsets_agree",)))
    assert two.verdict is Verdict.HOLDS


def test_the_tombstone_argument_of_kip_630_is_found() -> None:
    """A follower has the record and not its tombstone, which is removed at the leader; it goes on behind that."""
    answer = answer_to(at(_SLOW, "slow-readers"))
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == ("deleted_stays_deleted", 14)
    told = [(step.instance.action, dict(step.instance.params)) for step in answer.path]
    slow = {params["replica"] for action, params in told if action == "follower_fetch"}
    assert [params["offset"] for action, params in told if action == "follower_fetch"] == [0, 2] and len(slow) == 1
    (tombstone,) = [params for action, params in told if action == "remove_tombstone"]
    assert tombstone["offset"] == 1 and {tombstone["replica"]} != slow


# Guards without which a promise breaks, after how many steps, and where.
GUARDS = {
    "set_topic_strategy.logs_are_alike": ("header_is_long", 3, "1/2/1/1/1/0/0/1/0/0"),
    "set_broker_strategy.topic_overrides": ("winner_is_kept", 8, "1/2/1/2/0/0/0/1/0/1"),
    "elect_leader.in_isr": ("consumer_agrees", 6, "2/2/1/1/0/0/1/0/0/1"),
    "leader_write.header_is_long": ("header_is_long", 3, "1/2/1/1/1/0/0/1/0/0"),
    "leader_write.arrives_in_time": ("deleted_stays_deleted", 11, "1/3/2/2/0/0/0/0/2/1"),
    "follower_fetch.record_there": ("uncommitted_is_whole", 3, "2/2/1/2/0/0/0/1/0/1"),
    "follower_fetch.not_fetched": ("consumer_agrees", 11, "2/2/1/1/0/0/1/0/0/1"),
    "follower_fetch.is_next": ("uncommitted_is_whole", 5, "2/2/1/2/0/0/0/1/0/1"),
    "leader_inc_high_watermark.isr_has_it": ("consumer_agrees", 2, "1/2/1/1/0/0/0/0/0/1"),
    "leader_expand_isr.reached_high_watermark": ("consumer_agrees", 7, "2/2/1/1/0/0/1/0/0/1"),
    "remove_record.follows_leader": ("winner_is_kept", 13, "2/2/1/2/0/0/1/0/2/0"),
    "remove_record.winner_cleanable": ("winner_is_kept", 6, "1/2/1/1/0/0/0/0/0/1"),
    "remove_record.is_beaten": ("winner_is_kept", 6, "1/2/1/1/0/0/0/0/0/1"),
    "finish_cleaning.committed": ("active_segment_is_uncleaned", 4, "1/2/1/1/0/0/0/0/0/1"),
    "finish_cleaning.inactive": ("active_segment_is_uncleaned", 4, "1/2/1/1/0/0/0/0/0/1"),
    "finish_cleaning.nothing_left": ("survivor_is_alone", 9, "1/3/2/1/0/0/0/0/0/1"),
    "remove_tombstone.is_tombstone": ("winner_is_kept", 8, "1/2/1/1/0/0/0/0/0/1"),
    "remove_tombstone.readers_in_time": ("consumer_agrees", 11, "1/3/2/1/0/0/0/0/0/1"),
    "remove_tombstone.cleaned_in_time": ("deleted_stays_deleted", 9, "1/2/1/2/0/0/0/0/2/1"),
    "consumer_fetch.committed": ("consumer_agrees", 6, "1/2/1/1/0/0/0/0/0/1"),
    "consumer_fetch.is_next": ("consumer_agrees", 6, "1/2/1/2/0/0/0/0/2/1"),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("guard", list(GUARDS))
def test_without_any_one_of_these_guards_a_promise_breaks(guard: str) -> None:
    promise, length, constants = GUARDS[guard]
    answer = explore(Query.of(at(constants, SAFE, guard)))
    assert answer.path is not None
    assert (answer.violated, len(answer.path)) == (promise, length)


NEEDED = {"roll_segment": "duplicate_goes", "remove_record": "duplicate_goes", "consumer_fetch": "consumer_passes"}
"""Without this step's fairness, that property fails."""


def test_what_holds_in_the_end_and_by_whose_fairness() -> None:
    """With the fair set all of it; without fairness of any one of these steps, something fails."""
    graph = build_graph(at("1/3/1/1/0/0/0/0/0/1"))
    fair = compaction.fairness["fair-cleaners"].conditions
    assert {each.action for each in fair} == set(NEEDED)
    for spec in compaction.liveness.values():
        assert check_property(graph, spec, fair).verdict is Verdict.HOLDS, spec.name
    for action, name in NEEDED.items():
        rest = [each for each in fair if each.action != action]
        assert check_property(graph, compaction.liveness[name], rest).verdict is Verdict.VIOLATED, action
