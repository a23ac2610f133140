"""What clients and operators ask of running controllers: topics, configs, elections, a controlled shutdown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final

from ....impl.wire.controller import (
    ConfigChange,
    ControllerRequest,
    CreateTopicsRequest,
    DeleteTopicsRequest,
    ElectLeadersRequest,
    IncrementalAlterConfigsRequest,
    ResourceType,
)
from ....impl.wire.errors import ErrorCode
from ....impl.wire.messages import BROKER_PRINCIPAL, Envelope, TopicPartition
from ...adapters.carrier import CLIENT
from ...lockstep.adapter import ModelStep
from ...simulation.events import Event, EventKind
from ...simulation.system import RequestOutcome
from .negative_requests import probe, probes
from .nodes import FOLLOW, REPLICATE, STOP
from .observation import NAMES

if TYPE_CHECKING:
    from .system import FreeControllers

_CONFIG: Final = "min.insync.replicas"
_UNCLEAN: Final = "unclean.leader.election.enable"
_GUARDED: Final = 3
"""In one of so many runs all brokers' default allows unclean elections now and then, and every topic forbids them."""


class Clients:
    """Of one run."""

    def __init__(self, system: FreeControllers) -> None:
        self._system = system
        self._serial = 0
        self._judged: list[RequestOutcome] = []
        self._asked: list[tuple[int, Envelope, tuple[ModelStep, ...]]] = []
        self.touched: set[int] = set()
        """The controllers that were asked in this event."""
        self._guarded = system.seed // 17 % _GUARDED == 0

    def envelope(self, number: int, body: ControllerRequest, correlation: int) -> Envelope:
        """A client's request."""
        return Envelope(CLIENT, number, correlation, body, BROKER_PRINCIPAL)

    def prepare(self) -> None:
        """Some runs have topics when they begin."""
        system = self._system
        for partition, name in enumerate(NAMES[: system.constants["partitions"]]):
            active = system.active
            if active is not None and system.seed // 7 % 3 > partition:
                body = self._created(name, system.brokers[(system.seed + partition) % len(system.brokers)])
                active.receive(self.envelope(active.address, body, -1 - partition))
                end = active.quorum.replica.end
                system.run_until(lambda: all(system.quorum(each).replica.applied >= end for each in system.replicas))  # noqa: B023

    def _created(self, name: str, first: int) -> CreateTopicsRequest:
        brokers = list(self._system.brokers)
        configs = ((_UNCLEAN, "false"),) if self._guarded else ()
        return CreateTopicsRequest(name, assignments=((*brokers[first:], *brokers[:first]),), configs=configs)

    # -- what may be asked ------------------------------------------------------------------------------------------

    def offers(self) -> Iterator[Event]:
        """Of whoever takes itself for active; now and then of others."""
        system = self._system
        yield Event(EventKind.SYNC, REPLICATE)
        yield Event(EventKind.SYNC, FOLLOW)
        for number in system.voters:
            if number in system.down:
                continue
            node = system.controller(number)
            if node.active is not None:
                image = node.active.image
                for partition, name in enumerate(NAMES[: system.constants["partitions"]]):
                    where = ("partition", partition)
                    if name in image.names:
                        yield Event(EventKind.CALL, "delete-topic", number, args=(where,))
                        yield Event(EventKind.CALL, "alter-config", number, args=(where,))
                        yield Event(EventKind.CALL, "elect-preferred", number, args=(where,))
                    else:
                        for first in system.brokers:
                            yield Event(EventKind.CALL, "create-topic", number, args=(where, ("first", first)))
                if self._guarded:
                    yield Event(EventKind.CALL, "alter-default", number)
                yield Event(EventKind.OPERATE, "resign", number)
            elif node.quorum.is_leader:
                yield Event(EventKind.OPERATE, "resign", number)
            if number not in system.cut:
                yield from probes(system, number)
        for broker in system.brokers:
            if broker not in system.down:
                lifecycle = system.broker(broker).lifecycle
                if not lifecycle.want_shut_down:
                    yield Event(EventKind.OPERATE, "shut-down", broker)
                elif lifecycle.may_shut_down:
                    yield Event(EventKind.CRASH, STOP, broker)

    # -- what is asked ----------------------------------------------------------------------------------------------

    def ask(self, event: Event) -> Sequence[ModelStep]:
        """One of them."""
        system, number = self._system, event.node
        assert number is not None
        self.touched = {number}
        if event.what is EventKind.PROBE:
            probe(event, system)
            return ()
        if event.name == "resign":
            node = system.controller(number)
            node.quorum.resign()
            node.wake()
            return ()
        if event.name == "shut-down":
            system.broker(number).lifecycle.want_shut_down = True
            return ()
        at = {"node": number - len(system.brokers)}
        if event.name == "alter-default":
            self._serial += 1
            change = ConfigChange(_UNCLEAN, ("true", "true", "false")[self._serial % 3])
            self._correlate(number, IncrementalAlterConfigsRequest(ResourceType.BROKER, "", (change,)), ())
            return (("append_other", at),)
        partition = int(event.arg("partition"))
        name = NAMES[partition]
        here = {**at, "partition": partition}
        image = self._image(number)
        judged: tuple[ModelStep, ...] = ()
        body: ControllerRequest
        match event.name:
            case "create-topic":
                body = self._created(name, int(event.arg("first")))
                (assigned,) = body.assignments
                leader = next((each for each in assigned if image is not None and image.alive(each)), assigned[0])
                judged = (("create_topic", {**here, "broker": leader}),)
                steps: tuple[ModelStep, ...] = (*judged, ("append_other", at))
            case "delete-topic":
                topic = None if image is None else image.names.get(name)
                body = (
                    DeleteTopicsRequest(name) if topic is None or system.seed % 2 else DeleteTopicsRequest(None, topic)
                )
                judged = steps = (("remove_topic", here),)
            case "alter-config":
                self._serial += 1
                change = ConfigChange(_CONFIG, str(1 + self._serial))
                body = IncrementalAlterConfigsRequest(ResourceType.TOPIC, name, (change,))
                steps = (("append_other", at),)
            case _:
                body = ElectLeadersRequest(TopicPartition(name, 0))
                steps = (("elect_leader", here),)
        self._correlate(number, body, judged)
        return steps

    def _image(self, number: int) -> Any:
        active = self._system.controller(number).active
        return None if active is None else active.image

    def _correlate(self, number: int, body: ControllerRequest, judged: tuple[ModelStep, ...]) -> None:
        self._serial += 1
        envelope = self.envelope(number, body, -1_000 - self._serial)
        self._asked.append((number, envelope, judged))
        self._system.controller(number).receive(envelope)

    def judged(self) -> list[RequestOutcome]:
        """What has been decided of these in this event."""
        asked, self._asked = self._asked, []
        self.touched = set()
        found = []
        for number, envelope, steps in asked:
            if number in self._system.down:
                continue
            error = self._system.answers.error_of(self._system.controller(number), envelope, self._system.clock.now())
            newest = self._system.newest_leader
            if steps and error is not None and newest is not None and newest.address == number:
                found.append(RequestOutcome(steps, None if error is ErrorCode.NONE else error.name))
        return found
