"""What KIP-631 tells, as runs of the reference interpreter, and the shortest stories of the holes in its text."""

from __future__ import annotations

from functools import cache

import pytest
from fencepost.model.core.ground import System, ground
from fencepost.model.interpret.reference import Reference
from fencepost.model.protocols.controller import controller

Call = tuple[str | int, ...]
SAFE = "kip-631-safe"
DATA = "2/1/1/6/0/1/0/1"
THREE_NODES = "1/3/1/1/1/1/1/1"


@cache
def system_of(variant: str, constants: str, *dropped: str) -> System:
    values = dict(zip(controller.constants, map(int, constants.split("/")), strict=True))
    return ground(controller.traced(variant).drop(*dropped), values)


class Run:
    """A run of the reference interpreter; a call is an action and the values of its parameters.

    ``constants`` are replicas/nodes/partitions/log size/controller epoch/bootstrapped/snapshots/removals.
    """

    def __init__(self, variant: str = SAFE, constants: str = DATA, *dropped: str) -> None:
        self.system = system_of(variant, constants, *dropped)
        self.reference = Reference(self.system)
        self.state = self.system.initial

    def __call__(self, *calls: Call) -> None:
        for call in calls:
            assert self.refused(call) is None, (call, self.refused(call))
            after = self.reference.step(self.state, *self._step(call))
            assert after is not None
            self.state = after

    def _step(self, call: Call) -> tuple[str, tuple[tuple[str, int], ...]]:
        action = str(call[0])
        return action, tuple(zip(controller.actions[action].params, map(int, call[1:]), strict=True))

    def refused(self, call: Call) -> str | None:
        return self.reference.refused_by(self.state, *self._step(call))

    def __getitem__(self, cell: str) -> int:
        return self.state[self.system.layout.by_name[cell]]

    def broken(self) -> list[str]:
        return self.reference.broken(self.state)


ACTIVE: list[Call] = [("elect_controller", 0, 0), ("activate", 0)]
# Broker 0 leads, and knows it.
LED: list[Call] = [*ACTIVE, ("elect_leader", 0, 0, 0), ("commit", 0), ("replay_metadata", 0)]


def test_who_is_not_active_answers_not_controller() -> None:
    """Before an election, as a standby, and as who was deposed, which is told so in vain by nobody's answer."""
    run = Run(constants="1/2/1/2/1/1/0/1")
    requests: list[Call] = [("register_broker", 0, 0), ("fence_broker", 0, 0, 0), ("remove_topic", 0, 0)]
    assert {run.refused(call) for call in requests} == {"is_active"}
    run(*ACTIVE)
    assert run.refused(("fence_broker", 0, 0, 0)) is None
    assert run.refused(("fence_broker", 1, 0, 0)) == "is_active"
    run(("elect_controller", 1, 0))
    assert run.refused(("fence_broker", 1, 0, 0)) == "is_active"
    assert run.refused(("fence_broker", 0, 0, 0)) is None, "it has not heard of that, and nobody else is active yet"
    run(("activate", 1))
    assert run.refused(("fence_broker", 0, 0, 0)) == "none_active_since"
    assert run.refused(("hear_of_epoch", 0, 2)) == "epoch_elected"
    run(("hear_of_epoch", 0, 1))
    assert run.refused(("fence_broker", 0, 0, 0)) == "is_active"


@pytest.mark.parametrize("kept", [0, 1])
def test_what_is_pending_is_gone_with_its_controller(kept: int) -> None:
    """Of two pending records the next controller keeps one, or none; it starts from what is stable then."""
    run = Run(constants="2/2/1/2/1/1/0/1")
    run(*ACTIVE, ("fence_broker", 0, 0, 0), ("fence_broker", 0, 1, 1))
    assert (run["end"], run["stable"], run["node_unfenced[0]"], run["node_isr[0][0]"]) == (2, 0, 0b00, 0b10)
    assert run["node_unfenced[1]"] == run["view_unfenced[0]"] == 0b11, "nobody else has seen it"
    run(("elect_controller", 1, kept))
    assert (run["leader_end"], run["end"]) == (kept, 2)
    if kept:
        assert run.refused(("activate", 1)) == "caught_up"
        run(("commit", 1), ("replay_record", 1))
    run(("activate", 1))
    assert run["end"] == kept and run["node_applied[0]"] == 2
    run(("hear_of_epoch", 0, 1))
    assert run["node_applied[0]"] == 0 and run["node_unfenced[0]"] == 0b11
    assert run["node_unfenced[1]"] == (0b10 if kept else 0b11)
    assert run.broken() == []


@pytest.mark.parametrize("kept", [0, 1, 2])
def test_what_a_controller_lacks_comes_back_with_the_next_unless_it_is_active(kept: int) -> None:
    """Controller 1 is elected without what 0 has appended, and 0, which has not heard of it, appends once more.

    A majority need not have the record that begins epoch 1 (KIP-595's LeaderChangeMessage). Then any end of 0's log may
    be what controller 0, or another one, is elected with in epoch 2.
    """
    run = Run(constants="2/2/1/3/2/1/0/1")
    run(*ACTIVE, ("fence_broker", 0, 0, 0), ("elect_controller", 1, 0), ("fence_broker", 0, 1, 1))
    assert (run["leader_end"], run["end"], run["node_unfenced[0]"]) == (0, 2, 0b00)
    assert run.refused(("commit", 1)) == "something_pending", "none of it is in the log of who counts"
    rival = Run(constants="2/2/1/3/2/1/0/1")
    rival.state = run.state
    run(("elect_controller", 0, kept), *[("commit", 0)] * kept, *[("replay_record", 0)] * kept, ("activate", 0))
    assert (run["stable"], run["end"]) == (kept, kept)
    assert run["node_unfenced[0]"] == (0b11, 0b10, 0b00)[kept]
    rival(("activate", 1))
    assert rival.refused(("fence_broker", 0, 0, 0)) == "none_active_since"
    if kept:
        assert rival.refused(("elect_controller", 0, kept)) == "within_log"
    assert run.broken() == rival.broken() == []


def test_who_was_deposed_before_it_was_active() -> None:
    """Controller 1 is active in epoch 1 though 0 is elected in epoch 2: it was stable that 1 leads before that."""
    run = Run(constants="2/2/1/3/2/1/0/1")
    run(*ACTIVE, ("fence_broker", 0, 0, 0), ("elect_controller", 1, 0), ("elect_controller", 0, 0), ("activate", 1))
    assert (run["active_epoch"], run["newest_epoch"], run["end"]) == (1, 2, 0)
    run(("fence_broker", 1, 1, 1))
    assert (run["end"], run["leader_end"]) == (1, 0)
    assert run.refused(("commit", 1)) == "epoch_is_newest"
    run(("activate", 0))
    assert (run["active_epoch"], run["end"]) == (2, 0)
    assert run.refused(("fence_broker", 1, 0, 0)) == "none_active_since"
    assert run.broken() == []


@pytest.mark.parametrize("variant", [SAFE, "isr-changes"])
def test_a_fenced_broker_has_a_successor_at_once(variant: str) -> None:
    """Who leads follows from record and image, in one new leader epoch; without another member nobody does."""
    run = Run(variant, "3/1/2/5/0/1/0/1")
    run(*ACTIVE, ("elect_leader", 0, 0, 0), ("elect_leader", 0, 1, 1), ("request_shutdown", 0, 2))
    assert run.refused(("fence_broker", 0, 0, 2)) == "may_succeed", "it is to stop"
    assert run.refused(("fence_broker", 0, 0, 0)) == "may_succeed", "somebody may"
    run(("fence_broker", 0, 0, 1))
    assert (run["node_leader[0][0]"], run["node_leader[0][1]"]) == (1, 1)
    assert (run["node_leader_epoch[0][0]"], run["node_leader_epoch[0][1]"]) == (2, 1), "where it followed none begins"
    assert (run["node_partition_epoch[0][0]"], run["node_partition_epoch[0][1]"]) == (2, 2)
    assert run["node_isr[0][0]"] == run["node_isr[0][1]"] == 0b110
    assert run.refused(("fence_broker", 0, 1, 2)) == "may_succeed"
    run(("fence_broker", 0, 1, 1))
    assert run["node_leader[0][0]"] == run["node_leader[0][1]"] == -1
    assert run["node_isr[0][0]"] == 0b100 and run.broken() == []


def test_a_registration_is_answered_when_it_is_stable() -> None:
    """A broker that has crashed is fenced, registers, hears its epoch, replays that, and is unfenced."""
    run = Run()
    run(*ACTIVE, ("crash_broker", 1))
    assert run.refused(("register_broker", 0, 1)) == "session_over"
    run(("fence_broker", 0, 1, 1), ("register_broker", 0, 1), ("commit", 0))
    assert run.refused(("hear_registration", 1)) == "registration_stable"
    run(("commit", 0), ("hear_registration", 1))
    assert run["own_epoch[1]"] == 1
    assert run.refused(("unfence_broker", 0, 1)) == "caught_up"
    run(("replay_metadata", 1), ("replay_metadata", 1), ("unfence_broker", 0, 1))
    assert run["node_unfenced[0]"] == 0b11 and run["node_isr[0][0]"] == 0b01
    run(("crash_broker", 1), ("fence_broker", 0, 1, 1), ("register_broker", 0, 1))
    assert run["awaited[1]"] == 4


def test_a_broker_is_shut_down_in_order() -> None:
    """It leads until another does, is fenced, stops with its log, and comes back with it."""
    run = Run()
    run(*LED, ("leader_write", 0, 0), ("request_shutdown", 0, 0))
    assert run.refused(("stop_broker", 0, 0)) == "is_fenced"
    assert run.refused(("elect_leader", 0, 0, 0)) == "stays"
    run(("elect_leader", 0, 0, 1), ("fence_broker", 0, 0, 0))
    assert run.refused(("stop_broker", 0, 0)) == "nothing_pending"
    run(("commit", 0), ("commit", 0), ("commit", 0), ("stop_broker", 0, 0))
    assert run["data[0][0]"] == 1
    run(("register_broker", 0, 0))
    assert run["record_kind[4]"] == 0 and run.broken() == []


def test_a_topic_id_is_drawn_once() -> None:
    run = Run(constants="2/1/1/4/0/1/0/1")
    run(*LED, ("leader_write", 0, 0))
    assert run.refused(("create_topic", 0, 0, 0)) == "id_is_new"
    run(("remove_topic", 0, 0), ("commit", 0), ("replay_metadata", 0))
    assert run["data[0][0]"] == run["view_leader_epoch[0][0]"] == -1
    assert run.refused(("create_topic", 0, 0, 0)) == "id_is_new"
    assert run.refused(("remove_topic", 0, 0)) == "exists"
    assert run.broken() == []


def test_a_stale_proposal_is_refused() -> None:
    """By its leader, its leader epoch and its partition epoch, and for who is to join."""
    run = Run()
    run(*LED, ("propose_shrink", 0, 1, 0), ("fence_broker", 0, 1, 1))
    assert run.refused(("alter_partition", 0, 0, 0)) == "partition_epoch_matches"
    run = Run()
    run(*LED, ("propose_shrink", 0, 1, 0), ("fence_broker", 0, 0, 1))
    assert run.refused(("alter_partition", 0, 0, 0)) == "is_leader"
    run = Run(constants="2/1/1/6/0/1/0/1")
    run(*LED, ("propose_shrink", 0, 1, 0), ("alter_partition", 0, 0, 0), ("commit", 0), ("replay_metadata", 0))
    assert (run["view_isr[0][0]"], run["proposed[0][0]"]) == (0b01, -1), "the answer is the metadata"
    run(("replay_metadata", 1), ("propose_expand", 0, 1, 0), ("fence_broker", 0, 1, 1))
    assert run.refused(("alter_partition", 0, 0, 0)) == "is_eligible"
    run(("refuse_member", 0, 0, 0))
    assert run["proposed[0][0]"] == -1


# The order goes to node 2; all three have replayed the one record.
ORDERED: list[Call] = [
    *ACTIVE,
    ("request_shutdown", 0, 0),
    ("commit", 0),
    ("replay_record", 1),
    ("replay_record", 2),
    ("hear_of_epoch", 1, 0),
    ("heartbeat", 1, 0),
    ("hear_of_epoch", 2, 0),
    ("heartbeat", 2, 0),
    ("order_snapshot", 0, 2),
]


def test_a_snapshot_is_ordered_and_loaded() -> None:
    run = Run(constants=THREE_NODES)
    run(*ORDERED)
    assert run.refused(("order_snapshot", 0, 1)) == "none_makes_one"
    run(("begin_snapshot", 2), ("finish_snapshot", 2))
    assert (run["snapshot_end[2]"], run["snapshot_shutting_down[2]"]) == (1, 0b1)
    run(("heartbeat", 2, 0))
    assert run.refused(("order_snapshot", 0, 2)) == "enough_records"
    run(("load_snapshot", 0, 2))
    assert (run["view_applied[0]"], run["view_shutting_down[0]"]) == (1, 0b1)
    run(("order_snapshot", 0, 1))
    assert run.broken() == []


def test_no_snapshot_is_ordered_while_a_node_has_fallen_behind() -> None:
    run = Run(constants=THREE_NODES)
    run(*(call for call in ORDERED[:-1] if call != ("replay_record", 1)))
    assert run.refused(("order_snapshot", 0, 2)) == "none_has_fallen_behind"
    run(("replay_record", 1), ("order_snapshot", 0, 2))


def test_hole_1_a_snapshot_cannot_say_who_is_fenced() -> None:
    """A broker loads a snapshot, and takes one that is unfenced and shuts down for fenced."""
    for variant in ("kip-631", "snapshot-lacks-fenced"):
        run = Run(variant, THREE_NODES)
        run(*ORDERED, ("begin_snapshot", 2), ("finish_snapshot", 2))
        assert run.broken() == ["snapshot_is_sufficient"]
        run(("load_snapshot", 0, 2))
        assert run.broken() == ["snapshot_is_sufficient", "view_is_of_stable_prefix"]


def test_hole_2_a_new_controller_knows_of_no_snapshot() -> None:
    taken_over: list[Call] = [("begin_snapshot", 2), ("elect_controller", 1, 1), ("activate", 1)]
    order: Call = ("order_snapshot", 1, 0)
    for variant in ("kip-631", "two-snapshots"):
        run = Run(variant, THREE_NODES)
        run(*ORDERED, *taken_over, order, ("hear_of_epoch", 0, 1), ("replay_record", 0), ("begin_snapshot", 0))
        assert "one_snapshot_in_the_making" in run.broken()
    run = Run(constants=THREE_NODES)
    run(*ORDERED, *taken_over)
    assert run.refused(order) == "none_makes_one"
    run(("hear_of_epoch", 0, 1), ("heartbeat", 0, 1), ("hear_of_epoch", 2, 1), ("heartbeat", 2, 1))
    assert run.refused(order) == "none_makes_one", "it has heard of one"


def test_hole_3_an_order_outlives_its_controller() -> None:
    """Node 0 is ordered to make a snapshot by controller 1, is elected, orders one of node 1, and resigns."""
    story: list[Call] = [
        ("elect_controller", 1, 0),
        ("activate", 1),
        ("request_shutdown", 1, 0),
        ("commit", 1),
        ("replay_record", 0),
        ("hear_of_epoch", 0, 0),
        ("heartbeat", 0, 1),
        ("order_snapshot", 1, 0),
        ("elect_controller", 0, 1),
        ("hear_of_epoch", 1, 1),
        ("replay_record", 1),
        ("activate", 0),
        ("heartbeat", 1, 0),
        ("order_snapshot", 0, 1),
        ("begin_snapshot", 1),
        ("resign", 0),
    ]
    for variant in ("kip-631", "late-order"):
        run = Run(variant, "1/2/1/1/1/1/1/1")
        run(*story, ("begin_snapshot", 0))
        assert (len(story), run.broken()) == (16, ["one_snapshot_in_the_making"])
    run = Run(constants="1/2/1/1/1/1/1/1")
    run(*story)
    assert run.refused(("begin_snapshot", 0)) == "of_own_epoch"
    run(("drop_order", 0))
    assert run.broken() == []


def test_hole_4_who_was_proposed_is_not_who_joins() -> None:
    story: list[Call] = [
        *LED,
        ("leader_write", 0, 0),
        ("replay_metadata", 1),
        ("follower_fetch", 0, 1, 0),
        ("acknowledge", 0, 0),
        ("fence_broker", 0, 1, 1),
        ("commit", 0),
        ("replay_metadata", 0),
        ("propose_expand", 0, 1, 0),
        ("replay_metadata", 1),
        ("crash_broker", 1),
        ("register_broker", 0, 1),
        ("commit", 0),
        ("hear_registration", 1),
        ("replay_metadata", 1),
        ("unfence_broker", 0, 1),
    ]
    taken: Call = ("alter_partition", 0, 0, 0)
    for variant in ("kip-631", "stale-broker-epoch"):
        run = Run(variant)
        run(*story, taken)
        assert (len(story), run.broken()) == (20, ["acknowledged_is_kept"])
    proposed = story.index(("propose_expand", 0, 1, 0))
    run = Run()
    run(*story[:proposed])
    assert run.refused(story[proposed]) == "known_unfenced"


@pytest.mark.parametrize("restarts", [False, True])
def test_so_hole_4_is_closed_where_the_leader_could_not_know(restarts: bool) -> None:
    """Unfenced when it is proposed; the controller finds it is another by then, or takes it in."""
    run = Run()
    run(*LED, ("leader_write", 0, 0), ("replay_metadata", 1), ("propose_shrink", 0, 1, 0), ("alter_partition", 0, 0, 0))
    run(("commit", 0), ("replay_metadata", 0), ("follower_fetch", 0, 1, 0), ("propose_expand", 0, 1, 0))
    if restarts:
        run(("replay_metadata", 1), ("crash_broker", 1), ("fence_broker", 0, 1, 1), ("register_broker", 0, 1))
        run(("commit", 0), ("commit", 0), ("hear_registration", 1), ("replay_metadata", 1), ("replay_metadata", 1))
        run(("unfence_broker", 0, 1))
        assert run.refused(("alter_partition", 0, 0, 0)) == "is_eligible"
        run(("refuse_member", 0, 0, 0))
    else:
        run(("alter_partition", 0, 0, 0))
        assert run["node_isr[0][0]"] == 0b11
    assert run.broken() == []


def test_hole_5_the_last_member_leads_again() -> None:
    story: list[Call] = [
        *LED,
        ("leader_write", 0, 0),
        ("fence_broker", 0, 1, 1),
        ("commit", 0),
        ("replay_metadata", 0),
        ("acknowledge", 0, 0),
        ("crash_broker", 0),
        ("fence_broker", 0, 0, 0),
        ("register_broker", 0, 0),
        ("commit", 0),
        ("commit", 0),
        ("hear_registration", 0),
    ]
    back: list[Call] = [("replay_metadata", 0), ("replay_metadata", 0), ("unfence_broker", 0, 0)]
    for variant in ("kip-631", "last-member-returns"):
        run = Run(variant)
        run(*story)
        assert (len(story), run.broken()) == (16, ["acknowledged_is_kept"])
        run(*back, ("elect_leader", 0, 0, 0))
    run = Run()
    run(*story)
    assert run.broken() == []
    run(*back)
    assert run.refused(("elect_leader", 0, 0, 0)) == "not_doubted"
    assert run["node_isr[0][0]"] == 0b01, "it stays: nobody else may be elected either"
    assert run.refused(("elect_leader", 0, 0, 1)) == "in_isr"
    run = Run(SAFE, DATA, "elect_leader.not_doubted")
    run(*story, *back, ("elect_leader", 0, 0, 0))
    assert run.broken() == ["acknowledged_is_kept"]
