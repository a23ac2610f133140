"""``compaction`` as brokers do it: each step of the model is a schedule of real messages, or a pass of a real cleaner.

What the schedules take care of, so that the model can be led along:

- *There is one high watermark.* Whoever is to lead or to clean hears first, by a fetch of its own, how far the leader's
  is; what that fetch brings, and what it lets the leader commit, is told as steps of their own.
- *An ISR changes in one step.* All who follow acknowledge what they have before a leader looks at it.
- *A record at a time is fetched and read.* A batch that the cleaner has emptied is fetched along with the next record,
  and alone where it is the last one.
- *What was sealed stays so.* A log that is cut below its active segment begins another one.
- *Time.* A pass of a cleaner that is to remove a tombstone is made when that one's delete horizon is over, by the clock
  of that broker, and not if another one's would be; any other pass while none is over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Final

from ....impl.compaction import CompactionConfig
from ....impl.consumer.fetched import read_steps
from ....impl.log.batch import encode_batch
from ....impl.log.checkpoints import CLEANED_OFFSETS, read_offsets
from ....impl.replica.broker import CLEANER
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONSUMER,
    CONTROLLER,
    NO_EPOCH,
    NO_LEADER,
    FetchRequest,
    FetchResponse,
    ProduceRequest,
    Response,
)
from ....model.core.errors import BadInput
from ....traces.format import Value
from ...adapters.carrier import CLIENT, LOSES, error_name
from ...adapters.cluster import FETCH_TIMER, ISR_TIMER, PARTITION, Cluster, shown_leader, shown_set
from ...adapters.endpoints import Mailbox
from ...adapters.stored import StoredAdapter
from ...lockstep.adapter import ModelStep, Outcome
from ...lockstep.faults import EVENTS, STORAGE, TIMED_OUT, Fault, Kind
from .cluster import STRATEGIES
from .records import HEADER, LogReader, Row, Sent, cells_of_record, made, most_longs
from .responses import check_contents, rank_of

_READER: Final = CLIENT - 1
_RETENTION_MS: Final = 1 << 40
"""No run takes as long."""
_SEGMENT_MS: Final = 1 << 50
"""No segment is as old, even when a tombstone may go."""
_REFUSALS: Final = {"NotEligible": "ELIGIBLE_LEADERS_NOT_AVAILABLE", "ElectionNotNeeded": None}


class CompactionAdapter(StoredAdapter):
    """Brokers of ``impl`` with a compacted topic, and a consumer that makes a table of it."""

    protocol = "compaction"
    implemented = "empty-batch"
    drawn = (frozenset(Kind) - STORAGE - EVENTS) | {Kind.DELIVER_LATE}

    @cached_property
    def _actions(self) -> dict[str, Callable[[Mapping[str, int], Kind | None], Outcome]]:
        return {
            "elect_leader": self._elect,
            "become_follower": self._become_follower,
            "leader_write": self._write,
            "follower_fetch": self._follower_fetch,
            "follower_fetch_empty_batch": self._follower_fetch,
            "leader_inc_high_watermark": self._inc_high_watermark,
            "leader_shrink_isr": self._alter_isr,
            "leader_expand_isr": self._alter_isr,
            "roll_segment": self._roll,
            "remove_record": self._clean,
            "finish_cleaning": self._clean,
            "remove_tombstone": self._clean,
            "set_topic_strategy": self._set_topic,
            "set_broker_strategy": self._set_broker,
            "consumer_fetch": self._consumer_fetch,
            "consumer_start_over": self._consumer_start_over,
        }

    # -- the adapter ------------------------------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """New disks, new brokers. Raises BadInput for more values of the header than a record may have."""
        if constants["header_values"] > most_longs():
            most = most_longs()
            raise BadInput(f"records have {most} values of the header at most", "--header-values", f"give 0 to {most}")
        self._constants = constants
        self._topic = STRATEGIES[0]
        self._default = dict.fromkeys(range(constants["replicas"]), STRATEGIES[constants["default_strategy"]])
        self._cluster = Cluster(
            self._parts,
            self._new_store(seed),
            constants["replicas"],
            seed,
            segment_bytes=1 << 20,
            cleaner=self._parts.cleaner_config(dedupe_buffer_bytes=1 << 12),
        )
        for node in self._cluster.replicas:
            self._configure(node)
        self._cluster.network.attach(Mailbox(_READER, lambda _answer: None))
        self._cluster.create_partition()
        self._reader = LogReader()
        self._contents: dict[tuple[int, int], Row] = {}
        """By leader epoch and offset: what was ever in some log."""
        self._committed: list[int] = []
        """By offset, the leader epoch of what was committed there."""
        self._epoch_starts: dict[int, int] = {}
        self._joined = dict.fromkeys(self._cluster.replicas, NO_EPOCH)
        self._serial = 0
        self._changes = 0
        self._read_anew()

    def _read_anew(self) -> None:
        self._position = 0
        leader = self._cluster.controller.partition(PARTITION).leader
        self._table = self._parts.table(self._compaction(max(leader, 0)).strategy)

    def _compaction(self, node: int) -> CompactionConfig:
        """The topic's configuration, as a broker makes it of its own and the topic's."""

        def shown(strategy: str) -> str:
            return "" if strategy == STRATEGIES[0] else strategy

        topic = {
            "cleanup.policy": "compact",
            "compaction.strategy": shown(self._topic),
            "compaction.strategy.header": HEADER,
            "min.cleanable.dirty.ratio": "0",
            "segment.ms": str(_SEGMENT_MS),
            "delete.retention.ms": str(_RETENTION_MS),
        }
        broker = {"log.cleaner.compaction.strategy": shown(self._default[node])}
        return self._parts.topic_config(topic, broker)[1]

    def _configure(self, node: int) -> None:
        self._cluster.brokers[node].configure(PARTITION.topic, self._compaction(node))

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """One action."""
        self._cluster.clock.advance(1)
        self._asked = action
        return self._actions[action](params, None if fault is None else fault.kind)

    def inject(self, fault: Fault) -> Outcome:
        """A late response, which is all that there is."""
        assert fault.kind is Kind.DELIVER_LATE
        self._cluster.deliver_late()
        return Outcome()

    # -- looking ----------------------------------------------------------------------------------------------------

    @property
    def _leader(self) -> int:
        return self._cluster.controller.partition(PARTITION).leader

    def _rows(self, node: int) -> dict[int, Row]:
        """What is in a replica's log, read past its broker. Raises WrongState for a record that is not what it was."""
        assert self._store is not None
        end = self._end(node)
        rows = {row.offset: row for row in self._reader.read(self._store.files(node)) if row.offset < end}
        check_contents(rows.values(), self._contents)
        for row in rows.values():
            self._contents.setdefault((row.epoch, row.offset), row)
        return rows

    def _end(self, node: int) -> int:
        state = self._cluster.state(node)
        return 0 if state is None else state.end

    def _active(self, node: int) -> int:
        partition = self._cluster.brokers[node].partitions.get(PARTITION)
        return 0 if partition is None else partition.log.segment_bases[-1]

    def _checkpoint(self, node: int) -> int:
        assert self._store is not None
        return read_offsets(self._store.files(node), CLEANED_OFFSETS, "").get(PARTITION, 0)

    def observe(self) -> Mapping[str, Value]:
        """Everything that the model has, but what is said of tombstones that are gone."""
        quorum = self._cluster.controller.partition(PARTITION)
        cells: dict[str, Value] = {
            "leader": shown_leader(quorum.leader),
            "leader_epoch": quorum.leader_epoch,
            "isr": shown_set(quorum.isr),
            "hw": len(self._committed),
            "topic_strategy": self._topic,
            "changes": self._changes,
            "position": self._position,
        }
        cells |= {f"committed[{offset}]": epoch for offset, epoch in enumerate(self._committed)}
        cells |= {f"epoch_start[{epoch}]": offset for epoch, offset in self._epoch_starts.items()}
        for key in range(self._constants["keys"]):
            winner = self._table.winner(b"k%d" % key)
            cells[f"table[{key}]"] = -1 if winner is None else winner[1]
        for node in self._cluster.replicas:
            rows, end = self._rows(node), self._end(node)
            cells[f"joined[{node}]"] = self._joined_by(node)
            cells[f"leo[{node}]"] = end
            cells[f"active[{node}]"] = self._active(node)
            cells[f"checkpoint[{node}]"] = self._checkpoint(node)
            cells[f"broker_strategy[{node}]"] = self._default[node]
            for offset in range(end):
                cells[f"record_epoch[{node}][{offset}]"] = rows[offset].epoch if offset in rows else -1
        for (epoch, offset), row in self._contents.items():
            for name, value in cells_of_record(row, self._constants).items():
                cells[f"{name}[{epoch}][{offset}]"] = value
        return cells

    def _joined_by(self, node: int) -> int:
        """The leader epoch in which a replica leads, or follows with its log cut back."""
        state = self._cluster.state(node)
        if state is not None and state.role.value in ("leader", "follower"):
            self._joined[node] = state.leader_epoch
        return self._joined[node]

    def _raised(self) -> list[ModelStep]:
        """What the leader has committed since it was looked at last, one offset a step."""
        leader = self._leader
        state = None if leader == NO_LEADER else self._cluster.state(leader)
        steps: list[ModelStep] = []
        if state is None:
            return steps
        rows = self._rows(leader)
        while len(self._committed) < state.high_watermark:
            row = rows.get(len(self._committed))
            self._committed.append(-1 if row is None else row.epoch)
            steps.append(("leader_inc_high_watermark", {}))
        return steps

    # -- elections and roles ----------------------------------------------------------------------------------------

    def _elect(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        cluster, node = self._cluster, params["replica"]
        run = self._hear(node)
        try:
            quorum = cluster.controller.elect_leader(PARTITION, node)
        except self._parts.controller_error as refused:
            return Outcome(tuple(run), _REFUSALS[type(refused).__name__])
        cluster.collect()
        self._epoch_starts[quorum.leader_epoch] = self._end(node)
        self._tell(node)
        return Outcome((*run, ("elect_leader", params), *self._raised()))

    def _tell(self, node: int) -> str | None:
        """Deliver the LeaderAndIsr of the newest leader epoch; the error that it is answered with."""
        cluster = self._cluster
        request = cluster.requests[cluster.controller.partition(PARTITION).leader_epoch]
        return error_name(cluster.carry(cluster.ask(CONTROLLER, node, request, BROKER_PRINCIPAL)))

    def _become_follower(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        cluster, node = self._cluster, params["replica"]
        before, active = self._joined_by(node), self._active(node)
        if fault in LOSES:
            # What is lost is the request that tells of the epoch: there is no half of a step.
            return Outcome(error=TIMED_OUT)
        error = self._tell(node)
        if error is None and node != self._leader:
            cluster.truncate(node, self._leader, fault)
            if self._active(node) < min(active, self._end(node)):
                cluster.brokers[node].partitions[PARTITION].log.roll()
        joined = self._joined_by(node) != before
        return Outcome((("become_follower", params), *self._raised()) if joined else (), error)

    def _follows(self, node: int) -> bool:
        state = self._cluster.state(node)
        newest = self._cluster.controller.partition(PARTITION).leader_epoch
        return state is not None and state.role.value == "follower" and state.leader_epoch == newest

    def _hear(self, node: int) -> list[ModelStep]:
        """Let a follower hear how far its leader's high watermark is; the steps that this brings along."""
        steps: list[ModelStep] = []
        for _ in range(self._constants["log_size"] + 1):
            state, leading = self._cluster.state(node), self._leader
            if state is None or not self._follows(node) or state.high_watermark == min(self._hw_of(leading), state.end):
                break
            steps += self._fetch(node, None)[0]
        return steps

    def _hw_of(self, node: int) -> int:
        state = self._cluster.state(node)
        return 0 if state is None else state.high_watermark

    # -- records ----------------------------------------------------------------------------------------------------

    def _write(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        cluster, node, was = self._cluster, self._leader, self._end(self._leader)
        self._serial += 1
        record = made(Sent(**params), self._constants, self._serial)
        data = encode_batch([record], producer_id=self._serial, producer_epoch=0, base_sequence=0)
        answer = cluster.carry(cluster.ask(CLIENT, node, ProduceRequest(PARTITION, 1, data), "User:client"), fault)
        run: tuple[ModelStep, ...] = (("leader_write", params),) if self._end(node) > was else ()
        return Outcome((*run, *self._raised()), error_name(answer))

    def _follower_fetch(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node = params["replica"]
        if self._follows(node):
            run, error = self._fetch(node, fault)
            return Outcome(tuple(run), error)
        # One that is behind asks no more; it is asked in its name.
        cluster = self._cluster
        body = FetchRequest(node, PARTITION, self._end(node), 1, self._joined_by(node))
        return Outcome(error=error_name(cluster.carry(cluster.ask(node, self._leader, body, BROKER_PRINCIPAL), fault)))

    def _fetch(self, node: int, fault: Kind | None) -> tuple[list[ModelStep], str | None]:
        """Let a follower fetch until it has the next record, or all that there is; the steps, and the error."""
        cluster, begin, run = self._cluster, self._end(node), list[ModelStep]()
        while True:
            end = self._end(node)
            cluster.brokers[node].fire(FETCH_TIMER)
            answer = cluster.carry(cluster.sent(node, self._leader), fault)
            cluster.give_up(node)
            run += self._raised()
            new = sorted(offset for offset in self._rows(node) if offset >= begin)
            run += [("follower_fetch", {"replica": node, "offset": offset}) for offset in new]
            error = error_name(answer)
            if new or error is not None or self._end(node) == end:
                break
            fault = None
        if not new and self._end(node) > begin:
            run.append(("follower_fetch_empty_batch", {"replica": node}))
        return run, error

    def _acknowledge(self) -> list[ModelStep]:
        """Let all who follow say how far they have come; no answer but an error arrives."""
        cluster = self._cluster
        for node in cluster.replicas:
            if self._follows(node):
                cluster.brokers[node].fire(FETCH_TIMER)
                cluster.carry(cluster.sent(node, self._leader), None, _is_error)
                cluster.give_up(node)
        return self._raised()

    def _inc_high_watermark(self, _params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        run = self._acknowledge()
        state = self._cluster.state(self._leader)
        if not run and state is not None and state.isr != state.maximal_isr:
            # An ISR that it has asked for keeps it from that.
            return self._alter_isr(_params, None)
        return Outcome(tuple(run))

    def _alter_isr(self, _params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """Let the leader look at its ISR, and carry its AlterIsr; one that was not answered asks again, and hears."""
        cluster = self._cluster
        run = self._acknowledge()
        old = cluster.controller.partition(PARTITION).isr
        error = self._look_at_isr(fault)
        new = cluster.controller.partition(PARTITION).isr
        if fault in (Kind.LOSE_RESPONSE, Kind.DELAY_RESPONSE):
            cluster.clock.advance(1)
            self._look_at_isr(None)
        run += [("leader_shrink_isr", {"replica": each}) for each in sorted(old - new)]
        run += [("leader_expand_isr", {"replica": each}) for each in sorted(new - old)]
        return Outcome((*run, *self._raised()), error)

    def _look_at_isr(self, fault: Kind | None) -> str | None:
        """The controller's error."""
        cluster, leader = self._cluster, self._leader
        cluster.brokers[leader].fire(ISR_TIMER)
        flight = cluster.sent(leader, CONTROLLER)
        error = None if flight is None else error_name(cluster.carry(flight, fault))
        cluster.collect()
        return error

    # -- the cleaner ------------------------------------------------------------------------------------------------

    def _roll(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        partition = self._cluster.brokers[params["replica"]].partitions.get(PARTITION)
        rolled = partition is not None and partition.log.roll()
        return Outcome((("roll_segment", params),) if rolled else ())

    def _clean(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """One pass of a broker's cleaner, and what it has done."""
        cluster, node = self._cluster, params["replica"]
        run = self._hear(node)
        before, clean = self._rows(node), self._checkpoint(node)
        over = self._over(before, params["offset"]) if self._asked == "remove_tombstone" else None
        skew = 0 if over is None else over - cluster.clock.wall()
        cluster.clock.set_skew(node, skew)
        cluster.brokers[node].fire(CLEANER)
        cluster.clock.set_skew(node, 0)
        after, end = self._rows(node), self._checkpoint(node)
        gone = [row for offset, row in sorted(before.items()) if offset not in after]
        bound = min(self._hw_of(node), self._active(node))
        tombstones: list[ModelStep] = []
        for row in gone:
            place = {"replica": node, "offset": row.offset}
            winner = self._winner(row, before, bound, self._in_force(node))
            if row.value is None and winner in (None, row.offset):
                tombstones.append(("remove_tombstone", place))
            else:
                run.append(("remove_record", {**place, "winner": row.offset if winner is None else winner}))
        if end > clean:
            run.append(("finish_cleaning", {"replica": node, "end": end}))
        return Outcome((*run, *tombstones))

    @staticmethod
    def _over(rows: Mapping[int, Row], offset: int) -> int | None:
        """When the delete horizon of a tombstone is over, and no other one's; None where there is no such time."""
        row = rows.get(offset)
        if row is None or row.value is not None or row.horizon is None:
            return None
        others = (each for each in rows.values() if each.value is None and each.offset != offset)
        before = any(each.horizon is not None and each.horizon <= row.horizon for each in others)
        return None if before else row.horizon

    def _winner(self, gone: Row, rows: Mapping[int, Row], bound: int, strategy: str) -> int | None:
        """Of the cleaned part the best record of a key, by the sentences of KIP-280; None where there is none."""
        best: tuple[int, int] | None = None
        for row in rows.values():
            if row.key == gone.key and row.offset < bound:
                order = rank_of(row, strategy, self._constants), row.offset
                best = order if best is None else max(best, order)
        return None if best is None else best[1]

    def _in_force(self, node: int) -> str:
        """The strategy by which a broker cleans."""
        return next(each for each in (self._topic, self._default[node], "offset") if each != "unset")

    # -- operators and the consumer ---------------------------------------------------------------------------------

    def _set_topic(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        if self._topic == STRATEGIES[params["strategy"]]:
            return Outcome()
        self._topic = STRATEGIES[params["strategy"]]
        self._changes += 1
        for node in self._cluster.replicas:
            self._configure(node)
        self._read_anew()
        return Outcome((("set_topic_strategy", params),))

    def _set_broker(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        node, strategy = params["replica"], STRATEGIES[params["strategy"]]
        if self._default[node] == strategy:
            return Outcome()
        self._default[node] = strategy
        self._changes += 1
        self._configure(node)
        return Outcome((("set_broker_strategy", params),))

    def _consumer_fetch(self, _params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """Let the consumer fetch until it has the next record, or all that there is."""
        cluster, at = self._cluster, self._position
        while True:
            flight = cluster.ask(_READER, self._leader, FetchRequest(CONSUMER, PARTITION, at, 1), "User:client")
            answer = cluster.carry(flight, fault)
            fault = None
            if not isinstance(answer, FetchResponse) or error_name(answer) is not None or not answer.records:
                return Outcome(error=error_name(answer))
            for step in read_steps(PARTITION, answer.records, at):
                if step.record is not None:
                    self._table.apply(step.record)
                    self._position = step.next_offset
                    return Outcome((("consumer_fetch", {"offset": step.record.offset}),))
                at = step.next_offset

    def _consumer_start_over(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        if self._position == 0:
            return Outcome()
        self._read_anew()
        return Outcome((("consumer_start_over", params),))


def _is_error(answer: Response) -> bool:
    return error_name(answer) is not None
