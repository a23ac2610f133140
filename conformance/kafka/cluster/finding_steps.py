"""The steps that a finding's trace is made of: one function each, by the name that ``do`` has in the file.

A step's parameters are its function's, so that ``finding.py`` checks a file against these signatures.
"""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from ....traces.kafka.cluster import BROKER_IDS, RecordingError, wait_until
from .clients import ClientError
from .frames import API_NAMES, FETCH, METADATA
from .tiers import TOPIC, Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from ....traces.kafka.image import PartitionState
    from .clients import Consumer, Sent
    from .observations import TopicObservations
    from .proxy import Hold
    from .stage import Stage

APIS: Final = {name: number for number, name in API_NAMES.items()}
PROTOCOLS: Final = ("classic", "consumer")
"""Kafka has two implementations of its consumer."""
_POLL: Final = 0.5
"""Seconds that one poll of several consumers lasts in all."""


@dataclass
class FindingRun:
    """The state of a run between its steps. ``topic`` and ``seen`` belong to the step that runs."""

    stage: Stage
    name: str
    """Prefix of the topics' names."""
    tell: Callable[[str], None]
    """Reports a line, with all brokers' logs of the topic."""
    topic: str
    seen: TopicObservations
    tiered: bool
    copies: Path | None
    state: PartitionState | None = None
    """The controller's latest decision that a step waited for."""
    polled: str = "nothing"
    """Result of the last poll, in words."""
    holds: dict[str, Hold] = field(default_factory=dict)
    sent: dict[str, tuple[Sent, ExitStack]] = field(default_factory=dict)
    """Records without an answer so far, and their producers."""
    consumers: dict[str, dict[str, Consumer]] = field(default_factory=dict)
    """By topic and protocol."""
    clients: dict[str, ExitStack] = field(default_factory=dict)
    """Open consumers by topic."""
    unreachable: dict[tuple[int, str], Hold] = field(default_factory=dict)

    @property
    def store(self) -> Store:
        """Remote storage of the topic."""
        return Store(self.stage, self.topic)

    def address(self, *brokers: int) -> str:
        """Bootstrap address of these brokers."""
        return ",".join(self.stage.cluster.address(broker) for broker in brokers)

    def poll(self, name: str, consumer: Consumer, seconds: float) -> str:
        """Poll a consumer once; return what it got, in words."""
        mine = self.seen.read.setdefault(name, [])
        try:
            got = consumer.poll(seconds)
        except ClientError as error:
            self.seen.thrown[name] = error.name
            return error.name
        mine += got
        return ", ".join(map(str, got)) or "nothing"

    def close(self) -> None:
        """Close all clients, and release what is held."""
        with ExitStack() as stack:
            for hold in (*self.holds.values(), *self.unreachable.values()):
                if not hold.closed:
                    stack.callback(hold.open)
            for _, producer in self.sent.values():
                stack.push(producer)
            for consumers in self.clients.values():
                stack.push(consumers)


# -- brokers and elections --------------------------------------------------------------------------------------------


def new_topic(
    run: FindingRun,
    replicas: list[int],
    min_isr: int,
    tiered: bool = False,
    settings: dict[str, str] | None = None,
) -> None:
    """Create the topic: one partition, led by the first of `replicas` in leader epoch 0."""
    more = {**(TOPIC if tiered else {}), **(settings or {})}
    run.stage.new_topic(run.topic, replicas, min_isr, more)


def elect(run: FindingRun, order: list[int], by: int, known_by: list[int] | None = None) -> None:
    """Reassign the replicas in this order, and elect the first as the preferred leader, through broker `by`.

    Then wait until the brokers of `known_by` have their roles.
    """
    run.state = run.stage.elect(run.topic, order, by)
    wait_role(run, known_by or [], run.state.leader_epoch)


def elect_unclean(run: FindingRun, leader: int, by: int) -> None:
    """Elect a leader uncleanly through broker `by`, and wait until it knows; `leader` alone must be alive."""
    run.stage.clients.elect_unclean(run.address(by), run.topic)
    wait_leader(run, leader, [leader])


def reassign(run: FindingRun, order: list[int], by: int) -> None:
    """Reassign the replicas through broker `by`."""
    run.stage.clients.reassign(run.address(by), run.topic, order)


def delete_before(run: FindingRun, at: int, offset: int) -> None:
    """DeleteRecords at the leader."""
    run.stage.clients.delete_before(run.address(at), run.topic, offset)


def start(run: FindingRun, broker: int) -> None:
    """Start a broker, with its directory."""
    run.stage.cluster.start(broker)


def start_brokers(run: FindingRun, but: list[int] | None = None) -> None:
    """Start each broker that has ended, but for some."""
    run.stage.all_up(but or ())


def shut_down(run: FindingRun, broker: int) -> None:
    """SIGTERM: a controlled shutdown."""
    run.stage.shut_down(broker)


def kill(run: FindingRun, broker: int) -> None:
    """SIGKILL."""
    run.stage.cluster.nodes[broker].kill()


def pause(run: FindingRun, broker: int) -> None:
    """SIGSTOP."""
    run.stage.cluster.nodes[broker].pause()


def resume(run: FindingRun, broker: int) -> None:
    """SIGCONT."""
    run.stage.cluster.nodes[broker].resume()


def fail_store(run: FindingRun, broker: int) -> None:
    """Remote storage fails at a broker from now on."""
    run.store.fails(broker, on=True)


def mend_store(run: FindingRun, broker: int) -> None:
    """Remote storage works again at a broker."""
    run.store.fails(broker, on=False)


# -- messages ---------------------------------------------------------------------------------------------------------


def hold(run: FindingRun, name: str, at: int, api: str, client: str, responses: bool = False) -> None:
    """Hold the requests of one API from a client at a node, or the responses to them."""
    run.holds[name] = run.stage.gate.hold(at, APIS[api], client, responses=responses)


def hold_fetches(run: FindingRun, leader: int, followers: list[int], wait: bool = False) -> None:
    """Hold the followers' fetches at a leader, as ``2 at 1``, and perhaps wait until one of each is held."""
    for follower in followers:
        run.holds[f"{follower} at {leader}"] = run.stage.hold_fetches(leader, follower)
    if wait:
        wait_held(run, [f"{follower} at {leader}" for follower in followers])


def hold_consumers(run: FindingRun, at: int, responses: bool = False) -> None:
    """Hold the fetches of the topic's consumers at a broker, as ``classic at 1``; or the responses, as ``from 1``."""
    for protocol in PROTOCOLS:
        name = f"{protocol} {'from' if responses else 'at'} {at}"
        run.holds[name] = run.stage.gate.hold(at, FETCH, f"{run.topic}-{protocol}", responses=responses)


def hold_metadata(run: FindingRun, broker: int, responses: bool = False, wait: bool = False) -> None:
    """Hold a broker's fetches of the metadata log, as ``metadata of 1``; or the responses, as ``records for 1``."""
    name = f"records for {broker}" if responses else f"metadata of {broker}"
    run.holds[name] = run.stage.hold_metadata(broker, responses=responses)
    if wait:
        run.holds[name].wait()


def refuse(run: FindingRun, name: str, at: int, client: str) -> None:
    """Drop each message of a client to a node."""
    run.holds[name] = run.stage.gate.refuse(at, client)


def release(run: FindingRun, holds: list[str]) -> None:
    """Let everything through that is held there, and hold no longer."""
    for each in holds:
        run.holds[each].open()


def wait_held(run: FindingRun, holds: list[str]) -> None:
    """Wait until a message is held at each."""
    for each in holds:
        run.holds[each].wait()


def let_on(run: FindingRun, hold: str) -> None:
    """Let the first message through."""
    run.holds[hold].let_on()


def let_one(run: FindingRun, hold: str) -> None:
    """Let the first message through, and wait until the next is held."""
    run.holds[hold].let_one()


def let_fetches(run: FindingRun, hold: str, follower: int, log: list[str]) -> None:
    """Let a follower's fetches through until its log has these records."""
    run.stage.fetch(run.holds[hold], follower, run.topic, log)


def let_until_isr(run: FindingRun, hold: str, leader: int, isr: list[int]) -> None:
    """Let messages through until the controller has answered a leader with this ISR."""
    what = f"broker {leader} to be answered"
    run.holds[hold].let_until(what, lambda: run.stage.answered_isr(leader, run.topic) == isr)


def let_until_held(run: FindingRun, hold: str, other: str) -> None:
    """Let messages through until another message is held elsewhere."""
    run.holds[hold].let_until(f"one of the {run.holds[other]}", lambda: bool(run.holds[other].waiting))


# -- clients ----------------------------------------------------------------------------------------------------------


def send(run: FindingRun, at: int, value: str) -> None:
    """Send a record with acks=all, and do not wait for the answer."""
    stack = ExitStack()
    producer = stack.enter_context(run.stage.clients.lone_producer(run.address(at), "producer"))
    try:
        producer.warm_up(run.topic)
        run.sent[value] = producer.send(run.topic, value), stack
    except BaseException:
        stack.close()
        raise


def check_unanswered(run: FindingRun) -> None:
    """Fail if a record has an answer already: the high watermark must wait."""
    for value, (sent, _) in run.sent.items():
        if sent.answered:
            raise RecordingError(f"{value} has an answer, and the high watermark must wait")


def await_answer(run: FindingRun, value: str) -> None:
    """Wait for a record's answer, an error included."""
    sent, stack = run.sent.pop(value)
    with stack:
        try:
            run.seen.acknowledged[value] = sent.offset()
        except ClientError as error:
            run.seen.errors[value] = error.name


def produce(
    run: FindingRun, at: int, values: list[str], acks: str = "all", pause: float = 0.0, counts: bool = True
) -> None:
    """Send records one by one, each after `pause` seconds, and wait for each offset.

    ``counts``: whether the invariant is about them.
    """
    with run.stage.clients.lone_producer(run.address(at), "producer", acks) as producer:
        for value in values:
            time.sleep(pause)
            offset = producer.send(run.topic, value).offset()
            if counts:
                run.seen.acknowledged[value] = offset


def write(run: FindingRun, at: int, value: str, acks: str = "all") -> None:
    """Send a record, wait for its offset, and report it."""
    produce(run, at, [value], acks)
    offset = run.seen.acknowledged[value]
    run.tell(f"{run.topic}: a producer writes {value} with acks={acks} at {at}: NONE, offset {offset}")


def open_consumers(
    run: FindingRun, at: list[int], protocols: list[str] | None = None, asks_end_of: str | None = None
) -> None:
    """Open a consumer per group protocol at the start of the topic. They may ask where another topic ends first."""
    stack = run.clients.setdefault(run.topic, ExitStack())
    mine = run.consumers.setdefault(run.topic, {})
    for protocol in protocols or ["classic"]:
        client = f"{run.topic}-{protocol}"
        made = run.stage.clients.consumer(run.address(*at), client, run.topic, protocol)
        mine[protocol] = stack.enter_context(made)
        if asks_end_of is not None:
            mine[protocol].end_of(f"{run.name}-{asks_end_of}")


def close_consumers(run: FindingRun) -> None:
    """Close the topic's consumers."""
    run.consumers.pop(run.topic)
    run.clients.pop(run.topic).close()


def poll(run: FindingRun, seconds: float) -> None:
    """Poll each of the topic's consumers once."""
    for protocol, consumer in run.consumers[run.topic].items():
        run.polled = run.poll(protocol, consumer, seconds)


def read(run: FindingRun, count: int) -> None:
    """Poll until each consumer has so many records or has thrown, and report each."""

    def is_done() -> bool:
        for protocol, consumer in run.consumers[run.topic].items():
            if protocol not in run.seen.thrown and len(run.seen.read.get(protocol, ())) < count:
                run.poll(protocol, consumer, _POLL)
        return all(name in run.seen.thrown or len(got) >= count for name, got in run.seen.read.items())

    wait_until(f"consumers of {run.topic} to have {count} records", is_done, pause=0)
    for protocol, got in run.seen.read.items():
        what = ", ".join(map(str, got))
        if protocol in run.seen.thrown:
            what += f", and throws {run.seen.thrown[protocol]}"
        run.tell(f"{run.topic}: a KafkaConsumer (group.protocol={protocol}) has read {what}")


def read_all(run: FindingRun, name: str, at: int) -> None:
    """Read the topic from its beginning for ten seconds, or until a consumer throws or has each acknowledged record."""
    deadline = time.monotonic() + 10
    got = run.seen.read.setdefault(name, [])
    with run.stage.clients.consumer(run.address(at), f"{run.topic}-consumer", run.topic) as consumer:
        while len(got) < len(run.seen.acknowledged) and time.monotonic() < deadline and name not in run.seen.thrown:
            run.poll(name, consumer, 1)
    run.polled = ", ".join(each.value for each in got) or "nothing"
    if name in run.seen.thrown:
        run.polled += f", and throws {run.seen.thrown[name]}"


def poll_until_held(run: FindingRun, holds: list[str]) -> None:
    """Poll the consumers, which work only while polled, until a message is held at each of `holds`."""
    consumers = run.consumers[run.topic]

    def is_held() -> bool:
        for consumer in consumers.values():
            if got := consumer.poll(_POLL / len(consumers)):
                raise RecordingError(f"{got[0]} was read before a message was held at each of {holds}")
        return all(run.holds[each].waiting for each in holds)

    wait_until(f"a message at each of {holds}", is_held, pause=0)


def reach(run: FindingRun, brokers: list[int]) -> None:
    """Let the topic's consumers of both protocols reach these brokers alone."""
    for protocol in PROTOCOLS:
        for broker in BROKER_IDS:
            key = broker, f"{run.topic}-{protocol}"
            if broker in brokers and key in run.unreachable:
                run.unreachable.pop(key).open()
            elif broker not in brokers and key not in run.unreachable:
                run.unreachable[key] = run.stage.gate.refuse(*key)


def request_metadata(run: FindingRun, broker: int) -> None:
    """Let the consumers reach one broker alone until each has its Metadata response, or has thrown."""
    gate, before = run.stage.gate, len(run.stage.gate.seen)
    reach(run, [broker])

    def is_answered(protocol: str) -> bool:
        wanted = broker, METADATA, f"{run.topic}-{protocol}", "passed"
        return any(
            each.response and (each.target, each.header.api, each.header.client, each.what) == wanted
            for each in gate.seen[before:]
        )

    def is_done() -> bool:
        for protocol, consumer in run.consumers[run.topic].items():
            if protocol not in run.seen.thrown:
                run.poll(protocol, consumer, _POLL)
        return all(each in run.seen.thrown or is_answered(each) for each in run.consumers[run.topic])

    wait_until(f"broker {broker} to answer the consumers", is_done, pause=0)


# -- waits ------------------------------------------------------------------------------------------------------------


def wait_leader(run: FindingRun, leader: int, known_by: list[int] | None = None) -> None:
    """Wait until the controller has decided on a leader, -1 for none, and these brokers have their roles."""
    run.state = run.stage.wait_decided(run.topic, leader)
    wait_role(run, known_by or [], run.state.leader_epoch)


def wait_isr(run: FindingRun, isr: list[int], epoch: int | None = None) -> None:
    """Wait until the controller has this ISR; fail if its leader epoch is not `epoch`."""
    run.state = run.stage.wait_isr(run.topic, isr)
    if epoch is not None and run.state.leader_epoch != epoch:
        raise RecordingError(f"the ISR of {run.topic} is {isr} in leader epoch {run.state.leader_epoch}, not {epoch}")


def wait_in_isr(run: FindingRun, broker: int) -> None:
    """Wait until the controller has a broker in the ISR."""

    def is_member() -> bool:
        state = run.stage.decided(run.topic)
        return state is not None and broker in state.isr

    wait_until(f"broker {broker} to be in the ISR of {run.topic}", is_member)


def wait_role(run: FindingRun, brokers: list[int], epoch: int) -> None:
    """Wait until each broker has its role of a leader epoch."""
    for broker in brokers:
        run.stage.wait_heard(broker, run.topic, epoch)


def wait_replayed(run: FindingRun, broker: int, partition_epoch: int) -> None:
    """Wait until a leader has replayed the record of a partition epoch."""
    run.stage.wait_replayed(broker, run.topic, partition_epoch)


def wait_ended(run: FindingRun, broker: int) -> None:
    """Wait until a broker's process has ended."""
    run.stage.wait_ended(broker)


def wait_logs(run: FindingRun, logs: dict[int, list[str]]) -> None:
    """Wait until these brokers' logs have these records, each ``VALUE@EPOCH``."""
    run.stage.wait_logs(run.topic, logs)


def wait_stored(run: FindingRun, high_watermarks: dict[int, int]) -> None:
    """Wait until these brokers have stored these high watermarks."""
    run.stage.wait_stored(run.topic, high_watermarks)


def wait_followed(run: FindingRun, leader: int, followers: list[int]) -> None:
    """Wait until the followers have the leader's log, and all have stored its end as the high watermark."""
    run.stage.wait_followed(run.topic, leader, followers)


def wait_segments(run: FindingRun, count: int) -> None:
    """Wait until remote storage has so many segments."""
    wait_until(f"{count} segments of {run.topic} in remote storage", lambda: run.store.segments == count)


def wait_uploaded(run: FindingRun, values: list[str]) -> None:
    """Wait until remote storage has these records."""
    wait_until(f"{values} of {run.topic} in remote storage", lambda: set(values) <= run.store.values())


def wait_store_failed(run: FindingRun, broker: int) -> None:
    """Wait until remote storage has failed at a broker once more."""
    run.store.wait_failed(broker)


def wait_store_settled(run: FindingRun, count: int) -> None:
    """Wait until a leader's tasks have deleted some of `count` segments and go on no more, or had the time to."""
    run.store.wait_settled(count)


def sleep(_: FindingRun, seconds: float) -> None:
    """Let time pass."""
    time.sleep(seconds)


# -- observations -----------------------------------------------------------------------------------------------------


def observe(run: FindingRun, moment: str) -> None:
    """Record all brokers' logs, their roles so far, and remote storage, under a moment's name."""
    run.seen.logs[moment] = run.stage.logs(run.topic)
    run.seen.roles = {broker: run.stage.roles(broker, run.topic) for broker in BROKER_IDS}
    if run.tiered:
        run.seen.segments[moment] = run.store.segments
        run.seen.remote[moment] = run.store.values()


def copy(run: FindingRun, name: str) -> None:
    """Copy the brokers' directories as they are at one instant, if the run keeps copies."""
    if run.copies is not None:
        run.stage.copy(run.copies / name)


def tell(_: FindingRun) -> None:
    """Do nothing but report ``say``."""


def held_by(do: str, arguments: dict[str, Any]) -> list[str]:
    """Names of the holds that a step makes."""
    at, side = arguments.get("at"), "from" if arguments.get("responses") else "at"
    match do:
        case "hold" | "refuse":
            return [arguments["name"]]
        case "hold_fetches":
            return [f"{follower} at {arguments['leader']}" for follower in arguments["followers"]]
        case "hold_consumers":
            return [f"{protocol} {side} {at}" for protocol in PROTOCOLS]
        case "hold_metadata":
            return [f"{'records for' if side == 'from' else 'metadata of'} {arguments['broker']}"]
    return []


STEPS: Final[dict[str, Callable[..., None]]] = {
    step.__name__: step
    for step in (
        new_topic, elect, elect_unclean, reassign, delete_before, start, start_brokers, shut_down, kill, pause,
        resume, fail_store, mend_store, hold, hold_fetches, hold_consumers, hold_metadata, refuse, release, wait_held,
        let_on, let_one, let_fetches, let_until_isr, let_until_held, send, check_unanswered, await_answer, produce,
        write, open_consumers, close_consumers, poll, read, read_all, poll_until_held, reach, request_metadata,
        wait_leader, wait_isr, wait_in_isr, wait_role, wait_replayed, wait_ended, wait_logs, wait_stored,
        wait_followed, wait_segments, wait_uploaded, wait_store_failed, wait_store_settled, sleep, observe, copy,
        tell,
    )
}  # fmt: skip
