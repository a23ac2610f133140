"""The quorum's nodes run freely against ``kip-630-quorum``: what is sound passes, what is planted is found.

Constants: replicas/observers/log size/leader epoch/chunks/minimum records/late responses/lag expires.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import pytest
from fencepost.conformance.adapters.parts import Parts
from fencepost.conformance.free.events import Event, What
from fencepost.conformance.free.met import Met
from fencepost.conformance.free.parted import Parted, Sort
from fencepost.conformance.free.runner import Free, FreePlan, play, run_freely, run_seed
from fencepost.conformance.free.scheduler import Memory
from fencepost.conformance.free.ways import Ways
from fencepost.conformance.harness import binding_of
from fencepost.conformance.mutants.patched import Patch, patched
from fencepost.conformance.plan import constants_of
from fencepost.conformance.protocols.snapshots.free import FreeQuorum
from fencepost.conformance.protocols.snapshots.plan import PLAN
from fencepost.model.core.errors import BadInput
from fencepost.model.core.ground import ground
from fencepost.model.explore import Verdict
from fencepost.model.protocols.snapshots import snapshots

VOTERS = "3/0/8/8/2/0/0/1"
FIVE = "5/0/4/8/1/0/0/1"
ALONE = "2/1/8/4/3/0/0/1"
OBSERVED = "3/1/8/8/2/1/0/1"


@cache
def ways(at: str) -> Ways:
    system = ground(snapshots.traced(FreeQuorum.implemented), constants_of(snapshots, at))
    return Ways(system, binding_of("snapshots", "--protocol"))


def freely(portfolio: Sequence[str], plan: FreePlan) -> Free:
    """The quorum of ``impl``."""
    system = FreeQuorum()
    try:
        return run_freely(system, [ways(at) for at in portfolio], plan)
    finally:
        system.close()


def first_parted(at: str, *patches: Patch) -> Parted | None:
    """The first disagreement as it is found, which is not made small."""
    plan, memory, met = FreePlan(events=250), Memory(), Met()
    with patched(*patches) as root:
        system = FreeQuorum(Parts.of(root))
        runs = (play(system, ways(at), run_seed(7, number), plan, memory, met) for number in range(200))
        found = next((ran.parted for ran in runs if ran.parted is not None), None)
        system.close()
    return found


def test_the_quorum_is_followed_whatever_happens() -> None:
    """Nearly every step of the model is met; those of a loss of power in the midst of a full reset are rare."""
    found = freely((VOTERS, ALONE, OBSERVED), FreePlan(runs=36, events=200, seed=630))
    assert (found.verdict, found.reason, found.failure) == (Verdict.HOLDS, None, None)
    steps = {action.name for action in snapshots.traced(FreeQuorum.implemented).actions}
    rare = {"lose_snapshot", "lose_log", "rediscover_at", "resume_empty", "follower_truncate"}
    assert steps - set(found.met.steps) <= rare
    assert not any(cell.startswith(("acknowledged", "votes")) for cell in found.met.cells)
    assert {"told[0]", "committed[0]", "synced[1]", "counted[0][1]", "supporters[2]"} <= found.met.cells


@pytest.mark.night
def test_a_night_of_it() -> None:
    found = freely(PLAN.free, FreePlan(runs=330, events=300, seed=1))
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


@pytest.mark.parametrize("what", PLANTED)
def test_what_is_planted_is_found(what: str) -> None:
    at, *patches = PLANTED[what]
    assert first_parted(at, *patches) is not None


@pytest.mark.night
def test_a_chunk_that_is_never_asked_for_again_is_found_in_peace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fencepost.conformance.free.runner.PEACEFUL", 1)
    asks = "        self._fetch_snapshot = node.requests.request(self.leader, body, self._fetched_snapshot)\n"
    again = "        node.set_timer(FETCH_SNAPSHOT, node.config.request_timeout_ms)"
    found = first_parted("4/2/8/8/3/0/0/1", Patch("quorum/follower.py", asks + again, asks))
    assert found is not None
    assert found.sort is Sort.NEVER
    assert "half fetched" in found.headline


def test_a_probe_that_is_served_is_found() -> None:
    stale = Patch("quorum/answers.py", "    if epoch != node.epoch:", "    if epoch > node.epoch:")
    found = first_parted(VOTERS, stale)
    assert found is not None
    assert found.sort in (Sort.RAISED, Sort.ERROR)


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
        for event in (*[Event(What.TIME, args=(("ms", 1_000),))] * 2, Event(What.TIMER, "due", 0)):
            seen += (system.happen(event), dict(system.observe()))
        seen.append(list(system.pending()))
        system.close()
        return seen

    first = played()
    assert first == played()
    assert any(isinstance(each, dict) and each["epoch_leader[0]"] == 0 for each in first)
