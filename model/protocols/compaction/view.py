"""How the page of a story lays out the replicas of a compacted partition."""

from __future__ import annotations

from typing import Final

from ...core.view import CONTROLLER, LogView, Route

VIEW: Final = LogView(
    record_epoch="record_epoch",
    end="leo",
    epoch="joined",
    fields=("active", "checkpoint", "broker_strategy"),
    controller=(
        "leader",
        "leader_epoch",
        "isr",
        "hw",
        "topic_strategy",
        "position",
        "table",
    ),
    controller_leader="leader",
    controller_epoch="leader_epoch",
    labels={
        "leo": "LEO",
        "hw": "high watermark",
        "joined": "leader epoch",
        "isr": "ISR",
        "active": "active segment from",
        "checkpoint": "clean up to",
        "broker_strategy": "broker's strategy",
        "topic_strategy": "topic's strategy",
        "position": "consumer's position",
        "table": "offset of what the consumer has of each key",
        "leader_epoch": "leader epoch",
        "record_key": "key",
        "record_tombstone": "tombstone",
        "record_timestamp": "timestamp",
        "record_header": "header",
    },
    routes={
        "elect_leader": Route(CONTROLLER, "replica"),
        "become_follower": Route(CONTROLLER, "replica"),
        "set_topic_strategy": Route(CONTROLLER),
        "set_broker_strategy": Route("replica"),
        "leader_write": Route(CONTROLLER),
        "leader_inc_high_watermark": Route(CONTROLLER),
        "follower_fetch": Route("replica"),
        "follower_fetch_empty_batch": Route("replica"),
        "leader_shrink_isr": Route(CONTROLLER, "replica"),
        "leader_expand_isr": Route("replica", CONTROLLER),
        "roll_segment": Route("replica"),
        "remove_record": Route("replica"),
        "remove_tombstone": Route("replica"),
        "finish_cleaning": Route("replica"),
        "consumer_fetch": Route(CONTROLLER),
        "consumer_start_over": Route(CONTROLLER),
    },
)
"""KIP-280. Who leads is no parameter of the steps: what the leader and the consumer do is in the controller's lane."""
