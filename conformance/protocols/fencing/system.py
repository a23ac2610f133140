"""Brokers, their controller, a producer and a consumer as a system that runs freely, held to ``kip-320-cluster``.

Everything is real but time, network and disks. Every producer is idempotent, and each batch has a producer of its own,
so that a repeat is known as one: a record is known by what is in it, and has the model's id from when it is first in
some log. What clients were told is observed where it arrives.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from ....impl.replica.partition import PartitionState
from ....impl.replica.timers import Key
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    CONSUMER,
    CONTROLLER,
    NO_LEADER,
    NO_TOPIC_ID,
    AlterIsrRequest,
    AlterIsrResponse,
    Envelope,
    FetchRequest,
    FetchResponse,
    LeaderAndIsrRequest,
    LeaderAndIsrResponse,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
    ProduceRequest,
    ProduceResponse,
    StopReplicaRequest,
)
from ...adapters.carrier import error_name
from ...adapters.endpoints import Node
from ...adapters.events import is_response, plain
from ...adapters.nodes import DUE
from ...checks.crash_image import check_awake
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, RequestOutcome, SenderClaim, StepResult
from .client_ops import PROBER, READER
from .delete_records_responses import Deletions, begins_below
from .deleted_records import Deleted, begins_above
from .min_insync_replicas import Minimum
from .observation import ShownNodes
from .response_rules import Row, WrongAnswer
from .responses import Held, known_of
from .system_controller import PARTITION, RESEND, RETRY_MS
from .topic_deletion import Topics, request_name

_LAG_MS: Final = 100
_TIMEOUT_MS: Final = 4 * _LAG_MS
"""Longer than the clock is ever moved on at once: else, in peace, each answer would come too late."""
_TELLS_METADATA: Final = 0.3
"""In so many runs metadata reaches the brokers: they keep it for clients, and go by none of it."""
_CONTROLLER_FAILS: Final = 0.5
"""In so many runs the controller fails like the brokers."""
_UNJUDGED: Final = frozenset({ErrorCode.INVALID_UPDATE_VERSION, ErrorCode.INELIGIBLE_REPLICA})
"""What an AlterIsr is refused with for what the model does not have: the version of the ISR, and offline marks."""
_SHUTDOWN: Final = "shutdown"
_REOPEN: Final = "reopen"


class RunningCluster(ShownNodes):
    """Brokers of ``impl`` with their controller."""

    protocol = "fencing"
    implemented = "kip-320-cluster"
    times = (1, 60, _LAG_MS + 1, RETRY_MS + 1)

    # -- the start --------------------------------------------------------------------------------------------------

    def _set_up(self, constants: Mapping[str, int]) -> range:
        chance = random.Random(self.seed)  # noqa: S311 - repeatable on purpose
        segment_bytes = chance.choice((100, 400, 1 << 20))
        self._config = self._parts.broker_config(
            min_insync_replicas=chance.choice((1, 1, 1, 2)),
            log=self._parts.log_config(segment_bytes=segment_bytes, index_interval_bytes=chance.choice((1, 4096))),
            replica_lag_time_max_ms=chance.choice((0, _LAG_MS, _LAG_MS)),
            isr_interval_ms=chance.choice((10, _LAG_MS // 2)),
            replica_fetch_max_bytes=chance.choice((1, 150, 1 << 20)),
            replica_fetch_backoff_ms=chance.choice((20, 2 * _LAG_MS)),
            request_timeout_ms=_TIMEOUT_MS,
            high_watermark_interval_ms=chance.choice((10, 50, 500)),
            recovery_point_interval_ms=chance.choice((50, 500, 5_000)),
            flush_each_append=chance.random() < 0.2,
        )
        self._topics = Topics(PARTITION, self.seed)
        self._anew = False
        self._whichever: PartitionState | None = None
        """What the replica at which an event happens was like before it, whichever topic it is of."""
        self._deleted = Deleted(PARTITION, self.seed)
        self._deletions = Deletions(_TIMEOUT_MS)
        self._before = None
        self._minimum = Minimum(self._config.min_insync_replicas, range(constants["replicas"]), self.seed)
        self._set_up_clients(chance, rich=segment_bytes >= 400 and chance.random() < 0.3)
        self._held = Held(self.producers, self._reader.decode, min_isr=self._minimum.at, patience=_TIMEOUT_MS)
        self.network.observer = self._notice
        self._just_sent: list[Envelope] = []
        """What was sent in this event, whether it can reach anybody or not."""
        self._asked_isr, self._requests, self._cells, self._closed = {}, {}, {}, {}
        self._kept = dict.fromkeys(range(constants["replicas"]), (0, 0))
        self._begin_stored()
        self._metadata = chance.random() < _TELLS_METADATA
        if self._metadata and not self._topics.deletes:
            self._begin_application(range(constants["replicas"]), _TIMEOUT_MS)
        self._controller_fails = chance.random() < _CONTROLLER_FAILS
        self._start_controller(range(constants["replicas"]))
        return range(constants["replicas"])

    def _begin(self, node: int, first_correlation: int) -> Node:
        if node == CONTROLLER:
            return self._begin_controller()
        self._incarnations[node] += 1
        files, clock = self.store.files(node), self.clock.at(node)
        broker = self._parts.broker(node, files, self.wire(), clock, self._config, first_correlation=first_correlation)
        broker.require_in_sync(PARTITION.topic, self._minimum.hears(node))
        return cast(Node, broker)

    def _settle(self) -> None:
        controller = self.controller
        assert controller is not None
        for node in self.replicas:
            controller.broker_started(node, self._incarnations[node])
        controller.create_partition(PARTITION, list(self.replicas), elect=False)
        self._look_at_controller()
        self._topics.becomes(self._contents.partitions)
        for node in self.replicas:
            self._look(node)

    # -- processes --------------------------------------------------------------------------------------------------

    def _failures(self, address: int, node: int | None) -> Iterator[EnabledEvent]:
        if node is not None or self._controller_fails:
            yield from super()._failures(address, node)
        if node is not None and address not in self.bad:
            if address not in self.down:
                yield plain(EventKind.CRASH, _SHUTDOWN, node)
            elif address in self.nodes:
                yield plain(EventKind.START, _REOPEN, node)

    def _end(self, address: int, event: Event) -> None:
        if event.name != _SHUTDOWN:
            super()._end(address, event)
            return
        broker, state = self._broker(address), self._state(address)
        broker.close()
        self.network.detach(address)
        del self.nodes[address]
        self.down.add(address)
        # What was shut down in order has nothing to lose where power goes after it.
        self.store.crash(address, self._crash_seed(event))
        if state is not None:
            self._closed[address] = state.leader_epoch, state.end, state.high_watermark

    def _restart(self, address: int, event: Event) -> None:
        if event.name != _REOPEN:
            super()._restart(address, event)
            return
        # As a new process, but for what other partitions would share: whoever watches it registers it anew.
        self._broker(address).reopen(PARTITION)
        self._incarnations[address] += 1
        self.down.discard(address)

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a node does, and WrongAnswer for what it answers."""
        self._just_sent.clear()
        node, quorum = event.node, self.quorum
        before = () if node is None else self._records.get(node, ())
        self._before = state = None if node is None or node in self.down else self._state(node)
        self._whichever = None if node is None or node in self.down else self._replica(node)
        self._anew = False
        happened = super().step(event)
        if node is not None:
            self._hold(node, event, before, happened)
            if node in self.replicas and node not in self.down:
                self._account_broker(node)
            if state is not None and node not in self.down:
                self._look_at_checkpoints(node, state)
                self._look_for_losses(node, state, before)
                now = self._state(node)
                self._pace.happened(cut=node if now is not None and now.end < state.end else None)
        elif self.arrived is not None and self.arrived.destination == CONTROLLER and self.controller is not None:
            self._held.controller(self.arrived, self._just_sent, quorum, self.quorum)
            if is_response(self.arrived):
                self._answered(self.arrived, quorum)
        elif event.name == RESEND and self.controller is not None:
            self._sent_again(self._just_sent)
        if self._anew:
            happened = replace(happened, anew=True)
        return replace(happened, inputs=self._given(event.node)) if self._deleted.deletes else happened

    def _given(self, node: int | None) -> frozenset[str]:
        """The cells that the model takes as they come."""
        return self._deleted.given(
            node, self._cells, lambda each: cast(PartitionState, self._state(each)).high_watermark
        )

    def _hold(self, node: int, event: Event, before: Sequence[Row], happened: StepResult) -> None:
        if node in happened.crashed | happened.started:
            self._held.ended(node, process=node not in self.nodes or (event.name != _REOPEN and node not in self.down))
            self._deletions.forget(node)
        sent = [each for each in self._just_sent if each.source == node]
        if node in self.down:
            if event.crash is not None:
                self._closed.pop(node, None)
            if node in self.nodes:
                self._held.lost(node, self.arrived, sent)
            return
        state, found = self._state(node), self._replica(node)
        if node not in happened.started:
            self._topics.look(node, self.arrived, sent, self._whichever, found)
        if any(each is not None and self._topics.is_stray(each.topic_id) for each in (self._whichever, found)):
            self._held.lost(node, self.arrived, sent)
            self._held.knows(node, self._broker(node).metadata.get(PARTITION))
            return
        kept = self._closed.pop(node, None) if node in happened.started else None
        if kept is not None and (state is None or (state.leader_epoch, state.end, state.high_watermark) != kept):
            raise WrongAnswer(f"after it was shut down in order with {kept}, a broker begins with {state}")
        fired = event.name if event.what is EventKind.TIMER else None
        after = self._records[node]
        now = self.clock.now()
        self._held.broker(node, self.arrived, sent, state, before, after, now, fired=fired in (DUE, "produce"))
        self._held.knows(node, self._broker(node).metadata.get(PARTITION))
        if state is not None:
            self._deletions.look(node, self.arrived, sent, self._before, state, now, fired=fired in (DUE, "delete"))
            self._look_awake(node, state)

    def _look_awake(self, node: int, state: PartitionState) -> None:
        """Whether a broker goes on by itself, and syncs what it is to sync. Raises NotFound and WrongAnswer."""
        check_awake(node, self._broker(node), PARTITION)
        if self._config.flush_each_append and state.synced < state.end:
            raise WrongAnswer(f"broker {node} syncs each append, and has synced {state.synced} of {state.end}")

    def unsettled(self, but: int | None) -> str | None:
        """What brokers and controller owe others who are well, and the model has no word for."""
        controller, quorum = self.controller, self.quorum
        if self._topics.current is None:
            return None
        known = quorum.leader, quorum.leader_epoch, quorum.isr, quorum.offline, quorum.topic_id
        for node in self.replicas:
            if node == but or node in self.down | self.cut | self.bad.keys():
                continue
            state = self._state(node)
            if state is not None and state.waiting:
                return f"producers wait for answers of broker {node}"
            leads = controller is not None and node == quorum.leader
            if leads and state is not None and state.maximal_isr != state.isr:
                proposed = sorted(state.maximal_isr - state.isr)
                return f"leader {node} waits for replicas {proposed}, and nobody will say whether they are in the ISR"
            if controller is None or not self._metadata or self._is_unregistered(node):
                continue
            told = self._broker(node).metadata.get(PARTITION)
            if (told is None or known_of(told) != known) and not self._held.was_told(node, known):
                return f"broker {node} would tell clients {told}, and the controller has {known}"
        if but is not None:
            return None
        up = {node: self._state(node) for node in self.replicas if node not in self.down}
        return begins_below(quorum.leader, up) or self._waits_for_all()

    def _is_lost(self, node: int) -> bool:
        if node == CONTROLLER:
            return self._gave_up()
        partition = self._broker(node).partitions.get(PARTITION)
        return partition is not None and partition.failure is not None

    # -- timers ------------------------------------------------------------------------------

    def _timers(self, node: int) -> Iterable[Key]:
        """Those that have something to do: others fire, too, when they are due."""
        broker, state = self._broker(node), self._state(node)
        kept = (-1, -1) if state is None else (state.high_watermark, state.synced)
        idle = {
            **dict.fromkeys(("produce", "delete"), not self._is_due(broker)),
            "high-watermarks": state is None or kept[0] == self._kept[node][0],
            "recovery-points": state is None or kept[1] == self._kept[node][1],
        }
        return [key for key in broker.timers() if not idle.get(key[0], False)]

    def _asks(self, envelope: Envelope) -> bool:
        """Whether an AlterIsr is that of a leader of the topic that is there."""
        return envelope.source != PROBER and not self._topics.is_foreign(envelope)

    # -- what messages say ------------------------------------------------------------------------------------------

    def _notice(self, what: str, _moment: int, envelope: Envelope) -> None:
        """Told of every message that is sent, whether it can reach anybody or not."""
        body = envelope.body
        if what == "sent":
            self._just_sent.append(envelope)
            if envelope.source == CONTROLLER and not is_response(envelope):
                self._open[envelope.destination, request_name(envelope)] = envelope.correlation, self.clock.now()
            if envelope.source >= 0:
                self._deleted.sent(envelope, self._state(envelope.source))
                found = self._replica(envelope.source)
                self._topics.sent(envelope, NO_TOPIC_ID if found is None else found.topic_id)
        if what == "sent" and isinstance(body, LeaderAndIsrRequest | AlterIsrResponse):
            self._is_stored(body.partition_epoch)
        if what == "sent" and isinstance(body, StopReplicaRequest):
            self._is_stopped_for_good(body.topic_id, envelope.destination)
        if what == "sent" and isinstance(body, AlterIsrRequest) and self._asks(envelope):
            self._asked_isr[envelope.source] = body.leader_epoch, body.partition_epoch, body.new_isr

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:
        source, destination = envelope.source, envelope.destination
        body: Any = envelope.body
        if PROBER in (source, destination) or self._topics.is_foreign(envelope):
            return ()
        if asked is not None and self._topics.is_foreign(asked):
            return ()
        match body:
            case LeaderAndIsrRequest() if body.leader == destination:
                return (("become_leader", {"leader": destination, "epoch": body.leader_epoch}),)
            case LeaderAndIsrRequest() if body.leader != NO_LEADER:
                return (("hear_of_leader", {"replica": destination, "epoch": body.leader_epoch}),)
            case AlterIsrRequest():
                return (("controller_grant_isr", {"leader": source}),)
            case AlterIsrResponse():
                return (("leader_learn_isr", {"leader": destination}),)
            case FetchRequest() if body.replica_id != CONSUMER:
                return (("follower_acknowledge", {"leader": destination, "follower": source}),)
        pair = {"leader": source, "follower": destination}
        if asked is not None and isinstance(body, FetchResponse) and body.log_start_offset > 0 and destination >= 0:
            return self._deleted.steps(pair, body)
        if asked is None or body.error is not ErrorCode.NONE:
            return ()
        match body:
            case OffsetsForLeaderEpochResponse():
                return (("become_follower", {**pair, "epoch": body.answering_epoch}), ("truncate_partly", pair))
            case FetchResponse() if destination != READER:
                hears = (("follower_hear_high_watermark", pair),)
                return (("follower_fetch", pair), *hears) if body.records else hears
            case FetchResponse():
                there = self._reader.decode(body.records)
                offsets = [offset for offset, _, _ in there if offset >= body.log_start_offset]
                return tuple(("consumer_reads", {"leader": source, "offset": offset}) for offset in offsets)
            case ProduceResponse() if isinstance(asked.body, ProduceRequest) and asked.body.acks == -1:
                count = len(self.producers.payloads(asked.body))
                offsets = list(range(body.base_offset, body.base_offset + count))
                return tuple(("producer_hears", {"leader": source, "offset": offset}) for offset in offsets)
        return ()

    def _says(self, envelope: Envelope, asked: Envelope | None) -> tuple[SenderClaim, ...]:  # noqa: ARG002 - it says so itself
        """What a broker's request says of it; what answers say is held against its state (``response_rules.py``)."""
        body, node = envelope.body, envelope.source
        if node < 0 or self._topics.is_foreign(envelope):
            return ()
        match body:
            case FetchRequest():
                ends = SenderClaim((f"leo[{node}]",), body.fetch_offset)
                return SenderClaim((f"leader_epoch[{node}]",), body.current_leader_epoch), ends
            case OffsetsForLeaderEpochRequest():
                return (SenderClaim((f"leader_epoch[{node}]",), body.current_leader_epoch),)
            case AlterIsrRequest():
                return (SenderClaim((f"leader_epoch[{node}]",), body.leader_epoch),)
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:
        body: Any = request.body
        answered: Any = answer.body
        node, source = request.destination, request.source
        error = error_name(answered)
        if self._topics.is_foreign(request) or self._topics.is_foreign(answer):
            return ()
        if source == PROBER or answered.error is ErrorCode.STALE_CONTROLLER_EPOCH or begins_above(body, answered):
            return ()
        match body:
            case LeaderAndIsrRequest() | FetchRequest() if request.source != READER:
                return (RequestOutcome(self._steps(request, None), error),)
            case AlterIsrRequest() if answered.error not in _UNJUDGED:
                return (RequestOutcome(self._steps(request, None), error),)
            case FetchRequest() if answered.error is ErrorCode.OFFSET_OUT_OF_RANGE:
                # It may be of a topic that is deleted, and be past the end here: the model's clients never ask there.
                return ()
            case FetchRequest():
                offset = min(body.fetch_offset, self.constants["log_size"] - 1)
                return (RequestOutcome((("consumer_reads", {"leader": node, "offset": offset}),), error),)
            case OffsetsForLeaderEpochRequest():
                params = {"leader": node, "follower": source, "epoch": body.current_leader_epoch}
                return (RequestOutcome((("become_follower", params),), error),)
            case ProduceRequest() if answered.error in (ErrorCode.NONE, ErrorCode.NOT_LEADER_OR_FOLLOWER):
                return (RequestOutcome((("leader_write", {"leader": node}),), error),)
        return ()

    def _took(self, event: Event) -> Sequence[ModelStep]:
        steps: list[ModelStep] = []
        known = set(self._ids)
        if event.node is not None:
            self._look(event.node)
        else:
            self._look_at_controller(event)
            if self._topics.becomes(self._contents.partitions):
                self._begin_topic()
        if event.node is not None and self.arrived is not None:
            body, node = self.arrived.body, event.node
            if isinstance(body, ProduceRequest) and body.records in self.producers.of:
                # Only what its log has now: of a replica that has given up in this event, no more is known.
                there = {payload for _, _, payload in self._records[node]}
                if len(self._ids) > len(known):
                    steps.append(("leader_write", {"leader": node}))
                again = [self._ids[each] for each in self.producers.payloads(body) if each in known & there]
                steps += (("leader_write_again", {"leader": node, "record": record}) for record in again)
            elif isinstance(body, LeaderAndIsrRequest) and body.leader == node:
                steps.append(("leader_learn_isr", {"leader": node}))
        if event.node is not None and event.what is EventKind.TIMER and event.node not in self.down:
            state = self._state(event.node)
            if state is not None:
                hw, synced = self._kept[event.node]
                hw = state.high_watermark if event.name == "high-watermarks" else hw
                self._kept[event.node] = hw, state.synced if event.name == "recovery-points" else synced
        if event.what is EventKind.TIMER and event.name in ("isr", DUE):
            asks = ("leader_ask_again", "leader_ask_shrink", "leader_ask_expand")
            steps += ((name, {"leader": cast(int, event.node)}) for name in asks)
        quorum = self.quorum
        if quorum.leader_epoch >= 0:
            self._requests[quorum.leader_epoch] = quorum.leader, quorum.isr
        self._look_at_application(event, self._just_sent)
        return steps

    def _may_arrive(self, envelope: Envelope) -> bool:
        """Not what would go beyond the model's records, log size and leader epochs."""
        body, node = envelope.body, envelope.destination
        if isinstance(body, ProduceRequest) and node not in self.down:
            payloads = self.producers.payloads(body)
            state = self._state(node)
            end = 0 if state is None else state.end
            if self._deleted.is_gone(payloads):
                return False
            fits = end + len(payloads) <= self.constants["log_size"]
            return fits and len({*self._ids, *payloads}) <= self.constants["max_records"]
        if isinstance(body, LeaderAndIsrResponse) and body.error is ErrorCode.KAFKA_STORAGE_ERROR:
            return self._epochs_left() > 0
        return True

    def _room_for(self, name: str) -> int:
        return 0 if name.startswith("UpdateMetadata") and not self._metadata else super()._room_for(name)
