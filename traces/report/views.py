"""How each protocol's variables are laid out on the page."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ..story import CONTROLLER, LogView, Route

FENCING: Final = LogView(
    record_id="record_id",
    record_epoch="record_epoch",
    end="leo",
    high_watermark="hw",
    leader="leader",
    epoch="leader_epoch",
    fields=("isr",),
    controller=(
        "quorum_leader_epoch",
        "quorum_leader",
        "quorum_isr",
        "next_leader_epoch",
        "next_record_id",
    ),
    controller_leader="quorum_leader",
    controller_epoch="quorum_leader_epoch",
    per_epoch=("request_leader", "request_isr"),
    per_epoch_end="next_leader_epoch",
    labels={
        "leo": "LEO",
        "hw": "high watermark",
        "leader_epoch": "leader epoch",
        "isr": "ISR",
        "quorum_leader_epoch": "leader epoch",
        "quorum_leader": "leader",
        "quorum_isr": "ISR",
        "next_leader_epoch": "next leader epoch",
        "next_record_id": "next record id",
        "request_leader": "leader",
        "request_isr": "ISR",
        "remote_leo": "remote LEO",
    },
    routes={
        "controller_elect_leader": Route(CONTROLLER),
        "controller_shrink_isr": Route(CONTROLLER),
        "become_leader": Route(CONTROLLER, "leader", sent="request_leader[{epoch}]"),
        "become_follower": Route(CONTROLLER, "follower", sent="request_leader[{epoch}]", consults="leader"),
        "leader_write": Route("leader"),
        "follower_fetch": Route("leader", "follower"),
        "leader_inc_high_watermark": Route("leader"),
        "leader_shrink_isr": Route("leader", CONTROLLER),
        "leader_expand_isr": Route("leader", CONTROLLER),
        "follower_truncate": Route("leader", "follower"),
        "restart": Route("replica"),
        "follower_acknowledge": Route("follower", "leader"),
        "resume_leadership": Route(CONTROLLER, "leader"),
    },
)
"""KIP-320's replicas. A LeaderAndIsr request travels from the step that sent it to the step that takes it up."""

UNCONSULTED: Final = replace(
    FENCING,
    routes={
        **FENCING.routes,
        "become_follower": replace(FENCING.routes["become_follower"], consults=None),
    },
)
"""The variants in which a new follower does not look at its leader's log before it cuts its own, if it does."""

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

VIEWS: Final[dict[str, LogView]] = {"fencing": FENCING, "truncation": TRUNCATION, "snapshots": SNAPSHOTS}
VARIANT_VIEWS: Final[dict[tuple[str, str], LogView]] = {
    ("fencing", "truncate-to-hw"): UNCONSULTED,
    ("fencing", "kip-320-first-try"): UNCONSULTED,
}


def view_of(protocol: str, variant: str = "") -> LogView:
    """The layout of a protocol's variant; an empty one, which shows plain variables, when there is none yet."""
    return VARIANT_VIEWS.get((protocol, variant)) or VIEWS.get(protocol, LogView())
