"""A lasso, the counterexample to a liveness property, and the judge that re-runs it.

The judge shares nothing with the search that found the lasso: it reads the text of the protocol by the reference
interpreter, step by step, and evaluates property and fairness on the states of the lasso alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import product

from ..core.enum_value import plain_params
from ..core.ground import Params, State, System
from ..core.protocol import Fair, Form, LivenessSpec
from ..interpret.reference import IntState, Reference
from .result import Step


@dataclass(frozen=True)
class Lasso:
    """A run that does its ``stem`` once, from the initial state, and then its ``loop`` for ever.

    An empty loop is stuttering: nothing happens any more. ``params`` are the values of the property's parameters
    for which it fails.
    """

    stem: tuple[Step, ...]
    loop: tuple[Step, ...]
    params: Params = ()

    @property
    def path(self) -> tuple[Step, ...]:
        """All steps after the initial state: the stem and one round of the loop."""
        return self.stem + self.loop

    @property
    def loop_start(self) -> int:
        """The index, in the states of the path with the initial one first, of the state where the loop begins.

        The last state of the path is that same state.
        """
        return len(self.stem)

    @property
    def stutters(self) -> bool:
        """Whether nothing happens after the stem."""
        return not self.loop

    def to_json(self) -> dict[str, object]:
        """Stem and loop as lists of ``{"action", "params"}``."""

        def steps(path: Iterable[Step]) -> list[dict[str, object]]:
            return [{"action": s.instance.action, "params": plain_params(s.instance.params)} for s in path]

        return {"params": plain_params(self.params), "stem": steps(self.stem), "loop": steps(self.loop)}


@dataclass(frozen=True)
class Judgement:
    """What the judge found.

    ``objections`` say in which way the lasso is no fair run that breaks the property; a counterexample has none.
    ``fair`` says of each fairness condition why the loop satisfies it.
    """

    objections: tuple[str, ...]
    fair: tuple[tuple[str, str], ...]


def fair_actions(system: System, conditions: Iterable[Fair]) -> Iterator[tuple[str, Fair, Params]]:
    """The fairness conditions that apply to a system, by name, with the parameters that each holds fixed."""
    for fair in conditions:
        if fair.action not in system.actions:
            continue
        params = system.traced.action(fair.action).params
        sizes = (params[name].values(system.constants) for name in fair.per)
        for values in product(*sizes):
            fixed = tuple(zip(fair.per, values, strict=True))
            name = ("SF " if fair.strong else "WF ") + fair.action
            yield name + (f"({', '.join(f'{k}={v}' for k, v in fixed)})" if fixed else ""), fair, fixed


def judge(system: System, lasso: Lasso, spec: LivenessSpec, conditions: Iterable[Fair]) -> Judgement:
    """Re-run a lasso by the reference and evaluate fairness and property anew."""
    reference = Reference(system)
    states = [system.initial]
    objections: list[str] = []
    for number, step in enumerate(lasso.path, 1):
        if reference.step(states[-1], step.instance.action, step.instance.params) != step.state:
            objections.append(f"step {number}, {step.instance}, does not lead to the state that is claimed")
        states.append(step.state)
    if states[-1] != states[lasso.loop_start]:
        objections.append("the loop does not end where it began")
    broken = _broken(reference, spec, lasso, states)
    if broken is not None:
        objections.append(broken)
    fair: list[tuple[str, str]] = []
    successors = [reference.successors(state) for state in states[lasso.loop_start :]]
    for name, condition, fixed in fair_actions(system, conditions):
        after = [
            {t for action, params, t in found if action == condition.action and set(fixed) <= set(params) and t != s}
            for s, found in zip(states[lasso.loop_start :], successors, strict=True)
        ]
        reason = _fair(condition, after, states, lasso.loop_start)
        if reason is None:
            objections.append(f"the loop is not fair: {name}")
        else:
            fair.append((name, reason))
    return Judgement(tuple(objections), tuple(fair))


def _fair(condition: Fair, after: list[set[State]], states: list[State], start: int) -> str | None:
    """Why the loop is fair to an action whose next states from each state of the loop are ``after``."""
    if not any(after):
        return "never enabled in the loop"
    for index in range(len(after) - 1):
        if states[start + index + 1] in after[index]:
            return f"happens at step {start + index + 1}"
    if not condition.strong:
        for index, found in enumerate(after):
            if not found:
                return f"not enabled after step {start + index}"
    return None


def _broken(reference: Reference, spec: LivenessSpec, lasso: Lasso, states: list[State]) -> str | None:
    """None where the run breaks the property."""
    values = [spec.text(reference.k, IntState(reference.system, s), **dict(lasso.params)) for s in states]
    loop = values[lasso.loop_start :]
    if spec.form is Form.SETTLES:
        return None if not all(loop) else f"{spec.name} holds throughout the loop"
    if spec.form is Form.RECURS:
        return None if not any(loop) else f"{spec.name} holds somewhere in the loop"
    since = next((i for i in reversed(range(len(values))) if values[i][1]), -1) + 1
    if any(goal for _, goal in loop):
        return f"what {spec.name} promises comes true in the loop"
    return None if any(when for when, _ in values[since:]) else f"what {spec.name} waits for never happens"
