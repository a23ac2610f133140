"""``fencepost mutants``: who kills which mutant of the model and of the implementation."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.mutants import Mutant
from ...model.core.mutants import mutants as mutants_of
from ...model.core.protocol import Protocol
from ...model.core.registry import PROTOCOLS
from ...model.explore import Limits
from ...model.explore.result import OnProgress
from ...model.explore.result import Progress as Explored
from ...model.prove.run import OnObligation
from ..harness import all_defects, arguments_for, plan_of
from ..mutants.defect_rows import Judge, defect_rows
from ..mutants.defects import Defect
from ..mutants.explorer import Explorer
from ..mutants.matrix import Matrix, Row
from ..mutants.model_rows import model_rows, unknown_names
from ..mutants.proofs import Proofs
from ..mutants.table import print_matrix
from .explore import protocol_named
from .help_groups import grouped
from .mutants_generated import SECONDS
from .mutants_generated import generated as measure_generated
from .options import Duration, Natural, Percent, Positive, Whole, refuse_idle, refuse_twice, unwrapped
from .output import print_json, stdout
from .progress import progress_bar


@grouped(
    What_to_mutate=(
        "protocol",
        "variant",
        "model",
        "impl",
        "only",
    ),
    Generated_mutants=(
        "generated",
        "source",
        "system",
        "cpu",
        "seed",
    ),
    Limits=(
        "jobs",
        "max_states",
        "at_least",
    ),
    Output=(
        "json",
        "json_lines",
    ),
)
@unwrapped
def mutants(
    *,
    protocol: str | None = None,
    variant: str | None = None,
    model: Annotated[bool, Parameter(negative=())] = False,
    impl: Annotated[bool, Parameter(negative=())] = False,
    only: Annotated[Sequence[str], Parameter(negative=(), consume_multiple=True)] = (),
    seed: Natural | None = None,
    max_states: Positive | None = None,
    generated: Positive | None = None,
    source: Path | None = None,
    system: str | None = None,
    cpu: Duration | None = None,
    jobs: Positive | None = None,
    at_least: Percent | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    json_lines: Annotated[bool, Parameter(negative=())] = False,
    **constants: Whole,
) -> ExitCode:
    """Mutate the model and the implementation, and report which checks kill each mutant.

    In the model each named guard is dropped, and each bound is shifted by one. A mutant is killed if an invariant or a
    liveness property is violated. A surviving mutant needs a reason: implied, if Z3 shows for all constants that it
    takes the same steps; proved, if Z3 shows for all constants that every invariant holds; else argued, in words. The
    implementation gets named defects, each a kind of bug that brokers and consumers have had. A defect is killed by a
    lockstep run or by a simulation that diverges from the model.

    Parameters
    ----------
    protocol
        Protocol: an installed one by its name (fencepost protocols), or yours as file.py:name or module:name. By
        default all that have constants to try mutants at, which takes a quarter of an hour.
    variant
        Variant to mutate; the safe one by default.
    model
        Mutate the model alone.
    impl
        Plant the defects of the implementation alone.
    only
        Names of mutants, or their beginnings (follower_fetch.), to judge alone. With --generated: patterns of file
        names (replica/*.py).
    generated
        Number of mutants to sample from the source of impl/, or from --source.
    source
        Folder of another system's modules, all of which are mutated but tests.
    system
        System made of --source, as for fencepost conform --impl: module:attribute, or file.py:attribute.
    cpu
        Processor time for each generated mutant (20s, 5m); by default 60s.
    seed
        Random seed of the runs, and of generated mutants; by default 0.
    jobs
        Number of mutants at a time; by default as many as there are cores.
    max_states
        Limit of distinct states for a mutant, after which it is unknown; by default 50,000,000.
    at_least
        Percentage of the mutants that are not equivalent to kill; with fewer the exit code is 1.
    json
        Print one JSON object on standard output.
    json_lines
        Print each generated mutant as a JSON object in a line of its own as soon as it is judged, and the counts last.
    """
    if json and json_lines:
        raise BadInput("what is printed is one object or one a line", "--json-lines", "leave it or --json out")
    if generated is not None:
        if source is None and not impl:
            raise BadInput("nothing says of what", "--generated", "add --impl, or --source and --system")
        if source is not None and impl:
            raise BadInput("the mutants are of impl/ or of --source", "--impl", "leave one of the two out")
        if source is None:
            refuse_idle("impl/ is driven by the systems of its protocols", "add --source", system=system)
        mend = "leave it or --generated out"
        refuse_idle("generated mutants are of the source", mend, model=model, variant=variant, max_states=max_states)
        refuse_twice(only=only)
        return measure_generated(
            count=generated,
            source=source,
            system=system,
            protocol=protocol,
            only=only,
            seed=0 if seed is None else seed,
            seconds=SECONDS if cpu is None else cpu,
            jobs=jobs,
            at_least=at_least,
            constants={name.replace("-", "_"): value for name, value in constants.items()},
            json=json,
            json_lines=json_lines,
        )
    refuse_idle(
        "it is for generated mutants", "add --generated", source=source, system=system, cpu=cpu, jobs=jobs,
        at_least=at_least, json_lines=json_lines, **constants,
    )  # fmt: skip
    if variant is not None and protocol is None:
        raise BadInput(f"{variant!r} may be a variant of several protocols", "--variant", "name its --protocol too")
    judged = [each for each in PROTOCOLS.values() if plan_of(each).rungs]
    protocols = [protocol_named(protocol)] if protocol else judged
    if impl and (model or variant is not None):
        raise BadInput("defects of the implementation have no variant", "--impl", "leave --model and --variant out")
    refuse_twice(only=only)
    if impl:
        refuse_idle("no state is explored for the defects", "leave --impl or it out", max_states=max_states)
    if model or variant is not None:
        refuse_idle("no run in lockstep is drawn for the model's mutants", "leave it out", seed=seed)
    limits = Limits(Limits.max_states if max_states is None else max_states)
    variants = [] if impl else [_Job(each, variant, limits) for each in protocols]
    work = [(job, mutants_of(job.explorer.traced)) for job in variants]
    driven = not model and variant is None
    defects = [each for each in all_defects() if driven and each.protocol in [spec.name for spec in protocols]]
    names = [mutant.name for _, which in work for mutant in which] + [each.name for each in defects]
    if not names:
        of = ", ".join(each.name for each in protocols)
        raise BadInput(f"{of} has no mutant of this kind, so nothing would be judged", "--protocol", "name another one")
    for name in only:
        if not any(each.startswith(name) for each in names):
            raise BadInput(
                f"no mutant is named {name!r}", "--only", "give a name, or its beginning, as the table has it"
            )
    wanted = tuple(only) or ("",)
    matrix = _judged(
        [(job, [m for m in which if m.name.startswith(wanted)]) for job, which in work],
        [each for each in defects if each.name.startswith(wanted)],
        0 if seed is None else seed,
    )
    if json:
        print_json(matrix.to_json())
    else:
        print_matrix(matrix, stdout())
    return matrix.exit_code


class _Job:
    """The mutants of one variant."""

    def __init__(self, protocol: Protocol, variant: str | None, limits: Limits) -> None:
        traced = protocol.traced(variant)
        self.explorer = Explorer(traced, limits=limits)
        self.arguments = arguments_for(protocol.name, traced.variant.name)


def _judged(jobs: Sequence[tuple[_Job, list[Mutant]]], defects: Sequence[Defect], seed: int) -> Matrix:
    """Judge all mutants, with progress on standard error."""
    rows: list[Row] = []
    complaints: list[str] = []
    total = sum(len(which) for _, which in jobs) + len(defects)
    with progress_bar() as bar:
        whole = bar.add_task("mutants", total=total)

        def on_mutant(mutant: Mutant | Defect) -> OnProgress:
            bar.update(whole, completed=len(rows), description=f"{len(rows) + 1} of {total}: {mutant.name}", detail="")

            def told(at: Explored) -> None:
                bar.update(whole, detail=f"{at.distinct:,} states")

            return told

        def on_proof(variant: str) -> OnObligation:
            def told(number: int, total: int, _obligation: str) -> None:
                bar.update(whole, detail=f"first the proof of {variant}: {number + 1} of {total}")

            return told

        proofs = Proofs(on_proof=on_proof)
        for job, which in jobs:
            # A loop and not a comprehension, so that the progress counts the rows that there are.
            for row in model_rows(job.explorer, which, job.arguments, proofs, on_mutant):
                rows.append(row)  # noqa: PERF402
            complaints += unknown_names(job.explorer.traced, job.arguments)
        for row in defect_rows(Judge(), defects, seed, on_mutant):
            rows.append(row)  # noqa: PERF402
    return Matrix.of(rows, complaints)
