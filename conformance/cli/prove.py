"""``fencepost prove``: the promises of a protocol for any number of replicas, offsets and leader epochs."""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Annotated

import z3
from cyclopts import Parameter
from rich.console import Console
from rich.table import Table

from ...model.core.enum_value import plain_params
from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.registry import REGISTRY
from ...model.explore.result import Exploration, Verdict
from ...model.prove.cores import find_cores, written_cores
from ...model.prove.counterexample import Shown, breaking_run, shown
from ...model.prove.obligations import Obligations
from ...model.prove.proof import Proof
from ...model.prove.proof_for_variant import AttachedProof, attach
from ...model.prove.run import WORKERS, ProofRun, Result
from ...model.prove.run import prove as run_proof
from ...model.prove.specialize import FixedProof
from ...traces.report.junit import write_junit
from ...traces.report.obligation import Obligation
from ...traces.report.terminal import Terminal
from ...traces.text import counted
from ..check.task import word
from ..check.unproved import print_case, print_failed
from .annotations import annotate, place_of
from .help_groups import grouped
from .options import Natural, refuse_twice, unwrapped
from .output import print_json, print_verdict, refuse_unwritable, stdout, table, write_text, written
from .progress import progress_bar
from .report_files import ReportFiles

UNPROVED = Path("unproved")
"""Where obligations that stay unknown are written if no folder is named."""


@grouped(
    Model=(
        "protocol",
        "variant",
        "drop",
    ),
    Obligations=(
        "action",
        "conjunct",
        "seed",
    ),
    Output=(
        "json",
        "junitxml",
        "smt_out",
        "write_cores",
    ),
)
@unwrapped
def prove(
    protocol: str | None = None,
    *,
    variant: str | None = None,
    action: Annotated[Sequence[str], Parameter(negative=())] = (),
    conjunct: Annotated[Sequence[str], Parameter(negative=())] = (),
    drop: Annotated[Sequence[str], Parameter(negative=())] = (),
    seed: Natural = 0,
    smt_out: Path | None = None,
    write_cores: Annotated[bool, Parameter(negative=())] = False,
    junitxml: Path | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> ExitCode:
    """Prove a protocol's invariants for any number of replicas, offsets, records and leader epochs.

    For each action and each conjunct of an inductive invariant, Z3 must refute that the action can break the conjunct.
    An obligation that is not refuted is not proved: the prover then searches a finite counterexample to induction.

    Parameters
    ----------
    protocol
        Protocol: an installed one by its name (fencepost protocols), or yours as file.py:name or module:name; by
        default each that has a proof.
    variant
        Variant to try the proof on, by its own proof if it has one; by default the variant of the protocol's proof.
    drop
        Guard to leave out, written ACTION.GUARD (repeatable).
    action
        Action whose obligations to prove, or "initial", or "follows" (repeatable; default all).
    conjunct
        Invariant or lemma whose obligations to prove (repeatable; default all).
    seed
        Random seed of Z3. No verdict depends on it.
    json
        Print one JSON object on standard output.
    junitxml
        JUnit XML file to write, with a test case for each obligation.
    smt_out
        Folder to write every obligation to as SMT-LIB (ACTION.CONJUNCT.smt2), for other solvers.
    write_cores
        Find the hypotheses that each obligation needs, and write them into the file that the proof names
        (Proof(cores=...)), which makes later proofs faster. Takes some twenty times as long as the proof.
    """
    refuse_unwritable(junitxml)
    refuse_twice(action=action, conjunct=conjunct, drop=drop)
    proofs = proofs_there_are() if protocol is None else list(REGISTRY.named(protocol).require_proofs(variant))
    if protocol is None and (variant or drop or action or conjunct):
        raise BadInput(
            "--variant, --drop, --action and --conjunct are about one protocol",
            "PROTOCOL",
            f"name it: {', '.join(proof.protocol.name for proof in proofs)}",
        )
    if write_cores:
        if drop or action or conjunct or any(variant not in (None, proof.variant) for proof in proofs):
            how = f"leave out the other options, or name its own: --variant {proofs[0].variant}"
            raise BadInput("cores are of a whole proof, on its own variant", "--write-cores", how)
        for proof in proofs:
            _write_cores(proof)
    # A lemma may be one proof's alone, of those that there are at other constants.
    proofs = [proof for proof in proofs if {*conjunct} <= _conjuncts(proof)] or proofs
    chosen = [attach(proof, proof.protocol.traced(variant or proof.variant).drop(*drop)) for proof in proofs]
    # For other solvers an obligation has all its hypotheses.
    runs = [_carried_out(attached, action, conjunct, seed, cores=smt_out is None) for attached in chosen]
    for run in runs:
        if not run.results:
            raise BadInput("the proof has no obligation of these, so nothing is asked", "--conjunct", "name others")
    several = len({run.attached.proof.variant for run in runs}) < len(runs)
    files = ReportFiles()
    for run in runs:
        _save(run, smt_out, files, several=several)
    results = [each for run in runs for each in obligations(run)]
    if junitxml is not None:
        files.write(junitxml, lambda: write_junit(junitxml, results, "fencepost prove"))
    for run in runs:
        _annotate(run)
    if json:
        each = [_to_json(run, drop) for run in runs]
        print_json({"verdict": _overall(runs).value, "z3": z3.get_version_string(), "seed": seed, "proofs": each})
    else:
        for run in runs:
            _print(run, stdout())
    return files.exit_code(_overall(runs).exit_code)


def _conjuncts(proof: Proof) -> set[str]:
    """The names of what a proof proves."""
    return {*proof.protocol.invariant_names, *proof.lemmas}


def proofs_there_are() -> list[Proof]:
    """All proofs of all protocols."""
    return [proof for each in REGISTRY.values() for proof in each.find_proofs()]


def _write_cores(proof: Proof) -> None:
    """Find a proof's unsat cores, and write them into its file. Raises BadInput where it names none."""
    if proof.cores is None:
        raise BadInput(f"the proof of {proof.variant} names no file", "--write-cores", "give it one: Proof(cores=...)")
    refuse_unwritable(proof.cores)
    obligations = Obligations(attach(proof, proof.protocol.traced(proof.variant)))
    with progress_bar() as bar:
        task = bar.add_task(f"{proof.protocol.name} {proof.variant}, cores", total=None)

        def told(number: int, of: int, name: str) -> None:
            bar.update(task, detail=f"{number + 1} of {of}: {name}")

        found = list(find_cores(obligations, obligations.names(), told))
    cores = {(each.action, each.conjunct): each.core for each in found}
    write_text(proof.cores, written_cores(cores, proof.variant))
    written(proof.cores)


def _carried_out(
    attached: AttachedProof, actions: Sequence[str], conjuncts: Sequence[str], seed: int, *, cores: bool
) -> ProofRun:
    with progress_bar() as bar:
        task = bar.add_task(f"{attached.base.protocol.name} {attached.base.variant.name}", total=None)

        def told(number: int, of: int, name: str) -> None:
            bar.update(task, detail=f"{number + 1} of {of}: {name}")

        return run_proof(
            attached,
            actions=actions,
            conjuncts=conjuncts,
            seed=seed,
            workers=WORKERS,
            cores=cores,
            on_obligation=told,
        )


def obligations(run: ProofRun) -> list[Obligation]:
    """One for each obligation of the proof, and one for each action that must be able to happen at all."""
    at = f", {run.attached.proof.told}" if isinstance(run.attached.proof, FixedProof) else ""
    group = f"{run.attached.base.protocol.name} {run.attached.base.variant.name}, with no bound{at}"
    results = []
    for each in run.results:
        case, detail = "", each.reason
        if each.counterexample is not None:
            found = shown(run.attached, each.counterexample)
            detail = detail or f"{found.step} breaks {found.broken}"
            case = _case_text(found)
        verdict, seconds = word(each.verdict), each.answer.seconds
        results.append(
            Obligation(each.obligation.name, group, verdict, "holds", detail, 1, "obligation", seconds, None, case)
        )
    for witness in run.witnesses:
        met = witness.right
        detail = "" if met else "no finite model meets its guards and all conjuncts"
        name = f"{witness.action} {'never happens' if witness.never else 'can happen'}"
        results.append(Obligation(name, group, "holds" if met else "unknown", "holds", detail, 1, "model", 0.0))
    return results


def _case_text(case: Shown) -> str:
    """A counterexample to induction as text."""
    out = io.StringIO()
    print_case(case, Terminal(out, plain=True))
    return out.getvalue()


def _annotate(run: ProofRun) -> None:
    """Annotations for CI: each broken promise where it is written, a lemma at its action; the rest in one."""
    protocol = run.attached.base.protocol
    name = f"{protocol.name} {run.attached.base.variant.name}, with no bound"
    unknown = [each for each in run.failed if each.counterexample is None]
    for each in run.failed:
        if each.counterexample is not None:
            place = place_of(protocol, each.obligation.conjunct, each.obligation.action)
            text = _case_text(shown(run.attached, each.counterexample))
            annotate(f"{name}: {each.obligation.name} is violated", text, place)
    if unknown:
        names = ", ".join(each.obligation.name for each in unknown)
        annotate(f"{name}: unknown", f"not proved: {names}", failed=False)


def _overall(runs: Sequence[ProofRun]) -> Verdict:
    verdicts = {run.verdict for run in runs}
    return next((v for v in (Verdict.VIOLATED, Verdict.UNKNOWN) if v in verdicts), Verdict.HOLDS)


def _save(run: ProofRun, folder: Path | None, files: ReportFiles, *, several: bool) -> None:
    """Write all obligations into the folder named; with none named, those that stay unknown.

    ``several``: there are proofs of one variant, at other constants, which the names of their files say.
    """
    proof = run.attached.proof
    at = f".{proof.told.replace(' ', '-')}" if several and isinstance(proof, FixedProof) else ""
    kept = run.results if folder else [r for r in run.results if r.verdict is Verdict.UNKNOWN]
    if not kept:
        return
    target = folder or UNPROVED
    texts = {target / f"{result.obligation.name}{at}.smt2": result.obligation.smt for result in kept}
    if not files.write(target, lambda: target.mkdir(exist_ok=True), quiet=True):
        return
    quiet = folder is not None
    done = [files.write(path, partial(write_text, path, text), quiet=quiet) for path, text in texts.items()]
    if folder is not None and all(done):
        written(folder)


def _to_json(run: ProofRun, dropped: Sequence[str]) -> dict[str, object]:
    attached = run.attached
    broken = breaking_run(attached) if run.verdict is Verdict.VIOLATED else None
    return {
        "protocol": attached.base.protocol.name,
        "variant": attached.base.variant.name,
        "dropped": list(dropped),
        "verdict": run.verdict.value,
        "seconds": round(run.seconds, 3),
        "promises": [{"name": c.name, "says": c.doc} for c in attached.conjuncts.values() if c.promise],
        "lemmas": [{"name": c.name, "says": c.doc} for c in attached.conjuncts.values() if not c.promise],
        **_limits(attached.proof),
        "obligations": [
            {
                "action": r.obligation.action,
                "conjunct": r.obligation.conjunct,
                "verdict": r.verdict.value,
                "seconds": round(r.answer.seconds, 4),
                "resources": r.answer.resources,
                "reason": r.reason or None,
                "counterexample": None if r.counterexample is None else shown(attached, r.counterexample).to_json(),
            }
            for r in run.results
        ],
        "witnesses": {
            w.action: ({"never": True} if w.never else None)
            if w.found is None
            else {"constants": dict(w.found.constants), "params": plain_params(w.found.params)}
            for w in run.witnesses
        },
        "run": None if broken is None else _run_to_json(broken),
    }


def _limits(proof: Proof) -> dict[str, object]:
    """Of a proof at some values of constants alone: these values, and the promises that it leaves out."""
    return {"at": proof.constants, "not_proved": proof.without} if isinstance(proof, FixedProof) else {}


def _run_to_json(found: Exploration) -> dict[str, object]:
    steps = [
        {"action": step.instance.action, "params": plain_params(step.instance.params)} for step in found.path or ()
    ]
    return {"violated": found.violated, "constants": found.query.system.constants, "steps": steps}


def _print(run: ProofRun, out: Console) -> None:
    attached = run.attached
    print_failed(run, out)
    for witness in run.witnesses:
        if not witness.right:
            out.print(f"{witness.action}: no finite model meets its guards and all conjuncts", markup=False)
    name = f"{attached.base.protocol.name} {attached.base.variant.name}"
    print_verdict(out, f"{name}, with no bound", run.verdict.value)
    proved = len(run.results) - len(run.failed)
    asked = dict.fromkeys(r.obligation.conjunct for r in run.results)
    promises = [c for c in asked if attached.conjuncts[c].promise]
    out.print(
        f"{proved:,} of {len(run.results):,} obligations proved, of {counted(len(promises), 'promise')} and "
        f"{counted(len(asked) - len(promises), 'lemma')}; "
        f"Z3 {z3.get_version_string()}, seed {run.seed}, {run.seconds:.2f} s",
        soft_wrap=True,
    )
    if isinstance(attached.proof, FixedProof):
        out.print(attached.proof.told, markup=False, soft_wrap=True)
    out.print(_table(run))
    for promise in promises:
        out.print(f"{promise}: {attached.conjuncts[promise].doc}", markup=False, soft_wrap=True)


def _table(run: ProofRun) -> Table:
    rows = table("action", "proved", "of", "seconds", "slowest", "can happen at", "verdict", right=range(1, 5))
    witnesses = {witness.action: witness.found for witness in run.witnesses}
    never = {witness.action for witness in run.witnesses if witness.never}
    by_action: dict[str, list[Result]] = {}
    for result in run.results:
        by_action.setdefault(result.obligation.action, []).append(result)
    for action, results in by_action.items():
        found = {result.verdict for result in results}
        verdict = next((v for v in (Verdict.VIOLATED, Verdict.UNKNOWN) if v in found), Verdict.HOLDS)
        seconds = [result.answer.seconds for result in results]
        witness = witnesses.get(action)
        rows.add_row(
            action,
            str(sum(result.verdict is Verdict.HOLDS for result in results)),
            str(len(results)),
            f"{sum(seconds):.2f}",
            f"{max(seconds):.3f}",
            "/".join(map(str, witness.constants.values())) if witness else "never" if action in never else "",
            verdict.value,
        )
    return rows
