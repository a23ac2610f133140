"""A proof with no bound, as written: ghost variables with their updates, lemmas and hints, beside a protocol's text.

The protocol's text stays the one text of its actions. A proof adds to it what only the proof needs::

    kip_320 = Proof(fencing, variant="kip-320", sizes=(...))
    kip_320.ghost("newest_started", "the largest leader epoch that its leader has taken up", EPOCHS, initially=-1)

    @kip_320.updates("become_leader")
    def _started(k, s, leader, epoch):
        return {"newest_started": lambda: k.max(s.newest_started, epoch)}

    @kip_320.lemma(replica=REPLICA)
    def no_epoch_from_the_future(k, s, replica):
        return s.leader_epoch[replica] < s.next_leader_epoch

A ghost guards no step, so a run with ghosts is a run without them, and the other way round. An update gives, for each
ghost that it changes, the new value of the cell at any indices; all values are read in the state before the step.
So one update may change a whole row, which the text of an action cannot. A lemma has parameters like an action, and
says that its condition holds for all of their values.

``proof_for_variant.py`` puts a proof beside a traced variant of its protocol.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from ..core.algebra import Algebra, Value, View
from ..core.domains import Constants, Index, Size, Values, Variable
from ..core.errors import ProtocolError
from ..core.protocol import Protocol, TracedProtocol

Ghosts = Mapping[str, Callable[..., Value]]
"""What an update gives: for each ghost that changes, its new value as a function of its indices."""

UpdateText = Callable[..., Ghosts]
LemmaText = Callable[..., Value]
HintText = Callable[..., Sequence[Value]]
_Text = TypeVar("_Text", bound=Callable[..., Any])


@dataclass(frozen=True)
class Lemma:
    """A conjunct of the inductive invariant: it holds for all values of its parameters.

    ``promise``: it is what the protocol is for, and not only a help in the proof of that. ``layer``: what z3 is given
    to prove it from are the lemmas of this layer and of those below.
    """

    name: str
    params: Mapping[str, Index]
    text: LemmaText
    promise: bool
    layer: int = 0

    @property
    def doc(self) -> str:
        """The docstring on one line: what it says, and why it is needed."""
        return " ".join((self.text.__doc__ or "").split())

    def closed(self, k: Algebra, s: View) -> Value:
        """The lemma as a condition on the state alone, for interpreters that know nothing of proofs."""

        def over(rest: Sequence[str], chosen: Mapping[str, Value]) -> Value:
            if not rest:
                return self.text(k, s, **chosen)
            return k.forall(self.params[rest[0]], lambda value: over(rest[1:], {**chosen, rest[0]: value}))

        return over(tuple(self.params), {})


@dataclass(frozen=True)
class HintSpec:
    """A text that gives terms over an action's parameters, and over values of the conjunct's ``goal`` indices."""

    goal: Mapping[str, Index]
    text: HintText


class Proof:
    """The proof of one variant of a protocol, under construction and, once its module is imported, whole.

    ``sizes``: the constants at which finite models are looked for, smallest first. ``runs``: those at which a run is
    looked for that breaks a promise, where they are others. ``derived``: promises that nothing else rests on, as
    lemmas say the same: z3 is not given them to prove other conjuncts from. To assume less is always sound.
    ``twins``: variants that are not safe, of which this proof, and no other of the protocol's, is to be tried.
    ``follows``: promises that are no part of the induction, as each follows from the other conjuncts in any one state:
    that is then all there is to prove of it.
    ``never``: actions that never happen at the constants that it is about, which is proved of them.
    ``cores``: the file of what its obligations need (``cores.py``), by which they are proved sooner.
    """

    def __init__(
        self,
        protocol: Protocol,
        variant: str,
        sizes: Sequence[Constants],
        runs: Sequence[Constants] = (),
        derived: Sequence[str] = (),
        twins: Sequence[str] = (),
        follows: Sequence[str] = (),
        cores: Path | None = None,
        never: Sequence[str] = (),
    ) -> None:
        self.protocol = protocol
        self.variant = variant
        self.sizes = tuple(sizes)
        self.runs = tuple(runs) or self.sizes
        self.derived = frozenset(derived)
        self.twins = frozenset(twins)
        self.follows = frozenset(follows)
        self.cores = cores
        self.never = frozenset(never)
        if unknown := (self.derived | self.follows) - set(protocol.invariants):
            raise ProtocolError(f"{protocol.name} has no promise {', '.join(sorted(unknown))}")
        self.update_texts: dict[str, UpdateText] = {}
        self.lemmas: dict[str, Lemma] = {}
        self.hint_texts: dict[str, list[HintSpec]] = {}
        # Another protocol declares the ghosts, so that this one stays as it is.
        self._declared = Protocol(protocol.name, protocol.source, constants=tuple(protocol.constants.values()))

    @property
    def text(self) -> Protocol:
        """The protocol that is proved, as its module has it; ``protocol`` may be a copy of it (``specialize.py``)."""
        return self.protocol

    @property
    def at(self) -> Constants:
        """The constants that it is about at one value alone. All others are any."""
        return {}

    def reads(self, traced: TracedProtocol) -> TracedProtocol:
        """A variant of the text, or a mutant of one, as a variant of ``protocol``."""
        return traced

    @property
    def ghosts(self) -> Mapping[str, Variable]:
        """The ghost variables."""
        return self._declared.variables

    def ghost(
        self, name: str, doc: str, values: Values, *, per: tuple[Index, ...] = (), initially: int | Size = 0
    ) -> None:
        """Declare a ghost variable. Its domain bounds it in finite models only."""
        if name in self.protocol.variables or name in self.ghosts:
            raise ProtocolError(f"{self.protocol.name} has a variable {name} already")
        self._declared.variable(name, doc, values, per=per, initially=initially)

    def updates(self, action: str) -> Callable[[_Text], _Text]:
        """Register how an action changes ghosts. The text has the action's parameters."""

        def register(text: _Text) -> _Text:
            self._require_action(action)
            if action in self.update_texts:
                raise ProtocolError(f"the updates of {action} are given twice")
            self.update_texts[action] = text
            return text

        return register

    def lemma(self, *, promise: bool = False, layer: int = 0, **params: Index) -> Callable[[_Text], _Text]:
        """Register a lemma. Its docstring says what it says and why it is needed.

        One of a higher ``layer`` is not given to z3 to prove those below it, which it would only keep from them.
        """

        def register(text: _Text) -> _Text:
            name = text.__name__
            if name in self.lemmas or name in self.protocol.invariant_names:
                raise ProtocolError(f"there are two conjuncts {name}")
            self.lemmas[name] = Lemma(name, params, text, promise, layer)
            return text

        return register

    def hints(self, *actions: str, **goal: Index) -> Callable[[_Text], _Text]:
        """Register terms that z3 shall know in the obligations of these actions, so that it instantiates lemmas there.

        The text has the parameters of the action, and those of ``goal``: for them stands each value of that index
        for which the conjunct is assumed not to hold. It gives integers and replicas. A hint asserts nothing.
        """

        def register(text: _Text) -> _Text:
            for action in actions:
                self._require_action(action)
                self.hint_texts.setdefault(action, []).append(HintSpec(goal, text))
            return text

        return register

    def takes(self, other: Proof, *names: str) -> None:
        """Take ghosts and lemmas of another proof of the protocol, and the updates of actions, each by its name.

        Raises ProtocolError for a name of nothing in the other, and for one that this proof has already.
        """
        for name in names:
            if ghost := other.ghosts.get(name):
                self.ghost(name, ghost.doc, ghost.values, per=ghost.per, initially=ghost.initially)
            elif lemma := other.lemmas.get(name):
                self.lemma(promise=lemma.promise, layer=lemma.layer, **lemma.params)(lemma.text)
            elif update := other.update_texts.get(name):
                self.updates(name)(update)
            else:
                raise ProtocolError(f"the proof of {other.variant} has no ghost, lemma or update {name!r} to take")

    def takes_hints(self, other: Proof) -> None:
        """Take every hint of another proof of the protocol, of the actions that are proved here.

        One that says nothing here does no harm.
        """
        for action, specs in other.hint_texts.items():
            for spec in specs if action in self.protocol.actions else ():
                self.hints(action, **spec.goal)(spec.text)

    def _require_action(self, name: str) -> None:
        if name not in self.protocol.actions:
            raise ProtocolError(f"{self.protocol.name} has no action {name}")
