"""A node that has chosen versions of requests, on a real socket: it answers, rejects, or closes the connection."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Callable, Mapping
from datetime import timedelta
from types import TracebackType
from typing import Any, Self

from fencepost.traces.kafka.wire import Connection, messages, written
from kio.schema.errors import ErrorCode

API_VERSIONS = 18

Answer = Callable[[int], Any]
"""By version, the message of an answer; None closes the connection."""


class ScriptedNode:
    """Listens on loopback; a context manager. ``received``: request keys and versions, ApiVersions left out."""

    def __init__(self, versions: Mapping[int, tuple[int, int]], answers: Mapping[int, Answer]) -> None:
        self._versions = versions
        self._answers = answers
        self.received: list[tuple[int, int]] = []
        self._server = socket.create_server(("127.0.0.1", 0))
        threading.Thread(target=self._serve, daemon=True).start()

    @property
    def port(self) -> int:
        port: int = self._server.getsockname()[1]
        return port

    def connection(self) -> Connection:
        return Connection("127.0.0.1", self.port, "test", 5.0)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._server.close()

    def _serve(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            with client:
                while self._answer(client):
                    pass

    def _answer(self, client: socket.socket) -> bool:
        size = client.recv(4, socket.MSG_WAITALL)
        if len(size) < 4:
            return False
        frame = client.recv(struct.unpack(">i", size)[0], socket.MSG_WAITALL)
        key, version, correlation = struct.unpack_from(">hhi", frame)
        if key == API_VERSIONS:
            answer = self._own_versions()
        else:
            self.received.append((key, version))
            answer = self._answers[key](version)
        if answer is None:
            return False
        header = answer.__header_schema__(correlation_id=correlation)
        body = written(header) + written(answer)
        client.sendall(struct.pack(">i", len(body)) + body)
        return True

    def _own_versions(self) -> Any:
        module = messages("api_versions", 0, "response")
        keys = tuple(
            module.ApiVersion(api_key=key, min_version=least, max_version=most)
            for key, (least, most) in self._versions.items()
        )
        return module.ApiVersionsResponse(error_code=ErrorCode.none, api_keys=keys)


def latest(version: int, error: ErrorCode = ErrorCode.none, offset: int = 7) -> Any:
    """An answer to ListOffsets of one partition."""
    module = messages("list_offsets", version, "response")
    partition = module.ListOffsetsPartitionResponse(partition_index=0, error_code=error, offset=offset)
    topics = (module.ListOffsetsTopicResponse(name="t", partitions=(partition,)),)
    throttled = {"throttle_time": timedelta(0)} if version >= 2 else {}
    return module.ListOffsetsResponse(topics=topics, **throttled)
