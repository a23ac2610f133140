"""Who gets a vote, who leads, and what is on disk before either: the quorum node's elections."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.files import SimulatedFiles
from fencepost.impl.files.interface import read_file
from fencepost.impl.log import CorruptCheckpoint, Record
from fencepost.impl.net import SimulatedClock
from fencepost.impl.quorum import CLUSTER_METADATA, KeyValueMachine, NotLeader, QuorumConfig, QuorumNode, SnapshotId
from fencepost.impl.quorum.candidate import Unattached
from fencepost.impl.quorum.timers import ELECTION
from fencepost.impl.wire.errors import ErrorCode
from fencepost.impl.wire.messages import Envelope
from fencepost.impl.wire.quorum import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    VoteRequest,
    VoteResponse,
)

from .quorum_rack import SMALL, Rack, Violation

VOTERS = (0, 1, 2)


class Post:
    """A transport that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[Envelope] = []

    def send(self, envelope: Envelope) -> None:
        self.sent.append(envelope)


class Alone:
    """One node, and a test in the place of all others."""

    def __init__(self, node: int = 0, voters: tuple[int, ...] = VOTERS, files: SimulatedFiles | None = None) -> None:
        self.files = files or SimulatedFiles(1)
        self.post = Post()
        self.clock = SimulatedClock()
        self.config = QuorumConfig(voters)
        self.node = QuorumNode(node, self.files, self.post, self.clock, KeyValueMachine(), self.config)

    def ask(self, body: Any, source: int = 1) -> Any:
        """The answer to a request."""
        before = len(self.post.sent)
        self.node.receive(Envelope(source, self.node.address, 7, body))
        (answer,) = [each.body for each in self.post.sent[before:] if each.correlation == 7]
        return answer

    def answer(self, sent: Envelope, body: Any) -> None:
        """Answer what the node has sent."""
        self.node.receive(Envelope(sent.destination, sent.source, sent.correlation, body))

    def lead(self, epoch: int = 1) -> None:
        """Have it elected by all others, in this epoch or a later one."""
        while not self.node.is_leader:
            before = len(self.post.sent)
            self.node.fire(ELECTION)
            if self.node.epoch >= epoch:
                for sent in self.post.sent[before:]:
                    self.answer(sent, VoteResponse(ErrorCode.NONE, self.node.epoch, -1, granted=True))


def vote(epoch: int, candidate: int = 1, last_epoch: int = -1, last_offset: int = -1) -> VoteRequest:
    return VoteRequest(CLUSTER_METADATA, epoch, candidate, last_epoch, last_offset)


def stored(files: SimulatedFiles) -> tuple[int, int]:
    found = json.loads(read_file(files, "__cluster_metadata-0/quorum-state"))
    return found["leaderEpoch"], found["votedId"]


def test_a_vote_is_granted_once_in_an_epoch_and_is_on_disk_first() -> None:
    alone = Alone()
    assert alone.ask(vote(3)) == VoteResponse(ErrorCode.NONE, 3, -1, granted=True)
    assert stored(alone.files) == (3, 1)
    assert not alone.ask(vote(3, candidate=2), source=2).granted
    assert alone.ask(vote(3)).granted, "a repeated request gets the same answer"
    assert alone.ask(vote(4, candidate=2), source=2).granted
    assert stored(alone.files.crashed_copy(5)) == (4, 2)


def test_a_vote_survives_a_crash() -> None:
    alone = Alone()
    assert alone.ask(vote(3)).granted
    again = Alone(files=alone.files.crashed_copy(9))
    assert not again.ask(vote(3, candidate=2), source=2).granted
    assert again.ask(vote(3)).granted


def test_an_older_epoch_is_fenced_and_a_newer_one_taken_up_without_a_vote() -> None:
    alone = Alone()
    alone.ask(vote(3))
    assert alone.ask(vote(2, candidate=2), source=2) == VoteResponse(ErrorCode.FENCED_REPLICA, 3, -1)
    alone.lead(epoch=5)
    alone.node.append([Record(b"a")])
    refused = alone.ask(vote(9, last_epoch=4, last_offset=7))
    assert refused == VoteResponse(ErrorCode.NONE, 9, -1, granted=False)
    assert stored(alone.files) == (9, -1), "the epoch is news; its vote is still free"
    assert not alone.node.is_leader


@pytest.mark.parametrize(
    ("last_epoch", "last_offset", "granted"),
    [(5, 1, True), (5, 2, True), (6, 0, True), (5, 0, False), (4, 9, False), (-1, -1, False)],
)
def test_only_a_candidate_that_is_as_far_gets_a_vote(last_epoch: int, last_offset: int, granted: bool) -> None:
    alone = Alone()
    alone.lead(epoch=5)
    alone.node.append([Record(b"a")])
    assert (alone.node.epoch, alone.node.replica.end) == (5, 2), "its LeaderChange record, and one more"
    assert alone.ask(vote(7, 1, last_epoch, last_offset)).granted is granted


@pytest.mark.parametrize(
    ("epoch", "last_epoch", "last_offset"),
    [(3, 3, 0), (3, 4, 0), (9, 9, 7), (1, 1, 0), (0, 0, 0), (3, -1, 0), (3, 0, -1), (3, 2, -1)],
)
def test_a_position_that_no_candidate_of_the_epoch_can_have_is_refused_and_changes_nothing(
    epoch: int, last_epoch: int, last_offset: int
) -> None:
    """Kafka too refuses it before it looks at the epoch (``KafkaRaftClient.handleVoteRequest``)."""
    alone = Alone()
    alone.ask(vote(2, candidate=2), source=2)
    before = alone.node.state()
    refused = alone.ask(vote(epoch, 1, last_epoch, last_offset))
    assert refused == VoteResponse(ErrorCode.INVALID_REQUEST, 2, -1, granted=False)
    assert alone.node.state() == before and stored(alone.files) == (2, 2)
    assert alone.ask(vote(3, 1, 2, 0)).granted, "a record of the epoch before"


def test_whose_snapshot_is_incomplete_votes_and_stands_as_with_an_empty_log() -> None:
    alone = Alone()
    alone.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, 5, 1))
    alone.node.replica.start_over(SnapshotId(10, 4))
    assert alone.node.replica.end == 10
    assert alone.ask(vote(6, candidate=2), source=2).granted, "the candidate has nothing"
    alone.node.fire(ELECTION)
    asked = alone.post.sent[-1].body
    assert isinstance(asked, VoteRequest)
    assert (asked.last_epoch, asked.last_offset) == (-1, -1)


def test_elected_with_an_incomplete_snapshot_it_leads_an_empty_log() -> None:
    alone = Alone()
    alone.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, 5, 1))
    alone.node.replica.start_over(SnapshotId(10, 4))
    alone.lead(epoch=6)
    assert alone.node.state().epochs == ((6, 0),)
    assert alone.node.state().fetching is None


def test_a_candidate_has_its_own_vote_on_disk_before_it_asks() -> None:
    alone = Alone()
    seen: list[tuple[int, int]] = []
    alone.post.send = lambda envelope: seen.append(stored(alone.files.crashed_copy(1)))  # type: ignore[method-assign]
    alone.node.fire(ELECTION)
    assert seen == [(0, 0), (0, 0)]


def test_a_majority_elects_and_late_or_foreign_votes_do_not() -> None:
    alone = Alone(voters=(0, 1, 2, 3, 4))
    alone.node.fire(ELECTION)
    old = [each for each in alone.post.sent if isinstance(each.body, VoteRequest)]
    alone.node.fire(ELECTION)
    new = alone.post.sent[len(old) :]
    granted = VoteResponse(ErrorCode.NONE, 1, -1, granted=True)
    for sent in old:
        alone.answer(sent, granted)
    assert not alone.node.is_leader, "answers to the candidacy before"
    alone.answer(new[0], granted)
    alone.answer(new[0], granted)
    assert not alone.node.is_leader, "one vote twice"
    alone.answer(new[1], VoteResponse(ErrorCode.NONE, 1, -1, granted=False))
    assert not alone.node.is_leader
    alone.answer(new[2], granted)
    assert alone.node.is_leader


def test_a_quorum_of_one_leads_and_commits_by_itself() -> None:
    alone = Alone(voters=(0,))
    alone.node.fire(ELECTION)
    assert alone.node.is_leader
    offset = alone.node.append([Record(b"v", b"k")])
    assert alone.node.replica.high_watermark == offset + 1
    assert alone.node.replica.machine.values == {b"k": b"v"}  # type: ignore[attr-defined]
    again = Alone(voters=(0,), files=alone.files.crashed_copy(3))
    assert again.node.replica.end == offset + 1, "committed is synced"
    again.node.fire(ELECTION)
    assert again.node.replica.machine.values == {b"k": b"v"}  # type: ignore[attr-defined]


def test_begin_quorum_epoch_makes_a_follower_and_one_epoch_has_one_leader() -> None:
    alone = Alone()
    begin = BeginQuorumEpochRequest(CLUSTER_METADATA, 2, 1)
    assert alone.ask(begin) == BeginQuorumEpochResponse(ErrorCode.NONE, 2, 1)
    assert stored(alone.files) == (2, -1)
    other = BeginQuorumEpochRequest(CLUSTER_METADATA, 2, 2)
    assert alone.ask(other, source=2) == BeginQuorumEpochResponse(ErrorCode.INVALID_REQUEST, 2, 1)
    older = BeginQuorumEpochRequest(CLUSTER_METADATA, 1, 2)
    assert alone.ask(older, source=2) == BeginQuorumEpochResponse(ErrorCode.FENCED_REPLICA, 2, 1)
    assert alone.ask(vote(2, candidate=2), source=2).granted is False, "the epoch has its leader"


def test_end_quorum_epoch_lets_the_first_successor_stand_at_once() -> None:
    for place, successors in ((0, (0, 2)), (1, (2, 0))):
        alone = Alone()
        alone.ask(BeginQuorumEpochRequest(CLUSTER_METADATA, 2, 1))
        alone.ask(EndQuorumEpochRequest(CLUSTER_METADATA, 2, 1, successors))
        assert alone.node.timers.get(ELECTION) == place * alone.config.election_timeout_ms
        assert alone.node.leader_id == -1
    stale = alone.ask(EndQuorumEpochRequest(CLUSTER_METADATA, 1, 2, (0,)), source=2)
    assert stale.error is ErrorCode.FENCED_REPLICA


def test_whoever_is_no_voter_neither_votes_nor_gets_a_vote() -> None:
    observer = Alone(node=7)
    assert observer.ask(vote(1)).error is ErrorCode.INCONSISTENT_VOTER_SET
    alone = Alone()
    assert alone.ask(vote(1, candidate=7), source=7).error is ErrorCode.INCONSISTENT_VOTER_SET
    assert alone.node.epoch == -1, "nor is its epoch taken up"
    observer.node.fire(ELECTION)
    assert observer.node.epoch == -1


def test_who_led_an_epoch_does_not_lead_it_again_after_a_crash() -> None:
    alone = Alone(voters=(0,))
    alone.node.fire(ELECTION)
    epoch = alone.node.epoch
    again = Alone(voters=(0,), files=alone.files.crashed_copy(1))
    assert not again.node.is_leader
    with pytest.raises(NotLeader):
        again.node.append([Record(b"a")])
    again.node.fire(ELECTION)
    assert again.node.epoch == epoch + 1


def test_a_lost_state_file_gives_no_vote_in_an_epoch_of_the_log() -> None:
    alone = Alone(voters=(0,))
    alone.node.fire(ELECTION)
    alone.node.close()
    alone.files.remove("__cluster_metadata-0/quorum-state")
    again = Alone(files=alone.files)
    assert again.node.epoch == 1
    assert again.ask(vote(0)).error is ErrorCode.FENCED_REPLICA


GOOD_STATE = {
    "clusterId": "",
    "leaderId": -1,
    "leaderEpoch": 1,
    "votedId": 0,
    "appliedOffset": 0,
    "currentVoters": [{"voterId": 0}],
    "data_version": 0,
}
BAD_STATE: dict[str, tuple[object, ...]] = {
    "clusterId": (None, 1),
    "leaderId": (None, "1", -2, 1 << 31, True),
    "leaderEpoch": (None, "1", -2, 1 << 31, 1.0),
    "votedId": (None, "1", -2, 1 << 31, []),
    "appliedOffset": (None, -1, 1 << 63),
    "currentVoters": (1, [0], [{}], [{"voterId": "0"}]),
    "data_version": (None, 1, "0"),
}


def test_a_state_file_in_kafkas_form_is_read() -> None:
    for voters in ([{"voterId": 0}], [], None):
        text = json.dumps({**GOOD_STATE, "leaderId": 2, "currentVoters": voters})
        assert Alone(files=with_state(text.encode())).node.ballot == (1, 0, 2)


@pytest.mark.parametrize(
    "text",
    [b"", b"[]", b"{", b"[" * 100_000]
    + [json.dumps({**GOOD_STATE, name: bad}).encode() for name, values in BAD_STATE.items() for bad in values]
    + [
        json.dumps({each: GOOD_STATE[each] for each in GOOD_STATE if each != name}).encode()
        for name in ("leaderId", "votedId")
    ],
)
def test_a_damaged_state_file_is_named(text: bytes) -> None:
    with pytest.raises(CorruptCheckpoint, match="quorum-state, line 1: "):
        Alone(files=with_state(text))


def with_state(text: bytes) -> SimulatedFiles:
    """A node's disk with this state file."""
    alone = Alone()
    alone.ask(vote(1))
    file = alone.files.open("__cluster_metadata-0/quorum-state")
    file.truncate(0)
    file.append(text)
    return alone.files


def test_leaders_follow_one_another_and_an_observer_finds_each() -> None:
    rack = Rack(4)
    epochs = []
    for _ in range(3):
        leader = rack.elect()
        rack.put(leader, 3)
        rack.run(1_000)
        epochs.append(leader.epoch)
        assert rack.nodes[3].leader_id == leader.address
        assert rack.nodes[3].replica.high_watermark == leader.replica.end
        leader.resign()
        rack.run(50)
    assert sorted(set(epochs)) == epochs


def learns_with_voter_0_down(voters: int) -> bool:
    """Whether an observer learns who leads, and what is committed, though voter 0 never comes back."""
    rack = Rack(voters + 1, config=replace(SMALL, voters=tuple(range(voters))))
    rack.stop(0)
    leader = rack.elect()
    rack.put(leader, 3)
    rack.run(3_000)
    observer = rack.nodes[voters]
    return observer.leader_id == leader.address and observer.replica.high_watermark == leader.replica.end


@pytest.mark.parametrize("voters", [3, 5])
def test_an_observer_asks_one_voter_after_another(voters: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert learns_with_voter_0_down(voters)
    same = property(lambda _: 0, lambda _, __: None)  # whoever was asked first is asked again and again
    monkeypatch.setattr(Unattached, "_asked", same, raising=False)
    assert not learns_with_voter_0_down(voters)


def test_no_majority_no_leader() -> None:
    rack = Rack(4, seed=3)
    rack.elect()
    rack.stop(0)
    rack.stop(1)
    for node in list(rack.nodes.values()):
        node.resign()
    with pytest.raises(Violation, match="no leader"):
        rack.elect(5_000)
