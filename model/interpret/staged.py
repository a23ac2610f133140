"""The staged reference: a system compiled once into plain Python functions over tuples of ints.

The generated source is ordinary Python (``Staged.source`` holds it): one function that lists all successors of a
state, and one for each invariant and witness. Guards that instances share are tested once. Against the direct
reading of the text in ``reference.py`` this is about two hundred times as fast at 3/2/2/2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..core.ground import Instance, State, System
from ..core.terms import Term, literal
from .trie import Trie, by_guards

Successors = Callable[[State], list[tuple[int, State]]]
Condition = Callable[[State], bool]

COMPILING = 180
"""Bytes that Python takes for a moment to compile a character of such source. Measured: up to 168 at a million."""

_INFIX = {"lt": "<", "le": "<=", "eq": "==", "add": "+", "sub": "-"}


@dataclass(frozen=True)
class Staged:
    """Compiled functions of a system. ``successors`` pairs each next state with its instance's number."""

    system: System
    successors: Successors
    invariants: dict[str, Condition]
    witnesses: dict[str, Condition]
    expandable: Condition
    """Whether the system's constraint lets a state be expanded."""
    source: str

    def enabled(self, state: State) -> list[Instance]:
        """The instances whose guards all hold."""
        return [self.system.instances[number] for number, _ in self.successors(state)]


def expression(term: Term, names: Mapping[Term, str] | None = None) -> str:
    """A ground term as a Python expression over the locals ``c0, c1, ...``; ``names`` are terms already computed."""
    if names and term in names:
        return names[term]
    op, args = term.op, [expression(a, names) for a in term.args]
    if op == "const":
        return repr(term.value)
    if op == "cell":
        return f"c{term.value}"
    simple = operation(op, args)
    if simple is not None:
        return simple
    if op in ("min", "max"):
        symbol = "<" if op == "min" else ">"
        return f"({args[0]} if {args[0]} {symbol} {args[1]} else {args[1]})"
    if op == "member":
        replica = term.args[0]
        if replica.op == "const":
            return f"({args[1]} & {1 << literal(replica)} != 0)"
        # NONE is -1 and in no set; a shift by it would raise.
        return f"({args[0]} >= 0 and {args[1]} >> {args[0]} & 1 == 1)"
    if op in ("with", "without"):
        replica = term.args[1]
        known = replica.op == "const"
        bit = str(1 << literal(replica)) if known else f"(1 << {args[1]} if {args[1]} >= 0 else 0)"
        return f"({args[0]} | {bit})" if op == "with" else f"({args[0]} & ~{bit})"
    raise AssertionError(f"{op} is not ground")


def operation(op: str, args: Sequence[str]) -> str | None:
    """An operation on Python expressions; None for one that ground and traced terms write in different ways."""
    if op in _INFIX:
        return f"({args[0]} {_INFIX[op]} {args[1]})"
    if op in ("and", "or"):
        return "(" + f" {op} ".join(args) + ")"
    if op == "not":
        return f"(not {args[0]})"
    if op == "ite":
        return f"({args[1]} if {args[0]} else {args[2]})"
    if op == "majority":
        return f"(2 * ({args[0]} & {args[1]}).bit_count() > ({args[1]}).bit_count())"
    return None


def _shared(term: Term, seen: dict[Term, int]) -> None:
    if term.args:
        seen[term] = seen.get(term, 0) + 1
        if seen[term] == 1:
            for a in term.args:
                _shared(a, seen)


def shared(terms: Iterable[Term], pad: str, names: dict[Term, str]) -> list[str]:
    """Assignments, each on a line behind ``pad``, of what occurs more than once in these terms and has no name yet.

    ``names`` has what they are called from then on.
    """
    counts: dict[Term, int] = {}
    for term in terms:
        _shared(term, counts)
    lines: list[str] = []
    for term in sorted((t for t, n in counts.items() if n > 1 and t.cost > 6 and t not in names), key=_cost):
        lines.append(f"{pad}t{len(names)} = {expression(term, names)}")
        names[term] = f"t{len(names)}"
    return lines


def _cost(term: Term) -> int:
    return term.cost


def _emit_instance(system: System, number: int, pad: str) -> list[str]:
    effect = system.instances[number].effect
    # A value that several cells use (the truncation offset) is computed once.
    names: dict[Term, str] = {}
    lines = shared(effect.values(), pad, names)
    cells = [expression(effect[c.number], names) if c.number in effect else f"c{c.number}" for c in system.layout.cells]
    lines.append(f"{pad}put(({number}, ({', '.join(cells)},)))")
    return lines


def _emit_trie(system: System, trie: Trie, depth: int, lines: list[str]) -> None:
    pad = "    " * depth
    for number in trie.instances:
        lines.extend(_emit_instance(system, number, pad))
    for guard, child in trie.children.items():
        lines.append(f"{pad}if {expression(guard)}:")
        _emit_trie(system, child, depth + 1, lines)


def _unpack(system: System) -> str:
    return "    (" + ", ".join(f"c{c.number}" for c in system.layout.cells) + ",) = state"


def source_of(system: System) -> str:
    """The source of a system's functions."""
    lines = ["def successors(state):", _unpack(system), "    out = []", "    put = out.append"]
    _emit_trie(system, by_guards(system), 1, lines)
    lines.append("    return out")
    constraint = {"constraint": system.constraint}
    for kind, conditions in (("always", system.invariants), ("sometimes", system.witnesses), ("within", constraint)):
        for name, term in conditions.items():
            names: dict[Term, str] = {}
            found = shared([term], "    ", names)
            lines += [f"def {kind}_{name}(state):", _unpack(system), *found, f"    return {expression(term, names)}"]
    return "\n".join(lines) + "\n"


def stage(system: System, source: str | None = None) -> Staged:
    """Compile a system. ``source``: its own, for whoever has asked for the memory that compiling it takes."""
    source = source_of(system) if source is None else source
    scope: dict[str, Callable[..., object]] = {}
    exec(compile(source, f"<{system.name} staged>", "exec"), scope)  # noqa: S102 - our own text, generated above
    return Staged(
        system,
        scope["successors"],  # type: ignore[arg-type]
        {name: scope[f"always_{name}"] for name in system.invariants},  # type: ignore[misc]
        {name: scope[f"sometimes_{name}"] for name in system.witnesses},  # type: ignore[misc]
        scope["within_constraint"],  # type: ignore[arg-type]
        source,
    )
