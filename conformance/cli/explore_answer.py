"""What ``fencepost explore`` answers: as text, as obligations for CI servers, and where a budget is spent at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from ...model.core.budget import ground_size, too_large
from ...model.core.protocol import Protocol, TracedProtocol
from ...model.explore import Exploration, Limits, Verdict, memory
from ...model.explore.liveness import Liveness
from ...model.explore.result import Watch, spent
from ...traces.report.obligation import Obligation
from ...traces.report.text import render_text
from ...traces.run_report import Story
from ...traces.text import counted
from ..check.counterexamples import counterexample
from ..check.task import word
from .annotations import annotate, place_of
from .output import print_verdict, stdout, table

TERM_BYTES = 3
"""Memory of a term that grounding visits; most are shared. Measured: 7 MB for 2.2 million, 12 MB for 13 million."""

COMPILED_BYTES = 2 << 20
"""Memory of what the smallest systems come to, once they are ground and compiled. Measured: 1.5 MB."""


def beyond_budget(traced: TracedProtocol, constants: Mapping[str, int], max_terms: int, limits: Limits) -> str | None:
    """Which budget the variant at these constants spends before the first state is seen; None where none.

    Raises BadInput for constants that the protocol does not have.
    """
    reason = too_large(traced, constants, max_terms)
    if reason is not None:
        return f"{reason} (--max-terms)"
    needed = COMPILED_BYTES + TERM_BYTES * ground_size(traced, constants).work
    return None if Watch(limits, None).grants(needed) else spent(limits.max_memory)


@dataclass(frozen=True)
class Untouched:
    """The answer where a budget is spent before there is anything to explore: ``unknown``, and why."""

    traced: TracedProtocol
    constants: Mapping[str, int]
    engine: str
    reason: str

    def to_json(self) -> dict[str, object]:
        """The object of any exploration, with nothing in it."""
        return {
            "protocol": self.traced.protocol.name,
            "variant": self.traced.variant.name,
            "engine": self.engine,
            "verdict": Verdict.UNKNOWN.value,
            "distinct": 0,
            "depth": 0,
            "violated": None,
            "trace": None,
            "reason": self.reason,
            "constants": dict(self.constants),
            "memory_bytes": memory.peak(),
        }

    @property
    def obligations(self) -> list[Obligation]:
        """Every invariant, undecided."""
        group = f"{self.traced.protocol.name} {self.traced.variant.name}"
        return [
            Obligation(name, group, "unknown", "holds", self.reason, 0, "states", 0.0)
            for name in self.traced.invariants
        ]

    def print(self) -> None:
        """The verdict and the reason."""
        constants = ", ".join(f"{name} {value}" for name, value in self.constants.items())
        name = f"{self.traced.protocol.name} {self.traced.variant.name} ({constants})"
        out = stdout()
        print_verdict(out, name, Verdict.UNKNOWN.value)
        out.print(self.reason, markup=False)


def overall(verdicts: Sequence[Verdict]) -> Verdict:
    """The worst of them."""
    for verdict in (Verdict.VIOLATED, Verdict.UNKNOWN):
        if verdict in verdicts:
            return verdict
    return Verdict.HOLDS


def obligations(found: Exploration, live: Sequence[Liveness], story: Story | None) -> list[Obligation]:
    """One for each invariant and witness that was looked at, and for each liveness property and set of fairness.

    Where one is violated the search ends: of the others it is said which break in the same state, and nothing else.
    """
    system = found.query.system
    if found.findings is not None:
        return _obligations_of_all(found, live)
    group = f"{system.name} {system.traced.variant.name}"
    broken = {found.violated} if found.violated is not None else set()
    if story is not None and found.violated is not None:
        broken |= {breach.invariant for breach in story.moments[-1].broken}
    undecided = found.reason or f"the search ended where {found.violated} broke"

    def one(name: str, verdict: Verdict) -> Obligation:
        told = story if name == found.violated else None
        detail = ""
        if verdict is Verdict.UNKNOWN:
            detail = undecided
        elif verdict is Verdict.VIOLATED:
            detail = found.reason or f"breaks after {counted(len(found.path or ()), 'step')}"
        return Obligation(name, group, word(verdict), "holds", detail, found.distinct, "states", found.seconds, told)

    def verdict_on(name: str, decided: bool) -> Verdict:
        if name in broken:
            return Verdict.VIOLATED
        return Verdict.HOLDS if decided else Verdict.UNKNOWN

    whole = found.verdict is Verdict.HOLDS
    results = [one(name, verdict_on(name, whole)) for name in found.query.invariants]
    results += [one(name, verdict_on(name, count > 0)) for name, count in found.witnesses.items()]
    told = story
    for each in live:
        mine = told if each.lasso is not None and found.violated is None else None
        if mine is not None:
            told = None  # the story is that of the first lasso
        results.append(
            Obligation(
                f"{each.spec.name} under {each.fairness}",
                group,
                word(each.verdict),
                "holds",
                each.reason or ("" if each.lasso is None else each.spec.doc),
                each.distinct,
                "states",
                each.seconds,
                mine,
            )
        )
    return results


def stories_of_all(found: Exploration) -> list[tuple[str, Story]]:
    """Every violated invariant with the story of its shortest counterexample."""
    system = found.query.system
    stories: list[tuple[str, Story]] = []
    for each in found.findings or ():
        alone = replace(found, violated=each.invariant, path=each.path, verdict=Verdict.VIOLATED)
        story = counterexample(system, alone)
        assert story is not None
        stories.append((each.invariant, story))
    return stories


def _obligations_of_all(found: Exploration, live: Sequence[Liveness]) -> list[Obligation]:
    """The same where every violated invariant was searched for."""
    whole, stories = found.whole, dict(stories_of_all(found))
    alone = replace(found, findings=None, violated=None, path=None)
    alone.verdict = Verdict.HOLDS if whole else Verdict.UNKNOWN
    alone.reason = found.reason if not whole else None
    results = []
    for each in obligations(alone, live, None):
        story = stories.get(each.name)
        if story is not None:
            detail = f"breaks after {counted(len(story.moments) - 1, 'step')}"
            each = replace(each, verdict="violated", detail=detail, story=story)
        elif whole and found.witnesses.get(each.name) == 0:
            each = replace(each, verdict="violated", detail=found.reason or "")
        results.append(each)
    return results


def annotate_failures(protocol: Protocol, results: Sequence[Obligation]) -> None:
    """Annotations for CI. What is violated points at the promise; what is undecided is one warning for all of it."""
    unknown = [each for each in results if each.verdict == "unknown"]
    for each in results:
        if each.verdict == "violated":
            name = each.name.partition(" ")[0]
            story = "" if each.story is None else "\n\n" + render_text(each.story)
            annotate(f"{each.group}: {each.name} is violated", f"{each.detail}{story}", place_of(protocol, name))
    if unknown and not any(each.verdict == "violated" for each in results):
        annotate(f"{unknown[0].group}: unknown", unknown[0].detail, failed=False)


def print_answer(found: Exploration, live: Sequence[Liveness], story: Story | None) -> None:
    """The text: the story, the verdict, how much was seen, and what each action did."""
    out = stdout()
    shown = [story] if found.findings is None and story is not None else [each for _, each in stories_of_all(found)]
    for counterexample_of_one in shown:
        out.print(render_text(counterexample_of_one, width=out.story_width), end="", markup=False)
        out.print()
    system = found.query.system
    constants = ", ".join(f"{name} {value}" for name, value in system.constants.items())
    what = "orbits" if found.query.symmetry else "states"
    violated = [each.invariant for each in found.findings or ()] or ([found.violated] if found.violated else [])
    verdict = f"{found.verdict.value}: {', '.join(violated)}" if violated else found.verdict.value
    print_verdict(out, f"{system.name} {system.traced.variant.name} ({constants})", verdict)
    if found.reason:
        out.print(found.reason, markup=False)
    for finding in found.findings or ():
        after = counted(len(finding.path), "step")
        out.print(f"{finding.invariant}: violated, the shortest counterexample has {after}", markup=False)
    if found.undecided:
        out.print(f"undecided: {', '.join(found.undecided)}", markup=False)
    if found.engine == "symbolic":
        out.print(f"runs of up to {counted(found.depth - 1, 'step')}, {found.engine} engine, {found.seconds:.2f} s")
        return
    out.print(
        f"{found.distinct:,} distinct {what}, depth {found.depth}, {found.engine} engine, {found.seconds:.2f} s "
        f"({found.states_per_second:,.0f} a second), {found.memory / (1 << 20):,.0f} MiB"
    )
    if found.engine_note:
        out.print(found.engine_note, markup=False)
    rows = table("action", "enabled", "led to a new state", right=(1, 2))
    for name, seen in found.coverage.items():
        rows.add_row(name, f"{seen.transitions:,}", f"{seen.discoveries:,}")
    out.print(rows)
    for name, count in found.witnesses.items():
        out.print(f"sometimes {name}: {counted(count, what.removesuffix('s'))}", markup=False)
    for each in live:
        out.print(f"{each.spec.name} under {each.fairness}: {each.verdict.value}", markup=False)
