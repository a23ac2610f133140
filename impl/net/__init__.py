"""Transport and clock: the interfaces, a simulated network that a test can break, and a host in real time."""

from .clock import EndpointClock, RealClock, SimulatedClock
from .faults import Counts, Faults, Flight
from .host import BudgetExceeded, Host, NetworkError
from .interface import Clock, Endpoint, Transport
from .loopback import LoopbackHost
from .simulated import SimulatedNetwork

__all__ = [
    "BudgetExceeded",
    "Clock",
    "Counts",
    "Endpoint",
    "EndpointClock",
    "Faults",
    "Flight",
    "Host",
    "LoopbackHost",
    "NetworkError",
    "RealClock",
    "SimulatedClock",
    "SimulatedNetwork",
    "Transport",
]
