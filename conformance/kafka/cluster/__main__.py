"""Carry out a finding on a cluster of real brokers, and tell it step by step.

    python -m fencepost.conformance.kafka.cluster k11|k12|k14|h1|v6|v7|tk1|tk4|tk17 [--control]
        [--release R] [--keep D] [--loggers]
    python -m fencepost.conformance.kafka.cluster quorum|late-voter --keep D [--release R]
    python -m fencepost.conformance.kafka.cluster chaos --keep D [--for 10m] [--seed N] [--release R]

Exit codes: 0 the promise was kept, 1 it was broken, 2 bad input (no Maven, no JVM), 3 the cluster did not do in time
what the story needs.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Literal

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
from .h1 import Gaps, h1
from .k11 import k11
from .k12 import LAG_MS, k12
from .k14 import k14
from .loss_check import Lost
from .quorum import record_late_voter, record_quorum
from .stage import PATIENCE_MS, Stage
from .tiers import Deleted, settings
from .tk1 import tk1
from .tk4 import tk4
from .tk17 import tk17
from .v6 import Late, v6
from .v7 import Untruncated, v7

app = cyclopts.App(
    name="python -m fencepost.conformance.kafka.cluster",
    help="Carry out a finding of docs/findings/ on Apache Kafka's own brokers.",
)


@app.default
def command(
    finding: Literal["k11", "k12", "k14", "h1", "v6", "v7", "tk1", "tk4", "tk17", "quorum", "late-voter", "chaos"],
    /,
    *,
    control: Annotated[bool, cyclopts.Parameter(negative=())] = False,
    release: str = RELEASE,
    keep: Path | None = None,
    loggers: Annotated[bool, cyclopts.Parameter(negative=())] = False,
    seconds: Annotated[Duration, cyclopts.Parameter(name="--for")] = 600.0,
    seed: int = 0,
) -> ExitCode:
    """Carry it out.

    Parameters
    ----------
    finding
        k11, k12: an acknowledged record is lost, in two ways. h1: a consumer passes over a record in silence, beside
        two control runs; v6: so it does where an answer comes late; v7: it is told of a truncation that never was.
        tk1, tk4: acknowledged records of a tiered topic are deleted, on disks before they are uploaded, or in remote
        storage; tk17: a leader of one lets go of them. k14: a follower is fenced in the same leader epoch, by which
        nothing is lost. quorum: of three controllers alone a follower and the leader are killed; late-voter: one of
        them starts when the others have cleaned their logs, and fetches a snapshot (70 s). They print what
        `fencepost ingest --kafka-log --protocol snapshots` reads, to DIR/controller-1.log and so on. chaos: load on one
        topic after another while brokers are killed, stopped and elected, and K11 half-way; with --loggers implied.
    control
        The control run of k11, k12, v6, v7, tk1, tk4 or tk17 in its stead, in which broker 1 replays each record of the
        metadata log in time, nothing comes late, nobody is asked who does not know the topic, remote storage does not
        fail, or no record is deleted before.
    release
        The release of Apache Kafka.
    keep
        A new folder for the nodes' directories and output, and for copies of the brokers' directories on the way.
    loggers
        Have the nodes print what `fencepost ingest --kafka-log` reads; with --keep, to DIR/broker-1.out and so on.
    seconds
        How long chaos lasts (60s, 10m).
    seed
        Of what goes wrong in chaos.
    """
    try:
        if control and finding not in ("k11", "k12", "v6", "v7", "tk1", "tk4", "tk17"):
            why = "h1 has its control runs beside it" if finding == "h1" else f"{finding} loses nothing"
            raise BadInput(why, "--control", "leave it out")
        if keep is not None and keep.exists():
            raise BadInput("it exists already", str(keep), "name a new folder with --keep, or remove that one")
        if finding in ("quorum", "late-voter", "chaos"):
            if keep is None:
                raise BadInput("what it is for are its nodes' logs", finding, "name a new folder with --keep")
            if finding != "chaos":
                record = record_quorum if finding == "quorum" else record_late_voter
                record(keep, say=_say, release=release)
                return ExitCode.DONE
            return exit_code("violated" if _chaos(release, keep, seconds, seed) else "holds")
        lag_ms = LAG_MS if finding in ("k12", "v7") else PATIENCE_MS
        tiered = finding in ("tk1", "tk4", "tk17")
        of_all = settings(release) if tiered else None
        with Stage(release, keep, lag_ms, options=logger_options() if loggers else (), of_all=of_all) as stage:
            print(f"{ARTIFACT}:{stage.jars.version} on {stage.jvm}", flush=True)
            copies = None if keep is None else stage.home / "copies"
            found: Lost | Gaps | Late | Untruncated | Deleted
            if finding == "h1":
                found = h1(stage, finding, say=_say)
            elif finding == "v6":
                found = v6(stage, finding, held=not control, say=_say)
            elif finding == "v7":
                found = v7(stage, finding, held=not control, say=_say)
            elif finding == "tk17":
                found = tk17(stage, finding, deletes=not control, say=_say)
            elif tiered:
                found = (tk1 if finding == "tk1" else tk4)(stage, finding, fails=not control, say=_say)
            elif finding == "k14":
                found = k14(stage, finding, say=_say, copies=copies)
            else:
                story = k11 if finding == "k11" else k12
                found = story(stage, finding, held=not control, say=_say, copies=copies)
            print(f"{'violated' if found.lost else 'holds'}: {found.words()}", flush=True)
            return exit_code("violated" if found.lost else "holds")
    except BadInput as wrong:
        print(f"fencepost: {wrong}", file=sys.stderr)
        return ExitCode.BAD_INPUT
    except FencepostError as failed:
        print(f"fencepost: {failed}", file=sys.stderr)
        return ExitCode.UNKNOWN


def _chaos(release: str, keep: Path, seconds: float, seed: int) -> bool:
    """Gives whether a record is lost that nobody wanted to lose: how, the logs say, which are what it is for."""
    with Stage(release, keep, CHAOS_LAG_MS, SETTINGS, logger_options()) as stage:
        print(f"{ARTIFACT}:{stage.jars.version} on {stage.jvm}, seed {seed}", flush=True)
        found, lost = chaos(stage, seconds, seed, say=_say)
    print(f"K11: {lost.words()}", flush=True)
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
