"""Replicas that know no leader: those that stand for election, and those that wait or ask for one (KIP-595)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..wire.errors import ErrorCode
from ..wire.quorum import QuorumFetchResponse, VoteRequest, VoteResponse
from .timers import ELECTION, FETCH

if TYPE_CHECKING:
    from .node import QuorumNode


class Unattached:
    """A replica that is in an epoch whose leader it does not know.

    A voter waits for a candidate or a leader, and stands itself when its timer runs off. An observer asks one voter
    after another; its Fetch is refused, or served, with the leader's id.
    """

    def __init__(self, node: QuorumNode) -> None:
        self._node = node
        self._asked = 0
        self._correlation: int | None = None
        if node.is_voter:
            self.wait()
        else:
            node.set_timer(FETCH, 0)

    def wait(self) -> None:
        """Give others time, once more."""
        self._node.set_timer(ELECTION, self._node.election_timeout())

    def close(self) -> None:
        """A leader is known, or the epoch is over."""
        self._node.requests.forget(self._correlation)
        self._node.timers.cancel(ELECTION)
        self._node.timers.cancel(FETCH)

    def ask(self) -> None:
        """An observer asks the next voter who leads. Nothing is fetched: this epoch may be older than the leader's."""
        node = self._node
        node.requests.forget(self._correlation)
        others = [each for each in node.config.voters if each != node.address]
        voter = others[self._asked % len(others)]
        self._asked += 1
        node.replica.flush()
        self._correlation = node.requests.request(voter, node.fetch_request(), self._told)
        node.set_timer(FETCH, node.config.request_timeout_ms)

    def _told(self, body: object) -> None:
        self._correlation = None
        self._node.set_timer(FETCH, self._node.config.retry_backoff_ms)
        if isinstance(body, QuorumFetchResponse):
            self._node.learn(body.epoch, body.leader)


class Candidate:
    """One candidacy: the epoch is new, and this replica has its own vote, both on disk."""

    def __init__(self, node: QuorumNode) -> None:
        self._node = node
        self.granted = {node.address}
        self._correlations: list[int] = []
        node.set_timer(ELECTION, node.election_timeout())

    def close(self) -> None:
        """Elected, or not."""
        for correlation in self._correlations:
            self._node.requests.forget(correlation)
        self._node.timers.cancel(ELECTION)

    def ask(self) -> None:
        """Ask every other voter; with a majority of votes, which one's own may be, the node leads."""
        node = self._node
        if len(self.granted) >= node.config.majority:
            node.become_leader(frozenset(self.granted))
            return
        epoch, offset = node.replica.vote_position
        body = VoteRequest(node.config.partition, node.epoch, node.address, epoch, offset)
        for voter in node.config.voters:
            if voter != node.address:
                self._correlations.append(node.requests.request(voter, body, self._voted(voter)))

    def _voted(self, voter: int) -> Callable[[object], None]:
        def voted(body: object) -> None:
            node = self._node
            if not isinstance(body, VoteResponse) or node.learn(body.epoch, body.leader):
                return
            if body.error is ErrorCode.NONE and body.granted and body.epoch == node.epoch:
                self.granted.add(voter)
                if len(self.granted) >= node.config.majority:
                    node.become_leader(frozenset(self.granted))

        return voted
