"""How the page of a story lays out the controllers' log and the brokers that replay it."""

from __future__ import annotations

from typing import Final

from ...core.view import CONTROLLER, LogView, Route

CONTROLLERS: Final = LogView(
    fields=(
        "run",
        "own_epoch",
        "view_applied",
        "view_unfenced",
        "view_leader",
        "view_leader_epoch",
        "view_isr",
        "data",
    ),
    controller=("end", "stable", "newest_epoch"),
    controller_epoch="newest_epoch",
    labels={
        "run": "the broker",
        "own_epoch": "broker epoch",
        "view_applied": "has replayed up to",
        "view_unfenced": "knows unfenced",
        "view_leader": "knows as leader",
        "view_leader_epoch": "leader epoch",
        "view_isr": "ISR",
        "data": "leader epoch of its record",
        "end": "end of the metadata log",
        "stable": "last stable offset",
        "newest_epoch": "controller epoch",
    },
    routes={
        **{action: Route("broker", CONTROLLER) for action in ("register_broker", "unfence_broker", "request_shutdown")},
        **{action: Route(CONTROLLER, "broker") for action in ("hear_registration", "stop_broker")},
        **{action: Route("broker") for action in ("crash_broker", "replay_metadata", "load_snapshot")},
        **{action: Route("leader") for action in ("propose_expand", "propose_shrink", "leader_write", "acknowledge")},
        **{
            action: Route(CONTROLLER)
            for action in (
                "elect_controller",
                "hear_of_epoch",
                "resign",
                "activate",
                "commit",
                "replay_record",
                "fence_broker",
                "create_topic",
                "remove_topic",
                "elect_leader",
                "heartbeat",
                "order_snapshot",
                "begin_snapshot",
                "begin_own_snapshot",
                "drop_order",
                "finish_snapshot",
            )
        },
        "alter_partition": Route("leader", CONTROLLER),
        "refuse_member": Route(CONTROLLER, "leader"),
        "follower_fetch": Route("leader", "follower"),
    },
)
"""KIP-631. All controllers share the controller's lane: the page has a lane for each broker."""
