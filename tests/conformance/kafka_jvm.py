"""Apache Kafka in JVMs of ours, for tests marked ``kafka``: without it they are skipped, and say for want of what."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psutil
import pytest
from fencepost.conformance.kafka.jars import RELEASE
from fencepost.conformance.kafka.process import Jvm
from fencepost.model.core.errors import BadInput


@contextmanager
def needs_kafka() -> Iterator[None]:
    """Skip where the release cannot be had: what is done in here says so by ``BadInput``."""
    try:
        yield
    except BadInput as missing:
        pytest.skip(f"absent: Apache Kafka {RELEASE}: {missing}")


def started(**options: Any) -> Jvm:
    """One that was started with these options of ``Jvm``."""
    with needs_kafka():
        return Jvm(**options)


def one_jvm(**options: Any) -> Iterator[Jvm]:
    """The same, for a fixture to yield from."""
    made = started(**options)
    yield made
    made.close()


@contextmanager
def planted(jvm: Jvm, defect: str) -> Iterator[None]:
    """A change of Kafka's classes holds in there, and none does afterwards."""
    jvm.plant(defect)
    try:
        yield
    finally:
        jvm.plant()


def commands_below(pid: int) -> dict[psutil.Process, str]:
    """The living processes that one has started, and their command lines."""
    found = {}
    for process in psutil.Process(pid).children(recursive=True):
        # Whoever ends meanwhile is none.
        with suppress(psutil.NoSuchProcess):
            found[process] = " ".join(process.cmdline())
    return found
