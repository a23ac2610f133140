"""How each protocol's variables are laid out on the page."""

from __future__ import annotations

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
    },
)
"""KIP-320's replicas. A LeaderAndIsr request travels from the step that sent it to the step that takes it up."""

VIEWS: Final[dict[str, LogView]] = {"fencing": FENCING}


def view_of(protocol: str) -> LogView:
    """The layout of ``protocol``; an empty one, which shows plain variables, when nobody has drawn it yet."""
    return VIEWS.get(protocol, LogView())
