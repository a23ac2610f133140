"""What following a folder has come to, in files: one for each batch of files that arrived, written whole or not at all.

The file of batch N holds everything up to and with batch N. A batch that is done twice, because the process ended
between that file and Spark's own note of it, starts from batch N - 1 again and comes to the same: each event counts
once.
"""

from __future__ import annotations

import json
from bisect import bisect_left, insort
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from ...model.core.errors import BadInput
from ...model.core.regular_file import read_regular
from ..corpus.manifest import write_whole
from ..corpus.place import shown_path
from ..run_report import Json
from .part import Part
from .part_json import part_from_json, part_to_json

FORMAT: Final = "fencepost-follow"
VERSION: Final = 2
KEPT: Final = 3
"""So many batches' files are kept. Spark goes back by one at most."""

_AFRESH: Final = "name another folder for --checkpoint, or delete this one and start afresh"


@dataclass(frozen=True, order=True)
class SeenFile:
    """A file that was mined: the smallest and largest trace id in it, its name, and its events."""

    first: int
    last: int
    name: str
    events: int


@dataclass
class State:
    """Everything up to and with a batch (-1: nothing yet).

    ``files``: those mined, by their trace ids. ``arrived``: all that came, with those that could not be mined.
    ``duplicate``: events that came before under the same trace and step. ``late``: events of a trace, at a step below
    one that had come before. ``continued``: events of a trace that came in an earlier file, at steps after those.
    ``seconds``: wall time of the mining.
    """

    batch: int = -1
    part: Part = field(default_factory=Part)
    files: list[SeenFile] = field(default_factory=list)
    arrived: int = 0
    duplicate: int = 0
    late: int = 0
    continued: int = 0
    seconds: float = 0.0

    def overlapping(self, first: int, last: int) -> list[SeenFile]:
        """The files whose ranges of trace ids meet this one. Ranges in ``files`` do not meet each other."""
        at = bisect_left(self.files, first, key=lambda file: file.last)
        found = []
        while at < len(self.files) and self.files[at].first <= last:
            found.append(self.files[at])
            at += 1
        return found

    def add(self, file: SeenFile) -> None:
        """Take in a file whose range meets no other's."""
        insort(self.files, file)

    def copy(self) -> State:
        """Another one that can be added to without changing this one."""
        return state_from_json(state_to_json(self))


def state_to_json(state: State) -> dict[str, Json]:
    """As a JSON object."""
    return {
        "batch": state.batch,
        "part": part_to_json(state.part),
        "files": [[file.first, file.last, file.name, file.events] for file in state.files],
        "arrived": state.arrived,
        "duplicate": state.duplicate,
        "late": state.late,
        "continued": state.continued,
        "seconds": state.seconds,
    }


def state_from_json(found: Any) -> State:
    """The inverse. Raises ValueError, KeyError or TypeError for anything else."""
    return State(
        batch=int(found["batch"]),
        part=part_from_json(found["part"]),
        files=[SeenFile(int(first), int(last), str(name), int(n)) for first, last, name, n in found["files"]],
        arrived=int(found["arrived"]),
        duplicate=int(found["duplicate"]),
        late=int(found["late"]),
        continued=int(found["continued"]),
        seconds=float(found["seconds"]),
    )


class Journal:
    """The files of a folder that is followed, in ``folder``: what is followed, and a state for each batch.

    ``about``: what the states depend on (the folder followed, the variant). Raises BadInput where ``folder`` is that of
    other work, or cannot be written.
    """

    def __init__(self, folder: Path, about: dict[str, Json]) -> None:
        self._folder = folder
        self._where = shown_path(folder)
        told: dict[str, Json] = {"format": FORMAT, "version": VERSION, **about}
        head = folder / "follow.json"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            taken = any(folder.iterdir())
        except OSError as error:
            what = f"cannot be written: {error.strerror}"
            raise BadInput(what, self._where, "name a folder that can be made and written") from error
        if not taken:
            write_whole(head, json.dumps(told, indent=1) + "\n")
            return
        try:
            found = json.loads(read_regular(head))
        except (OSError, ValueError, RecursionError) as error:
            raise BadInput("the folder holds something else than a checkpoint", self._where, _AFRESH) from error
        if found != told:
            apart = [name for name in told if not isinstance(found, dict) or found.get(name) != told[name]]
            raise BadInput(
                f"the checkpoint is that of other work: another {', '.join(apart) or 'format'}", self._where, _AFRESH
            )

    @property
    def spark(self) -> Path:
        """The folder of Spark's own notes."""
        return self._folder / "spark"

    def before(self, batch: int) -> State:
        """What a batch starts from. Raises BadInput where that is not there any more, or damaged."""
        if batch == 0:
            return State()
        return self.read(batch - 1)

    def last(self) -> State:
        """The state of the newest batch; an empty one where there is none."""
        batches = list(self._batches())
        return self.read(max(batches)) if batches else State()

    def read(self, batch: int) -> State:
        """The state of a batch."""
        path = self._path(batch)
        try:
            found = json.loads(read_regular(path))
            state = state_from_json(found)
            if state.batch != batch:
                raise ValueError("it is that of another batch")
        except OSError as error:
            raise BadInput(f"batch {batch} cannot be read: {error.strerror}", shown_path(path), _AFRESH) from error
        except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
            raise BadInput(f"the checkpoint is damaged: {error}", shown_path(path), _AFRESH) from error
        return state

    def write(self, state: State) -> None:
        """Write the state of a batch, in place of one that the same batch may have left; older ones go."""
        write_whole(self._path(state.batch), json.dumps(state_to_json(state), allow_nan=False) + "\n")
        for batch in self._batches():
            if batch <= state.batch - KEPT:
                self._path(batch).unlink(missing_ok=True)

    def _path(self, batch: int) -> Path:
        return self._folder / f"batch-{batch:08d}.json"

    def _batches(self) -> Iterator[int]:
        for path in sorted(self._folder.glob("batch-*.json")):
            number = path.stem.removeprefix("batch-")
            if number.isdigit():
                yield int(number)
