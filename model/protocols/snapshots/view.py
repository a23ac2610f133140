"""How the page of a story lays out KIP-630's quorum."""

from __future__ import annotations

from typing import Final

from ...core.view import CONTROLLER, LogView, Route

SNAPSHOTS: Final = LogView(
    record_epoch="record_epoch",
    start="lbo",
    end="leo",
    high_watermark="hw",
    epoch="leader_epoch",
    fields=("fetching", "fetching_epoch", "position"),
    controller=("newest_epoch", "candidate", "votes", "voters"),
    controller_epoch="newest_epoch",
    labels={
        "lbo": "LBO",
        "leo": "LEO",
        "hw": "high watermark",
        "leader_epoch": "leader epoch",
        "newest_epoch": "newest leader epoch",
        "fetching": "fetches the snapshot that ends at",
        "fetching_epoch": "epoch of that snapshot",
        "position": "chunks of it",
    },
    routes={
        "become_candidate": Route("candidate", CONTROLLER),
        "grant_vote": Route("voter", CONTROLLER),
        "hear_vote": Route("voter", CONTROLLER, sent="granted[{epoch}]"),
        "become_follower": Route(CONTROLLER, "follower"),
        **{
            action: Route("leader", "follower")
            for action in ("follower_fetch", "follower_truncate", "follower_start_over", "fetch_snapshot")
        },
        **{f"hold_{kind}": Route("leader") for kind in ("records", "divergence", "snapshot", "chunk")},
        **{f"late_{kind}": Route("follower") for kind in ("records", "divergence", "snapshot", "chunk")},
        **{
            action: Route("leader")
            for action in ("leader_write", "leader_inc_high_watermark", "leader_advance_lbo", "delete_records")
        },
        **{action: Route("replica") for action in ("generate_snapshot", "delete_snapshot", "restart", "restart_empty")},
        "rediscover_snapshot": Route("follower"),
    },
)
"""KIP-630. The controller's lane has the election: the newest epoch, its candidate and the votes."""
