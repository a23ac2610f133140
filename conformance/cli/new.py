"""``fencepost new``: a small protocol to start from."""

from __future__ import annotations

from pathlib import Path

from ...model.core.exit_code import ExitCode
from ..scaffold import write_new
from .options import unwrapped
from .output import stdout, written


@unwrapped
def new(name: str, *, out: Path | None = None) -> ExitCode:
    """Write a small protocol with a proof, a toy system and its tests, to be changed into yours.

    Everything in it passes as it is; docs/tutorials/your-own-protocol.md goes through it.

    Parameters
    ----------
    name
        The protocol's name, as Python has names.
    out
        The folder to write it into; by default one of the protocol's name.
    """
    folder = out or Path(name)
    for path in write_new(name, folder):
        written(path)
    inside = f"cd {folder}"
    place = f"{name}.py:{name}"
    for command in (
        f"{inside} && pytest",
        f"fencepost explore {place}",
        f"fencepost explore {place} --variant hasty",
        f"fencepost prove {place}",
        f"fencepost mutants --protocol {place}",
        f"fencepost conform --protocol {place}",
    ):
        stdout().print(command, markup=False, soft_wrap=True)
    return ExitCode.DONE
