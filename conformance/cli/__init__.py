"""The command line, ``fencepost``: explore, prove, replay, check, conform, mutants, simulate, ingest, mine.

Exit codes: 0 holds, 1 violated, 2 the input or the command line is wrong, 3 unknown.
"""

from __future__ import annotations

import sys

from cyclopts import App, CycloptsError
from rich.console import Console

from ...model.core.errors import FencepostError
from .check import check
from .conform import conform
from .explore import explore
from .ingest import ingest
from .mine import mine
from .mutants import mutants
from .prove import prove
from .replay import replay
from .simulate import simulate

BAD_INPUT = 2

app = App(
    name="fencepost",
    help="A formal model and a conformance harness for Kafka-style replicated logs.",
    help_epilogue="Exit codes: 0 holds, 1 violated, 2 bad input or command line, 3 unknown (a budget ran out).",
    help_format="plaintext",
)
app.command(explore)
app.command(replay)
app.command(prove)
app.command(check)
app.command(conform)
app.command(mutants)
app.command(simulate)
app.command(ingest)
app.command(mine)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; returns the exit code. What is wrong with the input is said in one line on standard error."""
    errors = Console(stderr=True, soft_wrap=True, highlight=False, markup=False)
    try:
        result = app(
            sys.argv[1:] if arguments is None else arguments,
            exit_on_error=False,
            print_error=False,
            result_action="return_value",
        )
    except CycloptsError as error:
        errors.print(f"fencepost: {' '.join(str(error).split())}; see fencepost --help")
        return BAD_INPUT
    except FencepostError as error:
        errors.print(f"fencepost: {error}")
        return BAD_INPUT
    except BrokenPipeError:
        # Whoever read our output (head, less) has seen enough.
        sys.stderr.close()
        return 0
    except KeyboardInterrupt:
        errors.print("fencepost: interrupted")
        return 130
    return result if isinstance(result, int) else 0


def run() -> None:
    """The console script."""
    sys.exit(main())
