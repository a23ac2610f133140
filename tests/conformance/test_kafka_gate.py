"""The proxy before a node, with a server and clients of Kafka's framing over real sockets, and no Kafka."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import closing, suppress

import pytest
from fencepost.conformance.kafka.cluster.frames import FETCH, PRODUCE, FrameError, Header, request_header
from fencepost.conformance.kafka.cluster.proxy import Gate
from fencepost.traces.kafka.cluster import RecordingError

NODE = 7


def request(api: int, correlation: int, client: str | None, body: bytes = b"body") -> bytes:
    name = struct.pack(">h", -1) if client is None else struct.pack(">h", len(client)) + client.encode()
    head = struct.pack(">hhi", api, 12, correlation) + name + body
    return struct.pack(">i", len(head)) + head


def received(connection: socket.socket) -> bytes:
    """One message without its size; empty at the end."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        more = connection.recv(4 if len(data) < 4 else 4 + struct.unpack_from(">i", data)[0] - len(data))
        if not more:
            return b""
        data += more
    return data[4:]


class Node:
    """Answers each request with its correlation id, and keeps what came."""

    def __init__(self) -> None:
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self.came: list[Header] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._server.accept()
            except OSError:
                return
            threading.Thread(target=self._answer, args=(connection,), daemon=True).start()

    def _answer(self, connection: socket.socket) -> None:
        with closing(connection):
            while data := received(connection):
                header = request_header(struct.pack(">i", len(data)) + data)
                self.came.append(header)
                connection.sendall(struct.pack(">ii", 8, header.correlation) + b"done")

    def close(self) -> None:
        with suppress(OSError):  # it was closed before
            self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()


@pytest.fixture
def node() -> Iterator[Node]:
    made = Node()
    yield made
    made.close()


@pytest.fixture
def gate(node: Node) -> Iterator[Gate]:
    with Gate((NODE,), lambda _: node.port) as made:
        yield made
        assert made.faults == []


def connect(gate: Gate) -> socket.socket:
    return socket.create_connection(("127.0.0.1", gate.fronts[NODE]), timeout=10)


def asks(connection: socket.socket, api: int, correlation: int, client: str) -> int:
    connection.sendall(request(api, correlation, client))
    return answered(connection)


def answered(connection: socket.socket) -> int:
    """The correlation id of the next answer; -1 where the connection has ended."""
    data = received(connection)
    return struct.unpack_from(">i", data)[0] if data else -1


def test_what_is_not_held_passes_byte_for_byte(gate: Gate, node: Node) -> None:
    with connect(gate) as connection:
        assert [asks(connection, FETCH, number, "a") for number in range(5)] == list(range(5))
    assert node.came == [Header(FETCH, 12, number, "a") for number in range(5)]


def test_a_request_waits_and_all_behind_it_but_nobody_elses(gate: Gate, node: Node) -> None:
    hold = gate.hold(NODE, FETCH, "a")
    with connect(gate) as mine, connect(gate) as other:
        mine.sendall(request(FETCH, 1, "a") + request(PRODUCE, 2, "a"))
        hold.wait(10)
        assert asks(other, FETCH, 3, "b") == 3
        assert [each.correlation for each in node.came] == [3]
        hold.open()
        assert [answered(mine), answered(mine)] == [1, 2]
        assert asks(mine, FETCH, 4, "a") == 4, "an open hold holds nothing any more"


def test_one_is_let_through_and_the_next_waits(gate: Gate, node: Node) -> None:
    hold = gate.hold(NODE, FETCH, "a")

    def fetcher() -> None:
        with connect(gate) as connection:
            for number in range(3):
                asks(connection, FETCH, number, "a")

    thread = threading.Thread(target=fetcher)
    thread.start()
    for count in range(1, 3):
        hold.let_one(10)
        assert [each.correlation for each in node.came] == list(range(count))
    hold.open()
    thread.join(10)
    assert [each.correlation for each in node.came] == [0, 1, 2]


def test_a_response_waits_after_the_node_has_done_what_was_asked(gate: Gate, node: Node) -> None:
    hold = gate.hold(NODE, FETCH, "a", responses=True)
    with connect(gate) as connection:
        connection.sendall(request(FETCH, 1, "a"))
        hold.wait(10)
        assert [each.correlation for each in node.came] == [1]
        hold.open()
        assert answered(connection) == 1


@pytest.mark.parametrize("responses", [False, True])
def test_what_is_lost_takes_its_connection_along(gate: Gate, node: Node, *, responses: bool) -> None:
    hold = gate.hold(NODE, FETCH, "a", responses=responses)
    with connect(gate) as connection:
        connection.sendall(request(FETCH, 1, "a"))
        hold.wait(10)
        hold.lose()
        assert answered(connection) == -1
    assert len(node.came) == responses
    assert [each.what for each in gate.seen if each.response is responses] == ["held", "lost"]


def test_a_client_that_is_refused_gets_nowhere_until_it_no_longer_is(gate: Gate, node: Node) -> None:
    refused = gate.refuse(NODE, "a")
    for api in (FETCH, PRODUCE):
        with connect(gate) as connection:
            assert asks(connection, api, 1, "a") == -1
    with connect(gate) as connection:
        assert asks(connection, FETCH, 2, "b") == 2
        refused.open()
        assert asks(connection, FETCH, 3, "a") == 3
    assert [each.correlation for each in node.came] == [2, 3]


def test_a_request_whose_asker_has_gone_is_not_let_through_later(gate: Gate, node: Node) -> None:
    hold = gate.hold(NODE, FETCH, "a")
    with connect(gate) as connection:
        connection.sendall(request(FETCH, 1, "a"))
        hold.wait(10)
    gate.wait_for("it to be gone", lambda: not hold.waiting, 10)
    hold.open()
    with connect(gate) as connection:
        assert asks(connection, FETCH, 2, "a") == 2
    assert [each.correlation for each in node.came] == [2]


def test_a_node_that_is_down_is_a_connection_that_ends(gate: Gate, node: Node) -> None:
    node.close()
    with connect(gate) as connection:
        assert answered(connection) == -1


def test_to_wait_in_vain_is_told(gate: Gate) -> None:
    with pytest.raises(RecordingError, match=r"in vain for: one of the Fetch requests of a at node 7"):
        gate.hold(NODE, FETCH, "a").wait(0.05)


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (struct.pack(">i", -5), "a message of -5 bytes"),
        (struct.pack(">i", 4) + b"abcd", "a request of 8 bytes"),
        (struct.pack(">ihhih", 10, 1, 1, 1, 99), "a client id of 99 bytes"),
        (struct.pack(">ihhih", 11, 1, 1, 1, 1) + b"\xff", "a client id that is no text"),
    ],
    ids=["size", "cut", "client", "text"],
)
def test_what_is_no_message_ends_its_connection_and_is_told(node: Node, data: bytes, what: str) -> None:
    with Gate((NODE,), lambda _: node.port) as gate, connect(gate) as connection:
        connection.sendall(data)
        assert answered(connection) == -1
        gate.close()
        assert len(gate.faults) == 1 and what in gate.faults[0]
    assert node.came == []


def test_a_request_may_have_no_client_id() -> None:
    assert request_header(request(FETCH, 5, None)) == Header(FETCH, 12, 5, None)
    with pytest.raises(FrameError, match="a client id of -2 bytes"):
        request_header(struct.pack(">ihhih", 10, 1, 1, 1, -2))
