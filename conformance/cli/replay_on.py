"""``fencepost replay --on``: a story of the model, carried out on real processes."""

from __future__ import annotations

from pathlib import Path

from ...model.core.exit_code import ExitCode
from ...model.explore.result import Verdict
from ...traces.kafka.cluster import RecordingError
from ...traces.read import read_trace
from ...traces.replay import partial_reason
from ..kafka.cluster.executors import carry
from ..kafka.cluster.trace_executor import Carried, CarriedOut
from ..kafka.jars import RELEASE
from .output import note, print_json, print_verdict, stdout


def replay_on(trace: Path, name: str, *, json: bool) -> ExitCode:
    """Carry the story out, and tell it step by step; gives the exit code."""
    story = read_trace(trace)
    out = stdout()

    def say(number: int, told: Carried) -> None:
        if json:
            return
        for line in lines_of(number, told):
            out.print(line, markup=False, soft_wrap=True)

    try:
        found = carry(name, story, str(trace), RELEASE, say)
        if found.verdict is Verdict.HOLDS and story.header.partial is not None:
            found.verdict, found.reason = Verdict.UNKNOWN, partial_reason(story.header.partial)
    except RecordingError as failed:
        note(f"fencepost: {failed}")
        return Verdict.UNKNOWN.exit_code
    header = story.header
    if json:
        told = {"trace": str(trace), "protocol": header.protocol, "variant": header.variant, "on": name}
        print_json(told | _json(found))
    else:
        if found.reason:
            out.print(found.reason, markup=False, soft_wrap=True)
        verdict = found.verdict.value
        if found.verdict is Verdict.HOLDS:
            verdict += f", all {len(found.steps)} steps were carried out"
        print_verdict(out, f"{trace} on {name}, Apache Kafka {RELEASE}", verdict)
    return found.verdict.exit_code


def lines_of(number: int, told: Carried) -> list[str]:
    """A step as text."""
    besides = [f"besides: {each}" for each in told.besides]
    return [f"{number:3}  {told.call}", *(f"     {line}" for line in (told.done, *besides, *told.seen))]


def _json(found: CarriedOut) -> dict[str, object]:
    return {
        "verdict": found.verdict.value,
        "reason": found.reason or None,
        "steps": [each.to_json() for each in found.steps],
    }
