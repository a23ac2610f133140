"""Every violated invariant of a variant, each with a shortest counterexample.

NumPy's search continues past a violated invariant, so that one exploration finds all. The other engines end at the
first one: they run again without it, the compiled engine from the point where NumPy's search stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..core.errors import BadInput
from . import memory
from .batch import Search, Spent
from .compiled import CompiledSearch, by_size, compiler_note, explore_compiled
from .reference import explore_reference
from .result import TYPE_OK, Exploration, Finding, OnProgress, Query, Verdict, Watch


def explore_every(
    query: Query, engine: str = "batch", on_progress: OnProgress | None = None, threads: int | None = None
) -> Exploration:
    """Explore as ``explore`` does, and find every violated invariant. Raises BadInput as ``explore`` does.

    ``findings`` of the answer are in the order of the lengths of their counterexamples. An invariant that is not among
    them holds if the answer is ``whole``. If ``type_ok`` breaks, the search ends: every engine relies on it.
    """
    if engine == "auto":
        return _by_size(query, on_progress, threads)
    if engine == "batch":
        memory.keep_pages()
        search = Search(query, Watch(query.limits, on_progress), every=True)
        return _joined(query, search.run(), search.findings)
    if engine == "compiled":
        return _rounds(query, query.invariants, (), lambda asked: explore_compiled(asked, on_progress, threads))
    if engine == "reference":
        return _rounds(query, query.invariants, (), lambda asked: explore_reference(asked, on_progress))
    if engine == "symbolic":
        from .symbolic import explore_symbolic

        return _rounds(query, query.invariants, (), lambda asked: explore_symbolic(asked, on_progress))
    raise BadInput(f"there is no engine {engine!r}", "--engine", "choose one of batch, compiled, reference, symbolic")


def _rounds(
    query: Query, remaining: Sequence[str], found: Sequence[Finding], run: Callable[[Query], Exploration]
) -> Exploration:
    """Run again without each invariant that is violated."""
    findings = list(found)
    left = tuple(remaining)
    while True:
        answer = run(replace(query, invariants=left))
        if answer.path is None or answer.violated not in left or answer.violated == TYPE_OK:
            return _joined(query, answer, findings)
        findings.append(Finding(answer.violated, answer.path))
        left = tuple(name for name in left if name != answer.violated)


def _by_size(query: Query, on_progress: OnProgress | None, threads: int | None) -> Exploration:
    """NumPy first, and the compiled engine from where it is quicker, as ``compiled.explore_by_size``."""
    memory.keep_pages()
    watch = Watch(query.limits, on_progress)
    search = Search(query, watch, every=True)
    whole, compiler, text = by_size(query, search)
    if compiler is None:
        return _joined(query, whole, search.findings)
    count, note = compiler_note(compiler, threads, search.table.count)

    def go_on(asked: Query) -> Exploration:
        part = replace(whole, query=asked, engine="compiled", engine_note=note)
        part.witnesses, part.coverage = dict(whole.witnesses), dict(whole.coverage)
        compiled = CompiledSearch(asked, watch, part, compiler, text)
        compiled.seed(search.table.keys, search.parents, search.begins)
        return compiled.run(count)

    try:
        return _rounds(query, search.remaining, search.findings, go_on)
    except (BadInput, Spent):
        # NumPy resumes with its own states: it needs no compiler, and halves its blocks where memory is short.
        return _joined(query, search.run(), search.findings)


def _joined(query: Query, last: Exploration, found: Sequence[Finding]) -> Exploration:
    """The answer of the last round, with what all rounds have found."""
    findings = list(found)
    last.whole = last.verdict is not Verdict.UNKNOWN and last.path is None
    if last.path is not None and last.violated is not None:
        findings.append(Finding(last.violated, last.path))
        if len(findings) < len(query.invariants) and not last.reason:
            last.reason = f"the search ended where {last.violated} broke"
    findings.sort(key=lambda each: (len(each.path), query.invariants.index(each.invariant)))
    last.query, last.findings = query, findings
    if findings:
        # A witness that never happened stays the reason of the answer, and its count says so.
        last.verdict, last.violated, last.path = Verdict.VIOLATED, findings[0].invariant, findings[0].path
    return last
