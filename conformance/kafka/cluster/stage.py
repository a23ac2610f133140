"""A cluster of real processes behind a gate, and what a story needs of it: elections, held messages, logs on disk.

Brokers 1, 2 and 3 and a controller apart, each a JVM, as the recorder has them (``traces/kafka/cluster.py``). Nothing
that a clock drives is left to decide anything: the ISR's lag has ten minutes, as have the fetches of followers and of
the metadata log, and the messages that matter are held at the gate.
"""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self

from ....traces.jvm import java_binary, java_version
from ....traces.kafka.batches import Limits, SegmentScan
from ....traces.kafka.broker import read_broker
from ....traces.kafka.capture import checkpoint, copy_kept
from ....traces.kafka.cluster import BROKER_IDS, CONTROLLER_ID, NODE_NAMES, Cluster, wait_until
from ....traces.kafka.maven import fetch_kafka
from ....traces.kafka.problems import ProblemLog
from ..jars import RELEASE
from .clients import Clients
from .frames import FETCH
from .proxy import Gate, Hold

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from types import TracebackType

    from ....traces.kafka.image import PartitionState

PATIENCE_MS: Final = 600_000
BROKER_SETTINGS: Final[Mapping[str, object]] = {
    "replica.fetch.wait.max.ms": 50,
    "replica.fetch.backoff.ms": 50,
    "request.timeout.ms": PATIENCE_MS,
    "replica.socket.timeout.ms": PATIENCE_MS,
    "controller.quorum.fetch.timeout.ms": PATIENCE_MS,
    "controller.quorum.request.timeout.ms": PATIENCE_MS,
    "controller.socket.timeout.ms": PATIENCE_MS,
}
"""What brokers are told beside the recorder's own settings."""
CONTROLLER_SETTINGS: Final[Mapping[str, object]] = {
    # A broker that has ended may come back only when its session is over.
    "broker.session.timeout.ms": 10_000,
    "auto.leader.rebalance.enable": False,
}
"""What the controller is told."""
TOPIC_SETTINGS: Final[Mapping[str, str]] = {"unclean.leader.election.enable": "false", "retention.ms": "-1"}


@dataclass(frozen=True)
class Stored:
    """A record in a broker's log."""

    offset: int
    leader_epoch: int
    value: str

    def __str__(self) -> str:
        return f"{self.value}@{self.leader_epoch}"


def stored(segment: Path) -> list[Stored]:
    """The records of a segment's file; none of one that has been deleted meanwhile."""
    limits = Limits()
    found: list[Stored] = []
    with suppress(FileNotFoundError), segment.open("rb") as file:
        for batch in SegmentScan(file, segment.stat().st_size, ProblemLog(segment), limits=limits):
            for record in batch.records(limits):
                value = (record.value or b"").decode("utf-8", "replace")
                found.append(Stored(record.offset, batch.leader_epoch, value))
    return found


class Stage:
    """A running cluster behind a gate; a context manager that leaves neither process nor file behind.

    ``keep``: a folder that the nodes' directories and output are moved to in the end, in place of being removed.
    """

    def __init__(
        self,
        release: str = RELEASE,
        keep: Path | None = None,
        lag_ms: int = PATIENCE_MS,
        settings: Mapping[str, object] | None = None,
        options: Sequence[str] = (),
        of_all: Mapping[str, object] | None = None,
    ) -> None:
        """``lag_ms``: ``replica.lag.time.max.ms`` of the brokers; ``settings``: what else they are told.

        ``of_all``: what the controller is told as well. ``options``: of the nodes' JVMs.

        Raises BadInput where Maven, the release or a JVM is out of reach; nothing is started before `__enter__`.
        """
        self.jars = fetch_kafka(release)
        self.java = java_binary()
        self.jvm = java_version(self.java)
        self._settings = {**BROKER_SETTINGS, "replica.lag.time.max.ms": lag_ms, **(settings or {}), **(of_all or {})}
        self._of_controller = {**CONTROLLER_SETTINGS, **(of_all or {})}
        self._options = options
        self._keep = keep
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        self.home = Path(tempfile.mkdtemp(prefix="fencepost-cluster-"))
        self._stack.callback(self._put_away)
        try:
            nodes = (*BROKER_IDS, CONTROLLER_ID)
            self.gate = self._stack.enter_context(Gate(nodes, lambda node: self.cluster.nodes[node].port))
            self.cluster = self._stack.enter_context(
                Cluster(
                    self.jars, self.java, self.home, "RmVuY2Vwb3N0R2F0ZWQ",
                    self._settings, self._of_controller, self.gate.fronts, self._options,
                )
            )  # fmt: skip
            self.cluster.format()
            self.cluster.start(CONTROLLER_ID)
            self.cluster.start(*BROKER_IDS)
            self.clients = self._stack.enter_context(Clients(self.jars, self.java, self.home / "client.out"))
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        # The clients make one line of what Java has thrown.
        self._stack.__exit__(kind, error, traceback)

    def _put_away(self) -> None:
        if self._keep is None:
            shutil.rmtree(self.home, ignore_errors=True)
        else:
            if hasattr(self, "gate"):
                (self.home / "gate.txt").write_text("".join(f"{each}\n" for each in self.gate.seen), encoding="utf-8")
            shutil.copytree(self.home, self._keep, dirs_exist_ok=True)
            shutil.rmtree(self.home, ignore_errors=True)

    # -- what is held -----------------------------------------------------------------------------------------------

    def hold_fetches(self, leader: int, follower: int, *, responses: bool = False) -> Hold:
        """The fetches of a follower at a leader wait at the gate from now on, or what they bring does."""
        return self.gate.hold(leader, FETCH, f"broker-{follower}-fetcher-0", responses=responses)

    def hold_metadata(self, broker: int, *, responses: bool = False) -> Hold:
        """A broker's fetches of the metadata log wait, or what they bring does."""
        return self.gate.hold(CONTROLLER_ID, FETCH, f"raft-client-{broker}", responses=responses)

    # -- what is done -----------------------------------------------------------------------------------------------

    def new_topic(
        self, name: str, replicas: Sequence[int], min_isr: int, more: Mapping[str, str] | None = None
    ) -> None:
        """A topic of one partition, led by the first of `replicas` in leader epoch 0; all of these have heard of it.

        ``more``: its settings beside the usual.
        """
        settings = {**TOPIC_SETTINGS, "min.insync.replicas": str(min_isr), **(more or {})}
        self.clients.create_topic(self.cluster.bootstrap, name, replicas, settings)
        for broker in replicas:
            self.wait_heard(broker, name, 0)

    def elect(self, topic: str, order: Sequence[int], by: int) -> PartitionState:
        """A clean election: the replicas are put in this order, and the first of them is elected as the preferred one.

        ``by``: the broker that the administrator's requests go through. Gives what the controller has decided.
        """
        address = self.cluster.address(by)
        self.clients.reassign(address, topic, order)
        self.clients.elect_preferred(address, topic)
        return self.wait_decided(topic, order[0])

    def shut_down(self, broker: int) -> None:
        """SIGTERM: the broker asks the controller for a controlled shutdown, and ends when the others know of it."""
        self.cluster.nodes[broker].signal(signal.SIGTERM)

    def all_up(self, but: Sequence[int] = ()) -> None:
        """Start the brokers that have ended, all or all but some, each with its directory as it left it."""
        down = [broker for broker in BROKER_IDS if not self.cluster.nodes[broker].running and broker not in but]
        if down:
            self.cluster.start(*down)

    def wait_ended(self, broker: int, seconds: float = 60.0) -> None:
        """Wait until a broker's process has ended."""
        wait_until(f"broker {broker} to end", lambda: not self.cluster.nodes[broker].running, seconds)

    def fetch(self, hold: Hold, follower: int, topic: str, wanted: Sequence[str]) -> None:
        """Let a follower's held fetches through until its log holds these records, each written ``VALUE@EPOCH``."""
        what = f"broker {follower} to have {list(wanted)} of {topic}"
        hold.let_until(what, lambda: [str(each) for each in self.log(follower, topic)] == list(wanted))

    # -- what is seen -----------------------------------------------------------------------------------------------

    def decided(self, topic: str) -> PartitionState | None:
        """What the controller's own metadata log says of partition 0 of a topic."""
        image = read_broker(self.cluster.nodes[CONTROLLER_ID].directory, topics=()).metadata
        return None if image is None else image.partition(topic, 0)

    def wait_decided(self, topic: str, leader: int) -> PartitionState:
        """Wait until the controller has made `leader` (-1: nobody) the leader."""

        def there() -> bool:
            state = self.decided(topic)
            return state is not None and state.leader == leader

        wait_until(f"the controller to have broker {leader} lead {topic}", there)
        found = self.decided(topic)
        assert found is not None
        return found

    def wait_isr(self, topic: str, isr: Sequence[int]) -> PartitionState:
        """Wait until the ISR is this one, in any order, by the controller. Gives what that has decided."""

        def there() -> bool:
            state = self.decided(topic)
            return state is not None and set(state.isr) == set(isr)

        wait_until(f"the ISR of {topic} to be {sorted(isr)}", there)
        found = self.decided(topic)
        assert found is not None
        return found

    def roles(self, broker: int, topic: str) -> list[str]:
        """What a broker has printed of the roles that it took up for partition 0 of a topic, since it was formatted."""
        text = self.cluster.nodes[broker].log.read_text(errors="replace")
        told = re.findall(rf"(?:Leader|Follower) {re.escape(topic)}-0 .*starts at leader epoch .*", text)
        return [re.sub(r"with topic id Some\(\S+\) ", "", line) for line in told]

    def answered_isr(self, broker: int, topic: str) -> list[int]:
        """The ISR that a leader printed last when the controller had answered it; empty before the first."""
        text = self.cluster.nodes[broker].log.read_text(errors="replace")
        told = re.findall(rf"\[Partition {re.escape(topic)}-0 broker={broker}\] ISR updated to ([\d,]+)", text)
        return sorted(int(each) for each in told[-1].split(",")) if told else []

    def heard(self, broker: int, topic: str) -> int:
        """The leader epoch of the role that a broker took up last; -1 before the first."""
        told = self.roles(broker, topic)
        found = re.search(r"starts at leader epoch (\d+)", told[-1]) if told else None
        return int(found[1]) if found else -1

    def replayed(self, broker: int, topic: str) -> int:
        """The partition epoch of the last record that a leader has replayed, be its leader epoch new or not; or -1."""
        text = self.cluster.nodes[broker].log.read_text(errors="replace")
        name = re.escape(f"{topic}-0")
        told = re.findall(rf"(?:Leader {name} .*starts at|Skipped the become-leader state change for {name}) .*", text)
        found = re.search(r"(?:partition epoch |partitionEpoch=)(\d+)", told[-1]) if told else None
        return int(found[1]) if found else -1

    def wait_replayed(self, broker: int, topic: str, partition_epoch: int) -> None:
        """Wait until a leader has replayed the record of a partition epoch."""
        what = f"broker {broker} to replay partition epoch {partition_epoch} of {topic}"
        wait_until(what, lambda: self.replayed(broker, topic) >= partition_epoch, pause=0.02)

    def wait_heard(self, broker: int, topic: str, epoch: int) -> None:
        """Wait until a broker has taken up its role of a leader epoch."""
        what = f"broker {broker} to take up leader epoch {epoch} of {topic}"
        wait_until(what, lambda: self.heard(broker, topic) >= epoch, pause=0.02)

    def log(self, broker: int, topic: str) -> list[Stored]:
        """The records of a broker's log of partition 0, as its segments have them."""
        segments = sorted((self.cluster.nodes[broker].directory / f"{topic}-0").glob("*.log"))
        return [each for segment in segments for each in stored(segment)]

    def logs(self, topic: str) -> dict[int, list[Stored]]:
        """The same of every broker."""
        return {broker: self.log(broker, topic) for broker in BROKER_IDS}

    def high_watermarks(self, topic: str) -> dict[int, int]:
        """By broker, the high watermark that it has stored last (ten times a second, where it runs)."""
        files = {id_: self.cluster.nodes[id_].directory / "replication-offset-checkpoint" for id_ in BROKER_IDS}
        return {id_: checkpoint(file).get(f"{topic}-0", 0) for id_, file in files.items()}

    def wait_stored(self, topic: str, high_watermarks: Mapping[int, int]) -> None:
        """Wait until these brokers have stored these high watermarks."""
        wait_until(
            f"the high watermarks {dict(high_watermarks)} of {topic} on disk",
            lambda: self.high_watermarks(topic).items() >= high_watermarks.items(),
        )

    def wait_logs(self, topic: str, wanted: Mapping[int, Sequence[str]]) -> None:
        """Wait until these brokers' logs hold these records, each written ``VALUE@EPOCH``."""

        def there() -> bool:
            return all([str(each) for each in self.log(broker, topic)] == list(log) for broker, log in wanted.items())

        wait_until(f"the logs {dict(wanted)} of {topic}", there, pause=0.02)

    def wait_followed(self, topic: str, leader: int, followers: Sequence[int]) -> None:
        """Wait until these brokers have the log of that one, and all of them have stored its end as committed."""

        def there() -> bool:
            log, stored = self.log(leader, topic), self.high_watermarks(topic)
            same = all(self.log(broker, topic) == log for broker in followers)
            return same and all(stored[broker] == len(log) for broker in (leader, *followers))

        wait_until(f"brokers {list(followers)} to have the log of {leader} of {topic}", there, pause=0.02)

    def copy(self, target: Path, brokers: Sequence[int] = BROKER_IDS) -> list[Path]:
        """The brokers' directories as they are at one instant, all processes stopped meanwhile, below `target`.

        Without index files, as a recorded corpus has them. Gives the copies, for ``fencepost check``.
        """
        with self.cluster.frozen():
            for broker in brokers:
                copy_kept(self.cluster.nodes[broker].directory, target / NODE_NAMES[broker])
        return [target / NODE_NAMES[broker] for broker in brokers]
