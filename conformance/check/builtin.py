"""The obligations of the models themselves, at built-in constants that take seconds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from ...model.core.ground import System, ground
from ...model.core.protocol import Protocol
from ...model.explore import Exploration, Query, Verdict, explore
from ...model.explore.liveness import Liveness, check_liveness
from ...model.explore.result import OnProgress
from ...model.fencing_liveness import fencing
from ...model.prove.attached import attach
from ...model.prove.crosscheck import Sample, crosscheck, exhaustive
from ...model.prove.proof import Proof
from ...model.prove.proofs import PROOFS
from ...model.prove.run import WORKERS, ProofRun, judge, prove
from ...model.prove.spread import spread
from ...model.snapshots import snapshots
from ...model.truncation import truncation
from ...traces.record import record
from ...traces.replay import replay
from ...traces.stepper import stepper_for
from .stories import counterexample, lasso_story
from .task import Outcome, Task

SEED = 320
"""Of everything drawn here; every detail line that depends on it says so."""

_MAIN = {"replicas": 3, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
_SMALL = {"replicas": 2, "log_size": 2, "max_records": 2, "max_leader_epoch": 2}
_CONSUMER = {"replicas": 2, "log_size": 2, "max_records": 3, "max_leader_epoch": 2}
_CRASHES = {"replicas": 3, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}
_ELECTED_AGAIN = {name: {**_CRASHES, "max_leader_epoch": 2} for name in ("kip-320-stale-acks", "kip-320-brokers")}
"""A leader of two epochs, with another between, tells these two variants of fencing apart."""
_QUORUM = {name: spec.default for name, spec in snapshots.constants.items()}
_ONE_OFFSET = {**_QUORUM, "log_size": 1}
_ONE_VOTER = {**_QUORUM, "replicas": 2, "observers": 1, "max_leader_epoch": 0}
_ONE_LATE = {**_ONE_VOTER, "log_size": 1, "late_responses": 1}
_TWINS_AT = {
    "kip-630": _ONE_OFFSET,
    "lbo-past-snapshot": _ONE_VOTER,
    "lbo-misread": _ONE_OFFSET,
    "snapshot-past-hw": _ONE_VOTER,
    "delete-at-lbo": _ONE_VOTER,
    "vote-half-fetched": _ONE_OFFSET,
    "boot-by-hw": _ONE_OFFSET,
    "mixed-chunks": {**_ONE_OFFSET, "max_chunks": 2},
    "stale-responses": {**_ONE_VOTER, "late_responses": 1},
    "kip-630-nodes": _ONE_OFFSET,
}
"""Where a variant of snapshots is explored at smaller constants than the default ones, or at others."""
_TINY = {"replicas": 2, "log_size": 1, "max_records": 1, "max_leader_epoch": 1}

_NEEDED = (
    "follower_fetch.epoch_not_fenced",
    "become_follower.leader_epoch_matches",
    "leader_inc_high_watermark.isr_acknowledges",
    "leader_expand_isr.hw_reached_epoch",
    "leader_expand_isr.true_leader",
)
"""Guards of kip-320 without which a committed record is lost at three replicas: each is a must-fail twin."""

_UNPROVED = {"fencing": ("kip-279",), "snapshots": ("vote-half-fetched", "acknowledge-half-fetched")}
"""Variants for which the proof must not go through."""

_ALSO_SAFE = {("fencing", "kip-320-restarts"), ("fencing", "kip-320-brokers"), ("snapshots", "kip-630-nodes")}
"""Variants that hold, beside each protocol's default."""


def written(constants: dict[str, int]) -> str:
    """``3/2/2/2``: the constants in the order of the protocol."""
    return "/".join(map(str, constants.values()))


def builtin_tasks() -> list[Task]:
    """Every obligation, in the order of the report."""
    return [
        *_exploration(fencing, _MAIN, _NEEDED, _ELECTED_AGAIN),
        *_interpreters(fencing, _SMALL, _TINY),
        *_relations(fencing, _TINY, _MAIN),
        *_liveness(fencing),
        *_replay(fencing),
        *_proofs(),
        *_exploration(truncation, _CONSUMER),
        *_exploration(snapshots, _QUORUM, twins_at=_TWINS_AT),
        *_relations(snapshots, _ONE_LATE, {**_ONE_OFFSET, "late_responses": 1}),
    ]


def _system(protocol: Protocol, variant: str, constants: dict[str, int], *drop: str) -> System:
    return ground(protocol.traced(variant).drop(*drop), constants)


def _exploration(
    protocol: Protocol,
    constants: dict[str, int],
    needed: Sequence[str] = (),
    twins_at: Mapping[str, dict[str, int]] | None = None,
) -> list[Task]:
    """The safe variants hold, the others break, and so does the default without any of the guards ``needed``.

    ``twins_at`` gives a variant other constants.
    """
    group = f"{protocol.name}: invariants by exhaustive exploration"
    safe = protocol.default_variant
    tasks = [Task(f"{safe} {written(constants)}", group, partial(_explored, protocol, safe, constants, ()))]
    for variant in protocol.variants.values():
        if variant.name != safe:
            # With crashes there are ten times as many states: what must break does so at these constants too.
            at = (twins_at or {}).get(variant.name, _CRASHES if variant.restarts else constants)
            run = partial(_explored, protocol, variant.name, at, ())
            expected = Verdict.HOLDS if (protocol.name, variant.name) in _ALSO_SAFE else Verdict.VIOLATED
            tasks.append(Task(f"{variant.name} {written(at)}", group, run, expected))
    for guard in needed:
        run = partial(_explored, protocol, safe, constants, (guard,))
        tasks.append(Task(f"{safe} without {guard}", group, run, Verdict.VIOLATED))
    return tasks


def _explored(
    protocol: Protocol, variant: str, constants: dict[str, int], drop: tuple[str, ...], told: OnProgress
) -> Outcome:
    system = _system(protocol, variant, constants, *drop)
    found = explore(Query.of(system), "batch", told)
    return Outcome(found.verdict, described(found), found.distinct, "states", counterexample(system, found))


def described(found: Exploration) -> str:
    """An exploration's answer in a line."""
    if found.verdict is Verdict.HOLDS:
        return f"{', '.join(found.query.invariants)} hold; depth {found.depth}"
    if found.path is not None:
        return f"{found.violated} breaks after {len(found.path)} steps"
    return found.reason or ""


def _interpreters(protocol: Protocol, constants: dict[str, int], with_crashes: dict[str, int]) -> list[Task]:
    tasks = []
    for variant in protocol.variants.values():
        at = with_crashes if variant.restarts else constants
        run = partial(_engines_agree, protocol, variant.name, at)
        tasks.append(Task(f"batch and reference, {variant.name} {written(at)}", _agreement(protocol), run))
    return tasks


def _relations(protocol: Protocol, small: dict[str, int], larger: dict[str, int]) -> list[Task]:
    """The symbolic relation against the reference: all steps at small constants, some of each action at larger ones."""
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


def _liveness(protocol: Protocol) -> list[Task]:
    """One task for each property under each fairness; the explored graph is shared."""
    group = f"{protocol.name}: liveness"
    answers: dict[tuple[str, str], Liveness] = {}
    fails = {("final_leader_commits_record", "kip")}
    tasks = []
    for fairness in protocol.fairness:
        for name in protocol.liveness:
            expected = Verdict.VIOLATED if (name, fairness) in fails else Verdict.HOLDS
            run = partial(_live, protocol, name, fairness, answers)
            tasks.append(Task(f"{name} under {fairness}", group, run, expected))
    return tasks


def _live(
    protocol: Protocol, name: str, fairness: str, answers: dict[tuple[str, str], Liveness], told: OnProgress
) -> Outcome:
    if not answers:
        system = _system(protocol, protocol.default_variant, _SMALL)
        for each in check_liveness(system, on_progress=told):
            answers[each.spec.name, each.fairness] = each
    answer = answers[name, fairness]
    if answer.lasso is None:
        return Outcome(answer.verdict, answer.reason or answer.spec.doc, answer.distinct, "states")
    loop = len(answer.lasso.loop)
    ends = f"then a loop of {loop}" if loop else "then nothing happens any more"
    detail = f"fails after {len(answer.lasso.stem)} steps, {ends}"
    return Outcome(answer.verdict, detail, answer.distinct, "states", lasso_story(answer))


def _replay(protocol: Protocol) -> list[Task]:
    """A counterexample of the oldest variant, as a trace: a run of its own variant, and refused by the safe one."""
    group = f"{protocol.name}: replay"
    oldest, safe = next(iter(protocol.variants)), protocol.default_variant
    return [
        Task(f"trace of {oldest} against {oldest}", group, partial(_replayed, protocol, oldest, oldest, ("type_ok",))),
        Task(
            f"trace of {oldest} against {safe}", group, partial(_replayed, protocol, oldest, safe, ()), Verdict.VIOLATED
        ),
    ]


def _replayed(protocol: Protocol, source: str, against: str, invariants: tuple[str, ...], _told: OnProgress) -> Outcome:
    system = _system(protocol, source, _SMALL)
    path = explore(Query.of(system)).path
    assert path is not None, f"{source} has no counterexample at {_SMALL}"
    trace = record(system, path)
    stepper = stepper_for(protocol.traced(against), _SMALL, often=False)
    answer = replay(trace, stepper, invariants=invariants or None)
    detail = f"all {answer.events} events are explained"
    if answer.event is not None:
        detail = f"event {answer.event.step}, {answer.event.call}: {answer.cause}"
    return Outcome(answer.verdict, detail, answer.events, "events")


def _proofs() -> list[Task]:
    """Each proof with no bound, and that it does not go through for a variant that is not safe."""
    tasks = []
    for name, proof in PROOFS.items():
        group = f"{name}: proofs with no bound"
        tasks.append(Task(proof.variant, group, partial(_proved, proof)))
        tasks += [
            Task(variant, group, partial(_not_proved, proof, variant), Verdict.VIOLATED)
            for variant in _UNPROVED.get(name, ())
        ]
    return tasks


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
