"""What every host of endpoints has: who is up, and when they want to be woken."""

from __future__ import annotations

from .interface import Endpoint


class NetworkError(Exception):
    """A host was asked for something that cannot be. ``str()`` is one line, ``WHERE: WHAT; HOW TO MEND``."""


class BudgetExceeded(NetworkError):
    """What was waited for has not happened within the budget of events or milliseconds."""


class Host:
    """The endpoints that are up, by address, in the order in which they came up."""

    def __init__(self) -> None:
        self._endpoints: dict[int, Endpoint] = {}
        # An endpoint's deadline can only change while it runs, so nobody else is asked again after an event.
        self._deadlines: dict[int, int | None] = {}

    def attach(self, endpoint: Endpoint) -> None:
        """Bring an endpoint up: from now on it gets messages and is woken.

        Raises ``NetworkError`` where another one has its address.
        """
        address = endpoint.address
        if address in self._endpoints:
            raise NetworkError(f"address {address}: an endpoint is up here; detach it first")
        self._endpoints[address] = endpoint
        self._deadlines[address] = endpoint.deadline()

    def detach(self, address: int) -> Endpoint:
        """Take an endpoint down: it is not woken, and messages that arrive for it vanish. Gives the endpoint.

        Messages that it has sent still arrive, and what is on its way to it reaches the next one at its address.
        Raises ``NetworkError`` where none is up.
        """
        endpoint = self.endpoint(address)
        del self._endpoints[address]
        del self._deadlines[address]
        return endpoint

    def is_up(self, address: int) -> bool:
        """Whether an endpoint is up at ``address``."""
        return address in self._endpoints

    def endpoint(self, address: int) -> Endpoint:
        """The endpoint that is up at ``address``. Raises ``NetworkError`` where none is."""
        try:
            return self._endpoints[address]
        except KeyError:
            raise NetworkError(f"address {address}: no endpoint is up here; attach one first") from None

    def refresh(self) -> None:
        """Ask every endpoint for its deadline, after someone other than the host has called one."""
        for address, endpoint in self._endpoints.items():
            self._deadlines[address] = endpoint.deadline()

    def _next_wake(self) -> tuple[int, int] | None:
        """``(deadline, address)`` of the endpoint that is to be woken next; of several, the one that came up first."""
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
        """Note the deadline of an endpoint that has just run, unless it was taken down meanwhile."""
        if self._endpoints.get(address) is endpoint:
            self._deadlines[address] = endpoint.deadline()
