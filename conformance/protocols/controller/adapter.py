"""``controller`` as controllers and brokers do it: each step of the model is a schedule of real messages.

What the schedules take care of, so that the model can be led along:

- *One log.* A controller is elected only where a majority's logs let it win with as much as the step says. Whoever is
  elected commits all of its log at once, with the record that begins its epoch, and is active then.
- *Who was active* keeps what is stable; the model has it replay that anew, which is told as steps.
- *Metadata are the answer* to an AlterPartition, and no other: its responses are lost.
- *acks=all* counts whoever is there: all who are counted say at once how far they are, or nobody does.
- *A controller that was active* loses power, every other time, before it hears that it is so no more.
- *A crash of a broker* takes the disk with the partitions' logs along. Who is the last of an ISR stays away then.
- *A session* is over for the one who is to be fenced: all others are heard of first.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cached_property
from typing import Any, Final

from ....impl.kraft.node import SESSIONS
from ....impl.log.batch import encode_batch
from ....impl.log.records import Record
from ....impl.wire.controller import (
    BrokerHeartbeatRequest,
    BrokerHeartbeatResponse,
    BrokerRegistrationRequest,
    ControllerHeartbeatRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
)
from ....impl.wire.messages import Envelope, ProduceRequest
from ....model.protocols.controller.state import Role as NodeRole
from ....model.protocols.controller.state import Run
from ...adapters.carrier import LOSES, error_name
from ...lockstep.adapter import ModelStep, Outcome
from ...lockstep.faults import TIMED_OUT, Fault, Kind
from .lockstep_cluster import LAG_MS, SESSION_MS, topic_of
from .lockstep_run import SteppedRun
from .metadata_log import WrongState

_ROUNDS: Final = 30


class ControllerAdapter(SteppedRun):
    """Controllers and brokers of ``impl/kraft``."""

    protocol = "controller"
    implemented = "kip-631-safe"
    drawn = frozenset(
        {Kind.LOSE_REQUEST, Kind.LOSE_RESPONSE, Kind.DELAY_RESPONSE, Kind.DUPLICATE_REQUEST, Kind.DELIVER_LATE}
    )

    @cached_property
    def _actions(self) -> dict[str, Callable[[Mapping[str, int], Kind | None], Outcome]]:
        return {
            "elect_controller": self._elect_controller,
            "hear_of_epoch": self._hear_of_epoch,
            "activate": self._push,
            "commit": self._push,
            "replay_record": self._replay_record,
            "register_broker": self._register,
            "hear_registration": self._hear_registration,
            "unfence_broker": self._beat,
            "fence_broker": self._fence,
            "request_shutdown": self._request_shutdown,
            "stop_broker": self._stop,
            "crash_broker": self._crash,
            "replay_metadata": self._replay_metadata,
            "create_topic": self._create,
            "remove_topic": self._remove,
            "elect_leader": self._elect_leader,
            "propose_expand": self._propose_expand,
            "propose_shrink": self._propose_shrink,
            "alter_partition": self._alter_partition,
            "refuse_member": lambda _params, _fault: Outcome(),
            "leader_write": self._write,
            "follower_fetch": self._follower_fetch,
            "acknowledge": self._acknowledge,
            "heartbeat": self._heartbeat,
        }

    # -- the adapter ------------------------------------------------------------------------------------------------

    def apply(self, action: str, params: Mapping[str, int], fault: Fault | None = None) -> Outcome:
        """One action."""
        self._cluster.clock.advance(1)
        outcome = self._actions[action](params, None if fault is None else fault.kind)
        run = (*outcome.run, *self._noticed())
        for flight in self._cluster.network.in_flight():
            if flight not in self._cluster.late:
                self._cluster.network.drop(flight)
        return replace(outcome, run=run)

    def inject(self, fault: Fault) -> Outcome:
        """A late response, which is all that there is."""
        assert fault.kind is Kind.DELIVER_LATE
        self._cluster.deliver_late()
        return Outcome(tuple(self._noticed()))

    # -- the quorum -------------------------------------------------------------------------------------------------

    def _fetch_up_to(self, node: int, kept: int) -> list[ModelStep]:
        """Let a controller fetch so many records of its own epoch's leader, if that has them; the steps."""
        leader = self._leader(self._epoch(node))
        while leader not in (None, node) and self._has(node) < kept:
            assert leader is not None
            if not self._cluster.fetch(self._voters[node], self._voters[leader]):
                break
        return self._noticed()

    def _elect_controller(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """Elect it, where it has, or can have, just so much of the log, and a majority is no further."""
        node, kept, newest, cluster = params["node"], params["kept"], self._newest, self._cluster
        quorum = self._quorum(node)
        run = self._fetch_up_to(node, kept)
        mine = quorum.replica.vote_position
        voters = [n for n in self._nodes if n != node and self._quorum(n).replica.vote_position <= mine]
        wins = 1 + len(voters) >= len(self._nodes) // 2 + 1
        if self._has(node) != kept or self._stable > kept or not wins:
            return Outcome(tuple(run))
        if quorum.is_leader:
            quorum.resign()
            cluster.controllers[self._voters[node]]._settle()
        if self._epoch(node) < newest:
            self._introduce(node, newest)
        if not cluster.elect(self._voters[node], [self._voters[n] for n in voters]):
            raise WrongState(f"controller {node} is not elected, whose log is as far as those of a majority")
        self._left_office(node)
        self._epochs[node], self._roles[node] = self._epoch(node), NodeRole.elected
        self._leaders[self._epoch(node)] = node
        self._leader_end = kept
        return Outcome((*run, ("elect_controller", params)))

    def _introduce(self, node: int, epoch: int) -> Any:
        leader = self._voters[self._leaders[epoch]]
        return self._cluster.introduce(leader, self._voters[node], epoch + self._log.base_epoch + 1)

    def _hear_of_epoch(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        node, epoch = params["node"], params["epoch"]
        if self._leaders.get(epoch, node) == node:
            return Outcome()
        self._serial += 1
        if self._active(node) is not None and self._epoch(node) < epoch and self._serial % 2:
            self._cluster.restart(self._voters[node], self._serial)
        return Outcome(error=error_name(self._introduce(node, epoch)))

    def _push(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """Let one of the others fetch from the leader of the newest epoch until there is more that is stable."""
        node, before = params["node"], (self._stable, self._roles[params["node"]])
        run: list[ModelStep] = []
        if self._leader(self._newest) != node:
            return Outcome()
        others = [n for n in self._nodes if n != node]
        self._serial += 1
        for _ in range(_ROUNDS if others else 0):
            other = others[self._serial % len(others)]
            moved = self._cluster.fetch(self._voters[other], self._voters[node])
            run += self._noticed()
            if not moved or (self._stable, self._roles[node]) != before:
                break
        return Outcome(tuple(run))

    def _replay_record(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node = params["node"]
        leader = self._leader(self._newest)
        if leader == node:
            return self._push(params, fault) if self._active(node) is None else Outcome()
        if leader is None or self._active(node) is not None:
            return Outcome()
        run: list[ModelStep] = []
        before = self._applied[node]
        for _ in range(_ROUNDS):
            moved = self._cluster.fetch(self._voters[node], self._voters[leader])
            run += self._noticed()
            if not moved or self._applied[node] > before:
                break
        return Outcome(tuple(run))

    # -- what is asked of a controller ------------------------------------------------------------------------------

    def _asks(
        self, node: int, request: Envelope, fault: Kind | None, also: tuple[ModelStep, ...] = ()
    ) -> tuple[Outcome, Any]:
        """Let a request, or a copy of it, arrive at a controller; what came of it, and what was decided.

        Raises WrongState for an answer, be it an error, before all is stable that the active one's image held.
        """
        cluster, replica, acts = self._cluster, self._quorum(node).replica, self._active(node) is not None
        begin = replica.end
        if fault is Kind.DELAY_RESPONSE:
            process = cluster.processes.get(request.source)
            if process is not None and not isinstance(request.body, BrokerRegistrationRequest):
                process._requests.forget(request.correlation)
            else:
                fault = Kind.LOSE_RESPONSE
        request = replace(request, destination=self._voters[node])
        before = cluster.waiting(self._voters[node])
        cluster.carry(cluster.launched(request), fault, lambda _answer: False)
        decided = [each for each in cluster.waiting(self._voters[node]) if not any(each is one for one in before)]
        if cluster.answered is not None and acts and replica.applied < begin:
            raise WrongState(f"{cluster.answered} is answered at {replica.applied}, of an image at {begin}")
        answer = cluster.answered or (decided[0].answer if decided else None)
        run = self._appended(node, begin, also)
        return Outcome(tuple(run), TIMED_OUT if fault in LOSES else _code(answer)), answer

    def _client(self, node: int, body: Any, fault: Kind | None) -> Outcome:
        flight = self._cluster.ask_client(self._voters[node], body)
        assert flight is not None
        self._cluster.network.drop(flight)
        return self._asks(node, flight.envelope, fault)[0]

    def _lifecycle(self, broker: int) -> Envelope:
        """A broker's next request to the controller."""
        self._cluster.processes[broker].lifecycle.send()
        flights = self._cluster.network.in_flight(source=broker)
        kinds = BrokerRegistrationRequest | BrokerHeartbeatRequest
        flight = next(each for each in flights if isinstance(each.envelope.body, kinds))
        self._cluster.network.drop(flight)
        return flight.envelope

    def _tell(self, request: Envelope, body: Any) -> None:
        """Let the answer to a broker's request arrive, as from the controller that it has asked."""
        answer = Envelope(request.destination, request.source, request.correlation, body)
        flight = self._cluster.launched(answer)
        if flight is not None:
            self._cluster.network.deliver(flight)

    def _image(self, node: int) -> Any:
        active = self._active(node)
        return None if active is None else active.image

    def _room(self) -> int:
        return self._constants["log_size"] - len(self._log.places)

    # -- brokers ----------------------------------------------------------------------------------------------------

    def _register(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """A new process registers; one that awaits its answer asks again."""
        node, broker, cluster = params["node"], params["broker"], self._cluster
        image = self._image(node)
        fenced = image is not None and broker in image.brokers and image.brokers[broker].fenced
        if fenced and broker in self._lost and any(each.isr == (broker,) for each in image.partitions.values()):
            return Outcome()
        if broker not in self._awaits:
            if broker in cluster.processes:
                cluster.crash(broker, lost=False)
            cluster.start(broker)
            self._registrations[broker] = self._lifecycle(broker)
        outcome, _ = self._asks(node, self._registrations[broker], fault)
        # No session is over but where one is to be: nobody is fenced for a registration.
        outcome = replace(outcome, run=tuple(each for each in outcome.run if each[0] == "register_broker"))
        if any(name == "register_broker" for name, _ in outcome.run):
            self._awaits.add(broker)
        return outcome

    def _hear_registration(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        broker = params["broker"]
        told = self._cluster.registered.pop(broker, None)
        if told is None or broker not in self._awaits:
            return Outcome()
        self._tell(self._registrations[broker], told.body)
        if not self._is_registered(broker):
            return Outcome()
        self._awaits.discard(broker)
        self._lost.discard(broker)
        return Outcome((("hear_registration", params),))

    def _leads(self, node: int, broker: int) -> bool:
        image = self._image(node)
        return image is not None and bool(image.leads(broker))

    def _beat(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """A heartbeat; none of a broker that wants to stop, nor where there is no room for what comes of it."""
        node, broker = params["node"], params["broker"]
        if self._run_of(broker) != Run.running:
            return Outcome()
        image, process = self._image(node), self._cluster.processes[broker]
        known = None if image is None else image.brokers.get(broker)
        own, published = process.lifecycle.broker_epoch, process.publisher.published
        unfences = known is not None and known.fenced and known.epoch == own < published
        if unfences and self._room() < 1 + self._constants["partitions"]:
            return Outcome()
        return self._asks(node, self._lifecycle(broker), fault)[0]

    def _fence(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        node, broker = params["node"], params["broker"]
        image, cluster = self._image(node), self._cluster
        if image is None or broker not in image.brokers or image.brokers[broker].fenced:
            return Outcome()
        cluster.clock.advance(SESSION_MS)
        begin = self._quorum(node).replica.end
        for other, known in image.brokers.items():
            if other != broker and not known.fenced:
                body = BrokerHeartbeatRequest(other, known.epoch, -1)
                cluster.carry(cluster.ask(other, self._voters[node], body), None, lambda _answer: False)
        cluster.controllers[self._voters[node]].fire(SESSIONS)
        return Outcome(tuple(self._appended(node, begin)))

    def _request_shutdown(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node, broker = params["node"], params["broker"]
        if self._run_of(broker) != Run.running or self._room() < 2 or self._leads(node, broker):
            return Outcome()
        lifecycle = self._cluster.processes[broker].lifecycle
        lifecycle.want_shut_down = True
        outcome, _ = self._asks(node, self._lifecycle(broker), fault, (("request_shutdown", params),))
        lifecycle.want_shut_down = bool(outcome.run)
        return outcome

    def _stop(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node, broker = params["node"], params["broker"]
        image = self._image(node)
        unfenced = image is not None and broker in image.brokers and not image.brokers[broker].fenced
        if self._run_of(broker) != Run.stopping or (unfenced and (self._room() < 1 or self._leads(node, broker))):
            return Outcome()
        request = self._lifecycle(broker)
        outcome, answer = self._asks(node, request, fault)
        told = self._cluster.answered
        if not isinstance(answer, BrokerHeartbeatResponse) or told is None:
            return Outcome(outcome.run)
        self._tell(request, told)
        if not self._cluster.processes[broker].lifecycle.may_shut_down:
            return outcome
        self._cluster.stop(broker)
        return replace(outcome, run=(*outcome.run, ("stop_broker", params)))

    def _crash(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        broker = params["broker"]
        self._cluster.crash(broker, lost=True)
        self._lost.add(broker)
        return Outcome((("crash_broker", params),))

    def _replay_metadata(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        broker = params["broker"]
        leader = self._leader(self._newest)
        if leader is None or not self._is_registered(broker):
            return Outcome()
        run: list[ModelStep] = []
        before = self._views[broker]
        for _ in range(_ROUNDS):
            moved = self._cluster.fetch(broker, self._voters[leader])
            run += self._noticed()
            if not moved or self._views[broker] > before:
                break
        return Outcome(tuple(run))

    # -- topics -----------------------------------------------------------------------------------------------------

    def _create(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        node, leader, brokers = params["node"], params["leader"], self._cluster.brokers
        image = self._image(node)
        if image is not None and any(each not in image.brokers for each in brokers):
            return Outcome(error=TIMED_OUT if fault in LOSES else None)
        order = (leader, *(each for each in brokers if each != leader))
        body = CreateTopicsRequest(topic_of(params["partition"]).topic, assignments=(order,))
        return self._client(node, body, fault)

    def _remove(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        return self._client(params["node"], DeleteTopicsRequest(topic_of(params["partition"]).topic), fault)

    def _elect_leader(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        """Ask for the preferred replica, or for any member of the ISR that lives."""
        node, leader, partition = params["node"], params["leader"], topic_of(params["partition"])
        image = self._image(node)
        topic = None if image is None else image.names.get(partition.topic)
        known = None if topic is None else image.partitions.get((topic, 0))
        if known is None or known.replicas[0] == leader:
            return self._client(node, ElectLeadersRequest(partition), fault)
        if leader not in known.isr or not image.alive(leader):
            return Outcome()
        return self._client(node, ElectLeadersRequest(partition, unclean=True), fault)

    # -- what leaders ask for ---------------------------------------------------------------------------------------

    def _exchange(self, follower: int, leader: int, partition: int, *, takes: bool) -> None:
        """A follower's next request, which does not get records unless it ``takes`` them."""
        cluster = self._cluster
        cluster.processes[follower].broker.fire(("fetch", topic_of(partition)))
        cluster.carry(cluster.sent(follower, leader), None, lambda _answer: takes)

    def _truncate(self, follower: int, leader: int, partition: int) -> None:
        for _ in range(_ROUNDS):
            state = self._state(follower, partition)
            if state is None or state.role.value != "truncating":
                break
            self._exchange(follower, leader, partition, takes=True)

    def _says_how_far(self, follower: int, leader: int, partition: int) -> None:
        """A follower that has what its leader has says so."""
        self._truncate(follower, leader, partition)
        self._exchange(follower, leader, partition, takes=False)

    def _is_equal(self, follower: int, leader: int, partition: int) -> bool:
        follows = self._follows(follower, leader, partition)
        return follows and self._data(follower, partition) == self._data(leader, partition)

    def _propose_expand(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        leader, member, partition = params["leader"], params["member"], params["partition"]
        if leader == member or not self._is_equal(member, leader, partition):
            return Outcome()
        if self._proposed(leader, partition)[0] is not None:
            return Outcome()
        self._says_how_far(member, leader, partition)
        return self._look_at_isr(leader, partition)

    def _propose_shrink(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        leader, partition = params["leader"], params["partition"]
        if not self._presumes(leader, partition) or self._proposed(leader, partition)[0] is not None:
            return Outcome()
        self._cluster.clock.advance(LAG_MS + 1)
        return self._look_at_isr(leader, partition)

    def _look_at_isr(self, leader: int, partition: int) -> Outcome:
        key = (leader, topic_of(partition))
        self._cluster.asked.pop(key, None)
        self._cluster.processes[leader].broker.fire(("isr", topic_of(partition)))
        member, _ = self._proposed(leader, partition)
        if member is None:
            return Outcome()
        body: Any = self._cluster.asked[key].body
        joins = member in {each.broker for each in body.new_isr}
        about = {"leader": leader, "member": member, "partition": partition}
        return Outcome((("propose_expand" if joins else "propose_shrink", about),))

    def _alter_partition(self, params: Mapping[str, int], fault: Kind | None) -> Outcome:
        request = self._cluster.asked.get((params["leader"], topic_of(params["partition"])))
        return Outcome() if request is None else self._asks(params["node"], request, fault)[0]

    # -- data -------------------------------------------------------------------------------------------------------

    def _write(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        leader, partition, cluster = params["leader"], params["partition"], self._cluster
        state = self._state(leader, partition)
        was = -1 if state is None else state.end
        self._serial += 1
        record = Record(b"%d" % self._serial, timestamp=0)
        data = encode_batch([record], producer_id=self._serial, producer_epoch=0, base_sequence=0)
        flight = cluster.ask_client(leader, ProduceRequest(topic_of(partition), -1, data))
        assert flight is not None
        answer = cluster.carry(flight)
        state = self._state(leader, partition)
        if state is None or state.end == was:
            return Outcome(error=error_name(answer))
        self._producing[partition] = flight.envelope.correlation, leader, state.leader_epoch
        return Outcome((("leader_write", params),), _code(answer))

    def _follower_fetch(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """A follower cuts its log back, and fetches what its leader has."""
        leader, follower, partition = params["leader"], params["follower"], params["partition"]
        if leader == follower or not self._follows(follower, leader, partition):
            return Outcome()
        before = self._data(follower, partition)
        if before == self._data(leader, partition):
            return Outcome()
        self._truncate(follower, leader, partition)
        self._exchange(follower, leader, partition, takes=True)
        happened = self._data(follower, partition) != before
        return Outcome((("follower_fetch", params),) if happened else ())

    def _acknowledge(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """All who are counted say how far they are, if all are there."""
        leader, partition = params["leader"], params["partition"]
        if not self._presumes(leader, partition) or partition not in self._producing:
            return Outcome()
        state = self._state(leader, partition)
        assert state is not None
        others = sorted(state.maximal_isr - {leader})
        if all(self._is_equal(each, leader, partition) for each in others):
            for each in others:
                self._says_how_far(each, leader, partition)
        return Outcome()

    def _heartbeat(self, params: Mapping[str, int], _fault: Kind | None) -> Outcome:
        """A standby's, which says that it makes no snapshot."""
        node, to = params["node"], params["active"]
        active = self._active(to)
        if active is not None and self._epoch(node) != self._epoch(to):
            return Outcome()
        known = active is not None and self._voters[node] in active.turns._nodes
        body = ControllerHeartbeatRequest(self._voters[node], self._quorum(node).replica.applied - 1, 0)
        flight = self._cluster.ask(self._voters[node], self._voters[to], body)
        assert flight is not None
        self._cluster.network.drop(flight)
        outcome, _ = self._asks(to, flight.envelope, None)
        told = active is not None and self._voters[node] in active.turns._nodes
        return replace(outcome, run=(("heartbeat", params),)) if told and not known else outcome


def _code(answer: Any) -> str | None:
    """The error of an answer, or of one that waits; None where there is none, or none yet."""
    return None if answer is None or answer.error.name == "NONE" else answer.error.name
