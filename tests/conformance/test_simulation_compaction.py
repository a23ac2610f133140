"""Brokers with a compacted topic run freely against ``kip-280-brokers``: sound ones pass, what is planted is found.

Constants: brokers/log size/keys/timestamps/values of the header/leader epochs.
"""

from __future__ import annotations

from dataclasses import replace

import pytest
from fencepost.conformance.cli.protocols import protocols
from fencepost.conformance.harness import all_defects, held_to
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols import compaction
from fencepost.conformance.protocols.compaction.cluster import call
from fencepost.conformance.protocols.compaction.plan import PLAN
from fencepost.conformance.protocols.compaction.records import Row, Sent, cells_of_record, made, row_of
from fencepost.conformance.protocols.compaction.responses import (
    WrongState,
    check_ages,
    check_cleaning,
    check_contents,
    check_tombstones,
    state_of,
)
from fencepost.conformance.protocols.compaction.system import RunningCompaction
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.machine import Machine
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.shrink import repeat
from fencepost.impl.log.records import StoredRecord
from fencepost.model.core.errors import BadInput
from fencepost.model.explore import Verdict
from fencepost.model.protocols.compaction.impl_spec import brokers

from .freely import Freely

ALONE, USUAL = PLAN.free[:2]
DEFECTS = {each.name: each for each in all_defects() if each.protocol == "compaction"}
BROKERS = Freely("compaction", RunningCompaction)


def test_brokers_are_followed_whatever_happens() -> None:
    """Every step is met, one state explains it, and who is refused is so by a guard that has a code."""
    found = BROKERS.run((ALONE, USUAL), SimulationPlan(runs=16, events=150, seed=280))
    assert (found.verdict, found.reason, found.failure) == (Verdict.HOLDS, None, None)
    assert found.met.widest <= 1
    steps = {action.name for action in brokers.traced(None).actions}
    assert steps - set(found.met.steps) <= {"follower_skip"}
    assert ("leader_write", "leads") in found.met.refused
    assert {"record_epoch[0][5]", "horizon[0][0]", "committed[0]", "table[1]"} <= found.met.cells


@pytest.mark.nightly(seconds=400)
@pytest.mark.parametrize("seed", [1, 2])
def test_a_night_of_it(seed: int) -> None:
    found = BROKERS.run(PLAN.free, SimulationPlan(runs=240, events=250, seed=seed))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None)
    assert found.met.events > 50_000


FOUND = {
    "first-header-counts": ALONE,
    "keyless-taken": ALONE,
    "tombstone-goes-at-once": ALONE,
    "table-goes-by-offsets": ALONE,
    "clean-part-not-stored": ALONE,
}
"""Of each kind one that is found within seconds, and where."""


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", FOUND)
def test_a_planned_defect_is_found(name: str) -> None:
    assert BROKERS.first_divergence((FOUND[name],), SimulationPlan(runs=60, seed=7), *DEFECTS[name].patches) is not None


CONSTANTS = constants_of(brokers, USUAL)


def row(offset: int, key: bytes | None, value: bytes | None, timestamp: int = 0) -> Row:
    return Row(offset, 0, key, value, made(Sent(0, 0, timestamp, 0, 0), CONSTANTS, 0).timestamp, (), None)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("strategy", ["header", "offset"])
def test_what_no_cleaner_could_keep_is_refused(strategy: str) -> None:
    """No key; and a value that is no long, where the strategy goes by the header. Another strategy takes it."""
    for seed in range(200):
        system = RunningCompaction()
        machine = Machine(BROKERS.ways(ALONE), system, seed, SimulationCoverage())
        assert machine.start() is None
        if system.in_force == strategy and system.pace.probes and system.pace.is_prompt("Produce"):
            break
        system.close()
    assert machine.perform(call("elect", replica=0)) is None
    probes = [each.event for each in machine.pending() if each.event.what is EventKind.PROBE]
    assert len(probes) == (3 if strategy == "header" else 1)
    for probe in probes:
        assert machine.perform(probe) is None
    wanted = {("leader_write", "has_key")} | ({("leader_write", "header_is_long")} if strategy == "header" else set())
    assert set(machine.follower.met.refused) == wanted
    assert system.observe()["leo[0]"] == 0
    system.close()


def test_what_a_crash_leaves_of_a_cleaning_is_judged() -> None:
    """Between the log before and the log after all is right that has what stays, and the same state for a reader."""
    rows = [row(0, b"k0", b"1", 1), row(1, b"k0", b"2"), row(2, b"k1", b"3"), row(3, b"k1", None)]
    before = {each.offset: each for each in rows}
    after = {0: rows[0], 3: rows[3]}

    def check(*offsets: int, end: int = 4, checkpoint: int = 0) -> None:
        found = {offset: before[offset] for offset in offsets}
        check_cleaning(before, after, found, end, 4, checkpoint, "timestamp", CONSTANTS)

    for kept in ((0, 1, 2, 3), (0, 3), (0, 1, 3), (0, 2, 3)):
        check(*kept)
    with pytest.raises(WrongState, match="offset 0 would be gone"):
        check(1, 3)
    with pytest.raises(WrongState, match="the log would end at 3"):
        check(0, 1, 2, end=3)
    with pytest.raises(WrongState, match="two records of a key"):
        check(0, 1, 3, checkpoint=2)
    after = {0: rows[0]}
    with pytest.raises(WrongState, match="a reader would have"):
        check(0, 2)


def test_a_record_that_has_changed_is_noticed() -> None:
    known = row(3, b"k0", b"1")
    check_contents([known], {(0, 3): known})
    with pytest.raises(WrongState, match="at offset 3"):
        check_contents([known], {(0, 3): row(3, b"k0", b"1", 1)})


def test_a_record_of_the_model_is_the_same_on_a_disk() -> None:
    """What producers send is read as what it was made of; and a value that is no long counts as none."""
    sent = Sent(1, 0, 1, 2, 3)
    record = made(sent, CONSTANTS, 9)
    stored = row_of(StoredRecord(4, 2, record.value, record.key, record.timestamp, record.headers), None)
    assert cells_of_record(stored, CONSTANTS) == {
        "record_key": 1,
        "record_tombstone": 0,
        "record_timestamp": 1,
        "record_header": 1,
        "record_earlier_header": 2,
    }
    wrong = stored._replace(offset=5, headers=record.headers[:1], value=b"later")
    assert state_of([stored, wrong], "header", CONSTANTS) == {b"k1": b"9"}
    assert state_of([stored, wrong], "offset", CONSTANTS) == {b"k1": b"later"}


def test_running_systems_are_held_to_a_text_of_their_own() -> None:
    assert held_to("compaction") is brokers


def test_what_cannot_be_drawn_is_refused() -> None:
    system = RunningCompaction()
    with pytest.raises(BadInput, match="5 values of the header at most"):
        system.reset(constants_of(brokers, "1/2/1/1/6/1"), 1)
    system.close()


def test_the_same_seed_and_the_same_events_lead_to_the_same() -> None:
    def played() -> list[object]:
        system = RunningCompaction()
        machine = Machine(BROKERS.ways(ALONE), system, 5, SimulationCoverage())
        assert machine.start() is None
        seen: list[object] = []
        for number in range(60):
            pending = machine.pending()
            assert machine.perform(pending[number * 7 % len(pending)].event) is None
            seen.append(dict(system.observe()))
        system.close()
        return seen

    assert played() == played()


def test_an_answer_to_a_repeat_is_not_taken_for_the_one_that_comes_behind_it() -> None:
    """A produce comes while nobody leads, and again with another one, at once, when its first answer is not in yet."""
    old, new = Sent(0, 0, 0, 0, 0)._asdict(), Sent(1, 1, 2, 4, 0)._asdict()

    def produce(what: EventKind, sent: dict[str, int]) -> Event:
        return Event(what, "produce", args=tuple(sorted({**sent, "records": 1, "to": 0}.items())))

    events = [
        Event(EventKind.DISK, "fails", 0),
        produce(EventKind.PROBE, old),
        Event(EventKind.DISK, "mended", 0),
        Event(EventKind.REPEAT, "Produce", 0),
        Event(EventKind.OPERATE, "set_strategy", args=(("strategy", "unset"),)),
        Event(EventKind.REPEAT, "LeaderAndIsr", 0),
        produce(EventKind.CALL, new),
    ]
    system = RunningCompaction()
    ran = repeat(system, BROKERS.ways(PLAN.free[2]), 3341818, events)
    assert ran.divergence is None and list(ran.events) == events
    assert system.replica(0).log.end == 2, "both were written, at once"
    system.close()


def test_there_are_enough_defects_and_each_is_told_from_the_others() -> None:
    assert len(DEFECTS) >= 12
    assert len({each.patches for each in DEFECTS.values()}) == len(DEFECTS)


def test_it_is_told_that_there_is_no_lockstep(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a protocol whose harness has a system that runs freely, and no adapter."""
    line = "its systems run freely, and in no lockstep"
    assert protocols("compaction") == 0
    monkeypatch.setattr(compaction, "HARNESS", replace(compaction.HARNESS, over_impl=None, lockstep=None))
    assert line not in capsys.readouterr().out
    assert protocols("compaction") == 0
    assert capsys.readouterr().out.count(line) == 1


def test_a_cleaning_is_held_to_how_long_a_tombstone_stays() -> None:
    """One of the clean part whose time is over goes, but for one that may beat another record of its key."""
    over, later = (row(offset, b"k%d" % offset, None)._replace(horizon=horizon) for offset, horizon in ((0, 5), (1, 9)))
    beaten, unmarked = row(2, b"k2", None)._replace(horizon=5), row(3, b"k3", None)
    before = {each.offset: each for each in (over, later, beaten, unmarked, row(4, b"k2", b"1"))}

    def check(*kept: int, clean: int = 4, now: int = 5) -> None:
        check_tombstones(before, {offset: before[offset] for offset in kept}, clean, now)

    check(1, 2, 3, 4)
    check(0, 1, 2, 3, 4, now=4)
    check(0, 1, 2, 3, 4, clean=0)
    with pytest.raises(WrongState, match="the tombstone at offset 0, whose time is over"):
        check(0, 1, 2, 3, 4)


def test_a_cleaning_is_held_to_how_old_records_must_be() -> None:
    """Nothing from the first dirty record on that is too young; below, and where no age is asked for, anything."""
    before = {offset: row(offset, b"k0", b"%d" % offset, 1 + offset // 2) for offset in range(4)}
    now = before[2].timestamp + 50

    def check(*kept: int, clean: int = 0, cleaned: int = 2, least: int = 60) -> None:
        check_ages(before, {offset: before[offset] for offset in kept}, clean, cleaned, now, least)

    check(1, 2, 3)
    check(3, cleaned=4, least=0)
    check(3, clean=4, cleaned=4)
    with pytest.raises(WrongState, match="offset 2 is not 60 ms old, and the log is clean up to 3"):
        check(1, 2, 3, cleaned=3)
    with pytest.raises(WrongState, match="offset 2 is not 60 ms old, and a cleaning took the record at offset 2"):
        check(1, 3)
