"""The binding: what a protocol's actions and guards mean to a system that is no model.

A model only says that a step is refused. A system answers, and the binding of a protocol says how: with which error
codes, or with none because there is nothing to do; or it says that the question is none that anybody could ask (a bound
of the model, such as the number of records). It also says between whom an action is an exchange, and whose state it
changes, which decides what a lost message leaves behind. A protocol's harness holds its own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Final, TypeAlias

from ...model.core.algebra import Algebra, Value, View
from ...model.core.ground import State, System


@dataclass(frozen=True)
class Sight:
    """One instance of an action in one state of the model, for rules that depend on it."""

    system: System
    state: State
    params: Mapping[str, int]

    def __getitem__(self, param: str) -> int:
        """A parameter's value."""
        return self.params[param]

    def cell(self, variable: str, *index: int) -> int:
        """What a cell holds (a set as a bit mask, no replica as -1). An index out of range gives the dead value."""
        number = self.system.layout.by_variable[variable].get(index)
        if number is None:
            return self.system.traced.variables[variable].dead
        return self.state[number]


@dataclass(frozen=True)
class Answer:
    """How a system answers an action that a guard refuses.

    ``errors``: the codes that it may answer with, None among them for no error at all. Empty: the action is never tried
    where this guard refuses it, and ``why`` says why not. ``unasked``: whoever would have to ask does not even ask, so
    that no error is right whatever else refuses the action.
    """

    errors: frozenset[str | None]
    why: str = ""
    unasked: bool = False

    @property
    def drawn(self) -> bool:
        """Whether a harness may try the action."""
        return bool(self.errors)


def error(*codes: str) -> Answer:
    """The system must answer with one of these codes."""
    return Answer(frozenset(codes))


def unasked(*codes: str) -> Answer:
    """Nobody asks, as there is nothing to ask for; if somebody does, it may say so by one of these codes."""
    return Answer(frozenset({None, *codes}), unasked=True)


def environment(why: str) -> Answer:
    """Nobody could ask a system for this: a bound of the model, or a request that was never sent."""
    return Answer(frozenset(), why)


NOTHING: Final = Answer(frozenset({None}))
"""It is asked for, and there is nothing to do: no error, unless another guard refuses it with one."""
BOUND: Final = environment("a bound of the model")
ITSELF: Final = environment("a replica does not ask itself")

FENCED: Final = "FENCED_REPLICA"
"""Who asks is in an older leader epoch (KIP-320, "Replica Handling"); Kafka's FENCED_LEADER_EPOCH."""
UNKNOWN_EPOCH: Final = "UNKNOWN_LEADER_EPOCH"
"""Who asks is in a newer one."""
NOT_LEADER: Final = "NOT_LEADER_OR_FOLLOWER"
"""Who is asked leads nothing."""

Rule: TypeAlias = Answer | Callable[[Sight], Answer]
"""An answer, or what it depends on."""


Who: TypeAlias = str | Callable[[Sight], int] | None
"""A side of an exchange: the parameter that holds the replica, or what finds it; None: the controller or a client."""


class Effect(Enum):
    """Whose state an exchange changes."""

    ASKER = "the asker's, when the response arrives"
    ASKED = "the asked one's, when the request arrives"
    BOTH = "both, in one step of the model: a response that is lost in between is not drawn"


@dataclass(frozen=True)
class Exchange:
    """A request and its response, and whose state it changes."""

    asker: Who
    asked: Who
    effect: Effect

    def replicas(self, sight: Sight) -> frozenset[int]:
        """The replicas that must be reachable."""
        sides = (self.asker, self.asked)
        return frozenset(sight[who] if isinstance(who, str) else who(sight) for who in sides if who is not None)


def _nobody(_sight: Sight) -> Iterable[int]:
    return ()


def _never(_sight: Sight) -> bool:
    return False


@dataclass(frozen=True)
class ActionBinding:
    """What one action means to a system.

    ``guards``: how the system answers where this guard refuses, for every guard of every variant.
    ``exchange``: None for what happens within one node.
    ``consults``: replicas besides those of the exchange that a node has to hear from before it can do this; while one
    of them is isolated nothing is promised, and the action is not drawn where it is enabled.
    ``tells``: the same for the refusal: replicas that a node has to hear from to know that it may not.
    ``waits``: where a system may wait though the model goes on, since it knows less: that is right too.
    ``stores``: the parameter of the replica that writes its log; ``always``: whenever the action happens, so that it
    cannot happen while the disk is full (a truncation may have nothing to cut).
    ``offline``: how it answers while the replica of a parameter is marked offline.
    ``distinct``: pairs of parameters with which the action makes no sense if both are one replica.
    ``poll``: actions with the same name here are answers to one question with the same parameters; where one of them
    is enabled, no other of them is drawn as a refusal.
    ``promised``: who is answered without an error may go by it that the action happened, if the model allows it then;
    without, a system that answers so may as well have found nothing to do (a fetch that brings no record).
    ``named``: without an exchange, and yet a free run takes it only where the system names it: it is tied to one kind
    of event, and where it changes what cannot be seen it would widen the frontier at any other.
    ``torn``: what a loss of power leaves of an exchange: a free run takes it only where the receiver loses it then.
    """

    guards: Mapping[str, Rule]
    exchange: Exchange | None = None
    consults: Callable[[Sight], Iterable[int]] = _nobody
    tells: Callable[[Sight], Iterable[int]] = _nobody
    waits: Callable[[Sight], bool] = _never
    stores: str | None = None
    always: bool = True
    offline: Mapping[str, Answer] = field(default_factory=dict)
    distinct: tuple[tuple[str, str], ...] = ()
    poll: str | None = None
    promised: bool = False
    named: bool = False
    torn: bool = False


Settled: TypeAlias = Callable[[Algebra, View, Value], Value]
"""What a system must have come to in the end, of those replicas that are well."""


@dataclass(frozen=True)
class Binding:
    """The binding of one protocol.

    ``prompt``: actions that a system takes by itself as soon as it can, in the variants that describe systems; runs are
    planned as if nothing else could come first.
    ``restarts``: the actions that a crash of a replica is in the model, one of them at a time, for variants that have
    them; their parameter ``replica`` names the replica. They are never drawn as actions.
    ``parties``: whose the cells of a variable are that are not their replica's, or not the controller's where it is of
    no replica: by variant and variable, the party's number at some constants, None for the controller. A consumer may
    have a negative one; who runs on a node that holds no replica has that node's. A side of an exchange may be such a
    number.
    ``given``: variables of which a free run's system says what they hold now, where the model says nothing of it
    (``StepResult.inputs``): the content of a request, or of a log that another leader takes over.
    ``settles``: what a system must have come to when nothing goes wrong any more, nobody asks and nothing moves;
    written as promises are, with a docstring that says it to a person. Their third argument is the set of the replicas
    that are well: one may stay down, and the others must come to it still. ``asks``: the calls of clients that may come
    once more then, of a free run's system. ``restless``: variables that never come to
    rest and are not looked at for whether anything moves: who waits for news asks again and again. ``quiet``: for so
    many rounds nothing has to move, in each of which the clock moves on by the longest time there is
    (``simulation/quiesce.py``).
    """

    protocol: str
    actions: Mapping[str, ActionBinding]
    restarts: frozenset[str] = frozenset()
    prompt: frozenset[str] = frozenset()
    parties: Mapping[str, Mapping[str, Callable[[Mapping[str, int]], int | None]]] = field(default_factory=dict)
    inputs: frozenset[str] = frozenset()
    settles: tuple[Settled, ...] = ()
    asks: frozenset[str] = frozenset()
    restless: frozenset[str] = frozenset()
    quiet: int = 7

    def answer(self, sight: Sight, action: str, refusing: Iterable[str]) -> Answer:
        """How a system answers where these guards refuse, and in whichever order it looks. KeyError for an unbound one.

        One code of any of them; no error only where nobody asks, or where there is nothing to do and no more to it.
        """
        rules = [self.actions[action].guards[name] for name in refusing]
        return _together([rule if isinstance(rule, Answer) else rule(sight) for rule in rules])

    def fixed_answer(self, action: str, refusing: Iterable[str]) -> Answer | None:
        """The same answer where it depends on the guards alone; else None."""
        rules = [self.actions[action].guards[name] for name in refusing]
        answers = [rule for rule in rules if isinstance(rule, Answer)]
        blocked = next((each for each in answers if not each.drawn), None)
        return blocked or (_together(answers) if len(answers) == len(rules) else None)


def _together(answers: Sequence[Answer]) -> Answer:
    """The one answer where several guards refuse."""
    for each in answers:
        if not each.drawn:
            return each
    errors = frozenset(code for each in answers for code in each.errors if code is not None)
    idle = any(each.unasked for each in answers)
    silent = idle or all(None in each.errors for each in answers)
    return Answer(errors | {None} if silent else errors, unasked=idle)
