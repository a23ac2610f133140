"""Conditions over columns, compiled: one straight run of NumPy calls into a few buffers.

`Block` of the batch interpreter keeps each term's column, so that others can ask for it; for hundreds of terms that is
more memory than the second-level cache holds, and a walk through the terms for each block. Here the terms are known
beforehand: each is computed once, into a buffer that is free again after its last use. At 446 terms that is several
times as fast. What comes out is what `Block` gives.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from ...model.core.terms import Sort, Term, literal
from ...model.interpret.batch import literal_cell
from ..corpus.layout import Integers
from .partial import Mask

_COMPARED: Final = {"eq": ("equal", "not_equal"), "lt": ("less", "greater_equal"), "le": ("less_equal", "greater")}
_NUMBERS: Final = {"add": "add", "sub": "subtract", "min": "minimum", "max": "maximum"}


class Kernel:
    """A condition over columns of one dtype, for blocks of at most ``rows`` rows. Not for several threads at once."""

    def __init__(self, condition: Term, dtype: npt.DTypeLike, rows: int) -> None:
        graph = _Graph(np.dtype(dtype))
        self.source, kinds, constants = graph.source(graph.node_of(condition))
        scope: dict[str, Any] = {"np": np, **constants}
        exec(compile(self.source, "<kernel>", "exec"), scope)  # noqa: S102 - our own text, generated above
        self._run: Callable[..., Any] = scope["run"]
        self._buffers = [np.empty(rows, dtype=kind) for kind in kinds]

    def __call__(self, columns: Integers) -> Mask:
        """Where the condition holds, shape (n,): a buffer that the next call overwrites."""
        count = columns.shape[1]
        result: Mask = self._run(columns, *(buffer[:count] for buffer in self._buffers))
        return np.broadcast_to(result, (count,))


@dataclass(frozen=True, eq=False)
class _Node:
    """A call of a NumPy function that takes ``out``; of no function where it is a column or a constant."""

    function: str | None
    args: tuple[_Node, ...]
    kind: np.dtype[Any]
    name: str = ""


class _Graph:
    """Terms as calls; equal calls are one node."""

    def __init__(self, dtype: np.dtype[Any]) -> None:
        self._dtype = dtype
        self._bool, self._byte = np.dtype(np.bool_), np.dtype(np.uint8)
        self._nodes: dict[object, _Node] = {}
        self._terms: dict[Term, _Node] = {}
        self._constants: dict[str, Any] = {}

    def _call(self, function: str, *args: _Node, kind: np.dtype[Any] | None = None) -> _Node:
        key = (function, *map(id, args))
        if key not in self._nodes:
            self._nodes[key] = _Node(function, args, kind or self._dtype)
        return self._nodes[key]

    def _condition(self, function: str, *args: _Node) -> _Node:
        return self._call(function, *args, kind=self._bool)

    def _constant(self, value: bool | int) -> _Node:
        kind = self._bool if isinstance(value, bool) else self._dtype
        name = f"k{str(value).replace('-', '_')}"
        # An array without a dimension is taken as it is; a Python number would be converted at each call.
        self._constants[name] = np.asarray(value, dtype=kind)
        return self._nodes.setdefault(name, _Node(None, (), kind, name))

    def node_of(self, term: Term) -> _Node:
        """The call that computes a ground term of an invariant or guard."""
        found = self._terms.get(term)
        if found is None:
            found = self._terms[term] = self._made(term)
        return found

    def _made(self, term: Term) -> _Node:
        op = term.op
        if op == "const":
            return self._constant(bool(term.value) if term.sort is Sort.BOOL else literal(term))
        if op == "cell":
            name = f"columns[{literal_cell(term)}]"
            return self._nodes.setdefault(name, _Node(None, (), self._dtype, name))
        if op in ("and", "or"):
            return self._junction(op, term.args)
        if op == "not":
            return self._negated(term.args[0])
        args = [self.node_of(arg) for arg in term.args]
        if op in _COMPARED:
            return self._condition(_COMPARED[op][0], *args)
        if op in _NUMBERS:
            return self._call(_NUMBERS[op], *args)
        if op == "ite":
            return self._chosen(*args)
        if op == "member":
            return self._member(term, *args)
        if op == "majority":
            members = self._call("bitwise_count", self._call("bitwise_and", *args), kind=self._byte)
            whole = self._call("bitwise_count", args[1], kind=self._byte)
            return self._condition("greater", self._call("add", members, members, kind=self._byte), whole)
        bit = self._call("left_shift", self._constant(1), self._call("maximum", args[1], self._constant(0)))
        inside = self._call("negative", self._condition("greater_equal", args[1], self._constant(0)))
        bit = self._call("bitwise_and", bit, inside)
        if op == "with":
            return self._call("bitwise_or", args[0], bit)
        assert op == "without", f"{op} is not ground"
        return self._call("bitwise_and", args[0], self._call("invert", bit))

    def _junction(self, op: str, terms: Sequence[Term]) -> _Node:
        """One after the other. ``a and not b`` is ``a > b``: a condition need not be negated for that."""
        plain, less = ("logical_and", "greater") if op == "and" else ("logical_or", "greater_equal")
        first, *others = sorted(terms, key=_is_negated)
        whole = self.node_of(first)
        for term in others:
            function, asked = (less, term.args[0]) if _is_negated(term) else (plain, term)
            whole = self._condition(function, whole, self.node_of(asked))
        return whole

    def _negated(self, term: Term) -> _Node:
        args = [self.node_of(arg) for arg in term.args]
        if term.op in _COMPARED:
            return self._condition(_COMPARED[term.op][1], *args)
        return self._condition("logical_not", self.node_of(term))

    def _chosen(self, test: _Node, then: _Node, otherwise: _Node) -> _Node:
        """All bits of a condition are 0 or 1, and these choose: a third of the time of ``np.where``."""
        mask = self._call("negative", test)
        apart = self._call("bitwise_and", self._call("bitwise_xor", then, otherwise), mask)
        return self._call("bitwise_xor", otherwise, apart)

    def _member(self, term: Term, replica: _Node, replicas: _Node) -> _Node:
        zero = self._constant(0)
        if term.args[0].op == "const":
            bit = self._constant(1 << literal(term.args[0]))
            return self._condition("not_equal", self._call("bitwise_and", replicas, bit), zero)
        shifted = self._call("right_shift", replicas, self._call("maximum", replica, zero))
        inside = self._condition("not_equal", self._call("bitwise_and", shifted, self._constant(1)), zero)
        return self._condition("logical_and", self._condition("greater_equal", replica, zero), inside)

    def source(self, result: _Node) -> tuple[str, list[np.dtype[Any]], dict[str, Any]]:
        """The text of a function of columns and buffers, the kinds of the buffers, and constants by name."""
        uses: Counter[_Node] = Counter()
        order: list[_Node] = []
        _visit(result, uses, order)
        names: dict[_Node, str] = {}
        kinds: list[np.dtype[Any]] = []
        free: dict[np.dtype[Any], list[str]] = {}
        lines = []
        for node in order:
            if node.function is None:
                names[node] = node.name
                continue
            args = [names[arg] for arg in node.args]
            for arg in node.args:
                uses[arg] -= 1
                if not uses[arg] and arg.function is not None:
                    free.setdefault(arg.kind, []).append(names[arg])
            # An operand's buffer may be the result's: each element is read before it is written.
            if free.get(node.kind):
                names[node] = free[node.kind].pop()
            else:
                names[node] = f"b{len(kinds)}"
                kinds.append(node.kind)
            views = [f"{name}.view(np.int8)" if node.function == "negative" else name for name in args]
            lines.append(f"    np.{node.function}({', '.join(views)}, out={names[node]})")
        parameters = ", ".join(["columns", *(f"b{number}" for number in range(len(kinds)))])
        text = "\n".join([f"def run({parameters}):", *lines, f"    return {names[result]}"]) + "\n"
        return text, kinds, self._constants


def _is_negated(term: Term) -> bool:
    """A negation for which there is no comparison."""
    return term.op == "not" and term.args[0].op not in _COMPARED


def _visit(node: _Node, uses: Counter[_Node], order: list[_Node]) -> None:
    """Operands before whoever asks for them, each once."""
    uses[node] += 1
    if uses[node] == 1:
        for arg in node.args:
            _visit(arg, uses, order)
        order.append(node)
