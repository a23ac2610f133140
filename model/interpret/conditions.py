"""Conditions compiled from their terms as they stand: quantifiers stay loops, and nothing is grounded.

Grounding expands each quantifier, which no machine does at constants of 63; the text evaluates both sides of each
implication. Here a condition is one Python expression that stops at the first part that decides it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import count
from typing import Final

from ..core import terms
from ..core.ground import State, System
from ..core.terms import Sort, Term
from .staged import operation

MAX_PASSES: Final = 20_000_000
"""Passes through loops that one state may take: about six seconds."""


class WorkSpentError(Exception):
    """The conditions of one state take more than the given number of passes through loops."""


class Conditions:
    """Named conditions of a system, each a function of a state.

    Args:
        system: Gives the layout and the constants; it need not be grounded.
        conditions: Traced terms without parameters.
        max_passes: Passes through loops that one call may take.
    """

    def __init__(self, system: System, conditions: Mapping[str, Term], max_passes: int = MAX_PASSES) -> None:
        self._max_passes = max_passes
        self._passes = 0
        scope = {"every": self._every, "some": self._some, "find": self._find}
        names = list(conditions)
        lines = [f"def c{n}(s):\n    return {_Source(system)(conditions[name])}\n" for n, name in enumerate(names)]
        exec(compile("".join(lines), f"<{system.name} conditions>", "exec"), scope)  # noqa: S102 - generated above
        self._functions: list[tuple[str, Callable[[State], bool]]] = [
            (name, scope[f"c{n}"])  # type: ignore[misc]
            for n, name in enumerate(names)
        ]

    def broken(self, state: State) -> list[str]:
        """Return the names of the conditions that are false in a state.

        Raises:
            WorkSpentError: The state takes more than ``max_passes``.
        """
        self._passes = 0
        return [name for name, holds in self._functions if not holds(state)]

    def _spend(self, passes: int) -> None:
        self._passes += passes
        if self._passes > self._max_passes:
            raise WorkSpentError(f"more than {self._max_passes:,} evaluations")

    def _every(self, size: int, body: Callable[[int], object]) -> bool:
        return self._find(range(size), lambda value: not body(value), -1) == -1

    def _some(self, size: int, body: Callable[[int], object]) -> bool:
        return self._find(range(size), body, -1) != -1

    def _find(self, values: range, body: Callable[[int], object], otherwise: int) -> int:
        for passes, value in enumerate(values, 1):
            if body(value):
                self._spend(passes)
                return value
        self._spend(len(values))
        return otherwise


class _Source:
    """Writes a traced term as a Python expression over the state ``s``."""

    def __init__(self, system: System) -> None:
        self._system = system
        self._names: dict[Term, str] = {}
        self._sizes: dict[Term, int] = {}
        self._fresh = count()

    def __call__(self, term: Term) -> str:
        op = term.op
        if op == "const":
            return repr(terms.literal(term)) if term.sort is not Sort.BOOL else repr(bool(term.value))
        if op == "constant":
            return repr(self._system.constants[str(term.value)])
        if op == "bound":
            return self._names[term]
        if op == "var":
            return self._cell(term)
        if op in terms.BINDERS:
            return self._loop(term)
        args = [self(each) for each in term.args]
        simple = operation(op, args)
        if simple is not None:
            return simple
        if op in ("min", "max"):
            return f"{op}({args[0]}, {args[1]})"
        if op == "member":
            replica = self._temporary()
            return f"(({replica} := {args[0]}) >= 0 and {args[1]} >> {replica} & 1 == 1)"
        assert op in ("with", "without"), f"{op} is no operation of a condition"
        replica = self._temporary()
        bit = f"(1 << {replica} if ({replica} := {args[1]}) >= 0 else 0)"
        return f"({args[0]} | {bit})" if op == "with" else f"({args[0]} & ~{bit})"

    def _temporary(self) -> str:
        return f"t{next(self._fresh)}"

    def _cell(self, term: Term) -> str:
        """A read; an index out of range gives the variable's dead value."""
        name = str(term.value)
        variable = self._system.traced.variables[name]
        numbers = self._system.layout.by_variable[name]
        shape = variable.shape(self._system.constants)
        first = min(numbers.values(), default=0)
        place, stride, tests = [str(first)], 1, []
        for each, size in reversed(list(zip(term.args, shape, strict=True))):
            at = self(each)
            if self._sizes.get(each, size + 1) > size:
                name = self._temporary()
                tests.append(f"0 <= ({name} := {at}) < {size}")
                at = name
            place.append(f"{at} * {stride}" if stride != 1 else at)
            stride *= size
        read = f"s[{' + '.join(place)}]"
        return f"({read} if {' and '.join(tests)} else {variable.dead})" if tests else read

    def _loop(self, term: Term) -> str:
        bound, body, *otherwise = term.args
        size = self._system.traced.protocol.indices[str(term.value)].size(self._system.constants)
        # A term that occurs twice binds its variable twice.
        self._names[bound] = f"b{next(self._fresh)}"
        self._sizes[bound] = size
        function = f"lambda {self._names[bound]}: {self(body)}"
        if term.op in ("forall", "exists"):
            return f"{'every' if term.op == 'forall' else 'some'}({size}, {function})"
        values = f"range({size})" if term.op == "first" else f"range({size - 1}, -1, -1)"
        return f"find({values}, {function}, {self(otherwise[0])})"
