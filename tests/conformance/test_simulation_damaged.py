"""What a log makes of damaged files, and what whoever reads it gets; what there is in the midst of a step."""

from __future__ import annotations

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.adapters.stores import SegmentReader
from fencepost.conformance.checks.crash_image import NotFound, Row, check_reads, rows_of
from fencepost.conformance.checks.durability import Before, check_amid
from fencepost.conformance.faults.corrupt_file import (
    Damage,
    How,
    check_damaged,
    check_made_anew,
    check_served,
    damaged,
    opened_damaged,
    readable,
)
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.protocols.fencing.plan import PLAN as FENCING
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.shrink import repeat
from fencepost.impl.files.interface import read_file
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.log import Record
from fencepost.impl.log.checkpoints import RECOVERY_POINTS
from fencepost.impl.log.config import LogConfig
from fencepost.impl.log.directory import DataDirectory
from fencepost.impl.log.errors import CorruptLog
from fencepost.impl.log.log import Log
from fencepost.impl.log.records import StoredRecord
from fencepost.impl.replica.partition import PartitionState, Role
from fencepost.impl.wire.messages import TopicPartition

from .freely import Freely

LOG = TopicPartition("t", 0)


def directory_on(files: SimulatedFiles) -> DataDirectory:
    config = LogConfig(segment_bytes=160, index_interval_bytes=1)
    return DataDirectory(files, node_id=0, cluster_id="c", config=config)


def with_records(synced: int) -> SimulatedFiles:
    """A disk with a log of two segments, three batches of a record each."""
    files = SimulatedFiles(1)
    directory = directory_on(files)
    log = directory.log(*LOG)
    for number in range(3):
        log.append_as_leader([Record(b"%d" % number, timestamp=0)], 0)
        if number + 1 == synced:
            directory.store(RECOVERY_POINTS, {LOG: log.flush()})
    return files


def open_log(files: SimulatedFiles) -> Log:
    return directory_on(files).log(*LOG)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("synced", [0, 2, 3])
def test_a_log_makes_anew_what_can_be_and_refuses_or_cuts_the_rest(synced: int) -> None:
    met: dict[tuple[str, How], int] = {}
    for seed in range(150):
        files = with_records(synced)
        damage = damaged(files, LOG, seed, 0)
        assert damage is not None
        log, refuses = opened_damaged(open_log, files, damage)
        kind = damage.path.rpartition(".")[2], damage.how
        met[kind] = met.get(kind, 0) + 1
        assert refuses is (log is None)
        if log is None:
            continue
        assert damage.loses is not None or log.end == 3
        has = {number: (number, 0, b"%d" % number) for number in range(3)}
        there = [row for row in rows_of(files, str(LOG), _decoded) if has[row[0]] == row]
        check_damaged(damage, log.end, list(has.values()), readable(there, 0))
        check_served(damage, log, has, _decoded)
    assert {("log", How.LOST), ("log", How.GARBLED), ("index", How.LOST), ("index", How.GARBLED)} <= met.keys()


def test_what_has_to_be_missed_depends_on_what_the_log_says_of_itself() -> None:
    """One segment more that is gone is a hole, in a cleaned log; epochs of what is elsewhere are nowhere else."""
    segments, epochs = set(), set()
    for seed in range(150):
        for holes, remade in ((False, True), (False, False), (True, False)):
            damage = damaged(with_records(3), LOG, seed, 0, holes=holes, remade=remade)
            assert damage is not None
            if damage.how is How.LOST and damage.path.endswith(".log"):
                segments.add((holes, remade, damage.noticed, damage.refused))
            elif damage.how is How.LOST and damage.path.endswith("leader-epoch-checkpoint"):
                epochs.add((remade, damage.refused))
    assert segments == {(False, True, True, True), (False, False, True, True), (True, False, False, True)}
    assert epochs == {(True, False), (False, True)}


def test_what_a_loss_of_power_has_left_of_a_base_offset_is_no_offset_that_was_lost() -> None:
    """No CRC covers it: where the second batch seems to begin at 0, what is garbled of the log is in the first."""
    garbled = 0
    for seed in range(60):
        files = with_records(0)
        path = f"{LOG}/{0:020d}.log"
        whole = read_file(files, path)
        second = 12 + int.from_bytes(whole[8:12], "big")
        file = files.open(path)
        file.truncate(second)
        file.append(bytes(8) + whole[second + 8 :])
        file.close()
        damage = damaged(files, LOG, seed, 0)
        assert damage is not None
        if damage.how is How.GARBLED and damage.path == path:
            garbled += 1
            log, _ = opened_damaged(open_log, files, damage)
            assert log is not None
            assert (damage.loses, log.end) == (0, 0)
    assert garbled


def _row(record: StoredRecord) -> Row:
    return record.offset, record.leader_epoch, record.value or b""


_decoded = SegmentReader(LOG, _row, torn=True).decode


def test_who_does_not_notice_that_a_file_is_damaged_is_named() -> None:
    rows = [(0, 0, b"a"), (1, 0, b"b")]
    lost = Damage("t-0/0.log", How.LOST, 1, refused=True, noticed=True, synced=True)
    with pytest.raises(NotFound, match="what was at 1 cannot be read"):
        check_damaged(lost, 1, rows, rows[:1])
    garbled = Damage("t-0/0.log", How.GARBLED, 1, noticed=True)
    check_damaged(garbled, 1, rows, rows[:1])
    with pytest.raises(NotFound, match="would end at 2"):
        check_damaged(garbled, 2, rows, rows[:1])
    with pytest.raises(NotFound, match="there would be"):
        check_damaged(garbled, 1, rows, [(0, 0, b"z")])

    def refuses(_files: SimulatedFiles) -> None:
        raise CorruptLog("gone", "t-0/0.log", 0, "mend it")

    def falls_over(_files: SimulatedFiles) -> None:
        raise KeyError("t")

    assert opened_damaged(refuses, SimulatedFiles(), lost) == (None, True)
    with pytest.raises(NotFound, match="nothing is gone that was synced"):
        opened_damaged(refuses, SimulatedFiles(), garbled)
    with pytest.raises(NotFound, match="no word for what is wrong"):
        opened_damaged(falls_over, SimulatedFiles(), lost)


def test_a_read_that_gets_something_else_is_named() -> None:
    log = open_log(with_records(3))
    damage = Damage("t-0/0.index", How.GARBLED)
    check_served(damage, log, {number: (number, 0, b"%d" % number) for number in range(3)}, _decoded)
    with pytest.raises(NotFound, match="a read at 1 would get"):
        check_served(damage, log, {0: (0, 0, b"0"), 1: (1, 0, b"z"), 2: (2, 0, b"2")}, _decoded)


def test_whoever_reads_gets_what_is_on_the_disk() -> None:
    log, rows = open_log(with_records(3)), {number: (number, 0, b"%d" % number) for number in range(3)}
    check_reads(log, rows, _decoded)
    check_reads(log, {**rows, 3: (3, 0, b"gone")}, _decoded, up_to=3)
    with pytest.raises(NotFound, match="a read at 2 would get"):
        check_reads(log, {**rows, 2: (2, 0, b"z")}, _decoded)
    log._segments[-1]._recent[2] = 1
    with pytest.raises(NotFound, match="a read at 2 raised CorruptLog"):
        check_reads(log, rows, _decoded)
    check_reads(log, rows, _decoded, errors=("LogError",))


def test_a_place_that_is_remembered_over_a_cut_is_found() -> None:
    """A follower is cut, and gets one batch of three where there were two: a consumer may ask for what is amid it."""
    produce = Event(EventKind.CALL, "produce", args=(("acks", -1), ("records", 1), ("to", 0)))
    events = [
        produce,
        Event(EventKind.CALL, "elect", args=(("replica", 0),)),
        Event(EventKind.CALL, "produce", args=(("acks", -1), ("records", 1), ("to", 1))),
        Event(EventKind.DELIVER, "LeaderAndIsr", 0),
        Event(EventKind.CALL, "retry", args=(("batch", 1), ("to", 0))),
        produce,
        Event(EventKind.OPERATE, "elect", args=(("replica", 2), ("what", "elect"))),
        Event(EventKind.PEACE, args=(("asks", 1),)),
        Event(EventKind.CALL, "produce", args=(("acks", -1), ("records", 3), ("to", 2))),
        Event(EventKind.PEACE),
    ]
    ways = Freely("fencing", RunningCluster, RunningCluster.implemented).ways(FENCING.free[2])
    with patched(
        Patch("log/segment.py", "        self._recent.clear()\n        self.index.t", "        self.index.t")
    ) as root:
        for parts, wrong in ((None, False), (Parts.of(root), True)):
            system = RunningCluster(parts)
            found = repeat(system, ways, 1187850, events).divergence
            system.close()
            assert (found is not None) is wrong, found
    assert found is not None and " raised CorruptLog" in found.headline


OLD = Before(0, 0, 4, 3, tuple((offset, 0, b"") for offset in range(4)))
CUT = Before(0, 0, 3, 2, (*OLD.rows[:2], (2, 1, b"")))
LATER = Before(0, 2, 4, 3, OLD.rows[2:])
ELSEWHERE = Before(1, 6, 6, 6, ())


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("after", "found"),
    [
        (CUT, OLD),
        (CUT, CUT),
        (CUT, OLD._replace(end=2)),
        (LATER, OLD),
        (LATER, LATER._replace(rows=OLD.rows)),
        (ELSEWHERE, Before(0, 0, 0, 0, OLD.rows)),
    ],
)
def test_in_the_midst_there_is_what_was_or_what_will_be(after: Before, found: Before) -> None:
    check_amid(OLD, after, found)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("after", "found", "word"),
    [
        (CUT, Before(0, 0, 4, 4, (*CUT.rows, OLD.rows[3])), "which it never was"),
        (LATER, LATER._replace(begin=1, rows=OLD.rows[1:]), "on this disk it began at 0, and begins at 2"),
        (LATER, LATER._replace(rows=OLD.rows[3:]), "which it never was"),
        (LATER, Before(0, 0, 0, 0, ()), "would end at 0, below 3"),
        (LATER, Before(1, 1, 4, 4, ()), "would begin at 1: it began at 0, and begins at 0"),
        (LATER, LATER._replace(log_start=2), "would begin at 2: it began at 0, and begins at 0"),
    ],
)
def test_what_there_never_was_in_the_midst_is_named(after: Before, found: Before, word: str) -> None:
    with pytest.raises(NotFound, match=word):
        check_amid(OLD, after, found)


def test_records_with_holes_are_read_up_to_the_first_that_is_missing() -> None:
    has: list[Row] = [(0, 0, b"a"), (3, 0, b"b"), (4, 1, b"c")]
    assert readable(has, 0, has) == has and readable(has, 0) == has[:1]
    assert readable([has[0], has[2]], 0, has) == has[:1]
    assert readable([has[0], (2, 0, b"z"), has[1]], 0, has)[1] == (2, 0, b"z"), "what has come back is told"


def test_leader_epochs_that_are_made_anew_are_those_of_the_records() -> None:
    state = PartitionState(
        *(Role.NONE, -1, 1, frozenset(), frozenset(), 0, (0, 1), frozenset(), 0, 3, 5, 5, ((0, 0), (1, 4)), (), 0)
    )
    there: list[Row] = [(0, 0, b"a"), (3, 0, b"b"), (4, 1, b"c")]
    check_made_anew(state, there, 0)
    check_made_anew(state._replace(epochs=((0, 0), (1, 4)), log_start=0), there[1:], 3)
    with pytest.raises(NotFound, match="the record at 4 is of leader epoch 1, and would be of 0"):
        check_made_anew(state._replace(epochs=((0, 0),)), there, 0)
    with pytest.raises(NotFound, match="its leader epochs would be"):
        check_made_anew(state._replace(epochs=((0, 3), (1, 4))), there[1:], 3)
