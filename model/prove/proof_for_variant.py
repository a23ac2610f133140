"""A proof beside one traced variant of its protocol: everything as terms, ready for any interpreter."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from ..core import terms
from ..core.domains import REPLICA, Index
from ..core.errors import ProtocolError
from ..core.lint import python_decides_nothing
from ..core.pretty import show
from ..core.protocol import PropertySpec, Protocol, TracedProtocol
from ..core.source_location import Reading
from ..core.terms import Sort, Term
from ..core.traced_variant import Text
from ..core.tracer import Named, bound, param, term_of, value_term
from .proof import HintSpec, Lemma, Proof

TYPE_OK = "type_ok"


@dataclass(frozen=True)
class Clause:
    """A condition for all values of its ``bound`` terms."""

    bound: tuple[tuple[Term, Index], ...]
    body: Term


@dataclass(frozen=True)
class Conjunct:
    """A named conjunct of the inductive invariant. ``type_ok`` has no clauses: the declared domains say it.

    ``layer``: that of a lemma; a promise is in the lowest one.
    """

    name: str
    doc: str
    promise: bool
    clauses: tuple[Clause, ...]
    layer: int = 0


@dataclass(frozen=True)
class GhostUpdate:
    """The new value of a ghost's cell, over the action's parameters and ``bound`` terms for the cell's indices."""

    name: str
    bound: tuple[Term, ...]
    value: Term


@dataclass(frozen=True)
class Hint:
    """Terms over the action's parameters, and over ``goal``: terms for the conjunct's values of these indices."""

    goal: tuple[tuple[Term, Index], ...]
    terms: tuple[Term, ...]


@dataclass(frozen=True)
class AttachedProof:
    """A proof beside one traced variant, which may be a mutant.

    ``traced`` is the variant over the state with ghosts: its actions do not write them (``updates`` does), and its
    protocol has the lemmas as invariants. The ghosts' cells come after all others.
    """

    proof: Proof
    base: TracedProtocol
    traced: TracedProtocol
    conjuncts: Mapping[str, Conjunct]
    updates: Mapping[str, tuple[GhostUpdate, ...]]
    hints: Mapping[str, tuple[Hint, ...]]


def attach(proof: Proof, traced: TracedProtocol) -> AttachedProof:
    """A proof beside a variant of its protocol, or a mutant of one. Raises ProtocolError for another protocol."""
    base = traced.protocol
    if base.name != proof.protocol.name:
        raise ProtocolError(f"this is a proof of {proof.protocol.name}, not of {base.name}")
    extended = _extended(base, proof)
    extended_traced = replace(traced, protocol=extended)
    text = Text(extended, traced.variant, extended_traced.variables)
    conjuncts = {TYPE_OK: Conjunct(TYPE_OK, "Every cell holds a value of its declared domain.", True, ())}
    for name, term in traced.invariants.items():
        clauses = prenex(term, extended.indices)
        conjuncts[name] = Conjunct(name, base.invariants[name].doc, True, tuple(clauses))
    for lemma in proof.lemmas.values():
        conjuncts[lemma.name] = Conjunct(lemma.name, lemma.doc, lemma.promise, _clauses(lemma, text), lemma.layer)
    updates, hints = {}, {}
    for action in traced.actions:
        if action.name in proof.update_texts:
            updates[action.name] = _updates(proof, action.name, action.params, text)
        specs = proof.hint_texts.get(action.name, [])
        hints[action.name] = tuple(_hint(spec, action.params, text) for spec in specs)
    return AttachedProof(proof, traced, extended_traced, conjuncts, updates, hints)


def _extended(base: Protocol, proof: Proof) -> Protocol:
    """The protocol with the ghosts as variables and the lemmas as invariants; its actions' texts are the same."""
    extended = Protocol(base.name, base.source, constants=tuple(base.constants.values()))
    extended.variables = {**base.variables, **proof.ghosts}
    extended.actions = dict(base.actions)
    extended.variants = dict(base.variants)
    extended.invariants = dict(base.invariants)
    extended.indices = dict(base.indices)
    for lemma in proof.lemmas.values():
        extended.invariants[lemma.name] = PropertySpec(lemma.name, lemma.closed)
        extended.indices |= {index.name: index for index in lemma.params.values()}
    for ghost in proof.ghosts.values():
        extended.indices |= {index.name: index for index in ghost.per}
    return extended


def params_of(params: Mapping[str, Index]) -> dict[str, Term]:
    """The terms that stand for an action's parameters."""
    return {name: term_of(param(name, index)) for name, index in params.items()}


def _said(params: Mapping[str, Index]) -> dict[str, Term | Named]:
    """The same, as a text sees them."""
    return {name: param(name, index) for name, index in params.items()}


def _bound(scope: str, indices: Mapping[str, Index]) -> dict[str, Term | Named]:
    return {name: bound(f"{scope}.{name}", index) for name, index in indices.items()}


def _clauses(lemma: Lemma, text: Text) -> tuple[Clause, ...]:
    given = _bound(lemma.name, lemma.params)
    with Reading(lemma.text):
        body = terms.lift(lemma.text(text.k, text.s, **given))
        if body.sort is not Sort.BOOL:
            raise ProtocolError(f"{lemma.name} is not a condition: {body}", "compare it, as in s.x == y or s.x < y")
        python_decides_nothing(lemma.text)
    outer = tuple((term_of(given[name]), index) for name, index in lemma.params.items())
    return tuple(Clause(outer + inner.bound, inner.body) for inner in prenex(body, text.protocol.indices))


def _updates(proof: Proof, action: str, params: Mapping[str, Index], text: Text) -> tuple[GhostUpdate, ...]:
    found = []
    with Reading(proof.update_texts[action]):
        python_decides_nothing(proof.update_texts[action])
        for name, value_at in proof.update_texts[action](text.k, text.s, **_said(params)).items():
            if name not in proof.ghosts:
                raise ProtocolError(f"the updates of {action} write {name!r}, which is no ghost")
            variable = proof.ghosts[name]
            given = _bound(name, {str(i): index for i, index in enumerate(variable.per)}).values()
            value = value_term(variable, value_at(*given), f"the update of {action}")
            found.append(GhostUpdate(name, tuple(map(term_of, given)), value))
    return tuple(found)


def _hint(spec: HintSpec, params: Mapping[str, Index], text: Text) -> Hint:
    goal = _bound("goal", spec.goal)
    with Reading(spec.text):
        python_decides_nothing(spec.text)
        # A hint's own names come first: it is asked of actions that have a parameter of such a name, too.
        found = tuple(map(term_of, spec.text(text.k, text.s, **{**_said(params), **goal})))
    return Hint(tuple((term_of(goal[name]), index) for name, index in spec.goal.items()), found)


def prenex(term: Term, indices: Mapping[str, Index]) -> list[Clause]:
    """A condition as clauses with their quantifiers in front: each ``forall`` is taken out of ``and`` and ``or``.

    E-matching finds instances of all variables of a clause at once; of nested quantifiers it finds the outer's first.
    An equality of sets is a ``forall`` over replicas.
    """
    if term.op == "and":
        return [clause for part in term.args for clause in prenex(part, indices)]
    if term.op == "forall":
        bound, body = term.args
        index = indices[str(term.value)]
        return [Clause(((bound, index), *inner.bound), inner.body) for inner in prenex(body, indices)]
    if term.op == "eq" and term.args[0].sort is Sort.SET:
        left, right = term.args
        member = terms.node("bound", (), Sort.REPLICA, f"member: {show(term)}")
        return [Clause(((member, indices[REPLICA.name]),), terms.member(member, left) == terms.member(member, right))]
    if term.op == "or":
        for number, part in enumerate(term.args):
            inner = prenex(part, indices)
            if not any(clause.bound for clause in inner):
                continue
            before, after = term.args[:number], term.args[number + 1 :]
            return [
                Clause((*clause.bound, *more.bound), more.body)
                for clause in inner
                for more in prenex(terms.disjunction(*before, clause.body, *after), indices)
            ]
    return [Clause((), term)]


def split(clause: Clause) -> list[Clause]:
    """The clause as one for each part of its conclusion, over the bound terms that the part uses.

    z3 looks for a trigger that names all variables of a clause, so a part that uses few is found sooner alone.
    """
    for number, part in enumerate(clause.body.args if clause.body.op == "or" else (clause.body,)):
        if part.op == "and":
            rest = [*clause.body.args[:number], *clause.body.args[number + 1 :]] if clause.body.op == "or" else []
            parts = (terms.disjunction(*rest, each) for each in part.args)
            return [small for each in parts for small in split(Clause(clause.bound, each))]
    used = _bound_in(clause.body)
    return [Clause(tuple(pair for pair in clause.bound if pair[0] in used), clause.body)]


def _bound_in(term: Term) -> frozenset[Term]:
    here = frozenset((term,) if term.op == "bound" else ())
    return here.union(*map(_bound_in, term.args))
