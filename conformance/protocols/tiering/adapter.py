"""``tiering`` as brokers do it: each step of the model is a schedule of real messages, or a piece of work with a store.

What the schedules take care of, so that the model can be led along:

- *The metadata log is as everybody knows it.* What a broker writes there is committed, and read by all, before anything
  else comes; so who takes office looks at once, and finds all that was finished.
- *Each record is a segment of its own.* Whoever has written or fetched one begins another segment.
- *An ISR changes in one step.* All who follow acknowledge what they have before a leader looks at it.
- *Answers without a record do not arrive.* The model's follower hears of the high watermark with a record.
- *A broker deletes locally when it is asked to.* Its local retention is set to let the first segment go, then put back.
- *No producer writes to a deposed leader that is alone in its ISR*: it commits at once what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from ....impl.tiering.remote import BUILD, EXPIRE
from ....impl.tiering.segments import PARTS, SegmentState
from ....impl.wire.messages import (
    BROKER_PRINCIPAL,
    CONTROLLER,
    NO_EPOCH,
    FetchRequest,
    FetchResponse,
    Response,
)
from ....model.core.errors import BadInput
from ....traces.format import Value
from ...adapters.carrier import CLIENT, LOSES, error_name
from ...adapters.cluster import FETCH_TIMER, ISR_TIMER, PARTITION, produce, shown_set
from ...adapters.stored import StoredAdapter
from ...lockstep.adapter import ModelStep, Outcome
from ...lockstep.faults import EVENTS, STORAGE, TIMED_OUT, Fault, Kind
from .lockstep_cluster import INTERVAL_MS, TieredCluster, Upload, constants_left
from .metadata_log import NEVER
from .observation import Looks
from .responses import Written, WrongRecord, check_copy, objects_of

_REFUSALS: Final = {"NotEligible": "ELIGIBLE_LEADERS_NOT_AVAILABLE", "ElectionNotNeeded": None}
_ROUNDS: Final = 12
_NO_COPY: Final = 1
"""``Looks`` counts copies; here they are looked at as segments."""


class TieringAdapter(StoredAdapter):
    """Brokers of ``impl`` with a tiered topic, and an object store."""

    protocol = "tiering"
    implemented = "up-to-gap"
    drawn = (frozenset(Kind) - STORAGE - EVENTS) | {Kind.DELIVER_LATE}

    @cached_property
    def _actions(self) -> dict[str, Callable[[Mapping[str, int], Kind | None], Outcome]]:
        return {
            "elect_leader": self._elect,
            "elect_unclean_leader": self._elect_unclean,
            "become_follower": self._become_follower,
            "leader_write": self._write,
            "follower_fetch": self._follower_fetch,
            "leader_inc_high_watermark": self._inc_high_watermark,
            "leader_shrink_isr": self._alter_isr,
            "leader_expand_isr": self._alter_isr,
            "replace_replica": self._replace,
            "find_highest_remote_offset": self._take_a_turn,
            "start_copy": self._take_a_turn,
            "copy_segment": self._copy_segment,
            "finish_copy": self._finish_copy,
            "delete_local": self._delete_local,
            "delete_segment": self._delete_segment,
            "truncate_fully": self._begin_anew,
            "build_to_local_start": self._begin_anew,
            "build_to_epuo": self._begin_anew,
            "start_at_local_start": self._begin_anew,
            "start_at_log_start": self._begin_anew,
        }

    # -- the adapter ------------------------------------------------------------------------------------------------

    def reset(self, constants: Mapping[str, int], seed: int) -> None:
        """New disks, new brokers. Raises BadInput for constants that they have nothing for."""
        left = constants_left(constants)
        if left:
            options = " ".join(f"--{name} 0" for name in left)
            raise BadInput(f"no broker is driven step for step where {', '.join(left)} is 1", options, "give 0")
        self._constants = constants
        flags = {"flag": constants["last_tiered_offset"] == 1, "unclean": constants["unclean"] == 1}
        self._cluster = TieredCluster(self._parts, self._new_store(seed), constants["replicas"], seed, **flags)
        self._cluster.create_partition()
        self._written = Written()
        self._looks = Looks({**constants, "copies": _NO_COPY}, self._written)
        self._epoch_leader: dict[int, int] = {}
        self._uploads: dict[tuple[int, int], Upload] = {}
        """By leader epoch and first offset."""
        self._known: dict[int, tuple[int, int]] = {}
        """By broker, its high watermark and, of a leader, its highest offset in remote storage, as they were told."""
        self._numbers = 0
        self._note()

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """One action."""
        self._cluster.clock.advance(1)
        outcome = self._actions[action](params, None if fault is None else fault.kind)
        self._cluster.replicate()
        self._note()
        return outcome

    def inject(self, fault: Fault) -> Outcome:
        """A late response, which is all that there is."""
        assert fault.kind is Kind.DELIVER_LATE
        self._cluster.deliver_late()
        self._note()
        return Outcome()

    # -- looking ----------------------------------------------------------------------------------------------------

    def _here(self, node: int) -> Any:
        return self._cluster.replica(node)

    def _end(self, node: int) -> int:
        here = self._here(node)
        return 0 if here is None else int(here.log.end)

    def _epoch(self, node: int) -> int:
        here = self._here(node)
        return NO_EPOCH if here is None else int(here.leader_epoch)

    def _leads(self, node: int) -> bool:
        here = self._here(node)
        return here is not None and here.leader is not None

    def _highest(self, node: int) -> int:
        here = self._here(node)
        copier = None if here is None or here.remote is None else here.remote.copier
        return -2 if copier is None or copier.highest is None else int(copier.highest)

    def _hw(self, node: int) -> int:
        here = self._here(node)
        return 0 if here is None else int(here.high_watermark)

    def _note(self) -> None:
        self._known = {node: (self._hw(node), self._highest(node)) for node in self._cluster.replicas}

    def observe(self) -> Mapping[str, Value]:
        """Everything but what the model remembers of a follower's beginning."""
        quorum, store = self._cluster.controller.partition(PARTITION), self._store
        assert store is not None
        cells: dict[str, Value] = {
            "newest_epoch": quorum.leader_epoch,
            "isr": shown_set(quorum.isr),
            "tiered": 1,
        }
        cells |= {f"epoch_leader[{epoch}]": node for epoch, node in self._epoch_leader.items()}
        for node in self._cluster.replicas:
            seen = self._looks.broker(node, self._here(node), store.files(node))
            of_model = (name for name in seen if not name.startswith(("leads[", "settled[")))
            cells |= {name: seen[name] for name in of_model}
            cells[f"hw[{node}]"] = self._hw(node)
        return cells | self._segments()

    def _segments(self) -> dict[str, Value]:
        """What is in the store, and what the metadata log says of it. Raises WrongRecord."""
        epochs, offsets = range(self._constants["max_leader_epoch"] + 1), range(self._constants["log_size"])
        cells: dict[str, Value] = {f"segment_state[{e}][{o}]": "none" for e in epochs for o in offsets}
        cells |= {f"segment_end[{e}][{o}]": -1 for e in epochs for o in offsets}
        cells |= {f"remote_epoch[{e}][{o}]": -1 for e in epochs for o in offsets}
        for upload in sorted(self._uploads.values()):
            epoch, start, end, number = upload
            copy = self._cluster.metadata.copies[number]
            state = self._cluster.metadata.state_of(number)
            said = check_copy(number, copy.start, copy.end, copy.epochs, self._objects(number), self._written)
            if said is not None:
                cells |= {f"remote_epoch[{epoch}][{offset}]": each for offset, each in said.items()}
            if state is SegmentState.COPY_SEGMENT_FINISHED:
                shown = "copy_finished" if said is not None else "none"
            else:
                shown = "none" if copy.deleting_at != NEVER else "copy_started" if said is None else "copied"
            cells[f"segment_state[{epoch}][{start}]"] = shown
            cells[f"segment_end[{epoch}][{start}]"] = end
        return cells

    def _objects(self, number: int) -> dict[str, bytes]:
        """What there is of a copy in the store."""
        return objects_of(self._cluster.bucket, number, self._cluster.metadata.copies[number].start)

    def _told(self, *nodes: int) -> list[ModelStep]:
        """What leaders have committed, and found in remote storage, since it was told last."""
        steps: list[ModelStep] = []
        for node in nodes or self._cluster.replicas:
            hw, highest = self._known[node]
            if not self._leads(node):
                continue
            if self._highest(node) > highest:
                steps.append(("find_highest_remote_offset", {"leader": node}))
            steps += [("leader_inc_high_watermark", {"leader": node})] * (self._hw(node) - hw)
            self._known[node] = self._hw(node), self._highest(node)
        return steps

    # -- elections and roles ----------------------------------------------------------------------------------------

    def _elect(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        return self._elected("elect_leader", params, self._cluster.controller.elect_leader)

    def _elect_unclean(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        return self._elected("elect_unclean_leader", params, self._cluster.controller.elect_unclean)

    def _elected(self, action: str, params: Mapping[str, int], elect: Callable[..., Any]) -> Outcome:
        cluster, node = self._cluster, params["replica"]
        try:
            quorum = elect(PARTITION, node)
        except self._parts.controller_error as refused:
            return Outcome(error=_REFUSALS[type(refused).__name__])
        cluster.collect()
        self._epoch_leader[quorum.leader_epoch] = node
        cluster.jobs[node].waiting.clear()
        self._tell(node, quorum.leader_epoch)
        self._known[node] = self._known[node][0], -2
        return Outcome(((action, params), *self._told(node)))

    def _is_deposed(self, node: int) -> bool:
        """Whether the controller is in a newer leader epoch than a broker."""
        newest: int = self._cluster.controller.partition(PARTITION).leader_epoch
        return self._epoch(node) < newest

    def _tell(self, node: int, epoch: int) -> str | None:
        """Deliver the LeaderAndIsr of a leader epoch; the error that it is answered with."""
        cluster = self._cluster
        return error_name(cluster.carry(cluster.ask(CONTROLLER, node, cluster.requests[epoch], BROKER_PRINCIPAL)))

    def _become_follower(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        cluster, leader, node = self._cluster, params["leader"], params["follower"]
        if fault in LOSES:
            # What is lost is the request that tells of the epoch: there is no half of a step.
            return Outcome(error=TIMED_OUT)
        before = self._epoch(node)
        error = self._tell(node, self._epoch(leader))
        if self._epoch(node) == before:
            return Outcome(error=error)
        cluster.jobs[node].waiting.clear()
        cluster.truncate(node, leader, fault)
        self._begin_segment(node)
        return Outcome((("become_follower", params),), error)

    def _follows(self, node: int, leader: int) -> bool:
        here = self._here(node)
        if here is None or here.follower is None or not self._leads(leader):
            return False
        return bool(here.follower.leader == leader and here.leader_epoch == self._epoch(leader))

    def _begin_segment(self, node: int) -> None:
        """Each record is a segment of its own."""
        self._here(node).log.roll()

    def _replace(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        node = params["replica"]
        if self._end(node) == 0:
            return Outcome()
        self._cluster.replace(node)
        self._looks.forget(node)
        return Outcome((("replace_replica", params),))

    # -- records ----------------------------------------------------------------------------------------------------

    def _write(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        cluster, node, was = self._cluster, params["leader"], self._end(params["leader"])
        here = self._here(node)
        if self._leads(node) and self._is_deposed(node) and here.leader.isr.members == {node}:
            return Outcome()
        self._numbers += 1
        answer = cluster.carry(cluster.ask(CLIENT, node, produce(self._numbers), "User:client"), fault)
        run: tuple[ModelStep, ...] = ()
        if self._end(node) > was:
            self._begin_segment(node)
            run = (("leader_write", params), *self._told(node))
        return Outcome(run, error_name(answer))

    def _follower_fetch(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        leader, node = params["leader"], params["follower"]
        if not self._follows(node, leader) or self._end(node) < self._here(leader).log.local_start:
            return self._asked_in_its_name(leader, node, fault)
        return self._fetch(leader, node, fault)

    def _asked_in_its_name(self, leader: int, node: int, fault: Kind | None) -> Outcome:
        cluster = self._cluster
        body = FetchRequest(node, PARTITION, self._end(node), 1, self._epoch(node))
        answer = cluster.carry(cluster.ask(node, leader, body, BROKER_PRINCIPAL), fault)
        return Outcome(tuple(self._told(leader)), error_name(answer))

    def _fetch(self, leader: int, node: int, fault: Kind | None) -> Outcome:
        """Let a follower fetch a record; an answer that has none does not arrive."""
        cluster, end = self._cluster, self._end(node)
        cluster.brokers[node].fire(FETCH_TIMER)
        answer = cluster.carry(cluster.sent(node, leader), fault, _has_record)
        cluster.give_up(node)
        run = self._told(leader)
        if self._end(node) > end:
            self._begin_segment(node)
            run.append(("follower_fetch", {"leader": leader, "follower": node}))
        return Outcome(tuple(run), error_name(answer))

    def _acknowledge(self, leader: int) -> list[ModelStep]:
        """Let all who follow a leader say how far they have come; no answer arrives."""
        cluster = self._cluster
        for node in cluster.replicas:
            if self._follows(node, leader):
                cluster.brokers[node].fire(FETCH_TIMER)
                cluster.carry(cluster.sent(node, leader), None, lambda _: False)
                cluster.give_up(node)
        return self._told(leader)

    def _inc_high_watermark(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        leader = params["leader"]
        run = self._acknowledge(leader)
        isr = self._here(leader).leader.isr if self._leads(leader) else None
        if not run and isr is not None and isr.members != isr.maximal:
            # An ISR that it has asked for keeps it from that. Where another has been elected it hears so of the
            # controller, which says nothing of what was to happen here.
            asked = self._alter_isr(params, None)
            return replace(asked, error=None) if self._is_deposed(leader) else asked
        return Outcome(tuple(run))

    def _alter_isr(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """Let the leader look at its ISR, and carry its AlterIsr; one that was not answered asks again, and hears."""
        cluster, leader = self._cluster, params["leader"]
        run = self._acknowledge(leader)
        old = cluster.controller.partition(PARTITION).isr
        error = self._look_at_isr(leader, fault)
        new = cluster.controller.partition(PARTITION).isr
        if fault in (Kind.LOSE_RESPONSE, Kind.DELAY_RESPONSE):
            cluster.clock.advance(1)
            self._look_at_isr(leader, None)
        run += [("leader_shrink_isr", {"leader": leader, "follower": each}) for each in sorted(old - new)]
        run += [("leader_expand_isr", {"leader": leader, "follower": each}) for each in sorted(new - old)]
        return Outcome((*run, *self._told(leader)), error)

    def _look_at_isr(self, leader: int, fault: Kind | None) -> str | None:
        """The controller's error."""
        cluster = self._cluster
        if not self._leads(leader):
            return None
        cluster.brokers[leader].fire(ISR_TIMER)
        flight = cluster.sent(leader, CONTROLLER)
        error = None if flight is None else error_name(cluster.carry(flight, fault))
        cluster.collect()
        return error

    # -- the remote log manager of a leader -------------------------------------------------------------------------

    def _upload(self, leader: int) -> Upload | None:
        """What a leader uploads just now."""
        here = self._here(leader)
        copying = set() if here is None or here.remote is None else {each.int - 1 for each in here.remote.copying}
        under_way = (each for each in self._uploads.values() if each.copy in copying)
        copies = self._cluster.metadata.copies
        return next((each for each in under_way if copies[each.copy].finished_at == NEVER), None)

    def _goes_on(self, leader: int) -> list[ModelStep]:
        """Let a leader's tasks have their turn, as far as they come without the store."""
        self._cluster.clock.advance(INTERVAL_MS)
        self._cluster.goes_on(leader)
        return self._told(leader)

    def _take_a_turn(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """Let a leader look in remote storage, and begin to upload the next segment, if it may."""
        cluster, leader = self._cluster, params["leader"]
        run = self._goes_on(leader)
        job = cluster.waits_for(leader)
        if job is None or self._upload(leader) is not None:
            return Outcome(tuple(run))
        begun = set(cluster.metadata.copies)
        cluster.work(leader, job)
        cluster.until(leader, lambda: cluster.waits_for(leader) is not None)
        for number in sorted(set(cluster.metadata.copies) - begun):
            copy = cluster.metadata.copies[number]
            start = max(copy.start, self._highest(leader) + 1, self._here(leader).log.log_start)
            upload = Upload(self._epoch(leader), start, copy.end, number)
            self._uploads[upload.epoch, upload.start] = upload
            run.append(("start_copy", {"leader": leader, "end": copy.end}))
        return Outcome(tuple(run))

    def _copy_segment(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        cluster, leader = self._cluster, params["leader"]
        upload, job = self._upload(leader), cluster.waits_for(leader)
        if upload is None or job is None or upload.start != params["start"] or self._is_stored(upload):
            return Outcome()
        if upload.start < self._here(leader).log.local_start:
            return Outcome()  # it would be given up, which the model has not
        cluster.work(leader, job)
        return Outcome((("copy_segment", params),) if self._is_stored(upload) else ())

    def _is_stored(self, upload: Upload) -> bool:
        return set(self._objects(upload.copy)) == set(PARTS)

    def _finish_copy(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        cluster, leader = self._cluster, params["leader"]
        upload, job = self._upload(leader), cluster.waits_for(leader)
        if upload is None or job is None or upload.start != params["start"] or not self._is_stored(upload):
            return Outcome()
        copy = cluster.metadata.copies[upload.copy]
        cluster.work(leader, job)
        cluster.until(leader, lambda: copy.finished_at != NEVER and self._highest(leader) >= upload.end - 1)
        if copy.finished_at == NEVER:
            return Outcome()
        hw, highest = self._known[leader]
        self._known[leader] = hw, max(highest, upload.end - 1)
        return Outcome((("finish_copy", params), *self._told(leader)))

    def _delete_local(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """Set the local retention so that the first segment may go, let the broker delete, and put it back."""
        leader = params["leader"]
        here = self._here(leader)
        if not self._leads(leader) or not here.log.sealed:
            return Outcome()
        before, remote = here.log.local_start, here.remote
        remote.config_of_topic = self._cluster.topic(here.log.size - here.log.sealed[0].size)
        with here.storage():
            remote.expiry.delete_local()
        remote.config_of_topic = self._cluster.topic()
        return Outcome((("delete_local", params),) * (here.log.local_start - before))

    def _delete_segment(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """Let a leader's expiry have its turn, and the metadata log take in that one segment is deleted."""
        cluster, leader = self._cluster, params["leader"]
        upload = self._uploads.get((params["epoch"], params["start"]))
        if upload is None:
            return Outcome()
        copy = cluster.metadata.copies[upload.copy]
        # The model keeps for ever what came to no end (TI8), and a deposed leader would begin behind what is gone.
        alone = not any(self._leads(node) for node in cluster.replicas if node != leader)
        cluster.may_go = {upload.copy} if alone and copy.finished_at != NEVER else set()
        run = [*self._goes_on(leader), *self._goes_on(leader)]
        if cluster.until(leader, lambda: cluster.waits_for(leader, EXPIRE) is not None):
            job = cluster.waits_for(leader, EXPIRE)
            assert job is not None
            cluster.work(leader, job)
            cluster.until(leader, lambda: copy.deleted_at != NEVER)
        cluster.may_go = set()
        if copy.deleted_at == NEVER:
            return Outcome(tuple(run))
        del self._uploads[upload.epoch, upload.start]
        return Outcome((*run, ("delete_segment", params)))

    # -- a follower whose fetch offset is not on its leader -----------------------------------------------------------

    def _begin_anew(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """Let a follower fetch that is told to begin elsewhere, and go where it is told."""
        cluster, leader, node = self._cluster, params["leader"], params["follower"]
        if not self._follows(node, leader):
            return self._asked_in_its_name(leader, node, fault)
        here = self._here(node)
        before = here.log.log_start, here.log.local_start, here.log.end
        if here.log.end >= self._here(leader).log.local_start:
            return Outcome()
        empty = here.remote.begins_after_tiered()
        cluster.brokers[node].fire(FETCH_TIMER)
        cluster.carry(cluster.sent(node, leader))
        for _ in range(_ROUNDS):
            if not here.remote.building():
                break
            job = cluster.waits_for(node, BUILD)
            if job is not None:
                cluster.work(node, job)
            elif not cluster.asks_leader(node):
                break
        run = self._told(leader)
        if (here.log.log_start, here.log.local_start, here.log.end) != before:
            run.append(self._begun(leader, node, at_epuo=empty))
        cluster.give_up(node)
        return Outcome(tuple(run))

    def _begun(self, leader: int, node: int, *, at_epuo: bool) -> ModelStep:
        """What a follower has done that was told to begin elsewhere."""
        here, pair = self._here(node), {"leader": leader, "follower": node}
        log = here.log
        if log.log_start == log.end:
            if not at_epuo:
                return "truncate_fully", pair
            return ("start_at_local_start" if self._highest(leader) < 0 else "start_at_log_start"), pair
        last = log.end - 1
        segment = here.remote.segments().find(log.epoch_for(last), last)
        number = -1 if segment is None else segment.id.int - 1
        found = next((each for each in self._uploads.values() if each.copy == number), None)
        if found is None:
            raise WrongRecord(f"broker {node} begins at offset {log.end}, and nothing before that was uploaded")
        name = "build_to_epuo" if at_epuo else "build_to_local_start"
        return name, {**pair, "epoch": found.epoch}


def _has_record(answer: Response) -> bool:
    return not isinstance(answer, FetchResponse) or bool(answer.records) or error_name(answer) is not None
