"""A protocol: constants, variables, actions, invariants, witnesses and variants, each written once.

The text of an action is a generator over the algebra ``k`` and the state ``s`` that yields its named guards
and then its update::

    @fencing.action(leader=REPLICA, follower=REPLICA)
    def follower_fetch(k, s, leader, follower):
        yield "follows_leader", s.leader[follower] == leader
        ...
        yield s.update(leo={follower: s.leo[follower] + 1})
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from functools import cached_property
from typing import Any, Final, TypeVar

from . import declare
from .algebra import Step, Value
from .change_guards import change_guards
from .domains import REPLICA, Constants, Index, Size, Values, Variable
from .enumeration import Enumeration
from .errors import BadInput, BadText
from .source_location import Reading, declared_here, near
from .terms import Sort, Term
from .tla import TlaModule, tla_name
from .traced_variant import Text, declared

ActionText = Callable[..., Step]
ConditionText = Callable[..., Value]
_Text = TypeVar("_Text", bound=Callable[..., Any])

LARGEST_CONSTANT: Final = 63
"""The largest value of a constant anywhere but in a proof, which is of all of them."""


@dataclass(frozen=True)
class ConstantSpec:
    """A constant of a protocol: its name, smallest and default value, and what it means.

    ``maximum``: the largest value, where it is a choice among so many; a size has none, and a proof is of all of them.
    """

    name: str
    default: int
    minimum: int
    doc: str
    maximum: int | None = None

    @property
    def largest(self) -> int:
        """The largest value that is explored, driven or replayed."""
        return LARGEST_CONSTANT if self.maximum is None else self.maximum


@dataclass(frozen=True)
class Variant:
    """A named version of a protocol. ``rules`` is what the text reads as ``k.rules``.

    ``restarts``: replicas crash and come back in it. It is there for a harness that crashes brokers, and for what goes
    wrong then; it is no design of another time, and its graph is many times as large.
    """

    name: str
    rules: object
    doc: str
    restarts: bool = False


@dataclass(frozen=True)
class ActionSpec:
    """An action as written: its name, its parameters' domains, its text, and the variants that have it."""

    name: str
    params: Mapping[str, Index]
    text: ActionText
    present: Callable[[Any], bool]

    @property
    def doc(self) -> str:
        """The first line of the text's docstring."""
        return (self.text.__doc__ or "").strip().split("\n")[0]

    @property
    def tla_name(self) -> str:
        """The name of the same action in the TLA+ module."""
        return tla_name(self.name)


@dataclass(frozen=True)
class PropertySpec:
    """An invariant (``always``) or a witness (``sometimes``).

    ``relevant`` says at which constants a witness can be expected at all, and ``present`` which variants have an
    invariant.
    """

    name: str
    text: ConditionText
    relevant: Callable[[Constants], bool] = field(default=lambda _: True)
    present: Callable[[Any], bool] = field(default=lambda _: True)

    @property
    def doc(self) -> str:
        """The first paragraph of the text's docstring, on one line."""
        return " ".join((self.text.__doc__ or "").strip().split("\n\n")[0].split())


class Form(Enum):
    """The form of a liveness property."""

    LEADS_TO = "P ~> Q: whenever P holds, Q holds then or later"
    RECURS = "[]<>P: P holds again and again"
    SETTLES = "<>[]P: from some step on, P holds for ever"

    @property
    def conditions(self) -> int:
        """How many conditions the text of such a property gives."""
        return 2 if self is Form.LEADS_TO else 1


@dataclass(frozen=True)
class LivenessSpec:
    """A liveness property; one with parameters must hold for each of their values.

    The text gives the pair (P, Q) for ``Form.LEADS_TO``, and P alone for the other forms.
    """

    name: str
    form: Form
    params: Mapping[str, Index]
    text: ConditionText

    @property
    def doc(self) -> str:
        """The first paragraph of the text's docstring, on one line."""
        return " ".join((self.text.__doc__ or "").strip().split("\n\n")[0].split())


@dataclass(frozen=True)
class Fair:
    """Fairness of an action, as in TLA: ``WF_vars(E p: A)`` or, where ``strong``, ``SF_vars(E p: A)``.

    Weak: an action that stays enabled for ever happens again and again. Strong: so does one that is enabled again
    and again. The parameters in ``per`` are not quantified away: the action is fair for each of their values.
    """

    action: str
    strong: bool = False
    per: tuple[str, ...] = ()


@dataclass(frozen=True)
class FairnessSpec:
    """A named set of fairness conditions; those over actions that a variant lacks do not apply to it."""

    name: str
    conditions: tuple[Fair, ...]
    doc: str


@dataclass(frozen=True)
class TracedAction:
    """An action as terms over its parameters: guards in the order written, and the cells that it writes."""

    name: str
    params: Mapping[str, Index]
    guards: tuple[tuple[str, Term], ...]
    writes: tuple[tuple[Term, Term], ...]
    """Pairs (``var`` term that names the cells, value term); ``terms.row`` says in what the two go together."""

    @cached_property
    def change_guards(self) -> frozenset[str]:
        """The guards that only demand that the step changes something."""
        return change_guards(self.guards, self.writes)

    def drop(self, guard: str) -> TracedAction:
        """The same action without one guard: a mutant."""
        if guard not in dict(self.guards):
            raise BadInput(
                f"{self.name} has no guard {guard!r}",
                "--drop",
                f"choose one of {', '.join(dict(self.guards))}",
            )
        return replace(self, guards=tuple(g for g in self.guards if g[0] != guard))


@dataclass(frozen=True)
class TracedProtocol:
    """One variant of a protocol as terms: what every engine reads."""

    protocol: Protocol
    variant: Variant
    actions: tuple[TracedAction, ...]
    invariants: Mapping[str, Term]
    witnesses: Mapping[str, Term]
    live: Mapping[str, tuple[tuple[Term, ...], Term]]
    """For a variable with dead cells: its index terms (``bound`` nodes) and the condition of being live."""

    @cached_property
    def variables(self) -> dict[str, Variable]:
        """The variables that the variant has, in the order declared."""
        return self.protocol.variables_of(self.variant.name)

    def action(self, name: str) -> TracedAction:
        """The action of that name; KeyError if this variant has none."""
        for action in self.actions:
            if action.name == name:
                return action
        raise KeyError(name)

    def drop(self, *guards: str) -> TracedProtocol:
        """The mutant that lacks these guards, each given as ``ACTION.GUARD``. Raises BadInput for an unknown one."""
        actions = {action.name: action for action in self.actions}
        for spec in guards:
            name, dot, guard = spec.partition(".")
            if not dot or name not in actions:
                raise BadInput(
                    f"{spec!r} names no guard of {self.protocol.name} ({self.variant.name})",
                    "--drop",
                    f"write ACTION.GUARD with an action of {', '.join(actions)}",
                )
            actions[name] = actions[name].drop(guard)
        return replace(self, actions=tuple(actions.values()))


class Protocol:
    """A protocol under construction and, once its module is imported, the protocol itself."""

    def __init__(self, name: str, source: str, *, constants: tuple[ConstantSpec, ...]) -> None:
        self.name = name
        self.source = source
        self.where = declared_here()
        """The file and line of its declaration."""
        self.constants: dict[str, ConstantSpec] = {}
        for constant in constants:
            declare.new_name("constant", constant.name, self.constants)
            self.constants[constant.name] = constant
        self.variables: dict[str, Variable] = {}
        self.indices: dict[str, Index] = {REPLICA.name: REPLICA}
        self.actions: dict[str, ActionSpec] = {}
        self.invariants: dict[str, PropertySpec] = {}
        self.witnesses: dict[str, PropertySpec] = {}
        self.implied: dict[str, PropertySpec] = {}
        """Conditions over lasting variables that follow from the invariants; replay compares observations by them."""
        self.variants: dict[str, Variant] = {}
        self.liveness: dict[str, LivenessSpec] = {}
        self.fairness: dict[str, FairnessSpec] = {}
        self._traced: dict[str, TracedProtocol] = {}
        self._tla_module: Callable[[Any], TlaModule] | None = None

    def variable(
        self,
        name: str,
        doc: str,
        values: Values,
        *,
        per: tuple[Index, ...] = (),
        initially: int | Size = 0,
        live: Callable[..., Value] | None = None,
        dead: int | None = None,
        unset: bool = False,
        present: Callable[[Any], bool] = lambda _: True,
        lasting: Callable[[Any], bool] = lambda _: False,
    ) -> None:
        """Declare a state variable (see ``domains.Variable``).

        ``dead`` is -1 where not given, and the empty set for a variable of replica sets.
        """
        declare.variable_name(self.name, name, self.variables, self.constants)
        declare.domain(values, name)
        declare.indices(self.indices, per)
        if isinstance(values, Enumeration):
            values = declare.enumerated(name, values, live, dead, unset)
        if live is not None:
            declare.takes(live, len(per), f"live of {name}")
        if dead is None:
            dead = 0 if values.sort is Sort.SET else -1
        where = declared_here()
        first = declare.first_value(initially)
        variable = Variable(name, per, values, first, doc, live, dead, unset, present, where, lasting)
        declare.known_sizes(where, name, self._defaults, declare.sizes_of(variable))
        self.variables[name] = variable

    @property
    def _defaults(self) -> dict[str, int]:
        return {constant.name: constant.default for constant in self.constants.values()}

    def variables_of(self, variant: str) -> dict[str, Variable]:
        """The variables that a variant has, in the order declared. KeyError for an unknown variant."""
        rules = self.variants[variant].rules
        return {name: variable for name, variable in self.variables.items() if variable.present(rules)}

    def variant(self, name: str, rules: object, doc: str, *, restarts: bool = False) -> None:
        """Declare a variant; the last one declared is safe, and the default."""
        declare.new_variant(name, self.variants)
        self.variants[name] = Variant(name, rules, doc, restarts)

    @property
    def default_variant(self) -> str:
        """The safe variant. Raises BadText where there is none."""
        if not self.variants:
            mend = f'declare one: {self.name}.variant("basic", None, "what it is")'
            raise BadText(f"{self.name} has no variant", self.where, mend)
        return next(reversed(self.variants))

    def action(
        self, *, present: Callable[[Any], bool] = lambda _: True, **params: Index
    ) -> Callable[[ActionText], ActionText]:
        """Register the text of an action with its parameters' domains.

        ``present(rules)`` says which variants have the action.
        """

        def register(text: ActionText) -> ActionText:
            name = text.__name__
            declare.new_name("action", name, self.actions)
            declare.takes(text, params, name)
            declare.indices(self.indices, params.values())
            sizes = [index.size for index in params.values()]
            declare.known_sizes(declared_here(), name, self._defaults, sizes)
            self.actions[name] = ActionSpec(name, params, text, present)
            return text

        return register

    def always(self, text: _Text) -> _Text:
        """Register an invariant: it holds in every reachable state."""
        return self.always_in(lambda _: True)(text)

    def always_in(self, present: Callable[[Any], bool]) -> Callable[[_Text], _Text]:
        """Register an invariant of some variants alone: ``present(rules)`` says of which."""

        def register(text: _Text) -> _Text:
            self._new_promise("invariant", text, {})
            self.invariants[text.__name__] = PropertySpec(text.__name__, text, present=present)
            return text

        return register

    def implied_in(self, present: Callable[[Any], bool]) -> Callable[[_Text], _Text]:
        """Register a condition over lasting variables that the invariants of some variants imply."""

        def register(text: _Text) -> _Text:
            self._new_promise("implied condition", text, {})
            self.implied[text.__name__] = PropertySpec(text.__name__, text, present=present)
            return text

        return register

    def sometimes(self, relevant: Callable[[Constants], bool] = lambda _: True) -> Callable[[_Text], _Text]:
        """Register a witness: a run over constants at which it is relevant must meet it, or the model is vacuous."""
        declare.not_a_text(relevant, f"{self.name}.sometimes()")

        def register(text: _Text) -> _Text:
            self._new_promise("witness", text, {})
            declare.known_sizes(declared_here(), text.__name__, self._defaults, [relevant])
            self.witnesses[text.__name__] = PropertySpec(text.__name__, text, relevant)
            return text

        return register

    def eventually(self, form: Form, **params: Index) -> Callable[[_Text], _Text]:
        """Register a liveness property; what holds in the end depends on the fairness that is assumed."""
        declare.not_a_text(form, f"{self.name}.eventually(Form.RECURS)")

        def register(text: _Text) -> _Text:
            self._new_promise("liveness property", text, params)
            declare.indices(self.indices, params.values())
            self.liveness[text.__name__] = LivenessSpec(text.__name__, form, params, text)
            return text

        return register

    def _new_promise(self, kind: str, text: Callable[..., Any], params: Mapping[str, Index]) -> None:
        taken = (*self.invariant_names, *self.witnesses, *self.liveness, *self.implied)
        declare.new_name(kind, text.__name__, taken)
        declare.takes(text, params, text.__name__)

    def assume_fair(self, name: str, conditions: tuple[Fair, ...], doc: str) -> None:
        """Declare a named set of fairness conditions. Raises BadText for an unknown action or parameter."""
        if name in self.fairness:
            raise BadText(f"there are two sets of fairness named {name!r}", declared_here(), "rename one")
        for fair in conditions:
            if fair.action not in self.actions:
                what = f"the fairness {name} names {fair.action!r}, which is no action of {self.name}"
                raise BadText(what, declared_here(), near(fair.action, list(self.actions)))
            for param in fair.per:
                if param not in self.actions[fair.action].params:
                    what = f"the fairness {name} is per {param!r}, which {fair.action} does not have"
                    raise BadText(what, declared_here(), near(param, list(self.actions[fair.action].params)))
        self.fairness[name] = FairnessSpec(name, conditions, doc)

    def tla_module(self, text: Callable[[Any], TlaModule]) -> Callable[[Any], TlaModule]:
        """Register the function that gives the TLA+ module of a variant for the variant's rules."""
        self._tla_module = text
        return text

    def module_of(self, variant: str) -> TlaModule | None:
        """The TLA+ module of a variant; None where the protocol has none. KeyError for an unknown variant."""
        rules = self.variants[variant].rules
        return None if self._tla_module is None else self._tla_module(rules)

    @property
    def invariant_names(self) -> tuple[str, ...]:
        """Every invariant of any variant: ``type_ok``, which the declared domains give, and the registered ones."""
        return ("type_ok", *self.invariants)

    def check_constants(self, constants: Constants) -> dict[str, int]:
        """The constants completed by their defaults. Raises BadInput for an unknown name or a bad value."""
        for name, value in constants.items():
            spec = self.constants.get(name)
            option = "--" + name.replace("_", "-")
            if spec is None:
                known = ", ".join(self.constants)
                raise BadInput(f"{self.name} has no constant {name!r}", option, f"its constants are {known}")
            if isinstance(value, bool) or not isinstance(value, int) or not spec.minimum <= value <= spec.largest:
                mend = f"give an integer from {spec.minimum} to {spec.largest}"
                raise BadInput(f"{name} is {value!r}", option, mend)
        return {name: constants.get(name, spec.default) for name, spec in self.constants.items()}

    def traced(self, variant: str | None = None) -> TracedProtocol:
        """One variant as terms (traced once). Raises BadInput for an unknown variant, BadText for a bad text."""
        name = variant or self.default_variant
        if name not in self.variants:
            known = ", ".join(self.variants)
            raise BadInput(f"{self.name} has no variant {name!r}", "--variant", f"choose one of {known}")
        if name not in self._traced:
            self._traced[name] = self._trace(self.variants[name])
        return self._traced[name]

    def implied_terms(self, variant: str) -> dict[str, Term]:
        """The implied conditions of a variant as terms."""
        text = Text(self, self.variants[variant])
        rules = self.variants[variant].rules
        present = [each for each in self.implied.values() if each.present(rules)]
        return {each.name: text.promise(each.name, "implied condition", each.text) for each in present}

    def _trace(self, variant: Variant) -> TracedProtocol:
        asked = [variable.present for variable in self.variables.values()]
        asked += [action.present for action in self.actions.values()]
        for present in asked + [invariant.present for invariant in self.invariants.values()]:
            with Reading(present):
                present(variant.rules)
        text = Text(self, variant)
        live = text.live()
        actions = []
        for spec in self.actions.values():
            if spec.present(variant.rules):
                guards, writes = text.action(spec)
                actions.append(TracedAction(spec.name, spec.params, guards, writes))
        promises = [each for each in self.invariants.values() if each.present(variant.rules)]
        invariants = {each.name: text.promise(each.name, "invariant", each.text) for each in promises}
        witnesses = {p.name: text.promise(p.name, "witness", p.text) for p in self.witnesses.values()}
        for promise in self.liveness.values():
            text.liveness(promise)
        declared(self, variant.name)
        return TracedProtocol(self, variant, tuple(actions), invariants, witnesses, live)
