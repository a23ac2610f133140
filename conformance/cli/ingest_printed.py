"""``fencepost ingest --kafka-log``: what Apache Kafka's nodes have printed, as traces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY
from ...traces.corpus.ingest import Named
from ...traces.kafka.server_log.traces import traces_of_logs
from ..free.registry import make_free
from .output import note

_SYSTEM: Final = "kafka"
"""The system whose variant says what Apache Kafka's brokers do."""


def printed_traces(paths: Sequence[Path], variant: str | None) -> tuple[list[Named], list[BadInput]]:
    """The traces of all partitions; a partition that cannot be told from its beginning is a problem.

    Where a history is told up to some line only, a note says why. Raises BadInput for files that are no such logs, and
    for a variant that has no running cluster.
    """
    try:
        system = make_free(_SYSTEM, REGISTRY.of_brokers_logs.name, variant)
    except BadInput as wrong:
        raise BadInput("Apache Kafka's brokers are not held to it", f"--variant {variant}", wrong.mend) from wrong
    # What real brokers print they do with a controller that is Kafka's own.
    held_to: str = variant or getattr(system, "of_real", None) or system.variant
    named: list[Named] = []
    problems: list[BadInput] = []
    for told in traces_of_logs(paths, held_to):
        if told.trace is None:
            mend = "name the logs of all its brokers and of the controllers, from its creation on"
            problems.append(BadInput(f"left out: {told.why}", told.name, mend))
            continue
        named.append(Named(told.name, told.trace))
        if told.why is not None:
            note(f"fencepost: {told.name}: told in part: {told.why}")
    return named, problems
