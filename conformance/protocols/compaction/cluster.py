"""Brokers with a compacted topic and their controller, running freely: roles, logs, cleaners; and what is seen of them.

Everything is real but time, network and disks. Each broker cleans its own log, when its timer fires. While it does, the
disk is copied before each effect, as a loss of power there would leave it, and what a broker finds on the copy is held
to what was there before and is after.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from ....impl.compaction import CompactionConfig
from ....impl.files.interface import Files
from ....impl.files.simulated import SimulatedFiles
from ....impl.log.checkpoints import CLEANED_OFFSETS, read_offsets
from ....impl.net.interface import Clock
from ....impl.replica.broker import Broker
from ....impl.replica.config import BrokerConfig
from ....impl.replica.partition import PartitionState
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    NO_LEADER,
    Envelope,
    FetchResponse,
    LeaderAndIsrResponse,
)
from ....model.core.errors import BadInput
from ....traces.format import Value
from ...adapters.cluster import PARTITION, shown_leader
from ...adapters.endpoints import Node
from ...adapters.events import is_response, kind_of
from ...adapters.nodes import DUE, EFFECTS
from ...adapters.topic_ids import topic_ids
from ...checks.crash_image import Nowhere, check_awake, copy_of, opened
from ...checks.durability import LastingBrokers
from ...checks.timers import Timed, TimedNodes, waits_of_broker
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import RequestOutcome, StepResult
from .cleaner_preview import Ahead, LateClock, Topic
from .observation import WrittenCells, cells_of_log, given
from .records import HEADER, LogReader, Row, most_longs
from .responses import check_ages, check_cleaning, check_contents, check_tombstones
from .workload import Ages, Workload

FOLLOWER, LEADER, OFFLINE = "follower", "leader", "offline"
"""Roles are told apart by their names: those of a copy of ``impl`` are other objects."""
STRATEGIES: Final = ("unset", "offset", "timestamp", "header")
_LAG_MS: Final = 100
_RETRY_MS: Final = 300
_COPIES: Final = 24
"""So many copies are taken of a disk, while its log is cleaned."""
_LOOKS_AHEAD: Final = 16
"""After one of so many events it is looked at what a cleaner would do later."""
_ROOMY: Final = 1 << 12
"""Memory of a cleaner in which each key of a run has a slot."""
_AT_ONCE: Final = 24
"""So many messages arrive at once in one event."""


class RunningBrokers(LastingBrokers, TimedNodes):
    """Brokers ``0`` to ``replicas - 1``. The controller never fails; ways to brokers may."""

    protocol = "compaction"
    implemented = "kip-280-brokers"
    times = (1, 60, 200, _RETRY_MS + 1)

    # -- the start --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        self.chance = chance = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        self.pace = Workload(chance)
        self.strategy = chance.choice(STRATEGIES)
        """The topic's, now."""
        self.default = chance.choice(STRATEGIES)
        """The brokers'."""
        self.ratio = chance.choice(("0", "0", "0.5"))
        self.retention = chance.choice((60, 300, 1 << 20))
        self.ages = Ages.drawn(chance.choice((1, 1, 200, 1 << 40)), self.seed)
        self._memory = chance.choice((64, 128, _ROOMY, _ROOMY))
        self._segment_bytes = chance.choice((260, 500, 1 << 20))
        self._fetch_bytes = chance.choice((1, 200, 1 << 20))
        self._flushes = chance.random() < 0.2
        files = SimulatedFiles(self.seed)
        self.controller = self._parts.controller(
            self.network, self.clock, files, retry=_RETRY_MS, new_id=topic_ids(self.seed)
        )
        self.network.attach(self.controller)
        self._incarnations = dict.fromkeys(range(constants["replicas"]), 0)
        self._reader = LogReader()
        self._rows: dict[int, dict[int, Row]] = {}
        """By node and offset: what was in its log when it was last seen up."""
        self._contents: dict[tuple[int, int], Row] = {}
        """By leader epoch and offset: what was ever in some log."""
        self._cells: dict[int, dict[str, Value]] = {}
        self._cleaned_at = dict.fromkeys(range(constants["replicas"]), 0)
        self._hw = 0
        self._committed: dict[int, int] = {}
        self._written = WrittenCells(constants)
        self._observed: dict[str, Value] = {}
        """What was seen after the last event."""
        self._cleaning: int | None = None
        self._of_cleaning: list[SimulatedFiles] = []
        self._left: dict[int, Row] = {}
        """What the last cleaning has left."""
        self._of_broker = waits_of_broker(self._config())
        return range(constants["replicas"])

    def compaction(self) -> CompactionConfig:
        """The topic's configuration, as a broker makes it of its own and the topic's."""
        topic = {
            "cleanup.policy": "compact",
            "compaction.strategy": "" if self.strategy == "unset" else self.strategy,
            "compaction.strategy.header": HEADER,
            "min.cleanable.dirty.ratio": self.ratio,
            **self.ages.configs(),
            "delete.retention.ms": str(self.retention),
        }
        broker = {"log.cleaner.compaction.strategy": "" if self.default == "unset" else self.default}
        return self._parts.topic_config(topic, broker)[1]

    @property
    def in_force(self) -> str:
        """The strategy by which everybody goes."""
        return next(each for each in (self.strategy, self.default, "offset") if each != "unset")

    def _begin(self, node: int, first_correlation: int) -> Node:
        self._incarnations[node] += 1
        return self._made(node, self.store.files(node), self.wire(), first_correlation)

    def _made(
        self, node: int, files: Files, wire: Any, first_correlation: int = 0, clock: Clock | None = None
    ) -> Broker:
        config, clock = self._config(), clock or self.clock.at(node)
        return self._parts.broker(node, files, wire, clock, config, first_correlation=first_correlation)

    def _opened_on(self, node: int, files: SimulatedFiles) -> Broker:
        return self._made(node, files, Nowhere())

    def _config(self) -> BrokerConfig:
        return self._parts.broker_config(
            log=self._parts.log_config(segment_bytes=self._segment_bytes, index_interval_bytes=1),
            replica_lag_time_max_ms=_LAG_MS,
            isr_interval_ms=_LAG_MS // 2,
            replica_fetch_max_bytes=self._fetch_bytes,
            replica_fetch_wait_ms=20,
            replica_fetch_backoff_ms=20,
            request_timeout_ms=2 * _LAG_MS,
            high_watermark_interval_ms=50,
            recovery_point_interval_ms=500,
            flush_each_append=self._flushes,
            compacted={PARTITION.topic: self.compaction()},
            cleaner=self._parts.cleaner_config(dedupe_buffer_bytes=self._memory, backoff_ms=20),
        )

    def _timed(self, node: int) -> Iterator[Timed]:
        yield Timed(self.broker(node)._runtime.timers, self._of_broker)

    def _settle(self) -> None:
        for node in self.replicas:
            self.controller.broker_started(node, self._incarnations[node])
        self.controller.create_partition(PARTITION, list(self.replicas), elect=False)
        if self.pace.alone:
            first = self.seed % len(self.replicas)
            self.controller.elect_leader(PARTITION, first)
            for node in self.replicas:
                if node != first:
                    self.controller.shrink_isr(PARTITION, node)
        for node in self.replicas:
            self._look(node)

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new nodes; what they are configured with is as they have it."""
        if constants["header_values"] > most_longs():
            most = most_longs()
            raise BadInput(f"a run has {most} values of the header at most", "--header-values", f"give 1 to {most}")
        begun = super().reset(constants, seed)
        self._observed = self._picture()
        return StepResult(begun.sent, inputs=frozenset(self._observed))

    # -- looking ----------------------------------------------------------------------------------------------------

    def broker(self, node: int) -> Broker:
        """A broker that is up."""
        return cast(Broker, self.nodes[node])

    def replica(self, node: int) -> Any:
        """What a broker that is up has of the partition; None before it was told of it."""
        return self.broker(node).partitions.get(PARTITION)

    def state(self, node: int) -> PartitionState | None:
        """What a replica goes by; None before its broker was told of the partition."""
        replica = self.replica(node)
        return None if replica is None else replica.state()

    def _is_lost(self, node: int) -> bool:
        replica = self.replica(node)
        return replica is not None and replica.role.value == OFFLINE

    def _look(self, node: int) -> None:
        """Take the cells of a broker that is up anew. Raises WrongState for a record that is not what it was."""
        files, state = self.store.files(node), self.state(node)
        end = 0 if state is None else state.end
        rows = {row.offset: row for row in self._reader.read(files) if row.offset < end}
        check_contents(rows.values(), self._contents)
        for row in rows.values():
            self._contents.setdefault((row.epoch, row.offset), row)
        old, was = self._rows.get(node, {}), self._cells.get(node, {})
        self._rows[node] = rows
        role = "none" if state is None else state.role.value
        knows = role in (FOLLOWER, LEADER)
        least = min(end, int(str(was.get(f"leo[{node}]", 0))))
        partition = self.replica(node)
        checkpoint = read_offsets(files, CLEANED_OFFSETS, "").get(PARTITION, 0)
        cells: dict[str, Value] = {
            f"leads[{node}]": int(role == LEADER),
            f"joined[{node}]": state.leader_epoch if state is not None and knows else -1,
            f"own_hw[{node}]": 0 if state is None else state.high_watermark,
            f"leo[{node}]": end,
            f"active[{node}]": 0 if partition is None else partition.log.segment_bases[-1],
            f"checkpoint[{node}]": min(checkpoint, self.constants["log_size"]),
            f"reached[{node}]": min(checkpoint, self.constants["log_size"]),
            f"cleaned_at[{node}]": self._cleaned_at[node],
            f"broker_strategy[{node}]": self.default,
        }
        cells |= cells_of_log(node, rows, old, least, self.constants["log_size"])
        self._cells[node] = cells
        if state is not None and role == LEADER and state.high_watermark > self._hw:
            for offset in range(self._hw, state.high_watermark):
                self._committed[offset] = rows[offset].epoch if offset in rows else -1
            self._hw = state.high_watermark

    def observe(self) -> Mapping[str, Value]:
        """Everything but who was in time: of who is down what it was last."""
        return self._observed

    def _picture(self) -> dict[str, Value]:
        """What is seen now."""
        quorum = self.controller.partition(PARTITION)
        cells: dict[str, Value] = {
            "leader": shown_leader(quorum.leader),
            "leader_epoch": quorum.leader_epoch,
            "hw": self._hw,
            "topic_strategy": self.strategy,
            "retention": self.retention,
            "eager": int(self.ages.cleans(float(self.ratio), self.constants)),
            "rolls": int(self.ages.closes(self.constants)),
        }
        cells |= self._written.of(self._contents, self._committed)
        for node in self.replicas:
            cells |= self._cells[node]
        return cells

    # -- what may happen --------------------------------------------------------------------------------------------

    def _timers(self, node: int) -> Iterable[Key]:
        return self.broker(node).timers()

    def _epochs_left(self) -> int:
        return self.constants["max_leader_epoch"] - self.controller.partition(PARTITION).leader_epoch

    def _operations(self) -> Iterator[Event]:
        """What operators, or whoever watches brokers, ask the controller for."""
        quorum, left = self.controller.partition(PARTITION), self._epochs_left()
        for node in self.replicas:
            unknown = self.controller.brokers[node].incarnation < self._incarnations[node]
            timely = quorum.leader == NO_LEADER or self.pace.is_time("election")
            able = node in quorum.isr and node != quorum.leader and node not in quorum.offline
            if left > 0 and able and timely:
                yield call("elect", replica=node)
            # One that was restarted unnoticed fails first, and then leads or is left without an epoch of its own.
            if unknown and node not in self.down and left > 1:
                yield call("register", replica=node)
            if left > 1 and node in quorum.isr and node != quorum.leader and self.pace.is_time("election"):
                yield call("shrink", replica=node)
        deadline = self.controller.deadline()
        if deadline is not None and deadline <= self.clock.now():
            yield call("resend")

    def _operate(self, event: Event) -> None:
        match event.name:
            case "elect":
                self.controller.elect_leader(PARTITION, int(event.arg("replica")))
            case "shrink":
                self.controller.shrink_isr(PARTITION, int(event.arg("replica")))
            case "register":
                node = int(event.arg("replica"))
                self.controller.broker_started(node, self._incarnations[node])
            case "resend":
                self.controller.wake()

    # -- what happens -----------------------------------------------------------------------------------------------

    def _hook(self, node: int) -> Callable[[str, str], None]:
        files, takes_effect = self.store.files(node), super()._hook(node)

        def hook(operation: str, path: str) -> None:
            cleans = operation in EFFECTS and self._cleaning == node and len(self._of_cleaning) < _COPIES
            if cleans and isinstance(files, SimulatedFiles):
                self._of_cleaning.append(copy_of(files, self.seed + len(self._of_cleaning)))
            takes_effect(operation, path)

        return hook

    def _is_copied_amid(self, node: int) -> bool:
        return self._cleaning != node  # else it is looked at by what a cleaning may leave

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does, and WrongState."""
        node = event.node
        if event.what is EventKind.TIMER and node is not None:
            self._cleaned_at[node] = self.clock.now()
            cleans = event.name == CLEANER or (event.name == DUE and self._is_cleaning_due(node))
            self._cleaning = node if cleans and node not in self.bad else None
        self._of_cleaning.clear()
        rows = dict(self._rows.get(node, {})) if node is not None else {}
        state = self.state(node) if self._cleaning is not None and node is not None else None
        synced = 0 if state is None else state.synced
        before, at = self._observed, self._cleaning
        try:
            happened = super().step(event)
        finally:
            self._cleaning = None
        cells = self._observed = self._picture()
        if at is not None and at not in self.down:
            clean, cleaned = (int(str(each[f"checkpoint[{at}]"])) for each in (before, cells))
            wall = self.clock.at(at).wall()
            check_ages(rows, self._left, clean, cleaned, wall, self.ages.least)
            # Where the map has no room for what lies behind, a tombstone stays that may beat some of it (P1).
            if clean < cleaned and (self.in_force == "offset" or self._memory == _ROOMY):
                check_tombstones(rows, self._left, clean, wall)
        if self._of_cleaning and node is not None and node not in self.down:
            self._look_amid(node, rows, synced)
        return replace(happened, inputs=given(before, cells, grew=happened.started))

    def _is_cleaning_due(self, node: int) -> bool:
        at = self.broker(node)._runtime.timers.get((CLEANER,))
        return at is not None and at <= self.clock.now()

    def _look_amid(self, node: int, before: Mapping[int, Row], synced: int) -> None:
        """What a loss of power in the midst of a cleaning would have left. Raises NotFound and WrongState."""
        for number, left in enumerate(self._of_cleaning):
            partition, copy = self._started_on(node, left, self._copy_seed + number)
            found = None if partition is None else partition.state()
            end = 0 if found is None else found.end
            rows = {row.offset: row for row in self._reader.read(copy) if row.offset < end}
            checkpoint = read_offsets(copy, CLEANED_OFFSETS, "").get(PARTITION, 0)
            check_cleaning(before, self._left, rows, end, synced, checkpoint, self.in_force, self.constants)

    def _kept(self, node: int) -> dict[int, Row]:
        """What is in a broker's log just now."""
        state = self.state(node)
        end = 0 if state is None else state.end
        return {row.offset: row for row in self._reader.read(self.store.files(node)) if row.offset < end}

    def _look_for_losses(self, node: int) -> None:
        super()._look_for_losses(node)
        files, replica = self.store.files(node), self.replica(node)
        if self._copy_seed // 8 % _LOOKS_AHEAD or node in self._failed or not isinstance(files, SimulatedFiles):
            return
        if replica is None or replica.log.offline is not None:
            return
        copy, clock = copy_of(files, self._copy_seed), LateClock(self.clock.at(node))
        broker = opened(lambda there: self._made(node, there, Nowhere(), clock=clock), copy)
        # Where the map has no room for what lies behind, a tombstone stays that may beat some of it (P1).
        all_mapped = self.in_force == "offset" or self._memory == _ROOMY
        topic = Topic(self.in_force, self.retention, self.ages.least, all_mapped)
        Ahead(broker, copy, clock, topic, self.constants, replica.high_watermark, self._copy_seed).check()

    def _touched(self, event: Event) -> set[int]:
        return {event.node} if event.node is not None else set()

    def _took(self, event: Event) -> Sequence[ModelStep]:
        self.pace.after(event)
        cleans = self._cleaning is not None
        if self._cleaning is not None and self._cleaning not in self.down:
            self._left = self._kept(self._cleaning)
        self._cleaning = None
        touched = self._touched(event)
        # An answer may lower the high watermark that a cleaner has gone by.
        steps = [*self._wrote(self.arrived), *(() if cleans else self._let_arrive(event, touched))]
        for node in sorted(touched):
            if node not in self.down and node in self.nodes:
                self._look(node)
                self._account_broker(node)
                check_awake(node, self.broker(node), PARTITION)
                self._look_for_losses(node)
        for flight in self.network.in_flight():
            if not self._may_arrive(flight.envelope):
                self.network.drop(flight)
        return steps

    def _wrote(self, arrived: Envelope | None) -> Sequence[ModelStep]:  # noqa: ARG002 - for clients
        """The steps that a produce which has arrived may be."""
        return ()

    def _let_arrive(self, event: Event, touched: set[int]) -> list[ModelStep]:
        """Let what arrives at once arrive; what it is in the model.

        Roles are given as they are after an event. So what is decided by a role comes in no event that may change it:
        a produce arrives at once when it is sent, and whoever is to lead is told when the controller decides it.
        """
        steps: list[ModelStep] = []
        for _ in range(_AT_ONCE if self.pace.at_once and event.what not in _ALONE else 0):
            flights = (each for each in self.network.in_flight() if _comes_with(event, kind_of(each.envelope)))
            flight = next((each for each in flights if self._is_prompt(each.envelope)), None)
            if flight is None:
                break
            envelope = flight.envelope
            if not is_response(envelope):
                self._requested[envelope.source, envelope.correlation] = flight.number, envelope
            self.network.deliver(flight)
            if envelope.destination >= 0:
                touched.add(envelope.destination)
            if not is_response(envelope):
                steps += self._wrote(envelope)
                # One that it has got before, as the request came twice, may be on its way still.
                answer = self._answer(envelope, self._known)
                self.decided += () if answer is None else self._judged(envelope, answer)
        return steps

    def _is_prompt(self, envelope: Envelope) -> bool:
        """Whether a message arrives at once: not what brings records, nor at a node whose disk may fail it."""
        ends = {envelope.source, envelope.destination}
        if not ends.isdisjoint(self.down | self.bad.keys() | self.cut) or not self._may_arrive(envelope):
            return False
        body = envelope.body
        if isinstance(body, FetchResponse):
            return envelope.destination >= 0 and not body.records and self.pace.is_prompt("Fetch")
        return self.pace.is_prompt(kind_of(envelope).removesuffix("Response"))

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:  # noqa: ARG002 - for clients
        return ()

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        body: Any = envelope.body
        if asked is None or not isinstance(body, FetchResponse) or body.error is not ErrorCode.NONE:
            return ()
        if not body.records:
            return ()
        source, destination = envelope.source, envelope.destination
        if getattr(asked.body, "replica_id", CONSUMER) == CONSUMER:
            return (("consumer_fetch", {"leader": source}), ("consumer_skip", {"leader": source}))
        pair = {"leader": source, "follower": destination}
        return (("follower_fetch", pair), ("follower_skip", pair))

    def _may_arrive(self, envelope: Envelope) -> bool:
        """Not what would go beyond the model's leader epochs. That is lost."""
        body = envelope.body
        if isinstance(body, LeaderAndIsrResponse) and body.error is ErrorCode.KAFKA_STORAGE_ERROR:
            return self._epochs_left() > 1
        return True

    def _room_for(self, name: str) -> int:
        return 1 if name.startswith("UpdateMetadata") else super()._room_for(name)


_ALONE: Final = frozenset({EventKind.DELIVER, EventKind.REPEAT, EventKind.LOSE, EventKind.START})
"""Events with which nothing else arrives."""
_DECISIONS: Final = frozenset({"elect", "shrink", "register", "resend"})


def _comes_with(event: Event, kind: str) -> bool:
    """Whether a message of a kind may arrive at once in an event."""
    produces = kind in ("Produce", "ProduceResponse")
    if event.name == "produce" or produces:
        return event.name == "produce" and produces
    return kind != "LeaderAndIsr" or event.name in _DECISIONS


CLEANER: Final = "log-cleaner"
"""The timer of a broker's cleaner."""


def call(name: str, **args: int) -> Event:
    """What somebody asks for."""
    return Event(EventKind.CALL, name, args=tuple(sorted(args.items())))
