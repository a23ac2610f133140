"""A process that has everything imported and computed, and makes a child of itself for each mutant.

It reads one JSON object a line from its input: first the source and its drives, then one task after the other; and
writes one for each. A child has limits of processor time and of memory, may not sleep for long, and may fall over, hang
or end as it likes: that is an answer too.
"""

from __future__ import annotations

import json
import os
import resource
import select
import signal
import sys
import time
import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import psutil

from ....model.core.errors import BadInput
from ....traces.run_report import Json
from .drawing import Mutant
from .driving import Drive, Grounds
from .judging import Judgement, Killer, Run, judge, parts_too
from .recording import Recording, compare, record
from .source import Source

MEMORY: Final = 2 << 30
"""Bytes that a child may have beyond what it began with: one that appends for ever must not take the machine."""
ASLEEP: Final = 60.0
"""Seconds on the wall for which a child may do next to nothing, before it is taken for one that waits for ever."""
LOOK: Final = 2.0
_LITTLE: Final = 0.05
_OVER: Final = 10.0
"""Seconds of the processor beyond those that judging takes note of itself."""


def main() -> None:
    """Serve until the input ends."""
    head = json.loads(sys.stdin.readline())
    source = Source(Path(head["folder"]), tuple(head["files"]), head["ours"])
    grounds = Grounds()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # who started it ends it
    if source.is_ours:
        for drive in head["drives"]:
            grounds.prepare(Drive.from_json(drive))
    _say({"ready": True})
    for line in sys.stdin:
        _say(_in_a_child(json.loads(line), source, grounds))


def _say(told: Mapping[str, Json]) -> None:
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def _in_a_child(task: Mapping[str, Any], source: Source, grounds: Grounds) -> Mapping[str, Json]:
    """What came of a task: an ``answer``, ``input`` (a BadInput's three texts), ``raised``, or how the child ended."""
    out, into = os.pipe()
    seconds = float(task["seconds"])
    child = os.fork()
    if child == 0:
        os.close(out)
        _work(task, source, grounds, into, seconds)
    os.close(into)
    try:
        return awaited(child, out)
    finally:
        os.close(out)
        # Its group: a system may have started processes of its own.
        _kill_group(child)


def awaited(child: int, out: int) -> Mapping[str, Json]:
    """What a child says. One that works ends by its limit, however slow the machine; one that waits is waited for."""
    said, used, since = b"", 0.0, time.monotonic()
    while True:
        if not select.select([out], [], [], LOOK)[0]:
            now, before = _used(child), used
            if now > before + _LITTLE:
                used, since = now, time.monotonic()
            elif time.monotonic() - since > ASLEEP:
                _kill_group(child)
                os.waitpid(child, 0)
                return {"ended": "hung"}
            continue
        piece = os.read(out, 1 << 16)
        if not piece:
            break
        said += piece
    _, status = os.waitpid(child, 0)
    if said.endswith(b"\n"):
        found: Mapping[str, Json] = json.loads(said)
        return found
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return {"ended": "hung" if number == signal.SIGXCPU else f"signal {number}"}
    return {"ended": f"exit code {os.waitstatus_to_exitcode(status)}"}


def _used(child: int) -> float:
    """Seconds of the processor that a child has had."""
    try:
        times = psutil.Process(child).cpu_times()
    except psutil.Error:
        return 0.0
    return float(times.user + times.system)


def _kill_group(child: int) -> None:
    try:
        os.killpg(child, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _work(task: Mapping[str, Any], source: Source, grounds: Grounds, into: int, seconds: float) -> None:
    """The child's whole life."""
    try:
        try:
            # A failure here is the harness's, and kills no mutant.
            os.setpgid(0, 0)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(nowhere, number)
            # Recording begins no run when its seconds are over, but with each drive one, and ends what it has begun.
            over = max(_OVER, seconds) if task["do"] == "record" else _OVER
            limit = int(seconds + over) + 1
            resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
            most = _own_memory() + MEMORY
            resource.setrlimit(resource.RLIMIT_AS, (most, most))
            told: Mapping[str, Json] = {"answer": _done(task, source, grounds, seconds)}
        except BadInput as error:
            told = {"input": [error.what, error.where, error.mend]}
        except BaseException:
            told = {"raised": traceback.format_exc()}
        with os.fdopen(into, "w") as stream:
            stream.write(json.dumps(told) + "\n")
    finally:
        os._exit(0)


def _own_memory() -> int:
    """Bytes of this process's address space; without ``/proc``, what it has at most."""
    try:
        size: int = psutil.Process().memory_info().vms
    except (psutil.Error, OSError):
        return MEMORY
    return size


def _done(task: Mapping[str, Any], source: Source, grounds: Grounds, seconds: float) -> Json:
    drives = [Drive.from_json(each) for each in task["drives"]]
    mutant = None if task["mutant"] is None else Mutant.from_json(task["mutant"])
    match task["do"]:
        case "record":
            recording = record(source, drives, task["seed"], seconds, grounds)
            Path(task["file"]).write_text(json.dumps(recording.to_json()), encoding="utf-8")
            return {"lines": recording.lines_to_json(), "steps": recording.steps}
        case "compare":
            assert mutant is not None
            recording = Recording.from_json(json.loads(Path(task["file"]).read_text(encoding="utf-8")))
            difference, steps = compare(source, mutant, drives, recording, seconds)
            return {"difference": None if difference is None else str(difference), "steps": steps}
        case "confirm":
            return parts_too(source, drives[0], Run.from_json(task["run"]), grounds)
        case _:
            return judge(source, mutant, drives, task["seed"], seconds, grounds).to_json()


def judgement_of(told: Mapping[str, Any]) -> Judgement:
    """What a worker told of judging. Raises BadInput where it did."""
    if "answer" in told:
        return Judgement.from_json(told["answer"])
    if "ended" in told:
        by = Killer.HUNG if told["ended"] == "hung" else Killer.RAISED
        what = "it did not come back" if by is Killer.HUNG else f"it ended the process with {told['ended']}"
        return Judgement(by, detail=what)
    raise_told(told)
    raise AssertionError("unreachable")


def raise_told(told: Mapping[str, Any]) -> None:
    """Raise BadInput where a worker told of one, and RuntimeError for anything else that is no answer."""
    if "input" in told:
        raise BadInput(*told["input"])
    if "answer" not in told:
        raise RuntimeError(f"a worker did not answer: {told.get('raised') or told.get('ended')}")
