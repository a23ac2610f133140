"""Apache Kafka's controllers as a system that runs freely, held to ``kip-631-kafka``: QuorumControllers of a release.

Each is Kafka's controller with its event queue, in a JVM (``conformance/kafka/``). Ours are the clock, the voters' logs
(who is elected, who fetches how much of whose log, what is committed by that, what a deposed leader's log loses), the
wire, the brokers (``kafka_brokers.py``), and clients. A controller's process ends, and its log stays.

The records are replayed once more beside the controllers (``kafka_log.py``), and what each has in mind is held to that:
an active one's to all of its log, a standby's to what is committed. A decision is judged where it is made; what is
told of it must be committed by then, unless it is an exception, which Kafka tells at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any, Final

from ....model.core.errors import BadInput
from ....model.protocols.controller.impl_state import OF_LOG, PARTITIONS, PROGRESS, TOLD
from ....model.protocols.controller.kafka_spec import GIVEN, OF_SHIPPED, VARIANT, is_shipped, text
from ....traces.format import Value
from ...kafka.process import CONTROLLERS, Jvm
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.mailbox import Letter
from ...simulation.system import EnabledEvent, RequestOutcome, StepResult
from .kafka_brokers import ANSWERS, Answer, BrokerRegistration, Process, Request
from .kafka_brokers import cells_of as cells_of_request
from .kafka_log import cells_of
from .kafka_negative_requests import probes
from .kafka_steps import asked_for, by_records
from .kafka_voters import ALL, KafkaVoters
from .kafka_workload import due, weight
from .metadata_log import WrongState
from .negative_requests import WrongAnswer
from .observation import NAMES, nothing_said

_CODES: Final = {"NONE": None, "FENCED_LEADER_EPOCH": "FENCED_REPLICA"}
"""Kafka's error codes by the protocol's names (K1), where they are others."""
_COLD: Final = 6
"""One of so many runs begins before anybody has heard of anybody."""
_SESSIONS: Final = (300, 600)
_TIMES: Final = (10, 50, 200)
_SLOW: Final = 4
"""One of so many messages takes long."""
_MANY: Final = 10_000
_TAKEN: Final = frozenset({*PROGRESS, *TOLD, *GIVEN})
_LEFT: Final = frozenset({*OF_LOG, *OF_SHIPPED})


class KafkaControllers(KafkaVoters):
    """Brokers ``0`` to ``replicas - 1``, and the controllers behind them."""

    name = "kafka"
    protocol = "controller"
    variant = VARIANT

    def __init__(
        self, protocol: str | None = None, variant: str | None = None, make: Callable[[], Jvm] | None = None
    ) -> None:
        held = [name for name, each in text.variants.items() if is_shipped(each.rules)]
        if (protocol or self.protocol) != self.protocol or (variant or self.variant) not in held:
            raise BadInput(f"it is not held to {protocol} {variant}", "--impl kafka", f"name one of {', '.join(held)}")
        self.variant = variant or self.variant
        self._make = make or (lambda: Jvm(self.release, drives=CONTROLLERS))

    # -- the beginning ----------------------------------------------------------------------------------------------

    def build(self, constants: Mapping[str, int], random: Random) -> None:
        """Controllers with empty logs; in most runs somebody is active then, and brokers and topics are known."""
        if constants["partitions"] > len(PARTITIONS):
            raise BadInput("a run has two partitions at most", "--partitions", "give 1 or 2")
        if self._jvm is None:
            self._jvm = self._make()
        self.constants = constants
        self.brokers = range(constants["replicas"])
        self.voters = range(constants["replicas"], constants["replicas"] + constants["nodes"])
        self.nodes = range(self.voters.stop)
        self.names = NAMES[: constants["partitions"]]
        self._forget(random.choice(_SESSIONS))
        self.one_by_one = random.random() < 0.3
        """Whoever fetches gets one batch at a time."""
        self.topics: dict[str, int] = {}
        self.processes = {broker: Process(broker, 1, self.voters[0]) for broker in self.brokers}
        self.asked: dict[int, Letter | None] = {}
        """Requests by their numbers at the driver; None for a client's."""
        self.said = nothing_said(self.brokers, len(self.names))
        self._numbers = 0
        self._reached: dict[tuple[int, int], int] = {}
        self._of_log: dict[str, Value] = {}
        self._own = dict.fromkeys(self.brokers, -1)
        self._epochs_told = dict.fromkeys(self.brokers, -1)
        self._former = dict.fromkeys(self.brokers, -1)
        """The broker epochs of the processes before."""
        self.slow = frozenset(range(random.randrange(_SLOW), _MANY, _SLOW))
        """The numbers of messages that take long."""
        self._besides: list[ModelStep] = []
        self._decisions: list[RequestOutcome] = []
        self._note_moment()
        if random.randrange(_COLD):
            self._begin(random)

    def _begin(self, random: Random) -> None:
        """Somebody is elected, all brokers register and work, and there are topics."""
        self._stand(random.choice(self.voters))
        self._spread()
        for process in self.processes.values():
            self._at_once(process, process.registration())
            for _ in range(2):
                process.end = len(self.logs.committed)
                self._at_once(process, process.heartbeat())
        for name in self.names[: random.randrange(len(self.names) + 1)]:
            first = random.choice(self.brokers)
            self._request(self.newest[1], None, self._created(name, first))
            self._spread()
        for process in self.processes.values():
            process.end, process.asks = len(self.logs.committed), self.newest[1]
        self._told.clear()
        self._decisions.clear()
        self._besides.clear()

    def _at_once(self, process: Process, asked: Request) -> None:
        self.said |= cells_of_request(asked, self.topics, self.brokers)
        self._request(self.newest[1], None, asked.asked)
        self._spread()
        for told in self._told:
            process.hear(asked, _answer(asked, told))
        self._told.clear()
        if isinstance(asked, BrokerRegistration):
            self._own[process.broker] = self._epochs_told[process.broker] = process.epoch

    def reset(self, constants: Mapping[str, int], seed: int) -> StepResult:
        """New logs, new controllers."""
        happened = super().reset(constants, seed)
        return replace(happened, inputs=frozenset(self.observe()))

    def _request(
        self, voter: int, letter: Letter | None, asked: Mapping[str, Any], *, believed: bool = True
    ) -> str | None:
        """Ask a controller; gives the error that it has decided for. ``believed``: what a heartbeat says is so."""
        number = self._numbers
        self._numbers += 1
        self.asked[number] = letter
        answer = self._ask("request", node=self._id(voter), id=number, **asked)
        if believed and voter == self.active and asked["kind"] == "heartbeat":
            # Whoever says so is heard of, whether it is registered or not.
            key = asked["broker"], asked["epoch"]
            self._contacts[key] = self.now
            self._reached[key] = max(self._reached.get(key, 0), asked["end"])
        found = answer.get("decided") or next((each for each in answer["answered"] if each["id"] == number), None)
        return None if found is None else found["error"]

    # -- what may happen --------------------------------------------------------------------------------------------

    def offers(self) -> Iterable[Event]:
        """Timers of brokers and controllers, the clock, clients and operators."""
        for ms in _TIMES:
            yield Event(EventKind.TIME, args=(("ms", ms),))
        for voter in self.voters:
            if voter not in self.down:
                yield from self._of_controller(voter)
        for broker in self.brokers:
            if broker not in self.down:
                yield from self._of_broker(broker)

    def _of_controller(self, voter: int) -> Iterator[Event]:
        seen = self._seen(voter)
        if voter not in self.cut:
            for leader in self.voters:
                if leader != voter and leader not in self.down | self.cut:
                    theirs = self._seen(leader)
                    if theirs["leads"] and theirs["epoch"] >= seen["epoch"]:
                        yield Event(EventKind.TIMER, "fetch", voter, args=(("leader", leader),))
            if self._supporters(voter) is not None:
                yield Event(EventKind.TIMER, "stand", voter)
        if seen["leads"]:
            yield Event(EventKind.OPERATE, "resign", voter)
        if seen["active"] < 0:
            return
        if voter == self.active:
            yield Event(EventKind.PROBE, "refused", voter)
        image = self.logs.whole(self._id(voter))
        for number, name in enumerate(self.names):
            where = ("partition", number)
            if name in image.partitions:
                yield Event(EventKind.CALL, "delete-topic", voter, args=(where,))
                yield Event(EventKind.CALL, "alter-config", voter, args=(where,))
                yield Event(EventKind.CALL, "elect-preferred", voter, args=(where,))
                yield Event(EventKind.CALL, "elect-unclean", voter, args=(where,))
            else:
                for first in self.brokers:
                    yield Event(EventKind.CALL, "create-topic", voter, args=(where, ("first", first)))

    def _of_broker(self, broker: int) -> Iterator[Event]:
        process = self.processes[broker]
        if process.epoch < 0 or process.shut_out:
            yield Event(EventKind.TIMER, "register", broker)
        if process.epoch >= 0:
            # Who may stop says nothing any more.
            if not process.may_stop:
                yield Event(EventKind.TIMER, "heartbeat", broker)
            view = self.logs.prefix(process.end)
            for number, name in enumerate(self.names):
                if process.leads(view.partitions.get(name)):
                    for other in self.brokers:
                        where = (("partition", number), ("member", other))
                        yield Event(EventKind.TIMER, "isr", broker, args=where)
                        if self._former[other] >= 0:
                            yield Event(EventKind.TIMER, "isr", broker, args=(*where, ("former", 1)))
        if broker not in self.cut:
            left = len(self.logs.committed) - process.end
            if left or process.asks != self.newest[1]:
                yield Event(EventKind.TIMER, "metadata", broker, args=(("records", left),))
            if left > 1:
                yield Event(EventKind.TIMER, "metadata", broker, args=(("records", 1),))
        if not process.stops:
            yield Event(EventKind.OPERATE, "shut-down", broker)
        elif process.may_stop:
            yield Event(EventKind.CRASH, "stop", broker, args=(("seed", 0),))

    def pending(self) -> Sequence[EnabledEvent]:
        """Each with how likely it is now, and whether it is due."""
        found = []
        for each in super().pending():
            is_due = self._peace and due(each.event, self)
            found.append(EnabledEvent(each.event, each.message, is_due, 1.0 if self._peace else weight(each, self)))
        return found

    # -- what happens -----------------------------------------------------------------------------------------------

    def step(self, event: Event) -> StepResult:
        """Let it happen. Raises ``WrongState``, and what Kafka does."""
        self._besides, self._decisions, self._told = [], [], []
        before, newest = self._cells, self.newest
        if event.what is EventKind.TIME:
            self.now += int(event.arg("ms"))
        self._note_moment()
        happened = super().step(event)
        self._own |= {node: -1 for node in happened.started if node in self.brokers}
        cells = self.observe()
        left = self.newest != newest
        given = {
            name
            for name, value in cells.items()
            if before.get(name) != value and ((kind := name.partition("[")[0]) in _TAKEN or (left and kind in _LEFT))
        }
        if not left and newest[1] >= 0:
            records = self.logs.own[self._id(newest[1])][int(str(before["end"])) :]
            node = self._id(newest[1])
            partitions = {topic: self.names.index(name) for topic, name in self.logs.names.items()}
            self._besides += by_records(records, node, event, partitions, self.image)
        steps = (*happened.steps, *self._besides)
        judged = (*happened.judged, *self._decisions)
        return replace(happened, judged=judged, steps=steps, inputs=frozenset(given))

    def act(self, event: Event) -> Sequence[ModelStep]:
        """A timer fires, the clock moves on, or somebody asks."""
        node = event.node
        if event.what is EventKind.TIME:
            self._ask("elapse", ms=int(event.arg("ms")))
        elif node is not None and node in self.voters:
            steps = self._controller_acts(event, node)
            self._answer_all()
            return steps
        elif node is not None:
            self._broker_acts(event, self.processes[node])
        self._answer_all()
        return ()

    def _controller_acts(self, event: Event, voter: int) -> Sequence[ModelStep]:
        match event.name:
            case "fetch":
                self._fetch(voter, int(event.arg("leader")), 1 if self.one_by_one else ALL)
            case "stand":
                self._stand(voter)
            case "resign":
                self._ask("resign", node=self._id(voter))
            case "refused":
                self._probe(voter)
            case _:
                return self._called(event, voter)
        return ()

    def _probe(self, voter: int) -> None:
        """Ask for what must be refused. Raises ``WrongAnswer``."""
        end = self._seen(voter)["end"]
        for name, asked, wanted in probes(self.image):
            error = self._request(voter, None, asked, believed=False)
            if error != wanted:
                raise WrongAnswer(f"{name}: answered {error}, and not {wanted}")
            if self._seen(voter)["end"] != end:
                raise WrongAnswer(
                    f"{name}: it is refused, and the log has {self._seen(voter)['end'] - end} records more"
                )

    def _created(self, name: str, first: int) -> dict[str, Any]:
        brokers = list(self.brokers)
        return {"kind": "create", "name": name, "replicas": [*brokers[first:], *brokers[:first]]}

    def _called(self, event: Event, voter: int) -> Sequence[ModelStep]:
        """A client asks a controller."""
        partition = int(event.arg("partition"))
        name, node = self.names[partition], {"node": self._id(voter)}
        here = {**node, "partition": partition}
        image = self.logs.whole(self._id(voter))
        judged: ModelStep | None = None
        steps: tuple[ModelStep, ...] = ()
        match event.name:
            case "create-topic":
                asked = self._created(name, int(event.arg("first")))
                assigned = asked["replicas"]
                judged = ("create_topic", {**here, "broker": next(filter(image.alive, assigned), assigned[0])})
                steps = (judged,)
            case "delete-topic":
                asked = {"kind": "delete", "topic": image.partitions[name].topic}
                judged = ("remove_topic", here)
                steps = (judged,)
            case "alter-config":
                asked = {"kind": "config", "name": name, "value": str(1 + self._numbers)}
            case "elect-preferred" | "elect-unclean":
                asked = {"kind": "elect", "name": name, "unclean": event.name == "elect-unclean"}
                steps = (("elect_leader", here), ("elect_uncleanly", here))
        error = self._request(voter, None, asked)
        self._judge(voter, judged, error, None)
        return steps

    def _judge(self, voter: int, step: ModelStep | None, error: str | None, number: int | None) -> None:
        """What a controller has decided; not one that is deposed, and has not heard of it."""
        if step is None or error is None or (error != "NOT_CONTROLLER" and self.newest[1] != voter):
            return
        self._decisions.append(RequestOutcome((step,), _CODES.get(error, error), number))

    def _broker_acts(self, event: Event, process: Process) -> None:
        match event.name:
            case "register":
                self._send(process, process.registration())
            case "heartbeat":
                self._send(process, process.heartbeat())
            case "isr":
                self._alter(process, dict(event.args))
            case "metadata":
                process.end += int(event.arg("records"))
                process.asks = self.newest[1] if self.newest[1] >= 0 else process.asks
            case "shut-down":
                process.stops = True

    def _alter(self, process: Process, args: Mapping[str, Any]) -> None:
        """A leader asks for another ISR. Who fetches says which process it is, and is heard of late, too; of who does
        not the metadata say it, or nothing does."""
        image, partition, other = self.logs.prefix(process.end), args["partition"], args["member"]
        known = image.brokers.get(other)
        told = -1 if known is None else known.epoch
        if "former" in args:
            told = self._former[other]
        elif not {process.broker, other} & (self.cut | self.down):
            told = self.processes[other].epoch
        held = image.partitions[self.names[partition]]
        self._send(process, process.alteration(partition, held, image, other, told))

    def _send(self, process: Process, asked: Request) -> None:
        self.mail.effect()
        self.said |= cells_of_request(asked, self.topics, self.brokers)
        self.mail.send(process.broker, process.asks, asked)

    def receive(self, letter: Letter) -> None:
        """A request reaches a controller, or an answer a broker."""
        node, body = letter.destination, letter.body
        assert node is not None
        if isinstance(body, Answer):
            assert letter.request is not None
            process = self.processes[node]
            if process.hear(letter.request.body, body):
                self.logs.check_registered(node, process.number, process.epoch)
                self._own[node] = self._epochs_told[node] = process.epoch
            return
        error = self._request(node, letter, body.asked)
        self._judge(node, asked_for(body, self._id(node))[0], error, letter.number)
        self._answer_all()

    def _answer_all(self) -> None:
        """What controllers have told in this event is on its way. Raises ``WrongState`` for what is not committed."""
        told, self._told = self._told, []
        for each in told:
            letter = self.asked.pop(each["id"])
            if not each.get("thrown") and not self.logs.is_committed(each["at"], each["end"]):
                raise WrongState(
                    f"controller {each['node']} answers {each['error']} by its log up to {each['end']}, and"
                    f" {len(self.logs.committed)} records are committed"
                )
            if letter is not None:
                answer = _answer(letter.body, each)
                self.mail.send(letter.destination, letter.source, answer, letter)

    def stands_for(self, letter: Letter) -> Sequence[ModelStep]:
        """What a request asks for; of answers, that a broker is told its epoch."""
        if isinstance(letter.body, Answer):
            assert letter.request is not None
            told = isinstance(letter.request.body, BrokerRegistration) and letter.body.error == "NONE"
            return (("hear_registration", {"broker": letter.request.body.broker}),) if told else ()
        assert letter.destination is not None
        return asked_for(letter.body, self._id(letter.destination))

    def lose_power(self, node: int, random: Random) -> None:  # noqa: ARG002 - a process ends, and its log stays
        """A process ends."""
        if node in self.voters:
            self._ask("crash", node=self._id(node))
            self._note_term()

    def start(self, node: int) -> None:
        """The next process starts."""
        if node in self.voters:
            self._ask("start", node=self._id(node))
            return
        former = self.processes[node]
        self._former[node] = former.epoch if former.epoch >= 0 else self._former[node]
        self.processes[node] = Process(node, former.number + 1, former.asks)

    # -- looking ----------------------------------------------------------------------------------------------------

    def observe(self) -> Mapping[str, Value]:
        """Everything: of who is down what it was last."""
        epoch, leads = self.newest
        cells: dict[str, Value] = {"newest_epoch": epoch, "leads": -1 if leads < 0 else self._id(leads)}
        self._of_log = cells_of(self.image, self.brokers, self.names, self.topics)
        self._of_log["end"] = 0 if leads < 0 else len(self.logs.own[self._id(leads)])
        cells["stable"], cells["stopping"] = len(self.logs.committed), self._stopping
        cells |= self._of_log
        for voter in self.voters:
            cells |= self._cells_of_controller(voter)
        for broker in self.brokers:
            runs = broker not in self.down
            end = self.processes[broker].end if runs else 0
            registered = int(str(cells[f"broker_epoch[{broker}]"]))
            cells[f"run[{broker}]"] = "running" if runs else "down"
            cells[f"own_epoch[{broker}]"] = self._own[broker]
            cells[f"told_epoch[{broker}]"] = self._epochs_told[broker]
            cells[f"view_end[{broker}]"] = cells[f"view_applied[{broker}]"] = end
            cells[f"has_told[{broker}]"] = self._reached.get((broker, registered), 0)
        cells |= self.said
        cells |= self._given
        self._cells = cells
        return cells


def _answer(asked: Request, told: Mapping[str, Any]) -> Answer:
    """The answer to a request, of what the driver tells."""
    more = tuple((name, told[name]) for name in ("epoch", "caughtUp", "mayStop") if name in told)
    return ANSWERS[type(asked)](told["error"], more)
