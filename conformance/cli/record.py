"""``fencepost record``: a live cluster, polled from outside, as a trace of what it showed."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Final

from cyclopts import Parameter

from ...model.core.errors import BadInput
from ...model.core.exit_code import ExitCode
from ...model.core.protocol import TracedProtocol
from ...model.core.registry import REGISTRY
from ...traces.kafka.polled import Polled, Poller
from ...traces.kafka.polled_quorum import TOPIC, QuorumPoller
from ...traces.kafka.polled_trace import abstracted, abstracted_quorum
from ...traces.text import counted
from ...traces.write import write_trace
from ..harness import find_harness
from ..simulation.registry import make_system
from .explore import protocol_named
from .help_groups import grouped
from .options import Duration, Natural, Positive, unwrapped
from .output import note, print_json, refuse_unwritable, stdout, written
from .progress import progress_bar

_SYSTEM: Final = "kafka"
"""The system whose variants say what Apache Kafka's nodes do."""


@grouped(
    Cluster=(
        "bootstrap",
        "topic",
        "partition",
        "data",
    ),
    Polling=(
        "seconds",
        "every",
        "watch",
    ),
    Output=(
        "out",
        "variant",
        "json",
    ),
)
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
) -> ExitCode:
    """Poll a running Apache Kafka cluster, and write the state of one partition as a trace.

    The recorder installs nothing and changes nothing. It queries the brokers over Kafka's protocol: leader epoch, role,
    log end, ends of leader epochs, high watermark. For __cluster_metadata it queries the controllers (DescribeQuorum);
    their leader answers. It negotiates request versions; the output and the header name each observation that the
    release lacks. The trace has polls alone, so steps may be missing between them: fencepost replay and fencepost
    ingest read it.

    Parameters
    ----------
    bootstrap
        Brokers to connect to, as in localhost:9092,localhost:9093, without encryption; or all controllers.
    topic
        Topic of the partition; __cluster_metadata for the quorum's own log.
    partition
        Number of the partition.
    data
        Data directory of a node on this machine (repeatable): its logs are read as well.
    seconds
        Time to record for (60s, 5m).
    every
        Time between two polls (100ms, 1s). A poll takes some milliseconds a broker.
    watch
        Number of offsets to watch: those at which logs diverged, else the last one that was committed.
    out
        Trace file (JSON Lines) to write.
    variant
        Variant of the protocol to check the trace against later; by default Apache Kafka's.
    json
        Print one JSON object on standard output.
    """
    refuse_unwritable(out)
    servers = _servers(bootstrap)
    if topic == TOPIC and partition:
        raise BadInput("the metadata log has partition 0 alone", f"--partition {partition}", "leave it out")
    quorum = _quorum_text(variant) if topic == TOPIC else None
    held_to = _variant_of_brokers(variant) if quorum is None else quorum[1].variant.name
    asks = Poller(servers, topic, partition, data) if quorum is None else QuorumPoller(servers, data)
    with progress_bar() as bar, asks as poller:
        task = bar.add_task(f"{topic}-{partition}", total=max(1, round(seconds / every)))

        def told(polled: Polled) -> None:
            looks = f"{counted(polled.polls, 'poll')}, {len(polled.looks):,} looks"
            bar.update(task, completed=polled.polls, detail=looks)

        try:
            polled = poller.run(every, seconds, told)
        except KeyboardInterrupt:
            polled = poller.polled
            note("broken off: what was seen until now is written")
    found = abstracted(polled, held_to, watch) if quorum is None else abstracted_quorum(polled, quorum[1], watch)
    write_trace(out, found.trace)
    written(out)
    if found.ends is not None:
        note(found.ends)
    if json:
        print_json({**found.trace.header.to_json(), "events": len(found.trace.events), "out": str(out)})
        return ExitCode.DONE
    told_of = f"{topic}-{partition}, on nodes {', '.join(map(str, polled.replicas))}"
    failed = f", {polled.failures} questions without an answer" if polled.failures else ""
    offsets = ", ".join(map(str, found.watched))
    stdout().print(
        f"{told_of}: {counted(len(found.trace.events), 'look')} of {counted(polled.polls, 'poll')} that showed "
        f"something new{failed}; watched at offset {offsets}",
        markup=False,
        soft_wrap=True,
    )
    for line in polled.missing.lines:
        stdout().print(line, markup=False, soft_wrap=True)
    if quorum is not None:
        stdout().print(f"to be replayed and mined with --protocol {quorum[0]}", markup=False, soft_wrap=True)
    return ExitCode.DONE


def _variant_of_brokers(variant: str | None) -> str:
    """By default that which Apache Kafka's brokers are held to. Raises BadInput for one that there is not."""
    of_logs = REGISTRY.of_brokers_logs
    held_to: str = make_system(_SYSTEM, of_logs.name, None).variant if variant is None else variant
    of_logs.protocol.traced(held_to)
    return held_to


def _quorum_text(variant: str | None) -> tuple[str, TracedProtocol]:
    """What Apache Kafka's controllers are held to, and by which place it is named. Raises BadInput."""
    for name in REGISTRY:
        place = None if (harness := find_harness(name)) is None else harness.printed_place
        if place is not None:
            return place, protocol_named(place).traced(make_system(_SYSTEM, name, variant).variant)
    raise BadInput("nothing is known of what controllers do", f"--topic {TOPIC}", "name a topic of users'")


def _servers(bootstrap: str) -> list[tuple[str, int]]:
    """The servers. Raises BadInput."""
    found = []
    for server in bootstrap.split(","):
        host, _, port = server.strip().rpartition(":")
        if not host or not port.isdecimal() or not 0 < int(port) < 65536:
            raise BadInput(f"{server!r} is no server", "--bootstrap", "write HOST:PORT,HOST:PORT")
        found.append((host.strip("[]"), int(port)))
    return found
