"""Apache Kafka's brokers as real processes that run freely, held to ``kip-320-kafka``.

Three brokers and a controller, a JVM each, with all that they say to each other held at the gate
(``conformance/kafka/cluster/proxied_cluster.py``): what arrives next is drawn, and so is when a broker replays what the
controller has decided. Clients and the operator are ours, and ask over the wire. Records are read from the brokers'
segments, high watermarks over the wire, roles and ISRs from what the brokers print.

Kafka's leader epochs are the model's: the topic is created as its first leader is elected.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final, cast

from ....model.core.errors import BadInput
from ....model.protocols.fencing.state import Rules, fencing
from ....traces.format import Value
from ....traces.kafka.cluster import BROKER_IDS
from ....traces.kafka.wire import Connection, fetch_request, produce_request
from ...kafka.cluster.lazy_start import SlowSystem, in_time
from ...kafka.cluster.proxied_cluster import Gated, decoded, gated_stage
from ...kafka.cluster.proxy import Alters, Hold, Waiting
from ...kafka.cluster.stage import Stage
from ...kafka.controller import CODES, AlterPartition, AlterPartitionAnswer, Fetch, FetchAnswer
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.mailbox import Letter, Mailbox
from ...simulation.system import EnabledEvent, RequestOutcome, StepResult
from .kafka_messages import asking, broker_of, fetched, granted, node_of, number_of, party_of, records_of
from .kafka_steps import stands_for

_KILLS: Final = 12
"""In one of so many runs a leader may be killed, once: to start it again takes half a minute."""
_SELDOM: Final = 0.3
_EARLY: Final = 0.05
"""So many seconds a producer waits for an answer that it should not have."""
_COLD: Final = 2.0
"""The same of a broker that has been asked for the first time, and is slow."""
_TOPIC: Final = {"min.insync.replicas": "1"}


class KafkaProcesses(SlowSystem):
    """A cluster of Apache Kafka, with a producer, a consumer and an operator of ours."""

    name = "kafka-cluster"
    protocol = "fencing"
    variant = "kip-320-kafka"
    most: Mapping[str, int] = {"replicas": len(BROKER_IDS)}
    runs, events = 20, 80
    starts = "three brokers and a controller start, each a process of its own: half a minute on two cores"

    def __init__(
        self,
        protocol: str | None = None,
        variant: str | None = None,
        stage: Stage | None = None,
        alters: Sequence[Alters] = (),
        topic: Mapping[str, str] | None = None,
    ) -> None:
        """``stage``: one that has been started, and is somebody else's to end.

        ``alters``: what the gate does to messages, and ``topic``: settings of topics, for those who plant a fault.
        """
        rules = {name: cast("Rules", each.rules) for name, each in fencing.variants.items()}
        held = [name for name, each in rules.items() if each.shipped]
        if (protocol or self.protocol) != self.protocol or (variant or self.variant) not in held:
            mend = f"name one of {', '.join(held)}"
            raise BadInput(f"it is not held to {protocol} {variant}", f"--impl {self.name}", mend)
        self.variant = variant or self.variant
        self._forgets = rules[self.variant].forgets
        self._settings = {**_TOPIC, **(topic or {})}
        self._own = stage is None
        self._stage = stage
        self._alters = list(alters)
        self._gated: Gated | None = None
        self._topics = 0
        self._warm: set[int] = set()
        self._peace = False

    def begin(self) -> None:
        """Start the cluster, if there is none yet. Raises BadInput without Maven or a JVM."""
        if self._stage is None:
            self._stage = gated_stage(self.release)
            self._stage.__enter__()
        if self._gated is None:
            self._gated = Gated(self._stage)
            self._stage.gate.alters = self._alters

    @property
    def gated(self) -> Gated:
        """The partition."""
        assert self._gated is not None
        return self._gated

    # -- the contract of SimulatedSystem ----------------------------------------------------------------------------

    @in_time()
    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """A topic of its own, which is not created yet. All brokers are up."""
        if constants["replicas"] > len(BROKER_IDS):
            mend = f"say --replicas {len(BROKER_IDS)} at most"
            raise BadInput(
                f"{constants['replicas']} replicas, and the cluster has {len(BROKER_IDS)}", "--replicas", mend
            )
        self.begin()
        self.constants, self.nodes = constants, range(constants["replicas"])
        self.mail = Mailbox(stands_for)
        self._held: dict[int, tuple[Hold, Waiting]] = {}
        """By number of the letter: where it is held, and as what."""
        self._kills = self.troubles and seed % _KILLS == 0
        self._epochs: list[tuple[int | None, frozenset[int]]] = []
        """Leader and ISR of each leader epoch."""
        self._begins: list[int] = []
        """By partition epoch, the leader epoch."""
        self._replayed = dict.fromkeys(self.nodes, -1)
        """By broker, the partition epoch that it had replayed when it was asked to replay last."""
        self.down: set[int] = set()
        self._frozen: dict[int, dict[str, Value]] = {}
        """Of brokers that are down, what was seen of them last."""
        self.ids: dict[str, int] = {}
        self.acknowledged: dict[int, int] = {}
        self.read: dict[int, int] = {}
        for connection, _, _ in getattr(self, "_waiting", ()):
            connection.close()
        self._waiting: list[tuple[Connection, Any, tuple[int, str]]] = []
        """Producers that have no answer yet: the request, the broker and the value."""
        self._produced = 0
        self._topics += 1
        self._records: dict[int, list[tuple[int, int, str]]] = {node: [] for node in self.nodes}
        self.gated.begin(f"fencepost-{self._topics}", [broker_of(node) for node in self.nodes])
        self._look()
        return StepResult()

    def pending(self) -> Sequence[EnabledEvent]:
        """What waits at the gate, and what brokers, clients and the operator may do."""
        found = [each.weighing(self._weight(each.message)) for each in self.mail.pending()]
        if not self._epochs:
            return [EnabledEvent(Event(EventKind.OPERATE, "elect", args=(("broker", node),))) for node in self.nodes]
        for node in self.nodes:
            if node in self.down:
                found.append(EnabledEvent(Event(EventKind.START, node=node)))
                continue
            if self._replayed[node] < len(self._begins) - 1:
                found.append(EnabledEvent(Event(EventKind.TIMER, "metadata", node), due=self._peace))
            found += (EnabledEvent(Event(EventKind.CALL, *each)) for each in self._calls(node))
        found += (EnabledEvent(Event(EventKind.OPERATE, *each), weight=weight) for each, weight in self._operations())
        return found

    def _weight(self, message: int | None) -> float:
        """A follower that has all there is asks again and again, and seldom does anything come of it."""
        letter = None if message is None else self.mail.in_flight[message]
        if letter is None or not isinstance(letter.body, Fetch | FetchAnswer) or self._peace:
            return 1.0
        pair = [node for node in (letter.source, letter.destination) if node is not None]
        logs = [(self._records[node], self._hw.get(node, 0)) for node in pair]
        pictures = [self.gated.pictures[broker_of(node)] for node in pair]
        leader = next((each for each in pictures if each.leads), None)
        heard = leader is not None and all(
            leader.ends.get(broker_of(node)) == len(self._records[node])
            for node, each in zip(pair, pictures, strict=True)
            if each is not leader
        )
        return _SELDOM if heard and logs[0] == logs[-1] else 1.0

    def peace(self, *, on: bool) -> None:
        """In peace every broker is to replay what is decided."""
        self._peace = on

    def _calls(self, node: int) -> Iterator[tuple[str, None, None, int, tuple[tuple[str, int], ...]]]:
        picture = self.gated.pictures[broker_of(node)]
        if not picture.hosted:
            return
        if len(self.ids) < self.constants["max_records"] and len(self._records[node]) < self.constants["log_size"]:
            yield "produce", None, None, 0, (("broker", node),)
        if picture.leads:
            for offset in range(self._hw.get(node, 0)):
                yield "read", None, None, 0, (("broker", node), ("offset", offset))

    def _operations(self) -> Iterator[tuple[tuple[str, None, None, int, tuple[tuple[str, int], ...]], float]]:
        leader, isr = self._epochs[-1]
        if len(self._epochs) <= self.constants["max_leader_epoch"]:
            for node in sorted(isr - self.down):
                if node != leader:
                    yield ("elect", None, None, 0, (("broker", node),)), 1.0
                if isr == frozenset(self.nodes):
                    yield ("take out", None, None, 0, (("broker", node),)), 1.0
            if self._kills and leader is not None and isr - self.down - {leader}:
                yield ("kill", None, None, 0, (("broker", leader),)), _SELDOM
        if self.troubles and not self._peace:
            for letter in self.mail.in_flight.values():
                ends = (("from", number_of(letter.source)), ("to", number_of(letter.destination)))
                yield ("disconnect", None, None, 0, ends), _SELDOM

    @in_time()
    def step(self, event: Event) -> StepResult:
        """Let it happen, and wait for all that comes of it."""
        self._besides: list[ModelStep] = []
        self._judged: list[RequestOutcome] = []
        self._started: set[int] = set()
        sent, judged, _ = self.mail.during(event, lambda: self._let(event))
        answers = (*judged, *self._judged)
        return StepResult(sent, answers, tuple(self._besides), started=frozenset(self._started))

    def _let(self, event: Event) -> None:
        match event.what:
            case EventKind.DELIVER:
                letter = self.mail.take(event)
                self._arrive(letter, self._held.pop(letter.number)[0])
            case EventKind.TIMER if event.node is not None:
                self._replay(event.node)
            case EventKind.START if event.node is not None:
                self._start(event.node)
            case EventKind.CALL:
                self._call(event.name, int(event.arg("broker")), dict(event.args).get("offset"))
            case EventKind.OPERATE:
                self._operate(event)
            case other:
                raise AssertionError(f"{other} is not offered")
        self.gated.settle()
        self._look()
        self._hear()
        self._take_in()

    # -- messages ---------------------------------------------------------------------------------------------------

    def _arrive(self, letter: Letter, hold: Hold) -> None:
        gated = self.gated
        match letter.body:
            case Fetch():
                leader, follower = letter.destination, letter.source
                assert leader is not None and follower is not None
                answers = gated.answers[broker_of(leader), broker_of(follower)]
                answer = gated.pass_on(hold, answers)
                assert answer is not None
                self._besides.append(("leader_ask_expand", {"leader": leader}))
                body = fetched(letter.body.number, decoded(answer))
                self._answer(letter, body, body.error, answers, answer)
            case AlterPartition():
                assert letter.source is not None
                answers = gated.granted[broker_of(letter.source)]
                answer = gated.pass_on(hold, answers)
                assert answer is not None
                told = granted(letter.body.number, decoded(answer))
                self._answer(letter, told, told.error, answers, answer)
            case AlterPartitionAnswer():
                assert letter.destination is not None
                gated.answer_alter(broker_of(letter.destination))
            case _:
                gated.pass_on(hold)

    def _answer(self, request: Letter, body: object, error: str, hold: Hold, waiting: Waiting) -> None:
        """An answer waits; the decision is judged where the model has a word for it."""
        if error in CODES:
            letter = self.mail.answer(request, body, CODES[error])
        else:
            letter = self.mail.send(request.destination, request.source, body, request)
        self._held[letter.number] = hold, waiting

    def _take_in(self) -> None:
        """What waits anew, and what is gone with its connection."""
        gated, known = self.gated, {waiting for _, waiting in self._held.values()}
        for pair, hold in gated.requests.items():
            for waiting in list(hold.waiting):
                if waiting not in known and gated.is_asked(pair, waiting):
                    leader, follower = pair
                    letter = self.mail.send(node_of(follower), node_of(leader), Fetch(waiting.header.correlation))
                    self._held[letter.number] = hold, waiting
        for leader, hold in gated.asks.items():
            for waiting in list(hold.waiting):
                if waiting not in known and gated.is_ours(waiting):
                    letter = self.mail.send(node_of(leader), None, asking(waiting))
                    self._held[letter.number] = hold, waiting
        gone = {number for number, (hold, waiting) in self._held.items() if waiting not in hold.waiting}
        self.mail.drop(lambda letter: letter.number in gone)
        for number in gone:
            del self._held[number]

    # -- what brokers, clients and the operator do --------------------------------------------------------------------

    def _replay(self, node: int) -> None:
        before, end = self._replayed[node], len(self._begins)
        self._replayed[node] = end - 1
        self._name_roles(node, before + 1, end)
        self.gated.replay(broker_of(node))

    def _name_roles(self, node: int, start: int, end: int) -> None:
        """The steps that some records of the metadata log may be to a broker."""
        epoch, before = self._begins[end - 1], self._begins[start - 1] if start else -1
        self._besides.append(("leader_learn_isr", {"leader": node}))
        if self._forgets:
            self._besides.append(("leader_replay_isr", {"leader": node}))
        if epoch > before and self._epochs[epoch][0] == node:
            self._besides.append(("become_leader", {"leader": node, "epoch": epoch}))
        elif epoch > before:
            self._besides.append(("hear_of_leader", {"replica": node, "epoch": epoch}))

    def _call(self, what: str, node: int, offset: int | str | None) -> None:
        if what == "read":
            self._read(node, int(cast("int", offset)))
            return
        gated, value = self.gated, f"r{self._produced}"
        self._produced += 1
        request = produce_request(gated.topic, [value.encode()], acks=-1)
        # Past the gate, unless the gate has something to do to it.
        port = gated.stage.gate.fronts[broker_of(node)] if self._alters else gated.to(broker_of(node)).port
        connection = Connection("127.0.0.1", port, "fencepost-producer")
        connection.send(request)
        self._waiting.append((connection, request, (node, value)))
        gated.wait_for(f"{value} to be written, or refused", lambda: self._has(node, value) or connection.answered)
        # An answer that should not come yet comes at once.
        early = time.monotonic() + (_EARLY if node in self._warm else _COLD)
        self._warm.add(node)
        while not connection.answered and time.monotonic() < early:
            time.sleep(_EARLY / 20)

    def _has(self, node: int, value: str) -> bool:
        found = value in [each.value for each in self.gated.stage.log(broker_of(node), self.gated.topic)]
        if found and ("leader_write", {"leader": node}) not in self._besides:
            step: ModelStep = ("leader_write", {"leader": node})
            self._besides.append(step)
            self._judged.append(RequestOutcome((step,), None))
        return found

    def _read(self, node: int, offset: int) -> None:
        answer = self.gated.to(broker_of(node)).ask(fetch_request(self.gated.topic_id, offset))
        (data,) = answer.responses[0].partitions
        error = data.error_code.name.upper()
        step: ModelStep = ("consumer_reads", {"leader": node, "offset": offset})
        if error not in CODES:
            return
        self._judged.append(RequestOutcome((step,), CODES[error]))
        for at, value in records_of(data.records):
            if value in self.ids and at < self.constants["log_size"]:
                self.read[at] = self.ids[value]
                self._besides.append(("consumer_reads", {"leader": node, "offset": at}))

    def _operate(self, event: Event) -> None:
        gated = self.gated
        if event.name == "disconnect":
            ends = party_of(int(event.arg("from"))), party_of(int(event.arg("to")))
            for number, letter in list(self.mail.in_flight.items()):
                if (letter.source, letter.destination) == ends:
                    gated.stage.gate.decide(self._held[number][0], passes=False, count=1)
            return
        node = int(event.arg("broker"))
        leader = self._epochs[-1][0] if self._epochs else None
        if not self._epochs:
            gated.create([broker_of(node), *(broker_of(each) for each in self.nodes if each != node)], self._settings)
            self._besides.append(("controller_elect_leader", {"new_leader": node}))
        elif event.name == "elect":
            gated.elect(broker_of(node))
            self._besides.append(("controller_elect_leader", {"new_leader": node}))
        else:
            if event.name == "kill":
                self._kills = False
                # Nothing of it changes any more before it starts again.
                self._frozen[node] = self._cells_of(node)
                gated.kill(broker_of(node))
                # Whoever waited for it has lost the connection, and is told nothing any more.
                self._waiting = [each for each in self._waiting if each[2][0] != node]
                self.down.add(node)
                self._replayed[node] = -1
            else:
                gated.take_out(broker_of(node))
            if node == leader:
                heir = node_of(gated.leader)
                self._besides.append(("controller_fail_over", {"failed": node, "new_leader": heir}))
            else:
                self._besides.append(("controller_shrink_isr", {"replica": node}))
        self._decide()

    def _start(self, node: int) -> None:
        self.down.discard(node)
        self._started.add(node)
        self.gated.start(broker_of(node))
        self._decide()
        self._replayed[node] = len(self._begins) - 1
        self._name_roles(node, 0, len(self._begins))

    def _decide(self) -> None:
        """Take in what the controller has decided."""
        for said in self.gated.decisions.made[len(self._begins) :]:
            leader, isr = self._epochs[-1] if self._epochs else (None, frozenset[int]())
            if said.leader is not None:
                leader = None if said.leader < 0 else node_of(said.leader)
            if said.isr is not None:
                isr = frozenset(node_of(each) for each in said.isr)
            epoch = len(self._epochs) - 1 if said.epoch is None else said.epoch
            if epoch >= len(self._epochs):
                self._epochs.append((leader, isr))
            else:
                self._epochs[epoch] = leader, isr
            self._begins.append(epoch)

    # -- looking ----------------------------------------------------------------------------------------------------

    def _look(self) -> None:
        """Read all logs, and ask every broker for its high watermark."""
        gated = self.gated
        gated.look()
        _ = gated.version
        self._decide()
        self._hw: dict[int, int] = {}
        for node in self.nodes:
            broker = broker_of(node)
            log = gated.stage.log(broker, gated.topic)
            self._records[node] = [(each.offset, each.leader_epoch, each.value) for each in log]
            for _, _, value in self._records[node]:
                self.ids.setdefault(value, len(self.ids))
            if node not in self.down and gated.pictures[broker].hosted:
                data = gated.to(broker).ask(fetch_request(gated.topic_id, 0)).responses[0].partitions[0]
                if data.error_code.name == "none":
                    self._hw[node] = int(data.high_watermark)

    def _hear(self) -> None:
        """Producers hear what there is to hear; who is to hear of a record that is committed is waited for."""
        gated = self.gated
        for each in list(self._waiting):
            connection, request, (node, value) = each
            at = next((offset for offset, _, found in self._records[node] if found == value), None)
            due = at is not None and at < self._hw.get(node, 0) and gated.pictures[broker_of(node)].leads
            with suppress(TimeoutError):
                if not due and not connection.answered:
                    continue
                answer = connection.answer(request, seconds=2.0)
                self._waiting.remove(each)
                connection.close()
                (told,) = answer.responses[0].partition_responses
                error = told.error_code.name.upper()
                if error == "NONE":
                    offset = int(told.base_offset)
                    self.acknowledged[self.ids[value]] = offset
                    self._besides.append(("producer_hears", {"leader": node, "offset": offset}))
                elif at is None and error in CODES:
                    self._judged.append(RequestOutcome((("leader_write", {"leader": node}),), CODES[error]))

    @in_time()
    def observe(self) -> Mapping[str, Value]:
        """All that the model has, but what leaders know of followers who have not fetched; the dead as they were."""
        constants, epochs = self.constants, self._epochs
        isr = epochs[-1][1] if epochs else frozenset(self.nodes)
        cells: dict[str, Value] = {
            "next_record_id": len(self.ids),
            "next_leader_epoch": len(epochs),
            "quorum_leader_epoch": len(epochs) - 1,
            "quorum_leader": epochs[-1][0] if epochs else None,
            "quorum_isr": tuple(sorted(isr)),
        }
        for epoch in range(constants["max_leader_epoch"] + 1):
            leader, members = epochs[epoch] if epoch < len(epochs) else (None, frozenset[int]())
            cells |= {f"request_leader[{epoch}]": leader, f"request_isr[{epoch}]": tuple(sorted(members))}
        for record in range(constants["max_records"]):
            cells[f"acknowledged[{record}]"] = self.acknowledged.get(record, -1)
        for offset in range(constants["log_size"]):
            cells[f"read[{offset}]"] = self.read.get(offset, -1)
        for node in self.nodes:
            cells |= self._frozen[node] if node in self.down else self._cells_of(node)
        return cells

    def _cells_of(self, node: int) -> dict[str, Value]:
        records = self._records[node]
        cells: dict[str, Value] = {f"leo[{node}]": len(records)}
        for offset in range(self.constants["log_size"]):
            _, epoch, value = records[offset] if offset < len(records) else (offset, -1, "")
            cells[f"record_id[{node}][{offset}]"] = self.ids.get(value, -1)
            cells[f"record_epoch[{node}][{offset}]"] = epoch
        picture = self.gated.pictures[broker_of(node)]
        if node in self._hw or not picture.hosted:
            cells[f"hw[{node}]"] = self._hw.get(node, 0)
        leads = picture.leads
        leader = node if leads else None if picture.leader < 0 else node_of(picture.leader)
        cells |= {f"leader_epoch[{node}]": picture.epoch, f"leader[{node}]": leader}
        for name, members in (("isr", picture.isr), ("maximal_isr", picture.maximal), ("asked_isr", picture.asked)):
            cells[f"{name}[{node}]"] = tuple(sorted(node_of(each) for each in members)) if leads else ()
        if self._forgets:
            cells[f"ahead[{node}]"] = int(picture.version > picture.replayed) if leads else -1
        for follower in self.nodes:
            if not leads or follower == node:
                cells[f"remote_leo[{node}][{follower}]"] = -1
            elif broker_of(follower) in picture.ends:
                cells[f"remote_leo[{node}][{follower}]"] = picture.ends[broker_of(follower)]
        return cells

    def close(self) -> None:
        """End the cluster, if it is its own; the topic is removed from another's."""
        for connection, _, _ in getattr(self, "_waiting", ()):
            connection.close()
        self._waiting = []
        stage, gated, self._gated = self._stage, self._gated, None
        if gated is not None:
            if not self._own:
                gated.end()
                gated.stage.gate.alters = []
            gated.close()
        if self._own and stage is not None:
            self._stage = None
            stage.__exit__(None, None, None)
