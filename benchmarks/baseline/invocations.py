"""The invocations in ``invocations.toml``, and their inputs from a fixed commit.

The inputs come from the repository's history, so that two records read the same files wherever these have moved since.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any, Final

from .command import CHECKOUT
from .invocation import Invocation
from .item import Item

PART: Final = "invocations"
FILE: Final = Path(__file__).with_name("invocations.toml")


def invocation_items() -> Iterator[Item]:
    """Return an item for each invocation."""
    text = tomllib.loads(FILE.read_text(encoding="utf-8"))
    inputs = fetch_inputs(text["inputs_commit"], text["inputs"])
    for row in text["invocation"]:
        invocation = Invocation(**row)
        yield Item(PART, invocation.name, partial(invocation.measure, inputs))


def fetch_inputs(commit: str, folders: list[str]) -> Path:
    """Extract folders at a commit to a cache, and return it. Exits with one line where the history lacks the commit."""
    cache = Path(tempfile.gettempdir()).resolve() / f"fencepost-baseline-{commit}"
    if cache.is_dir():
        return cache
    command: list[Any] = ["git", "-C", CHECKOUT, "archive", "--format=tar", commit, *folders]
    done = subprocess.run(command, capture_output=True, check=False)
    if done.returncode:
        sys.exit(f"{CHECKOUT}: git has no commit {commit}; fetch the whole history (git fetch --unshallow)")
    unpacked = Path(tempfile.mkdtemp(prefix="fencepost-baseline-", dir=cache.parent))
    with tarfile.open(fileobj=BytesIO(done.stdout)) as archive:
        archive.extractall(unpacked, filter="data")
    # Another shard may have been faster.
    with suppress(OSError):
        unpacked.rename(cache)
    return cache
