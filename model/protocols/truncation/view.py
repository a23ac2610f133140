"""How the page of a story lays out KIP-320's consumers."""

from __future__ import annotations

from typing import Final

from ...core.view import CONTROLLER, LogView, Route

TRUNCATION: Final = LogView(
    record_id="record_id",
    record_epoch="record_epoch",
    end="leo",
    high_watermark="hw",
    epoch="leader_epoch",
    controller=("quorum_leader_epoch", "next_record_id"),
    controller_epoch="quorum_leader_epoch",
    labels={
        "leo": "LEO",
        "hw": "high watermark",
        "leader_epoch": "leader epoch",
        "quorum_leader_epoch": "leader epoch",
        "next_record_id": "next record id",
    },
    routes={
        "elect_cleanly": Route(CONTROLLER, "new_leader"),
        "elect_uncleanly": Route(CONTROLLER, "new_leader"),
        "become_follower": Route(CONTROLLER, "follower"),
        **{
            action: Route("leader")
            for action in (
                "leader_write",
                "leader_inc_high_watermark",
                "consumer_fetch",
                "answer_unknown_leader_epoch",
                "answer_log_truncation",
                "answer_out_of_range",
                "find_divergence",
                "reset_to_latest",
                "seek_to_nearest",
            )
        },
        "follower_fetch": Route("follower"),
    },
)
"""KIP-320's consumers. The consumer has no lane: its cells are shown as they are, its requests at who answers them."""
