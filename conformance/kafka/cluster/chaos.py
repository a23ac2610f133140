"""Real brokers under load while things go wrong, for what they print of it: each topic's log lines are a trace.

A producer with ``acks=all`` sends without a pause. Meanwhile brokers are killed, stopped, shut down, and come back;
another replica is elected; a follower's fetches are held at the gate. What goes wrong, and when, comes from a seed;
what the cluster makes of it does not. A topic has its minute, then the next one comes, as a trace has room for so many
leader epochs. What clocks drive has a few seconds here, not the ten minutes of a stage on which a story is told.

Whoever was down comes back to a newer leader epoch: a broker that goes on in the one that it was in has forgotten what
no line tells (``docs/how-to/read-server-logs.md``), so another replica is elected meanwhile.
"""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ....traces.kafka.cluster import BROKER_IDS, RecordingError, wait_until
from .clients import ClientError
from .finding import find_finding
from .finding_executor import FindingResult, execute

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from .clients import Sent
    from .stage import Stage, Stored

LAG_MS: Final = 10_000
"""``replica.lag.time.max.ms``: longer than most troubles last, and not than all of them."""
SETTINGS: Final[Mapping[str, object]] = dict.fromkeys(
    (
        "request.timeout.ms",
        "replica.socket.timeout.ms",
        "controller.quorum.fetch.timeout.ms",
        "controller.quorum.request.timeout.ms",
        "controller.socket.timeout.ms",
    ),
    10_000,
)
"""What brokers are told in place of a stage's patience."""
MINUTE: Final = 60.0
"""Seconds that a topic has."""
_EVERY: Final = 0.05
"""Seconds between two records."""
_QUIET: Final = (0.5, 4.0)
"""Between two troubles there are so many seconds."""
_STOPPED: Final = (1.0, 14.0)
"""A broker stands still for so many: its session is over before the longest."""
_PRODUCER: Final[Mapping[str, object]] = {
    "retries": 1_000,
    "enable.idempotence": "true",
    "request.timeout.ms": 5_000,
    "delivery.timeout.ms": 30_000,
    "max.block.ms": 5_000,
    "metadata.max.age.ms": 1_000,
}


@dataclass
class Loaded:
    """What came of a topic. ``acknowledged``: offset and value of each record of which its producer was told so."""

    topic: str
    sent: int = 0
    acknowledged: list[tuple[int, str]] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    """How many of the others were told which error, by its class."""
    troubles: Counter[str] = field(default_factory=Counter)
    lost: list[tuple[int, str]] = field(default_factory=list)
    """Those that the leader does not have in the end."""

    def words(self) -> str:
        """In a line."""
        troubles = ", ".join(f"{name} {count}" for name, count in sorted(self.troubles.items()))
        told = f"{len(self.acknowledged):,} of {self.sent:,} records were acknowledged"
        lost = f", {len(self.lost)} of them lost" if self.lost else ""
        refused = "".join(f", {count} got {name}" for name, count in sorted(self.refused.items()))
        return f"{self.topic}: {told}{lost}{refused}; {troubles or 'no trouble'}"

    def look_for(self, log: Iterable[Stored]) -> None:
        """Look for what was acknowledged in a leader's log. Where two were at one offset, one of them is lost."""
        there = {record.offset: record.value for record in log}
        self.lost = [(offset, value) for offset, value in self.acknowledged if there.get(offset) != value]


class _Load(threading.Thread):
    """Sends records to a topic until it is stopped, and then waits for what it is told of them."""

    def __init__(self, stage: Stage, found: Loaded) -> None:
        super().__init__(name=f"load of {found.topic}", daemon=True)
        self._stage, self._found = stage, found
        self._over = threading.Event()
        self._failed: BaseException | None = None

    def run(self) -> None:
        try:
            self._send()
        except BaseException as failed:
            # Raised in the thread that waits for it.
            self._failed = failed

    def _send(self) -> None:
        waiting: list[tuple[str, Sent]] = []
        bootstrap = ",".join(map(self._stage.cluster.address, BROKER_IDS))
        with self._stage.clients.lone_producer(bootstrap, self._found.topic, settings=_PRODUCER) as producer:
            while not self._over.wait(_EVERY):
                value = f"{self._found.topic}/{self._found.sent}"
                self._found.sent += 1
                waiting.append((value, producer.send(self._found.topic, value)))
            for value, sent in waiting:
                try:
                    self._found.acknowledged.append((sent.offset(), value))
                except ClientError as error:
                    self._found.refused[error.name] += 1

    def stop(self) -> None:
        """Send no more; over when all that was sent has been answered, or given up by its producer.

        Raises what sending did.
        """
        self._over.set()
        self.join()
        if self._failed is not None:
            raise self._failed


class _Troubles:
    """What goes wrong on one topic, one thing after another, as a seed draws it."""

    def __init__(self, stage: Stage, found: Loaded, draw: random.Random) -> None:
        self._stage, self._found, self._draw = stage, found, draw
        self._kinds: dict[str, Callable[[], None]] = {
            "killed": self._kill,
            "shut down": self._shut_down,
            "stopped": self._stop,
            "elected": lambda: self._elect(None),
            "fetches held": self._hold,
        }

    def until(self, end: float) -> None:
        """Go on until this instant of ``time.monotonic``."""
        while time.monotonic() < end:
            time.sleep(self._draw.uniform(*_QUIET))
            kind = self._draw.choice(sorted(self._kinds))
            self._found.troubles[kind] += 1
            self._kinds[kind]()

    def _leader(self) -> int | None:
        state = self._stage.decided(self._found.topic)
        return None if state is None else state.leader

    def _elect(self, down: int | None) -> None:
        """Another one, at random, where the controller finds one in the ISR."""
        order = [broker for broker in BROKER_IDS if broker != down]
        self._draw.shuffle(order)
        order += [down] if down is not None else []
        by = order[0]
        # It may be out of the ISR, or lead already, or nobody may answer.
        with suppress(ClientError), self._stage.clients.told():
            address = self._stage.cluster.address(by)
            self._stage.clients.reassign(address, self._found.topic, order)
            self._stage.clients.elect_preferred(address, self._found.topic)

    def _back(self, broker: int, leader: int | None) -> None:
        """Start a broker that has ended, when the others have had another election."""
        topic = self._found.topic
        time.sleep(self._draw.uniform(0.0, 3.0))
        if leader == broker:
            # Nobody else may be in the ISR: then it leads again, in a new leader epoch.
            with suppress(RecordingError):
                wait_until(f"another leader of {topic}", lambda: self._leader() != broker, 20.0)
        else:
            self._elect(broker)
        self._stage.all_up()

    def _kill(self) -> None:
        broker, leader = self._draw.choice(BROKER_IDS), self._leader()
        self._stage.cluster.nodes[broker].kill()
        self._back(broker, leader)

    def _shut_down(self) -> None:
        broker, leader = self._draw.choice(BROKER_IDS), self._leader()
        self._stage.shut_down(broker)
        self._stage.wait_ended(broker)
        self._back(broker, leader)

    def _stop(self) -> None:
        node = self._stage.cluster.nodes[self._draw.choice(BROKER_IDS)]
        node.pause()
        try:
            time.sleep(self._draw.uniform(*_STOPPED))
        finally:
            node.resume()

    def _hold(self) -> None:
        leader = self._leader()
        if leader not in BROKER_IDS:
            return
        follower = self._draw.choice([broker for broker in BROKER_IDS if broker != leader])
        hold = self._stage.hold_fetches(leader, follower, responses=self._draw.random() < 0.5)
        try:
            time.sleep(self._draw.uniform(0.5, 3.0))
        finally:
            hold.open()


def load_topic(stage: Stage, topic: str, seconds: float, seed: int, say: Callable[[str], None] = print) -> Loaded:
    """So many seconds of load and troubles on a new topic; then all come up, and what was acknowledged is looked for.

    Raises RecordingError where the cluster does not come to rest.
    """
    stage.all_up()
    stage.new_topic(topic, BROKER_IDS, min_isr=2)
    found = Loaded(topic)
    load = _Load(stage, found)
    load.start()
    try:
        draw = random.Random(f"{seed} {topic}")  # noqa: S311 - it draws what goes wrong
        _Troubles(stage, found, draw).until(time.monotonic() + seconds)
    finally:
        stage.all_up()
        load.stop()
    wait_until(f"all replicas of {topic} in the ISR", lambda: _isr(stage, topic) == set(BROKER_IDS), 90.0)
    state = stage.decided(topic)
    assert state is not None
    stage.wait_followed(topic, state.leader, [broker for broker in BROKER_IDS if broker != state.leader])
    found.look_for(stage.log(state.leader, topic))
    say(found.words())
    return found


def chaos(
    stage: Stage, seconds: float, seed: int, *, say: Callable[[str], None] = print
) -> tuple[list[Loaded], FindingResult]:
    """A topic for each minute of so many seconds, and K11 on one of its own, half-way. Raises RecordingError."""
    found: list[Loaded] = []
    minutes = max(1, round(seconds / MINUTE))
    lost: FindingResult | None = None
    for number in range(minutes):
        found.append(load_topic(stage, f"load-{number}", seconds / minutes, seed, say))
        if lost is None and 2 * (number + 1) >= minutes:
            lost = execute(find_finding("k11"), stage, say=say)
            stage.all_up()
    assert lost is not None
    return found, lost


def _isr(stage: Stage, topic: str) -> set[Any]:
    state = stage.decided(topic)
    return set() if state is None else set(state.isr)
