"""The command line, ``fencepost``; ``COMMANDS`` are its commands, each in a file of its name, imported when it is used.

Exit codes: 0 holds, 1 violated, 2 the input or the command line is wrong, 3 unknown, 4 a fault of Fencepost's own.
"""

from __future__ import annotations

import os
import sys
import traceback
from pathlib import Path

from cyclopts import App, CycloptsError

from ... import __version__
from ...model.core.caches import cache_folder
from ...model.core.errors import BadInput, FencepostError
from .output import note
from .settings import Settings
from .spelling import reject_unknown_options
from .streams import MEND, Lenient, fill_closed, lenient

BAD_INPUT = 2
INTERNAL = 4
"""Something went wrong that Fencepost has no word for. It says nothing of what was asked, and is no verdict."""
INTERRUPTED = 130

DEBUG = "FENCEPOST_DEBUG"
"""The environment variable with which an internal failure shows its traceback."""

_PLACES = (
    ".explore:explore",
    ".replay:replay",
    ".prove:prove",
    ".check:check",
    ".conform:conform",
    ".mutants:mutants",
    ".simulate:simulate",
    ".record:record",
    ".ingest:ingest",
    ".mine:mine",
    ".timeline:timeline",
    ".protocols:protocols",
    ".new:new",
)
"""Where each command is, loaded when it is used. Written out: what a test depends on is read from such words too."""
COMMANDS = tuple(place.rpartition(":")[2] for place in _PLACES)

app = App(
    name="fencepost",
    help="A formal model and a conformance harness for Kafka-style replicated logs.",
    help_epilogue=(
        "Exit codes: 0 holds, 1 violated, 2 bad input or command line (also an output that cannot be written), "
        f"3 unknown (a budget ran out), 4 a fault of Fencepost's own ({DEBUG}=1 shows its traceback)."
    ),
    version=__version__,
    version_flags=("--version", "-V"),
    help_format="plaintext",
    # Else it would end the process by an exception of its own.
    suppress_keyboard_interrupt=False,
    config=Settings(COMMANDS),
)
for _place, _command in zip(_PLACES, COMMANDS, strict=True):
    app.command(f"{__package__}{_place}", name=_command)
app.register_install_completion_command(help="Have the shell (bash, zsh or fish) complete commands and options.")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code. What is wrong with the input is said in one line on standard error."""
    try:
        with lenient() as out:
            try:
                code = _answered(sys.argv[1:] if arguments is None else arguments)
            except KeyboardInterrupt:
                note("fencepost: interrupted")
                return INTERRUPTED
            return _delivered(out, code)
    except BadInput as error:
        note(f"fencepost: {error}")
        return BAD_INPUT


def _answered(arguments: list[str]) -> int:
    """The exit code of one command."""
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in app.version_flags):
        # The help, or what completes the shell's commands, is about all of them.
        for command in COMMANDS:
            app[command]
    try:
        reject_unknown_options(app, arguments)
        result = app(arguments, exit_on_error=False, print_error=False, result_action="return_value")
    except CycloptsError as error:
        command = " ".join(["fencepost", *(error.command_chain or ())])
        note(f"fencepost: {' '.join(str(error).split())}; see {command} --help")
        return BAD_INPUT
    except FencepostError as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        note(f"fencepost: {error}")
        return BAD_INPUT
    except (Exception, SystemExit) as error:
        if _interrupted(error):
            raise KeyboardInterrupt from error
        _tell_internal(error)
        return INTERNAL
    return result if isinstance(result, int) else 0


def _interrupted(error: BaseException | None) -> bool:
    """Whether it is an interrupt, or came of one: what is put away then may fail for want of what has ended."""
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        if isinstance(error, KeyboardInterrupt):
            return True
        seen.add(id(error))
        error = error.__context__
    return False


def _delivered(out: Lenient, code: int) -> int:
    """The same code, unless the answer could not be written."""
    out.flush()
    if out.lost is None:
        return code
    raise BadInput(
        f"cannot write: {out.lost.strerror or out.lost}; of the answer (exit code {code}) some is lost",
        "standard output",
        MEND,
    )


def _tell_internal(error: BaseException) -> None:
    """One line, ``WHERE: WHAT; MEND``, of an exception that nobody has caught."""
    debug = bool(os.environ.get(DEBUG))
    if debug:
        traceback.print_exception(error)
    said = " ".join(f"{type(error).__name__}: {error}".removesuffix(": ").split())
    frames = traceback.extract_tb(error.__traceback__)
    place = f" ({Path(frames[-1].filename).name}:{frames[-1].lineno})" if frames else ""
    mend = "report it with these lines" if debug else f"run it again with {DEBUG}=1 and report it with the traceback"
    note(f"fencepost: a fault of Fencepost's own, which says nothing of what was asked: {said}{place}; {mend}")


def _keep_out_of_the_way() -> None:
    """Have Hypothesis keep what it remembers of the sources in the cache, not in the folder that somebody works in."""
    if os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY"):
        return
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(cache_folder("hypothesis"))


def run() -> None:
    """The console script."""
    fill_closed()
    _keep_out_of_the_way()
    sys.exit(main())
