"""What the model of the text and the Apache variant do beside a quorum of Kafka's, for tests of rows about quorums.

Kafka counts epochs from 1 where the model does from 0, and a leader's own record is one more at the front of each
epoch.
"""

from __future__ import annotations

from fencepost.model.protocols.snapshots.kafka_spec import text

from .kafka_dialect import Walk

A, B, C = range(3)
WRITTEN, RUNNING = "kip-630", "kip-630-quorum"
"""The text as it is written, and a quorum that runs by the text less its holes: what a row says of the text."""


def walk(variant: str, *constants: int) -> Walk:
    return Walk(text, variant, *(constants or (3, 0, 3, 2, 2, 0, 0, 1)))


def elect(found: Walk, node: int, voter: int, epoch: int) -> None:
    """A node is elected for this epoch with a voter's vote."""
    if found.has("become_candidate"):
        found("become_candidate", candidate=node)
        found("grant_vote", voter=voter)
        return
    found("stand", replica=node, epoch=epoch)
    if found.has("hear_of_epoch"):
        found("hear_of_epoch", replica=voter, teller=node)
    else:
        found("hear_of_candidate", candidate=node, voter=voter)
    found("give_vote", candidate=node, voter=voter)
    found("count_vote", candidate=node, voter=voter)
    found("take_office", replica=node)


def follow(found: Walk, node: int, leader: int, epoch: int) -> None:
    """A node hears who leads; in the text whoever has voted knows."""
    if found.has("begin_epoch"):
        found("begin_epoch", leader=leader, follower=node)
    elif found[f"leader_epoch[{node}]"] != epoch:
        found("become_follower", follower=node, epoch=epoch)


def write(found: Walk, leader: int) -> None:
    found("client_append" if found.has("client_append") else "leader_write", leader=leader)


def commit(found: Walk, leader: int, follower: int) -> None:
    """A leader's last record is fetched by a follower, and then both know that it is committed."""
    end = found[f"leo[{leader}]"]
    for _ in range(end - found[f"leo[{follower}]"]):
        found("follower_fetch", leader=leader, follower=follower)
    if found.has("count_fetch"):
        for node in (leader, follower):
            if found[f"synced[{node}]"] < end:
                found("sync", replica=node)
        found("count_fetch", leader=leader, follower=follower)
        raises = "raise_high_watermark"
    else:
        found("follower_fetch", leader=leader, follower=follower)
        raises = "leader_inc_high_watermark"
    while found[f"hw[{leader}]"] < end:
        found(raises, leader=leader, offset=end - 1)
    found("follower_fetch", leader=leader, follower=follower)


def model_led(variant: str, *constants: int, records: int = 2) -> Walk:
    """A leads in epoch 0, B has all of its log and knows it to be committed, C follows with nothing."""
    found = walk(variant, *constants)
    elect(found, A, B, 0)
    for node in (B, C):
        follow(found, node, A, 0)
    for _ in range(records):
        write(found, A)
    commit(found, A, B)
    return found


def snapshot(found: Walk, node: int, last: int, chunks: int = 1) -> None:
    found("generate_snapshot", replica=node, offset=last, more=chunks - 1)


def begin_behind(found: Walk, leader: int, last: int) -> None:
    """A leader's log begins behind a snapshot whose last offset this is."""
    if found.has("delete_before_snapshot"):
        found("delete_before_snapshot", replica=leader, lbo=last + 1)
    else:
        found("leader_advance_lbo", leader=leader, lbo=last + 1)
