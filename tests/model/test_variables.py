"""Variables that only some variants have, cells that are live and not set, and updates of all cells along an index.

A desk has drawers, and each of its readers may have noted something about each; every interpreter must agree on it.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from fencepost.model.core import terms
from fencepost.model.core.algebra import EVERY, View
from fencepost.model.core.domains import OPTIONAL_REPLICA, REPLICA, Index, integers
from fencepost.model.core.errors import ProtocolError
from fencepost.model.core.ground import Params, State, System, ground
from fencepost.model.core.mutants import mutant_named
from fencepost.model.core.pretty import show
from fencepost.model.core.protocol import ConstantSpec, Protocol
from fencepost.model.core.terms import Sort
from fencepost.model.explore import Query, Verdict, explore
from fencepost.model.interpret.batch import Batch
from fencepost.model.interpret.reference import Reference
from fencepost.model.interpret.staged import stage
from fencepost.model.prove.crosscheck import crosscheck, exhaustive
from fencepost.traces.stepper import DirectStepper
from fencepost.traces.vocabulary import Vocabulary

from .conftest import COMPILED

SLOT = Index("slot", Sort.INT, lambda c: c["slots"])
SEED = 320


def desk(*, unset: bool = True) -> Protocol:
    """``noted`` is a variable of the variant "notes" alone."""
    protocol = Protocol(
        "desk",
        "this test",
        constants=(ConstantSpec("replicas", 2, 1, "replicas"), ConstantSpec("slots", 2, 1, "slots")),
    )
    protocol.variant("notes", True, "readers take notes")
    protocol.variant("bare", False, "they do not")
    protocol.variable("page", "the page that lies open", integers(0, lambda c: c["slots"]))
    protocol.variable("owner", "whose desk it is", OPTIONAL_REPLICA, initially=-1)
    protocol.variable(
        "noted",
        "the page that a reader saw in a slot; -1: none yet",
        integers(-1, lambda c: c["slots"]),
        per=(REPLICA, SLOT),
        initially=-1,
        live=lambda _k, s, replica, _slot: s.owner == replica,
        unset=unset,
        present=lambda rules: bool(rules),
    )

    @protocol.action(replica=REPLICA)
    def sit(k: Any, s: View, replica: Any) -> Any:
        """Take the desk, from whoever has it; whoever had it before starts anew."""
        yield "page_open", s.page < k.c.slots
        notes = {"noted": {(replica, EVERY): -1}} if k.rules else {}
        yield s.update(owner=replica, page=s.page + 1, **notes)

    @protocol.action(slot=SLOT, present=lambda rules: bool(rules))
    def note(k: Any, s: View, slot: Any) -> Any:
        """Note the page, in a slot below it."""
        yield "owned", s.owner != k.NONE
        yield "below", slot < s.page
        yield s.update(noted={(s.owner, slot): s.page - 1})

    @protocol.action(slot=SLOT, present=lambda rules: bool(rules))
    def wipe(k: Any, s: View, slot: Any) -> Any:
        """Clear one slot for every reader, then fill the first for one."""
        yield "noted", k.exists(REPLICA, lambda r: s.noted[r, slot] > -1)
        yield s.update(noted={(EVERY, slot): -1, (s.owner, 0): 0})

    return protocol


def system_of(variant: str = "notes", protocol: Protocol | None = None) -> System:
    return ground((protocol or desk()).traced(variant), {"replicas": 2, "slots": 2})


def every_state(of: System) -> list[State]:
    """Every state whose dead cells hold the dead value, reachable or not."""
    cells = of.layout.cells
    owner = of.layout.by_name["owner"]
    found = product(*(range(c.low, c.high + 1) for c in cells))
    return [
        state
        for state in found
        if all(c.variable.name != "noted" or state[c.number] == -1 or state[owner] == c.index[0] for c in cells)
    ]


def test_a_variant_has_its_own_variables_alone() -> None:
    notes, bare = system_of("notes"), system_of("bare")
    assert list(notes.traced.variables) == ["page", "owner", "noted"]
    assert list(bare.traced.variables) == ["page", "owner"]
    assert [cell.name for cell in bare.layout.cells] == ["page", "owner"]
    assert len(Batch(bare).packing.fields) == 2
    assert len(notes.layout.cells) == 2 + 4
    assert (bare.actions, notes.actions) == (["sit"], ["sit", "note", "wipe"])
    protocol = desk()
    constants = {"replicas": 2, "slots": 2}
    for variant, size in (("notes", 6), ("bare", 2)):
        assert len(Vocabulary.of(protocol, variant, constants).layout.cells) == size
        assert len(DirectStepper(protocol.traced(variant), constants).layout.cells) == size


def test_a_text_may_not_name_a_variable_that_the_variant_lacks() -> None:
    for written in (True, False):
        protocol = desk()

        @protocol.action(slot=SLOT)
        def peek(_k: Any, s: View, slot: Any, written: bool = written) -> Any:
            """Look at notes."""
            if written:
                yield s.update(noted={(s.owner, slot): 0})
            else:
                yield "noted", s.noted[s.owner, slot] == 0
                yield s.update(page=0)

        protocol.traced("notes")
        with pytest.raises(ProtocolError, match="no variable"):
            protocol.traced("bare")


def test_every_interpreter_writes_all_cells_along_an_index() -> None:
    of = system_of()
    reference, staged, batch = Reference(of), stage(of), Batch(of)
    states = every_state(of)
    assert len(states) > 80
    keys = np.stack([batch.packing.key(s) for s in states], axis=1)
    found: dict[State, set[tuple[str, Params, State]]] = {s: set() for s in states}
    for candidates in batch.successors(batch.block(keys), keys):
        instance = of.instances[candidates.instance]
        for row, key in zip(candidates.rows, candidates.keys.T, strict=True):
            found[states[row]].add((instance.action, instance.params, batch.packing.state(key)))
    for state in states:
        steps = set(reference.successors(state))
        compiled = {(of.instances[n].action, of.instances[n].params, after) for n, after in staged.successors(state)}
        assert found[state] == compiled == steps
    check = crosscheck(of, exhaustive(of), SEED)
    assert (check.verdict, check.first_failure) == (Verdict.HOLDS, None)
    assert set(check.by_action) == {"sit", "note", "wipe"}


def test_what_is_written_is_what_the_text_says() -> None:
    of = system_of()
    reference = Reference(of)

    def state(page: int, owner: int, *noted: int) -> State:
        return (page, owner, *noted)

    # Whoever has the desk already starts anew too; the other's notes go with the desk.
    assert reference.step(state(1, 0, 0, 0, -1, -1), "sit", (("replica", 0),)) == state(2, 0, -1, -1, -1, -1)
    assert reference.step(state(1, 0, 0, 0, -1, -1), "sit", (("replica", 1),)) == state(2, 1, -1, -1, -1, -1)
    # The later of two writes to one cell counts.
    assert reference.step(state(1, 1, -1, -1, 2, 2), "wipe", (("slot", 0),)) == state(1, 1, -1, -1, 0, 2)
    assert reference.step(state(1, 1, -1, -1, 2, 2), "wipe", (("slot", 1),)) == state(1, 1, -1, -1, 0, -1)
    targets = [show(target) for target, _ in of.traced.action("wipe").writes]
    assert targets == ["noted[*][slot]", "noted[owner][0]"]


def test_a_mutant_writes_them_too() -> None:
    """A shifted bound is read from the terms, not from the text."""
    mutant = mutant_named(desk().traced("notes"), "sit.page_open bound -1")
    of = ground(mutant.traced, {"replicas": 2, "slots": 2})
    reference, staged = Reference(of), stage(of)
    before = (0, 0, 0, 0, -1, -1)
    after = (1, 0, -1, -1, -1, -1)
    assert reference.step(before, "sit", (("replica", 0),)) == after
    assert after in {state for _, state in staged.successors(before)}
    assert reference.refused_by((1, *before[1:]), "sit", (("replica", 0),)) == "page_open"


def test_a_live_cell_may_be_unset_where_the_variable_says_so() -> None:
    strict, loose = system_of(protocol=desk(unset=False)), system_of()
    assert explore(Query.of(loose)).verdict is explore(Query.of(loose), "reference").verdict is Verdict.HOLDS
    for engine in ("batch", "reference", *COMPILED):
        answer = explore(Query.of(strict), engine)
        assert (answer.verdict, answer.violated, len(answer.path or [])) == (Verdict.VIOLATED, "type_ok", 1)
    # A cell that is not live must hold the dead value all the same.
    for of in (strict, loose):
        wrong = (1, 0, 0, 0, 0, -1)
        assert "type_ok" in Reference(of).broken(wrong)
        assert not stage(of).invariants["type_ok"](wrong)


def test_a_wrong_reading_of_every_is_found() -> None:
    """The planted fault: a mutant of the terms that writes one slot of two, behind the text's back."""
    of = system_of()
    sit = of.traced.action("sit")
    narrow = tuple(
        (replace_every(target) if target.value == "noted" else target, value) for target, value in sit.writes
    )
    traced = replace(of.traced, actions=(replace(sit, writes=narrow), *of.traced.actions[1:]))
    wrong = stage(ground(traced, of.constants))
    before = (1, 0, 0, 0, -1, -1)
    right = Reference(of).step(before, "sit", (("replica", 0),))
    assert right in {after for _, after in stage(of).successors(before)}
    assert right not in {after for _, after in wrong.successors(before)}


def replace_every(target: Any) -> Any:
    """The target with slot 0 in the place of every slot."""
    return terms.node(target.op, (target.args[0], terms.const(0)), target.sort, target.value)
