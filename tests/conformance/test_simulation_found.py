"""What a node would find after a loss of power, held against what it has: planted faults are found without a crash."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.checks.crash_image import (
    NotFound,
    Row,
    check_after,
    check_amid,
    check_epochs,
    check_stored,
    check_times,
    missing_timers,
    opened,
)
from fencepost.conformance.checks.durability import check_lasting
from fencepost.conformance.harness import binding_of, held_to
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.compaction.plan import PLAN as COMPACTION
from fencepost.conformance.protocols.compaction.system import RunningCompaction
from fencepost.conformance.protocols.controller.plan import PLAN as CONTROLLER
from fencepost.conformance.protocols.controller.system import FreeControllers
from fencepost.conformance.protocols.fencing.plan import PLAN as FENCING
from fencepost.conformance.protocols.fencing.system import RunningCluster
from fencepost.conformance.protocols.snapshots.durability import Lasting
from fencepost.conformance.protocols.snapshots.durability import check_after as check_node_after
from fencepost.conformance.protocols.snapshots.durability import check_amid as check_node_amid
from fencepost.conformance.protocols.snapshots.plan import PLAN as SNAPSHOTS
from fencepost.conformance.protocols.snapshots.system import FreeQuorum
from fencepost.conformance.protocols.tiering.plan import PLAN as TIERING
from fencepost.conformance.protocols.tiering.system import FreeTiering
from fencepost.conformance.protocols.truncation.plan import PLAN as TRUNCATION
from fencepost.conformance.protocols.truncation.system import RunningConsumer
from fencepost.conformance.simulation.divergence import Divergence
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.system import SimulatedSystem
from fencepost.conformance.simulation.transitions import Transitions
from fencepost.impl.files.simulated import SimulatedFiles
from fencepost.impl.log import Record
from fencepost.impl.log.directory import DataDirectory
from fencepost.impl.replica.fetch import offset_of
from fencepost.impl.replica.partition import PartitionState, Role
from fencepost.impl.wire.messages import TopicPartition
from fencepost.model.core.ground import ground

from .seeds import first_divergence

SYSTEMS: dict[str, tuple[Callable[[Parts], SimulatedSystem], str, Sequence[str]]] = {
    "fencing": (RunningCluster, RunningCluster.implemented, FENCING.free),
    "truncation": (RunningConsumer, RunningConsumer.implemented, TRUNCATION.free),
    "snapshots": (FreeQuorum, FreeQuorum.implemented, SNAPSHOTS.free),
    "compaction": (RunningCompaction, RunningCompaction.implemented, COMPACTION.free),
    "tiering": (FreeTiering, FreeTiering.implemented, TIERING.free),
    "controller": (FreeControllers, FreeControllers.implemented, CONTROLLER.free),
}


@cache
def ways(protocol: str, number: int) -> Transitions:
    _, variant, portfolio = SYSTEMS[protocol]
    traced = held_to(protocol).traced(variant)
    at = constants_of(traced.protocol, portfolio[number])
    return Transitions(ground(traced, at), binding_of(protocol, "--protocol"))


def first_parting(protocol: str, *patches: Patch, word: str = "") -> Divergence | None:
    """The first divergence of free runs that is told with this word: a fault may show in other ways before."""
    make, _, portfolio = SYSTEMS[protocol]
    with patched(*patches) as root:
        system = make(Parts.of(root))
        return first_divergence(system, lambda number: ways(protocol, number % len(portfolio)), SimulationPlan(), word)


FAULTS = {
    "a leader epoch is known to the running broker alone": (
        "fencing",
        Patch(
            "replica/partition.py",
            "            self.runtime.directory.store_leader_epoch(*self.key, request.leader_epoch)\n",
            "            pass\n",
        ),
        "after a loss of power the leader epoch would be",
    ),
    "a cut is taken back by a loss of power in its midst": (
        "fencing",
        Patch("log/log.py", "            self._recovery_point = end\n            self._store_holes()\n", ""),
        "in the midst the log would",
    ),
    "records are deleted before the disk knows where the log starts": (
        "truncation",
        Patch(
            "log/log.py",
            "            self._store.store_log_start(offset)\n            self._log_start = offset\n            kept",
            "            self._log_start = offset\n            kept",
        ),
        "the log start 0 is stored, and it is",
    ),
    "the epochs of a commit are known to the running coordinator alone": (
        "truncation",
        Patch("offsets/coordinator.py", "EPOCH_VERSION if self._config.write_epochs else", ""),
        "would be committed",
    ),
    "a segment that was lost is not missed": (
        "fencing",
        Patch(
            "log/recovery.py", "        if max(end, result.log_start) < self.recovery_point:\n", "        if False:\n"
        ),
        ".log lost the log would end at",
    ),
    "half a file is no word to its reader": (
        "snapshots",
        Patch("quorum/state_file.py", "except (ValueError, RecursionError) as problem", "except TypeError as problem"),
        "which is no word for what is wrong with a file",
    ),
    "a vote within an epoch is not stored": (
        "snapshots",
        Patch(
            "quorum/state_file.py",
            "            write_atomically(",
            "            ballot.epoch != self.ballot.epoch and write_atomically(",
        ),
        "the vote of epoch",
    ),
    "the name of a snapshot is not synced": (
        "snapshots",
        Patch(
            "quorum/snapshots.py",
            '{self.id.file_name}")\n        self._files.fsync_dir(self._folder)\n',
            '{self.id.file_name}")\n',
        ),
        "after a loss of power the snapshots would be",
    ),
    "an append to a compacted log is synced by its word alone": (
        "compaction",
        Patch("log/log.py", "                self._segments[-1].fsync()\n", "                pass\n"),
        "after a loss of power the log would end at",
    ),
    "a compacted log forgets where it is cut off": (
        "compaction",
        Patch(
            "log/epochs.py",
            "            self._entries = kept\n            self._store(kept)\n",
            "            self._entries = kept\n",
        ),
        "are stored, and they are",
    ),
    "nobody misses the epochs of what is in remote storage": (
        "tiering",
        Patch(
            "log/recovery.py",
            "        if not self.have_epochs or self.epochs.epoch_for(self.remote_start) < 0:\n",
            "        if False:\n",
        ),
        "leader-epoch-checkpoint lost",
    ),
    "where a log begins is known before its producers are": (
        "tiering",
        Patch(
            "log/remote_part.py",
            "            self._keep_producers(base, producers)\n            self._store.store_local_start(base)\n",
            "            self._store.store_local_start(base)\n            self._keep_producers(base, producers)\n",
        ),
        "would be known of producer",
    ),
    "nothing tells that a log is being begun anew behind what is remote": (
        "tiering",
        Patch("log/remote_part.py", "        with self._storage, self._begun():\n", "        with self._storage:\n"),
        "in the midst the log would begin at",
    ),
    "nothing tells that a log gives up what is remote": (
        "tiering",
        Patch("log/log.py", "self._begun() if self._log_start < self._local_start else nullcontext()", "nullcontext()"),
        "in the midst the log would begin at",
    ),
    "a garbled batch is served": (
        "compaction",
        Patch(
            "log/recovery.py",
            "            for position, batch in segment.rebuilt():\n                if self.copies",
            "            for position, batch in ():\n                if self.copies",
        ),
        " garbled ",
    ),
    "where a log begins on its disk is known to the running broker alone": (
        "tiering",
        Patch("log/remote_part.py", "            self._store.store_local_start(base)\n", "            pass\n"),
        "could not be opened",
    ),
    "the epochs of what is in remote storage are known to the running broker alone": (
        "tiering",
        Patch(
            "log/epochs.py",
            "            self._entries = list(entries)\n            self._store(self._entries)\n",
            "            self._entries = list(entries)\n",
        ),
        "are stored, and they are",
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", FAULTS)
def test_what_would_be_lost_is_found_though_nobody_loses_power(what: str) -> None:
    protocol, patch, word = FAULTS[what]
    assert first_parting(protocol, patch, word=word) is not None


@pytest.mark.nightly(seconds=15)
def test_an_end_of_an_epoch_that_is_cut_in_memory_alone_is_found() -> None:
    """What is lost with it takes a loss of power just then; the files tell it before."""
    patch = Patch(
        "log/epochs.py",
        "            self._entries = kept\n            self._store(kept)\n",
        "            self._entries = kept\n",
    )
    divergence = first_parting("fencing", patch)
    assert divergence is not None and "are stored, and they are" in divergence.headline, divergence


ROWS: tuple[Row, ...] = ((0, 0, b"a"), (1, 0, b"b"), (2, 1, b"c"))
HAS = PartitionState(
    Role.FOLLOWER,
    1,
    1,
    frozenset({0, 1}),
    frozenset({0, 1}),
    3,
    (0, 1),
    frozenset(),
    0,
    1,
    2,
    3,
    ((0, 0), (1, 2)),
    (),
    0,
)


def test_what_is_synced_is_there_and_the_rest_may_be() -> None:
    check_after(HAS, ROWS, HAS, ROWS)
    shorter = HAS._replace(end=2, synced=2, high_watermark=0, epochs=((0, 0),))
    check_after(HAS, ROWS, shorter, ROWS[:2])
    check_after(HAS._replace(epochs=((0, 0), (1, 2), (2, 3))), ROWS, HAS, ROWS)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("found", "there", "word"),
    [
        (None, ROWS, "no replica"),
        (HAS._replace(leader_epoch=0), ROWS, "leader epoch would be 0"),
        (HAS._replace(log_start=1), ROWS, "log start would be 1"),
        (HAS._replace(end=1), ROWS[:1], "would end at 1"),
        (HAS._replace(high_watermark=2), ROWS, "high watermark would be 2"),
        (HAS, (*ROWS[:2], (2, 1, b"d")), "another record at offset 2"),
        (HAS._replace(epochs=((0, 0),)), ROWS, "leader epoch cache"),
    ],
)
def test_what_would_be_wrong_is_named(found: PartitionState | None, there: Sequence[Row], word: str) -> None:
    with pytest.raises(NotFound, match=word):
        check_after(HAS, ROWS, found, there)


def test_a_cache_that_says_otherwise_than_the_log_is_named_at_once() -> None:
    with pytest.raises(NotFound, match="leader epoch cache"):
        check_after(HAS._replace(epochs=((0, 0),)), ROWS, HAS, ROWS)


def test_a_log_with_holes_or_a_part_elsewhere_is_held_to_its_broker() -> None:
    """Its records do not say where leader epochs begin, so the cache is the same, as far as the log goes."""
    holes, shorter = (ROWS[0], ROWS[2]), HAS._replace(end=2, epochs=((0, 0),))
    check_lasting(HAS, holes, HAS, holes, (0, 0))
    check_lasting(HAS, holes, shorter, holes[:1], (0, 0))
    for found, local, word in (
        (HAS, 1, "local log start would be 1"),
        (HAS._replace(epochs=((0, 0),)), 0, "leader epochs would be"),
        (shorter._replace(end=1), 0, "would end at 1"),
        (None, None, "no replica"),
    ):
        with pytest.raises(NotFound, match=word):
            check_lasting(HAS, holes, found, holes, (0, local))


def test_in_the_midst_of_a_cut_there_is_what_was_before_or_what_is_after() -> None:
    cut = HAS._replace(end=2, synced=2, epochs=((0, 0),))
    for found, there in ((HAS, ROWS), (cut, ROWS[:2])):
        check_amid(HAS, cut, ROWS, ROWS[:2], found, there)
    with pytest.raises(NotFound, match="which it never was"):
        check_amid(HAS, cut, ROWS, ROWS[:2], cut, ((0, 0, b"a"), (1, 0, b"z")))
    with pytest.raises(NotFound, match="below 2"):
        check_amid(HAS, cut, ROWS, ROWS[:2], cut._replace(end=1, high_watermark=1), ROWS[:1])
    with pytest.raises(NotFound, match="leader epoch would be 7"):
        check_amid(HAS, cut, ROWS, ROWS[:2], cut._replace(leader_epoch=7), ROWS[:2])
    with pytest.raises(NotFound, match="high watermark would be 2"):
        check_amid(HAS, cut, ROWS, ROWS[:2], cut._replace(high_watermark=2), ROWS[:2])


def test_what_a_log_comes_to_have_behind_another_start_may_follow_what_its_leader_has_deleted_otherwise() -> None:
    """A follower appends, and only then hears of its leader's log start; what that has deleted is known, not found."""
    old, new = ((0, 0, b"x"),), ((0, 2, b"y"), (1, 2, b"z"))
    has, epochs = HAS._replace(end=1, synced=1, high_watermark=0, epochs=((0, 0),)), ((0, 0), (2, 1))
    after = has._replace(log_start=1, end=2, high_watermark=2, epochs=((2, 1),))
    check_amid(has, after, old, new, has._replace(end=2, epochs=epochs), (*old, new[1]))
    with pytest.raises(NotFound, match="which it never was"):
        check_amid(has, after, old, new, has._replace(end=2), (*old, (1, 0, b"z")))
    with pytest.raises(NotFound, match="which it never was"):
        check_amid(has, has._replace(end=2), old, new, has._replace(end=2, epochs=epochs), (*old, new[1]))


def test_a_disk_that_cannot_be_opened_is_named() -> None:
    def fall(_files: SimulatedFiles) -> None:
        raise ValueError("byte 7")

    with pytest.raises(NotFound, match="could not be opened: ValueError: byte 7"):
        opened(fall, SimulatedFiles())


NODE = Lasting(2, 1, 1, 2, 3, ((1, 1, (b"b", None, ())), (2, 2, (b"c", None, ()))), ((1, 1),), 2, True)


def test_a_node_has_its_vote_its_snapshots_and_what_is_synced() -> None:
    check_node_after(NODE, NODE._replace(end=2, rows=NODE.rows[:1], high_watermark=1))
    fetching = NODE._replace(is_whole=False)
    check_node_after(fetching, NODE._replace(begin=0, end=0, rows=(), snapshots=()))
    for found, word in (
        (NODE._replace(voted=0), "the vote of epoch 2"),
        (NODE._replace(snapshots=()), "the snapshots would be"),
        (NODE._replace(end=1, rows=()), "the log would be from 1 to 1"),
        (NODE._replace(rows=NODE.rows[1:]), "the log would have"),
        (NODE._replace(high_watermark=3), "the high watermark would be 3"),
    ):
        with pytest.raises(NotFound, match=word):
            check_node_after(NODE, found)


def test_a_node_that_cuts_has_what_was_before_or_what_is_after() -> None:
    cut = NODE._replace(end=2, rows=NODE.rows[:1])
    check_node_amid(NODE, cut, NODE)
    check_node_amid(NODE, cut, cut)
    with pytest.raises(NotFound, match="the vote of epoch"):
        check_node_amid(NODE, cut, cut._replace(voted=0))
    with pytest.raises(NotFound, match="the log would have"):
        check_node_amid(NODE, cut, cut._replace(rows=((1, 7, (b"b", None, ())),)))
    with pytest.raises(NotFound, match="the log would end at 1"):
        check_node_amid(NODE, cut, cut._replace(end=1, rows=()))


def test_what_a_log_keeps_beside_its_segments_is_what_it_goes_by() -> None:
    files = SimulatedFiles(1)
    directory = DataDirectory(files, node_id=0, cluster_id="Rj_brD27af2db7ETxjjJIw")
    partition, log = TopicPartition("t", 0), directory.log("t", 0)
    log.append_as_leader([Record(b"a"), Record(b"b")], 3)
    log.append_as_leader([Record(b"c")], 5)
    log.flush()
    directory.store_recovery_points()
    check_stored(files, partition, [(3, 0), (5, 2)], 0, 3)
    with pytest.raises(NotFound, match="leader epochs"):
        check_stored(files, partition, [(3, 0)], 0, 3)
    with pytest.raises(NotFound, match="log start"):
        check_stored(files, partition, [(3, 0), (5, 2)], 1, 3)
    with pytest.raises(NotFound, match="recovery point"):
        check_stored(files, partition, [(3, 0), (5, 2)], 0, 2)
    log.delete_before(1)
    check_stored(files, partition, [(3, 1), (5, 2)], 1, 3)


def test_a_leader_epoch_cache_has_the_epochs_of_its_log() -> None:
    rows = [(0, 1), (1, 1), (2, 4)]
    check_epochs([(1, 0), (4, 2)], rows, 0, 3)
    check_epochs([(1, 0), (4, 2), (6, 3)], rows, 0, 3)  # led, and nothing written yet
    for epochs, opened_now in (([(1, 0)], False), ([(1, 0), (4, 2), (6, 4)], False), ([(1, 0), (4, 2), (6, 3)], True)):
        with pytest.raises(NotFound, match="cache has"):
            check_epochs(epochs, rows, 0, 3, opened=opened_now)


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("role", "waiting", "names"),
    [
        (Role.LEADER, 0, {"isr"}),
        (Role.LEADER, 1, {"isr", "produce"}),
        (Role.FOLLOWER, 0, {"fetch"}),
        (Role.TRUNCATING, 0, {"fetch"}),
        (Role.NONE, 0, set()),
    ],
)
def test_a_replica_has_the_timers_of_its_role(role: Role, waiting: int, names: set[str]) -> None:
    state = HAS._replace(role=role, waiting=waiting)
    wanted = {"high-watermarks", "recovery-points"} | names
    assert missing_timers(state, wanted) == []
    for each in sorted(wanted):
        assert missing_timers(state, wanted - {each}) == [each]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("protocol", ["truncation", "compaction", "tiering", "controller"])
def test_a_leader_that_never_looks_at_its_isr_again_is_found(protocol: str) -> None:
    patch = Patch("replica/partition.py", '        self.runtime.timers.set(("isr", self.key), at)\n', "        pass\n")
    assert first_parting(protocol, patch, word="will never wake for isr again") is not None


def test_a_timestamp_leads_to_the_first_record_that_is_as_late() -> None:
    directory = DataDirectory(SimulatedFiles(1), node_id=0, cluster_id="c")
    log = directory.log("t", 0)
    log.append_as_leader([Record(b"a", timestamp=5), Record(b"b", timestamp=9), Record(b"c", timestamp=7)], 0)
    stamps = [(0, 5), (1, 9), (2, 7)]
    check_times(offset_of, log, stamps, 3)
    log.delete_before(1)
    check_times(offset_of, log, stamps, 3)
    for wrong in (lambda *_: (0, 5), lambda *_: (2, 7), lambda *_: (-1, -1)):
        with pytest.raises(NotFound, match="of the timestamp"):
            check_times(wrong, log, stamps, 3)
