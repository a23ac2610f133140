"""What must come of a try: whether the step happens, and with which error codes.

This is where faults get their meaning. The adapter is told to bring one about; what the system must look like
afterwards follows from the model's state, the binding and the faults that still stand, and from nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from ...model.core.enum_value import plain_params
from ...traces.run_report import Json
from .binding import Effect
from .faults import STORAGE, STORAGE_ERROR, TIMED_OUT, Fault, Kind
from .space import Call, Node, Space


@dataclass(frozen=True)
class Try:
    """One thing that the harness asks of a system: an action, with a fault or without; or a fault alone."""

    call: Call | None
    fault: Fault | None = None

    def __str__(self) -> str:
        if self.call is None:
            return str(self.fault)
        action, params = self.call
        told = f"{action}({', '.join(f'{name}={value}' for name, value in params)})"
        return told if self.fault is None else f"{told} with {self.fault.kind.value}"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object."""
        body: dict[str, Json] = {}
        if self.call is not None:
            body |= {"action": self.call[0], "params": plain_params(self.call[1])}
        return body if self.fault is None else body | {"fault": self.fault.to_json()}


@dataclass
class Standing:
    """The faults that stand: replicas that nobody reaches, that are marked offline, and responses in flight."""

    isolated: set[int] = field(default_factory=set)
    offline: set[int] = field(default_factory=set)
    late: int = 0

    @property
    def clear(self) -> bool:
        """Whether no replica is isolated or offline."""
        return not self.isolated and not self.offline

    def after(self, fault: Fault) -> None:
        """Take note of a fault that was brought about."""
        match fault.kind, fault.replica:
            case Kind.ISOLATE, int(replica):
                self.isolated.add(replica)
            case Kind.HEAL, int(replica):
                self.isolated.discard(replica)
            case Kind.MARK_OFFLINE, int(replica):
                self.offline.add(replica)
            case Kind.MARK_ONLINE, int(replica):
                self.offline.discard(replica)
            case Kind.DELAY_RESPONSE, _:
                self.late += 1
            case Kind.DELIVER_LATE, _:
                self.late = max(0, self.late - 1)


@dataclass(frozen=True)
class Expectation:
    """What must come of a try. ``happens``: None where both are right. ``errors``: the codes that go with that.

    ``why`` is the fault that decides, for the person who reads of a divergence; empty where the model's guards do.
    ``waits``: it need not happen now.
    """

    happens: bool | None
    errors: frozenset[str | None]
    why: str = ""
    waits: bool = False

    def fits(self, happened: bool, error: str | None) -> bool:
        """Whether this is what came of it."""
        if self.waits:
            return error in self.errors
        if self.happens is None:
            return error in self.errors and happened is (error is None)
        # A step that a side step made possible may have happened; the model has already had its say on the whole run.
        if happened and not self.happens and not self.why:
            return error in (None, TIMED_OUT)
        return happened is self.happens and error in self.errors


_HAPPENS: Final = Expectation(True, frozenset({None}))
_MAY_WAIT: Final = Expectation(None, frozenset({None}), waits=True)
_TIMES_OUT: Final = frozenset({TIMED_OUT})


def expectation(space: Space, node: Node, asked: Try, standing: Standing) -> Expectation | None:
    """What must come of trying an action in this state; None where nothing is promised, so that it is not drawn."""
    call, fault = asked.call, asked.fault
    assert call is not None
    action = space.binding.actions[call[0]]
    enabled = call in node.after
    if not enabled:
        answer = space.refused(node, call)[1]
        if not askable(space, node, call):
            return None
    sight = space.sight(node, call)
    if enabled and action.waits(sight):
        # Nobody can say of one that may wait what a fault leaves behind.
        return _MAY_WAIT if fault is None else None
    if standing.clear and fault is None:
        return _HAPPENS if enabled else Expectation(False, answer.errors)
    errors = frozenset({None}) if enabled else answer.errors
    blocked = ""
    reached = action.exchange.replicas(sight) if action.exchange is not None else frozenset()
    if cut := sorted(reached & standing.isolated):
        if fault is not None:
            return None
        errors = _TIMES_OUT if enabled else errors | _TIMES_OUT
        blocked = f"replica {cut[0]} is isolated"
    elif standing.isolated and not standing.isolated.isdisjoint((action.consults if enabled else action.tells)(sight)):
        return None
    for param, told in action.offline.items():
        if sight[param] in standing.offline:
            if not told.drawn or fault is not None:
                return None
            errors = told.errors | (errors - {None} if enabled else errors)
            blocked = blocked or f"replica {sight[param]} is marked offline"
    if fault is None:
        return _HAPPENS if enabled and not blocked else Expectation(False, errors, blocked)
    if not enabled and answer.unasked:
        # Where nobody asks, there is no message to be lost.
        return None
    return _with_modifier(space, call, enabled, errors, fault)


def askable(space: Space, node: Node, call: Call) -> bool:
    """Whether a system can be asked for a step that is refused here."""
    return space.refused(node, call)[1].drawn and not _answered_otherwise(space, node, call)


def _answered_otherwise(space: Space, node: Node, call: Call) -> bool:
    """Whether another answer to the same poll is enabled."""
    poll = space.binding.actions[call[0]].poll
    if poll is None:
        return False
    return any(params == call[1] and space.binding.actions[action].poll == poll for action, params in node.after)


def _with_modifier(
    space: Space, call: Call, enabled: bool, errors: frozenset[str | None], fault: Fault
) -> Expectation | None:
    action, kind = space.binding.actions[call[0]], fault.kind
    if kind in STORAGE:
        if action.stores is None or not enabled:
            return None
        why = "the disk is full" if kind is Kind.DISK_FULL else "a write fails"
        if action.always:
            return Expectation(False, frozenset({STORAGE_ERROR}), why)
        return Expectation(None, frozenset({None, STORAGE_ERROR}), why)
    if action.exchange is None:
        return None
    if kind in (Kind.DUPLICATE_REQUEST, Kind.DUPLICATE_RESPONSE):
        return _HAPPENS if enabled else Expectation(False, errors, "a message arrives twice")
    if not enabled or kind is Kind.LOSE_REQUEST or action.exchange.effect is Effect.ASKER:
        return Expectation(False, _TIMES_OUT, "a message is lost")
    if action.exchange.effect is Effect.ASKED:
        return Expectation(True, frozenset({None, TIMED_OUT}), "only the response is lost")
    return None


def event_run(space: Space, fault: Fault, actions: tuple[str, ...]) -> str:
    """What is wrong with the steps that an event brought with it; empty where nothing is."""
    match fault.kind:
        case Kind.DELIVER_LATE | Kind.ISOLATE | Kind.MARK_ONLINE:
            return "" if not actions else f"{fault} changes no state, and yet {actions[0]} happened"
        case Kind.CRASH:
            if not actions or (len(actions) == 1 and actions[0] in space.crashes):
                return ""
            known = " or ".join(sorted(space.crashes))
            return f"a crash is one step, {known}, and yet {', '.join(actions)} happened"
        case _:
            return ""
