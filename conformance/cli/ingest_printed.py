"""``fencepost ingest --kafka-log``: what Apache Kafka's nodes have printed, as traces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY
from ...traces.corpus.ingest import Named
from ...traces.kafka.server_log.quorum import trace_of_quorum
from ...traces.kafka.server_log.traces import LogReport, traces_of_logs
from ..harness import find_harness
from ..simulation.registry import make_system
from .explore import protocol_named
from .output import note

_SYSTEM: Final = "kafka"
"""The system whose variant says what Apache Kafka's brokers do."""


def printed_traces(
    paths: Sequence[Path], variant: str | None, protocol: str | None = None
) -> tuple[list[Named], list[BadInput]]:
    """The traces of all partitions; a partition whose log does not begin with its creation is a problem.

    ``protocol``: another one than that of partitions, of which the controllers' own log is a trace then.

    If a trace is partial, a note says why. Raises BadInput for files that are no such logs, and
    for a variant that has no running cluster.
    """
    if protocol not in (None, REGISTRY.of_brokers_logs.name):
        assert protocol is not None
        return _named([_of_quorum(paths, protocol, variant)])
    try:
        system = make_system(_SYSTEM, REGISTRY.of_brokers_logs.name, variant)
    except BadInput as wrong:
        raise BadInput("Apache Kafka's brokers are not held to it", f"--variant {variant}", wrong.mend) from wrong
    # What real brokers print they do with a controller that is Kafka's own.
    held_to: str = variant or getattr(system, "of_real", None) or system.variant
    named, problems = _named(traces_of_logs(paths, held_to))
    if not named and not problems:
        where = ", ".join(map(str, paths))
        problems = [
            BadInput("no line reports about a partition", where, "name the logs of all brokers and controllers")
        ]
    return named, problems


def _of_quorum(paths: Sequence[Path], protocol: str, variant: str | None) -> LogReport:
    harness = find_harness(protocol)
    place = None if harness is None else harness.printed_place
    if place is None:
        others = [name for name in REGISTRY if (each := find_harness(name)) is not None and each.printed]
        mend = f"name {', '.join(others)}, or leave it out"
        raise BadInput("nothing is read of what its nodes print", f"--protocol {protocol}", mend)
    held_to = make_system(_SYSTEM, protocol, variant).variant
    return trace_of_quorum(paths, protocol_named(place).traced(held_to))


def _named(all_: Iterable[LogReport]) -> tuple[list[Named], list[BadInput]]:
    named: list[Named] = []
    problems: list[BadInput] = []
    for report in all_:
        if report.trace is None:
            mend = "name the logs of all its brokers and of the controllers, from its creation on"
            problems.append(BadInput(f"left out: {report.why}", report.name, mend))
            continue
        named.append(Named(report.name, report.trace))
        if report.why is not None:
            note(f"fencepost: {report.name}: partial: {report.why}")
    return named, problems
