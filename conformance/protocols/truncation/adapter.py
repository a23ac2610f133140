"""``truncation`` with real brokers and a real consumer: each step of the model is a schedule of messages.

What the model leaves open has to be brought about:

- *The high watermark rises when the leader likes.* The ISR of each leader epoch is the leader and one more replica, the
  witness of that epoch, which fetches just as far as is to be committed. A clean election takes the witness away to the
  new epoch; an uncleanly deposed leader keeps it, and goes on committing.
- *A new leader knows at once how much of what was committed it holds.* The broker is restarted before it is told, so
  that its high watermark is the stored one, which is 0; then the new witness fetches up to where it has to be.
- *Metadata is as old as it pleases.* The consumer is handed the answer of whatever broker the step stands for.

Elections are the harness's: LeaderAndIsr requests are written here, as the model's electorate is no ISR.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from ....impl.consumer import Consumer, ConsumerConfig
from ....impl.consumer import Outcome as Answered
from ....impl.consumer import PartitionState as Reading
from ....impl.log.directory import DataDirectory
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    NO_EPOCH,
    NO_OFFSET,
    FetchRequest,
    LeaderAndIsrRequest,
    MetadataResponse,
    Response,
)
from ....traces.format import Value
from ...adapters.carrier import CLIENT, LOSES, error_name
from ...adapters.cluster import (
    FETCH_TIMER,
    PARTITION,
    Cluster,
    leads,
    produce,
    shown_leader,
)
from ...adapters.stored import StoredAdapter
from ...lockstep.adapter import Outcome
from ...lockstep.faults import EVENTS, STORAGE, TIMED_OUT, Fault, Kind

_COORDINATOR: Final = 1000
_OFFSETS: Final = 1001
_READER: Final = -200
_TIMEOUT: Final = 1000


class TruncationAdapter(StoredAdapter):
    """A consumer of ``impl`` and the brokers that it reads from."""

    protocol = "truncation"
    implemented = "kip-320-mended"
    drawn = (frozenset(Kind) - STORAGE - EVENTS) | {Kind.DELIVER_LATE}

    @cached_property
    def _actions(self) -> dict[str, Callable[[str, Mapping[str, int], Kind | None], Outcome]]:
        poll = self._poll
        return {
            "elect_cleanly": self._elect,
            "elect_uncleanly": self._elect,
            "become_follower": self._become_follower,
            "leader_write": self._write,
            "follower_fetch": self._follower_fetch,
            "leader_inc_high_watermark": self._inc_high_watermark,
            "refresh_metadata": self._refresh_metadata,
            "consumer_fetch": poll,
            "answer_unknown_leader_epoch": poll,
            "answer_log_truncation": poll,
            "answer_out_of_range": poll,
            "find_divergence": poll,
            "reset_to_divergence": self._reset_to_divergence,
            "seek": self._seek,
            "reset_to_latest": self._reset_to_latest,
            "commit_offset": self._commit,
            "restart": self._restart,
            "seek_to_nearest": self._seek_to_nearest,
        }

    # -- the adapter ------------------------------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """New disks, new brokers, a new consumer."""
        store = self._new_store(seed)
        self._cluster = cluster = Cluster(self._parts, store, constants["replicas"], seed)
        self._brokers = constants["replicas"]
        self._everyone = tuple(range(self._brokers + constants["max_leader_epoch"] + 1))
        self._leaders: list[int] = []
        """Whom each epoch elected."""
        self._written = 0
        self._consumed: dict[int, int] = {}
        self._committed: tuple[int, int, int] | None = None
        directory = DataDirectory(store.files(_OFFSETS), node_id=_OFFSETS, cluster_id="offsets")
        coordinator = self._parts.coordinator(
            directory.log("__consumer_offsets", 0), cluster.clock, known=lambda partition: partition == PARTITION
        )
        cluster.start(_COORDINATOR, coordinator)
        config = ConsumerConfig((0,), group="g", coordinator=_COORDINATOR, address=_READER, request_timeout_ms=_TIMEOUT)
        self._consumer: Consumer = self._parts.consumer(cluster.network, cluster.clock, config)
        cluster.network.attach(self._consumer)
        self._consumer.assign([PARTITION])
        self._consumer.seek(PARTITION, 0)

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """One action."""
        self._cluster.clock.advance(1)
        outcome = self._actions[action](action, params, None if fault is None else fault.kind)
        position = self._reading.position
        if position is not None and self._committed is not None and position.offset < self._committed[0]:
            self._committed = None  # whoever goes back behind a commit takes it back
        return outcome

    def inject(self, fault: Fault) -> Outcome:
        """A late response, which is all that there is."""
        assert fault.kind is Kind.DELIVER_LATE
        self._cluster.deliver_late()
        return Outcome()

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def _reading(self) -> Reading:
        return self._consumer.state(PARTITION)

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but which elections were unclean."""
        cluster, reading = self._cluster, self._reading
        position, found = reading.position, reading.divergence
        assert position is not None
        cells: dict[str, Value] = {
            "next_record_id": self._written,
            "quorum_leader_epoch": len(self._leaders) - 1,
            "metadata_leader": shown_leader(reading.leader),
            "position": position.offset,
            "last_epoch": position.leader_epoch,
            "seen_epoch": position.serving_epoch,
            "consumed_from": reading.consumed_from,
            "outcome": reading.outcome.name.lower(),
            "answered_epoch": reading.answered_epoch,
            "reported": -1 if found is None else found.offset,
            "reported_epoch": NO_EPOCH if found is None else found.leader_epoch,
        }
        names = ("committed", "committed_epoch", "committed_seen")
        cells |= dict(zip(names, self._committed or (NO_OFFSET, NO_EPOCH, NO_EPOCH), strict=True))
        for offset in range(reading.consumed_from, position.offset):
            cells[f"consumed_id[{offset}]"] = self._consumed.get(offset, -1)
        for epoch, leader in enumerate(self._leaders):
            cells[f"epoch_leader[{epoch}]"] = leader
        for node in cluster.replicas:
            state = cluster.state(node)
            cells[f"leo[{node}]"] = 0 if state is None else state.end
            cells[f"leader_epoch[{node}]"] = NO_EPOCH if state is None else state.leader_epoch
            cells[f"hw[{node}]"] = state.high_watermark if state is not None and leads(state, node) else 0
            for offset, epoch, number in cluster.records(node):
                cells[f"record_id[{node}][{offset}]"] = number
                cells[f"record_epoch[{node}][{offset}]"] = epoch
        return cells

    # -- elections and roles ----------------------------------------------------------------------------------------

    def _witness(self, epoch: int) -> int:
        return self._brokers + epoch

    def _tell(self, node: int, epoch: int) -> str | None:
        """LeaderAndIsr of an epoch; the error that it is answered with."""
        leader = self._leaders[epoch]
        request = LeaderAndIsrRequest(
            controller_epoch=1,
            partition=PARTITION,
            leader=leader,
            leader_epoch=epoch,
            isr=frozenset((leader, self._witness(epoch))),
            replicas=self._everyone,
            offline=frozenset(),
            partition_epoch=epoch,
        )
        return error_name(self._cluster.carry(self._cluster.ask(CONTROLLER, node, request, BROKER_PRINCIPAL)))

    def _elect(self, action: str, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        cluster, new, epoch = self._cluster, params["new_leader"], len(self._leaders)
        committed = 0
        if self._leaders:
            old = cluster.state(self._leaders[-1])
            committed = min(0 if old is None else old.high_watermark, self._common_end(new, self._leaders[-1]))
        self._leaders.append(new)
        cluster.crash(new, 0)
        cluster.start(self._witness(epoch))
        error = self._tell(new, epoch)
        if error is not None:
            return Outcome(error=error)
        if action == "elect_cleanly" and epoch > 0:
            self._tell(self._witness(epoch - 1), epoch)
        self._follow(self._witness(epoch), epoch)
        self._witness_up_to(epoch, committed)
        return Outcome(((action, params),))

    def _common_end(self, left: int, right: int) -> int:
        ours, theirs = self._cluster.records(left), self._cluster.records(right)
        return next(
            (o for o, (a, b) in enumerate(zip(ours, theirs, strict=False)) if a != b), min(len(ours), len(theirs))
        )

    def _follow(self, node: int, epoch: int, fault: Kind | None = None) -> str | None:
        """Let a replica take up an epoch and truncate; the error of the LeaderAndIsr."""
        if fault in LOSES:
            # What is lost is the request that tells of the epoch: there is no half of a step.
            return TIMED_OUT
        error = self._tell(node, epoch)
        if error is None:
            self._cluster.truncate(node, self._leaders[epoch], fault)
        return error

    def _fetch_as(self, node: int, leader: int, fault: Kind | None = None) -> Response | None:
        cluster = self._cluster
        cluster.brokers[node].fire(FETCH_TIMER)
        answer = cluster.carry(cluster.sent(node, leader), fault)
        cluster.give_up(node)
        return answer

    def _witness_up_to(self, epoch: int, offset: int) -> None:
        """Let the witness of an epoch acknowledge everything below ``offset``, if it is still there to do so."""
        cluster, witness, leader = self._cluster, self._witness(epoch), self._leaders[epoch]
        state = cluster.state(witness)
        while state is not None and (state.leader, state.leader_epoch) == (leader, epoch) and state.end < offset:
            self._fetch_as(witness, leader)
            after = cluster.state(witness)
            if after is None or after.end == state.end:
                return
            state = after
        if state is not None and (state.leader, state.leader_epoch) == (leader, epoch) and offset > 0:
            # What it has is acknowledged by its next fetch; whatever that brings is lost.
            cluster.brokers[witness].fire(FETCH_TIMER)
            cluster.carry(cluster.sent(witness, leader), Kind.LOSE_RESPONSE)
            cluster.give_up(witness)

    def _become_follower(self, action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        epoch, node = len(self._leaders) - 1, params["follower"]
        before = self._cluster.state(node)
        error = self._follow(node, epoch, fault)
        state = self._cluster.state(node)
        joined = state is not None and state.role.value == "follower" and state.leader_epoch == epoch
        was = before is not None and before.leader_epoch == epoch
        return Outcome(((action, params),) if joined and not was else (), error)

    # -- records ----------------------------------------------------------------------------------------------------

    def _write(self, action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        cluster, node = self._cluster, params["leader"]
        was = cluster.state(node)
        answer = cluster.carry(cluster.ask(CLIENT, node, produce(self._written), "User:client"), fault)
        now = cluster.state(node)
        appended = now is not None and now.end > (0 if was is None else was.end)
        self._written += appended
        return Outcome(((action, params),) if appended else (), error_name(answer))

    def _follower_fetch(self, action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        cluster, node = self._cluster, params["follower"]
        if not self._leaders:
            return Outcome()
        leader, was = self._leaders[-1], cluster.state(node)
        if was is not None and was.role.value == "follower" and was.leader == leader:
            answer = self._fetch_as(node, leader, fault)
        else:
            end, epoch = (0, NO_EPOCH) if was is None else (was.end, was.leader_epoch)
            answer = cluster.carry(
                cluster.ask(node, leader, FetchRequest(node, PARTITION, end, 1, epoch), BROKER_PRINCIPAL), fault
            )
        now = cluster.state(node)
        fetched = was is not None and now is not None and now.end > was.end
        return Outcome(((action, params),) if fetched else (), error_name(answer))

    def _inc_high_watermark(self, action: str, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        cluster, node = self._cluster, params["leader"]
        was = cluster.state(node)
        if was is None or not leads(was, node):
            return Outcome()
        self._witness_up_to(was.leader_epoch, was.high_watermark + 1)
        now = cluster.state(node)
        raised = 0 if now is None else now.high_watermark - was.high_watermark
        return Outcome(((action, params),) * raised)

    # -- the consumer -----------------------------------------------------------------------------------------------

    def _metadata(self, epoch: int) -> None:
        """Some broker's answer, of when that epoch was the latest."""
        answer = MetadataResponse(ErrorCode.NONE, self._leaders[epoch], epoch, replicas=self._everyone)
        self._consumer.update_metadata(PARTITION, answer)

    def _refresh_metadata(self, action: str, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        if self._leaders[params["epoch"]] == self._reading.leader:
            return Outcome()
        self._metadata(params["epoch"])
        return Outcome(((action, params),))

    def _ask(self, fault: Kind | None) -> Response | None:
        """Let the consumer send what is due, and carry it."""
        self._consumer.advance(PARTITION, max_bytes=1)  # nothing, where it has just sent it by itself
        return self._carry(self._reading.leader, fault)

    def _believe(self) -> None:
        """Let some broker confirm what the consumer knows of the leader; after an error it would ask for it first."""
        known = self._reading
        answer = MetadataResponse(ErrorCode.NONE, known.leader, known.leader_epoch, replicas=self._everyone)
        self._consumer.update_metadata(PARTITION, answer)

    def _carry(self, destination: int, fault: Kind | None) -> Response | None:
        cluster, consumer = self._cluster, self._consumer
        answer = cluster.carry(cluster.sent(_READER, destination), fault)
        if answer is None:
            cluster.clock.advance(_TIMEOUT)
            consumer.wake()
        return answer

    def _drop_requests(self) -> None:
        cluster = self._cluster
        for flight in cluster.network.in_flight(source=_READER):
            cluster.network.drop(flight)
        self._consumer.abandon(PARTITION)

    def _poll(self, _action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        before = self._reading
        if before.outcome not in (Answered.FETCHING, Answered.LOG_TRUNCATION):
            return Outcome()
        self._believe()
        answer = self._ask(fault)
        for record in self._consumer.take(PARTITION, 1):
            self._consumed[record.offset] = int(record.value or b"-1")
        after = self._reading
        happened = {
            Answered.UNKNOWN_LEADER_EPOCH: "answer_unknown_leader_epoch",
            Answered.LOG_TRUNCATION: "answer_log_truncation",
            Answered.OFFSET_OUT_OF_RANGE: "answer_out_of_range",
            Answered.DIVERGENCE_FOUND: "find_divergence",
        }
        if after.outcome != before.outcome:
            return Outcome(((happened[after.outcome], params),))
        moved = before.position != after.position
        return Outcome((("consumer_fetch", params),) if moved else (), error_name(answer))

    def _moved(self, action: str, params: Mapping[str, int], answer: Response | None) -> Outcome:
        """A new position was asked for; where that was refused, the old one stays."""
        error = error_name(answer)
        if error is None:
            return Outcome(((action, params),))
        self._drop_requests()
        return Outcome(error=error)

    def _reset_to_divergence(self, action: str, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        return Outcome(((action, params),) if self._consumer.reset_to_divergence(PARTITION) else ())

    def _seek(self, action: str, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        reading = self._reading
        here = reading.position is not None and reading.position.offset == params["offset"]
        if here and reading.outcome != Answered.DIVERGENCE_FOUND:
            return Outcome()
        self._consumer.seek(PARTITION, params["offset"])
        return Outcome(((action, params),))

    def _reset_to_latest(self, action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        self._believe()
        self._consumer.seek_to_end(PARTITION)
        return self._moved(action, params, self._ask(fault))

    def _seek_to_nearest(self, action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        stored = self._reading.committed
        assert stored is not None
        self._believe()
        self._consumer.seek_to_nearest(PARTITION, stored)
        return self._moved(action, params, self._ask(fault))

    def _commit(self, action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        position = self._reading.position
        assert position is not None
        now = (position.offset, position.leader_epoch, position.serving_epoch)
        if self._committed is not None and self._committed[0] == now[0]:
            return Outcome()
        (commit,) = self._consumer.commit()
        self._carry(_COORDINATOR, fault)
        if commit.error is not ErrorCode.NONE:
            return Outcome(error=None if commit.error is None else commit.error.name)
        self._committed = now
        return Outcome(((action, params),))

    def _restart(self, action: str, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """What a consumer does that is assigned the partition: it asks for the committed offset."""
        reading = self._reading
        assert reading.position is not None and self._committed is not None
        if reading.outcome == Answered.FETCHING and reading.position.offset == self._committed[0]:
            return Outcome()  # it would come back to where it is
        self._consumer.seek_to_committed(PARTITION)
        self._consumer.advance(PARTITION)
        return self._moved(action, params, self._carry(_COORDINATOR, fault))
