"""Brokers of ``impl`` with tiered storage that run freely, held against ``impl_spec.py``: every message an event.

Everything is real but time, network, disks and the store's: brokers, their remote log managers, the controller, and the
remote log metadata, which is a log of its own that the brokers replicate. What a broker has asked for is judged where
it asks; what of it counts is read in the metadata log, past the brokers (``metadata_log.py``). Answers, and the copies
in the store, are held against the records themselves (``responses.py``). ``client_ops.py`` has what clients and
operators do, ``workload.py`` how likely that is, and ``store.py`` what comes of requests to the store.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast

from ....impl.log.checkpoints import LOCAL_LOG_STARTS, LOG_STARTS, read_offsets
from ....impl.tiering.metadata import METADATA
from ....impl.tiering.segments import EPOCHS
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import (
    EARLIEST,
    EARLIEST_LOCAL,
    EARLIEST_PENDING_UPLOAD,
    FIRST_CLIENT,
    NO_LEADER,
    Envelope,
    FetchRequest,
    FetchResponse,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ProduceRequest,
    ProduceResponse,
)
from ....model.protocols.tiering.impl_state import GIVEN
from ....traces.format import Value
from ...checks.crash_image import check_awake
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import EnabledEvent, RequestOutcome, StepResult, changed
from .client_ops import Clients, is_urgent, offers
from .liveness import Owed
from .metadata_log import NEVER, MetadataView, said_in
from .nodes import PARTITION, PATIENCE_MS, TieredNodes
from .observation import Looks, rolled
from .responses import Written, WrongAnswer, WrongRecord, check_copy, check_fetch, check_list_offsets, objects_of
from .retained import Retained
from .steps import steps_amid, steps_before, steps_of_broker, steps_of_copies
from .workload import Workload

_SPARE: Final = 6
"""So many copies are left for the end of a run."""
_LAST_EPOCHS: Final = 4
_EMPTY, _BEHIND = 0, 1
"""How a run may begin with a follower: one of four ways each."""
_TOLD: Final = ("start", "local", "epuo")


class FreeTiering(TieredNodes):
    """Brokers ``0`` to ``replicas - 1``."""

    def _set_up(self, constants: Mapping[str, int]) -> range:
        self.written = Written()
        self.metadata = MetadataView()
        self.clients = Clients(self)
        self._owed = Owed(self.leader_of)
        self._retained = Retained(self)
        self.deleted = 0
        """Up to where a client has had records deleted."""
        self.begun_deletions: dict[int, int] = {}
        """By broker, up to where it was to delete records last. Whose disk failed it may have, as is seen later."""
        self._looks = Looks(constants, self.written, self.clients.producers)
        self._asked: dict[tuple[int, int], Envelope] = {}
        """By sender and correlation id, what was asked of the tiered partition."""
        self._listed: dict[tuple[int, int], int] = {}
        """By follower and timestamp, the correlation id of what it has asked its leader last."""
        self._told_last: dict[int, dict[str, int]] = {node: {} for node in range(constants["replicas"])}
        """What each follower was told last by its leader."""
        self._may_read: dict[int, int] = {}
        """Up to where each process may have read the metadata log."""
        self._kept: dict[int, dict[str, int]] = {}
        """By broker, what is shown of it while it is down."""
        self._begins = dict.fromkeys(range(constants["replicas"]), "nowhere")
        self._deletes: set[tuple[int, int]] = set()
        self._begun: dict[int, int] = {}
        self._done: set[int] = set()
        self._stored: dict[int, bool] = {}
        self._decisions: list[ModelStep] = []
        self._cells: dict[str, Value] = {}
        self._seen_changes = -1
        self._last_written: list[bytes] = []
        self._calm = False
        self.unclean_epoch = -1
        """The leader epoch of the last unclean election."""
        self._chosen: int | None = None
        """Who was elected in it, as long as it has not heard of that."""
        self._pace = Workload(self.seed)
        return super()._set_up(constants)

    def _prepare(self) -> None:
        """Some runs have records when they begin, or have uploaded them; in most a follower is empty or left behind."""
        leader = self.controller.partition(PARTITION).leader
        follower = next((node for node in self.brokers if node != leader), None)
        records = min((0, 3, 6, 7)[self.seed // 3 % 4], self.constants["log_size"] - 1)
        away = self.seed // 7 % 4
        for number in range(records):
            if away == _BEHIND and follower is not None and number == 1:
                self._leave(follower)
            self.clients.produce(leader)
            self._arrive_all()
        self._picture()  # what is written, before it is gone from a disk
        for _ in range((0, 4, 8)[self.seed // 5 % 3] if records else 0):
            self._work(leader)
            self._picture()
        if follower is None or away not in (_BEHIND, _EMPTY):
            return
        if follower not in self.down:
            self._leave(follower)
        if away == _EMPTY:
            self.replace_disk(follower)
        self._start(follower)
        self.register(follower)

    def _leave(self, node: int) -> None:
        """A broker fails, and all hear of it."""
        self._keep(node)
        self._end(node, Event(EventKind.CRASH, node=node))
        self._forget(node)
        self.controller.mark_offline(node)
        self._arrive_all()

    def _forget(self, node: int) -> None:
        """What a process of a broker knew goes with it."""
        self._begins[node] = "nowhere"
        self._may_read.pop(node, None)
        self._deletes = {each for each in self._deletes if each[0] != node}

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New disks, new brokers."""
        happened = super().reset(constants, seed)
        return replace(happened, inputs=frozenset(self._picture()))

    def peace(self, *, on: bool) -> None:
        """Nothing is kept waiting in peace, and the store works."""
        self._calm, self.is_store_away = on, self.is_store_away and not on

    # -- what may happen --------------------------------------------------------------------------------------------

    def pending(self) -> Sequence[EnabledEvent]:
        """What may happen, each with how likely it is now; nothing where the run has used up what the model has."""
        if not self._calm and (self._copies_left() <= _SPARE or self.epochs_left() <= _LAST_EPOCHS):
            return ()
        found = [
            EnabledEvent(each.event, each.message, True, each.weight)
            if is_urgent(each.event, self) or (each.event.what is EventKind.SYNC and each.event.name == "store")
            else each
            for each in super().pending()
        ]
        deadline = self.controller.deadline()
        if deadline is not None and deadline <= self.clock.now():
            found.append(EnabledEvent(Event(EventKind.TIMER, "resend"), due=True))
        return found if self._calm else self._pace.weighed(found, self)

    def _calls(self) -> Iterator[Event]:
        return offers(self)

    def _call(self, event: Event) -> Sequence[ModelStep]:
        self.clients.ask(event)
        return ()

    def _copies_left(self) -> int:
        return self.constants["copies"] - self.copies

    def epochs_left(self) -> int:
        """So many leader epochs are left."""
        return self.constants["max_leader_epoch"] - self.controller.partition(PARTITION).leader_epoch

    def retention_left(self) -> bool:
        """Whether records may be deleted."""
        return self.seed % 3 == 0

    def may_write(self, here: Any) -> bool:
        """Whether a leader has room for a record."""
        return bool(here.log.end < self.constants["log_size"])

    def _may_arrive(self, envelope: Envelope) -> bool:
        body = envelope.body
        if not isinstance(body, ProduceRequest) or body.partition != PARTITION or envelope.destination in self.down:
            return True
        here = self.replica(envelope.destination)
        return here is None or self.may_write(here)

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """One event. Raises what a broker does, ``WrongRecord`` and ``WrongAnswer``."""
        self._decisions = []
        before = self._cells
        happened = super().step(event)
        for flight in self.network.in_flight(destination=FIRST_CLIENT):
            self.network.deliver(flight)
        for node in happened.started | happened.crashed:
            self._forget(node)
        now = self._picture()
        if event.node in self.up():
            check_awake(event.node, self.broker(event.node), PARTITION)
            self._look_for_losses(event.node)
            if not self._is_due(self.nodes[event.node]) and not self.reads(event.node):
                self._owed.check_in_time(event.node, self.clock.now(), PATIENCE_MS)
        self._give_up_what_is_cut()
        self._retained.check(before, now)
        self._pace.happened(event)
        given = {name for name in changed(before, now) if name.partition("[")[0] in GIVEN}
        steps = (*happened.steps, *self._decisions, *self._between(before, now, event, happened))
        return replace(happened, steps=steps, inputs=frozenset(given))

    def _change_disk(self, node: int, name: str) -> None:
        if name.startswith("store"):
            self._serve(node, Event(EventKind.DISK, name, node, args=(("request", 0),)))
        else:
            super()._change_disk(node, name)

    def _steps(self, envelope: Envelope, asked: Envelope | None) -> tuple[ModelStep, ...]:  # noqa: ARG002 - see _notice
        return ()

    def _judged(self, request: Envelope, answer: Envelope) -> Iterable[RequestOutcome]:  # noqa: ARG002 - see held.py
        return ()

    def _took(self, event: Event) -> Sequence[ModelStep]:  # noqa: ARG002 - see steps.py
        return ()

    # -- messages ---------------------------------------------------------------------------------------------------

    def _notice(self, what: str, moment: int, envelope: Envelope) -> None:
        super()._notice(what, moment, envelope)
        body: Any = envelope.body
        if what == "sent":
            self._owed.was_sent(envelope)
            self._was_sent(envelope, body)
        elif what == "delivered" and envelope.destination >= 0:
            self._owed.arrives(envelope, self.clock.now())
            self._arrives(envelope, body)

    def _was_sent(self, envelope: Envelope, body: Any) -> None:
        source = envelope.source
        if isinstance(body, ProduceRequest) and body.partition == METADATA and source >= 0:
            self._wants_written(source, body)
        elif isinstance(body, FetchRequest | ListOffsetsRequest) and body.partition == PARTITION:
            self._asked[source, envelope.correlation] = envelope
            if isinstance(body, ListOffsetsRequest) and source >= 0:
                self._listed[source, body.timestamp] = envelope.correlation
                self._asks_where(source, body.timestamp)
        elif isinstance(body, ProduceResponse) and source not in self.down:
            value = self.clients.sent.get(envelope.correlation)
            if value is not None:
                gone = self.metadata.gone_below(self.lineage(source))
                self.clients.producers.check_refusal(self.replica(source), value, body.error, self.written, gone)
        elif isinstance(body, FetchResponse | ListOffsetsResponse) and source >= 0:
            request = self._asked.get((envelope.destination, envelope.correlation))
            if request is None or source in self.down:
                return
            here = self.replica(source)
            if isinstance(body, FetchResponse):
                late = self.arrived is not request
                check_fetch(
                    here,
                    cast(FetchRequest, request.body),
                    body,
                    self.written,
                    self._looks.remembered.get(source, {}),
                    late=late,
                )
            else:
                remote = None if here is None else here.remote
                copier = None if remote is None else remote.copier
                highest = None if copier is None else copier.highest
                check_list_offsets(here, cast(ListOffsetsRequest, request.body), body, highest, self.written)

    def _wants_written(self, node: int, body: ProduceRequest) -> None:
        """A broker asks to write something to the metadata log."""
        if body.records not in self._last_written:
            self._last_written.append(body.records)
        self._keep(node)
        for said in said_in(body):
            here = {"leader": node, "copy": said.copy}
            match said.state.name:
                case "COPY_SEGMENT_STARTED":
                    if said.copy not in self._begun:
                        self.metadata.begun(said)
                        self._begun[said.copy] = self.clients.epoch_of(node)
                        self._looks.remember_below(node, self.replica(node), self.metadata.copies[said.copy])
                        self._decisions.append(("start_copy", here))
                case "COPY_SEGMENT_FINISHED":
                    self._done.add(said.copy)
                    self._decisions.append(("finish_copy", here))
                case "DELETE_SEGMENT_STARTED":
                    self._deletes.add((node, said.copy))
                    self._decisions.append(("give_up_copy" if said.unfinished else "start_deletion", here))
                case _:
                    left = self._objects(said.copy)
                    if left:
                        raise WrongAnswer(
                            f"broker {node} says that copy {said.copy} is gone, and {sorted(left)} is there"
                        )

    def _keep(self, node: int) -> None:
        """What a broker goes by while it decides something; it may lose power right after."""
        here, log_replica = self.replica(node), self.replica(node, METADATA)
        told = self._told_last[node]
        kept = {"flag": int(self._flags[node]), **{f"told_{name}": told.get(name, -1) for name in _TOLD}}
        # A new leader's high watermark is behind at first, and its followers' are then; what was read stays so.
        may = 0 if log_replica is None else log_replica.high_watermark
        self._may_read[node] = max(self._may_read.get(node, 0), may)
        kept["has_read"] = max(may, min(self.position(node), self._may_read[node]))
        kept |= {"hw": 0, "rolled": 0, "first_epoch": -1}
        if here is not None:
            kept["hw"] = here.high_watermark
            kept["rolled"] = rolled(here)
            entries = here.log.epochs.entries
            kept["first_epoch"] = entries[0].epoch if entries else -1
        self._kept[node] = kept

    def _asks_where(self, node: int, timestamp: int) -> None:
        """A follower asks for where to begin."""
        if timestamp == EARLIEST_PENDING_UPLOAD:
            self._begins[node] = "at_epuo"
            self._decisions.append(("ask_epuo", {"follower": node}))
        elif timestamp == EARLIEST_LOCAL and not (
            self._begins[node] == "at_epuo" and self._told_last[node].get("epuo") == -1
        ):
            self._begins[node] = "at_local_start"
            self._decisions.append(("ask_local_start", {"follower": node}))

    def _arrives(self, envelope: Envelope, body: Any) -> None:
        """What a follower is told by its leader."""
        node = envelope.destination
        request = self._asked.get((node, envelope.correlation))
        if request is None or node in self.down:
            return
        here = self.replica(node)
        if here is None or here.follower is None:
            return
        told = self._told_last[node]
        if isinstance(body, FetchResponse) and body.log_start_offset >= 0 and body.leader_epoch == here.leader_epoch:
            told["start"] = body.log_start_offset
        elif isinstance(body, ListOffsetsResponse) and body.error is ErrorCode.NONE:
            asked: Any = request.body
            if self._listed.get((node, asked.timestamp)) != envelope.correlation:
                return
            name = {EARLIEST: "start", EARLIEST_LOCAL: "local", EARLIEST_PENDING_UPLOAD: "epuo"}.get(asked.timestamp)
            if name is not None:
                told[name] = body.offset

    def _told(self, envelope: Envelope) -> None:
        body = envelope.body
        value = self.clients.sent.get(envelope.correlation)
        if value is not None and isinstance(body, ProduceResponse):
            self.clients.producers.heard(value, body.error)
        here = None if envelope.source in self.down else self.replica(envelope.source)
        if here is None or here.leader_epoch < self.unclean_epoch:
            return  # whoever was deposed by an unclean election may tell of what is lost
        if isinstance(body, ProduceResponse) and body.error is ErrorCode.NONE and value is not None:
            known = self.written.acknowledged.setdefault(body.base_offset, value)
            if known != value:
                raise WrongAnswer(f"two records are acknowledged at offset {body.base_offset}")

    def replace_disk(self, node: int) -> None:
        """A broker that is down gets an empty disk."""
        super().replace_disk(node)
        self._looks.forget(node)

    def write_again(self) -> None:
        """What was written to the metadata log, once more, and late."""
        if self._last_written:
            self.clients.write_metadata(
                self._last_written[self._crash_seed(Event(EventKind.PROBE)) % len(self._last_written)]
            )

    def elected_uncleanly(self, node: int) -> None:
        """What the new leader lacks is lost, as it may be."""
        self.unclean_epoch, self._chosen = self.controller.partition(PARTITION).leader_epoch, node
        here = self.replica(node)
        self.written.keep(0 if here is None else here.log.end, self.lineage(node))

    def _give_up_what_is_cut(self) -> None:
        """So is what an older leader makes it cut, until it hears of its election; not what it cuts as it hears."""
        node = self._chosen
        here = None if node is None or node in self.down else self.replica(node)
        if node is None or here is None:
            return
        if here.leader_epoch >= self.unclean_epoch:
            self._chosen = None
        else:
            self.written.keep(here.log.end, self.lineage(node))

    # -- looking ----------------------------------------------------------------------------------------------------

    def unsettled(self, but: int | None) -> str | None:
        """Who has asked a leader that is well for something, and is not answered; what it has left that may go."""
        well = [node for node in self.up() if node not in {but, *self.cut, *self.bad}]
        return self._owed.unanswered(well) or self._retained.left(well)

    def lineage(self, node: int) -> Mapping[int, int]:
        """By offset, the leader epoch that a broker's log had there last, also below its log start."""
        return self._looks.remembered.get(node, {})

    def _look_at_metadata(self) -> None:
        there = [(node, here) for node in self.up() if (here := self.replica(node, METADATA)) is not None]
        if there:
            node, best = max(there, key=lambda each: int(each[1].high_watermark))
            self.metadata.catch_up(best, self.store.files(node))

    def _is_store_another(self) -> bool:
        self._look_at_store()
        return any(self._cells.get(f"stored[{number}]", 0) != int(there) for number, there in self._stored.items())

    def _has_finished(self) -> bool:
        self._look_at_metadata()
        return any(
            copy.finished_at >= 0 and self._cells.get(f"finished_at[{number}]") == -1
            for number, copy in self.metadata.copies.items()
        )

    def _objects(self, number: int) -> dict[str, bytes]:
        """What there is of a copy in the store."""
        return objects_of(self.store.files(1_000), number, self.metadata.copies[number].start)

    def _making(self) -> set[int]:
        """The copies that somebody has not given up."""
        remotes = (remote for node in self.up() if (remote := self.remote(node)) is not None)
        return {segment.int - 1 for remote in remotes for segment in remote.copying}

    def _look_at_store(self) -> None:
        if self._seen_changes == self._bucket.changed:
            return
        self._seen_changes = self._bucket.changed
        for number, copy in self.metadata.copies.items():
            objects = self._objects(number)
            try:
                said = check_copy(number, copy.start, copy.end, copy.epochs, objects, self.written) if objects else None
            except WrongRecord:
                if number in self._making() or copy.finished_at != NEVER:
                    raise
                # Who was deposed read its log when others had written it anew: nobody finishes that copy (TR2).
                said = None
            self._stored[number] = said is not None
            for offset, epoch in (said or {}).items():
                if copy.epochs.setdefault(offset, epoch) != epoch and EPOCHS in objects:
                    raise WrongAnswer(f"the checkpoint of copy {number} says epoch {epoch} of offset {offset}")

    def observe(self) -> Mapping[str, Value]:
        """Everything but what is in the memory of who is down."""
        return self._cells

    def _picture(self) -> Mapping[str, Value]:
        """Look at everything. Raises ``WrongRecord`` and ``WrongAnswer``."""
        cells: dict[str, Value] = {}
        state = self.controller.partition(PARTITION)
        cells["newest_epoch"] = state.leader_epoch
        cells["elected"] = None if state.leader == NO_LEADER else state.leader
        cells["isr"] = tuple(sorted(state.isr))
        recorder = self.controller.partition(METADATA).leader
        cells["metadata_leader"] = None if recorder == NO_LEADER else recorder
        cells["retention"] = int(self.retention)
        for node in self.up():
            here, at = self.replica(node), f"[{node}]"
            cells |= self._looks.broker(node, here, self.store.files(node))
            self._looks.check_producers(node, here, self.store.files(node), self._cells, self.metadata)
            self._account_broker(node)
            if here is None or here.remote is None or not here.remote.building():
                self._begins[node] = "nowhere"
            cells[f"begins{at}"] = self._begins[node]
            cells |= self._looks.deletes(node, self._deletes)
            self._keep(node)
        for node in self.brokers:
            cells |= {f"{name}[{node}]": value for name, value in self._kept[node].items()}
        self._look_at_metadata()
        self._look_at_store()
        cells |= self._looks.copies(self.metadata, self._making(), self._begun, self._done, self._stored)
        self._cells = cells
        return cells

    def _between(
        self, before: Mapping[str, Value], now: Mapping[str, Value], event: Event, happened: StepResult
    ) -> Iterator[ModelStep]:
        """The steps that may lead from what was seen to what is."""
        for node in self.up():
            started = node in happened.started
            yield from steps_of_broker(node, before, now, self.constants["log_size"], event, started=started)
            if started and self.begun_deletions.get(node) == now[f"log_start[{node}]"]:
                yield "delete_records", {"leader": node, "start": self.begun_deletions.pop(node)}
        # Who has lost power is seen no more.
        for node in sorted(happened.crashed):
            if self._decisions:
                yield from steps_before(node)
            files = self.store.files(node)
            starts = (read_offsets(files, name, "").get(PARTITION, 0) for name in (LOG_STARTS, LOCAL_LOG_STARTS))
            yield from steps_amid(node, before, *starts)
        yield from steps_of_copies(before, now, self.constants["copies"])
