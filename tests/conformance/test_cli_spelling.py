"""Misspelt options, and the command line as a module."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import fencepost as package
import pytest
from fencepost.conformance.cli import COMMANDS

from .conftest import Fencepost

NEAREST = [
    (("explore", "fencing", "--varient", "kip-101"), "--varient", "--variant"),
    (("explore", "--varient", "kip-101", "fencing"), "--varient", "--variant"),
    (("explore", "fencing", "--varient=kip-101"), "--varient", "--variant"),
    (("explore", "fencing", "--varient"), "--varient", "--variant"),
    (("explore", "fencing", "--replcas", "3"), "--replcas", "--replicas"),
    (("explore", "fencing", "--jsno"), "--jsno", "--json"),
    (("conform", "--varient", "kip-101"), "--varient", "--variant"),
    (("conform", "--step-timeot", "3s"), "--step-timeot", "--step-timeout"),
    (("conform", "--no-fault"), "--no-fault", "--no-faults"),
    (("prove", "fencing", "--varient", "kip-101"), "--varient", "--variant"),
    (("check", "--varient", "kip-101"), "--varient", "--variant"),
    (("check", "broker-1", "--topics", "payments"), "--topics", "--topic"),
    (("mine", "corpus", "--varient", "kip-101"), "--varient", "--variant"),
    (("replay", "trace", "--varient", "kip-101"), "--varient", "--variant"),
    (("simulate", "fencing", "--varient", "kip-101"), "--varient", "--variant"),
]


@pytest.mark.parametrize(("arguments", "typed", "meant"), NEAREST, ids=lambda each: " ".join(each))
def test_misspelt_option_names_the_nearest(
    fencepost: Fencepost, arguments: tuple[str, ...], typed: str, meant: str
) -> None:
    assert fencepost(*arguments).complaint == f"unknown option {typed}; did you mean {meant}?"


@pytest.mark.parametrize("command", COMMANDS)
def test_unknown_option_is_the_first_complaint(fencepost: Fencepost, command: str) -> None:
    assert fencepost(command, "--qqzzxx", "3").complaint == f"unknown option --qqzzxx; see fencepost {command} --help"


def test_option_before_the_command_is_unknown(fencepost: Fencepost) -> None:
    assert fencepost("--varient", "explore").complaint == "unknown option --varient; see fencepost --help"


def test_argument_after_two_dashes_is_no_option(fencepost: Fencepost) -> None:
    assert fencepost("explore", "--", "--varient").complaint.startswith("PROTOCOL: there is no protocol '--varient'")


def test_bad_constant_is_still_a_bad_number(fencepost: Fencepost) -> None:
    said = fencepost("explore", "fencing", "--log-size", "two").complaint
    assert said.startswith("Invalid value for --log-size: 'two' is no whole number")


@pytest.mark.usefixtures("own_registry")
def test_constant_of_an_own_protocol_is_an_option(fencepost: Fencepost, tmp_path: Path) -> None:
    assert fencepost("new", "counter", "--out", tmp_path / "counter").code == 0
    file = tmp_path / "counter" / "counter.py"
    two = 'constants=(ConstantSpec("seats", 1, 1, "unused"), '
    file.write_text(file.read_text().replace("constants=(", two))
    said = fencepost("explore", f"{file}:counter", "--seats", 2, "--replicas", 2, "--json")
    assert said.json["constants"] == {"seats": 2, "replicas": 2}
    assert fencepost("explore", f"{file}:counter", "--seat", 2).complaint.endswith("; did you mean --seats?")


@pytest.mark.parametrize("flag", ["--version", "-V"])
def test_version_flag_prints_the_version(fencepost: Fencepost, flag: str) -> None:
    said = fencepost(flag)
    assert (said.code, said.out) == (0, f"{package.__version__}\n")


def test_module_runs_the_command_line() -> None:
    command = [sys.executable, "-m", "fencepost", "explore", "fencing", "--varient", "kip-101"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr == "fencepost: unknown option --varient; did you mean --variant?\n"
