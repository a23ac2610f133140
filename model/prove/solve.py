"""One obligation asked of z3: a fresh context and solver, a fixed seed, and z3's own resource count for a bound.

Only E-matching finds instances of the quantified hypotheses (no model-based instantiation). So z3 refutes, or it gives
up quickly; it never answers ``sat``, as it does not try to build a model. It splits cases in the order in which they
became relevant (``case_split=3``), from what is denied on, and not by how often they were in conflicts: of the
instances there are so many that the latter leads it astray. The text of the obligation is all that it
reads, so neither an obligation asked before nor the process changes an answer.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from random import Random

import z3

RLIMIT = 20_000_000
"""Of z3's resource units, for one obligation. Those of kip-320 take a hundredth of it at most, of kip-630-safe a fifth,
of mutants that are proved two fifths."""


@dataclass(frozen=True)
class Answer:
    """What z3 said. ``proved``: it refuted the obligation's denial; ``reason``: why it did not."""

    proved: bool
    reason: str
    seconds: float
    resources: int
    """z3's resource units, the same in each run."""


def solver_of(context: z3.Context, *, seed: int, rlimit: int) -> z3.Solver:
    """A solver as this module describes it, with nothing asserted."""
    solver = z3.SimpleSolver(ctx=context)
    solver.set(auto_config=False, mbqi=False, case_split=3, random_seed=seed, rlimit=rlimit, ctrl_c=False)
    return solver


def ask(smt: str, *, seed: int = 0, shuffle: int | None = None, rlimit: int = RLIMIT) -> Answer:
    """Ask z3 whether the text has no model. ``shuffle``: assert in an order drawn by this seed."""
    context = z3.Context()
    solver = solver_of(context, seed=seed, rlimit=rlimit)
    assertions = list(z3.parse_smt2_string(smt, ctx=context))
    if shuffle is not None:
        Random(shuffle).shuffle(assertions)  # noqa: S311 - a seeded order, no secret
    solver.add(*assertions)
    start = time.perf_counter()
    answer = solver.check()
    seconds = time.perf_counter() - start
    statistics = solver.statistics()
    resources = statistics.get_key_value("rlimit count") if "rlimit count" in statistics.keys() else 0  # noqa: SIM118
    reason = "" if answer == z3.unsat else str(solver.reason_unknown()) if answer == z3.unknown else "it has a model"
    return Answer(bool(answer == z3.unsat), reason, seconds, int(resources))
