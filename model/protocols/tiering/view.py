"""How the page of a story lays out replicas whose logs begin on remote."""

from __future__ import annotations

from typing import Final

from ...core.view import CONTROLLER, LogView, Route

_LEADERS: Final = (
    "leader_write",
    "leader_inc_high_watermark",
    "find_highest_remote_offset",
    "start_copy",
    "copy_segment",
    "finish_copy",
    "delete_local",
    "increment_log_start",
    "delete_segment",
)
_FETCHES: Final = (
    "become_follower",
    "follower_fetch",
    "truncate_fully",
    "build_to_local_start",
    "build_to_epuo",
    "start_at_local_start",
    "start_at_log_start",
    "crash_while_building",
    "copy_anew",
)

TIERED: Final = LogView(
    record_epoch="record_epoch",
    start="log_start",
    end="leo",
    high_watermark="hw",
    epoch="leader_epoch",
    fields=("local_start", "highest_remote"),
    controller=("newest_epoch", "isr", "tiered", "stable"),
    controller_epoch="newest_epoch",
    labels={
        "leo": "LEO",
        "hw": "high watermark",
        "leader_epoch": "leader epoch",
        "log_start": "log start",
        "local_start": "local log start",
        "highest_remote": "highest remote",
        "newest_epoch": "leader epoch",
        "isr": "ISR",
        "tiered": "tiering",
        "stable": "stable up to",
    },
    routes={
        **{action: Route("leader") for action in _LEADERS},
        **{action: Route("leader", "follower") for action in _FETCHES},
        "elect_leader": Route(CONTROLLER, "replica"),
        "elect_unclean_leader": Route(CONTROLLER, "replica"),
        "replace_replica": Route("replica"),
        "end_transaction": Route(CONTROLLER),
        "leader_shrink_isr": Route("leader", CONTROLLER),
        "leader_expand_isr": Route("leader", CONTROLLER),
        "disable_tiering": Route("leader", CONTROLLER),
        "enable_tiering": Route("leader", CONTROLLER),
    },
)
"""KIP-1023. What is on remote is in the cells beside the lanes."""
