"""Unsat cores: of which hypotheses the refutation of each obligation is made, written down beside the proof.

Every conjunct is a hypothesis of every obligation, which is what a proof is allowed to use. A refutation uses few of
them, and z3 spends most of its time on instances of the others: given those few alone it mostly finds it with a tenth
of the effort. So the hypotheses in an unsat core are written down, and asked first. To assume less is always sound:
what is refuted so is refuted, whatever the file says. Where it is not (the file is older than a lemma, or a term is
missing that another hypothesis would have brought), and is not in other orders either, the obligation is asked with all
hypotheses, as if there were no file. F* records its proofs' cores for the same reason (its manual calls them hints,
``--record_hints``).

The file is JSON: for each action and conjunct the hypotheses, which are clauses of conjuncts, ``logs_match.0``.
``fencepost prove --write-cores`` writes it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

import z3

from ..core.errors import BadInput
from .obligations import Obligation, Obligations
from .solve import RLIMIT, ask, solver_of

FORMAT = "fencepost-cores"
VERSION = 1

CORE_RLIMIT = RLIMIT // 10
"""Of z3's resource units, for an obligation with its core alone. What is refuted so takes less; what is not mostly
gives up early, as little is there to be instantiated."""

CORE_ORDERS = (631_001, 631_002)
"""Seeds of the orders in which a core is asked where z3 gives up on it in its own. Which terms come up, and when,
depends on the order: a core that is not enough in one of twenty is in the next, for a tenth of what all hypotheses
take."""

WORTH = 20_000
"""Of z3's resource units: what takes less with all hypotheses needs no core. A hundredth of a second."""

_PIECES = 16
"""Into how many pieces what is in no core is cut at most, each of which is tried to be left out."""

_ORDERS = 4
"""In how many orders of the hypotheses a core is looked for, until one leads to fewer that are enough. The first is
their own, the others are shuffled by seeds of their own."""

Cores = Mapping[tuple[str, str], Sequence[str]]
"""For an action and a conjunct, the names of the hypotheses that are enough."""


def read_cores(path: Path, variant: str) -> Cores:
    """The cores of one variant's proof; none where no file is there. Raises BadInput for something else in it."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError:
        return {}
    try:
        told = json.loads(text)
        if (told["format"], told["version"], told["variant"]) != (FORMAT, VERSION, variant):
            raise ValueError(f"it is not of {FORMAT} {VERSION} for {variant}")
        names = told["hypotheses"]
        found = {
            (action, conjunct): tuple(names[number] for number in numbers)
            for action, of in told["cores"].items()
            for conjunct, numbers in of.items()
        }
    except (ValueError, KeyError, TypeError, IndexError, AttributeError) as error:
        raise BadInput(
            f"no unsat cores: {error}", str(path), "remove it, or write it by prove --write-cores"
        ) from error
    return found


def written_cores(cores: Cores, variant: str) -> str:
    """The text of the file: a line for each obligation, hypotheses by their places in one list."""
    names = sorted({name for core in cores.values() for name in core})
    number = {name: place for place, name in enumerate(names)}
    actions: dict[str, list[str]] = {}
    for (action, conjunct), core in sorted(cores.items()):
        line = f'"{conjunct}": {json.dumps(sorted(number[name] for name in core))}'
        actions.setdefault(action, []).append(line)
    rows = ",\n".join(f'  "{action}": {{\n   ' + ",\n   ".join(of) + "\n  }" for action, of in actions.items())
    head = f'"format": "{FORMAT}",\n "version": {VERSION},\n "variant": "{variant}"'
    return f'{{\n {head},\n "hypotheses": {json.dumps(names)},\n "cores": {{\n{rows}\n }}\n}}\n'


@dataclass(frozen=True)
class Found:
    """A core of one obligation. ``before``, ``after``: resource units with all hypotheses, and with the core alone."""

    action: str
    conjunct: str
    core: tuple[str, ...]
    before: int
    after: int


def find_cores(
    obligations: Obligations, names: Sequence[tuple[str, str]], told: Callable[[int, int, str], None] | None = None
) -> Iterator[Found]:
    """A core for each obligation that is worth one, if one is found. What z3 does not refute has none."""
    for number, (action, conjunct) in enumerate(names):
        whole = obligations.obligation(action, conjunct)
        if told is not None:
            told(number, len(names), whole.name)
        answer = ask(whole.smt)
        if not answer.proved or answer.resources < WORTH:
            continue
        found = _smallest(obligations, whole, answer.resources)
        if found is not None:
            yield found


def _smallest(obligations: Obligations, whole: Obligation, before: int) -> Found | None:
    """Hypotheses that are enough for less effort; none where no order of them leads to such.

    A core alone may be not enough: a hypothesis that is no part of a refutation may bring a term that another one is
    instantiated with. Of another order z3 makes another refutation, and that one's core may be.
    """
    for order in range(_ORDERS):
        found = _reduced(obligations, whole, before, _core(obligations, whole, order))
        if found is not None:
            return found
    return None


def _reduced(obligations: Obligations, whole: Obligation, before: int, core: Collection[str]) -> Found | None:
    """What is left where others are left out, as many at a time as can be, those outside the core first."""

    def effort(core: Collection[str], rlimit: int) -> int | None:
        answer = ask(obligations.obligation(whole.action, whole.conjunct, core).smt, rlimit=rlimit)
        return answer.resources if answer.proved else None

    needed = set(core)
    kept, after = list(whole.hypotheses), before
    # First what is in no core; then what is in one, as a core is not the smallest one.
    for spare in ([name for name in kept if name not in needed], [name for name in kept if name in needed]):
        size, least = len(spare), max(1, len(spare) // _PIECES)
        while size >= least:
            for start in range(0, len(spare), size):
                without = set(spare[start : start + size]) & set(kept)
                left = [name for name in kept if name not in without]
                found = effort(left, after) if without else None
                if found is not None:
                    kept, after = left, found
            size //= 2
    if 4 * after < 3 * before and after < CORE_RLIMIT:
        return Found(whole.action, whole.conjunct, tuple(kept), before, after)
    return None


def _core(obligations: Obligations, whole: Obligation, order: int) -> Sequence[str]:
    """The hypotheses in an unsat core; none where z3 gives up. ``order``: 0 for their own, else the seed of another."""
    context = z3.Context()
    solver = solver_of(context, seed=0, rlimit=RLIMIT)
    solver.set(unsat_core=True)
    # Hypotheses come first in the text, behind the axioms of constants.
    first = len(obligations.unbounded.constant_axioms)
    names = whole.hypotheses
    tracked = {}
    formulas = list(enumerate(z3.parse_smt2_string(whole.smt, ctx=context)))
    if order:
        Random(order).shuffle(formulas)  # noqa: S311 - a seeded order, no secret
    for place, formula in formulas:
        if first <= place < first + len(names):
            label = z3.Bool(f"core!{place}", context)
            tracked[str(label)] = names[place - first]
            solver.assert_and_track(formula, label)
        else:
            solver.add(formula)
    if solver.check() != z3.unsat:
        return ()
    return [tracked[str(label)] for label in solver.unsat_core()]
