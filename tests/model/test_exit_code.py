"""The function that maps outcomes to exit codes."""

from __future__ import annotations

import pytest
from fencepost.model.core import process
from fencepost.model.core.errors import BadInput
from fencepost.model.core.exit_code import ExitCode, exit_code
from fencepost.model.explore.result import Verdict


@pytest.mark.parametrize(("verdict", "code"), [("holds", 0), ("violated", 1), ("unknown", 3)])
def test_exit_code_of_verdict(verdict: str, code: int) -> None:
    assert exit_code(verdict) == exit_code(Verdict(verdict)) == code


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (BadInput("it is empty", "trace.jsonl", "record it again"), 2),
        (KeyboardInterrupt(), 130),
        (SystemExit(0), 4),
        (SystemExit(1), 4),
        (MemoryError(), 4),
        (RecursionError(), 4),
        (GeneratorExit(), 4),
        (BrokenPipeError(), 4),
    ],
)
def test_exit_code_of_exception(error: BaseException, code: int) -> None:
    assert exit_code(error) == code


@pytest.mark.parametrize("outcome", [None, True, False, 0, 1, 2, "", "HOLDS", "done", "bad_input", b"holds", object()])
def test_exit_code_of_anything_else_is_a_fault(outcome: object) -> None:
    assert exit_code(outcome) is ExitCode.INTERNAL_FAULT


def test_exit_code_of_a_fault_while_interrupted() -> None:
    fault = BadInput("it ended", "Spark", "start it again")
    fault.__context__ = KeyboardInterrupt()
    assert exit_code(fault) is ExitCode.INTERRUPTED


def test_process_has_the_same_codes() -> None:
    assert (process._INTERNAL, process._INTERRUPTED) == (ExitCode.INTERNAL_FAULT, ExitCode.INTERRUPTED)
