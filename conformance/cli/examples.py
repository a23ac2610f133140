"""``fencepost examples``: the bundled recordings, listed or written out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from cyclopts import Parameter

from ...model.core.exit_code import ExitCode
from ...traces.bundled.archive import unpack
from ...traces.bundled.unpacked import NAMES, archive_of
from ...traces.corpus.output import new_folder
from ...traces.kafka.capture import BUNDLED, bundled_corpus, load_manifest
from ...traces.mine.bundled import CORPORA
from .options import unwrapped
from .output import print_json, stdout, table, written


@unwrapped
def examples(folder: Path | None = None, *, json: Annotated[bool, Parameter(negative=())] = False) -> ExitCode:
    """Write the bundled recordings into a new folder; without a folder, list them.

    Parameters
    ----------
    folder
        Folder to make. Each stage of a recorded cluster is a folder of its brokers' data directories.
    json
        Print one JSON object on standard output.
    """
    rows = _rows()
    if folder is not None:
        with new_folder(folder) as part:
            for name in NAMES:
                unpack(archive_of(name), part / name)
        written(folder)
    if json:
        print_json({"folder": None if folder is None else str(folder), "examples": rows})
    elif folder is None:
        _print_list(rows)
    else:
        _print_commands(str(folder))
    return ExitCode.DONE


def _rows() -> list[dict[str, str]]:
    """Each example by its path in the folder, in the order in which it was recorded."""
    stages = [(name, stage) for name in BUNDLED for stage in load_manifest(bundled_corpus(name))["stages"]]
    rows = [(f"{name}/{stage['name']}", stage["what"]) for name, stage in stages]
    rows += [(f"mining/{name}", what) for name, what in CORPORA.items()]
    return [{"name": name, "what": what} for name, what in rows]


def _print_list(rows: list[dict[str, str]]) -> None:
    listed = table("example", "recorded")
    for row in rows:
        listed.add_row(row["name"], row["what"])
    stdout().print(listed)
    _print_commands("DIR")


def _print_commands(folder: str) -> None:
    """Print what to type next, with the folder as it was typed."""
    commands = [
        f"fencepost check {folder}/failover/6-unclean-election/broker-*",
        f"fencepost mine {folder}/mining/planted",
    ]
    if folder == "DIR":
        commands.insert(0, "fencepost examples DIR")
    for command in commands:
        stdout().print(command, markup=False, soft_wrap=True)
