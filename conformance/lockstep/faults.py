"""The faults that the harness draws, and what each of them means.

What must be true after a fault is the harness's business (``expect.py``), never an adapter's word. Kinds of
``MODIFIERS`` are given to ``Adapter.apply`` with an action, kinds of ``EVENTS`` to ``Adapter.inject`` alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from ...model.core.errors import BadInput
from ...traces.run_report import Json

TIMED_OUT: Final = "REQUEST_TIMED_OUT"
"""What an asker gets that no response reaches."""
STORAGE_ERROR: Final = "KAFKA_STORAGE_ERROR"
"""What an asker gets where a file could not be written."""


class Kind(Enum):
    """A kind of fault. The value is its name on the command line and in traces."""

    LOSE_REQUEST = "lose-request"
    """The request of the exchange is lost: ``REQUEST_TIMED_OUT``, and nothing happened."""
    LOSE_RESPONSE = "lose-response"
    """The response is lost: ``REQUEST_TIMED_OUT``. What the request does at the asked has happened, what the response
    does at the asker has not."""
    DELAY_RESPONSE = "delay-response"
    """As ``LOSE_RESPONSE``, but the response stays in flight until ``DELIVER_LATE``, and changes nothing then."""
    DUPLICATE_REQUEST = "duplicate-request"
    """The request arrives twice: it happened once, and the asker has the first answer."""
    DUPLICATE_RESPONSE = "duplicate-response"
    """The response arrives twice: it happened once."""
    DISK_FULL = "disk-full"
    """The disk of whoever writes a log in this action is full: ``KAFKA_STORAGE_ERROR``, and nothing happened. The
    adapter makes room again, and brings a log back that the system took offline, before it returns."""
    FAILED_WRITE = "failed-write"
    """A write or sync fails in this action: as ``DISK_FULL``."""

    DELIVER_LATE = "deliver-late"
    """The oldest message in flight arrives (nothing, if there is none): no state changes."""
    ISOLATE = "isolate"
    """A replica can be reached by nobody, the controller and clients included, until ``HEAL``: exchanges with it end in
    ``REQUEST_TIMED_OUT`` and nothing happened."""
    HEAL = "heal"
    """An isolated replica can be reached again; no state changes by that."""
    CRASH = "crash"
    """A replica loses its memory and starts again from its files. ``Fault.seed`` decides which unsynced writes survive.
    The run holds the model's step for it, with what the system found: ``restart(replica, stored)`` of ``fencing``."""
    CLOCK_JUMP = "clock-jump"
    """Every clock goes forward by ``Fault.millis``; whatever falls due happens, and is in the run."""
    MARK_OFFLINE = "mark-offline"
    """The controller marks a replica offline, and has told its leader: it may not join the ISR (KIP-320)."""
    MARK_ONLINE = "mark-online"
    """The mark is taken away."""


MODIFIERS: Final = frozenset(list(Kind)[:7])
"""The kinds that go with an action."""
EVENTS: Final = frozenset(Kind) - MODIFIERS
"""The kinds that stand alone."""
STORAGE: Final = frozenset({Kind.DISK_FULL, Kind.FAILED_WRITE})
"""The modifiers that are about a replica's files, not about an exchange."""
OF_A_REPLICA: Final = frozenset({Kind.ISOLATE, Kind.HEAL, Kind.CRASH, Kind.MARK_OFFLINE, Kind.MARK_ONLINE})
"""The events that name a replica."""


@dataclass(frozen=True)
class Fault:
    """One fault. ``replica`` for the kinds of ``OF_A_REPLICA``; ``seed`` for a crash; ``millis`` for a clock jump."""

    kind: Kind
    replica: int | None = None
    seed: int = 0
    millis: int = 0

    def __str__(self) -> str:
        told = [] if self.replica is None else [f"replica={self.replica}"]
        told += [f"{name}={getattr(self, name)}" for name in ("seed", "millis") if getattr(self, name)]
        return f"{self.kind.value}({', '.join(told)})"

    def to_json(self) -> dict[str, Json]:
        """As a JSON object, without what is not said."""
        body: dict[str, Json] = {"kind": self.kind.value}
        if self.replica is not None:
            body["replica"] = self.replica
        return body | {name: getattr(self, name) for name in ("seed", "millis") if getattr(self, name)}

    @classmethod
    def from_json(cls, body: Mapping[str, object], where: str) -> Fault:
        """The inverse of ``to_json``. Raises BadInput that names ``where``."""
        mend = "give what fencepost conform wrote"
        name, replica = body.get("kind"), body.get("replica")
        numbers = (body.get("seed", 0), body.get("millis", 0))
        for value in (*numbers, 0 if replica is None else replica):
            if type(value) is not int or value < 0:
                raise BadInput(f"a fault has the number {value!r}", where, mend)
        (kind,) = kinds_named([str(name)], where)
        if (kind in OF_A_REPLICA) is (replica is None):
            raise BadInput(f"the fault {name} {'names no' if replica is None else 'has no'} replica", where, mend)
        return cls(kind, replica, *numbers)  # type: ignore[arg-type]


def kinds_named(names: list[str], where: str) -> frozenset[Kind]:
    """The kinds of these names. Raises BadInput for an unknown one, naming ``where``."""
    known = {kind.value: kind for kind in Kind}
    for name in names:
        if name not in known:
            raise BadInput(f"there is no fault {name!r}", where, f"choose of {', '.join(known)}")
    return frozenset(known[name] for name in names)
