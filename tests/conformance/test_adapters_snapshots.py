"""What the quorum's adapter shows: patchworks of two leaders' snapshots, second votes, and what was not synced."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.harness import all_defects
from fencepost.conformance.lockstep.adapter import Outcome
from fencepost.conformance.lockstep.faults import Fault, Kind
from fencepost.conformance.mutants.patched import patched
from fencepost.conformance.protocols.snapshots.adapter import SnapshotsAdapter
from fencepost.conformance.protocols.snapshots.counting import CHUNK, CountingMachine, records_in, size_of
from fencepost.model.core.registry import PROTOCOLS

BY_NAME = {each.name: each for each in all_defects()}


class Written:
    """Where a snapshot is written, in memory."""

    id = None

    def __init__(self) -> None:
        self.data = b""
        self.done = False

    def append(self, data: bytes) -> None:
        self.data += data

    def finished(self) -> None:
        self.done = True


def snapshot_of(records: int, chunks: int) -> bytes:
    """The bytes of a snapshot."""
    machine, writer = CountingMachine(), Written()
    machine.applied, machine.chunks = list(range(records)), chunks
    machine.snapshot(writer)  # type: ignore[arg-type]  # the machine asks for no id
    assert writer.done
    return writer.data


def test_a_reader_tells_a_whole_snapshot_from_a_half_and_from_a_patchwork() -> None:
    two, three = snapshot_of(3, 2), snapshot_of(3, 3)
    assert (records_in(two), records_in(three), size_of(two), size_of(three)) == (3, 3, 2, 3)
    assert -(-len(two) // CHUNK) == 2 and -(-len(three) // CHUNK) == 3
    half = three[:CHUNK]
    assert records_in(half) == 0 and records_in(half, partial=True) == 3
    for wrong in (two[:CHUNK] + three[CHUNK:], three[:CHUNK] + two[CHUNK:], two[:CHUNK] * 2, two[:-1], two + b"#"):
        assert records_in(wrong) == 0
    missing = snapshot_of(3, 1).replace(b"0,1,2", b"0,2")
    assert records_in(missing) == 0, "a record that is missing, or applied twice, is no prefix"


@contextmanager
def driven(defect: str | None = None, **constants: int) -> Iterator[SnapshotsAdapter]:
    """Nodes of the implementation, or of a copy with a defect, at the default constants but for these."""
    wanted = PROTOCOLS["snapshots"].check_constants({"max_chunks": 3, **constants})
    with patched(*(BY_NAME[defect].patches if defect else ())) as root:
        adapter = SnapshotsAdapter(Parts.of(root))
        adapter.reset(wanted, 0)
        try:
            yield adapter
        finally:
            adapter.close()


def does(adapter: SnapshotsAdapter, action: str, **params: int) -> Outcome:
    """One step, which must happen."""
    outcome = adapter.apply(action, params)
    assert (action, params) in outcome.run, (action, outcome)
    return outcome


def half_fetched(adapter: SnapshotsAdapter) -> None:
    """Nodes 0 and 1 have snapshots with one id, in two chunks and in three; node 2 has one chunk of node 0's."""
    does(adapter, "become_candidate", candidate=0)
    does(adapter, "grant_vote", voter=1)
    does(adapter, "leader_write", leader=0)
    does(adapter, "follower_fetch", leader=0, follower=1)
    does(adapter, "follower_fetch", leader=0, follower=1)
    does(adapter, "generate_snapshot", replica=0, offset=0, more=1)
    does(adapter, "generate_snapshot", replica=1, offset=0, more=2)
    does(adapter, "leader_advance_lbo", leader=0, lbo=1)
    does(adapter, "become_follower", follower=2, epoch=0)
    does(adapter, "follower_start_over", leader=0, follower=2)
    does(adapter, "fetch_snapshot", leader=0, follower=2)
    assert adapter.observe()["position[2]"] == 1
    does(adapter, "become_candidate", candidate=1)
    does(adapter, "grant_vote", voter=2)


@pytest.mark.parametrize("defect", [None, "chunks-of-older-leader-kept"])
def test_half_of_one_leaders_snapshot_is_not_completed_with_anothers(defect: str | None) -> None:
    """The state machine checks nothing, so a patchwork would be loaded: with the defect it is, and all is lost."""
    with driven(defect) as adapter:
        half_fetched(adapter)
        fetches = 0
        while adapter.observe()["fetching[2]"] != -1:
            does(adapter, "fetch_snapshot", leader=1, follower=2)
            fetches += 1
        found, applied = adapter.observe()["snapshot_records[2][0]"], adapter._quorum.machines[2].applied
        assert (fetches, found, applied) == ((3, 1, [0]) if defect is None else (2, 0, []))


@pytest.mark.parametrize("defect", [None, "vote-not-stored", "vote-given-twice"])
def test_a_rival_is_refused_by_who_has_voted_also_after_a_crash(defect: str | None) -> None:
    with driven(defect) as adapter:
        does(adapter, "become_candidate", candidate=0)
        does(adapter, "grant_vote", voter=1)
        crashed = adapter.inject(Fault(Kind.CRASH, 1, seed=1))
        restart = ("restart", {"replica": 1, "checkpoint": 0})
        assert crashed.run == ((restart, ("grant_vote", {"voter": 1})) if defect else (restart,))
        assert adapter.apply("grant_vote", {"voter": 2}) == Outcome(), "it has given none, and is not asked"


def test_what_a_leader_has_appended_is_written_back_but_what_it_has_counted_is_its_own_affair() -> None:
    """A record that nobody was told of survives, as in the model; one that is committed must have been synced."""
    for defect, end in ((None, 1), ("committed-before-sync", 0)):
        with driven(defect) as adapter:
            does(adapter, "become_candidate", candidate=0)
            does(adapter, "grant_vote", voter=1)
            does(adapter, "leader_write", leader=0)
            does(adapter, "follower_fetch", leader=0, follower=1)
            assert "leader_inc_high_watermark" in dict(does(adapter, "follower_fetch", leader=0, follower=1).run)
            ends = set()
            for seed in range(20):
                adapter.inject(Fault(Kind.CRASH, 0, seed=seed))
                ends.add(adapter.observe()["leo[0]"])
            assert end in ends and (defect is not None or ends == {1})
