"""The quorum's nodes run freely against ``kip-630-quorum``: what is sound passes, what is planted is found.

Constants: replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires.
"""

from __future__ import annotations

import pytest
from fencepost.conformance.mutants.patched import Patch
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.snapshots.plan import PLAN
from fencepost.conformance.protocols.snapshots.system import FreeQuorum
from fencepost.conformance.simulation.coverage import SimulationCoverage
from fencepost.conformance.simulation.divergence import Sort
from fencepost.conformance.simulation.events import Event, EventKind
from fencepost.conformance.simulation.machine import Machine
from fencepost.conformance.simulation.runner import SimulationPlan
from fencepost.conformance.simulation.shrink import repeat
from fencepost.model.core.errors import BadInput
from fencepost.model.explore import Verdict
from fencepost.model.protocols.snapshots import snapshots
from fencepost.traces.format import Value

from .freely import Freely

VOTERS = "3/0/8/8/2/0/0/1"
FIVE = "5/0/4/8/1/0/0/1"
ALONE = "2/1/8/4/3/0/0/1"
OBSERVED = "3/1/8/8/2/1/0/1"
LONG = SimulationPlan(runs=200, events=250, seed=7)
QUORUM = Freely("snapshots", FreeQuorum, FreeQuorum.implemented)


def test_the_quorum_is_followed_whatever_happens() -> None:
    """Nearly every step of the model is met; those of a loss of power in the midst of a full reset are rare."""
    found = QUORUM.run((VOTERS, ALONE, OBSERVED), SimulationPlan(runs=36, events=200, seed=630))
    assert (found.verdict, found.reason, found.failure) == (Verdict.HOLDS, None, None)
    steps = {action.name for action in snapshots.traced(FreeQuorum.implemented).actions}
    rare = {
        "lose_begin",
        "lose_tail",
        "truncate_batch",
        "lose_snapshot",
        "lose_log",
        "rediscover_at",
        "resume_empty",
        "follower_truncate",
    }
    assert steps - set(found.met.steps) <= rare
    assert not any(cell.startswith(("acknowledged", "votes")) for cell in found.met.cells)
    assert {"told[0]", "committed[0]", "synced[1]", "counted[0][1]", "supporters[2]"} <= found.met.cells


@pytest.mark.nightly
def test_a_night_of_it() -> None:
    found = QUORUM.run(PLAN.free, SimulationPlan(runs=330, events=300, seed=1))
    assert (found.verdict, found.reason) == (Verdict.HOLDS, None)
    assert found.met.events > 90_000


PLANTED = {
    "a repeated answer counts as another vote": (
        FIVE,
        Patch("replica/runtime.py", "            del self._waiting[envelope.correlation]\n", ""),
        Patch(
            "quorum/candidate.py",
            "                self.granted.add(voter)\n                if len(self.granted) >=",
            "                self.granted.add(voter)\n                self.answers = getattr(self, 'answers', 1) + 1\n"
            "                if self.answers >=",
        ),
    ),
    "an answer to a former candidacy counts": (
        VOTERS,
        Patch(
            "quorum/candidate.py",
            "        for correlation in self._correlations:\n            self._node.requests.forget(correlation)\n",
            "",
        ),
        Patch("quorum/candidate.py", "body.granted and body.epoch == node.epoch:", "body.granted:"),
    ),
    "the state file is not synced before the vote is answered": (
        VOTERS,
        Patch("log/checkpoints.py", "        file.fsync()\n    finally", "        pass\n    finally"),
    ),
    "a follower acknowledges what it has not synced": (
        VOTERS,
        Patch("quorum/follower.py", "        replica.flush()  # the", "        # the"),
    ),
    "a record of an older epoch is committed by counting": (
        VOTERS,
        Patch("quorum/leader.py", " and replica.epoch_at(end - 1) == node.epoch:", ":"),
    ),
    "a follower truncates below its high watermark": (
        VOTERS,
        Patch(
            "quorum/replica.py",
            "        if end < self.high_watermark:\n            return False\n",
            "        end = max(end - 1, self.begin)\n",
        ),
    ),
    "a follower never takes the LBO": (
        ALONE,
        Patch("quorum/follower.py", "        if replica.advance_begin(body.log_begin_offset):", "        if False:"),
    ),
    "what is committed behind a snapshot is not applied once that is whole": (
        VOTERS,
        Patch(
            "quorum/replica.py",
            "        self.fetching = None\n        self._apply()\n",
            "        self.fetching = None\n",
        ),
    ),
    "half a snapshot of another leader is gone on with": (
        ALONE,
        Patch("quorum/replica.py", "            self.fetching.restart()", "            pass"),
    ),
    "a client's batch is written twice": (
        ALONE,
        Patch(
            "quorum/node.py",
            "            offset = self.replica.append(records, self.epoch)\n",
            "            offset = self.replica.append(records, self.epoch)\n"
            "            self.replica.append(records, self.epoch)\n",
        ),
    ),
    "a full reset leaves the snapshots": (
        ALONE,
        Patch("quorum/replica.py", "        self.snapshots.delete(self.snapshots.ids)\n", ""),
    ),
    "a snapshot is gone by that is not synced": (
        ALONE,
        Patch(
            "quorum/snapshots.py",
            "        self._file.fsync()\n        self._file.close()\n        self._files.rename",
            "        self._file.close()\n        self._files.rename",
        ),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(what: str) -> None:
    at, *patches = PLANTED[what]
    assert QUORUM.first_divergence((at,), LONG, *patches) is not None


OF_ANSWERS = {
    "a fetch that is refused is answered without the epoch of its record": (
        VOTERS,
        Patch(
            "quorum/answers.py",
            "QuorumFetchResponse(leader, *asked)",
            "QuorumFetchResponse(leader, node.epoch, node.leader_id, offset)",
        ),
    ),
    "a chunk of a snapshot that is gone is refused without its position": (
        ALONE,
        Patch(
            "quorum/answers.py",
            "FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, *asked, position=body.position)",
            "FetchSnapshotResponse(ErrorCode.SNAPSHOT_NOT_FOUND, *asked)",
        ),
    ),
    "who votes tells of no leader": (
        VOTERS,
        Patch(
            "quorum/answers.py", "VoteResponse(error, node.epoch, node.leader_id", "VoteResponse(error, node.epoch, -1"
        ),
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("what", OF_ANSWERS)
def test_an_answer_that_does_not_say_what_it_is_of_is_found(what: str) -> None:
    at, patch = OF_ANSWERS[what]
    found = QUORUM.first_divergence((at,), LONG, patch)
    assert found is not None and "its leader and what was asked are" in found.headline


def test_who_is_offline_and_names_its_epoch_is_found() -> None:
    """Its disk may hold a later one; what is told of it then is explained by no state of the model."""
    says_nothing = "return refused(ErrorCode.KAFKA_STORAGE_ERROR)"
    says = says_nothing.replace(")", ", self.epoch, self.leader_id)")
    found = QUORUM.first_divergence((VOTERS,), LONG, Patch("quorum/node.py", says_nothing, says))
    assert found is not None and " is offline, and answers " in found.headline


def test_who_is_well_and_answers_as_if_it_were_offline_is_found() -> None:
    offline = "        node.learn(body.epoch, -1)\n        granted"
    answers = f"        return VoteResponse(ErrorCode.KAFKA_STORAGE_ERROR)\n{offline}"
    found = QUORUM.first_divergence((VOTERS,), LONG, Patch("quorum/answers.py", offline, answers))
    assert found is not None and "its leader and what was asked are" in found.headline


RARE = "a state machine forgets nothing"
"""A snapshot must go away while somebody who had applied something fetches it."""

OF_THE_MACHINE = {
    "a state machine loads a snapshot into what it holds": Patch(
        "quorum/machine.py", "        values: dict[bytes, bytes] = {}\n", "        values = dict(self.values)\n"
    ),
    "a tombstone is ignored": Patch("quorum/machine.py", "values.pop(record.key, None)", "pass"),
    RARE: Patch("quorum/machine.py", '        """Nothing is left."""\n        self.values = {}', "        pass"),
    "a snapshot has the first batch of keys alone": Patch(
        "quorum/machine.py", "range(0, len(keys), self._batch_records)", "range(min(len(keys), 1))"
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    "what", [pytest.param(what, marks=pytest.mark.nightly if what == RARE else ()) for what in OF_THE_MACHINE]
)
def test_a_state_machine_that_holds_what_no_client_has_appended_is_found(what: str) -> None:
    found = QUORUM.first_divergence(PLAN.free, SimulationPlan(), OF_THE_MACHINE[what])
    assert found is not None
    assert found.sort is Sort.CONTRADICTED


@pytest.mark.sampled(3)
@pytest.mark.parametrize("around", [(), (Event(EventKind.DISK, "fails", 1),)])
def test_who_is_well_or_has_not_noticed_may_lead_in_peace(around: tuple[Event, ...]) -> None:
    """A disk that fails is noticed where something is written: until then a leader leads on, and nobody else stands."""
    passes = Event(EventKind.TIME, args=(("ms", 1000),))
    votes = Event(EventKind.DELIVER, "Vote", 0, 1), Event(EventKind.DELIVER, "VoteResponse", 1, 0)
    elected = (passes, passes, Event(EventKind.TIMER, "election", 1), *votes)
    ran = repeat(FreeQuorum(), QUORUM.ways(VOTERS), 1, (*elected, *around, Event(EventKind.PEACE, node=1)))
    assert ran.divergence is None, ran.divergence
    assert ran.history[-1].observed is not None and ran.history[-1].observed["leader[0]"] == 1


@pytest.mark.nightly(seconds=10)
def test_a_chunk_that_is_never_asked_for_again_is_found_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.simulation.play.PEACEFUL", 1)
    asks = "        self._fetch_snapshot = node.requests.request(self.leader, body, self._fetched_snapshot)\n"
    never = "        if body.position:\n            node.set_timer(FETCH_SNAPSHOT, 50)\n            return\n" + asks
    found = QUORUM.first_divergence(("4/2/8/8/3/0/0/1",), LONG, Patch("quorum/follower.py", asks, never))
    assert found is not None
    assert found.sort is Sort.NEVER
    assert "half fetched" in found.headline


def test_records_without_the_lbo_that_came_with_them_are_what_a_loss_of_power_leaves() -> None:
    """The model follows wherever between the two the power goes; no other step of it leads to the second of these."""
    left = {_torn_answer(after) for after in range(12)}
    assert {(1, 0), (2, 0), (2, 1)} <= left


def _torn_answer(after: int) -> tuple[Value, Value]:
    """Observer 1 gets a record, and the LBO up to which it has a snapshot, in one response: its LEO and LBO at boot.

    ``after``: the power goes after so many effects of the response's arrival.
    """
    system = FreeQuorum()
    machine = Machine(QUORUM.ways(ALONE), system, 6, SimulationCoverage())
    assert machine.start() is None

    def step(what: EventKind, name: str = "", node: int | None = None, source: int | None = None, **more: int) -> None:
        event = Event(what, name, node, source, crash=more.pop("crash", None), args=tuple(more.items()))
        assert machine.perform(event) is None, event

    def fetch(crash: int | None = None) -> None:
        step(EventKind.TIMER, "fetch", 1)
        step(EventKind.DELIVER, "QuorumFetch", 0, 1)
        step(EventKind.DELIVER, "QuorumFetchResponse", 1, 0, **({} if crash is None else {"crash": crash}))

    for _ in range(3):
        step(EventKind.TIME, ms=1_000)
    step(EventKind.TIMER, "due", 0)
    step(EventKind.CALL, "append", 0)
    for _ in range(3):
        fetch()
    for node in (0, 1):
        step(EventKind.TIMER, "generate-snapshot", node)
    step(EventKind.TIMER, "advance-begin", 0)
    step(EventKind.CALL, "append", 0)
    fetch(after)
    step(EventKind.START, node=1)
    seen = system.observe()
    system.close()
    return seen["leo[1]"], seen["lbo[1]"]


def test_a_part_of_what_is_cut_is_what_a_loss_of_power_leaves() -> None:
    """Two segments are cut, one by one: the model follows wherever between the two the power goes."""
    assert {0, 2, 4} <= {_torn_truncation(after) for after in range(0, 12, 2)}


def _torn_truncation(after: int) -> Value:
    """Node 2 leads epoch 0 by itself, then hears from the leader of epoch 1, whose log is empty: its LEO at boot."""
    system = FreeQuorum()
    machine = Machine(QUORUM.ways(VOTERS), system, 8, SimulationCoverage())
    assert machine.start() is None

    def step(what: EventKind, name: str = "", node: int | None = None, source: int | None = None, **more: int) -> None:
        event = Event(what, name, node, source, crash=more.pop("crash", None), args=tuple(more.items()))
        assert machine.perform(event) is None, event

    def elect(candidate: int, voter: int) -> None:
        for _ in range(3):
            step(EventKind.TIME, ms=1_000)
        step(EventKind.TIMER, "due", candidate)
        step(EventKind.DELIVER, "Vote", voter, candidate)
        step(EventKind.DELIVER, "VoteResponse", candidate, voter)

    elect(2, 1)
    step(EventKind.DELIVER, "Vote", 0, 2)
    for name in ("append", "append", "append-two"):
        step(EventKind.CALL, name, 2)
    elect(0, 1)
    step(EventKind.DELIVER, "BeginQuorumEpoch", 2, 0)
    step(EventKind.TIMER, "due", 2)
    step(EventKind.DELIVER, "QuorumFetch", 0, 2)
    step(EventKind.DELIVER, "QuorumFetchResponse", 2, 0, crash=after)
    step(EventKind.START, node=2)
    seen = system.observe()
    system.close()
    return seen["leo[2]"]


def test_a_probe_that_is_served_is_found() -> None:
    """A leader looks for a snapshot that was deleted: nobody who fetches one need ever ask for it."""
    gone = "    if wanted.end_offset > snapshots.latest_end:"
    found = QUORUM.first_divergence(
        (ALONE,), LONG, Patch("quorum/answers.py", "    if wanted not in snapshots.ids:", gone)
    )
    assert found is not None
    assert found.sort is Sort.CONTRADICTED
    # Or a late request for it comes first, and the leader takes the missing file for a fault of its disk.
    assert "gone-snapshot" in found.headline or "gave up" in found.headline


def test_what_cannot_be_followed_is_refused() -> None:
    system = FreeQuorum()
    for at in ("6/0/2/1/1/0/0/1", "2/2/2/1/1/0/0/1", "3/0/15/1/1/0/0/1"):
        with pytest.raises(BadInput):
            system.reset(constants_of(snapshots, at), 1)
    system.close()


def test_the_same_seed_and_the_same_events_lead_to_the_same() -> None:
    def played() -> list[object]:
        system = FreeQuorum()
        seen: list[object] = [system.reset(constants_of(snapshots, ALONE), 5), dict(system.observe())]
        for event in (*[Event(EventKind.TIME, args=(("ms", 1_000),))] * 2, Event(EventKind.TIMER, "due", 0)):
            seen += (system.step(event), dict(system.observe()))
        seen.append(list(system.pending()))
        system.close()
        return seen

    first = played()
    assert first == played()
    assert any(isinstance(each, dict) and each["epoch_leader[0]"] == 0 for each in first)
