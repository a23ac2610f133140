"""Execute a finding on a cluster of real brokers, and report each step.

    python -m fencepost.conformance.kafka.cluster FINDING [--control] [--release R] [--keep D] [--loggers]
    python -m fencepost.conformance.kafka.cluster quorum|late-voter --keep D [--release R]
    python -m fencepost.conformance.kafka.cluster chaos --keep D [--for 10m] [--seed N] [--release R]

The findings are the files of ``findings/``. Exit codes: 0 the invariant held, 1 it was violated, 2 bad input (no Maven,
no JVM), 3 the cluster did not do in time what a step waits for.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import cyclopts

from ....model.core.errors import BadInput, FencepostError
from ....model.core.exit_code import ExitCode, exit_code
from ....traces.kafka.maven import ARTIFACT
from ....traces.kafka.server_log.lines import logger_options
from ....traces.run_app import run_module
from ...cli.options import Duration
from ..jars import RELEASE
from .chaos import LAG_MS as CHAOS_LAG_MS
from .chaos import SETTINGS, chaos
from .finding import CONTROL, FAULT, Finding, all_findings
from .finding_executor import execute
from .quorum import record_late_voter, record_quorum
from .stage import Stage
from .tiers import settings

RECORDINGS: Final = ("quorum", "late-voter", "chaos")
"""What is run for its nodes' logs."""


def _help() -> str:
    listed = "\n".join(f"- {id_}: {each.title}" for id_, each in all_findings().items())
    return f"Execute a finding of docs/findings/ on Apache Kafka's own brokers.\n\n{listed}"


app = cyclopts.App(name="python -m fencepost.conformance.kafka.cluster", help=_help(), help_format="markdown")


@app.default
def command(
    finding: str,
    /,
    *,
    control: Annotated[bool, cyclopts.Parameter(negative=())] = False,
    release: str = RELEASE,
    keep: Path | None = None,
    loggers: Annotated[bool, cyclopts.Parameter(negative=())] = False,
    seconds: Annotated[Duration, cyclopts.Parameter(name="--for")] = 600.0,
    seed: int = 0,
) -> ExitCode:
    """Execute it.

    Parameters
    ----------
    finding
        A finding's id, or one of three recordings, which write their nodes' logs to DIR of --keep. quorum: of three
        controllers alone a follower and the leader are killed; late-voter: one of them starts when the others have
        cleaned their logs, and fetches a snapshot (70 s): `fencepost ingest --kafka-log --protocol snapshots` reads
        DIR/controller-1.log and so on. chaos: load on one topic after another while brokers are killed, stopped and
        elected, and K11 (a leader counts a truncated record) half-way; with --loggers implied.
    control
        The finding's control run.
    release
        The release of Apache Kafka.
    keep
        A new folder for the nodes' directories and output, and for copies of the brokers' directories on the way.
    loggers
        Have the nodes print what `fencepost ingest --kafka-log` reads; with --keep, to DIR/broker-1.out and so on.
    seconds
        Duration of chaos (60s, 10m).
    seed
        Random seed of chaos.
    """
    try:
        known = all_findings()
        if finding not in known and finding not in RECORDINGS:
            raise BadInput(
                f"no finding is called {finding!r}", "FINDING", f"name one of {', '.join((*known, *RECORDINGS))}"
            )
        if control and (finding in RECORDINGS or CONTROL not in known[finding].runs):
            what = finding if finding in RECORDINGS else str(known[finding])
            raise BadInput(f"{what} has no control run of its own", "--control", "leave it out")
        if keep is not None and keep.exists():
            raise BadInput("it exists already", str(keep), "name a new folder with --keep, or remove that one")
        if finding in RECORDINGS:
            if keep is None:
                raise BadInput("what it is for are its nodes' logs", finding, "name a new folder with --keep")
            if finding != "chaos":
                record = record_quorum if finding == "quorum" else record_late_voter
                record(keep, say=_say, release=release)
                return ExitCode.DONE
            return exit_code("violated" if _chaos(release, keep, seconds, seed) else "holds")
        return _finding(known[finding], CONTROL if control else FAULT, release, keep, loggers=loggers)
    except BadInput as wrong:
        print(f"fencepost: {wrong}", file=sys.stderr)
        return ExitCode.BAD_INPUT
    except FencepostError as failed:
        print(f"fencepost: {failed}", file=sys.stderr)
        return ExitCode.UNKNOWN


def _finding(finding: Finding, run: str, release: str, keep: Path | None, *, loggers: bool) -> ExitCode:
    of_all = settings(release) if finding.tiered else None
    options = logger_options() if loggers else ()
    with Stage(release, keep, finding.lag_ms, options=options, of_all=of_all) as stage:
        _say(f"{ARTIFACT}:{stage.jars.version} on {stage.jvm}")
        _say(str(finding) if run == FAULT else f"{finding}; control run: {finding.control}")
        copies = None if keep is None else stage.home / "copies"
        result = execute(finding, stage, run, say=_say, copies=copies)
    _say(f"{result.verdict.value}: {result.words()}")
    return result.verdict.exit_code


def _chaos(release: str, keep: Path, seconds: float, seed: int) -> bool:
    """Gives whether a record is lost that nobody wanted to lose: how, the logs say, which are what it is for."""
    with Stage(release, keep, CHAOS_LAG_MS, SETTINGS, logger_options()) as stage:
        print(f"{ARTIFACT}:{stage.jars.version} on {stage.jvm}, seed {seed}", flush=True)
        found, lost = chaos(stage, seconds, seed, say=_say)
    print(f"{lost.finding}: {lost.words()}", flush=True)
    records = sum(len(each.acknowledged) for each in found)
    gone = sum(len(each.lost) for each in found)
    print(f"{records:,} records were acknowledged on {len(found)} topics, and {gone} of them are lost", flush=True)
    return gone > 0


def _say(line: str) -> None:
    print(line, flush=True)


def main() -> None:
    """Run the command line; SIGTERM ends it as an interrupt does, through every ``finally``."""
    run_module(app)


if __name__ == "__main__":
    main()
