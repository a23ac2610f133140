"""One partition of a running cluster, of which every message waits at the gate until it is let through.

Held are the fetches of followers and their answers, the leaders' AlterPartition requests and theirs, and the brokers'
fetches of the metadata log. What a message brings about is waited for before anything else is: a follower that has
taken in an answer asks again, a leader that asks for another ISR is heard at the gate, a broker that has replayed a
record says so. So the same messages in the same order lead to the same state, in a few milliseconds each.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from ....traces.kafka.cluster import BROKER_IDS, CONTROLLER_ID, RecordingError
from ....traces.kafka.server_log.entries import Decides
from ....traces.kafka.server_log.lines import logger_options
from ....traces.kafka.wire import (
    Connection,
    create_request,
    delete_request,
    elect_request,
    messages,
    read,
    reassign_request,
)
from .frames import ALTER_PARTITION, API_NAMES
from .log_parser import Decisions, Picture, Tail
from .proxy import Hold, Waiting
from .stage import TOPIC_SETTINGS, Stage

SETTINGS: Final[Mapping[str, object]] = {
    "replica.fetch.wait.max.ms": 1,
    "replica.fetch.backoff.ms": 10,
    "replica.fetch.response.max.bytes": 1,  # a record a fetch
}
"""What brokers are told beside the stage's own settings: nobody waits for what the gate decides."""
PATIENCE: Final = 20.0
"""So many seconds have the consequences of a message, which take milliseconds: a busy machine may need more."""
_REPLAYED: Final = 1.0
"""After so many seconds a broker that has replayed too little is let ask again."""
_PAUSE: Final = 0.0005
_SIZE: Final = 4
_SNAKE: Final = re.compile(r"(?<!^)(?=[A-Z])")


def gated_stage(release: str, settings: Mapping[str, object] | None = None) -> Stage:
    """A stage on which a partition can be gated; not started. Raises BadInput without Maven or a JVM."""
    return Stage(release, settings={**SETTINGS, **(settings or {})}, options=logger_options())


def decoded(waiting: Waiting) -> Any:
    """A message that waits, as kio has it. Raises WireError where it cannot be read."""
    header = waiting.header
    kind = "response" if waiting.response else "request"
    name = API_NAMES[header.api]
    module = messages(_SNAKE.sub("_", name).lower(), header.version, kind)
    body = getattr(module, name + kind.capitalize())
    _, start = read(body.__header_schema__, waiting.frame, _SIZE)
    return read(body, waiting.frame, start)[0]


class Gated:
    """A partition behind the gate, a topic of its own after each `begin`. Broker ids are Kafka's."""

    def __init__(self, stage: Stage) -> None:
        self.stage = stage
        self.topic = ""
        self.topic_id: Any = None
        self.brokers: Sequence[int] = ()
        self.pictures: dict[int, Picture] = {}
        self.requests: dict[tuple[int, int], Hold] = {}
        """By leader and follower; the fetches of one at the other."""
        self.answers: dict[tuple[int, int], Hold] = {}
        self.asks: dict[int, Hold] = {}
        """By leader, its requests for another ISR."""
        self.granted: dict[int, Hold] = {}
        self._metadata: dict[int, Hold] = {}
        self._brought: dict[int, Hold] = {}
        self._sessions: set[tuple[int, int]] = set()
        """Leader and follower, where the fetch session of one at the other has the partition (KIP-227)."""
        self._named: dict[Waiting, bool] = {}
        """Of the fetches that came: whether they are of the partition."""
        self._passed: dict[Hold, int] = {}
        """By where answers are held, the correlation id of the last request that was let through for one."""
        self._tails: dict[int, Tail] = {}
        self._controller = Connection("127.0.0.1", stage.cluster.nodes[CONTROLLER_ID].port, "fencepost-operator")
        self.connections: dict[int, Connection] = {}
        self.decisions = Decisions("", Tail(stage.cluster.nodes[CONTROLLER_ID].log))

    # -- a topic of its own -----------------------------------------------------------------------------------------

    def begin(self, topic: str, brokers: Sequence[int]) -> None:
        """Everything is held from now on; the topic is there once it is created (`create`). All brokers are up."""
        self.end()
        self.stage.all_up()
        self.topic, self.topic_id, self.brokers = topic, None, tuple(brokers)
        self.pictures = {broker: Picture(f"{topic}-0") for broker in brokers}
        self._tails = {broker: self._tail(broker) for broker in brokers}
        self.decisions = Decisions(f"{topic}-0", self._tail(CONTROLLER_ID))
        self._sessions, self._named, self._passed = set(), {}, {}
        pairs = [(leader, follower) for leader in brokers for follower in brokers if leader != follower]
        self.requests = {pair: self.stage.hold_fetches(*pair) for pair in pairs}
        self.answers = {pair: self.stage.hold_fetches(*pair, responses=True) for pair in pairs}
        gate = self.stage.gate
        self.asks = {broker: gate.hold(CONTROLLER_ID, ALTER_PARTITION, str(broker)) for broker in brokers}
        self.granted = {
            broker: gate.hold(CONTROLLER_ID, ALTER_PARTITION, str(broker), responses=True) for broker in brokers
        }
        self._metadata = {broker: self.stage.hold_metadata(broker) for broker in brokers}
        for hold in self._metadata.values():
            hold.wait(PATIENCE)
        self._brought = {broker: self.stage.hold_metadata(broker, responses=True) for broker in brokers}

    def end(self) -> None:
        """Hold nothing any more, and remove the topic; every broker that runs has let go of it when this returns."""
        for hold in self._holds():
            hold.open()
        self.requests, self.answers, self.asks, self.granted, self._metadata, self._brought = {}, {}, {}, {}, {}, {}
        if self.topic_id is not None:
            self.stage.all_up()
            # Who has not heard of it yet would make it when it is gone.
            self.wait_for(
                "all brokers to have heard of the topic",
                lambda: all(each.replayed >= self.version for each in self.pictures.values()),
            )
            self._asked(delete_request(self.topic), "responses")
            folders = [self.stage.cluster.nodes[broker].directory / f"{self.topic}-0" for broker in self.brokers]
            self.wait_for("the topic to be removed", lambda: not any(folder.exists() for folder in folders))
            self.topic_id = None

    def _holds(self) -> Iterator[Hold]:
        for holds in (self.requests, self.answers, self.asks, self.granted, self._metadata, self._brought):
            yield from holds.values()

    def close(self) -> None:
        """End the connections; what the stage has ended is not asked any more."""
        for connection in (*self.connections.values(), self._controller):
            connection.close()
        self.connections = {}

    def _tail(self, node: int) -> Tail:
        return Tail(self.stage.cluster.nodes[node].log)

    # -- what an operator does ---------------------------------------------------------------------------------------

    def create(self, order: Sequence[int], settings: Mapping[str, str]) -> None:
        """Create the topic: the first of these brokers is to lead it."""
        answer = self._asked(create_request(self.topic, order, {**TOPIC_SETTINGS, **settings}), "topics")
        self.topic_id = answer.topics[0].topic_id
        self.wait_for("the controller to create the topic", lambda: bool(self._decided()))

    def elect(self, broker: int) -> None:
        """A clean election: this broker becomes the preferred replica, and is elected."""
        self._reassign((broker, *(each for each in self.brokers if each != broker)))
        self._asked(elect_request(self.topic), "replica_election_results")
        self.wait_for(f"the controller to elect broker {broker}", lambda: self.leader == broker)

    def take_out(self, broker: int) -> None:
        """A broker leaves the ISR, and stays a replica: in one leader epoch more it is none, and then is one again.

        Who replays both at once, as all do here, sees an ISR without it, and nothing else. Not while another one is on
        its way back into the ISR: the controller would wait for that one first.
        """
        others = [each for each in self.brokers if each != broker]
        first = self.leader if self.leader in others else next(each for each in others if each in self.isr)
        order = [first, *(each for each in others if each != first)]
        self._reassign(order)
        self._reassign([*order, broker])
        self.wait_for(f"broker {broker} to leave the ISR", lambda: broker not in self.isr)

    def _reassign(self, order: Sequence[int]) -> None:
        self._asked(reassign_request(self.topic, order), "responses")

    def _asked(self, request: Any, part: str) -> Any:
        """Ask the controller. Raises RecordingError where it refuses."""
        answer = self._controller.ask(request)
        for each in getattr(answer, part):
            inner = getattr(each, "partitions", None) or getattr(each, "partition_result", None) or (each,)
            for one in inner:
                code = getattr(one, "error_code", None)
                if code is not None and code.name not in ("none", "election_not_needed"):
                    raise RecordingError(f"the controller refuses {type(request).__name__}: {code.name}")
        return answer

    # -- what is let through ----------------------------------------------------------------------------------------

    def pass_on(self, hold: Hold, answers: Hold | None = None) -> Waiting | None:
        """Let the first message through; of a request, wait for the answer, which is held: gives it."""
        if answers is not None:
            self._passed[answers] = hold.waiting[0].header.correlation
        hold.let_on()
        if answers is None:
            return None
        self.wait_for(f"one of the {answers}", lambda: self._awaited(answers))
        return answers.waiting[0]

    def answer_alter(self, broker: int) -> None:
        """Let a leader have the answer to its AlterPartition, and wait until it has taken it in."""
        before = self.pictures[broker].answers
        self.pass_on(self.granted[broker])
        self.wait_for(f"broker {broker} to take in the answer", lambda: self.pictures[broker].answers > before)

    def replay(self, broker: int) -> None:
        """Let a broker replay all that the controller has decided by now, in one update."""
        wanted, picture = self.version, self.pictures[broker]
        deadline = time.monotonic() + PATIENCE
        while picture.replayed < wanted:
            # One at a time, answer and all: one that waits at the controller would bring what is decided next.
            self.wait_for(f"broker {broker} to ask what was decided", lambda: bool(self._metadata[broker].waiting))
            self.pass_on(self._metadata[broker], self._brought[broker])
            self.pass_on(self._brought[broker])
            soon = time.monotonic() + _REPLAYED
            while picture.replayed < wanted and time.monotonic() < soon:
                time.sleep(_PAUSE)
                self.look()
            if time.monotonic() > deadline:
                raise RecordingError(f"waited {PATIENCE:g} s in vain for: broker {broker} to replay what was decided")

    def kill(self, broker: int) -> None:
        """SIGKILL; where it led or was in the ISR, the controller has decided without it when this returns."""
        concerned = broker in self.isr or broker == self.leader
        self.stage.cluster.nodes[broker].kill()
        self.pictures[broker] = Picture(f"{self.topic}-0")
        if concerned:
            self.wait_for(f"the session of broker {broker} to end", lambda: broker not in (*self.isr, self.leader))

    def start(self, broker: int) -> None:
        """Start a broker that was killed; it has replayed all that is decided when this returns, and is held again."""
        self._metadata[broker].open()
        self._brought[broker].open()
        self._tails[broker] = self._tail(broker)
        self.stage.all_up([each for each in BROKER_IDS if each != broker])
        self.wait_for(
            f"broker {broker} to replay what was decided", lambda: self.pictures[broker].replayed >= self.version
        )
        self._metadata[broker] = self.stage.hold_metadata(broker)
        self._metadata[broker].wait(PATIENCE)
        self._brought[broker] = self.stage.hold_metadata(broker, responses=True)

    # -- looking ----------------------------------------------------------------------------------------------------

    def runs(self, broker: int) -> bool:
        """Whether its process lives."""
        return self.stage.cluster.nodes[broker].running

    def look(self) -> None:
        """Take in what was printed meanwhile."""
        for broker, tail in self._tails.items():
            for logger, message in tail.lines():
                self.pictures[broker].take(logger, message)

    def _decided(self) -> list[Decides]:
        self.decisions.look()
        return self.decisions.made

    @property
    def version(self) -> int:
        """The partition epoch of what the controller has decided last; -1: nothing."""
        made = self._decided()
        return made[-1].version if made else -1

    @property
    def leader(self) -> int:
        """Whom the controller has lead; -1: nobody."""
        return next((each.leader for each in reversed(self._decided()) if each.leader is not None), -1)

    @property
    def isr(self) -> frozenset[int]:
        """The controller's ISR."""
        return next((each.isr for each in reversed(self._decided()) if each.isr is not None), frozenset())

    def to(self, broker: int) -> Connection:
        """A connection to a broker, past the gate."""
        port = self.stage.cluster.nodes[broker].port
        known = self.connections.get(broker)
        if known is None or known.port != port:
            known = self.connections[broker] = Connection("127.0.0.1", port, "fencepost-observer")
        return known

    def settle(self) -> None:
        """Wait until everybody has done what is to be expected of them; raises RecordingError naming who has not."""

        def settled() -> bool:
            self._let_go()
            return not any(True for _ in self._missing())

        self.wait_for(lambda: "; ".join(self._missing()), settled)

    def is_asked(self, pair: tuple[int, int], waiting: Waiting) -> bool:
        """Whether a follower's fetch is of the partition: a request of a session names what is new in it alone."""
        if waiting not in self._named:
            request = decoded(waiting)
            if request.session_epoch <= 0 or any(topic.partitions for topic in request.forgotten_topics_data):
                self._sessions.discard(pair)
            if any(topic.topic_id == self.topic_id and topic.partitions for topic in request.topics):
                self._sessions.add(pair)
            self._named[waiting] = pair in self._sessions
        return self._named[waiting]

    def _let_go(self) -> None:
        """What is of another topic goes through, and fetches of nothing: of a fetcher that has no partition left, or
        waits a while after an error.
        """
        for pair, hold in self.requests.items():
            if hold.waiting and not self.is_asked(pair, hold.waiting[0]):
                hold.let_on()
            if self.answers[pair].waiting and not self._awaited(self.answers[pair]):
                self.answers[pair].let_on()

        for broker, hold in self.asks.items():
            if hold.waiting and not self.is_ours(hold.waiting[0]):
                hold.let_on()
            if self.granted[broker].waiting and not self._awaited(self.granted[broker]):
                self.granted[broker].let_on()

    def is_ours(self, waiting: Waiting) -> bool:
        """Whether an AlterPartition request is of this topic, and of none before."""
        return any(topic.topic_id == self.topic_id for topic in decoded(waiting).topics)

    def _awaited(self, answers: Hold) -> bool:
        """Whether the answer that is held is one that was asked for."""
        return bool(answers.waiting) and answers.waiting[0].header.correlation == self._passed.get(answers)

    def _holds_fetch(self, pair: tuple[int, int]) -> bool:
        waiting = list(self.requests[pair].waiting)
        asked = any(self.is_asked(pair, each) for each in waiting)
        return asked or self._awaited(self.answers[pair])

    def _missing(self) -> Iterator[str]:
        for broker, picture in self.pictures.items():
            if not self.runs(broker):
                continue
            if picture.begins and self.runs(picture.leader):
                yield f"broker {broker} to fetch from broker {picture.leader}"
            for leader in self.brokers:
                if leader == broker or not self.runs(leader):
                    continue
                held = self._holds_fetch((leader, broker))
                if held != (picture.fetches == leader):
                    yield f"broker {broker} to {'leave' if held else 'ask'} broker {leader}"
            asks = any(self.is_ours(each) for each in list(self.asks[broker].waiting))
            if picture.waits and not (asks or self._awaited(self.granted[broker])):
                yield f"broker {broker} to ask the controller for another ISR"

    def wait_for(self, what: str | Callable[[], str], holds: Callable[[], bool]) -> None:
        """Wait until this holds of what was printed and is held. Raises RecordingError naming it."""
        deadline = time.monotonic() + PATIENCE
        while True:
            self.look()
            if holds():
                return
            if time.monotonic() > deadline:
                told = what if isinstance(what, str) else what()
                raise RecordingError(f"waited {PATIENCE:g} s in vain for: {told}")
            time.sleep(_PAUSE)
