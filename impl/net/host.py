"""Registry of running endpoints and their deadlines, shared by all hosts."""

from __future__ import annotations

from .interface import Endpoint


class NetworkError(Exception):
    """Invalid call of a host. ``str()`` is one line, ``WHERE: WHAT; HOW TO FIX IT``."""


class BudgetExceeded(NetworkError):
    """Wait that exceeded its budget of events or milliseconds."""


class Host:
    """Running endpoints by address, in the order of their start."""

    def __init__(self) -> None:
        self._endpoints: dict[int, Endpoint] = {}
        # Only a running endpoint can change its deadline, so after an event the host queries that endpoint alone.
        self._deadlines: dict[int, int | None] = {}

    def attach(self, endpoint: Endpoint) -> None:
        """Start an endpoint: from now on it receives messages and wakes at its deadline.

        Raises ``NetworkError`` if its address is in use.
        """
        address = endpoint.address
        if address in self._endpoints:
            raise NetworkError(f"address {address}: an endpoint is up here; detach it first")
        self._endpoints[address] = endpoint
        self._deadlines[address] = endpoint.deadline()

    def detach(self, address: int) -> Endpoint:
        """Stop the endpoint at ``address`` and return it.

        It no longer wakes, and messages that arrive for it are lost. Messages that it has sent still arrive. Messages
        in flight to it reach the next endpoint at its address. Raises ``NetworkError`` if no endpoint is up.
        """
        endpoint = self.endpoint(address)
        del self._endpoints[address]
        del self._deadlines[address]
        return endpoint

    def is_up(self, address: int) -> bool:
        """Whether an endpoint is up at ``address``."""
        return address in self._endpoints

    def endpoint(self, address: int) -> Endpoint:
        """Return the endpoint at ``address``. Raises ``NetworkError`` if none is up."""
        try:
            return self._endpoints[address]
        except KeyError:
            raise NetworkError(f"address {address}: no endpoint is up here; attach one first") from None

    def refresh(self) -> None:
        """Query every endpoint's deadline, after a caller other than the host ran one."""
        for address, endpoint in self._endpoints.items():
            self._deadlines[address] = endpoint.deadline()

    def _next_wake(self) -> tuple[int, int] | None:
        """Return the earliest ``(deadline, address)``; the first endpoint started wins ties."""
        first: int | None = None
        found = 0
        for address, deadline in self._deadlines.items():
            if deadline is not None and (first is None or deadline < first):
                first, found = deadline, address
        return None if first is None else (first, found)

    def _wake(self, address: int) -> None:
        endpoint = self._endpoints[address]
        endpoint.wake()
        self._asked(address, endpoint)

    def _asked(self, address: int, endpoint: Endpoint) -> None:
        """Record the deadline of an endpoint that has just run, unless it was detached."""
        if self._endpoints.get(address) is endpoint:
            self._deadlines[address] = endpoint.deadline()
