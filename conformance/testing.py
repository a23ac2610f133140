"""Fencepost from a test: one call explores a protocol, one proves it, two hold a system against the model.

Each is an assertion: it returns the answer where all is well, and fails with the story where it is not. An answer that
a budget cut short fails too. They work under pytest and under anything else that knows ``AssertionError``::

    from fencepost.conformance.testing import assert_conforms, assert_holds, assert_runs_freely

    def test_the_protocol() -> None:
        assert_holds(two_phase, replicas=3)

    def test_the_system() -> None:
        assert_runs_freely(MySystem, runs=100, seed=1)

    def test_the_system_step_by_step() -> None:
        assert_conforms(MyAdapter, examples=200, seed=1)
"""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Final

from ..model.core.errors import BadInput
from ..model.core.ground import ground
from ..model.core.protocol import Protocol, TracedProtocol
from ..model.core.registration import Registration
from ..model.core.registry import REGISTRY
from ..model.explore import Exploration, Limits, Query, Verdict, explore
from ..model.explore.liveness import Liveness, check_liveness
from ..model.prove.proof_for_variant import attach
from ..model.prove.run import WORKERS, ProofRun, prove
from ..traces.report.terminal import Terminal
from ..traces.report.text import render_text
from ..traces.write import write_trace
from .check.counterexamples import counterexample
from .check.unproved import print_failed
from .harness import binding_of, held_to, in_lockstep, plan_of, stepped
from .lockstep.adapter import Adapter, MakeAdapter
from .lockstep.binding import Binding
from .lockstep.choice_log import tape_of
from .lockstep.faults import Kind
from .lockstep.registry import make_adapter
from .lockstep.render import story_of_failure
from .lockstep.runner import Conformance, Plan, conform, refuse_impossible
from .lockstep.space import Space
from .plan import constants_of
from .simulation.registry import make_system
from .simulation.render import script
from .simulation.runner import RunRecord, SimulationPlan, SimulationResult, simulate
from .simulation.schedule import lines_of
from .simulation.system import MakeSystem, SimulatedSystem
from .simulation.transitions import Transitions

Named = Protocol | Registration | str
"""A protocol: the object, its registration, its name, or its place (``file.py:name``)."""

WIDTH: Final = 100
"""Columns of a story in a test's output."""


class Failed(AssertionError):
    """The assertion does not hold; the text is the story."""


def registration_of(protocol: Named) -> Registration:
    """What is registered of a protocol; one that is not registered yet is from now on. Raises BadInput without."""
    if isinstance(protocol, str):
        return REGISTRY.named(protocol)
    if isinstance(protocol, Protocol):
        known = REGISTRY.get(protocol.name)
        if known is not None and known.protocol is protocol:
            return known
        protocol = Registration(__name__, protocol)
    REGISTRY.add(protocol)
    return protocol


def assert_holds(
    protocol: Named,
    variant: str | None = None,
    *,
    invariants: Sequence[str] = (),
    drop: Sequence[str] = (),
    liveness: Sequence[str] = (),
    symmetry: bool = False,
    limits: Limits | None = None,
    **constants: int,
) -> Exploration:
    """Visit every reachable state of a variant at these constants; the invariants hold and every witness is met.

    ``invariants``: only these, and ``type_ok``; none given: all. ``drop``: without these guards (``action.guard``).
    ``liveness``: check the liveness properties too, under these fairness sets. Raises Failed with the counterexample,
    BadInput for what the protocol does not have.
    """
    __tracebackhide__ = True
    spec = registration_of(protocol).protocol
    system = ground(spec.traced(variant).drop(*drop), spec.check_constants(constants))
    found = explore(Query.of(system, tuple(invariants), symmetry, limits or Limits()))
    live: list[Liveness] = []
    if liveness and found.verdict is Verdict.HOLDS:
        if not spec.liveness:
            raise BadInput(f"{spec.name} has no liveness property", "liveness", "leave it out")
        live = check_liveness(system, tuple(liveness), limits=limits or Limits())
    wrong = next((each for each in live if each.verdict is not Verdict.HOLDS), None)
    if found.verdict is Verdict.HOLDS and wrong is None:
        return found
    story = counterexample(system, found, live)
    reason = found.reason if wrong is None else wrong.reason
    raise Failed(render_text(story, width=WIDTH) if story is not None else f"unknown: {reason}")


def assert_proved(protocol: Named, variant: str | None = None, *, drop: Sequence[str] = (), seed: int = 0) -> ProofRun:
    """The protocol's proof goes through for a variant: for any number of replicas, and all constants.

    Raises Failed with the counterexample to induction, BadInput for a protocol without a proof.
    """
    __tracebackhide__ = True
    proof = registration_of(protocol).require_proof(variant)
    traced: TracedProtocol = proof.protocol.traced(variant or proof.variant).drop(*drop)
    run = prove(attach(proof, traced), seed=seed, workers=WORKERS)
    if run.verdict is Verdict.HOLDS:
        return run
    out = io.StringIO()
    print_failed(run, Terminal(out, width=WIDTH, plain=True))
    raise Failed(f"{run.verdict.value}: {traced.protocol.name} {traced.variant.name}\n{out.getvalue()}")


def assert_conforms(
    adapter: Adapter | MakeAdapter | str,
    *,
    protocol: Named | None = None,
    variant: str | None = None,
    binding: Binding | None = None,
    examples: int = Plan.examples,
    steps: int = Plan.steps,
    seed: int = 0,
    faults: Collection[Kind] | None = None,
    max_seconds: float | None = None,
    trace: Path | None = None,
    **constants: int,
) -> Conformance:
    """Drive a system beside the model: ``examples`` runs of up to ``steps`` tries, all drawn from ``seed``.

    ``adapter``: an adapter, what makes one, or what ``--impl`` takes. ``protocol`` and ``variant``: the adapter's own
    by default; ``binding``: the protocol's own by default. ``faults``: only these kinds; None: whatever the system can.
    ``trace``: where to write a divergence, so that ``fencepost conform --replay`` repeats it.

    Raises Failed with the story of the smallest run in which the two part, and where nothing was compared; BadInput for
    a fault that there is not.
    """
    __tracebackhide__ = True
    name = None if protocol is None else registration_of(protocol).name
    if isinstance(adapter, str):
        made: Adapter = make_adapter(adapter, name, variant)
    else:
        made = adapter(name, variant) if callable(adapter) else adapter
    with closing(made):
        spec = stepped(made.protocol, "the adapter's protocol")
        system = ground(spec.traced(variant or made.variant), spec.check_constants(constants))
        bound = binding or in_lockstep(spec.name, "the adapter's protocol")[1]
        if faults:
            refuse_impossible(made, Space(system, bound), faults, "faults")
        plan = Plan(examples, steps, seed, frozenset(Kind if faults is None else faults), max_seconds=max_seconds)
        found = conform(made, system, bound, plan)
        if found.verdict is Verdict.HOLDS:
            return found
        if found.failure is None:
            raise Failed(f"{found.verdict.value}: {found.reason}")
        if trace is not None:
            source: dict[str, Any] = {"found with seed": seed}
            write_trace(trace, tape_of(system, found.failure, made.name, source))
        raise Failed(render_text(story_of_failure(system, found.failure, made.name), width=WIDTH))


def assert_runs_freely(
    system: SimulatedSystem | MakeSystem | str,
    *,
    protocol: Named | None = None,
    variant: str | None = None,
    binding: Binding | None = None,
    runs: int = SimulationPlan.runs,
    events: int = SimulationPlan.events,
    seed: int = 0,
    faults: bool = True,
    max_seconds: float | None = None,
    schedule: Path | None = None,
    **constants: int,
) -> SimulationResult:
    """Let a system run by itself, and the model follow: ``runs`` of up to ``events``, all drawn from ``seed``.

    ``system``: one that runs freely, what makes one, or what ``--impl`` takes. ``protocol`` and ``variant``: the
    system's own by default; ``binding``: the protocol's own by default. ``faults``: whether messages are lost and
    nodes crash. ``max_seconds``: go on for so long instead of for so many runs. ``constants``: by default those of the
    protocol's plan, by turns. ``schedule``: where to write a divergence, so that ``fencepost conform --replay``
    repeats it.

    Raises Failed with the story of the smallest run in which the two part, and where nothing was compared.
    """
    __tracebackhide__ = True
    name = None if protocol is None else registration_of(protocol).name
    if isinstance(system, str):
        made: SimulatedSystem = make_system(system, name, variant)
    else:
        made = system(name, variant) if callable(system) else system
    with closing(made):
        spec = held_to(made.protocol, "the system's protocol")
        bound = binding or binding_of(spec.name, "the system's protocol")
        traced = spec.traced(variant or made.variant)
        if constants:
            portfolio = [spec.check_constants(constants)]
        else:
            portfolio = [constants_of(spec, at) for at in plan_of(REGISTRY[spec.name].protocol).free or ("",)]
        ways = [Transitions(ground(traced, each), bound) for each in portfolio]
        found = simulate(made, ways, SimulationPlan(runs, events, seed, faults, max_seconds))
        if found.verdict is Verdict.HOLDS:
            return found
        if found.failure is None:
            raise Failed(f"{found.verdict.value}: {found.reason}")
        if schedule is not None:
            schedule.write_text(
                "\n".join(lines_of(found.failure, made.name, {"found with seed": seed})) + "\n", "utf-8"
            )
        raise Failed(_told(found.failure))


def _told(ran: RunRecord) -> str:
    """The events of a run, what the model made of each, and where the two part."""
    assert ran.divergence is not None
    return "\n".join((*script(ran), ran.divergence.sort.value, ran.divergence.headline, *ran.divergence.lines))
