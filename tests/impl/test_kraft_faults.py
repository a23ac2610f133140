"""Planted defects of the controller of KIP-631, each found by one of the stories that are told by hand."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fencepost.impl.kraft import gateway, node, publisher, sessions, snapshots
from fencepost.impl.metadata.image import Image
from fencepost.impl.replica import broker
from fencepost.impl.wire.errors import ErrorCode

from . import test_kraft_cluster as told
from . import test_kraft_failover as failover
from . import test_kraft_snapshots as turns

Plant = Callable[[pytest.MonkeyPatch], None]
Story = Callable[[], None]


def plant(where: Any, name: str, instead: Any) -> Plant:
    """Put something in the place of an attribute."""
    return lambda patch: patch.setattr(where, name, instead)


def _no_standing_by(self: Any) -> None:
    """Whoever leads goes on."""
    node.take_snapshot(self.quorum)


def _answer_at_once(self: Any, envelope: Any, body: Any) -> None:
    if self.active is None:
        self._refuse(envelope, body, ErrorCode.NOT_CONTROLLER)
        return
    decision = self.active.decide(body, end=self.quorum.replica.end, stable=0, now=self._clock.now())
    self._submit(decision, None)
    self._requests.respond(envelope, decision.answer)


def _no_grace(self: Any, timeout_ms: int, image: Image, now: int) -> None:
    self._timeout = timeout_ms
    living = [(broker, known) for broker, known in image.brokers.items() if not known.fenced]
    self._sessions = {broker: sessions.Session(known.epoch, now - timeout_ms) for broker, known in living}


def _serve_any(self: Any, envelope: Any, body: Any) -> None:
    self._fetched[body.body.partition, body.body.replica_id] = body.replica_epoch
    self._receive(replace(envelope, body=body.body))


def _kept(self: Any, *_: Any) -> int:
    return -1


FOUND: dict[str, tuple[Plant, Story]] = {
    "no session ends": (
        plant(sessions.Sessions, "_counts", lambda *_: False),
        lambda: told.test_a_broker_is_fenced_by_time_out_and_comes_back(by_event=True),
    ),
    "a new active controller takes brokers for gone that it has not heard of": (
        plant(sessions.Sessions, "__init__", _no_grace),
        failover.test_a_new_active_controller_gives_every_broker_a_whole_session,
    ),
    "answers do not wait": (
        plant(node.ControllerNode, "_serve", _answer_at_once),
        failover.test_pending_changes_are_answered_late_and_gone_after_a_failover,
    ),
    "a fetch of any process is served": (
        plant(gateway.Gateway, "serve", _serve_any),
        told.test_a_fetch_of_a_former_process_is_refused_and_counts_for_nothing,
    ),
    "a fetch of any topic of the name is served": (
        plant(broker, "is_consistent", lambda *_: True),
        told.test_a_follower_of_a_topic_made_anew_takes_nothing_from_who_has_the_former_one,
    ),
    "nobody hears of a topic's min.insync.replicas": (
        plant(publisher, "minimums", lambda *_: {}),
        told.test_acks_all_wants_as_many_in_sync_as_the_topic_says,
    ),
    "leaders know no epochs of their followers": (
        plant(gateway.Gateway, "_epoch_of", _kept),
        lambda: told.test_a_broker_is_fenced_by_time_out_and_comes_back(by_event=True),
    ),
    "the active controller keeps its leadership": (
        plant(node.ControllerNode, "_snapshot_as_active", _no_standing_by),
        turns.test_an_active_controller_that_nobody_relieves_takes_its_snapshot_itself,
    ),
    "snapshots are as frequent while a member is away": (
        plant(snapshots.SnapshotTurns, "degraded", lambda *_: False),
        turns.test_snapshots_are_rarer_while_a_controller_is_away,
    ),
    "all take their snapshots at once": (
        plant(snapshots.SnapshotTurns, "heard", lambda *_, **told: told["stable"] - told["snapshot_end"] > 10),
        turns.test_one_at_a_time_until_it_tells_of_its_snapshot,
    ),
    "a log of any format is written to": (
        plant(node.ControllerNode, "refusal", None),
        failover.test_a_log_of_another_format_is_not_written_to,
    ),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", FOUND)
def test_each_defect_is_found(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    planted, story = FOUND[name]
    planted(monkeypatch)
    with pytest.raises(AssertionError):
        story()
