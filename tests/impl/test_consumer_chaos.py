"""Random elections, clean and unclean, old metadata and a bad network: no gap goes unnoticed, and reading goes on.

The promises are those of the protocol ``truncation``, asked of real logs and a real consumer after every step.
"""

from __future__ import annotations

import random

import pytest
from fencepost.impl.consumer import (
    ConsumerConfig,
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    Outcome,
    ResetPolicy,
)
from fencepost.impl.log import Record
from fencepost.impl.net import Faults, SimulatedNetwork
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import MetadataResponse

from .leaders import TP, Leader, Reader

Row = tuple[int, bytes | None]


class Story:
    """Three replicas and one consumer, driven by one seed."""

    def __init__(self, seed: int, *, mended: bool, policy: ResetPolicy) -> None:
        self.chance = random.Random(seed)
        faults = Faults(loss=0.05, duplication=0.1, latency=(1, 40))
        self.network = SimulatedNetwork(seed, faults=faults)
        self.replicas = [Leader(self.network, address) for address in range(3)]
        for replica in self.replicas:
            replica.mended = mended
        self.epoch = -1
        self.written = 0
        self.elected: list[int] = []
        self.lives = 0
        self.config = ConsumerConfig(
            brokers=(0, 1, 2),
            group="billing",
            reset_policy=policy,
            max_bytes=1,
            retry_backoff_ms=20,
            request_timeout_ms=300,
        )
        self.reader = Reader(self.network, self.config, [TP])
        self.consumed: dict[int, Row] = {}
        self.truncations = 0
        self.elect(self.replicas[0])
        self.reader.consumer.seek(TP, 0)

    @property
    def leader(self) -> Leader:
        return self.replicas[self.elected[-1]]

    # -- steps ------------------------------------------------------------------------------------------------------

    def elect(self, new: Leader) -> None:
        """An election: clean or unclean, as it happens. The leader before goes on as a zombie."""
        hw = min(self.leader.hw, self.common(new, self.leader)) if self.elected else 0
        self.epoch += 1
        self.elected.append(new.address)
        new.lead(self.epoch)
        new.hw = hw

    def common(self, left: Leader, right: Leader) -> int:
        """The end of what two logs have in common."""
        pairs = zip(rows(left), rows(right), strict=False)
        return next((n for n, (one, other) in enumerate(pairs) if one != other), min(left.log.end, right.log.end))

    def follow(self, replica: Leader) -> None:
        """Become a follower of the leader, and copy some of what it has."""
        if replica is not self.leader:
            replica.copy(self.leader, self.chance.randint(self.common(replica, self.leader), self.leader.log.end))

    def write(self) -> None:
        self.written += 1
        self.leader.log.append_as_leader([Record(b"%d" % self.written)], self.epoch)
        self.leader.hw = self.chance.randint(self.leader.hw, self.leader.log.end)

    def tell(self, age: int) -> None:
        """What brokers answer about the leader: how it was some elections ago."""
        for replica in self.replicas:
            epoch = max(0, self.epoch - self.chance.randint(0, age))
            replica.metadata = MetadataResponse(ErrorCode.NONE, self.elected[epoch], epoch)

    def poll(self) -> None:
        consumer = self.reader.consumer
        try:
            records = consumer.poll()
        except LogTruncationError as error:
            self.truncations += 1
            consumer.seek(TP, error.divergent_offsets[TP])
            return
        except (OffsetOutOfRangeError, NoOffsetForPartitionError):
            consumer.seek(TP, 0)
            return
        for record in records:
            self.consumed[record.offset] = record.leader_epoch, record.value
        self.truncations += consumer.state(TP).outcome is Outcome.LOG_TRUNCATION

    def restart(self) -> None:
        self.network.detach(self.reader.consumer.address)
        self.lives += 1
        config = ConsumerConfig(
            **{
                **{name: getattr(self.config, name) for name in self.config.__slots__},
                "first_correlation": self.lives * 1_000_000,
            }
        )
        self.reader = Reader(self.network, config, [TP])

    def step(self) -> None:
        replica = self.chance.choice(self.replicas)
        kind = self.chance.random()
        if kind < 0.02:
            self.elect(replica)
        elif kind < 0.06:
            self.follow(replica)
        elif kind < 0.10:
            self.write()
        elif kind < 0.13:
            self.tell(3)
        elif kind < 0.15:
            self.reader.consumer.commit()
        elif kind < 0.16:
            self.restart()
        elif kind < 0.5:
            self.poll()
        else:
            self.network.run(self.network.clock.now() + self.chance.randint(1, 60))
        self.no_silent_gap()

    # -- promises ---------------------------------------------------------------------------------------------------

    def no_silent_gap(self) -> None:
        """Every log that holds the record read last holds all that was read before it, since the last notice."""
        state = self.reader.consumer.state(TP)
        if state.position is None or state.position.offset == state.consumed_from:
            return
        read = range(state.consumed_from, state.position.offset)
        for replica in self.replicas:
            log = dict(enumerate(rows(replica)))
            if log.get(read[-1]) == self.consumed[read[-1]]:
                assert {o: log.get(o) for o in read} == {o: self.consumed[o] for o in read}, f"a gap at {read}"

    def reaches_the_end(self) -> None:
        """With true metadata and a good network, the consumer reads up to the high watermark."""
        self.network.faults = Faults()
        self.write()
        self.leader.hw = self.leader.log.end
        for replica in self.replicas:
            if replica is not self.leader:
                replica.epoch = None
        for _ in range(200):
            self.tell(0)
            self.poll()
            self.network.run(self.network.clock.now() + 30)
            self.no_silent_gap()
        state = self.reader.consumer.state(TP)
        assert state.position is not None and state.position.offset == self.leader.hw, state


def rows(replica: Leader) -> list[Row]:
    """Epoch and value of every record."""
    return [(record.leader_epoch, record.value) for record in replica.log.records(0)]


def play(seed: int, *, mended: bool = True, policy: ResetPolicy = ResetPolicy.LATEST, steps: int = 400) -> int:
    """One story; gives how often the consumer met LOG_TRUNCATION."""
    story = Story(seed, mended=mended, policy=policy)
    for _ in range(steps):
        story.step()
    story.reaches_the_end()
    return story.truncations


@pytest.mark.sampled(3)
@pytest.mark.parametrize("policy", ResetPolicy)
def test_no_gap_goes_unnoticed_and_reading_goes_on(policy: ResetPolicy) -> None:
    assert sum(play(seed, policy=policy) for seed in range(25)) > 10


def test_leaders_by_the_letter_of_the_kip_let_a_gap_pass() -> None:
    """The planted fault: without the two rules of ``kip-320-mended`` some of the same stories have a silent gap."""
    gaps = 0
    for seed in range(25):
        try:
            play(seed, mended=False)
        except AssertionError as error:
            gaps += "a gap at" in str(error)
    assert gaps > 0


def test_same_seed_same_story() -> None:
    def told(seed: int) -> list[str]:
        story = Story(seed, mended=True, policy=ResetPolicy.EARLIEST)
        lines: list[str] = []
        story.network.observer = lambda what, now, envelope: lines.append(f"{now} {what} {envelope}")
        for _ in range(200):
            story.step()
        return lines

    assert told(5) == told(5)
    assert told(5) != told(6)
