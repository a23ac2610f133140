"""How the page of a story lays out KIP-320's replicas."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from ...core.view import CONTROLLER, LogView, Route

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
        "quorum_partition_epoch": "partition epoch",
        "partition_epoch": "partition epoch",
        "asked_in": "asked to join the ISR",
        "asked_out": "asked to leave the ISR",
        "altered_isr": "ISR in the answer",
        "altered_partition_epoch": "partition epoch in the answer",
        "maximal_isr": "maximal ISR",
        "asked_isr": "asked ISR",
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
        "leader_propose_shrink": Route("leader"),
        "leader_propose_expand": Route("leader"),
        "controller_alter_isr": Route(CONTROLLER),
        "leader_take_isr": Route(CONTROLLER, "leader"),
        "leader_forget_proposal": Route("leader"),
        "follower_truncate": Route("leader", "follower"),
        "restart": Route("replica"),
        "follower_acknowledge": Route("follower", "leader"),
        "resume_leadership": Route(CONTROLLER, "leader"),
        "controller_fail_over": Route(CONTROLLER),
        "controller_grant_isr": Route("leader", CONTROLLER),
        "hear_of_leader": Route(CONTROLLER, "replica", sent="request_leader[{epoch}]"),
        "truncate_partly": Route("leader", "follower"),
        "restart_after_loss": Route("replica"),
        "leader_write_again": Route("leader"),
        "flush": Route("replica"),
        "follower_hear_high_watermark": Route("leader", "follower"),
        "leader_ask_shrink": Route("leader"),
        "leader_ask_expand": Route("leader"),
        "leader_ask_again": Route("leader"),
        "leader_learn_isr": Route(CONTROLLER, "leader"),
        "producer_hears": Route("leader"),
        "consumer_reads": Route("leader"),
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


PROPOSED: Final = replace(
    FENCING,
    fields=("isr", "proposed", "partition_epoch"),
    controller=(*FENCING.controller, "quorum_partition_epoch"),
    per_epoch=(*FENCING.per_epoch, "altered_isr", "altered_partition_epoch"),
)
"""The variants of KIP-497: what a leader has proposed is beside the ISR that it knows."""


def view(variant: str) -> LogView:
    """The layout of a variant."""
    if variant.startswith("kip-497"):
        return PROPOSED
    return UNCONSULTED if variant in ("truncate-to-hw", "kip-320-first-try") else FENCING
