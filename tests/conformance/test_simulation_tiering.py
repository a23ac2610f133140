"""Brokers with tiered storage run freely against ``kip-1023-brokers``: what is sound passes, what is planted is found.

Constants: brokers/offsets/leader epochs/copies.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects, held_to
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.tiering.liveness import Owed
from fencepost.conformance.protocols.tiering.metadata_log import Copy, MetadataView, Said
from fencepost.conformance.protocols.tiering.nodes import PARTITION
from fencepost.conformance.protocols.tiering.plan import PLAN
from fencepost.conformance.protocols.tiering.producers import Producers
from fencepost.conformance.protocols.tiering.responses import (
    Written,
    WrongAnswer,
    WrongRecord,
    check_copy,
    check_fetch,
    check_local,
)
from fencepost.conformance.protocols.tiering.retained import Retained
from fencepost.conformance.protocols.tiering.retention import Retention
from fencepost.conformance.protocols.tiering.steps import steps_amid, steps_of_broker
from fencepost.conformance.protocols.tiering.system import FreeTiering
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.machine import Machine
from fencepost.conformance.simulation.runner import SimulationPlan, repeat
from fencepost.impl.log.batch import encode_batch
from fencepost.impl.log.records import Record
from fencepost.impl.log.remote_part import SealedSegment
from fencepost.impl.tiering.segments import EPOCHS, INDEX, LOG, PRODUCERS, SegmentState
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import FIRST_CLIENT, Envelope, FetchRequest, FetchResponse, ListOffsetsRequest
from fencepost.model.explore import Verdict
from fencepost.model.interpret.reference import IntState
from fencepost.model.protocols.tiering.impl_spec import tiered
from fencepost.traces.format import Value

from .freely import Freely

USUAL = PLAN.free[0]
DEFECTS = {each.name: each for each in all_defects() if each.protocol == "tiering"}
BROKERS = Freely("tiering", FreeTiering)


def test_the_brokers_are_followed_whatever_happens() -> None:
    """Nearly every step is met, and one state explains what is seen."""
    found = BROKERS.run(PLAN.free, SimulationPlan(runs=16, events=200, seed=1023))
    assert (found.verdict, found.reason, found.failure) == (Verdict.HOLDS, None, None)
    steps = {"start_copy", "copy_segment", "finish_copy", "delete_local", "append", "become_follower", "settle"}
    assert steps <= set(found.met.steps)
    assert {"told_epuo[0]", "stored[1]", "highest_remote[1]", "copy_epoch[0][1]"} <= found.met.cells


FOUND = {
    "flag-ignored": "begins[1] is 'nowhere' in the model, 'at_epuo' in the implementation",
    "moved-below-log-start": "its state says OFFSET_OUT_OF_RANGE",
    "consumer-told-moved": "OFFSET_MOVED_TO_TIERED_STORAGE, and its state says NONE",
    "copy-begins-unsaid": "is_done",
    "reads-uncommitted-metadata": "highest_remote",
    "latest-is-local": "which is in remote storage",
    "forgets-objects": "and whoever is well is in its ISR",
}
"""Of each kind one that is found within seconds, and what is told of it."""
SEEDS = {"forgets-objects": 1, "latest-is-local": 3}
"""Where a run comes early in which it shows, as one in which a follower has to begin anew."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FOUND)
def test_a_planned_defect_is_found(name: str) -> None:
    found = BROKERS.first_divergence(
        PLAN.free, SimulationPlan(runs=12, seed=SEEDS.get(name, 0)), *DEFECTS[name].patches
    )
    assert found is not None
    assert FOUND[name] in found.headline


KEPT = {
    "bytes-behind-miscounted": "and retention keeps the record at 2",
    "young-go-by-age": "and retention keeps the record at 0",
    "left-below-log-start": "has deleted each copy below its log start",
    "left-on-disk": "on its disk, which local retention lets go",
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", KEPT)
def test_what_goes_too_early_or_never_is_found(name: str) -> None:
    found = BROKERS.first_divergence(PLAN.free, SimulationPlan(runs=60, seed=8), *DEFECTS[name].patches)
    assert found is not None
    assert KEPT[name] in found.headline


EXPIRED = "broker 0 keeps the records from 0 to 2, which retention lets go"


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("retention", "age", "wanted"),
    [
        (Retention(-1, -1, -1, -1), 1 << 40, None),
        (Retention(1_000, -1, 1_000, -1), 1_000, None),
        (Retention(1_000, -1, 1_000, -1), 1_001, EXPIRED),
        (Retention(-1, 201, -1, 201), 0, None),
        (Retention(-1, 200, -1, 200), 0, EXPIRED),
        (Retention(-1, -1, -1, 200), 0, "broker 0 has the records up to 2 on its disk, which local retention lets go"),
        (
            Retention(-1, -1, 1_000, -1),
            1_001,
            "broker 0 has the records up to 2 on its disk, which local retention lets go",
        ),
    ],
)
def test_what_retention_lets_go_is_told_of_bytes_and_of_age(retention: Retention, age: int, wanted: str | None) -> None:
    """Four records of a hundred bytes; the first two are in a segment that is on the disk and in remote storage."""
    written = Written()
    rows = [(offset, 0, b"%d" % offset) for offset in range(4)]
    written.add(rows, "the log")
    written.times.update({value: 0 for _, _, value in rows})
    written.sizes.update({value: 100 for _, _, value in rows})
    sealed = (SealedSegment(0, 2, 200),)
    log = SimpleNamespace(log_start=0, local_start=0, end=4, sealed=sealed, segment_bases=(0, 2))
    state = SimpleNamespace(leader=0, leader_epoch=3)
    here = SimpleNamespace(log=log, leader=object(), leader_epoch=3, high_watermark=4)
    lineage = dict.fromkeys(range(4), 0)
    system: Any = SimpleNamespace(
        written=written,
        kept=retention,
        clock=SimpleNamespace(at=lambda _node: SimpleNamespace(wall=lambda: age)),
        lineage=lambda _node: lineage,
        metadata=SimpleNamespace(copies={0: Copy(0, 0, 2, {0: 0, 1: 0}, started_at=0, finished_at=1)}),
        controller=SimpleNamespace(partition=lambda _partition: state),
        replica=lambda _node: here,
    )
    assert Retained(system).left([0]) == wanted
    assert Retained(system).left([1]) is None, "who is not well owes nothing"
    lineage[0] = 1
    assert Retained(system).left([0]) is None, "it is a deposed leader's copy"


def test_a_consumer_that_is_never_answered_is_found() -> None:
    """What is in remote storage is read, and goes to nobody."""
    patch = Patch("tiering/reader.py", "        self._partition.runtime.respond(envelope, answer)\n", "        pass\n")
    found = BROKERS.first_divergence(PLAN.free, SimulationPlan(runs=8, seed=3), patch)
    assert found is not None
    assert re.search("which leads t-0, has not answered the (Fetch|ListOffsets) of a client", found.headline), found


def test_an_answer_is_owed_by_who_leads_still() -> None:
    leads: dict[int, object] = {0: object(), 1: object()}
    owed = Owed(lambda node, _partition: leads.get(node))
    for node in (0, 1, 2):
        owed.arrives(Envelope(FIRST_CLIENT, node, 7, FetchRequest(-1, PARTITION, 0, 1, -1)), 5)
    owed.arrives(Envelope(1, 0, 7, ListOffsetsRequest(PARTITION, -6, 1)), 9)
    assert owed.unanswered([0, 1, 2]) == "broker 0, which leads t-0, has not answered the Fetch of a client"
    owed.was_sent(Envelope(0, FIRST_CLIENT, 7, FetchResponse(ErrorCode.NONE)))
    assert owed.unanswered([0]) == "broker 0, which leads t-0, has not answered the ListOffsets of broker 1"
    assert owed.unanswered([1]) is not None and owed.unanswered([2]) is None
    leads[1] = object()  # in another leader epoch
    del leads[0]
    assert owed.unanswered([0, 1, 2]) is None


@pytest.mark.nightly(seconds=400)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_night_of_it(seed: int) -> None:
    found = BROKERS.run(PLAN.free, SimulationPlan(runs=250, events=250, seed=seed))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None)
    assert found.met.events > 50_000
    # Rare: a leader whose log is shorter than its follower's, in one epoch; one that has not uploaded anything yet; and
    # one of whose log nothing is in remote storage any more, as some empty follower asks.
    rare = {"give_up_role", "start_at_local_start", "start_at_log_start"}
    assert {action.name for action in tiered.traced(None).actions} - set(found.met.steps) <= rare


def test_running_systems_are_held_to_a_text_of_their_own() -> None:
    assert held_to("tiering") is tiered
    assert tiered.name == "tiering"


def test_the_same_seed_and_the_same_events_lead_to_the_same() -> None:
    def played() -> list[object]:
        system = FreeTiering()
        seen: list[object] = [system.reset(constants_of(tiered, USUAL), 5), dict(system.observe())]
        leader = system.leaders()[0]
        produce = Event(EventKind.CALL, "produce", args=(("to", leader),))
        events = (*(produce,) * 4, Event(EventKind.SYNC, "follow"), Event(EventKind.SYNC, "work", leader))
        for event in (
            *events,
            Event(EventKind.TIME, args=(("ms", 300),)),
            *(Event(EventKind.TIMER, "due", n) for n in range(3)),
        ):
            seen += (system.step(event), dict(system.observe()))
        seen.append(list(system.pending()))
        system.close()
        return seen

    first = played()
    assert first == played()
    looks: list[Mapping[str, Value]] = [each for each in first if isinstance(each, dict)]
    assert looks[0]["leads[0]"] == 1


def test_records_may_be_deleted_although_the_disk_has_failed_whoever_did() -> None:
    """The log start is on disk before what lies below it is removed: so it is when the broker is back."""
    system = FreeTiering()
    machine = Machine(BROKERS.ways(USUAL), system, 3, SimulationCoverage())
    assert machine.start() is None
    leader = system.leaders()[0]

    def step(what: EventKind, name: str = "", node: int | None = None, **more: int) -> None:
        event = Event(what, name, node, args=tuple(more.items()))
        assert machine.perform(event) is None, event

    assert system.observe()[f"hw[{leader}]"] == 3
    step(EventKind.DISK, "full", leader)
    step(EventKind.OPERATE, "delete-records", offset=1, to=leader)
    assert leader not in system.up()
    step(EventKind.DISK, "mended", leader)
    step(EventKind.START, node=leader)
    assert system.observe()[f"log_start[{leader}]"] == 1
    system.close()


def test_who_cannot_hear_what_is_in_remote_storage_waits_and_nobody_else_does() -> None:
    """Broker 1 is empty, and its leader 0 has uploaded what it would fetch first; 2 leads the metadata log."""
    ways, system = BROKERS.ways(USUAL), FreeTiering()
    machine = Machine(ways, system, 14591758, SimulationCoverage())
    assert machine.start() is None
    elect = Event(EventKind.OPERATE, "elect-metadata", args=(("broker", 2),))
    assert machine.perform(elect) is None
    seen = system.observe()
    assert (seen["leo[1]"], seen["isr"], seen["metadata_leader"]) == (0, (0, 2), 2) and seen["local_start[0]"] == 4
    (thread,) = machine.follower.threads
    state = IntState(ways.system, thread.state)

    def broken(*well: int) -> list[str]:
        settles = ways.binding.settles[:2]
        mask = sum(1 << each for each in well)
        return [text.__name__ for text in settles if not text(ways.space.reference.k, state, mask)]

    assert broken(0, 1) == []
    assert broken(0, 1, 2) == ["_partition_is_led", "_followers_have_all"]
    system.close()


def test_who_might_have_read_the_metadata_log_and_did_not_goes_by_what_it_has_read() -> None:
    """Broker 1 heard that a copy was finished, and of a new leader of that log, before it needed to know."""

    def calm(rounds: int) -> Event:
        return Event(EventKind.CALM, args=(("rounds", rounds),))

    work, follow = Event(EventKind.SYNC, "work", 0), Event(EventKind.SYNC, "follow")
    events = (
        *[Event(EventKind.CALL, "produce", args=(("to", 0),))] * 3,
        calm(1),
        follow,
        *[work] * 3,
        Event(EventKind.TIMER, "due", 1),
        follow,
        Event(EventKind.DELIVER, "Fetch", 0, 1),
        Event(EventKind.OPERATE, "elect-metadata", args=(("broker", 2),)),
        Event(EventKind.DELIVER, "LeaderAndIsr", 2),
        calm(2),
        Event(EventKind.OPERATE, "elect", args=(("broker", 1),)),
        Event(EventKind.DELIVER, "LeaderAndIsr", 1),
    )
    system = FreeTiering()
    ran = repeat(system, BROKERS.ways(USUAL), 2021014657, events)
    assert ran.divergence is None and ran.events == events
    seen = ran.history[-1].observed
    assert seen is not None and (seen["leads[1]"], seen["is_done[0]"], seen["highest_remote[1]"]) == (1, 1, -1)
    system.close()


def test_what_a_leader_deletes_as_its_power_is_lost_it_deletes_by_what_it_had_read() -> None:
    """Once it is up again, it has read nothing of what is uploaded; and what is not uploaded, nobody may delete."""

    def started(parts: Parts) -> tuple[Divergence | None, object]:
        write = (Event(EventKind.CALL, "produce", args=(("to", 0),)), Event(EventKind.DELIVER, "Produce", 0))
        events = (*write, *write, Event(EventKind.SYNC, "work", 0, crash=9), Event(EventKind.START, node=0))
        system = FreeTiering(parts)
        run = repeat(system, BROKERS.ways("3/10/14/20"), 1077774239, events)
        cells = system.observe()
        system.close()
        return run.divergence, (cells["local_start[0]"], cells["has_read[0]"])

    assert started(Parts.of()) == (None, (6, 0))
    limit = Patch("tiering/expiry.py", "min(self.local_limit(), self._partition.high_watermark)", "log.end")
    many = Patch("tiering/expiry.py", "size - each.size >= topic.local_bytes", "each.size > 0")
    with patched(limit, many) as root:
        found, _ = started(Parts.of(root))
    assert found is not None and "local_start[0] is 6 in the model, 8 in the implementation" in found.headline


def test_the_first_that_the_metadata_log_says_of_a_copy_counts() -> None:
    view = MetadataView()
    view.begun(Said(0, SegmentState.COPY_SEGMENT_STARTED, 1, False, Copy(1, 0, 2, {0: 0, 1: 0})))
    started, finished = SegmentState.COPY_SEGMENT_STARTED, SegmentState.COPY_SEGMENT_FINISHED
    deleting, deleted = SegmentState.DELETE_SEGMENT_STARTED, SegmentState.DELETE_SEGMENT_FINISHED
    for at, (state, unfinished) in enumerate(
        ((finished, False), (started, False), (finished, False), (deleting, True), (started, False), (deleted, False))
    ):
        view.apply(at, Said(0, state, 1, unfinished))
    assert (view.copies[0].started_at, view.copies[0].finished_at) == (1, 2)
    assert view.state_of(0) is finished
    view.apply(6, Said(0, deleting, 2, False))
    view.apply(7, Said(0, deleted, 2, False))
    assert view.state_of(0) is None


def test_a_record_that_nobody_wrote_is_told() -> None:
    written = Written()
    written.add([(0, 0, b"a"), (1, 0, b"b")], "the log of broker 0")
    with pytest.raises(WrongRecord, match="offset 1 of leader epoch 0"):
        written.add([(1, 0, b"c")], "the log of broker 1")
    written.acknowledged[1] = b"b"
    assert written.lost(0, 2, {0: 0, 1: 0}) is None
    assert written.lost(0, 2, {0: 0, 1: 1}) is not None
    assert written.lost(0, 1, {0: 0}) is not None
    rows = [(0, 0, b"a"), (1, 0, b"b")]
    check_local(0, rows, {0: 0, 1: 0}, 0, 2, [0])
    with pytest.raises(WrongRecord, match="says epoch 1 of offset 1"):
        check_local(0, rows, {0: 0, 1: 1}, 0, 2, [0])
    with pytest.raises(WrongRecord, match="locally"):
        check_local(0, rows, {0: 0, 1: 0}, 0, 3, [0])


def test_whose_disk_has_failed_says_so_whatever_is_asked() -> None:
    """Before it says who leads, as Kafka does; and it says nothing else, nor does anybody whose disk is well."""
    asked = FetchRequest(1, PARTITION, 0, 1, 4)
    failed, well = SimpleNamespace(failure="no space left", leader=None), SimpleNamespace(failure=None, leader=None)
    for here, right, wrong in (
        (failed, ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (well, ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.KAFKA_STORAGE_ERROR),
    ):
        check_fetch(here, asked, FetchResponse(right), Written(), {}, late=False)
        with pytest.raises(WrongAnswer, match=f"{wrong.name}, and its state says {right.name}"):
            check_fetch(here, asked, FetchResponse(wrong), Written(), {}, late=False)


def test_a_copy_is_whole_or_not_there_and_never_another() -> None:
    data = encode_batch([Record(b"a", timestamp=0), Record(b"b", timestamp=0)], base_offset=0, leader_epoch=0)
    written = Written()
    written.add([(0, 0, b"a"), (1, 0, b"b")], "the log")
    epochs = {0: 0, 1: 0}
    objects = {LOG: data, INDEX: b"", EPOCHS: b"0\n1\n0 0\n", PRODUCERS: b""}
    assert check_copy(0, 0, 2, epochs, objects, written) == epochs
    assert check_copy(0, 0, 2, epochs, {**objects, LOG: data[:-1]}, written) is None
    assert check_copy(0, 0, 2, epochs, {LOG: data}, written) is None
    with pytest.raises(WrongRecord, match="says epoch 3 of offset 0"):
        check_copy(0, 0, 2, epochs, {**objects, EPOCHS: b"0\n1\n3 0\n"}, written)
    other = Written()
    other.add([(0, 0, b"a"), (1, 0, b"c")], "the log")
    with pytest.raises(WrongRecord, match="another record at offset 1"):
        check_copy(0, 0, 2, epochs, objects, other)


def test_a_copy_that_is_given_up_and_was_read_from_another_log_is_none() -> None:
    """What a deposed leader had asked of the store is done late, when its log is another's; nobody finishes it."""

    def call(name: str, **args: int) -> Event:
        return Event(EventKind.OPERATE if name.startswith("elect") else EventKind.CALL, name, args=tuple(args.items()))

    def hear(node: int, number: int = 0) -> Event:
        return Event(EventKind.DELIVER, "LeaderAndIsr", node, number=number)

    write = [call("produce", to=0), Event(EventKind.DELIVER, "Produce", 0)]
    offices = [call("elect-unclean", broker=broker) for broker in (1, 0, 1, 0, 1)]
    events = (
        *(*write, *write, Event(EventKind.SYNC, "work", 0)),
        *(*offices, hear(0), Event(EventKind.SYNC, "work", 0), *(hear(1) for _ in range(4))),
        *(call("produce", to=1), Event(EventKind.DELIVER, "Produce", 1), hear(0), hear(0, 1)),
        *(Event(EventKind.SYNC, "follow"), Event(EventKind.SYNC, "store", 0, args=(("request", 0),))),
    )
    system = FreeTiering()
    system.reset(constants_of(tiered, PLAN.free[1]), 165645577)
    system.clients.producers = Producers(0)  # one that counts would be refused by who lacks what it has sent before
    for event in events:
        system.step(event)
        cells = system.observe()
    assert (cells["copying[1]"], cells["finished_at[1]"], cells["stored[1]"]) == (0, -1, 0)
    assert cells["record_epoch[0][0]"] == 6 != cells["copy_epoch[1][0]"]
    system.close()


def test_there_are_enough_defects_and_each_is_told_from_the_others() -> None:
    assert len(DEFECTS) >= 12
    assert len({each.patches for each in DEFECTS.values()}) == len(DEFECTS)
    assert {"KAFKA-17062", "KAFKA-19523"} <= {each.issue for each in DEFECTS.values()}


def cells_of_a_log(start: int, epochs: list[int]) -> dict[str, Value]:
    """What is seen of broker 0, which follows, with these leader epochs from offset 0 on."""
    cells: dict[str, Value] = {f"record_epoch[0][{offset}]": epoch for offset, epoch in enumerate(epochs)}
    names = ("leads", "settled", "highest_remote", "begins")
    return (
        cells
        | {f"{name}[0]": 0 for name in names}
        | {
            "leader_epoch[0]": 3,
            "log_start[0]": start,
            "local_start[0]": start,
            "leo[0]": len(epochs),
        }
    )


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("start", "epochs", "ends"),
    [
        (0, [0, 0, 1, 1, 3], {4, 5}),
        # Followed in the same event: it learned of its leader's log start, cut its log, and has another record there.
        (2, [-1, -1, 1, 1, 3], {0, 4, 5}),
        (2, [-1, -1, 1, 1, 1], {0, 5}),
    ],
)
def test_where_a_log_was_cut_is_seen_though_its_start_has_risen(start: int, epochs: list[int], ends: set[int]) -> None:
    before, now = cells_of_a_log(0, [0, 0, 1, 1, 1]), cells_of_a_log(start, epochs)
    steps = steps_of_broker(0, before, now, 5, Event(EventKind.SYNC, "follow"), started=False)
    assert {step[1]["end"] for step in steps if step[0] == "truncate"} == ends


def test_what_was_done_as_power_was_lost_is_what_the_disk_says_and_no_more() -> None:
    before = cells_of_a_log(2, [-1, -1, 1, 1, 1])
    assert list(steps_amid(0, before, 2, 2)) == list(steps_amid(0, before, 0, 0)) == []
    assert list(steps_amid(0, before, 2, 4)) == [("delete_local", {"leader": 0, "end": 4})]
    rises = [("follow_log_start", {"replica": 0, "start": 3}), ("expire", {"leader": 0})]
    assert list(steps_amid(0, before, 3, 2)) == rises
    assert list(steps_amid(1, before, 3, 4)) == [], "nothing was seen of it"
