"""What Python would decide by itself in a text is refused: ``is``, ``in``, ``get``, a condition left lying.

Asked on every day: no answer about a text of ours depends on what is refused (``ONLY_REFUSES`` of ``answers.py``).
"""

from __future__ import annotations

import pytest
from fencepost.model.core.registry import REGISTRY
from fencepost.model.prove.proof_for_variant import attach

from .mistakes import Refused, Toy, in_guard

DECIDED = "is decided by Python, once and for all"
MEMBER = "write k.member for a set of replicas, and else k.any(x == a, x == b)"


@pytest.mark.parametrize(
    ("expression", "says"),
    [
        ("s.owner is not None", f"s.owner is not None {DECIDED}; write == or !="),
        ("k.negate(s.owner is k.NONE)", f"s.owner is k.NONE {DECIDED}; write == or !="),
        (
            "k.implies(s.phase[replica] is Phase.busy, False)",
            f"s.phase[replica] is Phase.busy {DECIDED}; write == or !=",
        ),
        ("s.phase[replica] is Phase.busy", f"s.phase[replica] is Phase.busy {DECIDED}; write == or !="),
        ("s.count not in {0, 1}", f"s.count not in {{0, 1}} {DECIDED}; {MEMBER}"),
        ("s.phase[replica] not in {Phase.idle}", f"s.phase[replica] not in {{Phase.idle}} {DECIDED}; {MEMBER}"),
        ("k.forall(SLOT, lambda o: o not in {1: 2})", f"o not in {{1: 2}} {DECIDED}; {MEMBER}"),
        (
            "{1: Color.red}.get(s.count, s.light) == s.light",
            "{1: Color.red}.get(s.count, s.light) is looked up by Python, which knows no values; write k.ite",
        ),
    ],
)
def test_python_decides_nothing_by_itself(expression: str, says: str, refused: Refused) -> None:
    """Of a term, each is a constant to Python: the guard would let everything through, or nothing."""
    assert refused(in_guard(expression)) == says


def test_what_is_read_is_followed_to_where_it_is_compared(refused: Refused) -> None:
    snippet = """
        @toy.always
        def promised(k, s):
            owner = s.owner
            other = owner
            return k.all(s.count <= 1, k.implies(other is k.NONE, s.count == 0))  # here
    """
    assert refused(snippet) == f"other is k.NONE {DECIDED}; write == or !="


OBJECT = "write == or !=, k.all, k.ite of the values; what differs between variants is asked of k.rules"


@pytest.mark.parametrize(
    "expression",
    [
        "type(s.item) != int",
        "not isinstance(s.item[slot], int)",
        "isinstance(s.count, int) or s.count == 0",
        "hash(s.count) != 7",
        "id(s.owner) == id(replica)",
        "callable(s.item)",
    ],
)
def test_the_object_that_a_term_is_says_nothing(expression: str, refused: Refused) -> None:
    """Planted: the index of ``item`` is missing, and each of these is Python's True or False all the same."""
    call = next(part for part in (expression.removeprefix("not ").split(" or ")) if "(" in part)
    asked = call.partition(" != ")[0].partition(" == ")[0]
    assert refused(in_guard(expression)) == f"{asked} {DECIDED}; {OBJECT}"


def test_nor_does_an_operator_s_function(refused: Refused) -> None:
    snippet = """
        import operator

        def helper(k, of):
            return k.all() if operator.is_not(of, 0) else of == 0  # here

        @toy.always
        def promised(k, s):
            return k.any(s.count <= 1, helper(k, s.count))
    """
    assert refused(snippet) == f"operator.is_not(of, 0) {DECIDED}; {OBJECT}"


def test_a_term_is_matched_by_no_pattern(refused: Refused) -> None:
    """``case int()`` asks of the object: no term is one, so that all comes to what else there is."""
    snippet = """
        def helper(k, of):
            match of:  # here
                case int():
                    return of == 0
                case _:
                    return k.all()

        @toy.action(replica=REPLICA, slot=SLOT)
        def wrong(k, s, replica, slot):
            yield "asked", k.any(s.count == 0, helper(k, s.item))
            yield s.update(count=0)
    """
    assert refused(snippet) == f"match of {DECIDED}; {OBJECT}"


@pytest.mark.parametrize(
    ("expression", "made"),
    [
        ("len({s.count, s.item[slot]}) == 2", "{s.count, s.item[slot]}"),
        ("{s.count} == {s.item[slot]}", "{s.count}"),
        ("len(set([s.count, s.item[slot]])) == 2", "set([s.count, s.item[slot]])"),
        ("len({s.item[at] for at in (slot, slot + 1)}) == 2", "{s.item[at] for at in (slot, slot + 1)}"),
        ("len(dict.fromkeys((s.count, s.item[slot]))) == 2", "dict.fromkeys((s.count, s.item[slot]))"),
    ],
)
def test_no_set_is_made_of_terms(expression: str, made: str, refused: Refused) -> None:
    """Two terms are two elements, equal or not: that these differ would hold without being so."""
    assert refused(in_guard(expression)) == (
        f"{made} is made of terms, and Python does not know which of them are equal; "
        "compare them: k.all(x != y, ...); a set of replicas is made by k.with_member"
    )


def test_nothing_of_ours_is_refused() -> None:
    """No text of any variant, and none of any proof: what is refused may change, and no answer of theirs with it."""
    for registration in REGISTRY.values():
        for variant in registration.protocol.variants:
            assert registration.protocol.traced(variant).actions
        for proof in registration.find_proofs():
            assert attach(proof, proof.protocol.traced(proof.variant)).conjuncts
    assert len(REGISTRY) >= 6


@pytest.mark.parametrize("register", ["always", "sometimes()", "eventually(Form.RECURS)"])
def test_a_condition_with_which_nothing_is_done_is_refused(register: str, refused: Refused) -> None:
    snippet = f"""
        @toy.{register}
        def promised(k, s):
            s.count == 0  # here
            return s.count <= 1
    """
    assert refused(snippet) == "nothing is done with s.count == 0; join it to the others by k.all, or take it out"


def test_what_the_rules_say_is_asked_of_python(toy: Toy) -> None:
    """By ``is`` and ``in`` too, under another name, and in a decorator."""
    snippet = """
        @toy.action(replica=REPLICA, present=lambda rules: rules in {"rich", "plain"})
        def fine(k, s, replica):
            rules = k.rules
            if rules is not None and k.rules in {"rich"}:
                yield "extra", s.extra == 0
            yield "count", s.count == {"rich": 1}.get(k.rules, 0)
            yield s.update(count=0)

        @toy.always
        def promised(k, s):
            return s.extra == 0 if k.rules in ("rich",) else s.count <= 1
    """
    traced = {name: toy(snippet).toy.traced(name) for name in ("rich", "plain")}
    guards = {name: [str(guard) for _, guard in each.action("fine").guards] for name, each in traced.items()}
    assert guards == {"rich": ["extra == 0", "count == 1"], "plain": ["count == 0"]}
    assert {name: str(each.invariants["promised"]) for name, each in traced.items()} == {
        "rich": "extra == 0",
        "plain": "count <= 1",
    }


@pytest.mark.parametrize(
    ("register", "write"), [("sometimes", "sometimes()"), ("eventually", "eventually(Form.RECURS)")]
)
def test_a_decorator_without_its_parentheses_is_refused(register: str, write: str, refused: Refused) -> None:
    """It would register nothing, and nobody would ask."""
    snippet = f"""
        @toy.{register}  # here
        def promised(k, s):
            return s.count == 0
    """
    assert refused(snippet) == (
        f"promised is not registered: its decorator is given the text itself; write @toy.{write}, with parentheses"
    )


def helped(body: str, call: str = "helper(k, s, replica)") -> str:
    return f"""
        def helper(k, s, replica):
            {body}

        @toy.action(replica=REPLICA)
        def wrong(k, s, replica):
            yield "asked", {call}
            yield s.update(count=0)
    """


@pytest.mark.parametrize(
    ("body", "says"),
    [
        ("return k.any(s.count == 0, s.owner is k.NONE)  # here", f"s.owner is k.NONE {DECIDED}; write == or !="),
        ("return k.any(s.count == 0, replica in {1})  # here", f"replica in {{1}} {DECIDED}; {MEMBER}"),
        (
            "return k.any(s.count == 0, (lambda o: o is replica)(replica))  # here",
            f"o is replica {DECIDED}; write == or !=",
        ),
    ],
)
def test_helpers_are_looked_into(body: str, says: str, refused: Refused) -> None:
    assert refused(helped(body)) == says


def test_a_helper_of_a_helper_that_gets_its_terms_by_name_is_looked_into(refused: Refused) -> None:
    snippet = """
        def inner(who, *, kind):
            return who == kind if who is kind else who == kind  # here

        def helper(k, owner):
            return k.all(inner(owner, kind=k.NONE), owner == k.NONE)

        @toy.always
        def promised(k, s):
            return helper(k, s.owner)
    """
    assert refused(snippet) == f"who is kind {DECIDED}; write == or !="


WORDS = (
    "makes words of a term, which has no value yet; a condition is written by ==, <, k.all; a guard's name is a literal"
)


@pytest.mark.parametrize(
    "words",
    ["f'{s.count}'", "'{} of'.format(s.count)", "'%s of' % s.count", "str(s.count)", "repr(replica)"],
)
def test_words_are_made_of_no_term(words: str, refused: Refused) -> None:
    """The words would be those of the term, whatever its value: nothing that is asked of them can be meant."""
    snippet = f"""
        @toy.action(replica=REPLICA)
        def wrong(k, s, replica):
            yield "asked", s.count == (0 if {words} == "0" else 1)  # here
            yield s.update(count=0)
    """
    assert refused(snippet) == f"{words} {WORDS}"


SWALLOWED = "a mistake in these terms would be swallowed; take the try out; by k.rules ask what there is"


@pytest.mark.parametrize("text", ["s.extr == 0", "k.forall(SLOT, lambda o: s.item[o] == 0)", "k.al(s.count == 0)"])
def test_a_mistake_is_not_swallowed(text: str, refused: Refused) -> None:
    snippet = f"""
        @toy.always
        def promised(k, s):
            try:  # here
                more = {text}
            except Exception:
                more = s.count == 1
            return k.any(more, s.count <= 1)
    """
    assert refused(snippet) == SWALLOWED


def test_a_mistake_is_not_suppressed_in_a_helper(refused: Refused) -> None:
    snippet = """
        import contextlib

        def helper(k, s):
            found = s.count == 0
            with contextlib.suppress(Exception):  # here
                found = s.extr == 0
            return found

        @toy.always
        def promised(k, s):
            return k.any(helper(k, s), s.count <= 1)
    """
    assert refused(snippet) == SWALLOWED


@pytest.mark.parametrize(
    "kept",
    [
        "bodies = [lambda o: s.item[o] == n for n in (1, 2)]  # here",
        "bodies = list({n: lambda o: s.item[o] == n for n in (1, 2)}.values())  # here",
    ],
)
def test_a_lambda_that_is_kept_does_not_read_a_loop_s_variable(kept: str, refused: Refused) -> None:
    """All would read the last value: of two conditions one would be asked twice, and the other one not at all."""
    snippet = f"""
        @toy.always
        def promised(k, s):
            {kept}
            return k.any(s.count <= 1, *(k.exists(SLOT, body) for body in bodies))
    """
    late = "lambda o: s.item[o] == n reads n when it is called, after the loop: its last value"
    assert refused(snippet) == f"{late}; give it as a default: lambda ..., n=n: ..."


def test_a_lambda_that_is_appended_does_not_either(refused: Refused) -> None:
    snippet = """
        @toy.always
        def promised(k, s):
            bodies = []
            for n in (1, 2):
                bodies.append(lambda o: s.item[o] == n)  # here
            return k.any(s.count <= 1, *(k.exists(SLOT, body) for body in bodies))
    """
    assert "reads n when it is called" in refused(snippet)


def test_what_is_python_s_in_helpers_and_loops_is_let_pass(toy: Toy) -> None:
    """The clean cases: names, rules, what is called at once, and a default that keeps the value."""
    snippet = """
        def within(k, s, names, limit=None):
            if limit is None or "count" in names or isinstance(limit, str) or len({*names}) == 0:
                limit = 1
            try:
                rich = k.rules == "rich" and len(names)
            except TypeError:
                rich = False
            return k.all(s.count <= limit, *([s.extra == 0] if rich else []))

        @toy.action(replica=REPLICA)
        def fine(k, s, replica):
            for name, at in (("one", 0), ("two", 1)):
                yield f"is_{name}", k.exists(SLOT, lambda o: s.item[o] == at)
            kept = [lambda o, n=n: s.item[o] == n for n in (1, 2)]
            yield "kept", k.any(*(k.exists(SLOT, body) for body in kept))
            yield s.update(count=0)

        @toy.always
        def promised(k, s):
            return within(k, s, ("count",))
    """
    traced = {name: toy(snippet).toy.traced(name) for name in ("rich", "plain")}
    guards = dict(traced["rich"].action("fine").guards)
    assert list(guards) == ["is_one", "is_two", "kept"]
    assert "== 1" in str(guards["is_two"]) and "== 1" in str(guards["kept"]) and "== 2" in str(guards["kept"])
    assert "extra" in str(traced["rich"].invariants["promised"])
    assert "extra" not in str(traced["plain"].invariants["promised"])
