"""Liveness under fairness: the search on graphs made by hand and at random, the judge, and small protocols."""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, combinations

import networkx as nx
import numpy as np
import pytest
from fencepost.model.core.algebra import Algebra, Step, Value, View
from fencepost.model.core.domains import REPLICA, integers
from fencepost.model.core.errors import BadInput, ProtocolError
from fencepost.model.core.ground import System, ground
from fencepost.model.core.protocol import ConstantSpec, Fair, Form, Protocol
from fencepost.model.explore.fairness import FairGraph, Group, Mask
from fencepost.model.explore.graph import build_graph
from fencepost.model.explore.lasso import Lasso, judge
from fencepost.model.explore.liveness import Liveness, check_liveness, check_property
from fencepost.model.explore.result import Limits, Verdict
from fencepost.model.protocols.fencing import fencing
from hypothesis import given
from hypothesis import strategies as st

Edge = tuple[int, int, int]
"""Source, target, label."""


def fair_graph(states: int, edges: list[Edge], *groups: Group) -> FairGraph:
    columns = np.array(edges, dtype=np.int64).reshape(-1, 3).T
    return FairGraph(states, columns[0], columns[1], columns[2], groups)


def wf(*labels: int) -> Group:
    return Group("WF", False, frozenset(labels))


def sf(*labels: int) -> Group:
    return Group("SF", True, frozenset(labels))


def within(states: int, *allowed: int) -> Mask:
    mask = np.zeros(states, dtype=np.bool_)
    mask[list(allowed)] = True
    return mask


def fair_sets(graph: FairGraph, allowed: Mask, visits: Mask | None = None) -> set[frozenset[int]]:
    """What the search finds: sets of states that a fair run may visit for ever."""
    stutters = graph.stutters(allowed if visits is None else allowed & visits)
    cycles = graph.cycles(allowed, visits)
    return {frozenset([s]) for s in stutters.tolist()} | {frozenset(graph.source[c].tolist()) for c in cycles}


# 0 and 1 alternate (labels 0 and 1); label 2 leads out of 0, to 2.
BLINK: list[Edge] = [(0, 1, 0), (1, 0, 1), (0, 2, 2)]


def test_an_exit_that_is_enabled_again_and_again_but_not_all_the_time_needs_strong_fairness() -> None:
    moving = (wf(0), wf(1))
    assert fair_sets(fair_graph(3, BLINK, *moving, wf(2)), within(3, 0, 1)) == {frozenset({0, 1})}
    assert fair_sets(fair_graph(3, BLINK, *moving, sf(2)), within(3, 0, 1)) == set()


def test_without_fairness_every_state_may_stutter() -> None:
    assert fair_graph(3, BLINK).stutters(within(3, 0, 1)).tolist() == [0, 1]
    assert fair_graph(3, BLINK, wf(0)).stutters(within(3, 0, 1, 2)).tolist() == [1, 2]


def test_an_exit_that_stays_enabled_needs_only_weak_fairness() -> None:
    edges = [*BLINK, (1, 2, 2)]
    assert fair_sets(fair_graph(3, edges, wf(0), wf(1), wf(2)), within(3, 0, 1)) == set()
    assert fair_sets(fair_graph(3, edges, wf(0), wf(1)), within(3, 0, 1)) == {frozenset({0, 1})}


def test_strong_fairness_is_decided_again_in_what_is_left() -> None:
    # A cycle through all four; label 9 leaves from 0, label 8 from 1. Only 2 and 3 can go on without either.
    edges = [(0, 1, 0), (1, 2, 0), (2, 3, 0), (3, 2, 0), (3, 0, 0), (0, 4, 9), (1, 4, 8)]
    inner = within(5, 0, 1, 2, 3)
    assert fair_sets(fair_graph(5, edges, wf(0), sf(9), sf(8)), inner) == {frozenset({2, 3})}
    # Label 7 is enabled in 2 and 3 throughout, so weak fairness forbids the rest as well, but not the whole cycle.
    more = [*edges, (2, 4, 7), (3, 4, 7)]
    assert fair_sets(fair_graph(5, more, wf(0), sf(9), sf(8), wf(7)), inner) == set()
    assert fair_sets(fair_graph(5, more, wf(0), wf(9), wf(8), wf(7)), inner) == {frozenset({0, 1, 2, 3})}


def test_a_step_that_changes_nothing_is_no_step_of_an_action() -> None:
    edges = [(0, 0, 5), (0, 1, 0), (1, 0, 1), (1, 1, 5)]
    graph = fair_graph(2, edges, wf(5), sf(5))
    assert not graph.enabled.any()
    assert fair_sets(graph, within(2, 0, 1)) == {frozenset({0}), frozenset({1}), frozenset({0, 1})}


def test_a_graph_without_edges() -> None:
    assert fair_sets(fair_graph(1, [], wf(0)), within(1, 0)) == {frozenset({0})}


EDGES = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 3)), max_size=14)
GROUPS = st.lists(
    st.builds(Group, st.just("g"), st.booleans(), st.frozensets(st.integers(0, 3), min_size=1)), max_size=3
)
MASKS = st.lists(st.booleans(), min_size=5, max_size=5).map(lambda bits: np.array(bits, dtype=np.bool_))


def is_fair(edges: list[Edge], groups: tuple[Group, ...], visited: set[int], taken: list[Edge]) -> bool:
    """The definition, for a run that visits these states and takes these edges infinitely often."""
    for group in groups:
        enabled = {s for s, t, label in edges if label in group.labels and s != t}
        happens = any(label in group.labels and s != t for s, t, label in taken)
        excused = not enabled & visited if group.strong else bool(visited - enabled)
        if not happens and not excused:
            return False
    return True


def fair_by_definition(edges: list[Edge], groups: tuple[Group, ...], allowed: Mask, visits: Mask | None) -> bool:
    """Whether some fair run stays in allowed states: every set of states is tried."""
    states = np.flatnonzero(allowed).tolist()
    for some in chain.from_iterable(combinations(states, size) for size in range(1, len(states) + 1)):
        visited = set(some)
        inside = [e for e in edges if e[0] in visited and e[1] in visited]
        graph: nx.DiGraph[int] = nx.DiGraph()
        graph.add_nodes_from(visited)
        graph.add_edges_from((s, t) for s, t, _ in inside)
        wanted = visits is None or visits[some,].any()
        if wanted and nx.is_strongly_connected(graph) and is_fair(edges, groups, visited, inside):
            return True
    return False


@given(EDGES, GROUPS, MASKS, st.none() | MASKS)
def test_the_search_agrees_with_the_definition(
    edges: list[Edge], groups: list[Group], allowed: Mask, visits: Mask | None
) -> None:
    graph = fair_graph(5, edges, *groups)
    assert bool(fair_sets(graph, allowed, visits)) == fair_by_definition(edges, graph.groups, allowed, visits)


@given(EDGES, GROUPS, MASKS, st.none() | MASKS)
def test_each_loop_is_a_fair_cycle(edges: list[Edge], groups: list[Group], allowed: Mask, visits: Mask | None) -> None:
    graph = fair_graph(5, edges, *groups)
    for inside in graph.cycles(allowed, visits):
        for start in set(graph.source[inside].tolist()):
            loop = [edges[number] for number in graph.loop(inside, start, visits)]
            path = [start, *(t for _, t, _ in loop)]
            assert [s for s, _, _ in loop] == path[:-1] and path[-1] == start
            assert allowed[path].all() and (visits is None or visits[path].any())
            assert is_fair(edges, graph.groups, set(path), loop)
            stays = is_fair(edges, graph.groups, {start}, []) and (visits is None or bool(visits[start]))
            assert (loop == []) is stays, "a loop has steps only where staying is not fair already"


def test_what_the_start_of_a_loop_has_met_is_not_asked_for_again() -> None:
    """Fairness of label 0 is met by being in 1, where it is disabled, and ``visits`` by being there too."""
    graph = fair_graph(3, [(0, 1, 0), (1, 2, 1), (2, 0, 1)], wf(0))
    (inside,) = graph.cycles(within(3, 0, 1, 2))
    assert graph.loop(inside, 1) == graph.loop(inside, 2) == []
    assert graph.loop(inside, 0) == [0, 1, 2]
    assert graph.loop(inside, 1, within(3, 1)) == []
    assert graph.loop(inside, 1, within(3, 0)) == [1, 2, 0]


def test_a_loop_is_empty_where_only_elsewhere_anything_is_asked_for() -> None:
    """Label 0 is enabled in 0 alone: whoever stays in 1 owes it nothing, however strong its fairness is."""
    graph = fair_graph(2, [(0, 1, 0), (1, 0, 1)], sf(0))
    (inside,) = graph.cycles(within(2, 0, 1))
    assert (graph.loop(inside, 0), graph.loop(inside, 1)) == ([0, 1], [])
    assert graph.loop(inside, 1, within(2, 0)) == [1, 0]


blinker = Protocol("blinker", "a lamp", constants=(ConstantSpec("replicas", 1, 1, "the number of lamps"),))
blinker.variant("lamp", None, "the only one")
blinker.variable("lamp", "0 off, 1 on, 2 burnt out", integers(0, lambda _: 2), per=(REPLICA,))


@blinker.action(lamp=REPLICA)
def switch(k: Algebra, s: View, lamp: Value) -> Step:
    """On and off."""
    yield "whole", s.lamp[lamp] < 2
    yield s.update(lamp={lamp: k.ite(s.lamp[lamp] == 0, 1, 0)})


@blinker.action(lamp=REPLICA)
def burn_out(k: Algebra, s: View, lamp: Value) -> Step:
    """For good."""
    yield "lit", s.lamp[lamp] == 1
    yield s.update(lamp={lamp: 2})


@blinker.action(lamp=REPLICA)
def look(k: Algebra, s: View, lamp: Value) -> Step:
    """Changes nothing."""
    yield "lit", s.lamp[lamp] == 1
    yield s.update(lamp={lamp: 1})


@blinker.eventually(Form.LEADS_TO, lamp=REPLICA)
def lit_lamp_burns_out(k: Algebra, s: View, lamp: Value) -> tuple[Value, Value]:
    """A lamp once lit burns out."""
    return s.lamp[lamp] == 1, s.lamp[lamp] == 2


@blinker.eventually(Form.RECURS, lamp=REPLICA)
def is_dark(k: Algebra, s: View, lamp: Value) -> Value:
    """The lamp is dark again and again."""
    return s.lamp[lamp] != 1


@blinker.eventually(Form.SETTLES, lamp=REPLICA)
def stays_dark(k: Algebra, s: View, lamp: Value) -> Value:
    """In the end the lamp stays dark."""
    return s.lamp[lamp] != 1


@blinker.eventually(Form.RECURS)
def trivial(k: Algebra, s: View) -> Value:
    """True in every state."""
    return k.forall(REPLICA, lambda r: s.lamp[r] >= 0)


@blinker.eventually(Form.RECURS)
def hopeless(k: Algebra, s: View) -> Value:
    """False in every state."""
    return k.exists(REPLICA, lambda r: s.lamp[r] < 0)


blinker.assume_fair("none", (), "nothing at all")
blinker.assume_fair("weak", (Fair("switch"), Fair("burn_out")), "weak")
blinker.assume_fair("strong", (Fair("switch"), Fair("burn_out", strong=True)), "strong")


def lamps(number: int = 1) -> System:
    return ground(blinker.traced(), {"replicas": number})


def told(answer: Liveness) -> tuple[list[str], list[str]] | None:
    """Stem and loop."""
    if answer.lasso is None:
        return None
    return [str(s.instance) for s in answer.lasso.stem], [str(s.instance) for s in answer.lasso.loop]


SWITCH, BURN = "switch(lamp=0)", "burn_out(lamp=0)"


@pytest.mark.parametrize(
    ("name", "none", "weak", "strong"),
    [
        ("lit_lamp_burns_out", ([SWITCH], []), ([SWITCH], [SWITCH, SWITCH]), None),
        ("is_dark", ([SWITCH], []), None, None),
        ("stays_dark", ([], [SWITCH, SWITCH]), ([], [SWITCH, SWITCH]), None),
        ("trivial", None, None, None),
        ("hopeless", ([], []), ([], [SWITCH, SWITCH]), ([SWITCH, BURN], [])),
    ],
)
def test_each_form_under_no_weak_and_strong_fairness(name: str, none: object, weak: object, strong: object) -> None:
    answers = check_liveness(lamps(), properties=[name])
    assert [a.fairness for a in answers] == ["none", "weak", "strong"]
    assert [told(a) for a in answers] == [none, weak, strong]
    for answer in answers:
        assert answer.verdict is (Verdict.VIOLATED if answer.lasso else Verdict.HOLDS)
        assert (answer.distinct, answer.edges) == (3, 4)


def test_fairness_of_all_lamps_together_is_less_than_fairness_of_each() -> None:
    graph = build_graph(lamps(2))
    dark = blinker.liveness["is_dark"]
    together = check_property(graph, dark, [Fair("switch")])
    assert told(together) == ([SWITCH], ["switch(lamp=1)", "switch(lamp=1)"])
    each = check_property(graph, dark, [Fair("switch", per=("lamp",))])
    assert each.verdict is Verdict.HOLDS
    assert (together.fairness, each.fairness) == ("WF switch", "WF switch(lamp=0), WF switch(lamp=1)")


def lasso_of(name: str, fairness: str) -> tuple[System, Lasso, tuple[Fair, ...]]:
    [answer] = check_liveness(lamps(), [fairness], [name])
    assert answer.lasso is not None
    return answer.system, answer.lasso, blinker.fairness[fairness].conditions


def test_the_judge_says_why_a_loop_is_fair() -> None:
    [answer] = check_liveness(lamps(), ["weak"], ["lit_lamp_burns_out"])
    assert dict(answer.fair) == {"WF switch": "happens at step 2", "WF burn_out": "not enabled after step 2"}
    [answer] = check_liveness(lamps(), ["strong"], ["hopeless"])
    assert set(dict(answer.fair).values()) == {"never enabled in the loop"}


def test_the_judge_rejects_a_wrong_lasso() -> None:
    system, lasso, conditions = lasso_of("lit_lamp_burns_out", "weak")
    burns, dark = blinker.liveness["lit_lamp_burns_out"], blinker.liveness["stays_dark"]
    assert judge(system, lasso, burns, conditions).objections == ()
    [on] = lasso.stem
    off, again = lasso.loop
    assert (on.state, off.state, again.state) == ((1,), (0,), (1,))

    def objections(wrong: Lasso) -> str:
        return "; ".join(judge(system, wrong, burns, conditions).objections)

    assert "step 2, switch(lamp=0), does not lead to the state" in objections(
        replace(lasso, loop=(replace(off, state=(2,)), again))
    )
    assert "the loop does not end where it began" in objections(replace(lasso, loop=(off,)))
    assert objections(replace(lasso, loop=())) == "the loop is not fair: WF switch; the loop is not fair: WF burn_out"
    assert "lit_lamp_burns_out waits for never happens" in objections(Lasso((), (), lasso.params))
    burnt = next(s for s in lasso_of("hopeless", "strong")[1].stem if s.state == (2,))
    assert objections(Lasso((on, burnt), (), lasso.params)) == "what lit_lamp_burns_out promises comes true in the loop"
    strong = blinker.fairness["strong"].conditions
    assert judge(system, lasso, burns, strong).objections == ("the loop is not fair: SF burn_out",)
    assert judge(system, Lasso((), (), lasso.params), dark, ()).objections == ("stays_dark holds throughout the loop",)
    assert judge(system, lasso, blinker.liveness["is_dark"], ()).objections == ("is_dark holds somewhere in the loop",)


def test_a_lasso_is_told_as_a_path_with_the_index_of_its_loop() -> None:
    _, lasso, _ = lasso_of("lit_lamp_burns_out", "weak")
    states = [(0,), *(step.state for step in lasso.path)]
    assert (lasso.loop_start, lasso.stutters) == (1, False) and states[lasso.loop_start] == states[-1]
    _, still, _ = lasso_of("hopeless", "strong")
    assert still.stutters and still.loop_start == len(still.path) == 2
    switch_lamp = {"action": "switch", "params": {"lamp": 0}}
    assert lasso.to_json() == {"params": {"lamp": 0}, "stem": [switch_lamp], "loop": [switch_lamp, switch_lamp]}


def test_a_budget_gives_unknown_and_says_which() -> None:
    system = ground(fencing.traced(), {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1})
    answers = check_liveness(system, limits=Limits(max_states=100))
    assert len(answers) == 4 and {a.verdict for a in answers} == {Verdict.UNKNOWN}
    assert {a.reason for a in answers} == {"more than 100 states (--max-states)"}
    assert answers[0].to_json()["verdict"] == "unknown" and answers[0].lasso is None


def test_unknown_names_are_bad_input() -> None:
    with pytest.raises(BadInput, match=r"--fairness: blinker has no set of fairness conditions 'fair'; choose of none"):
        check_liveness(lamps(), ["fair"])
    with pytest.raises(BadInput, match=r"--liveness: blinker has no liveness property 'glows'; choose of lit_lamp"):
        check_liveness(lamps(), ["weak"], ["glows"])


def test_fairness_of_what_does_not_exist_is_refused() -> None:
    with pytest.raises(ProtocolError, match="names 'glow', which is no action of blinker"):
        blinker.assume_fair("wrong", (Fair("glow"),), "")
    with pytest.raises(ProtocolError, match="is per 'replica', which switch does not have"):
        blinker.assume_fair("wrong", (Fair("switch", per=("replica",)),), "")


def test_a_text_that_does_not_fit_its_form_is_refused() -> None:
    spec = replace(blinker.liveness["lit_lamp_burns_out"], form=Form.RECURS)
    with pytest.raises(ProtocolError, match="lit_lamp_burns_out gives 2 conditions"):
        check_property(build_graph(lamps()), spec, ())
