"""A system printed as C: one function over a group of states, and around it what searches with it (``search.c``).

``group`` does for some states at once what ``batch.py`` does for a block: it unpacks the keys into a vector a cell,
asks invariants, witnesses and guards, and lays out the keys of all successors. Each condition is computed once a group,
whichever instances share it; an effect only where its instance is enabled in some state of the group.

The text is made of integers and of names that are given here: no name of a protocol, and nothing of a trace, gets in.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from importlib.resources import files
from typing import Final

from ..core.ground import System
from ..core.terms import FALSE, TRUE, Sort, Term, literal
from .bounds import Bounds
from .packing import Field, Packing
from .trie import Trie, by_guards

_WIDTHS: Final = (8, 16, 32, 64)
_INFIX: Final = {"lt": "<", "le": "<=", "eq": "==", "add": "+", "sub": "-"}


class _Scope:
    """Lines of a block of C, and what its terms are called there; the blocks around it are asked first."""

    def __init__(self, printer: _Printer, pad: str, outer: _Scope | None = None) -> None:
        self.printer = printer
        self.pad = pad
        self.outer = outer
        self.lines: list[str] = []
        self._names: dict[Term, str] = {}

    def known(self, term: Term) -> str | None:
        """What a term is called that has been computed."""
        found = self._names.get(term)
        return found if found is not None or self.outer is None else self.outer.known(term)

    def line(self, text: str) -> None:
        """Add a line."""
        self.lines.append(self.pad + text)

    def vector(self, text: str) -> str:
        """The name of a new vector of this value."""
        name = self.printer.name()
        self.line(f"V {name} = {text};")
        return name

    def __call__(self, term: Term) -> str:
        """The vector of a term's values: its name, or a constant. It is computed here where it was not before."""
        if term.op == "const":
            value = literal(term)
            return _k(-value if term.sort is Sort.BOOL else value)
        found = self.known(term)
        if found is None:
            text = self.printer.cell(term) if term.op == "cell" else self._computed(term)
            found = self._names[term] = self.vector(text)
        return found

    def _computed(self, term: Term) -> str:
        op = term.op
        if op in ("member", "with", "without"):
            return self._of_set(term)
        args = [self(a) for a in term.args]
        if op in _INFIX:
            return f"{args[0]} {_INFIX[op]} {args[1]}"
        if op in ("and", "or"):
            return (" & " if op == "and" else " | ").join(args)
        if op == "not":
            return f"~{args[0]}"
        if op == "ite":
            return f"PICK({args[0]}, {args[1]}, {args[2]})"
        if op in ("min", "max"):
            return f"PICK({args[0]} {'<' if op == 'min' else '>'} {args[1]}, {args[0]}, {args[1]})"
        if op == "majority":
            both = self.vector(f"{args[0]} & {args[1]}")
            size = self.vector(self._size(both))
            return f"{size} + {size} > ({self._size(args[1])})"
        raise AssertionError(f"{op} is not ground")

    def _size(self, replicas: str) -> str:
        """The number of members of a set: a condition that holds is -1."""
        return " ".join(["K(0)", *(f"- (({replicas} & {_k(1 << i)}) != K(0))" for i in range(self.printer.replicas))])

    def _of_set(self, term: Term) -> str:
        """An operation on a set and a replica. A shift by a vector would be slow, and by NONE it means nothing."""
        replica, replicas = term.args if term.op == "member" else (term.args[1], term.args[0])
        members = self(replicas)
        if replica.op == "const":
            bit = 1 << literal(replica) if literal(replica) >= 0 else 0
            if term.op == "member":
                return f"({members} & {_k(bit)}) != K(0)"
            return f"{members} | {_k(bit)}" if term.op == "with" else f"{members} & ~{_k(bit)}"
        who = self(replica)
        low, high = self.printer.bounds(replica)
        named = range(max(low, 0), min(high, self.printer.replicas - 1) + 1)
        if term.op == "member":
            held = (f"(({who} == {_k(i)}) & (({members} & {_k(1 << i)}) != K(0)))" for i in named)
            return " | ".join(["K(0)", *held])
        one = " | ".join(["K(0)", *(f"(({who} == {_k(i)}) & {_k(1 << i)})" for i in named)])
        return f"{members} | ({one})" if term.op == "with" else f"{members} & ~({one})"


def _k(number: int) -> str:
    """A number in every lane. The least of 64 bits has no literal of its own in C."""
    return f"K({int(number)})" if number > -(1 << 63) else f"K({int(number) + 1} - 1)"


def _word(number: int) -> str:
    return f"{number:#x}u"


class _Printer:
    """What the blocks of one text share."""

    def __init__(self, system: System) -> None:
        self.system = system
        self.packing = Packing(system.layout)
        self.replicas = system.constants.get("replicas", 0)
        self.bounds = Bounds(self.packing, self.replicas)
        self.width = self._width()
        self._count = 0

    def name(self) -> str:
        """A name that is nobody's yet."""
        self._count += 1
        return f"t{self._count}"

    def _terms(self) -> Iterable[Term]:
        for instance in self.system.instances:
            yield from (guard for _, guard in instance.guards)
            yield from instance.effect.values()
        yield from self.system.invariants.values()
        yield from self.system.witnesses.values()
        yield self.system.constraint

    def _width(self) -> int:
        """Bits of an element in which every value of every term fits, so that nothing ever wraps."""
        seen: set[Term] = set()
        waiting = list(self._terms())
        least = most = 0
        while waiting:
            term = waiting.pop()
            if term not in seen:
                seen.add(term)
                waiting.extend(term.args)
                if term.sort is not Sort.BOOL:
                    low, high = self.bounds(term)
                    least, most = min(least, low), max(most, high)
        for field in self.packing.fields:
            least, most = min(least, field.low), max(most, field.high, field.high - field.low)
        # The size of a set is counted twice for a majority.
        most = max(most, 2 * self.replicas)
        return next(bits for bits in _WIDTHS if -(1 << bits - 1) <= least and most < 1 << bits - 1)

    def cell(self, term: Term) -> str:
        """The vector of a cell, from the keys."""
        assert isinstance(term.value, int)
        field = self.packing.fields[term.value]
        if self.width > 8:
            mask = _word((1 << field.bits) - 1)
            text = f"field(keys, {field.word}, {field.shift}, {mask}, {field.low})"
        elif not field.bits:
            text = _k(field.low)
        else:
            byte, shift = field.word * 8 + field.shift // 8, field.shift % 8
            kind = "WITHIN" if shift + field.bits <= 8 else "ACROSS"
            text = f"{kind}({byte}, {shift}, {field.bits}, {field.low})"
        return f"({text}) != K(0)" if term.sort is Sort.BOOL else text


def _conditions(printer: _Printer, top: _Scope) -> None:
    """Invariants, witnesses and the constraint."""
    for number, invariant in enumerate(printer.system.invariants.values()):
        if invariant is not TRUE:
            holds = top(invariant)
            top.line(f"lanes = wanted[{number}] ? ~bits({holds}) & valid : 0;")
            top.line(f"if (lanes) mark_broken(part, {number}, part->at, lanes);")
    top.line("if (part->broken) return;")
    for number, witness in enumerate(printer.system.witnesses.values()):
        if witness is not FALSE:
            top.line(f"part->witnesses[{number}] += (uint64_t)__builtin_popcount(bits({top(witness)}) & valid);")
    if printer.system.constraint is not TRUE:
        top.line(f"valid &= bits({top(printer.system.constraint)});")


def _guarded(printer: _Printer, top: _Scope, trie: Trie, mask: str | None) -> None:
    """The instances below a node of the trie of guards, in its order."""
    for number in trie.instances:
        top.line(f"lanes = {'valid' if mask is None else f'bits({mask}) & valid'};")
        inner = _Scope(printer, top.pad + "    ", top)
        _effect(printer, inner, number)
        top.line("if (lanes) {")
        top.lines += inner.lines
        top.line("}")
    for condition, child in trie.children.items():
        here = top(condition)
        _guarded(printer, top, child, here if mask is None else top.vector(f"{mask} & {here}"))


def _effect(printer: _Printer, scope: _Scope, number: int) -> None:
    """The successors by one instance of the states in whose lanes it is enabled."""
    packing = printer.packing
    clear, fixed = [0] * packing.words, [0] * packing.words
    computed: list[tuple[Field, str]] = []
    for cell, term in printer.system.instances[number].effect.items():
        field = packing.fields[cell]
        clear[field.word] |= ((1 << field.bits) - 1) << field.shift
        if term.op == "const" and field.low <= literal(term) <= field.high:
            fixed[field.word] |= (literal(term) - field.low) << field.shift
            continue
        value = scope(term)
        low, high = printer.bounds(term)
        if not (field.low <= low and high <= field.high):
            outside = scope.vector(f"({value} < {_k(field.low)}) | ({value} > {_k(field.high)})")
            scope.line(f"if (bits({outside}) & lanes) {{")
            scope.line(f"    mark_escaped(part, {number}, part->at, bits({outside}) & lanes);")
            scope.line(f"    lanes &= ~bits({outside});")
            scope.line("}")
        if field.bits:
            placed = printer.name()
            scope.line(f"const V {placed} = {value} - {_k(field.low)};")
            computed.append((field, placed))
    scope.line(f"part->transitions[{number}] += (uint64_t)__builtin_popcount(lanes);")
    scope.line("for (; lanes; lanes &= lanes - 1) {")
    scope.line("    unsigned lane = (unsigned)__builtin_ctz(lanes);")
    scope.line("    const uint64_t *key = keys + lane * WORDS;")
    for word in range(packing.words):
        parts = [f"key[{word}]" if not clear[word] else f"(key[{word}] & {_word(~clear[word] & (1 << 64) - 1)})"]
        parts += [_word(fixed[word])] if fixed[word] else []
        parts += [f"(uint64_t)((const UT *)&{name})[lane] << {f.shift}" for f, name in computed if f.word == word]
        scope.line(f"    to[{word}] = {' | '.join(parts)};")
    scope.line(f"    to[WORDS] = (uint64_t)((part->at + lane) * PARTS + number) << 32 | {number};")
    scope.line("    to += ENTRY;")
    scope.line("}")


@cache
def _part(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")


def text_of(system: System) -> str:
    """The whole text of a system's search in C, to be compiled by itself."""
    printer = _Printer(system)
    top = _Scope(printer, "    ")
    _conditions(printer, top)
    _guarded(printer, top, by_guards(system), None)
    numbers = {
        "WORDS": printer.packing.words,
        "INSTANCES": len(system.instances),
        "INVARIANTS": len(system.invariants),
        "WITNESSES": len(system.witnesses),
        "ELEMENT_BITS": printer.width,
    }
    planes = ["    U8 planes[WORDS * 8];", "    split(keys, planes);"] if printer.width == 8 else []
    return "\n".join(
        [
            *(f"#define {name} {int(value)}" for name, value in numbers.items()),
            _part("lanes.c"),
            "static void group(Part *part, unsigned number, const uint64_t *keys, unsigned count,",
            "                  const uint8_t *wanted)",
            "{",
            "    uint32_t lanes, valid = count >= 32 ? UINT32_MAX : ((uint32_t)1 << count) - 1;",
            "    uint64_t *to = part->staged;",
            *planes,
            *top.lines,
            "    part->staged_count = (uint32_t)((to - part->staged) / ENTRY);",
            "}",
            _part("search.c"),
        ]
    )
