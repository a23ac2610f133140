"""The obligations of the models themselves, at the constants of their plans, which take seconds."""

from __future__ import annotations

from functools import partial

from ...model.core.ground import System, ground
from ...model.core.protocol import Protocol
from ...model.core.registration import Registration, looked_up
from ...model.explore import Exploration, Query, Verdict, explore
from ...model.explore.liveness import Liveness, check_liveness
from ...model.explore.result import OnProgress
from ...model.prove.crosscheck import Sample, crosscheck, exhaustive
from ...model.prove.proof import Proof
from ...model.prove.proof_for_variant import attach
from ...model.prove.run import WORKERS, ProofRun, judge, prove
from ...model.prove.spread import spread
from ...traces.record import record
from ...traces.replay import replay
from ...traces.stepper import stepper_for
from ...traces.text import counted
from ..harness import Harness, plan_of
from ..plan import Compared, Plan, constants_of, written
from .counterexamples import counterexample, lasso_story
from .running import running_tasks
from .task import Outcome, Task

SEED = 320
"""Of everything drawn here; every detail line that depends on it says so."""


def plan_tasks(registration: Registration) -> list[Task]:
    """The obligations of one protocol's plan."""
    protocol = registration.protocol
    plan = plan_of(protocol)
    return [
        *_exploration(protocol, plan),
        *_interpreters(protocol, plan),
        *_relations(protocol, plan),
        *_liveness(protocol, plan),
        *_replay(protocol, plan),
        *_proofs(registration, plan),
        *running_tasks(registration),
        *_compared(registration, plan),
    ]


def _compared(registration: Registration, plan: Plan) -> list[Task]:
    """Runs that are shown side by side."""
    harness = registration.find_harness()
    if not isinstance(harness, Harness):
        return []
    found: list[Compared] = [looked_up(each, harness.package) for each in plan.compared]
    group = f"{registration.protocol.name}: runs side by side"
    return [Task(each.name, group, partial(_beside, each)) for each in found]


def _beside(compared: Compared, _told: OnProgress) -> Outcome:
    told = compared.run()
    return Outcome(told.verdict, told.detail, told.states, "states", beside=told.page)


def _system(protocol: Protocol, variant: str, constants: dict[str, int], *drop: str) -> System:
    return ground(protocol.traced(variant).drop(*drop), constants)


def _exploration(protocol: Protocol, plan: Plan) -> list[Task]:
    """The safe variants hold, the others break, and so does the default without any of the guards that are needed."""
    group = f"{protocol.name}: invariants by exhaustive exploration"
    safe = protocol.default_variant
    constants = constants_of(protocol, plan.at)
    tasks = [Task(f"{safe} {written(constants)}", group, partial(_explored, protocol, safe, constants, ()))]
    for variant in protocol.variants:
        for places, expected in ((plan.holds, Verdict.HOLDS), (plan.breaks, Verdict.VIOLATED)):
            if variant in places:
                at = constants_of(protocol, places[variant])
                run = partial(_explored, protocol, variant, at, ())
                tasks.append(Task(f"{variant} {written(at)}", group, run, expected))
    for guard in plan.needed:
        run = partial(_explored, protocol, safe, constants, (guard,))
        tasks.append(Task(f"{safe} without {guard}", group, run, Verdict.VIOLATED))
    return tasks


def _explored(
    protocol: Protocol, variant: str, constants: dict[str, int], drop: tuple[str, ...], told: OnProgress
) -> Outcome:
    system = _system(protocol, variant, constants, *drop)
    found = explore(Query.of(system), "auto", told)
    return Outcome(found.verdict, described(found), found.distinct, "states", counterexample(system, found))


def described(found: Exploration) -> str:
    """An exploration's answer in a line."""
    if found.verdict is Verdict.HOLDS:
        return f"{', '.join(found.query.invariants)} hold; depth {found.depth}"
    if found.path is not None:
        return f"{found.violated} breaks after {counted(len(found.path), 'step')}"
    return found.reason or ""


def _interpreters(protocol: Protocol, plan: Plan) -> list[Task]:
    tasks = []
    for variant in protocol.variants:
        if variant in plan.engines:
            at = constants_of(protocol, plan.engines[variant])
            run = partial(_engines_agree, protocol, variant, at)
            tasks.append(Task(f"batch and reference, {variant} {written(at)}", _agreement(protocol), run))
    return tasks


def _relations(protocol: Protocol, plan: Plan) -> list[Task]:
    """The symbolic relation against the reference: all steps at small constants, some of each action at larger ones."""
    if plan.relations is None:
        return []
    small, larger = (constants_of(protocol, at) for at in plan.relations)
    name = f"symbolic and reference, {protocol.default_variant}"
    runs = (
        (small, partial(_all_crosschecked, protocol, small)),
        (larger, partial(_some_crosschecked, protocol, larger)),
    )
    return [Task(f"{name} {written(at)}", _agreement(protocol), run) for at, run in runs]


def _agreement(protocol: Protocol) -> str:
    return f"{protocol.name}: the interpreters agree"


def _engines_agree(protocol: Protocol, variant: str, constants: dict[str, int], told: OnProgress) -> Outcome:
    # Only type_ok is checked, so that a historic variant is explored to its end too.
    query = Query.of(_system(protocol, variant, constants), ("type_ok",))
    batch, reference = (explore(query, engine, told) for engine in ("batch", "reference"))
    same = all(
        getattr(batch, name) == getattr(reference, name)
        for name in ("verdict", "distinct", "depth", "transitions", "witnesses")
    )
    detail = f"{batch.distinct:,} and {reference.distinct:,} states, depth {batch.depth} and {reference.depth}"
    return Outcome(Verdict.HOLDS if same else Verdict.VIOLATED, detail, batch.distinct, "states")


def _all_crosschecked(protocol: Protocol, constants: dict[str, int], _told: OnProgress) -> Outcome:
    system = _system(protocol, protocol.default_variant, constants)
    return _crosschecked(system, exhaustive(system), "all transitions")


def _some_crosschecked(protocol: Protocol, constants: dict[str, int], _told: OnProgress) -> Outcome:
    system = _system(protocol, protocol.default_variant, constants)
    return _crosschecked(system, spread(system, 300, SEED, max_states=100_000), f"sampled with seed {SEED}")


def _crosschecked(system: System, sample: Sample, how: str) -> Outcome:
    found = crosscheck(system, sample, SEED, refused=300)
    if found.first_failure is not None:
        return Outcome(found.verdict, str(found.first_failure), found.accepted, "transitions")
    detail = f"{how}: accepted, {found.near_misses:,} near misses and {found.refused:,} refused steps refused"
    return Outcome(found.verdict, detail, found.accepted, "transitions")


def _liveness(protocol: Protocol, plan: Plan) -> list[Task]:
    """One task for each property under each fairness; the explored graph is shared."""
    if plan.liveness is None:
        return []
    group = f"{protocol.name}: liveness"
    constants = constants_of(protocol, plan.liveness)
    answers: dict[tuple[str, str], Liveness] = {}
    tasks = []
    for fairness in protocol.fairness:
        for name in protocol.liveness:
            expected = Verdict.VIOLATED if (name, fairness) in plan.fails else Verdict.HOLDS
            run = partial(_live, protocol, constants, name, fairness, answers)
            tasks.append(Task(f"{name} under {fairness}", group, run, expected))
    return tasks


def _live(
    protocol: Protocol,
    constants: dict[str, int],
    name: str,
    fairness: str,
    answers: dict[tuple[str, str], Liveness],
    told: OnProgress,
) -> Outcome:
    if not answers:
        system = _system(protocol, protocol.default_variant, constants)
        for each in check_liveness(system, on_progress=told):
            answers[each.spec.name, each.fairness] = each
    answer = answers[name, fairness]
    if answer.lasso is None:
        return Outcome(answer.verdict, answer.reason or answer.spec.doc, answer.distinct, "states")
    loop = len(answer.lasso.loop)
    ends = f"then a loop of {loop}" if loop else "then nothing happens any more"
    detail = f"fails after {counted(len(answer.lasso.stem), 'step')}, {ends}"
    return Outcome(answer.verdict, detail, answer.distinct, "states", lasso_story(answer))


def _replay(protocol: Protocol, plan: Plan) -> list[Task]:
    """A counterexample as a trace: a run of its own variant, and refused by the safe one."""
    if plan.replayed is None:
        return []
    group = f"{protocol.name}: replay"
    broken, safe = plan.replayed[0], protocol.default_variant
    at = constants_of(protocol, plan.replayed[1])
    return [
        Task(
            f"trace of {broken} against {broken}", group, partial(_replayed, protocol, broken, at, broken, ("type_ok",))
        ),
        Task(
            f"trace of {broken} against {safe}",
            group,
            partial(_replayed, protocol, broken, at, safe, ()),
            Verdict.VIOLATED,
        ),
    ]


def _replayed(
    protocol: Protocol,
    source: str,
    constants: dict[str, int],
    against: str,
    invariants: tuple[str, ...],
    _told: OnProgress,
) -> Outcome:
    system = _system(protocol, source, constants)
    path = explore(Query.of(system)).path
    assert path is not None, f"{source} has no counterexample at {written(constants)}"
    trace = record(system, path)
    stepper = stepper_for(protocol.traced(against), constants, often=False)
    answer = replay(trace, stepper, invariants=invariants or None)
    detail = f"all {answer.events} events are explained"
    if answer.event is not None:
        detail = f"event {answer.event.step}, {answer.event.call}: {answer.cause}"
    return Outcome(answer.verdict, detail, answer.events, "events")


def _proofs(registration: Registration, plan: Plan) -> list[Task]:
    """The proof with no bound, and that it does not go through for a variant that is not safe."""
    proof = registration.find_proof()
    if proof is None or not plan.proves:
        return []
    group = f"{registration.name}: proofs with no bound"
    tasks = [Task(proof.variant, group, partial(_proved, proof))]
    return tasks + [
        Task(variant, group, partial(_not_proved, proof, variant), Verdict.VIOLATED) for variant in plan.unproved
    ]


def _proved(proof: Proof, _told: OnProgress) -> Outcome:
    return _of_run(prove(attach(proof, proof.protocol.traced(proof.variant)), workers=WORKERS))


def _not_proved(proof: Proof, variant: str, _told: OnProgress) -> Outcome:
    return _of_run(judge(proof, proof.protocol.traced(variant)))


def _of_run(run: ProofRun) -> Outcome:
    detail = f"{len(run.results)} obligations proved for any number of replicas, offsets and leader epochs"
    if run.failed:
        last = run.failed[-1].obligation
        detail = f"{last.conjunct} is not inductive under {last.action}"
    elif run.verdict is not Verdict.HOLDS:
        detail = "no finite model meets the hypotheses of some action"
    return Outcome(run.verdict, detail, len(run.results), "obligations")
