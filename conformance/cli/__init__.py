"""The command line, ``fencepost``; ``COMMANDS`` are its commands, each in a file of its name, imported when it is used.

Exit codes: 0 holds, 1 violated, 2 the input or the command line is wrong, 3 unknown, 4 a fault of Fencepost's own.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

from cyclopts import App

from ... import __version__
from ...model.core.caches import cache_folder
from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...traces.run_app import DEBUG, report_end, run_app
from .output import note
from .settings import Settings
from .spelling import reject_unknown_options
from .streams import MEND, Lenient, fill_closed, lenient

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
    ".examples:examples",
    ".protocols:protocols",
    ".spec:spec",
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


def main(arguments: list[str] | None = None) -> ExitCode:
    """Run one command; returns the exit code. An error is reported in one line on standard error."""
    try:
        with lenient() as out:
            return _delivered(out, _run_command(sys.argv[1:] if arguments is None else arguments))
    except BaseException as error:
        return report_end(error, note)


def _run_command(arguments: list[str]) -> ExitCode:
    """Run one command; returns its exit code."""
    try:
        if not arguments or (arguments[0].startswith("-") and arguments[0] not in app.version_flags):
            # The help, and the completion of the shell's commands, need all commands.
            for command in COMMANDS:
                app[command]
        reject_unknown_options(app, arguments)
    except BaseException as error:
        return report_end(error, note)
    return run_app(app, arguments, note)


def _delivered(out: Lenient, code: ExitCode) -> ExitCode:
    """The same code, unless the answer could not be written."""
    out.flush()
    if out.lost is None or code is ExitCode.INTERRUPTED:
        return code
    raise BadInput(
        f"cannot write: {out.lost.strerror or out.lost}; of the answer (exit code {code}) some is lost",
        "standard output",
        MEND,
    )


def _keep_out_of_the_way() -> None:
    """Have Hypothesis keep what it remembers of the sources in the cache, not in the folder that somebody works in."""
    if os.environ.get("HYPOTHESIS_STORAGE_DIRECTORY"):
        return
    # Hypothesis runs without a folder that it can write to.
    folder = cache_folder("hypothesis") or Path(os.devnull) / "hypothesis"
    os.environ["HYPOTHESIS_STORAGE_DIRECTORY"] = str(folder)


def command_line() -> ExitCode:
    """Run the command line with the process's arguments; returns the exit code."""
    try:
        fill_closed()
        _keep_out_of_the_way()
    except BaseException as error:
        return report_end(error, note)
    return main()


def run() -> NoReturn:
    """Run the command line, and end the process."""
    sys.exit(command_line())
