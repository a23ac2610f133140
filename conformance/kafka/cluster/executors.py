"""Where stories can be carried out, by the name that ``--on`` takes, and by whose hands.

The hands of a protocol are ``HANDS`` of a module that lies beside its harness, and has the name of the place.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, Final

from ....model.core.errors import BadInput
from ....traces.format import Trace
from ...harness import find_harness
from .stage import Stage
from .trace_executor import Carried, CarriedOut, carry_out, states_of

NAMES: Final = ("kafka-cluster",)
"""What ``--on`` takes."""


def carry(name: str, trace: Trace, where: str, release: str, say: Callable[[int, Carried], None]) -> CarriedOut:
    """Carry a story out. Raises BadInput for a name, a protocol or a story that is none, and without Maven or a JVM."""
    if name not in NAMES:
        raise BadInput(f"{name!r} is nowhere that stories are carried out", "--on", f"name {' or '.join(NAMES)}")
    harness = find_harness(trace.header.protocol)
    place = None if harness is None else f"{harness.package}.{name.replace('-', '_')}"
    if place is None or find_spec(place) is None:
        what = f"{trace.header.protocol} has no hands there"
        raise BadInput(what, f"--on {name}", "see conformance/kafka/cluster/trace_executor.py")
    states_of(trace, where)  # before anything is started
    make: Any = import_module(place).HANDS
    with Stage(release, settings=make.settings) as stage:
        hands = make(stage, trace, where)
        try:
            return carry_out(trace, where, hands, say)
        finally:
            hands.close()
