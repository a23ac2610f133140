"""Planted defects of the controller of KIP-631, each a patch of one place, that crashes find."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fencepost.impl.kraft import broker, heartbeats, node, publisher, registrations, topics
from fencepost.impl.kraft.decision import Decision
from fencepost.impl.metadata import MetadataRecord, changes
from fencepost.impl.metadata.image import Image
from fencepost.impl.metadata.machine import MetadataMachine

Plant = Callable[[pytest.MonkeyPatch], None]


def answers_before_it_is_stable(patch: pytest.MonkeyPatch) -> None:
    """What was appended is answered at once."""

    def answer(self: node.ControllerNode) -> None:
        while self._waiting:
            each = self._waiting.popleft()
            self._requests.respond(each.request, each.answer)

    patch.setattr(node.ControllerNode, "_answer_stable", answer)


def keeps_what_was_pending(patch: pytest.MonkeyPatch) -> None:
    """A controller that is active again goes on with its former image."""
    begin, end = node.ControllerNode._become_active, node.ControllerNode._step_down

    def step_down(self: Any) -> None:
        self.former = self.active.image
        end(self)

    def become(self: Any) -> None:
        committed = self.machine.image
        self.machine.image = getattr(self, "former", committed)
        begin(self)
        self.machine.image = committed

    patch.setattr(node.ControllerNode, "_step_down", step_down)
    patch.setattr(node.ControllerNode, "_become_active", become)


def snapshot_without_configs(patch: pytest.MonkeyPatch) -> None:
    """A snapshot lacks the configs."""
    whole = Image.records

    def records(self: Image) -> Iterator[MetadataRecord]:
        return (each for each in whole(self) if each.type != changes.CONFIG)

    patch.setattr(Image, "records", records)


def snapshot_without_partition_epochs(patch: pytest.MonkeyPatch) -> None:
    """A snapshot has partition epoch 0 for every partition."""
    patch.setattr(changes, "partition", _with_epoch_0(changes.partition))


def _with_epoch_0(whole: Any) -> Any:
    return lambda key, made: whole(key, made._replace(partition_epoch=0))


def loads_on_top(patch: pytest.MonkeyPatch) -> None:
    """A snapshot is taken for what is new in it: topics and brokers that it lacks stay."""
    take = MetadataMachine._take

    def on_top(self: MetadataMachine, image: Image) -> None:
        image.brokers = {**self.image.brokers, **image.brokers}
        image.topics = {**self.image.topics, **image.topics}
        image.partitions = {**self.image.partitions, **image.partitions}
        take(self, image)

    patch.setattr(MetadataMachine, "_take", on_top)


def publishes_too_early(patch: pytest.MonkeyPatch) -> None:
    """A broker goes by an image that is older than its own registration."""
    publish = publisher.Publisher.publish

    def early(self: publisher.Publisher, end: int, epoch: int) -> bool:
        mine = self._machine.image.brokers.get(self._broker.address)
        if mine is not None:
            self._incarnation = mine.incarnation
        return publish(self, end, epoch)

    patch.setattr(publisher.Publisher, "publish", early)


def forgets_topic_ids(patch: pytest.MonkeyPatch) -> None:
    """A replica's folder does not tell which topic it is of."""
    patch.setattr("fencepost.impl.log.directory.write_topic_id", lambda *_: None)


def leaves_deleted_replicas(patch: pytest.MonkeyPatch) -> None:
    """What was deleted while a broker was away stays there."""
    patch.setattr(publisher.Publisher, "_delete_strays", lambda *_: None)


def registers_over_a_process_that_is_not_fenced(patch: pytest.MonkeyPatch) -> None:
    """The former process stays in its ISRs."""
    patch.setattr(registrations, "fence_records", lambda *_, **__: ())


def stops_with_what_it_leads(patch: pytest.MonkeyPatch) -> None:
    """A broker that shuts down under control keeps its leaderships."""
    whole = heartbeats.heartbeat

    def heartbeat(*args: Any, **kwargs: Any) -> Decision:
        decision = whole(*args, **kwargs)
        shuts = any(each.fields.get("InControlledShutdown") for each in decision.records)
        return decision._replace(records=decision.records[-1:]) if shuts else decision

    patch.setattr("fencepost.impl.kraft.active.heartbeat", heartbeat)


def places_on_fenced_brokers(patch: pytest.MonkeyPatch) -> None:
    """A new topic's ISR has brokers that are fenced."""
    whole = topics.create_topic

    def create(image: Image, *args: Any, **kwargs: Any) -> Decision:
        fork = image.fork()
        fork.brokers = {number: each._replace(fenced=False) for number, each in image.brokers.items()}
        return whole(fork, *args, **kwargs)

    patch.setattr("fencepost.impl.kraft.active.create_topic", create)


def takes_any_broker_into_the_isr(patch: pytest.MonkeyPatch) -> None:
    """AlterPartition looks at no broker's state."""
    patch.setattr("fencepost.impl.kraft.alter_partition._is_eligible", lambda *_: True)
    patch.setattr(broker.Publisher, "_with_replicas_among", lambda *_: set())  # nor do leaders hear of it


CRASH_FAULTS: dict[str, Plant] = {
    each.__name__: each
    for each in (
        answers_before_it_is_stable,
        keeps_what_was_pending,
        snapshot_without_configs,
        snapshot_without_partition_epochs,
        loads_on_top,
        publishes_too_early,
        forgets_topic_ids,
        leaves_deleted_replicas,
        registers_over_a_process_that_is_not_fenced,
        stops_with_what_it_leads,
        places_on_fenced_brokers,
        takes_any_broker_into_the_isr,
    )
}
