"""What a freely running node sends by."""

from __future__ import annotations

from collections.abc import Callable

from ...impl.net.simulated import SimulatedNetwork
from ...impl.wire.messages import Envelope
from ..simulation.power import Power


class Wire:
    """A node's transport: what it sends is an effect, and nothing is sent by a node that has lost power.

    ``sends`` is told of each message that is sent.
    """

    def __init__(self, network: SimulatedNetwork, power: Power, sends: Callable[[Envelope], None]) -> None:
        self._network = network
        self._power = power
        self._sends = sends

    def send(self, envelope: Envelope) -> None:
        """Take a message on its way."""
        self._power.effect()
        self._sends(envelope)
        self._network.send(envelope)
