"""Requests at versions that a node has, on a real socket: what is missing is named, and a rejection is not repeated."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from fencepost.model.core.errors import BadInput
from fencepost.traces.kafka.negotiation import (
    EPOCH_ENDS,
    FETCH,
    LATEST,
    METADATA,
    QUORUM,
    Api,
    Negotiation,
    epoch_end_request,
    fetch_request,
    latest_request,
    metadata_request,
    quorum_request,
)
from fencepost.traces.kafka.polled import Poller
from fencepost.traces.kafka.wire import ConnectionClosed, WireError, written
from kio.schema.errors import ErrorCode

from .scripted_node import ScriptedNode, latest

TOPIC_ID = UUID(int=5)
BUILDERS = {
    METADATA: lambda version: metadata_request(version, "t"),
    EPOCH_ENDS: lambda version: epoch_end_request(version, "t", 0, 3, 4),
    LATEST: lambda version: latest_request(version, "t", 0),
    FETCH: lambda version: fetch_request(version, "t", TOPIC_ID, 0, 4),
    QUORUM: lambda version: quorum_request(version, "t"),
}


def ask_latest(negotiation: Negotiation, node: ScriptedNode) -> Any:
    with node.connection() as connection:
        return negotiation.ask(1, connection, LATEST, lambda version: latest_request(version, "t", 0))


@pytest.mark.parametrize("api", BUILDERS, ids=lambda api: api.name)
def test_request_is_written_at_every_version(api: Api) -> None:
    for version in api.versions:
        request = BUILDERS[api](version)
        assert (request.__api_key__, request.__version__) == (api.key, version)
        assert written(request)


@pytest.mark.parametrize(("has", "sent"), [((0, 5), 5), ((3, 99), 10), ((0, 1), 1)])
def test_request_uses_newest_common_version(has: tuple[int, int], sent: int) -> None:
    negotiation = Negotiation()
    with ScriptedNode({LATEST.key: has}, {LATEST.key: latest}) as node:
        answer = ask_latest(negotiation, node)
        assert int(answer.topics[0].partitions[0].offset) == 7
        assert node.received == [(LATEST.key, sent)]
    assert negotiation.missing.lines == []


@pytest.mark.parametrize(
    ("versions", "reason"),
    [
        ({LATEST.key: (0, 0)}, "and the node has 0 to 0"),
        ({LATEST.key: (11, 12)}, "and the node has 11 to 12"),
        ({}, "and the node does not have it"),
    ],
    ids=["too old", "too new", "unknown"],
)
def test_request_without_common_version_is_not_sent(versions: dict[int, tuple[int, int]], reason: str) -> None:
    negotiation = Negotiation()
    with ScriptedNode(versions, {}) as node:
        assert ask_latest(negotiation, node) is None
        assert ask_latest(negotiation, node) is None
        assert node.received == []
    (line,) = negotiation.missing.lines
    assert line.startswith("not recorded: the leader's high watermark of node 1: ListOffsets 1 to 10 is needed")
    assert line.endswith(reason)


@pytest.mark.parametrize("error", ["unsupported_version", "topic_authorization_failed"])
def test_rejected_request_is_not_repeated(error: str) -> None:
    negotiation = Negotiation()
    with ScriptedNode({LATEST.key: (1, 5)}, {LATEST.key: lambda v: latest(v, ErrorCode[error])}) as node:
        assert [ask_latest(negotiation, node) for _ in range(3)] == [None] * 3
        assert node.received == [(LATEST.key, 5)]
    (line,) = negotiation.missing.lines
    assert line.endswith(f"the node answers ListOffsets 5 with {error}; not asked again")


def test_passing_error_is_asked_again() -> None:
    negotiation = Negotiation()
    answer = lambda version: latest(version, ErrorCode.not_leader_or_follower)  # noqa: E731
    with ScriptedNode({LATEST.key: (1, 5)}, {LATEST.key: answer}) as node:
        assert ask_latest(negotiation, node) is not None
        assert ask_latest(negotiation, node) is not None
        assert len(node.received) == 2
    assert negotiation.missing.lines == []


def test_closed_connection_stops_after_the_second_in_a_row() -> None:
    """A broker may be killed once while it holds a request."""
    negotiation = Negotiation()
    answers = iter([None, latest(5), None, None])
    with ScriptedNode({LATEST.key: (1, 5)}, {LATEST.key: lambda _: next(answers)}) as node:
        with pytest.raises(ConnectionClosed):
            ask_latest(negotiation, node)
        assert ask_latest(negotiation, node) is not None
        for _ in range(2):
            with pytest.raises(WireError, match="the node has closed the connection"):
                ask_latest(negotiation, node)
        assert ask_latest(negotiation, node) is None
        assert len(node.received) == 4
    assert "closes the connection on ListOffsets 5; not asked again" in negotiation.missing.lines[0]


def test_missing_names_all_nodes_of_one_reason() -> None:
    missing = Negotiation().missing
    for node in (3, 1):
        missing.add(node, LATEST, "why")
    missing.add(2, LATEST, "why else")
    assert missing.lines == [
        "not recorded: the leader's high watermark of node 2: why else",
        "not recorded: the leader's high watermark of nodes 1, 3: why",
    ]
    assert missing.has(LATEST) and not missing.has(FETCH)


def test_recorder_rejects_a_node_without_metadata_versions() -> None:
    with ScriptedNode({METADATA.key: (0, 2)}, {}) as node:
        with pytest.raises(BadInput, match=r"Metadata 4 to 12 is needed \(Kafka 0\.11 or newer\)"):
            Poller([("127.0.0.1", node.port)], "t", 0).__enter__()
        assert node.received == []
