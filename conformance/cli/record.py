"""``fencepost record``: a live cluster, polled from outside, as a trace of what it showed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.registry import REGISTRY
from ...traces.kafka.polled import Polled, Poller
from ...traces.kafka.polled_trace import abstracted
from ...traces.words import counted
from ...traces.write import write_trace
from ..free.registry import make_free
from .options import Duration, Natural, Positive, unwrapped
from .output import note, print_json, refuse_unwritable, stdout, written
from .progress import progress_bar

_SYSTEM: Final = "kafka"
"""The system whose variant says what Apache Kafka's brokers do."""


@unwrapped
def record(
    *,
    bootstrap: str,
    topic: str,
    out: Path,
    partition: Natural = 0,
    every: Duration = 0.1,
    seconds: Annotated[Duration, Parameter(name="--for")] = 60.0,
    data: Annotated[tuple[Path, ...], Parameter(negative=())] = (),
    watch: Positive = 1,
    variant: str | None = None,
    json: Annotated[bool, Parameter(negative=())] = False,
) -> int:
    """Poll a running Apache Kafka cluster, and write what its brokers show of one partition as a trace.

    Nothing is installed on the brokers and nothing of them is changed: they are asked, over their own protocol, in
    which leader epoch a replica is, whether it leads, where its log and its leader epochs end, and for its high
    watermark. The trace has looks alone, and says that steps may be missing between them: fencepost replay and
    fencepost ingest take it.

    Parameters
    ----------
    bootstrap
        One or several brokers, as in localhost:9092,localhost:9093, without encryption.
    topic
        Whose partition it is.
    out
        The trace, JSON Lines.
    partition
        Its number.
    every
        How often everybody is asked (100ms, 1s). A poll takes some milliseconds a broker.
    seconds
        For how long (60s, 5m).
    data
        A broker's data directory on this machine (repeatable): its logs are read as well.
    watch
        So many offsets are watched: those at which logs parted, else the last one that was committed.
    variant
        The variant of the protocol that the trace is to be held to; by default Apache Kafka's.
    json
        Print one JSON object on standard output.
    """
    refuse_unwritable(out)
    of_logs = REGISTRY.of_brokers_logs
    if variant is None:
        variant = make_free(_SYSTEM, of_logs.name, None).variant
    of_logs.protocol.traced(variant)
    with progress_bar() as bar, Poller(_servers(bootstrap), topic, partition, data) as poller:
        task = bar.add_task(f"{topic}-{partition}", total=max(1, round(seconds / every)))

        def told(polled: Polled) -> None:
            looks = f"{counted(polled.polls, 'poll')}, {len(polled.looks):,} looks"
            bar.update(task, completed=polled.polls, detail=looks)

        try:
            polled = poller.run(every, seconds, told)
        except KeyboardInterrupt:
            polled = poller.polled
            note("broken off: what was seen until now is written")
    found = abstracted(polled, variant, watch)
    write_trace(out, found.trace)
    written(out)
    if found.ends is not None:
        note(found.ends)
    if json:
        print_json({**found.trace.header.to_json(), "events": len(found.trace.events), "out": str(out)})
    else:
        told_of = f"{topic}-{partition}, on brokers {', '.join(map(str, polled.replicas))}"
        failed = f", {polled.failures} questions without an answer" if polled.failures else ""
        offsets = ", ".join(map(str, found.watched))
        stdout().print(
            f"{told_of}: {counted(len(found.trace.events), 'look')} of {counted(polled.polls, 'poll')} that showed "
            f"something new{failed}; watched at offset {offsets}",
            markup=False,
            soft_wrap=True,
        )
    return 0


def _servers(bootstrap: str) -> list[tuple[str, int]]:
    """The servers. Raises BadInput."""
    found = []
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise BadInput(f"{server!r} is no server", "--bootstrap", "write HOST:PORT,HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    return found
