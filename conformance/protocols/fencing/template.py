"""An adapter to copy, and a small system for it to drive, so that it runs as it is.

``TinyCluster`` stands for your system: three brokers' worth of KIP-320 in memory, as somebody would write it who never
saw the model. ``TemplateAdapter`` is what you write. ``docs/how-to/test-in-lockstep.md`` explains it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

# Absolute, so that a copy of this file runs wherever it lies.
from fencepost.conformance.lockstep.adapter import Outcome
from fencepost.conformance.lockstep.faults import Fault, Kind
from fencepost.model.core.errors import BadInput
from fencepost.traces.format import Value


class RefusedError(Exception):
    """A broker or the controller answers with an error code; without one, it does nothing and says nothing."""

    def __init__(self, code: str | None = None) -> None:
        super().__init__(code)
        self.code = code


@dataclass
class Broker:
    """One replica: its log as (record, leader epoch), its high watermark, and whom it follows in which epoch."""

    log: list[tuple[int, int]] = field(default_factory=list)
    high_watermark: int = 0
    epoch: int = -1
    leader: int | None = None
    isr: frozenset[int] = frozenset()


class TinyCluster:
    """Brokers and a controller that call each other; whom nobody reaches is in ``isolated``."""

    def __init__(self, brokers: int) -> None:
        self.brokers = [Broker() for _ in range(brokers)]
        self.records = 0
        self.requests: list[tuple[int | None, frozenset[int]]] = []
        """The LeaderAndIsr requests by leader epoch, each a leader and an ISR."""
        self.leader: int | None = None
        self.isr = frozenset(range(brokers))
        self.isolated: set[int] = set()

    def reach(self, broker: int) -> Broker:
        """The broker, if a message gets through to it."""
        if broker in self.isolated:
            raise RefusedError("REQUEST_TIMED_OUT")
        return self.brokers[broker]

    def check_epoch(self, theirs: int, mine: int) -> None:
        """What a leader says to a leader epoch that is not its own (KIP-320, "Replica Handling")."""
        if theirs < mine:
            raise RefusedError("FENCED_REPLICA")
        if theirs > mine:
            raise RefusedError("UNKNOWN_LEADER_EPOCH")

    def elect(self, leader: int | None, isr: frozenset[int]) -> None:
        """The controller begins an epoch; brokers hear of it when their request arrives."""
        self.leader, self.isr = leader, isr
        self.requests.append((leader, isr))

    def take_up(self, broker: int, epoch: int) -> None:
        """A LeaderAndIsr request arrives. A new follower first cuts its log back to what the leader's has too."""
        mine = self.reach(broker)
        if epoch <= mine.epoch:
            raise RefusedError("FENCED_REPLICA")
        leader, isr = self.requests[epoch]
        if leader is not None and leader != broker:
            theirs = self.reach(leader)
            if theirs.leader != leader:
                raise RefusedError("NOT_LEADER_OR_FOLLOWER")
            self.check_epoch(epoch, theirs.epoch)
            end = max(
                (n + 1 for n, (a, b) in enumerate(zip(mine.log, theirs.log, strict=False)) if a == b),
                default=0,
            )
            del mine.log[end:]
            mine.high_watermark = min(mine.high_watermark, end)
        mine.epoch, mine.leader, mine.isr = epoch, leader, isr

    def produce(self, broker: int) -> None:
        """A client sends one record to a broker."""
        mine = self.reach(broker)
        if mine.leader != broker:
            raise RefusedError("NOT_LEADER_OR_FOLLOWER")
        mine.log.append((self.records, mine.epoch))
        self.records += 1

    def fetch(self, follower: int, leader: int) -> None:
        """A follower asks for the next record."""
        mine, theirs = self.reach(follower), self.reach(leader)
        if theirs.leader != leader:
            raise RefusedError("NOT_LEADER_OR_FOLLOWER")
        self.check_epoch(mine.epoch, theirs.epoch)
        if mine.leader != leader or len(mine.log) >= len(theirs.log):
            raise RefusedError
        mine.log.append(theirs.log[len(mine.log)])
        mine.high_watermark = min(theirs.high_watermark, len(mine.log))

    def raise_high_watermark(self, broker: int) -> None:
        """A leader counts one more record as committed, if every member of its ISR has it in this epoch."""
        mine = self.brokers[broker]
        members = [self.brokers[member] for member in sorted(mine.isr)]
        in_epoch = all(each.leader == broker and each.epoch == mine.epoch for each in members)
        if mine.leader != broker or not in_epoch or min(len(each.log) for each in members) <= mine.high_watermark:
            raise RefusedError
        mine.high_watermark += 1

    def alter_isr(self, broker: int, isr: frozenset[int]) -> None:
        """A leader asks the controller for another ISR, and takes it up when it is granted."""
        mine = self.reach(broker)
        if self.leader != broker or mine.epoch != len(self.requests) - 1:
            raise RefusedError("FENCED_REPLICA")
        self.isr = mine.isr = isr

    def shrink(self, broker: int, follower: int) -> None:
        """A leader takes a follower out that lags, or is in another epoch."""
        mine, theirs = self.brokers[broker], self.brokers[follower]
        keeps_up = theirs.leader == broker and theirs.epoch == mine.epoch and len(theirs.log) >= len(mine.log)
        if mine.leader != broker or follower not in mine.isr or keeps_up:
            raise RefusedError
        self.alter_isr(broker, mine.isr - {follower})

    def expand(self, broker: int, follower: int) -> None:
        """A leader takes a follower in that has reached its high watermark, once that has reached its epoch."""
        mine, theirs = self.brokers[broker], self.brokers[follower]
        follows = theirs.leader == broker and theirs.epoch == mine.epoch
        hw = mine.high_watermark
        in_own_epoch = hw == len(mine.log) or mine.log[hw][1] == mine.epoch
        if mine.leader != broker or follower in mine.isr or not follows or len(theirs.log) < hw or not in_own_epoch:
            raise RefusedError
        self.alter_isr(broker, mine.isr | {follower})


class TemplateAdapter:
    """Drives a ``TinyCluster``. Everything below is what an adapter needs; nothing else is called."""

    name = "template"
    protocol = "fencing"
    variant = "kip-320"
    faults = frozenset({Kind.LOSE_REQUEST, Kind.ISOLATE, Kind.HEAL})

    def __init__(self, protocol: str | None = None, variant: str | None = None) -> None:
        if (protocol or self.protocol) != self.protocol or (variant or self.variant) != self.variant:
            raise BadInput(f"there is no {protocol} {variant} here", "--impl template", "leave both out")

    def reset(self, constants: Mapping[str, int], seed: int) -> None:  # noqa: ARG002 - nothing here is random
        """A fresh cluster. If yours draws anything at random, draw it from ``seed``."""
        self.constants = constants
        self.cluster = TinyCluster(constants["replicas"])

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """Try one action. An error code is an answer, not an exception."""
        if fault is not None:
            # The only fault of an exchange that this system can bring about: the request is lost.
            return Outcome(error="REQUEST_TIMED_OUT")
        try:
            self._do(action, params)
        except RefusedError as refused:
            return Outcome(error=refused.code)
        return Outcome(run=((action, params),))

    def _do(self, action: str, params: Mapping[str, int]) -> None:
        """One call for each action of the protocol (``model/protocols/fencing/actions.py`` has them all)."""
        cluster = self.cluster
        leader, follower = params.get("leader", -1), params.get("follower", -1)
        match action:
            case "controller_elect_leader":
                chosen = params["new_leader"]
                if chosen not in cluster.isr:
                    raise RefusedError("INELIGIBLE_REPLICA")
                if chosen == cluster.leader:
                    raise RefusedError
                cluster.elect(chosen, cluster.isr)
            case "controller_shrink_isr":
                gone = params["replica"]
                if gone != cluster.leader and gone not in cluster.isr:
                    raise RefusedError
                # A leader that is the last member stays in the ISR, but leads no more.
                leads = gone == cluster.leader
                left = cluster.isr if leads and cluster.isr == {gone} else cluster.isr - {gone}
                cluster.elect(None if leads else cluster.leader, left)
            case "become_leader":
                cluster.take_up(leader, params["epoch"])
            case "become_follower":
                cluster.take_up(follower, params["epoch"])
            case "leader_write":
                cluster.produce(leader)
            case "follower_fetch":
                cluster.fetch(follower, leader)
            case "leader_inc_high_watermark":
                cluster.raise_high_watermark(leader)
            case "leader_shrink_isr":
                cluster.shrink(leader, follower)
            case "leader_expand_isr":
                cluster.expand(leader, follower)
            case _:
                raise BadInput(f"there is no {action} here", "--variant", "leave it out")

    def observe(self) -> Mapping[str, Value]:
        """Every cell that the system can show. Here that is all; leave out what yours cannot show."""
        cluster, seen = self.cluster, dict[str, Value]()
        seen["next_record_id"] = cluster.records
        seen["next_leader_epoch"] = len(cluster.requests)
        seen["quorum_leader_epoch"] = len(cluster.requests) - 1
        seen["quorum_leader"] = cluster.leader
        seen["quorum_isr"] = tuple(sorted(cluster.isr))
        for number, broker in enumerate(cluster.brokers):
            seen[f"leo[{number}]"] = len(broker.log)
            seen[f"hw[{number}]"] = broker.high_watermark
            seen[f"leader_epoch[{number}]"] = broker.epoch
            seen[f"leader[{number}]"] = broker.leader
            seen[f"isr[{number}]"] = tuple(sorted(broker.isr))
            # Above the log's end, and for requests not sent yet, the model has a fixed value: -1, None, no replica.
            records = broker.log + [(-1, -1)] * (self.constants["log_size"] - len(broker.log))
            for offset, (record, epoch) in enumerate(records):
                seen[f"record_id[{number}][{offset}]"] = record
                seen[f"record_epoch[{number}][{offset}]"] = epoch
        for epoch, (leader, isr) in enumerate(cluster.requests):
            seen[f"request_leader[{epoch}]"] = leader
            seen[f"request_isr[{epoch}]"] = tuple(sorted(isr))
        return seen

    def inject(self, fault: Fault) -> Outcome:
        """Bring about a fault that stands alone; only kinds in ``faults`` are ever asked for."""
        assert fault.replica is not None
        if fault.kind is Kind.ISOLATE:
            self.cluster.isolated.add(fault.replica)
        else:
            self.cluster.isolated.discard(fault.replica)
        return Outcome()

    def close(self) -> None:
        """Stop processes, remove folders. There are none here."""
