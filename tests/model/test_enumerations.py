"""Enumerations: what they may be used for, and that each engine has the same states as with plain numbers."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from types import ModuleType

import pytest
from fencepost.model.core.algebra import Algebra, Value, View
from fencepost.model.core.domains import REPLICA
from fencepost.model.core.enum_value import plain_params
from fencepost.model.core.enumeration import enumeration
from fencepost.model.core.errors import BadText
from fencepost.model.core.ground import ground
from fencepost.model.explore import explore
from fencepost.model.explore.result import Query, Verdict
from fencepost.model.prove.crosscheck import crosscheck, exhaustive
from fencepost.model.prove.proof import Proof
from fencepost.model.prove.proof_for_variant import attach
from fencepost.model.prove.run import prove

from .conftest import COMPILED

Refused = Callable[..., str]
Toy = Callable[..., ModuleType]

NO_ORDER = (
    "is a phase (idle, busy), with which one cannot compute or order; compare it by == or != with a value such as"
)
WANTED = "where a phase is wanted; its values are idle, busy; write Phase.idle"
NO_NUMBER = "idle is a value of the enumeration phase, and no number; use it only where a phase is wanted"


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("s.phase[replica] < Phase.busy", f"phase[replica] {NO_ORDER} Phase.idle"),
        ("s.phase[replica] + 1 == 1", f"phase[replica] {NO_ORDER} Phase.idle"),
        ("not s.phase[replica]", f"phase[replica] {NO_ORDER} Phase.idle"),
        ("s.phase[replica] in (1,)", f"phase[replica] meets 1, {WANTED}"),
        ("k.min(s.phase[replica], 1) == 1", f"phase[replica] {NO_ORDER} Phase.idle"),
        ("k.all(s.phase[replica])", f"phase[replica] {NO_ORDER} Phase.idle"),
        ("s.phase[replica]", f"phase[replica] {NO_ORDER} Phase.idle"),
        ("s.phase[replica] == 1", f"phase[replica] meets 1, {WANTED}"),
        ("s.phase[replica] == s.count", f"phase[replica] meets count, of sort int, {WANTED}"),
        ("s.phase[replica] == Color.red", f"phase[replica] meets red, a value of color, {WANTED}"),
        ("s.phase[replica] != s.light", f"phase[replica] meets light, a color, {WANTED}"),
        ("Color.red == s.phase[replica]", f"phase[replica] meets red, a value of color, {WANTED}"),
        ("s.count == Phase.idle", NO_NUMBER),
        ("Phase.idle == s.count", NO_NUMBER),
        ("s.count + Phase.idle == 0", NO_NUMBER),
        ("s.item[Phase.idle] == 0", NO_NUMBER),
        (
            "k.ite(s.count == 0, Phase.idle, Color.red) == Phase.idle",
            f"a branch of k.ite is red, a value of color, {WANTED}",
        ),
        ("k.ite(s.count == 0, s.phase[replica], 1) == Phase.idle", f"a branch of k.ite is 1, {WANTED}"),
        (
            "k.first(Phase, lambda p: p == Phase.idle, 0) == 0",
            "the values of phase have no order, so none is first; write k.ite over them",
        ),
        ("k.exists(Phase, lambda p: p < Phase.busy)", f"phase#0 {NO_ORDER} Phase.idle"),
        ("s.phase[replica] == Phase.bussy", "phase has no value 'bussy'; did you mean busy?"),
    ],
)
def test_a_value_of_an_enumeration_is_no_number(expression: str, says: str, refused: Refused) -> None:
    snippet = f"""
        @toy.action(replica=REPLICA, slot=SLOT)
        def wrong(k, s, replica, slot):
            yield "asked", {expression}  # here
            yield s.update(count=0)
    """
    assert refused(snippet).replace("phase0", "phase#0") == says


@pytest.mark.parametrize(
    ("write", "says"),
    [
        ("phase={replica: 1}", f"the update writes to phase 1, {WANTED}"),
        ("phase={replica: Color.red}", f"the update writes to phase red, a value of color, {WANTED}"),
        ("phase={replica: s.count}", f"the update writes to phase count, of sort int, {WANTED}"),
        ("count=Phase.idle", NO_NUMBER),
        ("count=s.phase[replica]", f"phase[replica] {NO_ORDER} Phase.idle"),
        ("item={s.phase[replica]: 1}", f"phase[replica] {NO_ORDER} Phase.idle"),
    ],
)
def test_an_update_writes_values_of_the_same_enumeration(write: str, says: str, refused: Refused) -> None:
    snippet = f"""
        @toy.action(replica=REPLICA)
        def wrong(k, s, replica):
            yield s.update({write})  # here
    """
    assert refused(snippet) == says


@pytest.mark.parametrize(
    ("declared", "says"),
    [
        ('enumeration("x")', "the enumeration 'x' has 0 names; give two or more, each as a string"),
        ('enumeration("x", "a")', "the enumeration 'x' has 1 names; give two or more, each as a string"),
        ('enumeration("x", "a", "b", "a")', "the enumeration x has the name 'a' twice; name each value once"),
        ('enumeration("x", "a", "in")', "'in' is no name of a value of x; use letters, digits and _, as in Python"),
        (
            'enumeration("x", "a", "so so")',
            "'so so' is no name of a value of x; use letters, digits and _, as in Python",
        ),
        ('enumeration("x", "a", "size")', "a value of x cannot be named 'size'; choose another name for it"),
        (
            'toy.variable("y", "", Phase, unset=True)',
            (
                "y is a phase, and cannot be unset or have a dead value of its own; give the "
                "enumeration one more name for it"
            ),
        ),
    ],
)
def test_a_wrong_enumeration_is_refused(declared: str, says: str, refused: Refused) -> None:
    assert refused(f"{declared}  # here") == says


def test_a_member_is_an_int_that_is_written_by_its_name() -> None:
    phase = enumeration("phase", "idle", "busy")
    busy = phase.busy
    assert (busy == 1, str(busy), f"{busy}", repr(busy)) == (True, "busy", "busy", "1")
    again = pickle.loads(pickle.dumps(busy))
    assert (again.kind, again.label) == (("phase", ("idle", "busy")), "busy")
    assert plain_params((("a", busy), ("b", 1))) == {"a": "busy", "b": 1}
    with pytest.raises(BadText, match="phase has no value 'bsuy'; did you mean busy"):
        _ = phase.bsuy


BEGINS = """
toy.variable("stage", "", Phase, per=(REPLICA,), initially={initially})


@toy.action(replica=REPLICA)
def rest(k, s, replica):
    yield "busy", s.stage[replica] == Phase.busy
    yield s.update(stage={{replica: Phase.idle}})


@toy.always
def known(k, s):
    return k.forall(REPLICA, lambda r: k.any(s.stage[r] == Phase.idle, s.stage[r] == Phase.busy))
"""


@pytest.mark.parametrize("initially", ["Phase.busy", "lambda c: Phase.busy", "1"])
def test_a_variable_begins_as_a_value_that_is_named(initially: str, toy: Toy) -> None:
    """Every reader takes it for the number: the finite relation and the proof write it into z3's text."""
    module = toy(BEGINS.format(initially=initially))
    protocol, phase = module.toy, module.Phase
    system = ground(protocol.traced(), {"replicas": 1, "slots": 1})
    assert system.initial[system.layout.by_name["stage[0]"]] == 1
    sample = exhaustive(system)
    check = crosscheck(system, sample, 1)
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    assert check.accepted == len(sample.transitions) > 0
    proof = Proof(protocol, protocol.default_variant, sizes=({},))

    @proof.lemma(replica=REPLICA)
    def somebody_rests(_k: Algebra, s: View, replica: Value) -> Value:
        """It is not so at first."""
        return s.stage[replica] == phase.idle

    @proof.lemma(replica=REPLICA)
    def nobody_rests(_k: Algebra, s: View, replica: Value) -> Value:
        """It is so at first."""
        return s.stage[replica] == phase.busy

    run = prove(attach(proof, protocol.traced()), actions=["initial"], witnesses=False)
    assert [result.obligation.conjunct for result in run.failed] == ["somebody_rests"]


NUMBERS = '''
toy.variable("stage", "0 first, 1 second, 2 third", DOMAIN, per=(REPLICA,))


@toy.action(replica=REPLICA, to=INDEX)
def move(k, s, replica, to):
    """On by one stage, never two replicas in the last."""
    yield "next", k.any(
        k.all(s.stage[replica] == FIRST, to == SECOND),
        k.all(s.stage[replica] == SECOND, to == THIRD, k.forall(REPLICA, lambda r: s.stage[r] != THIRD)),
    )
    yield s.update(stage={replica: to})
'''


@pytest.mark.parametrize("engine", ["batch", "reference", *COMPILED])
def test_an_enumeration_has_the_graph_of_the_numbers_that_it_stands_for(engine: str, toy: Toy) -> None:
    answers = []
    for words in (
        {
            "DOMAIN": "integers(0, lambda _: 2)",
            "INDEX": 'Index("stage", Sort.INT, lambda _: 3)',
            "FIRST": "0",
            "SECOND": "1",
            "THIRD": "2",
        },
        {"DOMAIN": "Stage", "INDEX": "Stage", "FIRST": "Stage.first", "SECOND": "Stage.second", "THIRD": "Stage.third"},
    ):
        text = NUMBERS
        for word, put in words.items():
            text = text.replace(word, put)
        answers.append(
            explore(
                Query.of(
                    ground(
                        toy('Stage = enumeration("stage", "first", "second", "third")\n' + text).toy.traced("plain"), {}
                    )
                ),
                engine,
            )
        )
    numbers, names = answers
    assert (names.verdict, names.distinct, names.depth) == (numbers.verdict, numbers.distinct, numbers.depth)
    assert names.distinct > 100
