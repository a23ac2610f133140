"""What stands at an address of the network of a system that runs freely: a process, or a client that only listens."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from ...impl.net.interface import Endpoint
from ...impl.wire.messages import Envelope


class Node(Endpoint, Protocol):
    """A process that is up."""

    def fire(self, key: Any) -> None:
        """Do what a timer is for."""


class Mailbox:
    """An endpoint that does nothing by itself: a client. What arrives is handed on."""

    def __init__(self, address: int, receive: Callable[[Envelope], None]) -> None:
        self.address = address
        self.receive = receive

    def deadline(self) -> int | None:
        """It never wants to be woken."""
        return None

    def wake(self) -> None:
        """Nothing."""
