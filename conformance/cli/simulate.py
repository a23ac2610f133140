"""``fencepost simulate``: random walks of a model or an implementation as a corpus, with faults where asked for."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.registry import PROTOCOLS
from ...traces.corpus.faults import ALL, faults_named
from ...traces.corpus.manifest import PLANTED
from ...traces.corpus.output import refuse_taken
from ...traces.corpus.plan import Plan, make_plan, too_few
from ...traces.corpus.simulate import Simulated, Simulation, simulation, walker
from ...traces.corpus.simulate import simulate as write
from ...traces.run_report import Json
from ...traces.text import counted
from ..lockstep.corpus import adapter_variant, runs_of
from .explore import protocol_named
from .help_groups import grouped
from .masters import WALKED, WALKED_IMPL, Work, master_for, refuse_master
from .options import Positive, Whole, unwrapped
from .output import exploring, files_done, laid_out, note, print_json, stdout, written


@grouped(
    Model=(
        "protocol",
        "variant",
        "impl",
    ),
    Corpus=(
        "out",
        "traces",
        "events",
        "seed",
        "files",
    ),
    Faults=(
        "faults",
        "rate",
    ),
    Spark_and_output=(
        "master",
        "json",
    ),
)
@unwrapped
def simulate(
    protocol: str,
    *,
    out: Path,
    variant: str | None = None,
    traces: Positive = 1000,
    events: Positive = 100,
    seed: Whole = 0,
    files: Positive | None = None,
    faults: Annotated[Sequence[str], Parameter(negative=())] = (),
    rate: float = 0.01,
    impl: str | None = None,
    master: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
    **constants: Whole,
) -> ExitCode:
    """Write a corpus of seeded random walks of a model. The same seed gives the same corpus, byte for byte.

    The protocol's constants are options too, as for explore. A walk ends early if no action is enabled: larger
    constants, above all --max-leader-epoch, give longer walks.

    Parameters
    ----------
    protocol
        Protocol: an installed one by its name (fencepost protocols), or yours as file.py:name or module:name.
    variant
        Variant to walk; the safe one by default.
    impl
        Implementation to walk rather than the model: an adapter as in fencepost conform (memory, disk, module:attribute
        or file.py:attribute), checked against its own variant by default; faults of network and disk come with it.
    out
        Folder of the corpus, which is not there yet; with a cluster, on storage that all workers share.
    traces
        Number of walks.
    events
        Number of steps of a walk at most.
    seed
        Random seed.
    files
        Number of files; by default so many that each holds about a million events.
    faults
        Fault to plant (repeatable): a mutant by its name in fencepost mutants, another variant by its name, or all. A
        planted trace is a walk of the variant up to a step that only the fault takes so, and continues under the fault.
        planted.jsonl in the corpus lists what was planted where.
    rate
        Share of traces that are planted, exactly (rounded to a whole trace), the faults by turns.
    master
        Spark master that runs the tasks: local[N], local[*] or spark://HOST:PORT; serial: this process, without Spark.
        By default serial or local[*], by the size of the corpus; standard error names it.
    json
        Print one JSON object on standard output.
    """
    start = time.perf_counter()
    values = {name.replace("-", "_"): value for name, value in constants.items()}
    if impl is not None:
        if faults:
            raise BadInput("faults are planted in walks of the model alone", "--faults", "leave --impl out")
        protocol = protocol_named(protocol).name
        variant = adapter_variant(impl, protocol, variant)
    asked = simulation(protocol, variant, values, traces, events, seed, files)
    asked = replace(asked, walked=impl or asked.walked)
    refuse_taken(out)
    refuse_master(master)
    plan = _plan(asked, tuple(faults), rate) if faults else None
    walked = Work(asked.traces * asked.events, "steps at most", WALKED if impl is None else WALKED_IMPL)
    master = master_for(master, walked)
    with files_done("simulating") as told:
        done = write(asked, out, plan, master, told, None if impl is None else runs_of(impl))
    for why, names in _skipped(plan).items():
        note(f"not planted, as {why}: {'; '.join(names)}")
    written(out)
    _tell(asked, done, plan, out, time.perf_counter() - start, json)
    return ExitCode.DONE


def _plan(asked: Simulation, names: tuple[str, ...], rate: float) -> Plan:
    if not 0 < rate <= 1:
        raise BadInput(f"{rate:g} is no share of the traces", "--rate", "give a number above 0, at most 1")
    traced = PROTOCOLS[asked.protocol].traced(asked.variant)
    faults = faults_named(traced, names)
    # As it was written: 0.1 of a thousand is a hundred.
    planted = round(Fraction(str(rate)) * asked.traces)
    named = {name for name in names if name != ALL}
    if planted < len(named):
        raise too_few(planted, asked.traces, len(named))
    with exploring("where faults show") as told:
        return make_plan(walker(asked, faults), faults, names, asked.traces, planted, asked.events, told)


def _skipped(plan: Plan | None) -> dict[str, list[str]]:
    """Faults that could not be planted, by the reason."""
    found: dict[str, list[str]] = {}
    for name, why in plan.skipped.items() if plan else ():
        found.setdefault(why, []).append(name)
    return found


def _tell(asked: Simulation, done: Simulated, plan: Plan | None, out: Path, seconds: float, json: bool) -> None:
    planted = dict.fromkeys(plan.faults if plan else (), 0)
    for each in done.planted:
        planted[each.fault] += 1
    if json:
        told: dict[str, Json] = {
            "protocol": asked.protocol,
            "variant": asked.variant,
            "constants": dict(asked.constants),
            "simulated": asked.walked,
            "seed": asked.seed,
            "out": str(out),
            "files": len(done.files),
            "traces": done.traces,
            "events": done.events,
            "ended_early": done.ended,
            "planted": dict(planted),
            "not_planted": dict(plan.skipped) if plan else {},
            "seconds": round(seconds, 3),
        }
        print_json(told)
        return
    console = stdout()
    constants = ", ".join(f"{name} {value}" for name, value in asked.constants)
    console.print(f"{asked.protocol} {asked.variant} ({constants}), seed {asked.seed}", markup=False, soft_wrap=True)
    console.print(
        f"{laid_out(done.traces, done.events, len(done.files))}, {seconds:.1f} s",
        markup=False,
    )
    if done.ended:
        console.print(f"{counted(done.ended, 'trace')} ended before step {asked.events:,}: nothing more could happen")
    if plan:
        traces = len(done.planted)
        console.print(
            f"{counted(traces, 'trace')} with one of {counted(len(planted), 'fault')}, see {out / PLANTED}",
            markup=False,
            soft_wrap=True,
        )
