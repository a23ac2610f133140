"""A start on a disk as a loss of power has left it: it may fail itself, and is tried again then.

Recovery writes. Power may fail again in the midst of it, or the disk once, and whoever starts next begins with what
that has left. A start that fails leaves no file open. When a node is up nothing lies in its directory, and nothing is
open, that it does not account for.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from ...impl.files.simulated import SimulatedFiles
from ...impl.log.errors import LogOffline
from ..adapters.nodes import EFFECTS
from ..simulation.power import PowerLost
from .crash_image import NotFound, copy_of, opened
from .file_inventory import Folder, Unaccounted, check_accounted, check_open

Node_ = TypeVar("Node_")

_MOST: Final = (3, 12, 48)
"""A start goes wrong within so many operations, one of these; or it does not."""


class Mishap(Enum):
    """What befalls a start."""

    FAILS = "its disk failed once"
    POWER = "power failed again"


class Plan(NamedTuple):
    """What befalls a start, if anything does: before which operation on its disk, counted from 0."""

    mishap: Mishap | None
    at: int = 0


def plan_of(seed: int) -> Plan:
    """Every other start goes well; drawn by the seed."""
    chance = random.Random(f"start {seed}")  # noqa: S311 - repeatable on purpose
    mishap = chance.choice((None, None, Mishap.FAILS, Mishap.POWER))
    return Plan(mishap, chance.randrange(chance.choice(_MOST)))


def started(
    open_on: Callable[[SimulatedFiles], Node_],
    files: SimulatedFiles,
    plan: Plan,
    folders: Callable[[Node_], Mapping[str, Folder] | None],
) -> tuple[Node_, SimulatedFiles]:
    """A node on a disk that nobody runs on, and the disk, which is another one where power has failed again.

    ``folders``: what it accounts for, None where nobody can say. Raises NotFound where it cannot be opened at last, or
    has left something behind.
    """
    node = None
    if plan.mishap is not None:
        node, files = _amid(open_on, files, plan)
    if node is None:
        node = opened(open_on, files)
    there = folders(node)
    if there is not None:
        try:
            check_accounted(files, there)
            check_open(files, there)
        except Unaccounted as wrong:
            raise NotFound(f"after a loss of power{_told(plan)} and a start {wrong}") from wrong
    return node, files


def is_of_disk(error: Exception) -> bool:
    """Whether an error says that a disk has failed, and not what is on it."""
    # By its name, as a copy of ``impl`` has classes of its own.
    return isinstance(error, OSError) or type(error).__name__ == LogOffline.__name__


def _told(plan: Plan) -> str:
    return "" if plan.mishap is None else f", a start in which {plan.mishap.value}"


def _amid(
    open_on: Callable[[SimulatedFiles], Node_], files: SimulatedFiles, plan: Plan
) -> tuple[Node_ | None, SimulatedFiles]:
    """A start that something befalls; None where it has: the next one is on the disk that is given."""
    left = plan.at
    has_failed = False

    def hook(operation: str, path: str) -> None:
        nonlocal left, has_failed
        if plan.mishap is Mishap.POWER and operation not in EFFECTS:
            return
        left -= 1
        if left == -1:
            has_failed = True
            if plan.mishap is Mishap.POWER:
                raise PowerLost
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    files.hook = hook
    try:
        node = open_on(files)
    except PowerLost:
        return None, copy_of(files, plan.at)
    except Exception as error:
        # Whatever a system under test raises is what we are looking for.
        if not has_failed or not is_of_disk(error):
            told = f"{type(error).__name__}: {error}"
            raise NotFound(f"after a loss of power{_told(plan)} its disk could not be opened: {told}") from error
        if files.open_files:
            raise NotFound(f"a start that failed has left {files.open_files} files open") from error
        return None, files
    finally:
        files.hook = None
    # One that goes on without the partition that its disk has failed is not what is looked for.
    return (None, copy_of(files, plan.at)) if has_failed else (node, files)
