"""The checks of mining's first pass as SQL, from the very same terms: for DuckDB and for Spark SQL.

Terms share operands: written out as text some invariants are thousands of operations, where as a graph they are some
hundred. What several expressions use is computed once, in a subquery below them, which is also how a person would write
it; neither engine is left to find it out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from fencepost.model.core.ground import System
from fencepost.model.core.terms import Sort, Term, literal
from fencepost.traces.corpus.layout import CorpusLayout

DUCKDB: Final = "duckdb"
SPARK: Final = "spark"

_INFIX: Final = {"lt": "<", "le": "<=", "eq": "=", "add": "+", "sub": "-", "and": "AND", "or": "OR"}


class Sql:
    """SQL text over a table ``events`` with the columns of a corpus."""

    def __init__(self, layout: CorpusLayout, system: System, dialect: str) -> None:
        self.layout = layout
        self.system = system
        self.quote = '"' if dialect == DUCKDB else "`"
        self.dialect = dialect

    def column(self, name: str) -> str:
        """A column's name, quoted."""
        return f"{self.quote}{name}{self.quote}"

    def text(self, term: Term, names: Mapping[Term, str]) -> str:
        """A ground term as an expression; ``names``: columns that hold some terms already."""
        if term in names:
            return names[term]
        op, args = term.op, [self.text(arg, names) for arg in term.args]
        if op == "const":
            value = literal(term)
            if term.sort is Sort.BOOL:
                return "TRUE" if value else "FALSE"
            return f"({value})" if value < 0 else str(value)
        if op == "cell":
            assert isinstance(term.value, int)
            return self.column(self.layout.cell_columns[term.value])
        if op in _INFIX:
            return f"({f' {_INFIX[op]} '.join(args)})"
        if op == "not":
            return f"(NOT {args[0]})"
        if op == "ite":
            return f"(CASE WHEN {args[0]} THEN {args[1]} ELSE {args[2]} END)"
        if op in ("min", "max"):
            return f"{'least' if op == 'min' else 'greatest'}({args[0]}, {args[1]})"
        if op == "member":
            if term.args[0].op == "const":
                return f"(({args[1]} & {1 << literal(term.args[0])}) <> 0)"
            return f"({args[0]} >= 0 AND ({self._shifted(args[1], args[0])} & 1) = 1)"
        if op == "majority":
            return f"(2 * bit_count({args[0]} & {args[1]}) > bit_count({args[1]}))"
        raise AssertionError(f"{op} stands in no invariant")

    def _shifted(self, value: str, by: str) -> str:
        by = f"greatest({by}, 0)"
        return f"({value} >> {by})" if self.dialect == DUCKDB else f"shiftright({value}, {by})"

    def checks(self, conditions: Mapping[str, Iterable[Term]], table: str) -> str:
        """How many rows break each invariant, or hold a value outside its domain: one row of counts."""
        terms = {name: list(parts) for name, parts in conditions.items()}
        names, source = self._layers([part for parts in terms.values() for part in parts], table)
        counts = []
        for name, parts in terms.items():
            holds = " AND ".join(self.text(part, names) for part in parts) or "TRUE"
            counts.append(f"count(CASE WHEN NOT ({holds}) THEN 1 END) AS {name}")
        outside = " OR ".join(
            f"{self.column(cell.name)} < {cell.low} OR {self.column(cell.name)} > {cell.high}"
            for cell in self.layout.cells
        )
        counts.append(f"count(CASE WHEN {outside} OR {self._calls()} THEN 1 END) AS outside")
        return f"SELECT count(*) AS events, {', '.join(counts)} FROM {source}"

    def _calls(self) -> str:
        """That an action or one of its parameters is none."""
        parts = [f"action < -1 OR action >= {len(self.layout.actions)}"]
        for place in range(self.layout.params):
            sizes = self.layout.param_sizes[place][:-1].tolist()
            cases = " ".join(f"WHEN {number} THEN {size}" for number, size in enumerate(sizes))
            parts.append(f"p{place} < -1 OR p{place} >= greatest(CASE action {cases} ELSE 0 END, 0)")
        return " OR ".join(parts)

    def windows(self, table: str) -> str:
        """How many rows do not come one step after the row before in their trace, by a window over each trace."""
        before = "lag(step, 1, 0) OVER (PARTITION BY trace ORDER BY step)"
        rows = f"SELECT step, {before} AS before FROM {table}"
        return f"SELECT count(CASE WHEN step <> before + 1 THEN 1 END) AS gaps FROM ({rows}) AS w"

    def grouped(self, table: str) -> str:
        """How many traces have not the steps 1 to n, by count, bounds and sum: quicker than a window."""
        wrong = "n <> high OR low <> 1 OR total <> n * (n + 1) / 2"
        each = (
            f"SELECT count(*) AS n, min(step) AS low, max(step) AS high, sum(step) AS total FROM {table} GROUP BY trace"
        )
        return f"SELECT count(CASE WHEN {wrong} THEN 1 END) AS gaps FROM ({each}) AS g"

    def _layers(self, terms: list[Term], table: str) -> tuple[dict[Term, str], str]:
        """Shared terms as columns of nested subqueries, the lowest first."""
        uses: dict[Term, int] = {}
        for term in terms:
            _count(term, uses)
        depth: dict[Term, int] = {}
        for term in terms:
            _depth(term, uses, depth)
        names: dict[Term, str] = {}
        source = table
        for level in range(1, max(depth.values(), default=0) + 1):
            here = [term for term in uses if depth.get(term) == level and _shared(term, uses)]
            if not here:
                continue
            new = {term: f"t{len(names) + number}" for number, term in enumerate(here)}
            columns = ", ".join(f"{self.text(term, names)} AS {name}" for term, name in new.items())
            source = f"(SELECT *, {columns} FROM {source}) AS l{level}"
            names |= new
        return names, source


def _shared(term: Term, uses: Mapping[Term, int]) -> bool:
    return bool(term.args) and uses[term] > 1


def _count(term: Term, uses: dict[Term, int]) -> None:
    uses[term] = uses.get(term, 0) + 1
    if uses[term] == 1:
        for arg in term.args:
            _count(arg, uses)


def _depth(term: Term, uses: Mapping[Term, int], depth: dict[Term, int]) -> int:
    """How many shared terms lie on top of each other below this one, itself included."""
    if term not in depth:
        below = max((_depth(arg, uses, depth) for arg in term.args), default=0)
        depth[term] = below + _shared(term, uses)
    return depth[term]
