"""The steps of ``kip-320-kafka`` and its twins, as a cluster of real Kafka brokers can be made to take them.

Every fetch of a follower and every fetch of the metadata log waits at the gate. Replica 0 of the model is broker 1, and
so on; the model's first leader epoch is that of the topic's creation. An election is a clean one of the preferred
replica, a failed leader one that shuts down in order; its process ends only when all others have heard of it.

A broker hears of one leader epoch or of several at once, as the story has it: what it is answered holds all that was
decided up to then. So its fetch is let through to the controller before the next decision, and the answer waits.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from types import MappingProxyType
from typing import Final

from ....model.core.errors import BadInput
from ....traces.format import Trace, Value
from ....traces.kafka.cluster import BROKER_IDS, RecordingError, wait_until
from ...kafka.cluster.clients import ClientError, Polled, Sent
from ...kafka.cluster.frames import FETCH
from ...kafka.cluster.proxy import Hold
from ...kafka.cluster.stage import Stage
from ...kafka.cluster.trace_executor import CannotDo, calls_of, member_counts

TOPIC: Final = "story"
_SECONDS: Final = 15.0
_CLOCK: Final = "a clock drives it"
_NO_WAY: Final[Mapping[str, str]] = {
    "controller_shrink_isr": f"a broker that leads nothing leaves the ISR when its session ends, and {_CLOCK}",
    "leader_ask_shrink": f"a leader does so when replica.lag.time.max.ms has gone by, and {_CLOCK}",
    "restart": "a broker that starts again is registered anew, and leaves the ISR meanwhile",
    "leader_ask_expand": "here nobody has left the ISR",
    "leader_ask_again": "here nobody has left the ISR",
    "controller_grant_isr": "here no leader asks for an ISR",
    "leader_learn_isr": "here no leader asks for an ISR",
    "leader_replay_isr": "here no leader asks for an ISR",
    "controller_fence_follower": f"a broker is fenced when its session ends, and {_CLOCK}",
    "leader_learn_later_isr": "here no follower is fenced",
}


class OnCluster:
    """The hands of a story on a stage; a context manager."""

    by_itself: Sequence[str] = ("leader_inc_high_watermark",)
    settings: Mapping[str, object] = MappingProxyType({"replica.fetch.response.max.bytes": 1})  #: a record a fetch
    quiet = 0.5  #: high watermarks are stored ten times a second

    def __init__(self, stage: Stage, trace: Trace, where: str) -> None:
        """Raises BadInput for more replicas than there are brokers."""
        self.stage = stage
        constants = trace.header.constants
        self._constants = constants
        if constants["replicas"] > len(BROKER_IDS):
            mend = f"explore with --replicas {len(BROKER_IDS)} at most"
            raise BadInput(f"{constants['replicas']} replicas, and the cluster has {len(BROKER_IDS)}", where, mend)
        self.brokers = BROKER_IDS[: constants["replicas"]]
        self._min_isr = min(2, *member_counts(trace, where, "quorum_isr"))
        self._later: dict[int, list[int]] = {broker: [] for broker in self.brokers}
        """By broker, the leader epochs that the story has it hear of, from here on."""
        for action, params in calls_of(trace, where):
            values = dict(params)
            if action in ("become_leader", "hear_of_leader"):
                self._later[_broker(values.get("leader", values.get("replica", 0)))].append(values["epoch"])
        self._decided = -1
        self._answers: dict[int, int] = {}
        """By broker, the last leader epoch in the answer that waits for it."""
        self._failed: set[int] = set()
        self._sent: list[tuple[str, Sent]] = []
        self._numbers = count()
        self._stack = ExitStack()
        stage.all_up()
        for broker in self.brokers:
            # Who has heard of its topic has heard before that all are registered; nobody fetches of these.
            stage.new_topic(f"heard-{broker}", (broker,), 1)
        self._metadata = {broker: stage.hold_metadata(broker) for broker in self.brokers}
        for hold in self._metadata.values():
            hold.wait()
        self._brought = {broker: stage.hold_metadata(broker, responses=True) for broker in self.brokers}
        self._fetches: dict[tuple[int, int], Hold] = {
            (leader, follower): stage.hold_fetches(leader, follower)
            for leader in self.brokers
            for follower in self.brokers
            if leader != follower
        }

    def close(self) -> None:
        """End the producers, and hold nothing any more."""
        self._stack.close()
        for hold in (*self._metadata.values(), *self._brought.values(), *self._fetches.values()):
            hold.open()

    # -- what is done -----------------------------------------------------------------------------------------------

    def do(self, action: str, params: Mapping[str, int]) -> str:
        """Have a step happen."""
        if action in _NO_WAY:
            raise CannotDo(_NO_WAY[action])
        way: Callable[..., str] | None = getattr(self, f"_{action}", None)
        if way is None:
            raise CannotDo("nothing is known of how")
        try:
            with self.stage.clients.told():
                return way(**params)
        except ClientError as error:
            raise CannotDo(f"a client was told {error.name}") from error
        except RecordingError as late:
            raise CannotDo(str(late)) from late

    def _controller_elect_leader(self, new_leader: int) -> str:
        leader = _broker(new_leader)
        order = (leader, *(broker for broker in self.brokers if broker != leader))
        by = next(broker for broker in self.brokers if broker not in self._failed)
        if self._decided < 0:
            settings = {"min.insync.replicas": str(self._min_isr), "unclean.leader.election.enable": "false"}
            self.stage.clients.create_topic(self.stage.cluster.address(by), TOPIC, order, settings)
            self.stage.wait_decided(TOPIC, leader)
            done = f"the topic is created, with min.insync.replicas={self._min_isr}: broker {leader} is to lead"
        else:
            if leader in self._failed:
                raise CannotDo(f"broker {leader} is shutting down")
            self.stage.elect(TOPIC, order, by)
            done = f"broker {leader} is elected as the preferred replica"
        self._decide()
        return done

    def _controller_fail_over(self, failed: int, new_leader: int) -> str:
        down, leader = _broker(failed), _broker(new_leader)
        others = [broker for broker in self.brokers if broker not in (down, leader)]
        self.stage.clients.reassign(self.stage.cluster.address(leader), TOPIC, (down, leader, *others))
        self.stage.shut_down(down)
        self.stage.wait_decided(TOPIC, leader)
        self._failed.add(down)
        self._decide()
        return f"broker {down} shuts down in order: the controller has broker {leader} lead"

    def _decide(self) -> None:
        """The controller has begun a leader epoch."""
        self._decided += 1
        state = self.stage.decided(TOPIC)
        if state is None or state.leader_epoch != self._decided:
            raise CannotDo(f"the controller is in leader epoch {None if state is None else state.leader_epoch}")
        for broker in self.brokers:
            self._ask(broker)

    def _ask(self, broker: int) -> None:
        """Let a broker's fetch of the metadata log through, where the story has it hear of just what is decided now."""
        if broker not in self._answers and self._later[broker] and self._later[broker][0] == self._decided:
            self._metadata[broker].wait(_SECONDS)
            self._metadata[broker].let_on()
            self._brought[broker].wait(_SECONDS)
            self._answers[broker] = self._decided

    def _become_leader(self, leader: int, epoch: int) -> str:
        return self._hear(_broker(leader), epoch)

    def _hear_of_leader(self, replica: int, epoch: int) -> str:
        return self._hear(_broker(replica), epoch)

    def _hear(self, broker: int, epoch: int) -> str:
        if self._answers.pop(broker, None) != epoch:
            raise CannotDo(f"what broker {broker} is answered would bring more than leader epoch {epoch}")
        self._later[broker].pop(0)
        self._brought[broker].let_on()
        wait_until(
            f"broker {broker} to take up leader epoch {epoch}",
            lambda: self.stage.heard(broker, TOPIC) == epoch,
            _SECONDS,
            0.02,
        )
        # A fetch that was asked for before belongs to what is over; who asked is to ask again.
        for (_, follower), hold in self._fetches.items():
            if follower == broker and hold.waiting:
                self.stage.gate.decide(hold, passes=False)
        self._ask(broker)
        return f"broker {broker} is answered: {self.stage.roles(broker, TOPIC)[-1].strip()}"

    def _leader_write(self, leader: int) -> str:
        broker, value, client = _broker(leader), f"r{len(self._sent)}", f"producer-{len(self._sent)}"
        self._stack.enter_context(self._nowhere_else(broker, client))
        address = self.stage.cluster.address(broker)
        producer = self._stack.enter_context(self.stage.clients.lone_producer(address, client))
        producer.warm_up(TOPIC)
        sent = producer.send(TOPIC, value)
        self._sent.append((value, sent))

        def there() -> bool:
            if value in [record.value for record in self.stage.log(broker, TOPIC)]:
                return True
            if sent.answered:
                sent.offset()
            return False

        wait_until(f"{value} in the log of broker {broker}", there, _SECONDS, 0.02)
        return f"a producer sends {value} to broker {broker} with acks=all"

    @contextmanager
    def _nowhere_else(self, broker: int, client: str) -> Iterator[None]:
        """A client gets to this broker alone: others may not have heard yet of what it asks for."""
        refused = [self.stage.gate.refuse(other, client) for other in BROKER_IDS if other != broker]
        try:
            yield
        finally:
            for hold in refused:
                hold.open()

    def _follower_fetch(self, leader: int, follower: int) -> str:
        asked, asker = _broker(leader), _broker(follower)
        end = len(self.stage.log(asker, TOPIC))
        hold = self._fetches[asked, asker]
        grown = f"broker {asker} to fetch a record from broker {asked}"
        hold.let_until(grown, lambda: len(self.stage.log(asker, TOPIC)) == end + 1, _SECONDS)
        return f"a fetch of broker {asker} at broker {asked} is let through, and answered with a record"

    def _follower_acknowledge(self, leader: int, follower: int) -> str:
        """The answer is lost: else it would bring a record, where there is one, or a high watermark."""
        asked, asker = _broker(leader), _broker(follower)
        answers = self.stage.gate.hold(asked, FETCH, f"broker-{asker}-fetcher-0", responses=True)
        self._fetches[asked, asker].wait(_SECONDS)
        self._fetches[asked, asker].let_on()
        answers.wait(_SECONDS)
        answers.lose()
        return f"a fetch of broker {asker} at broker {asked} is let through, and its answer is lost"

    def _follower_hear_high_watermark(self, leader: int, follower: int) -> str:
        asked, asker = _broker(leader), _broker(follower)
        self._fetches[asked, asker].let_one(_SECONDS)
        return f"a fetch of broker {asker} at broker {asked} is let through, and answered"

    def _truncate_partly(self, leader: int, follower: int, end: int) -> str:
        asked, asker = _broker(leader), _broker(follower)
        cut = f"broker {asker} to truncate to offset {end}"
        self._fetches[asked, asker].let_until(cut, lambda: len(self.stage.log(asker, TOPIC)) == end, _SECONDS)
        return f"a fetch of broker {asker} at broker {asked} is let through: the logs part, and it truncates"

    def _leader_inc_high_watermark(self, leader: int) -> str:
        return f"broker {_broker(leader)} does so by itself"

    def _producer_hears(self, leader: int, offset: int) -> str:
        value = self.stage.log(_broker(leader), TOPIC)[offset].value
        told = dict(self._sent)[value].offset(int(_SECONDS))
        if told != offset:
            raise CannotDo(f"the producer of {value} was told offset {told}")
        return f"the producer of {value} is told NONE, offset {told}"

    def _consumer_reads(self, leader: int, offset: int) -> str:
        address = self.stage.cluster.address(_broker(leader))
        read: list[Polled] = []
        deadline = time.monotonic() + _SECONDS
        client = f"consumer-{next(self._numbers)}"
        with (
            self._nowhere_else(_broker(leader), client),
            self.stage.clients.consumer(address, client, TOPIC) as consumer,
        ):
            while offset not in [each.offset for each in read]:
                if time.monotonic() > deadline:
                    raise CannotDo(f"a consumer reads {', '.join(map(str, read)) or 'nothing'}")
                read += consumer.poll(0.5)
        return f"a consumer reads from broker {_broker(leader)}: {', '.join(map(str, read))}"

    # -- what is seen -----------------------------------------------------------------------------------------------

    def observe(self) -> Mapping[str, Value]:
        """Logs and stored high watermarks, who has taken up which role, and what the controller has decided."""
        cells: dict[str, Value] = {}
        watermarks = self.stage.high_watermarks(TOPIC)
        for broker in self.brokers:
            replica, log = broker - 1, self.stage.log(broker, TOPIC)
            cells[f"leo[{replica}]"] = len(log)
            cells[f"hw[{replica}]"] = watermarks[broker]
            for offset in range(self._constants["log_size"]):
                record = log[offset] if offset < len(log) else None
                cells[f"record_id[{replica}][{offset}]"] = -1 if record is None else int(record.value[1:])
                cells[f"record_epoch[{replica}][{offset}]"] = -1 if record is None else record.leader_epoch
            cells |= self._role(broker)
        state = self.stage.decided(TOPIC)
        if state is not None:
            cells["quorum_leader_epoch"] = state.leader_epoch
            cells["quorum_leader"] = None if state.leader < 0 else state.leader - 1
            cells["quorum_isr"] = tuple(sorted(broker - 1 for broker in state.isr))
        return cells

    def _role(self, broker: int) -> dict[str, Value]:
        told = self.stage.roles(broker, TOPIC)
        leader: int | None = None
        if told:
            follows = re.search(r"Current leader is (-?\d+)", told[-1])
            named = int(follows[1]) if follows else broker
            leader = None if named < 0 else named - 1
        return {f"leader_epoch[{broker - 1}]": self.stage.heard(broker, TOPIC), f"leader[{broker - 1}]": leader}

    def seen(self) -> Sequence[str]:
        """The logs, the stored high watermarks, and what producers were told by now."""
        watermarks = self.stage.high_watermarks(TOPIC)
        logs = {broker: " ".join(map(str, self.stage.log(broker, TOPIC))) for broker in self.brokers}
        told = ["   ".join(f"{broker}: [{logs[broker]}], hw {watermarks[broker]}" for broker in self.brokers)]
        for value, sent in self._sent:
            if sent.answered:
                try:
                    told.append(f"the producer of {value} has been told NONE, offset {sent.offset()}")
                except ClientError as error:
                    told.append(f"the producer of {value} has been told {error.name}")
        return told


def _broker(replica: int) -> int:
    return BROKER_IDS[replica]


HANDS: Final = OnCluster
"""Who carries stories of this protocol out on a cluster."""
