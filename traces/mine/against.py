"""A variant that traces are held against, at a file's constants: every step as a number, and its instance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from itertools import product
from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from ...model.core import terms
from ...model.core.errors import BadInput
from ...model.core.ground import Instance, Params, System, ground, ground_mutant
from ...model.core.protocol import TracedProtocol
from ...model.core.registry import PROTOCOLS
from ...model.core.terms import Term
from ..corpus.faults import mutants_of
from ..corpus.layout import LOOK, UNKNOWN, CorpusHeader, CorpusLayout, Events
from .abstract import Abstraction
from .promises import Promises

Step: TypeAlias = tuple[str, Params]
"""An action with all its parameters."""

Codes = npt.NDArray[np.signedinteger[Any]]


class Against:
    """A variant grounded at a layout's constants.

    A row's *code* numbers its action with its parameters, as digits of mixed radix in the order of the vocabulary. Two
    more codes stand for a look at the state (``look``) and for a step whose parameters are not all known
    (``unknown``).
    """

    def __init__(self, layout: CorpusLayout, traced: TracedProtocol) -> None:
        self.layout = layout
        self.traced = traced
        self.system: System = ground(traced, layout.header.constants)
        self.initial = np.array(self.system.initial, dtype=layout.dtype)
        # One column more than there are actions: a look is action -1, the last in Python's way of counting.
        self._has = layout.param_sizes > 0
        self._radix = [int(size) for size in layout.param_sizes.max(axis=1, initial=1)]
        self.steps: dict[int, Step] = dict(self._enumerate())
        self.look: Final = len(layout.actions) * int(np.prod(self._radix, dtype=np.int64))
        self.unknown: Final = self.look + 1
        self._dtype = np.min_scalar_type(-self.unknown - 1)
        self._repetitions: dict[int, Term] = {}
        self._changes: dict[str, Mapping[str, Mapping[Step, Instance]]] = {}
        self.instances: dict[int, Instance | None] = {
            code: self.system.by_step.get(step) for code, step in self.steps.items()
        }

    @cached_property
    def promises(self) -> Promises:
        """The promises, compiled when they are first checked; not for several threads at once."""
        return Promises.of(self.system)

    @cached_property
    def abstraction(self) -> Abstraction:
        """What makes up an abstract state."""
        return Abstraction(self.system)

    def repetition(self, code: int) -> Term:
        """The condition under which a step is refused only because it changes nothing."""
        found = self._repetitions.get(code)
        if found is None:
            instance = self.instances[code]
            action = None if instance is None else self.traced.action(instance.action)
            found = terms.FALSE if instance is None or action is None else instance.repetition(action)
            self._repetitions[code] = found
        return found

    def changes_of(self, action: str) -> Mapping[str, Mapping[Step, Instance]]:
        """The instances of each mutant of an action, by the mutant's name; grounded when they are first asked for."""
        if action not in self._changes:
            mutants = mutants_of(self.traced.protocol, self.traced.variant.name)
            self._changes[action] = {
                name: ground_mutant(self.system, mutant.traced, action).by_step
                for name, mutant in mutants.items()
                if mutant.action == action
            }
        return self._changes[action]

    def _enumerate(self) -> list[tuple[int, Step]]:
        return [
            (self._code(number, values), (action, tuple(zip(params, values, strict=True))))
            for number, (action, params) in enumerate(self.layout.vocabulary.actions.items())
            for values in product(*map(range, params.values()))
        ]

    def _code(self, action: int, values: Sequence[int]) -> int:
        code = action
        for place, radix in enumerate(self._radix):
            code = code * radix + (values[place] if place < len(values) else 0)
        return code

    def codes(self, events: Events) -> Codes:
        """The code of each row, shape (n,), in the narrowest integers: those are sorted by radix."""
        code = events.action.astype(self._dtype)
        vague = np.zeros(len(events), dtype=np.bool_)
        for place, (values, radix) in enumerate(zip(events.params, self._radix, strict=True)):
            missing = values == UNKNOWN
            code *= radix
            code += values
            code += missing
            if missing.any():
                vague |= missing & self._has[place].take(events.action, mode="wrap")
        code[events.action == LOOK] = self.look
        code[vague] = self.unknown
        return code


def variant_for(header: CorpusHeader, variant: str | None, where: str) -> TracedProtocol:
    """The variant that a file's traces are held against: the one asked for, or the protocol's safe one.

    Raises BadInput for an unknown variant, and for one whose state is another than that of the file's.
    """
    protocol = PROTOCOLS[header.protocol]
    traced = protocol.traced(variant)
    own, ours = (list(protocol.variables_of(name)) for name in (header.variant, traced.variant.name))
    if own != ours:
        apart = ", ".join(sorted(set(own) ^ set(ours)))
        raise BadInput(
            f"its traces are of {header.variant}, whose state is not that of {traced.variant.name}: {apart}",
            where,
            f"hold them against a variant with the same variables, such as --variant {header.variant}",
        )
    return traced
