"""Mistakes in the declarations of a protocol, and what becomes of any mistake: one line, exit code 2.

A mistake is a snippet below a whole protocol (``conftest.py``); the line that must be named ends in ``# here``.
"""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from fencepost.conformance.cli import main
from fencepost.model.core.errors import BadText, ProtocolError
from fencepost.model.core.ground import ground
from fencepost.model.core.protocol import Protocol
from fencepost.model.interpret.reference import Reference

from .mistakes import Refused, Toy

ACTION = """
def again(k, s):
    yield s.update(count=0)
"""
PROMISE = """
def again(k, s):
    return s.count == 0
"""


@pytest.mark.parametrize(
    ("snippet", "says"),
    [
        (
            f"@toy.action(){ACTION}@toy.action()  # here{ACTION}",
            "the action 'again' has a name that is taken already; rename one",
        ),
        (
            f"@toy.always{PROMISE}@toy.always  # here{PROMISE}",
            "the invariant 'again' has a name that is taken already; rename one",
        ),
        (
            f"@toy.always{PROMISE}@toy.sometimes()  # here{PROMISE}",
            "the witness 'again' has a name that is taken already; rename one",
        ),
        (
            f"@toy.sometimes(){PROMISE}@toy.eventually(Form.RECURS)  # here{PROMISE}",
            "the liveness property 'again' has a name that is taken already; rename one",
        ),
        (
            f"@toy.always  # here{PROMISE.replace('again', 'type_ok')}",
            "the invariant 'type_ok' has a name that is taken already; rename one",
        ),
        (
            'toy.variable("count", "again", integers(0, lambda _: 1))  # here',
            "the variable 'count' has a name that is taken already; rename one",
        ),
        (
            'toy.variable("update", "", integers(0, lambda _: 1))  # here',
            "a variable of toy cannot be named 'update'; choose another name",
        ),
        (
            'toy.variable("_count", "", integers(0, lambda _: 1))  # here',
            "a variable of toy cannot be named '_count'; choose another name",
        ),
        (
            'toy.variable("a count", "", integers(0, lambda _: 1))  # here',
            "'a count' is no name of a variable; use letters, digits and _, as in Python",
        ),
        ('toy.variant("plain", 0, "again")  # here', "there are two variants named 'plain'; rename one"),
        ('toy.variant("so so", 0, "")  # here', "'so so' is no name of a variant; use letters, digits and hyphens"),
        (
            'toy.assume_fair("x", (), "")\ntoy.assume_fair("x", (), "")  # here',
            "there are two sets of fairness named 'x'; rename one",
        ),
        (
            'toy.assume_fair("x", (Fair("wrok"),), "")  # here',
            "the fairness x names 'wrok', which is no action of toy; did you mean work?",
        ),
        (
            'toy.assume_fair("x", (Fair("work", per=("replicas",)),), "")  # here',
            "the fairness x is per 'replicas', which work does not have; did you mean replica?",
        ),
        (
            'Protocol("two", "", constants=(ConstantSpec("a", 1, 1, ""), ConstantSpec("a", 1, 1, "")))  # here',
            "the constant 'a' has a name that is taken already; rename one",
        ),
        (
            (
                'other = Index("slot", Sort.INT, lambda c: 3)\n'
                'toy.variable("more", "", integers(0, lambda _: 1), per=(other,))  # here'
            ),
            "there are two indices named 'slot'; declare it once, and use that",
        ),
        (
            'toy.variable("more", "", integers(0, lambda _: 1), per=("slot",))  # here',
            "'slot' is no index; give REPLICA, an Index, or an enumeration",
        ),
        (
            'toy.variable("slots", "", integers(0, lambda c: 1))  # here',
            "toy has a constant slots already; choose another name",
        ),
        (
            'toy.variable("more", "", REPLICA)  # here',
            (
                "the values of more are the index replica; give integers(low, high), OPTIONAL_REPLICA, "
                "REPLICA_SET, or an enumeration"
            ),
        ),
        (
            'toy.variable("more", "", integers(0, lambda c: c["slotz"]))  # here',
            "more depends on the constant 'slotz', which is not declared; did you mean slots?",
        ),
        (
            (
                'toy.variable("more", "", integers(0, lambda c: 1), per=(Index("place", Sort.INT, '
                'lambda c: c["place"]),))  # here'
            ),
            "more depends on the constant 'place', which is not declared; choose one of replicas, slots",
        ),
        (
            'toy.variable("more", "", integers(0, 9))  # here',
            "more is no function of the constants: 'int' object is not callable; write lambda c: ...",
        ),
        (
            f'@toy.sometimes(lambda c: c["replica"] > 1)  # here{PROMISE}',
            "again depends on the constant 'replica', which is not declared; did you mean replicas?",
        ),
        (
            f"@toy.action(slot=SLOT)  # here{ACTION}",
            "again declares slot, which its function does not take; write both alike: (k, s, slot) for the function",
        ),
        (
            f"@toy.action()  # here{ACTION.replace('k, s', 'k, s, slot')}",
            "again takes slot, which is not declared; write both alike: (k, s) for the function",
        ),
        (
            f"@toy.action(solt=SLOT)  # here{ACTION.replace('k, s', 'k, s, slot')}",
            (
                "again declares solt, which its function does not take and takes slot, which is not declared; "
                "write both alike: (k, s, solt) for the function"
            ),
        ),
        (
            f"@toy.action(slot=2)  # here{ACTION.replace('k, s', 'k, s, slot')}",
            "2 is no index; give REPLICA, an Index, or an enumeration",
        ),
        (f"@toy.action()  # here{ACTION.replace('k, s', 's')}", "again takes (s); write it as a function of (k, s)"),
        (
            f"@toy.always  # here{PROMISE.replace('k, s', 'k, s, r')}",
            "again takes r, which is not declared; write both alike: (k, s) for the function",
        ),
        (
            (
                'toy.variable("more", "", integers(-1, lambda c: 1), per=(SLOT,), initially=-1, '
                "live=lambda k, s: s.count > 0)  # here"
            ),
            "live of more takes (k, s); write it as a function of (k, s, index0)",
        ),
        (
            (
                'toy.variable("more", "", integers(-1, lambda c: 1), per=(SLOT,), initially=-1, '
                "live=lambda k, s, o: s.item > 0)  # here"
            ),
            "item is a variable per slot, and its index is missing; write s.item[slot]",
        ),
        (
            'toy.variable("more", "", integers(1, lambda c: 2))  # here',
            (
                "more of toy begins as 0, and its values are 1 to 2: there is no initial state; give "
                "another initially= or other values"
            ),
        ),
        (
            'toy.variable("more", "", integers(0, lambda c: -1))  # here',
            (
                "more of toy begins as 0, and it has no values at all: there is no initial state; "
                "give another initially= or other values"
            ),
        ),
        (
            f"@toy.action(present=lambda rules: rules.some)  # here{ACTION}",
            "AttributeError: 'str' object has no attribute 'some'; mend the text there",
        ),
    ],
)
def test_what_is_declared_is_declared_once_and_fits(snippet: str, says: str, refused: Refused) -> None:
    assert refused(snippet) == says


BARE = """
from fencepost.model.core.domains import integers
from fencepost.model.core.protocol import ConstantSpec, Protocol

toy = Protocol("toy", "a test", constants=())  # here
"""


@pytest.mark.parametrize(
    ("snippet", "says"),
    [
        ("", 'toy has no variant; declare one: toy.variant("basic", None, "what it is")'),
        (
            'toy.variant("basic", None, "")',
            (
                "toy (basic) has no variable, and so no initial state; declare one: "
                'toy.variable("count", "what it means", integers(0, ...))'
            ),
        ),
        (
            'toy.variant("basic", None, "")\ntoy.variable("count", "", integers(0, lambda _: 1))',
            "toy (basic) has no action; write one: a generator below @toy.action()",
        ),
        (
            (
                'toy.variant("basic", None, "")\ntoy.variable("count", "", integers(0, lambda _: 1), '
                f"present=lambda _: False)\n@toy.action(){ACTION.replace('count=0', '')}"
            ),
            (
                "toy (basic) has no variable, and so no initial state; declare one: "
                'toy.variable("count", "what it means", integers(0, ...))'
            ),
        ),
        (
            (
                'toy.variant("basic", None, "")\ntoy.variable("count", "", integers(0, lambda _: 1))\n'
                f"@toy.action(present=lambda _: False){ACTION}"
            ),
            "toy (basic) has no action; write one: a generator below @toy.action()",
        ),
    ],
)
def test_a_protocol_has_a_variant_a_state_and_an_action(snippet: str, says: str, refused: Refused) -> None:
    assert refused(snippet, BARE) == says


def test_a_right_text_with_all_of_this_passes(toy: Toy) -> None:
    snippet = """
        @toy.action(replica=REPLICA, slot=SLOT)
        def right(k, s, replica, slot):
            yield "ruled_out", k.rules != "plain" or True
            yield "free", k.all(s.held[replica, slot] == 0, 1 + s.count <= k.c.slots, 2 - s.count >= 0)
            yield "idle", s.phase[replica] == Phase.idle
            yield s.update(
                count=k.min(s.count + 1, k.c.slots),
                held={(replica, EVERY): 2, (replica, slot): 1},
                owner=k.ite(s.owner == k.NONE, replica, k.NONE),
                group={replica: k.EMPTY},
                light=k.ite(s.light == Color.red, Color.green, Color.red),
            )

        @toy.always
        def held_by_owner(k, s):
            return k.forall(REPLICA, lambda r: k.implies(s.owner != r, k.forall(SLOT, lambda o: s.held[r, o] < 3)))
    """
    module = toy(snippet)
    for variant in ("rich", "plain"):
        system = ground(module.toy.traced(variant), {})
        assert Reference(system).successors(system.initial)


WRONG = """
@toy.always
def vacuous(k, s):
    return s.item != 1  # wrong
"""


def test_a_mistake_is_bad_input_on_the_command_line(
    toy: Toy, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    module = toy(WRONG)
    text = Path(str(module.__file__)).read_text(encoding="utf-8")
    line = next(number for number, each in enumerate(text.splitlines(), 1) if each.endswith("# wrong"))
    trace = Protocol.traced
    monkeypatch.setattr(Protocol, "traced", lambda _self, _variant=None: trace(module.toy, "rich"))
    assert main(["explore", "fencing"]) == 2
    told = capsys.readouterr()
    assert told.out == ""
    assert told.err == (
        f"fencepost: toy.py, line {line}: item is a variable per slot, and its index is missing; write s.item[slot]\n"
    )


def test_the_reference_runs_no_text_that_was_not_traced(toy: Toy) -> None:
    """On plain ints ``s.item != 1`` is Python's ``True``: a system, and so the reference, comes from terms alone."""
    with pytest.raises(BadText, match="its index is missing"):
        Reference(ground(toy(WRONG).toy.traced("rich"), {}))


def test_an_error_of_the_language_itself_is_no_mistake_in_a_text(toy: Toy, monkeypatch: pytest.MonkeyPatch) -> None:
    """What breaks inside the language is not passed off as the person's mistake."""
    module = toy()
    monkeypatch.setattr("fencepost.model.core.terms.is_const", None)
    with pytest.raises(TypeError, match="'NoneType' object is not callable"):
        module.toy.traced("rich")


def test_a_mistake_survives_pickling() -> None:
    """Workers of a cluster send it back."""
    error = BadText("what", "toy.py, line 3", "mend")
    again = pickle.loads(pickle.dumps(error))
    assert (type(again), str(again)) == (BadText, "toy.py, line 3: what; mend")
    bare = pickle.loads(pickle.dumps(ProtocolError("what", "mend")))
    assert (str(bare), bare.mend) == ("what; mend", "mend")
