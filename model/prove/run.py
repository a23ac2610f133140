"""A whole proof: every obligation, a witness for every action, and for what is not proved a counterexample.

``prove`` runs what it is asked to; ``judge`` asks as little as decides whether a mutant is noticed. Anything that z3
does not refute is not proved. A finite model then decides: a counterexample to induction makes it ``violated``; where
no finite model is found either, it is ``unknown``, and a hint or a lemma is missing.
"""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import partial

from ..core.errors import BadInput
from ..core.protocol import TracedAction, TracedProtocol
from ..explore.result import Verdict
from .cores import CORE_ORDERS, CORE_RLIMIT, Cores, read_cores
from .finite import Counterexample, FiniteProof, Found, UndecidedError
from .obligations import FOLLOWS, INITIAL, Obligation, Obligations
from .proof import Proof
from .proof_for_variant import AttachedProof, attach
from .solve import RLIMIT, Answer, ask

OnObligation = Callable[[int, int, str], None]
"""Told of each obligation that z3 has answered: its number, how many there are, its name."""


WORKERS = min(os.cpu_count() or 1, 4)
"""How many threads ask z3 in a command: one more writes what they ask."""

_Name = tuple[str, str]
"""The action and the conjunct of an obligation."""

_AHEAD = 8
"""How many obligations are written ahead for each thread that asks z3."""


@dataclass(frozen=True)
class Result:
    """How one obligation went. ``reason``: why it is not proved."""

    obligation: Obligation
    verdict: Verdict
    answer: Answer
    counterexample: Counterexample | None = None
    reason: str = ""


@dataclass(frozen=True)
class Witness:
    """That the hypotheses of an action's obligations can be met; ``found`` is None where no finite model shows it.

    ``never``: they cannot, as it is said of the proof, and is proved.
    """

    action: str
    found: Found | None
    never: bool = False

    @property
    def right(self) -> bool:
        """Whether the action can happen, or is shown not to."""
        return self.never or self.found is not None


@dataclass
class ProofRun:
    """The answer."""

    attached: AttachedProof
    seed: int
    results: list[Result] = field(default_factory=list)
    witnesses: list[Witness] = field(default_factory=list)
    seconds: float = 0.0

    @property
    def verdict(self) -> Verdict:
        """``violated`` where an obligation is; else ``unknown`` where one is, or an action has no witness."""
        found = {result.verdict for result in self.results}
        if Verdict.VIOLATED in found:
            return Verdict.VIOLATED
        vacuous = not all(witness.right for witness in self.witnesses)
        return Verdict.UNKNOWN if vacuous or Verdict.UNKNOWN in found else Verdict.HOLDS

    @property
    def failed(self) -> list[Result]:
        """The obligations that are not proved."""
        return [result for result in self.results if result.verdict is not Verdict.HOLDS]


class _FiniteModels:
    """The finite models of an attached proof, built when first asked for."""

    def __init__(self, attached: AttachedProof) -> None:
        self._attached = attached
        self._built: list[FiniteProof] = []

    def _sizes(self) -> Iterable[FiniteProof]:
        for number, constants in enumerate(self._attached.proof.sizes):
            if number == len(self._built):
                self._built.append(FiniteProof(self._attached, constants))
            yield self._built[number]

    def decide(self, action: str, conjunct: str) -> tuple[Counterexample | None, str]:
        """The smallest counterexample; where there is none, why."""
        undecided = ""
        for finite in self._sizes():
            try:
                found = finite.counterexample(action, conjunct)
            except UndecidedError as error:
                undecided = f"; z3 does not decide {_written(finite)}: {error}"
                continue
            if found is not None:
                return found, ""
        sizes = ", ".join(map(_written, self._built))
        return None, f"no counterexample at {sizes} ({'/'.join(self._attached.proof.protocol.constants)}){undecided}"

    def witness(self, action: str) -> Found | None:
        """A state from which the action can happen with all hypotheses met."""
        for finite in self._sizes():
            try:
                found = finite.witness(action)
            except UndecidedError:
                continue
            if found is not None:
                return found
        return None


def _written(finite: FiniteProof) -> str:
    return "/".join(map(str, finite.constants.values()))


def prove(
    attached: AttachedProof,
    *,
    actions: Sequence[str] = (),
    conjuncts: Sequence[str] = (),
    seed: int = 0,
    shuffle: int | None = None,
    rlimit: int = RLIMIT,
    witnesses: bool = True,
    first: bool = False,
    decide: bool = True,
    workers: int = 1,
    cores: bool = True,
    on_obligation: OnObligation | None = None,
) -> ProofRun:
    """Ask every obligation of these actions (``initial`` and ``follows`` among them) and conjuncts; none given: all.

    ``shuffle``: assert hypotheses in an order drawn by this seed. ``first``: stop at the first counterexample.
    ``decide``: look for one; without it whatever z3 does not refute is unknown, and ``first`` stops there.
    ``workers``: how many threads ask z3; no answer depends on it. ``cores``: ask first with those hypotheses that the
    proof's file names; without it each obligation has all that there are. Raises BadInput for an action or a conjunct
    that there is not.
    """
    start = time.perf_counter()
    obligations = Obligations(attached)
    names = _chosen(obligations, actions, conjuncts)
    models = _FiniteModels(attached)
    run = ProofRun(attached, seed)
    asking = partial(ask, seed=seed, shuffle=shuffle, rlimit=rlimit)
    file = attached.proof.cores if cores else None
    known = {} if file is None else read_cores(file, attached.proof.variant)
    answers = _answers(obligations, names, known, asking, workers)
    for number, (obligation, answer) in enumerate(answers):
        if on_obligation is not None:
            on_obligation(number, len(names), obligation.name)
        if answer.proved:
            run.results.append(Result(obligation, Verdict.HOLDS, answer))
            continue
        found, reason = models.decide(obligation.action, obligation.conjunct) if decide else (None, "")
        verdict = Verdict.UNKNOWN if found is None else Verdict.VIOLATED
        why = "; ".join(filter(None, (answer.reason, reason))) if found is None else ""
        run.results.append(Result(obligation, verdict, answer, found, why))
        if first and (found is not None or not decide):
            break
    if witnesses:
        asked = dict.fromkeys(action for action, _ in names if action not in (INITIAL, FOLLOWS))
        never = {action for action in asked if action in attached.proof.never}
        run.witnesses += [
            Witness(action, None, asking(obligations.impossible(action)).proved)
            if action in never
            else Witness(action, models.witness(action))
            for action in asked
        ]
    run.seconds = time.perf_counter() - start
    return run


def _answers(
    obligations: Obligations, names: Iterable[_Name], known: Cores, asking: Callable[..., Answer], workers: int
) -> Iterator[tuple[Obligation, Answer]]:
    """Each obligation with z3's answer, in their order."""

    def settled(name: _Name, asked: Obligation, answer: Answer) -> tuple[Obligation, Answer]:
        """Where z3 gave up on the core: in other orders, and then with all hypotheses."""
        seconds, resources = 0.0, 0
        for order in CORE_ORDERS:
            if answer.proved or name not in known or answer.resources >= CORE_RLIMIT:
                break
            seconds, resources = seconds + answer.seconds, resources + answer.resources
            answer = asking(asked.smt, shuffle=order, **limit(name))
        if not answer.proved and name in known:
            seconds, resources = seconds + answer.seconds, resources + answer.resources
            asked = obligations.obligation(*name)
            answer = asking(asked.smt)
        return asked, replace(answer, seconds=seconds + answer.seconds, resources=resources + answer.resources)

    def limit(name: _Name) -> dict[str, int]:
        return {"rlimit": CORE_RLIMIT} if name in known else {}

    asked = ((name, obligations.obligation(*name, known.get(name))) for name in names)
    if workers == 1:
        yield from (settled(name, each, asking(each.smt, **limit(name))) for name, each in asked)
        return
    # Threads do: z3 is asked in a context of its own, and while it looks for an answer others may run.
    pool = ThreadPoolExecutor(workers)
    try:
        waiting: deque[tuple[_Name, Obligation, Future[Answer]]] = deque()
        for name, each in asked:
            waiting.append((name, each, pool.submit(asking, each.smt, **limit(name))))
            while len(waiting) > _AHEAD * workers or waiting[0][2].done():
                at, first, answer = waiting.popleft()
                yield settled(at, first, answer.result())
                if not waiting:
                    break
        for at, last, answer in waiting:
            yield settled(at, last, answer.result())
    finally:
        pool.shutdown(cancel_futures=True)


def _chosen(obligations: Obligations, actions: Sequence[str], conjuncts: Sequence[str]) -> list[tuple[str, str]]:
    names = obligations.names()
    for option, given, known in (
        ("--action", actions, dict.fromkeys(action for action, _ in names)),
        ("--conjunct", conjuncts, obligations.attached.conjuncts),
    ):
        for name in given:
            if name not in known:
                what = option.removeprefix("--")
                raise BadInput(f"the proof has no {what} {name!r}", option, f"choose of {', '.join(known)}")
    return [
        (action, conjunct)
        for action, conjunct in names
        if (not actions or action in actions) and (not conjuncts or conjunct in conjuncts)
    ]


def judge(
    proof: Proof, mutant: TracedProtocol, own: TracedProtocol | None = None, *, seed: int = 0, decide: bool = True
) -> ProofRun:
    """Whether the proof notices a mutant of its variant, ``own``: stops at the first counterexample.

    Only those actions are asked that differ from the variant's own; of the others the obligations are the same, and
    hold. Where the verdict is ``violated``, the last result has the counterexample to induction: the mutant breaks
    the argument, and maybe a promise. Where it ``holds``, the mutant keeps every promise, with no bound. Without
    ``decide`` no counterexample is looked for, which is what takes the time: it ``holds``, or is ``unknown``.
    """
    proved = proof.protocol.traced(proof.variant) if own is None else own
    parts = {action.name: _parts(action) for action in proved.actions}
    changed = [action.name for action in mutant.actions if _parts(action) != parts.get(action.name)]
    attached = attach(proof, mutant)
    return (
        prove(attached, actions=changed, seed=seed, witnesses=False, first=True, decide=decide)
        if changed
        else ProofRun(attached, seed)
    )


def _parts(action: TracedAction) -> list[tuple[str, int, int]]:
    """What an action is made of. Equal terms are one object, and comparing terms makes a term."""
    guards = [(name, id(guard), 0) for name, guard in action.guards]
    return guards + [("", id(target), id(value)) for target, value in action.writes]
